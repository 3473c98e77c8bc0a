"""How far the judges of stored evaluations agree with people: what each said of a run's interpretations, beside people's labels.

A judge says whether the cited passage supports an answer, a person whether an answer is right and its passage says so: "correct" is yes, "wrong" and
"unsupported" are no, the other labels say nothing of it.  Both judged the same where question and answer (as `core.text` compares them for display), passage (the first
of the answer's evidence, which a person is shown) and corpus are equal; which system said it does not matter.  Only submitted labels count.  The
arithmetic is core.metrics.agreement.tables'.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, undefer

from core.metrics.agreement.tables import JudgeRow, judge_row, majority
from core.metrics.significance.bootstrap import BOOTSTRAP_SAMPLES
from core.text import answer_key, question_key
from storage.exchange.filters import Filters
from storage.exchange.votes import latest_labels
from storage.schema import tables
from storage.store import Store

MAX_LABELS = 20_000  # those of people, the latest first
NOBODY = "nobody has judged an answer to a question of this run"
_CHUNK = 500
_SAYS = {"correct": "yes", "wrong": "no", "unsupported": "no"}
_Thing = tuple[str, str, str, str]  # key of the question, corpus, answer, passage
_RUN, _ROW = tables.Evaluation, tables.EvaluationRow


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """`about`: what the run's report says of its judge (core.evaluation.judge); empty where it names none.  `row`: the judge beside people's majority, over
    interpretations; where kappa is undefined, `row.kappa.why` says why.  `truncated`: there are more labels than were read."""

    about: Mapping[str, Any]
    row: JudgeRow
    truncated: bool = False


def judges_of(store: Store, evaluation_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What each run's report says of its judge; empty where it names none, unknown ids are left out.  Raises StorageError."""
    with store.database.reading() as session:
        found = session.execute(select(_RUN.public_id, _RUN.report).where(_RUN.public_id.in_(evaluation_ids)))
        return {key: _object(_object(report, "provenance"), "judge") for key, report in found}


def judge_agreement(
    store: Store, evaluation_ids: Sequence[str], *, samples: int = BOOTSTRAP_SAMPLES
) -> dict[str, JudgeAgreement]:
    """By evaluation, of one moment; unknown ids are left out.  Raises InputError for samples < 1, StorageError."""
    found: dict[str, tuple[dict[str, Any], list[tuple[bool, bool]], bool]] = {}
    with store.database.reading() as session:
        people, truncated = _people(session)
        asked = {question for question, *_ in people}
        runs = session.scalars(select(_RUN).where(_RUN.public_id.in_(evaluation_ids)).options(undefer(_RUN.report)))
        for run in runs:
            made = _object(run.report, "provenance")
            system = _object(made, "system")
            corpus = str(system.get("corpus_digest") or system.get("corpus") or "")
            judged, known = _judged(session, run.id, corpus, asked)
            pairs = [(said, people[thing]) for thing, said in judged.items() if thing in people]
            found[run.public_id] = _object(made, "judge"), pairs, known
    return {
        key: JudgeAgreement(about, _row(str(about.get("judge") or "unknown"), pairs, known, samples), truncated)
        for key, (about, pairs, known) in found.items()
    }


def _row(judge: str, pairs: Sequence[tuple[bool, bool]], known: bool, samples: int) -> JudgeRow:
    row = judge_row(judge, pairs, samples=samples, noun="interpretation")
    return row if known else replace(row, kappa=replace(row.kappa, why=NOBODY), accuracy=replace(row.accuracy, why=NOBODY))


def _people(session: Session) -> tuple[dict[_Thing, bool], bool]:
    """What the majority of people says of each thing, ties left out; and whether there was more than is read."""
    labels, truncated = latest_labels(session, Filters(), MAX_LABELS)
    said: dict[_Thing, dict[str, str]] = defaultdict(dict)
    for one in sorted(labels, key=lambda one: one.updated, reverse=True):
        if one.label in _SAYS:
            answer = one.answer
            passage = str(answer.evidence[0]["passage_id"]) if answer.evidence else ""
            thing = _thing(answer.question, answer.corpus_digest or answer.corpus, answer.text, passage)
            said[thing].setdefault(one.annotator, _SAYS[one.label])  # a person's latest word of it
    found = {thing: majority(by_person.values()) for thing, by_person in said.items()}
    return {thing: label == "yes" for thing, label in found.items() if label is not None}, truncated


def _judged(session: Session, run: int, corpus: str, asked: set[str]) -> tuple[dict[_Thing, bool], bool]:
    """What the judge said of the run's interpretations, those of questions that people judged; and whether there are such questions.

    Two interpretations with one answer from one passage are one thing: supported where one of them is.
    """
    if not asked:
        return {}, False
    questions = session.execute(select(_ROW.position, _ROW.question).where(_ROW.evaluation_id == run))
    wanted = [position for position, question in questions if question_key(question) in asked]
    found: dict[_Thing, bool] = {}
    for start in range(0, len(wanted), _CHUNK):
        query = select(_ROW.question, _ROW.body).where(
            _ROW.evaluation_id == run, _ROW.position.in_(wanted[start : start + _CHUNK])
        )
        for question, body in session.execute(query.order_by(_ROW.position)):
            listed = body.get("interpretations")
            for one in listed if isinstance(listed, list) else ():
                if isinstance(one, dict) and isinstance(one.get("supported"), bool):
                    thing = _thing(question, corpus, str(one.get("answer", "")), str(one.get("passage_id", "")))
                    found[thing] = found.get(thing, False) or one["supported"]
    return found, bool(wanted)


def _thing(question: str, corpus: str, answer: str, passage: str) -> _Thing:
    return question_key(question), corpus, answer_key(answer), passage


def _object(value: Any, name: str) -> dict[str, Any]:
    """A report may come from another program."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}
