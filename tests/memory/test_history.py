"""Sessions, messages, search, the log of what was sent, recall records, drafts and state."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui_agent.memory.database import Database, StoreError
from tui_agent.memory.history import History, StoredMessage
from tui_agent.memory.records import TEXT_COLUMNS, record_from_json, record_to_json, redacted, span_pattern
from tui_agent.memory.types import RecalledItem, RecallRecord, Term

SECRET = "sesame-" + "0451"
GONE = "[secret removed]"


class Clock:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.now = "2026-05-02 10:00:00"

    def __call__(self) -> str:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "memory.db") as opened:
        yield opened


@pytest.fixture
def history(db: Database, clock: Clock) -> History:
    return History(db, lambda text: text.replace(SECRET, GONE), clock)


def _say(history: History, *contents: str, role: str = "user") -> str:
    session = history.start_session()
    for content in contents:
        history.append(session.id, role, content)
    return session.id


def _found(history: History, query: str, **how: Any) -> list[str]:
    return [message.content for message in history.search(query, **how)]


# --- sessions and messages ------------------------------------------------------------------------


def test_a_session_keeps_its_messages_in_order_with_everything_about_them(history: History, clock: Clock) -> None:
    session = history.start_session("Orders", "qwen", "data access")
    assert (session.title, session.model, session.goal, session.messages) == ("Orders", "qwen", "data access", 0)
    first = history.append(session.id, "user", "Zażółć gęślą jaźń\nёлка")
    clock.now = "2026-05-02 10:00:05"
    calls = [{"name": "edit_file", "arguments": {"path": "knowledge/user.md", "new_string": "Name: Kacper\n"}}]
    second = history.append(
        session.id, "assistant", "Noted.", thinking="He told me his name.", tool_calls=calls, meta={"tokens": 12}
    )
    third = history.append(session.id, "tool", "ok", tool_name="edit_file")
    assert history.messages(session.id) == [first, second, third]
    assert [message.seq for message in (first, second, third)] == [1, 2, 3]
    assert second.tool_calls == tuple(calls)
    assert second.meta == {"tokens": 12}
    assert third.tool_name == "edit_file"
    assert history.message(second.id) == second
    assert history.session(session.id).last_at == "2026-05-02 10:00:05"
    assert history.session(session.id).messages == 2
    assert history.session(session.id).preview == "Zażółć gęślą jaźń\nёлка"


def test_messages_of_two_sessions_do_not_mix(history: History) -> None:
    one, two = _say(history, "first"), _say(history, "second")
    assert [message.content for message in history.messages(one)] == ["first"]
    assert [message.content for message in history.messages(two)] == ["second"]
    assert history.messages(two)[0].seq == 1


def test_the_latest_session_is_the_one_last_talked_in(history: History, clock: Clock) -> None:
    assert history.latest_session() is None
    empty = history.start_session()
    latest = history.latest_session()
    assert latest is not None
    assert latest.id == empty.id
    one, two = _say(history, "one"), _say(history, "two")
    clock.now = "2026-05-02 11:00:00"
    history.append(one, "user", "again")
    history.start_session()
    latest = history.latest_session()
    assert latest is not None
    assert latest.id == one
    assert [session.id for session in history.sessions() if session.messages] == [one, two]
    assert len(history.sessions(limit=2)) == 2


def test_going_on_in_an_ended_session_takes_the_mark_off(history: History) -> None:
    session = history.start_session()
    history.end_session(session.id)
    assert history.session(session.id).ended_at == "2026-05-02 10:00:00"
    history.append(session.id, "user", "one more thing")
    assert history.session(session.id).ended_at is None


def test_goal_title_and_model_can_be_set(history: History) -> None:
    session = history.start_session()
    history.set_goal(session.id, "ship it")
    history.set_title(session.id, "Release")
    history.set_model(session.id, "llama3")
    stored = history.session(session.id)
    assert (stored.goal, stored.title, stored.model) == ("ship it", "Release", "llama3")


def test_wrong_names_are_refused(history: History) -> None:
    session = history.start_session()
    with pytest.raises(ValueError, match="'robot' is no role"):
        history.append(session.id, "robot", "x")
    with pytest.raises(ValueError, match="'done' is no status"):
        history.append(session.id, "user", "x", status="done")
    with pytest.raises(LookupError, match="no session nobody"):
        history.append("nobody", "user", "x")
    with pytest.raises(LookupError, match="no message nothing"):
        history.extend_answer("nothing", "x")
    with pytest.raises(LookupError, match="no session nobody"):
        history.set_goal("nobody", "x")
    assert history.messages(session.id) == []


def test_an_answer_is_partial_until_it_is_finished(history: History) -> None:
    session = history.start_session()
    answer = history.begin_answer(session.id)
    history.extend_answer(answer, "Use the", "thinking about")
    partial = history.message(answer)
    assert (partial.content, partial.thinking, partial.status) == ("Use the", "thinking about", "partial")
    done = history.finish_answer(answer, "Use the repository.", "thinking", meta={"rate": 9.5})
    assert (done.content, done.status, done.meta) == ("Use the repository.", "complete", {"rate": 9.5})
    history.set_meta(answer, memory_line="saved · pnpm")
    assert history.message(answer).meta == {"rate": 9.5, "memory_line": "saved · pnpm"}
    cut = history.finish_answer(history.begin_answer(session.id), "Use", status="cut_off")
    assert cut.status == "cut_off"


_KILLED = """
import sys
from tui_agent.memory.database import Database
from tui_agent.memory.history import History
history = History(Database(sys.argv[1]))
session = history.start_session()
history.append(session.id, "user", "Tell me everything.")
answer = history.begin_answer(session.id)
text = ""
while True:
    text += "word "
    history.extend_answer(answer, text)
    print(len(text), flush=True)
