"""Shapes of personal data in text that is about to be shared: addresses, numbers of people and accounts, paths.

These are warnings, not rules: whoever shares decides. Numbers count only with their check digits right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_PHONE = re.compile(
    r"(?<![\w+./-])(?:\+\d{1,3}[ .-]?)?(?:\(\d{2,4}\)[ .-]?)?\d{2,4}(?:[ .-]\d{2,4}){2,4}(?![\w/-])|(?<!\w)\+\d{9,15}\b"
)
_DATE_LIKE = re.compile(r"(?:19|20)\d\d[ .-]\d\d[ .-]\d\d(?!\d)|\d\d[ .-]\d\d[ .-](?:19|20)\d\d")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{4}){2,7}(?:[ ]?[A-Z0-9]{1,3})?\b")
_CARD = re.compile(r"(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)")
_ELEVEN = re.compile(r"(?<!\d)\d{11}(?!\d)")
_HOME = re.compile(r"(?:/home/|/Users/|[A-Za-z]:\\Users\\)(?!runner\b|user\b|Public\b|Shared\b)[\w.-]+")
_NAMED = re.compile(
    r"\b(?:my name is|call me|i am called|mam na imi[eę]|nazywam si[eę]|меня зовут|мо[её] имя)\s+\w+|"
    r"^\W*(?:name|imi[eę]|имя)\s*:\s*\w+",
    re.IGNORECASE,
)
_BORN = re.compile(
    r"\b(?:born (?:on|in)|date of birth|birthday|urodzon[ya]|data urodzenia|"
    r"дата рождения|родил(?:ся|ась)|день рождения)\b",
    re.IGNORECASE,
)
_ADDRESS = re.compile(
    r"(?<!\w)(?:ul\.|ulica|al\.|aleja|улица|ул\.|проспект)\s*\w[\w .-]{2,40}\d+|"
    r"\b\d{1,5} [A-Z]\w+ (?:Street|St\.|Avenue|Ave\.|Road|Rd\.)(?!\w)"
)
_HEALTH = re.compile(
    r"\b(?:diagnos\w+|medication|allerg\w+|therap\w+|pregnan\w+|"
    r"chorob\w+|diagnoz\w+|alergi\w+|болезн\w+|диагноз\w*|аллерги\w+)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Personal:
    """One place that looks personal: what it looks like, and where in the text."""

    kind: str
    start: int
    end: int


def personal_data(text: str) -> list[Personal]:
    """Places of ``text`` that look like data of a person, in order; overlapping ones keep the first, most certain."""
    found: list[Personal] = []
    for one in _all(text):
        if not any(one.start < other.end and other.start < one.end for other in found):
            found.append(one)
    return sorted(found, key=lambda one: one.start)


def _all(text: str) -> Iterator[Personal]:
    for match in _EMAIL.finditer(text):
        yield Personal("e-mail address", *match.span())
    for match in _IBAN.finditer(text):
        if _iban_holds(match[0]):
            yield Personal("bank account", *match.span())
    for match in _CARD.finditer(text):
        digits = re.sub(r"\D", "", match[0])
        if 13 <= len(digits) <= 19 and _luhn_holds(digits) and len(set(digits)) > 1:
            yield Personal("payment card", *match.span())
    for match in _ELEVEN.finditer(text):
        if _pesel_holds(match[0]):
            yield Personal("PESEL number", *match.span())
    for match in _PHONE.finditer(text):
        digits = re.sub(r"\D", "", match[0])
        if 9 <= len(digits) <= 15 and not _DATE_LIKE.search(match[0]):
            yield Personal("telephone number", *match.span())
    for kind, pattern in (
        ("name", _NAMED),
        ("date of birth", _BORN),
        ("home folder", _HOME),
        ("postal address", _ADDRESS),
        ("health", _HEALTH),
    ):
        for match in pattern.finditer(text):
            yield Personal(kind, *match.span())


def _luhn_holds(digits: str) -> bool:
    """The check of payment cards (ISO/IEC 7812)."""
    total = 0
    for position, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if position % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def _iban_holds(text: str) -> bool:
    """The check of account numbers (ISO 13616): moved and read as a number, the rest by 97 is 1."""
    plain = text.replace(" ", "")
    if not 15 <= len(plain) <= 34:
        return False
    return int("".join(str(int(sign, 36)) for sign in plain[4:] + plain[:4])) % 97 == 1


def _pesel_holds(digits: str) -> bool:
    """The check digit and the month of a Polish personal number."""
    weighted = sum(int(digit) * weight for digit, weight in zip(digits, (1, 3, 7, 9) * 3, strict=False))
    last = (10 - (weighted - int(digits[10]) * 7) % 10) % 10
    return last == int(digits[10]) and 1 <= int(digits[2:4]) % 20 <= 12 and 1 <= int(digits[4:6]) <= 31
