"""Builds a corpus in a folder: files -> passages -> BM25 -> vectors -> index -> manifest, each stage resumable.

Passages are read again from the start unless they were finished; BM25 is written atomically; vectors resume at the last complete
shard, IVF-PQ at the last complete part; the manifest is written last, and only a folder with a manifest is a corpus.  If the disk refuses,
files that cannot be resumed are removed to free space.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from core import disk
from core.errors import FormatError, IndexMismatchError, InputError, StorageError
from core.models.encoders.sentence_encoder import Encoder, is_english, passage_text
from core.retrieval import index, short_names, words
from core.retrieval.corpus import FACTS, PassageStore, PassageWriter, read_facts
from core.retrieval.known_passages import KnownPassages, reading_digest
from core.retrieval.readers import PASSAGE_BYTES, read_passages, reader_of, sandbox
from core.retrieval.readers.lines import DEFAULT_COLUMNS, MB, UNLIMITED, Columns, CorpusFile, Limits, Rejected, Source, Tally
from core.retrieval.vectors import VectorFiles, copy_index, import_vectors
from core.text import listed, mostly_other_letters, storable
from core.types import Passage

_OF_VECTORS = "vectors: "  # begins the names of their files in a fingerprint
MAX_OTHER_LETTERS = 0.05  # of the passages, in other letters than Latin ones, without a warning
MAX_GROWTH = 4  # of an upload: bytes of passages, with their titles, to bytes of files
SHOWN_REJECTED = 200  # rejected rows listed in a report; the total counts all
Fingerprints = list[list[str]]  # name and sha256 of each file
BuildProgress = Callable[
    [int, int, str], None
]  # done, total (0: not known), stage: reading, words, encoding or vectors, indexing


def no_progress(done: int, total: int, stage: str) -> None:
    """A progress callback that does nothing."""


@dataclass(frozen=True, slots=True)
class Size:
    """The choices that depend on the number of passages, by the settings."""

    index_kind: str  # auto: flat for a small corpus, ivfpq for a large one
    large: int  # passages from which on a corpus is large

    def is_large(self, passages: int) -> bool:
        return passages >= self.large

    def kind(self, passages: int) -> str:
        return ("ivfpq" if self.is_large(passages) else "flat") if self.index_kind == "auto" else self.index_kind

    def dtype(self, passages: int) -> index.VectorDtype:
        """Half precision for a large corpus.  A flat index searches the file itself, which has to be float32."""
        return "float16" if self.is_large(passages) and self.kind(passages) != "flat" else "float32"


@dataclass(frozen=True, slots=True)
class BuildReport:
    """The result of a build.  The files' passages add up to `passages`, the number of rows and vectors."""

    name: str
    passages: int
    digest: str
    files: tuple[Tally, ...]
    rejected: tuple[Rejected, ...]  # the first SHOWN_REJECTED
    rejected_total: int
    resumed_at: int  # vectors left by an interrupted build
    seconds: float
    already_built: bool = False
    others: tuple[Rejected, ...] = ()  # files of a folder or zip that were not read, the first SHOWN_REJECTED
    others_total: int = 0
    warnings: tuple[str, ...] = ()  # what was read in another way than expected, what a search will not find


@dataclass(frozen=True, slots=True)
class Files:
    """The files that a corpus is built from."""

    passages: tuple[CorpusFile, ...]
    columns: Columns = DEFAULT_COLUMNS
    vectors: VectorFiles | None = None  # then a row is a passage, however long it is
    others: tuple[Rejected, ...] = ()  # beside them in a folder or zip, and not read


def fingerprint(files: Files, limits: Limits) -> Fingerprints:
    """The name and sha256 of each file.  If one of several can't be read, its sha256 is empty and `_read` reports why.

    Raises InputError for a file of an unknown kind, or if the only file is missing or too large.
    """
    prints = []
    for path, name in files.passages:
        reader_of(path)
        digest = ""
        try:
            Source(path, limits, lambda _: None).check_size()
            digest = _sha256(path)
        except InputError:
            if len(files.passages) == 1:
                raise
        prints.append([storable(name), digest])
    if column_names := files.columns.changes():
        prints.append([f"columns {column_names}", ""])
    if (vectors := files.vectors) is not None:
        prints.append(["a passage a row", ""])
        paths = (*vectors.files, vectors.ids) if vectors.ids else vectors.files
        prints += [[f"{_OF_VECTORS}{storable(path.name)}", _sha256(path)] for path in paths]
    return prints


def _of_passages(prints: object) -> list[list[str]]:
    """The fingerprint without the vector files', because passages stay when other vectors come with them."""
    return [p for p in prints if not p[0].startswith(_OF_VECTORS)] if isinstance(prints, list) else []


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as f:
            return hashlib.file_digest(f, "sha256").hexdigest()
    except OSError as e:
        raise InputError(f"{path} cannot be read ({e.strerror}); check its permissions") from e


