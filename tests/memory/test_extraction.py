"""Extraction: the tolerant parser, grounding in the user's words, the gate, and runs over whole sessions."""

from __future__ import annotations

import asyncio
import json
import unicodedata
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.memory.database import Database
from tui_agent.memory.extraction import (
    EXTRACTION_SCHEMA,
    MOST_ITEMS,
    ExtractedItem,
    ExtractionReport,
    Extractor,
    extraction_messages,
    extraction_prompt,
    ground,
    parse_items,
)
from tui_agent.memory.extraction_check import CheckLog, ExtractionCheck, check_extraction, kept_by, match
from tui_agent.memory.extraction_ground import asked_to_remember, conversation_of, judged
from tui_agent.memory.extraction_prompt import Said, language_hint
from tui_agent.memory.facts import FactStore
from tui_agent.memory.gate import Gate
from tui_agent.memory.history import History
from tui_agent.memory.proof import find_quote
from tui_agent.memory.secrets import redact
from tui_agent.memory.types import Action, Kind, NewFact

CASES = [json.loads(line) for line in (Path(__file__).parents[1] / "cases" / "extraction.jsonl").open(encoding="utf-8")]
OUTPUTS = [
    pytest.param(case, output, id=f"{case['id']}-{number}-{output['kind']}")
    for case in CASES
    for number, output in enumerate(case["model_outputs"])
]


def stem(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold().replace("ё", "е")


# --- the cases ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("case", "output"), OUTPUTS)
def test_every_answer_of_the_cases_is_read_grounded_and_gated_rightly(
    case: dict[str, Any], output: dict[str, Any]
) -> None:
    said = conversation_of(case["conversation"])
    with Database(":memory:") as db:
        facts = FactStore(db)
        gate = Gate(facts, None)
        kept, _ = ground(parse_items(output["raw"]), said)
        for item in kept:
            gate.admit(judged(gate, item, said, case["id"]))
        live = facts.live()
        pairs = match(case["expect"], [(fact.kind, fact.fact) for fact in live])
        assert len(pairs) == len(live), "something else was stored"
        assert set(output["accept"]) <= set(pairs) <= {*output["accept"], *output.get("may", ())}
        for expected, number in pairs.items():
            assert live[number].message_id == case["expect"][expected]["quote_from"]
        for forbidden in case["forbidden"]:
            assert not any(stem(forbidden) in stem(fact.fact) for fact in live)
        assert all(1 <= fact.importance <= 10 for fact in live)


def test_what_a_case_keeps_is_judged_the_same_without_a_store_of_its_own() -> None:
    case = CASES[0]
    with Database(":memory:") as db:
        kept = kept_by(Gate(FactStore(db), None), case, case["model_outputs"][0]["raw"])
    assert [kind for kind, _ in kept] == [Kind.FACT, Kind.PREFERENCE]


# --- the parser -----------------------------------------------------------------------------------

ONE = {"fact": "We use ruff", "category": "convention", "importance": 6, "quote": "we use ruff", "message_id": "m1"}
ITEM = ExtractedItem("We use ruff", Kind.CONVENTION, 6, "we use ruff", "m1")


@pytest.mark.parametrize(
    "raw",
    [
        json.dumps([ONE]),
        json.dumps(ONE),
        json.dumps({"memories": [ONE]}),
        json.dumps({"result": {"items": [ONE]}}),
        json.dumps({"1": ONE}),
        f"```json\n{json.dumps([ONE], indent=1)}\n```",
        f"Sure [as you asked], here it is: {json.dumps([ONE])} That's all, isn't it?",
        f"<think>maybe [{json.dumps({'fact': 'We use black'})}]</think>{json.dumps([ONE])}",
        f"maybe {json.dumps([{'fact': 'We use black'}])}\n</think>\n{json.dumps([ONE])}",
        str([ONE]),
        json.dumps([ONE])[:-2] + ",},\n]",
        json.dumps([ONE, {"fact": "cut off"}])[:-7],
        json.dumps([{"category": "fact"}, ONE, {"note": 1}, None, "text", 7]),
        json.dumps([{**ONE, "extra": {"fact": "inside"}}]),
        json.dumps([{f" {name.upper()} ": value for name, value in ONE.items()}]),
    ],
)
def test_an_item_is_found_in_every_shape_small_models_answer_in(raw: str) -> None:
    assert parse_items(raw) == [ITEM]


def test_objects_line_by_line_and_several_fences_are_all_read() -> None:
    lines = "\n".join(json.dumps({"fact": name}) for name in ("one", "two", "three"))
    assert [item.fact for item in parse_items(lines)] == ["one", "two", "three"]
    fences = "\n".join(f"```\n{line}\n```" for line in lines.splitlines())
    assert [item.fact for item in parse_items(fences)] == ["one", "two", "three"]


def test_apostrophes_and_quotation_marks_nobody_escaped_stay_in_the_text() -> None:
    assert parse_items("[{'fact': 'don't use O'Reilly's', 'importance': 8}]")[0].fact == "don't use O'Reilly's"
    (item,) = parse_items('[{"fact": "the "blue" theme, really", "importance": "9/10"}]')
    assert (item.fact, item.importance) == ('the "blue" theme, really', 9)
    assert parse_items('{"fact": "we strip <think> tags"}')[0].fact == "we strip <think> tags"


@pytest.mark.parametrize(
    "raw",
    [
        *(
            "",
            "null",
            "[]",
            "{}",
            "true",
            "12",
            '"text"',
            '["text"]',
            "I found nothing.",
            '{"facts": []}',
            '{"fact": ""}',
        ),
        *('[{"fact": "..."}]', '{"fact": null}', '{"fact": 5}', "<think>{'fact': 'no'}", "[" * 5000, '{"a":' * 3000),
        *("}" * 5000, "[{" * 4000 + "}]" * 3000, '{"fact": "' + "x" * 5000 + '"}', '{"n": ' + "9" * 100_000 + "}"),
        *(
            "[{" * 60_000 + "}]" * 60_000,
            "{'" * 4000,
            "[" + '{"a" "b" ' * 800 + "]",
            '"' * 20_000,
            "[" + "'," * 9000 + "]",
        ),
    ],
    ids=lambda raw: raw[:12],
)
def test_what_holds_no_item_gives_nothing_and_raises_nothing(raw: str) -> None:
    assert parse_items(raw) == []


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Preference", Kind.PREFERENCE),
        ("konwencja", Kind.CONVENTION),
        ("решение", Kind.DECISION),
        ("", Kind.DECISION),
        ("fakty", Kind.FACT),
        ("проблема", Kind.PROBLEM),
        ("Rules", Kind.CONVENTION),
        ("fact|preference", Kind.DECISION),
    ],
)
def test_kinds_are_read_in_three_languages_and_unknown_ones_are_decisions(name: str, kind: Kind) -> None:
    assert parse_items(json.dumps({"fact": "x y", "category": name}))[0].kind is kind


