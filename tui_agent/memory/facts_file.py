"""``facts.json``: written from the rows after each change, and read back where somebody has edited it by hand.

The file is never written over what another hand put into it. What it says is compared with what was last written into
it, so that an edit is told apart from facts that have changed since; the edit is merged, and only then it is written
again.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from rapidfuzz import fuzz

from tui_agent.memory.database import Database
from tui_agent.memory.exchange import ExchangeItem, export_tier2, import_tier2, section_of
from tui_agent.memory.facts import FactStore
from tui_agent.memory.facts_schema import fact_key
from tui_agent.memory.places import USER, MemoryFileError
from tui_agent.memory.textfile import Announce, TextFileError, read_text, write_text
from tui_agent.memory.types import Fact, Kind, Scope
from tui_agent.memory.upkeep_store import UpkeepNotes

NAME = "facts.json"
_NOTE = "facts.json"
_LIKE = 50.0
_TRIES = 3  # at writing what the rows say, before the rows are kept from changing meanwhile
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_MANY, _SHARE = 5, 0.5

Verb = Literal["added", "changed", "removed", "moved", "dated"]


@dataclass(frozen=True, slots=True)
class HandEdit:
    """One thing a hand did to a file: ``text`` is what it says now (for ``removed``: what it said), ``line`` counts
    from 1 (0 for ``removed``). ``fact_id`` is the row it was, empty for ``added``; ``target_line`` the line as it
    stands in a memory file. ``updated`` is a day that the hand gave (all there is of ``dated``), else empty."""

    verb: Verb
    text: str
    line: int = 0
    kind: Kind = Kind.FACT
    fact_id: str = ""
    before: str = ""
    target_line: str = ""
    updated: str = ""


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a hand did to one file. ``problem`` is a sentence when the file cannot be read; then there are no edits, and
    the file is left as it is. ``large``: so much is gone that it may be an accident."""

    name: str
    edits: tuple[HandEdit, ...] = ()
    problem: str = ""
    digest: str = ""
    large: bool = False

    def words(self) -> str:
        """``2 added, 1 removed``."""
        return verbs_counted(edit.verb for edit in self.edits)


def verbs_counted(verbs: Iterable[str]) -> str:
    """``2 added, 1 removed``."""
    counts = Counter(verbs)
    return ", ".join(
        f"{counts[verb]} {verb}" for verb in ("added", "changed", "dated", "moved", "removed") if counts[verb]
    )


def too_much(edits: Sequence[HandEdit], known: int) -> bool:
    """Whether more than half of what was there (and not just a few) is gone at once."""
    gone = sum(edit.verb == "removed" for edit in edits)
    return gone >= _MANY and gone > _SHARE * known


@dataclass(frozen=True, slots=True)
class _Entry:
    fact_id: str
    section: str
    text: str
    updated: str = ""  # the day that was written into the file; empty where that is not known

    @property
    def key(self) -> tuple[str, str]:
        return self.section, fact_key(self.text)


