"""Secrets that were seen are known: the same value is taken out again where nothing around it gives it away.

A user pastes ``password: …`` or a whole key; a model says the value back bare, or one line of the key alone. The rules
of :mod:`~tui_agent.memory.secrets` go by names and shapes around a value and cannot see those. What they have found
since the start is kept here, in memory only, and looked for in every further text.
"""

from __future__ import annotations

import re

from tui_agent.memory.secrets import Finding, Redacted, joined, redact, replaced

_SHORTEST, _SHORTEST_WORDS = 8, 12
_KEPT = 400


class KnownSecrets:
    """:func:`~tui_agent.memory.secrets.redact` for one project that is open, with a memory of what it has found."""

    def __init__(self) -> None:
        self._values: dict[str, None] = {}
        self._pattern: re.Pattern[str] | None = None

    def redact(self, text: str) -> Redacted:
        """As the function of that name; values found in earlier texts are taken out too."""
        found = redact(text)
        self._learn(text, found.findings)
        if self._pattern is None or self._pattern.search(found.text) is None:
            return found
        again = [Finding("seen_before", match.start(), match.end()) for match in self._pattern.finditer(text)]
        findings = joined([*found.findings, *again])
        return Redacted(replaced(text, findings), tuple(findings))

    def clean(self, text: str) -> str:
        """The text without secrets."""
        return self.redact(text).text

    def has(self, text: str) -> bool:
        """Whether anything would be taken out."""
        return bool(self.redact(text).findings)

    def _learn(self, text: str, findings: tuple[Finding, ...]) -> None:
        new = [
            value
            for finding in findings
            for line in text[finding.start : finding.end].splitlines()
            if _telling(value := line.strip(" \t\"'`,;")) and value not in self._values
        ]
        if not new:
            return
        self._values.update(dict.fromkeys(new))
        for value in list(self._values)[:-_KEPT]:
            del self._values[value]
        longest_first = sorted(self._values, key=len, reverse=True)
        self._pattern = re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, longest_first))})(?![^\W_])")


def _telling(value: str) -> bool:
    """Whether a value alone is sure to be the secret again: not a common word that was somebody's password."""
    if value.startswith("-----"):
        return False
    return len(value) >= (_SHORTEST_WORDS if value.isalpha() else _SHORTEST)
