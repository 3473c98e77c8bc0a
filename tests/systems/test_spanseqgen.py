"""SpanSeqGen: passages reranked by the reader, joined into one row, answers written in sequence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reading_fakes import TableRetriever
from tiny_models import word_tokenizer

from core import types as t
from core.errors import InputError
from core.models.seq2seq.fid import load_fid, make_fid, save_fid
from core.models.seq2seq.network import FidConfig
from core.models.span.reader import Readout
from core.settings import Settings
from core.systems import SYSTEMS
from core.systems.base.base import Options, Parts, answer
from core.systems.spanseqgen import TOKENS, rerank_with

PASSAGES = tuple(t.Passage(str(i), f"T{i}", text) for i, text in enumerate(["A car.", "The ball is red.", "A blue ball."]))


class Reader:
    """Abstains from each passage with a given probability."""

    def __init__(self, *abstains: float) -> None:
        self.abstains = abstains

    def read(self, question: str, passages: list[t.Passage], candidates: int = 5) -> list[Readout]:
        return [Readout(p, (), a) for p, a in zip(passages, self.abstains)]


def test_the_reader_puts_the_passages_that_answer_first() -> None:
    found = [t.RetrievedPassage(p, i, 1.0) for i, p in enumerate(PASSAGES, 1)]
    assert [p.passage.id for p in rerank_with(Reader(0.9, 0.2, 0.2))("q", found)] == ["1", "2", "0"]  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def folder(make_tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    tokenizer = word_tokenizer("t5")
    network = make_fid(make_tiny("t5"), tokenizer, FidConfig("separate", max_answer_tokens=8, target="spliced"))
    path = tmp_path_factory.mktemp("spanseqgen") / "t5"
    save_fid(network, path, tokenizer=tokenizer)
    return path


def test_all_passages_are_read_as_one_row_in_the_readers_order(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.systems.spanseqgen.load_reader", lambda *_: (Reader(0.9, 0.2, 0.1), "r1"))
    parts = Parts(Settings(seq2seq=str(folder), device="cpu"), None)
    system = SYSTEMS.resolve("spanseqgen")(parts, Options(clarify=False))
    network: Any = load_fid(str(folder), "cpu")[0].network
    jobs: list[Any] = []
    collate = network.collate

    def kept(tokenizer: Any, given: Any, max_tokens: Any = None) -> Any:
        jobs.extend([given, max_tokens])
        return collate(tokenizer, given, max_tokens)

    monkeypatch.setattr(network, "collate", kept, raising=False)
    prediction = answer(system, t.Question("colour of the ball?", passages=PASSAGES))
    assert jobs[1] == TOKENS == 1024
    assert jobs[0][0][1] == [("T2", "A blue ball. T1 : The ball is red. T0 : A car.")]
    assert prediction.answers
    assert [(p.passage.id, p.rank) for p in prediction.passages] == [("2", 1), ("1", 2), ("0", 3)]  # as they are read
    settings = prediction.system.settings
    assert (settings["rerank"], settings["tokens"], settings["reader_digest"]) == ("reader", 1024, "r1")


def test_the_best_of_a_larger_pool_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.systems.spanseqgen.load_reader", lambda *_: (Reader(0.9, 0.2, 0.1), "r1"))
    retriever = TableRetriever(list(PASSAGES))
    parts = Parts(Settings(seq2seq=str(folder), device="cpu"), retriever)
    build = SYSTEMS.resolve("spanseqgen")
    prediction = answer(build(parts, Options(top_k=1, clarify=False, extra={"pool": 3})), t.Question("colour of the ball?"))
    assert [p.passage.id for p in prediction.passages] == ["0"]  # the last one retrieved
    none = answer(build(parts, Options(top_k=1, clarify=False, extra={"rerank": "none"})), t.Question("colour of the ball?"))
    assert [p.passage.id for p in none.passages] == ["1"]  # the first one
    with pytest.raises(InputError, match="pool"):
        build(parts, Options(extra={"pool": 0}))


def test_without_a_reranker_no_reader_is_loaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.systems.spanseqgen.load_reader", lambda *_: pytest.fail("loaded"))
    parts = Parts(Settings(seq2seq=str(folder), device="cpu"), None)
    system = SYSTEMS.resolve("spanseqgen")(parts, Options(clarify=False, extra={"rerank": "none"}))
    assert "reader" not in system.info.settings
    with pytest.raises(InputError, match="the option rerank is 'bert'; use reader or none"):
        SYSTEMS.resolve("spanseqgen")(parts, Options(extra={"rerank": "bert"}))
