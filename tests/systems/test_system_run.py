"""A run from the question to the last event, over the scripted model and models made here: no weights."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from system_fakes import FixedModel, parts, proposal, stopped_after, texts

from core import types as t
from core.errors import InputError, NothingRetrievedError
from core.models.seq2seq.network import FidConfig
from core.systems import build
from core.systems.base.loop import LoopEnd, LoopSystem
from core.systems.base.options import Options
from core.systems.base.selection import answer_events, choose
from core.systems.base.system import System, SystemRun, answer, check_question

WEST = [
    t.Passage("p1", "West Side Story (1961 film)", "Natalie Wood played Maria in the film directed by Robert Wise."),
    t.Passage("p2", "West Side Story (2021 film)", "Rachel Zegler played Maria in the remake by Steven Spielberg."),
    t.Passage("p3", "West Side Story (musical)", "Carol Lawrence created the role of Maria on Broadway in 1957."),
]
ASKED = "Who played Maria in West Side Story?"
QUESTION = t.Question(ASKED)
TABLE = {ASKED: ["Natalie Wood", "Rachel Zegler", "Carol Lawrence"]}


def scripted(table: Any = None, passages: Sequence[t.Passage] | None = WEST, **options: Any) -> t.AnsweringSystem:
    return build("scripted", parts(passages), Options(extra={"table": TABLE if table is None else table}, **options))


def looped(model: FixedModel, repeats: bool = False, **options: Any) -> LoopSystem:
    return LoopSystem("test", parts(WEST), Options(**options), lambda _: model, end=LoopEnd(repeats=repeats))


class Titles(System):
    """Reads once: the title of each passage is an answer."""

    def find(self, run: SystemRun) -> Generator[t.Event, None, str]:
        yield t.StepStarted(1, (), "")
        candidates = [t.Candidate(p.passage.title.split()[0], 1 / p.rank) for p in run.passages]
        selected = choose(candidates, run.reading, 0.1, self.options.max_answers)
        yield from answer_events(selected, candidates, len(run.reading.pinned), run.passages, 0.0)
        run.check()
        return "every title was said"


TOWNS = [t.Passage(town, f"{town} (town)", f"{town} is a town.") for town in ("Oslo", "Bergen", "Narvik", "Hamar")]


def titles() -> Titles:
    return Titles("titles", parts(TOWNS), Options(check_coverage=False))


def test_a_run_from_question_to_clarifications() -> None:
    prediction = answer(scripted(), t.Question(f"  {ASKED} "))
    assert texts(prediction) == TABLE[ASKED]
    assert [s.choice.text if s.choice else None for s in prediction.steps] == [*TABLE[ASKED], None]
    assert [s.previous for s in prediction.steps] == [tuple(TABLE[ASKED][:n]) for n in range(4)]
    assert prediction.steps[2].prompt == "Natalie Wood ; Rachel Zegler"
    evidence = [a.evidence[0] for a in prediction.answers]
    assert [e.passage_id for e in evidence] == ["p1", "p2", "p3"]
    assert [prediction.passage(e.passage_id).text[e.start : e.end] for e in evidence] == TABLE[ASKED]
    assert prediction.clarifications[0].question == "Who played Maria in West Side Story (1961 film)?"
    assert (len(prediction.clarifications), prediction.system.corpus) == (3, "shelf")
    assert isinstance(prediction.events[-1], t.Finished)
    assert prediction.ended == prediction.steps[-1].stopped_because
    assert answer(scripted(clarify=False), QUESTION).clarifications == ()


@pytest.mark.parametrize(
    ("system", "kind", "count", "steps", "clarified"),
    [
        pytest.param(scripted, t.StepFinished, 2, 2, 0, id="between the steps of a loop"),
        pytest.param(titles, t.StepFinished, 1, 4, 0, id="after all answers of one pass"),
        pytest.param(scripted, t.QuestionClarified, 1, 4, 1, id="between the questions"),
    ],
)
def test_a_stopped_run_keeps_what_it_has(system: Any, kind: type, count: int, steps: int, clarified: int) -> None:
    events = stopped_after(system(), QUESTION, kind, count)
    assert events[-1].why == "stopped by a person"
    kinds = Counter(type(e) for e in events)
    assert (kinds[t.StepFinished], kinds[t.QuestionClarified]) == (steps, clarified)


def test_pinned_answers_are_first_and_prompted() -> None:
    model = FixedModel(proposal(0.1, Natalie_Wood=0.9), proposal(0.9, x=0.1))
    pinned = ("Carol Lawrence", " carol  lawrence ", "", "Nobody Known")
    prediction = answer(looped(model), t.Question(ASKED, pinned=pinned))
    assert [(a.text, a.pinned, [e.passage_id for e in a.evidence]) for a in prediction.answers] == [
        ("Carol Lawrence", True, ["p3"]),
        ("Nobody Known", True, []),
        ("Natalie Wood", False, ["p1"]),
    ]
    assert model.asked[0] == ("Carol Lawrence", "Nobody Known")
    assert [s.number for s in prediction.steps] == [1, 2, 3, 4]


def test_banned_answers_are_shown_to_the_model_and_never_chosen() -> None:
    model = FixedModel(proposal(0.05, Natalie_Wood=0.9, Rachel_Zegler=0.3), proposal(0.9, x=0.1))
    prediction = answer(looped(model), t.Question(ASKED, banned=("natalie wood.",)))
    assert (texts(prediction), prediction.steps[0].previous) == (["Rachel Zegler"], ())
    assert model.asked[0] == ("natalie wood.",)
    assert all(c.text != "Natalie Wood" for s in prediction.steps for c in s.candidates)


def test_a_repeated_answer_ends_the_papers_loop_and_is_passed_over_in_another() -> None:
    proposals = [proposal(0.1, Maria=0.8), proposal(0.1, Maria=0.6, Anita=0.2), proposal(0.9, Anita=0.1)]
    assert texts(answer(looped(FixedModel(*proposals), repeats=True), QUESTION)) == ["Maria"]
    assert texts(answer(looped(FixedModel(*proposals)), QUESTION)) == ["Maria", "Anita"]


@pytest.mark.parametrize(
    ("stop_above", "eoi", "best", "goes_on"),
    [(None, 0.4, 0.41, True), (None, 0.4, 0.4, False), (0.5, 0.5, 0.1, True), (0.5, 0.51, 0.9, False), (0.0, 0.01, 0.9, False)],
)
def test_when_the_loop_stops(stop_above: float | None, eoi: float, best: float, goes_on: bool) -> None:
    model = FixedModel(proposal(eoi, x=best))
    prediction = answer(looped(model, stop_above=stop_above, max_answers=1), t.Question("q"))
    assert (texts(prediction) == ["x"]) == goes_on
    assert prediction.ended == (prediction.steps[-1].stopped_because or "the maximum number of answers is reached")


def test_the_maximum_number_of_answers() -> None:
    assert texts(answer(scripted(max_answers=2), QUESTION)) == ["Natalie Wood", "Rachel Zegler"]
    pinned = answer(scripted(max_answers=1), t.Question(ASKED, pinned=("a", "b")))
    assert texts(pinned) == ["a", "b"]  # what a person pinned stays


def test_a_question_may_have_its_own_passages() -> None:
    passage = t.Passage("own", "T", "Rita Moreno sang.")
    system = scripted({"who sang?": ["Rita Moreno"]}, None)
    prediction = answer(system, t.Question("Who sang?", passages=(passage,)))
    assert ([p.passage for p in prediction.passages], texts(prediction)) == ([passage], ["Rita Moreno"])
    with pytest.raises(NothingRetrievedError, match="empty list"):
        answer(system, t.Question("Who sang?", passages=()))
    with pytest.raises(InputError, match="no corpus is open"):
        answer(system, t.Question("Who sang?"))


def test_nothing_retrieved_and_more_wanted_than_there_is() -> None:
    with pytest.raises(NothingRetrievedError, match="corpus 'shelf'"):
        answer(scripted(passages=[]), QUESTION)
    assert len(answer(scripted(top_k=50), QUESTION).passages) == 3


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        (" \t\n ", "empty"),
        ("who " * 2500, "9999 characters; at most 2000"),
        ("?!… -- ", "no letter or digit"),
        ("who\x7f is it", r"U\+007F"),
    ],
)
def test_bad_questions_are_refused(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        list(scripted().run(t.Question(text)))


@pytest.mark.parametrize("word", ["a\x07b", "x" * 3000])
@pytest.mark.parametrize("kind", ["pinned", "banned"])
def test_bad_answers_of_a_person_are_refused(kind: str, word: str) -> None:
    with pytest.raises(InputError, match="an answer to keep" if kind == "pinned" else "an answer to strike"):
        check_question(t.Question(ASKED, **{kind: ("Rome", word)}), 100)


@pytest.mark.parametrize("other", ["Natalie Wood", " natalie  wood", "The Natalie Wood!", "NATALIE WOOD."])
def test_one_answer_is_not_both_kept_and_struck(other: str) -> None:
    with pytest.raises(InputError, match="'Natalie Wood'"):
        check_question(t.Question(ASKED, pinned=("Natalie Wood",), banned=("Oslo", other)), 100)


def test_good_questions_are_only_tidied() -> None:
    checked = check_question(t.Question(" qui\u0301en  \n fue? ", pinned=(" x ", "X.", "b"), banned=("c",)), 100)
    assert (checked.text, checked.pinned) == ("qui\u0301en fue?", ("x", "b"))
    assert check_question(t.Question("q", pinned=("Bo", "Cy", "bo")), 100).pinned == ("Bo", "Cy")
    assert check_question(t.Question("the of in?"), 100).text == "the of in?"  # stop words only are a question still


def test_scripted_answers_what_its_table_lacks_from_the_passages() -> None:
    prediction = answer(scripted({}), t.Question("Who is it?"))
    assert "Natalie Wood" in texts(prediction)
    assert all(a.evidence for a in prediction.answers)


class Loaded:
    reader = None
    config = FidConfig()

    def propose_many(self, jobs: Sequence[t.StepInput]) -> list[t.Proposal]:
        return [proposal(1.0) for _ in jobs]


@pytest.fixture
def loading(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The models' loaders, which keep what they were asked for."""
    record: dict[str, Any] = {"model": Loaded()}

    def load(name: str, device: str, decoding: Any) -> tuple[Any, str]:
        record["decoding"] = decoding
        return record["model"], "d1"

    monkeypatch.setattr("core.models.span.answerer.load_answerer", load)
    monkeypatch.setattr("core.models.seq2seq.fid.load_fid", load)
    for module in ("ambigprompt", "base.clarifying"):
        monkeypatch.setattr(f"core.systems.{module}.load_reader", lambda *_: ("the reader", "r1"))
    monkeypatch.setattr("core.models.language.writer.load_writer", lambda *_: (SimpleNamespace(write=None), "w1"))
    return record


def test_settings_say_how_it_was_decoded(loading: dict[str, Any]) -> None:
    plain = build("ambigprompt", parts(WEST, retrieval={"retriever": "bm25"}), Options()).info.settings
    assert json.loads(json.dumps(plain)) == plain
    assert plain["decoding"]["eoi_bias"] == loading["decoding"].eoi_bias == plain["extra"]["eoi_bias"] == -2.0
    assert (plain["extra"]["clarifier"], plain["retrieval"]) == ("writer", {"retriever": "bm25"})
    assert plain["writer_digest"] == "w1"
    assert plain["reader_digest"] == "r1"  # it confirms rewritten questions
    for name, reader in (("ambigprompt", None), ("ambiscope", "the reader")):
        settings = build(name, parts(WEST), Options()).info.settings
        assert settings["reader_digest"] == "r1"
        assert loading["model"].reader == reader
    build("ambigprompt-seq2seq", parts(WEST), Options(extra={"eoi_bias": -3}))
    assert loading["decoding"].eoi_bias == -3.0
