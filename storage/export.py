"""Training files and complete dumps out of the database: streamed, of one moment, with a manifest.

| format | file | for | |---|---|---| | `ambignq` | AmbigNQ light: a list of {id, question, annotations} | AmbigQA's
scripts, `python -m core train`, `evaluate` and `score` | | `fid` | FiD's layout: a list of {id, question, target,
answers, ctxs, negatives} | readers of the FiD family | | `training` | JSONL of {id, source, question, passages,
answers, negatives} | `python -m core train`, multi-answer layout | | `jsonl` | everything but leases and the export
log, a kind a line | moving, merging and keeping a database; `import` reads it back |

How disagreement between annotators is settled stands in `storage.consensus.RULE` and in each manifest.  The file is
written beside its place and renamed, so there is never half a file under its name; the manifest follows it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from sqlalchemy import select
from sqlalchemy.orm import Session, undefer

from core.errors import StorageError
from core.types import Annotation
from storage import models
from storage.annotations import pairs_of
from storage.consensus import Statement, Vote, annotation_of, consensus
from storage.plain import dumps
from storage.upgrade import draft_name

LAYOUT = 1  # of all four formats
CHUNK = 100  # questions in memory at a time
SOURCE = "ambiscope"


@dataclass(frozen=True, slots=True)
class Filters:
    """Which words count.  Empty: all."""

    annotators: tuple[str, ...] = ()
    system: str = ""  # judgments of this system's answers only (annotations have no system)

    def to_json(self) -> dict[str, Any]:
        return {"annotators": list(self.annotators), "system": self.system}


class HashedWriter:
    """Text into a file, counted and digested on the way."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._hash, self.bytes = file, hashlib.sha256(), 0

    def write(self, text: str) -> None:
        raw = text.encode("utf-8")
        self._file.write(raw)
        self._hash.update(raw)
        self.bytes += len(raw)

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