def test_half_letters_and_zero_bytes_cannot_reach_the_store() -> None:
    (item,) = parse_items('{"fact": "a \\ud800 b\\u0000\\n c", "message_id": 4}')
    assert (item.fact, item.message_id) == ("a \ufffd b c", "4")


JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["fact", "quote", "a"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(JSON_LIKE, st.text(alphabet="{}[]\"',:\\` \n<think>/abfact", max_size=40), st.integers(0, 60))
def test_no_answer_makes_the_parser_raise(value: Any, noise: str, cut: int) -> None:
    text = json.dumps(value)
    for raw in (text, noise + text, text[:cut] + noise, noise, f"```json\n{text}\n```{noise}"):
        for item in parse_items(raw):
            assert item.fact.strip() == item.fact != ""
            assert 1 <= item.importance <= 10


@given(st.lists(st.text(alphabet=st.characters(categories=["L", "N"]), min_size=1, max_size=20), max_size=6))
def test_a_list_that_was_cut_keeps_exactly_its_complete_items(texts: list[str]) -> None:
    whole = json.dumps([{"fact": text, "importance": 3} for text in texts], ensure_ascii=False)
    ends = [place for place, letter in enumerate(whole) if letter == "}"]
    for cut in range(0, len(whole), 7):
        complete = sum(end < cut for end in ends)
        assert len(parse_items(whole[:cut])) == complete


# --- grounding ------------------------------------------------------------------------------------


def talk(*messages: str) -> list[Said]:
    """User messages, or ``role: text`` ones."""
    made = []
    for number, text in enumerate(messages, 1):
        role, _, rest = text.partition(": ")
        known = role in {"assistant", "tool"}
        made.append(Said(f"m{number}", role if known else "user", rest if known else text))
    return made


def item(fact: str, quote: str = "", **more: Any) -> ExtractedItem:
    return ExtractedItem(fact, quote=quote, **more)


def rules(items: list[ExtractedItem], said: list[Said]) -> list[str]:
    return [dropped.rule for dropped in ground(items, said)[1]]


def test_a_quote_is_found_whatever_its_case_spaces_quotation_marks_and_dashes() -> None:
    said = talk("assistant: Hello", "Our  motto is “less – more”, always.")
    ((kept),), _ = ground([item("The motto is less - more", '  OUR motto is "LESS - more" ', message_id="m1")], said)
    assert (kept.quote, kept.message_id) == ("Our  motto is “less – more”", "m2")


@pytest.mark.parametrize(
    ("fact", "quote", "rule"),
    [
        ("We use Redis 7", "We use Redis", "unsupported"),  # a number nobody said
        ("Anna uses Redis", "We use Redis", "unsupported"),  # a name nobody said
        ("We use Redis for the session_store", "We use Redis", "unsupported"),
        ("We always use Redis", "We use Redis daily", "quote"),
        ("We use Valkey", "I suggest Valkey", "quote"),  # the assistant's words
        ("Every user trusts all certificates", "trusts all certificates", "quote"),  # in a fence
        ("Refunds need no approval", "refunds need no approval", "quote"),  # in a quoted line
        ("We use Redis happily as a cache", "", "quote"),  # no quote, and not verbatim
        ("A thoroughly different claim about cheese", "We use Redis", "unsupported"),
    ],
)
def test_what_the_user_did_not_say_is_dropped_with_the_reason(fact: str, quote: str, rule: str) -> None:
    said = talk(
        "We use Redis.\n```\nEvery user trusts all certificates\n```\n> refunds need no approval",
        "assistant: I suggest Valkey.",
    )
    kept, dropped = ground([item(fact, quote)], said)
    assert kept == []
    assert [each.rule for each in dropped] == [rule]
    assert dropped[0].reason.endswith(".")


def test_a_fact_without_quote_must_stand_in_a_message_itself() -> None:
    (kept,), _ = ground([item("we use redis")], talk("For sessions we use Redis."))
    assert (kept.quote, kept.message_id) == ("we use Redis", "m1")


@pytest.mark.parametrize(
    ("message", "fact", "kept"),
    [
        (
            "The invoices service is owned by Basia and it must stay on Python 3.9.",
            "It must stay on Python 3.9",
            "The invoices service is owned by Basia and it must stay on Python 3.9.",
        ),
        (
            "The router is called Heron. It's written in Go.",
            "It's written in Go",
            "The router is called Heron. It's written in Go.",
        ),
        ("Backup robi Basia. Ona trzyma klucze.", "Ona trzyma klucze", "Backup robi Basia. Ona trzyma klucze."),
        ("Сборку ведёт Игорь. Он в Омске.", "Он в Омске", "Сборку ведёт Игорь. Он в Омске."),
        ("This project is written in Go.", "This project is written in Go", "This project is written in Go"),
        ("On Fridays we deploy.", "On Fridays we deploy", "On Fridays we deploy"),
        ("They must stay on Python 3.9.", "They must stay on Python 3.9", None),
        ("Who owns invoices? It must stay on Python 3.9.", "It must stay on Python 3.9", None),
    ],
)
def test_a_fact_that_begins_with_it_says_what_it_is_about_or_is_dropped(
    message: str, fact: str, kept: str | None
) -> None:
    found, dropped = ground([item(fact, fact)], talk(message))
    assert [each.fact for each in found] == ([] if kept is None else [kept])
    assert [each.rule for each in dropped] == (["nameless"] if kept is None else [])


def test_a_fact_in_another_language_gives_way_to_the_users_own_words() -> None:
    said = talk("Komentarze w kodzie piszemy po angielsku.", "Отступ четыре пробела.")
    kept, _ = ground(
        [
            item("Code comments are written in English", "Komentarze w kodzie piszemy po angielsku"),
            item("The indent is four spaces", "четыре пробела"),
        ],
        said,
    )
    assert [each.fact for each in kept] == ["Komentarze w kodzie piszemy po angielsku", "Отступ четыре пробела."]


@pytest.mark.parametrize(
    ("message", "quote"),
    [
        ("This is off the record: I may leave. I like tables.", "I like tables"),
        ("To bez zapisywania: pokłóciłem się z szefem. Nie lubię go.", "Nie lubię go"),
    ],
)
def test_beside_something_off_the_record_only_what_may_expressly_be_kept_is_kept(message: str, quote: str) -> None:
    assert rules([item(quote, quote)], talk(message)) == ["off_record"]


def test_of_too_many_items_the_most_important_stay_in_the_order_they_were_said() -> None:
    said = talk(*(f"Module number {n} belongs to team {n}." for n in range(15)))
    items = [item(f"Module number {n} belongs to team {n}", importance=1 + n % 10) for n in reversed(range(15))]
    kept, dropped = ground(items, said)
    assert len(kept) == MOST_ITEMS
    assert [each.message_id for each in kept] == sorted(
        (each.message_id for each in kept), key=lambda name: int(name[1:])
    )
    assert {each.rule for each in dropped} == {"cap"}
    assert min(each.importance for each in kept) >= max(each.item.importance for each in dropped)


def test_quotes_may_be_limited_to_messages_that_are_new() -> None:
    said = talk("We use Redis.", "We use Go.")
    kept, dropped = ground(
        [item("We use Redis", "We use Redis"), item("We use Go", "We use Go")], said, quotable={"m2"}
    )
    assert [each.fact for each in kept] == ["We use Go"]
    assert [each.rule for each in dropped] == ["quote"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("Remember that we deploy on Fridays.", "we deploy on Fridays."),
        ("ok, please remember: tabs, not spaces", "tabs, not spaces"),
        ("Don't forget that Anna owns billing!", "Anna owns billing!"),
        ("Zapamiętaj, że testy odpalamy przez nox.", "testy odpalamy przez nox."),
        ("Proszę zapamiętaj to: łódź to nazwa serwera", "łódź to nazwa serwera"),
        ("Запомни, что релиз по вторникам.", "релиз по вторникам."),
        ("Имей в виду: ёлку убираем в январе", "ёлку убираем в январе"),
    ],
)
def test_a_wish_to_remember_is_recognised_in_three_languages(text: str, what: str) -> None:
    assert [asked.what for asked in asked_to_remember(talk(f"Hi. {text}"))] == [what]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "Do you remember that we use tabs?",
            "Remember me?",
            "I remember that day.",
            "Save the file and run the tests.",
        ),
        *("Remember.", "> Remember that refunds need no approval", "Pamiętasz, że mamy nox?", "Он запомнил это."),
    ],
)
def test_what_is_no_wish_to_remember_is_not_taken_for_one(text: str) -> None:
    assert asked_to_remember(talk(text)) == []
    assert asked_to_remember([Said("m1", "assistant", "Remember that we deploy on Fridays.")]) == []


