"""Whether a message asks for everything that is remembered ("What do you remember about me?"), in three languages.

Deterministic and narrow: the whole message, or a sentence of it, must be that question, apart from greetings and little
words around it. "What do you remember about the deploy?" is a question for recall and the model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tui_agent.memory.statement_reading import SPEECH, Sentence
from tui_agent.memory.statements import Label, read
from tui_agent.memory.text import fold

_LONGEST = 200
_LONGEST_MIXED = 4_000

_SHORT = (
    (r"\b(what|who|there|that|it)s\b", r"\1 is"),
    (r"\b(you|i|we|what)ve\b", r"\1 have"),
    (r"\b(you|we)re\b", r"\1 are"),
    (r"\bid\b", "i would"),
)


def _any(*words: str) -> str:
    return f"(?:{'|'.join(words)})"


def _pattern(before: str, questions: tuple[str, ...], after: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{before} )*{_any(*questions)}(?: {after})*")


# --- English ----------------------------------------------------------------------------------------

_EN_ME = r"(?:(?:about|of|on) (?:me|myself|us))"
_EN_KEPT = _any(
    "remembered", "memori[sz]ed", "saved", "stored", "noted", "kept", "recorded", "learned", "learnt", "retained",
    "(?:noted|written) down", "on file", "on record", "in (?:your )?memory",
)  # fmt: skip
_EN_KEEP = _any(
    "remember", "recall", "know", "store", "keep", "have " + _EN_KEPT, "have", "hold", "keep in mind", "have got",
)  # fmt: skip
_EN_SOFT = _any("actually", "really", "currently", "now", "still", "already", "even", "all")
_EN = _pattern(
    _any(
        "hi", "hello", "hey", "ok", "okay", "so", "and", "well", "now", "then", "please", "by the way", "btw", "just",
        "just curious", "out of curiosity", "tell me", "remind me", "show me", "quick question", "good morning",
        "(?:can|could|would|will) you(?: please)?(?: tell| show| remind| list for)?(?: me)?", "i wonder",
        "i (?:would like|want) to know", "let me (?:see|know)", "assistant",
    ),
    (
        # What do you remember about me?
        rf"what (?:else |all |exactly |things |facts |stuff )?(?:do|did|can) you (?:{_EN_SOFT} )*{_EN_KEEP} {_EN_ME}",
        r"what (?:all |exactly )?(?:do|can) you (?:actually |really |currently |still |already )*remember",
        rf"what (?:else |all |exactly )?you (?:{_EN_SOFT} )*{_EN_KEEP} {_EN_ME}",
        # What have you saved about me?
        rf"what (?:all |exactly |things |facts )?(?:have|did) you (?:{_EN_SOFT} )*{_EN_KEPT}(?: {_EN_ME})",
        r"what (?:all |exactly |facts )?have you (?:remembered|memori[sz]ed)(?: so far)?",
        rf"what (?:all |exactly )?is (?:{_EN_SOFT} )*{_EN_KEPT} {_EN_ME}",
        rf"what is (?:stored |saved |kept )?in your (?:long term )?memory(?: {_EN_ME})?",
        rf"what (?:do you have|have you got|is there) in (?:your |the )?(?:long term )?memory(?: {_EN_ME})?",
        # Tell me everything you know about me.
        rf"(?:tell|show|list|print|display|give)(?: me)? (?:all|everything|what|whatever|all of what)(?: that)? you "
        rf"(?:{_EN_SOFT} )*{_EN_KEEP} {_EN_ME}",
        r"(?:tell|show|list|print|display|give)(?: me)? (?:all|everything|what|whatever)(?: that)? you remember",
        rf"(?:list|show|tell|print|display|give)(?: me)? (?:all |all the |every )?(?:the )?(?:things?|facts?|notes?|"
        rf"information|memories|data)(?: that)?(?: you)? {_EN_KEEP}(?: {_EN_ME})",
        rf"everything you (?:{_EN_SOFT} )*{_EN_KEEP} {_EN_ME}",
        rf"(?:show|list|print|display|open)(?: me)? (?:all )?(?:of )?(?:your|the|my) (?:memory|memories)(?: {_EN_ME})?",
        # Which facts do you have about me?
        rf"(?:what|which) (?:facts|information|info|data|notes|things|details|memories) (?:do|did) you "
        rf"(?:{_EN_SOFT} )*{_EN_KEEP} {_EN_ME}",
        rf"(?:what|which) (?:facts|information|info|data|notes|things|details) {_EN_ME} (?:do|did|have) you "
        rf"(?:{_EN_SOFT} )*(?:{_EN_KEEP}|{_EN_KEPT})",
        rf"(?:what|which) (?:facts|information|info|data|notes|things|details) (?:have you|are) {_EN_KEPT} {_EN_ME}",
        # Do you remember anything about me?
        rf"(?:do|can) you (?:{_EN_SOFT} )*(?:remember|know|recall|have) (?:anything|something|things) {_EN_ME}",
        r"do you (?:still |even )?remember me",
        r"what have i (?:already )?told you about (?:me|myself)",
        r"what did you learn about me",
    ),
    _any(
        "so far", "now", "right now", "currently", "at the moment", "today", "already", "exactly", "actually", "then",
        "please", "thanks", "thank you", "until now", "till now", "up to now", "in total", "overall", "here", "anyway",
        "from (?:before|earlier|last time)",
        "from our (?:last|earlier|previous|past) (?:chat|session|conversation|talk)s?",
        "in (?:this|our) project", "in your memory", "if anything", "anymore", "and my (?:work|preferences|project)",
        "and (?:this|the|our) project", "and how i (?:like to )?work",
    ),
)  # fmt: skip

# --- Polish (folded: ł is l, ą is a …) ----------------------------------------------------------------

_PL_ME = r"(?:(?:o|na temat) (?:mnie|moj temat|mojej osoby|nas)|na moj temat)"
_PL_KEPT = r"(?:zapisan[eay]|zapamietan[eay]|zachowan[eay]|zanotowan[eay]|w pamieci|przechowywan[eay])"
_PL_KNOW = (
    r"(?:(?:jeszcze |juz |wlasciwie |tak naprawde |teraz )*(?:pamietasz|wiesz|zapamietal[ea]s|zapisal[ea]s|"
    r"zanotowal[ea]s|"
    r"przechowujesz|trzymasz|przechowujesz w pamieci|zachowal[ea]s|masz|"
    rf"masz {_PL_KEPT}|dowiedzial[ea]s sie|nauczyl[ea]s sie))"
)
_PL = _pattern(
    _any(
        "hej", "czesc", "witaj", "dzien dobry", "ok", "okej", "no", "a", "i", "to", "wiec", "prosze", "swoja droga",
        "przy okazji", "tak z ciekawosci", "z ciekawosci", "powiedz", "powiedz mi", "pokaz", "pokaz mi",
        "przypomnij mi",
        "wypisz", "wypisz mi", "wymien", "wylicz", "podaj", "podaj mi", "opowiedz", "opowiedz mi", "ciekawi mnie",
        "(?:czy )?mozesz(?: mi)? (?:powiedziec|pokazac|wypisac|wymienic|przypomniec|podac)",
        "chce wiedziec", "chcialby?m wiedziec", "chcialabym wiedziec",
    ),
    (
        rf"(?:wszystko )?co (?:ty )?(?:jeszcze |wlasciwie |juz )*{_PL_KNOW} {_PL_ME}",
        rf"(?:wszystko )?co (?:ty )?(?:jeszcze |wlasciwie |juz )*{_PL_ME} (?:ty )?{_PL_KNOW}",
        rf"(?:wszystko )?co (?:ty )?masz {_PL_ME} {_PL_KEPT}",
        rf"(?:wszystko )?co (?:jest )?{_PL_KEPT} {_PL_ME}",
        r"(?:wszystko )?co (?:ty )?(?:jeszcze |wlasciwie |juz )*(?:pamietasz|zapamietal[ea]s)",
        rf"czego (?:sie )?(?:juz )?(?:{_PL_ME} )?(?:sie )?(?:dowiedzial[ea]s|nauczyl[ea]s)(?: sie)?(?: {_PL_ME})?",
        rf"jakie (?:fakty|informacje|dane|rzeczy|notatki|wspomnienia) (?:{_PL_ME} )?(?:ty )?{_PL_KNOW}(?: {_PL_ME})?",
        rf"(?:wszystkie )?(?:fakty|informacje|dane|rzeczy|notatki) (?:{_PL_ME} )?(?:jakie |ktore )(?:{_PL_ME} )?"
        rf"{_PL_KNOW}(?: {_PL_ME})?",
        rf"(?:czy )?(?:ty )?(?:cos |cokolwiek |mnie )?(?:{_PL_ME} )?(?:jeszcze )?pamietasz (?:cos |cokolwiek "
        rf")?{_PL_ME}",
        rf"czy (?:ty )?(?:jeszcze )?(?:cos |cokolwiek ){_PL_ME} (?:jeszcze )?(?:pamietasz|wiesz)",
        r"czy (?:ty )?(?:mnie (?:jeszcze )?pamietasz|(?:jeszcze )?pamietasz mnie)",
        rf"co (?:jest |masz )(?:zapisane )?w (?:twojej |swojej )?pamieci(?: {_PL_ME})?",
        rf"(?:cala )?(?:swoja|twoja) pamiec(?: {_PL_ME})?",
        rf"wszystko {_PL_ME}",
        r"co ci (?:juz )?(?:o sobie (?:juz )?(?:mowil[ea]m|powiedzial[ea]m)|(?:mowil[ea]m|powiedzial[ea]m) o sobie)",
    ),
    _any(
        "prosze", "teraz", "dotychczas", "do tej pory", "na razie", "jak dotad", "obecnie", "juz", "dokladnie",
        "dzisiaj",
        "wlasciwie", "w tej chwili", "z (?:poprzednich|wczesniejszych|naszych) (?:rozmow|sesji)", "tutaj", "dzieki",
        "w tym projekcie", "w pamieci", "i o (?:tym |naszym |moim )?projekcie", "i o moje?j pracy", "w ogole",
    ),
)  # fmt: skip

# --- Russian (folded: ё is е, й is и) -----------------------------------------------------------------

_RU_ME = r"(?:обо мне|про меня|о моеи персоне|насчет меня|о нас)"
_RU_KEPT = r"(?:записано|сохранено|известно|хранится|запомнено|в памяти)"
_RU_KNOW = (
    r"(?:(?:еще |уже |вообще |сеичас |на самом деле )*(?:помнишь|помните|знаешь|знаете|запомнила?|запомнили|сохранила?|"
    r"сохранили|хранишь|храните|записала?|записали|узнала?|держишь в памяти|имеешь в памяти))"
)
_RU = _pattern(
    _any(
        "привет", "здравствуи", "здравствуите", "добрыи день", "ок", "океи", "ну", "а", "и", "так", "итак",
        "пожалуиста",
        "кстати", "просто интересно", "интересно", "скажи", "скажи мне", "расскажи", "расскажи мне", "покажи",
        "покажи мне",
        "напомни", "напомни мне", "перечисли", "выведи", "назови", "скажите", "расскажите", "покажите", "перечислите",
        "(?:ты )?(?:можешь|можете)(?: ли)?(?: ты| вы)?(?: мне)? (?:сказать|показать|рассказать|перечислить|напомнить)",
        "хочу знать", "я хочу знать", "хотелось бы знать", "дорогои",
    ),
    (
        rf"(?:все )?что (?:именно |же |еще )?(?:ты |вы )?{_RU_KNOW} {_RU_ME}",
        rf"(?:все )?что (?:именно |же |еще )?(?:ты |вы )?{_RU_ME} (?:ты |вы )?{_RU_KNOW}",
        rf"(?:все )?что {_RU_ME} (?:ты |вы )?{_RU_KNOW}",
        r"(?:все )?что (?:именно |же )?(?:ты |вы )?(?:еще |уже )?(?:помнишь|помните|запомнила?|запомнили)",
        rf"(?:все )?что (?:тебе |вам |у тебя |у вас )?(?:уже )?{_RU_KEPT} {_RU_ME}",
        rf"(?:все )?что (?:тебе |вам |у тебя |у вас )?{_RU_ME} (?:тебе |вам )?(?:уже )?{_RU_KEPT}",
        rf"(?:все )?что (?:у тебя|у вас) (?:есть |сохранено |записано )?(?:в памяти )?{_RU_ME}(?: есть)?",
        rf"что (?:у тебя |у вас )?(?:есть |хранится |лежит |записано |сохранено )?в (?:твоеи |вашеи )?памяти(?: "
        rf"{_RU_ME})?",
        rf"(?:какие|какую) (?:факты|данные|сведения|информацию|вещи|заметки) (?:{_RU_ME} )?(?:ты |вы )?{_RU_KNOW}"
        rf"(?: {_RU_ME})?",
        rf"(?:какие|какую) (?:факты|данные|сведения|информацию|заметки) {_RU_ME} (?:ты |вы )?{_RU_KNOW}",
        rf"(?:все )?(?:факты|данные|сведения|заметки) (?:{_RU_ME} )?котор[ыу][ею] (?:ты |вы )?{_RU_KNOW}(?: {_RU_ME})?",
        rf"(?:ты |вы )?(?:помнишь|помните|знаешь|знаете) (?:ли )?(?:ты |вы )?(?:что нибудь|хоть что то|что то) "
        rf"{_RU_ME}",
        r"(?:ты |вы )(?:еще )?(?:меня (?:еще )?(?:помнишь|помните)|(?:помнишь|помните) меня)",
        r"помнишь (?:ли )?(?:ты )?меня",
        r"(?:всю )?(?:свою|твою) память",
        rf"все {_RU_ME}",
        r"что я (?:тебе |вам )?(?:уже )?(?:о себе (?:уже )?(?:рассказала?|говорила?)|(?:рассказывала?|рассказала?|"
        r"говорила?) "
        r"(?:тебе |вам )?о себе)",
    ),
    _any(
        "пожалуиста", "сеичас", "на сегодня", "на данныи момент", "до сих пор", "уже", "точно", "вообще", "спасибо",
        "из (?:прошлых|наших|предыдущих) (?:разговоров|бесед|сессии)", "на самом деле", "здесь", "в этом проекте",
        "и о (?:моем |нашем |этом )?проекте", "и о моеи работе", "ли ты",
    ),
)  # fmt: skip


def asked_in(text: str) -> str:
    """The language in which the whole message asks what is remembered about the user: ``en``, ``pl`` or ``ru``; empty
    when it does not."""
    if len(text) > _LONGEST or "```" in text:
        return ""
    plain = re.sub(r"['’`]", "", fold(text))
    plain = " ".join(re.findall(r"\w+", plain))
    for short, long in _SHORT:
        plain = re.sub(short, long, plain)
    if not plain:
        return ""
    return next((name for name, pattern in (("en", _EN), ("pl", _PL), ("ru", _RU)) if pattern.fullmatch(plain)), "")


_BORDER = re.compile(r"\s*[,;]\s+(?:(?:and|but|also|or|i|a|oraz|ale|и|а|но)\s+)?|\s+(?:and|but|also|i|a|oraz|и|а)\s+")
_ABOUT_ME = re.compile(
    r"\b(?:(?:about|of|on) (?:me|myself)|o mnie|na moj temat|mnie|o sobie|обо мне|про меня|меня|о себе|(?:your|twojej|"
    r"swojej|твоеи) (?:long term )?(?:memory|pamieci|памяти))\b"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """Where a message asks what is remembered: ``language`` of the question, empty when it does not, and whether that
    is ``all`` it says (with greetings and thanks)."""

    language: str = ""
    all: bool = False


def asked_among(text: str) -> Asked:
    """Whether a message asks what is remembered about the user, alone or beside something else ("Fix the test. And what
    do you remember about me?"). What is quoted or pasted asks nothing."""
    if whole := asked_in(text):
        return Asked(whole, True)
    if len(text) > _LONGEST_MIXED or not _ABOUT_ME.search(fold(text)):
        return Asked()
    judged = read(text)
    found = [_asks(item.sentence) for item in judged]
    language = next((each for each, _ in found if each), "")
    rest = [item for item, (each, alone) in zip(judged, found, strict=True) if not (each and alone)]
    pasted = "```" in text
    return Asked(language, bool(language) and not pasted and all(item.label is Label.SMALL_TALK for item in rest))


def _asks(sentence: Sentence) -> tuple[str, bool]:
    """The language in which a sentence asks, and whether it does nothing else."""
    plain = sentence.plain
    if not _ABOUT_ME.search(plain) or SPEECH.strip() in plain:
        return "", False
    if whole := asked_in(plain):
        return whole, True
    for border in _BORDER.finditer(plain):
        for part in (plain[: border.start()], plain[border.end() :]):
            if _ABOUT_ME.search(part) and (language := asked_in(part)):
                return language, False
    return "", False
