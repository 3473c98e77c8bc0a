"""The corpora of an installation: build, list, open, search, delete.  Importing this imports neither torch nor FAISS.

A corpus is a folder `<home>/corpora/<name>` with a manifest; a build takes place in `.building-<name>` until it is complete,
so a kill leaves the old corpus, or none, and a state from which the same command resumes.  A build whose word index is complete opens,
too, and is searched by words until its vectors are there.  A lock file per corpus prevents two processes from building the same one.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import cast

from core import disk
from core.errors import (
    AmbiscopeError,
    ConflictError,
    IndexMismatchError,
    InputError,
    NotFoundError,
    NothingRetrievedError,
    StorageError,
)
from core.models.encoders.retriever import index_name, weights_name
from core.models.encoders.sentence_encoder import Encoder, Vectors, load_encoder
from core.retrieval import build as building
from core.retrieval import short_names, words
from core.retrieval.build import BuildProgress, BuildReport, Files, Fingerprints, Size, no_progress
from core.retrieval.corpus import FACTS, PassageStore, folder_size, read_facts
from core.retrieval.gpus import Spread
from core.retrieval.hybrid import best_by_words, checked_mode, search
from core.retrieval.index import MANIFEST, Encode, IndexManifest, VectorIndex, check_manifest
from core.retrieval.known_vectors import load_precomputed, reusing
from core.retrieval.readers.folders import files_of
from core.retrieval.readers.lines import DEFAULT_COLUMNS, Columns, CorpusFile, Limits, Rejected
from core.retrieval.readers.zips import unpacked
from core.retrieval.short_names import ShortNames
from core.retrieval.vectors import VectorFiles
from core.retrieval.words import WordIndex
from core.settings import Settings
from core.types import Passage, RetrievedPassage

STARTER = "starter"
STARTER_WAIT_SECONDS = 600.0  # a second process waits while the first one builds the starter corpus
BUILDING = ".building-"
WORDS_ONLY = "words"  # kind of the index of a build without vectors
_NAME = re.compile(r"[a-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """The options of a build."""

    limits: Limits | None = None  # None: those of uploads
    replace: bool = False  # another corpus of this name, once the new one is complete
    wait: float = 0.0  # seconds, for another build of it
    encoder: Encoder | None = None  # of the settings' name; None: loaded when it is needed
    encode: Encode | None = None  # another way to its vectors (core.retrieval.index.write_vectors)
    columns: Columns = DEFAULT_COLUMNS  # the names of the files' fields
    vectors: VectorFiles | None = None  # computed already: only questions are encoded, and each row of the files is a passage


UPLOAD = BuildOptions()


@dataclass(frozen=True, slots=True)
class CorpusInfo:
    name: str
    passages: int
    digest: str
    encoder: str
    index_kind: str
    built: str  # ISO 8601, UTC; empty while incomplete
    size_bytes: int
    source: str  # names of the files it was read from
    complete: bool

    @property
    def by_words_only(self) -> bool:
        """Whether it is a build with a complete word index whose vectors are still missing."""
        return self.index_kind == WORDS_ONLY


class Corpus:
    """An open corpus.  Index, BM25 and encoder are loaded at the first search.  Thread-safe."""

    def __init__(
        self,
        name: str,
        store: PassageStore,
        manifest: IndexManifest,
        settings: Settings,
        encoder: Callable[[], Encoder],
    ) -> None:
        self.name, self.store, self.manifest = name, store, manifest
        self._settings, self._get_encoder, self.encoder = settings, encoder, settings.encoder
        self._lock = threading.Lock()
        self._loaded: tuple[Encoder, VectorIndex] | None = None
        self._words: WordIndex | None = None
        self._short = ShortNames(store.folder / short_names.FILE)

    @property
    def digest(self) -> str:
        return self.store.digest

    @property
    def by_words_only(self) -> bool:
        return self.manifest.kind == WORDS_ONLY

    def __len__(self) -> int:
        return len(self.store)

    def passages(self, offset: int = 0, limit: int = 50) -> list[Passage]:
        return self.store.passages(offset, limit)

    def check(self, encoder: str, dimension: int) -> None:
        """Raises IndexMismatchError if the index doesn't fit its passages, or the encoder's name and dimension."""
        check_manifest(self.manifest, encoder=encoder, dimension=dimension, count=len(self), digest=self.digest, name=self.name)

    def _dense(self) -> tuple[Encoder, VectorIndex]:
        if self.by_words_only:
            raise NotFoundError(
                f"the vectors of corpus '{self.name}' are not complete yet; search by words (bm25) until they are"
            )
        with self._lock:
            if self._loaded is None:
                encoder = self._get_encoder()
                self.check(encoder.name, encoder.dimension)
                device, spread = self._settings.device, cast(Spread, self._settings.index_gpus)
                self._loaded = encoder, VectorIndex(self.store.folder, self.manifest, device, spread)
            return self._loaded

    def _bm25(self) -> WordIndex:
        with self._lock:
            if self._words is None:
                self._words = WordIndex(self.store.folder / words.FOLDER, len(self.store))
            return self._words

    def expanded(self, query: str) -> str:
        """The query with this corpus's names added after their short forms: "the N64 (Nintendo 64)"."""
        return query if self.by_words_only else self._short.expanded(query, self._bm25().knows)

    @property
    def vectors(self) -> Vectors:
        """The passages' unit vectors (n, d), in the order of the store.  Raises IndexMismatchError, CheckpointError."""
        return self._dense()[1].vectors

    def warm(self) -> None:
        """Loads everything that a search needs.  Raises IndexMismatchError, CheckpointError."""
        self._bm25()
        if not self.by_words_only:
            self._dense()

    def search(self, query: str, k: int, mode: str | None = None) -> list[RetrievedPassage]:
        """The k best passages, best first; fewer if the corpus is smaller, or in mode bm25 if fewer share a word with the query.

        `mode`: dense, bm25 or hybrid (default: AMBISCOPE_RETRIEVER).  `similarity` is the cosine, None while there are no vectors: then hybrid
        search is by words.
        Raises InputError if k < 1 or the mode is unknown, NothingRetrievedError if the corpus is empty, NotFoundError for dense search
        without vectors.
        """
        return self.search_many([query], k, mode)[0]

    def search_many(self, queries: Sequence[str], k: int, mode: str | None = None) -> list[list[RetrievedPassage]]:
        """`search` for several questions, which are encoded together."""
        mode = checked_mode(mode or self._settings.retriever)
        if k < 1:
            raise InputError(f"{k} passages were asked for; ask for at least 1")
        if not len(self.store):
            raise NothingRetrievedError(f"corpus '{self.name}' is empty; choose another one")
        if not queries:
            return []
        queries = [self.expanded(query) for query in queries]
        bm25 = None if mode == "dense" else self._bm25()
        if self.by_words_only and bm25 is not None:
            return [
                [RetrievedPassage(self.store[row], rank, score) for rank, (row, score) in enumerate(ranking, 1)]
                for ranking in (zip(*(a.tolist() for a in best_by_words(bm25, query, k))) for query in queries)
            ]
        encoder, index = self._dense()
        return [
            [
                RetrievedPassage(self.store[int(row)], rank, float(score), float(cosine))
                for rank, (row, score, cosine) in enumerate(zip(*ranking, strict=True), 1)
            ]
            for ranking in search(index, bm25, queries, encoder.encode(queries, "query"), k, mode)
        ]


