"""The one door: what gets in, what waits, what is refused, and that row and line are one operation."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tui_agent.memory.database import Database
from tui_agent.memory.facts import FactStore
from tui_agent.memory.files import MemoryFiles
from tui_agent.memory.gate import Gate
from tui_agent.memory.places import MemoryFileError
from tui_agent.memory.proof import MESSAGE_BREAK
from tui_agent.memory.text import format_utc, parse_utc
from tui_agent.memory.types import Action, Kind, Origin, Proposal, Verdict

TESTS = Path(__file__).parents[1]
START = "2026-03-10 09:00:00"
WORD = "pass" + "word"


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> str:
        return self.now

    def forward(self, days: float) -> None:
        self.now = format_utc(parse_utc(self.now) + timedelta(days=days))


class Place:
    """A gate over a real store and real files in a folder."""

    def __init__(self, root: Path | None, cap: int = 40) -> None:
        self.clock = Clock()
        self.facts = FactStore(Database(":memory:"), clock=self.clock)
        self.files = MemoryFiles(root) if root else None
        self.gate = Gate(self.facts, self.files, clock=self.clock, user_notes_cap=cap)

    def say(self, text: str, **more: Any) -> Verdict:
        """The model proposes the user's message word for word."""
        return self.gate.admit(model(text, more.pop("user_text", text), **more))

    def texts(self) -> list[str]:
        return [fact.fact for fact in self.facts.live()]

    def lines(self, name: str) -> list[str]:
        assert self.files is not None
        return self.files.lines(name) if self.files.exists(name) else []


def model(text: str, user_text: str, **more: Any) -> Proposal:
    return Proposal(
        **{
            "text": text,
            "origin": Origin.MODEL,
            "proposer": "edit_file",
            "source": "message m1",
            "user_text": user_text,
            "message_id": "m1",
            **more,
        }
    )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


# --- the user's words ---------------------------------------------------------------------------


def test_the_users_own_words_go_live_with_row_and_line(place: Place) -> None:
    verdict = place.say("I prefer pnpm.")
    assert (verdict.action, verdict.rule) == (Action.LIVE, "ok")
    fact = place.facts.live()[0]
    assert verdict.fact_id == fact.id
    assert (fact.fact, fact.quote, fact.message_id) == ("I prefer pnpm.", "I prefer pnpm.", "m1")
    assert (fact.kind, fact.source_kind, fact.source) == (Kind.PREFERENCE, Origin.USER, "message m1")
    assert (fact.target, fact.target_line) == ("AGENTS.md#User Preferences", "- I prefer pnpm.")
    assert place.files is not None
    assert place.files.lines("AGENTS.md", "User Preferences") == ["- I prefer pnpm."]


def test_the_articles_example_is_written_to_the_letter(place: Place) -> None:
    verdict = place.say("Name: Kacper", user_text="My name is Kacper", target="knowledge/user.md")
    assert (verdict.action, verdict.quote) == (Action.LIVE, "Kacper")
    assert place.lines("knowledge/user.md") == ["Name: Kacper"]


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("My name is Tobias Kern.", "Name: Tobias Kern"),
        ("Mam na imię Dobrochna.", "Imię: Dobrochna"),
        ("Меня зовут Всеволод.", "Имя: Всеволод"),
        ("I'm Bernadette, but everyone calls me Bernie.", "- I'm Bernadette, but everyone calls me Bernie."),
        ("I live in Porto.", "- I live in Porto."),
    ],
)
def test_a_plain_name_becomes_a_label_and_all_else_a_list_item(place: Place, said: str, line: str) -> None:
    verdict = place.say(said)
    assert place.gate.project_line(verdict) == ("knowledge/user.md", "", line)
    assert place.lines("knowledge/user.md") == [line]


