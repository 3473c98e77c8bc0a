"""What feeds the quality page: which words count, bounds that are told, and who may ask."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from test_export_formats import work

from core.errors import InputError, NotAllowedError, NotFoundError
from storage.analysis import agreement
from storage.analysis.agreement import quality
from storage.exchange import votes
from storage.results.standing import chunked
from storage.schema import engine
from storage.store import Store


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, str]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "SYNCHRONOUS", "OFF")
        with Store(f"sqlite:///{tmp_path_factory.mktemp('quality') / 'ambiscope.db'}") as store:
            yield store, work(store)


def test_everything_of_a_project(worked: tuple[Store, str]) -> None:
    store, made = worked
    found = quality(store, "Mia", project=made, samples=20)
    alpha, f1, types, _ = found.figures
    assert (f1.n, f1.value) == (2, 0.75)  # one of two answers shared, and the same single answer
    assert alpha.n == 2
    assert types.value == 1.0
    assert [(r.first, r.second, r.n) for r in found.pairs] == [("Ada", "Bob", 2)]
    assert found.labels.value == 1.0  # both judges said the same
    assert found.labels.n == 4
    assert found.question_labels.value == 1.0
    assert found.preferences.value is None  # one item, one word: chance is certain
    assert {t.type: t.count for t in found.types} == {"multiple": 2, "single": 2, "none": 0}
    assert {t.person: t.n for t in found.times} == {"Ada": 3, "Bob": 3, "Val": 1}
    by_name = {s.system: s for s in found.systems}
    assert by_name["ambigprompt"].labels == {"correct": 2}
    assert by_name["fid"].labels == {"correct": 1, "wrong": 1}
    assert by_name["ambigprompt"].f1.value == pytest.approx((1.0 + 0.5) / 2)  # against Ada's, against Bob's
    assert found.missing == {"ambigprompt": 1, "fid": 1}  # Maria Lopez, whom both judges added to the one sheet
    judges = {j.judge: j for j in found.judges}
    assert judges["round trip passed: the question fits"].n == 4
    assert found.truncated == ()
    assert quality(store, "Mia", samples=20).figures == found.figures


def test_a_further_form_of_a_given_answer_was_not_missing(worked: tuple[Store, str]) -> None:
    store, made = worked
    item = next(i.id for i in store.items.items(made, "Mia", stage="judging") if i.question == "Who played part 0?")
    added = {item: {("natalie wood", "n wood"), ("r zegler", "rachel zegler"), ("nobody",)}}
    with store.database.reading() as session:
        assert agreement._missing(session, added) == {"ambigprompt": 1, "fid": 1}  # fid gave Nobody, ambigprompt Rachel Zegler


def test_filters(worked: tuple[Store, str]) -> None:
    store, _ = worked
    alone = quality(store, "Mia", people=("Ada",), samples=20)
    assert alone.figures[1].value is None
    assert alone.figures[1].why
    assert {t.person for t in alone.times} == {"Ada"}
    later = quality(store, "Mia", since=engine.now() + timedelta(hours=1), samples=20)
    assert (later.items, later.types, later.systems) == ((), (), ())
    with pytest.raises(NotFoundError):
        quality(store, "Mia", project="nowhere")
    with pytest.raises(InputError, match="unknown annotator"):
        quality(store, "Mia", people=("Zoe",))


def test_bounds_are_told(worked: tuple[Store, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("MAX_ITEMS", 1), ("MAX_LABELS", 2), ("MAX_TIMES", 3), ("chunked", partial(chunked, size=1))):
        monkeypatch.setattr(agreement, name, value)
    monkeypatch.setattr(votes, "chunked", partial(chunked, size=1))
    found = quality(worked[0], "Mia", samples=20)
    assert found.figures[1].n == 1
    assert found.labels.n == 2
    assert sum(t.n for t in found.times) == 3
    assert len(found.truncated) == 3


def test_annotators_may_not_see_it(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "SYNCHRONOUS", "OFF")
    with Store(f"sqlite:///{tmp_path / 'x.db'}") as store:
        store.people.add_person("Mia", "Mia", "manager", password="long enough")
        store.people.add_person("Mia", "Ada", "annotator")
        store.people.add_person("Mia", "Val", "validator")
        with pytest.raises(NotAllowedError):
            quality(store, "Ada")
        assert quality(store, "Val", samples=5).figures[0].why