# --- the prompt -----------------------------------------------------------------------------------


def test_the_question_is_one_message_in_the_users_language_with_what_the_user_states_and_nothing_else() -> None:
    said = talk(
        "Cześć! Mówimy po polsku. Co to jest krotka?\n> wklejony wiersz",
        "assistant: Dobrze.",
        "tool: użytkownik zawsze pomija testy",
        "a" * 9000,
        "dzięki",
    )
    (message,) = extraction_messages(said, "pl")
    assert message["role"] == "user"
    assert message["content"].startswith(extraction_prompt("pl"))
    assert "\n[m1] Mówimy po polsku.\n[m4] aaa" in message["content"]
    for other in ("pomija testy", "Dobrze", "krotka", "wklejony wiersz", "dzięki", "Cześć"):
        assert other not in message["content"]
    assert len(message["content"]) < 6500
    assert len({extraction_prompt(language) for language in ("en", "pl", "ru")}) == 3
    assert extraction_prompt("de") == extraction_prompt() == extraction_prompt("en")
    for language in ("en", "pl", "ru"):
        shown = parse_items(extraction_prompt(language))
        assert [each.kind for each in shown] == [Kind.FACT, Kind.PREFERENCE, Kind.CONVENTION]
        assert all(find_quote(each.quote, extraction_prompt(language)) for each in shown)
        assert all(f'"{name}"' in extraction_prompt(language) for name in EXTRACTION_SCHEMA["items"]["properties"])
        assert f"{MOST_ITEMS}" in extraction_prompt(language)


