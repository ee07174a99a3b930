"""Reading and replacing one small text file: nothing half written, no other writer's change lost, no style changed."""

from __future__ import annotations

import codecs
import contextlib
import hashlib
import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

if sys.platform != "win32":
    import fcntl

MAX_BYTES = 1024 * 1024
_LOCK_WAIT_S = 5.0

Announce = Callable[[Path, str], None]


class TextFileError(Exception):
    """The file cannot be read or written; ``str(error)`` is a sentence without the file's name."""


class ChangedOnDisk(TextFileError):
    """Somebody else wrote the file between our reading and our writing. Nothing was written."""


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file as read. ``text`` has the file's own line ends and no byte order mark; ``digest`` is of its bytes.

    ``newline`` is the line end that most lines have, ``mode`` the permission bits.
    """

    path: Path
    text: str
    newline: str
    bom: bool
    mode: int
    digest: str


def digest(data: bytes) -> str:
    """Hash of a file's content, to tell whether it changed."""
    return hashlib.sha256(data).hexdigest()


def read_text(path: Path, *, max_bytes: int = MAX_BYTES) -> TextFile | None:
    """The file, or ``None`` when there is none. Raises :class:`TextFileError` for anything that is not plain text.

    Links are followed; whoever confines paths checks them before.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # a pipe would block for ever
            raise TextFileError("it is a folder" if stat.S_ISDIR(status.st_mode) else "it is not a regular file")
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise TextFileError(f"it cannot be read: {error.strerror or error}") from error
    if len(data) > max_bytes:
        raise TextFileError(f"it is longer than {max_bytes // 1024} KB")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise TextFileError("it is written in UTF-16; save it as UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TextFileError(
            f"line {line} is not UTF-8 text (byte 0x{data[error.start]:02X}); save it as UTF-8"
        ) from None
    if "\0" in text:
        raise TextFileError("it holds zero bytes, so it is no text")
    windows = data.count(b"\r\n")
    newline = "\r\n" if windows * 2 > data.count(b"\n") else "\n"
    return TextFile(
        path, text, newline, data.startswith(codecs.BOM_UTF8), stat.S_IMODE(status.st_mode), digest(data)
    )  # fmt: skip


def write_text(path: Path, text: str, before: TextFile | None, announce: Announce | None = None) -> str:
    """Replace ``path`` by ``text`` in one step, and return the new digest.

    ``before`` is the file as it was read (``None``: it must not exist). Mode and byte order mark are kept; a new file
    is readable by the user alone. ``announce`` hears of path and digest before the file changes. Raises
    :class:`ChangedOnDisk` when the file is no longer as ``before``, :class:`TextFileError` when writing fails; in both
    cases the file is untouched.
    """
    data = (codecs.BOM_UTF8 if before and before.bom else b"") + text.encode("utf-8")
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:40]}.", suffix=".tmp", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), before.mode if before else 0o600)
            os.fsync(file.fileno())
        if current_digest(path) != (before.digest if before else None):
            raise ChangedOnDisk("it was changed by someone else in the meantime; read it again")
        if announce:
            announce(path, digest(data))
        if before is None:
            _place_new(temporary, path)
        else:
            os.replace(temporary, path)  # noqa: PTH105 - the atomic one, on every platform
        sync_folder(path.parent)
    except (OSError, UnicodeEncodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TextFileError(f"it cannot be written: {reason}. Nothing was changed") from error
    finally:
        if temporary:  # gone already after the rename
            with contextlib.suppress(OSError):
                os.unlink(temporary)  # noqa: PTH108
    return digest(data)


def _place_new(temporary: str, path: Path) -> None:
    """Give the file its name, but never one that somebody else took a moment ago."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise ChangedOnDisk("it was made by someone else in the meantime; read it first") from None
    except OSError:  # a file system without hard links
        os.replace(temporary, path)  # noqa: PTH105


def current_digest(path: Path) -> str | None:
    """Digest of what is on disk now, or ``None`` when there is no file."""
    try:
        return digest(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None


def sync_folder(folder: Path) -> None:
    """Make a rename durable, where the platform can."""
    if os.name != "posix":
        return
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Hold the folder against other processes of this program. Waits up to five seconds.

    On Windows, where a folder has no lock, the check of the content right before the rename stands alone.
    """
    if sys.platform == "win32":
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        deadline = time.monotonic() + _LOCK_WAIT_S
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TextFileError("another window is writing to the memory folder; try again") from None
                time.sleep(0.005)
            except OSError:  # a file system without locks
                break
        yield
    finally:
        os.close(handle)
