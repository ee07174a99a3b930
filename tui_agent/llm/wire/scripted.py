"""A backend that plays scripts: an Ollama server whose every word, delay and fault a test decides."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .backend import (
    JSON,
    BackendChunk,
    BackendError,
    BackendModel,
    ChatRequest,
    CutConnection,
    EmbedRequest,
    EmbedResult,
    RawReply,
)
from .catalog import embed_model, hash_vector, pull_progress
from .catalog import model as new_model
from .faults import context_error
from .gojson import dumps
from .names import parse_name
from .objects import chat_line
from .prompt import ByteTokenizer, Tokenizer, answer_text, fit
from .pulls import Download, PullStep
from .runners import Runner, Runners
from .script import Calls, Cut, Done, Fail, Gate, Joined, Raw, Reply, Say, Script, Step, Stop, Think, Wait, call

# Made-up speeds (nanoseconds a token), so that metrics look alive and are the same in every run.
_LOAD_NS, _WARM_NS, _READ_NS, _WRITE_NS = 1_500_000_000, 20_000_000, 1_000_000, 10_000_000

Predicate = Callable[[ChatRequest], bool]
Source = Script | str | Callable[[ChatRequest], Script | str]


@dataclass(slots=True)
class _Rule:
    """Requests that match get this answer, ``left`` more times (``None`` = always)."""

    matches: Predicate
    source: Source
    left: int | None


class ScriptedBackend:
    """Answers chat requests from scripts and keeps the state a real server keeps.

    Which script answers a request: the first rule of :meth:`when` that matches, else the next of :meth:`queue`, else
    ``default``; a request that finds none gets a 500 that says so. Warm-up requests (see
    :attr:`ChatRequest.is_warm_up`) never use up a script.

    Args:
        models: what is installed; one chat model with tools when not given.
        default: answer for requests without a script.
        tokenizer: how tokens are counted. A token is 4 bytes of a ChatML rendering when not given.
        parallel: requests one model answers at once; more wait without a word.
        default_ctx: window when the request does not ask for one.
        spare_prompts: displaced prompt states kept in RAM (llama.cpp keeps some; 0 shows the worst case).
        tool_calling: how a probe of tool calling (see :attr:`ChatRequest.is_probe`) is answered, by model name:
            ``native`` (a structured call), ``text`` (a fenced call in the text) or ``none``. Others answer natively.
        max_loaded: models that fit into memory at once; loading one more evicts the idle one that goes first.
        most_ctx: the largest window the server really gives, without saying so but in ``/api/ps``.
        clock: seconds since the epoch, for keep-alive and expiry.
        sleep: how delays pass; give ``lambda _: asyncio.sleep(0)`` to skip them all.
    """

    def __init__(
        self,
        models: Sequence[BackendModel] | None = None,
        *,
        default: Source | None = None,
        tokenizer: Tokenizer | None = None,
        parallel: int = 1,
        default_ctx: int = 4096,
        spare_prompts: int = 0,
        tool_calling: Mapping[str, str] | None = None,
        max_loaded: int | None = None,
        most_ctx: int | None = None,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.installed: list[BackendModel] = [new_model()] if models is None else list(models)
        self.default = default
        self.tokenizer: Tokenizer = tokenizer or ByteTokenizer()
        self.runners = Runners(
            parallel,
            default_ctx,
            spare_prompts=spare_prompts,
            max_loaded=max_loaded,
            clock=clock,
            sleep=sleep,
            most_ctx=most_ctx,
        )
        self.tool_calling = dict(tool_calling or {})
        self.blobs: dict[str, int] = {}
        self.active = 0
        self._sleep = sleep
        self._queue: deque[Source] = deque()
        self._rules: list[_Rule] = []
        self._embed_errors: deque[BackendError] = deque()
        self._embed_rules: list[Callable[[Sequence[str]], BackendError | None]] = []
        self._pulls: dict[str, deque[Sequence[PullStep]]] = {}

    # --- what tests set ---------------------------------------------------------------------------------------------

    def queue(self, *sources: Source) -> None:
        """Answers for the next requests, one each. A string is a plain answer, a callable gets the request."""
        self._queue.extend(sources)

    def when(self, matches: Predicate | str, source: Source, *, times: int | None = None) -> None:
        """Answer for requests that match: a predicate, or text contained in the last user message."""
        if isinstance(matches, str):
            wanted = matches
            self._rules.append(_Rule(lambda request: wanted in last_user_text(request), source, times))
        else:
            self._rules.append(_Rule(matches, source, times))

    def fail_embed(self, status: int, error: Any) -> None:
        """The next embed request fails."""
        self._embed_errors.append(BackendError(status, error))

    def refuse_embed(self, rule: Callable[[Sequence[str]], BackendError | None]) -> None:
        """Every embed request for whose inputs ``rule`` gives an error fails with it."""
        self._embed_rules.append(rule)

    def on_pull(self, name: str, *steps: PullStep) -> None:
        """What pulling ``name`` does: progress objects, :class:`Wait`, :class:`Gate`, :class:`Raw`, :class:`Fail`…"""
        self.queue_pulls(name, steps)

    def queue_pulls(self, name: str, *plans: Sequence[PullStep]) -> None:
        """What each attempt to pull ``name`` does, in order; the last plan stays (see :mod:`~.pulls` for plans)."""
        parsed = parse_name(name)
        self._pulls[parsed.key if parsed else name] = deque(plans)

    @property
    def unused(self) -> int:
        """How many queued answers nobody has asked for."""
        return len(self._queue)

    # --- chat -------------------------------------------------------------------------------------------------------

    def _choose(self, request: ChatRequest) -> Script:
        if request.is_warm_up:
            return Script(Done("length", eval_count=1))
        if request.is_probe:
            return self._probed(request)
        for rule in self._rules:
            if rule.left != 0 and rule.matches(request):
                if rule.left is not None:
                    rule.left -= 1
                return _resolve(rule.source, request)
        if self._queue:
            return _resolve(self._queue.popleft(), request)
        if self.default is not None:
            return _resolve(self.default, request)
        raise BackendError(500, "the script has no answer for this request; queue one or set a default")

    def _probed(self, request: ChatRequest) -> Script:
        """The answer to a probe of tool calling; it uses no script up."""
        how = self.tool_calling.get(request.model, "native")
        name = request.tools[0]["function"]["name"]
        if how == "native":
            return Script(Calls((call(name, {"word": "ready"}),)))
        if how == "text":
            return Script(f'```json\n{{"name": "{name}", "arguments": {{"word": "ready"}}}}\n```')
        return Script("ready")

    async def chat(self, request: ChatRequest) -> AsyncGenerator[BackendChunk, None]:
        """Play the script chosen for the request."""
        script = self._choose(request)
        request.notes["warm_up"] = request.is_warm_up
        request.notes["probe"] = request.is_probe
        runner, fresh = await self.runners.acquire(
            self._model(request.model),
            request.options,
            request.keep_alive,
            delay=script.load_delay,
            error=script.load_error,
        )
        request.notes["loaded"] = fresh
        self.active += 1
        try:
            async with runner.slots:
                async for chunk in self._play(script, request, runner, _LOAD_NS if fresh else _WARM_NS):
                    yield chunk
        finally:
            self.active -= 1
            self.runners.release(runner)

    async def _play(
        self, script: Script, request: ChatRequest, runner: Runner, load_ns: int
    ) -> AsyncGenerator[BackendChunk, None]:
        num_ctx = runner.num_ctx
        kept, prompt, tokens = fit(request.messages, request.tools, num_ctx, self.tokenizer)
        if len(tokens) > num_ctx or (not request.truncate and len(kept) < len(request.messages)):
            raise BackendError(400, dumps(context_error(len(tokens), num_ctx)).decode())
        slot, cached = runner.cache.take(tokens)
        request.notes.update(
            prompt=prompt,
            slot=slot.number,
            dropped_messages=len(request.messages) - len(kept),
        )
        said = _Said()
        held = slot.tokens
        try:
            if script.prompt_delay:
                await self._sleep(script.prompt_delay)
            held = tokens
            for step in script.steps:
                if isinstance(step, (Say, Think, Calls, Joined, Raw, Fail, Reply, Cut, Done)) and step.delay:
                    await self._sleep(step.delay)
                if isinstance(step, Stop):
                    return
                if isinstance(step, Wait):
                    await self._sleep(step.seconds)
                elif isinstance(step, Gate):
                    await step.wait()
                else:
                    chunk = self._chunk(step, request.model, said)
                    chunk.cached_tokens, chunk.prompt_eval_count = cached, len(tokens)
                    if chunk.done:
                        self._count(chunk, step, said, len(tokens), cached, load_ns)
                    held = self.tokenizer.encode(prompt + said.text)
                    yield chunk
        finally:
            request.notes["said"] = said.text
            runner.cache.give_back(slot, held)

    def _chunk(self, step: Step, model_name: str, said: _Said) -> BackendChunk:
        """The chunk of one step; faults raise."""
        if isinstance(step, Say):
            chunk = BackendChunk(content=step.text)
            if step.pieces > 1:
                chunk.wire = _cut(chat_line(model_name, chunk), step.pieces)
        elif isinstance(step, Think):
            chunk = BackendChunk(thinking=step.text)
        elif isinstance(step, Calls):
            chunk = BackendChunk(content=step.content, tool_calls=step.calls)
        elif isinstance(step, Joined):
            parts = [self._chunk(Say(one) if isinstance(one, str) else one, model_name, said) for one in step.steps]
            line = b"".join(chat_line(model_name, replace(part, wire=None)) for part in parts)
            return BackendChunk(
                content="".join(part.content for part in parts),
                thinking="".join(part.thinking for part in parts),
                tool_calls=[one for part in parts for one in part.tool_calls],
                wire=(line,),
            )
        elif isinstance(step, Raw):
            return BackendChunk(wire=step.data)
        elif isinstance(step, Done):
            chunk = BackendChunk(content=step.content, tool_calls=step.calls, done=True, done_reason=step.reason)
        elif isinstance(step, Fail):
            raise BackendError(step.status, step.error, extra=step.extra)
        elif isinstance(step, Reply):
            raise RawReply(step.status, step.content, step.content_type)
        elif isinstance(step, Cut):
            raise CutConnection(reset=step.reset)
        else:
            raise TypeError(f"{step!r} is not a step of a chat script")
        said.add(chunk)
        return chunk

    def _count(self, chunk: BackendChunk, step: Step, said: _Said, prompt: int, cached: int, load_ns: int) -> None:
        assert isinstance(step, Done)
        written = max(1, len(self.tokenizer.encode(said.text)))
        if step.prompt_eval_count is not None:
            chunk.prompt_eval_count = step.prompt_eval_count
        chunk.eval_count = written if step.eval_count is None else step.eval_count
        chunk.load_duration = load_ns
        chunk.prompt_eval_duration = max(1, prompt - cached) * _READ_NS
        chunk.eval_duration = chunk.eval_count * _WRITE_NS
        chunk.total_duration = chunk.load_duration + chunk.prompt_eval_duration + chunk.eval_duration

    # --- the other endpoints ----------------------------------------------------------------------------------------

    async def models(self) -> Sequence[BackendModel]:
        """What is installed."""
        return tuple(self.installed)

    def _model(self, name: str) -> BackendModel:
        asked = parse_name(name)
        for one in self.installed:
            parsed = parse_name(one.name)
            if asked and parsed and parsed.key == asked.key:
                return one
        raise BackendError(404, f"model '{name}' not found")

    async def embed(self, request: EmbedRequest) -> EmbedResult:
        """Deterministic vectors in which texts that share words are near each other."""
        if self._embed_errors:
            raise self._embed_errors.popleft()
        for rule in self._embed_rules:
            if (error := rule(request.inputs)) is not None:
                raise error
        found = self._model(request.model)
        runner, fresh = await self.runners.acquire(found, request.options, request.keep_alive)
        try:
            counts = [len(self.tokenizer.encode(text)) for text in request.inputs]
            if not request.truncate and max(counts) > runner.num_ctx:
                raise BackendError(400, "the input length exceeds the context length")
            vectors = [hash_vector(text, found.embedding_length or 384) for text in request.inputs]
            total = sum(min(count, runner.num_ctx) for count in counts)
            return EmbedResult(vectors, total, _LOAD_NS if fresh else _WARM_NS)
        finally:
            self.runners.release(runner)

    async def running(self) -> Sequence[JSON]:
        """Rows of ``/api/ps``."""
        return self.runners.rows()

    async def load(self, model: str, options: Mapping[str, Any], keep_alive: float | None = None) -> None:
        """Load; a script queued with :class:`Script` ``load_delay`` does not apply here."""
        runner, _ = await self.runners.acquire(self._model(model), options, keep_alive)
        self.runners.release(runner)

    async def unload(self, model: str) -> None:
        """Forget the runner."""
        self.runners.unload(self._model(model).name)

    async def pull(self, model: str) -> AsyncGenerator[JSON | BackendChunk, None]:
        """Play the pull set with :meth:`on_pull`, else a small one that succeeds; the model is installed after it."""
        asked = parse_name(model)
        assert asked is not None
        plans = self._pulls.get(asked.key)
        plan: Sequence[PullStep] = pull_progress(400_000_000, 1_500)
        if plans:
            plan = plans.popleft() if len(plans) > 1 else plans[0]
        last: PullStep | None = None
        for step in plan:
            last = step
            if isinstance(step, Download):
                for line in step.lines(self.blobs):
                    yield line
            elif isinstance(step, Wait):
                await self._sleep(step.seconds)
            elif isinstance(step, Gate):
                await step.wait()
            elif isinstance(step, Raw):
                yield BackendChunk(wire=step.data)
            elif isinstance(step, Fail):
                raise BackendError(step.status, step.error, extra=step.extra)
            elif isinstance(step, Cut):
                raise CutConnection(reset=step.reset)
            else:
                yield step
        if isinstance(last, dict) and last.get("status") == "success":
            await self._install(asked.short)

    async def _install(self, name: str) -> None:
        try:
            self._model(name)
        except BackendError:
            made = embed_model(name) if "embed" in name else new_model(name)
            self.installed.append(made)

    async def delete(self, model: str) -> None:
        """Remove it from the installed ones."""
        found = self._model(model)
        self.runners.unload(found.name)
        self.installed.remove(found)

    def debug(self) -> JSON:
        """Counters for ``/debug/requests``."""
        return {
            "counter": f"a token is {self.tokenizer.name}",
            "loads": self.runners.loads,
            "reloads": self.runners.reloads,
            "evictions": self.runners.evictions,
            "aborted_loads": self.runners.aborted_loads,
            "runners": self.runners.debug(),
            "unused_scripts": self.unused,
        }

    async def close(self) -> None:
        """Nothing to free."""


class _Said:
    """What the model has generated so far, as text of the prompt format."""

    def __init__(self) -> None:
        self._content = self._thinking = ""
        self._calls: list[JSON] = []

    def add(self, chunk: BackendChunk) -> None:
        self._content += chunk.content
        self._thinking += chunk.thinking
        self._calls.extend(chunk.tool_calls)

    @property
    def text(self) -> str:
        return answer_text(self._content, self._thinking, self._calls)


def _resolve(source: Source, request: ChatRequest) -> Script:
    found = source if isinstance(source, (Script, str)) else source(request)
    return Script(found) if isinstance(found, str) else found


def _cut(data: bytes, pieces: int) -> list[bytes]:
    """The bytes in at most that many parts of nearly equal size."""
    size = max(1, -(-len(data) // pieces))
    return [data[start : start + size] for start in range(0, len(data), size)]


def last_user_text(request: ChatRequest) -> str:
    """The newest user message, or nothing."""
    texts = (str(one.get("content") or "") for one in reversed(request.messages) if one.get("role") == "user")
    return next(texts, "")
