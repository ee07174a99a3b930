"""What all grammars share: the text with its end, the outcomes, and the marks that may end a call."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from tui_agent.llm.types import ToolCall

if TYPE_CHECKING:
    from tui_agent.llm.rescue.catalog import Catalog


class NeedMore(Exception):
    """The text ends here, more may come, and the decision depends on it."""


class Undecided(NeedMore):
    """More text is needed to find the end, but a call it is not: the text may be shown."""


class Cut(Exception):
    """The answer is over in the middle of something that began like a call."""


class Hopeless(Exception):
    """This is a structure of its own (a JSON document), but surely not a call."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something shaped like a call that may not run. ``unknown``: nobody offered this name."""

    name: str
    reason: str
    unknown: bool


@dataclass(frozen=True, slots=True)
class Unit:
    """One stretch of text that is nothing but calls. ``end`` is the index behind it.

    ``calls`` may run; ``refusals`` are shaped like calls, too, but may not. ``fenced``: it is a code block.
    ``data``: it is plain JSON without any mark around it, so it could belong to program code. ``core`` is the index
    behind the last call itself, in front of closing marks, some of which may belong to what surrounds the unit.
    """

    end: int
    calls: tuple[ToolCall, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    fenced: bool = False
    data: bool = False
    core: int = -1

    def __post_init__(self) -> None:
        if self.core < 0:
            object.__setattr__(self, "core", self.end)

    @classmethod
    def of(cls, end: int, outcomes: Iterable[ToolCall | Refusal], *, data: bool = False, core: int = -1) -> Unit:
        """A unit from checked calls in their order."""
        found = list(outcomes)
        return cls(
            end,
            tuple(each for each in found if isinstance(each, ToolCall)),
            tuple(each for each in found if isinstance(each, Refusal)),
            data=data,
            core=core,
        )

    @classmethod
    def join(cls, end: int, units: Iterable[Unit], *, fenced: bool = False) -> Unit:
        """Neighbouring units as one."""
        parts = list(units)
        return cls(
            end,
            tuple(call for part in parts for call in part.calls),
            tuple(refusal for part in parts for refusal in part.refusals),
            fenced=fenced,
            core=end if fenced or not parts else parts[-1].core,
        )


_SPACE = re.compile(r"\s*")
_BLANK = re.compile(r"[ \t]*")


class Source:
    """The text as far as it is known. ``final`` is true when it is over."""

    __slots__ = ("final", "text")

    def __init__(self, text: str, final: bool) -> None:
        self.text = text
        self.final = final

    def more(self) -> NoReturn:
        """Something is missing: wait for it, or give up because the answer is over."""
        raise Cut if self.final else NeedMore

    def space(self, pos: int) -> int:
        """The index of the first character from ``pos`` on that is not white space."""
        match = _SPACE.match(self.text, pos)
        return match.end() if match else pos

    def blank(self, pos: int) -> int:
        """Like :meth:`space`, on this line only."""
        match = _BLANK.match(self.text, pos)
        return match.end() if match else pos

    def char(self, pos: int) -> str:
        """The character at ``pos``; empty at the end of a finished answer."""
        if pos < len(self.text):
            return self.text[pos]
        if not self.final:
            raise NeedMore
        return ""

    def starts(self, pos: int, literal: str) -> bool:
        """Whether ``literal`` stands at ``pos``; waits while the end of the text could still become it."""
        if self.text.startswith(literal, pos):
            return True
        if not self.final and literal.startswith(self.text[pos : pos + len(literal)]):
            raise NeedMore
        return False


class Reader(Source):
    """A :class:`Source` that is read with the offered tools in mind."""

    __slots__ = ("catalog",)

    def __init__(self, text: str, final: bool, catalog: Catalog) -> None:
        super().__init__(text, final)
        self.catalog = catalog

    def check(self, name: str, arguments: Any) -> ToolCall | Refusal:
        """A rescued call if its name is offered and its arguments fit."""
        return self.catalog.check(name, arguments, rescued=True)


# Marks behind a finished call: closing tags (also damaged ones), end tokens, end of turn.
_CLOSERS = re.compile(
    r"\s*(?:"
    r"</[^<>\n]{0,60}(?:>|(?=\s*$))"
    r"|<\w+\|>"
    r"|<end_function_call>"
    r"|<\|(?:/\w+|\w*(?:end|eom|eot|eos)\w*|call|return)\|>"
    r"|<｜[^<>\n]{0,20}end[^<>\n]{0,20}｜>"
    r"|\[/\w+\]|\[END_TOOL_REQUEST\]"
    r")",
    re.IGNORECASE,
)


def skip_closers(reader: Reader, pos: int) -> int:
    """The index behind all closing marks from ``pos`` on. Their absence is no error."""
    while True:
        match = _CLOSERS.match(reader.text, pos)
        if match is None:
            return pos
        pos = match.end()
