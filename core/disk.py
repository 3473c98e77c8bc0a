"""The disk: files that are whole or not there, room reserved before a file is mapped, one lock a folder, and words for a disk that refuses.

A write into a mapped file whose page has no block on the disk cannot fail as a call does: where the disk is full the system ends the whole process
(SIGBUS).  So nothing is mapped for writing whose blocks are not there (`new_array`), and all maps are made here.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import filelock
import numpy as np
from numpy.typing import DTypeLike, NDArray

from core.errors import AmbiscopeError, ConflictError, StorageError

LOCK, HOLDER = ".lock", ".lock.json"  # in a run folder: the lock, and who holds it
FULL = {errno.ENOSPC, errno.EDQUOT}  # no space, or none for this person
_ZEROS = bytes(1 << 20)
_NO_CALL = {errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}  # the file system knows no reserving


class NoRoomError(OSError):
    """Less is free than is needed; the text says how much of both, and where."""


def amount(size: int) -> str:
    """
    >>> amount(999), amount(65_536), amount(4_000_128)
    ('999 bytes', '65.5 kB', '4.0 MB')
    """
    if size < 1000:
        return f"{size:,} bytes"
    return f"{size / 1e3:.1f} kB" if size < 1e6 else f"{size / 1e6:,.1f} MB"


def plain_or_gz(path: Path) -> Path:
    """The file, or its gzipped copy beside it (`path` with .gz) where only that is there; the path as given where neither is."""
    packed = path.with_name(path.name + ".gz")
    return packed if not path.exists() and packed.exists() else path


def free(where: Path) -> int:
    """Bytes that are free on the disk of a path, which need not exist yet.  Raises OSError."""
    there = next(p for p in (where.absolute(), *where.absolute().parents) if p.exists())
    return shutil.disk_usage(there).free


def why(error: BaseException, where: Path) -> str:
    """The reason in words, in one line; how much is free where the disk is full.

    Libraries report a full disk as errors of their own, so a nearly full one is named with any of them.
    """
    said = (
        " ".join(str((error.strerror if isinstance(error, OSError) else None) or error).split())[-200:] or type(error).__name__
    )
    if isinstance(error, NoRoomError):
        return said
    with suppress(OSError, StopIteration):
        left = free(where)
        known = isinstance(error, OSError) and error.errno is not None
        if (error.errno in FULL) if known else left < 1 << 20:  # type: ignore[attr-defined]
            return f"{said}: {amount(left)} are free in {where if where.is_dir() else where.parent}"
    return said


def need(folder: Path, size: int) -> None:
    """Raises NoRoomError where the disk of a folder has less than `size` bytes free."""
    left = free(folder)
    if size > left:
        raise NoRoomError(errno.ENOSPC, f"{amount(size)} are needed and {amount(left)} are free in {folder}", str(folder))


def reserve(file: IO[bytes], size: int) -> None:
    """Makes an open file `size` bytes long and its blocks exist; where it stands does not change, nor what it holds.

    By posix_fallocate, else by writing zeros.  Raises NoRoomError, and OSError for other reasons; then the file has its earlier length.
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
            raise NoRoomError(
                e.errno, f"{amount(size)} are needed, and no file in {folder} may have so many (ulimit -f)"
            ) from e
        if e.errno not in FULL:
            raise
        raise NoRoomError(e.errno, f"{amount(size - before)} are needed and {amount(free(folder))} are free in {folder}") from e


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


def new_array(path: Path, dtype: DTypeLike, shape: tuple[int, ...]) -> np.memmap[Any, Any]:
    """A new .npy file of zeros, mapped for writing; its blocks are on the disk before it is mapped.  Raises NoRoomError, OSError."""
    kind = np.dtype(dtype)
    with path.open("wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        reserve(file, file.tell() + kind.itemsize * int(np.prod(shape, dtype=np.int64)))
    return np.lib.format.open_memmap(path, mode="r+")


def mapped(path: Path, dtype: DTypeLike, shape: tuple[int, ...] | None = None) -> NDArray[Any]:
    """A file mapped for reading; an empty one is an empty array.  A plain array over the mapping: np.memmap's own indexing is slower.

    Raises OSError, and ValueError where the file does not hold `shape`.
    """
    if path.stat().st_size < np.dtype(dtype).itemsize:  # nothing cannot be mapped
        return np.zeros(shape or 0, dtype=dtype)
    return np.asarray(np.memmap(path, dtype=dtype, mode="r", shape=shape))


# ---------------------------------------------------------------- whole files


def draft_name(target: Path) -> Path:
    """Where a file is written before it gets its name; another one for each writer."""
    return target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}.part")


@contextmanager
def replacing(path: Path, then: str = "nothing was left behind") -> Iterator[Path]:
    """The draft to write in the place of `path`: it reaches the disk and gets the name at the end; at any exception `path` is as it was and the
    draft is gone.

    Raises StorageError for the disk's refusal, which ends with `then`: what became of it, and what to do.
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
    """A text file, replaced whole.  Raises StorageError."""
    with replacing(path, then) as draft, draft.open("w", encoding="utf-8", newline="\n") as file:
        file.write(text)


def write_bytes(path: Path, data: bytes, then: str = "nothing was left behind") -> None:
    """A file, replaced whole.  Raises StorageError."""
    with replacing(path, then) as draft:
        draft.write_bytes(data)


def write_json(path: Path, value: Any, then: str = "nothing was left behind") -> None:
    """A JSON file, replaced whole.  Raises StorageError; ValueError for NaN."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False, default=str) + "\n", then)


def append_line(path: Path, line: str, then: str) -> None:
    """A line at the end of a file, on the disk when this returns; a line that the disk refuses is taken off again.  Raises StorageError."""
    try:
        with path.open("ab", buffering=0) as file:  # a buffer would write the rest of a refused line when it is closed
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


# ---------------------------------------------------------------- one at a time


@contextmanager
def claimed(folder: Path, what: str) -> Iterator[None]:
    """Keeps a folder to this thread until the end; within it the same thread may claim it again.

    A folder that was made for it and in which nothing was written before an error goes again.  `what` is told to whoever comes second: "an
    evaluation", "a training".  Raises ConflictError that names who holds it, StorageError where the folder cannot be written.
    """
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(folder.absolute() / LOCK, timeout=0, is_singleton=True)
        lock.acquire()
    except filelock.Timeout:
        raise ConflictError(f"{folder} is in use: {_holder(folder)}; wait for it, stop it, or name another folder") from None
    except OSError as e:
        raise StorageError(f"{folder} cannot be written ({why(e, folder)}); give a folder on a disk with room") from e
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
        return "another process is at work there"