def test_the_models_wording_is_kept_when_the_message_proves_it(place: Place) -> None:
    verdict = place.say("Prefers pnpm", user_text="My name is Kacper and I prefer pnpm", target="AGENTS.md")
    assert (verdict.action, verdict.text, verdict.quote) == (Action.LIVE, "Prefers pnpm", "pnpm")
    assert verdict.target == "AGENTS.md#User Preferences"
    assert place.facts.live()[0].subject == "package manager"


def test_a_translation_is_replaced_by_the_users_own_sentence(place: Place) -> None:
    verdict = place.say("User wants short answers", user_text="Hej! Odpowiadaj krótko, proszę.")
    assert (verdict.action, verdict.text) == (Action.LIVE, "Odpowiadaj krótko, proszę.")


def test_what_the_message_does_not_say_waits(place: Place) -> None:
    verdict = place.say("User lives in Paris", user_text="How do I reverse a list?")
    assert (verdict.action, verdict.rule) == (Action.QUARANTINE, "proof")
    assert place.texts() == []
    assert place.facts.quarantined()[0].proposal.text == "User lives in Paris"


def test_a_wrong_quote_of_the_model_is_not_believed(place: Place) -> None:
    verdict = place.say("I prefer tabs", user_text="I prefer tabs.", quote="I love spaces")
    assert (verdict.action, verdict.quote) == (Action.LIVE, "I prefer tabs")


def test_only_the_statement_of_a_message_is_kept(place: Place) -> None:
    verdict = place.say("How do I reverse a list? Also, from now on always show types in the examples.")
    assert verdict.text == "from now on always show types in the examples."


def test_what_the_model_makes_of_a_question_waits_or_is_refused(place: Place) -> None:
    said = "What if I preferred tabs, how would I set that up?"
    verdict = place.say("User prefers tabs", user_text=said)
    assert verdict.action in {Action.QUARANTINE, Action.REFUSE}
    assert place.texts() == []


def test_a_statement_beside_an_order_in_one_sentence_is_kept(place: Place) -> None:
    verdict = place.say("Uses Svelte", user_text="Fix the login page, we use Svelte in this project.")
    assert (verdict.action, verdict.text) == (Action.LIVE, "Uses Svelte")


# --- origin -------------------------------------------------------------------------------------


@pytest.mark.parametrize("origin", [Origin.FILE, Origin.TOOL, Origin.WEB, Origin.IMPORT])
def test_what_is_not_the_users_waits_with_its_source(place: Place, origin: Origin) -> None:
    said = "This user always deploys with checks off"
    verdict = place.gate.admit(Proposal(said, origin, "recall", "https://example.test", user_text=said))
    assert (verdict.action, verdict.rule) == (Action.QUARANTINE, "origin")
    assert "https://example.test" in verdict.reason
    assert place.texts() == []


def test_the_models_own_idea_without_a_message_waits(place: Place) -> None:
    verdict = place.gate.admit(model("User prefers tabs", ""))
    assert (verdict.action, verdict.rule) == (Action.QUARANTINE, "origin")


def test_what_the_user_enters_by_hand_needs_no_message(place: Place) -> None:
    entered = Proposal("Maria prefers morning meetings.", Origin.USER, "user", "command line")
    assert place.gate.admit(entered).action is Action.LIVE
    counted = Proposal("The team has 8 people now.", Origin.USER, "user", "command line")
    assert place.gate.admit(counted).rule == "world_state"


# --- secrets ------------------------------------------------------------------------------------


@pytest.mark.parametrize("origin", list(Origin))
def test_a_secret_is_refused_from_anyone_and_never_repeated(place: Place, origin: Origin) -> None:
    text = f"My {WORD} is Heron-lake9"
    verdict = place.gate.admit(Proposal(text, origin, "remember", "message m1", user_text=text))
    assert (verdict.action, verdict.rule) == (Action.REFUSE, "secret")
    assert "Heron-lake9" not in repr(verdict)
    assert place.facts.quarantined() == []
    assert place.texts() == []


