"""The plain JSON shape of what is remembered, for people, other programs and review in a team.

``{"user_id", "facts": [{"fact", "updated"}], "preferences": [{"pref", "updated"}],
"decisions": [{"decision", "updated"}]}`` with ``updated`` as ``YYYY-MM-DD``, the day of the last confirmation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tui_agent.memory.text import parse_utc
from tui_agent.memory.types import Fact, Kind, NewFact, Origin, Proposal, Scope

# section, the name of its text, and the kind an item of it becomes
_SECTIONS = (
    ("facts", "fact", Kind.FACT),
    ("preferences", "pref", Kind.PREFERENCE),
    ("decisions", "decision", Kind.DECISION),
)
_SECTION_OF = {
    Kind.FACT: "facts",
    Kind.PROBLEM: "facts",
    Kind.PREFERENCE: "preferences",
    Kind.DECISION: "decisions",
    Kind.CONVENTION: "decisions",
}


@dataclass(frozen=True, slots=True)
class ExchangeItem:
    """One statement of such a file. ``place`` is where it stands, for people (``facts[2]``)."""

    kind: Kind
    text: str
    updated: str
    place: str

    def proposal(self, source: str, origin: Origin = Origin.IMPORT, scope: Scope = Scope.PROJECT) -> Proposal:
        """The item as something that wants to be remembered; it is its own evidence when the user wrote it."""
        return Proposal(
            text=self.text,
            origin=origin,
            proposer="import",
            source=f"{source}: {self.place}",
            kind=self.kind,
            quote=self.text,
            user_text=self.text if origin is Origin.USER else "",
            scope=scope,
        )

    def new_fact(self, source: str, scope: Scope = Scope.PROJECT) -> NewFact:
        """The item as a row with its date kept, for a file whose content was accepted as a whole."""
        day = f"{self.updated} 00:00:00" if self.updated else None
        return NewFact(
            subject="",
            fact=self.text,
            source=f"{source}: {self.place}",
            kind=self.kind,
            source_kind=Origin.IMPORT,
            quote=self.text,
            scope=scope,
            created_at=day,
            confirmed_at=day,
        )


def section_of(kind: Kind) -> str:
    """The section a fact of this kind stands in."""
    return _SECTION_OF[kind]


def export_tier2(facts: Iterable[Fact], user_id: str) -> dict[str, Any]:
    """Facts (live ones, by their caller) in the shape above, each section in the order given."""
    data: dict[str, Any] = {"user_id": user_id, **{section: [] for section, _, _ in _SECTIONS}}
    names = {section: name for section, name, _ in _SECTIONS}
    for fact in facts:
        section = _SECTION_OF[fact.kind]
        data[section].append({names[section]: fact.fact, "updated": fact.confirmed_at[:10]})
    return data


def import_tier2(data: object) -> list[ExchangeItem]:
    """The statements of such a file, in order. Sections may be missing; ``updated`` may be missing.

    Raises ``ValueError`` that names the first place where the shape is wrong; nothing is taken from such a file.
    """
    if not isinstance(data, Mapping):
        raise ValueError("The file must hold one JSON object with “facts”, “preferences” and “decisions”.")
    known = {"user_id", *(section for section, _, _ in _SECTIONS)}
    unknown = sorted(map(str, set(data) - known))
    if unknown:
        raise ValueError(f"“{unknown[0]}” is not known here; allowed: {', '.join(sorted(known))}.")
    found: list[ExchangeItem] = []
    for section, name, kind in _SECTIONS:
        entries = data.get(section, [])
        if not isinstance(entries, list):
            raise ValueError(f"“{section}” must be a list.")
        for number, entry in enumerate(entries):
            place = f"{section}[{number}]"
            if not isinstance(entry, Mapping) or set(entry) - {name, "updated"}:
                raise ValueError(f"{place} must be an object with “{name}” and “updated”.")
            text, updated = entry.get(name), entry.get("updated", "")
            if not isinstance(text, str) or not text.strip():
                raise ValueError(f"{place} has no text under “{name}”.")
            found.append(ExchangeItem(kind, text.strip(), _day(updated, place), place))
    return found


def _day(value: object, place: str) -> str:
    if value == "":
        return ""
    if isinstance(value, str) and len(value) == 10:
        try:
            return parse_utc(value).strftime("%Y-%m-%d")
        except ValueError:
            pass
    raise ValueError(f"{place} has “updated”: {value!r}; it must be a day like 2026-05-31.")
