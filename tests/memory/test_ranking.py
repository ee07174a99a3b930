"""The score of what was found: passages and their neighbours, who spoke, dates, and the two terms of a statement."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui_agent.memory.dates import date_terms, mentions_date
from tui_agent.memory.ranking import Passage, Weights, meaning_weight, rank_passages, speaker_of, words_beside_meaning
from tui_agent.memory.text import stems

WORDS = st.sampled_from(
    ["gateway", "port", "brama", "bramy", "retry_it", "ёлка", "7443", "money", "sea", "łódź", "the"]
)
SENTENCES = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)


def test_meaning_fills_the_place_of_missing_words_and_few_words_of_many_say_less_than_their_share() -> None:
    assert meaning_weight(0.0) > meaning_weight(0.5) > meaning_weight(1.0)
    assert meaning_weight(2.0) == meaning_weight(1.0)
    assert 0 < words_beside_meaning(0.5) < 0.5 * words_beside_meaning(1.0)
    assert words_beside_meaning(-0.1) == 0.0


def test_dates_are_recognised() -> None:
    assert mentions_date("what did we do in May")
    assert mentions_date("co było 8 maja")
    assert mentions_date("since 2023-05-08")
    assert mentions_date("8.05.2023")
    assert not mentions_date("the port is 7443")
    assert not mentions_date("may we march on?")
    assert not mentions_date("May Jan use a raw session?")
    assert "2023-05-08" in date_terms("2023-05-08 10:00:00")
    assert date_terms("") == date_terms("yesterday") == date_terms("2023-13-99 10:00:00") == ()


def passage(ref: str, text: str, place: int, group: str = "g", cosine: float | None = None) -> Passage:
    return Passage(ref, text, Counter(stems(text)), group, place, "", cosine)


def test_only_real_neighbours_support_each_other() -> None:
    pool = [
        passage("far", "soup and bread", 90),
        passage("hit", "the crane port", 1),
        passage("next", "blue and big", 2),
    ]
    pool += [passage("other", "blue or big", 3, group="h")]
    ranked = [entry.passage.ref for entry in rank_passages("crane port", pool)]
    assert ranked[:2] == ["hit", "next"]
    scores = {entry.passage.ref: entry.score for entry in rank_passages("crane port", pool)}
    assert scores["far"] == scores["other"] == 0.0


def test_what_the_named_person_said_comes_first() -> None:
    pool = [
        passage("a", "Anna: I bought a crane yesterday, a big crane.", 1),
        passage("b", "Bert: A crane? I bought a crane too.", 2),
        passage("c", "Anna: Good.", 3),
        passage("d", "Bert: Yes.", 4),
        *(passage(f"x{n}", f"{('Anna', 'Bert')[n % 2]}: Number {n} is about soup.", 10 * n + 10) for n in range(10)),
    ]
    assert rank_passages("What crane did Bert buy?", pool)[0].passage.ref == "b"
    assert rank_passages("What crane did Anna buy?", pool)[0].passage.ref == "a"
    assert "speaker" not in {term.name for term in rank_passages("Anna and Bert and the crane", pool)[0].terms}


def test_the_name_in_front_of_a_line_is_its_speaker() -> None:
    assert speaker_of("Łucja (8 May 2023): hello") == "lucja"
    assert speaker_of("no label here") == ""
    assert speaker_of("http://x.example") == ""


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(SENTENCES, st.integers(1, 30), st.none() | st.floats(-1, 1)), max_size=12), SENTENCES)
def test_terms_of_passages_add_up(said: list[tuple[str, int, float | None]], question: str) -> None:
    pool = [passage(str(n), text, place, "gh"[n % 2], cosine) for n, (text, place, cosine) in enumerate(said)]
    for entry in rank_passages(question, pool, weights=Weights(speaker=0.3)):
        assert entry.score == pytest.approx(sum(term.value for term in entry.terms))
        assert all(np.isfinite(term.value) for term in entry.terms)
