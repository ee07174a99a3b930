"""Proof that a text is the user's: found by the program in the user's message, never taken from a model.

Words are compared by their stems in English, Polish and Russian, joined by character 4-grams where the stemmers differ;
numbers, identifiers and proper names must be there as they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tui_agent.memory.statement_reading import own_spans
from tui_agent.memory.statement_times import WORDS
from tui_agent.memory.text import STOPWORDS, fold, language_of, ngrams, normalise, word_stems

MESSAGE_BREAK = "\x1e"
"""Stands between messages where the evidence is more than one; what the user says of one message holds for that one."""

_TOKEN = re.compile(r"[^\W_](?:\+\+|#)(?!\w)|_*[^\W_]+(?:(?:['’_.\-/\\:@]|::)+[^\W_]+)*(?:\.\w+)?_*")
_LABEL = re.compile(
    r"^[ \t]*(?:(?:[-*+•]|\d+[.)])[ \t]+)?(?:\*\*|__)?"
    r"(?P<label>[^\W\d_][\w -]{0,28})(?:\*\*|__)?:(?:\*\*|__)?[ \t]+(?=\S)"
)
_LIST_MARK = re.compile(r"^[ \t]*(?:[-*+•]|\d+[.)]|\[[ x]\])[ \t]+")
_HEADING = re.compile(r"^[ \t]*#{1,6}[ \t]")
_IDENTIFIER = re.compile(
    r"[_/\\@]|::|[a-ząćęłńóśźżа-яё][A-ZĄĆĘŁŃÓŚŹŻА-ЯЁ]|^[A-ZА-Я]{2,}[a-zа-я]|[^\W\d_]\.[^\W\d_]|\d[^\W\d_]|[^\W\d_]\d|\+\+|#"
)

# Words a writer of notes adds about whose statement it is. They prove nothing and need no proof.
_NEUTRAL_WORDS = """
    user user's users name named called likes like wants want prefers prefer preference preferences decided decision
    team project fact note rule convention language uses use using said says states stated asked requested should
    always must new person individual their they he she his her assistant agent reply replies respond answer answers
    użytkownik użytkownika użytkowniczka imię nazywa lubi woli chce preferuje preferencja decyzja zespół projekt
    fakt zasada konwencja język używa jego jej pan pani
    пользователь пользователя имя зовут любит предпочитает хочет предпочтение решение команда проект факт правило
    соглашение язык использует его ее он она
"""
_NEUTRAL = frozenset(map(fold, _NEUTRAL_WORDS.split()))
_WORD_NUMBERS: dict[str, str] = {
    fold(word): str(int(value))
    for data in WORDS.values()
    for word, value in data.NUMBER_WORDS.items()
    if " " not in word and fold(word) not in {"a", "an", "few", "kilka", "несколько", "para"}
}
_WORD_NUMBERS.update({"dwoje": "2", "двое": "2", "первый": "1", "первыи": "1"})


@dataclass(frozen=True, slots=True)
class _Word:
    raw: str
    key: str
    start: int
    end: int
    first: bool  # first word of a sentence

    @property
    def number(self) -> str:
        """The digits of a number, also of one written as a word; else empty."""
        return self.key if self.key.replace(".", "").replace(",", "").isdigit() else _WORD_NUMBERS.get(self.key, "")


@dataclass(frozen=True, slots=True)
class Claims:
    """What a text claims: words that must all be in the user's message, and content words half of which must be."""

    required: tuple[str, ...]
    content: tuple[str, ...]


def find_proof(new_text: str, user_text: str) -> str | None:
    """The shortest verbatim span of ``user_text`` that proves ``new_text``, or ``None``.

    It holds every number, identifier and proper name and at least half of the content words of the new text. Labels
    ("Name:"), list marks and headings of the new text do not count; fenced blocks, pasted output and ``>`` lines of
    the user's message are not the user's words.
    """
    claims = _claims(_bare(new_text))
    if not (claims.required or claims.content):
        return None
    best = ""
    for message in user_text.split(MESSAGE_BREAK):
        if _foreign(_bare(new_text), message):
            continue
        for low, high in own_spans(message):
            found = _window(claims, _words(message[low:high]))
            if found is not None and (not best or found[1] - found[0] < len(best)):
                best = message[low + found[0] : low + found[1]]
    return best or None


