"""The memory tools: ``edit_file``, ``read_memory``, ``remember``, ``recall``, ``search_history``, ``write_todos``.

None of them decides what becomes memory: every durable line is a proposal to the gate, with the user's message of
this turn as the only evidence.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from tui_agent.agent.events import Event, MemoryChanged
from tui_agent.agent.prompt import render_item
from tui_agent.agent.tools.base import JSON, Param, Tool, ToolResult, TurnContext, failed
from tui_agent.agent.tools.conversation import SearchMessages, search_conversation
from tui_agent.memory.extraction_parse import read_kind
from tui_agent.memory.files import EditRefused
from tui_agent.memory.types import Action, Fact, Origin, Proposal, RecallRecord, Verdict

if TYPE_CHECKING:
    from tui_agent.agent.stores import Stores

RecallFor = Callable[[str, TurnContext], Awaitable[RecallRecord]]
SaveTodos = Callable[[list[str]], Awaitable[None]]

_LIST_MARK = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+")
_PREFIXES = ("./", "/", ".agent-memory/", "memory/")
# What a small model writes for the files it was told of, without their folder.
_SHORT_NAMES = {
    "user.md": "knowledge/user.md",
    "tech-stack.md": "knowledge/tech-stack.md",
    "agents.md": "AGENTS.md",
}


def memory_path(path: str) -> str:
    """The path of a memory file as the stores name it; what cannot be one is left for the stores to refuse."""
    clean = path.strip().replace("\\", "/")
    changed = True
    while changed:
        changed = False
        for prefix in _PREFIXES:
            if clean.startswith(prefix):
                clean = clean[len(prefix) :]
                changed = True
    if clean.casefold().startswith("projects/"):
        return f"knowledge/{clean}"
    return _SHORT_NAMES.get(clean.casefold(), clean)


def proposals_of(text: str) -> list[str]:
    """The statements in a text a model wants to append: one a line, without headings ("Log:"), rules and list marks."""
    result = []
    for line in text.splitlines():
        bare = _LIST_MARK.sub("", line).strip()
        if not bare or bare.startswith("#") or bare.endswith(":") or set(bare) <= set("-=_*`~ "):
            continue
        result.append(bare)
    return result


def verdict_event(verdict: Verdict) -> MemoryChanged:
    """The gate's verdict as an event for panes and transcript."""
    what = {
        Action.LIVE: "superseded" if verdict.superseded_id else "saved",
        Action.TOUCH: "touched",
        Action.QUARANTINE: "quarantined",
        Action.REFUSE: "refused",
    }[verdict.action]
    return MemoryChanged(
        what,
        "fact",
        verdict.fact_id or "",
        verdict.text if verdict.action is not Action.REFUSE else "",
        verdict.reason,
        verdict.target,
        undo=verdict.action is Action.LIVE,
    )


def verdict_text(verdict: Verdict) -> str:
    """What the model reads of a verdict."""
    if verdict.action is Action.LIVE:
        where = f" in {verdict.target}" if verdict.target and verdict.target != "fact" else ""
        replaced = " It replaces the older statement on the same subject." if verdict.superseded_id else ""
        return f'Saved{where}: "{verdict.text}".{replaced}'
    if verdict.action is Action.TOUCH:
        return f'Already known and confirmed now: "{verdict.text}".'
    if verdict.action is Action.QUARANTINE:
        return f"Not saved; it waits for the user's approval. {verdict.reason}"
    return f"Not saved. {verdict.reason}"