def test_the_rest_of_a_message_with_a_secret_is_kept_and_so_is_its_quote(place: Place) -> None:
    said = f"The deploy user is ops and its {WORD} is Quince-Ladder7, and we only ever do blue-green deployments."
    verdict = place.say(said)
    assert (verdict.action, verdict.text) == (Action.LIVE, "we only ever do blue-green deployments.")
    assert "Quince" not in repr(place.facts.live())


def test_a_secret_in_quote_or_subject_does_not_come_in_by_the_side(place: Place) -> None:
    said = f"I prefer tabs. My {WORD} is Heron-lake9."
    verdict = place.say("I prefer tabs.", user_text=said, quote=said, subject=f"{WORD} is Heron-lake9")
    assert verdict.action is Action.LIVE
    assert "Heron-lake9" not in repr(place.facts.live())


# --- world state, off the record, not the user's ------------------------------------------------


def test_off_the_record_is_refused_also_in_the_models_words(place: Place) -> None:
    said = "Don't store this: I am thinking about quitting."
    for text in (said, "User thinks about quitting"):
        verdict = place.say(text, user_text=said)
        assert (verdict.action, verdict.rule) == (Action.REFUSE, "off_record")
    assert place.facts.quarantined() == []


def test_off_the_record_holds_for_one_message_of_several(place: Place) -> None:
    messages = MESSAGE_BREAK.join(["Między nami: mam dość.", "Wolę tabulatory."])
    kept = place.say("Wolę tabulatory.", user_text=messages, proposer="extraction", quote="Wolę tabulatory")
    blocked = place.say("Mam dość.", user_text=messages, proposer="extraction", quote="mam dość")
    assert (kept.action, blocked.rule) == (Action.LIVE, "off_record")


def test_small_talk_leaves_no_trace(place: Place) -> None:
    for text in ("tak", "ok", "możesz powtórzyć?", "спасибо", "Thanks, that works!"):
        assert place.say(text).action is Action.REFUSE
    assert place.facts.quarantined() == []
    assert place.facts.stats()["changes"] == 0


# --- duplicates ---------------------------------------------------------------------------------


def test_the_same_again_only_touches(place: Place) -> None:
    first = place.say("We deploy on Thursdays.")
    place.clock.forward(3)
    again = place.say("we deploy on Thursdays")
    assert (again.action, again.rule, again.fact_id) == (Action.TOUCH, "duplicate", first.fact_id)
    assert place.facts.live()[0].confirmed_at == place.clock.now


def test_the_same_subject_supersedes_and_the_line_is_replaced(place: Place) -> None:
    first = place.say("My name is Leon.")
    second = place.say("Poprawka: nie Leon, tylko Leoniusz, tak mam w dowodzie.")
    assert second.superseded_id == first.fact_id
    assert len(place.texts()) == 1
    assert len(place.lines("knowledge/user.md")) == 1
    assert "Leoniusz" in place.lines("knowledge/user.md")[0]


def test_a_correction_that_moves_to_another_file_takes_the_old_line_along(place: Place) -> None:
    place.say("I prefer npm", subject="package manager")
    place.say("We moved to pnpm for packages.", subject="package_manager", target="knowledge/tech-stack.md")
    assert place.files is not None
    assert place.files.lines("AGENTS.md", "User Preferences") == []
    assert place.lines("knowledge/tech-stack.md") == ["- We moved to pnpm for packages."]


def test_nearly_the_same_words_with_the_same_claims_are_one_statement(place: Place) -> None:
    place.say("We keep all screenshots in docs/pictures.")
    again = place.say("We keep all the screenshots in docs/pictures.")
    assert again.superseded_id is not None
    assert place.texts() == ["We keep all the screenshots in docs/pictures."]


def test_nearly_the_same_words_with_another_number_are_two(place: Place) -> None:
    place.say("The staging API listens on port 8443 in this project.")
    other = place.say("The staging API listens on port 8444 in this project.")
    assert other.superseded_id is None
    assert len(place.texts()) == 2


