"""Checked rows of an import into the database: each is new, or there and equal, or refused."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, undefer

from core.errors import InputError
from core.trace import prediction_from_json, to_json
from core.types import Annotation, Question
from storage.exchange.dump import KINDS
from storage.exchange.imports.layouts import Row, check_ambignq, read_time
from storage.exchange.imports.predictions import content_key, prediction_of, question_of
from storage.exchange.imports.workbench import WorkbenchRows
from storage.people.actors import annotator_row
from storage.results.annotations import annotation_from_json, pairs_of, write_pairs
from storage.results.evaluation_rows import add_evaluation, digest_of, report_of
from storage.results.labels import answer_id
from storage.results.predictions import insert_prediction, plain_trace, question_row
from storage.schema import tables
from storage.schema.engine import now


class Importer:
    """Rows of one file into one transaction.  `stored` and `known` count them by kind."""

    def __init__(self, session: Session, annotator: str) -> None:
        self.session, self.prefix = session, annotator
        self.questions: dict[str, int] = {}  # id in the file -> row
        self.workbench = WorkbenchRows(session, self.questions)
        self.stored: Counter[str] = Counter()
        self.known: Counter[str] = Counter()

    def count(self, kind: str, new: bool) -> None:
        (self.stored if new else self.known)[kind] += 1

    def ambignq(self, row: Row) -> None:
        question, annotations = check_ambignq(row)
        before = self._find_question(question)
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

    def question(self, row: Row) -> None:
        question = question_of(row)
        known = self._find_question(question)
        if known is None:
            question_row(self.session, question)
        self.count("question", known is None)

    def _find_question(self, question: Question) -> int | None:
        found = self.session.scalar(select(tables.Question.id).filter_by(text=question.text, source_id=question.id))
        if found is None:  # an export names a question by its public id, which may be that of a question without an id
            found = self.session.scalar(select(tables.Question.id).filter_by(text=question.text, public_id=question.id))
        return found

    def prediction(self, row: Row) -> None:
        """A prediction of another program: known by its content."""
        made = prediction_of(row)
        key = content_key(made)
        new = self.session.scalar(select(tables.Prediction.id).filter_by(key=key)) is None
        if new:
            insert_prediction(self.session, made, plain_trace(made), public_id=uuid.uuid4().hex, key=key, created=now())
            self.session.expire_all()  # traces are large: keep none of them
        self.count("prediction", new)

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
        if kind in KINDS:
            self.count(kind, self.workbench.store(kind, row))
        else:
            self.count(kind, handlers[kind](row))

    def _annotator(self, row: Row) -> bool:
        if self.session.scalar(select(tables.Annotator.id).filter_by(name=row["name"])) is not None:
            return False
        self.session.add(tables.Annotator(name=row["name"], created=read_time(row, "created")))
        self.session.flush()
        return True

    def _question(self, row: Row) -> bool:
        found = self.session.scalar(select(tables.Question).filter_by(text=row["text"], source_id=row["source_id"]))
        if found is None:
            if self.session.scalar(select(tables.Question.id).filter_by(public_id=row["id"])) is not None:
                raise InputError(f"question id '{row['id'][:80]}' is stored with another text")
            found = tables.Question(
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
        found = self.session.scalar(select(tables.Annotation).filter_by(**same))
        if found is not None:
            there = (found.type, pairs_of(self.session, [found.id]).get(found.id, ()), found.state)
            if there != (annotation.type, annotation.pairs, row["state"]):
                raise InputError(
                    f"annotator '{annotator}' has another annotation of this question; import under another --annotator"
                )
            return False
        found = tables.Annotation(
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
        found = self.session.scalar(select(tables.AnnotationRevision).filter_by(**same))
        if found is not None:
            if (found.body, found.state) != (body, row["state"]):
                raise InputError(f"version {row['version']} of this annotation is stored with another content")
            return False
        self.session.add(
            tables.AnnotationRevision(
                **same, state=row["state"], body=body, saved=read_time(row, "saved"), replaced=read_time(row, "replaced")
            )
        )
        return True

    def _prediction(self, row: Row) -> bool:
        prediction = prediction_from_json(row["prediction"])
        trace = plain_trace(prediction)
        found = self.session.scalar(
            select(tables.Prediction).filter_by(public_id=row["id"]).options(undefer(tables.Prediction.trace))
        )
        if found is not None:
            if prediction_from_json(found.trace) != prediction:  # an older trace lacks fields that came later
                raise InputError(f"prediction '{row['id'][:80]}' is stored with another content")
            return False
        key = row.get("key")
        if key is not None and self.session.scalar(select(tables.Prediction.id).filter_by(key=key)) is not None:
            raise InputError(f"the key '{key[:80]}' belongs to another stored prediction")
        insert_prediction(self.session, prediction, trace, public_id=row["id"], key=key, created=read_time(row, "created"))
        self.session.expire_all()  # traces are large: keep none of them
        return True

    def _judgment(self, row: Row) -> bool:
        return self._words(tables.Judgment, row, created=read_time(row, "created"), updated=read_time(row, "updated"))

    def _judgment_revision(self, row: Row) -> bool:
        times = {"saved": read_time(row, "saved"), "replaced": read_time(row, "replaced")}
        return self._words(tables.JudgmentRevision, row, cleared=row["cleared"], **times)

    def _words(self, table: Any, row: Row, **more: Any) -> bool:
        same = {
            "predicted_answer_id": answer_id(self.session, row["prediction"], row["position"]),
            "annotator_id": annotator_row(self.session, row["annotator"]).id,
        }
        if table is tables.JudgmentRevision:
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
        found = self.session.scalar(select(tables.Evaluation).filter_by(public_id=row["id"]))
        if found is not None:
            stored = {name: getattr(found, name) for name in content} | {"report": report_of(self.session, found)}
            if stored != content:
                raise InputError(f"evaluation '{row['id'][:80]}' is stored with another content")
            return False
        digest = digest_of(content)
        finished = read_time(row, "finished") if row.get("finished") else None
        if self.session.scalar(select(tables.Evaluation.id).filter_by(digest=digest)) is not None:
            return False  # the same run, stored here from its own folder
        add_evaluation(self.session, row["id"], read_time(row, "created"), content, row.get("label", ""), digest, finished)
        return True
