"""What keys do to the fact under the cursor, the same in every list of facts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tui_agent.agent.views import ActionResult, Inspection
from tui_agent.tui.screens.inspector import InspectorScreen, correct, delete_forever, set_expiry
from tui_agent.tui.screens.panel import Panel, Result

FACT_KEYS = ("confirm", "correct", "expire", "until", "delete")
WAITING_KEYS = ("approve", "reject")


class FactKeys(Panel[Result]):
    """A panel whose current row is a fact, or a proposal that waits. The subclass names it and loads the list anew."""

    def current_item(self) -> tuple[Inspection, bool] | None:
        """The item under the cursor, and whether it waits for approval."""
        raise NotImplementedError

    def load(self) -> None:
        """Fetch the list again."""
        raise NotImplementedError

    def open_item(self, ref: str) -> None:
        """Everything known of one item."""
        self.app.push_screen(InspectorScreen(ref), lambda _: self.load())

    def changed(self, result: ActionResult) -> None:
        """An action is done."""
        if self.is_attached:
            self.load()

    def _on_fact(self, verb: Callable[[str], Awaitable[ActionResult]]) -> None:
        current = self.current_item()
        if current is not None and not current[1]:
            self.host.act(verb(current[0].ref), self.changed)

    def _on_waiting(self, verb: Callable[[str], Awaitable[ActionResult]]) -> None:
        current = self.current_item()
        if current is not None and current[1]:
            self.host.act(verb(current[0].ref.partition(":")[2]), self.changed)

    def _ask(self, question: Callable[[Panel[Any], Inspection, Callable[[ActionResult], object]], None]) -> None:
        current = self.current_item()
        if current is not None and not current[1]:
            question(self, current[0], self.changed)

    def action_approve(self) -> None:
        self._on_waiting(self.session.approve)

    def action_reject(self) -> None:
        self._on_waiting(self.session.reject)

    def action_confirm(self) -> None:
        self._on_fact(self.session.confirm)

    def action_expire(self) -> None:
        self._on_fact(self.session.expire)

    def action_correct(self) -> None:
        self._ask(correct)

    def action_until(self) -> None:
        self._ask(set_expiry)

    def action_delete(self) -> None:
        current = self.current_item()
        if current is None or current[1]:
            return
        # The list knows one line of it; what goes with it is in the inspection.
        self.host.fetch(
            self.session.inspect(current[0].ref), lambda item: delete_forever(self, item, self.changed), owner=self
        )

    def action_undo(self) -> None:
        self.host.act(self.session.undo(), self.changed)
