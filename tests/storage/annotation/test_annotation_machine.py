"""The whole workflow as a state machine, against a model of plain dictionaries.

The model knows what people did, not how slots are given: who gets which slot is read from the store and held against what must
be true of any way to give them.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from annotation_samples import multiple, questions, single, task_of, work
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from core.errors import InputError
from core.types import Annotation
from storage.records.annotation import GenerationWork, SourcesChangedError, ValidationWork
from storage.records.projects import AUTOMATIC
from storage.schema import engine
from storage.store import Store

PEOPLE = ("Ada", "Bob", "Cleo")
VALIDATOR = "Vera"
MINUTES = 10


@dataclass
class Mine:
    """What the model holds of one person's work on one item."""

    versions: list[Annotation] = field(default_factory=list)  # all ever submitted; undone ones too
    draft: dict[str, Any] | None = None
    draft_open: bool = False
    skipped: bool = False
    seen_at: datetime | None = None  # last sign of life


class Workflow(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.time = datetime(2026, 1, 1, tzinfo=UTC)
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(engine, "now", lambda: self.time)
        self.patch.setattr(engine, "SYNCHRONOUS", "OFF")
        self.store = Store(f"sqlite:///{Path(self.folder.name) / 'machine.db'}")
        self.mine: dict[tuple[str, str], Mine] = {}
        self.validated: dict[str, int] = {}  # item -> versions that the validator submitted
        self.number = 0

    def teardown(self) -> None:
        self.store.close()
        self.patch.undo()
        self.folder.cleanup()

    @initialize(people=st.integers(1, 2))
    def start(self, people: int) -> None:
        self.people = people
        self.project = self.store.projects.create_project(
            "Mia",
            "machine",
            stages=("generation", "validation"),
            annotators_per_item=people,
            lease_minutes=MINUTES,
            thresholds={"must_read": 0},
        ).id
        self.add_items(2)

    @property
    def items(self) -> list[str]:
        return [i.id for i in self.store.items.items(self.project, "Mia", stage="generation", limit=500)]

    def work_of(self, item: str, name: str) -> Mine:
        return self.mine.setdefault((item, name), Mine())

    def pick(self, data: st.DataObject) -> tuple[str, str, Mine]:
        """Some person and an item that they opened."""
        item, name = data.draw(st.sampled_from(sorted(self.mine)))
        return item, name, self.mine[(item, name)]

    def done_by_hand(self, item: str) -> bool:
        found = self.store.submissions.submissions(self.project, "Mia", item=item, stage="validation", counted=True)
        return any(not s.automatic for s in found)

    # ------------------------------------------------------------ what people do

    @rule(count=st.integers(1, 2))
    def add_items(self, count: int) -> None:
        self.store.intake.add_items("Mia", self.project, questions(count, start=self.number))
        self.number += count

    @rule(name=st.sampled_from(PEOPLE))
    def claim(self, name: str) -> None:
        before = {(t.item, t.state) for t in self.store.queue.tasks(self.project, name, annotator=name, stage="generation")}
        task = self.store.queue.next_item(self.project, name, "generation")
        if task is None:
            assert not {s for _, s in before} & {"leased", "returned"}
            return
        own = self.work_of(task.item, name)
        assert task.state in ("leased", "returned")
        assert task.slot is not None
        assert not own.skipped
        own.seen_at = self.time

    @precondition(lambda self: self.mine)
    @rule(data=st.data(), text=st.sampled_from("xyz"))
    def draft(self, data: st.DataObject, text: str) -> None:
        item, name, own = self.pick(data)
        saved = self.store.drafts.save_draft(item, name, "generation", {"text": text})
        own.draft, own.draft_open, own.seen_at = {"text": text}, True, self.time
        assert saved.body == {"text": text}

    @precondition(lambda self: self.mine)
    @rule(data=st.data(), answers=st.sampled_from([("a",), ("b",), ("a", "b")]))
    def submit(self, data: st.DataObject, answers: tuple[str, ...]) -> None:
        item, name, own = self.pick(data)
        task = task_of(self.store, item, name)
        assert task is not None
        if task.slot is not None and self.done_by_hand(item):
            if task.state != "submitted" or self.last(item, name) != work(*answers).annotation:
                with pytest.raises(InputError, match="validated already"):
                    self.store.submissions.submit(item, name, "generation", work(*answers), seconds=1)
            return
        sent = self.store.submissions.submit(item, name, "generation", work(*answers), seconds=1)
        if sent.version > len(own.versions):
            own.versions.append(work(*answers).annotation)
            own.draft_open, own.skipped = False, False
        assert sent.version == len(own.versions)

    @precondition(lambda self: self.mine)
    @rule(data=st.data())
    def skip(self, data: st.DataObject) -> None:
        item, name, own = self.pick(data)
        task = task_of(self.store, item, name)
        assert task is not None
        if task.state == "submitted":
            with pytest.raises(InputError, match="undo that first"):
                self.store.queue.skip_item(item, name, "generation", "hard")
            return
        assert self.store.queue.skip_item(item, name, "generation", "hard").slot is None
        own.skipped = True

    @precondition(lambda self: self.mine)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        item, name, _ = self.pick(data)
        task = task_of(self.store, item, name)
        assert task is not None
        if task.state in ("leased", "expired", "returned"):
            assert self.store.queue.release_item(item, name, "generation").slot is None

    @precondition(lambda self: self.mine)
    @rule(data=st.data())
    def undo(self, data: st.DataObject) -> None:
        item, name, own = self.pick(data)
        task = task_of(self.store, item, name)
        assert task is not None
        if task.state == "skipped":
            assert self.store.returns.undo(item, name, "generation").state in ("leased", "expired")
            own.skipped, own.seen_at = False, self.time
        elif task.state != "submitted" or (task.slot is not None and self.done_by_hand(item)):
            with pytest.raises(InputError):
                self.store.returns.undo(item, name, "generation")
        else:
            after = self.store.returns.undo(item, name, "generation")
            if after.state == "submitted":
                assert after.version == len(own.versions) + 1
                earlier = self.last(item, name)
                assert earlier in own.versions
                own.versions.append(earlier)
            else:
                own.draft_open, own.seen_at = own.draft is not None, self.time

    @rule(minutes=st.sampled_from([1, MINUTES + 1]))
    def expire(self, minutes: int) -> None:
        self.time += timedelta(minutes=minutes)

    @precondition(lambda self: self.mine)
    @rule(data=st.data())
    def send_back(self, data: st.DataObject) -> None:
        item, name, own = self.pick(data)
        task = task_of(self.store, item, name)
        assert task is not None
        if task.state != "submitted" or (task.slot is not None and self.done_by_hand(item)):
            with pytest.raises(InputError):
                self.store.returns.return_item(item, name, "generation", "look again", by=VALIDATOR)
            return
        back = self.store.returns.return_item(item, name, "generation", "look again", by=VALIDATOR)
        assert (back.state, back.slot) == ("returned", task.slot)
        own.draft_open = own.draft is not None

    @rule(answers=st.sampled_from([("a",), ("a", "b")]))
    def validate(self, answers: tuple[str, ...]) -> None:
        task = self.store.queue.next_item(self.project, VALIDATOR, "validation")
        if task is None:
            return
        content = ValidationWork(single(*answers) if len(answers) == 1 else multiple(*answers))
        try:
            self.store.submissions.submit(task.item, VALIDATOR, "validation", content, seconds=1)
        except SourcesChangedError:  # leased while it was open, and sent back since
            assert self.store.items.get_item(task.item, "Mia").states["validation"] == "waiting"
            return
        self.validated[task.item] = self.validated.get(task.item, 0) + 1

    def last(self, item: str, name: str) -> Annotation:
        content = self.store.submissions.submission_history(item, name, "generation", name)[-1].content
        assert isinstance(content, GenerationWork)
        return content.annotation

    # ------------------------------------------------------------ what is always true

    @invariant()
    def never_more_than_the_number_count(self) -> None:
        for item in self.items if hasattr(self, "project") else ():
            tasks = [t for t in self.store.queue.tasks(self.project, "Mia", stage="generation", limit=500) if t.item == item]
            slots = [t.slot for t in tasks if t.slot is not None]
            assert len(slots) == len(set(slots)) <= self.people
            assert all(slot < self.people for slot in slots)
            counted = self.store.submissions.submissions(self.project, "Mia", stage="generation", item=item, counted=True)
            assert len(counted) <= self.people
            states = self.store.items.get_item(item, "Mia").states
            assert (states["generation"] == "done") == (len(counted) == self.people)
            if states["generation"] != "done":
                assert states["validation"] == "waiting"
            # work over the number only while the others fill all slots
            if any(t.over for t in tasks):
                assert len(slots) == self.people

    @invariant()
    def nothing_submitted_is_ever_lost(self) -> None:
        for (item, name), own in self.mine.items():
            found = self.store.submissions.submission_history(item, name, "generation", name)
            assert [s.content.annotation for s in found if isinstance(s.content, GenerationWork)] == own.versions
            assert [s.version for s in found] == list(range(1, len(own.versions) + 1))

    @invariant()
    def drafts_survive(self) -> None:
        for (item, name), own in self.mine.items():
            draft = self.store.drafts.find_draft(item, name, "generation")
            if own.draft_open:
                assert draft is not None
                assert not draft.submitted
            if own.draft is not None:
                assert draft is not None
                assert draft.body == own.draft

    @invariant()
    def validations_are_kept(self) -> None:
        for item, versions in self.validated.items():
            assert len(self.store.submissions.submission_history(item, VALIDATOR, "validation", "Mia")) == versions
        if hasattr(self, "project"):
            found = self.store.submissions.submissions(self.project, "Mia", stage="validation", counted=True, limit=500)
            assert len({s.item for s in found}) == len(found)
            assert all(s.automatic == (s.annotator == AUTOMATIC) for s in found)


def test_the_workflow_against_a_model() -> None:
    run_state_machine_as_test(
        Workflow,
        settings=settings(
            max_examples=4,
            stateful_step_count=30,
            derandomize=True,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
