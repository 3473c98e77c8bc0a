"""Adds questions, gold references and linked predictions to a project."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from core.errors import AmbiscopeError, InputError, NotFoundError
from core.text import answer_key, answer_keys, question_key, stored_name
from core.trace import to_json
from core.types import Annotation, AnnotationType, Prediction, QAPair, ReferenceQuestion
from storage.access.actors import actor, rights_of
from storage.access.log import note
from storage.access.permissions import allowed_to
from storage.annotation.linked_predictions import link, link_all, linked_count
from storage.annotation.places import STAGE_ROLES, item_row, project_row
from storage.annotation.queue_order import bulk, margins_of, set_margins, table_of
from storage.records.checks import MAX_ID_CHARS, MAX_QUESTION_CHARS, check_key, check_text, plain_problem
from storage.records.contents import Corrections, gold_from_json
from storage.records.gate import check_annotation, check_gold
from storage.records.projects import MIXED_SLOTS, ItemsReport, TableQuestion
from storage.records.results import MAX_REASONS, RejectedRowsError
from storage.results.predictions import plain_trace, put_prediction, question_digest, same_question
from storage.results.standing import chunked
from storage.schema import engine, tables, workbench

MAX_ITEMS = 1_000_000  # of one project
MAX_QUESTIONS = 20_000  # of one call: they are stored in one transaction, for which others wait
_NewItem = tuple[ReferenceQuestion, dict[str, Any]]  # with its columns of `Intake._checked`


def question_ids(session: Session, questions: Sequence[ReferenceQuestion]) -> list[int]:
    """The rows of these questions, created if needed: storage.results.predictions.question_row for many."""
    ids: dict[tuple[str, str], int] = {}
    q = tables.Question

    def read_ids(keys: Collection[tuple[str, str]]) -> None:
        stored: dict[str, list[Any]] = defaultdict(list)
        for row in session.execute(select(q.id, q.text, q.source_id).where(q.text.in_([text for text, _ in keys]))):
            stored[row.text].append(row)
        matches = ((key, same_question(stored[key[0]], key[1])) for key in keys)
        ids.update({key: match.id for key, match in matches if match is not None})

    for part in chunked(questions):
        keys = dict.fromkeys((question.question, question.id) for question in part)
        read_ids(keys)
        new = [key for key in keys if key not in ids]
        public_ids = set(session.scalars(select(q.public_id).where(q.public_id.in_([name for _, name in new]))))
        rows = []
        for text, name in new:
            public = question_digest(name, text) if not name or name in public_ids else name
            public_ids.add(public)
            rows.append(
                {"public_id": public, "source_id": name, "text": text, "folded": text.casefold(), "created": engine.now()}
            )
        if rows:
            bulk(session, insert(table_of(q)), rows)
            read_ids(new)
    return [ids[(question.question, question.id)] for question in questions]


def _passage_key(passages: Sequence[dict[str, Any]] | None) -> str:
    """The text of a question's own passages, without their ids, because one question over two texts is two questions; "" if it
    has none."""
    return "" if passages is None else json.dumps([[p["title"], p["text"]] for p in passages])


def _last_position(session: Session, project: workbench.Project) -> int:
    """The position of the last item; -1 if there are none."""
    last = session.scalar(
        select(func.max(workbench.ProjectItem.position)).where(workbench.ProjectItem.project_id == project.id)
    )
    return -1 if last is None else last


def _place(number: int, question: ReferenceQuestion) -> str:
    """The name of a question in an error."""
    return f"row {question.row}" if isinstance(question, TableQuestion) else f"question {number}"


def _assignees(session: Session, project: workbench.Project, questions: Sequence[ReferenceQuestion]) -> dict[str, int]:
    """Name -> id of the people to whom the table assigns questions at the first stage.  Raises RejectedRowsError with the rows
    of others."""
    stage = project.stages[0]
    rows = [
        (question.row, question.assignee) for question in questions if isinstance(question, TableQuestion) and question.assignee
    ]
    known = set(session.scalars(select(tables.Annotator.name)))
    ids: dict[str, int] = {}
    rejected = []
    for row, name in rows:
        try:
            if stored_name(name) not in known:
                raise InputError(f"there is nobody named '{name[:80]}'; people are added on Manage, under People")
            if name not in ids:
                ids[name] = rights_of(session, stored_name(name), STAGE_ROLES[stage]).id
        except AmbiscopeError as error:
            rejected.append((row, f"column assignee: {error}"))
    if rejected:
        raise RejectedRowsError(None, tuple(rejected[:MAX_REASONS]), len(rejected), "row")
    return ids


class Intake(engine.Part):
    """The part of the Store that adds questions and predictions to a project."""

    @allowed_to("manage projects")
    def add_items(self, user: str, project: str, questions: Sequence[ReferenceQuestion], *, gold: bool = False) -> ItemsReport:
        """Adds questions at the end, all or none, and then links stored predictions.  A question that is there already, or comes twice, is
        left alone: the same by `core.text.question_key`, whatever its id, with the same passages of its own.

        `gold`: their annotations become the reference of gold items, which are mixed into the work.  Questions of a table (TableQuestion) say
        so themselves, and whom they are assigned to.  Raises NotAllowedError unless `user` is a manager, NotFoundError,
        InputError for more than MAX_QUESTIONS at once, naming the first wrong question by its number, or every assignee who is unknown
        or may not work at the project's first stage, by row.
        """
        if len(questions) > MAX_QUESTIONS:
            raise InputError(
                f"{len(questions):,} questions: at most {MAX_QUESTIONS:,} are added at once; split the file into smaller ones (of a file "
                f"with a question a line: split -l {MAX_QUESTIONS} FILE) and add them one after the other"
            )
        items = [(question, self._checked(number, question, gold)) for number, question in enumerate(questions, 1)]
        while (added := self._add(user, project, items)) is None:
            pass
        number, count = added
        linked = link_all(self.database, number)
        if linked:
            self._note_linked(user, number, linked)
        texts = {question.question for question, body in items if body["gold"]}
        return ItemsReport(count, len(questions) - count, linked, self._unmatched_gold(number, texts))

    def _unmatched_gold(self, project: int, texts: Collection[str]) -> tuple[str, ...]:
        """The gold questions to judge whose linked predictions have none of the right answers."""
        queue, item, line, answer = workbench.ItemStage, workbench.ProjectItem, workbench.ItemPrediction, tables.PredictedAnswer
        query = (
            select(tables.Question.text, item.gold, answer.text.label("answer"))
            .join(item, item.question_id == tables.Question.id)
            .join(queue, queue.item_id == item.id)
            .join(line, line.item_id == item.id)
            .join(answer, answer.prediction_id == line.prediction_id)
            .where(item.project_id == project, queue.stage == "judging", queue.gold == True)  # noqa: E712
            .order_by(item.position)
        )
        has_right_answer: dict[str, bool] = {}
        if texts:
            with self.reading() as session:
                for row in session.execute(query):
                    if row.text in texts:
                        pairs = [pair for reference in gold_from_json(row.gold) for pair in reference.pairs]
                        right = answer_keys(alias for pair in pairs for alias in pair.answers)
                        has_right_answer[row.text] = (
                            has_right_answer.get(row.text, False) or not pairs or answer_key(row.answer) in right
                        )
        return tuple(text for text, is_found in has_right_answer.items() if not is_found)

    def _add(self, user: str, project: str, items: Sequence[_NewItem]) -> tuple[int, int] | None:
        """(the project's row, the number added); None if somebody else added to the project since it was read."""
        with self.reading() as session:
            actor(session, user, "manager")
            row = project_row(session, project)
            if row.stages == ["validation"] and any(body["gold"] for _, body in items):
                raise InputError(
                    "this project only validates, and validation has no gold items: add the questions as ordinary ones"
                )
            last_position = _last_position(session, row)
            new = self._new_items(session, row, items)
        with self.writing() as session:
            manager = actor(session, user, "manager")
            row = project_row(session, project)
            if _last_position(session, row) != last_position:
                return None
            assignees = _assignees(session, row, [question for question, _ in items])
            count = self._put(session, row, new, assignees)
            gold = any(body["gold"] for _, body in new)
            note(session, manager.id, "items added", project=row.id, details={"added": count, "gold": gold})
            if assignees:
                assigned = sum(isinstance(question, TableQuestion) and bool(question.assignee) for question, _ in new)
                details = {"stage": row.stages[0], "items": assigned, "names": sorted(assignees)}
                note(session, manager.id, "items assigned", project=row.id, details=details)
            return row.id, count

    def _note_linked(self, user: str, project: int, count: int) -> None:
        with self.writing() as session:
            manager = actor(session, user, "manager")
            note(session, manager.id, "predictions linked", project=project, details={"linked": count})

    @staticmethod
    def _new_items(session: Session, project: workbench.Project, items: Sequence[_NewItem]) -> list[_NewItem]:
        """The questions that the project doesn't have, each the first of its kind.  Raises as `add_items`."""
        item = workbench.ProjectItem
        keys = {question_key(question.question) for question, _ in items}
        if "validation" in project.stages and "generation" not in project.stages:
            for number, (question, _) in enumerate(items, 1):
                if not question.annotations:
                    raise InputError(
                        f"{_place(number, question)} has no answers: this project validates the answers of its question file, as nobody writes "
                        "any; add questions with answers, or make a project with the stage generation"
                    )
        texts = (
            select(item.id, tables.Question.text)
            .join(tables.Question, tables.Question.id == item.question_id)
            .where(item.project_id == project.id)
            .execution_options(yield_per=10_000)
        )
        keys_by_item = {key: words for key, text in session.execute(texts) if (words := question_key(text)) in keys}
        seen_keys: set[tuple[str, str]] = set()
        for part in chunked(sorted(keys_by_item)):
            for key, passages in session.execute(select(item.id, item.passages).where(item.id.in_(list(part)))):
                seen_keys.add((keys_by_item[key], _passage_key(passages)))
        new = []
        for question, body in items:
            content = _passage_key(body["passages"])
            identity = (question_key(question.question), content)
            if identity not in seen_keys:
                seen_keys.add(identity)
                if content and not question.id:  # then it is known by its text and by its own passages
                    question = replace(question, id=hashlib.sha256(content.encode()).hexdigest()[:16])
                new.append((question, body))
        return new

    def _put(
        self,
        session: Session,
        project: workbench.Project,
        items: Sequence[_NewItem],
        assignees: Mapping[str, int] = MappingProxyType({}),
    ) -> int:
        """Stores the questions whose row isn't in the project yet and returns their number.  `assignees`: the ids of the people
        whom a table names."""
        item = workbench.ProjectItem
        ids = question_ids(session, [question for question, _ in items])
        present: set[int] = set()
        for part in chunked(ids):
            present.update(
                session.scalars(select(item.question_id).where(item.project_id == project.id, item.question_id.in_(list(part))))
            )
        first, moment = _last_position(session, project) + 1, engine.now()
        rows: list[dict[str, Any]] = []
        assigned: list[int | None] = []
        for question, (reference, body) in zip(ids, items, strict=True):
            if question in present:
                continue
            present.add(question)
            assigned.append(assignees.get(reference.assignee) if isinstance(reference, TableQuestion) else None)
            rows.append(
                {
                    "public_id": uuid.uuid4().hex,
                    "project_id": project.id,
                    "question_id": question,
                    "position": first + len(rows),
                    "created": moment,
                    **body,
                }
            )
        if first + len(rows) > MAX_ITEMS:
            raise InputError(f"a project holds at most {MAX_ITEMS} items")
        bulk(session, insert(table_of(item)), rows)
        item_ids = session.scalars(
            select(item.id).where(item.project_id == project.id, item.position >= first).order_by(item.position)
        ).all()
        is_gold = [row["gold"] is not None for row in rows]
        entries = [
            {
                "project_id": project.id,
                "item_id": number,
                "stage": stage,
                "gold": gold,
                "slots": MIXED_SLOTS if gold else 1 if stage == "validation" else project.annotators_per_item,
                "state": "waiting" if stage == "validation" and "generation" in project.stages else "open",
            }
            for number, gold in zip(item_ids, is_gold, strict=True)
            for stage in project.stages
            if not (gold and stage == "validation")
        ]
        bulk(session, insert(table_of(workbench.ItemStage)), entries)
        assignments = [
            {"item_id": number, "stage": project.stages[0], "annotator_id": person, "created": moment}
            for number, person in zip(item_ids, assigned, strict=True)
            if person is not None
        ]
        if assignments:
            bulk(session, insert(table_of(workbench.Assignment)), assignments)
        return len(rows)

    @staticmethod
    def _checked(number: int, question: ReferenceQuestion, gold: bool) -> dict[str, Any]:
        """The columns of an item that come from its question.  Raises InputError naming the question by its number."""
        name = _place(number, question)
        gold = gold or (isinstance(question, TableQuestion) and question.gold)
        check_text(question.question, name, limit=MAX_QUESTION_CHARS, empty=False)
        check_text(question.id, f"the id of {name}", limit=MAX_ID_CHARS)
        try:
            for annotation in question.annotations:
                check_annotation(annotation, complete=False)
            if gold:
                check_gold(question.annotations)
        except InputError as e:
            raise InputError(f"{name}: {e}") from None
        passages = None if question.passages is None else to_json(question.passages)
        if problem := plain_problem(passages):
            raise InputError(f"{name}: its passages cannot be stored: {problem}")
        references = to_json(question.annotations)
        return {
            "gold": {"annotations": references} if gold else None,
            "references": references,
            "passages": passages,
            "domain": str(question.extra.get("domain") or ""),
        }

    @allowed_to("manage projects")
    def add_prediction(
        self, user: str, project: str, prediction_id: str, *, struck: Collection[int] = (), added: Sequence[str] = ()
    ) -> str:
        """Makes an item of a stored prediction's question, links the prediction, and returns the item's id.  Its suggestions
        are the prediction's answers without the `struck` ones (by position) and with the `added` texts.  If nobody writes
        answers, those are validated.

        Raises NotAllowedError unless `user` is a manager, NotFoundError for an unknown project or prediction, InputError for a question that
        is in the project already, and where the project has no place for this system.
        """
        for text in added:
            check_text(text, "an added answer", limit=MAX_ID_CHARS, empty=False)
        with self.writing() as session:
            manager, row = actor(session, user, "manager"), project_row(session, project)
            prediction = session.scalar(select(tables.Prediction).filter_by(public_id=prediction_id))
            if prediction is None:
                raise NotFoundError(f"there is no prediction '{prediction_id[:80]}'")
            side = row.systems.index(prediction.system) if prediction.system in row.systems else len(row.systems)
            if side > 1 or ("judging" in row.stages and side == len(row.systems)):
                systems = " and ".join(row.systems)
                raise InputError(
                    f"the project takes answers of {systems}, not of {prediction.system}: change its systems first"
                )
            question_row = session.get_one(tables.Question, prediction.question_id)
            answer = tables.PredictedAnswer
            answers = session.scalars(select(answer).filter_by(prediction_id=prediction.id).order_by(answer.position)).all()
            selected = [(a.text, a.clarified or "") for a in answers if a.position not in struck]
            selected += [(text, "") for text in added]
            default = question_row.text if len(selected) > 1 else ""
            pairs = tuple(QAPair(question or default, (text,)) for text, question in selected)
            kind: AnnotationType = "none" if not selected else "single" if len(selected) == 1 else "multiple"
            references = (Annotation(kind, pairs),) if "generation" not in row.stages and "validation" in row.stages else ()
            question = ReferenceQuestion(question_row.source_id, question_row.text, references)
            body = self._checked(1, question, False)
            body["corrections"] = to_json(Corrections(prediction_id, len(answers), tuple(sorted(struck)), tuple(added)))
            if not self._put(session, row, self._new_items(session, row, [(question, body)])):
                raise InputError("this question is in the project already")
            item = session.scalars(
                select(workbench.ProjectItem).filter_by(project_id=row.id, question_id=question_row.id)
            ).one()
            link(session, row, [(item.id, side, prediction.id)])
            if row.ordering == "uncertainty":
                set_margins(session, margins_of(session, [item.id]))
            details = {"added": 1, "prediction": prediction_id, "item": item.public_id}
            note(session, manager.id, "items added", project=row.id, details=details)
            return item.public_id

    @allowed_to("manage projects")
    def link_predictions(self, user: str, project: str) -> int:
        """Links the newest stored prediction of each of the project's systems to each item that lacks one, and
        returns how many were linked.  With the order `uncertainty` their margins are read from the traces.

        Raises NotAllowedError unless `user` is a manager, NotFoundError.
        """
        with self.reading() as session:
            actor(session, user, "manager")
            number = project_row(session, project).id
        count = link_all(self.database, number)
        self._note_linked(user, number, count)
        return count

    @allowed_to("manage projects")
    def unanswered(self, user: str, project: str, items: Sequence[str] | None = None) -> frozenset[str]:
        """The items (or these of them) that lack a prediction of one of the project's systems, so that nobody can judge them
        yet.

        Raises NotAllowedError unless `user` is a manager, NotFoundError.
        """
        queue, item = workbench.ItemStage, workbench.ProjectItem
        with self.reading() as session:
            actor(session, user, "manager")
            row = project_row(session, project)
            query = select(item.public_id).join(queue, queue.item_id == item.id)
            query = query.where(queue.project_id == row.id, queue.stage == "judging", queue.state == "open")
            query = query.where(queue.gold == False, linked_count(item.id) < len(row.systems))  # noqa: E712
            if items is not None:
                query = query.where(item.public_id.in_(list(items)))
            return frozenset(session.scalars(query))

    @allowed_to("manage projects")
    def save_for_item(self, user: str, item: str, prediction: Prediction, key: str | None = None) -> bool:
        """Stores a prediction of an item's question and links it, unless the item has one of its system already; True if it did.

        One transaction that looks at this item alone, so that it costs the same however large the project is.  `key` as in
        `save_prediction`.  Raises NotAllowedError unless `user` is a manager, NotFoundError, InputError for another question, for a system
        that is not the project's, or for what cannot be stored, ConflictError for another run's key.
        """
        trace = plain_trace(prediction)
        check_key(key)
        with self.writing() as session:
            manager = actor(session, user, "manager")
            row = item_row(session, item)
            project = session.get_one(workbench.Project, row.project_id)
            system = prediction.system.name
            if system not in project.systems:
                raise InputError(f"{system} is no system of the project: choose it in the project's settings first")
            prediction_row = put_prediction(session, prediction, trace, key)
            if prediction_row.question_id != row.question_id:
                raise InputError(f"the prediction is of another question than the item: '{prediction.question.text[:80]}'")
            if not link(session, project, [(row.id, project.systems.index(system), prediction_row.id)]):
                return False
            if project.ordering == "uncertainty":
                set_margins(session, margins_of(session, [row.id]))
            # the item in the details: a line of the log that refers to it would keep it from being removed
            note(session, manager.id, "predictions linked", project=project.id, details={"linked": 1, "item": item})
            return True
