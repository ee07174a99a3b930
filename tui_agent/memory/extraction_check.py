"""The extraction check: a set of conversations with known answers, run on a model, so that a change of the model shows.

Each conversation goes the way a real one goes (prompt, parser, grounding, gate); nothing is written anywhere but the
result.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import resources
from typing import Any

from tui_agent.memory.database import Database, Migration
from tui_agent.memory.extraction import Complete
from tui_agent.memory.extraction_ground import Decides, conversation_of, ground, judged
from tui_agent.memory.extraction_parse import parse_items
from tui_agent.memory.extraction_prompt import extraction_messages, extraction_prompt, language_hint, transcript
from tui_agent.memory.facts import FactStore
from tui_agent.memory.gate import Gate
from tui_agent.memory.text import utc_now
from tui_agent.memory.types import Action, Kind

ROOM = "extraction_check"


def _create(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE extraction_checks(id INTEGER PRIMARY KEY AUTOINCREMENT, model TEXT NOT NULL, "
        "digest TEXT NOT NULL, prompt TEXT NOT NULL, checked_at TEXT NOT NULL, result TEXT NOT NULL)"
    )


MIGRATIONS: tuple[Migration, ...] = (("001 checks", _create),)


@dataclass(frozen=True, slots=True)
class CheckedCase:
    """One conversation: how many facts it holds, how many were found (also under another kind), the texts that should
    not have been kept, and an ``error`` when the model could not be asked."""

    id: str
    language: str
    expected: int
    found: int
    found_any_kind: int
    extra: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    error: str = ""

    @property
    def right(self) -> bool:
        """Whether all was found and nothing else."""
        return not self.error and self.found == self.expected and not self.extra and not self.forbidden


@dataclass(frozen=True, slots=True)
class Score:
    """Sums over the conversations of one language. ``forbidden`` counts texts that must never be kept."""

    cases: int
    right: int
    expected: int
    found: int
    found_any_kind: int
    extra: int
    forbidden: int
    errors: int


@dataclass(frozen=True, slots=True)
class ExtractionCheck:
    """The result of one check: the model it was made with, and what it found, case by case."""

    model: str
    digest: str
    prompt: str
    checked_at: str
    cases: tuple[CheckedCase, ...] = field(default=())

    def score(self, language: str | None = None) -> Score:
        """The sums, of one language or of all."""
        cases = [case for case in self.cases if language is None or case.language == language]
        return Score(
            cases=len(cases),
            right=sum(case.right for case in cases),
            expected=sum(case.expected for case in cases),
            found=sum(case.found for case in cases),
            found_any_kind=sum(case.found_any_kind for case in cases),
            extra=sum(len(case.extra) for case in cases),
            forbidden=sum(len(case.forbidden) for case in cases),
            errors=sum(bool(case.error) for case in cases),
        )

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of the cases, in order of appearance."""
        return tuple(dict.fromkeys(case.language for case in self.cases))

    @property
    def summary(self) -> str:
        """One sentence for the user."""
        total = self.score()
        said = f"{self.model} found {total.found_any_kind} of {total.expected} facts in {total.cases} conversations"
        said += f" and kept {total.forbidden} it must not keep"
        return f"{said}; {total.errors} conversations could not be asked about." if total.errors else f"{said}."


