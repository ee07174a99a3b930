"""Notices when somebody else changes a memory file, a rules.md, a skill or the settings.

Folders are watched, not files: editors save by replacing the file, and files may be missing at first. What counts is
the content: an event only makes the watcher look, and a file whose bytes are the same has not changed.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import logging
import os
import stat
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import aclosing, suppress
from pathlib import Path

import watchfiles

from tui_agent.memory.places import SUMMARIES, TEXT_SUFFIXES
from tui_agent.memory.rules import RULES_NAME, RulesScan, find_rules
from tui_agent.memory.textfile import current_digest
from tui_agent.project import MEMORY_DIR, Project, UserPaths

log = logging.getLogger(__name__)

OnChange = Callable[[set[Path]], Awaitable[None] | None]

_CHECK_S = 2.0  # how often we look without being told: catches folders made again and events that were lost
_DEBOUNCE_MS = 120
_STEP_MS = 30
_VANISH_S = 0.08  # an editor that renames away and back is not a deletion
_OWN_S, _MAX_OWN = 10.0, 16
_SCAN_S = 20.0
_MAX_LOST = 5
_MAX_WATCHED_FOLDERS = 2000
_TREES = ("knowledge", "skills", SUMMARIES)
_IN_MEMORY = ("AGENTS.md", RULES_NAME, "config.yaml", "facts.json")
_IN_PROJECT = ("AGENTS.md", "CLAUDE.md")


class MemoryWatcher:
    """Calls ``on_change`` with the set of files whose content somebody else changed, made or deleted.

    ``on_change`` may be a coroutine function; what it raises is logged. ``polling`` looks every ``interval`` seconds
    instead of using the system's notifications (for network folders); the watcher also falls back to it by itself.
    """

    def __init__(
        self,
        project: Project,
        user_paths: UserPaths | None = None,
        *,
        on_change: OnChange,
        polling: bool = False,
        interval: float = _CHECK_S,
    ) -> None:
        self.project = project
        self.on_change = on_change
        self.user_paths = user_paths
        self.polling = polling
        self.interval = interval
        self._task: asyncio.Task[None] | None = None
        self._stop: asyncio.Event | None = None
        self._ready: asyncio.Future[None] | None = None
        self._looking = asyncio.Lock()
        self._lock = threading.Lock()
        self._own: dict[str, list[tuple[str, float]]] = {}
        self._seen: dict[Path, tuple[_Stamp, str]] = {}
        self._scan = RulesScan((), ())
        self._scanned_at = self._scan_took = 0.0
        self._behind = False
        self._places: frozenset[str] = frozenset()

    @property
    def running(self) -> bool:
        """Whether changes are being noticed."""
        return self._task is not None and not self._task.done()

    @property
    def scan(self) -> RulesScan:
        """The last search for ``rules.md`` files; :func:`~tui_agent.memory.rules.load_rules` takes it."""
        return self._scan

    def start(self) -> asyncio.Future[None]:
        """Begin to watch, on the running loop. A second call changes nothing.

        The future is done when the watch stands. What changed between this call and then is reported too, unless it was
        changed before the first look at the files.
        """
        if self._stop is None or self._ready is None or not self.running:
            self._stop = asyncio.Event()
            self._ready = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._run(self._stop, self._ready), name="memory-watcher")
        return self._ready

    async def stop(self) -> None:
        """Stop watching; returns when nothing will be called any more."""
        task, self._task = self._task, None
        if self._stop is not None:
            self._stop.set()
        if self._ready is not None:
            _settle(self._ready)
        if task is None or task is asyncio.current_task():
            return
        _, pending = await asyncio.wait({task}, timeout=2.0)
        if pending:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def ignore(self, path: Path, content_hash: str) -> None:
        """Announce that the program itself is about to write this content. May be called from any thread."""
        with self._lock:
            own = self._own.setdefault(_key(path), [])
            own.append((content_hash, time.monotonic()))
            del own[:-_MAX_OWN]

    # --- the loop -------------------------------------------------------------------------------

    async def _run(self, stop: asyncio.Event, ready: asyncio.Future[None]) -> None:
        try:
            await asyncio.to_thread(self._look, rescan=True, baseline=True)
        except Exception:  # an unreadable folder must not end the chat
            log.exception("the first look at the memory files failed")
        polling, lost = self.polling, 0
        while not stop.is_set():
            try:
                if polling:
                    _settle(ready)
                    await self._pause(stop)
                    await self._report(rescan=True)
                else:
                    await self._follow(stop, ready)
                    lost = 0
            except FileNotFoundError:  # a folder vanished before it could be watched
                lost += 1
                polling = lost > _MAX_LOST
                await asyncio.sleep(_VANISH_S)
            except Exception as error:  # the system has no notifications left, or none at all
                log.warning("no notifications of changed memory files (%s); looking every %.1f s", error, self.interval)
                polling = True

    async def _pause(self, stop: asyncio.Event) -> None:
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(stop.wait(), self.interval)

    async def _follow(self, stop: asyncio.Event, ready: asyncio.Future[None]) -> None:
        """Wait for notifications until the set of folders changes."""
        folders = await asyncio.to_thread(self._folders)
        if not folders:
            _settle(ready)
            await self._pause(stop)
            await self._report(rescan=True)
            return
        identities = await asyncio.to_thread(_identities, folders)
        # What the notifications run on is loaded at its first use, which takes long enough to be felt.
        await asyncio.to_thread(importlib.import_module, "anyio._backends._asyncio")
        watched = frozenset(map(str, folders))
        events = watchfiles.awatch(
            *folders, watch_filter=lambda _change, path: self._matters(path, watched), debounce=_DEBOUNCE_MS,
            step=_STEP_MS, stop_event=stop, rust_timeout=int(self.interval * 1000), yield_on_timeout=True,
            recursive=False, ignore_permission_denied=True,
        )  # fmt: skip
        # Runs as soon as the loop below waits, which is when the watch stands: nothing that came before it is missed.
        first = asyncio.create_task(self._report(rescan=True))
        first.add_done_callback(lambda _: _settle(ready))
        async with aclosing(events):
            async for changes in events:
                if stop.is_set():
                    return
                await first
                await self._report(rescan=self._should_scan(changes), touched={path for _, path in changes})
                if await asyncio.to_thread(lambda: _identities(self._folders())) != identities:
                    return

    def _should_scan(self, changes: set[tuple[watchfiles.Change, str]]) -> bool:
        """Whether the project has to be searched again for ``rules.md`` files and folders."""
        age = time.monotonic() - self._scanned_at
        if any(os.path.basename(path) in (RULES_NAME, ".gitignore") for _, path in changes):  # noqa: PTH119
            return True
        self._behind |= any(kind != watchfiles.Change.modified and not _is_text(path) for kind, path in changes)
        if self._behind:
            return age > 10 * self._scan_took  # a build that makes many folders must not keep us busy
        return age > max(_SCAN_S, 200 * self._scan_took)

    def _matters(self, path: str, watched: frozenset[str]) -> bool:
        """Whether an event is worth a look. Called for every event in the project's folders, so it touches no disk."""
        folder, name = os.path.split(path)
        if name in (RULES_NAME, ".continue", MEMORY_DIR, ".gitignore") or path in watched:
            return True
        if name.startswith("."):
            return False
        if _is_text(name) or name == "facts.json":
            return folder in self._places
        return "." not in name  # a folder came or went: it may hold a rules.md

    async def _report(self, *, rescan: bool, touched: Collection[str] = ()) -> None:
        try:
            async with self._looking:
                changed, vanished = await asyncio.to_thread(self._look, rescan=rescan, touched=touched)
                if vanished:
                    await asyncio.sleep(_VANISH_S)
                    more, _ = await asyncio.to_thread(self._look, rescan=False, touched=touched, believe=True)
                    changed |= more
            if not changed or (self._stop is not None and self._stop.is_set()):
                return
            result = self.on_change(changed)
            if inspect.isawaitable(result):
                await result
        except Exception:
            log.exception("a change of the memory files could not be handled")

    # --- looking --------------------------------------------------------------------------------

    def _look(
        self, *, rescan: bool, touched: Collection[str] = (), baseline: bool = False, believe: bool = False
    ) -> tuple[set[Path], bool]:
        """Compare all files with what was seen before.

        Returns the files that somebody else changed, and whether a file is missing that was there; ``believe`` counts
        such a file as deleted. ``touched`` files are read even if their time and size are the same.
        """
        if rescan:
            began = time.monotonic()
            self._scan = find_rules(self.project.root)
            self._scanned_at, self._behind = time.monotonic(), False
            self._scan_took = self._scanned_at - began
        changed: set[Path] = set()
        vanished = False
        now: dict[Path, tuple[_Stamp, str]] = {}
        for path in {*self._files(), *self._seen}:
            stamp, before = _stamp(path), self._seen.get(path)
            if before and before[0] == stamp and str(path) not in touched:
                now[path] = before
                continue
            digest = _digest(path) if stamp else None
            if stamp and digest:
                now[path] = (stamp, digest)
            elif before and not believe:
                now[path], vanished = before, True
                continue
            if digest != (before[1] if before else None) and not self._is_own(path, digest):
                changed.add(path)
        self._seen = now
        return (set() if baseline else changed), vanished

    def _is_own(self, path: Path, digest: str | None) -> bool:
        """Whether the program announced this content; what was announced before it is then settled too."""
        with self._lock:
            fresh = time.monotonic() - _OWN_S
            own = [one for one in self._own.pop(_key(path), []) if one[1] > fresh]
            at = next((number for number, one in enumerate(own) if one[0] == digest), None)
            rest = own if at is None else own[at + 1 :]
            if rest:
                self._own[_key(path)] = rest
            return at is not None

    def _files(self) -> Iterable[Path]:
        project, user = self.project, self.user_paths
        yield from (project.memory_dir / name for name in _IN_MEMORY)
        yield from (project.root / name for name in _IN_PROJECT)
        yield from self._scan.files
        if user:
            yield from (user.config_path, user.user_notes_path)
        for folder in self._trees():
            with suppress(OSError):
                yield from (
                    path for path in folder.iterdir()
                    if path.suffix.lower() in TEXT_SUFFIXES and not path.name.startswith(".") and path.is_file()
                )  # fmt: skip

    def _trees(self) -> list[Path]:
        """Folders whose text files all count, with the folders inside them."""
        roots = [self.project.memory_dir / name for name in _TREES] + [self.project.root / ".continue" / "rules"]
        if self.user_paths:
            roots.append(self.user_paths.skills_dir)
        found = []
        for root in roots:
            for folder, names, _ in os.walk(root):
                names[:] = sorted(name for name in names if not name.startswith("."))
                found.append(Path(folder))
        return found

    def _folders(self) -> list[Path]:
        """The folders to watch: those that are there, without repeats, a bounded number."""
        project, user = self.project, self.user_paths
        inside = [project.root, project.memory_dir, *self._trees()]
        if user:
            inside += [user.config, user.user_notes_path.parent]
        self._places = frozenset(map(str, inside))
        wanted = [*inside, project.root / ".continue", *self._scan.folders]
        return [folder for folder in dict.fromkeys(wanted) if folder.is_dir()][:_MAX_WATCHED_FOLDERS]


def _settle(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


_Stamp = tuple[int, int, int]


def _stamp(path: Path) -> _Stamp | None:
    """Cheap signs of a change: time, size, and which file it is. ``None`` when there is no file."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return (status.st_mtime_ns, status.st_size, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def _digest(path: Path) -> str | None:
    try:
        return current_digest(path)
    except OSError:
        return None


def _identities(folders: Iterable[Path]) -> set[tuple[str, int]]:
    """Which folders these are; one that was deleted and made again is another."""
    found = set()
    for folder in folders:
        with suppress(OSError):
            found.add((str(folder), folder.stat().st_ino))
    return found


def _key(path: Path) -> str:
    return os.path.abspath(path)  # noqa: PTH100 - links stay, as in the list of files


def _is_text(path: str) -> bool:
    return os.path.splitext(path)[1].lower() in TEXT_SUFFIXES  # noqa: PTH122