class CorpusLibrary:
    """All corpora in one AMBISCOPE_HOME."""

    def __init__(self, settings: Settings, encoder: Encoder | None = None) -> None:
        """`encoder`: one that is already loaded.  By default the settings' encoder is loaded when needed."""
        self.settings, self.folder = settings, settings.corpora_dir
        self._encoder, self._lock = encoder, threading.Lock()
        self._size = Size(settings.index_kind, settings.large_corpus)

    def encoder(self) -> Encoder:
        """The settings' encoder, loaded once.  Raises CheckpointError."""
        with self._lock:
            if self._encoder is None:
                self._encoder = load_encoder(self.settings)
            return self._encoder

    @cached_property
    def encoder_name(self) -> str:
        """The encoder's name, with the digest of its weights if they can be retrained.  Raises CheckpointError."""
        return weights_name(self.settings.encoder)

    def _path(self, name: str, prefix: str = "") -> Path:
        if not _NAME.fullmatch(name):
            raise InputError(f"'{name[:80]}' cannot be a corpus name; use 1 to 64 of a-z, 0-9, '_' and '-'")
        return self.folder / f"{prefix}{name}"

    @contextmanager
    def _locked(self, name: str, wait: float = 0.0) -> Iterator[None]:
        """Locks a corpus.  Raises ConflictError while another process builds or deletes it, StorageError if the folder can't be
        written."""
        import filelock

        path = self._path(name, ".lock-")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = filelock.FileLock(path, timeout=wait, thread_local=False)
            lock.acquire()
        except filelock.Timeout as e:
            raise ConflictError(
                f"corpus '{name}' is being built or deleted by another process; wait until it has finished (lock: {path})"
            ) from e
        except OSError as e:
            raise StorageError(
                f"{self.folder} cannot be written ({disk.describe_error(e, self.folder)}); check AMBISCOPE_HOME and free space"
            ) from e
        try:
            self._recover(name)
            yield
        finally:
            lock.release()

    def _recover(self, name: str) -> None:
        """Undoes a swap of old and new that a kill interrupted.  Call it with the lock held."""
        target, old = self._path(name), self._path(name, ".old-")
        if old.exists():
            if (target / MANIFEST).exists():
                _remove(old, ignore_errors=True)
            else:
                old.replace(target)
        _remove(self._path(name, ".deleted-"), ignore_errors=True)

    # ------------------------------------------------------------ looking

    def names(self) -> list[str]:
        """The names of the corpora that can be searched, if only by words.  The starter corpus is included even before its
        first use."""
        names = {p.parent.name for p in self.folder.glob(f"*/{MANIFEST}") if _NAME.fullmatch(p.parent.name)}
        names |= {p.parent.name.removeprefix(BUILDING) for p in self.folder.glob(f"{BUILDING}*/{words.FOLDER}")}
        if (self.settings.starter_dir / "passages.tsv").exists():
            names.add(STARTER)
        return sorted(names)

    def list(self) -> list[CorpusInfo]:
        """All corpora by name.  Interrupted, running and damaged builds have `complete=False`."""
        folders = {p.name: p for p in self.folder.glob("*") if p.is_dir() and _NAME.fullmatch(p.name)}
        for p in self.folder.glob(f"{BUILDING}*"):
            folders.setdefault(p.name.removeprefix(BUILDING), p)
        return [self._info(name, folders[name]) for name in sorted(folders)]

    def _info(self, name: str, folder: Path) -> CorpusInfo:
        facts: dict[str, object] = {}
        manifest: IndexManifest | None = None
        with suppress(OSError, IndexMismatchError):
            facts = read_facts(folder / FACTS)
            manifest = IndexManifest.load(folder) if folder.name == name else None
        return CorpusInfo(
            name=name,
            passages=passages if isinstance(passages := facts.get("passages"), int) else 0,
            digest=str(facts.get("digest", "")),
            encoder=manifest.encoder if manifest else "",
            index_kind=manifest.kind if manifest else WORDS_ONLY if facts and (folder / words.FOLDER).exists() else "",
            built=manifest.created if manifest else "",
            size_bytes=folder_size(folder),
            source=str(facts.get("source", "")),
            complete=manifest is not None,
        )

    def digest(self, name: str) -> str:
        """A digest of a complete corpus from its current files, "" if there is none.  Faster than `list`."""
        with suppress(OSError, IndexMismatchError):
            IndexManifest.load(self._path(name))
            return str(read_facts(self._path(name) / FACTS).get("digest", ""))
        return ""

    def is_current(self, corpus: Corpus) -> bool:
        """Whether an open corpus is still the one with its name.  It may have been rebuilt, even from the same passages with
        other vectors."""
        with suppress(OSError, IndexMismatchError):
            folder = self._path(corpus.name)
            return IndexManifest.load(folder) == corpus.manifest and read_facts(folder / FACTS) == corpus.store.facts
        return False

    # ------------------------------------------------------------ opening

    def open(self, name: str, progress: BuildProgress = no_progress) -> Corpus:
        """Opens a complete corpus, or a build whose word index is complete.  The starter corpus is built first if it is missing
        or its file has changed.

        Raises NotFoundError for a name without corpus, IndexMismatchError if its parts do not match each other or the encoder.
        """
        if name == STARTER:
            self._ensure_starter(progress)
        folder = self._path(name)
        if not folder.exists() and self._path(name, ".old-").exists():
            with self._locked(name):  # after a kill during replacement the old one still exists
                pass
        if not (folder / MANIFEST).exists():
            if self._path(name, BUILDING).exists():
                return self._by_words(name)
            raise NotFoundError(f"no corpus is named '{name}'; there are: {', '.join(self.names()) or 'none'}")
        return self._open_complete(name)

    def _by_words(self, name: str) -> Corpus:
        """A corpus over the files of a build.  All of them are open when this returns, because the build's folder is renamed
        when it is complete.

        Raises NotFoundError if its word index is not complete.
        """
        try:
            store = PassageStore(self._path(name, BUILDING))
            encoder = index_name(self.settings.encoder)
            manifest = IndexManifest(encoder, 0, len(store), WORDS_ONLY, store.digest, "", "")
            corpus = Corpus(name, store, manifest, self.settings, self.encoder)
            corpus.warm()
        except (NotFoundError, IndexMismatchError) as e:
            if (self._path(name) / MANIFEST).exists():  # meanwhile
                return self._open_complete(name)
            raise NotFoundError(
                f"corpus '{name}' is not complete: its build is running or was interrupted; give the same files again to resume"
            ) from e
        return corpus

    def _open_complete(self, name: str) -> Corpus:
        try:
            manifest, store = IndexManifest.load(self._path(name)), PassageStore(self._path(name))
        except (FileNotFoundError, NotFoundError) as e:
            raise IndexMismatchError(f"corpus '{name}' has lost a file ({e}); delete it and build it again") from e
        corpus, encoder = Corpus(name, store, manifest, self.settings, self.encoder), self._encoder
        if encoder:
            corpus.check(encoder.name, encoder.dimension)
        else:  # the dimension is checked once the encoder is loaded
            corpus.check(index_name(self.settings.encoder), manifest.dimension)
        return corpus

    def _ensure_starter(self, progress: BuildProgress) -> None:
        path = self.settings.starter_dir / "passages.tsv"
        if not path.exists():
            return
        limits = Limits.for_own_files(self.settings)
        if self._matching(STARTER, building.fingerprint(Files(tuple(files_of([path]))), limits)) is None:
            ready = load_precomputed(path.parent, index_name(self.settings.encoder), self.encoder)
            options = BuildOptions(limits, replace=True, wait=STARTER_WAIT_SECONDS, encoder=ready)
            self.create(STARTER, [path], progress, options)

    def _matching(self, name: str, prints: Fingerprints) -> PassageStore | None:
        """The store of a corpus that is complete, was built from these files, and fits the settings, so that no build is
        needed."""
        try:
            corpus = self._open_complete(name)
        except (AmbiscopeError, OSError):
            return None
        fits = corpus.manifest.given or corpus.manifest.kind == self._size.kind(len(corpus))
        return corpus.store if fits and corpus.store.facts.get("fingerprint") == prints else None

    # ------------------------------------------------------------ changing

    def create(
        self,
        name: str,
        paths: Sequence[Path],
        progress: BuildProgress = no_progress,
        options: BuildOptions = UPLOAD,
    ) -> BuildReport:
        """Reads files and folders and builds their index, or resumes an interrupted build of the same files.  A complete corpus
        of the same files, encoder and kind of index is kept.

        Raises InputError (name, files, no passage, name in use), ConflictError (being built), StorageError (disk full).
        """
        limits = options.limits or Limits.for_uploads(self.settings)
        if not paths:
            raise InputError("no file was given; give at least one file or folder")
        others: list[Rejected] = []
        with tempfile.TemporaryDirectory(prefix="ambiscope-", ignore_cleanup_errors=True) as scratch:

            def unpack(path: Path, limits: Limits = limits) -> list[CorpusFile]:
                return unpacked(path, Path(tempfile.mkdtemp(dir=scratch)), limits, others.append)

            passages = tuple(files_of(paths, on_other=others.append, unpack=unpack))
            files = Files(passages, options.columns, options.vectors, tuple(sorted(others, key=lambda row: row.file)))
            prints = building.fingerprint(files, limits)
            store = self._matching(name, prints)  # without the lock: another process may also be reading
            if store is None:
                with self._locked(name, options.wait):
                    store = self._matching(name, prints)
                    if store is None:
                        self._check_replaceable(name, prints, options.replace)
                        return self._build(name, files, prints, limits, progress, options)
        return building.report(name, store, already_built=True)

    def _build(
        self,
        name: str,
        files: Files,
        prints: Fingerprints,
        limits: Limits,
        progress: BuildProgress,
        options: BuildOptions,
    ) -> BuildReport:
        folder = self._path(name, BUILDING)
        encoder = options.encoder or self.encoder()
        encoder = encoder if options.encode else reusing(self._path(name), encoder)
        try:
            report = building.build(
                name,
                folder,
                files,
                prints,
                encoder=encoder,
                size=self._size,
                limits=limits,
                progress=progress,
                earlier=self._path(name),
                encode=options.encode,
            )
            self._publish(name)
            return report
        except InputError:
            if files.vectors is None:
                shutil.rmtree(folder, ignore_errors=True)  # nothing in it can be reused
            raise
        except (OSError, sqlite3.Error, StorageError) as e:
            state, purpose = ("what was done is kept", " to resume") if folder.exists() else ("nothing was left behind", "")
            raise StorageError(
                f"building corpus '{name}' stopped ({disk.describe_error(e, self.folder)}); {state}: free some space under {self.folder}, "
                f"then give the same files again{purpose}"
            ) from e

    def _check_replaceable(self, name: str, prints: Fingerprints, replace: bool) -> None:
        if replace or not (self._path(name) / MANIFEST).exists():
            return
        try:
            facts = self._open_complete(name).store.facts
        except AmbiscopeError:
            return  # an unusable corpus may be rebuilt
        if facts.get("fingerprint") != prints:
            raise InputError(f"corpus '{name}' exists and holds {facts.get('source')}; delete it first, or choose another name")

    def _publish(self, name: str) -> None:
        """Replaces the corpus with the finished build.  Open corpora keep their files."""
        target, old = self._path(name), self._path(name, ".old-")
        if os.path.lexists(target):
            target.replace(old)
        self._path(name, BUILDING).replace(target)
        _remove(old, ignore_errors=True)

    def delete(self, name: str) -> None:
        """Deletes a corpus, or the remains of an interrupted build.  If it is a link to another folder, only the link is
        deleted.

        Raises NotFoundError, ConflictError while it is being built, StorageError: the message says whether the corpus is still there.
        """
        folders = [self._path(name), self._path(name, BUILDING), self._path(name, ".old-")]
        if not any(map(os.path.lexists, folders)):
            raise NotFoundError(f"no corpus is named '{name}'; there are: {', '.join(self.names()) or 'none'}")
        with self._locked(name):
            deleted = self._path(name, ".deleted-")
            for folder in filter(os.path.lexists, folders):
                try:
                    folder.replace(deleted)  # from here on it is no longer a corpus
                except OSError as e:
                    raise StorageError(f"corpus '{name}' cannot be deleted ({e.strerror or e}); check {self.folder}") from e
                try:
                    _remove(deleted)
                except OSError as e:
                    raise StorageError(
                        f"corpus '{name}' is deleted, but some of its files could not be removed ({e.strerror or e}); remove {deleted}"
                    ) from e


def _remove(folder: Path, ignore_errors: bool = False) -> None:
    """Removes a folder, or only the link if it is one.  Raises OSError unless `ignore_errors`."""
    if folder.is_symlink():
        with suppress(OSError) if ignore_errors else nullcontext():
            folder.unlink()
    else:
        shutil.rmtree(folder, ignore_errors=ignore_errors)