@contextmanager
def replacing(path: Path) -> Iterator[HashedWriter]:
    """Writes beside `path` and renames at the end; at any exception `path` is as it was.

    Raises StorageError for the disk's.
    """
    draft = draft_name(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as file:
            yield HashedWriter(file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as e:
        raise StorageError(f"{path}: cannot be written ({e.strerror or e}); nothing was left behind") from e
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def manifest_path(path: Path) -> Path:
    return path.with_name(path.name + ".manifest.json")


def read_manifest(path: Path) -> dict[str, Any] | None:
    """The manifest beside an export, or None.  It is trusted for nothing but its words."""
    try:
        found = json.loads(manifest_path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


# ---------------------------------------------------------------- what people said, question by question


@dataclass(frozen=True, slots=True)
class _Said:
    row: models.Question
    votes: list[Vote] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)


def _said(session: Session, filters: Filters) -> Iterator[_Said]:
    """Every question that somebody judged or annotated, in the order in which the questions came."""
    questions = select(models.Question).order_by(models.Question.id).execution_options(yield_per=CHUNK)
    for chunk in session.scalars(questions).partitions():
        said = {row.id: _Said(row) for row in chunk}
        votes = (
            select(
                models.Prediction.question_id,
                models.Annotator.name,
                models.PredictedAnswer.text,
                models.PredictedAnswer.clarified,
                models.Judgment.verdict,
                models.Judgment.updated,
            )
            .join(models.PredictedAnswer, models.PredictedAnswer.id == models.Judgment.predicted_answer_id)
            .join(models.Prediction, models.Prediction.id == models.PredictedAnswer.prediction_id)
            .join(models.Annotator, models.Annotator.id == models.Judgment.annotator_id)
            .where(models.Judgment.state == "submitted", models.Prediction.question_id.in_(said))
            .order_by(models.Prediction.id, models.PredictedAnswer.position, models.Annotator.id)
        )
        if filters.system:
            votes = votes.where(models.Prediction.system == filters.system)
        if filters.annotators:
            votes = votes.where(models.Annotator.name.in_(filters.annotators))
        for question, annotator, answer, clarified, verdict, updated in session.execute(votes):
            said[question].votes.append(Vote(annotator, answer, clarified or "", verdict or "", updated))
        annotations = (
            select(models.Annotation, models.Annotator.name)
            .join(models.Annotator, models.Annotator.id == models.Annotation.annotator_id)
            .where(models.Annotation.state == "submitted", models.Annotation.question_id.in_(said))
            .order_by(models.Annotator.id, models.Annotation.stage)
        )
        if filters.annotators:
            annotations = annotations.where(models.Annotator.name.in_(filters.annotators))
        found = session.execute(annotations).all()
        pairs = pairs_of(session, [row.id for row, _ in found])
        for row, name in found:
            body = Annotation(row.type, pairs.get(row.id, ()))  # type: ignore[arg-type]  # a CHECK constraint holds it
            said[row.question_id].statements.append(Statement(name, row.stage, body))
        yield from (s for s in said.values() if s.votes or s.statements)


def _annotators(session: Session) -> list[str]:
    return list(session.scalars(select(models.Annotator.name).order_by(models.Annotator.id)))


def _ambignq(session: Session, filters: Filters, counts: Counter[str]) -> Iterator[str]:
    order = {name: i for i, name in enumerate(_annotators(session))}
    for said in _said(session, filters):
        annotations: list[dict[str, Any]] = []
        names = {v.annotator for v in said.votes} | {s.annotator for s in said.statements}
        for name in sorted(names, key=order.__getitem__):
            one = annotation_of(name, said.votes, said.statements, said.row.text)
            if one is None:
                counts["annotators_without_a_correct_answer"] += 1
            elif one.type == "single":
                annotations.append({"type": "singleAnswer", "answer": list(one.pairs[0].answers)})
            else:
                pairs = [{"question": p.question, "answer": list(p.answers)} for p in one.pairs]
                counts["pairs_with_the_prompt_question"] += sum(p.question == said.row.text for p in one.pairs)
                annotations.append({"type": "multipleQAs", "qaPairs": pairs})
        if annotations:
            counts["questions"] += 1
            counts["annotations"] += len(annotations)
            yield dumps({"id": said.row.public_id, "question": said.row.text, "annotations": annotations})
        else:
            counts["questions_without_a_correct_answer"] += 1


def _passages(session: Session, question: int, filters: Filters) -> list[dict[str, Any]]:
    """The passages of all predictions of a question, each once, by rank; those of the newer prediction first at equal rank."""
    query = (
        select(models.Prediction)
        .filter_by(question_id=question)
        .order_by(models.Prediction.id.desc())
        .options(undefer(models.Prediction.trace))
    )
    if filters.system:
        query = query.where(models.Prediction.system == filters.system)
    found: dict[tuple[str, str], tuple[int, dict[str, Any]]] = {}
    for row in session.scalars(query.execution_options(yield_per=10)):
        for item in row.trace["passages"]:
            passage = item["passage"]
            key = (passage["id"], passage["text"])  # two corpora may use one id for different passages
            if key not in found or item["rank"] < found[key][0]:
                found[key] = (item["rank"], {**passage, "score": item["score"]})
    return [body for _, body in sorted(found.values(), key=lambda entry: entry[0])]


def _agreed(session: Session, filters: Filters, counts: Counter[str]) -> Iterator[tuple[_Said, list[list[str]], list[str]]]:
    """Question, alias lists and negatives of what the majority holds."""
    for said in _said(session, filters):
        view = consensus(said.votes, said.statements)
        counts["ties"] += view.ties
        if not view.answers:
            counts["questions_without_a_correct_answer"] += 1
            continue
        counts["questions"] += 1
        counts["answers"] += len(view.answers)
        counts["negatives"] += len(view.negatives)
        yield said, [list(aliases) for aliases in view.answers], list(view.negatives)


def _fid(session: Session, filters: Filters, counts: Counter[str]) -> Iterator[str]:
    for said, answers, negatives in _agreed(session, filters, counts):
        contexts = _passages(session, said.row.id, filters)
        counts["questions_without_passages"] += not contexts
        yield dumps(
            {
                "id": said.row.public_id,
                "question": said.row.text,
                "target": answers[0][0],
                "answers": answers,
                "ctxs": contexts,
                "negatives": negatives,
            }
        )


def _training(session: Session, filters: Filters, counts: Counter[str]) -> Iterator[str]:
    for said, answers, negatives in _agreed(session, filters, counts):
        passages = [{k: p[k] for k in ("id", "title", "text")} for p in _passages(session, said.row.id, filters)]
        counts["questions_without_passages"] += not passages
        yield dumps(
            {
                "id": said.row.public_id,
                "source": SOURCE,
                "question": said.row.text,
                "passages": passages,
                "answers": answers,
                "negatives": negatives,
            }
        )


# ---------------------------------------------------------------- everything


def _everything(session: Session, _filters: Filters, counts: Counter[str]) -> Iterator[str]:
    yield dumps({"kind": "ambiscope", "layout": LAYOUT})
    for line in _lines(session):
        counts[line["kind"]] += 1
        yield dumps(line)


def _lines(session: Session) -> Iterator[dict[str, Any]]:
    """What refers to something comes after it."""
    m = models

    def stream(query: Any, size: int = 500) -> Any:
        return session.execute(query.execution_options(yield_per=size))

    for (a,) in stream(select(m.Annotator).order_by(m.Annotator.id)):
        yield {"kind": "annotator", "name": a.name, "created": a.created.isoformat()}
    for (q,) in stream(select(m.Question).order_by(m.Question.id)):
        created = q.created.isoformat()
        yield {"kind": "question", "id": q.public_id, "source_id": q.source_id, "text": q.text, "created": created}

    who = (m.Annotator, m.Annotator.id == m.Annotation.annotator_id)
    query = select(m.Annotation, m.Annotator.name, m.Question.public_id).join(*who)
    query = query.join(m.Question, m.Question.id == m.Annotation.question_id).order_by(m.Annotation.id)
    for rows in stream(query).partitions():
        pairs = pairs_of(session, [row.id for row, _, _ in rows])
        for row, name, question in rows:
            yield {
                "kind": "annotation",
                "question": question,
                "annotator": name,
                "stage": row.stage,
                "state": row.state,
                "annotation": _annotation(Annotation(row.type, pairs.get(row.id, ()))),
                "version": row.version,
                "created": row.created.isoformat(),
                "updated": row.updated.isoformat(),
            }
    history = (
        select(m.AnnotationRevision, m.Annotator.name, m.Question.public_id)
        .join(m.Annotator, m.Annotator.id == m.AnnotationRevision.annotator_id)
        .join(m.Question, m.Question.id == m.AnnotationRevision.question_id)
        .order_by(m.AnnotationRevision.id)
    )
    for row, name, question in stream(history):
        yield {
            "kind": "annotation_revision",
            "question": question,
            "annotator": name,
            "stage": row.stage,
            "state": row.state,
            "annotation": row.body,
            "version": row.version,
            "saved": row.saved.isoformat(),
            "replaced": row.replaced.isoformat(),
        }
    for (p,) in stream(select(m.Prediction).order_by(m.Prediction.id).options(undefer(m.Prediction.trace)), 20):
        yield {"kind": "prediction", "id": p.public_id, "key": p.key, "created": p.created.isoformat(), "prediction": p.trace}
    for table, kind in ((m.Judgment, "judgment"), (m.JudgmentRevision, "judgment_revision")):
        words = (
            select(table, m.PredictedAnswer.position, m.Annotator.name, m.Prediction.public_id)
            .join(m.PredictedAnswer, m.PredictedAnswer.id == table.predicted_answer_id)
            .join(m.Prediction, m.Prediction.id == m.PredictedAnswer.prediction_id)
            .join(m.Annotator, m.Annotator.id == table.annotator_id)
            .order_by(table.id)
        )
        times = ("created", "updated") if kind == "judgment" else ("saved", "replaced")
        for row, position, name, prediction in stream(words):
            yield {
                "kind": kind,
                "prediction": prediction,
                "position": position,
                "annotator": name,
                "verdict": row.verdict,
                "note": row.note,
                "state": row.state,
                "version": row.version,
                **{t: getattr(row, t).isoformat() for t in times},
                **({} if kind == "judgment" else {"cleared": row.cleared}),
            }
    for (e,) in stream(select(m.Evaluation).order_by(m.Evaluation.id).options(undefer(m.Evaluation.report)), 20):
        yield {
            "kind": "evaluation",
            "id": e.public_id,
            "system": e.system,
            "corpus": e.corpus,
            "questions": e.questions,
            "metrics": e.metrics,
            "report": e.report,
            "created": e.created.isoformat(),
        }


def _annotation(annotation: Annotation) -> dict[str, Any]:
    return {
        "type": annotation.type,
        "pairs": [
            {"question": p.question, "answers": list(p.answers), "passage_ids": list(p.passage_ids)} for p in annotation.pairs
        ],
    }


# ---------------------------------------------------------------- the files

_ROWS = {"ambignq": _ambignq, "fid": _fid, "training": _training, "jsonl": _everything}
_COUNTS: Mapping[str, Sequence[str]] = {  # named even when they are 0
    "ambignq": (
        "questions",
        "annotations",
        "questions_without_a_correct_answer",
        "annotators_without_a_correct_answer",
        "pairs_with_the_prompt_question",
    ),
    "fid": ("questions", "answers", "negatives", "ties", "questions_without_a_correct_answer", "questions_without_passages"),
    "training": (
        "questions",
        "answers",
        "negatives",
        "ties",
        "questions_without_a_correct_answer",
        "questions_without_passages",
    ),
    "jsonl": (
        "annotator",
        "question",
        "annotation",
        "annotation_revision",
        "prediction",
        "judgment",
        "judgment_revision",
        "evaluation",
    ),
}


def write_rows(session: Session, format: str, out: HashedWriter, filters: Filters) -> dict[str, int]:
    """Streams one format; returns the counts.  An empty database gives an empty list or an empty set of lines."""
    counts: Counter[str] = Counter(dict.fromkeys(_COUNTS[format], 0))
    as_list = format in ("ambignq", "fid")
    out.write("[" if as_list else "")
    for number, row in enumerate(_ROWS[format](session, filters, counts)):
        out.write((",\n" if number and as_list else "\n" if as_list else "") + row + ("" if as_list else "\n"))
    out.write("\n]\n" if as_list else "")
    return dict(counts)