def test_deleted_text_comes_back_only_when_the_user_says_it_again(place: Place) -> None:
    said = "We deploy on Thursdays."
    place.facts.delete_chain(str(place.say(said).fact_id))
    old = place.say(said, proposer="extraction", quote=said)
    assert (old.action, old.rule) == (Action.REFUSE, "tombstone")
    imported = place.gate.admit(Proposal(said, Origin.IMPORT, "import", "facts.json:3"))
    assert (imported.action, imported.rule) == (Action.REFUSE, "tombstone")
    assert place.say(said).action is Action.LIVE


def test_what_the_user_rejected_does_not_ask_again(place: Place) -> None:
    place.say("User lives in Paris", user_text="How do I reverse a list?")
    place.facts.reject(place.facts.quarantined()[0].id)
    again = place.say("User lives in Paris", user_text="How do I reverse a list?")
    assert again.action is Action.REFUSE
    assert place.facts.quarantined() == []


# --- cap, time, files ---------------------------------------------------------------------------


def test_more_notes_about_the_user_than_the_prompt_holds_wait(tmp_path: Path) -> None:
    place = Place(tmp_path, cap=2)
    place.say("I live in Porto.")
    place.say("I have two kids.")
    third = place.say("I prefer tabs.")
    assert (third.action, third.rule) == (Action.QUARANTINE, "cap")
    assert place.say("I live in Braga.").action is Action.LIVE  # replaces, so it needs no room
    assert place.say("We deploy on Thursdays.").action is Action.LIVE


def test_a_time_bound_fact_expires_by_the_clock(place: Place) -> None:
    verdict = place.say("W tym tygodniu jestem na szkoleniu w Rzeszowie.")
    assert verdict.ttl_days == 7
    assert place.facts.live()[0].expires_at == "2026-03-17 09:00:00"
    place.clock.forward(7)
    assert place.texts() == []


def test_said_again_a_time_bound_fact_holds_longer(place: Place) -> None:
    place.say("This week I am away.")
    place.clock.forward(3)
    assert place.say("This week I am away.").action is Action.TOUCH
    assert place.facts.live()[0].expires_at == "2026-03-20 09:00:00"


def test_until_friday_counts_from_the_clock(place: Place) -> None:
    assert place.say("I'm at a conference until Friday.").ttl_days == 4


def test_a_rule_is_kept_as_a_row_because_the_file_is_the_users(place: Place) -> None:
    verdict = place.say("Add a rule: never push directly to main.")
    assert (verdict.action, verdict.target) == (Action.LIVE, "rules.md")
    assert place.facts.live()[0].target_line == ""
    assert place.lines("rules.md") == []


