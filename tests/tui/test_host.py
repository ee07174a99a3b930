"""What the application hands to its screens, and what it keeps from them."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import driven

from tui_agent.tui.host import Done


async def test_what_comes_in_while_the_application_closes_reaches_no_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    async with driven() as (app, _, _):
        close_all = app._close_all

        async def closing() -> None:
            app.post_message(Done(lambda: shown.append(app.chat.hot)))
            await close_all()

        monkeypatch.setattr(app, "_close_all", closing)
        app.post_message(Done(lambda: shown.append("before")))
    assert shown == ["before"]
