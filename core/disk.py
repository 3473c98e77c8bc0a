"""Files on disk: atomic writes, space reserved before a file is memory-mapped, one lock per folder, and readable disk errors.

If the disk is full, a write to a mapped page without an allocated block kills the process (SIGBUS) instead of raising an error.  So blocks are
allocated before a file is mapped for writing (`new_mapped`), and all mappings are made here.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import filelock
import numpy as np
from numpy.typing import DTypeLike, NDArray

from core.errors import AmbiscopeError, ConflictError, InputError, StorageError

LOCK, HOLDER = ".lock", ".lock.json"  # in a run folder: the lock, and who holds it
FULL = {errno.ENOSPC, errno.EDQUOT}  # no space left, or the user's quota is used up
_ZEROS = bytes(1 << 20)
_NO_CALL = {errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}  # the file system cannot reserve space


class DiskFullError(OSError):
    """Not enough space; the message says how much is needed and how much is free, and where."""


def format_bytes(size: int) -> str:
    """
    >>> format_bytes(999), format_bytes(65_536), format_bytes(4_000_128)
    ('999 bytes', '65.5 kB', '4.0 MB')
    """
    if size < 1000:
        return f"{size:,} bytes"
    return f"{size / 1e3:.1f} kB" if size < 1e6 else f"{size / 1e6:,.1f} MB"


def plain_or_gz(path: Path) -> Path:
    """The file, or `path` with .gz if only that exists; the path as given if neither does."""
    packed = path.with_name(path.name + ".gz")
    return packed if not path.exists() and packed.exists() else path


def free(where: Path) -> int:
    """Free bytes on the disk of a path, which need not exist yet.  Raises OSError."""
    there = next(p for p in (where.absolute(), *where.absolute().parents) if p.exists())
    return shutil.disk_usage(there).free


def why(error: BaseException, where: Path) -> str:
    """The error in one line, with the free space if the disk is full.

    Libraries report a full disk as errors of their own, so an error without errno on a nearly full disk counts as one.
    """
    said = (
        " ".join(str((error.strerror if isinstance(error, OSError) else None) or error).split())[-200:] or type(error).__name__
    )
    if isinstance(error, DiskFullError):
        return said
    with suppress(OSError, StopIteration):
        left = free(where)
        known = isinstance(error, OSError) and error.errno is not None
        if (error.errno in FULL) if known else left < 1 << 20:  # type: ignore[attr-defined]
            return f"{said}: {format_bytes(left)} are free in {where if where.is_dir() else where.parent}"
    return said


def need(folder: Path, size: int) -> None:
    """Raises DiskFullError if the disk of a folder has less than `size` bytes free."""
    left = free(folder)
    if size > left:
        raise DiskFullError(
            errno.ENOSPC, f"{format_bytes(size)} are needed and {format_bytes(left)} are free in {folder}", str(folder)
        )


def reserve(file: IO[bytes], size: int) -> None:
    """Extends an open file to `size` bytes with allocated blocks; its position and content do not change.

    Uses posix_fallocate, else writes zeros.  Raises DiskFullError, or OSError for other reasons; the file then has its earlier length.
    """
    file.flush()
    number, before = file.fileno(), os.fstat(file.fileno()).st_size
    if size <= before:
        return
    try:
        _allocate(number, before, size - before)
    except OSError as e:
        with suppress(OSError):
            os.ftruncate(number, before)
        folder = Path(str(file.name)).parent
        if e.errno == errno.EFBIG:
            raise DiskFullError(
                e.errno, f"{format_bytes(size)} are needed, which is over the file size limit (ulimit -f) in {folder}"
            ) from e
        if e.errno not in FULL:
            raise
        raise DiskFullError(
            e.errno, f"{format_bytes(size - before)} are needed and {format_bytes(free(folder))} are free in {folder}"
        ) from e


def _allocate(number: int, start: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(number, start, size)
            return
        except OSError as e:
            if e.errno not in _NO_CALL:
                raise
    at = os.lseek(number, 0, os.SEEK_CUR)
    os.lseek(number, start, os.SEEK_SET)
    while size:
        size -= os.write(number, _ZEROS[: min(size, len(_ZEROS))])
    os.lseek(number, at, os.SEEK_SET)


def new_mapped(path: Path, dtype: DTypeLike, shape: tuple[int, ...]) -> np.memmap[Any, Any]:
    """A new file of numbers without a header, memory-mapped for writing, with its blocks allocated.  Raises DiskFullError, OSError."""
    with path.open("wb") as file:
        reserve(file, np.dtype(dtype).itemsize * int(np.prod(shape, dtype=np.int64)))
    return np.memmap(path, dtype=dtype, mode="r+", shape=shape)


def mapped(path: Path, dtype: DTypeLike, shape: tuple[int, ...] | None = None) -> NDArray[Any]:
    """A memory-mapped file for reading; an empty file gives an empty array.  A plain array, because np.memmap's own indexing is slower.

    Raises OSError, and ValueError if the file does not hold `shape`.
    """
    if path.stat().st_size < np.dtype(dtype).itemsize:  # an empty file cannot be mapped
        return np.zeros(shape or 0, dtype=dtype)
    return np.asarray(np.memmap(path, dtype=dtype, mode="r", shape=shape))


class Rows:
    """Single rows of an array (n, d).  Those of a mapped one are read from its file, which stays open: mapping them counts their whole
    neighbourhoods as this process's memory."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array, self._file = array, None
        if isinstance(array.base, np.memmap) and array.base.filename is not None and hasattr(os, "pread"):
            self._file = open(array.base.filename, "rb", buffering=0)  # noqa: SIM115
            if hasattr(os, "posix_fadvise"):  # the system should not read ahead around each
                os.posix_fadvise(self._file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)

    def __getitem__(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Raises OSError."""
        if self._file is None:
            return np.asarray(self._array[rows])
        number, width = self._file.fileno(), self._array.itemsize * self._array.shape[1]
        found = b"".join([os.pread(number, width, row * width) for row in rows.tolist()])
        return np.frombuffer(found, self._array.dtype).reshape(-1, self._array.shape[1])


# ---------------------------------------------------------------- whole files


def draft_name(target: Path) -> Path:
    """The temporary name of a file while it is being written; unique for each writer."""
    return target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}.part")


@contextmanager
def replacing(path: Path, then: str = "nothing was left behind") -> Iterator[Path]:
    """Yields a draft to write; at the end it is synced and replaces `path`.  After an exception `path` is unchanged and the draft is deleted.

    Raises StorageError if the disk refuses; its message ends with `then`: what state is left, and what to do.
    """
    draft = draft_name(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield draft
        _sync(draft)
        draft.replace(path)
    except OSError as e:
        raise StorageError(f"{path} cannot be written ({why(e, path)}); {then}") from e
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def write_text(path: Path, text: str, then: str = "nothing was left behind") -> None:
    """Replaces a text file atomically.  Raises StorageError."""
    with replacing(path, then) as draft, draft.open("w", encoding="utf-8", newline="\n") as file:
        file.write(text)


def write_bytes(path: Path, data: bytes, then: str = "nothing was left behind") -> None:
    """Replaces a file atomically.  Raises StorageError."""
    with replacing(path, then) as draft:
        draft.write_bytes(data)


def write_json(path: Path, value: Any, then: str = "nothing was left behind") -> None:
    """Replaces a JSON file atomically.  Raises StorageError; ValueError for NaN."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False, default=str) + "\n", then)


def append_line(path: Path, line: str, then: str) -> None:
    """Appends a line to a file and syncs it; a line that could not be written completely is removed again.  Raises StorageError."""
    try:
        with path.open("ab", buffering=0) as file:  # a buffer would write the rest of a failed line on close
            before, left = file.tell(), line.encode()
            try:
                while left:
                    left = left[file.write(left) :]
                os.fsync(file.fileno())
            except OSError:
                with suppress(OSError):
                    os.ftruncate(file.fileno(), before)
                raise
    except OSError as e:
        raise StorageError(f"{path} cannot be written ({why(e, path)}); {then}") from e


# ---------------------------------------------------------------- one run a folder


def check_same_run(folder: Path, earlier: Any, identity: Mapping[str, Any]) -> None:
    """Raises InputError, naming what differs, if what a run left in its folder (`earlier`, as read from JSON) has another identity."""
    known = earlier if isinstance(earlier, dict) else {}
    other = [name for name, value in json.loads(json.dumps(identity, default=str)).items() if known.get(name) != value]
    if other:
        raise InputError(
            f"{folder} holds a run with other settings ({', '.join(sorted(other))}); name another folder with --out or delete it"
        )


@contextmanager
def locked(folder: Path, what: str) -> Iterator[None]:
    """Locks a folder for this thread; the lock is reentrant.

    A folder created here is removed again if nothing was written to it before an error.  `what` names the work for others who want the lock:
    "an evaluation", "a training".  Raises ConflictError naming the holder, StorageError if the folder cannot be written.
    """
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(folder.absolute() / LOCK, timeout=0, is_singleton=True)
        lock.acquire()
    except filelock.Timeout:
        raise ConflictError(f"{folder} is in use: {_holder(folder)}; wait for it, stop it, or name another folder") from None
    except OSError as e:
        raise StorageError(f"{folder} cannot be written ({why(e, folder)}); give a folder on a disk with enough space") from e
    first = lock.lock_counter == 1
    try:
        if first:
            about = {
                "what": what,
                "pid": os.getpid(),
                "host": socket.gethostname(),
                "since": f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S}",
            }
            with suppress(AmbiscopeError):  # the lock holds without it
                write_json(folder / HOLDER, about)
        yield
    except BaseException:
        if made and first and {p.name for p in folder.iterdir()} <= {LOCK, HOLDER}:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        if first:
            with suppress(OSError):
                (folder / HOLDER).unlink(missing_ok=True)
        lock.release()


def _holder(folder: Path) -> str:
    try:
        found = json.loads((folder / HOLDER).read_text(encoding="utf-8"))
        return f"{found['what']} in process {found['pid']} on {found['host']}, since {found['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process is using it"