class _TooMuchError(InputError):
    """An upload needs too much time or space, over all its files."""


def _read(folder: Path, source: Files, prints: Fingerprints, limits: Limits, progress: BuildProgress, earlier: Path) -> None:
    """Writes the passage store.  A damaged file among several is left out entirely and listed like a bad line.

    The passages of files that are the same in the corpus `earlier` are copied.

    Raises InputError if no passage remains, FormatError if the only file is damaged.
    """
    rejected: list[Rejected] = []
    files: list[Tally] = []
    other_letters = 0  # passages in other letters than Latin ones
    start = time.monotonic()
    max_bytes = UNLIMITED
    if limits.is_upload:
        max_bytes = max(
            limits.max_unpacked_bytes, MAX_GROWTH * sum(path.stat().st_size for path, _ in source.passages if path.exists())
        )
    remaining_bytes = max_bytes

    def reject(row: Rejected) -> None:
        if len(rejected) < SHOWN_REJECTED:
            rejected.append(row)

    def add(passages: Iterable[Passage]) -> None:
        nonlocal other_letters, remaining_bytes
        for passage in passages:
            remaining_bytes -= len(passage.text) + len(passage.title) + PASSAGE_BYTES
            if remaining_bytes < 0:
                raise _TooMuchError(
                    f"the files become more than {max_bytes // MB} MB of passages: split them, or raise AMBISCOPE_MAX_UPLOAD_MB"
                )
            writer.add(passage)
            other_letters += mostly_other_letters(passage.text)
            if writer.count % 500 == 0:
                progress(writer.count, 0, "reading")

    reading_key = reading_digest(limits, prints[len(source.passages) :])
    with closing(KnownPassages(earlier, reading_key)) as known_passages, closing(sandbox), PassageWriter(folder) as writer:
        for (path, name), (_, digest) in zip(source.passages, prints, strict=False):
            remaining = limits.max_seconds - (time.monotonic() - start)
            if remaining <= 0:
                raise _TooMuchError(
                    f"reading took more than {limits.max_seconds // 60} minutes, as far as {name}: split the upload, leave out what is slow, "
                    "or raise AMBISCOPE_MAX_UPLOAD_MINUTES"
                )
            copied = known_passages.lookup(storable(name), digest)
            if copied and not any(writer.has_id(p.id) for p in copied[1]):
                add(copied[1])
                files.append(copied[0])
                continue
            tally, mark, before = Tally(storable(name)), writer.mark(), (len(rejected), other_letters)
            try:
                file = Source(
                    path,
                    replace(limits, max_seconds=math.ceil(remaining)) if limits.is_upload else limits,
                    reject,
                    tally,
                    columns=source.columns,
                    name=name,
                    uncut=source.vectors is not None,
                )
                reading = read_passages(file, writer.has_id)
                with closing(reading):  # the file is closed also where the disk refuses what is written
                    add(reading)
                if digest and _sha256(path) != digest:
                    raise InputError(f"{name} changed while it was read; give it again when it is complete")
            except InputError as e:
                if len(source.passages) == 1 or isinstance(e, _TooMuchError):
                    raise
                writer.rollback(mark)
                del rejected[before[0] :]
                tally, other_letters = Tally(storable(name), read=1, rejected=1), before[1]
                reason = (
                    f"{e.problem} (line {e.line})" if isinstance(e, FormatError) and e.line else getattr(e, "problem", str(e))
                )
                reject(Rejected(storable(name), 0, f"the file is skipped: {storable(reason)}", "file"))
            files.append(tally)
        progress(writer.count, writer.count, "reading")
        if not writer.count:
            reason = f"; the first rejected: {rejected[0]}" if rejected else "; they are empty"
            raise InputError(f"{', '.join(f.name for f in source.passages)}: no passage could be read{reason}")
        if sum(f.passages for f in files) != writer.count:
            raise IndexMismatchError("passages were lost between the readers and the store; build the corpus again")
        writer.finish(
            fingerprint=prints,
            reading=reading_key,
            source=storable(", ".join(f.name for f in source.passages)),
            other_letters=other_letters,
            files=[asdict(f) for f in files],
            rejected=[asdict(r) for r in rejected],
            others=[asdict(r) for r in source.others[:SHOWN_REJECTED]],
            others_total=len(source.others),
        )


