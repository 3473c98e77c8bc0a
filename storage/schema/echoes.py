"""What was written twice before schema 0007: submitted work, whose echo in `annotation` and `judgment` exports read then.

A stored value, present or earlier, is an echo where the same person submitted the same (of the same question and stage, or of the same
answer) and nothing else was stored between the submission and it; a draft, where it follows an echo and says the same: the work was
returned or reopened.  Echoes go, everything else stays: labels of Explore, annotations out of files, what differs, what was cleared,
and a value that counts though its submission does not.  Tables are described here as schema 0007 has them: the migration reads them too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Integer, Text, and_, case, column, delete, select, table

from storage.schema.base import Flag, JsonText, UtcDateTime

CHUNK = 200  # questions, or rows that go, at a time
_Key = tuple[Any, ...]  # question, stage, person; or predicted answer, person


def _table(name: str, plain: str, **typed: Any) -> Any:
    columns = [column(key, Integer()) for key in plain.split()]
    return table(name, *columns, *(column(key, kind) for key, kind in typed.items()))


_TIME = UtcDateTime()
_ITEM = _table("project_item", "id question_id")
_TASK = _table("task", "item_id annotator_id version slot", stage=Text(), state=Text())
_SENT = _table("submission", "id item_id annotator_id version", stage=Text(), body=JsonText(), automatic=Flag(), created=_TIME)
_PREDICTION = _table("prediction", "id question_id", public_id=Text())
_ANSWER = _table("predicted_answer", "id prediction_id position")
_ANNOTATION = _table(
    "annotation", "id question_id annotator_id version", stage=Text(), type=Text(), state=Text(), updated=_TIME
)
_PAIR = _table("qa_pair", "id annotation_id position", question=Text(), answers=JsonText(), passage_ids=JsonText())
_ANNOTATION_REVISION = _table(
    "annotation_revision", "id question_id annotator_id version", stage=Text(), state=Text(), body=JsonText(), saved=_TIME
)
_LABEL = "id predicted_answer_id annotator_id version"
_JUDGMENT = _table("judgment", _LABEL, verdict=Text(), note=Text(), state=Text(), updated=_TIME)
_JUDGMENT_REVISION = _table("judgment_revision", _LABEL, verdict=Text(), note=Text(), state=Text(), saved=_TIME, cleared=Flag())


@dataclass(frozen=True, slots=True)
class _Value:
    """A row of `annotation`, `judgment`, or of their revisions."""

    table: Any
    id: int
    content: Any
    state: str
    version: int
    saved: datetime
    cleared: bool = False

    @property
    def present(self) -> bool:
        return self.table in (_ANNOTATION, _JUDGMENT)


@dataclass(frozen=True, slots=True)
class _Sent:
    content: Any
    created: datetime
    counts: bool


def take_out(connection: Connection, questions: Sequence[int] | None = None) -> Counter[str]:
    """Takes the echoes of these questions (rows; None: of all) out of their tables.  Returns how many rows of each table went."""
    if questions is None:
        query = select(_ITEM.c.question_id).join(_SENT, _SENT.c.item_id == _ITEM.c.id).distinct()
        questions = list(connection.scalars(query.order_by(_ITEM.c.question_id)))
    gone: Counter[str] = Counter()
    for start in range(0, len(questions), CHUNK):
        sent, values = _sent(connection, questions[start : start + CHUNK]), defaultdict(list)
        for key, value in _values(connection, questions[start : start + CHUNK]):
            values[key].append(value)
        doomed: dict[Any, list[int]] = defaultdict(list)
        for key in values.keys() & sent.keys():
            for value in _echoes(sorted(values[key], key=lambda one: one.version), sent[key]):
                doomed[value.table].append(value.id)
        for where, ids in doomed.items():
            gone[where.name] += len(ids)
            for first in range(0, len(ids), CHUNK):
                part = ids[first : first + CHUNK]
                if where is _ANNOTATION:
                    connection.execute(delete(_PAIR).where(_PAIR.c.annotation_id.in_(part)))
                connection.execute(delete(where).where(where.c.id.in_(part)))
    return gone


def _echoes(values: Sequence[_Value], sent: Sequence[_Sent]) -> Iterator[_Value]:
    """`values`: of one key, by version."""
    before: _Value | None = None  # the echo that stands directly before
    for value in values:
        same = [one for one in sent if one.content == value.content and one.created <= value.saved]
        if value.state == "submitted":
            other = [one.saved for one in values if one is not value and one.saved < value.saved]
            echo = any(all(saved < one.created for saved in other) for one in same)
        else:
            echo = bool(same) and before is not None and before.content == value.content
        before = value if echo else None
        counts = any(one.counts and one.content == value.content for one in sent)
        if echo and not value.cleared and (counts or not value.present or value.state != "submitted"):
            yield value


def _sent(connection: Connection, questions: Sequence[int]) -> dict[_Key, list[_Sent]]:
    same = (_TASK.c.item_id == _SENT.c.item_id, _TASK.c.stage == _SENT.c.stage, _TASK.c.annotator_id == _SENT.c.annotator_id)
    stands = and_(_TASK.c.version == _SENT.c.version, _TASK.c.state == "submitted", _TASK.c.slot.is_not(None))
    query = (
        select(
            _ITEM.c.question_id,
            _SENT.c.stage,
            _SENT.c.annotator_id,
            _SENT.c.body,
            _SENT.c.created,
            case((stands, 1), else_=0).label("counts"),
        )
        .join(_ITEM, _ITEM.c.id == _SENT.c.item_id)
        .join(_TASK, and_(*same))
        .where(_ITEM.c.question_id.in_(questions), _SENT.c.automatic == False)  # noqa: E712
        .order_by(_SENT.c.id)
    )
    rows = connection.execute(query).all()
    named = {one["prediction_id"] for row in rows for one in row.body.get("answers", ())}
    places = select(_PREDICTION.c.public_id, _ANSWER.c.position, _ANSWER.c.id).join(
        _ANSWER, _ANSWER.c.prediction_id == _PREDICTION.c.id
    )
    found = connection.execute(places.where(_PREDICTION.c.question_id.in_(questions), _PREDICTION.c.public_id.in_(named)))
    answers = {(name, position): number for name, position, number in found}
    sent: dict[_Key, list[_Sent]] = defaultdict(list)
    for row in rows:
        if row.stage != "judging":
            content = _annotation(row.body["annotation"])
            sent[row.question_id, row.stage, row.annotator_id].append(_Sent(content, row.created, bool(row.counts)))
        for one in row.body.get("answers", ()):
            answer = answers.get((one["prediction_id"], one["position"]))
            sent[answer, row.annotator_id].append(_Sent((one["verdict"], one["note"]), row.created, bool(row.counts)))
    return sent


def _values(connection: Connection, questions: Sequence[int]) -> Iterator[tuple[_Key, _Value]]:
    rows = connection.execute(select(_ANNOTATION).where(_ANNOTATION.c.question_id.in_(questions))).all()
    pairs: dict[int, list[Any]] = defaultdict(list)
    mine = select(_PAIR).where(_PAIR.c.annotation_id.in_([row.id for row in rows])).order_by(_PAIR.c.position)
    for pair in connection.execute(mine):
        pairs[pair.annotation_id].append({"question": pair.question, "answers": pair.answers, "passage_ids": pair.passage_ids})
    for row in rows:
        content = _annotation({"type": row.type, "pairs": pairs[row.id]})
        yield (
            (row.question_id, row.stage, row.annotator_id),
            _Value(_ANNOTATION, row.id, content, row.state, row.version, row.updated),
        )
    earlier = select(_ANNOTATION_REVISION).where(_ANNOTATION_REVISION.c.question_id.in_(questions))
    for row in connection.execute(earlier):
        yield (
            (row.question_id, row.stage, row.annotator_id),
            _Value(_ANNOTATION_REVISION, row.id, _annotation(row.body), row.state, row.version, row.saved),
        )
    for where, time in ((_JUDGMENT, _JUDGMENT.c.updated), (_JUDGMENT_REVISION, _JUDGMENT_REVISION.c.saved)):
        query = (
            select(where, time.label("time"))
            .join(_ANSWER, _ANSWER.c.id == where.c.predicted_answer_id)
            .join(_PREDICTION, _PREDICTION.c.id == _ANSWER.c.prediction_id)
            .where(_PREDICTION.c.question_id.in_(questions))
        )
        for row in connection.execute(query):
            cleared = where is _JUDGMENT_REVISION and row.cleared
            value = _Value(where, row.id, (row.verdict, row.note), row.state, row.version, row.time, cleared)
            yield (row.predicted_answer_id, row.annotator_id), value


def _annotation(body: Any) -> Any:
    """What two annotations are compared by."""
    pairs = [(p["question"], tuple(p["answers"]), tuple(p.get("passage_ids", ()))) for p in body["pairs"]]
    return body["type"], tuple(pairs)
