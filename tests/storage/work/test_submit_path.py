"""How far a submission travels: at most ten functions in six modules, and its content is turned into JSON once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from annotation_samples import project, take, work

from core.settings import ROOT
from storage.store import Store
from storage.work import submissions

STORAGE = ROOT / "storage"
# What a submission may set off is not on its way: the second of an item has their disagreement computed, the last opens the validation.
# Not counted: the engine (transactions, column types); records and their own checks; functions that only check (`check_...`, and
# that the item was opened); and what access check and log do behind their doors, `actor` and `note`, the same for every method.
UNCOUNTED = ("schema", "records")
CHECKS = ("check_", "need_task", "_distinct")
BEHIND_DOORS = {"people": ("actor", "note")}


@contextmanager
def passed() -> Iterator[set[tuple[str, str]]]:
    """(module, function) of storage that are called, as far as they count."""
    found: set[tuple[str, str]] = set()

    def look(frame: FrameType, event: str, _argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event != "call" or not path.is_relative_to(STORAGE):
            return
        module, name = path.relative_to(STORAGE), frame.f_code.co_name
        room = module.parts[0]
        if room in UNCOUNTED or name.startswith((*CHECKS, "<")) or name not in BEHIND_DOORS.get(room, (name,)):
            return
        found.add((str(module), name))

    sys.setprofile(look)
    try:
        yield found
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("people", [1, 2])
def test_a_submission_takes_a_short_way(store: Store, people: int) -> None:
    made = project(store, 2, annotators_per_item=people)
    item = take(store, made, "Ada").item
    draft = store.drafts.save_draft(item, "Ada", "generation", {"text": "half"})
    with passed() as found:
        store.submissions.submit(
            item, "Ada", "generation", work("a", "b"), seconds=5, draft_body={"text": "all"}, expected_version=0
        )
    assert draft.version == 1
    assert ("work/submissions.py", "submit") in found
    assert ("work/completion.py", "add_version") in found
    assert len(found) <= 10, sorted(found)
    assert len({module for module, _ in found}) <= 6, sorted(found)


def test_the_content_becomes_json_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    times: list[Any] = []
    real = submissions.to_json

    def counting(value: Any) -> Any:
        times.append(value)
        return real(value)

    monkeypatch.setattr(submissions, "to_json", counting)
    made = project(store, 1)
    item = take(store, made, "Ada").item
    sent = store.submissions.submit(item, "Ada", "generation", work("a", "b"), seconds=5)
    assert times == [sent.content]
    counts = store.maintenance.counts()
    assert (counts["submission"], counts["annotation"], counts["qa_pair"]) == (1, 0, 0)
