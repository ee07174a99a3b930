"""Judging one sentence of the user by the patterns of its language: what it is, and what it states."""

from __future__ import annotations

import re
from datetime import datetime

from tui_agent.memory.statement_lexicon import Lexicon, lexicon, small_talk
from tui_agent.memory.statement_reading import SPEECH, Sentence, unmarked
from tui_agent.memory.statement_times import WORDS, days_of, version_days
from tui_agent.memory.statement_types import FACT, LEARNED, PREFERENCES, RULES, USER, Judged, Label, Statement
from tui_agent.memory.statement_world import is_count, is_org_chart, is_placed, is_status
from tui_agent.memory.text import STOPWORDS, fold, words
from tui_agent.memory.types import Kind


def judge(sentence: Sentence, previous: Judged | None, now: datetime) -> Judged:
    """The label of the first language that says something definite."""
    plain: Judged | None = None
    for language in sentence.languages:
        judged = _Reader(sentence, lexicon(language), previous, now).verdict()
        if judged.label is not Label.PLAIN:
            return judged
        plain = plain or judged
    return plain or Judged(sentence, Label.PLAIN)


def statement_of(
    sentence: Sentence,
    kind: Kind,
    target: str,
    *,
    importance: int = 5,
    ttl: float | None = None,
    subject: str = "",
    why: str = "",
) -> Statement:
    offset = _greeting_length(sentence)
    return Statement(
        sentence.text[offset:], kind, target, sentence.start + offset, sentence.end, ttl, subject, importance, why
    )


def _greeting_length(sentence: Sentence) -> int:
    """How much of the sentence is a greeting or a joining word; what is kept starts behind it."""
    match = _OPENING.match(sentence.text)
    return match.end() if match and len(sentence.text) - match.end() > 3 else 0


_OPENING = re.compile(
    r"(?:(?:hi|hello|hey|good (?:morning|evening|afternoon)|cześć|hej|witaj|witam|dzień dobry"
    r"|привет|здравствуйте?|добрый день)(?: (?!i\b|i'm|я\b)\w+)?[,!.]+\s+"
    r"|(?:also|btw|by the way|i tak|кстати|przy okazji|swoją drogą),\s+)+",
    re.IGNORECASE,
)


_SHORT_FORMS = re.compile(r"\b(im|ive|id|dont|doesnt|didnt|cant|wont|isnt|youre|thats|weve|lets|whats)\b")


def _apostrophes(plain: str) -> str:
    """ "im" and "dont" as they are meant in English."""
    return _SHORT_FORMS.sub(lambda match: _spelt(match[1]), plain)


def _spelt(word: str) -> str:
    if word.endswith("nt"):
        return word[:-1] + "'t"
    for ending in ("ve", "re", "m", "d", "s"):
        if word.endswith(ending):
            return f"{word[: -len(ending)]}'{ending}"
    return word[:-1] + "'" + word[-1]


# "Commit messages follow …": an English noun that could be an order, with its verb behind it.
_NOUN_FIRST = re.compile(
    r"\w+ \w+s (?:always |never |only )?(?:must|should|are|follow|end|start|begin|go|live|use|have|need"
    r"|get|look|contain|stay|come)\b"
)


