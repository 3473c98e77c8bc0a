"""The tables of the quality page: agreement between people, time spent, and how judges and systems compare with people.

The database chooses and counts; what comes out of it is bounded (MAX_...), the latest first, and a report says when something was left
out.  The arithmetic is core.metrics.agreement.tables'.  Only submitted contributions that count are read: no drafts, gold items, or automatic
validations.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Subquery, func, select
from sqlalchemy.orm import Session

from core.metrics.agreement.answer_sets import AnswerSet, answer_set, set_of
from core.metrics.agreement.chance import Figure
from core.metrics.agreement.tables import (
    DayRow,
    Effort,
    GuidelineRow,
    ItemRow,
    JudgeRow,
    Opinion,
    PairRow,
    PeriodRow,
    PersonLabel,
    SystemRow,
    TimeRow,
    TypeRow,
    day_rows,
    figures,
    guideline_rows,
    item_rows,
    judge_row,
    label_figure,
    label_pairs,
    majority,
    pair_rows,
    period_rows,
    system_row,
    time_rows,
    type_rows,
)
from core.metrics.significance.bootstrap import BOOTSTRAP_SAMPLES
from core.text import answer_key
from storage.exchange.competence import MIN_ANSWERS, competence_of
from storage.exchange.filters import Filters, check_filters
from storage.exchange.votes import contributions, dated, latest_labels, of_project, sheets
from storage.records.projects import AUTOMATIC_ANNOTATOR, MIXED_SLOTS
from storage.results.standing import AnnotationRecord, chunked, generation_rows, is_current_submission
from storage.schema import tables, workbench
from storage.store import Store

MAX_ITEMS = 2_000  # questions that two people or more annotated
MAX_LABELS = 20_000  # answers that somebody judged
MAX_TIMES = 50_000


@dataclass(frozen=True, slots=True)
class CompetenceRow:
    """How well one person tells correct answers from others (storage.exchange.competence), each in 0..1, None if they share too few with
    others: the probability that their label is right (`accuracy`), for a correct answer, for another one.  `gold`: their mean score on `gold_n` gold items."""

    person: str
    n: int
    accuracy: float | None
    on_correct: float | None
    on_others: float | None
    gold_n: int
    gold: float | None


@dataclass(frozen=True, slots=True)
class Quality:
    """All tables.  `guidelines`: only for one project, as each counts its own versions.  `truncated`: messages about data that
    was too much to read."""

    figures: tuple[Figure, ...]
    labels: Figure
    question_labels: Figure
    preferences: Figure
    pairs: tuple[PairRow, ...]
    label_pairs: tuple[PairRow, ...]
    items: tuple[ItemRow, ...]
    periods: tuple[PeriodRow, ...]
    types: tuple[TypeRow, ...]
    times: tuple[TimeRow, ...]
    days: tuple[DayRow, ...]
    guidelines: tuple[GuidelineRow, ...]
    judges: tuple[JudgeRow, ...]
    systems: tuple[SystemRow, ...]
    competence: tuple[CompetenceRow, ...]
    missing: Mapping[str, int]  # system -> answers that judges added as missing, each once a question
    truncated: tuple[str, ...] = field(default=())


def quality(
    store: Store,
    user: str,
    *,
    project: str = "",
    people: Sequence[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    samples: int = BOOTSTRAP_SAMPLES,
) -> Quality:
    """All tables at one moment, over the contributions that pass the filters.

    Raises NotAllowedError unless `user` may see other people's work, NotFoundError for an unknown project, InputError for wrong filters.
    """
    store.people.require(user, "validator")
    filters = Filters(annotators=tuple(people), since=since, until=until, project=project)
    truncated: list[str] = []
    with store.database.reading() as session:
        check_filters(session, filters)
        generations = _generations(session, filters)
        versions = _opinions(session, generations, filters, truncated)
        opinions = [opinion for _, opinion in versions]
        by_type = select(generations.c.type, func.count()).group_by(generations.c.type)
        types: dict[str, int] = {kind: int(count) for kind, count in session.execute(by_type)}
        times = _times(session, filters, truncated)
        efforts = _efforts(session, filters)
        marks, answers = _labels(session, filters, truncated)
        judged = _judged_sheets(session, filters)
        sets, final_sets = _sets(session, generations, filters)
        missing = _missing(session, judged.missing)
        competence = _competence(session, filters)
    majorities = _majorities(marks)
    return Quality(
        figures=figures(opinions, samples=samples),
        labels=label_figure(marks, samples=samples),
        question_labels=label_figure(judged.questions, "kappa of question labels", samples=samples),
        preferences=label_figure(judged.preferences, "kappa of preferences", samples=samples),
        pairs=tuple(pair_rows(opinions)),
        label_pairs=tuple(label_pairs(marks)),
        items=tuple(item_rows(opinions)),
        periods=tuple(period_rows(opinions)),
        types=tuple(type_rows(types)),
        times=tuple(time_rows(times)),
        days=tuple(day_rows(efforts, opinions)),
        guidelines=tuple(guideline_rows(versions, samples=samples)) if project else (),
        judges=_judges(majorities, answers, judged, samples),
        systems=_systems(majorities, answers, sets, final_sets, samples),
        competence=competence,
        missing=missing,
        truncated=tuple(truncated),
    )


# ---------------------------------------------------------------- answer sets


def _generations(session: Session, filters: Filters) -> Subquery:
    """The rows of storage.results.standing.generation_rows that pass the filters: question_id, annotator_id, type, updated."""
    rows = generation_rows(session)
    query = select(rows).join(tables.Annotator, tables.Annotator.id == rows.c.annotator_id)
    query = dated(of_project(query, rows.c.question_id, filters), rows.c.updated, filters)
    return (query.where(tables.Annotator.name.in_(filters.annotators)) if filters.annotators else query).subquery()


def _annotations(session: Session, questions: Sequence[int], filters: Filters) -> Iterator[AnnotationRecord]:
    generation_filters = replace(filters, stages=("generation",))
    for part in chunked(questions):
        yield from contributions(session, part, generation_filters).annotations


def _opinions(session: Session, generations: Subquery, filters: Filters, truncated: list[str]) -> list[tuple[int, Opinion]]:
    """Generation annotations of questions that two people or more annotated, each with the version of the guidelines that was shown."""
    g = generations.c
    shared = select(g.question_id).group_by(g.question_id).having(func.count() >= 2)
    ids = list(session.scalars(shared.order_by(func.max(g.updated).desc(), g.question_id).limit(MAX_ITEMS + 1)))
    if len(ids) > MAX_ITEMS:
        truncated.append(f"agreement is of the {MAX_ITEMS:,} questions that were annotated last")
        ids = ids[:MAX_ITEMS]
    q = tables.Question
    questions: dict[int, Any] = {}
    for part in chunked(ids):
        rows = session.execute(select(q.id, q.public_id, q.text).where(q.id.in_(part)))
        questions |= {row.id: row for row in rows}
    return [
        (
            a.guidelines or 0,
            Opinion(questions[a.question].public_id, a.annotator, questions[a.question].text, a.annotation, a.updated),
        )
        for a in _annotations(session, ids, filters)
    ]


def _filtered(query: Any, column: Any, filters: Filters, record: Any = workbench.Task) -> Any:
    """A query of tasks (or submissions: `record`) and their annotators, within the filters; `column`: the time that they compare."""
    query = dated(query, column, filters)
    if filters.annotators:
        query = query.where(tables.Annotator.name.in_(filters.annotators))
    if filters.project:
        project = workbench.Project
        query = query.join(project, project.id == record.project_id).where(project.public_id == filters.project)
    return query


def _times(session: Session, filters: Filters, truncated: list[str]) -> list[tuple[str, float]]:
    """(person, seconds) of each finished task, the latest first."""
    task = workbench.Task
    query = (
        select(tables.Annotator.name, task.seconds)
        .join(tables.Annotator, tables.Annotator.id == task.annotator_id)
        .where(
            task.state == "submitted",
            task.slot.is_not(None),
            task.slots < MIXED_SLOTS,
            tables.Annotator.name != AUTOMATIC_ANNOTATOR,
        )
        .order_by(task.updated.desc())
        .limit(MAX_TIMES + 1)
    )
    rows = [(name, float(seconds)) for name, seconds in session.execute(_filtered(query, task.updated, filters))]
    if len(rows) > MAX_TIMES:
        truncated.append(f"time is that of the last {MAX_TIMES:,} tasks")
    return rows[:MAX_TIMES]


def _efforts(session: Session, filters: Filters) -> list[Effort]:
    """Every submission by a person, including late and returned ones and gold items, because people are paid for their work and
    not for what counts."""
    submission = workbench.Submission
    query = (
        select(tables.Annotator.name, submission.seconds, submission.version, submission.created)
        .join(tables.Annotator, tables.Annotator.id == submission.annotator_id)
        .where(submission.automatic == False)  # noqa: E712
        .order_by(submission.id)
    )
    rows = session.execute(_filtered(query, submission.created, filters, submission))
    return [Effort(row.name, float(row.seconds), row.version == 1, row.created) for row in rows]


def _competence(session: Session, filters: Filters) -> tuple[CompetenceRow, ...]:
    """One row for each person, the most competent first."""
    competence, counts = competence_of(session, filters, MAX_ITEMS)
    submission, task = workbench.Submission, workbench.Task
    query = (
        select(tables.Annotator.name, func.count(), func.avg(submission.score))
        .select_from(task)
        .join(submission, is_current_submission())
        .join(tables.Annotator, tables.Annotator.id == task.annotator_id)
        .where(task.state == "submitted", submission.score.is_not(None))
        .group_by(tables.Annotator.name)
    )
    scores = session.execute(_filtered(query, submission.created, filters))
    gold = {name: (int(count), float(score)) for name, count, score in scores}
    rows = []
    for person in counts.keys() | gold.keys():
        rates: tuple[float | None, float | None, float | None] = (None, None, None)
        if counts[person] >= MIN_ANSWERS:
            errors = competence.errors[person]
            rates = (competence.accuracy(person), float(errors[1, 1]), float(errors[0, 0]))
        rows.append(CompetenceRow(person, counts[person], *rates, *gold.get(person, (0, None))))
    return tuple(sorted(rows, key=lambda row: (-(row.accuracy or 0.0), row.person)))


# ---------------------------------------------------------------- labels


def _item(prediction: str, position: int) -> str:
    """A prediction's answer, as the item of a label."""
    return f"{prediction} {position}"


