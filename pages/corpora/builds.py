"""Uploaded files, and building a corpus from them, in a worker thread that continues when the browser leaves."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from core.engine import Engine
from core.errors import InputError, StorageError
from core.retrieval import wikipedia
from core.retrieval.build import BuildProgress, BuildReport
from core.retrieval.library import CorpusLibrary
from pages.session.background import BackgroundJob
from pages.session.uploads import Uploaded, safe_names

if TYPE_CHECKING:
    from core.serve.remote import RemoteEngine

NAMES_FILE = "names.json"  # corpus and original names of the files, beside them


@dataclass(frozen=True)
class Upload:
    """Files of one upload on disk, until their corpus is complete."""

    folder: Path
    corpus: str
    originals: dict[str, str]  # safe name -> name as uploaded

    @property
    def paths(self) -> list[Path]:
        return [self.folder / name for name in self.originals]


def save_upload(home: Path, corpus: str, files: Sequence[Uploaded]) -> Upload:
    """Writes uploaded files under `home`.  Raises InputError for an unknown kind, StorageError when the disk refuses."""
    originals = safe_names([f.name for f in files])
    folder = home / "uploads" / uuid.uuid4().hex
    try:
        folder.mkdir(parents=True)
        for safe, file in zip(originals, files, strict=True):
            (folder / safe).write_bytes(file.getbuffer())
        (folder / NAMES_FILE).write_text(json.dumps({"corpus": corpus, "originals": originals}), encoding="utf-8")
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise StorageError(f"the upload cannot be written ({error.strerror or error}); free some space under {home}") from error
    return Upload(folder, corpus, originals)


def pending_uploads(home: Path, corpus: str) -> list[Upload]:
    """Uploads whose build of this corpus wasn't finished, the latest last."""
    uploads = []
    for path in (home / "uploads").glob(f"*/{NAMES_FILE}"):
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
    """A build that hasn't started.  Its result is a BuildReport, its subject the upload.  `create` replaces the engine's
    library's."""

    def make(progress: BuildProgress) -> BuildReport:
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


def _job(name: str, make: Callable[[BuildProgress], BuildReport], upload: Upload | None = None) -> BackgroundJob:
    def work(job: BackgroundJob) -> BuildReport:
        def progress(done: int, total: int, stage: str) -> None:
            unit = "MB" if stage == wikipedia.DOWNLOADING else "passages"
            job.progress(done, total, f"{stage}: {done:,}{f' of {total:,}' if total else ''} {unit}")

        return make(progress)

    stopped = f"the build of corpus '{name}' was stopped; finished work is kept, and you can resume it"
    return BackgroundJob(work, name, stopped=stopped, subject=upload)
