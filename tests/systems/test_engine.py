from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from serving import with_corpus

from core import types as t
from core.engine import Engine, SystemStatus, statuses
from core.errors import NotFoundError, UnknownNameError
from core.installation.requirements import CHECKS
from core.retrieval.library import BuildOptions
from core.retrieval.vectors import VectorFiles
from core.settings import Settings
from core.systems import SYSTEMS
from core.systems.base.options import Options
from core.systems.base.system import answer, as_retrieved
from core.text import occurrences


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    rows = [("p1", "West", "Natalie Wood played Maria."), ("p2", "Basalt", "Basalt is a dark rock.")]
    return replace(with_corpus(tmp_path / "home", "facts", rows), device="cpu", system="scripted")


@pytest.fixture
def engine(settings: Settings) -> Engine:
    return Engine(settings)


def test_a_system_over_a_corpus(engine: Engine) -> None:
    prediction = answer(engine.system(corpus="facts"), t.Question("Who played Maria?"))
    info = prediction.system
    assert (info.name, info.corpus, info.corpus_digest) == ("scripted", "facts", engine.corpus("facts").digest)
    assert prediction.passages[0].passage.title == "West"


def test_a_corpus_is_opened_once_and_again_after_a_rebuild(engine: Engine, tmp_path: Path) -> None:
    first = engine.corpus("facts")
    assert engine.corpus("facts") is first
    file = tmp_path / "other.tsv"
    file.write_text("id\ttext\ttitle\np9\tGranite is light.\tGranite\n")
    engine.library.create("facts", [file], options=BuildOptions(replace=True))
    again = engine.corpus("facts")
    assert again is not first
    assert again.digest != first.digest
    engine.forget("facts")
    assert engine.corpus("facts") is not again
    for direction in (1.0, -1.0):  # the same passages with other vectors
        np.save(tmp_path / "vectors.npy", direction * np.ones((1, 64), np.float32))
        engine.library.create(
            "facts", [file], options=BuildOptions(replace=True, vectors=VectorFiles((tmp_path / "vectors.npy",)))
        )
        assert engine.corpus("facts").digest == again.digest
        assert engine.corpus("facts").vectors[0, 0] * direction > 0