def _labels(session: Session, filters: Filters, truncated: list[str]) -> tuple[list[PersonLabel], dict[str, Any]]:
    """The labels of the answers that were judged last, and the answers by item (storage.results.standing.LabelRecord)."""
    labels, more = latest_labels(session, filters, MAX_LABELS)
    if more:
        truncated.append(f"the labels are those of {MAX_LABELS:,} answers to the questions judged last")
    items = [_item(label.answer.prediction, label.answer.position) for label in labels]
    marks = [PersonLabel(item, v.annotator, v.label or "", v.updated) for item, v in zip(items, labels, strict=True)]
    return marks, {item: label.answer for item, label in zip(items, labels, strict=True)}


@dataclass(frozen=True, slots=True)
class _Sheets:
    questions: list[PersonLabel] = field(default_factory=list)  # labels of disambiguated questions
    preferences: list[PersonLabel] = field(default_factory=list)
    passed: dict[str, bool] = field(default_factory=dict)  # of the same questions: their round trip
    # item -> forms (as keys) of each answer that was added
    missing: dict[str, set[tuple[str, ...]]] = field(default_factory=dict)


def _judged_sheets(session: Session, filters: Filters) -> _Sheets:
    """The judgments of things other than answers, from the questions with the latest sheets."""
    submission, item = workbench.Submission, workbench.ProjectItem
    latest = (
        select(item.question_id)
        .join(submission, submission.item_id == item.id)
        .where(submission.stage == "judging")
        .group_by(item.question_id)
        .order_by(func.max(submission.id).desc())
        .limit(MAX_ITEMS)
    )
    ids = list(session.scalars(latest))
    judged = _Sheets()
    for part in chunked(ids):
        for row in sheets(session, part, filters):
            for answer in row.body["answers"]:
                if answer["question"] is not None:
                    item_key = _item(answer["prediction_id"], answer["position"])
                    judged.questions.append(PersonLabel(item_key, row.name, answer["question"], row.created))
            for added in row.body.get("missing", ()):
                forms = tuple(answer_key(form) for form in (added["text"], *added.get("aliases", ())))
                judged.missing.setdefault(row.item, set()).add(forms)
            if row.body["preference"] is not None:
                judged.preferences.append(PersonLabel(row.item, row.name, row.body["preferred"] or "tie", row.created))
    prediction_ids = sorted({mark.item.partition(" ")[0] for mark in judged.questions})
    for public_ids in chunked(prediction_ids):
        rows = session.execute(
            select(tables.Prediction.public_id, tables.PredictedAnswer.position, tables.PredictedAnswer.passed)
            .join(tables.PredictedAnswer, tables.PredictedAnswer.prediction_id == tables.Prediction.id)
            .where(tables.Prediction.public_id.in_(public_ids), tables.PredictedAnswer.passed.is_not(None))
        )
        judged.passed.update({_item(public_id, position): bool(passed) for public_id, position, passed in rows})
    return judged


