"""The answer to "what do you remember about me?": everything, from the store, without asking a model.

A small model would leave things out or make them up; here the list is complete, and works without a server too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.memory.hand_lines import DatedLine, dated
from tui_agent.memory.own_notes import own_lines
from tui_agent.memory.places import USER
from tui_agent.memory.statements import LEARNED, PREFERENCES
from tui_agent.memory.text import fold
from tui_agent.memory.types import Fact, Kind, Scope

if TYPE_CHECKING:
    from tui_agent.memory.upkeep import Memory

LISTED = (
    "The app has just shown the user the complete list of what is remembered about them. Do not list it; answer the "
    "rest of the message."
)
"""What the model is told when the user asked for the list beside something else."""

_WORDS: dict[str, dict[str, str]] = {
    "en": {
        "all": "Everything I remember, as it is stored:",
        "none": "I remember nothing yet. Tell me something about you or the project, and I keep it in your own words.",
        "you": "About you",
        "preferences": "How you like to work",
        "decisions": "Decisions and conventions",
        "facts": "About the project",
        "hand": "written by you",
        "everywhere": "for all projects",
        "until": "until",
        "waiting": "Not remembered, but waiting for your yes: {count}.",
        "fix": "To correct or delete it: F5 or /memory in the chat, `tui-agent memory list` on the command line.",
    },
    "pl": {
        "all": "Wszystko, co pamiętam, tak jak jest zapisane:",
        "none": "Jeszcze nic nie pamiętam. Powiedz mi coś o sobie albo o projekcie, a zachowam to Twoimi słowami.",
        "you": "O Tobie",
        "preferences": "Jak lubisz pracować",
        "decisions": "Decyzje i konwencje",
        "facts": "O projekcie",
        "hand": "napisane przez Ciebie",
        "everywhere": "dla wszystkich projektów",
        "until": "do",
        "waiting": "Nie zapamiętane, czeka na Twoją zgodę: {count}.",
        "fix": "Poprawić lub usunąć: F5 albo /memory w czacie, `tui-agent memory list` w wierszu poleceń.",
    },
    "ru": {
        "all": "Всё, что я помню, так, как оно записано:",
        "none": "Пока я ничего не помню. Расскажи что-нибудь о себе или о проекте, и я сохраню это твоими словами.",
        "you": "О тебе",
        "preferences": "Как тебе удобно работать",
        "decisions": "Решения и соглашения",
        "facts": "О проекте",
        "hand": "написано тобой",
        "everywhere": "для всех проектов",
        "until": "до",
        "waiting": "Не запомнено, ждёт твоего согласия: {count}.",
        "fix": "Исправить или удалить: F5 или /memory в чате, `tui-agent memory list` в командной строке.",
    },
}


def tell_everything(memory: Memory, language: str) -> str:
    """Everything that is remembered, as Markdown with headings in ``language`` (``en``, ``pl``, ``ru``): each fact with
    the day it was last confirmed, lines the user wrote by hand, and how many proposals wait."""
    words = _WORDS.get(language, _WORDS["en"])
    groups: dict[str, list[str]] = {"you": [], "preferences": [], "decisions": [], "facts": []}
    for fact in sorted(memory.facts.live(), key=lambda fact: (fold(fact.subject), fact.created_at)):
        groups[_group(fact)].append(_line(fact, words))
    groups["you"] += [_own(line, words) for line in dated(memory, own_lines(memory))]
    parts = [f"**{words[name]}**\n\n" + "\n".join(lines) for name, lines in groups.items() if lines]
    parts = [words["all"], *parts] if parts else [words["none"]]
    if waiting := len(memory.facts.quarantined()):
        parts.append(words["waiting"].format(count=waiting))
    return "\n\n".join([*parts, words["fix"]])


def _group(fact: Fact) -> str:
    if fact.target == USER or (fact.scope is Scope.USER and fact.kind is not Kind.PREFERENCE):
        return "you"
    if fact.kind is Kind.PREFERENCE or fact.target in (PREFERENCES, LEARNED):
        return "preferences"
    return "decisions" if fact.kind in (Kind.DECISION, Kind.CONVENTION) else "facts"


def _line(fact: Fact, words: dict[str, str]) -> str:
    notes = [fact.confirmed_at[:10]]
    if fact.expires_at:
        notes.append(f"{words['until']} {fact.expires_at[:10]}")
    if fact.scope is Scope.USER:
        notes.append(words["everywhere"])
    return f"- {' '.join(fact.fact.split())} ({', '.join(notes)})"


def _own(one: DatedLine, words: dict[str, str]) -> str:
    where = words["everywhere" if one.line.where == "everywhere" else "hand"]
    return f"- {one.line.text} ({where}, {one.date[:10]})"
