"""What kind of answer a question asks for, a time or a number, and whether a text holds one.

"When are customers updated?" is answered by what names a time, whatever other words it uses. The words below are those
for times and numbers in English, Polish and Russian as such; nothing about any memory is in them.
"""

from __future__ import annotations

import re
from functools import lru_cache

from tui_agent.memory.text import fold, words
from tui_agent.memory.types import Term

HOLDS, LACKS = 0.03, 0.04
"""What a text gains that holds what is asked for, and loses that does not."""

TIME, NUMBER = "a time", "a number"

# All of these are compared with folded text (ł→l, ó→o, ё→е, й→и).
_ASKS_TIME = (
    r"when\b",
    r"(?:what|which) (?:time|day|date|hour|moment|month)\b",
    r"how (?:often|long|soon|early|late|fast|quickly|frequently)\b",
    r"(?:until|since) when\b",
    r"at what point\b",
    r"kiedy\b",
    r"o ktorej\b",
    r"jak (?:czesto|dlugo|szybko|dawno|pozno)\b",
    r"(?:po|przez|na|za|od|do|w|co) (?:ile|ilu|jaki\w*) (?:czas|dni|godzin|minut|sekund|tygod|miesi|lat)",
    r"ile (?:czasu|trwa|dni|godzin|minut|sekund|tygodni|miesiecy|lat)\b",
    r"(?:jaki|ktory)\w* (?:dzien|dnia|dniu|czas)",
    r"когда\b",
    r"во сколько\b",
    r"как (?:часто|долго|быстро|скоро|давно)\b",
    r"(?:через|за|до) скольк",
    r"как(?:ои|ие|ого|их|ому?) (?:день|дня|дни|срок|врем|час|период|момент|месяц|пор)",
    r"сколько (?:времени|дн|час|минут|секунд|недел|месяц|лет|идет|длит|живет|ждать|храни)",
)
_ASKS_NUMBER = (
    r"how (?:many|much|large|big|small|wide|tall|high|deep|heavy|old)\b",
    r"(?:what|which)(?: is the)?(?: \w+){0,2} (?:size|limit|number|price|percentage|share|port|version)\b",
    r"ilu?\b|ile\b",
    r"jak (?:duz|wiel|wyso|gleb|szerok|ciezk)",
    r"(?:jak|ktor)\w+(?: \w+)? (?:limit|rozmiar|numer|port|cen|wersj|procent|maksym|minim|prog)",
    r"скольк",
    r"как(?:ои|ая|ое|ого|ую|ова)(?: \w+)? (?:размер|лимит|номер|порт|цен|верси|процент|доля|максим|миним|предел|порог)",
)
_TIMES = """
second seconds minute minutes hour hours day days week weeks weekday weekdays weekend weekends month months quarter
quarters year years morning mornings noon afternoon evening evenings night nights nightly midnight daily weekly monthly
hourly yearly annually monday mondays tuesday tuesdays wednesday wednesdays thursday thursdays friday fridays saturday
saturdays sunday sundays january february march april june july august september october november december
dni dnia dniu dniem dzien doba doby dobe tydzien rok roku rokiem lat lata latach rano noc nocy noca polnoc polnocy luty
lutego lutym marzec marca marcu maj maja maju czerwiec czerwca czerwcu lipiec lipca lipcu piatek piatku piatki
день дня днеи днем днями дни дню час часа часов часу часам часы год года году годом годы лет утро утра утром утрам ночь
ночи ночью ночам среда среды среду средам мая мае сутки суток суткам полдень полгода
"""
_TIMES_BEGIN = """
sekund minut godzin tygod miesiac miesiec kwarta kwadrans poludni wieczor poniedzial wtor srod czwartk czwartek sobot
niedziel styczn kwiecien kwietni sierp wrzesien wrzesni pazdziern listopad grudzien grudni codzien cotygod comiesi
секунд минут недел месяц квартал полдн вечер полноч выходн понедельн вторн четверг пятниц суббот воскрес январ феврал
март апрел июн июл август сентябр октябр ноябр декабр ежедн еженед ежемес ежегод
"""
_NUMBERS = """
one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty seventy eighty ninety
hundred thousand million half twice once
jeden jedna jedno jednego jednej jednym dwa dwie dwoch dwu dwoma trzy trzech trzem cztery czterech piec pieciu szesc
szesciu siedem siedmiu osiem osmiu dziewiec dziewieciu dziesiec dziesieciu sto dwiescie trzysta czterysta pol poltora
один одна одно однои одного одном два две двух двумя три трех тремя четыре четырех пять пяти шесть шести семь семи
восемь восьми девять девяти десять десяти десяток сто двести триста четыреста сорок сорока девяносто пол полтора
"""
_NUMBERS_END = "teen nascie nastu dziestu dziesci dziesiat dziesieciu set надцать надцати дцать дцати десят сот"
_NUMBERS_BEGIN = "tysiac tysiec milion cwierc procent тысяч миллион половин четверт процент"

_CLOCK = re.compile(r"(?<![\d:.])\d{1,2}:\d\d(?![\d:])")
_ASKS = {
    kind: re.compile(r"(?<!\w)(?:" + "|".join(forms) + ")")
    for kind, forms in ((TIME, _ASKS_TIME), (NUMBER, _ASKS_NUMBER))
}
_WHOLE = {TIME: frozenset(_TIMES.split()), NUMBER: frozenset(_NUMBERS.split())}
_BEGIN = {TIME: tuple(_TIMES_BEGIN.split()), NUMBER: tuple(_NUMBERS_BEGIN.split())}
_END = tuple(_NUMBERS_END.split())


@lru_cache(maxsize=64)
def asked_for(question: str) -> str:
    """``a time``, ``a number`` or an empty string."""
    plain = fold(question)
    return next((kind for kind, forms in _ASKS.items() if forms.search(plain)), "")


@lru_cache(maxsize=4096)
def holds(text: str, kind: str) -> bool:
    """Whether ``text`` names a time, or a number, in words or digits."""
    if kind == TIME and _CLOCK.search(text):
        return True
    for word in words(text):
        if word in _WHOLE[kind] or word.startswith(_BEGIN[kind]):
            return True
        if kind == NUMBER and (word.endswith(_END) or any(map(str.isdigit, word))):
            return True
    return False


def answer_term(kind: str, text: str) -> Term:
    """The term of a text's score for a question that asks for ``kind``."""
    if holds(text, kind):
        return Term("answer", HOLDS, f"asked for {kind}, and it names one")
    return Term("answer", -LACKS, f"asked for {kind}, and it names none")
