"""Databases beside a person's own, each created completely or not at all."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from pathlib import Path

from core.errors import StorageError
from storage.store import Store

_LOCKS: dict[Path, threading.Lock] = {}


def ensure_database(file: Path, fill: Callable[[Store], object]) -> Path:
    """The database `file`; where it does not exist, `fill` makes its content.  Raises StorageError, and what `fill` raises: then no file remains."""
    with _LOCKS.setdefault(file, threading.Lock()):
        if file.is_file():
            return file
        draft = file.with_name(f"{file.stem}-{uuid.uuid4().hex[:8]}.part")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with Store(f"sqlite:///{draft}") as store:
                fill(store)
            if not file.is_file():  # another process may have made it meanwhile, and have it open
                draft.replace(file)
        except OSError as error:
            raise StorageError(f"{file} cannot be written ({error.strerror or error}); free some space") from error
        finally:
            remove_database(draft)
        return file


def remove_database(file: Path) -> None:
    """Deletes the file and what SQLite keeps beside it."""
    for path in file.parent.glob(f"{file.name}*"):
        path.unlink(missing_ok=True)