class _Reader:
    """Reads one sentence with the patterns of one language."""

    def __init__(self, sentence: Sentence, lexicon: Lexicon, previous: Judged | None, now: datetime) -> None:
        self.sentence, self.lex, self.previous = sentence, lexicon, previous
        self.whole = _apostrophes(sentence.plain) if lexicon.language == "en" else sentence.plain
        greeting = lexicon.greeting.match(self.whole)
        behind = self.whole[greeting.end() :] if greeting else ""
        self.plain = behind if words(behind) else self.whole
        self.ttl = days_of(sentence.plain, lexicon.language, now)

    def verdict(self) -> Judged:
        label = self._nothing()
        told = self._told() is not None
        if label is not None:
            return Judged(self.sentence, label, told=told)
        statement = self._lasting()
        if isinstance(statement, Label):
            return Judged(self.sentence, statement, told=told)
        if statement is not None:
            return Judged(self.sentence, Label.STATEMENT, statement, told)
        return Judged(self.sentence, self._otherwise())

    def _otherwise(self) -> Label:
        """What a sentence is that states nothing lasting."""
        if self.sentence.quoted:
            return Label.REPORTED
        if self._imperative():
            style = self.lex.style_verbs.match(self.plain) or self.lex.negative.match(self.plain)
            return (
                Label.PLAIN
                if style and not self._orders_task() and not self.lex.task.search(self.plain)
                else Label.COMMAND
            )
        if self.lex.correction_not.search(self.whole):
            return Label.TASK
        return Label.TASK if self.lex.task.search(self.plain) or self.lex.narration.match(self.plain) else Label.PLAIN

    # -- what is not the user's statement --

    def _nothing(self) -> Label | None:
        lex, plain = self.lex, self.plain
        if lex.off_record.search(self.whole):
            return Label.OFF_RECORD
        if lex.anaphora.search(plain):
            return Label.FOLLOW_UP
        if self._is_small_talk():
            return Label.SMALL_TALK
        if lex.reported.search(self.whole) and (self.sentence.quoted or not lex.first_singular.search(self.whole)):
            return Label.REPORTED
        asked = lex.question.match(plain) and not lex.name.search(unmarked(self.sentence.cased))
        question = self.whole.rstrip(" \"'»”)").endswith("?") or (asked and not plain.endswith((".", "!")))
        if question:
            return Label.QUESTION
        behind = plain.partition(":")[2]
        if (
            lex.save_command.search(plain)
            and len(plain.split()) <= 9
            and not lex.contrast.search(plain)
            and len(words(behind)) < 2
        ):
            return Label.SAVE_COMMAND
        told = self._told() or lex.permanence.search(plain) or lex.to_rules.search(plain)
        if not told and (
            lex.musing.search(self.whole) or lex.sarcasm.search(self.whole) or lex.fiction.search(self.whole)
        ):
            return Label.MUSING
        if asked and not told and not lex.decision.search(plain) and not lex.standing.match(plain):
            return Label.QUESTION
        if self._is_third_party():
            return Label.THIRD_PARTY
        if self.sentence.quoted and SPEECH.strip() == plain.strip(" .,:;!-—"):
            return Label.REPORTED
        return None

    def _told(self) -> re.Match[str] | None:
        """The words by which the user asks to remember, or allows it."""
        return self.lex.remember.search(self.plain) or self.lex.allowed.search(self.plain)

    def _is_small_talk(self) -> bool:
        found = words(self.whole)
        small = small_talk()
        return not found or (
            len(found) <= 8
            and all(word in small or word in STOPWORDS for word in found)
            and any(word in small for word in found)
        )

    def _is_third_party(self) -> bool:
        lex, plain = self.lex, self.plain
        if lex.peer.match(plain) and not (lex.we.search(plain) or lex.decision.search(plain) or self.ttl):
            return True
        if (lex.third.match(plain) and not lex.contrast.search(plain)) or lex.third_possessive.match(plain):
            return True
        match = lex.third_name.match(plain)
        capital = self.sentence.text[:1].isupper()
        return bool(
            match
            and capital
            and match["who"] not in lex.not_a_person
            and match["who"] not in STOPWORDS
            and not lex.we.search(plain)
        )

    # -- what is --

    def _lasting(self) -> Statement | Label | None:
        lex, plain = self.lex, self.plain
        own = bool(lex.first_singular.search(plain))
        told = self._told()
        if lex.to_rules.search(plain):
            return self._made(Kind.CONVENTION, RULES, 7, "a rule, asked for in so many words")
        if lex.intro.match(plain):
            return self._made(Kind.FACT, USER, 7, "about the user")
        if lex.name.search(unmarked(self.sentence.cased)) and not lex.third.match(plain):
            return self._made(Kind.FACT, USER, 8, "the user's name", subject="name")
        if is_count(plain, lex, own) or is_org_chart(self.sentence, lex):
            return Label.WORLD_STATE
        corrected = self._correction()
        if corrected is not None:
            return corrected
        if lex.learned.search(plain) and not self._imperative_task():
            return self._made(Kind.PREFERENCE, LEARNED, 7, "correction of behaviour")
        if self._names_project():
            return self._made(Kind.FACT, f"knowledge/projects/{self._project_slug()}.md", 7, "description of a project")
        if self.ttl is not None and not lex.decision.search(plain) and self._holds_for_a_time(own):
            return self._made(Kind.FACT, USER if self._about_user() else FACT, 5, "holds for a time", ttl=self.ttl)
        for found in (self._ruling(), self._preference(), self._convention(), self._trouble()):
            if found is not None:
                return found
        if not own and self._status():
            return Label.WORLD_STATE
        if not own and is_placed(self.sentence, plain, lex) and not lex.task.search(plain):
            return self._made(Kind.FACT, FACT, 5, "where something of the project is")
        if (
            lex.user_fact.search(plain)
            and not lex.user_fact_not.search(plain)
            and not lex.task.search(plain)
            and not self._imperative()
        ):
            return self._made(Kind.FACT, USER, 6, "about the user", subject=self._subject())
        if told is not None:
            rest = lex.allowed.sub(" ", lex.remember.sub(" ", plain)).strip(" ,.:;")
            if len(words(rest)) >= 2:
                return self._made(
                    Kind.FACT,
                    USER if own else FACT,
                    6,
                    "the user asked to remember it",
                    subject=self._subject() if own else "",
                )
            return Label.SAVE_COMMAND
        return None

    def _made(
        self, kind: Kind, target: str, importance: int, why: str, *, subject: str = "", ttl: float | None = None
    ) -> Statement:
        return statement_of(self.sentence, kind, target, importance=importance, ttl=ttl, subject=subject, why=why)

    def _correction(self) -> Statement | None:
        lex, plain = self.lex, self.plain
        strong = bool(lex.correction.search(self.whole))
        start = bool(lex.correction_start.match(self.whole))
        answered = self.previous is not None and self.previous.label in {Label.QUESTION, Label.MUSING}
        if lex.correction_not.search(self.whole) or len(words(plain)) < 3:
            return (
                None
                if not (start and answered and len(words(plain)) >= 2 and not lex.correction_not.search(self.whole))
                else self._answer()
            )
        if start and answered and not strong:
            return self._answer()
        if not (strong or start) or not (strong or lex.contrast.search(self.whole) or lex.name_word.search(self.whole)):
            return None
        if lex.name_word.search(self.whole) or self._only_names():
            return self._made(Kind.FACT, USER, 8, "correction of a name", subject="name")
        if strong and not lex.contrast.search(self.whole) and len(words(plain)) < 6:
            return None  # "that is wrong" alone corrects nothing
        return self._made(Kind.FACT, FACT, 7, "correction of a fact")

    def _answer(self) -> Statement:
        """The user asked something and gave the answer: that is a decision."""
        return self._made(Kind.DECISION, FACT, 6, "a question the user answered")

    def _only_names(self) -> bool:
        """``Not Kate, but Anna``: the things set against each other are names of people, by all we can see."""
        if self.lex.we.search(self.plain):
            return False
        body = re.split(r"[,.!:]", self.sentence.cased)
        capitals = [
            word
            for part in body
            for word in part.split()[1:]
            if word[:1].isupper() and word.isalpha() and len(word) > 2 and word[1:].islower()
        ]
        known = words(self.sentence.cased)
        return len(capitals) >= 2 - (len(known) <= 3) and len(known) <= 7

    def _names_project(self) -> bool:
        return any(pattern.search(unmarked(self.sentence.cased)) for pattern in self.lex.project_cased) or bool(
            self.lex.project.search(self.plain)
        )

    def _project_slug(self) -> str:
        for pattern in self.lex.project_cased:
            match = pattern.search(unmarked(self.sentence.cased))
            if match is not None:
                name = next((value for value in match.groupdict().values() if value), "")
                if slug := re.sub(r"[^\w-]+", "-", name.lower()).strip("-_"):
                    return slug
        return "project"

    def _holds_for_a_time(self, own: bool) -> bool:
        """A time in a one-off task ("fix it today") is a deadline, not a shelf life."""
        lex, plain = self.lex, self.plain
        if self._imperative() and not lex.negative.match(plain) and not re.search(r"[,;:—-] ?\w+", plain) and not own:
            return bool(re.match(fold(WORDS[lex.language].TIME_START), plain))
        if not own and self._status() and not re.search(r"[,;:—]", plain):
            return bool(re.match(fold(WORDS[lex.language].TIME_START), plain))
        return True

    def _status(self) -> bool:
        return is_status(self.sentence, self.plain, self.lex)

    def _about_user(self) -> bool:
        return bool(self.lex.first_person.search(self.plain))

    def _ruling(self) -> Statement | None:
        lex, plain = self.lex, self.plain
        if not lex.decision.search(plain) or lex.task.search(plain):
            return None
        return self._made(
            Kind.DECISION,
            FACT,
            6,
            "a decision",
            ttl=self.ttl if self.ttl and self._ends() else None,
            subject=self._subject(),
        )

    def _ends(self) -> bool:
        return bool(
            re.match(fold(WORDS[self.lex.language].TIME_START), self.plain)
            or re.search(r"\b(?:until|for the next|do|przez|до|ближайш\w+) ", self.plain)
        )

    def _preference(self) -> Statement | None:
        lex, plain = self.lex, self.plain
        if lex.task.search(plain) and not lex.permanence.search(plain):
            return None
        short = len(words(plain)) <= 6
        imperative, lasting, we = self._imperative(), bool(lex.permanence.search(plain)), bool(lex.we.search(plain))
        style = bool(lex.style_verbs.match(plain)) or bool(lex.negative.match(plain))
        if lex.preference.search(plain) and not we and len(words(plain)) > 2:
            return self._preferred()
        if lex.language_order.search(plain) or (lasting and lex.languages.search(plain) and not we):
            return self._preferred("reply language")
        if lex.standing.match(plain) and not we:
            return self._preferred()
        if we or (lex.code_subject.search(plain) and not lex.answers.search(plain)):
            return None
        ordered = any(word in lex.imperative for word in words(plain)[:7])
        if (lasting and (imperative or style or ordered)) or lex.imperfective.search(plain):
            return self._preferred()
        if lex.answers.search(plain) and (style or short) and not self._orders_task():
            return self._preferred()
        if lex.answers_weak.search(plain) and (lex.negative.match(plain) or lasting):
            return self._preferred()
        return None

    def _orders_task(self) -> bool:
        """Whether one of the first two words orders something to be made, as "write" and "napisz" do."""
        lex = self.lex
        task = (word in lex.imperative and not lex.style_verbs.match(word) for word in words(self.plain)[:2])
        return (any(task) and not lex.negative.match(self.plain)) or bool(
            re.match(
                r"(?:please )?(?:write|give|make|use|explain|start|format) (?:a|an|the|this|it|me (?:a|an|the))\b",
                self.plain,
            )
        )

    def _preferred(self, subject: str = "") -> Statement:
        return self._made(Kind.PREFERENCE, PREFERENCES, 6, "a preference", subject=subject or self._subject())

    def _convention(self) -> Statement | None:
        lex, plain = self.lex, self.plain
        if lex.task.search(plain):
            return None
        if self._imperative() and not lex.permanence.search(plain) and not lex.negative.match(plain):
            return None
        own, we = lex.first_singular.search(plain), lex.we.search(plain)
        stated = lex.convention.search(plain) or (we and lex.language != "en" and lex.we_verb.search(plain))
        if stated and (we or not own):
            if self._status() and not lex.permanence.search(plain) and not we:
                return None
            if lex.problem.search(plain) and lex.workaround.search(plain):
                return None
            version = version_days(plain) if lex.versioned.search(plain) else None
            ttl = self.ttl if self.ttl and self._ends() else version
            return self._made(Kind.CONVENTION, FACT, 6, "a convention", ttl=ttl, subject=self._subject())
        if lex.versioned.search(plain):
            return self._made(Kind.FACT, FACT, 5, "a version in use", ttl=version_days(plain))
        return None

    def _trouble(self) -> Statement | None:
        lex, plain = self.lex, self.plain
        if (
            lex.problem.search(plain)
            and lex.problem_when.search(plain)
            and (lex.workaround.search(plain) or "; " in plain)
        ):
            return self._made(Kind.PROBLEM, FACT, 6, "a recurring problem and what helps")
        return None

    def _subject(self) -> str:
        return next((key for key, pattern in self.lex.subjects.items() if pattern.search(self.plain)), "")

    # -- form --

    def _imperative(self) -> bool:
        first = re.match(
            r"(?:(?:please|now|then|and|prosze|teraz|potem|пожалуйста|теперь|потом),? )*([\w']+)", self.plain
        )
        if first is None or self.lex.first_singular.match(self.plain) or _NOUN_FIRST.match(self.plain):
            return False
        return (
            first[1].replace("'", "") in self.lex.imperative
            or first[1] in self.lex.imperative
            or bool(self.lex.imperative_form.match(self.plain))
        )

    def _imperative_task(self) -> bool:
        """``Stop the server``: an order about a thing, not about the assistant's ways."""
        return bool(re.match(r"stop (?:the|a|this|that|it)\b", self.plain))
