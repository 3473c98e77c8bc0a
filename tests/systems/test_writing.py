"""Systems that write all answers in one pass, and who writes the disambiguated questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reading_fakes import TableReader
from system_fakes import parts, texts
from tiny_models import word_tokenizer

from core import types as t
from core.disambiguation.clarifiers import by_copying
from core.errors import CheckpointError, InputError
from core.models.seq2seq.decoding import locate
from core.models.seq2seq.fid import load_fid, make_fid, save_fid
from core.models.seq2seq.network import FidConfig
from core.settings import Settings
from core.systems import build
from core.systems.base.clarifying import make_clarifier
from core.systems.base.options import ClarifierOptions, Options
from core.systems.base.system import answer
from core.systems.base.writing import WritingSystem
from core.systems.spanseqgen import MAX_JOINED_TOKENS

PASSAGES = tuple(
    t.Passage(str(i), f"T{i}", text)
    for i, text in enumerate(["The ball is red.", "A blue ball.", "The car is green, the ball black."])
)
QUESTION = t.Question("colour of the ball?", passages=PASSAGES)


class FixedWriter:
    """Writes what it was given."""

    def __init__(self, *answers: tuple[str, float]) -> None:
        self.answers = answers

    def write_many(self, jobs: Any) -> list[list[t.Candidate]]:
        return [[t.Candidate(text, p, locate(text, passages)) for text, p in self.answers] for _, passages in jobs]


def run(*answers: tuple[str, float], clarifier: Any = None, **options: Any) -> t.Prediction:
    writer: Any = FixedWriter(*answers)
    return answer(WritingSystem("fid", parts(), Options(**options), writer, ("fid", "d"), clarifier=clarifier), QUESTION)


WRITTEN = (("red", 0.9), ("The red", 0.5), ("black", 0.4), ("blue", 0.3))


def test_the_answers_are_those_written_with_evidence_and_without_repeats() -> None:
    prediction = run(*WRITTEN, clarifier=by_copying)
    distinct = [("red", 0.9, 1), ("black", 0.4, 2), ("blue", 0.3, 3)]
    assert [(a.text, a.probability, a.step) for a in prediction.answers] == distinct
    assert prediction.answers[0].evidence[0].passage_id == "0"
    assert [c.text for c in prediction.steps[0].candidates] == ["red", "The red", "black", "blue"]
    assert [c.question for c in prediction.clarifications] == [""] * 3
    assert texts(run(*WRITTEN, max_answers=2)) == ["red", "black"]
    assert run(*WRITTEN, clarifier=by_copying, clarify=False).clarifications == ()


def test_no_answer_is_a_step_without_a_choice() -> None:
    prediction = run()
    assert (prediction.answers, prediction.steps[0].choice) == ((), None)
    assert prediction.steps[0].stopped_because == prediction.ended


@pytest.fixture(scope="module")
def folder(make_tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    tokenizer = word_tokenizer("t5")
    network = make_fid(make_tiny("t5"), tokenizer, FidConfig("separate", max_answer_tokens=8, target="spliced"))
    path = tmp_path_factory.mktemp("fid") / "t5"
    save_fid(network, path, tokenizer=tokenizer)
    return path


def built(name: str, folder: Path, retriever: Any = None, top_k: int | None = None, **extra: Any) -> Any:
    settings = Settings(seq2seq=str(folder), answerer=str(folder), device="cpu")
    return build(name, parts(settings=settings, retriever=retriever), Options(top_k, clarify=False, extra=extra))


@pytest.mark.parametrize("name", ["fid", "fid-nucleus", "fid-top-k", "fid-diverse-beam", "fid-multi"])
def test_every_variant_runs_over_any_encoder_decoder(name: str, folder: Path) -> None:
    system = built(name, folder)
    prediction = answer(system, QUESTION)
    assert prediction.answers
    assert answer(system, QUESTION).answers == prediction.answers  # sampling has a seed
    decoding = prediction.system.settings["decoding"]
    expected = (1.0, False) if name in ("fid", "fid-multi") else (0.8, True)
    assert (decoding["temperature"], decoding["sequences"] > 1) == expected
    assert (decoding["end_bias"] < 0) == (name == "fid-multi")


def test_options_are_the_variants_own(folder: Path) -> None:
    decoding = built("fid-nucleus", folder, sequences=3, seed=5, top_p=0.5).info.settings["decoding"]
    assert (decoding["sequences"], decoding["seed"], decoding["top_p"]) == (3, 5, 0.5)
    with pytest.raises(InputError, match="top_p is 0"):
        built("fid-nucleus", folder, top_p=0)


def test_weights_that_are_missing_or_of_another_kind(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CheckpointError, match="AMBISCOPE_SEQ2SEQ"):  # they write whole sets, not one answer a step
        built("ambigprompt-seq2seq", folder)
    monkeypatch.setattr("core.models.loading.finding.BUNDLED", tmp_path)
    with pytest.raises(CheckpointError, match="--target spliced"):
        build("fid", parts(), Options(clarify=False))


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Is surer of each passage than of the one before."""
    table = TableReader({}, {"0": 0.9, "1": 0.2, "2": 0.1})
    monkeypatch.setattr("core.systems.spanseqgen.load_reader", lambda *_: (table, "r1"))


@pytest.mark.usefixtures("reader")
def test_all_passages_are_read_as_one_row_in_the_readers_order(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network: Any = load_fid(str(folder), "cpu")[0].network
    calls: list[Any] = []
    collate = network.collate

    def recorded(tokenizer: Any, jobs: Any, max_tokens: Any = None) -> Any:
        calls.append((jobs, max_tokens))
        return collate(tokenizer, jobs, max_tokens)

    monkeypatch.setattr(network, "collate", recorded, raising=False)
    prediction = answer(built("spanseqgen", folder), QUESTION)
    (job, *_), tokens = calls[0]
    assert job[1] == [("T2", "The car is green, the ball black. T1 : A blue ball. T0 : The ball is red.")]
    assert tokens == MAX_JOINED_TOKENS == 1024
    assert [(p.passage.id, p.rank) for p in prediction.passages] == [("2", 1), ("1", 2), ("0", 3)]  # as they are read
    assert prediction.system.settings["reader_digest"] == "r1"


@pytest.mark.usefixtures("reader")
def test_the_best_of_a_larger_pool_are_read(folder: Path) -> None:
    shelf = parts(PASSAGES).retriever
    for pool, expected in ((3, "2"), (2, "1")):
        prediction = answer(built("spanseqgen", folder, shelf, 1, pool=pool), t.Question(QUESTION.text))
        assert [p.passage.id for p in prediction.passages] == [expected]


ANSWERS = [t.Answer("red", 0.9), t.Answer("blue", 0.5)]


def test_copying_rewrites_and_claims_nothing() -> None:
    clarified = list(by_copying("colour?", ANSWERS, PASSAGES))
    assert [(c.answer, c.question, c.passed) for c in clarified] == [("red", "", False), ("blue", "", False)]
    assert next(by_copying("colour?", ANSWERS[:1], PASSAGES)).passed


def test_nothing_is_loaded_that_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.systems.base.clarifying.load_reader", lambda *_: pytest.fail("loaded"))
    assert make_clarifier(ClarifierOptions(), Settings(), clarify=False) == (None, {})
    assert make_clarifier(ClarifierOptions(clarifier="copy"), Settings(), clarify=True) == (by_copying, {})
    missing = Settings(writer="./nowhere-writer")  # the answers keep the prompt question
    assert make_clarifier(ClarifierOptions(), missing, clarify=True) == (by_copying, {})
