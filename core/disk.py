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
from core.text import time_text

LOCK, HOLDER = ".lock", ".lock.json"  # in a run folder: the lock, and who holds it
DISK_FULL_ERRNOS = {errno.ENOSPC, errno.EDQUOT}  # no space left, or the user's quota is used up
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


def free_bytes(path: Path) -> int:
    """Free bytes on the disk of a path, which need not exist yet.  Raises OSError."""
    return shutil.disk_usage(next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())).free


def describe_error(error: BaseException, path: Path) -> str:
    """The error in one line, with the free space if the disk is full.

    Libraries report a full disk as errors of their own, so an error without errno on a nearly full disk counts as one.
    """
    number, text = (error.errno, error.strerror) if isinstance(error, OSError) else (None, None)
    text = " ".join(str(text or error).split())[-200:] or type(error).__name__
    if isinstance(error, DiskFullError):
        return text
    with suppress(OSError, StopIteration):
        free = free_bytes(path)
        if (free < 1 << 20) if number is None else (number in DISK_FULL_ERRNOS):
            return f"{text}: {format_bytes(free)} are free in {path if path.is_dir() else path.parent}"
    return text


def need(folder: Path, size: int) -> None:
    """Raises DiskFullError if the disk of a folder has less than `size` bytes free."""
    free = free_bytes(folder)
    if size > free:
        raise DiskFullError(
            errno.ENOSPC, f"{format_bytes(size)} are needed and {format_bytes(free)} are free in {folder}", str(folder)
        )


def reserve(file: IO[bytes], size: int) -> None:
    """Extends an open file to `size` bytes with allocated blocks; its position and content do not change.

    Uses posix_fallocate, else writes zeros.  Raises DiskFullError, or OSError for other reasons; the file then has its earlier length.
    """
    file.flush()
    descriptor, before = file.fileno(), os.fstat(file.fileno()).st_size
    if size <= before:
        return
    try:
        _allocate(descriptor, before, size - before)
    except OSError as e:
        with suppress(OSError):
            os.ftruncate(descriptor, before)
        folder = Path(str(file.name)).parent
        if e.errno == errno.EFBIG:
            raise DiskFullError(
                e.errno, f"{format_bytes(size)} are needed, which is over the file size limit (ulimit -f) in {folder}"
            ) from e
        if e.errno not in DISK_FULL_ERRNOS:
            raise
        raise DiskFullError(
            e.errno, f"{format_bytes(size - before)} are needed and {format_bytes(free_bytes(folder))} are free in {folder}"
        ) from e


def _allocate(descriptor: int, start: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(descriptor, start, size)
            return
        except OSError as e:
            if e.errno not in _NO_CALL:
                raise
    position = os.lseek(descriptor, 0, os.SEEK_CUR)
    os.lseek(descriptor, start, os.SEEK_SET)
    while size:
        size -= os.write(descriptor, _ZEROS[:size])
    os.lseek(descriptor, position, os.SEEK_SET)


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
        descriptor, width = self._file.fileno(), self._array.itemsize * self._array.shape[1]
        data = b"".join([os.pread(descriptor, width, row * width) for row in rows.tolist()])
        return np.frombuffer(data, self._array.dtype).reshape(-1, self._array.shape[1])


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
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as e:
        raise StorageError(f"{path} cannot be written ({describe_error(e, path)}); {then}") from e
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def write_text(path: Path, text: str, then: str = "nothing was left behind") -> None:
    """Replaces a text file atomically.  Raises StorageError."""
    with replacing(path, then) as draft, draft.open("w", encoding="utf-8", newline="\n") as file:
        file.write(text)


def write_bytes(path: Path, data: bytes) -> None:
    """Replaces a file atomically.  Raises StorageError."""
    with replacing(path) as draft:
        draft.write_bytes(data)


def write_json(path: Path, value: Any, then: str = "nothing was left behind") -> None:
    """Replaces a JSON file atomically.  Raises StorageError; ValueError for NaN."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False, default=str) + "\n", then)


def append_line(path: Path, line: str, then: str) -> None:
    """Appends a line to a file and syncs it; a line that could not be written completely is removed again.  Raises StorageError."""
    try:
        with path.open("ab", buffering=0) as file:  # a buffer would write the rest of a failed line on close
            before, unwritten = file.tell(), line.encode()
            try:
                while unwritten:
                    unwritten = unwritten[file.write(unwritten) :]
                os.fsync(file.fileno())
            except OSError:
                with suppress(OSError):
                    os.ftruncate(file.fileno(), before)
                raise
    except OSError as e:
        raise StorageError(f"{path} cannot be written ({describe_error(e, path)}); {then}") from e


# ---------------------------------------------------------------- one run a folder


def check_same_run(folder: Path, earlier: Any, identity: Mapping[str, Any]) -> None:
    """Raises InputError, naming what differs, if the earlier run in a folder (`earlier`, as read from JSON) has another identity."""
    values = earlier if isinstance(earlier, dict) else {}
    differing = [name for name, value in json.loads(json.dumps(identity, default=str)).items() if values.get(name) != value]
    if differing:
        raise InputError(
            f"{folder} holds a run with other settings ({', '.join(sorted(differing))}); name another folder with --out or delete it"
        )


@contextmanager
def locked(folder: Path, work: str) -> Iterator[None]:
    """Locks a folder for this thread; the lock is reentrant.

    A folder created here is removed again if nothing was written to it before an error.  `work` tells others who want the lock what
    is running: "an evaluation", "a training".  Raises ConflictError naming the holder, StorageError if the folder cannot be written.
    """
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(folder.absolute() / LOCK, timeout=0, is_singleton=True)
        lock.acquire()
    except filelock.Timeout:
        raise ConflictError(f"{folder} is in use: {_holder(folder)}; wait for it, stop it, or name another folder") from None
    except OSError as e:
        raise StorageError(
            f"{folder} cannot be written ({describe_error(e, folder)}); give a folder on a disk with enough space"
        ) from e
    first = lock.lock_counter == 1
    try:
        if first:
            holder = {
                "what": work,
                "pid": os.getpid(),
                "host": socket.gethostname(),
                "since": time_text(datetime.now(), seconds=True),
            }
            with suppress(AmbiscopeError):  # the lock holds without it
                write_json(folder / HOLDER, holder)
        yield
    except BaseException:
        if is_new and first and {p.name for p in folder.iterdir()} <= {LOCK, HOLDER}:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        if first:
            with suppress(OSError):
                (folder / HOLDER).unlink(missing_ok=True)
        lock.release()


def _holder(folder: Path) -> str:
    try:
        holder = json.loads((folder / HOLDER).read_text(encoding="utf-8"))
        return "{what} in process {pid} on {host}, since {since}".format(**holder)
    except (OSError, ValueError, KeyError, TypeError):
        return "another process is using it"
