"""``ProjectMemory``: the small, direct interface to a project's memory, for scripts and other programs.

Names, defaults and the formula of :meth:`ProjectMemory.recall_weighted` are those of the article this memory follows.
Underneath are the stores the chat uses: a fact is a row in SQLite, its vector is kept beside it, and Chroma holds a
projection that can be lost.
"""

from __future__ import annotations

import importlib
import logging
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tui_agent.memory.chroma_collection import collection_name
from tui_agent.memory.chroma_index import ChromaIndex
from tui_agent.memory.database import Database
from tui_agent.memory.extraction_parse import ExtractedItem, clamp_importance, parse_items, read_kind
from tui_agent.memory.extraction_prompt import conversation_prompt
from tui_agent.memory.facts import FactStore
from tui_agent.memory.gate import Gate
from tui_agent.memory.legacy_store import LegacyImport, LegacyStore, find_legacy_store, import_legacy
from tui_agent.memory.lexical import LexicalIndex
from tui_agent.memory.proof import find_proof
from tui_agent.memory.text import format_utc, language_of, parse_utc, utc_now
from tui_agent.memory.types import Action, Fact, Kind, Origin, Proposal, Vector, Verdict
from tui_agent.project import MEMORY_DIR
from tui_agent.project import project_id as id_of_project

__all__ = [
    "CHAT_MODEL",
    "EMBED_MODEL",
    "LegacyImport",
    "LegacyStore",
    "ProjectMemory",
    "RememberRefused",
    "find_legacy_store",
    "import_legacy",
    "weighted_score",
]

log = logging.getLogger(__name__)

EMBED_MODEL = "nomic-embed-text"
CHAT_MODEL = "qwen2.5-coder:7b"
LOCAL_SERVER = "http://127.0.0.1:11434"
RECENCY_WEIGHT = 0.2
OVERSAMPLE = 3
_PREFIX = "fact-"
_DAY = 86400.0

CATEGORIES: dict[Kind, str] = {
    Kind.DECISION: "decyzja",
    Kind.CONVENTION: "konwencja",
    Kind.PREFERENCE: "preferencja",
    Kind.PROBLEM: "problem",
    Kind.FACT: "fakt",
}
"""The article's names of the kinds, as this class speaks them. English and Russian names are understood."""

# Who speaks in a transcript: only what people say are the user's words. Another name before a colon is no speaker, so
# that "Decision: …" in an assistant's answer does not become one.
_PEOPLE = re.compile(
    r"^(?:programist(?:a|ka)|użytkowni(?:k|czka)|developer|dev|user|human|me|ja|klient(?:ka)?|programmer|engineer"
    r"|разработчи(?:к|ца)|программист(?:ка)?|пользователь(?:ница)?|человек|я)$",
    re.IGNORECASE,
)
_MACHINES = re.compile(
    r"^(?:asystent(?:ka)?(?: ai)?|assistant|ai|bot|agent|model|system|tool|narzędzie|llm|chatgpt|gpt|claude|copilot"
    r"|ассистент|помощник|бот|агент|модель|система|инструмент)$",
    re.IGNORECASE,
)
_SPEAKER = re.compile(
    r"^[ \t]*(?:[*_]{1,2})?(?P<who>[^\W\d_][\w .()-]{0,30}?)(?:[*_]{1,2})?[ \t]*:(?:[*_]{1,2})?(?:[ \t]|$)"
)


class RememberRefused(ValueError):
    """The text must not become memory; ``str(error)`` says why, ``rule`` is the gate's word for it."""

    def __init__(self, reason: str, rule: str) -> None:
        super().__init__(reason)
        self.rule = rule


class ModelServer(Protocol):
    """What is used of ``ollama.Client``; its answers may be objects or plain dictionaries."""

    def embed(self, *, model: str, input: str) -> Any: ...

    def chat(self, *, model: str, messages: Sequence[Mapping[str, Any]]) -> Any: ...


