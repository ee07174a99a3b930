"""Words that people use for one another: what the file is made of, and what is found by it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui_agent.memory import thesaurus as module
from tui_agent.memory.text import STOPWORDS, words
from tui_agent.memory.thesaurus import LANGUAGES, Thesaurus, compiled, thesaurus

SOURCE = Path(__file__).parents[2] / "tools" / "thesaurus.txt"
LINES = (
    "# a comment",
    "",
    "en: log out, sign out, session | pl: wylogować, sesja | ru: выйти, сессия",
    "en: log, journal | pl: dziennik, log | ru: журнал, лог",
    "en: rate limit, throttle | pl: limit zapytań, dławienie | ru: лимит запросов, троттлинг",
    "en: fear, be afraid | pl: bać się, strach | ru: бояться, страх",
)
LOG_OUT, LOG, LIMIT, FEAR = range(4)


@pytest.fixture(scope="module")
def small() -> Thesaurus:
    made = compiled(LINES)
    return Thesaurus(made["stems"], made["phrases"], made["members"])


def groups(known: Thesaurus, text: str) -> dict[str, set[int]]:
    return {word: set(found) for word, found in known.groups(text)}


def test_the_file_that_is_loaded_was_made_of_the_source() -> None:
    loaded = json.loads(gzip.decompress(Path(module.__file__).with_name(module.FILE).read_bytes()))
    assert loaded == compiled(SOURCE.read_text(encoding="utf-8").splitlines()), "run python tools/build_thesaurus.py"


def test_each_line_of_the_source_is_a_group_of_three_languages_without_repeats() -> None:
    for line in SOURCE.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip().partition(":") for part in line.split("|")]
        assert tuple(language for language, _, _ in parts) == LANGUAGES, line
        for language, _, entries in parts:
            said = [entry.strip() for entry in entries.split(",")]
            assert len(set(said)) == len(said) >= 2, (language, line)
            assert all(entry and len(entry.split()) <= module.MOST_WORDS for entry in said), (language, line)


def test_a_line_that_is_no_group_is_named() -> None:
    with pytest.raises(ValueError, match=r"Line 2 .* pl: dziennik"):
        compiled(["# first", "pl: dziennik | en: log | ru: журнал"])


@pytest.mark.parametrize(
    ("text", "word", "group"),
    [
        ("Sessions end at noon", "sessions", LOG_OUT),
        ("Dwie sesje naraz", "sesje", LOG_OUT),
        ("Сессии живут час", "сессии", LOG_OUT),
        ("Kiedy system mnie wyloguje?", "wyloguje", LOG_OUT),
        ("We throttled them", "throttled", LIMIT),
        ("The limits of rates: a rate limit", "rate", LIMIT),
        ("Boję się, strach", "strach", FEAR),
    ],
)
def test_inflected_words_belong_to_their_group(small: Thesaurus, text: str, word: str, group: int) -> None:
    assert group in groups(small, text)[word]


def test_a_phrase_with_small_words_is_not_the_word_in_it(small: Thesaurus) -> None:
    assert groups(small, "When do I log out?")["log"] == {LOG_OUT}
    assert groups(small, "Read the log")["log"] == {LOG}
    assert "afraid" not in compiled(LINES)["stems"]


def test_a_phrase_is_found_with_small_words_between_and_not_with_others(small: Thesaurus) -> None:
    assert LIMIT in groups(small, "the limits of their rate limit")["limit"]
    assert groups(small, "the rate has a hard limit") == {"rate": set(), "hard": set(), "limit": set()}


def test_other_words_are_those_of_the_language_and_not_said_already(small: Thesaurus) -> None:
    assert small.others("The session ends", "en") == ["log out", "sign out"]
    assert small.others("The session ends", "pl") == ["wylogować", "sesja"]
    assert small.others("Nothing of that", "en") == []


def test_a_word_of_many_senses_brings_no_words_in() -> None:
    many = [f"en: charge, thing{n} | pl: ładunek{n}, rzecz{n} | ru: заряд{n}, вещь{n}" for n in range(4)]
    made = compiled(many)
    known = Thesaurus(made["stems"], made["phrases"], made["members"])
    assert len(groups(known, "the charge")["charge"]) == 4
    assert known.others("the charge", "en") == []


def test_the_programs_own_groups_join_languages_and_trades() -> None:
    known = thesaurus()

    def of(text: str) -> set[int]:
        return set().union(*(found for _, found in known.groups(text)))

    assert of("pager") & of("on call") & of("dyżur") & of("дежурство")
    assert of("Redis") & of("Valkey") & of("мемкеш")
    assert not of("pager") & of("banana")


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_text_gives_its_content_words_in_order(text: str) -> None:
    assert [word for word, _ in thesaurus().groups(text)] == [word for word in words(text) if word not in STOPWORDS]
    assert isinstance(thesaurus().others(text, "en"), list)