def build(
    name: str,
    folder: Path,
    files: Files,
    prints: Fingerprints,
    *,
    encoder: Encoder,
    size: Size,
    limits: Limits,
    progress: BuildProgress,
    earlier: Path,
    encode: index.Encode | None = None,
) -> BuildReport:
    """Builds the corpus in `folder`, or resumes an interrupted build of the same files.  `earlier`: the folder of the corpus
    that it replaces, if any.

    Raises InputError (no passage), and OSError, sqlite3.Error or StorageError if the disk refuses: then `folder` holds what can be
    resumed, or is deleted.
    """
    start = time.perf_counter()
    facts = read_facts(folder / FACTS) if (folder / FACTS).exists() else {}
    if _of_passages(facts.get("fingerprint")) != _of_passages(prints):
        shutil.rmtree(folder, ignore_errors=True)
        try:
            _read(folder, files, prints, limits, progress, earlier)
        except (OSError, sqlite3.Error, StorageError):
            shutil.rmtree(folder, ignore_errors=True)
            raise
    elif facts["fingerprint"] != prints:
        disk.write_text(folder / FACTS, json.dumps({**facts, "fingerprint": prints}, ensure_ascii=False))

    def stage(label: str) -> Callable[[int, int], None]:
        return lambda done, total: progress(done, total, label)

    with closing(PassageStore(folder)) as store:
        count = len(store)

        def index_words() -> None:
            """Builds the word index.  From then on the corpus can be searched by words."""
            if not (folder / short_names.FILE).exists():
                short_names.build(store, count, folder / short_names.FILE)
            if not (folder / words.FOLDER).exists():
                words.build(map(passage_text, store), count, folder / words.FOLDER, stage("words"))

        if files.vectors is None:  # vectors that come with the passages are checked first: a refused build leaves no corpus
            index_words()
        kind, dtype = size.kind(count), size.dtype(count)
        other_dtype = "float32" if dtype == "float16" else "float16"  # of other settings
        (folder / index.vectors_file(other_dtype)).unlink(missing_ok=True)
        resumed_at, copied_kind = 0, ""
        if files.vectors is not None:
            source_digest = hashlib.sha256(json.dumps(prints).encode()).hexdigest()
            import_vectors(folder, files.vectors, source_digest, store, encoder, dtype, stage("vectors"))
            copied_kind = copy_index(files.vectors, folder, count, encoder.dimension)
            index_words()
        else:
            resumed_at = index.write_vectors(
                folder,
                lambda start, stop: [passage_text(p) for p in store.passages(start, stop - start)],
                count,
                encoder,
                store.digest,
                stage("encoding"),
                dtype,
                encode,
            )
        progress(0, count, "indexing")
        if not copied_kind:
            vectors = index.open_vectors(folder, count, encoder.dimension, dtype)
            index.build_index(kind, vectors, folder / index.INDEX, stage("indexing"))
        import faiss

        index.IndexManifest(
            encoder=encoder.name,
            dimension=encoder.dimension,
            count=count,
            kind=copied_kind or kind,
            digest=store.digest,
            faiss_version=faiss.__version__,
            created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            stored=dtype,
            given=int(bool(copied_kind)),
        ).save(folder)
        progress(count, count, "indexing")
        return report(name, store, resumed_at=resumed_at, seconds=time.perf_counter() - start)


def report(
    name: str, store: PassageStore, *, resumed_at: int = 0, seconds: float = 0.0, already_built: bool = False
) -> BuildReport:
    """A store's report, from facts stored next to the passages, so that a resumed build reports everything."""
    files = tuple(Tally.of(f) for f in store.facts["files"])
    return BuildReport(
        name=name,
        passages=len(store),
        digest=store.digest,
        files=files,
        rejected=tuple(Rejected(**r) for r in store.facts["rejected"]),
        rejected_total=sum(f.rejected for f in files),
        others=tuple(Rejected(**r) for r in store.facts.get("others", ())),
        others_total=store.facts.get("others_total", 0),
        resumed_at=resumed_at,
        seconds=seconds,
        already_built=already_built,
        warnings=_warnings(
            files, len(store), store.facts.get("other_letters", 0), index.IndexManifest.load(store.folder).encoder
        ),
    )


def _warnings(files: Sequence[Tally], passages: int, other_letters: int, encoder: str) -> tuple[str, ...]:
    """Documents in an encoding other than UTF-8, pages in a doubtful order, and many passages that an English encoder can't
    read.

    `other_letters`: passages in other letters than Latin ones.
    """
    names: dict[str, list[str]] = {}
    for file in files:
        if file.encoding:
            names.setdefault(file.encoding, []).append(file.file)
    out = [
        f"not UTF-8, read as {encoding}: {', '.join(file_names[:5])}{f' and {len(file_names) - 5} more' if len(file_names) > 5 else ''}; "
        "check accents and signs, or save as UTF-8 and build again"
        for encoding, file_names in names.items()
    ]
    out += [
        f"{file.file}: on {listed(len(file.doubtful), 'page')} ({', '.join(map(str, file.doubtful))}) the columns may be mixed; read these in the "
        "passages, and give their text as a .txt file where they are"
        for file in files
        if file.doubtful
    ]
    if other_letters > MAX_OTHER_LETTERS * passages and is_english(encoder):
        out.append(
            f"{other_letters:,} of {listed(passages, 'passage')} are not in Latin letters, and the encoder '{encoder}' is English: search by "
            "words finds them (AMBISCOPE_RETRIEVER=bm25); for search by vectors, set AMBISCOPE_ENCODER to a multilingual one and build again"
        )
    return tuple(out)
