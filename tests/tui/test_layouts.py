"""Three widths: stacked panes, one tabbed pane, a strip with full-screen panes."""

from __future__ import annotations

import pytest
from conftest import MEDIUM, NARROW, WIDE, driven, screen_text, wait_until


async def test_wide_shows_all_three_panes() -> None:
    async with driven(size=WIDE) as (app, _, _session):
        shown = screen_text(app)
        assert all(word in shown for word in ("HOT", "COLD", "RECALLED"))
        assert "F1 help" in shown.splitlines()[-1]
        assert not app.chat.query_one("#tabs").display
        assert not app.chat.query_one("#strip").display


async def test_medium_shows_one_pane_under_tabs() -> None:
    async with driven(size=MEDIUM) as (app, pilot, _):
        shown = screen_text(app)
        assert "Hot 7 ◆2" in shown
        assert "HOT" in shown
        assert "COLD" not in shown
        await pilot.press("f3")
        await wait_until(pilot, lambda: "COLD" in screen_text(app))
        assert "HOT" not in screen_text(app)
        await pilot.press("escape")
        assert "COLD" in screen_text(app)


async def test_a_tab_can_be_clicked() -> None:
    async with driven(size=MEDIUM) as (app, pilot, _):
        tabs = app.chat.query_one("#tabs")
        line = screen_text(app).splitlines()[tabs.region.y]
        await pilot.click("#tabs", offset=(line.index("Recalled") - tabs.region.x, 0))
        await wait_until(pilot, lambda: "RECALLED" in screen_text(app))


async def test_narrow_shows_counts_and_panes_on_the_whole_screen() -> None:
    async with driven(size=NARROW) as (app, pilot, _):
        shown = screen_text(app)
        assert "hot 7 ◆2 · cold 5 · recalled 1 · review 1" in shown
        assert "HOT" not in shown
        await pilot.press("f2")
        await wait_until(pilot, lambda: "HOT" in screen_text(app))
        assert not app.chat.query_one("#left").display
        assert "p pin" in screen_text(app)
        await pilot.press("f4")
        await wait_until(pilot, lambda: "RECALLED" in screen_text(app))
        await pilot.press("f4")
        await wait_until(pilot, lambda: app.chat.query_one("#left").display)
        assert app.chat.composer.editor.has_focus


@pytest.mark.parametrize("size", [WIDE, MEDIUM, NARROW])
async def test_nothing_is_wider_than_the_screen_and_the_editor_is_in_sight(size: tuple[int, int]) -> None:
    async with driven(size=size) as (app, pilot, _):
        editor = app.chat.composer.editor
        assert app.chat.region.contains_region(editor.region)
        for widget in app.chat.query("*"):
            if widget.display and widget.region:
                assert widget.region.right <= size[0], widget
        editor.insert("\n".join("line" for _ in range(40)))
        await pilot.pause()
        assert editor.region.height <= 10
        assert app.chat.transcript.region.height >= 3


async def test_growing_and_shrinking_the_terminal_changes_the_layout() -> None:
    async with driven(size=WIDE) as (app, pilot, _):
        await pilot.press("f2")
        await pilot.resize_terminal(*NARROW)
        await wait_until(pilot, lambda: app.chat.size_name == "narrow" and "HOT" in screen_text(app))
        await pilot.press("escape")
        await pilot.resize_terminal(*MEDIUM)
        await wait_until(pilot, lambda: app.chat.size_name == "medium" and "Hot 7" in screen_text(app))
        await pilot.resize_terminal(*WIDE)
        await wait_until(pilot, lambda: app.chat.size_name == "wide" and "COLD" in screen_text(app))
