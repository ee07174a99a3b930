"""The patterns of one language, compiled from its data module."""

from __future__ import annotations

import re
from functools import lru_cache

from tui_agent.memory.statement_reading import unmarked
from tui_agent.memory.statement_times import WORDS
from tui_agent.memory.text import fold, words


class Lexicon:
    """The compiled patterns of a language."""

    def __init__(self, language: str) -> None:
        data = WORDS[language]

        def any_of(*patterns: str) -> re.Pattern[str]:
            return re.compile("|".join(f"(?:{fold(pattern)})" for pattern in patterns))

        def cased(*patterns: str) -> re.Pattern[str]:
            return re.compile("|".join(f"(?:{unmarked(pattern)})" for pattern in patterns))

        number = fold(data.NUMBER)
        self.language = language
        self.off_record = any_of(*data.OFF_RECORD)
        self.allowed = re.compile(fold(data.ALLOWED))
        self.small_talk = frozenset(words(data.SMALL_TALK))
        self.greeting = re.compile(rf"^(?:{fold(data.GREETING)}(?: \w+)?[,.!]+ |{fold(data.GREETING)} )+")
        self.question = re.compile(rf"^(?:{fold(data.QUESTION_START)})")
        self.musing = any_of(*data.MUSING)
        self.sarcasm = any_of(*data.SARCASM)
        self.fiction = any_of(*data.FICTION)
        self.reported = any_of(*data.REPORTED)
        self.third = re.compile(rf"^(?:{fold(data.KIN)})(?: \w+)? {fold(data.THIRD_VERBS)}")
        self.peer = re.compile(rf"^(?:{fold(data.PEER)})\b(?! (?:name|imie|имя|and i|i ja|и я))")
        self.third_name = re.compile(rf"^(?P<who>[^\W\d_][\w-]+) {fold(data.THIRD_NAME_VERBS)}")
        self.third_possessive = re.compile(rf"^[^\W\d_]\w+(?:{data.THIRD_POSSESSIVE})")
        self.not_a_person = frozenset(words(data.NOT_A_PERSON))
        self.remember = any_of(*data.REMEMBER)
        self.save_command = any_of(*data.SAVE_COMMAND)
        self.anaphora = any_of(*data.ANAPHORA)
        self.to_rules = any_of(*data.TO_RULES)
        self.name = cased(*data.NAME_CASED)
        self.name_word = re.compile(fold(data.NAME_WORD))
        self.user_fact = any_of(*data.USER_FACT)
        self.user_fact_not = any_of(*data.USER_FACT_NOT)
        self.preference = any_of(*data.PREFERENCE)
        self.answers = any_of(data.ANSWERS)
        self.answers_weak = any_of(data.ANSWERS_WEAK)
        self.style_verbs = re.compile(rf"^(?:{fold(data.STYLE_VERBS)})\b")
        self.negative = re.compile(rf"^(?:{fold(data.NEGATIVE_START)})\b")
        self.languages = any_of(data.LANGUAGES)
        self.language_order = any_of(data.LANGUAGE_ORDER)
        self.imperfective = any_of(data.IMPERFECTIVE)
        self.task = any_of(*data.TASK)
        self.narration = re.compile(fold(data.NARRATION))
        self.standing = re.compile(fold(data.STANDING))
        self.intro = re.compile(fold(data.INTRO))
        self.permanence = any_of(*data.PERMANENCE)
        self.imperative = frozenset(words(data.IMPERATIVE))
        self.imperative_form = re.compile(fold(data.IMPERATIVE_FORM))
        self.learned = any_of(*data.LEARNED)
        self.correction = any_of(*data.CORRECTION)
        self.correction_start = re.compile(fold(data.CORRECTION_START))
        self.contrast = any_of(*data.CONTRAST)
        self.correction_not = any_of(data.CORRECTION_NOT)
        self.project_cased = tuple(re.compile(unmarked(pattern)) for pattern in data.PROJECT_CASED)
        self.project = any_of(*data.PROJECT)
        self.decision = any_of(*data.DECISION)
        self.convention = any_of(*data.CONVENTION)
        self.we = any_of(data.WE)
        self.we_verb = any_of(getattr(data, "WE_VERB", r"(?!)"))
        self.code_subject = any_of(data.CODE_OBJECTS)
        self.problem = any_of(data.PROBLEM)
        self.problem_when = any_of(data.PROBLEM_WHEN)
        self.workaround = any_of(data.WORKAROUND)
        self.state_count = any_of(*(pattern.replace("{n}", number) for pattern in data.STATE_COUNT))
        self.state_not = any_of(data.STATE_NOT)
        self.state_status = any_of(*data.STATE_STATUS)
        self.state_amount = any_of(*(pattern.replace("{n}", number) for pattern in data.STATE_AMOUNT))
        self.state_part = re.compile(rf"{number} (?:[\w-]+ )?(?:{fold(data.STATE_PARTS)})")
        self.state_now = any_of(data.STATE_NOW)
        self.state_place = cased(data.STATE_PLACE)
        self.state_lasting = cased(*data.STATE_LASTING)
        self.ours = re.compile(fold(data.OURS))
        self.first_person = any_of(data.FIRST_PERSON)
        self.first_singular = re.compile(fold(data.FIRST_SUBJECT))
        self.versioned = re.compile(
            rf"(?:{fold(data.VERSIONED)})[ :]+(?:[\w.#+-]+ ){{0,3}}?v?\d+(?:\.\d+)*\b"
            r"(?! ?(?:%|percent|procent|процент|ms|gb|mb))"
        )
        self.subjects = {key: re.compile(fold(pattern)) for key, pattern in data.SUBJECTS.items()}
        self.save_claim = any_of(*data.SAVE_CLAIM)
        self.save_denial = re.compile(fold(data.SAVE_DENIAL))


@lru_cache(maxsize=1)
def small_talk() -> frozenset[str]:
    """The small talk of all languages: a word or two rarely shows which one it is."""
    return frozenset().union(*(lexicon(language).small_talk for language in WORDS))


@lru_cache(maxsize=8)
def lexicon(language: str) -> Lexicon:
    return Lexicon(language)
