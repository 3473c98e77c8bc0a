"""The Store's contract: predictions, judgments, annotations, leases, evaluations."""

from __future__ import annotations

import dataclasses
import math
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from storage_samples import earlier_labels, fill, known, prediction

from core import types as t
from core.annotating.labels import LABELS
from core.errors import ConflictError, InputError, NotFoundError, StorageError
from storage.records.gate import check_annotation
from storage.records.results import JudgmentConflictError
from storage.schema import engine, tables
from storage.schema.creation import head
from storage.store import Store


@pytest.fixture
def saved(store: Store) -> str:
    return store.predictions.save_prediction(prediction())


def test_a_key_stores_a_run_once(store: Store) -> None:
    first = store.predictions.save_prediction(prediction(), key="run")
    assert store.predictions.save_prediction(prediction(), key="run") == first
    assert store.predictions.save_prediction(prediction()) != first
    assert store.maintenance.counts()["prediction"] == 2
    with pytest.raises(ConflictError, match="names another run"):
        store.predictions.save_prediction(prediction("Something else?"), key="run")


def test_one_question_has_one_row_and_an_id_is_never_shared(store: Store) -> None:
    ids = [store.predictions.save_prediction(p) for p in (prediction(), prediction(system="fid"), prediction("Other?", id="x"))]
    assert store.maintenance.counts()["question"] == 2
    # the same id with another text: a digest stands in for it
    other = store.predictions.get_prediction(store.predictions.save_prediction(prediction("Third?", id="x")))
    assert other.question_id != "x"
    assert other.prediction.question.id == "x"
    assert store.predictions.get_prediction(ids[2]).question_id == "x"
    again = store.predictions.save_prediction(prediction("Other?", id="x", system="fid"))
    assert store.predictions.get_prediction(again).question_id == "x"


def test_unknown_ids_are_not_found(store: Store) -> None:
    assert store.predictions.find_prediction("nope") is None
    with pytest.raises(NotFoundError, match="nope"):
        store.predictions.get_prediction("nope")
    with pytest.raises(NotFoundError, match="nope"):
        store.evaluations.evaluation_report("nope")


