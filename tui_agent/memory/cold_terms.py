"""The terms under which cold text is indexed and searched: stems, and names both whole and in parts."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from tui_agent.memory.text import STOPWORDS, fold, split_identifier, word_stems

_TOKEN = re.compile(r"[^\W_]+(?:(?:_+|[./\\:\-])[^\W_]+)*")
_PIECE = re.compile(r"[^\W_]+")
_JOINED = 8  # places in a long name or path at which neighbours are joined


def index_terms(text: str) -> list[str]:
    """Terms of ``text`` in order, letters and digits only, with repeats: the stems of each word (stop words dropped),
    and for ``test_retry_it`` or ``src/retry.py`` also the whole and neighbouring parts joined: ``testretryit``,
    ``retryit``, ``srcretry`` …"""
    found: list[str] = []
    for token in _TOKEN.findall(unicodedata.normalize("NFC", text)):
        found.extend(_token_terms(token))
    return found


def asked_words(text: str) -> list[tuple[str, ...]]:
    """The words of a question, each once and with the terms under which it may be found, stop words dropped."""
    return list(dict.fromkeys(filter(None, map(_token_terms, _TOKEN.findall(unicodedata.normalize("NFC", text))))))


@lru_cache(maxsize=65536)
def _token_terms(token: str) -> tuple[str, ...]:
    terms: dict[str, None] = {}
    pieces: list[str] = []
    for piece in _PIECE.findall(token):
        for part in _parts(piece):
            pieces.append(fold(part))
            if pieces[-1] not in STOPWORDS:
                terms.update(dict.fromkeys(word_stems(part)))
    if len(pieces) > 1:
        terms["".join(pieces)] = None
        # "test_retry_it_stops" is about "retry_it": neighbours are joined too.
        for width in (2, 3):
            for start in range(min(len(pieces) - width + 1, _JOINED)):
                terms["".join(pieces[start : start + width])] = None
    return tuple(terms)


def _parts(piece: str) -> list[str]:
    """The humps of a name; a plain word as it is, because its diacritics matter to the stemmer."""
    plain = piece.islower() or piece.isupper() or piece[1:].islower()
    return [piece] if plain else split_identifier(piece)
