"""Colours of code, by theme variables. Imported when the first code block is drawn: Pygments is not small."""

from __future__ import annotations

from pygments.lexer import Lexer  # type: ignore[import-untyped]
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
from pygments.token import Token, _TokenType  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]
from textual.content import Content, Span

_STYLES: dict[_TokenType, str] = {
    Token.Comment: "italic $quiet",
    Token.Keyword: "$code-keyword",
    Token.Operator.Word: "$code-keyword",
    Token.Name.Builtin: "$code-name",
    Token.Name.Function: "$code-name",
    Token.Name.Class: "bold $code-name",
    Token.Name.Decorator: "$code-keyword",
    Token.Name.Tag: "$code-keyword",
    Token.Name.Attribute: "$code-name",
    Token.Literal.Number: "$code-number",
    Token.Literal.String: "$code-string",
    Token.Generic.Inserted: "$code-string",
    Token.Generic.Deleted: "$code-number",
    Token.Generic.Heading: "bold",
}
_MOST = 40_000


def coloured(source: str, language: str) -> Content:
    """``source`` with colours for ``language`` (a fence's info word); plain when unknown or very long."""
    source = source.expandtabs(4)
    lexer = _lexer(language) if language and len(source) <= _MOST else None
    if lexer is None:
        return Content(source)
    spans: list[Span] = []
    position = 0
    for kind, token in lexer.get_tokens(source):
        end = position + len(token)
        while kind is not None and kind not in _STYLES:
            kind = kind.parent
        if kind is not None:
            spans.append(Span(position, min(end, len(source)), _STYLES[kind]))
        position = end
    return Content(source, [span for span in spans if span.end > span.start])


def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