def shipped_cases() -> list[dict[str, Any]]:
    """A small set of conversations with known answers, four in each language."""
    text = resources.files("tui_agent.memory").joinpath("extraction_cases.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def prompt_digest() -> str:
    """A short hash of the instructions: a check says nothing about other ones."""
    texts = "\0".join(extraction_prompt(language) for language in ("en", "pl", "ru"))
    return hashlib.sha256(texts.encode()).hexdigest()[:12]


async def check_extraction(
    cases: Iterable[Mapping[str, Any]],
    complete: Complete,
    *,
    model: str,
    digest: str,
    clock: Callable[[], str] = utc_now,
    progress: Callable[[CheckedCase], None] | None = None,
) -> ExtractionCheck:
    """Runs conversations with known answers through ``complete``.

    A case is ``{"id", "lang", "conversation": [{"role", "id", "content"}], "expect": [{"category", "must_contain"}],
    "forbidden": [stem]}``. An error of the model is noted with its case. ``digest`` is that of the model.
    """
    checked = []
    for case in cases:
        said = conversation_of(case["conversation"])
        kept: list[tuple[Kind, str]] = []
        error = ""
        try:
            # Where the user states nothing the model is not asked, as in the real thing.
            answer = await complete(extraction_messages(said, language_hint(said))) if transcript(said) else "[]"
        except Exception as problem:
            error = str(problem) or type(problem).__name__
        else:
            with Database(":memory:") as db:
                kept = kept_by(Gate(FactStore(db), None), case, answer)
        checked.append(_checked(case, kept, error))
        if progress is not None:
            progress(checked[-1])
    return ExtractionCheck(model, digest, prompt_digest(), clock(), tuple(checked))


def kept_by(gate: Decides, case: Mapping[str, Any], answer: str) -> list[tuple[Kind, str]]:
    """What of an answer would be kept in a conversation: the kind and text of each fact the gate lets live."""
    said = conversation_of(case["conversation"])
    items, _ = ground(parse_items(answer), said)
    verdicts = [gate.admit(judged(gate, item, said, str(case["id"]))) for item in items]
    return [(verdict.kind, verdict.text) for verdict in verdicts if verdict.action is Action.LIVE]


def _checked(case: Mapping[str, Any], kept: Sequence[tuple[Kind, str]], error: str) -> CheckedCase:
    expect = case.get("expect", ())
    exact = match(expect, kept)
    loose = match([{**each, "category": ""} for each in expect], kept)
    forbidden = tuple(text for _, text in kept if any(_stem(stem) in _stem(text) for stem in case.get("forbidden", ())))
    extra = tuple(text for n, (_, text) in enumerate(kept) if n not in loose.values() and text not in forbidden)
    return CheckedCase(
        str(case["id"]), str(case.get("lang", "")), len(expect), len(exact), len(loose), extra, forbidden, error
    )


def match(expect: Sequence[Mapping[str, Any]], kept: Sequence[tuple[Kind, str]]) -> dict[int, int]:
    """Which kept fact says which expected one: most pairs, each used once. A category of ``""`` fits every kind."""
    fits = [
        [
            n
            for n, (kind, text) in enumerate(kept)
            if wanted["category"] in ("", kind.value)
            and all(_stem(stem) in _stem(text) for stem in wanted["must_contain"])
        ]
        for wanted in expect
    ]
    taken: dict[int, int] = {}  # kept -> expected; the classic search along alternating paths

    def place(wanted: int, tried: set[int]) -> bool:
        for candidate in fits[wanted]:
            if candidate not in tried:
                tried.add(candidate)
                if candidate not in taken or place(taken[candidate], tried):
                    taken[candidate] = wanted
                    return True
        return False

    for wanted in range(len(expect)):
        place(wanted, set())
    return {wanted: candidate for candidate, wanted in taken.items()}


def _stem(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold().replace("ё", "е")


class CheckLog:
    """The checks that were made, with the model they were made with."""

    def __init__(self, db: Database) -> None:
        self._db = db
        db.migrate(ROOM, MIGRATIONS)

    @staticmethod
    def exists(db: Database) -> bool:
        """Whether a check was ever made here; asking does not make the table."""
        return db.row("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'extraction_checks'") is not None

    def record(self, check: ExtractionCheck) -> None:
        """Keeps a result."""
        self._db.execute(
            "INSERT INTO extraction_checks(model, digest, prompt, checked_at, result) VALUES (?, ?, ?, ?, ?)",
            (
                check.model,
                check.digest,
                check.prompt,
                check.checked_at,
                json.dumps([asdict(case) for case in check.cases], ensure_ascii=False),
            ),
        )

    def last(self, digest: str | None = None) -> ExtractionCheck | None:
        """The last check (of a model), or ``None``."""
        row = self._db.row(
            "SELECT model, digest, prompt, checked_at, result FROM extraction_checks WHERE ? IS NULL OR digest = ? "
            "ORDER BY id DESC LIMIT 1",
            (digest, digest),
        )
        if row is None:
            return None
        cases = tuple(
            CheckedCase(**{**case, "extra": tuple(case["extra"]), "forbidden": tuple(case["forbidden"])})
            for case in json.loads(row["result"])
        )
        return ExtractionCheck(row["model"], row["digest"], row["prompt"], row["checked_at"], cases)

    def concern(self, model: str, digest: str) -> str:
        """A sentence when extraction was last checked with another model or other instructions, else an empty one.

        A store in which it was never checked is none: the check is for those who have made one.
        """
        last = self.last()
        if last is None or (last.digest, last.prompt) == (digest, prompt_digest()):
            return ""
        again = "Run `tui-agent memory check-extraction` to see what it finds."
        if last.digest != digest:
            before = last.model if last.model != model else f"another version of {model}"
            return (
                f"Extraction was last checked with {before} ({last.checked_at[:10]}), and now {model} does it. {again}"
            )
        return (
            f"The instructions for extraction have changed since it was last checked ({last.checked_at[:10]}). {again}"
        )

    def compared(self, check: ExtractionCheck) -> str:
        """A sentence on how a new result differs from the last one of another model, or an empty one."""
        others = self._db.rows(
            "SELECT digest FROM extraction_checks WHERE digest != ? ORDER BY id DESC LIMIT 1", (check.digest,)
        )
        before = self.last(others[0]["digest"]) if others else None
        if before is None:
            return ""
        old, new = before.score(), check.score()
        changed = [
            f"{name} {was} before, {now} now"
            for name, was, now in (
                ("facts found:", old.found_any_kind, new.found_any_kind),
                ("kept against the rules:", old.forbidden, new.forbidden),
            )
            if was != now
        ]
        same = "; ".join(changed) or "the same as before"
        return f"Against {before.model} ({before.checked_at[:10]}): {same}."
