"""What feeds the quality page: who agrees with whom, how long it took, how judges and systems compare with people.

The database chooses and counts; what comes out of it is bounded (MAX_...), the latest first, and a report says when something was left
out.  The arithmetic is core.metrics.agreement.tables'.  Only submitted contributions that count are read: no drafts, gold items, or automatic
validations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from core.metrics.agreement.answer_sets import AnswerSet, answer_set, set_of
from core.metrics.agreement.chance import Figure
from core.metrics.agreement.tables import (
    ItemRow,
    JudgeRow,
    Mark,
    Opinion,
    PairRow,
    PeriodRow,
    SystemRow,
    TimeRow,
    TypeRow,
    figures,
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
from storage.records.projects import AUTOMATIC, MIXED_SLOTS
from storage.results.standing import CHUNK, Annotated, annotators, stands
from storage.schema import tables, workbench
from storage.store import Store

MAX_ITEMS = 2_000  # questions that two people or more annotated
MAX_LABELS = 20_000  # answers that somebody judged
MAX_TIMES = 50_000


@dataclass(frozen=True, slots=True)
class CompetenceRow:
    """How well one person tells correct answers from others (storage.exchange.competence), each in 0..1, None where they share too few with
    others: how probably their word is true (`accuracy`), of a correct answer, of another one.  `gold`: their mean score on `gold_n` gold items."""

    person: str
    n: int
    accuracy: float | None
    on_correct: float | None
    on_others: float | None
    gold_n: int
    gold: float | None


@dataclass(frozen=True, slots=True)
class Quality:
    """All tables.  `truncated`: in words, what was too much to be read."""

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
    judges: tuple[JudgeRow, ...]
    systems: tuple[SystemRow, ...]
    competence: tuple[CompetenceRow, ...]
    missing: Mapping[str, int]  # system -> answers that judges added as missing, each once a question
    truncated: tuple[str, ...] = field(default=())


def quality(
    store: Store,
    by: str,
    *,
    project: str = "",
    people: Sequence[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    samples: int = BOOTSTRAP_SAMPLES,
) -> Quality:
    """All tables of one moment, of the contributions that the filters let by.

    Raises NotAllowedError unless `by` may see other people's work, NotFoundError for an unknown project, InputError for wrong filters.
    """
    store.people.require(by, "validator")
    filters = Filters(annotators=tuple(people), since=since, until=until, project=project)
    truncated: list[str] = []
    with store.database.reading() as session:
        check_filters(session, filters)
        opinions = _opinions(session, filters, truncated)
        types = _type_counts(session, filters)
        times = _times(session, filters, truncated)
        labelled = _labelled(session, filters, truncated)
        judged = _judged_sheets(session, filters)
        sets = _sets(session, filters)
        missing = _missing(session, judged.missing)
        competence = _competence(session, filters)
    marks = [m for m, _ in labelled]
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
        judges=_judges(labelled, judged, samples),
        systems=_systems(labelled, sets, samples),
        competence=competence,
        missing=missing,
        truncated=tuple(truncated),
    )


# ---------------------------------------------------------------- answer sets


def _annotators(session: Session, filters: Filters) -> tuple[Any, Callable[..., Select[Any]]]:
    """(rows of storage.results.standing.annotators, select of columns of those that the filters let by)."""
    said = annotators(session)

    def chosen(*columns: Any) -> Select[Any]:
        query = select(*columns).select_from(said).join(tables.Annotator, tables.Annotator.id == said.c.annotator_id)
        query = dated(of_project(query, said.c.question_id, filters), said.c.updated, filters)
        return query.where(tables.Annotator.name.in_(filters.annotators)) if filters.annotators else query

    return said, chosen


def _generations(session: Session, questions: Sequence[int], filters: Filters) -> Iterator[Annotated]:
    wanted = replace(filters, stages=("generation",))
    for start in range(0, len(questions), CHUNK):
        yield from contributions(session, questions[start : start + CHUNK], wanted).annotations


def _opinions(session: Session, filters: Filters, truncated: list[str]) -> list[Opinion]:
    """Generation annotations of questions that two people or more annotated."""
    said, chosen = _annotators(session, filters)
    shared = chosen(said.c.question_id).group_by(said.c.question_id).having(func.count() >= 2)
    ids = list(session.scalars(shared.order_by(func.max(said.c.updated).desc(), said.c.question_id).limit(MAX_ITEMS + 1)))
    if len(ids) > MAX_ITEMS:
        truncated.append(f"agreement is of the {MAX_ITEMS:,} questions that were annotated last")
        ids = ids[:MAX_ITEMS]
    q = tables.Question
    asked: dict[int, Any] = {}
    for start in range(0, len(ids), CHUNK):
        rows = session.execute(select(q.id, q.public_id, q.text).where(q.id.in_(ids[start : start + CHUNK])))
        asked |= {row.id: row for row in rows}
    return [
        Opinion(asked[a.question].public_id, a.annotator, asked[a.question].text, a.annotation, a.updated)
        for a in _generations(session, ids, filters)
    ]


def _type_counts(session: Session, filters: Filters) -> dict[str, int]:
    said, chosen = _annotators(session, filters)
    return {kind: int(count) for kind, count in session.execute(chosen(said.c.type, func.count()).group_by(said.c.type))}


def _times(session: Session, filters: Filters, truncated: list[str]) -> list[tuple[str, float]]:
    """(person, seconds) of each finished task, the latest first."""
    task = workbench.Task
    query = (
        select(tables.Annotator.name, task.seconds)
        .join(tables.Annotator, tables.Annotator.id == task.annotator_id)
        .where(task.state == "submitted", task.slot.is_not(None), task.slots < MIXED_SLOTS, tables.Annotator.name != AUTOMATIC)
        .order_by(task.updated.desc())
        .limit(MAX_TIMES + 1)
    )
    query = dated(query, task.updated, filters)
    if filters.annotators:
        query = query.where(tables.Annotator.name.in_(filters.annotators))
    if filters.project:
        query = query.join(workbench.Project, workbench.Project.id == task.project_id).where(
            workbench.Project.public_id == filters.project
        )
    rows = [(name, float(seconds)) for name, seconds in session.execute(query)]
    if len(rows) > MAX_TIMES:
        truncated.append(f"time is that of the last {MAX_TIMES:,} tasks")
    return rows[:MAX_TIMES]


def _competence(session: Session, filters: Filters) -> tuple[CompetenceRow, ...]:
    """The most competent first."""
    found, counts = competence_of(session, filters, MAX_ITEMS)
    sent, task = workbench.Submission, workbench.Task
    query = (
        select(tables.Annotator.name, func.count(), func.avg(sent.score))
        .select_from(task)
        .join(sent, stands())
        .join(tables.Annotator, tables.Annotator.id == task.annotator_id)
        .where(task.state == "submitted", sent.score.is_not(None))
        .group_by(tables.Annotator.name)
    )
    query = dated(query, sent.created, filters)
    if filters.annotators:
        query = query.where(tables.Annotator.name.in_(filters.annotators))
    if filters.project:
        query = query.join(workbench.Project, workbench.Project.id == task.project_id)
        query = query.where(workbench.Project.public_id == filters.project)
    gold = {name: (int(count), float(score)) for name, count, score in session.execute(query)}
    rows = []
    for person in counts.keys() | gold.keys():
        n, known = counts[person], counts[person] >= MIN_ANSWERS
        rates = found.errors[person] if known else None
        accuracy = found.accuracy(person) if known else None
        both = (None, None) if rates is None else (float(rates[1, 1]), float(rates[0, 0]))
        rows.append(CompetenceRow(person, n, accuracy, *both, *gold.get(person, (0, None))))
    return tuple(sorted(rows, key=lambda row: (-(row.accuracy or 0.0), row.person)))


# ---------------------------------------------------------------- labels


@dataclass(frozen=True, slots=True)
class _Answer:
    """The predicted answer that a label is of."""

    key: str
    system: str
    question: str
    probability: float
    passed: bool | None


def _labelled(session: Session, filters: Filters, truncated: list[str]) -> list[tuple[Mark, _Answer]]:
    """Labels of the answers that were judged last."""
    labels, more = latest_labels(session, filters, MAX_LABELS)
    if more:
        truncated.append(f"the labels are those of {MAX_LABELS:,} answers to the questions judged last")
    found: list[tuple[Mark, _Answer]] = []
    for one in labels:
        answer = one.answer
        key = f"{answer.prediction} {answer.position}"
        of = _Answer(key, answer.system, str(answer.question_id), answer.probability, answer.passed)
        found.append((Mark(key, one.annotator, one.label or "", one.updated), of))
    return found


@dataclass(frozen=True, slots=True)
class _Sheets:
    questions: list[Mark] = field(default_factory=list)  # labels of disambiguated questions
    preferences: list[Mark] = field(default_factory=list)
    passed: dict[str, bool] = field(default_factory=dict)  # of the same questions: their round trip
    # item -> forms (as keys) of each answer that was added
    missing: dict[str, set[tuple[str, ...]]] = field(default_factory=dict)


def _judged_sheets(session: Session, filters: Filters) -> _Sheets:
    """What judges say besides labels of answers: of the questions with the latest sheets."""
    sent, item = workbench.Submission, workbench.ProjectItem
    latest = (
        select(item.question_id)
        .join(sent, sent.item_id == item.id)
        .where(sent.stage == "judging")
        .group_by(item.question_id)
        .order_by(func.max(sent.id).desc())
        .limit(MAX_ITEMS)
    )
    ids = list(session.scalars(latest))
    found = _Sheets()
    for start in range(0, len(ids), CHUNK):
        for row in sheets(session, ids[start : start + CHUNK], filters):
            for answer in row.body["answers"]:
                if answer["question"] is not None:
                    key = f"{answer['prediction_id']} {answer['position']}"
                    found.questions.append(Mark(key, row.name, answer["question"], row.created))
            for added in row.body.get("missing", ()):
                forms = tuple(answer_key(form) for form in (added["text"], *added.get("aliases", ())))
                found.missing.setdefault(row.item, set()).add(forms)
            if row.body["preference"] is not None:
                found.preferences.append(Mark(row.item, row.name, row.body["preferred"] or "tie", row.created))
    wanted = sorted({mark.item.partition(" ")[0] for mark in found.questions})
    for start in range(0, len(wanted), CHUNK):
        rows = session.execute(
            select(tables.Prediction.public_id, tables.PredictedAnswer.position, tables.PredictedAnswer.passed)
            .join(tables.PredictedAnswer, tables.PredictedAnswer.prediction_id == tables.Prediction.id)
            .where(tables.Prediction.public_id.in_(wanted[start : start + CHUNK]), tables.PredictedAnswer.passed.is_not(None))
        )
        found.passed.update({f"{public_id} {position}": bool(passed) for public_id, position, passed in rows})
    return found


def _missing(session: Session, added: Mapping[str, set[tuple[str, ...]]]) -> dict[str, int]:
    """System -> how many answers judges added to questions whose sheet shows it; those that it gave itself (a further form) aside."""
    item, link, prediction, answer = workbench.ProjectItem, workbench.ItemPrediction, tables.Prediction, tables.PredictedAnswer
    given: dict[tuple[int, str], set[str]] = defaultdict(set)
    wanted: dict[tuple[int, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    names = sorted(added)
    for start in range(0, len(names), CHUNK):
        rows = session.execute(
            select(item.public_id, item.question_id, prediction.system, answer.text)
            .join(link, link.item_id == item.id)
            .join(prediction, prediction.id == link.prediction_id)
            .outerjoin(answer, answer.prediction_id == prediction.id)
            .where(item.public_id.in_(names[start : start + CHUNK]))
        )
        for row in rows:
            place = (row.question_id, row.system)
            given[place].update([answer_key(row.text)] if row.text is not None else [])
            for forms in added[row.public_id]:
                wanted[place][forms[0]].update(forms)
    found: dict[str, int] = defaultdict(int)
    for (question, system), answers in wanted.items():
        found[system] += sum(not forms & given[question, system] for forms in answers.values())
    return dict(found)


def _majorities(marks: Iterable[Mark]) -> dict[str, str]:
    """Thing -> the label of most people, the latest of each; ties are left out."""
    said: dict[str, dict[str, str]] = defaultdict(dict)
    for mark in sorted(marks, key=lambda m: m.time):
        said[mark.item][mark.person] = mark.label
    found = {item: majority(labels.values()) for item, labels in said.items()}
    return {item: label for item, label in found.items() if label is not None}


def _judges(labelled: Sequence[tuple[Mark, _Answer]], judged: _Sheets, samples: int) -> tuple[JudgeRow, ...]:
    """What the systems think of their own answers, as a judge that is compared with people."""
    people = _majorities(m for m, _ in labelled)
    answers = {a.key: a for _, a in labelled}
    right = {key: label == "correct" for key, label in people.items() if label != "duplicate"}
    trips = [(bool(answers[k].passed), yes) for k, yes in right.items() if answers[k].passed is not None]
    sure = [(answers[k].probability >= 0.5, yes) for k, yes in right.items()]
    fits = {key: label == "fits" for key, label in _majorities(judged.questions).items()}
    asked = [(judged.passed[k], yes) for k, yes in fits.items() if k in judged.passed]
    return (
        judge_row("round trip passed: the answer is correct", trips, samples=samples),
        judge_row("probability at least 0.5: the answer is correct", sure, samples=samples),
        judge_row("round trip passed: the question fits", asked, samples=samples, noun="disambiguated question"),
    )


# ---------------------------------------------------------------- systems


def _sets(session: Session, filters: Filters) -> dict[str, list[tuple[AnswerSet, list[AnswerSet]]]]:
    """System -> (its newest answer set, people's answer sets) of each question that has both, the latest annotated first."""
    prediction, answer = tables.Prediction, tables.PredictedAnswer
    said, chosen = _annotators(session, filters)
    both = chosen(said.c.question_id).where(
        said.c.question_id.in_(select(prediction.question_id).distinct())
    )  # a question without a prediction says nothing of a system
    latest = both.group_by(said.c.question_id).order_by(func.max(said.c.updated).desc()).limit(MAX_ITEMS)
    ids = list(session.scalars(latest))
    people: dict[int, list[AnswerSet]] = defaultdict(list)
    for one in _generations(session, ids, filters):
        people[one.question].append(answer_set(one.annotation))
    found: dict[str, list[tuple[AnswerSet, list[AnswerSet]]]] = defaultdict(list)
    for start in range(0, len(ids), CHUNK):
        chunk = ids[start : start + CHUNK]
        newest = (
            select(func.max(prediction.id))
            .where(prediction.question_id.in_(chunk))
            .group_by(prediction.question_id, prediction.system)
        )
        given = session.execute(
            select(prediction.question_id, prediction.system, answer.text)
            .outerjoin(answer, answer.prediction_id == prediction.id)
            .where(prediction.id.in_(newest))
        )
        own: dict[tuple[int, str], list[list[str]]] = defaultdict(list)
        for question, system, text in given:
            own[question, system] += [[text]] if text is not None else []
        for (question, system), answers in own.items():
            found[system].append((set_of(answers), people[question]))
    return found


def _systems(
    labelled: Sequence[tuple[Mark, _Answer]],
    sets: Mapping[str, Sequence[tuple[AnswerSet, Sequence[AnswerSet]]]],
    samples: int,
) -> tuple[SystemRow, ...]:
    answers = {a.key: a for _, a in labelled}
    labels: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for key, label in _majorities(m for m, _ in labelled).items():
        labels[answers[key].system][answers[key].question].append(label)
    names = sorted({*labels, *sets})
    return tuple(system_row(name, labels.get(name, {}), sets.get(name, []), samples=samples) for name in names)
