"""Downloads a data set: its files, checksums and archive members; recorded in `manifest.json`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout

from core import json_io
from core.datasets.catalogue import DataSet, folder_of
from core.datasets.download import PAUSE, fetch, unpack
from core.disk import write_json
from core.errors import AmbiscopeError, ConflictError

Progress = Callable[[str, int, int | None], None]  # address, bytes there, bytes in all


def obtain(
    data: DataSet, home: Path, *, again: bool = False, progress: Progress | None = None, pause: float = PAUSE
) -> list[Path]:
    """The question files of a data set, downloaded if missing (or `again`).

    Without a checksum from the authors, that of the first download is stored and required later.  Raises DownloadError, StorageError,
    ConflictError if another process is downloading the same set.
    """
    folder = folder_of(home, data.name)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / ".lock", timeout=0):
            known = _known(folder)
            for file in data.files:
                targets = [folder / name for name in (file.members.values() if file.members else [file.name])]
                if not again and file.name in known and all(t.is_file() for t in targets):
                    continue
                tell = None if progress is None else (lambda done, total, url=file.url: progress(url, done, total))
                got = fetch(
                    file.url, folder / file.name, sha256=file.sha256 or known.get(file.name, ""), progress=tell, pause=pause
                )
                if file.members:
                    unpack(got.path, file.members, folder)
                    got.path.unlink()
                known[file.name] = got.sha256
                write_json(
                    folder / "manifest.json",
                    {"name": data.name, "licence": data.licence, "homepage": data.homepage, "sha256": known},
                )
            return [folder / name for name in data.question_files]
    except Timeout:
        raise ConflictError(f"another process is downloading '{data.name}'; wait for it") from None


def _known(folder: Path) -> dict[str, str]:
    """File name -> SHA-256 of the first download; empty if there is none."""
    try:
        found = json_io.read(folder / "manifest.json")["sha256"]
    except (AmbiscopeError, KeyError, TypeError):
        return {}
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}
