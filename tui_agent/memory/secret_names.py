"""Secrets that a name gives away: assignments, options, the next line, and prose in English, Polish and Russian."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tui_agent.memory import secret_rules as rules
from tui_agent.memory.secret_rules import REPLACEMENT
from tui_agent.memory.secret_values import (
    PARTS,
    Span,
    classes,
    family_of,
    is_code,
    is_name,
    looks_random,
    prose_value,
    stands_in,
    strength,
)
from tui_agent.memory.text import fold, language_of

_LEFT = re.compile(r"[\w.$-]*$")
_RIGHT = re.compile(r"[\w.-]*")


def named(text: str) -> Iterator[Span]:
    """Values that follow a name: assignments, command line options, next lines, prose."""
    done = -1
    for hit in rules.STEM.finditer(text):
        if hit.start() < done or text.startswith(REPLACEMENT, hit.start() - 1):
            continue
        left = _LEFT.search(text, max(0, hit.start() - 64), hit.start())
        start = left.start() if left else hit.start()
        right = _RIGHT.match(text, hit.end(), min(len(text), hit.end() + 64))
        end = right.end() if right else hit.end()
        while end > start and text[end - 1] in ".-":
            end -= 1
        done = end
        name = text[start:end]
        family = family_of(name)
        if family == "key" and rules.WIFI.search(text, max(0, start - 80), start) and PARTS.fullmatch(name):
            family = "password"
        if not family or (family == "key" and _qualified_key(text, start, end)):
            continue
        assignment = _ASSIGN.match(text, end)
        value = _assigned(text, start, end, family, assignment) or _on_next_line(text, end, family)
        if value is None and assignment is None and not text.startswith(("(", "[", "_"), end):
            value = _in_prose(text, start, end, family)
        if value is not None:
            yield f"named_{family}", *value
            done = max(done, value[1] if value[0] >= end else end)
        elif assignment is not None:
            run = _BARE.match(text, assignment.end())
            if run is not None and len(run[0]) > 300:
                done = run.end()  # no assignment but a blob; looking at each place in it would take for ever


def _qualified_key(text: str, start: int, end: int) -> bool:
    """Whether words beside "key" say that it is a database key, a sort key or the like."""
    around = text[max(0, start - 24) : start].split()[-1:] + text[end : end + 24].split()[:1]
    return any(fold(word.strip(".,:;()\"'")) in rules.KEY_NOT_A_SECRET for word in around)


# `define('DB_PASSWORD', 'x')`, `setProperty("db.password", "x")`
_ARGUMENT = re.compile(r"(?P<first>[\"'])[ \t]*,[ \t]*(?P<quote>[\"'])(?P<value>[^\"'\s]{4,256})(?P=quote)[ \t]*[,)]")
_ASSIGN = re.compile(
    r"(?P<close>\\?[\"'`]?\]?)"
    r"(?:[ \t]{0,4}\??:[ \t]*(?:Optional\[)?&?(?:str|String|string|bytes|SecretStr|text|char\s*\*)\]?[ \t]*=(?!=)"
    r"|[ \t]{0,16}(?P<op>:=|=>|=(?![=>~])|:(?![:=/])|->))[ \t]*(?P<prefix>[bruRBfF@]{0,2})(?P<quote>\\?[\"'`“„«])?"
)
_CLOSING = {"“": "”", "„": "”", "«": "»"}
# "&" ends a value where the next parameter of a URL begins, and may else be a character of it.
_BARE = re.compile(r"(?:[^\s,;&|<>\"'`(){}\[\]]|&(?=\w)(?![\w.%-]{1,64}=)){1,600}")
_LINE_NAME = re.compile(r"^[ \t>#*-]*(?:export[ \t]+|set[ \t]+|-[ \t]+|ENV[ \t]+|ARG[ \t]+)?$")
_SPACED = re.compile(r"[ \t]{1,8}(?P<value>[^\s,;\"'`]{1,600})")


def _assigned(text: str, start: int, end: int, family: str, match: re.Match[str] | None) -> tuple[int, int] | None:
    if match is None:
        argument = _ARGUMENT.match(text, end)
        if argument is not None and not stands_in(argument["value"]) and strength(argument["value"]) >= 3:
            return argument.start("value"), argument.end("value")
        option = text[max(0, start - 1) : start + 2].find("--") >= 0
        spaced = _SPACED.match(text, end)
        if spaced is None:
            return None
        value = spaced["value"].rstrip("\\")
        if option and not value.startswith("-") and not stands_in(value) and strength(value) >= 2:
            return spaced.start("value"), spaced.start("value") + len(value)
        # `aws configure set aws_secret_access_key VALUE`
        if "_" in text[start:end] and looks_random(value, 16) and not stands_in(value):
            return spaced.start("value"), spaced.start("value") + len(value)
        return None
    at = match.end()
    quote = match["quote"]
    if quote:
        closing = _CLOSING.get(quote, quote)
        stop = _closing_quote(text, at, closing)
        if stop is None:
            return None
        value = text[at:stop]
        if "{" in value and match["prefix"].lower().startswith("f"):
            return None
        if _quoted_counts(value, family, match["op"] or "="):
            return at, stop
        return None
    return _bare_value(text, start, at, family, match["op"] or "=", match["close"])


def _closing_quote(text: str, at: int, closing: str) -> int | None:
    limit = min(len(text), at + 4096)
    line_end = text.find("\n", at, limit)
    limit = limit if line_end < 0 else line_end
    position = at
    while (position := text.find(closing, position, limit)) >= 0:
        if closing.startswith("\\") or text[position - 1] != "\\":
            return position
        position += 1
    return None


def _quoted_counts(value: str, family: str, operator: str) -> bool:
    if len(value) < 3 or stands_in(value) or value.isspace():
        return False
    folded = fold(value).strip(" .:?!")
    if folded in rules.PLAIN_WORDS:
        return False
    if family == "password":
        if " " in value:
            # A sentence is a label or a hint, a few words are a pass phrase.
            return not rules.STEM.search(value) and value[-1] not in ".?!:" and len(value.split()) <= 12
        return not (is_name(value) and rules.STEM.search(value))
    if " " in value:
        return False
    level = strength(value)
    if family == "token":
        return (level >= 3 and len(value) >= 6) or looks_random(value, 16)
    return looks_random(value, 16)


def _bare_value(text: str, start: int, at: int, family: str, operator: str, close: str) -> tuple[int, int] | None:
    match = _BARE.match(text, at)
    if match is None:
        return None
    value = match[0].rstrip("\\")
    stop = at + len(value)
    line_start = max(text.rfind("\n", max(0, start - 80), start) + 1, start - 80, 0)
    own_line = bool(_LINE_NAME.match(text[line_start:start])) and start - line_start < 80
    line_end = text.find("\n", at, at + 4096)
    line_end = min(len(text), at + 4096) if line_end < 0 else line_end
    rest = text[at:line_end].rstrip()
    tight = operator == "=" and text[at - 1] == "="
    name = text[start : at - 1].strip(" \t:=\"'")
    if family != "key" and own_line and tight and name.isupper() and not stands_in(rest):
        rest = re.split(r"\s#\s", rest)[0].rstrip()
        if _env_value_counts(rest, family):
            return at, at + len(rest)
        return None
    if stop < len(text) and text[stop] in "([":
        return None
    trimmed = value.rstrip(".:?") if operator in {":", "=>", "->"} else value
    stop = at + len(trimmed)
    value = trimmed
    if not value or stands_in(value) or is_code(text, at, stop):
        return None
    folded = fold(value)
    if folded.strip("!") in rules.PLAIN_WORDS:
        return None
    level = strength(value)
    if family == "password":
        if level >= 3 or (level == 2 and not (is_name(value) and operator != ":")):
            return at, stop
        if value.isdigit():
            return (at, stop) if len(value) >= 4 else None
        alone = not rest[len(value) :].strip(" .;,)}")
        if level <= 2 and (
            (own_line and alone and (tight or operator == ":")) or (alone and operator == ":" and " " not in close)
        ):
            return (at, stop) if (len(value) >= 4 and value.isalpha()) or (own_line and level == 2) else None
        return None
    if family == "token":
        if (level >= 3 and len(value) >= 8) or looks_random(value, 16):
            return at, stop
        return None
    return (at, stop) if looks_random(value, 16) else None


def _env_value_counts(value: str, family: str) -> bool:
    value = value.strip("\"'")
    if len(value) < 3 or fold(value) in rules.PLAIN_WORDS or stands_in(value):
        return False
    if value.startswith(("http://", "https://", "/", "./", "~/")) or CODE_VALUE.match(value):
        return False
    if family == "password":
        return not value.isdigit() or len(value) >= 4
    return (strength(value) >= 3 and len(value) >= 6) or looks_random(value, 16)


CODE_VALUE = re.compile(r"[\w.]+\(.*\)$")


def _on_next_line(text: str, end: int, family: str) -> tuple[int, int] | None:
    """``password:`` and the value alone on the following line, also after words that announce it."""
    line_end = text.find("\n", end, end + 120)
    if line_end < 0:
        return None
    head = text[end:line_end].rstrip()
    if not re.search(r"[:=](?:\s*[|>][-+]?|\s*\\)?$", head):
        return None
    if len(head) > 4 and (family == "key" or re.search(r"[.!?;]\s", head)):
        return None
    match = rules.NEXT_LINE_PROMISE.match(
        text, end + len(head) - len(head.lstrip(" \t\"'")) if len(head) <= 4 else end + _colon(head)
    )
    if match is None:
        return None
    value = match["value"].strip("\"'")
    if value.endswith(":") or stands_in(value) or fold(value) in rules.PLAIN_WORDS:
        return None
    good = strength(value) >= 2 if family == "password" else looks_random(value, 12)
    if not good or rules.HOST_OR_PATH.fullmatch(value):
        return None
    start = match.start("value") + match["value"].find(value)
    return start, start + len(value)


def _colon(head: str) -> int:
    return max(head.rfind(":"), head.rfind("="))


_CLAUSE_END = re.compile(r"[.!?](?=\s|$)|[,;\n]|$")
_TOKEN = re.compile(r"[\"'«„“`]?(?P<value>[^\s\"'«»„“”`]+)")
_QUOTED = re.compile(r"[\"“„«'`](?P<value>[^\"”“»'`\n]{3,80})[\"”“»'`]")


def _in_prose(text: str, start: int, end: int, family: str) -> tuple[int, int] | None:
    limit = _clause_end(text, end)
    clause = text[end:limit]
    if rules.SLOGAN.match(clause):
        return None
    for link in rules.CONNECTIVE.finditer(text, end, limit):
        word = (link["word"] or link["change"] or "").lower()
        if word in {"to", "na", "на"} and not (
            (word == "to" and _is_polish(text, start, end, limit))
            or rules.CHANGE_VERB.search(text, max(0, start - 60), limit)
        ):
            continue
        if link.end() - end > 110:
            break
        if link["sign"] == "=" and link.start("sign") > end and not text[link.start("sign") - 1].isspace():
            continue  # that belongs to the next name: "token refreshed request_id=…"
        found = _value_after(text, link.end(), family, sign=bool(link["sign"] or link["dash"]), stop=link.end() + 140)
        if found is not None:
            return found
    found = _said_of_it(text, end, family)
    if found is not None:
        return found
    adjacent = re.compile(r"\s+").match(text, end)
    if adjacent is not None and "\n" not in adjacent[0]:
        token = _token_at(text, adjacent.end())
        if token is not None:
            value = text[token[0] : token[1]]
            wifi = bool(rules.WIFI.search(text, max(0, start - 80), start))
            if prose_value(value) and (
                (family == "password" and (strength(value) >= 3 or (wifi and strength(value) == 2)))
                or looks_random(value, 16)
            ):
                return token
    if family == "password":
        found = _after_preposition(text, end, limit) or _before(text, start)
        if found is not None:
            return found
    return _random_nearby(text, end, limit)


_OF_IT = re.compile(
    r"[^\n.!?;]{0,60}?,\s*(?:(?:so|and|but|a|i|ale|и|а|но)\s+)?(?:(?:it|now|new one|the new one|nowe|obecnie"
    r"|teraz|aktualnie|он|она|теперь|новый|сейчас"
    r"|jest|brzmi|to)(?:'s|\s+(?:is|jest|to|brzmi|now|он|это|теперь|teraz|—|–))*|is now)\s*[:—–]?\s+",
    re.IGNORECASE,
)
_KEEP_IT_SAFE = re.compile(r"[^\n.!?:]{0,60}?:\s+")


def _said_of_it(text: str, end: int, family: str) -> tuple[int, int] | None:
    """``The password has changed, it's now X``: said of it in the next clause."""
    for pattern, good in ((_OF_IT, family == "password"), (_KEEP_IT_SAFE, family == "token")):
        match = pattern.match(text, end) if good else None
        token = _token_at(text, match.end()) if match is not None else None
        if token is None or REPLACEMENT in text[end : token[1] + 1]:
            continue
        value = text[token[0] : token[1]]
        if prose_value(value) and (strength(value) >= 3 if family == "password" else looks_random(value, 16)):
            return token
    return None