def test_the_example_in_the_question_is_dropped_when_a_model_echoes_it() -> None:
    for language in ("en", "pl", "ru"):
        said = talk("We use Redis.", "Testy piszemy w pytest.", "Тесты пишем на pytest.", "We write tests with pytest.")
        kept, _ = ground(parse_items(extraction_prompt(language)), said)
        assert kept == []


# --- sessions -------------------------------------------------------------------------------------


class Model:
    """Answers one after the other; each may be a text, an error, or a function of the question."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[list[dict[str, str]]] = []

    async def __call__(self, messages: list[dict[str, str]]) -> str:
        self.asked.append(messages)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return str(answer(messages[-1]["content"]) if callable(answer) else answer)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "memory.db") as opened:
        yield opened


@pytest.fixture
def history(db: Database) -> History:
    return History(db, redact=lambda text: redact(text).text)


@pytest.fixture
def facts(db: Database) -> FactStore:
    return FactStore(db)


@pytest.fixture
def extractor(db: Database, history: History, facts: FactStore) -> Callable[..., Extractor]:
    def made(complete: Callable[[list[dict[str, str]]], Awaitable[str]], **more: Any) -> Extractor:
        return Extractor(Gate(facts, None), history, complete, db=db, facts=facts, **more)

    return made


def session_of(history: History, *messages: str) -> str:
    session = history.start_session()
    for said in talk(*messages):
        history.append(session.id, said.role, said.content)
    return session.id


def answer(*items: tuple[str, str], **more: Any) -> str:
    return json.dumps([{"fact": fact, "category": "decision", "quote": quote, **more} for fact, quote in items])


async def test_a_session_leaves_facts_with_quote_message_and_source_and_a_report(
    history: History, facts: FactStore, extractor: Callable[..., Extractor]
) -> None:
    session = session_of(history, "For our service we stay with aiohttp.", "assistant: Noted. " + "Long answer. " * 80)
    message = history.messages(session)[0]
    model = Model(
        answer(("For our service we stay with aiohttp", "we stay with aiohttp"), ("We use Redis", "use Redis"))
    )
    report = await extractor(model).run(session)
    (fact,) = facts.live()
    assert (fact.fact, fact.quote, fact.message_id) == (
        "For our service we stay with aiohttp",
        "we stay with aiohttp",
        message.id,
    )
    assert session in fact.source
    assert message.id in fact.source
    assert [each.fact_id for each in report.kept] == [fact.id]
    assert [(each.rule, each.reason) for each in report.refused] == [
        ("quote", "Its quote is not in the user's messages.")
    ]
    assert report.tokens_out < 15 < report.tokens_in
    assert report.compression == pytest.approx(report.tokens_in / report.tokens_out)
    assert report.summary == f"Kept 1 fact ({report.tokens_out} of {report.tokens_in} tokens), 1 refused."
    assert "[m1] For our service" in model.asked[0][0]["content"]  # short ids for the model


async def test_a_session_is_searched_exactly_once_and_again_only_for_what_is_new(
    history: History, facts: FactStore, extractor: Callable[..., Extractor]
) -> None:
    session = session_of(history, "For our service we stay with aiohttp.")
    said = answer(("We stay with aiohttp", "we stay with aiohttp"))
    model = Model(said, said, answer(("We format with ruff", "we format with ruff"), ("Stays", "we stay with aiohttp")))
    runner = extractor(model)
    assert len((await runner.run(session)).kept) == 1
    assert (await runner.run(session)).nothing_new
    assert len(model.asked) == 1
    model.answers.pop(0)
    history.append(session, "user", "And here we format with ruff.")
    report = await runner.run(session)
    assert [each.text for each in report.kept] == ["We format with ruff"]
    assert [each.rule for each in report.refused] == ["quote"]  # what is old is not confirmed by being read again
    assert facts.event_counts() == {"add": 2}
    assert history.unextracted_sessions() == []


async def test_two_windows_that_search_at_once_keep_each_fact_once(
    db: Database, history: History, facts: FactStore, extractor: Callable[..., Extractor]
) -> None:
    session = session_of(history, "For our service we stay with aiohttp.")
    asked: list[None] = []
    both_asked = asyncio.Event()

    async def complete(messages: list[dict[str, str]]) -> str:
        asked.append(None)
        if len(asked) == 2:
            both_asked.set()
        await both_asked.wait()  # both have read the session before one of them writes
        return answer(("We stay with aiohttp", "we stay with aiohttp"))

    reports = await asyncio.gather(extractor(complete).run(session), extractor(complete).run(session))
    assert sorted(len(report.kept) for report in reports) == [0, 1]
    assert [report.nothing_new for report in reports].count(True) == 1
    assert len(facts.live()) == 1
    assert facts.event_counts() == {"add": 1}


async def test_a_crashed_session_is_searched_at_the_next_start(
    history: History, facts: FactStore, extractor: Callable[..., Extractor]
) -> None:
    first = session_of(history, "For our service we stay with aiohttp.")
    second = session_of(history, "And here we format with ruff.")
    running = session_of(history, "We use Go here.")
    model = Model(
        answer(("We stay with aiohttp", "we stay with aiohttp")), answer(("We format with ruff", "we format with ruff"))
    )
    reports = await extractor(model).run_pending(exclude={running})
    assert [report.session_id for report in reports] == [first, second]
    assert len(facts.live()) == 2
    assert [session.id for session in history.unextracted_sessions()] == [running]


async def test_a_server_that_is_gone_loses_nothing_and_is_said(
    history: History, facts: FactStore, extractor: Callable[..., Extractor]
) -> None:
    session = session_of(history, "For our service we stay with aiohttp.")
    other = session_of(history, "And here we format with ruff.")
    gone = Model(ConnectionError("the model server does not answer"))
    reports = await extractor(gone).run_pending()
    assert len(reports) == len(gone.asked) == 1  # no use in asking for the others
    assert reports[0].summary == "This session could not be searched for facts: the model server does not answer"
    assert {each.id for each in history.unextracted_sessions()} == {session, other}
    with pytest.raises(LookupError):
        await extractor(gone).run("unknown")


async def test_a_failure_while_writing_leaves_neither_facts_nor_the_mark(
    db: Database, history: History, facts: FactStore
) -> None:
    session = session_of(history, "For our service we stay with aiohttp. Here we format with ruff.")

    class Failing(Gate):
        def admit(self, proposal: Any) -> Any:
            if "ruff" in proposal.text:
                raise OSError("disk full")
            return super().admit(proposal)

    model = Model(
        answer(("We stay with aiohttp", "we stay with aiohttp"), ("We format with ruff", "we format with ruff"))
    )
    broken = Extractor(Failing(facts, None), history, model, db=db, facts=facts)
    with pytest.raises(OSError, match="disk full"):
        await broken.run(session)
    assert facts.live() == []
    assert len(history.unextracted_sessions()) == 1


@pytest.mark.parametrize("reply", ["[]", "", "I am sorry.", answer(("We use Redis", "invented quote"))])
async def test_a_wish_to_remember_with_no_fact_is_a_visible_failure_with_the_sentence_kept(
    history: History, facts: FactStore, extractor: Callable[..., Extractor], reply: str
) -> None:
    session = session_of(history, "Hello. Remember that the staging box is called basalt.", "assistant: I will.")
    report = await extractor(Model(reply)).run(session)
    assert report.missed == ("Remember that the staging box is called basalt.",)
    assert "You asked to remember “Remember that the staging box is called basalt.”" in report.summary
    (waiting,) = facts.quarantined()
    assert waiting.proposal.text == "the staging box is called basalt."
    assert waiting.rule == "missed"
    assert facts.live() == []


@pytest.mark.parametrize("how", ["extracted", "saved in the turn", "a secret"])
async def test_a_wish_that_was_met_or_must_be_refused_is_no_failure(
    history: History, facts: FactStore, extractor: Callable[..., Extractor], how: str
) -> None:
    text = "Zapamiętaj, że testy odpalamy przez nox."
    reply = "[]"
    if how == "a secret":
        text = "Remember that the root password is Cranberry-" + "Bolt6."
    session = session_of(history, text)
    if how == "extracted":
        reply = answer(("Testy odpalamy przez nox", "testy odpalamy przez nox"))
    elif how == "saved in the turn":
        message = history.messages(session)[0].id
        facts.add(NewFact("", "Testy: nox", "edit_file", quote="testy odpalamy przez nox", message_id=message))
    report = await extractor(Model(reply)).run(session)
    assert report.missed == ()
    assert facts.quarantined() == []


async def test_small_talk_and_questions_need_no_model(history: History, extractor: Callable[..., Extractor]) -> None:
    model = Model("[]")
    session = session_of(history, "ok", "assistant: Anything else?", "What does yield do?", "thanks!")
    report = await extractor(model).run(session)
    assert report.nothing_new
    assert model.asked == []
    assert history.unextracted_sessions() == []
    assert (await extractor(model).run(history.start_session().id)).nothing_new


async def test_a_long_conversation_is_asked_about_in_parts_and_corrections_still_see_the_rest(
    history: History, facts: FactStore, extractor: Callable[..., Extractor]
) -> None:
    session = session_of(
        history,
        "Тесты запускаем через tox.",
        *["Let us talk about the weather some more."] * 30,
        "Нет, уже давно через nox.",
    )

    def reply(question: str) -> str:
        return answer(("Тесты запускаем через nox", "через nox"), category="convention") if "nox" in question else "[]"

    model = Model(reply)
    await extractor(model, batch_characters=500).run(session)
    assert len(model.asked) > 2
    assert [fact.fact for fact in facts.live()] == ["Тесты запускаем через nox"]


async def test_a_session_keeps_no_more_than_its_share_over_all_its_runs(
    history: History, facts: FactStore, extractor: Callable[..., Extractor]
) -> None:
    session = session_of(history, *(f"Module Alfa{n} is written in Go." for n in range(8)))

    def reply(question: str) -> str:
        return answer(*((f"Module Alfa{n} is written in Go", f"Module Alfa{n} is written in Go") for n in range(20)))

    runner = extractor(Model(reply))
    assert len((await runner.run(session)).kept) == 8
    for n in range(8, 16):
        history.append(session, "user", f"Module Alfa{n} is written in Go.")
    report = await runner.run(session)
    assert len(report.kept) == MOST_ITEMS - 8
    assert [each.rule for each in report.refused].count("cap") == 6
    assert len(facts.live()) == MOST_ITEMS
    assert (runner.last_report(session) or {})["kept_in_all"] == MOST_ITEMS


async def test_inside_the_chats_own_window_only_the_question_is_sent(
    history: History, facts: FactStore, extractor: Callable[..., Extractor]
) -> None:
    session = session_of(history, "For our service we stay with aiohttp.", "assistant: Fine.")
    model = Model(answer(("We stay with aiohttp", "we stay with aiohttp"), message_id="whatever"))
    report = await extractor(model).run(session, in_window=True)
    assert len(report.kept) == 1
    ((message,),) = model.asked
    assert message["content"].startswith(extraction_prompt("en"))
    assert "my messages above, from “For our service we stay with aiohttp.” on" in message["content"]
    assert "assistant: Fine" not in message["content"]


async def test_refused_secrets_are_in_neither_report_nor_files(
    db: Database, history: History, extractor: Callable[..., Extractor]
) -> None:
    secret = "ghp_" + "a1B2" * 9
    session = session_of(history, f"The token of the build box basalt is {secret}.")
    model = Model(answer((f"The token is {secret}", f"The token of the build box basalt is {secret}")))
    runner = extractor(model)
    report = await runner.run(session)
    assert report.kept == ()
    assert secret not in repr(report)
    assert secret not in json.dumps(runner.last_report(session))
    assert all(secret.encode() not in path.read_bytes() for path in db.files())


async def test_what_was_deleted_does_not_come_back_from_an_old_session(
    history: History, facts: FactStore, extractor: Callable[..., Extractor]
) -> None:
    session = session_of(history, "For our service we stay with aiohttp.")
    said = answer(("For our service we stay with aiohttp", "For our service we stay with aiohttp"))
    facts.delete_chain(facts.add(NewFact("", "For our service we stay with aiohttp.", "m1")).id)
    report = await extractor(Model(said)).run(session)
    assert [each.rule for each in report.refused] == ["tombstone"]
    assert facts.live() == []


def test_an_empty_report_says_so() -> None:
    assert ExtractionReport("s").summary == "Kept no facts."
    assert ExtractionReport("s").compression is None


# --- the check ------------------------------------------------------------------------------------


def by_the_book(question: str) -> str:
    """A model that knows the cases: the first answer of each conversation."""
    for case in CASES:
        said = conversation_of(case["conversation"])
        if question == extraction_messages(said, language_hint(said))[0]["content"]:
            best = max(case["model_outputs"], key=lambda output: len(output["accept"]))
            return str(best["raw"])
    return "[]"


async def test_the_check_scores_a_model_per_language_and_names_what_went_wrong() -> None:
    good = await check_extraction(CASES, Model(by_the_book), model="good", digest="sha-1")
    total = good.score()
    assert (total.cases, total.found, total.forbidden, total.errors) == (43, total.expected, 0, 0)
    assert good.languages == ("en", "pl", "ru")
    assert sum(good.score(language).cases for language in good.languages) == 43
    assert (
        good.summary
        == f"good found {total.expected} of {total.expected} facts in 43 conversations and kept 0 it must not keep."
    )

    silent = await check_extraction(CASES[:3], Model("[]"), model="silent", digest="sha-2")
    assert [case.right for case in silent.cases] == [False, False, True]  # the third holds nothing to keep
    wrong = {"fact": "Which cache should we take", "quote": "Which cache should we take"}
    odd = {**CASES[2], "forbidden": ["cache"], "expect": []}
    (checked,) = (await check_extraction([odd], Model(json.dumps(wrong)), model="x", digest="y")).cases
    assert checked.extra == () or checked.forbidden == ()
    down = await check_extraction(CASES[:2], Model(ConnectionError("gone")), model="down", digest="sha-3")
    assert down.score().errors == 2
    assert "2 conversations could not be asked about" in down.summary


async def test_a_change_of_the_model_since_the_last_check_is_flagged(db: Database) -> None:
    log = CheckLog(db)
    assert log.concern("qwen", "sha-1") == ""
    first = await check_extraction(
        CASES[:4], Model(by_the_book), model="qwen", digest="sha-1", clock=lambda: "2026-05-02 10:00:00"
    )
    log.record(first)
    assert log.last() == first
    assert log.concern("qwen", "sha-1") == ""
    assert log.concern("llama", "sha-2").startswith(
        "Extraction was last checked with qwen (2026-05-02), and now llama does it."
    )
    assert "another version of qwen" in log.concern("qwen", "sha-9")
    assert "check-extraction" in log.concern("qwen", "sha-9")
    second = await check_extraction(CASES[:4], Model("[]"), model="llama", digest="sha-2")
    log.record(second)
    assert log.concern("llama", "sha-2") == ""
    assert log.last("sha-1") == first
    assert "facts found: 5 before, 0 now" in log.compared(second) or "before, 0 now" in log.compared(second)
    assert CheckLog(db).last() == second


def test_other_instructions_are_flagged_too(db: Database) -> None:
    log = CheckLog(db)
    log.record(ExtractionCheck("qwen", "sha-1", "old instructions", "2026-05-02 10:00:00"))
    assert log.concern("qwen", "sha-1").startswith("The instructions for extraction have changed")


def test_every_expected_fact_is_matched_with_one_of_its_own() -> None:
    expect = [{"category": "fact", "must_contain": ["Żuraw"]}, {"category": "fact", "must_contain": ["Elixir"]}]
    kept = [(Kind.FACT, "Projekt Żuraw piszemy w Elixirze"), (Kind.FACT, "Żuraw to planer"), (Kind.PROBLEM, "Elixir")]
    assert match(expect, kept) == {0: 1, 1: 0}
    assert match(expect, kept[:1]) in ({0: 0}, {1: 0})
    assert Action.LIVE.value == "live"
