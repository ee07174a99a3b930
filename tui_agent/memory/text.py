"""Comparing, splitting and stemming text in English, Polish and Russian; time and ids as the stores write them.

Text is stored as it was written (NFC) and only compared folded. SQLite's FTS5 folds neither ``ł`` nor ``ё``, ``й`` and
``ß``, and knows no Polish or Russian grammar, so both sides of every comparison come through here.
"""

from __future__ import annotations

import importlib
import os
import re
import secrets
import threading
import time
import unicodedata
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any

# --- folding --------------------------------------------------------------------------------------

# Letters that Unicode does not decompose into a base letter and a mark. ``ß`` is done by casefold, ``ё`` and ``й`` by
# taking the mark off.
_UNDECOMPOSED = {"ł": "l", "ø": "o", "đ": "d", "ħ": "h", "ı": "i", "ŧ": "t"}
_MARKS = re.compile("[\u0300-\u036f]+")
_INVISIBLE = re.compile("[\u00ad\u200b\u200c\u200d\u2060\ufeff]")
_QUOTES_AND_DASHES = {
    **dict.fromkeys("“”„‟«»″〝〞＂", '"'),
    **dict.fromkeys("‘’‚‛‹›′`´ʼ", "'"),
    **dict.fromkeys("‐‑‒–—―−﹣－", "-"),
    "…": "...",
}
_ANY_QUOTE_OR_DASH = re.compile(f"[{''.join(_QUOTES_AND_DASHES)}]")
_WORD_KEPT = 40  # characters
_TRAILING = ".,;:!?。 \t\n"


def fold(text: str) -> str:
    """``text`` for comparing: case folded and without diacritics, ``ł→l``, ``ё→е``, ``й→и``, ``ß→ss``; NFC.

    Folding twice changes nothing. The length may change.
    """
    if text.isascii():
        return text.lower()
    return _fold_word(text) if len(text) <= _WORD_KEPT else _fold_word.__wrapped__(text)


@lru_cache(maxsize=65536)
def _fold_word(text: str) -> str:
    # Marks go before and after case folding: folding can bring out marks ("İ") and marks can change what it does.
    folded = _MARKS.sub("", unicodedata.normalize("NFD", text)).casefold()
    if folded.isascii():
        return folded
    if not unicodedata.is_normalized("NFD", folded) or _MARKS.search(folded) is not None:
        folded = _MARKS.sub("", unicodedata.normalize("NFD", folded)).casefold()
    for letter, plain in _UNDECOMPOSED.items():
        if letter in folded:  # to translate a whole text takes many times as long as to look for six letters
            folded = folded.replace(letter, plain)
    return unicodedata.normalize("NFC", folded)


def normalise(text: str) -> str:
    """The key under which two statements count as the same: folded, white space, quotes and dashes unified, and
    punctuation at the end taken off. Two texts are "the same" exactly when their keys are equal."""
    return " ".join(_unified(fold(_unified(_seen(text)))).split()).rstrip(_TRAILING)


def _seen(text: str) -> str:
    return _INVISIBLE.sub("", text)


def _unified(text: str) -> str:
    return _ANY_QUOTE_OR_DASH.sub(lambda found: _QUOTES_AND_DASHES[found[0]], text)


# --- words ----------------------------------------------------------------------------------------

# A word is a run of letters and digits; inner dots, underscores, dashes, apostrophes and slashes keep an identifier,
# a path or a version together. ``C++``, ``C#`` and ``F#`` are words.
_WORD = re.compile(r"[^\W_](?:\+\+|#)(?!\w)|(?:(?<!_)_+)?[^\W_]+(?:(?:['\-]|[._/\\:]+)[^\W_]+)*_*")
_PART = re.compile(r"[^\W_]+")
_UPPER, _LOWER = "A-ZĄĆĘŁŃÓŚŹŻА-ЯЁ", "a-ząćęłńóśźżа-яё"
_CAMEL = re.compile(f"(?<=[{_LOWER}0-9])(?=[{_UPPER}])|(?<=[{_UPPER}])(?=[{_UPPER}][{_LOWER}])")
_IDENTIFIER = re.compile(f"[_./\\\\:]|[{_LOWER}][{_UPPER}]|[{_UPPER}]{{2,}}[{_LOWER}]|[^\\W\\d_]\\d|\\d[^\\W\\d_]")


