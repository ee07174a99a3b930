"""Whether a call is shown to the reader as an example, or meant to run. Decided from the text around it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from tui_agent.llm.types import ToolCall

Announcement = Literal["none", "example", "report"]

# Words that announce an example or a format (English, Polish, Russian); the second set only in the last sentence.
_STRONG = re.compile(
    r"\bexamples?\b|\be\.g\.|\bfor instance\b|\bsamples?\b|\btemplates?\b|\bsyntax\b|\bformat(?:s|ted)?\b|\bschema\b"
    r"|\billustrat\w*|\bdemonstrat\w*|\bplaceholders?\b"
    r"|\bprzyk[lł]ad\w*|\bnp\.|\bsk[lł]adni\w*|\bszablon\w*|\bformat\w*|\bschemat\w*|\bwz[oó]r\b|\bwzorzec\b"
    r"|\bпример\w*|\bнапример\b|\bформат\w*|\bшаблон\w*|\bобраз(?:ец|ц)\w*|\bсинтаксис\w*|\bсхем[аыу]\b"
)
_WEAK = re.compile(
    r"\bsuch as\b|\blooks? (?:something )?like\b|\blook as follows\b|\bas follows\b|\blike (?:this|so)\b|\bthis way\b"
    r"|\bwould (?:be|look|send|write|produce|emit)\b|\bin (?:this|the) (?:form|shape)\b|\bof the form\b|\bstructured?\b"
    r"|\bhow (?:to|you)\b|\byou(?:'d|’d| would| can| could| may) (?:call|use|send|write|ask|paste|try|see)\b"
    r"|\bmo[zż]esz (?:u[zż]y|wys[lł]a|wywo[lł]a|wkle|zobaczy)\w*|\bjak (?:wywo[lł]a|u[zż]y)\w*"
    r"|\bможно (?:вызва|использова|отправи|увиде)\w*|\bкак (?:вызва|использова)\w*"
    r"|\bwygl[aą]da\w*|\bpostaci?\b|\bposta[cć]\b|\bnast[eę]puj[aą]c\w*|\bw ten spos[oó]b\b|\bstruktur\w*"
    r"|\bвыгляд\w*|\bследующ\w*|\bвот так\b|\bтак:|\bтаком виде\b|\bтакой вид\b|\bвиде:|\bструктур\w*"
)
# Somebody else's words are reported. Only at the end of a sentence that leads over with a colon.
_REPORT = re.compile(
    r"\b(?:contain(?:s|ed)?|return(?:s|ed)?|printed|prints|wrote|logged|shows?|showed|says?|said|sent|received|declared"
    r"|defined|reads|zawiera\w*|zwr[oó]ci[lł]\w*|wypisa[lł]\w*|napisa[lł]\w*|zapisa[lł] wcze\w*|zadeklarowan\w*"
    r"|содерж\w+|верну\w+|напечата\w+|написал\w*|показыва\w+|прислал\w*|объявлен\w*)\b[^.!?;,\n]{0,40}:$"
)
# The model says what it does now.
_INTENT = re.compile(
    r"\b(?:let me|let's|i'?ll|i will|i am going to|i'm going to|i need to|i should|i must|i want to|i have to"
    r"|i can|i could|i(?:'m| am) \w+ing"
    r"|(?:checking|searching|looking|saving|reading|recalling|writing|updating|storing|noting))\b"
    r"|\b(?:sprawdz[eę]|zapisz[eę]|zapisuj[eę]|poszukam|szukam|przeczytam|zobacz[eę]|zanotuj[eę]|zapami[eę]tam|sprawdzam"
    r"|znajd[eę]|dodam|dodaj[eę]|zaktualizuj[eę]|odczytam|wczytam|otworz[eę]|u[zż]yj[eę]|wywo[lł]am|wywo[lł]uj[eę]"
    r"|poczekam|czekam)\b"
    r"|\b(?:сейчас|посмотрю|проверю|проверяю|запишу|записываю|поищу|ищу|прочитаю|запомню|сохраню|сохраняю"
    r"|найду|добавлю|добавляю|обновлю|обновляю|открою|прочту|читаю|смотрю|использую|вызову|вызываю|отмечу|подожду)\b"
    r"|^\W*(?:(?:ok(?:ay)?|sure|now|alright|great|right)\b\W*)*\w{3,}ing\b"
)
_DONE = re.compile(
    r"\b(?:done|saved|noted|i(?:'ve| have)|please wait|one moment|gotowe|zapisan[oe]|zapisa[lł][ae]m|dam zna[cć]"
    r"|chwil[eę]|готово|записал\w*|сохранил\w*|подожди\w*|потом)\b"
)
_SHOWING = re.compile(
    r"\b(?:show|explain|illustrate|demonstrate|give|provide|poka[zż]\w*|wyja[sś]ni\w*|podam|покажу|объясню|приведу)\b"
)
_AFTERWARDS = re.compile(
    r"^\W*(?:(?:this|that|the above|it|these)\b[^.!?\n]{0,80}\b(?:example|illustration|format|sample|template)s?\b"
    r"|(?:to|powy[zż]sz\w*|tak)\b[^.!?\n]{0,80}\b(?:przyk[lł]ad\w*|format\w*|szablon\w*)"
    r"|(?:это|выше|так)\b[^.!?\n]{0,80}(?:пример\w*|формат\w*|шаблон\w*))"
)
_SENTENCE = re.compile(r"(?<=[.!?:])\s+|\n+")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
# So many words make an explanation, if those that are read do not say that something is being done.
_EXPLAINED_BY = 5
_READ_WORDS = 8
_LINE_READ = 400

# Values that stand for a value. The first set is never a real argument, the second only where an example is announced.
_PLACEHOLDER = re.compile(
    r"\.{3,}|…|<[^<>\n]*[\s_\-][^<>\n]*>|<[^<>\n]*[^\x00-\x7f][^<>\n]*>|\{\{[^{}\n]+\}\}"
    r"|/?(?:path|ścieżka|путь)[/_ -](?:to|do|к)[/_ -].*|<?your[ _-].*|\[your[ _-].*\]|x{3,}",
    re.IGNORECASE,
)
_WEAK_PLACEHOLDER = re.compile(
    r"<[^<>\n]+>|\[[^\[\]\n]+\]|\{[^{}\n]+\}|\$\{?[A-Z_]+\}?|[A-Z]+(?:_[A-Z]+)+|strings?|text|value|query|tekst|текст|foo|bar",
    re.IGNORECASE,
)


def is_placeholder_call(calls: Iterable[ToolCall], *, announced: bool) -> bool:
    """Whether an argument of one of the calls only stands for a value (``"..."``, ``"<query>"``)."""
    return any(_is_placeholder(key, value, announced) for call in calls for key, value in call.arguments.items())


def _is_placeholder(key: str, value: Any, announced: bool) -> bool:
    if isinstance(value, list):
        return bool(value) and all(_is_placeholder(key, item, announced) for item in value)
    if not isinstance(value, str) or len(value) > 120:
        return False
    text = value.strip()
    named = text[1:-1].strip().casefold() if text[:1] == "<" and text[-1:] == ">" else ""
    if _PLACEHOLDER.fullmatch(text) or (named and named == key.casefold()):
        return True
    return announced and (_WEAK_PLACEHOLDER.fullmatch(text) is not None or text.casefold() == key.casefold())


def announcement(lead: str) -> Announcement:
    """What the text in front of a call says: an example or a format follows, somebody else's words, or nothing."""
    sentences = [part.strip() for part in _SENTENCE.split(lead.casefold()) if part.strip(" \t*_#>-")]
    if not sentences:
        return "none"
    last = sentences[-1]
    if _INTENT.search(last) and not _SHOWING.search(last):
        return "none"
    if _REPORT.search(last):
        return "report"
    if _STRONG.search(last) or _WEAK.search(last):
        return "example"
    return "example" if len(sentences) > 1 and _STRONG.search(sentences[-2]) else "none"