class Refusing:
    """Files that cannot be written."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def append_line(self, name: str, section: str, line: str) -> None:
        raise self.error

    def replace_line(self, name: str, section: str, old: str, new: str) -> bool:
        raise self.error

    def remove_line(self, name: str, section: str, line: str) -> bool:
        raise self.error


@pytest.mark.parametrize("error", [MemoryFileError("it is full"), OSError("No space left on device")])
def test_a_file_that_cannot_be_written_takes_the_row_back(error: Exception) -> None:
    place = Place(None)
    before = place.say("I live in Porto.", subject="residence")
    gate = Gate(place.facts, Refusing(error), clock=place.clock)
    for said in ("I prefer tabs.", "I live in Braga."):
        verdict = gate.admit(model(said, said))
        assert (verdict.action, verdict.rule) == (Action.REFUSE, "file")
        assert str(error) in verdict.reason
    assert place.texts() == ["I live in Porto."]
    assert place.facts.is_live(str(before.fact_id))


@pytest.mark.parametrize("given", [1, 5, 10])
def test_an_importance_that_was_given_is_kept_as_it_is(place: Place, given: int) -> None:
    place.say("My name is Kacper.", importance=given)
    assert [fact.importance for fact in place.facts.live()] == [given]


@pytest.mark.parametrize(
    ("said", "own"),
    [("My name is Kacper.", 8), ("We decided to drop Windows support.", 6), ("The queue is RabbitMQ.", 5)],
)
def test_without_an_importance_what_is_said_decides(place: Place, said: str, own: int) -> None:
    place.say(said)
    assert [fact.importance for fact in place.facts.live()] == [own]


def test_an_importance_that_was_not_given_is_still_open_after_approval(place: Place) -> None:
    waiting = place.facts.quarantine(model("My name is Kacper.", ""), "not the user's words")
    assert waiting.proposal.importance is None
    given = place.facts.quarantine(model("I prefer pnpm.", "", importance=5), "not the user's words")
    assert given.proposal.importance == 5


def test_the_language_of_the_users_words_is_that_of_the_message_with_the_quote(place: Place) -> None:
    talk = MESSAGE_BREAK.join(
        [
            "Wolimy pnpm od npm, bo jest szybszy i mniej waży.",
            "What is the best way to do this, and when should we do it?",
            "Then I would like you to show me how it is done and what it does.",
        ]
    )
    quote = "Wolimy pnpm od npm"
    own = model("Wolimy pnpm, bo jest szybszy", talk, quote=quote, proposer="extraction")
    assert place.gate.decide(own).action is Action.LIVE
    translated = model("We prefer pnpm to npm, which is what we use", talk, quote=quote, proposer="extraction")
    assert (place.gate.decide(translated).action, place.gate.decide(translated).rule) == (Action.REFUSE, "proof")


def test_deciding_writes_nothing(place: Place) -> None:
    assert place.gate.decide(model("I prefer pnpm.", "I prefer pnpm.")).action is Action.LIVE
    assert place.facts.stats()["changes"] == 0
    assert place.lines("AGENTS.md") == []


# --- the cases ----------------------------------------------------------------------------------


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


UTTERANCES = rows(TESTS / "cases" / "utterances.jsonl")
HELD_OUT = [row for row in rows(Path(__file__).parent / "heldout" / "utterances.jsonl") if row["set"] != "chat"]


def plain(text: str) -> str:
    return text.lower().replace("ё", "е")


def problem(row: dict[str, Any], gate: Gate) -> str:
    verdict = gate.decide(model(row["text"], row["text"]))
    positive = row["expect"] in {"save", "ttl"}
    if (verdict.action is Action.LIVE) != positive:
        return f"{verdict.action} {verdict.rule}"
    if not positive:
        return ""
    wanted = [row["target"], *row.get("target_alt", [])]
    if not any(
        verdict.target == one or (one == "rules" and verdict.target == "rules.md") or
        (one[-1] == "*" and verdict.target.startswith(one[:-1])) for one in wanted
    ):  # fmt: skip
        return f"target {verdict.target}"
    if row["expect"] == "ttl" and (
        verdict.ttl_days is None or (row["ttl_days"] is not None and verdict.ttl_days != row["ttl_days"])
    ):
        return f"ttl {verdict.ttl_days}"
    if row["expect"] == "save" and verdict.ttl_days is not None:
        return f"ttl {verdict.ttl_days}"
    text = plain(verdict.text)
    if any(plain(stem) not in text for stem in row.get("must_contain", [])):
        return f"misses a stem: {verdict.text!r}"
    if any(plain(stem) in text for stem in row.get("must_not_contain", [])):
        return f"holds what it must not: {verdict.text!r}"
    return ""


def wrong(data: list[dict[str, Any]]) -> dict[str, str]:
    gate = Place(None).gate
    return {f"{row['id']} {row['text']}": found for row in data if (found := problem(row, gate))}


def test_the_gate_decides_every_gate_row_of_the_utterances() -> None:
    gate_rows = [row for row in UTTERANCES if row["gate"]]
    assert len(gate_rows) > 90
    assert wrong(gate_rows) == {}


def test_rows_that_need_judgement_are_blocked_too_when_they_come_word_for_word() -> None:
    assert wrong([row for row in UTTERANCES if not row["gate"]]) == {}


def test_the_gate_decides_the_held_out_rows() -> None:
    found = wrong(HELD_OUT)
    assert len(found) <= 1, found


def test_the_supersede_cases_hold_through_the_gate() -> None:
    wrong: list[tuple[str, object]] = []
    for row in rows(TESTS / "cases" / "supersede.jsonl"):
        place, ids = Place(None), {}
        for step in row["steps"]:
            place.clock.forward(1 / 86400)
            if "say" in step:
                old = step.get("origin") == "old_transcript"
                spoken = model(step["say"], step["say"], subject=step["subject"], ttl_days=step.get("ttl_days"))
                if old:
                    spoken = replace(spoken, proposer="extraction", quote=step["say"])
                else:
                    spoken = replace(spoken, origin=Origin.USER, proposer="user")
                ids[step["ref"]] = str(place.gate.admit(spoken).fact_id)
            else:
                verb, ref = next(iter(step.items()))
                if verb == "expire":
                    place.clock.forward(400)
                    continue
                actions: dict[str, Callable[[str], object]] = {
                    "confirm": place.facts.confirm,
                    "undo": place.facts.undo_correction,
                    "delete": place.facts.delete_chain,
                }
                actions[verb](ids[ref])
        live = plain(" | ".join(place.texts()))
        wrong += [(row["id"], stem) for stem in row.get("live", []) if plain(stem) not in live]
        wrong += [(row["id"], stem) for stem in row.get("hidden", []) + row.get("gone", []) if plain(stem) in live]
        if len(place.texts()) != row["live_count"]:
            wrong.append((row["id"], place.texts()))
    assert wrong == []


def test_extracted_items_are_kept_or_blocked_as_the_cases_say() -> None:
    wrong: list[tuple[str, ...]] = []
    for row in rows(TESTS / "cases" / "extraction.jsonl"):
        users = [message["content"] for message in row["conversation"] if message["role"] == "user"]
        for output in row["model_outputs"]:
            raw = output["raw"].strip().removeprefix("```json").removesuffix("```").strip()
            try:
                items = json.loads(raw)
            except ValueError:
                continue
            items = (
                [item for item in items if isinstance(item, dict) and item.get("fact")]
                if isinstance(items, list)
                else []
            )
            place = Place(None)
            for item in items:
                proposal = model(str(item["fact"]), MESSAGE_BREAK.join(users), quote=item.get("quote") or "")
                place.gate.admit(replace(proposal, proposer="extraction"))
            said = [text.lower() for text in place.texts()]
            expected = [row["expect"][number]["must_contain"] for number in output.get("accept", [])] if items else []
            allowed = expected + [row["expect"][number]["must_contain"] for number in output.get("may", [])]
            wrong += [(row["id"], output["kind"], "missing", str(want)) for want in expected
                      if not any(all(stem.lower() in text for stem in want) for text in said)]  # fmt: skip
            wrong += [(row["id"], output["kind"], "extra", text) for text in said
                      if not any(all(stem.lower() in text for stem in want) for want in allowed)]  # fmt: skip
            wrong += [(row["id"], output["kind"], "forbidden", stem) for stem in row["forbidden"]
                      if any(stem.lower() in text for text in said)]  # fmt: skip
    assert wrong == []


def test_what_the_user_prefers_replaces_no_decision_about_the_project() -> None:
    facts = FactStore(Database(":memory:"))
    gate = Gate(facts, None)
    for said in ("We moved the admin page to pnpm.", "I prefer yarn.", "I prefer npm."):
        assert gate.admit(Proposal(said, Origin.USER, "user", "command", user_text=said)).action is Action.LIVE
    assert {fact.fact for fact in facts.live()} == {"We moved the admin page to pnpm.", "I prefer npm."}