def weighted_score(distance: float, importance: float, age_days: float, recency_days: float = 90) -> float:
    """``(1 - distance) * importance / 10 - max(0, age_days / recency_days) * 0.2``, word for word.

    ``distance`` is a cosine distance (0..2), ``importance`` 1..10, ages are days; an age below zero (a clock that was
    wrong) costs nothing and earns nothing. Without bound: a fact of 450 days loses 1.0 at 90 ``recency_days``.
    """
    return (1 - distance) * importance / 10 - max(0.0, age_days / recency_days) * RECENCY_WEIGHT


class ProjectMemory:
    """Long-term memory of one project.

    Args:
        project_id: see :func:`tui_agent.project.project_id`; one memory never sees another's facts.
        path: Chroma's folder. The facts are in the database beside it: ``memory.db`` for the id of the project that the
            folder belongs to, else ``memory-{project_id}.db``.
        embed: text to vector; ``chat``: one prompt to the model's answer. By default ``client`` is asked.
        client: an ``ollama.Client`` or what looks like one; by default one for this machine, without proxies.
        db: an open database to use instead of the file.
        now: seconds since 1970, for tests.
        chroma: whether the projection in Chroma is kept; without it, search is exact over the vectors in SQLite.

    A store that the article's own script left in ``path`` is taken over once, on opening. Calls block: use threads.
    Errors of the model server pass through where there is nothing to fall back on (:meth:`consolidate_session`).
    """

    def __init__(
        self,
        project_id: str,
        path: str | Path = "./.agent-memory/vector-store",
        *,
        embed: Callable[[str], Sequence[float]] | None = None,
        chat: Callable[[str], str] | None = None,
        client: ModelServer | None = None,
        embed_model: str = EMBED_MODEL,
        chat_model: str = CHAT_MODEL,
        db: Database | None = None,
        now: Callable[[], float] = time.time,
        chroma: bool = True,
    ) -> None:
        collection_name(project_id)  # raises for an id that is no name of a file or collection
        self.project_id = project_id
        self.path = Path(path)
        self._embed, self._chat, self._client = embed, chat, client
        self._embed_model, self._chat_model = embed_model, chat_model
        self._now = now
        clock = utc_now if now is time.time else self._utc
        self._owns_db = db is None
        self.db = Database(_database_path(project_id, self.path)) if db is None else db
        self.facts = FactStore(self.db, clock)
        self._gate = Gate(self.facts, None, clock=clock)
        self._identity = f"project-memory/{embed_model}/cosine"
        self._index = ChromaIndex(self.path, project_id, self._identity) if chroma else None
        self._synced: int | None = None
        self._lexical = LexicalIndex()
        self.imported = self._take_over()

    def close(self) -> None:
        """Brings the projection up to date and closes the files."""
        if self._index is not None:
            if self._index.state != "closed":
                self._sync_index()
            self._index.close()
        if self._owns_db:
            self.db.close()

    def __enter__(self) -> ProjectMemory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take_over(self) -> LegacyImport:
        """What the article's own script left here, as facts. A store that cannot be read stops nothing."""
        store = find_legacy_store(self.path)
        mine = store.of(self.project_id) if store is not None else None
        if mine is None:
            return LegacyImport()
        try:
            return import_legacy(mine, self.facts, self.db, approved=True)
        except OSError as error:
            log.warning("%s", error)
            return LegacyImport(refused=(str(error),))

    # --- the article's five -----------------------------------------------------------------------

    def remember(self, fact: str, category: str = "decyzja", importance: int = 5) -> str:
        """Remembers a statement and returns its id, ``fact-…``; the same statement again only confirms it.

        It is on disk before it is embedded, so a server that does not answer costs ranking, not the fact. Raises
        :class:`RememberRefused` for what must not be stored (a secret, a state of the world), before anything is
        embedded, and ``ValueError`` without a text.
        """
        text = " ".join(str(fact).split())
        if not text:
            raise ValueError("A fact needs a text.")
        verdict = self._admit(
            ExtractedItem(text, read_kind(category), clamp_importance(importance)), text, Origin.USER, "user"
        )
        if verdict.fact_id is None:
            raise RememberRefused(verdict.reason, verdict.rule)
        self._embed_missing()
        return _PREFIX + verdict.fact_id

    def recall(self, query: str, top_k: int = 5) -> list[str]:
        """The facts nearest to ``query``, best first, at most ``top_k``; an empty list when nothing is known."""
        return self._used([fact for fact, _ in self._nearest(query, top_k)])

    def recall_weighted(self, query: str, top_k: int = 5, recency_days: int = 90) -> list[str]:
        """The nearest ``3 * top_k`` facts ordered by :func:`weighted_score`, the best ``top_k``.

        A fact's age counts from its last confirmation. Raises ``ValueError`` when ``recency_days`` is not above zero.
        """
        if recency_days <= 0:
            raise ValueError("recency_days must be above zero.")
        now = self._now()
        scored = [
            (weighted_score(distance, fact.importance, (now - _epoch(fact)) / _DAY, recency_days), fact)
            for fact, distance in self._nearest(query, top_k * OVERSAMPLE)
        ]
        scored.sort(key=lambda pair: pair[0], reverse=True)
        return self._used([fact for _, fact in scored[: max(top_k, 0)]])

    def extract_facts_from_conversation(self, conversation: str) -> list[dict[str, Any]]:
        """What a model finds worth keeping in a transcript: ``{"fact", "category", "importance"}`` each, categories by
        the article's names. An answer that cannot be read gives an empty list; nothing is stored."""
        return [
            {"fact": item.fact, "category": CATEGORIES[item.kind], "importance": item.importance}
            for item in self._extract(conversation)
        ]

    def consolidate_session(self, conversation: str) -> list[dict[str, Any]]:
        """Extracts facts from a finished session and remembers those that the people in it said themselves.

        Lines of an assistant prove nothing. Facts that are not proved wait in quarantine (see the chat's review), and
        what must not be stored is dropped. Returns the facts that are remembered now.
        """
        own = own_lines_of(conversation)
        kept = []
        for item in self._extract(conversation):
            proved = find_proof(item.fact, own) is not None
            verdict = self._admit(item, own if proved else "", Origin.MODEL, "remember")
            if verdict.action in (Action.LIVE, Action.TOUCH):
                kept.append({"fact": verdict.text, "category": CATEGORIES[item.kind], "importance": item.importance})
        self._embed_missing()
        return kept

    # --- inside: writing --------------------------------------------------------------------------

    def _admit(self, item: ExtractedItem, user_text: str, origin: Origin, proposer: str) -> Verdict:
        proposal = Proposal(
            text=item.fact,
            origin=origin,
            proposer=proposer,
            source=f"ProjectMemory, {self._utc()}",
            kind=item.kind,
            importance=item.importance,
            quote=item.quote,
            user_text=user_text,
            target="fact",
        )
        return self._gate.admit(proposal)

    def _extract(self, conversation: str) -> list[ExtractedItem]:
        if not conversation.strip():
            return []
        prompt = conversation_prompt(conversation, language_of(conversation))
        found: list[ExtractedItem] = []
        for item in parse_items(self._ask(prompt)):
            if all(item.fact != other.fact for other in found):
                found.append(replace(item, message_id=""))
        return found

    def _ask(self, prompt: str) -> str:
        if self._chat is not None:
            return self._chat(prompt)
        answer = self._server().chat(model=self._chat_model, messages=[{"role": "user", "content": prompt}])
        return str(answer["message"]["content"] or "")

    def _vector(self, text: str) -> Vector | None:
        """The text's vector with length 1, or ``None`` when it cannot be embedded."""
        try:
            if self._embed is not None:
                found: Any = self._embed(text)
            else:
                found = self._server().embed(model=self._embed_model, input=text)["embeddings"][0]
            vector = np.asarray(found, dtype=np.float32)
        except Exception as error:
            log.warning("%s could not embed a text; words alone are used: %s", self._embed_model, error)
            return None
        length = float(np.linalg.norm(vector)) if vector.ndim == 1 else 0.0
        return vector / np.float32(length) if length and math.isfinite(length) else None

    def _server(self) -> ModelServer:
        if self._client is None:
            # Nothing may leave this machine unless a client for somewhere else is handed in.
            self._client = importlib.import_module("ollama").Client(host=LOCAL_SERVER, trust_env=False)
        return self._client

    def _embed_missing(self) -> None:
        """Vectors for the facts that have none yet; ends at the first failure, the next call goes on."""
        for fact in self.facts.missing_vectors(self._identity):
            vector = self._vector(fact.fact)
            if vector is None:
                return
            self.facts.put_vectors(self._identity, {fact.id: vector})

    # --- inside: finding --------------------------------------------------------------------------

    def _nearest(self, query: str, n: int) -> list[tuple[Fact, float]]:
        """The nearest live facts with their cosine distance, nearest first. Without vectors, words decide."""
        live = {fact.id: fact for fact in self.facts.live()}
        if n <= 0 or not live or not query.strip():
            return []
        vector = self._vector(query)
        if vector is not None:
            self._embed_missing()
            ids, matrix = self.facts.vectors(self._identity)
            if len(ids) and matrix.shape[1] == len(vector):
                return [(live[fact_id], distance) for fact_id, distance in self._neighbours(ids, matrix, vector, n)]
        self._lexical.sync({fact_id: fact.fact for fact_id, fact in live.items()})
        return [(live[hit.ref], 1.0 - hit.coverage) for hit in self._lexical.search(query, limit=n)]

    def _neighbours(
        self, ids: Sequence[str], matrix: NDArray[np.float32], vector: Vector, n: int
    ) -> list[tuple[str, float]]:
        known = set(ids)
        if self._index is not None and self._sync_index():
            hits = self._index.query(vector, n)
            if hits is not None and len(hits) == min(n, len(known)) and all(hit.id in known for hit in hits):
                return [(hit.id, hit.distance) for hit in hits]
        distances = 1.0 - matrix @ vector
        order = np.argsort(distances, kind="stable")[:n]
        return [(ids[int(at)], float(distances[at])) for at in order]

    def _sync_index(self) -> bool:
        """Chroma as it should be now; whether it can be asked. When it cannot, it says why in the log, once."""
        if self._index is None:
            return False
        revision = self.facts.revision()
        if revision == self._synced:
            return self._index.state == "ready"
        ids, matrix = self.facts.vectors(self._identity)
        facts = {fact.id: fact for fact in self.facts.live()}
        about = [
            {
                "category": CATEGORIES[facts[fact_id].kind],
                "importance": facts[fact_id].importance,
                "timestamp": _epoch(facts[fact_id]),
            }
            for fact_id in ids
            if fact_id in facts
        ]
        if len(about) != len(ids):  # one expired between two reads
            return False
        self._synced = revision
        return self._index.sync(ids, matrix, about)

    def _used(self, facts: Sequence[Fact]) -> list[str]:
        self.facts.used([fact.id for fact in facts])
        return [fact.fact for fact in facts]

    def _utc(self) -> str:
        return format_utc(datetime.fromtimestamp(self._now(), timezone.utc))


def own_lines_of(conversation: str) -> str:
    """The lines of a transcript that people wrote: ``Assistant:`` and the like, with what follows until the next
    speaker, are left out, and so are the names in front. A text without speakers is all theirs."""
    own = []
    human = True
    for line in conversation.splitlines():
        speaker = _SPEAKER.match(line)
        if speaker is not None and (human_now := _is_human(speaker["who"])) is not None:
            human = human_now
            line = line[speaker.end() :]
        if human:
            own.append(line.strip())
    return "\n".join(own).strip()


def _is_human(who: str) -> bool | None:
    """Whether a speaker is a person; ``None`` when the line is none of a speaker ("Decision: …")."""
    name = " ".join(who.split())
    if _MACHINES.match(name):
        return False
    if _PEOPLE.match(name):
        return True
    return None


def _epoch(fact: Fact) -> float:
    return parse_utc(fact.confirmed_at).timestamp()


def _database_path(project_id: str, path: Path) -> Path:
    """Beside the vector store. The folder's own project shares the chat's file; any other id has a file of its own."""
    folder = path.parent
    if folder.name == MEMORY_DIR and id_of_project(folder.absolute().parent) == project_id:
        name = "memory.db"
    else:
        name = f"memory-{project_id}.db"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name