def test_an_opened_corpus_costs_no_listing(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    first = engine.corpus("facts")
    monkeypatch.setattr(engine.library, "list", lambda: pytest.fail("all corpora were listed"))
    assert engine.corpus("facts") is first
    assert [engine.library.digest(name) for name in ("facts", "nothing")] == [first.digest, ""]
    shutil.rmtree(engine.settings.corpora_dir / "facts")
    with pytest.raises(NotFoundError):
        engine.corpus("facts")


def test_own_passages_get_their_cosines(engine: Engine) -> None:
    """The span model's prior is the similarity that retrieval would have given them."""
    passages = (t.Passage("x", "Maria", "Natalie Wood played Maria."), t.Passage("y", "", "Basalt is dark."))
    system = engine.system("scripted", options=Options(), own_passages=True)
    likely, unlikely = (p.similarity for p in answer(system, t.Question("Who played Maria?", passages=passages)).passages)
    assert [likely, unlikely] == engine.similarity("Who played Maria?", passages)
    assert likely > unlikely
    (single,) = answer(system, t.Question("Who played Maria?", passages=passages[:1])).passages
    assert single.similarity is None  # there is nothing to compare it with, so nothing is encoded
    assert as_retrieved("Who?", passages, None)[0].similarity is None


def test_several_threads_get_one_corpus(engine: Engine) -> None:
    with ThreadPoolExecutor(4) as pool:
        assert len({id(corpus) for corpus in pool.map(engine.corpus, ["facts"] * 4)}) == 1


def test_unknown_names_are_refused(engine: Engine) -> None:
    with pytest.raises(UnknownNameError):
        engine.system("nothing-of-the-kind")
    with pytest.raises(NotFoundError):
        engine.system(corpus="nowhere")


def test_every_system_that_is_shown_has_a_status(tmp_path: Path) -> None:
    assert {s.name for s in statuses(Settings(home=tmp_path))} == {n for n, e in SYSTEMS.items() if not e.hidden}


def status(name: str, home: Path, **changes: str) -> SystemStatus:
    return next(s for s in statuses(Settings(home=home, **changes)) if s.name == name)


SPAN, T5 = '{"kind": "span"}', '{"model_type": "t5"}'


@pytest.mark.parametrize(
    ("system", "checkpoint", "config", "why_not"),
    [
        ("ambigprompt", {"answerer": "no-such-answerer"}, "", "no checkpoint 'no-such-"),
        ("ambigprompt", {"answerer": "FOLDER"}, T5, "holds a t5 model, not a span model"),
        ("ambigprompt", {"answerer": "FOLDER"}, "{}", "holds a model of unknown kind, not a span model"),
        ("ambigprompt", {"answerer": "FOLDER"}, "[]", "is damaged"),
        ("one-pass", {"reader": "no-such-reader"}, "", "no checkpoint 'no-such-"),
        ("one-pass", {"reader": "FOLDER"}, SPAN, ""),
        ("ambigprompt-seq2seq", {}, "", ""),  # bundled
        ("ambigprompt-seq2seq", {"answerer": "FOLDER/nowhere"}, "", "there is no folder"),
        ("ambigprompt-seq2seq", {"answerer": "FOLDER"}, SPAN, "holds a span model"),
        ("ambigprompt-seq2seq", {"answerer": "FOLDER"}, T5, ""),
        ("ambigprompt-seq2seq", {"answerer": "t5-base"}, "", ""),
    ],
)
def test_a_status_says_what_is_missing(
    system: str, checkpoint: dict[str, str], config: str, why_not: str, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(config)
    row = status(system, tmp_path, **{kind: name.replace("FOLDER", str(tmp_path)) for kind, name in checkpoint.items()})
    assert row.ready == (not why_not)
    assert why_not in row.why_not


def test_a_mechanism_only_is_one_with_bundled_weights_and_parts_are_missing_without_a_language_model(tmp_path: Path) -> None:
    assert status("spanseqgen", tmp_path).mechanism_only
    assert status("verdict", tmp_path).missing
    fid = status("fid", tmp_path)
    assert (fid.mechanism_only, fid.missing) == ("", "")
    assert not status("spanseqgen", tmp_path, seq2seq="t5-base").mechanism_only
    assert not status("verdict", tmp_path, lm_url="http://127.0.0.1:9/v1").missing


def test_occurrences_are_whole_words_that_say_something() -> None:
    passages = [t.RetrievedPassage(t.Passage(i, "T", "Oslo, oslo and Osloer; 3 and 1999."), 1, 1.0) for i in "ab"]
    assert [(e.passage_id, e.start) for e in occurrences("Oslo", passages, limit=3)] == [("a", 0), ("a", 6), ("b", 0)]
    assert [e.text for e in occurrences("1999", passages, 1)] == ["1999"]  # a small number says nothing, a year does


def test_settings_say_how_passages_are_found(engine: Engine, settings: Settings) -> None:
    retrieval = engine.system(corpus="facts").info.settings["retrieval"]
    assert retrieval == {"retriever": "hybrid", "index_kind": "flat", "encoder": engine.corpus("facts").manifest.encoder}
    other = Engine(replace(settings, retriever="bm25")).system(corpus="facts").info.settings["retrieval"]
    assert other["retriever"] == "bm25"
    own = engine.system(corpus="no-such-corpus", own_passages=True).info.settings["retrieval"]  # none is opened
    assert own == {"encoder": settings.encoder}  # whose cosines are the prior of passages that a question brings


def test_each_need_of_the_systems_is_looked_for() -> None:
    assert {need for entry in SYSTEMS.values() for need in entry.needs} == set(CHECKS)
