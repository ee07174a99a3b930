"""What stands in the fixed part of the prompt, read from disk once and again when a file changes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass

from tui_agent.agent.prompt import Section
from tui_agent.agent.stores import Stores
from tui_agent.memory.places import RULES, MemoryFileError
from tui_agent.memory.prompt_files import Count, PromptCaps, PromptSection, prompt_sections, section_notes
from tui_agent.memory.rules import RulesSet, load_rules
from tui_agent.memory.skills import Skill, index_text, load_skills, match
from tui_agent.memory.types import Fact
from tui_agent.project import Project, UserPaths
from tui_agent.settings import Settings

_SKILLS = "Skills"


@dataclass(frozen=True, slots=True)
class _Read:
    """One reading of all sources."""

    rules: RulesSet
    skills: tuple[Skill, ...]
    sections: tuple[PromptSection, ...]
    problems: tuple[str, ...]
    facts_in_files: tuple[Fact, ...]
    notes: dict[str, str]


class PromptSources:
    """AGENTS.md, notes about the user, rules, the skill index and the project's own instruction files.

    ``refresh`` reads the disk (call it in a thread); everything else answers from the last reading.
    """

    def __init__(self, stores: Stores, settings: Settings, count: Count) -> None:
        self._stores = stores
        self._settings = settings
        self._count = count
        self._read = _Read(RulesSet(), (), (), (), (), {})

    @property
    def rules(self) -> RulesSet:
        """The rules in force."""
        return self._read.rules

    def configure(self, settings: Settings) -> None:
        """Use other settings from the next ``refresh`` on."""
        self._settings = settings

    def refresh(self) -> None:
        """Read everything again."""
        project: Project = self._stores.project
        paths: UserPaths = self._stores.paths
        caps = self._settings.files
        live = self._stores.facts.live_written()
        told = [fact.fact for fact in live if fact.target == RULES]  # the user's file is not written, so rows hold them
        rules = load_rules(
            project.root,
            (*self._settings.rules, *told),
            memory_dir=project.memory_dir,
            max_tokens=caps.rules_max_tokens,
            count=self._count,
        )
        loaded = load_skills([project.skills_dir, paths.skills_dir])
        sections = prompt_sections(
            self._stores.files,
            PromptCaps(
                agents_tokens=caps.agents_max_tokens,
                user_tokens=caps.user_max_tokens,
                user_lines=self._settings.user_notes_max_lines,
                project_tokens=caps.agents_max_tokens,
                total_tokens=caps.total_max_tokens,
            ),
            count=self._count,
            rules=rules.sections(),
            user_notes=paths.user_notes_path,
            project_root=project.root,
        )
        problems = [*rules.problems, *loaded.problems, *section_notes(sections), *self._stores.files.problems()]
        facts = tuple(fact for fact in live if fact.target_line)
        self._read = _Read(rules, loaded.skills, tuple(sections), tuple(dict.fromkeys(problems)), facts, self._notes())

    def _notes(self) -> dict[str, str]:
        """Memory files that are not in the fixed part, by name; what cannot be read is in ``problems``."""
        found: dict[str, str] = {}
        for name in self._stores.files.listing():
            if name.startswith(("knowledge/projects/", "conversations/summaries/")):
                with contextlib.suppress(MemoryFileError):
                    found[name] = self._stores.files.read(name)
        return found

    def notes(self) -> dict[str, str]:
        """Texts about projects and summaries of conversations, for recall to search."""
        return self._read.notes

    def sections(self) -> list[Section]:
        """The parts of the fixed part, in order, with the skill index last."""
        found = [Section(section.name, section.text) for section in self._read.sections]
        if index := index_text(self._read.skills):
            found.append(Section(_SKILLS, index))
        return found

    def files(self) -> tuple[PromptSection, ...]:
        """The files in the fixed part, in order, each with its path."""
        return self._read.sections

    def skills(self) -> tuple[Skill, ...]:
        """The skills that are loaded when their trigger fits."""
        return self._read.skills

    def problems(self) -> tuple[str, ...]:
        """What could not be read or had to be cut, as sentences."""
        return self._read.problems

    def rules_hash(self) -> str:
        """Identity of the rules."""
        return self._read.rules.hash

    def matching_skills(self, text: str) -> list[Skill]:
        """Skills whose trigger matches ``text``."""
        return match(text, self._read.skills)

    def refs_in(self, sections: Iterable[Section]) -> set[str]:
        """Facts whose line stands in one of ``sections``: the model sees them already."""
        texts = [section.text for section in sections]
        return {
            f"fact:{fact.id}" for fact in self._read.facts_in_files if any(fact.target_line in text for text in texts)
        }