def _is_polish(text: str, start: int, end: int, limit: int) -> bool:
    """Whether "to" means "is" here, which it does in Polish only."""
    return (
        text[start:end].lower().startswith(("has", "klucz", "sekret"))
        or language_of(text[max(0, start - 80) : limit]) == "pl"
    )


def _clause_end(text: str, at: int) -> int:
    match = _CLAUSE_END.search(text, at, min(len(text), at + 160))
    while (
        match is not None
        and match[0] == "."
        and match.start() + 1 < len(text)
        and not text[match.start() + 1].isspace()
    ):
        match = _CLAUSE_END.search(text, match.end(), min(len(text), at + 160))
    end = match.start() if match else min(len(text), at + 160)
    removed = text.find(REPLACEMENT, at, end)
    return end if removed < 0 else removed


def _token_at(text: str, at: int) -> tuple[int, int] | None:
    match = _TOKEN.match(text, at)
    if match is None:
        return None
    value = match["value"].rstrip(",;:)]}")
    value = value[:-1] if value[-1:] in {".", "?"} else value
    value = value.rstrip(",;:)")
    return (match.start("value"), match.start("value") + len(value)) if value else None


def _value_after(text: str, at: int, family: str, *, sign: bool, stop: int) -> tuple[int, int] | None:
    """The value right behind a connective."""
    quoted = _QUOTED.match(text, at)
    if quoted is not None:
        value = quoted["value"]
        if family == "password" and not stands_in(value) and fold(value) not in rules.PLAIN_WORDS:
            return quoted.start("value"), quoted.end("value")
        if prose_value(value) and looks_random(value, 12):
            return quoted.start("value"), quoted.end("value")
        return None
    token = _token_at(text, at)
    if token is None:
        return None
    value = text[token[0] : token[1]]
    if not prose_value(value) or "(" in value or text.startswith("(", token[1]):
        return None
    level = strength(value)
    if family == "password":
        if level >= 3:
            return token
        if level == 2:
            parts = re.split(r"[-_.]", fold(value))
            easy = sign or len(parts) > 2 or not value.islower()
            plain = any(part in {"to", "of", "in", "the", "and", "up", "by", "na", "do", "e", "id"} for part in parts)
            return (
                token
                if easy and not (plain and not sign) and not (is_name(value) and "_" in value and value.islower())
                else None
            )
        if value.isdigit():
            return token if len(value) >= 4 else None
        alone = not text[token[1] : token[1] + 1].strip() or text[token[1] : token[1] + 1] in ".,;!?"
        following = text[token[1] : token[1] + 2]
        if sign and alone and (not following.strip() or following[0] in ".,;!") and len(value) >= 4 and value.isalpha():
            return token if following[:1] in {"", ".", ",", ";", "!", "\n"} else None
        if not sign and value[:1].isupper() and value.isalpha() and following[:1] in {"", ".", ",", ";", "!", "\n"}:
            return token
        return None
    if family == "token":
        return token if level >= 3 and len(value) >= 10 else None
    return token if level >= 3 and looks_random(value, 12) else None


