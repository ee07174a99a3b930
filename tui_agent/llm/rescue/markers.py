"""Calls behind special tokens: Mistral, DeepSeek, gpt-oss (harmony), and tokens that simply wrap a call."""

from __future__ import annotations

import re

from tui_agent.llm.rescue import literals
from tui_agent.llm.rescue.markup import Body
from tui_agent.llm.rescue.source import Cut, Hopeless, NeedMore, Reader, Undecided, Unit, skip_closers

# --- Mistral: [TOOL_CALLS]…

_MISTRAL = "[TOOL_CALLS]"
_REQUEST = "[TOOL_REQUEST]"
_MISTRAL_NAME = re.compile(r"([A-Za-z_][\w.\-]*)[ \t]*(?:\[CALL_ID\][\w-]*)?[ \t]*(?:\[ARGS\])?\s*(?=\{)")
_MISTRAL_NAME_PART = re.compile(r"[A-Za-z_][\w.\-]*[ \t]*(?:\[[A-Z_\]]*[\w-]*(?:\[[A-Z]*\]?)?)?\s*")


def read_mistral(reader: Reader, pos: int, depth: int, body: Body) -> Unit | None:
    """``[TOOL_CALLS]`` (or ``[TOOL_REQUEST]``) and what follows it."""
    for mark in (_MISTRAL, _REQUEST):
        if reader.starts(pos, mark):
            pos = reader.space(pos + len(mark))
            break
    else:
        return None
    char = reader.char(pos)
    if not char:
        return None
    unit = body(reader, pos, depth + 1, False) if char in "{[" else read_named_arguments(reader, pos)
    return Unit.join(skip_closers(reader, unit.end), [unit]) if unit is not None else None


def read_named_arguments(reader: Reader, pos: int) -> Unit | None:
    """``name[ARGS]{…}`` or ``name{…}``."""
    name = _MISTRAL_NAME.match(reader.text, pos)
    if name is None:
        if not reader.final and _MISTRAL_NAME_PART.fullmatch(reader.text, pos):
            raise NeedMore
        return None
    return _named(reader, name.group(1), name.end())


def _named(reader: Reader, name: str, pos: int) -> Unit | None:
    value, end = literals.read_value(reader, pos, ",}")
    return Unit.of(end, [reader.check(name, value)]) if isinstance(value, dict) else None


# --- DeepSeek: <｜tool▁calls▁begin｜>… (bars U+FF5C, joins U+2581; both are also seen as ASCII)


def _token(words: str) -> str:
    return rf"<[｜|]{words.replace(' ', '[▁_]')}[｜|]>"


_CALLS_BEGIN = re.compile(_token("tool calls begin") + r"\s*")
_CALL_BEGIN = re.compile(_token("tool call begin") + r"\s*")
_HEAD = re.compile(
    rf"(?:(?:function|tool)?\s*{_token('tool sep')})?\s*([\w.\-]+)\s*(?:{_token('tool sep')})?\s*(?:```\w*\s*)?(?=\{{)"
)
_AFTER_CALL = re.compile(rf"\s*(?:```)?\s*(?:{_token('tool call end')})?")
_AFTER_CALLS = re.compile(rf"\s*{_token('tool calls end')}(?:\s*<｜end▁of▁sentence｜>)?")
_HEAD_LIMIT = 200


def read_deepseek(reader: Reader, pos: int) -> Unit | None:
    """The calls from ``<｜tool▁calls▁begin｜>`` (may be missing) on."""
    begin = _CALLS_BEGIN.match(reader.text, pos)
    pos = begin.end() if begin else pos
    units: list[Unit] = []
    try:
        while (unit := _deepseek_call(reader, pos)) is not None:
            units.append(unit)
            pos = reader.space(unit.end)
    except (Cut, Hopeless):
        if not units:
            raise
    if not units:
        return None
    end = _AFTER_CALLS.match(reader.text, units[-1].end)
    return Unit.join(end.end() if end else units[-1].end, units)


def _deepseek_call(reader: Reader, pos: int) -> Unit | None:
    if not reader.char(pos):
        return None
    call = _CALL_BEGIN.match(reader.text, pos)
    if call is None:
        if special_may_follow(reader, pos):
            raise NeedMore
        return None
    head = _HEAD.match(reader.text, call.end())
    if head is None:
        if not reader.final and len(reader.text) - call.end() < _HEAD_LIMIT and "{" not in reader.text[call.end() :]:
            raise NeedMore
        return None
    unit = _named(reader, head.group(1), head.end())
    if unit is None:
        return None
    at = reader.space(unit.end)
    if reader.char(at) == "`":
        reader.starts(at, "```")
    after = _AFTER_CALL.match(reader.text, unit.end)
    return Unit(after.end() if after else unit.end, unit.calls, unit.refusals)


# --- harmony: <|start|>assistant<|channel|>commentary to=functions.name <|constrain|>json<|message|>{…}<|call|>

