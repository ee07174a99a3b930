"""What is remembered although a tool could fetch it: counts, statuses, dates, versions, values of the world.

Memory is for the person, tools for everything else: such a fact is wrong as soon as the world moves on. This only
proposes; whether a fact goes is the user's decision, and what the user has confirmed is not proposed again soon.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from tui_agent.memory.statements import LEARNED, PREFERENCES, RULES, USER, Label, read
from tui_agent.memory.text import fold, parse_utc, utc_now
from tui_agent.memory.types import Fact, Kind, Scope

QUIET_DAYS = 90
"""For so long after a confirmation a fact is not proposed again."""

_OWN = (USER, PREFERENCES, LEARNED, RULES)
_MONTH = (
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|stycz|lut|kwie|maj|czerw|lip|sierp|wrze|paz|list|grud|"
    r"янв|фев|мар|апр|ма[ия]|июн|июл|авг|сен|окт|ноя|дек)\w*"
)
# Over the folded text. The first that is found names what the fact is, and how it is looked up instead.
_SIGNS: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    (
        "a status",
        "ask the tracker, the build or the server",
        re.compile(
            r"\b(?:is|are|was|were) (?:currently |still |now )?(?:delayed|late|broken|down|up|red|green|failing|"
            r"passing|"
            r"blocked|done|finished|deployed|released|running|on track|in progress|open|closed)\b|"
            r"\b(?:jest|sa) (?:teraz |wciaz )?(?:opozniony|opozniona|opoznione|zepsut\w+|zablokowan\w+|gotow\w+|w toku|"
            r"zielon\w+|czerwon\w+)|"
            r"(?<!\w)(?:задержан|сломан|заблокирован|готов|упал|не работает|задерживается)\w*"
        ),
    ),
    (
        "a date",
        "look into the calendar or the plan",
        re.compile(
            rf"\b\d{{4}}-\d{{2}}-\d{{2}}\b|\b\d{{1,2}}\.\d{{1,2}}\.\d{{2,4}}\b|\b\d{{1,2}}(?:st|nd|rd|th)? (?:of "
            rf")?{_MONTH}\b|"
            rf"\b{_MONTH} \d{{1,2}}\b|"
            r"\b(?:deadline|due|release|launch|termin|premiera|wydanie|срок|релиз|дедлайн)\b.*"
            r"\b(?:on|w|в|by|do|до) (?:monday|tuesday|wednesday|thursday|friday|saturday|sunday|poniedzialek|wtorek|"
            r"srode|czwartek|"
            r"piatek|понедельник|вторник|среду|четверг|пятницу)"
        ),
    ),
    (
        "a measured value",
        "measure it, or read it where it is kept",
        re.compile(
            r"\d\s*(?:%|percent|procent|процент|usd|eur|pln|rub|zl\b|€|\$|₽|ms\b|мс\b|gb\b|mb\b|гб\b|мб\b|kb\b)|"
            r"[$€£]\s?\d|\bport (?:is )?\d{2,5}\b|\bport \d|\bпорт\w* \d"
        ),
    ),
    (
        "a version",
        "the lock file or `--version` says it",
        re.compile(
            r"\b(?:version|wersja|wersji|версия|версии|v)\s?\d|\b\d+\.\d+(?:\.\d+)+\b|"
            r"\b(?:postgres(?:ql)?|mysql|mariadb|sqlite|redis|python|node(?:\.?js)?|java|go|rust|php|ruby|django|react|"
            r"vue|angular|kubernetes|docker|ubuntu|debian|\.?net|typescript|kafka|elasticsearch|mongodb) \d"
        ),
    ),
    (
        "a count",
        "count it when it is needed",
        re.compile(
            r"\b\d+ (?:people|persons|members|developers|engineers|users|customers|clients|tests|files|issues|tickets|"
            r"tasks|orders|"
            r"rows|records|commits|servers|services|branches|endpoints|tables|osob|osoby|ludzi|uzytkownikow|klientow|"
            r"testow|plikow|"
            r"zadan|zgloszen|zamowien|wierszy|serwerow|человек|людеи|пользователеи|клиентов|тестов|фаилов|задач|заявок|"
            r"заказов|строк|серверов)\b"
        ),
    ),
)  # fmt: skip


# Which command says what version is in use, and which file asks for it; over the folded text.
_TOOLS: tuple[tuple[str, str], ...] = (
    (r"postgres(?:ql)?", "`psql --version`, or the image in the compose file"),
    (r"mysql|mariadb", "`mysql --version`, or the image in the compose file"),
    (r"sqlite", "`sqlite3 --version`"),
    (r"redis", "`redis-server --version`"),
    (r"python|django", "`python --version` and pyproject.toml"),
    (r"node(?:\.?js)?|react|vue|angular|typescript", "`node --version` and package.json"),
    (r"java|kotlin", "`java -version`, or pom.xml and build.gradle"),
    (r"go|golang", "`go version` and go.mod"),
    (r"rust", "`rustc --version` and Cargo.toml"),
    (r"php", "`php --version` and composer.json"),
    (r"ruby|rails", "`ruby --version` and the Gemfile"),
    (r"\.?net|c#", "`dotnet --version` and the project file"),
    (r"docker", "`docker --version`"),
    (r"kubernetes|k8s", "`kubectl version`"),
    (r"ubuntu|debian", "/etc/os-release"),
)
_USED = tuple((re.compile(rf"(?<![\w.]){name} v?\d"), where) for name, where in _TOOLS)
_FILE = re.compile(
    r"(?<![\w/.@-])(?:[\w.-]+/)*(?:[\w-]+\.(?:toml|ya?ml|json|ini|cfg|conf|lock|md|txt|py|ts|js|go|rs|sql|sh|gradle|xml)"
    r"|Makefile|Dockerfile|Gemfile|Jenkinsfile|\.[a-z]+rc|\.editorconfig|\.gitignore)(?![\w/])"
)


@dataclass(frozen=True, slots=True)
class Fetchable:
    """A fact that a tool could fetch: ``what`` it is (``a count``), and ``how`` it is looked up instead."""

    fact: Fact
    what: str
    how: str

    @property
    def reason(self) -> str:
        """The proposal as a sentence."""
        return f"{self.what[:1].upper()}{self.what[1:]}: {self.how} instead of remembering it."


def fetchable(facts: Iterable[Fact], *, now: str | None = None) -> list[Fetchable]:
    """The live ``facts`` that a tool could fetch, in their order.

    Left out: notes about the user, preferences and rules (no tool knows them), decisions and conventions that only
    mention a number, what has an end already, what is pinned, and what the user confirmed within ``QUIET_DAYS``.
    """
    moment = parse_utc(now or utc_now())
    found = []
    for fact in facts:
        if fact.scope is Scope.USER or fact.target in _OWN or fact.kind is Kind.PREFERENCE:
            continue
        if fact.pinned or fact.expires_at or _confirmed_lately(fact, moment):
            continue
        sign = _sign(fact, moment)
        if sign is not None:
            found.append(Fetchable(fact, *sign))
    return found


def check_hint(fact: Fact, *, now: str | None = None) -> str:
    """How to find out whether a fact still holds: a file or a command, or what to ask; empty for what only a person
    knows."""
    if fact.scope is Scope.USER or fact.target in _OWN or fact.kind is Kind.PREFERENCE:
        return ""
    plain = fold(fact.fact)
    used = next((where for pattern, where in _USED if pattern.search(plain)), "")
    if used:
        return used
    if (named := _FILE.search(fact.fact)) is not None:
        return f"look into {named[0]}"
    sign = _sign(fact, parse_utc(now or utc_now()))
    if sign is not None:
        return sign[1]
    signs = [how for _, how, pattern in _SIGNS if pattern.search(plain)]
    return signs[0] if signs else ""


def _confirmed_lately(fact: Fact, now: datetime) -> bool:
    confirmed = parse_utc(fact.confirmed_at)
    return confirmed > parse_utc(fact.created_at) and now - confirmed < timedelta(days=QUIET_DAYS)


def _sign(fact: Fact, now: datetime) -> tuple[str, str] | None:
    plain = fold(fact.fact)
    signs = [(what, how) for what, how, pattern in _SIGNS if pattern.search(plain)]
    if any(item.label is Label.WORLD_STATE for item in read(fact.fact, now=now)):
        return signs[0] if signs else ("a state of the world", "look it up when it is needed")
    # What the user decided holds until the user decides anew, whatever numbers it names.
    return signs[0] if signs and fact.kind in (Kind.FACT, Kind.PROBLEM) else None
