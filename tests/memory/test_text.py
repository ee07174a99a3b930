"""Folding, words, stems, queries, times and ids."""

from __future__ import annotations

import multiprocessing
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui_agent.memory import text as module
from tui_agent.memory.text import (
    STOPWORDS,
    content_words,
    fold,
    format_utc,
    fts_query,
    identifiers,
    language_of,
    new_id,
    ngrams,
    normalise,
    parse_utc,
    split_identifier,
    stems,
    terms,
    utc_now,
    word_stems,
    words,
)


@pytest.mark.parametrize(
    ("written", "folded"),
    [
        ("Łódź ŻÓŁĆ gęślą", "lodz zolc gesla"),
        ("Ёлка ЙОД ещё", "елка иод еще"),
        ("Straße Ångström Ørsted", "strasse angstrom orsted"),
        ("cafe\u0301 CAFÉ", "cafe cafe"),
        ("İstanbul ısı", "istanbul isi"),
        ("plain ASCII", "plain ascii"),
    ],
)
def test_folding_takes_case_and_diacritics_off_in_every_language(written: str, folded: str) -> None:
    assert fold(written) == folded


@given(st.text(max_size=40))
def test_folding_and_normalising_twice_change_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    assert normalise(normalise(text)) == normalise(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Piszemy  testy przed kodem.", "piszemy testy przed kodem"),
        ("„Klon” — tak", '"klon" - tak!'),
        ("It’s\u00a0done…", "it's done"),
        ("zero\u200bwidth", "zerowidth"),
        ("Отчёты в XLSX.", "отчеты в xlsx"),
    ],
)
def test_the_same_statement_in_another_spelling_has_the_same_key(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)


@pytest.mark.parametrize(("one", "other"), [("Use C", "Use C++"), ("Port 80", "Port 8080"), ("no tabs", "tabs")])
def test_different_statements_have_different_keys(one: str, other: str) -> None:
    assert normalise(one) != normalise(other)


def test_words_keep_identifiers_paths_versions_and_language_names_whole() -> None:
    text = "Use C++ and get_by_id() from src/app/main.py v1.2.3, not foo’s __init__."
    assert words(text) == [
        "use",
        "c++",
        "and",
        "get_by_id",
        "from",
        "src/app/main.py",
        "v1.2.3",
        "not",
        "foo's",
        "__init__",
    ]


def test_only_names_from_code_count_as_identifiers() -> None:
    text = "Retry in retry_it and UserRepository, see HTTPServer, a.b, sha256 and тестКласс today."
    assert identifiers(text) == ["retry_it", "UserRepository", "HTTPServer", "a.b", "sha256", "тестКласс"]


@pytest.mark.parametrize("name", ["getUserById", "get_user_by_id", "get-user.by/id", "GetUserByID"])
def test_a_name_is_split_alike_in_every_convention(name: str) -> None:
    assert split_identifier(name) == ["get", "user", "by", "id"]


def test_terms_hold_the_whole_name_and_its_parts() -> None:
    assert terms("UserRepository.get_by_id IRepository<T>") == [
        "userrepository.get_by_id",
        "userrepository",
        "get",
        "by",
        "id",
        "user",
        "repository",
        "irepository",
        "i",
        "repository",
        "t",
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("wdrożenie", "wdrożenia"),
        ("wdrozenie", "wdrożenia"),
        ("repozytorium testów", "testy"),
        ("kopia", "kopie"),
        ("копия", "копии"),
        ("репозиторий", "репозиториями"),
        ("ёлка", "елки"),
        ("databases", "database"),
        ("deployments", "deploy"),
    ],
)
def test_grammatical_forms_of_a_word_share_a_stem(one: str, other: str) -> None:
    assert set(stems(one)) & set(stems(other))


def test_stems_that_are_too_short_to_tell_words_apart_are_not_used() -> None:
    assert all(len(stem) >= 3 for word in ("bramy", "brud", "kot") for stem in word_stems(word))


def test_stems_leave_stop_words_out_and_look_inside_identifiers() -> None:
    assert stems("the and w z и на") == []
    assert {"user", "id"} <= set(stems("getUserId"))


def test_english_text_is_not_stemmed_as_polish() -> None:
    assert language_of("where is the gate for this") == "en"
    assert stems("where is the kolejka") == ["kolejka"]
    assert language_of("gdzie jest brama") == "pl"
    assert language_of("где лежит main.py") == "ru"
    assert language_of("kolejka") == ""


