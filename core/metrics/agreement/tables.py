"""The tables of the Quality page, from plain records: agreement overall, per pair of people, per item and over time; annotation
types compared with AmbigNQ's; time spent; a judge and a system compared with people.

Independent of the database.  Items have equal weight in means; pages must show n, the interval, and the reason if undefined.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import combinations
from statistics import fmean, median
from typing import TypeVar

from core.metrics.agreement.answer_sets import AnswerSet, answer_set, masi_distance, question_likeness, set_f1
from core.metrics.agreement.chance import Figure, alpha_masi, cohen_kappa, fleiss_kappa, mean_figure
from core.metrics.base import Value, mean
from core.metrics.significance.bootstrap import BOOTSTRAP_SAMPLES
from core.types import Annotation

# What the authors' annotation interface tells its workers to expect (branch `annotation` of shmsw25/AmbigQA); the file that was released
# has more questions with several answers, because some with one were left out.
AMBIGNQ_SHARES: Mapping[str, float] = {"multiple": 0.35, "single": 0.60, "none": 0.05}


@dataclass(frozen=True, slots=True)
class Opinion:
    """One person's answer set for one item."""

    item: str
    person: str
    prompt: str
    annotation: Annotation
    time: datetime


@dataclass(frozen=True, slots=True)
class PersonLabel:
    """One person's label of one thing: an answer, a disambiguated question, or a preference."""

    item: str
    person: str
    label: str
    time: datetime


Record = TypeVar("Record", Opinion, PersonLabel)


@dataclass(frozen=True, slots=True)
class PairRow:
    """Two people compared on the items that both annotated."""

    first: str
    second: str
    n: int
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class ItemRow:
    """One item: means over its pairs of people.  There is no alpha for a single item."""

    item: str
    prompt: str
    people: tuple[str, ...]
    types: tuple[str, ...]
    f1: float
    distance: float
    questions: Value


@dataclass(frozen=True, slots=True)
class PeriodRow:
    start: str  # ISO date of the first day
    n: int
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class TypeRow:
    """`interval`: Wilson's, 95%. `expected`: AmbigNQ's share.  `drifted`: whether that is outside the interval."""

    type: str
    count: int
    share: float
    interval: tuple[float, float]
    expected: float

    @property
    def drifted(self) -> bool:
        return not self.interval[0] <= self.expected <= self.interval[1]


@dataclass(frozen=True, slots=True)
class TimeRow:
    person: str
    n: int  # annotations whose time was measured
    median_seconds: float
    hours: float


@dataclass(frozen=True, slots=True)
class Effort:
    """One submission by a person, at any stage.  `is_first`: this person's first one for the item at the stage; the others
    change it."""

    person: str
    seconds: float
    is_first: bool
    time: datetime


@dataclass(frozen=True, slots=True)
class DayRow:
    """One person's work on one day (UTC).  `items`: first submissions.  `minutes`: of all submissions.  `agreement`: answer F1
    of their last answer set of the day for each item with those of others, mean over items; None if nobody else wrote any."""

    day: str  # ISO date
    person: str
    items: int
    minutes: float
    agreement: Value


@dataclass(frozen=True, slots=True)
class GuidelineRow:
    """The agreement of people who were shown the same version of the guidelines; version 0 means that there were none."""

    version: int
    n: int  # items that two people or more annotated under it
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class JudgeRow:
    """A judge's yes and no against people's majority on the same answers.  Precision and recall are None if their denominator is 0."""

    judge: str
    n: int
    accuracy: Figure
    kappa: Figure
    precision: float | None  # of the judge's yes, people's yes
    recall: float | None  # of people's yes, the judge's yes
    table: tuple[int, int, int, int]  # both yes, judge only, people only, both no


@dataclass(frozen=True, slots=True)
class SystemRow:
    """A system compared with people as if it were another annotator."""

    system: str
    labels: Mapping[str, int]  # majority label -> answers
    correct: Figure  # share of judged answers that the majority holds correct, mean over questions
    f1: Figure  # against each person's own answer set, mean over people, then questions
    final: Figure  # F1 against the final answer set; mean over those of a question, then questions
    alpha: Figure  # of system and people together


def _latest(records: Iterable[Record]) -> list[list[Record]]:
    """The records of each item, in the order of people.  A person's later record of an item replaces the earlier one."""
    latest: dict[str, dict[str, Record]] = defaultdict(dict)
    for record in sorted(records, key=lambda r: r.time):
        latest[record.item][record.person] = record
    return [sorted(people.values(), key=lambda r: r.person) for people in latest.values()]


def _kappa(name: str, units: Iterable[Mapping[str, Hashable]], samples: int) -> Figure:
    """Fleiss' kappa of each item's labels by person, or Cohen's for two people. Items with fewer than two labels don't
    count."""
    units = [unit for unit in units if len(unit) >= 2]
    people = sorted({person for unit in units for person in unit})
    if len(people) == 2:
        kappa = cohen_kappa([(unit[people[0]], unit[people[1]]) for unit in units], samples=samples)
    else:
        kappa = fleiss_kappa([list(unit.values()) for unit in units], samples=samples)
    return replace(kappa, name=name)


