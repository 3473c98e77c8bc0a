"""The final answer set of each finished item: the one place that decides what a team agreed on.  Exports, snapshots, Quality
and gold items read it.

An item of a project is finished when everybody whom it takes has submitted and, in a project that validates, somebody (or agreement) has
validated it.  What is out of a file has no slots and nobody to wait for: each of its answer sets is final.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, get_args

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.annotating.agreement import settled
from core.types import Annotation
from storage.exchange.filters import Filters
from storage.records.enumerations import Stage
from storage.results.standing import AnnotationRecord, WrittenSet, chunked, written
from storage.schema import workbench

# why an item has no final answer set
LEFT_OUT = ("items_unfinished", "items_sent_back", "items_waiting_for_validation", "items_in_disagreement")


@dataclass(frozen=True, slots=True)
class FinalSet:
    """The one answer set of a finished item, or one from a file.  `stage`: where it was settled.  `people`: its authors,
    several if they agreed.  `version` and `created` are those of its last part."""

    question: int  # its row
    stage: str
    people: tuple[str, ...]
    annotation: Annotation
    version: int
    created: datetime
    updated: datetime


@dataclass(frozen=True, slots=True)
class FinalSets:
    """`finals`: question -> its final answer sets that pass the filters, those from files first, then by item.  `written`: the
    questions that somebody writes or wrote answers to."""

    finals: dict[int, list[FinalSet]] = field(default_factory=dict)
    written: set[int] = field(default_factory=set)


def outcome_of(
    session: Session, questions: Sequence[int], counted: Iterable[AnnotationRecord], filters: Filters, counts: Counter[str]
) -> FinalSets:
    """The final answer sets of these questions.  Counts the items without one (LEFT_OUT).

    `counted`: the answer sets that count; those of projects among them are not read, as an item has its own.
    """
    finals: dict[int, list[FinalSet]] = defaultdict(list)
    if not filters.project:
        for record in _filed([record for record in counted if not record.in_project]):
            finals[record.question].append(record)
    sets: dict[int, list[WrittenSet]] = defaultdict(list)
    for entry in written(session, questions):
        sets[entry.item].append(entry)
    unfinished: set[int] = set()
    for item, question, states in _writing_stages(session, questions, filters):
        final = _of_item(question, states, sets.get(item, ()))
        if isinstance(final, FinalSet):
            finals[question].append(final)
        else:
            counts[final] += 1
            unfinished.add(question)
    passing = {question: [final for final in values if _passes(filters, final)] for question, values in finals.items()}
    return FinalSets({question: values for question, values in passing.items() if values}, unfinished | finals.keys())


def final_of(session: Session, item: workbench.ProjectItem) -> FinalSet | None:
    """The final answer set of one item that isn't a gold item; None if it has none yet."""
    for number, question, states in _writing_stages(session, [item.question_id], Filters()):
        if number == item.id:
            outcome = _of_item(question, states, [entry for entry in written(session, [question]) if entry.item == number])
            return outcome if isinstance(outcome, FinalSet) else None
    return None


def _of_item(question: int, states: dict[str, str], sets: Sequence[WrittenSet]) -> FinalSet | str:
    """The final answer set of an item, or a value of LEFT_OUT. `states`: those of its writing and validating stages."""
    counted = [entry for entry in sets if entry.holds_slot]
    generations = [entry for entry in counted if entry.stage == "generation"]
    validation = next((entry for entry in counted if entry.stage == "validation"), None)
    if "validation" in states and validation is not None:
        authors = (generations if validation.automatic else []) or [validation]
        return _final(question, "validation", authors, validation.annotation, validation.version)
    if any(
        entry.state == "returned" and entry.slot is not None for entry in sets
    ):  # late work that was returned keeps nothing waiting
        return "items_sent_back"
    if "validation" in states:
        return "items_waiting_for_validation" if states["validation"] == "open" else "items_unfinished"
    if states["generation"] != "done" or not generations:
        return "items_unfinished"
    outcome = settled([entry.annotation for entry in generations])
    if outcome is None:
        return "items_in_disagreement"
    annotation, authors_of = outcome
    authors = [generations[number] for number in authors_of]
    return _final(question, "generation", authors, annotation, max(author.version for author in authors))


def _final(question: int, stage: str, authors: Sequence[WrittenSet], annotation: Annotation, version: int) -> FinalSet:
    people = tuple(author.annotator for author in authors)
    return FinalSet(
        question,
        stage,
        people,
        annotation,
        version,
        max(author.began for author in authors),
        max(author.created for author in authors),
    )


def _filed(records: Sequence[AnnotationRecord]) -> list[FinalSet]:
    """Answer sets from files, each of them final; only the validations of a question if there are any."""
    validated = {record.question for record in records if record.stage == "validation"}
    return [
        FinalSet(r.question, r.stage, (r.annotator,), r.annotation, r.version, r.created, r.updated)
        for r in records
        if r.stage == "validation" or r.question not in validated
    ]


def _writing_stages(session: Session, questions: Sequence[int], filters: Filters) -> list[tuple[int, int, dict[str, str]]]:
    """(item, question, state by stage) of these questions' items that somebody writes or validates, by item, without gold
    items."""
    queue, item = workbench.ItemStage, workbench.ProjectItem
    query = (
        select(item.id, item.question_id, queue.stage, queue.state)
        .join(queue, queue.item_id == item.id)
        .where(item.gold.is_(None), queue.stage.in_(get_args(Stage)))
        .order_by(item.id)
    )
    if filters.project:
        query = query.join(workbench.Project, workbench.Project.id == item.project_id)
        query = query.where(workbench.Project.public_id == filters.project)
    items: dict[int, tuple[int, int, dict[str, str]]] = {}
    for part in chunked(questions):
        row: Any
        for row in session.execute(query.where(item.question_id.in_(part))):
            items.setdefault(row.id, (row.id, row.question_id, {}))[2][row.stage] = row.state
    return list(items.values())


def _passes(filters: Filters, final: FinalSet) -> bool:
    return (
        (not filters.annotators or not set(final.people).isdisjoint(filters.annotators))
        and (not filters.stages or final.stage in filters.stages)
        and (filters.since is None or final.updated >= filters.since)
        and (filters.until is None or final.updated < filters.until)
    )
