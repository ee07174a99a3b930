"""What is remembered although a tool could fetch it."""

from __future__ import annotations

from typing import Any

import pytest

from tui_agent.memory.audit import check_hint, fetchable
from tui_agent.memory.types import Fact, Kind, Origin, Scope

NOW = "2026-11-30 09:00:00"


def fact(text: str, kind: Kind = Kind.FACT, **more: Any) -> Fact:
    values: dict[str, Any] = {
        "id": text, "subject": "", "fact": text, "source": "message 1", "kind": kind, "importance": 5,
        "source_kind": Origin.USER, "quote": text, "message_id": None, "subject_key": "", "scope": Scope.PROJECT,
        "created_at": "2026-01-01 00:00:00", "confirmed_at": "2026-01-01 00:00:00", "expires_at": None,
        "superseded_by": None, "superseded_at": None, "last_used_at": None, "pinned": False, "target": "",
        "target_line": "", **more,
    }  # fmt: skip
    return Fact(**values)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("The team has 8 people", "a count"),
        ("There are 41 tests", "a count"),
        ("W zespole jest 8 osób", "a count"),
        ("В команде 8 человек", "a count"),
        ("Project Falcon is delayed", "a status"),
        ("The build is broken", "a status"),
        ("Сборка сломана", "a status"),
        ("The deadline is 2026-12-01", "a date"),
        ("The release is on Friday", "a date"),
        ("PostgreSQL 16 is the database", "a version"),
        ("Coverage is 83 %", "a measured value"),
    ],
)
def test_counts_statuses_dates_versions_and_values_are_proposed(text: str, what: str) -> None:
    (found,) = fetchable([fact(text)], now=NOW)
    assert found.what == what
    assert found.reason.endswith("instead of remembering it.")


@pytest.mark.parametrize(
    "text",
    [
        "We use pnpm, not npm",
        "Data access goes through repositories; no SQL in controllers.",
        "retry_it lives in retry.py",
        "Stork answers slowly on Mondays.",
    ],
)
def test_what_only_a_person_knows_is_not_proposed(text: str) -> None:
    assert fetchable([fact(text)], now=NOW) == []


def test_a_decision_that_names_a_number_stays() -> None:
    assert fetchable([fact("Carrier calls are tried 4 times, from 200 ms on", Kind.DECISION)], now=NOW) == []


@pytest.mark.parametrize(
    "more",
    [
        {"kind": Kind.PREFERENCE},
        {"target": "knowledge/user.md"},
        {"scope": Scope.USER},
        {"pinned": True},
        {"expires_at": "2026-12-05 00:00:00"},
        {"confirmed_at": "2026-11-01 00:00:00"},
    ],
)
def test_notes_about_the_user_pins_ends_and_what_was_confirmed_lately_are_left_out(more: dict[str, Any]) -> None:
    assert fetchable([fact("The deadline is 2026-12-01", **more)], now=NOW) == []


def test_a_confirmation_counts_for_ninety_days() -> None:
    old = fact("The deadline is 2026-12-01", confirmed_at="2026-08-01 00:00:00")
    assert fetchable([old], now=NOW)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("We use PostgreSQL 16", "psql --version"),
        ("Projekt wymaga Pythona 3.11 i Python 3.11 jest w CI", "python --version"),
        ("Мы используем Node 20", "node --version"),
        ("Backend is on Go 1.22", "go version"),
        ("Line length is set in pyproject.toml", "look into pyproject.toml"),
        ("The retry rules are in config/retry.yaml", "look into config/retry.yaml"),
        ("There are 41 tests", "count it"),
        ("The deadline is 2026-12-01", "calendar"),
    ],
)
def test_what_can_be_checked_says_with_which_file_or_command(text: str, hint: str) -> None:
    assert hint in check_hint(fact(text), now=NOW)
    assert hint in check_hint(fact(text, Kind.CONVENTION), now=NOW) or "count" in hint


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("We prefer composition over inheritance", {}),
        ("My name is Kacper", {"target": "knowledge/user.md"}),
        ("I prefer Python 3.11", {"kind": Kind.PREFERENCE}),
        ("Uses Node 20", {"scope": Scope.USER}),
    ],
)
def test_what_only_a_person_knows_has_no_hint(text: str, more: dict[str, Any]) -> None:
    assert check_hint(fact(text, **more), now=NOW) == ""