def test_recent_predictions_search_and_page(store: Store) -> None:
    ids = [store.predictions.save_prediction(prediction(wording)) for wording in ("Straße 100%?", "who_was it?", "STRASSE?")]
    recent = store.predictions.recent_predictions
    assert [p.id for p in recent(10)] == ids[::-1]
    assert [p.id for p in recent(1, offset=1)] == [ids[1]]
    assert [p.id for p in recent(10, text="strasse")] == [ids[2], ids[0]]  # case folding beyond ASCII
    assert [p.id for p in recent(10, text="%")] == [ids[0]]  # no wildcard
    assert [p.id for p in recent(10, text="o_w")] == [ids[1]]
    (summary,) = recent(1)
    assert (summary.system, summary.corpus, summary.answers) == ("ambigprompt", "starter", ("Natalie Wood", "Rachel Zegler"))
    for limit, offset in ((0, 0), (501, 0), (1, -1)):
        with pytest.raises(InputError):
            recent(limit, offset)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"question": t.Question("  ")}, "empty"),
        ({"question": t.Question("a\0b")}, "NUL"),
        ({"seconds": math.nan}, "finite"),
        ({"seconds": -1.0}, "seconds"),
        ({"system": t.SystemInfo("s", {"path": Path("x")})}, "PosixPath|WindowsPath"),
        ({"system": t.SystemInfo("s", {"big": 2**64})}, "64 bits"),
        ({"answers": (t.Answer("x", 1.5),)}, "probability"),
    ],
)
def test_what_cannot_be_stored_is_refused_before_the_database(store: Store, change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        store.predictions.save_prediction(dataclasses.replace(prediction(), **change))
    assert store.maintenance.counts()["prediction"] == store.maintenance.counts()["question"] == 0


def test_a_damaged_trace_is_named(store: Store, path: Path, saved: str) -> None:
    for trace in ("{", "{}", '{"question": 3}'):
        with store.database.writing() as session:
            session.connection().exec_driver_sql("UPDATE prediction SET trace = ?", (trace,))
        with pytest.raises(StorageError, match=saved):
            store.predictions.get_prediction(saved)


def test_a_judgment_changes_and_keeps_its_history(store: Store, saved: str) -> None:
    first = store.labels.judge(saved, 0, "Ada", "wrong", "hm")
    assert (first.version, first.verdict, first.note, first.state) == (1, "wrong", "hm", "submitted")
    second = store.labels.judge(saved, 0, "Ada", "correct", expected_version=1)
    assert (second.version, second.created) == (2, first.created)
    assert second.updated > first.updated
    assert store.labels.judgments(saved) == [second]
    (earlier,) = earlier_labels(store, saved, 0, "Ada")
    assert (earlier.version, earlier.verdict, earlier.note, earlier.saved) == (1, "wrong", "hm", first.updated)
    assert (earlier.replaced >= second.created, earlier.cleared) == (True, False)


def test_a_stale_save_is_a_conflict_with_both_sides(store: Store, saved: str) -> None:
    store.labels.judge(saved, 0, "Ada", "wrong")
    stored = store.labels.judge(saved, 0, "Ada", "correct", "second thoughts", expected_version=1)
    with pytest.raises(JudgmentConflictError, match=r"second thoughts.*yours is 'duplicate'") as refused:
        store.labels.judge(saved, 0, "Ada", "duplicate", "mine", expected_version=1)
    assert refused.value.theirs == stored
    assert (refused.value.mine.verdict, refused.value.mine.note) == ("duplicate", "mine")
    assert store.labels.judgments(saved) == [stored]
    with pytest.raises(ConflictError):
        store.labels.judge(saved, 1, "Ada", "wrong", expected_version=3)  # there is none yet
    with pytest.raises(ConflictError):
        store.labels.clear_judgment(saved, 0, "Ada", expected_version=1)


def test_clearing_keeps_the_history_and_no_version_returns(store: Store, saved: str) -> None:
    store.labels.judge(saved, 0, "Ada", "wrong")
    assert store.labels.clear_judgment(saved, 0, "Ada", expected_version=1)
    assert not store.labels.clear_judgment(saved, 0, "Ada")
    assert store.labels.judgments(saved) == []
    with pytest.raises(ConflictError, match="cleared"):
        store.labels.judge(saved, 0, "Ada", "correct", expected_version=1)
    assert store.labels.judge(saved, 0, "Ada", "correct", expected_version=0).version == 2
    assert [(h.version, h.cleared) for h in earlier_labels(store, saved, 0, "Ada")] == [(1, True)]


def test_everybody_judges_for_themselves(store: Store, saved: str) -> None:
    store.labels.judge(saved, 1, "Bob", "wrong")
    store.labels.judge(saved, 0, "Ada", "correct")
    store.labels.judge(saved, 1, "Ada", None, state="skipped")
    assert [(j.position, j.annotator) for j in store.labels.judgments(saved)] == [(0, "Ada"), (1, "Bob"), (1, "Ada")]
    assert [j.verdict for j in store.labels.judgments(saved, "Ada")] == ["correct", None]
    assert store.people.annotators() == ["Bob", "Ada"]


def test_wrong_judgments_are_refused(store: Store, saved: str) -> None:
    bad: list[tuple[dict[str, Any], str]] = [
        ({"label": "right"}, ", ".join(LABELS)),
        ({"label": None}, "label"),
        ({"state": "done"}, "draft, submitted, skipped"),
        ({"note": "a\0"}, "NUL"),
        ({"note": "x" * 20_001}, "20001"),
        ({"annotator": " "}, "empty"),
        ({"annotator": "a\nb"}, "control"),
    ]
    for change, words in bad:
        with pytest.raises(InputError, match=words):
            store.labels.judge(**{"prediction_id": saved, "position": 0, "annotator": "Ada", "label": "wrong", **change})
    with pytest.raises(NotFoundError, match="2 answers"):
        store.labels.judge(saved, 2, "Ada", "wrong")
    with pytest.raises(NotFoundError, match="no prediction"):
        store.labels.judge("x", 0, "Ada", "wrong")
    assert store.maintenance.counts()["judgment"] == store.maintenance.counts()["annotator"] == 0


_PAIRS = (t.QAPair("Who in 1961?", ("Natalie Wood", "Wood"), ("p1",)), t.QAPair("Who in 2021?", ("Rachel Zegler",)))


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (t.Annotation("multiple", _PAIRS[:1]), "two pairs"),
        (t.Annotation("single", _PAIRS), "A single answer was chosen"),
        (t.Annotation("none", _PAIRS), "'No answer' was chosen"),
        (t.Annotation("single", (t.QAPair("Q?", ()),)), "Write the answer"),
        (t.Annotation("multiple", (t.QAPair("", ("a",)), t.QAPair("Q?", ("b",)))), "Pair 1: Write the question"),
        (t.Annotation("maybe"), "single, multiple, none"),
        (t.Annotation("single", (t.QAPair("Q?\0", ("a",)),)), "NUL"),
    ],
)
def test_incomplete_annotations_are_refused(annotation: t.Annotation, words: str) -> None:
    with pytest.raises(InputError, match=words):
        check_annotation(annotation, complete=True)