def memory_tools(
    stores: Stores,
    recall_for: RecallFor,
    save_todos: SaveTodos,
    keep_messages: int,
    search_messages: SearchMessages | None = None,
) -> list[Tool]:
    """The tools over ``stores``; ``recall_for`` searches facts, put-away items, files and messages."""
    handlers = _Handlers(stores, recall_for, save_todos, search_messages)
    return [
        Tool(
            "edit_file",
            "Save to a memory file. Empty old_string appends; else it must occur exactly once.",
            {
                "path": Param("string", "AGENTS.md, knowledge/user.md, knowledge/projects/<name>.md, …"),
                "old_string": Param("string"),
                "new_string": Param("string"),
            },
            handlers.edit_file,
        ),
        Tool("read_memory", "Read a memory file.", {"path": Param("string", "empty lists all")}, handlers.read_memory),
        Tool(
            "remember",
            "Save one fact, decision or convention the user stated, in the user's words.",
            {
                "fact": Param("string"),
                "category": Param("string", "fact, preference, decision, convention or problem", required=False),
                "importance": Param("integer", "1-10", required=False),
            },
            handlers.remember,
        ),
        Tool("recall", "Search long-term memory.", {"query": Param("string")}, handlers.recall),
        Tool(
            "search_history",
            f"Search older messages. The most recent {keep_messages} messages are already in your context.",
            {
                "query": Param("string"),
                "limit": Param("integer", "1-50", required=False),
                "role": Param("string", "user or assistant", required=False),
            },
            handlers.search_history,
        ),
        Tool(
            "write_todos",
            "Show a todo list for a task of several steps.",
            {"todos": Param("array", "start a finished one with [x]")},
            handlers.write_todos,
        ),
    ]


