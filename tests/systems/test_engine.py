from __future__ import annotations

import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core import types as t
from core.engine import Engine, statuses
from core.errors import NotFoundError, UnknownNameError
from core.installation.requirements import CHECKS
from core.settings import Settings
from core.systems import SYSTEMS
from core.systems.base.options import Options
from core.systems.base.system import answer, as_retrieved
from core.text import occurrences


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", encoder="hashing", device="cpu", system="scripted")


@pytest.fixture
def engine(settings: Settings, tmp_path: Path) -> Engine:
    engine = Engine(settings)
    file = tmp_path / "facts.tsv"
    file.write_text("id\ttext\ttitle\np1\tNatalie Wood played Maria.\tWest\np2\tBasalt is a dark rock.\tBasalt\n")
    engine.library.create("facts", [file])
    return engine


def test_a_system_over_a_corpus(engine: Engine) -> None:
    system = engine.system(corpus="facts")
    prediction = answer(system, t.Question("Who played Maria?"))
    assert prediction.system.name == "scripted"
    assert prediction.system.corpus == "facts"
    assert prediction.system.corpus_digest == engine.corpus("facts").digest
    assert "Natalie Wood" in [a.text for a in prediction.answers]


def test_a_corpus_is_opened_once_and_again_after_a_rebuild(engine: Engine, tmp_path: Path) -> None:
    first = engine.corpus("facts")
    assert engine.corpus("facts") is first
    file = tmp_path / "other.tsv"
    file.write_text("id\ttext\ttitle\np9\tGranite is light.\tGranite\n")
    engine.library.create("facts", [file], replace=True)
    again = engine.corpus("facts")
    assert again is not first
    assert again.digest != first.digest
    engine.forget("facts")
    assert engine.corpus("facts") is not again


def test_an_opened_corpus_costs_no_listing(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    first = engine.corpus("facts")
    monkeypatch.setattr(engine.library, "list", lambda: pytest.fail("all corpora were listed"))
    assert engine.corpus("facts") is first
    assert engine.library.digest("facts") == first.digest
    assert engine.library.digest("nothing") == ""
    shutil.rmtree(engine.settings.corpora_dir / "facts")
    with pytest.raises(NotFoundError):
        engine.corpus("facts")


def test_own_passages_get_their_cosines(engine: Engine) -> None:
    """What retrieval would have said of them is what the span model takes as its prior."""
    passages = (t.Passage("x", "Maria", "Natalie Wood played Maria."), t.Passage("y", "", "Basalt is dark."))
    system = engine.system("scripted", options=Options(), own_passages=True)
    found = answer(system, t.Question("Who played Maria?", passages=passages)).passages
    assert [p.similarity for p in found] == engine.similarity("Who played Maria?", passages)
    assert found[0].similarity > found[1].similarity  # type: ignore[operator]
    single = answer(system, t.Question("Who played Maria?", passages=passages[:1])).passages
    assert single[0].similarity is None  # there is nothing to compare it with, so nothing is encoded
    assert as_retrieved("Who?", passages, None)[0].similarity is None


def test_several_threads_get_one_corpus(engine: Engine) -> None:
    got: list[Any] = []
    threads = [threading.Thread(target=lambda: got.append(engine.corpus("facts"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(c) for c in got}) == 1


def test_own_passages_open_no_corpus(engine: Engine) -> None:
    system = engine.system("scripted", "no-such-corpus", Options(), own_passages=True)
    prediction = answer(system, t.Question("Who?", passages=(t.Passage("x", "T", "Ada Lovelace wrote."),)))
    assert [a.text for a in prediction.answers] == ["Ada Lovelace"]


def test_unknown_names(engine: Engine) -> None:
    with pytest.raises(UnknownNameError):
        engine.system("nothing-of-the-kind")
    with pytest.raises(NotFoundError):
        engine.system(corpus="nowhere")


def test_statuses_say_what_is_missing(tmp_path: Path) -> None:
    missing = Settings(home=tmp_path, answerer="no-such-answerer", reader="no-such-reader")
    rows = {s.name: s for s in statuses(missing)}
    assert set(rows) == {n for n, e in SYSTEMS.items() if not e.hidden}
    for name in ("ambigprompt", "one-pass"):
        assert not rows[name].ready
        assert "no checkpoint 'no-such-" in rows[name].why_not
    folder = tmp_path / "reader"
    folder.mkdir()
    (folder / "config.json").write_text('{"kind": "span"}')
    assert {s.name: s.ready for s in statuses(Settings(home=tmp_path, reader=str(folder)))}["one-pass"]


def test_a_mechanism_only_is_one_with_bundled_weights_and_parts_are_missing_without_a_language_model(tmp_path: Path) -> None:
    def marks(**changes: str) -> dict[str, tuple[str, str]]:
        return {s.name: (s.mechanism_only, s.missing) for s in statuses(Settings(home=tmp_path, **changes))}

    usual = marks()
    assert usual["spanseqgen"][0]
    assert usual["verdict"][1]
    assert usual["fid"] == ("", "")
    assert not marks(seq2seq="t5-base")["spanseqgen"][0]
    assert not marks(lm_url="http://127.0.0.1:9/v1")["verdict"][1]


def test_occurrences() -> None:
    found = [t.RetrievedPassage(t.Passage(str(i), "T", "Oslo, oslo and Osloer; 3 and 1999."), i + 1, 1.0) for i in range(3)]
    assert [(e.passage_id, e.start) for e in occurrences("Oslo", found)] == [(str(i), s) for i in range(3) for s in (0, 6)]
    assert len(occurrences("Oslo", found, limit=4)) == 4
    assert occurrences("3", found) == ()  # a small number says nothing
    assert [e.text for e in occurrences("1999", found, 1)] == ["1999"]  # a year does
    assert occurrences("Bergen", found) == ()


def seq2seq(settings: Settings) -> str:
    return next(s.why_not for s in statuses(settings) if s.name == "ambigprompt-seq2seq")


def test_status_of_the_encoder_decoder(tmp_path: Path) -> None:
    assert seq2seq(Settings(home=tmp_path)) == ""  # bundled
    assert "there is no folder" in seq2seq(Settings(home=tmp_path, answerer=str(tmp_path / "nowhere")))
    config = tmp_path / "config.json"
    config.write_text('{"kind": "span"}')
    assert "holds a span model" in seq2seq(Settings(home=tmp_path, answerer=str(tmp_path)))
    config.write_text('{"model_type": "t5"}')
    settings = Settings(home=tmp_path, answerer=str(tmp_path))
    assert seq2seq(settings) == ""
    span = next(s for s in statuses(settings) if s.name == "ambigprompt")
    assert "holds a t5 model, not a span model" in span.why_not
    assert seq2seq(Settings(home=tmp_path, answerer="t5-base")) == ""


def test_settings_say_how_passages_are_found(engine: Engine, settings: Settings) -> None:
    found = engine.system(corpus="facts").info.settings["retrieval"]
    assert found == {"retriever": "hybrid", "index_kind": "flat", "encoder": engine.corpus("facts").manifest.encoder}
    other = Engine(replace(settings, retriever="bm25")).system(corpus="facts").info.settings["retrieval"]
    assert other["retriever"] == "bm25"
    assert engine.system(own_passages=True).info.settings["retrieval"] == {}


def test_each_need_of_the_systems_is_looked_for() -> None:
    assert {need for entry in SYSTEMS.values() for need in entry.needs} == set(CHECKS)