def item_rows(opinions: Iterable[Opinion]) -> list[ItemRow]:
    """Items with two or more annotations, lowest agreement first."""
    rows = []
    for unit in _latest(opinions):
        if len(unit) < 2:
            continue
        pairs = list(combinations([answer_set(o.annotation) for o in unit], 2))
        rows.append(
            ItemRow(
                unit[0].item,
                unit[0].prompt,
                tuple(o.person for o in unit),
                tuple(o.annotation.type for o in unit),
                fmean(set_f1(a, b) for a, b in pairs),
                fmean(masi_distance(a, b) for a, b in pairs),
                mean([_likeness(a, b) for a, b in combinations(unit, 2)]),
            )
        )
    return sorted(rows, key=lambda r: (r.f1, -r.distance, r.item))


def _likeness(a: Opinion, b: Opinion) -> Value:
    """The similarity of the disambiguated questions.  A single answer has only the prompt question and doesn't count."""
    if a.annotation.type != "multiple" or b.annotation.type != "multiple":
        return None
    return question_likeness(a.prompt, a.annotation.pairs, b.annotation.pairs)


def figures(opinions: Iterable[Opinion], *, samples: int = BOOTSTRAP_SAMPLES) -> tuple[Figure, ...]:
    """Alpha with MASI distance, answer F1, kappa of the three types (Cohen's for two people, else Fleiss'), likeness of questions."""
    units = _latest(opinions)
    rows = item_rows([o for unit in units for o in unit])
    few = "no item was annotated by two people"
    return (
        alpha_masi([[answer_set(o.annotation) for o in unit] for unit in units], samples=samples),
        mean_figure("answer F1", [r.f1 for r in rows], few, samples=samples),
        _kappa("kappa of types", [{o.person: o.annotation.type for o in unit} for unit in units], samples),
        mean_figure(
            "question similarity",
            [r.questions for r in rows],
            few if not rows else "no two people wrote questions for a shared answer",
            samples=samples,
        ),
    )


