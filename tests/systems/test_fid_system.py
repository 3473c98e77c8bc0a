"""fid and its variants, and what the systems with disambiguated questions share: who clarifies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tiny_models import word_tokenizer

from core import types as t
from core.disambiguation.clarifiers import by_copying, by_rewriting
from core.errors import CheckpointError, InputError
from core.models.seq2seq.fid import make_fid, save_fid
from core.models.seq2seq.network import FidConfig
from core.settings import Settings
from core.systems import SYSTEMS
from core.systems.base.base import Options, Parts, answer
from core.systems.base.clarifying import clarifier_options, make_clarifier
from core.systems.base.generative import WrittenAnswers
from core.trace import fold

PASSAGES = tuple(
    t.Passage(str(i), "T", text)
    for i, text in enumerate(["The ball is red.", "A blue ball.", "The car is green, the ball black."])
)
QUESTION = t.Question("colour of the ball?", passages=PASSAGES)
VARIANTS = ["fid", "fid-nucleus", "fid-top-k", "fid-diverse-beam", "fid-multi"]


class Fixed:
    """A Writer that writes what it was given, and keeps what it read."""

    def __init__(self, *answers: tuple[str, float]) -> None:
        self.answers = answers

    def write_many(self, jobs: Any) -> list[list[t.Candidate]]:
        self.jobs = jobs
        return [[t.Candidate(text, p) for text, p in self.answers] for _ in jobs]


def run(question: t.Question = QUESTION, clarifier: Any = None, **options: Any) -> t.Prediction:
    writer = Fixed(("red", 0.9), ("The red", 0.5), ("black", 0.4), ("blue", 0.3))
    system = WrittenAnswers("fid", Parts(Settings(), None), Options(**options), writer, ("fid", "d"), {}, clarifier)  # type: ignore[arg-type]
    return answer(system, question)


def test_the_answers_are_those_written_with_evidence_and_without_repeats() -> None:
    prediction = run()
    assert [(a.text, a.probability, a.step) for a in prediction.answers] == [
        ("red", 0.9, 1),
        ("black", 0.4, 2),
        ("blue", 0.3, 3),
    ]
    assert prediction.answers[0].evidence[0].passage_id == "0"
    assert [c.text for c in prediction.steps[0].candidates] == ["red", "The red", "black", "blue"]
    assert fold(prediction.question, prediction.system, prediction.events) == prediction
    assert isinstance(prediction.events[-1], t.Finished)
    assert prediction.events[-1].why == "one pass; the model ended the sequence"


def test_pinned_banned_and_the_maximum() -> None:
    question = t.Question(QUESTION.text, passages=PASSAGES, pinned=("Violet",), banned=("RED",))
    prediction = run(question)
    assert [(a.text, a.pinned) for a in prediction.answers] == [("Violet", True), ("black", False), ("blue", False)]
    assert [a.text for a in run(question, max_answers=2).answers] == ["Violet", "black"]
    assert isinstance(last := run(max_answers=2).events[-1], t.Finished)
    assert "maximum" in last.why


def test_no_answer_is_a_step_that_says_so() -> None:
    system = WrittenAnswers("fid", Parts(Settings(), None), Options(), Fixed(), ("fid", "d"), {})  # type: ignore[arg-type]
    prediction = answer(system, QUESTION)
    assert prediction.answers == ()
    assert prediction.steps[0].stopped_because == "the model wrote no answer"


def test_a_stopped_run_ends() -> None:
    system = WrittenAnswers("fid", Parts(Settings(), None, cancelled=lambda: True), Options(), Fixed(), ("fid", "d"), {})  # type: ignore[arg-type]
    prediction = answer(system, QUESTION)
    assert isinstance(prediction.events[-1], t.Finished)
    assert prediction.events[-1].why == "stopped by a person"


# ---------------------------------------------------------------- with a model


@pytest.fixture(scope="module")
def folder(make_tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    tokenizer = word_tokenizer("t5")
    network = make_fid(make_tiny("t5"), tokenizer, FidConfig("separate", max_answer_tokens=8, target="spliced"))
    path = tmp_path_factory.mktemp("fid") / "t5"
    save_fid(network, path, tokenizer=tokenizer)
    return path


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_runs_over_any_encoder_decoder(name: str, folder: Path) -> None:
    parts = Parts(Settings(seq2seq=str(folder), device="cpu"), None)
    system = SYSTEMS.resolve(name)(parts, Options(clarify=False))
    prediction = answer(system, QUESTION)
    assert prediction.system.name == name
    assert prediction.answers
    assert answer(system, QUESTION).answers == prediction.answers  # sampling has a seed
    decoding = prediction.system.settings["decoding"]
    assert (decoding["temperature"], decoding["sequences"] > 1) == (
        (1.0, False) if name in ("fid", "fid-multi") else (0.8, True)
    )
    assert (decoding["end_bias"] < 0) == (name == "fid-multi")


def test_options_are_the_variants_own(folder: Path) -> None:
    parts = Parts(Settings(seq2seq=str(folder), device="cpu"), None)
    system = SYSTEMS.resolve("fid-nucleus")(parts, Options(clarify=False, extra={"sequences": 3, "seed": 5, "top_p": 0.5}))
    decoding = system.info.settings["decoding"]
    assert (decoding["sequences"], decoding["seed"], decoding["top_p"]) == (3, 5, 0.5)
    for name, extra, message in (
        ("fid", {"top_p": 0.5}, "fid has no option 'top_p'"),
        ("fid-nucleus", {"top_p": 0}, "top_p is 0"),
        ("fid-top-k", {"sequences": 500}, "500; it must be 1 to 64"),
        ("fid", {"clarifier": "magic"}, "the option clarifier is 'magic'; use round-trip or seq2seq or copy"),
    ):
        with pytest.raises(InputError, match=message):
            SYSTEMS.resolve(name)(parts, Options(extra=extra))


def test_a_missing_checkpoint_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.models.loading.finding.BUNDLED", tmp_path)
    with pytest.raises(CheckpointError, match=r"checkpoint 'fid' is not bundled here; train it with .*--target spliced"):
        SYSTEMS.resolve("fid")(Parts(Settings(), None), Options(clarify=False))


def test_weights_that_write_whole_sets_are_refused_by_the_loop(folder: Path) -> None:
    parts = Parts(Settings(answerer=str(folder), device="cpu"), None)
    with pytest.raises(CheckpointError, match=r"whole answer sets.*AMBISCOPE_SEQ2SEQ"):
        SYSTEMS.resolve("ambigprompt-seq2seq")(parts, Options(clarify=False))


# ---------------------------------------------------------------- who clarifies

ANSWERS = [t.Answer("red", 0.9), t.Answer("blue", 0.5)]


class Rewrites:
    def __init__(self, *candidates: Sequence[str]) -> None:
        self.candidates = candidates

    def rewrite_many(self, jobs: Any) -> list[list[str]]:
        self.jobs = jobs
        return [list(self.candidates[i]) for i in range(len(jobs))]


def test_copying_repeats_the_prompt_and_claims_nothing() -> None:
    clarified = list(by_copying("colour?", ANSWERS, PASSAGES))
    assert [(c.answer, c.question, c.passed) for c in clarified] == [("red", "colour?", False), ("blue", "colour?", False)]
    assert next(by_copying("colour?", ANSWERS[:1], PASSAGES)).passed


def test_rewriting_keeps_the_first_candidate_that_passes() -> None:
    rewriter = Rewrites(["colour?", "colour in 1?", "colour in 2?"], ["colour?"])
    asked: list[str] = []

    def ask(pairs: Any) -> list[list[str]]:
        asked.extend(question for question, _ in pairs)
        return [["red"] if "2" in question else ["red", "blue"] for question, _ in pairs]

    red, blue = by_rewriting(rewriter, ask)("colour?", ANSWERS, PASSAGES)
    assert (red.question, red.passed, red.returned) == ("colour in 2?", True, ("red",))
    assert asked == ["colour in 1?", "colour in 2?"]  # the prompt itself is no disambiguated question
    assert (blue.question, blue.passed, blue.why) == ("colour?", False, "the model repeats the prompt question")
    assert [(answer, others) for _, answer, others, _ in rewriter.jobs] == [("red", ["blue"]), ("blue", ["red"])]
    (unread, _) = by_rewriting(rewriter, None)("colour?", ANSWERS, PASSAGES)
    assert (unread.question, unread.passed) == ("colour in 1?", False)
    failing = Rewrites(["colour in 1?"], ["colour in 3?"])
    first, second = by_rewriting(failing, ask)("colour?", ANSWERS, PASSAGES)
    assert (first.passed, first.question) == (False, "colour in 1?")
    assert not second.passed


def test_a_single_answer_is_not_rewritten() -> None:
    (only,) = by_rewriting(Rewrites(["never"]), None)("colour?", ANSWERS[:1], PASSAGES)
    assert (only.question, only.passed) == ("colour?", True)


def test_clarified_questions_are_events_of_the_run() -> None:
    prediction = run(clarifier=by_copying)
    assert [c.question for c in prediction.clarifications] == [QUESTION.text] * 3
    assert run(clarifier=by_copying, clarify=False).clarifications == ()


def test_nothing_is_loaded_that_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def no(*_: Any) -> Any:
        raise AssertionError("loaded")

    monkeypatch.setattr("core.systems.base.clarifying.load_reader", no)
    chosen = {name: values[0] for name, values in clarifier_options().items()}
    assert make_clarifier(chosen, Settings(), wanted=False) == (None, {"clarifier": "round-trip"})
    clarifier, used = make_clarifier(chosen | {"clarifier": "copy"}, Settings())
    assert (clarifier, used) == (by_copying, {"clarifier": "copy"})
    with pytest.raises(CheckpointError, match="rewriter"):
        make_clarifier(chosen | {"clarifier": "seq2seq", "verify": "none"}, Settings(rewriter="./nowhere-rewriter"), model=None)