def quote_occurs(quote: str, user_text: str) -> bool:
    """Whether ``quote`` is in ``user_text`` word for word: white space, case, quotation marks and dashes unified,
    fenced blocks and ``>`` lines left out."""
    return find_quote(quote, user_text) is not None


def find_quote(quote: str, user_text: str) -> tuple[int, int] | None:
    """Where ``quote`` stands in ``user_text`` (see :func:`quote_occurs`)."""
    wanted = normalise(quote)
    if not any(map(str.isalnum, wanted)):
        return None
    for low, high in own_spans(user_text):
        span = _find_normalised(wanted, user_text[low:high])
        if span is not None:
            return low + span[0], low + span[1]
    return None


def grounded(fact: str, user_texts: str | Sequence[str], quote: str = "") -> bool:
    """The rule for extracted facts: every number, identifier and proper name of ``fact`` occurs in the user's messages,
    and at least half of its content words. What stands there word for word needs no counting.

    The language of the user's words is that of the message that holds ``quote``, whatever else the user wrote; without
    a quote one message in the language of the fact is enough.
    """
    texts = [user_texts] if isinstance(user_texts, str) else user_texts
    if any(quote_occurs(fact, text) for text in texts):
        return True
    tokens = [word for text in texts for low, high in own_spans(text) for word in _words(text[low:high])]
    claims = _claims(_bare(fact))
    if not claims.required and not claims.content:
        return False
    holding = [text for text in texts if quote and quote_occurs(quote, text)]
    if all(_foreign(fact, text) for text in holding or texts):
        return False
    if not all(any(_is(word, token) for token in tokens) for word in claims.required):
        return False
    present = sum(any(_alike(word, token.key) for token in tokens) for word in claims.content)
    return 2 * present >= len(claims.content)


def _foreign(text: str, user_text: str) -> bool:
    """Whether the text is in another language than the user's words: then it is a translation, not the user's words."""
    ours, theirs = language_of(text), language_of(user_text)
    return bool(ours and theirs and ours != theirs)


def claims_of(text: str) -> Claims:
    """The words of ``text`` that need proof, folded."""
    return _claims(_bare(text))


# --- the new text ---------------------------------------------------------------------------------


def _bare(text: str) -> str:
    """The statement without labels, list marks and headings."""
    lines = []
    for line in text.splitlines():
        if _HEADING.match(line):
            continue
        label = _LABEL.match(line)
        # A label is one to three words; "Use this command: make test" has none.
        if label is not None and len(label["label"].split()) <= 3:
            line = line[label.end() :]
        lines.append(_LIST_MARK.sub("", line))
    return "\n".join(lines) if any(line.strip() for line in lines) else text


def _claims(text: str) -> Claims:
    required: list[str] = []
    content: list[str] = []
    for word in _words(text):
        if word.number:
            required.append(word.number)
        elif _IDENTIFIER.search(word.raw):
            required.append(word.key)
        elif word.key in STOPWORDS or word.key in _NEUTRAL or len(word.key) < 2:
            continue
        elif word.raw[:1].isupper():
            # At the start of a sentence a capital may be a name or not; an invented name is the greater harm.
            required.append(word.key)
        else:
            content.append(word.key)
    return Claims(tuple(dict.fromkeys(required)), tuple(dict.fromkeys(content)))


# --- the user's message ---------------------------------------------------------------------------


def _words(text: str) -> list[_Word]:
    found: list[_Word] = []
    first = True
    last = 0
    for match in _TOKEN.finditer(text):
        if re.search(r"[.!?:\n•]\s*[\"“„«'(]*$", text[last : match.start()]):
            first = True
        raw = match[0].rstrip(".:-/'’")
        if not raw:
            continue
        found.append(
            _Word(raw, fold(raw).replace("’", "'").removesuffix("'s"), match.start(), match.start() + len(raw), first)
        )
        first = False
        last = match.end()
    return found


