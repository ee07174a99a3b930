"""Layers of the settings, and one sentence for every fault."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tui_agent.project import Project, UserPaths
from tui_agent.settings import (
    Loaded,
    Problem,
    Settings,
    SettingsError,
    is_this_machine,
    load_settings,
    settings_reference,
)
from tui_agent.settings_fields import FIELDS

Load = Callable[..., Loaded]


@pytest.fixture
def user(tmp_path: Path) -> UserPaths:
    return UserPaths.find({"TUI_AGENT_HOME": str(tmp_path / "home")}).ensure()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "project").mkdir()
    return Project.open(tmp_path / "project").ensure()


@pytest.fixture
def load(user: UserPaths, project: Project) -> Load:
    def _load(
        in_project: str | bytes = "", in_user: str | bytes = "", env: dict[str, str] | None = None, **flags: Any
    ) -> Loaded:
        for path, text in ((project.config_path, in_project), (user.config_path, in_user)):
            if text:
                path.write_bytes(text.encode() if isinstance(text, str) else text)
        return load_settings(project, user, env or {}, flags)

    return _load


def only(loaded: Loaded) -> Problem:
    assert len(loaded.problems) == 1, loaded.problems
    return loaded.problems[0]


def test_without_any_file_the_defaults_hold_and_nothing_is_wrong(load: Load) -> None:
    loaded = load()
    assert loaded.problems == ()
    assert loaded.settings == Settings()
    assert loaded.settings.model == "qwen2.5-coder:7b"
    assert loaded.settings.url == "http://127.0.0.1:11434"
    assert loaded.settings.num_ctx == 8192
    assert loaded.settings.keep_messages == 20
    assert loaded.settings.working_memory.pinned_cap == 2048 // 3
    assert set(loaded.sources.values()) == {"default"}


def test_flags_beat_the_environment_beats_the_project_beats_the_user(load: Load, project: Project) -> None:
    user = "model: from-user\nseed: 1\nnum_ctx: 4096\ntheme: dusk\n"
    inside = "model: from-project\nseed: 2\nnum_ctx: 5000\n"
    env = {"TUI_AGENT_MODEL": "from-env", "TUI_AGENT_SEED": "3"}
    loaded = load(inside, user, env, model="from-flag", seed=None)
    settings = loaded.settings
    assert (settings.model, settings.seed, settings.num_ctx, settings.theme) == ("from-flag", 3, 5000, "dusk")
    assert loaded.sources["model"] == "flag --model"
    assert loaded.sources["seed"] == "TUI_AGENT_SEED"
    assert loaded.sources["num_ctx"] == f"{project.config_path}:3"
    assert loaded.problems == ()


def test_sections_are_merged_key_by_key(load: Load) -> None:
    loaded = load(
        "working_memory:\n  max_tokens: 1000\n", "working_memory: {max_tokens: 500, calibrate: false}\n",
        {"TUI_AGENT_RECALL__TOP_K": "3", "TUI_AGENT_WORKING_MEMORY__RECALL_BYPASS_SIM": "none"},
    )  # fmt: skip
    memory = loaded.settings.working_memory
    assert (memory.max_tokens, memory.calibrate, memory.recall_bypass_sim) == (1000, False, None)
    assert loaded.settings.recall.top_k == 3
    assert loaded.problems == ()


def test_rules_of_the_user_come_before_those_of_the_project(load: Load) -> None:
    loaded = load("rules: [tests first, be brief]\n", "rules:\n  - be brief\n")
    assert loaded.settings.rules == ("be brief", "tests first")
    assert "config.yaml:1, " in loaded.sources["rules"]


@pytest.mark.parametrize(
    ("text", "line", "key", "words"),
    [
        ("modle: a\n", 1, "modle", "did you mean model?"),
        ("\nrecall:\n  topk: 3\n", 3, "recall.topk", "did you mean recall.top_k?"),
        ("max_tokens: 3\n", 1, "max_tokens", "did you mean working_memory.max_tokens or recall.max_tokens?"),
        ("zzz: 3\n", 1, "zzz", "known are model, embedder"),
        (
            "num_ctx: lots\n",
            1,
            "num_ctx",
            'a whole number from 2048 to 1048576, not "lots"; 8192 (default) is in force.',
        ),
        ("num_ctx: '8192'\n", 1, "num_ctx", 'not "8192"'),
        ("num_ctx: 10\n", 1, "num_ctx", "not 10"),
        ("num_ctx: true\n", 1, "num_ctx", "not true"),
        ("num_ctx:\n", 1, "num_ctx", "not nothing"),
        ("temperature: .nan\n", 1, "temperature", "a number from 0 to 2, or null"),
        ("tools: maybe\n", 1, "tools", "true or false"),
        ("think: hard\n", 1, "think", "true, false, low, medium, high, or null"),
        ("model: [a]\n", 1, "model", "a model name, not a list"),
        ("model: 'two words'\n", 1, "model", "a model name"),
        ("host: {a: b}\n", 1, "host", "not a mapping"),
        ("keep_alive: '30'\n", 1, "keep_alive", "a time with a unit such as 30m"),
        ("ui:\n  cursor_blink: often\n", 2, "ui.cursor_blink", "true or false"),
        ("recall: much\n", 1, "recall", "must hold indented lines (top_k, threshold"),
        ("rules: be brief\n", 1, "rules", "a list of short texts"),
        ("recall:\n  recency_days: 0\n", 2, "recall.recency_days", "a number from more than 0"),
        ("keymap:\n  pin: [a]\n", 2, "keymap.pin", "keys such as"),
        ("seed: !!python/object:os.system x\n", 1, "seed", "tag"),
        ("seed: !!int x\n", 1, "seed", "not int"),
    ],
)
def test_a_wrong_key_is_one_sentence_with_file_line_and_what_is_allowed(
    text: str, line: int, key: str, words: str, load: Load, project: Project
) -> None:
    loaded = load(text)
    problem = only(loaded)
    assert (problem.level, problem.file, problem.line, problem.key) == ("error", str(project.config_path), line, key)
    assert problem.text.startswith(f"{project.config_path}, line {line}: {key} ")
    assert words in problem.text
    assert problem.text.endswith((".", "?"))
    assert loaded.settings == Settings()


def test_a_bad_key_leaves_the_value_of_the_layer_below_and_the_rest_of_the_file(load: Load, user: UserPaths) -> None:
    loaded = load("num_ctx: lots\nseed: 7\n", "num_ctx: 4096\n")
    assert (loaded.settings.num_ctx, loaded.settings.seed) == (4096, 7)
    assert f"4096 ({user.config_path}:1) is in force" in only(loaded).text


@pytest.mark.parametrize(
    ("data", "line", "words"),
    [
        (b"model: a\n\tseed: 1\n", 2, "tab"),
        (b"model: a: b\n", 1, "quotes"),
        (b"rules: [a\nmodel: b\n", 2, "not valid YAML"),
        (b"- a\n- b\n", 1, "must hold lines of the form `key: value`, not a list"),
        (b"just text\n", 1, "not a single value"),
        ("model: a\nrules: [zażółć]\n".encode("cp1250"), 2, "not UTF-8 text (byte 0xBF)"),
        ("model: a\n".encode("utf-16"), 1, "UTF-16"),
        (b"model: a\x07\n", 1, "U+0007"),
        (b"a: 1\n---\nb: 2\n", 2, "document"),
        (b"x" * 300_000, None, "256 KB"),
        (b"[" * 5000, None, "not valid YAML"),
    ],
)
def test_a_broken_file_is_one_sentence_and_the_program_goes_on(
    data: bytes, line: int | None, words: str, load: Load, project: Project
) -> None:
    loaded = load(data, "seed: 5\n")
    problem = only(loaded)
    assert problem.line == line
    assert problem.text.startswith(str(project.config_path))
    assert words in problem.text
    assert problem.text.endswith("; the program goes on without it.")
    assert loaded.settings == Settings(seed=5)


def test_a_folder_or_an_unreadable_file_in_its_place_is_a_sentence(load: Load, project: Project) -> None:
    project.config_path.mkdir()
    assert "is a folder, not a file" in only(load()).text
    project.config_path.rmdir()
    project.config_path.write_text("seed: 1\n")
    project.config_path.chmod(0)
    if not os.access(project.config_path, os.R_OK):
        assert "cannot be read" in only(load()).text


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "~\n", "recall:\nkeymap:\n", "\ufeffseed: 1\n"])
def test_empty_files_and_a_byte_order_mark_are_fine(text: str, load: Load) -> None:
    loaded = load(text)
    assert loaded.problems == ()
    assert loaded.settings.seed in (None, 1)


def test_a_key_given_twice_is_named_and_the_last_one_counts(load: Load) -> None:
    loaded = load("seed: 1\nmodel: a\nseed: 2\n")
    assert loaded.settings.seed == 2
    problem = only(loaded)
    assert (problem.level, problem.line) == ("warning", 3)
    assert "first in line 1" in problem.text


def test_yaml_words_such_as_off_and_numbers_are_what_was_written(load: Load) -> None:
    loaded = load("think: off\nkeymap:\n  pin: 5\n  quit: no\n")
    assert loaded.problems == ()
    assert loaded.settings.think is False
    assert loaded.settings.keymap == {"pin": "5", "quit": "no"}


def test_rules_are_literal_text_and_a_path_is_not_opened(load: Load, project: Project) -> None:
    secret = "text of the file"
    project.rules_path.write_text(secret)
    loaded = load("rules:\n  - .agent-memory/rules.md\n  - 2026-08-15\n  - 42\n  - yes\n  - use a/b tests often\n")
    assert loaded.settings.rules == (".agent-memory/rules.md", "2026-08-15", "42", "yes", "use a/b tests often")
    problem = only(loaded)
    assert (problem.level, problem.line, problem.key) == ("warning", 2, "rules")
    assert "looks like a path" in problem.text
    assert "no file is opened" in problem.text
    assert secret not in repr(loaded)


@pytest.mark.parametrize(
    "entry", ["docs/rules.md", "./x", "../up", "~/rules", "C:\\rules.txt", "/etc/passwd", "a.yaml"]
)
def test_what_looks_like_a_path_is_named(entry: str, load: Load) -> None:
    loaded = load(f"rules:\n  - '{entry}'\n")
    assert loaded.settings.rules == (entry,)
    assert "looks like a path" in only(loaded).text


def test_a_rule_with_a_colon_is_taken_as_written(load: Load) -> None:
    loaded = load("rules:\n  - Note: always use tabs\n  - [a]\n  -\n  - a: 1\n    b: 2\n")
    assert loaded.settings.rules == ("Note: always use tabs",)
    assert [problem.line for problem in loaded.problems] == [2, 3, 4, 5]
    assert "quotes around it" in loaded.problems[0].text


def test_an_alias_bomb_is_harmless(load: Load) -> None:
    levels = "\n".join(f"x{n}: &x{n} [*x{n - 1}, *x{n - 1}, *x{n - 1}, *x{n - 1}]" for n in range(1, 30))
    loaded = load(f"x0: &x0 [a]\n{levels}\nrules: *x29\n")
    assert loaded.settings.rules == ()
    assert all(len(problem.text) < 1000 for problem in loaded.problems)


def test_a_project_cannot_send_text_away_or_name_a_model_file(load: Load) -> None:
    text = "host: http://example.org:11434\nallow_remote: true\ngguf: evil.gguf\n"
    loaded = load(text)
    assert loaded.settings == Settings()
    assert [problem.key for problem in loaded.problems] == ["host", "allow_remote", "gguf"]
    assert all("may come from others" in problem.text for problem in loaded.problems)
    settings = load("host: localhost:1234\n", text).settings
    assert (settings.host, settings.allow_remote) == ("localhost:1234", True)


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("localhost", True), ("http://127.0.0.1:11434", True), ("[::1]:80", True), ("::1", True), (":1234", True),
        ("0.0.0.0", True), ("https://app.localhost/x", True), ("127.8.8.8:1", True), ("http://[::1]/", True),
        ("example.org", False), ("http://localhost@example.org", False), ("10.0.0.1", False), ("[::2]", False),
        ("http://localhost.example.org", False), ("http://example.org\\@localhost", False), ("http://[", False),
    ],
)  # fmt: skip
def test_addresses_of_this_machine_are_told_from_others(address: str, local: bool) -> None:
    assert is_this_machine(address) is local


def test_a_model_file_is_found_from_where_it_was_named(load: Load, user: UserPaths, tmp_path: Path) -> None:
    assert load("", "gguf: models/a.gguf\n").settings.gguf == str(user.config / "models" / "a.gguf")
    assert load(gguf=Path("b.gguf")).settings.gguf == str(Path("b.gguf").absolute())
    assert load(env={"TUI_AGENT_GGUF": "c.gguf"}).settings.gguf == str(Path("c.gguf").absolute())
    assert load("", "gguf: ~nobody-here/a.gguf\n").settings.gguf is not None


def test_the_environment_is_read_by_the_type_of_the_setting(load: Load) -> None:
    env = {
        "TUI_AGENT_TOOLS": "0", "TUI_AGENT_THINK": "high", "TUI_AGENT_TEMPERATURE": "0.5", "TUI_AGENT_MODEL": "42",
        "TUI_AGENT_KEEP_ALIVE": "-1", "TUI_AGENT_NUM_CTX": " 4096 ", "TUI_AGENT_SEED": "",
        "TUI_AGENT_RULES": "a\n\nb c",
    }  # fmt: skip
    loaded = load(env=env)
    settings = loaded.settings
    assert loaded.problems == ()
    assert (settings.tools, settings.think, settings.temperature, settings.model) == (False, "high", 0.5, "42")
    assert (settings.keep_alive, settings.num_ctx, settings.seed) == (-1.0, 4096, None)
    assert settings.rules == ("a", "b c")


def test_a_wrong_variable_is_named_and_left_out(load: Load) -> None:
    loaded = load("seed: 4\n", env={"TUI_AGENT_SEED": "x", "TUI_AGENT_MODLE": "a", "TUI_AGENT_HOME": "/", "OTHER": "x"})
    texts = [problem.text for problem in loaded.problems]
    assert loaded.settings.seed == 4
    assert len(texts) == 2
    assert texts[0] == "TUI_AGENT_MODLE is not a variable of this program; did you mean TUI_AGENT_MODEL?"
    assert texts[1].startswith('TUI_AGENT_SEED must be a whole number from 0 to 2147483647, or null, not "x"; 4 (')


def test_the_variable_of_ollama_names_the_host_unless_ours_is_set(load: Load) -> None:
    loaded = load(env={"OLLAMA_HOST": "0.0.0.0:1"})
    assert (loaded.settings.host, loaded.sources["host"]) == ("0.0.0.0:1", "OLLAMA_HOST")
    assert load(env={"OLLAMA_HOST": "a", "TUI_AGENT_HOST": "b"}).settings.host == "b"
    assert load(env={"OLLAMA_HOST": "a"}, host="c").settings.host == "c"
    both = load("", "host: gpu:1\n", {"OLLAMA_HOST": "a"})
    assert both.settings.host == "a"
    assert "stands above" in only(both).text
    assert "config.yaml:1" in only(both).text


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"num_ctx": "x"}, "--num-ctx must be a whole number from 2048 to 1048576, not \"x\"."),
        ({"modle": "x"}, "--modle is not a setting; did you mean model?"),
        ({"think": "hard"}, "--think must be true, false"),
    ],
)  # fmt: skip
def test_a_wrong_flag_is_an_error(flags: dict[str, Any], words: str, load: Load) -> None:
    with pytest.raises(SettingsError) as caught:
        load(**flags)
    assert words in str(caught.value)


def test_reload_takes_new_values_and_keeps_the_last_good_ones(load: Load, project: Project) -> None:
    loaded = load("num_ctx: 4096\nseed: 1\n")
    project.config_path.write_text("num_ctx: lots\nseed: 2\n")
    second = loaded.reload()
    assert (second.settings.num_ctx, second.settings.seed) == (4096, 2)
    assert "4096 (" in only(second).text
    project.config_path.write_text("num_ctx: [\n")
    third = second.reload()
    assert third.settings == second.settings
    assert "its last good values stay" in only(third).text
    project.config_path.write_text("seed: 3\n")
    fourth = third.reload()
    assert (fourth.settings.num_ctx, fourth.settings.seed) == (8192, 3)
    project.config_path.unlink()
    assert fourth.reload().settings == Settings()


def test_reload_keeps_flags_and_environment(load: Load, project: Project) -> None:
    loaded = load("seed: 1\n", "", {"TUI_AGENT_THEME": "dusk"}, model="x")
    project.config_path.write_text("seed: 2\nmodel: y\ntheme: z\n")
    settings = loaded.reload().settings
    assert (settings.seed, settings.model, settings.theme) == (2, "x", "dusk")


def test_settings_cannot_be_changed_and_refuse_unknown_names() -> None:
    with pytest.raises(ValidationError):
        Settings().__setattr__("model", "x")
    with pytest.raises(ValidationError):
        Settings.model_validate({"modle": "x"})


def test_every_setting_is_described_with_value_source_and_what_is_allowed(load: Load) -> None:
    rows = {row.key: row for row in load("theme: dusk\nkeymap: {pin: p}\nrules: [a]\n").describe()}
    assert set(rows) == set(FIELDS)
    assert all(row.description and row.allowed and row.default for row in rows.values())
    assert rows["theme"].value == "dusk"
    assert rows["theme"].source.endswith("config.yaml:1")
    assert rows["keymap"].value == "pin: p"
    assert rows["keymap"].source.endswith("config.yaml:2")
    assert rows["rules"].value == "a"
    assert rows["temperature"].value == "null"
    reference = settings_reference()
    assert reference.count("\n") == len(FIELDS) + 2
    assert "| `working_memory.max_tokens` | `2048` | a whole number from 128 to 131072 |" in reference
