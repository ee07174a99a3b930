"""Skills: Markdown files with a ``**Trigger**:`` line, and folders with a ``SKILL.md`` (agentskills.io).

A skill goes into the prompt only when its trigger matches what the user writes, in any inflected form of English,
Polish or Russian. The prompt always carries one line for each, so that the model knows what there is.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from tui_agent.memory.text import STOPWORDS, fold, language_of, word_stems, words
from tui_agent.memory.textfile import TextFileError, read_text

MAX_SKILLS = 200
MAX_BYTES = 128 * 1024
MAX_NAME, MAX_DESCRIPTION = 64, 1024

_TRIGGER = re.compile(
    r"^[ \t]*(?:[-*+][ \t]+)?\*\*[ \t]*(?:triggers?|wyzwalacze?|триггеры?)[ \t]*:?[ \t]*\*\*[ \t]*:?[ \t]*(.+)$",
    re.IGNORECASE | re.MULTILINE,
)
_QUOTED = re.compile(r'"([^"\n]{2,80})"|“([^”\n]{2,80})”|„([^”“\n]{2,80})[”“]|«([^»\n]{2,80})»|`([^`\n]{2,80})`')
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_TITLE = re.compile(r"^#[ \t]+(.+?)[ \t]*#*$", re.MULTILINE)
# Words that describe any trigger and say nothing of its topic.
_EMPTY_TEXT = """
    user users asks ask asked wants want gives give says say needs need use used using when whenever task tasks skill
    skills trigger complex relevant topic request requests code project help work
    użytkownik użytkownika prosi chce pyta podaje zadanie zadania umiejętność projekt kod gdy kiedy
    пользователь просит хочет спрашивает задача задачи навык проект код когда
