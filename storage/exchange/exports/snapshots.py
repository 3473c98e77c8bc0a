"""The part of the Store that writes files: single exports, and snapshots of several formats at one moment."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from core.disk import describe_error, draft_name, write_json, write_text
from core.errors import InputError, NotFoundError, StorageError
from core.json_io import dumps
from storage.access.permissions import allowed_to
from storage.exchange.consensus import CONSENSUS_RULE
from storage.exchange.dump import LAYOUT
from storage.exchange.exports.files import digest, manifest_path, new_folder, note_export, replacing, size_and_digest
from storage.exchange.exports.formats import FORMATS, check_format, write_rows
from storage.exchange.filters import Filters, Names, check_filters
from storage.records.checks import MAX_NOTE_CHARS, check_page, check_text
from storage.records.results import Manifest, Snapshot
from storage.records.rows import record_of
from storage.schema.creation import head
from storage.schema.engine import Part, now
from storage.schema.tables import Snapshot as SnapshotRow

SNAPSHOT_FORMATS = ("training", "ambignq", "ambignq-full", "preferences", "csv", "parquet")
MANIFEST = "manifest.json"


class Exports(Part):
    """The part of the Store about exports and snapshots.  The file is of one moment: one read transaction writes all of it."""

    @allowed_to("take snapshots")
    def export(self, format: str, out: Path, *, filters: Filters | None = None) -> Manifest:
        """Writes `out` and `out.manifest.json` from one moment's data, and notes the export in the database.

        `filters` narrow the contributions that count (not for jsonl, which holds everything).
        Raises InputError for an unknown format or annotator, NotFoundError for an unknown project, StorageError when the file cannot
        be written; then an earlier file of that name is as it was.  A format that is a folder is never written over one that holds something.
        """
        filters = filters or Filters()
        layout = check_format(format, filters)
        with (new_folder if layout.is_folder else replacing)(out) as writer, self.reading() as session:
            check_filters(session, filters)
            names = Names(session, filters.pseudonyms)
            counts = write_rows(session, format, writer, filters, names)
        size, sha256 = size_and_digest(out)
        manifest = Manifest(
            format=format,
            file=out.name,
            sha256=sha256,
            bytes=size,
            counts=counts,
            filters=filters.to_json(names),
            rule=CONSENSUS_RULE,
            schema=head(),
            layout=LAYOUT,
            created=now(),
        )
        write_text(manifest_path(out), dumps(manifest.to_json()) + "\n")
        note_export(self.database, manifest, out)
        return manifest

    # ------------------------------------------------------------ snapshots

    @allowed_to("take snapshots")
    def take_snapshot(
        self,
        folder: Path,
        *,
        filters: Filters | None = None,
        formats: Sequence[str] = SNAPSHOT_FORMATS,
        note: str = "",
        progress: Callable[[int, int], None] = lambda index, total: None,
    ) -> Snapshot:
        """Writes the next number's folder under `folder`: a file of each format, all of the same moment, and manifest.json.

        `progress` is called before each file with (the index of the file, the number of files); an exception in it stops the snapshot, and nothing is left.

        The files are read-only, and the database keeps the digest of the manifest, which holds theirs.  Raises InputError for unknown
        formats or filters, StorageError when the disk refuses; then there is no such number.
        """
        filters = filters or Filters()
        check_text(note, "the note", limit=MAX_NOTE_CHARS)
        if not formats or len(set(formats)) != len(formats):
            raise InputError("name each format of the snapshot once, and one at least")
        for name in formats:
            if check_format(name, filters).is_folder:
                raise InputError(f"'{name}' is a folder, and a snapshot has files: take it with export --format {name}")
        draft = draft_name(folder / "snapshot")
        try:
            draft.mkdir(parents=True)
            files = []
            with self.reading() as session:
                check_filters(session, filters)
                names = Names(session, filters.pseudonyms)
                for index, name in enumerate(formats):
                    progress(index, len(formats))
                    path = draft / f"{name}{FORMATS[name].suffix}"
                    with replacing(path) as writer:
                        counts = write_rows(session, name, writer, filters, names)
                    size, sha256 = size_and_digest(path)
                    files.append({"format": name, "file": path.name, "sha256": sha256, "bytes": size, "counts": counts})
            return self._publish(folder, draft, files, filters.to_json(names), note)
        except OSError as e:
            raise StorageError(
                f"{folder}: the snapshot cannot be written ({describe_error(e, folder)}); nothing was left behind"
            ) from e
        finally:
            if draft.exists():
                _delete(draft)

    def _publish(
        self, folder: Path, draft: Path, files: list[dict[str, Any]], filters_json: dict[str, Any], note: str
    ) -> Snapshot:
        """Gives the draft its number under the writer lock, so that no two snapshots take the same."""
        target: Path | None = None
        try:
            with self.writing() as session:
                # a folder may outlive a restored database
                numbers = [int(p.name) for p in folder.glob("[0-9][0-9][0-9][0-9]*") if p.name.isdigit()]
                number = max([session.scalar(select(func.max(SnapshotRow.number))) or 0, *numbers]) + 1
                body = {
                    "number": number,
                    "created": now().isoformat(),
                    "note": note,
                    "filters": filters_json,
                    "files": files,
                    "rule": CONSENSUS_RULE,
                    "schema": head(),
                    "layout": LAYOUT,
                }
                write_json(draft / MANIFEST, body)
                for path in draft.iterdir():
                    path.chmod(0o444)
                place = folder / f"{number:04d}"
                draft.rename(place)
                target = place
                row = SnapshotRow(
                    number=number,
                    sha256=digest(place / MANIFEST),
                    bytes=sum(f["bytes"] for f in files),
                    counts={f["format"]: f["counts"] for f in files},
                    filters=filters_json,
                    note=note,
                    created=now(),
                )
                session.add(row)
                session.flush()
                snapshot = record_of(Snapshot, row)
            return snapshot
        except BaseException:
            if target is not None:  # the database did not take it
                _delete(target)
            raise

    @allowed_to("take snapshots")
    def snapshots(self, limit: int = 50, offset: int = 0) -> list[Snapshot]:
        """The newest first.  Raises InputError for a limit outside 1..500."""
        check_page(limit, offset)
        with self.reading() as session:
            rows = session.scalars(select(SnapshotRow).order_by(SnapshotRow.number.desc()).limit(limit).offset(offset))
            return [record_of(Snapshot, row) for row in rows]

    @allowed_to("take snapshots")
    def get_snapshot(self, number: int) -> Snapshot:
        """Raises NotFoundError for an unknown number."""
        with self.reading() as session:
            row = session.scalar(select(SnapshotRow).filter_by(number=number))
            if row is None:
                last = session.scalar(select(func.max(SnapshotRow.number)))
                raise NotFoundError(
                    f"there is no snapshot {number}; " + (f"the last one is {last}" if last else "there is none yet")
                )
            return record_of(Snapshot, row)

    @allowed_to("take snapshots")
    def snapshot_files(self, number: int, folder: Path) -> dict[str, Path]:
        """Format -> file of a snapshot whose digests were checked.

        Raises NotFoundError for an unknown number, StorageError naming the file that is missing or was changed.
        """
        sha256, place = self.get_snapshot(number).sha256, folder / f"{number:04d}"
        try:
            _check_unchanged(place / MANIFEST, sha256)
            files = json.loads((place / MANIFEST).read_text(encoding="utf-8"))["files"]
            for f in files:
                _check_unchanged(place / f["file"], f["sha256"])
        except OSError as e:
            raise StorageError(f"{e.filename or place}: cannot be read ({e.strerror or e}): take another snapshot") from None
        return {f["format"]: place / f["file"] for f in files}


def _check_unchanged(path: Path, sha256: str) -> None:
    if digest(path) != sha256:
        raise StorageError(f"{path} was changed since the snapshot was taken: take another one")


def _delete(folder: Path) -> None:
    with suppress(OSError):
        for path in folder.iterdir():
            path.chmod(0o600)
    shutil.rmtree(folder, ignore_errors=True)
