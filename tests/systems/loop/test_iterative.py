"""The loop and what surrounds it, with the scripted model and models made here: no weights."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from core import types as t
from core.errors import InputError, NothingRetrievedError, UnknownNameError
from core.models.seq2seq.network import FidConfig
from core.settings import Settings
from core.systems import SYSTEMS
from core.systems.base.base import Options, Parts, answer, check_question, read_extra
from core.systems.base.iterative import AmbigPrompt
from core.systems.base.stopping import LoopEnd
from core.trace import event_from_json, fold, prediction_from_json, to_json

WEST = [
    t.Passage("p1", "West Side Story (1961 film)", "Natalie Wood played Maria in the film directed by Robert Wise."),
    t.Passage("p2", "West Side Story (2021 film)", "Rachel Zegler played Maria in the remake by Steven Spielberg."),
    t.Passage("p3", "West Side Story (musical)", "Carol Lawrence created the role of Maria on Broadway in 1957."),
]
QUESTION = "Who played Maria in West Side Story?"
TABLE = {QUESTION: ["Natalie Wood", "Rachel Zegler", "Carol Lawrence"]}


class Shelf:
    def __init__(self, passages: Sequence[t.Passage]) -> None:
        self.passages = passages

    def search(self, query: str, k: int) -> list[t.RetrievedPassage]:
        return [t.RetrievedPassage(p, i, 1 / i) for i, p in enumerate(self.passages[:k], 1)]


class Fixed:
    """Proposes what it was given, whatever was said before; keeps what it was asked."""

    def __init__(self, *proposals: t.Proposal) -> None:
        self.proposals, self.asked = list(proposals), []  # type: ignore[var-annotated]

    def propose(self, question: str, passages: Sequence[t.RetrievedPassage], previous: Sequence[str]) -> t.Proposal:
        self.asked.append(tuple(previous))
        return self.proposals[min(len(self.asked), len(self.proposals)) - 1]


def proposal(eoi: float, **candidates: float) -> t.Proposal:
    return t.Proposal(tuple(t.Candidate(name.replace("_", " "), p) for name, p in candidates.items()), eoi)


def parts(passages: Sequence[t.Passage] = WEST, **changes: Any) -> Parts:
    return Parts(Settings(), Shelf(passages), "west", "digest", **changes)


def scripted(options: Options | None = None, table: Any = None, **changes: Any) -> t.AnsweringSystem:
    options = options or Options()
    options.extra["table"] = TABLE if table is None else table
    system: t.AnsweringSystem = SYSTEMS.resolve("scripted")(parts(**changes), options)
    return system


def looped(model: Any, options: Options | None = None, **changes: Any) -> AmbigPrompt:
    return AmbigPrompt("test", parts(**changes), options or Options(), model, None, ("", ""))


def texts(prediction: t.Prediction) -> list[str]:
    return [a.text for a in prediction.answers]


def test_a_repeated_answer_ends_the_papers_loop_and_is_passed_over_in_another() -> None:
    said = [proposal(0.1, Maria=0.8), proposal(0.1, Maria=0.6, Anita=0.2), proposal(0.9, Anita=0.1)]
    paper = AmbigPrompt("test", parts(), Options(clarify=False), Fixed(*said), None, ("", ""), end=LoopEnd(repeats=True))
    prediction = answer(paper, t.Question(QUESTION))
    assert texts(prediction) == ["Maria"]
    assert prediction.steps[-1].stopped_because == "the model chose 'Maria' again"
    assert texts(answer(looped(Fixed(*said), Options(clarify=False)), t.Question(QUESTION))) == ["Maria", "Anita"]


def test_a_run_from_question_to_clarifications() -> None:
    prediction = answer(scripted(), t.Question(f"  {QUESTION} "))
    assert texts(prediction) == TABLE[QUESTION]
    assert [s.choice.text if s.choice else None for s in prediction.steps] == [*TABLE[QUESTION], None]
    assert [s.previous for s in prediction.steps] == [tuple(TABLE[QUESTION][:n]) for n in range(4)]
    assert prediction.steps[2].prompt == "Natalie Wood ; Rachel Zegler"
    assert prediction.steps[-1].stopped_because == "no candidate is left"
    assert [a.evidence[0].passage_id for a in prediction.answers] == ["p1", "p2", "p3"]
    for a in prediction.answers:
        found = prediction.passage(a.evidence[0].passage_id)
        assert found is not None
        assert found.text[a.evidence[0].start : a.evidence[0].end] == a.text
    assert len(prediction.clarifications) == 3
    assert prediction.clarifications[0].question == "Who played Maria in the 1961 film West Side Story?"
    assert prediction.system.corpus == "west"
    assert prediction.events[0] == t.PassagesRetrieved(prediction.passages, prediction.events[0].seconds, QUESTION)  # type: ignore[union-attr]
    assert isinstance(prediction.events[-1], t.Finished)


def test_events_fold_to_the_prediction_and_survive_json() -> None:
    system = scripted()
    question = t.Question(QUESTION, "q1", pinned=("Ann",), passages=tuple(WEST))
    events = list(system.run(question))
    again = [event_from_json(json.loads(json.dumps(to_json(e)))) for e in events]
    assert again == events
    prediction = fold(question, system.info, events)
    assert prediction_from_json(json.loads(json.dumps(to_json(prediction)))) == prediction
    assert fold(question, system.info, again) == prediction


def test_pinned_answers_stand_first_and_are_prompted() -> None:
    model = Fixed(proposal(0.1, Natalie_Wood=0.9), proposal(0.9, x=0.1))
    prediction = answer(looped(model), t.Question(QUESTION, pinned=("Carol Lawrence", " carol  lawrence ", "", "Nobody Known")))
    assert texts(prediction) == ["Carol Lawrence", "Nobody Known", "Natalie Wood"]
    assert [a.pinned for a in prediction.answers] == [True, True, False]
    assert [e.passage_id for e in prediction.answers[0].evidence] == ["p3"]
    assert prediction.answers[1].evidence == ()
    assert model.asked[0] == ("Carol Lawrence", "Nobody Known")
    assert [s.number for s in prediction.steps] == [1, 2, 3, 4]


def test_banned_answers_are_shown_to_the_model_and_never_chosen() -> None:
    model = Fixed(proposal(0.05, Natalie_Wood=0.9, Rachel_Zegler=0.3), proposal(0.9, x=0.1))
    prediction = answer(looped(model), t.Question(QUESTION, banned=("natalie wood.",)))
    assert texts(prediction) == ["Rachel Zegler"]
    assert model.asked[0] == ("natalie wood.",)
    assert prediction.steps[0].previous == ()
    assert all(c.text != "Natalie Wood" for s in prediction.steps for c in s.candidates)


def test_the_same_answer_never_comes_twice() -> None:
    model = Fixed(proposal(0.1, Natalie_Wood=0.9))
    prediction = answer(looped(model), t.Question(QUESTION))
    assert texts(prediction) == ["Natalie Wood"]
    assert prediction.steps[-1].stopped_because == "no candidate is left"


@pytest.mark.parametrize(
    ("stop_above", "eoi", "best", "goes_on"),
    [(None, 0.4, 0.41, True), (None, 0.4, 0.4, False), (0.5, 0.5, 0.1, True), (0.5, 0.51, 0.9, False), (0.0, 0.01, 0.9, False)],
)
def test_when_the_loop_stops(stop_above: float | None, eoi: float, best: float, goes_on: bool) -> None:
    prediction = answer(looped(Fixed(proposal(eoi, x=best)), Options(stop_above=stop_above, max_answers=1)), t.Question("q"))
    assert (texts(prediction) == ["x"]) == goes_on
    if not goes_on:
        why = "exceeds the threshold" if stop_above is not None else "[EOI] is likelier"
        assert why in prediction.steps[-1].stopped_because
        assert prediction.events[-1].why == prediction.steps[-1].stopped_because  # type: ignore[union-attr]


def test_the_maximum_number_of_answers() -> None:
    prediction = answer(scripted(Options(max_answers=2)), t.Question(QUESTION))
    assert texts(prediction) == ["Natalie Wood", "Rachel Zegler"]
    assert prediction.events[-1].why == "the maximum number of answers is reached"  # type: ignore[union-attr]
    prediction = answer(scripted(Options(max_answers=1)), t.Question(QUESTION, pinned=("a", "b")))
    assert texts(prediction) == ["a", "b"]  # what a person pinned stays


@pytest.mark.parametrize(("after", "answers", "clarified"), [(0, 0, 0), (2, 2, 0), (4, 3, 1)])
def test_a_stopped_run_keeps_what_it_has(after: int, answers: int, clarified: int) -> None:
    asked = iter(range(100))
    system = scripted(cancelled=lambda: next(asked) >= after)
    prediction = answer(system, t.Question(QUESTION))
    assert (len(prediction.answers), len(prediction.clarifications)) == (answers, clarified)
    assert len(prediction.passages) == 3
    assert prediction.events[-1].why == "stopped by a person"  # type: ignore[union-attr]
    assert prediction.seconds > 0


def test_a_question_brings_its_own_passages() -> None:
    own = (t.Passage("own", "T", "Rita Moreno sang."),)
    prediction = answer(scripted(table={"who sang?": ["Rita Moreno"]}), t.Question("Who sang?", passages=own))
    assert [p.passage for p in prediction.passages] == list(own)
    assert texts(prediction) == ["Rita Moreno"]
    with pytest.raises(NothingRetrievedError, match="empty list of passages"):
        answer(scripted(), t.Question("Who sang?", passages=()))
    lonely = AmbigPrompt("test", Parts(Settings(), None), Options(), Fixed(proposal(1.0)), None, ("", ""))
    with pytest.raises(InputError, match="no corpus is open"):
        answer(lonely, t.Question("Who sang?"))


def test_nothing_retrieved_and_more_wanted_than_there_is() -> None:
    with pytest.raises(NothingRetrievedError, match="no passage of corpus 'west' matches"):
        answer(scripted(passages=[]), t.Question(QUESTION))
    assert len(answer(scripted(Options(top_k=50)), t.Question(QUESTION)).passages) == 3


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        (" \t\n ", "empty"),
        ("who " * 2500, "has 9999 characters; at most 2000"),
        ("?!… -- ", "no letter or digit"),
        ("who\x00 is it", "the question cannot be read: it contains a NUL character"),
        ("who\x7f is it", r"control character \(U\+007F\)"),
        ("who \ud800 is it", "lone surrogate"),
    ],
)
def test_bad_questions(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        list(scripted().run(t.Question(text)))


@pytest.mark.parametrize("word", ["a\x07b", "a\x7fb", "a\ud800b", "a\x00b", "x" * 3000])
@pytest.mark.parametrize("kind", ["pinned", "banned"])
def test_bad_answers_of_a_person(kind: str, word: str) -> None:
    what = "an answer to keep" if kind == "pinned" else "an answer to strike"
    with pytest.raises(InputError, match=what):
        list(scripted().run(t.Question(QUESTION, **{kind: ("Rome", word)})))


@pytest.mark.parametrize("other", ["Natalie Wood", " natalie  wood", "The Natalie Wood!", "NATALIE WOOD."])
def test_one_answer_is_not_both_kept_and_struck(other: str) -> None:
    with pytest.raises(InputError, match="'Natalie Wood' is both kept and struck"):
        list(scripted().run(t.Question(QUESTION, pinned=("Natalie Wood",), banned=("Oslo", other))))


def test_good_questions_are_only_tidied() -> None:
    checked = check_question(t.Question(" qui\u0301en  \n fue? ", pinned=(" x ", "X.", "b"), banned=("c",)), 100)
    assert checked.text == "qui\u0301en fue?"
    assert checked.pinned == ("x", "b")
    assert check_question(t.Question("q", pinned=("Bo", "Cy", "bo")), 100).pinned == ("Bo", "Cy")
    assert check_question(t.Question("the of in?"), 100).text == "the of in?"  # stop words only are a question still


@pytest.mark.parametrize(
    "wrong", [{"top_k": 0}, {"max_answers": 0}, {"max_answers": 51}, {"stop_above": 1.1}, {"stop_above": -0.1}]
)
def test_bad_options(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Options(**wrong)


def test_without_clarification() -> None:
    assert answer(scripted(Options(clarify=False)), t.Question(QUESTION)).clarifications == ()


def test_an_unknown_system() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'scripted'"):
        SYSTEMS.resolve("script")


def test_scripted_answers_what_its_table_lacks_from_the_passages() -> None:
    prediction = answer(scripted(table={}), t.Question("Who is it?"))
    assert texts(prediction)
    assert all(a.evidence for a in prediction.answers)


KNOWN = {"eoi_bias": -0.8, "round_trip": ("answerer", "reader")}


def test_the_options_of_a_system_are_checked() -> None:
    assert read_extra(Options(extra={"eoi_bias": 1}), "s", KNOWN) == {"eoi_bias": 1.0, "round_trip": "answerer"}
    assert read_extra(Options(extra={"round_trip": "reader"}), "s", KNOWN) == {"eoi_bias": -0.8, "round_trip": "reader"}


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        ({"eoi_bais": 1}, r"s has no option 'eoi_bais'\. Did you mean 'eoi_bias'\? Its options: eoi_bias, round_trip"),
        ({"eoi_bias": "x"}, "eoi_bias is 'x'; it must be a number"),
        ({"eoi_bias": True}, "must be a number"),
        ({"eoi_bias": float("nan")}, "must be a number"),
        ({"eoi_bias": 10**400}, "must be a number"),
        ({"round_trip": "nobody"}, "use answerer or reader"),
        ({"round_trip": []}, "use answerer or reader"),
    ],
)
def test_wrong_options_of_a_system(extra: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_extra(Options(extra=extra), "s", KNOWN)


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_every_system_refuses_an_option_that_it_lacks(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} has no option 'colour'"):
        SYSTEMS.resolve(name)(parts(), Options(extra={"colour": 1}))


class Loaded:
    reader = None
    config = FidConfig()

    def propose_many(self, jobs: Sequence[t.Job]) -> list[t.Proposal]:
        return [proposal(1.0) for _ in jobs]

    propose = propose_many


@pytest.fixture
def loading(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The models' loaders, which keep what they were asked for."""
    got: dict[str, Any] = {"model": Loaded()}

    def load(name: str, device: str, decoding: Any) -> tuple[Any, str]:
        got["decoding"] = decoding
        return got["model"], "d1"

    monkeypatch.setattr("core.models.span.answerer.load_answerer", load)
    monkeypatch.setattr("core.models.seq2seq.fid.load_fid", load)
    for module in ("ambigprompt", "base.clarifying"):
        monkeypatch.setattr(f"core.systems.{module}.load_reader", lambda *_: ("the reader", "r1"))
    return got


def test_settings_say_how_it_was_decoded(loading: dict[str, Any]) -> None:
    build = SYSTEMS.resolve("ambigprompt")
    plain = build(parts(retrieval={"retriever": "bm25"}), Options()).info.settings
    assert json.loads(json.dumps(plain)) == plain
    assert plain["decoding"]["eoi_bias"] == loading["decoding"].eoi_bias
    assert (plain["round_trip"], plain["retrieval"]) == ("answerer", {"retriever": "bm25"})
    assert "reader_digest" not in plain  # it has no say
    for extra in ({"round_trip": "reader"}, {"reader_weight": 0.5}):
        settings = build(parts(), Options(extra=extra)).info.settings
        assert settings["reader_digest"] == "r1"
        assert loading["model"].reader == ("the reader" if "reader_weight" in extra else None)


def test_the_encoder_decoder_hears_of_the_eoi_bias(loading: dict[str, Any]) -> None:
    system = SYSTEMS.resolve("ambigprompt-seq2seq")(parts(), Options(extra={"eoi_bias": -2}))
    assert loading["decoding"].eoi_bias == -2.0
    assert system.info.settings["decoding"]["eoi_bias"] == -2.0