class _Handlers:
    def __init__(
        self, stores: Stores, recall_for: RecallFor, save_todos: SaveTodos, search_messages: SearchMessages | None
    ) -> None:
        self._search_messages = search_messages
        self._stores = stores
        self._recall_for = recall_for
        self._save_todos = save_todos

    def _proposal(self, text: str, proposer: str, turn: TurnContext, **more: Any) -> Proposal:
        return Proposal(
            text=text,
            origin=Origin.MODEL,
            proposer=proposer,
            source=f"message {turn.message_id}",
            user_text=turn.user_text,
            message_id=turn.message_id,
            **more,
        )

    async def _admit(self, text: str, proposer: str, turn: TurnContext, **more: Any) -> Verdict:
        proposal = self._proposal(text, proposer, turn, **more)
        return await self._stores.db.run(self._stores.gate.admit, proposal)

    def _result(self, verdicts: list[Verdict]) -> ToolResult:
        wrote = [v for v in verdicts if v.action in (Action.LIVE, Action.TOUCH)]
        text = "\n".join(dict.fromkeys(verdict_text(v) for v in verdicts))
        if wrote:
            summary = f'"{wrote[0].text}"' if len(wrote) == 1 else f"{len(wrote)} saved"
        else:
            summary = "waits for approval" if any(v.action is Action.QUARANTINE for v in verdicts) else "refused"
        events: list[Event] = [verdict_event(v) for v in verdicts]
        return ToolResult(
            ok=bool(wrote),
            text=text,
            summary=summary,
            item_kind="edit" if any(v.action is Action.LIVE for v in verdicts) else "",
            item_text="\n".join(f"{v.target or 'memory'}: + {v.text}" for v in wrote),
            source="; ".join(dict.fromkeys(v.target for v in wrote if v.target)),
            wrote=bool(wrote),
            events=tuple(events),
        )

    async def edit_file(self, args: JSON, turn: TurnContext) -> ToolResult:
        files = self._stores.files
        path = memory_path(str(args["path"]))
        old, new = str(args.get("old_string") or ""), str(args.get("new_string") or "")
        try:
            await self._stores.db.run(files.check_path, path)
        except EditRefused as error:
            return failed(str(error), "refused")
        statements = proposals_of(new)
        if not old:
            if not statements:
                return failed("new_string is empty, so there is nothing to save. Give the text to append.")
            verdicts = [await self._admit(s, "edit_file", turn, target=path) for s in statements]
            return self._result(_unique(verdicts))
        row = await self._row_of(path, old)
        if row is None:
            return await self._edit_prose(path, old, new, statements, turn)
        changed = proposals_of(row.target_line.replace(old, new)) or statements
        if not changed:
            return failed("Only the user deletes memory. Tell them to select it in the pane and press f or delete.")
        first = self._proposal(changed[0], "edit_file", turn, target=row.target, subject=row.subject, kind=row.kind)
        try:
            verdicts = [await self._stores.db.run(self._stores.ledger.replace, row.id, first)]
        except (LookupError, EditRefused) as error:
            return failed(str(error), "refused")
        verdicts += [await self._admit(s, "edit_file", turn, target=path) for s in changed[1:]]
        return self._result(_unique(verdicts))

    async def _row_of(self, path: str, old: str) -> Fact | None:
        """The live row whose projected line holds ``old``: then the edit is a correction of that row."""
        wanted = old.strip()
        rows: list[Fact] = await self._stores.db.run(self._stores.facts.live)
        found = [r for r in rows if r.target.partition("#")[0] == path and wanted and wanted in r.target_line]
        return found[0] if len(found) == 1 else None

    async def _edit_prose(self, path: str, old: str, new: str, statements: list[str], turn: TurnContext) -> ToolResult:
        """An edit of text the app did not write: allowed when each new statement is the user's, by the gate's proof."""
        verdicts = [
            await self._stores.db.run(
                self._stores.gate.decide,
                self._proposal(s, "edit_file", turn, target=path),
            )
            for s in statements
        ]
        blocked = [v for v in verdicts if v.action in (Action.QUARANTINE, Action.REFUSE)]
        if blocked or not verdicts:
            reason = blocked[0].reason if blocked else "Only the user deletes text from memory files."
            return failed(f"{path} was not changed. {reason}", "refused")
        try:
            result = await self._stores.db.run(self._stores.files.edit_file, path, old, new)
        except EditRefused as error:
            return failed(str(error), "refused")
        event = MemoryChanged("saved", "file", path, result.diff_line, target=path, undo=True)
        return ToolResult(
            True, f"Changed {path}: {result.diff_line}", path, "edit", result.diff_line, path, True, (event,)
        )

    async def read_memory(self, args: JSON, turn: TurnContext) -> ToolResult:
        files = self._stores.files
        path = memory_path(str(args.get("path") or ""))
        if not path:
            names = await self._stores.db.run(files.listing)
            return ToolResult(True, "\n".join(names) or "There are no memory files yet.", f"{len(names)} files")
        try:
            text = await self._stores.db.run(files.read, path)
        except EditRefused as error:
            return failed(str(error), "not found")
        return ToolResult(True, text or f"{path} is empty.", f"{len(text.splitlines())} lines", "", "", path)

    async def remember(self, args: JSON, turn: TurnContext) -> ToolResult:
        fact = str(args.get("fact") or "").strip()
        if not fact:
            return failed("The fact is empty. Give one statement of the user.")
        kind = read_kind(args["category"]) if args.get("category") else None
        given = args.get("importance")
        importance = None if given is None else min(10, max(1, int(given)))
        statements = proposals_of(fact) or [fact]
        verdicts = [await self._admit(s, "remember", turn, kind=kind, importance=importance) for s in statements]
        return self._result(_unique(verdicts))

    async def recall(self, args: JSON, turn: TurnContext) -> ToolResult:
        query = str(args.get("query") or "").strip()
        if not query:
            return failed("The query is empty. Give words to look for.")
        record = await self._recall_for(query, turn)
        if not record.items:
            return ToolResult(True, f"Nothing is remembered about {query!r}.", "0 hits")
        lines = [render_item(item) for item in record.items]
        return ToolResult(True, "\n".join(lines), f"{len(lines)} hits", source=f"recall {query!r}", found=record)

    async def search_history(self, args: JSON, turn: TurnContext) -> ToolResult:
        query = str(args.get("query") or "").strip()
        role = str(args.get("role") or "").strip().casefold() or None
        found = await search_conversation(
            self._stores,
            self._search_messages,
            query,
            limit=int(args.get("limit") or 10),
            role=role if role in ("user", "assistant") else None,
            turn=turn,
        )
        text = self._stores.history.found_text(query, found)
        return ToolResult(True, text, text.splitlines()[0], source=f"history {query!r}")

    async def write_todos(self, args: JSON, turn: TurnContext) -> ToolResult:
        todos = [str(todo).strip() for todo in args.get("todos") or [] if str(todo).strip()][:30]
        await self._save_todos(todos)
        done = sum(todo.casefold().startswith("[x]") for todo in todos)
        text = "\n".join(todo if todo.startswith("[") else f"[ ] {todo}" for todo in todos)
        return ToolResult(True, text or "The todo list is empty.", f"{done}/{len(todos)} done")


def _unique(verdicts: list[Verdict]) -> list[Verdict]:
    """One verdict per stored text: two translated lines may prove to be the same sentence of the user."""
    seen: dict[tuple[Action, str], Verdict] = {}
    for verdict in verdicts:
        key = (verdict.action if verdict.action is not Action.TOUCH else Action.LIVE, verdict.text)
        seen.setdefault(key, verdict)
    return list(seen.values())
