"""Writing: newlines, history, drafts, pastes, commands, queue."""

from __future__ import annotations

import pytest
from conftest import driven, notices, screen_text, wait_until
from fake_session import FakeSession, Wait
from textual import events
from textual._xterm_parser import XTermParser

from tui_agent.agent.events import TextDelta
from tui_agent.tui.terminal import teach_alt_enter


async def test_enter_sends_and_the_editor_is_empty_again() -> None:
    async with driven() as (app, pilot, session):
        await pilot.press(*"hi [/x]", "enter")
        await wait_until(pilot, lambda: ("send", "hi [/x]") in session.calls)
        assert app.chat.composer.text == ""
        await wait_until(pilot, lambda: "Answer to hi [/x]." in screen_text(app))


@pytest.mark.parametrize("key", ["ctrl+j", "shift+enter", "alt+enter"])
async def test_three_keys_start_a_new_line(key: str) -> None:
    async with driven() as (app, pilot, session):
        await pilot.press("a", key, "b")
        assert app.chat.composer.text == "a\nb"
        assert not any(call[0] == "send" for call in session.calls)


async def test_printable_text_always_inserts() -> None:
    async with driven() as (app, pilot, session):
        for character in "jkpyswudrGq? [1ł漢":
            app.post_message(events.Key("space" if character == " " else character, character))
        await wait_until(pilot, lambda: app.chat.composer.text == "jkpyswudrGq? [1ł漢")
        assert session.calls == [call for call in session.calls if call[0] in ("start", "recall_of")]


async def test_up_and_down_walk_through_earlier_prompts() -> None:
    async with driven(FakeSession(prompts=["first", "second\nline"])) as (app, pilot, _):
        await pilot.press(*"new", "up")
        assert app.chat.composer.text == "second\nline"
        await pilot.press("up", "up")
        assert app.chat.composer.text == "first"
        await pilot.press("down", "down", "down")
        assert app.chat.composer.text == "new"


async def test_the_draft_is_saved_as_typed_and_restored() -> None:
    session = FakeSession()
    async with driven(session) as (app, pilot, _):
        await pilot.press(*"half a tho")
        await wait_until(pilot, lambda: session.draft == "half a tho")
    async with driven(session) as (app, _, _again):
        assert app.chat.composer.text == "half a tho"


async def test_quitting_keeps_the_draft_and_what_was_queued() -> None:
    session = FakeSession()
    session.scripts = [[TextDelta("a"), Wait()]]
    async with driven(session) as (app, pilot, _):
        await pilot.press("x", "enter")
        await wait_until(pilot, lambda: app.chat.answer is not None)
        await pilot.press("y", "enter", "z")
        await pilot.press("ctrl+q")
        await wait_until(pilot, lambda: session.closed)
    assert session.draft == "y\n\nz"
    assert ("stop",) in session.calls


@pytest.mark.parametrize("paste", ["x" * 1_000_000, "line\n" * 6_000], ids=["one line", "many lines"])
async def test_a_huge_paste_becomes_a_chip_and_is_sent_whole(paste: str) -> None:
    async with driven() as (app, pilot, session):
        app.post_message(events.Paste(paste))
        await wait_until(pilot, lambda: app.chat.composer.attachments)
        assert app.chat.composer.text == ""
        assert "▣ paste 1 · " in screen_text(app)
        await pilot.press(*"see", "enter")
        await wait_until(pilot, lambda: any(call[0] == "send" for call in session.calls))
        assert next(call for call in session.calls if call[0] == "send")[1] == f"see\n\n[paste 1]\n{paste}"
        assert app.chat.composer.attachments == []


async def test_a_chip_can_be_taken_off() -> None:
    async with driven() as (app, pilot, _):
        app.post_message(events.Paste("y" * 6_000))
        await wait_until(pilot, lambda: app.chat.composer.attachments)
        await pilot.press("alt+x")
        await wait_until(pilot, lambda: "▣" not in screen_text(app))


async def test_a_normal_paste_is_inserted() -> None:
    async with driven() as (app, pilot, _):
        app.post_message(events.Paste("two\nlines"))
        await wait_until(pilot, lambda: app.chat.composer.text == "two\nlines")


async def test_a_paste_as_terminals_send_it_keeps_its_lines() -> None:
    # Each line ends with a carriage return there; 6 kB in short lines are neither large nor one long line.
    lines = [f"line {number}" for number in range(500)]
    async with driven() as (app, pilot, _):
        app.post_message(events.Paste("\r".join(lines)))
        await wait_until(pilot, lambda: app.chat.composer.text == "\n".join(lines))
        app.post_message(events.Paste("\r\n".join(lines * 5)))
        await wait_until(pilot, lambda: app.chat.composer.attachments)
        assert " · 2,500 lines · " in app.chat.composer.attachments[0].chip


