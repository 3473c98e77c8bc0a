"""Files that are whole or not there: written beside their place, digested on the way, renamed at the end; and their manifests."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from core import disk
from core.errors import InputError, StorageError
from storage.records.results import Manifest
from storage.schema import tables
from storage.schema.engine import Database


class HashedWriter(io.RawIOBase):
    """Text or bytes into a file, counted and digested on the way.  A binary file of its own, so that Parquet's writer takes it."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file, self._hash, self.bytes = file, hashlib.sha256(), 0

    def write(self, data: Any) -> int:
        raw = data.encode("utf-8") if isinstance(data, str) else bytes(data)
        self._file.write(raw)
        self._hash.update(raw)
        self.bytes += len(raw)
        return len(raw)

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.bytes

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


@contextmanager
def replacing(path: Path) -> Iterator[HashedWriter]:
    """Writes beside `path` and renames at the end; at any exception `path` is as it was.

    Raises StorageError for the disk's.
    """
    with disk.replacing(path) as draft, draft.open("wb") as file:
        yield HashedWriter(file)


class HashedFolder:
    """Files into a folder.  Its digest is that of the lines `sha256  name`, by name; `sha256sum` writes the same."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files: dict[str, HashedWriter] = {}

    @contextmanager
    def file(self, name: str) -> Iterator[HashedWriter]:
        """A new file; `name` may have folders."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            self._files[name] = HashedWriter(file)
            yield self._files[name]
            file.flush()
            os.fsync(file.fileno())

    @property
    def bytes(self) -> int:
        return sum(one.bytes for one in self._files.values())

    @property
    def sha256(self) -> str:
        lines = "".join(f"{self._files[name].sha256}  {name}\n" for name in sorted(self._files))
        return hashlib.sha256(lines.encode()).hexdigest()


@contextmanager
def new_folder(path: Path) -> Iterator[HashedFolder]:
    """Writes beside `path` and renames at the end; at any exception nothing is left.

    Raises InputError where `path` holds something already, StorageError for the disk's.
    """
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InputError(f"{path} exists already, and an export never writes into a folder that holds something; name another")
    draft = disk.draft_name(path)
    try:
        draft.mkdir(parents=True)
        yield HashedFolder(draft)
        draft.replace(path)
    except OSError as e:
        raise StorageError(f"{path} cannot be written ({disk.why(e, path)}); nothing was left behind") from e
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def digest(path: Path) -> str:
    """sha256 of a file's content."""
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
