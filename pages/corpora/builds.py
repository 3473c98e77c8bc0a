"""Uploaded files, and building a corpus from them, in a worker thread that continues when the browser leaves."""

from __future__ import annotations

import json
import re
import shutil
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from core.engine import Engine
from core.errors import InputError, StorageError
from core.retrieval import wikipedia
from core.retrieval.build import BuildReport
from core.retrieval.library import CorpusLibrary
from core.retrieval.readers import UPLOADED
from pages.jobs.background import BackgroundJob

if TYPE_CHECKING:
    from core.serve.remote import RemoteEngine

Progress = Callable[[int, int, str], None]
NAMES = "names.json"  # corpus and original names of the files, beside them
_DEVICE = re.compile(r"con|prn|aux|nul|(com|lpt)\d", re.IGNORECASE)
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


class Uploaded(Protocol):
    name: str

    def getbuffer(self) -> memoryview: ...


@dataclass(frozen=True)
class Upload:
    """Files of one upload on disk, until their corpus is complete."""

    folder: Path
    corpus: str
    originals: dict[str, str]  # safe name -> name as uploaded

    @property
    def paths(self) -> list[Path]:
        return [self.folder / name for name in self.originals]


def safe_names(names: Sequence[str], kinds: Iterable[str] = UPLOADED) -> dict[str, str]:
    """Safe name -> name as uploaded: characters that are safe everywhere, a suffix among `kinds`, and a number where two would be
    equal, or one is a device on Windows.  The same names give the same result, so that a build can be resumed.  Raises InputError."""
    originals: dict[str, str] = {}
    for number, name in enumerate(names, 1):
        lower = name.lower()
        suffix = next((s for s in sorted(kinds, key=len, reverse=True) if lower.endswith(s)), None)
        if suffix is None:
            raise InputError(f"{name[:120]}: this file type cannot be read; use one of {', '.join(kinds)}")
        stem = _UNSAFE.sub("_", name[: -len(suffix)])[:40].strip("_") or "file"
        existing = {n.lower() for n in originals}
        if _DEVICE.fullmatch(stem) or f"{stem}{suffix}".lower() in existing:
            stem = f"{stem}-{number}"
        while f"{stem}{suffix}".lower() in existing:
            stem += "_"
        originals[f"{stem}{suffix}"] = name
    return originals


def save_upload(home: Path, corpus: str, files: Sequence[Uploaded]) -> Upload:
    """Writes uploaded files under `home`.  Raises InputError for an unknown kind, StorageError when the disk refuses."""
    originals = safe_names([f.name for f in files])
    folder = home / "uploads" / uuid.uuid4().hex
    try:
        folder.mkdir(parents=True)
        for safe, file in zip(originals, files, strict=True):
            (folder / safe).write_bytes(file.getbuffer())
        (folder / NAMES).write_text(json.dumps({"corpus": corpus, "originals": originals}), encoding="utf-8")
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise StorageError(f"the upload cannot be written ({error.strerror or error}); free some space under {home}") from error
    return Upload(folder, corpus, originals)


def pending_uploads(home: Path, corpus: str) -> list[Upload]:
    """Uploads whose build of this corpus was not finished, the latest last."""
    uploads = []
    for path in (home / "uploads").glob(f"*/{NAMES}"):
        try:
            names, written = json.loads(path.read_text(encoding="utf-8")), path.stat().st_mtime_ns
        except (OSError, ValueError):
            continue
        if names.get("corpus") == corpus:
            uploads.append((written, Upload(path.parent, corpus, dict(names.get("originals", {})))))
    return [upload for _, upload in sorted(uploads, key=lambda pair: pair[0])]


def discard_uploads(home: Path, corpus: str) -> None:
    for upload in pending_uploads(home, corpus):
        shutil.rmtree(upload.folder, ignore_errors=True)


def build(engine: Engine | RemoteEngine, upload: Upload, create: Callable[..., BuildReport] | None = None) -> BackgroundJob:
    """Not started yet; its result is a BuildReport, its subject the upload.  `create`: in place of the engine's library's."""

    def make(progress: Progress) -> BuildReport:
        try:
            report = (create or engine.library.create)(upload.corpus, upload.paths, progress)
        except InputError:  # these files will never make this corpus
            shutil.rmtree(upload.folder, ignore_errors=True)
            raise
        discard_uploads(engine.settings.home, upload.corpus)
        return report

    return _job(upload.corpus, make, upload)


def build_wikipedia(library: CorpusLibrary) -> BackgroundJob:
    """The same for Simple English Wikipedia, which is downloaded first."""
    return _job(wikipedia.NAME, partial(wikipedia.add_wikipedia, library))


def _job(name: str, make: Callable[[Progress], BuildReport], upload: Upload | None = None) -> BackgroundJob:
    def work(job: BackgroundJob) -> BuildReport:
        def progress(done: int, total: int, stage: str) -> None:
            unit = "MB" if stage == wikipedia.DOWNLOADING else "passages"
            job.progress(done, total, f"{stage}: {done:,}{f' of {total:,}' if total else ''} {unit}")

        return make(progress)

    stopped = f"the build of corpus '{name}' was stopped; finished work is kept, and you can resume it"
    return BackgroundJob(work, name, stopped=stopped, subject=upload)