def test_an_evaluation_that_cannot_be_stored_is_refused(store: Store) -> None:
    with pytest.raises(InputError, match="finite"):
        store.evaluations.save_evaluation(system="s", corpus="c", questions="q", metrics={"F1": math.nan}, report={})


def test_counts_and_health_of_a_filled_database(store: Store) -> None:
    fill(store)
    counts = store.maintenance.counts()
    expected = {"question": 2, "prediction": 2, "predicted_answer": 5, "annotator": 3, "judgment": 6}
    assert {name: counts[name] for name in expected} == expected
    health = store.maintenance.health(full=True)
    assert (health.ok, health.revision, health.backup_age_seconds) == (True, head(), None)
    assert health.journal == ("wal" if store.database.path else "")
    assert health.bytes > 0


def test_a_missing_backup_is_told(store: Store, path: Path) -> None:
    assert any("no backup" in w for w in store.maintenance.health().warnings)
    store.maintenance.backup()
    age = store.maintenance.health().backup_age_seconds
    assert 0 <= age < 60


@pytest.mark.sqlite
def test_every_connection_has_the_pragmas(durable: None, store: Store) -> None:
    expected = {"foreign_keys": 1, "journal_mode": "wal", "busy_timeout": 10_000, "synchronous": 2}
    with store.database.reading() as session:
        run = session.connection().exec_driver_sql
        assert {pragma: run(f"PRAGMA {pragma}").scalar() for pragma in expected} == expected


def test_reads_take_no_writer_lock_and_writes_do(store: Store, path: Path) -> None:
    with store.database.reading() as session:
        assert session.scalar(text("SELECT count(*) FROM question")) == 0
        store.predictions.save_prediction(prediction())  # a writer is not held up by an open read
        assert session.scalar(text("SELECT count(*) FROM question")) == 0  # and the read is of its moment
    with closing(sqlite3.connect(path, timeout=0)) as other, store.database.writing() as session:
        assert session.scalar(text("SELECT count(*) FROM question")) == 1  # a read, but in a write transaction
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("INSERT INTO annotator (name, created) VALUES ('x', '')")


def test_a_writer_that_waits_too_long_says_so(url: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "BUSY_TIMEOUT_MS", 20)
    with Store(url) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError, match=r"another program has been writing.*do it again"):
            known(store, "Ada")
        other.execute("ROLLBACK")
        assert known(store, "Ada").name == "Ada"


def test_times_need_a_zone_and_come_back_in_utc(store: Store) -> None:
    moment = datetime(2026, 1, 1, 3, 0, tzinfo=timezone(timedelta(hours=9)))
    with store.database.writing() as session:
        session.add(tables.Annotator(name="Ada", created=moment))
    created = known(store, "Ada").created
    assert (created, created.utcoffset()) == (moment, timedelta(0))
    with pytest.raises(StorageError, match="no time zone"), store.database.writing() as session:
        session.add(tables.Annotator(name="Bob", created=moment.replace(tzinfo=None)))
