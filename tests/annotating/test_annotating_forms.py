"""The forms of generation and judging, and undo."""

from __future__ import annotations

import pytest

from core.annotating import generation as g
from core.annotating import judging as j
from core.annotating.history import History
from core.annotating.labels import LABELS, QUESTION_LABELS
from core.errors import InputError
from core.trace import from_json, to_json
from core.types import Annotation, QAPair
from pages.annotate import judging as looks
from pages.manage import items
from pages.quality import tables

WOOD = g.OfferedSuggestion("p1", 0, "Natalie Wood", "Who played Maria in the film?", ("d1",))
ZEGLER = g.OfferedSuggestion("p1", 1, "Rachel Zegler", "Who played Maria in the 2021 film?", ("d2", "d3"))


def test_the_first_suggestion_makes_a_single_answer_the_second_several() -> None:
    form = g.accept(g.GenerationForm(), WOOD)
    assert form.annotation() == Annotation("single", (QAPair("", ("Natalie Wood",), ("d1",)),))
    form = g.accept(form, ZEGLER)
    assert form.annotation() == Annotation(
        "multiple",
        (QAPair(WOOD.question, ("Natalie Wood",), ("d1",)), QAPair(ZEGLER.question, ("Rachel Zegler",), ("d2", "d3"))),
    )
    assert [g.decision_on(form, o) for o in (WOOD, ZEGLER)] == ["accepted", "accepted"]
    assert from_json(g.GenerationForm, to_json(form)) == form


def test_what_became_of_a_suggestion_follows_from_the_pairs() -> None:
    form = g.accept(g.accept(g.GenerationForm(), WOOD), ZEGLER)
    first, second = (p.key for p in form.pairs)
    edited = g.fill(form, first, answers="Natalie Wood | Natasha Gurdin")
    assert g.decision_on(edited, WOOD) == "edited"
    assert g.decision_on(g.fill(form, second, question="Who?"), ZEGLER) == "edited"
    assert g.decision_on(g.delete_pair(form, second), ZEGLER) == "rejected"
    assert g.decision_on(g.choose(form, "single"), ZEGLER) == "rejected"
    assert g.decision_on(g.reject(form, WOOD), WOOD) == "rejected"
    withdrawn = g.withdraw(form, ZEGLER)
    assert (g.decision_on(withdrawn, ZEGLER), len(withdrawn.pairs)) == (None, 1)
    assert g.decision_on(g.GenerationForm(), WOOD) is None


def test_another_kind_loses_nothing() -> None:
    form = g.choose(g.GenerationForm(), "multiple")
    assert len(form.pairs) == 2
    form = g.fill(g.fill(form, 0, question="A?", answers="a"), 1, question="B?", answers="b|c")
    for kind in ("none", "single", "multiple"):
        form = g.choose(form, kind)
    assert form.annotation() == Annotation("multiple", (QAPair("A?", ("a",)), QAPair("B?", ("b", "c"))))
    assert g.choose(form, "none").annotation() == Annotation("none")
    with pytest.raises(InputError, match="choose first"):
        g.GenerationForm().annotation()


def test_a_suggestion_after_no_answer_keeps_what_was_put_aside() -> None:
    form = g.choose(g.fill(g.choose(g.GenerationForm(), "multiple"), 0, answers="mine"), "none")
    form = g.accept(form, WOOD)
    assert form.annotation() == Annotation("single", (QAPair("", ("Natalie Wood",), ("d1",)),))
    assert "mine" in [p.answers for p in form.pairs]


def test_the_last_pair_is_emptied_and_there_are_at_most_100() -> None:
    form = g.delete_pair(g.fill(g.GenerationForm("single"), 0, answers="a"), 0)
    assert [(p.key, p.answers) for p in form.pairs] == [(1, "")]
    while len(form.pairs) < g.MAX_PAIRS:
        form = g.add_pair(form)
    with pytest.raises(InputError, match="100"):
        g.add_pair(form)


def test_evidence_is_added_and_taken_out() -> None:
    form = g.cite(g.GenerationForm("single"), 0, "d1")
    assert form.pairs[0].passage_ids == ("d1",)
    assert g.cite(form, 0, "d1").pairs[0].passage_ids == ()


def test_a_form_of_an_annotation_gives_it_back() -> None:
    annotation = Annotation("multiple", (QAPair("A?", ("a", "b"), ("d1",)), QAPair("B?", ("c",))))
    assert g.from_annotation(annotation).annotation() == annotation
    assert g.from_annotation(Annotation("none")).annotation() == Annotation("none")


def test_typing_into_one_field_is_one_step_of_undo() -> None:
    history = History("")
    for text in ("N", "Na", "Nat"):
        history.change(text, "answer")
    assert history.before == [""]
    history.change("Nat!", "question")
    assert [(history.undo(), history.now) for _ in range(3)] == [(True, "Nat"), (True, ""), (False, "")]


# ---------------------------------------------------------------- judging

UNITS = [j.Unit("p1.0", ("p1.0",)), j.Unit("p1.1"), j.Unit("p2.0", ("p2.0",))]


def test_the_next_open_answer() -> None:
    form = j.JudgingForm()
    assert j.next_open(form, UNITS) == 0
    form = j.judge(form, "p1.1", "correct")
    assert j.next_open(form, UNITS, after=0) == 2
    form = j.judge_question(j.judge(form, "p2.0", "wrong"), "p2.0", "fits")
    assert j.next_open(form, UNITS, after=2) == 0
    assert j.open_parts(j.judge(form, "p1.0", "wrong"), UNITS[0]) == ("question",)
    done = j.judge_question(j.judge(form, "p1.0", "wrong"), "p1.0", "fits")
    assert j.next_open(done, UNITS) is None
    assert j.next_open(j.judge(done, "p1.0", None), UNITS) == 0


def test_problems_of_a_judgment_are_named() -> None:
    form = j.judge(j.JudgingForm(), "p1.0", "correct")
    answers, questions, preference = j.problems(form, UNITS, compares=True)
    assert "label for answer 2, 3" in answers
    assert "question of answer 1, 3" in questions
    assert "which of the two" in preference
    assert j.problems(j.JudgingForm(), [], compares=False) == ()


def test_every_label_has_its_looks_and_its_help() -> None:
    assert list(looks.ANSWER_LABELS) == list(items.LABEL_COLOURS) == list(LABELS)
    assert list(looks.QUESTION_LABELS) == list(items.QUESTION_BADGES) == list(QUESTION_LABELS)
    assert set(looks.ICONS) == {*LABELS, *QUESTION_LABELS}
    assert set(LABELS) <= set(tables.HELP)


def test_missing_answers_are_lines() -> None:
    assert j.JudgingForm({}, {}, {}, " a | b \n\n c ").missing_answers() == (("a", "b"), ("c",))


def test_drafts_of_judgments_round_trip() -> None:
    form = j.annotate(j.judge_question(j.judge(j.JudgingForm(), "p1.0", "wrong"), "p1.0", "fits"), "p1.0", " why ")
    assert from_json(j.JudgingForm, to_json(form)) == form
    assert form.notes == {"p1.0": "why"}
    assert j.annotate(form, "p1.0", " ").notes == {}