def _after_preposition(text: str, end: int, limit: int) -> tuple[int, int] | None:
    """``hasło do bazy Malina-405``: the last word of the clause, when it has the mixture of a password."""
    if not rules.PREPOSITION.match(text, end):
        return None
    tokens = text[end:limit].split()
    if not 3 <= len(tokens) <= 8:
        return None
    value = tokens[-1].strip("\"'«»„”()")
    if classes(value) < 3 or not prose_value(value) or strength(value) < 3:
        return None
    start = text.rfind(value, end, limit)
    return start, start + len(value)


_LINK_BEFORE = re.compile(r"\s(?:is|as|jako|to|—|–|это|как|качестве)\s", re.IGNORECASE)
_BEFORE = re.compile(
    r"(?P<value>[^\s,;:\"'«»„”]{4,64})[\"'»”]?\s+(?:is|as|jako|to|—|–|это|как|в качестве)\s+(?:[\w'-]+\s+){0,2}$",
    re.IGNORECASE,
)


def _before(text: str, start: int) -> tuple[int, int] | None:
    """``use X as the password``."""
    if not _LINK_BEFORE.search(text, max(0, start - 40), start):
        return None
    match = _BEFORE.search(text, max(0, start - 110), start)
    if match is None:
        return None
    value = match["value"]
    if prose_value(value) and (strength(value) >= 3 or (strength(value) == 2 and value.count("-") > 1)):
        return match.start("value"), match.end("value")
    return None


_RANDOM = re.compile(r"(?<![\w/+=.-])[A-Za-z0-9+/_-]{20,}={0,2}(?![\w/+=-])")


def _random_nearby(text: str, end: int, limit: int) -> tuple[int, int] | None:
    """A long random token in the same clause as the word "token", "key" or "secret"."""
    for match in _RANDOM.finditer(text, end, limit):
        if (
            looks_random(match[0], 20)
            and classes(match[0]) >= 3
            and not rules.DIGEST_BEFORE.search(text[end : match.start()])
        ):
            return match.start(), match.end()
    return None