def pair_rows(opinions: Iterable[Opinion], *, samples: int = BOOTSTRAP_SAMPLES) -> list[PairRow]:
    """Every pair of people with an item in common, those with the most items first."""
    shared: dict[tuple[str, str], list[Opinion]] = defaultdict(list)
    for unit in _latest(opinions):
        for a, b in combinations(unit, 2):
            shared[a.person, b.person] += [a, b]
    rows = [PairRow(*people, len(both) // 2, figures(both, samples=samples)) for people, both in shared.items()]
    return sorted(rows, key=lambda r: (-r.n, r.first, r.second))


def period_rows(opinions: Iterable[Opinion], *, samples: int = BOOTSTRAP_SAMPLES) -> list[PeriodRow]:
    """Items by the week of their last annotation; weeks without one are left out."""
    weeks: dict[date, list[Opinion]] = defaultdict(list)
    for unit in _latest(opinions):
        if len(unit) >= 2:
            last = max(o.time for o in unit).date()
            weeks[last - timedelta(days=last.weekday())] += unit
    return [
        PeriodRow(monday.isoformat(), len({o.item for o in week}), figures(week, samples=samples))
        for monday, week in sorted(weeks.items())
    ]


def day_rows(efforts: Iterable[Effort], opinions: Iterable[Opinion]) -> list[DayRow]:
    """One row for each day and person, in that order."""
    work: dict[tuple[str, str], list[Effort]] = defaultdict(list)
    for effort in efforts:
        work[effort.time.date().isoformat(), effort.person].append(effort)
    shared: dict[tuple[str, str], list[float]] = defaultdict(list)
    for unit in _latest(opinions):
        for opinion in unit if len(unit) > 1 else ():
            others = [set_f1(answer_set(opinion.annotation), answer_set(o.annotation)) for o in unit if o is not opinion]
            shared[opinion.time.date().isoformat(), opinion.person].append(fmean(others))
    return [
        DayRow(
            *key,
            sum(effort.is_first for effort in work.get(key, ())),
            sum(effort.seconds for effort in work.get(key, ())) / 60,
            mean(shared.get(key, [])),
        )
        for key in sorted(work.keys() | shared.keys())
    ]


def guideline_rows(opinions: Iterable[tuple[int, Opinion]], *, samples: int = BOOTSTRAP_SAMPLES) -> list[GuidelineRow]:
    """Agreement by guideline version.  `opinions` come with the version that their author was shown."""
    versions: dict[int, list[Opinion]] = defaultdict(list)
    for version, opinion in opinions:
        versions[version].append(opinion)
    return [
        GuidelineRow(version, sum(len(unit) > 1 for unit in _latest(group)), figures(group, samples=samples))
        for version, group in sorted(versions.items())
    ]


def wilson(count: int, n: int) -> tuple[float, float]:
    """Wilson's score interval of the share `count` of n (Wilson 1927), 95%; (0, 1) if n is 0.

    >>> tuple(round(x, 3) for x in wilson(5, 10))
    (0.237, 0.763)
    """
    from scipy.stats import binomtest

    if n == 0:
        return 0.0, 1.0
    ends = binomtest(count, n).proportion_ci(method="wilson")
    return float(ends.low), float(ends.high)


def type_rows(counts: Mapping[str, int]) -> list[TypeRow]:
    """The shares of the three annotation types beside AmbigNQ's; [] if there is no annotation."""
    n = sum(counts.get(t, 0) for t in AMBIGNQ_SHARES)
    if not n:
        return []
    return [TypeRow(t, (k := counts.get(t, 0)), k / n, wilson(k, n), expected) for t, expected in AMBIGNQ_SHARES.items()]


def time_rows(seconds: Iterable[tuple[str, float]]) -> list[TimeRow]:
    """(person, seconds of one annotation), the busiest first."""
    by_person: dict[str, list[float]] = defaultdict(list)
    for person, value in seconds:
        by_person[person].append(value)
    rows = [TimeRow(person, len(v), float(median(v)), sum(v) / 3600) for person, v in by_person.items()]
    return sorted(rows, key=lambda r: (-r.n, r.person))


# ---------------------------------------------------------------- labels


def label_figure(marks: Iterable[PersonLabel], name: str = "kappa of labels", *, samples: int = BOOTSTRAP_SAMPLES) -> Figure:
    """Fleiss' kappa over all people, or Cohen's for two."""
    return _kappa(name, [{m.person: m.label for m in unit} for unit in _latest(marks)], samples)


def label_pairs(marks: Iterable[PersonLabel], *, samples: int = BOOTSTRAP_SAMPLES) -> list[PairRow]:
    """Cohen's kappa and the share of equal labels of every pair of people with a thing in common."""
    shared: dict[tuple[str, str], list[tuple[Hashable, Hashable]]] = defaultdict(list)
    for unit in _latest(marks):
        for a, b in combinations(unit, 2):
            shared[a.person, b.person].append((a.label, b.label))
    rows = []
    for people, labels in shared.items():
        equal = mean_figure("equal", [float(a == b) for a, b in labels], "", samples=samples)
        rows.append(PairRow(*people, len(labels), (cohen_kappa(labels, samples=samples), equal)))
    return sorted(rows, key=lambda r: (-r.n, r.first, r.second))


def majority(labels: Iterable[str]) -> str | None:
    """The label that more people chose than any other; None for a tie or nobody.

    >>> majority(["correct", "correct", "wrong"]), majority(["correct", "wrong"])
    ('correct', None)
    """
    top = Counter(labels).most_common(2)
    return None if not top or (len(top) == 2 and top[0][1] == top[1][1]) else top[0][0]


def judge_row(
    judge: str, pairs: Sequence[tuple[bool, bool]], *, samples: int = BOOTSTRAP_SAMPLES, noun: str = "answer"
) -> JudgeRow:
    """`pairs`: (the judge says yes, people's majority says yes) for each thing that both judged."""
    table = Counter(pairs)
    agreed, judge_only, people_only, neither = (table[p] for p in ((True, True), (True, False), (False, True), (False, False)))
    empty = f"no {noun} was judged by people and by this judge"
    kappa = cohen_kappa(pairs, samples=samples)
    return JudgeRow(
        judge,
        len(pairs),
        mean_figure("accuracy", [float(a == b) for a, b in pairs], empty, samples=samples),
        kappa if pairs else Figure(kappa.name, None, None, 0, empty),
        agreed / (agreed + judge_only) if agreed + judge_only else None,
        agreed / (agreed + people_only) if agreed + people_only else None,
        (agreed, judge_only, people_only, neither),
    )


def system_row(
    system: str,
    judged: Mapping[str, Sequence[str]],
    sets: Sequence[tuple[AnswerSet, Sequence[AnswerSet]]],
    finals: Sequence[tuple[AnswerSet, Sequence[AnswerSet]]] = (),
    *,
    samples: int = BOOTSTRAP_SAMPLES,
) -> SystemRow:
    """`judged`: question -> majority label of each judged answer.  `sets`: the system's answer set and people's for each
    question; `finals`: the same with the final answer sets."""
    shares = [sum(v == "correct" for v in labels) / len(labels) for labels in judged.values() if labels]
    f1s, final_f1s = (
        [fmean(set_f1(answers, theirs) for theirs in others) for answers, others in compared if others]
        for compared in (sets, finals)
    )
    return SystemRow(
        system,
        dict(Counter(v for labels in judged.values() for v in labels)),
        mean_figure("correct", shares, "nobody judged an answer of this system", samples=samples),
        mean_figure("F1 with people", f1s, "nobody wrote an answer set for its questions", samples=samples),
        mean_figure("F1 with final answers", final_f1s, "none of its questions has a final answer set", samples=samples),
        alpha_masi([[answers, *people] for answers, people in sets if people], samples=samples),
    )
