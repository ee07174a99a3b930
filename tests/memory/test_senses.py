"""Documents found by other words than those asked: by the thesaurus, in an index that follows its texts."""

from __future__ import annotations

import random

from tui_agent.memory.lexical import LexicalIndex

NOTES = {
    "call": "Amara and Lucian take turns on call, switching every Monday at ten.",
    "session": "Sesja w panelu biura wygasa po trzydziestu minutach bezczynności.",
    "cache": "Кэш Valkey сбрасывается при каждом развёртывании сервиса тарифов.",
    "paint": "The fence was painted green in June.",
}


def filled(notes: dict[str, str] = NOTES) -> LexicalIndex:
    index = LexicalIndex()
    index.sync(notes)
    return index


def found(index: LexicalIndex, query: str) -> list[str]:
    return [hit.ref for hit in index.related(query)]


def test_a_document_is_found_by_another_word_in_any_of_the_languages() -> None:
    index = filled()
    assert found(index, "Who carries the pager?")[0] == "call"
    assert found(index, "Kto ma teraz dyżur?")[0] == "call"
    assert found(index, "When am I logged out?")[0] == "session"
    assert found(index, "When is Redis flushed?")[0] == "cache"
    assert found(index, "xyzzy") == []


def test_a_hit_names_the_words_of_the_question_and_its_share() -> None:
    hit = filled().related("Who carries the pager?")[0]
    assert hit.matched == ("pager",)
    assert 0 < hit.share < 1
    assert filled().related("pager")[0].share > hit.share  # all that is asked


def test_the_word_itself_is_no_other_word() -> None:
    index = filled({"own": "The pager is in the drawer.", "other": "Amara is on call."})
    assert found(index, "Where is the pager?") == ["other"]


def test_what_was_taken_out_or_changed_is_not_found_any_more() -> None:
    index = filled()
    index.discard("call")
    assert "call" not in found(index, "pager")
    index.put("session", "The fence was painted red in July.")
    assert found(index, "logged out") == []
    index.put("call", NOTES["call"])
    assert found(index, "pager") == ["call"]


def test_a_long_text_has_no_other_words() -> None:
    assert found(filled({"long": f"{NOTES['call']} " * 10}), "pager") == []


def test_an_index_that_changed_all_the_time_finds_what_a_new_one_finds() -> None:
    rng = random.Random(7)
    index, kept = LexicalIndex(), {}
    for step in range(200):
        ref = f"n{rng.randrange(12)}"
        if rng.random() < 0.4:
            index.discard(ref)
            kept.pop(ref, None)
        else:
            kept[ref] = f"{rng.choice(list(NOTES.values()))} {step}"
            index.put(ref, kept[ref])
    fresh = filled(kept)
    for query in ("pager", "logged out", "Redis", "dyżur i sesja"):
        assert {hit.ref: hit for hit in index.related(query)} == {hit.ref: hit for hit in fresh.related(query)}