"""
_EMPTY_WORDS = frozenset(map(fold, _EMPTY_TEXT.split()))
# Verbs whose stem changes (words are folded here): zbuduj and zbudowac, рисуи and рисовать.
_CHANGING = re.compile("(?:uj[a-z]{0,3}|ow[a-z]{1,6}|у[июе][а-я]{0,3}|ова[а-я]{0,5})$")


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill. ``trigger`` is the line as written, ``phrases`` the quoted words and phrases in it.

    Where nothing is quoted, the content words of trigger or description count instead (two of them must be met).
    """

    name: str
    path: Path
    trigger: str
    description: str
    body: str
    phrases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SkillSet:
    """All skills found, in order of name, and what was wrong, as sentences."""

    skills: tuple[Skill, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(slots=True)
class _Found:
    skills: dict[str, Skill] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def load_skills(folders: Iterable[Path]) -> SkillSet:
    """Skills of each folder (the project's first): ``*.md``, and ``*/SKILL.md``. A missing folder has none.

    The first of two skills with one name counts. Never raises; a skill with a fault that can be lived with is loaded
    and the fault is named.
    """
    found = _Found()
    for folder in folders:
        for path in _candidates(folder, found.problems):
            _load(path, found)
    return SkillSet(tuple(sorted(found.skills.values(), key=lambda skill: skill.name)), tuple(found.problems))


def _candidates(folder: Path, problems: list[str]) -> list[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return []
    paths = []
    home = os.path.realpath(folder)
    for entry in entries:
        if entry.name.startswith("."):
            continue
        path = entry / "SKILL.md" if entry.is_dir() else entry
        if path.suffix.lower() != ".md" or not path.is_file():
            continue
        if not os.path.realpath(path).startswith(home + os.sep):
            problems.append(
                f"The skill {_shown(path)} is not loaded: it is a link that leads out of the skills folder."
            )
            continue
        paths.append(path)
    if len(paths) > MAX_SKILLS:
        problems.append(f"Only the first {MAX_SKILLS} of {len(paths)} skills in {folder} are loaded.")
    return paths[:MAX_SKILLS]


def _load(path: Path, found: _Found) -> None:
    try:
        file = read_text(path, max_bytes=MAX_BYTES)
    except TextFileError as error:
        found.problems.append(f"The skill {_shown(path)} is not loaded: {error}.")
        return
    if file is None:
        return
    text = file.text.replace("\r\n", "\n")
    head, body, problem = _front_matter(text)
    folder_form = path.name == "SKILL.md"
    if problem:
        found.problems.append(f"The skill {_shown(path)} has front matter that cannot be read: {problem}.")
    elif folder_form:
        found.problems += [f"The skill {_shown(path)}: {fault}." for fault in _faults(head, path.parent.name)]
    body = body.strip()
    if not body and not head:
        found.problems.append(f"The skill {_shown(path)} is not loaded: it is empty.")
        return
    default = path.parent.name if folder_form else path.stem
    name = _one_line(head.get("name")) or default
    line = _TRIGGER.search(body)
    trigger = line[1].strip() if line else _one_line(head.get("trigger") or head.get("triggers"))
    title = _TITLE.search(body)
    description = _one_line(head.get("description")) or (title[1] if title else "")
    if not trigger and not description:
        found.problems.append(f"The skill {_shown(path)} has no **Trigger**: line, so it is never loaded by itself.")
    skill = Skill(name[:MAX_NAME], path, trigger, description[:MAX_DESCRIPTION], body, _phrases(trigger, description))
    if skill.name in found.skills:
        other = _shown(found.skills[skill.name].path)
        found.problems.append(f"The skill {_shown(path)} is hidden by {other}: both are named {skill.name}.")
        return
    found.skills[skill.name] = skill


def _front_matter(text: str) -> tuple[dict[str, Any], str, str]:
    """Front matter, body, and what is wrong with the first."""
    match = re.match(r"---[ \t]*\n(.*?)(?:^|\n)(?:---|\.\.\.)[ \t]*(?:\n|$)", text, re.DOTALL)
    if not match:
        return {}, text, ""
    body = text[match.end() :]
    try:
        head = yaml.safe_load(match[1])
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        return {}, body, f"line {mark.line + 2} is not valid YAML" if mark else "it is not valid YAML"
    if head is None:
        return {}, body, ""
    if not isinstance(head, dict):
        return {}, body, "it must hold lines of the form `key: value`"
    return {str(key): value for key, value in head.items()}, body, ""


def _faults(head: dict[str, Any], folder: str) -> list[str]:
    """What the format asks for and the front matter does not give."""
    faults = []
    name, description = head.get("name"), head.get("description")
    if not isinstance(name, str) or not name:
        faults.append("the front matter has no name; the folder's name is used")
    else:
        if len(name) > MAX_NAME or not _NAME.fullmatch(name):
            faults.append(
                f"the name must be 1-{MAX_NAME} of a-z, 0-9 and single dashes between them, not {name[:80]!r}"
            )
        if name != folder:
            faults.append(f"the name {name[:80]!r} differs from the folder {folder!r}")
    if not isinstance(description, str) or not description.strip():
        faults.append("the front matter has no description, which says when to use it")
    elif len(description) > MAX_DESCRIPTION:
        faults.append(f"the description is longer than {MAX_DESCRIPTION} characters and is cut")
    return faults


def _one_line(value: object) -> str:
    if isinstance(value, (list, tuple)):
        value = ", ".join(f'"{one}"' for one in value if isinstance(one, (str, int, float)))
    return " ".join(value.split()) if isinstance(value, str) else ""


def _phrases(trigger: str, description: str) -> tuple[str, ...]:
    quoted = [" ".join(next(filter(None, groups)).split()) for groups in _QUOTED.findall(trigger or description)]
    return tuple(dict.fromkeys(phrase for phrase in quoted if phrase))


# --- matching -------------------------------------------------------------------------------------


def match(text: str, skills: Iterable[Skill]) -> list[Skill]:
    """The skills whose trigger matches ``text``, best first (more and longer phrases met), then by name.

    A quoted phrase matches when its words stand in the text side by side, each in any inflected form; small words
    between and inside are skipped. A trigger without quotes matches when two of its content words are met (one, when it
    has only one).
    """
    said = _forms(text)
    if not said:
        return []
    scored = []
    for skill in skills:
        score = _score(skill, said)
        if score:
            scored.append((-score, skill.name, skill))
    return [skill for _, _, skill in sorted(scored, key=lambda row: row[:2])]


@dataclass(frozen=True, slots=True)
class _Form:
    word: str
    stems: frozenset[str]


def _score(skill: Skill, said: Sequence[_Form]) -> int:
    if skill.phrases:
        return sum(len(wanted) for wanted in map(_phrase_forms, skill.phrases) if _stands_in(wanted, said))
    wanted = _topic_forms(skill.trigger or skill.description)
    met = sum(any(_same(one, other) for other in said) for one in wanted)
    return met if met >= min(2, len(wanted)) else 0


def _stands_in(wanted: Sequence[_Form], said: Sequence[_Form]) -> bool:
    length = len(wanted)
    return bool(length) and any(
        all(_same(one, other) for one, other in zip(wanted, said[start : start + length], strict=True))
        for start in range(len(said) - length + 1)
    )


@lru_cache(maxsize=1024)
def _phrase_forms(phrase: str) -> tuple[_Form, ...]:
    return tuple(_forms(phrase)) or tuple(_Form(word, frozenset({word})) for word in words(phrase))


@lru_cache(maxsize=512)
def _topic_forms(text: str) -> tuple[_Form, ...]:
    unique = {form.word: form for form in _forms(text) if form.word not in _EMPTY_WORDS and len(form.word) > 2}
    return tuple(unique.values())


def _forms(text: str) -> list[_Form]:
    language = language_of(text)
    return [_form(word, language) for word in words(text) if word not in STOPWORDS]


@lru_cache(maxsize=8192)
def _form(word: str, language: str) -> _Form:
    stems = set(word_stems(word, language))
    root = _CHANGING.sub("~", word)
    if root != word and len(root) > 3:
        stems.add(root)
    return _Form(word, frozenset(stems))


def _same(one: _Form, other: _Form) -> bool:
    """Whether two words are forms of one. The Polish stemmer is uneven, so long words also match by their beginning."""
    if one.word == other.word or one.stems & other.stems:
        return True
    short, long = sorted((one.word, other.word), key=len)
    if len(short) < 5:
        return False
    shared = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(short, long, strict=False)))
    if shared == 4:  # bramy, brama; build, built
        return len(short) == 5 and len(long) < 7
    return shared >= max(5, len(short) - 2, len(long) * 3 // 5) and len(long) - len(short) < 4


def index_text(skills: Iterable[Skill]) -> str:
    """One line for each skill, for the fixed part of the prompt; empty for none."""
    lines = []
    for skill in skills:
        about = skill.description or skill.trigger
        when = f" (trigger: {skill.trigger})" if skill.trigger and skill.description else ""
        lines.append(_cut(f"- {skill.name}: {about}{when}" if about else f"- {skill.name}"))
    return "\n".join(lines)


def _cut(line: str, width: int = 200) -> str:
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"


def _shown(path: Path) -> str:
    return "/".join(path.parts[-2:] if path.name != "SKILL.md" else path.parts[-3:])