async def test_a_message_while_busy_waits_in_sight_and_can_be_edited() -> None:
    wait = Wait()
    session = FakeSession()
    session.scripts = [[TextDelta("a"), wait]]
    async with driven(session) as (app, pilot, _):
        await pilot.press("x", "enter")
        await wait_until(pilot, lambda: app.chat.running)
        await pilot.press(*"later", "enter")
        await wait_until(pilot, lambda: "queued  later" in screen_text(app))
        await pilot.press("alt+q")
        await wait_until(pilot, lambda: app.chat.composer.text == "later")
        assert "queued" not in screen_text(app)
        await pilot.press("!", "enter")
        wait.go.set()
        await wait_until(pilot, lambda: ("send", "later!") in session.calls)


async def test_a_stop_returns_what_was_queued() -> None:
    session = FakeSession()
    session.scripts = [[TextDelta("partial words"), Wait()]]
    async with driven(session) as (app, pilot, _):
        await pilot.press("x", "enter")
        await wait_until(pilot, lambda: app.chat.answer is not None)
        await pilot.press(*"later", "enter")
        await pilot.press("escape")
        await wait_until(pilot, lambda: not app.chat.running)
        assert app.chat.composer.text == "later"
        assert "stopped here" in screen_text(app)
        assert "partial words" in screen_text(app)


async def test_a_slash_lists_commands_and_tab_completes() -> None:
    async with driven() as (app, pilot, session):
        await pilot.press("slash")
        await wait_until(pilot, lambda: "/rebuild" in screen_text(app))
        await pilot.press(*"go", "tab")
        assert app.chat.composer.text == "/goal "
        await pilot.press(*"ship it", "enter")
        await wait_until(pilot, lambda: session.goal == "ship it")
        await wait_until(pilot, lambda: "goal: ship it" in screen_text(app))


async def test_escape_closes_the_list_of_commands_first() -> None:
    async with driven() as (app, pilot, _):
        await pilot.press("slash")
        await wait_until(pilot, lambda: app.chat.composer.editor.choosing)
        await pilot.press("escape")
        assert not app.chat.composer.editor.choosing
        assert app.chat.composer.text == "/"


async def test_the_list_of_commands_is_moved_by_the_arrows_and_run_by_enter() -> None:
    async with driven() as (app, pilot, session):
        await pilot.press("slash", "r")
        await wait_until(pilot, lambda: app.chat.composer.editor.choosing)
        await pilot.press("enter")
        await wait_until(pilot, lambda: ("rebuild_prompt",) in session.calls)
        assert app.chat.composer.text == ""


async def test_an_unknown_command_is_told_and_stays() -> None:
    async with driven() as (app, pilot, session):
        await pilot.press(*"/nope", "enter")
        await wait_until(pilot, lambda: any("/nope" in words for words in notices(app)))
        assert app.chat.composer.text == "/nope"
        assert not any(call[0] == "send" for call in session.calls)


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("/new", ("switch", "new")),
        ("/undo", ("undo",)),
        ("/model gemma3:4b", ("switch_model", "gemma3:4b")),
        ("/rebuild", ("rebuild_prompt",)),
    ],
)
async def test_commands_reach_the_session(line: str, call: tuple[str, ...]) -> None:
    async with driven() as (app, pilot, session):
        app.chat.composer.editor.insert(line)
        await pilot.pause()
        await pilot.press("escape", "enter")
        await wait_until(pilot, lambda: call in session.calls)


async def test_a_path_is_no_command() -> None:
    async with driven() as (app, pilot, session):
        app.chat.composer.editor.insert("/etc/hosts has a typo")
        await pilot.press("enter")
        await wait_until(pilot, lambda: ("send", "/etc/hosts has a typo") in session.calls)


async def test_tab_walks_through_the_parts() -> None:
    async with driven() as (app, pilot, _):
        seen = []
        for _number in range(5):
            await pilot.press("tab")
            seen.append(app.focused.__class__.__name__)
        assert seen == ["HotList", "ColdList", "RecalledList", "Transcript", "Editor"]


async def test_keys_typed_faster_than_the_screen_keep_their_order() -> None:
    async with driven() as (app, pilot, session):
        for key, character in (
            ("a", "a"),
            ("ctrl+j", "\n"),
            ("b", "b"),
            ("enter", "\r"),
            ("c", "c"),
            ("alt+enter", None),
        ):
            app.post_message(events.Key(key, character))
        await wait_until(pilot, lambda: ("send", "a\nb") in session.calls)
        await wait_until(pilot, lambda: app.chat.composer.text == "c\n")


async def test_alt_with_a_letter_is_a_key_and_not_that_letter() -> None:
    async with driven() as (app, pilot, session):
        app.post_message(events.Key("alt+u", "u"))
        await wait_until(pilot, lambda: ("undo",) in session.calls)
        assert app.chat.composer.text == ""


def test_escape_and_return_is_read_as_alt_enter() -> None:
    teach_alt_enter()
    read = [event.key for event in XTermParser().feed("\x1b\r") if isinstance(event, events.Key)]
    assert read == ["alt+enter"]


async def test_keys_for_sending_and_newlines_can_be_swapped() -> None:
    keymap = {"composer.send": "ctrl+j", "composer.newline": "enter"}
    async with driven(keymap=keymap) as (app, pilot, session):
        await pilot.press("a", "enter", "b")
        assert app.chat.composer.text == "a\nb"
        await pilot.press("ctrl+j")
        await wait_until(pilot, lambda: ("send", "a\nb") in session.calls)
