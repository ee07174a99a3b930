"""What is written by hand: a note as a command, a text of several lines, a search."""

from __future__ import annotations

from dataclasses import replace

from conftest import driven, notices, screen_text, wait_until
from textual.widgets import TextArea

from tui_agent.tui.commands import BY_NAME
from tui_agent.tui.screens.edit_text import EditText


async def test_slash_note_puts_a_pinned_note_into_the_hot_pane() -> None:
    async with driven() as (app, pilot, session):
        app.chat.composer.editor.replace_all("/note deploys happen on Friday")
        await pilot.press("enter")
        await wait_until(pilot, lambda: ("note", "deploys happen on Friday") in session.calls)
        await wait_until(pilot, lambda: "deploys happen on Friday" in screen_text(app))
        assert app.chat.hot.view.rows[0].pinned
        assert any("Noted." in words for words in notices(app))
        assert not [call for call in session.calls if call[0] == "send"]


async def test_slash_note_from_the_palette_begins_the_command() -> None:
    async with driven() as (app, pilot, _):
        app.command_from_palette(BY_NAME["note"])
        await wait_until(pilot, lambda: app.chat.composer.text == "/note ")


async def test_a_text_of_several_lines_is_edited_as_several_lines() -> None:
    async with driven() as (app, pilot, session):
        text = "def retry_it():\n\treturn 1\n"
        session.hot_items[0] = replace(session.hot_items[0], text=text)
        app.chat.refresh_panes()
        await wait_until(pilot, lambda: app.chat.hot.view.rows[0].text == text)
        await pilot.press("f2", "e")
        await wait_until(pilot, lambda: isinstance(app.screen, EditText) and app.screen.ready)
        area = app.screen.query_one(TextArea)
        assert area.text == text.strip()
        await pilot.press("down", "end", "ctrl+j", "#", "enter")
        await wait_until(pilot, lambda: app.screen is app.chat)
        await wait_until(pilot, lambda: [call for call in session.calls if call[0] == "edit"])
        assert session.calls[-1] == ("edit", "hot:h0", f"{text.strip()}\n#")
        await pilot.press("e")
        await wait_until(pilot, lambda: isinstance(app.screen, EditText) and app.screen.ready)
        await pilot.press("x", "escape")
        await wait_until(pilot, lambda: app.screen is app.chat)
        assert len([call for call in session.calls if call[0] == "edit"]) == 1


async def test_what_is_searched_for_in_the_cold_pane_is_seen_while_it_is_typed() -> None:
    async with driven() as (app, pilot, _):
        await pilot.press("f3", "slash", *"migr")
        await wait_until(pilot, lambda: app.chat.cold.view.query == "migr")
        await wait_until(pilot, lambda: any(line.rstrip().endswith(" migr") for line in screen_text(app).splitlines()))


async def test_slash_tools_switches_tools_for_one_message_or_the_session() -> None:
    async with driven() as (app, pilot, session):
        for line, how in (("/tools", "once"), ("/tools off", "off"), ("/tools ON", "on")):
            app.chat.composer.editor.replace_all(line)
            await pilot.press("enter")
            await wait_until(pilot, lambda wanted=how: ("offer_tools", wanted) in session.calls, line)  # type: ignore[misc]
        app.chat.composer.editor.replace_all("/tools maybe")
        await pilot.press("enter")
        await wait_until(pilot, lambda: any("/tools off and /tools on" in words for words in notices(app)))
        assert len([call for call in session.calls if call[0] == "offer_tools"]) == 3
        assert not [call for call in session.calls if call[0] == "send"]