def explains(text: str, pos: int, final: bool) -> bool:
    """Whether prose follows at ``pos`` that explains what was shown: not a word or two, nor what the model does now.

    While the text is not ``final``, false may still become true.
    """
    opening: list[str] = []
    for word, complete in _prose_words(text, pos):
        if len(opening) == _READ_WORDS or not (complete or final):
            break
        opening.append(word)
    if len(opening) < (_EXPLAINED_BY if final else _READ_WORDS):
        return False
    said = " ".join(opening).casefold()
    return not (_INTENT.search(said) or _DONE.search(said))


def _prose_words(text: str, pos: int) -> Iterator[tuple[str, bool]]:
    """The words from ``pos`` on that are not in code blocks or data, and whether more text follows each."""
    fenced = False
    while pos < len(text):
        end = text.find("\n", pos)
        end = len(text) if end < 0 else end
        line = text[pos : min(end, pos + _LINE_READ)]
        begins = line.lstrip()
        if begins.startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and not begins.startswith(("{", "[", "<")):
            for match in _WORD.finditer(line):
                yield match.group(), pos + match.end() < len(text)
        pos = end + 1


def calls_it_an_example(text: str, pos: int) -> bool:
    """Whether the first sentence behind a call, at ``pos``, says that it was an example."""
    return _AFTERWARDS.match(text[pos : pos + 400].lstrip().casefold()) is not None
