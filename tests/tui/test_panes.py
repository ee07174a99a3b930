"""The memory panes: every key, and what it changes on screen."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conftest import NARROW, WIDE, driven, notices, screen_text, wait_until
from fake_session import FakeSession
from textual.widgets import Input

from tui_agent.memory.types import RecalledItem, Term
from tui_agent.tui.screens.inspector import InspectorScreen
from tui_agent.tui.screens.why import WhyScreen
from tui_agent.tui.widgets.recalled_pane import term_line


async def test_hot_rows_show_pin_score_bar_kind_tokens_and_text() -> None:
    async with driven() as (app, _, _session):
        line = next(line for line in screen_text(app).splitlines() if "retry_it lives" in line)
        for part in ("◆", "4.12", "━━━━", "note", "24", "›"):
            assert part in line
        assert "1,412 of 2,048 tokens · pins 2 %" in screen_text(app)
        assert "evicted 09:43" in screen_text(app)


async def test_p_pins_and_lets_go() -> None:
    async with driven() as (app, pilot, session):
        await pilot.press("f2", "j", "p")
        await wait_until(pilot, lambda: ("pin", "hot:h1") in session.calls)
        await wait_until(pilot, lambda: sum(row.pinned for row in app.chat.hot.view.rows) == 3)
        assert app.chat.hot.list.highlighted_key == "hot:h1"
        await pilot.press("p")
        await wait_until(pilot, lambda: ("unpin", "hot:h1") in session.calls)
        await wait_until(pilot, lambda: sum(row.pinned for row in app.chat.hot.view.rows) == 2)


async def test_f_puts_away_and_r_brings_back() -> None:
    async with driven() as (app, pilot, session):
        await pilot.press("f2", "j", "f")
        await wait_until(pilot, lambda: ("put_away", "hot:h1") in session.calls)
        await wait_until(pilot, lambda: app.chat.cold.view.total == 6)
        assert "new module attempts.py" not in "".join(row.text for row in app.chat.hot.view.rows)
        assert any("Put away." in words and "alt+u undo" in words for words in notices(app))
        await pilot.press("f3", "home", "r")
        await wait_until(pilot, lambda: ("bring_back", "cold:h1") in session.calls)
        await wait_until(pilot, lambda: app.chat.cold.view.total == 5)


async def test_t_touches_and_the_order_changes() -> None:
    async with driven() as (app, pilot, session):
        await pilot.press("f2", "end", "t")
        await wait_until(pilot, lambda: ("touch", "hot:h6") in session.calls)
        await wait_until(pilot, lambda: app.chat.hot.view.rows[0].id == "h6")
        assert app.chat.hot.list.highlighted_key == "hot:h6"


async def test_e_edits_the_text() -> None:
    async with driven() as (app, pilot, session):
        await pilot.press("f2", "e")
        await wait_until(pilot, lambda: isinstance(app.focused, Input))
        assert isinstance(app.focused, Input)
        app.focused.value = "retry_it takes attempts and delay"
        await pilot.press("enter")
        await wait_until(pilot, lambda: ("edit", "hot:h0", "retry_it takes attempts and delay") in session.calls)
        await wait_until(pilot, lambda: "retry_it takes attempts" in screen_text(app))


async def test_s_sorts_by_score_age_and_tokens() -> None:
    async with driven() as (app, pilot, _):
        await pilot.press("f2", "s")
        await wait_until(pilot, lambda: "by age" in screen_text(app))
        await pilot.press("s")
        await wait_until(pilot, lambda: app.chat.hot.view.rows[0].tokens == 640)
        assert "by tokens" in screen_text(app)
        await pilot.press("s")
        await wait_until(pilot, lambda: "by score" in screen_text(app))


@pytest.mark.parametrize(("pane", "ref"), [("f2", "hot:h0"), ("f3", "cold:c0")])
async def test_enter_inspects(pane: str, ref: str) -> None:
    async with driven() as (app, pilot, session):
        await pilot.press(pane, "enter")
        await wait_until(pilot, lambda: isinstance(app.screen, InspectorScreen))
        await wait_until(pilot, lambda: ("inspect", ref) in session.calls)
        await pilot.press("escape")
        assert app.screen is app.chat


async def test_an_item_that_is_gone_is_said_and_leaves_no_empty_inspector(monkeypatch: pytest.MonkeyPatch) -> None:
    async def gone(_self: FakeSession, _ref: str) -> None:
        raise LookupError("That fact is not there any more.")

    monkeypatch.setattr(FakeSession, "inspect", gone)
    async with driven() as (app, pilot, _session):
        await pilot.press("f2", "enter")
        await wait_until(pilot, lambda: any("not there any more" in words for words in notices(app)))
        await wait_until(pilot, lambda: app.screen is app.chat)


@pytest.mark.parametrize("pane", ["f2", "f3", "f4"])
async def test_u_takes_back(pane: str) -> None:
    async with driven() as (_, pilot, session):
        await pilot.press(pane, "u")
        await wait_until(pilot, lambda: ("undo",) in session.calls)


async def test_slash_searches_what_was_put_away() -> None:
    async with driven() as (app, pilot, _):
        await pilot.press("f3", "slash", *"migr")
        await wait_until(pilot, lambda: app.chat.cold.view.query == "migr")
        assert [row.text for row in app.chat.cold.view.rows] == ["migration output"]
        assert "1 of 5" in screen_text(app)
        await pilot.press("enter", "r")
        await wait_until(pilot, lambda: app.chat.cold.view.total == 4)
        assert "Nothing put away matches “migr”." in screen_text(app)
        await pilot.press("escape")
        await wait_until(pilot, lambda: app.chat.cold.view.query == "")
        assert len(app.chat.cold.view.rows) == 4


async def test_what_is_put_away_is_in_sight_and_the_row_that_keys_act_on_is_always() -> None:
    def chosen_is_in_view() -> bool:
        rows = app.chat.cold.list
        return rows.scroll_offset.y <= (rows.highlighted or 0) < rows.scroll_offset.y + rows.size.height

    async with driven() as (app, pilot, _session):
        await pilot.press("f2")
        for total in (6, 7, 8):
            await pilot.press("f")
            await wait_until(pilot, lambda total=total: app.chat.cold.view.total == total)
        rows = app.chat.cold.list
        await wait_until(pilot, lambda: rows.highlighted == 0)
        assert rows.scroll_offset.y == 0
        await pilot.press("f3", "end")
        chosen = rows.highlighted_key
        await pilot.press("f2", "f")
        await wait_until(pilot, lambda: app.chat.cold.view.total == 9)
        await wait_until(pilot, lambda: rows.highlighted_key == chosen and chosen_is_in_view())


async def test_the_cold_pane_says_why_the_highlighted_item_rests_there() -> None:
    async with driven() as (app, pilot, _):
        assert "over budget, weakest (0.52) · rests 2 steps more" in screen_text(app)
        await pilot.press("f3", "j", "j")
        await wait_until(pilot, lambda: "put away by you" in screen_text(app))


async def test_keys_of_the_recalled_pane_act_on_the_fact() -> None:
    async with driven() as (app, pilot, session):
        await pilot.press("alt+up", "f4")
        fact = "fact:01kf3m9zz00000000000000a1f"
        await wait_until(pilot, lambda: app.chat.recalled.list.highlighted_key == fact)
        await pilot.press("p")
        await wait_until(pilot, lambda: ("pin", fact) in session.calls)
        await pilot.press("c")
        await wait_until(pilot, lambda: ("confirm", fact) in session.calls)
        await pilot.press("f")
        await wait_until(pilot, lambda: ("put_away", fact) in session.calls)
        await pilot.press("enter")
        await wait_until(pilot, lambda: ("inspect", fact) in session.calls)
        await pilot.press("escape", "w")
        await wait_until(pilot, lambda: isinstance(app.screen, WhyScreen))


async def test_recalled_items_show_age_terms_and_what_just_missed() -> None:
    async with driven() as (app, pilot, _):
        await pilot.press("alt+up")
        await wait_until(pilot, lambda: "just missed" in screen_text(app))
        shown = screen_text(app)
        assert "words .44  meaning .29  fresh .05  weight .03" in shown
        assert "▲ 202 days unconfirmed" in shown
        assert "confirmed 2026-11-02" in shown
        assert "below the threshold" in shown
        assert "replaced by a newer one" in shown


async def test_near_misses_can_be_inspected_too() -> None:
    async with driven() as (_, pilot, session):
        await pilot.press("alt+up", "f4", "end", "enter")
        await wait_until(pilot, lambda: any(call[0] == "inspect" and call[1].endswith("c18") for call in session.calls))


async def test_empty_panes_say_what_will_appear_and_how() -> None:
    async with driven(FakeSession(empty=True)) as (app, _, _session):
        shown = " ".join(screen_text(app).split())
        assert "Files read, edits, test output" in shown
        assert "Nothing was put away yet." in shown
        assert "What is recalled from memory" in shown


async def test_f2_goes_there_and_back() -> None:
    async with driven() as (app, pilot, _):
        await pilot.press("f2")
        assert app.chat.hot.list.has_focus
        await pilot.press("f2")
        assert app.chat.composer.editor.has_focus
        await pilot.press("f3", "escape")
        assert app.chat.composer.editor.has_focus


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_a_click_highlights_and_a_double_click_inspects(size: tuple[int, int]) -> None:
    async with driven(size=size) as (app, pilot, _):
        await pilot.press("f2")
        await pilot.click(app.chat.hot.list, offset=(10, 2))
        assert app.chat.hot.list.highlighted == 2
        await pilot.click(app.chat.hot.list, offset=(10, 2), times=2)
        await wait_until(pilot, lambda: isinstance(app.screen, InspectorScreen))


async def test_keys_written_below_a_pane_can_be_clicked() -> None:
    async with driven() as (app, pilot, session):
        await pilot.press("f2")
        await wait_until(pilot, lambda: "f put away" in screen_text(app))
        bar = app.chat.query_one("#side-keys")
        line = screen_text(app).splitlines()[bar.region.y]
        await pilot.click(bar, offset=(line.index("f put away") - bar.region.x, 0))
        await wait_until(pilot, lambda: ("put_away", "hot:h0") in session.calls)


async def test_a_hot_zone_over_its_budget_says_that_pins_did_it() -> None:
    async with driven() as (app, pilot, session):
        view = await session.hot()
        app.chat.hot.show(replace(view, used=2100, pinned_tokens=2090, last_event="Pinned items alone exceed it."))
        await pilot.pause()
        shown = screen_text(app)
        assert "2,100 of 2,048 tokens · pins 102 %" in shown
        assert "over budget: pins" in shown
        assert "Pinned items alone exceed it." in shown


def test_the_line_of_terms_leaves_out_what_says_nothing() -> None:
    terms = (Term("words", 0.0), Term("meaning", 0.3), Term("related", 0.021), Term("age", -0.004), Term("pin", 0.03))
    item = RecalledItem("fact", "f1", "The lamp is blue.", 0.35, terms)
    assert term_line(item) == "meaning .30  related .02  pin .03"
    assert term_line(replace(item, terms=(Term("words", 0.0),))) == "words .00"