"""


def test_kill_9_in_the_middle_of_an_answer_keeps_the_text_so_far(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    process = subprocess.Popen([sys.executable, "-c", _KILLED, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    written = [int(process.stdout.readline()) for _ in range(10)]
    process.send_signal(signal.SIGKILL if os.name == "posix" else signal.SIGTERM)
    written += [int(line) for line in process.stdout.read().split("\n")[:-1]]
    process.wait()
    process.stdout.close()
    with Database(path) as db:
        assert db.integrity_check() == []
        history = History(db)
        session = history.latest_session()
        assert session is not None
        question, answer = history.messages(session.id)
        assert question.content == "Tell me everything."
        assert (answer.role, answer.status) == ("assistant", "partial")
        assert len(answer.content) >= max(written)
        assert _found(history, "word") == [answer.content]


# --- search ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "query"),
    [
        ("Zażółć gęślą jaźń", "ZAZOLC"),
        ("Jadę do Łodzi", "lodzi"),
        ("Ёлка стоит в углу", "елка"),
        ("Ежик", "ёжик"),
        ("Он сказал: йод", "Йод"),
        ("Straße am See", "strasse"),
        ("Zrób kopię bazy", "kopie"),
        ("Проверь копии", "копия"),
        ("Wdrożenia robimy w piątki", "wdrożenie"),
        ("We talked about databases", "database"),
        ("Call get_user_by_id first", "get_user_by_id"),
        ("Call getUserById first", "user"),
        ("See src/app/main.py", "main.py"),
        ("progress is 50% now", "50%"),
        ("what's up?", "what's up?"),
        ("C++ or Rust", "c++"),
        ("the answer is in the middleware", "middlew"),
        ("to be or not to be", "to be or not"),
        ('say "yes" AND (maybe) NEAR*', '"yes" AND (maybe)'),
    ],
)
def test_a_message_is_found_in_another_case_form_or_spelling(history: History, said: str, query: str) -> None:
    _say(history, "Nothing to see here", said, "Nic ciekawego", "Ничего")
    assert _found(history, query)[0] == said


@pytest.mark.parametrize(
    ("said", "query"),
    [
        ("100 users", "100%"),
        ("1000", "100%"),
        ("fooXbar", "foo_bar"),
        ("axb", "a_b"),
        ("anything at all", "%"),
        ("anything at all", "_"),
        ("anything at all", "%thing%"),
        ("anything at all", "*"),
        ("anything at all", ""),
        ("anything at all", "   "),
    ],
)
def test_signs_in_a_query_are_literal(history: History, said: str, query: str) -> None:
    _say(history, said)
    assert _found(history, query) == []


def test_a_name_that_is_nowhere_finds_its_parts_together(history: History) -> None:
    _say(history, "call getUserById", "the user has an id", "get me out")
    assert _found(history, "get_user_by_id") == ["call getUserById"]


def test_a_figure_with_a_sign_finds_only_itself_when_it_is_there(history: History) -> None:
    _say(history, "50 users", "half, so 50%", "500%", "5%0")
    assert _found(history, "50%") == ["half, so 50%"]
    _say(history, "retry it please", "set retry_it to 3", "retryXit")
    assert _found(history, "retry_it") == ["set retry_it to 3"]


def test_messages_with_all_the_words_come_first_and_hide_those_with_few(history: History) -> None:
    _say(history, "python is nice", "old tutorials", "tutorials for python", "I like Python tutorials")
    assert _found(history, "Python tutorials") == ["I like Python tutorials", "tutorials for python"]
    assert set(_found(history, "python snake")) == {"python is nice", "tutorials for python", "I like Python tutorials"}


def test_search_can_be_narrowed_to_session_and_role_and_leave_messages_out(history: History) -> None:
    one = _say(history, "the port is 8443")
    two = _say(history, "the port is 9443")
    history.append(two, "assistant", "Noted: port 9443.")
    history.append(two, "tool", "grep port: 3 hits")
    history.append(two, "notice", "port forwarding is off")
    assert _found(history, "port", session_id=one) == ["the port is 8443"]
    assert _found(history, "port", session_id=two, role="assistant") == ["Noted: port 9443."]
    assert _found(history, "port", role=" Tool ") == ["grep port: 3 hits"]
    assert len(_found(history, "port")) == 3
    asked = history.messages(two)[0].id
    assert _found(history, "port", session_id=two, exclude=[asked]) == ["Noted: port 9443."]
    assert _found(history, "port", role="robot") == []
    assert len(_found(history, "port", limit=1)) == 1


def test_a_changed_message_is_found_by_its_new_words_only(history: History) -> None:
    session = history.start_session()
    answer = history.begin_answer(session.id)
    history.extend_answer(answer, "walrus")
    assert _found(history, "walrus") == ["walrus"]
    history.finish_answer(answer, "penguin")
    assert _found(history, "walrus") == []
    assert _found(history, "penguin") == ["penguin"]


def test_search_still_works_when_the_index_cannot_be_brought_up_to_date(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    _say(history, "walrus one")
    assert _found(history, "walrus") == ["walrus one"]
    _say(history, "walrus two")

    def full() -> int:
        raise StoreError("There is no room left on the disk.", "full")

    monkeypatch.setattr(history._index, "update", full)
    assert _found(history, "walrus") == ["walrus one"]


def test_the_index_can_be_made_anew(history: History, db: Database) -> None:
    _say(history, "walrus", "penguin")
    db.execute("DELETE FROM message_index")
    assert history.rebuild_index() == 2
    assert _found(history, "walrus") == ["walrus"]


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=25))
def test_no_query_breaks_the_search(query: str) -> None:
    with Database(":memory:") as db:
        history = History(db)
        _say(history, "walrus", query)
        history.search(query)
        assert history.search_history_text(query)


def test_the_search_tool_answers_in_its_fixed_form(history: History, clock: Clock) -> None:
    session = history.start_session().id
    assert history.search_history_text("Python") == "No messages found matching 'Python'"
    history.append(session, "user", "Python tutorials?")
    clock.now = "2026-05-03 23:59:59"
    history.append(session, "assistant", "Python tutorials: see docs.")
    first, second = (
        "[2026-05-02 10:00] User: Python tutorials?",
        "[2026-05-03 23:59] Assistant: Python tutorials: see docs.",
    )
    text = history.search_history_text("Python tutorials", session_id=session)
    assert text in {f"Found 2 message(s):\n\n{one}\n\n{two}" for one, two in ((first, second), (second, first))}
    assert history.search_history_text("python", role="user").startswith(
        "Found 1 message(s):\n\n[2026-05-02 10:00] User"
    )


def test_the_search_tool_cuts_at_500_characters_and_not_before(history: History) -> None:
    exact, longer = "walrus " + "x" * 493, "penguin " + "x" * 493
    _say(history, exact, longer)
    assert history.search_history_text("walrus").endswith(f"User: {exact}")
    assert history.search_history_text("penguin").endswith(f"User: {longer[:500]}...")


@pytest.mark.parametrize(("limit", "count"), [(-5, 1), (0, 1), (1, 1), (10, 10), (50, 50), (1000, 50)])
def test_the_search_tool_clamps_its_limit(history: History, limit: int, count: int) -> None:
    _say(history, *(f"walrus {number}" for number in range(60)))
    assert history.search_history_text("walrus", limit).startswith(f"Found {count} message(s):")


# --- records --------------------------------------------------------------------------------------


def test_the_log_of_what_was_sent_only_grows_and_knows_its_prefixes(history: History) -> None:
    session = history.start_session().id
    other = history.start_session().id
    first: list[dict[str, Any]] = [{"role": "system", "content": "Zażółć"}, {"role": "user", "content": "hi"}]
    history.wire_append(session, history.epoch(session), first)
    assert history.new_epoch(session) == 1
    call = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "recall", "arguments": {"n": 5}}}]}
    history.wire_append(session, 1, [call])
    assert history.wire_log(session) == [(0, first[0]), (0, first[1]), (1, call)]
    assert history.wire_log(session, epoch=1) == [(1, call)]
    assert history.wire_log(other) == []
    assert history.epoch(session) == 1


_ITEM = RecalledItem(
    store="fact",
    id="abc",
    text="Prefers pnpm „zawsze”",
    score=0.54,
    terms=(Term("similarity", 0.64, "words"), Term("age", -0.1)),
    rank=1,
    kind="preference",
    source="chat 2026-05-02",
    quote="I prefer pnpm",
    tokens=7,
)


def test_a_recall_record_comes_back_as_it_was(history: History) -> None:
    session = history.start_session().id
    answer = history.append(session, "assistant", "pnpm")
    record = RecallRecord(
        query="package manager?",
        goal="",
        items=(_ITEM,),
        near=(RecalledItem("cold", "c1", "npm", 0.1, (), status="threshold"),),
        threshold=0.2,
        channels=("lexical", "vector"),
        took_ms=3.5,
        rules_hash="ab12",
        extra={"asked": ["a", 1, None]},
    )
    history.save_recall(answer.id, record)
    assert history.recall(answer.id) == record
    history.save_recall(answer.id, RecallRecord("other", "goal"))
    assert history.recall(answer.id) == RecallRecord("other", "goal")
    assert history.recall("nothing") is None


def test_a_recall_record_with_numpy_numbers_or_fields_of_a_later_version_can_be_read() -> None:
    item = RecalledItem("fact", "a", "text", np.float32(0.5), (Term("x", np.float64(0.5)),))
    data = record_to_json(RecallRecord("q", "g", items=(item,)))
    assert data["items"][0]["score"] == 0.5
    data["items"][0]["colour"] = "blue"
    data["mood"] = "good"
    assert record_from_json(data).items[0].terms == (Term("x", 0.5),)


def test_drafts_belong_to_their_session_and_vanish_when_empty(history: History) -> None:
    session = history.start_session().id
    history.save_draft(None, "before any session")
    history.save_draft(session, "half a sente")
    history.save_draft(session, "half a sentence")
    assert history.load_draft(session) == "half a sentence"
    assert history.load_draft(None) == "before any session"
    history.save_draft(session, "")
    assert history.load_draft(session) == ""


def test_the_prompt_history_keeps_the_last_ones_without_repeats(history: History) -> None:
    for text in ("one", "two", "two", "  ", "one"):
        history.add_prompt(text)
    assert history.prompt_history() == ["one", "two", "one"]
    assert history.prompt_history(limit=1) == ["one"]
    for number in range(505):
        history.add_prompt(str(number))
    kept = history.prompt_history(limit=10_000)
    assert len(kept) == 500
    assert kept[-1] == "504"


def test_state_is_kept_by_session_and_name(history: History) -> None:
    session = history.start_session().id
    state = {"hot": [{"id": "m1", "text": "żółw", "pinned": True}], "step": 3}
    history.save_state(session, "working", state)
    history.save_state(session, "todos", ["a", "b"])
    history.save_state(session, "todos", ["b"])
    assert history.load_state(session, "working") == state
    assert history.load_state(session, "todos") == ["b"]
    assert history.load_state(session, "nothing", default=7) == 7


def test_extraction_sees_each_session_once_and_again_when_it_goes_on(history: History, clock: Clock) -> None:
    one, two = _say(history, "a", "b"), _say(history, "c")
    history.append(history.start_session().id, "notice", "nothing said")
    assert [session.id for session in history.unextracted_sessions()] == [one, two]
    assert [session.id for session in history.unextracted_sessions(exclude=[two])] == [one]
    history.mark_extracted(one)
    history.mark_extracted(two, up_to_seq=0)
    assert [session.id for session in history.unextracted_sessions()] == [two]
    history.mark_extracted(two, up_to_seq=1)
    history.mark_extracted(two, up_to_seq=0)
    assert history.unextracted_sessions() == []
    history.append(one, "assistant", "not the user")
    assert history.unextracted_sessions() == []
    history.append(one, "user", "new")
    assert [session.extracted_seq for session in history.unextracted_sessions()] == [2]


# --- redaction and deletion -----------------------------------------------------------------------


def _write_everywhere(history: History, text: str) -> tuple[str, StoredMessage]:
    session = history.start_session(f"title {text}", "m", f"goal {text}").id
    history.set_title(session, f"new title {text}")
    history.set_goal(session, f"new goal {text}")
    history.append(session, "user", f"content {text}", thinking=f"thought {text}", meta={"note": f"meta {text}"})
    call = {"name": "remember", "arguments": {"deep": [{"text": f"argument {text}"}]}}
    history.append(session, "assistant", "", tool_calls=[call])
    answer = history.begin_answer(session)
    history.extend_answer(answer, f"so far {text}", f"thinking {text}")
    done = history.finish_answer(answer, f"final {text}", f"thought {text}", [call], meta={"note": [text]})
    history.set_meta(answer, more=text)
    history.wire_append(session, 0, [{"role": "user", "content": f"wire {text}", "tool_calls": [call]}])
    item = RecalledItem("fact", "a", f"recalled {text}", 1.0, (Term("words", 1.0, text),), quote=text)
    history.save_recall(answer, RecallRecord(f"query {text}", text, items=(item,), extra={"x": text}))
    history.save_draft(session, f"draft {text}")
    history.save_draft(None, f"draft {text}")
    history.add_prompt(f"prompt {text}")
    history.save_state(session, "working", {"hot": [text]})
    return session, done


def _bytes(db: Database) -> bytes:
    return b"".join(path.read_bytes() for path in db.files())


def test_secrets_are_redacted_on_every_path_to_the_disk(history: History, db: Database) -> None:
    session, answer = _write_everywhere(history, SECRET)
    assert history.search(SECRET) == []
    assert SECRET.encode() not in _bytes(db)
    assert answer.content == f"final {GONE}"
    assert history.load_draft(session) == f"draft {GONE}"
    filled = {
        table: db.value(f"SELECT count(*) FROM {table} WHERE {' || '.join(plain + encoded)} LIKE '%secret removed%'")
        for table, _, plain, encoded in TEXT_COLUMNS
    }
    assert all(filled.values()), filled


def test_a_value_that_only_its_key_gives_away_is_redacted_too() -> None:
    def redact(text: str) -> str:
        return text.replace("password: hunter2", f"password: {GONE}")

    data = {"password": "hunter2", "name": "hunter2", "list": [{"password": "hunter2"}, 5, None]}
    assert redacted(data, redact) == {"password": GONE, "name": "hunter2", "list": [{"password": GONE}, 5, None]}


def test_a_text_found_clean_is_not_examined_again_but_a_secret_always_is(db: Database) -> None:
    asked: list[str] = []

    def redact(text: str) -> str:
        asked.append(text)
        return text.replace(SECRET, GONE)

    history = History(db, redact)
    session = history.start_session().id
    for _ in range(3):
        history.append(session, "user", "plain")
        history.wire_append(session, 0, [{"role": "user", "content": "plain"}])
        history.append(session, "user", SECRET)
    assert asked.count("plain") == 1
    assert asked.count(SECRET) == 3
    assert [message.content for message in history.messages(session)] == ["plain", GONE] * 3


def test_masking_takes_a_span_out_of_every_text_and_off_the_disk(history: History, db: Database) -> None:
    span = "Birch Bank Street 7"
    session, answer = _write_everywhere(history, span)
    history.append(session, "user", "It is at birch  bank\nSTREET 7, they say.")
    keep = history.append(session, "user", "Birch is a tree.")
    assert _found(history, "Birch Bank")
    assert history.mask([span, "", "  "]) > 8
    assert history.mask([span]) == 0
    assert history.mask([]) == 0
    assert history.message(answer.id).content == "final [deleted]"
    assert history.message(keep.id).content == "Birch is a tree."
    assert history.messages(session)[-2].content == "It is at [deleted], they say."
    record = history.recall(answer.id)
    assert record is not None
    assert record.items[0].text == "recalled [deleted]"
    assert history.wire_log(session)[0][1]["content"] == "wire [deleted]"
    assert _found(history, "Street") == []
    assert _found(history, "birch") == ["Birch is a tree."]
    db.vacuum()
    data = _bytes(db).lower()
    assert b"street" not in data
    assert b"bank" not in data


def test_a_longer_span_is_masked_before_a_shorter_one_inside_it() -> None:
    pattern = span_pattern(["Birch", "Birch Bank"])
    assert pattern is not None
    assert pattern.sub("#", "Birch Bank, birch, a.b") == "#, #, a.b"
    assert span_pattern(["", " "]) is None


def test_a_deleted_session_is_gone_from_every_table_and_the_index(history: History, db: Database) -> None:
    session, _ = _write_everywhere(history, "walrus")
    other = _say(history, "walrus too")
    assert len(_found(history, "walrus")) == 3
    history.save_draft(session, "draft")
    history.delete_session(session)
    assert _found(history, "walrus") == ["walrus too"]
    assert [each.id for each in history.sessions()] == [other]
    for table in ("messages", "wire_log", "recalls", "session_state"):
        column = "message_id" if table == "recalls" else "session_id"
        assert db.value(f"SELECT count(*) FROM {table} WHERE {column} != ?", (other,)) == 0
    assert history.load_draft(session) == ""
    assert db.foreign_key_check() == []
    history.mask(["walrus too"])
    history.save_draft(None, "")
    history.delete_session(other)
    db.execute("DELETE FROM prompts")
    db.vacuum()
    assert b"walrus" not in _bytes(db)


def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Database(path) as db:
        session, answer = _write_everywhere(History(db), "walrus")
    with Database(path) as db:
        history = History(db)
        assert history.message(answer.id).content == answer.content
        assert history.load_state(session, "working") == {"hot": ["walrus"]}
        assert history.prompt_history() == ["prompt walrus"]
        messages = history.messages(session)
        assert all(one.seq + 1 == two.seq for one, two in pairwise(messages))


def test_what_the_user_sends_enters_session_prompts_and_goal_in_one_write(history: History) -> None:
    session = history.start_session().id
    row = history.said(session, "Port the report\nto Rust", goal_of=lambda text: text.splitlines()[0])
    assert [message.id for message in history.messages(session)] == [row.id]
    assert history.prompt_history() == ["Port the report\nto Rust"]
    stored = history.session(session)
    assert (stored.goal, stored.title) == ("Port the report", "Port the report")
    history.set_title(session, "Mine")
    history.said(session, "Go on", goal_of=lambda text: text)
    stored = history.session(session)
    assert (stored.goal, stored.title) == ("Go on", "Mine")
    history.said(session, "And now?")
    assert history.session(session).goal == "Go on"
