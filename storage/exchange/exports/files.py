"""Files that are either complete or absent: written beside their path and renamed at the end.  Also their digests and
manifests."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from core import disk
from core.errors import InputError, StorageError
from storage.records.results import Manifest
from storage.schema import tables
from storage.schema.engine import Database


@contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """Writes beside `path` and renames at the end.  At any exception `path` is as it was.

    Raises StorageError for an error of the disk.
    """
    with disk.replacing(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        yield file


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder beside `path`, renamed at the end.  At any exception nothing remains.

    Raises InputError if `path` is a file or a folder that is not empty, StorageError for an error of the disk.
    """
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InputError(f"{path} exists already, and an export never writes into a folder that holds something; name another")
    draft = disk.draft_name(path)
    try:
        draft.mkdir(parents=True)
        yield draft
        for file in _files(draft):
            with file.open("rb") as handle:
                os.fsync(handle.fileno())
        draft.replace(path)
    except OSError as e:
        raise StorageError(f"{path} cannot be written ({disk.describe_error(e, path)}); nothing was left behind") from e
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def size_and_digest(path: Path) -> tuple[int, str]:
    """(bytes, digest) of a file or a folder.  A folder's digest is that of the lines `sha256  name`, by name; `sha256sum` writes the same."""
    if path.is_file():
        return path.stat().st_size, digest(path)
    lines = "".join(f"{digest(file)}  {file.relative_to(path).as_posix()}\n" for file in _files(path))
    return sum(file.stat().st_size for file in _files(path)), hashlib.sha256(lines.encode()).hexdigest()


def digest(path: Path) -> str:
    """The sha256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def manifest_path(path: Path) -> Path:
    return path.with_name(path.name + ".manifest.json")


def note_export(database: Database, manifest: Manifest, path: Path) -> None:
    with database.writing() as session:
        session.add(
            tables.Export(
                format=manifest.format,
                file=str(path),
                sha256=manifest.sha256,
                bytes=manifest.bytes,
                counts=dict(manifest.counts),
                filters=dict(manifest.filters),
                created=manifest.created,
            )
        )