def test_stemming_in_many_threads_gives_the_same_stems() -> None:
    sample = ["repozytoriami", "testów", "databases", "deployment", "wdrożeniach", "копиями"] * 50
    module._stem.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda word: (word, tuple(word_stems(word))), sample))
    module._stem.cache_clear()
    assert all(found == tuple(word_stems(word)) for word, found in results)


def test_ngrams_mark_both_ends_of_a_word_and_keep_short_words() -> None:
    assert ngrams("Łoś", (3,)) == ["_lo", "los", "os_"]
    assert ngrams("a-b") == ["_a_", "_a_", "_b_", "_b_"]
    assert set(ngrams("repozytorium")) & set(ngrams("repozytorjum"))


def test_stop_words_are_folded_and_leave_words_of_the_trade_in() -> None:
    assert all(word == fold(word) for word in STOPWORDS)
    assert not STOPWORDS & {"pod", "test", "kod", "user", "code", "port"}
    assert content_words("Gdzie jest the port и код?") == ["port", "код"]


_pieces = [*"ab żё\"'*():^-+{}[].,%_\\/#@\0²☃", "NEAR", " AND ", "OR", "col:"]
_messy = st.lists(st.sampled_from(_pieces), max_size=12).map("".join)


@settings(max_examples=300)
@given(st.one_of(_messy, st.text(max_size=30)))
def test_a_query_made_of_any_text_is_never_a_syntax_error(text: str) -> None:
    query = fts_query(text)
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE notes USING fts5(words, stems)")
        if query:
            connection.execute("SELECT * FROM notes WHERE notes MATCH ?", (query,)).fetchall()
    finally:
        connection.close()


def test_a_query_quotes_every_token_and_drops_stop_words() -> None:
    assert fts_query("what's up? user's C++ foo( a AND NEAR") == '"user\'s" OR "user" OR "c++" OR "foo" OR "near"'
    assert fts_query("to be or not to be") == ""
    assert fts_query(' "*" ( ') == ""


def test_long_runs_of_signs_are_read_in_linear_time() -> None:
    hostile = "_" * 50_000 + " " + "." * 50_000 + "a" + "_." * 50_000
    assert words(hostile)[:1] == ["a_"]


def test_times_are_utc_text_that_sorts() -> None:
    assert utc_now() == format_utc(parse_utc(utc_now()))
    warsaw = timezone(timedelta(hours=2))
    assert format_utc(datetime(2026, 5, 2, 1, 30, tzinfo=warsaw)) == "2026-05-01 23:30:00"
    assert format_utc(datetime(2026, 5, 2, 1, 30, 5, 999)) == "2026-05-02 01:30:05"
    assert parse_utc("2026-05-02") == parse_utc("2026-05-02 00:00:00") == parse_utc("2026-05-02T00:00:00Z")
    assert format_utc(parse_utc("2026-05-02T10:00:00+02:00")) == "2026-05-02 08:00:00"
    with pytest.raises(ValueError, match="yesterday"):
        parse_utc("yesterday")


def test_ids_are_ordered_and_unique_while_the_clock_stands_and_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_790_000_000_000_000_000
    monkeypatch.setattr(module, "_last_id", (0, 0))
    monkeypatch.setattr(time, "time_ns", lambda: now)
    frozen = [new_id() for _ in range(2000)]
    monkeypatch.setattr(time, "time_ns", lambda: now - 10**10)
    made = frozen + [new_id() for _ in range(100)]
    assert made == sorted(set(made))
    assert {len(each) for each in made} == {26}
    assert not set("".join(made)) - set("0123456789abcdefghjkmnpqrstvwxyz")
    assert len({each[:10] for each in frozen}) == 1


def test_ids_carry_their_time_in_the_first_ten_characters() -> None:
    before, made, after = (int(datetime.now(timezone.utc).timestamp() * 1000), new_id(), None)
    stamp = 0
    for character in made[:10]:
        stamp = stamp * 32 + "0123456789abcdefghjkmnpqrstvwxyz".index(character)
    after = int(datetime.now(timezone.utc).timestamp() * 1000)
    # Ids of earlier tests may have run ahead of the clock by a few steps, never by more.
    assert before - 1 <= stamp <= after + 50


def _ids(count: int) -> list[str]:
    return [new_id() for _ in range(count)]


def test_ids_of_forked_processes_differ() -> None:
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("this platform does not fork")
    new_id()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        made = [each for part in pool.map(_ids, [300] * 4) for each in part]
    assert len(set(made)) == len(made)
