from __future__ import annotations

import pytest

from tui_agent.llm.wire.backend import BackendError
from tui_agent.llm.wire.gojson import dumps, loads, local_time, now_utc, parse_duration, parse_keep_alive


def test_markup_characters_are_escaped_and_next_line_is_not() -> None:
    assert (
        dumps({"a": "<&>\u2028\u0085\x7f\x01ł"}) == b'{"a":"\\u003c\\u0026\\u003e\\u2028\xc2\x85\x7f\\u0001\xc5\x82"}'
    )


def test_a_lone_surrogate_becomes_the_replacement_character() -> None:
    assert dumps("a\ud83db") == '"a\ufffdb"'.encode()


def test_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        dumps(float("nan"))


def test_what_follows_the_first_value_is_ignored() -> None:
    assert loads(b' {"a":1} trailing') == {"a": 1}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "missing request body"),
        (b'{"a":', "unexpected EOF"),
        (b'{"a":"b', "unexpected EOF"),
        (b"xyz", "invalid character 'x' looking for beginning of value"),
        (b'{"a":x}', "invalid character 'x' looking for beginning of value"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b"{a:1}", "invalid character 'a' looking for beginning of object key string"),
    ],
)
def test_broken_bodies_get_the_go_decoders_words(body: bytes, words: str) -> None:
    with pytest.raises(BackendError) as caught:
        loads(body)
    assert (caught.value.status, caught.value.error) == (400, words)


def test_created_at_has_no_trailing_zeros() -> None:
    assert now_utc(1_700_000_000_120_000_000) == "2023-11-14T22:13:20.12Z"
    assert now_utc(1_700_000_000_000_000_000) == "2023-11-14T22:13:20Z"


def test_for_ever_is_a_year_the_calendar_has() -> None:
    assert local_time(1_700_000_000 + 9223372036) > "2300"


@pytest.mark.parametrize(
    ("text", "seconds"), [("5m", 300), ("1h30m", 5400), ("-1m", -60), ("0", 0), ("1.5s", 1.5), ("100ms", 0.1)]
)
def test_go_durations_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("-1", 'time: missing unit in duration "-1"'),
        ("5", 'time: missing unit in duration "5"'),
        ("", 'time: invalid duration ""'),
        ("--1m", 'time: invalid duration "--1m"'),
        ("5 parrots", 'time: unknown unit " parrots" in duration "5 parrots"'),
    ],
)
def test_other_texts_are_refused_in_gos_words(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=r"^time: ") as caught:
        parse_duration(text)
    assert str(caught.value) == words


def test_a_negative_keep_alive_means_for_ever_however_it_is_written() -> None:
    assert parse_keep_alive(-1) == parse_keep_alive(-1.0) == parse_keep_alive("-1m") == -1.0
    assert parse_keep_alive(None) is None
    assert parse_keep_alive("5m") == 300.0
    with pytest.raises(BackendError, match="missing unit"):
        parse_keep_alive("-1")
    with pytest.raises(BackendError, match="Unsupported type"):
        parse_keep_alive([1])