class FactsFile:
    """The file of one project.

    Args:
        announce: hears of each write before it is made.
    """

    def __init__(self, path: Path, db: Database, facts: FactStore, announce: Callable[[], Announce | None]) -> None:
        self.path = path
        self._db = db
        self._facts = facts
        self._announce = announce

    # --- writing ----------------------------------------------------------------------------------

    def write(self) -> bool:
        """Writes the live facts of the project; false when the file holds edits that were not taken over yet, and is
        left alone. Notes about the user are left out: the file may be shared, and they never are.

        Raises ``MemoryFileError`` when it cannot be written; it is as it was then.
        """
        try:
            for _ in range(_TRIES):
                before, (facts, text) = self._newest_change(), self._drawn_up()
                with self._db.transaction():  # one writer at a time, also of other windows
                    if self._newest_change() == before:
                        return self._put(facts, text)
            with self._db.transaction():  # somebody writes all the time, and waits now
                return self._put(*self._drawn_up())
        except TextFileError as error:
            raise MemoryFileError(f"{self.path.name} stays as it was: {error}.") from error

    def _drawn_up(self) -> tuple[list[Fact], str]:
        facts = self._shared()
        return facts, json.dumps(export_tier2(facts, "local"), ensure_ascii=False, indent=2) + "\n"

    def _newest_change(self) -> int:
        return int(self._db.value("SELECT max(id) FROM changes") or 0)

    def _put(self, facts: Sequence[Fact], text: str) -> bool:
        before = read_text(self.path)
        if before is not None and not self._is_ours(before.digest) and self._differs(before.text):
            return False
        digest = before.digest if before is not None else ""
        if before is None or before.text != text:
            digest = write_text(self.path, text, before, self._announce())
        self._remember(digest, facts)
        return True

    def settle(self, change: FileChange, *, whole: bool) -> None:
        """A change was taken over: what it says is what the rows say now. With ``whole`` false a part was refused, and
        the file stays as it is until that part is changed."""
        state = self._state()
        digest = change.digest if whole else str(state.get("digest", ""))
        self._remember(digest, self._shared())

    # --- reading ----------------------------------------------------------------------------------

    def pending(self) -> FileChange | None:
        """What a hand has done to the file since it was last written, or ``None``."""
        try:
            found = read_text(self.path)
        except TextFileError as error:
            return FileChange(NAME, problem=f"{NAME} is left as it is: {error}.")
        if found is None or self._is_ours(found.digest):
            return None
        try:
            items = import_tier2(json.loads(found.text))
        except json.JSONDecodeError as error:
            problem = f"{NAME}, line {error.lineno}: {error.msg.rstrip('.')}. Nothing of it was taken over, and it is "
            return FileChange(NAME, problem=f"{problem}not written until it can be read.", digest=found.digest)
        except ValueError as error:
            line = _line_of_place(found.text, str(error))
            problem = f"{NAME}{f', line {line}' if line else ''}: {str(error).rstrip('.')}. Nothing of it was taken "
            return FileChange(NAME, problem=f"{problem}over, and it is not written until it is right.",
                              digest=found.digest)  # fmt: skip
        rows = [_Entry(fact.id, section_of(fact.kind), fact.fact) for fact in self._shared()]
        same = Counter(entry.key for entry in rows) == Counter((section_of(i.kind), fact_key(i.text)) for i in items)
        if same and not self._dated(items):
            return None
        edits = self._compare(items, self._baseline(rows), {entry.fact_id for entry in rows}, found.text)
        if not edits:
            return None
        return FileChange(NAME, tuple(edits), digest=found.digest, large=too_much(edits, len(rows)))

    def _compare(
        self, items: Sequence[ExchangeItem], base: Sequence[_Entry], live: set[str], text: str
    ) -> list[HandEdit]:
        lines = _lines_of_items(text, items)
        edits: list[HandEdit] = []
        gone: list[_Entry] = []
        come: list[tuple[ExchangeItem, int]] = []
        for section in ("facts", "preferences", "decisions"):
            old = [entry for entry in base if entry.section == section]
            new = [(item, line) for item, line in zip(items, lines, strict=True) if section_of(item.kind) == section]
            matcher = difflib.SequenceMatcher(
                None, [fact_key(entry.text) for entry in old], [fact_key(item.text) for item, _ in new], autojunk=False
            )
            for how, old_from, old_to, new_from, new_to in matcher.get_opcodes():
                if how == "equal":
                    pairs = zip(old[old_from:old_to], new[new_from:new_to], strict=True)
                    edits += [_edit("dated", pair, entry) for entry, pair in pairs if _new_day(pair[0], entry)]
                    continue
                left, right = old[old_from:old_to], new[new_from:new_to]
                for entry in list(left):
                    best = max(right, key=lambda pair: fuzz.token_sort_ratio(entry.text, pair[0].text), default=None)
                    if best is not None and fuzz.token_sort_ratio(entry.text, best[0].text) >= _LIKE:
                        left.remove(entry)
                        right.remove(best)
                        edits.append(_edit("changed", best, entry))
                gone += left
                come += right
        for pair in list(come):  # the same words in another section, or in another order
            twin = next((entry for entry in gone if fact_key(entry.text) == fact_key(pair[0].text)), None)
            if twin is not None:
                come.remove(pair)
                gone.remove(twin)
                if twin.section != section_of(pair[0].kind):
                    edits.append(_edit("moved", pair, twin))
        edits += [_edit("added", pair) for pair in come]
        edits += [HandEdit("removed", entry.text, fact_id=entry.fact_id) for entry in gone]
        # What has been replaced or ended since the file was written cannot be changed by an old line.
        return [edit for edit in edits if not edit.fact_id or edit.fact_id in live]

    # --- inside -----------------------------------------------------------------------------------

    def _shared(self) -> list[Fact]:
        return [fact for fact in self._facts.live(Scope.PROJECT, include_user=False) if fact.target != USER]

    def _state(self) -> dict[str, Any]:
        found = UpkeepNotes(self._db).get(_NOTE, {})
        return found if isinstance(found, dict) else {}

    def _is_ours(self, digest: str) -> bool:
        return self._state().get("digest") == digest

    def _differs(self, text: str) -> bool:
        """Whether a file that we did not write says something else than the rows; one that cannot be read does."""
        try:
            items = import_tier2(json.loads(text))
        except ValueError:
            return True
        ours = Counter((section_of(fact.kind), fact_key(fact.fact)) for fact in self._shared())
        theirs = Counter((section_of(item.kind), fact_key(item.text)) for item in items)
        if ours == theirs:
            return self._dated(items)
        # A file written before such notes were kept says what the rows said then: nothing that is unknown now.
        return bool(self._state()) or any(self._facts.by_text(item.text) is None for item in items)

    def _baseline(self, rows: Sequence[_Entry]) -> list[_Entry]:
        """What was last written; the rows themselves where that is not known."""
        kept = self._state().get("rows")
        if kept is None:
            return list(rows)
        texts = {entry.fact_id: entry for entry in rows}
        found = []
        for fact_id, section, *day in kept:
            fact = self._facts.get(fact_id)
            if fact is not None:
                entry = texts.get(fact_id) or _Entry(fact_id, section, fact.fact)
                found.append(replace(entry, updated=day[0] if day else ""))
        return found

    def _dated(self, items: Sequence[ExchangeItem]) -> bool:
        """Whether the day of a statement is another one than was last written."""
        written = {entry.key: entry for entry in self._baseline(())}
        keys = [(section_of(item.kind), fact_key(item.text)) for item in items]
        return any(key in written and _new_day(item, written[key]) for key, item in zip(keys, items, strict=True))

    def _remember(self, digest: str, facts: Sequence[Fact]) -> None:
        # Ids alone: a text that is deleted forever must not stay in a note.
        rows = [[fact.id, section_of(fact.kind), fact.confirmed_at[:10]] for fact in facts]
        state = {"digest": digest, "rows": rows}
        if state != self._state():
            UpkeepNotes(self._db).set(_NOTE, state)


