"""Made-up facts and questions in three languages for ``overhead.py``: as many as wanted, always the same for a seed.

Words are built from a few syllables and endings per language, so that they share trigrams as real words do, and are
used as often as words are (Zipf). Each fact has small words, some have names of code, numbers and versions. Questions
are of five kinds: about a fact in other inflected forms, with a wrong letter in one word, for a name in code, of words
that nobody has said together, and of words that are nowhere.
"""

from __future__ import annotations

import random
from bisect import bisect
from dataclasses import dataclass
from itertools import accumulate

VOCABULARY = 3_000  # stems of each language; with endings and names 10,000 facts hold some 20,000 words
KINDS = ("inflected", "typo", "name", "mixed", "unknown")

_SYLLABLES = {
    "en": "re in con de pro ter ver man ser per com tion port form mark line stand press lock rate tect mit duc sta "
    "cal der mon por ten vis low ber ground field work back ship test ser vice bil dle ker pa ta lo mi no sa",
    "pl": "prze wy po za na pod roz od pra co wa nia sta wie cza ro sto ko mi li szo brą mo gło szczę dzia łość kła "
    "pis zna cie rze ście żą tor dow mów rad mi sło trze ba za ru szy no ta pa do ka ry",
    "ru": "пере вы по за на под раз от пра со во ни ста ве ча ро сто ко ми ли шо бра мо гло ще дей лож кла "
    "пис зна чи ре сте жа тор дов мов рад сло тре ба ру ши но та па до ка ры",
}
_ENDINGS = {
    "en": ("", "", "s", "ed", "ing", "er", "tion", "ment", "ly", "able"),
    "pl": ("", "a", "y", "ę", "ą", "ów", "ami", "ach", "ego", "owy", "ić", "anie"),
    "ru": ("", "а", "ы", "у", "ой", "ов", "ами", "ах", "ого", "ный", "ить", "ание"),
}
_SMALL = {
    "en": "the of to and in is for on with we that it as at by from our are when which",
    "pl": "w na i z do nie że się to jest przez po od przy dla oraz który gdy nasz o",
    "ru": "в на и с до не что это есть по от при для или который когда наш о мы к",
}
_ASKED = {
    "en": "what is the which how does where do we when our",
    "pl": "co to jest jaki jak gdzie kiedy czy nasz mamy",
    "ru": "что это какой как где когда мы наш есть ли",
}
_LETTERS = {"en": "abcdefghiklmnoprstuvwy", "pl": "abcdefghijklłmnoprstuwyz", "ru": "абвгдеиклмнопрстуфхчья"}


@dataclass(frozen=True)
class Statement:
    """A fact with its subject, which is empty for two of three."""

    subject: str
    text: str


class Data:
    """Facts and questions of one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._stems = {language: self._vocabulary(language) for language in _SYLLABLES}
        self._heap = list(accumulate(1 / (rank + 4) for rank in range(VOCABULARY)))
        self._said: list[tuple[str, list[str], str]] = []

    def _vocabulary(self, language: str) -> list[str]:
        syllables = _SYLLABLES[language].split()
        weights = [1 / (rank + 5) for rank in range(len(syllables))]
        found: dict[str, None] = {}
        while len(found) < VOCABULARY:
            count = self._random.choices((1, 2, 3), (2, 6, 2))[0]
            found["".join(self._random.choices(syllables, weights, k=count))] = None
        return list(found)

    def _stem(self, language: str) -> str:
        return self._stems[language][bisect(self._heap, self._random.random() * self._heap[-1])]

    def _word(self, language: str, stem: str = "") -> str:
        endings = _ENDINGS[language]
        likely = [1 / (rank + 1) for rank in range(len(endings))]
        return (stem or self._stem(language)) + self._random.choices(endings, likely)[0]

    def _name(self) -> str:
        parts = [self._stem("en") for _ in range(self._random.randint(2, 3))]
        kind = self._random.random()
        if kind < 0.4:
            return "_".join(parts)
        if kind < 0.7:
            return "".join(part.capitalize() for part in parts)
        return f"src/{parts[0]}/{parts[1]}.py" if kind < 0.85 else f"{parts[0]}-{self._random.randint(1, 9)}.{parts[1]}"

    def statement(self) -> Statement:
        """The next fact: six to sixteen words, every second of them a small one, now and then a name or a number."""
        pick = self._random
        language = pick.choices(("en", "pl", "ru"), (4, 4, 2))[0]
        stems = [self._stem(language) for _ in range(pick.randint(3, 8))]
        words = [self._word(language, stem) for stem in stems]
        name = ""
        if pick.random() < 0.4:
            name = self._name()
            words.insert(pick.randrange(len(words)), name)
        if pick.random() < 0.25:
            words.append(str(pick.choice((pick.randint(1, 60), pick.randint(1024, 9999), f"{pick.randint(1, 4)}.2"))))
        text = " ".join(f"{pick.choice(_SMALL[language].split())} {word}" for word in words)
        subject = name or " ".join(words[:2]) if pick.random() < 0.35 else ""
        self._said.append((language, stems, name))
        return Statement(subject, f"{text[0].upper()}{text[1:]}.")

    def question(self, number: int) -> str:
        """A question of the kind whose turn it is, with the small words that questions have."""
        pick = self._random
        kind = KINDS[number % len(KINDS)]
        language, stems, name = pick.choice(self._said)
        if kind in ("inflected", "typo"):
            words = [self._word(language, stem) for stem in pick.sample(stems, min(len(stems), 4))]
            if kind == "typo":
                place = max(range(len(words)), key=lambda n: len(words[n]))
                at = pick.randrange(len(words[place]))
                letter = pick.choice(_LETTERS[language])
                words[place] = words[place][:at] + letter + words[place][at + 1 :]
        elif kind == "name":
            words = [name or self._name(), self._word(language, pick.choice(stems))]
        elif kind == "mixed":
            words = [self._word(language) for _ in range(8)]
        else:
            words = ["".join(pick.choices(_LETTERS[language], k=9)) for _ in range(4)]
        asked = pick.sample(_ASKED[language].split(), 3)
        return f"{' '.join(asked)} {' '.join(words)}?".capitalize() if kind != "name" else f"{asked[0]} {words[0]}?"

    def page(self) -> str:
        """A longer text, as tools give: put away, or said in an earlier conversation."""
        return " ".join(self.statement().text for _ in range(5))