def _tokens(text: str) -> list[str]:
    """Raw words of ``text`` in order, identifiers whole, in their own spelling."""
    return _WORD.findall(unicodedata.normalize("NFC", _seen(text)).replace("’", "'"))


def _pieces(token: str) -> list[str]:
    """The runs of letters and digits of a raw word; endings such as ``'s`` and ``'t`` are none."""
    pieces = _PART.findall(token)
    return [piece for piece in pieces if len(piece) > 1] or pieces if "'" in token else pieces


def words(text: str) -> list[str]:
    """Folded words of ``text`` in order. Identifiers, paths, versions and ``C++`` stay whole; nothing is dropped."""
    return [fold(token) for token in _tokens(text)]


def identifiers(text: str) -> list[str]:
    """Words that look like names in code, in their own spelling: ``snake_case``, ``CamelCase``, ``a.b``, paths, ``v2``.

    The order is that of the text, and repeats stay.
    """
    return [token for token in _tokens(text) if _IDENTIFIER.search(token)]


def split_identifier(token: str) -> list[str]:
    """Folded parts of a name: ``getUserById`` and ``get_user_by_id`` both give ``get user by id``."""
    return [fold(part) for piece in _pieces(token) for part in _CAMEL.split(piece) if part]


def terms(text: str) -> list[str]:
    """What an index of words holds: each word of :func:`words`, followed by its parts where it has more than one.

    ``UserRepository.get_by_id`` gives the whole, ``userrepository``, ``user``, ``repository``, ``get``, ``by``, ``id``.
    """
    found: list[str] = []
    for token in _tokens(text):
        whole = fold(token)
        found.append(whole)
        if whole in STOPWORDS:
            continue
        pieces = [fold(piece) for piece in _pieces(token)]
        if pieces != [whole] and (len(pieces) > 1 or "'" in token):
            found.extend(pieces)
        parts = split_identifier(token)
        if parts != pieces and parts != [whole]:
            found.extend(part for part in parts if part not in pieces)
    return found


def ngrams(text: str, sizes: tuple[int, ...] = (3, 4), pad: str = "_") -> list[str]:
    """Character n-grams of each folded part of a word, with ``pad`` at both of its ends; shorter words whole."""
    grams: list[str] = []
    for part in _PART.findall(fold(text)):
        padded = f"{pad}{part}{pad}"
        for size in sizes:
            if len(padded) <= size:
                grams.append(padded)
            else:
                grams.extend(padded[start : start + size] for start in range(len(padded) - size + 1))
    return grams


# --- stop words -----------------------------------------------------------------------------------

# "pod", "test", "kod" and the like are left in: they are words people search for.
_STOP_TEXT = {
    "en": """
        a about after all also am an and any are aren't as at be because been before being but by can can't
        could couldn't did didn't do does doesn't doing don't for from had has have having he her here hers
        him his how i i'd i'll i'm i've if in into is isn't it it's its just let let's me more most my no nor
        not of off on once only or other our ours out over own please same shall she should so some such than
        that that's the their theirs them then there these they this those through to too under until up us
        very was wasn't we we're were what what's when where which while who whom whose why will with won't
        would you your yours
    """,
    "pl": """
        a aby albo ale ani aż bardzo bez bo by być był była było były będą będzie będę bądź chyba ci cię co
        czy czyli dla do dlaczego gdy gdyż gdzie go i ich ile im ja jak jaka jaki jakie jako je jego jej jest
        jestem jeszcze jeśli jeżeli już każdy kiedy kto która które którego której który których którym ku lub
        ma mają mam mamy mi mnie mną moja moje może można mój mu my na nad nam nami nas nasz nasza nasze nich
        nie niego niej nim niż no o od on ona one oni ono oraz po ponieważ przed przez przy są się sobie swoje
        ta tak taka taki takie tam te tego tej ten teraz też to tu tutaj tych tylko tym u w we wam was wasz
        więc wszystko wy z za że ze zaś
    """,
    "ru": """
        а бы был была были было быть в вам вас ваш весь во вот все всё всего всех вы где да даже для до его ее
        её если есть еще ещё же за здесь и из или им их к как какая какие какой когда кто ли либо мне меня
        мной мои мой мою моя мы на над нам нами нас наш наша наше наши не него нее неё нет ни них но ну о об
        однако он она они оно от очень по под почему при про с свой сам со так также такой там те тебя тем то
        того тоже той только том тот ту тут ты у уже хотя чего чем что чтобы чья эта эти это этого этой этом
        этот я
    """,
}
STOPWORDS_BY_LANGUAGE: dict[str, frozenset[str]] = {
    language: frozenset(fold(word) for word in text.split()) for language, text in _STOP_TEXT.items()
}
"""Folded stop words by language: ``en``, ``pl``, ``ru``."""
STOPWORDS: frozenset[str] = frozenset().union(*STOPWORDS_BY_LANGUAGE.values())
"""Folded stop words of the three languages together."""

