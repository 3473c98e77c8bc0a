"""The inverse of export, all or nothing: AmbigNQ light (annotations) and Ambiscope's own jsonl (everything).

A file is read twice: first every row is checked, without any lock on the database, and the wrong ones are collected by
line; then all of it is stored in one transaction.  Importing the same file again stores nothing.  A row that contradicts
what is stored is refused, never merged.  `fid` and `training` files are derived and not read back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, undefer

from core.errors import AmbiscopeError, FormatError, InputError
from core.trace import prediction_from_json, to_json
from core.types import Annotation
from storage import models
from storage.annotations import annotation_from_json, pairs_of, write_pairs
from storage.db import now
from storage.export import LAYOUT
from storage.judgments import annotator_row, answer_id
from storage.layouts import Row, check_ambignq, check_line, read_time
from storage.plain import array_rows, jsonl_rows, read_text
from storage.predictions import insert_prediction, plain_trace, question_row
from storage.records import ImportReport, RejectedRowsError

KEPT_REASONS = 100
Rows = Iterator[tuple[int, Any, str | None]]


def detect_format(path: Path) -> str:
    """`ambignq` for a JSON list, `jsonl` for lines of objects.

    Raises InputError for a missing file, FormatError for others.
    """
    try:
        with path.open("rb") as file:
            start = file.read(4096)
    except OSError as e:
        raise InputError(f"cannot read {path}: {e.strerror or e}") from None
    first = start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if first == b"[":
        return "ambignq"
    if first == b"{":
        return "jsonl"
    raise FormatError("neither a JSON list (AmbigNQ light) nor JSON lines (Ambiscope's jsonl)", file=path, line=1)


def _rows(path: Path, format: str) -> Rows:
    return array_rows(read_text(path), path) if format == "ambignq" else jsonl_rows(path)


class _Rejects:
    def __init__(self, path: Path) -> None:
        self.path, self.total = path, 0
        self.rows: list[tuple[int, str]] = []

    def add(self, line: int, reason: str) -> None:
        self.total += 1
        if self.total <= KEPT_REASONS:
            self.rows.append((line, " ".join(reason.split())[:300]))

    def settle(self) -> None:
        if self.total:
            raise RejectedRowsError(self.path, tuple(self.rows), self.total)


def check_file(path: Path, format: str) -> None:
    """Reads all of it.  Raises RejectedRowsError with every wrong row, FormatError where the syntax ends."""
    rejects = _Rejects(path)
    seen_header = False
    check = check_ambignq if format == "ambignq" else check_line
    for line, value, problem in _rows(path, format):
        try:
            if problem:
                raise FormatError(problem)
            if not isinstance(value, dict):
                raise FormatError("expected an object")
            if format == "jsonl" and not seen_header:
                seen_header = True
                _check_header(value, path, line)
                continue
            check(value)
        except RejectedHeaderError:
            raise
        except AmbiscopeError as e:
            seen_header = True  # a broken first line is one wrong row, not a foreign file
            rejects.add(line, str(e))
    rejects.settle()


class RejectedHeaderError(FormatError):
    """The file is not Ambiscope's jsonl, or of a newer layout."""


def _check_header(row: Row, path: Path, line: int) -> None:
    if row.get("kind") != "ambiscope":
        hint = " (a training file is derived; import the jsonl it came from)" if "answers" in row else ""
        raise RejectedHeaderError(f"this is not a jsonl export of Ambiscope{hint}", file=path, line=line)
    if row.get("layout") != LAYOUT:
        raise RejectedHeaderError(
            f"layout {row.get('layout')!r}; this Ambiscope reads {LAYOUT}", file=path, line=line, field="layout"
        )


# ---------------------------------------------------------------- one row, into the database; False: already there


