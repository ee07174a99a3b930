"""A secret that was seen once is taken out wherever it is said again, with nothing around it to give it away."""

from __future__ import annotations

from tui_agent.memory.known_secrets import KnownSecrets
from tui_agent.memory.secrets import REPLACEMENT, redact

WORD = "pass" + "word"
VALUE = "Green-Tractor5"
KEY_LINE = "MIIEpAIBAAKCAQEA4BhRTgi6ndJx5Q6H80FFzogaXya3cvZbHq0APtAZTineS"


def test_a_value_said_back_alone_is_known() -> None:
    known = KnownSecrets()
    assert redact(f"You said {VALUE}.").text == f"You said {VALUE}."
    assert known.clean(f"{WORD}: {VALUE}") == f"{WORD}: {REPLACEMENT}"
    assert known.clean(f"You said {VALUE}.") == f"You said {REPLACEMENT}."
    assert known.has(VALUE)


def test_one_line_of_a_key_is_known_and_its_heading_is_not() -> None:
    known = KnownSecrets()
    mark = "RSA PRIVATE" + " KEY-----"
    known.clean(f"-----BEGIN {mark}\n{KEY_LINE}\n{KEY_LINE[::-1]}\n-----END {mark}")
    assert known.clean(f"- {KEY_LINE[::-1]}") == f"- {REPLACEMENT}"
    assert known.clean("It begins with -----BEGIN.") == "It begins with -----BEGIN."


def test_a_common_word_or_a_part_of_a_longer_word_is_left_alone() -> None:
    known = KnownSecrets()
    known.clean(f"{WORD}: butterfly")
    known.clean(f"{WORD}: Heron-lake9")
    assert known.clean("A butterfly sat there.") == "A butterfly sat there."
    assert known.clean("Heron-lake99 is another") == "Heron-lake99 is another"


def test_findings_point_into_the_original_text_and_are_disjoint() -> None:
    known = KnownSecrets()
    known.clean(f"{WORD}: {VALUE}")
    text = f"again {VALUE}, and {WORD}: {VALUE}"
    found = known.redact(text)
    assert [text[finding.start : finding.end] for finding in found.findings] == [VALUE, VALUE]
    assert found.text.count(REPLACEMENT) == 2
    assert known.redact(found.text).findings == ()


def test_only_so_many_are_kept() -> None:
    known = KnownSecrets()
    known.clean(f"{WORD}: {VALUE}")
    for number in range(400):
        known.clean(f"{WORD}: Heron-lake{number}x")
    assert known.clean(f"It was {VALUE}.") == f"It was {VALUE}."
    assert known.clean("It was Heron-lake399x.") == f"It was {REPLACEMENT}."