_ONLY = {
    language: own - frozenset().union(*(other for name, other in STOPWORDS_BY_LANGUAGE.items() if name != language))
    for language, own in STOPWORDS_BY_LANGUAGE.items()
}


def content_words(text: str) -> list[str]:
    """Folded words of ``text`` without the stop words of the three languages, in order."""
    return [word for word in words(text) if word not in STOPWORDS]


# --- stems ----------------------------------------------------------------------------------------

_CYRILLIC = re.compile("[\u0400-\u04ff]")
_POLISH = re.compile("[ąćęłńóśźż]")
_NAME_INSIDE = re.compile(r"(?<=\w )[A-ZĄĆĘŁŃÓŚŹŻ]\w+")
_SHORTEST_STEM = 3  # the Polish stemmer turns "bramy" into "br"; such a stem would join strangers
_stemmers = threading.local()


def _stemmer(language: str) -> Any:
    """The Snowball stemmer of a language. One per thread: a stemmer keeps the word it works on in itself."""
    known: dict[str, Any] = _stemmers.__dict__.setdefault("known", {})
    if language not in known:
        module = importlib.import_module(f"snowballstemmer.{language}_stemmer")
        known[language] = getattr(module, f"{language.capitalize()}Stemmer")()
    return known[language]


@lru_cache(maxsize=65536)
def _stem(word: str, language: str) -> str:
    stem = str(_stemmer(language).stemWord(word))
    return fold(stem) if len(stem) >= _SHORTEST_STEM else fold(word)


def language_of(text: str) -> str:
    """``en``, ``pl`` or ``ru`` when the letters or the small words of ``text`` say so, else an empty string."""
    lower = text.lower()
    if len(_CYRILLIC.findall(lower)) * 2 > sum(map(str.isalpha, lower)):
        return "ru"
    found = set(words(text))
    english = len(found & _ONLY["en"])
    # "Our server is in Kraków" is English: a name inside a sentence says nothing about its language.
    polish = len(found & _ONLY["pl"]) + 2 * bool(_POLISH.search(_NAME_INSIDE.sub("", text).lower()))
    if english == polish:
        return ""
    return "en" if english > polish else "pl"


def word_stems(word: str, language: str = "") -> list[str]:
    """The folded stems of one word, best first, at least one. A Latin word of unknown language has its English and
    Polish stem. A Polish word is stemmed with and without its diacritics, so that both spellings meet."""
    lower = unicodedata.normalize("NFC", word).lower()
    folded = fold(word)
    if not any(map(str.isalpha, lower)):
        return [folded]
    if _CYRILLIC.search(lower):
        return list(dict.fromkeys([_stem(lower.replace("ё", "е"), "russian"), _stem(folded, "russian")]))
    polish = [_stem(lower, "polish"), _stem(folded, "polish")]
    if _POLISH.search(lower):
        return list(dict.fromkeys(polish))
    english = [_stem(folded, "english")]
    if language == "en":
        return english
    return list(dict.fromkeys(polish + english if language == "pl" else english + polish))


