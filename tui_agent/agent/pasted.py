"""What kind of thing a long paste is: test output, code, or a log."""

from __future__ import annotations

import re
from typing import Literal

# A look ahead has a short end: a paste may be one line of megabytes.
_TESTS = re.compile(
    r"""
      \b\d+\ (?:passed|failed)\b(?=\ *(?:in\ \d|[;,|(=]|$))  # pytest, cargo, jest, vitest
    | ^test\ result:\ (?:ok|FAILED)                        # cargo
    | ^(?:---\ (?:FAIL|PASS):|(?:ok|FAIL)\s+\S+\s+\d+\.\d+s)  # go
    | ^\[?(?:INFO|ERROR)?\]?\s*Tests\ run:\ \d+            # maven
    | ^Ran\ \d+\ tests?\ in\                               # unittest
    | ^(?:not\ )?ok\ \d+\b                                 # TAP
    | \b(?:PASSED|FAILED|ERROR)\b.{0,300}::\w|::\w\S{0,300}\ (?:PASSED|FAILED|ERROR)\b
    """,
    re.MULTILINE | re.VERBOSE,
)
_INDENTED_LINES = 20


def kind_of_paste(text: str) -> Literal["test_result", "file", "log"]:
    """The kind under which a long paste enters the working memory. Test output comes first: what it quotes of the code
    is indented, too."""
    if _TESTS.search(text):
        return "test_result"
    indented = text.count("\n    ") + text.count("\n\t")
    return "file" if "```" in text or indented > _INDENTED_LINES else "log"
