"""Measures how far the judges of stored evaluations agree with people: their verdicts on a run's interpretations beside
people's labels.

A judge says whether the cited passage supports an answer, a person whether an answer is right and its passage says so: "correct" is yes, "wrong" and
"unsupported" are no, other labels are left out.  Both judged the same where question and answer (as `core.text` compares them for display), passage (the first
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
from storage.results.evaluation_rows import object_of
from storage.results.standing import chunked
from storage.schema import tables
from storage.store import Store

MAX_LABELS = 20_000  # those of people, the latest first
NOBODY_JUDGED = "nobody has judged an answer to a question of this run"
_SAYS = {"correct": "yes", "wrong": "no", "unsupported": "no"}
_Claim = tuple[str, str, str, str]  # key of the question, corpus, answer, passage
_RUN, _ROW = tables.Evaluation, tables.EvaluationRow


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """`about`: what the run's report says of its judge (core.evaluation.judge); empty if it names none.  `row`: the judge beside people's majority, over
    interpretations; where kappa is undefined, `row.kappa.why` says why.  `truncated`: there are more labels than were read."""

    about: Mapping[str, Any]
    row: JudgeRow
    truncated: bool = False


def judges_of(store: Store, evaluation_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Each run's description of its judge; empty if its report names none.  Unknown ids are left out.  Raises StorageError."""
    with store.database.reading() as session:
        rows = session.execute(select(_RUN.public_id, _RUN.report).where(_RUN.public_id.in_(evaluation_ids)))
        return {key: object_of(object_of(report, "provenance"), "judge") for key, report in rows}


def judge_agreement(
    store: Store, evaluation_ids: Sequence[str], *, samples: int = BOOTSTRAP_SAMPLES
) -> dict[str, JudgeAgreement]:
    """The agreement by evaluation, at one moment. Unknown ids are left out. Raises InputError for samples < 1,
    StorageError."""
    compared: dict[str, tuple[dict[str, Any], list[tuple[bool, bool]], bool]] = {}
    with store.database.reading() as session:
        people, truncated = _people(session)
        questions = {question for question, *_ in people}
        runs = session.scalars(select(_RUN).where(_RUN.public_id.in_(evaluation_ids)).options(undefer(_RUN.report)))
        for run in runs:
            provenance = object_of(run.report, "provenance")
            system = object_of(provenance, "system")
            corpus = str(system.get("corpus_digest") or system.get("corpus") or "")
            judged, is_judged = _judged(session, run.id, corpus, questions)
            pairs = [(supported, people[claim]) for claim, supported in judged.items() if claim in people]
            compared[run.public_id] = object_of(provenance, "judge"), pairs, is_judged
    agreements = {}
    for key, (judge, pairs, is_judged) in compared.items():
        row = judge_row(str(judge.get("judge") or "unknown"), pairs, samples=samples, noun="interpretation")
        if not is_judged:
            row = replace(row, kappa=replace(row.kappa, why=NOBODY_JUDGED), accuracy=replace(row.accuracy, why=NOBODY_JUDGED))
        agreements[key] = JudgeAgreement(judge, row, truncated)
    return agreements


def _people(session: Session) -> tuple[dict[_Claim, bool], bool]:
    """The majority of people's labels of each claim, without ties, and whether there are more labels than were read."""
    labels, truncated = latest_labels(session, Filters(), MAX_LABELS)
    votes: dict[_Claim, dict[str, str]] = defaultdict(dict)
    for label in sorted(labels, key=lambda label: label.updated, reverse=True):
        if label.label in _SAYS:
            answer = label.answer
            passage = str(answer.evidence[0]["passage_id"]) if answer.evidence else ""
            claim = _claim(answer.question, answer.corpus_digest or answer.corpus, answer.text, passage)
            votes[claim].setdefault(label.annotator, _SAYS[label.label])  # the person's latest one; of one time, the first
    majorities = {claim: majority(by_person.values()) for claim, by_person in votes.items()}
    return {claim: vote == "yes" for claim, vote in majorities.items() if vote is not None}, truncated


def _judged(session: Session, run: int, corpus: str, people_questions: set[str]) -> tuple[dict[_Claim, bool], bool]:
    """The judge's verdicts on the run's interpretations of questions that people judged; and whether there are such questions.

    Two interpretations with one answer from one passage are one claim: supported where one of them is.
    """
    if not people_questions:
        return {}, False
    questions = session.execute(select(_ROW.position, _ROW.question).where(_ROW.evaluation_id == run))
    positions = [position for position, question in questions if question_key(question) in people_questions]
    supported: dict[_Claim, bool] = {}
    for part in chunked(positions):
        query = select(_ROW.question, _ROW.body).where(_ROW.evaluation_id == run, _ROW.position.in_(part))
        for question, body in session.execute(query.order_by(_ROW.position)):
            listed = body.get("interpretations")
            for interpretation in listed if isinstance(listed, list) else ():
                if isinstance(interpretation, dict) and isinstance(interpretation.get("supported"), bool):
                    claim = _claim(
                        question, corpus, str(interpretation.get("answer", "")), str(interpretation.get("passage_id", ""))
                    )
                    supported[claim] = supported.get(claim, False) or interpretation["supported"]
    return supported, bool(positions)


def _claim(question: str, corpus: str, answer: str, passage: str) -> _Claim:
    return question_key(question), corpus, answer_key(answer), passage