def _edit(verb: Verb, pair: tuple[ExchangeItem, int], entry: _Entry | None = None) -> HandEdit:
    item, line = pair
    day = item.updated if entry is None or _new_day(item, entry) else ""
    return HandEdit(
        verb, item.text, line, item.kind, entry.fact_id if entry else "", entry.text if entry else "", updated=day
    )


def _new_day(item: ExchangeItem, entry: _Entry) -> bool:
    return bool(item.updated and entry.updated and item.updated != entry.updated)


def _lines_of_items(text: str, items: Sequence[ExchangeItem]) -> list[int]:
    """The line on which each statement stands, by the JSON strings of the text."""
    places: dict[tuple[str, str], list[int]] = {}
    key = ""
    for match in _STRING.finditer(text):
        value = json.loads(match[0])
        places.setdefault((key, str(value).strip()), []).append(text.count("\n", 0, match.start()) + 1)
        key = str(value)
    names = {"facts": "fact", "preferences": "pref", "decisions": "decision"}
    found = []
    for item in items:
        where = places.get((names[section_of(item.kind)], item.text), [])
        found.append(where.pop(0) if where else 1)
    return found


def _line_of_place(text: str, sentence: str) -> int:
    """The line of ``facts[2]``, which a sentence names, as well as it can be told; 0 when it cannot."""
    place = re.search(r"(facts|preferences|decisions)\[(\d+)\]", sentence)
    if place is None:
        word = re.search(r"“([^”]+)”", sentence)
        at = text.find(json.dumps(word[1], ensure_ascii=False)) if word else -1
        return text.count("\n", 0, at) + 1 if at >= 0 else 0
    start = text.find(f'"{place[1]}"')
    starts = [match.start() for match in re.finditer(r"[{\[]|\"(?:[^\"\\]|\\.)*\"", text[start:]) if match[0] == "{"]
    number = int(place[2])
    return text.count("\n", 0, start + starts[number]) + 1 if start >= 0 and number < len(starts) else 0