class _Importer:
    def __init__(self, session: Session, annotator: str) -> None:
        self.session, self.prefix = session, annotator
        self.questions: dict[str, int] = {}  # id in the file -> row
        self.stored: Counter[str] = Counter()
        self.known: Counter[str] = Counter()

    def count(self, kind: str, new: bool) -> None:
        (self.stored if new else self.known)[kind] += 1

    def ambignq(self, row: Row) -> None:
        question, annotations = check_ambignq(row)
        before = self.session.scalar(select(models.Question.id).filter_by(text=question.text, source_id=question.id))
        if before is None:  # an export names a question by its public id, which may be that of a question without an id
            before = self.session.scalar(select(models.Question.id).filter_by(text=question.text, public_id=question.id))
        self.count("question", before is None)
        target = before if before is not None else question_row(self.session, question).id
        for number, annotation in enumerate(annotations, 1):
            moment = now().isoformat()
            self.count(
                "annotation",
                self._annotation(
                    target,
                    f"{self.prefix} {number}",
                    annotation,
                    {"stage": "generation", "state": "submitted", "version": 1, "created": moment, "updated": moment},
                ),
            )

    def line(self, row: Row) -> None:
        kind = str(row["kind"])
        handlers: dict[str, Callable[[Row], bool]] = {
            "annotator": self._annotator,
            "question": self._question,
            "annotation": lambda r: self._annotation(
                self._known_question(r), r["annotator"], annotation_from_json(r["annotation"]), r
            ),
            "annotation_revision": self._annotation_revision,
            "prediction": self._prediction,
            "judgment": self._judgment,
            "judgment_revision": self._judgment_revision,
            "evaluation": self._evaluation,
        }
        self.count(kind, handlers[kind](row))

    def _annotator(self, row: Row) -> bool:
        if self.session.scalar(select(models.Annotator.id).filter_by(name=row["name"])) is not None:
            return False
        self.session.add(models.Annotator(name=row["name"], created=read_time(row, "created")))
        self.session.flush()
        return True

    def _question(self, row: Row) -> bool:
        found = self.session.scalar(select(models.Question).filter_by(text=row["text"], source_id=row["source_id"]))
        if found is None:
            if self.session.scalar(select(models.Question.id).filter_by(public_id=row["id"])) is not None:
                raise InputError(f"question id '{row['id'][:80]}' is stored with another text")
            found = models.Question(
                public_id=row["id"],
                source_id=row["source_id"],
                text=row["text"],
                folded=row["text"].casefold(),
                created=read_time(row, "created"),
            )
            self.session.add(found)
            self.session.flush()
            self.questions[row["id"]] = found.id
            return True
        self.questions[row["id"]] = found.id
        return False

    def _known_question(self, row: Row) -> int:
        found = self.questions.get(row["question"])
        if found is None:
            raise InputError(f"question '{row['question'][:80]}' is on no earlier line")
        return found

    def _annotation(self, question: int, annotator: str, annotation: Annotation, row: Row) -> bool:
        who = annotator_row(self.session, annotator).id
        same = {"question_id": question, "annotator_id": who, "stage": row["stage"]}
        found = self.session.scalar(select(models.Annotation).filter_by(**same))
        if found is not None:
            there = (found.type, pairs_of(self.session, [found.id]).get(found.id, ()), found.state)
            if there != (annotation.type, annotation.pairs, row["state"]):
                raise InputError(
                    f"annotator '{annotator}' has another annotation of this question; import under another --annotator"
                )
            return False
        found = models.Annotation(
            **same,
            type=annotation.type,
            state=row["state"],
            version=row["version"],
            created=read_time(row, "created"),
            updated=read_time(row, "updated"),
        )
        self.session.add(found)
        self.session.flush()
        write_pairs(self.session, found, annotation.pairs)
        return True

    def _annotation_revision(self, row: Row) -> bool:
        who = annotator_row(self.session, row["annotator"]).id
        body = to_json(annotation_from_json(row["annotation"]))
        same = {
            "question_id": self._known_question(row),
            "annotator_id": who,
            "stage": row["stage"],
            "version": row["version"],
        }
        found = self.session.scalar(select(models.AnnotationRevision).filter_by(**same))
        if found is not None:
            if (found.body, found.state) != (body, row["state"]):
                raise InputError(f"version {row['version']} of this annotation is stored with another content")
            return False
        self.session.add(
            models.AnnotationRevision(
                **same, state=row["state"], body=body, saved=read_time(row, "saved"), replaced=read_time(row, "replaced")
            )
        )
        return True

    def _prediction(self, row: Row) -> bool:
        prediction = prediction_from_json(row["prediction"])
        trace = plain_trace(prediction)
        found = self.session.scalar(
            select(models.Prediction).filter_by(public_id=row["id"]).options(undefer(models.Prediction.trace))
        )
        if found is not None:
            if found.trace != trace:
                raise InputError(f"prediction '{row['id'][:80]}' is stored with another content")
            return False
        key = row.get("key")
        if key is not None and self.session.scalar(select(models.Prediction.id).filter_by(key=key)) is not None:
            raise InputError(f"the key '{key[:80]}' belongs to another stored prediction")
        insert_prediction(self.session, prediction, trace, public_id=row["id"], key=key, created=read_time(row, "created"))
        self.session.expire_all()  # traces are large: keep none of them
        return True

    def _judgment(self, row: Row) -> bool:
        return self._words(models.Judgment, row, created=read_time(row, "created"), updated=read_time(row, "updated"))

    def _judgment_revision(self, row: Row) -> bool:
        times = {"saved": read_time(row, "saved"), "replaced": read_time(row, "replaced")}
        return self._words(models.JudgmentRevision, row, cleared=row["cleared"], **times)

    def _words(self, table: Any, row: Row, **more: Any) -> bool:
        same = {
            "predicted_answer_id": answer_id(self.session, row["prediction"], row["position"]),
            "annotator_id": annotator_row(self.session, row["annotator"]).id,
        }
        if table is models.JudgmentRevision:
            same["version"] = row["version"]
        found = self.session.scalar(select(table).filter_by(**same))
        content = {name: row[name] for name in ("verdict", "note", "state", "version")}
        if found is not None:
            if any(getattr(found, name) != value for name, value in content.items()):
                raise InputError(f"'{row['annotator']}' has another judgment of this answer stored")
            return False
        self.session.add(table(**{**same, **content}, **more))
        self.session.flush()
        return True

    def _evaluation(self, row: Row) -> bool:
        content = {name: row[name] for name in ("system", "corpus", "questions", "metrics", "report")}
        found = self.session.scalar(select(models.Evaluation).filter_by(public_id=row["id"]))
        if found is not None:
            if any(getattr(found, name) != value for name, value in content.items()):
                raise InputError(f"evaluation '{row['id'][:80]}' is stored with another content")
            return False
        self.session.add(models.Evaluation(public_id=row["id"], created=read_time(row, "created"), **content))
        self.session.flush()
        return True


def fingerprint(path: Path) -> tuple[int, int]:
    """Size and time of change, to see that the file that is stored is the one that was checked."""
    try:
        stat = path.stat()
    except OSError as e:
        raise InputError(f"cannot read {path}: {e.strerror or e}") from None
    return stat.st_size, stat.st_mtime_ns


def store_file(session: Session, path: Path, format: str, annotator: str) -> ImportReport:
    """Stores a checked file inside the caller's transaction.  Raises RejectedRowsError with every row that contradicts
    the database; the caller rolls back.
    """
    importer, rejects, first = _Importer(session, annotator), _Rejects(path), True
    for line, row, _ in _rows(path, format):
        if format == "jsonl" and first:
            first = False
            continue
        try:
            importer.ambignq(row) if format == "ambignq" else importer.line(row)
        except AmbiscopeError as e:
            rejects.add(line, str(e))
    rejects.settle()
    return ImportReport(str(path), format, dict(importer.stored), dict(importer.known))