def _missing(session: Session, added: Mapping[str, set[tuple[str, ...]]]) -> dict[str, int]:
    """System -> the number of answers that judges added to questions on whose sheet it is, without those that it gave itself in
    another form."""
    item, link, prediction, answer = workbench.ProjectItem, workbench.ItemPrediction, tables.Prediction, tables.PredictedAnswer
    predicted: dict[tuple[int, str], set[str]] = defaultdict(set)
    added_forms: dict[tuple[int, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for part in chunked(sorted(added)):
        rows = session.execute(
            select(item.public_id, item.question_id, prediction.system, answer.text)
            .join(link, link.item_id == item.id)
            .join(prediction, prediction.id == link.prediction_id)
            .outerjoin(answer, answer.prediction_id == prediction.id)
            .where(item.public_id.in_(part))
        )
        for row in rows:
            place = (row.question_id, row.system)
            predicted[place].update([answer_key(row.text)] if row.text is not None else [])
            for forms in added[row.public_id]:
                added_forms[place][forms[0]].update(forms)
    counts: dict[str, int] = defaultdict(int)
    for (question, system), answers in added_forms.items():
        counts[system] += sum(not forms & predicted[question, system] for forms in answers.values())
    return dict(counts)


def _majorities(marks: Iterable[PersonLabel]) -> dict[str, str]:
    """Item -> the label of most people, by each one's latest label.  Ties are left out."""
    labels_by_person: dict[str, dict[str, str]] = defaultdict(dict)
    for mark in sorted(marks, key=lambda m: m.time):
        labels_by_person[mark.item][mark.person] = mark.label
    majorities = {item: majority(labels.values()) for item, labels in labels_by_person.items()}
    return {item: label for item, label in majorities.items() if label is not None}


def _judges(people: Mapping[str, str], answers: Mapping[str, Any], judged: _Sheets, samples: int) -> tuple[JudgeRow, ...]:
    """The systems' own estimates of their answers, treated as a judge and compared with the majority of people."""
    right = {key: label == "correct" for key, label in people.items() if label != "duplicate"}
    trips = [(bool(answers[k].passed), yes) for k, yes in right.items() if answers[k].passed is not None]
    sure = [(answers[k].probability >= 0.5, yes) for k, yes in right.items()]
    fits = {key: label == "fits" for key, label in _majorities(judged.questions).items()}
    question_trips = [(judged.passed[k], yes) for k, yes in fits.items() if k in judged.passed]
    return (
        judge_row("round trip passed: the answer is correct", trips, samples=samples),
        judge_row("probability at least 0.5: the answer is correct", sure, samples=samples),
        judge_row("round trip passed: the question fits", question_trips, samples=samples, noun="disambiguated question"),
    )


# ---------------------------------------------------------------- systems


_Sets = list[tuple[AnswerSet, list[AnswerSet]]]


def _sets(session: Session, generations: Subquery, filters: Filters) -> tuple[dict[str, _Sets], dict[str, _Sets]]:
    """System -> (its newest answer set, people's answer sets) of each question that has both, the latest annotated first; and the same with the
    final answer sets."""
    prediction, answer = tables.Prediction, tables.PredictedAnswer
    g = generations.c
    shared = select(g.question_id).where(g.question_id.in_(select(prediction.question_id)))  # others say nothing of a system
    latest = shared.group_by(g.question_id).order_by(func.max(g.updated).desc()).limit(MAX_ITEMS)
    ids = list(session.scalars(latest))
    people: dict[int, list[AnswerSet]] = defaultdict(list)
    for contribution in _annotations(session, ids, filters):
        people[contribution.question].append(answer_set(contribution.annotation))
    sets: dict[str, _Sets] = defaultdict(list)
    final_sets: dict[str, _Sets] = defaultdict(list)
    for part in chunked(ids):
        finals = contributions(session, part, filters, Counter()).outcome.finals
        newest = (
            select(func.max(prediction.id))
            .where(prediction.question_id.in_(part))
            .group_by(prediction.question_id, prediction.system)
        )
        rows = session.execute(
            select(prediction.question_id, prediction.system, answer.text)
            .outerjoin(answer, answer.prediction_id == prediction.id)
            .where(prediction.id.in_(newest))
        )
        predicted: dict[tuple[int, str], list[list[str]]] = defaultdict(list)
        for question, system, text in rows:
            predicted[question, system] += [[text]] if text is not None else []
        for (question, system), answers in predicted.items():
            sets[system].append((set_of(answers), people[question]))
            final_sets[system].append((set_of(answers), [answer_set(f.annotation) for f in finals.get(question, ())]))
    return sets, final_sets


def _systems(
    majorities: Mapping[str, str],
    answers: Mapping[str, Any],
    sets: Mapping[str, _Sets],
    final_sets: Mapping[str, _Sets],
    samples: int,
) -> tuple[SystemRow, ...]:
    labels: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for item, label in majorities.items():
        labels[answers[item].system][str(answers[item].question_id)].append(label)
    names = sorted({*labels, *sets})
    return tuple(
        system_row(name, labels.get(name, {}), sets.get(name, []), final_sets.get(name, []), samples=samples) for name in names
    )
