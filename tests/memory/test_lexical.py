"""Finding by words: forms, spellings, names, and an index that follows its texts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui_agent.memory.lexical import LexicalIndex, best_line, concepts, index_terms, matched_terms, similarity


def filled(**texts: str) -> LexicalIndex:
    index = LexicalIndex()
    index.sync(texts)
    return index


def found(index: LexicalIndex, query: str) -> list[str]:
    return [hit.ref for hit in index.search(query)]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("The tracker publishes its metrics on port 9187.", "on what port are the trackers publishing a metric"),
        ("Brama paczek przyjmuje połączenia TLS.", "porty bramy"),
        ("Kierowca dołącza najwyżej trzy zdjęcia uszkodzonej paczki.", "dolaczanie zdjecia"),
        ("Сверка остатков запускается в 23:40.", "запуск сверки остатка"),
        ("Ёлка стоит в углу.", "елки"),
        ("ParcelStateMachine is the only place that may change parcel.status.", "ParcelStatMachine"),
        ("Amara and Lucian take turns on call.", "who is on cal"),
        ("Recipient addresses must stay in Finland.", "adresses"),
        ("Network calls go through retry_it.", "retry"),
        ("Logs live in C:\\temp\\app.log", "app.log"),
    ],
)
def test_a_text_is_found_by_other_forms_and_misspelt(text: str, query: str) -> None:
    index = filled(right=text, wrong="Nobody eats soup on Sunday; niedziela, воскресенье.")
    assert found(index, query)[:1] == ["right"]


def test_numbers_and_versions_are_never_similar() -> None:
    assert similarity("7443", "7433") == 0.0
    assert similarity("python3", "python2") == 0.0
    assert found(filled(a="port 7443"), "7433") == []


def test_a_name_that_is_known_whole_beats_one_that_shares_a_part() -> None:
    index = filled(
        later="Queue consumers use retry_later for queues, which postpones the message.",
        it="Network calls go through retry_it, retry retry.",
    )
    assert found(index, "retry_later")[0] == "later"


def test_hits_say_what_they_matched_and_how_much_of_the_question_they_hold() -> None:
    index = filled(a="The gateway listens on port 7443", b="The gateway is old", c="soup")
    first, second = index.search("gateway port")
    assert (first.ref, first.matched, first.coverage) == ("a", ("gateway", "port"), pytest.approx(1.0))
    assert second.matched == ("gateway",)
    assert 0 < second.coverage < 1
    assert first.words == pytest.approx(1.0)
    assert second.words == pytest.approx(second.bm25 / first.bm25)


def test_a_word_that_many_hold_is_not_looked_for_in_other_spellings() -> None:
    index = filled(other="The gatewya is red.", **{f"r{n}": f"Gateway {n} is red." for n in range(20)})
    assert "other" not in found(index, "gateway")
    few = filled(other="The gatewya is red.", **{f"r{n}": f"Gateway {n} is red." for n in range(3)})
    assert "other" in found(few, "gateway")


def test_words_that_nothing_holds_lower_every_score() -> None:
    index = filled(a="The gateway listens on port 7443", b="soup")
    assert index.search("gateway xylophone quartet")[0].words < 0.5


def test_stop_words_alone_find_nothing() -> None:
    index = filled(a="to be or not to be", b="и в на")
    assert index.search("to be or not to be") == []
    assert index.search("и в") == []
    assert index.search("") == []


def test_an_empty_index_finds_nothing_and_a_limit_is_kept() -> None:
    assert LexicalIndex().search("port") == []
    index = filled(**{f"n{i}": f"port number {i}" for i in range(20)})
    assert len(index.search("port", limit=3)) == 3
    assert index.search("port", limit=0) == []


def test_an_unchanged_text_is_not_indexed_again() -> None:
    index = filled(a="one port", b="two ports")
    assert index.sync({"a": "one port", "b": "two ports"}) == 0
    assert index.sync({"a": "one port", "c": "three"}) == 2
    assert len(index) == 2
    assert "b" not in index
    assert index.discard("b") is False
    assert index.put("a", "one port") is False
    assert index.put("a", "one harbour") is True
    assert found(index, "port") == []


def test_the_line_that_fits_a_question_best_is_shown() -> None:
    text = "first line\n\nthe gateway port is 7443\nlast line"
    assert best_line("which port has the gateway", text) == "the gateway port is 7443"
    assert best_line("port", "") == ""
    assert len(best_line("x", "x" * 1000)) == 240


def test_concepts_are_words_once_without_stop_words() -> None:
    assert concepts("Where is the PORT of the port?") == ["port"]


def test_terms_of_passages_are_matched_by_stem_whole_name_part_and_spelling() -> None:
    known = {"parcel", "retri", "srcretrypy", "recommend", "7443"}
    parcels, path, misspelt, number, nothing = matched_terms(
        ["parcels", "src/retry.py", "reccomend", "7433", "xylophone"], known
    )
    assert parcels == {"parcel": 1.0}
    assert path["srcretrypy"] == 1.0
    assert 0 < misspelt["recommend"] < 1
    assert number == {}
    assert nothing == {}


def test_a_document_is_indexed_under_words_parts_and_stems() -> None:
    terms = index_terms("UserRepository reads parcels, parcels")
    assert {"userrepository", "user", "repository", "parcels", "~parcel"} <= set(terms)
    assert terms["parcels"] == 2
    assert "the" not in index_terms("the")


WORDS = st.sampled_from(
    [
        "brama",
        "bramy",
        "bramie",
        "port",
        "ports",
        "prot",
        "retry_it",
        "retri_it",
        "getUserById",
        "ёлка",
        "елка",
        "ёлки",
        "zażółć",
        "7443",
        "the",
        "a/b.c",
    ]
)
TEXTS = st.lists(WORDS, max_size=6).map(" ".join)
STEPS = st.lists(st.tuples(st.sampled_from("abcdef"), st.none() | TEXTS), max_size=25)


@settings(max_examples=150, deadline=None)
@given(STEPS, TEXTS)
def test_after_any_changes_the_index_equals_one_made_anew(steps: list[tuple[str, str | None]], query: str) -> None:
    index, texts = LexicalIndex(), {}
    for ref, text in steps:
        if text is None:
            texts.pop(ref, None)
            index.discard(ref)
        else:
            texts[ref] = text
            index.put(ref, text)
        index.search(query)  # what it keeps of a question must follow the next change
    fresh = LexicalIndex()
    fresh.sync(texts)
    kept = {hit.ref: (hit.coverage, hit.bm25, hit.words, hit.matched) for hit in index.search(query)}
    made = {hit.ref: (hit.coverage, hit.bm25, hit.words, hit.matched) for hit in fresh.search(query)}
    assert kept.keys() == made.keys()
    for ref, values in kept.items():
        assert values[:3] == pytest.approx(made[ref][:3])
        assert values[3] == made[ref][3]


@settings(max_examples=150, deadline=None)
@given(st.text(), st.text())
def test_no_text_makes_it_fail(text: str, query: str) -> None:
    index = filled(a=text, b="port 7443")
    for hit in index.search(query):
        assert 0.0 <= hit.coverage <= 1.0 + 1e-5
        assert 0.0 <= hit.words <= 1.0 + 1e-5
    assert len(best_line(query, text)) <= 240
    matched_terms(concepts(query), index_terms(text))