def _is(wanted: str, token: _Word) -> bool:
    """Whether a word that must be there as it is, is this one: numbers by value, names in any grammatical form."""
    if token.number and token.number == wanted:
        return True
    if token.key == wanted:
        return True
    if wanted[:1].isdigit() or any(map(str.isdigit, wanted)):
        return wanted == token.key
    return _same(wanted, token.key)


@lru_cache(maxsize=16384)
def _same(one: str, other: str) -> bool:
    """Whether two folded words are forms of one: a common stem, or most of their 4-grams."""
    if one == other:
        return True
    if len(one) < 3 or len(other) < 3:
        return False
    if set(word_stems(one)) & set(word_stems(other)):
        return True
    shorter, longer = sorted((one, other), key=len)
    common = _common_start(shorter, longer)
    # Inflection changes ends: "brama" and "bramy", "Dobrochna" and "Dobrochny".
    if common >= 4 and common >= len(longer) - 3 and common >= len(shorter) - 2:
        return True
    if len(shorter) < 6:
        return False
    grams, others = set(ngrams(one, (4,))), set(ngrams(other, (4,)))
    return 2 * len(grams & others) >= 1.5 * min(len(grams), len(others)) and common >= 3


def _alike(one: str, other: str) -> bool:
    """As :func:`_same`, and for the short verbs of Russian ("живу", "живёт") a common start is enough."""
    if _same(one, other):
        return True
    if not ("\u0400" <= one[:1] <= "\u04ff") or min(len(one), len(other)) < 4:
        return False
    common = _common_start(one, other)
    return common >= 3 and max(len(one), len(other)) - common <= 2


def _common_start(one: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _window(claims: Claims, tokens: Sequence[_Word]) -> tuple[int, int] | None:
    """Start and end of the shortest run of tokens with all required and half of the content words."""
    needed, half = len(claims.required), (len(claims.content) + 1) // 2
    marks: list[tuple[int, frozenset[int]]] = []
    for index, token in enumerate(tokens):
        hits = [number for number, word in enumerate(claims.required) if _is(word, token)]
        hits += [needed + number for number, word in enumerate(claims.content) if _alike(word, token.key)]
        if hits:
            marks.append((index, frozenset(hits)))
    counts: dict[int, int] = {}
    best: tuple[int, int] | None = None
    left = 0

    def enough() -> bool:
        return sum(hit < needed for hit in counts) == needed and sum(hit >= needed for hit in counts) >= half

    for right, (index, found) in enumerate(marks):
        for hit in found:
            counts[hit] = counts.get(hit, 0) + 1
        while left <= right and enough():
            start, end = tokens[marks[left][0]].start, tokens[index].end
            if best is None or end - start < best[1] - best[0]:
                best = (start, end)
            for hit in marks[left][1]:
                counts[hit] -= 1
                if not counts[hit]:
                    del counts[hit]
            left += 1
    return best


def _find_normalised(wanted: str, text: str) -> tuple[int, int] | None:
    """``wanted`` (normalised) in ``text``, at word borders; the place is that of the original."""
    keys: list[str] = []
    places: list[int] = []
    for at, char in enumerate(text):
        piece = " " if char.isspace() else normalise(f"x{char}x")[1:-1]
        for letter in piece:
            if letter == " " and keys and keys[-1] == " ":
                continue
            keys.append(letter)
            places.append(at)
    joined = "".join(keys)
    at = joined.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        left_ok = at == 0 or not (joined[at - 1].isalnum() and joined[at].isalnum())
        right_ok = end >= len(joined) or not (joined[end].isalnum() and joined[end - 1].isalnum())
        if left_ok and right_ok:
            return places[at], places[end - 1] + 1
        at = joined.find(wanted, at + 1)
    return None
