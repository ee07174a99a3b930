"""The half of the fake session behind the review, the log, sharing and the hand-off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from tui_agent.agent.review_views import ChangeView, HandoffDraft, HandoffView, PromptFile, ReviewView, SharingView
from tui_agent.agent.views import ActionResult, Inspection
from tui_agent.memory.handoff import AIM_TOKENS, HandoffRefused, packet

LOG = [
    ChangeView("2026-11-30 09:43:00", "fact", "supersede", "01a1f", "We use npm → We use pnpm"),
    ChangeView("2026-11-30 09:42:00", "fact", "confirm", "01b2f", "Name: Kacper (2026-11-30 09:42:00)"),
    ChangeView("2026-11-30 09:40:00", "working", "evicted", "h6", "uvicorn start-up (weakest)"),
]
FILES = [
    PromptFile("AGENTS.md", "/p/.agent-memory/AGENTS.md", "## User Preferences\n- short answers", tokens=12),
    PromptFile("rules.md", "/p/.agent-memory/rules.md", "- tests first [/x]", tokens=6),
]


class FakeUpkeep:
    """Mixed into ``FakeSession``; ``draft`` of a hand-off, ``mode`` of sharing and ``concerns`` can be set."""

    calls: list[tuple[str, ...]]
    facts: list[Inspection]
    waiting: list[Inspection]
    handoff_parts = HandoffDraft("Port the report", ("exclude archived", "region Northwest"), "table")
    mode: Any = "private"
    concerns: Mapping[str, str] = MappingProxyType({})
    saved: Mapping[str, str] = MappingProxyType({})
    unused_facts: tuple[Inspection, ...] = ()
    lines_by_hand: tuple[Inspection, ...] = ()

    def _did(self, verb: str, *what: str, text: str = "", undo: bool = True) -> ActionResult:
        raise NotImplementedError

    async def review(self, *, seen: bool = False) -> ReviewView:
        self.calls.append(("review", str(seen)))
        done = {call[1] for call in self.calls if call[0] in ("confirm", "correct", "expire")}
        old = [replace(item, why="not confirmed since 2026-08-15") for item in self.facts if item.ref not in done]
        foreign = [replace(item, source="README.md (file, not your words)") for item in self.facts[-1:]]
        return ReviewView(
            queue=tuple(old[:3]),
            queue_total=len(old),
            new=tuple(foreign),
            waiting=tuple(self.waiting),
            unused=self.unused_facts,
            fetchable=(),
            by_hand=self.lines_by_hand,
            by_hand_total=len(self.lines_by_hand),
            live=len(self.facts),
            rows=len(self.facts) + 2,
            health="4 of 6 rows live",
        )

    async def change_log(self, ref: str = "", zone: str = "", limit: int = 300) -> list[ChangeView]:
        return [line for line in LOG if not zone or line.zone == zone]

    async def prompt_files(self) -> list[PromptFile]:
        return list(FILES)

    async def notes_counted(self) -> tuple[int, int]:
        return 2, 40

    async def sharing(self) -> SharingView:
        return SharingView(self.mode, ("rules.md",), ())

    async def share(self, on: bool, *, anyway: bool = False) -> ActionResult:
        if on and self.concerns and not anyway:
            return ActionResult(False, "1 place in it looks personal.", extra=dict(self.concerns))
        self.mode = "shared" if on else "private"
        return self._did("share", str(on), text="Done.", undo=False)

    async def set_expiry(self, ref: str, when: str) -> ActionResult:
        return self._did("set_expiry", ref, when, text=f"Holds until {when}.")

    async def undo_correction(self, ref: str) -> ActionResult:
        return self._did("undo_correction", ref, text="This holds again.", undo=False)

    async def promote(self, ref: str) -> ActionResult:
        return self._scope(ref, "promote", "demote")

    async def demote(self, ref: str) -> ActionResult:
        return self._scope(ref, "demote", "promote")

    def _scope(self, ref: str, verb: str, back: str) -> ActionResult:
        self.facts = [
            replace(item, actions=(*(a for a in item.actions if a != verb), back)) if item.ref == ref else item
            for item in self.facts
        ]
        return self._did(verb, ref)

    async def handoff_draft(self) -> HandoffDraft:
        return self.handoff_parts

    async def handoff(
        self, task: str, requirements: Sequence[str], form: str, *, confirmed: bool = False
    ) -> HandoffView:
        try:
            made = packet({"task": task, "requirements": list(requirements), "format": form}).confirmed(confirmed)
        except HandoffRefused as error:
            return HandoffView(refused=str(error), aim=AIM_TOKENS)
        return HandoffView(made.text(indent=2), made.tokens, AIM_TOKENS, confirmed=confirmed)

    async def save_handoff(
        self,
        name: str,
        task: str,
        requirements: Sequence[str],
        form: str,
        *,
        confirmed: bool = False,
        replace: bool = False,
    ) -> ActionResult:
        if name in self.saved and not replace:
            return ActionResult(False, f"{name} exists already.", extra={"exists": name})
        self.saved = {**self.saved, name: (await self.handoff(task, requirements, form, confirmed=confirmed)).text}
        return self._did("save_handoff", name, str(confirmed), text=f"Written to {name}.", undo=False)
