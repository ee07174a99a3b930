"""Words about models: where they run, when they go, what another one changes; and the desk over a real server."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from tests.agent.conftest import Desk
from tui_agent.agent.models import ModelView, seconds_left, share_words, size_words, stay_words, switch_sentence
from tui_agent.agent.views import ServerStatus
from tui_agent.llm.errors import ModelMissing, ServerUnreachable
from tui_agent.llm.types import ModelInfo, RunningModel
from tui_agent.llm.wire.catalog import model

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("size", "vram", "words"),
    [(100, 100, "GPU"), (100, 0, "CPU"), (100, 62, "62 % GPU, 38 % CPU"), (1000, 999, "99 % GPU, 1 % CPU"),
     (100, None, ""), (None, 5, "")],
)  # fmt: skip
def test_where_a_model_runs(size: int | None, vram: int | None, words: str) -> None:
    assert share_words(RunningModel("m", size=size, size_vram=vram)) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2026-11-30T09:12:00.123456789Z", "unloads in 12 min"),
        ("2026-11-30T10:00:30+01:00", "unloads in 30 s"),
        ("2318-01-01T00:00:00Z", "stays loaded"),
        ("2026-11-30T08:00:00Z", "unloads now"),
        ("2026-11-30T09:12:00.5Z", "unloads in 12 min"),
        ("soon", ""),
        ("", ""),
    ],
)
def test_when_a_model_goes(text: str, words: str) -> None:
    assert stay_words(text, NOW) == words


def test_the_servers_times_are_read_to_the_second() -> None:
    assert seconds_left((NOW + timedelta(minutes=5)).isoformat(), NOW) == 300
    assert seconds_left("2026-11-30T09:00:01", NOW) == 1


def test_sizes_are_short() -> None:
    assert [size_words(size) for size in (None, 0, 986_000_000, 4_700_000_000)] == ["", "", "986 MB", "4.7 GB"]


def test_abilities_name_what_the_probe_found_first() -> None:
    info = ModelInfo("m", capabilities=frozenset({"completion", "tools", "thinking"}))
    assert ModelView(info).abilities == ("tools", "thinking")
    assert ModelView(info, tool_calling="text").abilities == ("writes tool calls as text", "thinking")
    assert ModelView(replace(info, capabilities=frozenset({"completion"}))).abilities == ("no tools",)
    assert ModelView(replace(info, capabilities=frozenset({"embedding"}))).abilities == ("embedding",)


def test_another_model_says_what_changes_and_that_the_conversation_stays() -> None:
    before = ServerStatus("u", "a", num_ctx=8192, tools=True, thinking=True)
    now = ServerStatus("u", "b", num_ctx=4096, tools=False, thinking=False)
    said = switch_sentence("b", before, now)
    assert said.startswith("b answers from now on (window 4,096 tokens instead of 8,192; no tools")
    assert "no thinking" in said
    assert switch_sentence("b", before, before).startswith("b answers from now on. The conversation stays")


async def test_the_desk_shows_what_is_installed_loaded_and_known(desk: Desk) -> None:
    desk.backend.installed.append(model("gemma3:4b", capabilities=("completion",)))
    await desk.say("Which port?")
    models = desk.session.model_desk
    views = {view.info.name: view for view in await models.installed()}
    mine = views["qwen2.5-coder:1.5b"]
    assert mine.current
    assert mine.running is not None
    assert mine.running.context_length == 8192
    assert not views["gemma3:4b"].running
    assert await models.probe("qwen2.5-coder:1.5b") == "native"
    assert (await models.show("qwen2.5-coder:1.5b")).tool_calling == "native"
    assert desk.backend.runners.reloads == 0
    with pytest.raises(ModelMissing):
        await models.show("nope")


async def test_unloading_says_what_it_freed(desk: Desk) -> None:
    await desk.say("Which port?")
    models = desk.session.model_desk
    assert await models.unload("qwen2.5-coder:1.5b") == (
        "qwen2.5-coder:1.5b is unloaded and freed 986 MB. The next answer loads it again."
    )
    assert await models.unload("qwen2.5-coder:1.5b") == "qwen2.5-coder:1.5b was not loaded."
    with pytest.raises(ModelMissing):
        await models.unload("nope")


async def test_without_a_connection_the_desk_says_so(desk: Desk) -> None:
    with pytest.raises(ServerUnreachable, match="no connection to a model server yet"):
        await desk.session.model_desk.installed()