def stems(text: str) -> list[str]:
    """Folded stems of the words of ``text`` in order; identifiers are split first. A word may give several stems, each
    once; stop words are left out."""
    language = language_of(text)
    found: list[str] = []
    for token in _tokens(text):
        if fold(token) in STOPWORDS:
            continue
        for piece in _pieces(token):
            for part in _CAMEL.split(piece):
                if part and fold(part) not in STOPWORDS:
                    found.extend(word_stems(part, language))
    return found


# --- full-text queries ----------------------------------------------------------------------------


def _quoted(token: str) -> str:
    return '"' + token.replace('"', '""') + '"'


def fts_terms(text: str) -> list[str]:
    """Folded terms worth searching for, each once: the words of ``text`` and the parts of its identifiers without stop
    words. Every one holds at least one letter or digit."""
    return [term for term in dict.fromkeys(terms(text)) if term not in STOPWORDS]


def fts_any(tokens: list[str], column: str = "") -> str:
    """An FTS5 expression that matches any of ``tokens`` (in ``column``, when named), or ``""`` for none."""
    if not tokens:
        return ""
    either = " OR ".join(map(_quoted, tokens))
    return f"{column} : ({either})" if column else either


def fts_query(text: str) -> str:
    """An FTS5 expression that matches any word of ``text``: each token quoted, stop words dropped.

    It is never a syntax error, whatever ``text`` holds; it is ``""`` (not a query) when nothing is left.
    """
    return fts_any(fts_terms(text))


# --- time and ids ---------------------------------------------------------------------------------


def format_utc(moment: datetime) -> str:
    """A moment as the stores write it: UTC ``YYYY-MM-DD HH:MM:SS``, comparable as text. A naive one counts as UTC."""
    if moment.tzinfo is not None:
        moment = moment.astimezone(timezone.utc)
    # strftime does not pad years before 1000 on every platform.
    return moment.replace(tzinfo=None, microsecond=0).isoformat(sep=" ")


def utc_now() -> str:
    """Now, as UTC ``YYYY-MM-DD HH:MM:SS``."""
    return format_utc(datetime.now(timezone.utc))


def parse_utc(text: str) -> datetime:
    """The aware moment of a stored time, or of any ISO date or time (a date is its midnight; no zone means UTC).

    Raises ``ValueError`` for anything else.
    """
    cleaned = text.strip()
    if cleaned[-1:] in {"Z", "z"}:  # Python 3.10 does not know it
        cleaned = cleaned[:-1] + "+00:00"
    moment = datetime.fromisoformat(cleaned)
    return moment.astimezone(timezone.utc) if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32, lower case
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]
_RANDOM_BITS = 80
_id_lock = threading.Lock()
_last_id = (0, 0)


def new_id() -> str:
    """A new id: 26 characters of lower-case Crockford base 32 (the layout of a ULID), 10 of time, 16 of chance.

    Ids of one process are strictly increasing, also within a millisecond and when the clock stands or goes back.
    """
    global _last_id
    with _id_lock:
        stamp, chance = time.time_ns() // 1_000_000, secrets.randbits(_RANDOM_BITS)
        if stamp <= _last_id[0]:
            # A random step keeps ids of one millisecond in order and their ends, which people see, apart.
            stamp, chance = _last_id[0], _last_id[1] + 1 + secrets.randbits(_RANDOM_BITS - 24)
            if chance >> _RANDOM_BITS:
                stamp, chance = stamp + 1, secrets.randbits(_RANDOM_BITS)
        _last_id = (stamp, chance)
    value = (stamp << _RANDOM_BITS) | chance
    return "".join([_PAIRS[(value >> shift) & 1023] for shift in range(120, -10, -10)])


def _after_fork() -> None:
    """A forked child must not go on from its parent's last id, nor wait for a lock its parent held."""
    global _id_lock, _last_id
    _id_lock, _last_id = threading.Lock(), (0, 0)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