_HARMONY_TOKENS = ("<|start|>", "<|channel|>", "<|constrain|>", "<|message|>")
_HEADER_LIMIT = 400
_HARMONY_WORDS = re.compile(r"[^<{}\n]{0,120}")
_RECIPIENT = re.compile(r"\bto=([\w.\-]+)")
_ANALYSIS_END = re.compile(r"<\|(?:end|return|call|start|channel)\|>")
_HARMONY_END = re.compile(r"\s*<\|(?:call|end|return)\|>")


class Header:
    """A harmony header: its words, where its message begins, and whether ``<|message|>`` was there."""

    __slots__ = ("complete", "end", "words")

    def __init__(self, words: str, end: int, complete: bool) -> None:
        self.words = words
        self.end = end
        self.complete = complete

    @property
    def recipient(self) -> str:
        """The tool that is called, or an empty text."""
        match = _RECIPIENT.search(self.words)
        return match.group(1) if match else ""


def read_header(reader: Reader, pos: int) -> Header:
    """The header from ``pos`` on: tokens and words, up to the message."""
    words: list[str] = []
    tokens = list(_HARMONY_TOKENS)
    limit = pos + _HEADER_LIMIT
    while pos < limit:
        for token in tokens:
            if reader.starts(pos, token):
                pos += len(token)
                if token == "<|message|>":
                    return Header(" ".join(words), pos, True)
                words.append(" ")
                tokens.remove(token)
                break
        else:
            text = _HARMONY_WORDS.match(reader.text, pos)
            if text is None or text.end() == pos:
                return Header(" ".join(words), pos, False)
            if text.end() == len(reader.text) and text.end() - pos < 120 and not reader.final:
                raise NeedMore
            words.append(text.group())
            pos = text.end()
    return Header(" ".join(words), pos, False)


def read_harmony(reader: Reader, pos: int) -> Unit | None:
    """A call addressed with ``to=functions.name``; the tokens may have been lost."""
    if reader.text[pos] == "<" and not reader.text.startswith(("<|start|>", "<|channel|>"), pos):
        return None
    header = read_header(reader, pos)
    if not header.recipient:
        return None
    at = reader.space(header.end)
    if reader.char(at) != "{":
        return None
    try:
        unit = _named(reader, header.recipient, at)
    except Hopeless:
        return None
    if unit is None:
        return None
    end = _HARMONY_END.match(reader.text, unit.end)
    return Unit(end.end() if end else unit.end, unit.calls, unit.refusals, core=unit.core)


def read_named_debris(reader: Reader, name: str, pos: int) -> Unit | None:
    """``name<|channel|>commentary <|constrain|>json<|message|>{…}``; ``pos`` is behind the name."""
    header = read_header(reader, pos)
    at = reader.space(header.end)
    if reader.char(at) != "{":
        return None
    return _named(reader, name, at)


def analysis_end(reader: Reader, pos: int) -> int:
    """Where the thinking that begins at ``pos`` ends; the end of the text when it has no end mark."""
    match = _ANALYSIS_END.search(reader.text, pos)
    if match is None:
        if not reader.final:
            raise NeedMore
        return len(reader.text)
    return match.end() if match.group() in ("<|end|>", "<|return|>", "<|call|>") else match.start()


# --- tokens around a call: <|python_tag|>, <|tool_call_start|>, <|START_ACTION|>, <start_function_call>, <|tool_call>

_SPECIAL = re.compile(r"<\|[\w\-]{1,40}\|?>")
_SPECIAL_PART = re.compile(r"<(?:[|｜][^<>\n]{0,40})?")
_NO_WRAPPERS = re.compile(
    r"<\|(?:/|end|eot|eom|im_|return|call\||begin_of|eos|bos|.*_end\||END_|tool_response|tool_result|user|system|start\||channel|message|constrain)"
)


def read_special(reader: Reader, pos: int, depth: int, body: Body) -> Unit | None:
    """A special token at ``pos`` with a call behind it."""
    token = _SPECIAL.match(reader.text, pos)
    if token is None or _NO_WRAPPERS.match(token.group()):
        return None
    units: list[Unit] = []
    at = reader.space(token.end())
    while reader.char(at):
        try:
            unit = body(reader, at, depth + 1, True)
        except Hopeless:
            break
        except Undecided:
            raise NeedMore if units else Undecided from None
        except Cut:
            if not units:
                raise
            break
        if unit is None:
            break
        units.append(unit)
        at = reader.space(unit.end)
        if reader.char(at) not in (";", ","):
            break
        at = reader.space(at + 1)
    if not units:
        return None
    return Unit.join(skip_closers(reader, units[-1].end), units)


def special_may_follow(reader: Reader, pos: int) -> bool:
    """Whether the text from ``pos`` on is the beginning of a special token that is not finished yet."""
    return not reader.final and _SPECIAL_PART.fullmatch(reader.text, pos) is not None
