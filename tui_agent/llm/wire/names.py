"""Model names: ``[host/][namespace/]model[:tag]`` and their full form."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}\Z")
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,349}\Z")


@dataclass(frozen=True, slots=True)
class ModelName:
    """A parsed name with the registry's defaults filled in."""

    host: str
    namespace: str
    model: str
    tag: str

    @property
    def full(self) -> str:
        """With everything: ``registry.ollama.ai/library/x:latest``."""
        return f"{self.host}/{self.namespace}/{self.model}:{self.tag}"

    @property
    def short(self) -> str:
        """As ``/api/tags`` shows it: defaults left out, the tag always there."""
        if self.host != "registry.ollama.ai":
            return self.full
        if self.namespace != "library":
            return f"{self.namespace}/{self.model}:{self.tag}"
        return f"{self.model}:{self.tag}"

    @property
    def key(self) -> str:
        """For comparing: names are case-insensitive."""
        return self.full.lower()


def parse_name(text: str) -> ModelName | None:
    """The name, or ``None`` when it is not a valid one."""
    rest, _, tag = text.rpartition(":")
    if not rest or "/" in tag:
        rest, tag = text, "latest"
    host, namespace, model = "registry.ollama.ai", "library", rest
    parts = rest.split("/")
    if len(parts) == 2:
        namespace, model = parts
    elif len(parts) == 3:
        host, namespace, model = parts
    elif len(parts) > 3:
        return None
    if not _HOST.match(host) or not all(_PART.match(part) for part in (namespace, model, tag)):
        return None
    return ModelName(host, namespace, model, tag)
