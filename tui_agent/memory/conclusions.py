"""The beginnings of a hand-off packet: conclusions out of what is known and what was said, for the user to correct."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tui_agent.memory.handoff import LONGEST, MOST_REQUIREMENTS, dialogue_in
from tui_agent.memory.secrets import has_secret
from tui_agent.memory.text import normalise
from tui_agent.memory.types import Fact, Kind

# What is weighed: at most a few words, up to the next sign.
_WHAT = r"(?P<what>[^.,;:!?…\n—–-][^.,;:!?…\n—–]{1,60}?)"
_STOP = r"\s*[.,;:!?…—–-]+"


def _idea(openers: str, verbs: str, also: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{openers})\s+(?:{verbs})\s+{_WHAT}(?:\s+(?:{also}))?{_STOP}", re.IGNORECASE)


# Per language: how an idea is opened, and how its two ends are written.
_IDEAS: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (
        _idea(
            r"(?:what if|maybe|how about|what about|should|could|shall)(?:\s+(?:we|i|you))?"
            r"(?:\s+(?:should|could))?(?:\s+also)?",
            r"add|adding|added|include|including|included|show|showing|showed|use|using|used|keep|keeping|kept",
            r"too|as well",
        ),
        "exclude",
        "include",
    ),
    (
        _idea(
            r"(?:a może|a gdyby|co jeśli|może|a co gdyby)(?:\s+(?:by|byśmy|jednak|też))*",
            r"doda(?:ć|my|jmy|libyśmy)|uwzględni(?:ć|my|libyśmy)|poka(?:zać|zalibyśmy|żemy)|uży(?:ć|jemy)|zostawi(?:ć|my)",
            r"też|także",
        ),
        "bez:",
        "z:",
    ),
    (
        _idea(
            r"(?:а что,? если|а если|может(?: быть)?),?(?:\s+(?:бы|мы|ещё|еще))*",
            r"добав(?:ить|им)|включ(?:ить|им)|пока(?:жем|зать)|использ(?:овать|уем)|остав(?:ить|им)",
            r"тоже|также",
        ),
        "без:",
        "с:",
    ),
)
_NO = re.compile(
    r"^\W*(?:(?:hmm+|oh|well|eh|hm|ach|э+м*|ну)\W+)*"
    r"(?:no|nah|nope|rather not|better not|leave (?:them|it|that|those) out|(?:drop|skip) (?:them|it)|forget it|"
    r"nie|jednak nie|lepiej nie|pomiń|zostawmy to|bez|"
    r"нет|не надо|не стоит|не нужно|лучше не|пропуст\w*|убер\w*)(?!\w)(?!\s+(?:problem|проблем))",
    re.IGNORECASE,
)
_YES = re.compile(
    r"^\W*(?:yes|yeah|yep|ok(?:ay)?|sure|right|let's|do it|"
    r"tak|dobra|okej|jasne|zróbmy|да|давай|хорошо|ладно|конечно)(?!\w)",
    re.IGNORECASE,
)
_LEADING = re.compile(r"^(?:the|also|też|ещё|еще)\s+", re.IGNORECASE)
_ENDS = re.compile(r"^(?:exclude|include|bez:|z:|без:|с:) ")
_FORMAT = re.compile(
    r"\b(?:table|bullet|list|json|csv|markdown|short answers?|one paragraph|brief|concise|"
    r"tabel\w*|punkt\w*|krótk\w*|zwięź\w*)\b|"
    r"(?<!\w)(?:таблиц\w*|список|списком|пункт\w*|кратк\w*|коротк\w*)(?!\w)",
    re.IGNORECASE,
)


def settled_ideas(text: str) -> list[str]:
    """What became of ideas that a user weighed aloud: "what if we add archived… no, leave them out" gives ``exclude
    archived``. An idea that was left open gives nothing."""
    found: list[tuple[int, str]] = []
    for pattern, without, with_ in _IDEAS:
        for match in pattern.finditer(text):
            rest = text[match.end() :]
            what = _LEADING.sub("", " ".join(match["what"].split()))
            if _NO.match(rest):
                found.append((match.start(), f"{without} {what}"))
            elif _YES.match(rest):
                found.append((match.start(), f"{with_} {what}"))
    return list(dict.fromkeys(idea for _, idea in sorted(found)))


def draft(task: str, facts: Sequence[Fact] = (), said: Iterable[str] = ()) -> dict[str, object]:
    """The beginnings of a packet as plain data: the task, conclusions as requirements, and how the result should look.

    ``facts`` are live ones that matter here, ``said`` the user's messages of the conversation, oldest first. What
    cannot stand in a packet (a question, a half-finished thought, a secret) is left out.
    """
    requirements: list[str] = []
    form = ""
    for fact in facts:
        text = " ".join(fact.fact.split()).rstrip(".")
        if dialogue_in(text) or has_secret(text) or len(text) > LONGEST:
            continue
        if not form and fact.kind in (Kind.PREFERENCE, Kind.CONVENTION) and _FORMAT.search(text):
            form = text
        elif fact.kind is not Kind.PROBLEM:
            requirements.append(text)
    requirements += [idea for message in said for idea in settled_ideas(message) if not has_secret(idea)]
    # Of two ends of one idea the later is the decision.
    latest: dict[str, str] = {}
    for text in requirements:
        key = _ENDS.sub("", normalise(text))
        latest.pop(key, None)
        latest[key] = text
    clean = " ".join(task.split())[:LONGEST]
    return {
        "task": "" if dialogue_in(clean) else clean,
        "requirements": list(latest.values())[-MOST_REQUIREMENTS:],
        "format": form,
    }
