"""Secrets in, placeholders out: the case rows, rows of our own that the rules were not made from, and odd text."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui_agent.memory import secret_vendors, secrets
from tui_agent.memory.secrets import REPLACEMENT, has_secret, redact

TESTS = Path(__file__).parents[1]
SECRET_WORD = "pass" + "word"


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


CASES = rows(TESTS / "cases" / "secrets.jsonl")
HELD_OUT = rows(Path(__file__).parent / "heldout" / "secrets.jsonl")
ALL = CASES + HELD_OUT
POSITIVE = [row for row in ALL if row["secrets"]]
NEGATIVE = [row for row in ALL if not row["secrets"]]


def faults(row: dict[str, Any]) -> list[str]:
    result = redact(row["text"]).text
    found = [f"left {secret!r}" for secret in row["secrets"] if secret in result]
    found += [f"end of {s!r} left" for s in row["secrets"] if len(s) >= 16 and s[-12:] in result]
    found += [f"lost {kept!r}" for kept in row["keep"] if kept not in result]
    if not row["secrets"] and result != row["text"]:
        found.append(f"changed to {result!r}")
    return found


@pytest.mark.parametrize("data", [CASES, HELD_OUT], ids=["cases", "held out"])
def test_every_secret_is_removed_and_everything_else_is_kept(data: list[dict[str, Any]]) -> None:
    wrong = {f"{row['id']} {row['kind']}": problems for row in data if (problems := faults(row))}
    assert wrong == {}


def test_the_cases_are_complete() -> None:
    assert Counter(bool(row["secrets"]) for row in CASES) == {True: 77, False: 46}
    assert len([row for row in HELD_OUT if row["secrets"]]) >= 40


def test_a_rejecting_filter_refuses_every_row_with_a_secret_and_no_other() -> None:
    assert [row["id"] for row in POSITIVE if not has_secret(row["text"])] == []
    assert [row["id"] for row in NEGATIVE if has_secret(row["text"])] == []


def test_redacting_twice_changes_nothing() -> None:
    for row in ALL:
        once = redact(row["text"])
        again = redact(once.text)
        assert again.text == once.text, row["id"]
        assert again.findings == ()


def test_findings_point_into_the_original_text() -> None:
    for row in POSITIVE:
        result = redact(row["text"])
        rebuilt, at = "", 0
        for finding in result.findings:
            assert at <= finding.start < finding.end <= len(row["text"])
            assert finding.kind
            rebuilt += row["text"][at : finding.start] + REPLACEMENT
            at = finding.end
        assert rebuilt + row["text"][at:] == result.text, row["id"]


def test_rows_joined_in_one_text_lose_the_same_secrets() -> None:
    text = "\n\n".join(row["text"] for row in ALL)
    result = redact(text).text
    left = [s for row in POSITIVE for s in row["secrets"] if s in result and len(s) > 4]
    assert left == []


def test_without_the_libraries_our_own_rules_still_find_the_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_vendors, "_betterleaks", lambda: None)
    monkeypatch.setattr(secret_vendors, "_plugins", tuple)
    missed = [row["id"] for row in CASES if row["secrets"] and faults(row)]
    assert len(missed) <= 2, missed


def test_a_library_that_fails_leaves_the_work_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_text: str) -> list[Any]:
        raise RuntimeError("native code went wrong")

    monkeypatch.setattr(secret_vendors, "_betterleaks", lambda: broken)
    assert redact(f"{SECRET_WORD}: Heron-lake9").text == f"{SECRET_WORD}: {REPLACEMENT}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0",
        "a\0b token \udcff \ud800",
        f"{SECRET_WORD}=",
        f"{SECRET_WORD}: '",
        f"{SECRET_WORD}:\n",
        "://:@",
        "ключ:",
        "-----BEGIN PRIVATE" + " KEY-----",
        REPLACEMENT,
        f"{SECRET_WORD}: {REPLACEMENT}",
        f"{SECRET_WORD} is {REPLACEMENT}, the host is db2.lan",
    ],
)
def test_odd_text_is_left_alone(text: str) -> None:
    assert redact(text).text == text or "PRIVATE" in text


def test_a_zero_byte_does_not_hide_what_follows() -> None:
    token = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    assert token not in redact(f"before\0after {token}").text


def test_a_key_cut_off_in_the_middle_is_removed_as_far_as_it_goes() -> None:
    body = "MIIEpAIBAAKCAQEA4BhRTgi6ndJx5Q6H80FFzogaXya3cvZbHq0APtAZTineS"
    text = "-----BEGIN RSA PRIVATE" + f" KEY-----\n{body}\n{body[::-1]}\nand then I stopped"
    result = redact(text).text
    assert body not in result
    assert body[::-1] not in result
    assert "and then I stopped" in result


PIECES = st.sampled_from(
    [row["text"] for row in ALL] + ["\n", " ", REPLACEMENT, f" {SECRET_WORD} is ", "token=", ": ", "hasło to "]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(PIECES, min_size=1, max_size=6))
def test_any_mixture_stays_the_same_when_redacted_again(pieces: list[str]) -> None:
    once = redact("".join(pieces)).text
    assert redact(once).text == once


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_no_text_raises(text: str) -> None:
    result = redact(text)
    assert redact(result.text).text == result.text


def test_the_replacement_is_what_users_are_told() -> None:
    assert secrets.REPLACEMENT == "[secret removed]"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_in_a_forked_child_the_rules_work_without_the_library_whose_threads_are_lost() -> None:
    said = f"{SECRET_WORD}: Tr0ub4dor&3x"
    assert secret_vendors._betterleaks() is not None
    child = os.fork()
    if not child:
        alone = secret_vendors._betterleaks() is None
        os._exit(0 if alone and redact(said).text == f"{SECRET_WORD}: {REPLACEMENT}" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert secret_vendors._betterleaks() is not None
