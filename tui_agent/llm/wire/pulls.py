"""Downloads of a scripted server: what ``/api/pull`` says when it goes well, and every way it goes wrong."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any

from .backend import JSON
from .script import Cut, Fail, Gate, Raw, Wait

LAYERS = (400_000_000, 1_500)
CLOSING: tuple[JSON, ...] = (
    {"status": "verifying sha256 digest"},
    {"status": "writing manifest"},
    {"status": "success"},
)


@dataclass(frozen=True, slots=True)
class Download:
    """The layers of a model, fetched in ``steps`` lines each. What an earlier attempt fetched is not fetched again.

    ``until`` stops the download when that many bytes of all layers are there, as a lost connection does.
    """

    sizes: tuple[int, ...] = LAYERS
    steps: int = 4
    until: int | None = None

    def lines(self, blobs: MutableMapping[str, int]) -> Iterator[JSON]:
        """The progress lines; ``blobs`` (bytes by digest) is what lies on the server's disk, and grows."""
        done = 0
        for number, size in enumerate(self.sizes):
            head = layer(number, size)
            have = blobs.get(head["digest"], 0)
            if have >= size:
                done += size
                yield {**head, "completed": size}
                continue
            yield {**head, "completed": have} if have else head
            for step in range(1, self.steps + 1):
                at = size * step // self.steps
                if at <= have:
                    continue
                if self.until is not None and done + at > self.until:
                    return
                blobs[head["digest"]] = at
                yield {**head, "completed": at}
            done += size


PullStep = JSON | Wait | Gate | Raw | Fail | Cut | Download


def layer(number: int, size: int) -> JSON:
    """The head of a layer's lines: status, digest and total bytes."""
    digest = hashlib.sha256(f"layer {number} {size}".encode()).hexdigest()
    return {"status": f"pulling {digest[:12]}", "digest": f"sha256:{digest}", "total": size}


def whole(*sizes: int) -> tuple[PullStep, ...]:
    """A download that succeeds, going on where an earlier one stopped."""
    return ({"status": "pulling manifest"}, Download(sizes or LAYERS), *CLOSING)


def cut_off(*sizes: int, at: int = LAYERS[0] // 2, reset: bool = False) -> tuple[PullStep, ...]:
    """The connection is lost after ``at`` bytes."""
    return ({"status": "pulling manifest"}, Download(sizes or LAYERS, until=at), Cut(reset))


def broken_off(*sizes: int, at: int = LAYERS[0] // 2) -> tuple[PullStep, ...]:
    """An error line after ``at`` bytes: the registry hung up, and the server's own retries were used up."""
    return ({"status": "pulling manifest"}, Download(sizes or LAYERS, until=at), Fail(500, _RETRIES))


def no_success(*sizes: int) -> tuple[PullStep, ...]:
    """The stream ends cleanly at 99 %, without the line that says ``success``."""
    sizes = sizes or LAYERS
    return ({"status": "pulling manifest"}, Download(sizes, until=sum(sizes) - 1))


def backwards(size: int = LAYERS[0]) -> tuple[PullStep, ...]:
    """``completed`` falls when a part is fetched again, and once exceeds the total."""
    head = layer(0, size)
    shares = (0.2, 0.6, 0.35, 0.5, 0.9, 1.1, 1.0)
    return (
        {"status": "pulling manifest"},
        head,
        *({**head, "completed": int(size * share)} for share in shares),
        *CLOSING,
    )


def stalled(*sizes: int, at: int = LAYERS[0] // 2, seconds: float | None = None) -> tuple[PullStep, ...]:
    """Silence after ``at`` bytes: for ``seconds``, after which it goes on, else until the client goes away."""
    silence: PullStep = Gate() if seconds is None else Wait(seconds)
    return ({"status": "pulling manifest"}, Download(sizes or LAYERS, until=at), silence, *whole(*sizes)[1:])


def disk_full(*sizes: int, at: int = LAYERS[0] // 2) -> tuple[PullStep, ...]:
    """The disk of the server is full after ``at`` bytes."""
    text = "write /usr/share/ollama/.ollama/models/blobs/sha256-aabb-partial: no space left on device"
    return ({"status": "pulling manifest"}, Download(sizes or LAYERS, until=at), Fail(500, text))


def unknown_model() -> tuple[PullStep, ...]:
    """The registry has no such model: an error line after the first one, with status 200."""
    return ({"status": "pulling manifest"}, Fail(500, "pull model manifest: file does not exist"))


def offline() -> tuple[PullStep, ...]:
    """The server cannot reach the registry."""
    text = (
        'pull model manifest: Get "https://registry.ollama.ai/v2/library/x/manifests/latest": '
        "dial tcp: lookup registry.ollama.ai: no such host"
    )
    return ({"status": "pulling manifest"}, Fail(500, text))


_RETRIES = "max retries exceeded: unexpected EOF"
PULLS: dict[str, Callable[..., tuple[Any, ...]]] = {
    function.__name__: function
    for function in (
        whole,
        cut_off,
        broken_off,
        no_success,
        backwards,
        stalled,
        disk_full,
        unknown_model,
        offline,
    )
}
