"""The annotate page: what is shown and what is stored, stage by stage."""

from __future__ import annotations

from typing import Any

import people
import pytest
from annotate_helpers import QUESTIONS, SECOND, click, find, fine, make_project, predict, read_something, write
from annotation_samples import take
from page_helpers import QUESTION, Open, button, texts
from streamlit.testing.v1 import AppTest

from core import types as t
from core.types import Annotation, Passage, QAPair, ReferenceQuestion
from pages.ui.keyboard import SAFE_SHORTCUTS
from storage.records.annotation import GenerationWork, MissingAnswer
from storage.store import Store

pytestmark = pytest.mark.usefixtures("light")
FILM, REMAKE, STAGE = QUESTIONS.values()
JUDGING: dict[str, Any] = {"stages": ("judging",), "questions": (QUESTION,)}


def answered(annotate: Open, store: Store, prediction: t.Prediction | None = None, **project: Any) -> AppTest:
    """The page over a project to which a system has given one prediction."""
    store.predictions.save_prediction(prediction or predict(QUESTION))
    make_project(store, **{"systems": ("scripted",), **project})
    return fine(annotate())


def sent(store: Store, by: str = "me", **filters: Any) -> Any:
    """The single submission in the only project."""
    (project,) = store.projects.projects()
    (submission,) = store.submissions.submissions(project.id, by, **filters)
    return submission


def keyed(elements: Any, part: str) -> list[Any]:
    return [e for e in elements if e.key and part in e.key]


# ---------------------------------------------------------------- launch


def test_a_new_annotator_sees_the_guidelines_and_the_keys(annotate: Open, store: Store) -> None:
    make_project(store, guidelines="# Look twice\nUse **dates**.")
    app = fine(annotate())
    shown = texts(app)
    assert "# Look twice" in shown  # drawn as Markdown
    assert QUESTION in shown
    assert "Team: 0 of 2" in str([p.proto.text for p in app.get("progress")])
    assert "Keys:" in shown
    assert not app.expander[0].proto.expanded  # folded: the question comes first


def test_a_link_to_a_closed_project_says_so(annotate: Open, store: Store) -> None:
    make_project(store)
    app = annotate(project="f" * 32)
    assert "closed or does not exist" in app.error[0].value
    app.selectbox(key="annotate.project").select_index(0).run()
    assert QUESTION in texts(fine(app))


def test_settings_that_a_manager_changes_hold_for_an_open_item(annotate: Open, store: Store) -> None:
    project = make_project(store)
    app = annotate(project=project.id)
    click(app, "kind", "none")
    click(app, "submit")
    store.projects.update_project("me", project.id, 1, thresholds={"must_read": 0})
    app.run()
    fine(click(app, "submit"))
    assert sent(store).content.annotation.type == "none"


# ---------------------------------------------------------------- generation


def test_generation_by_hand(annotate: Open, store: Store) -> None:
    project = make_project(store)
    app = annotate(project=project.id)
    click(app, "kind", "multiple")
    write(app, FILM, "question", 0)
    write(app, "Natalie Wood | Natasha Gurdin", "answers", 0)
    write(app, QUESTION, "question", 1)
    fine(app)
    assert "Draft saved" in texts(app)

    click(app, "submit")  # refused: reasons at their fields
    shown = texts(app)
    reasons = ("This is the prompt question", "Write the answer.", "Search and open a passage first")
    assert [reason for reason in reasons if reason not in shown] == []
    assert store.submissions.submissions(project.id, "me") == []

    write(app, "Which actress played Maria in the other film?", "question", 1)
    write(app, "Rachel Zegler", "answers", 1)
    assert "It asks 'which'" in texts(app)  # doubts, kept
    assert "'other' cannot be understood" in texts(app)
    read_something(app)
    assert find(app.button, "back")
    keyed(app.button, ".cite.")[0].click().run()
    fine(click(app, "submit"))

    submission = sent(store)
    first, second = submission.content.annotation.pairs
    assert (first.question, first.answers) == (FILM, ("Natalie Wood", "Natasha Gurdin"))
    assert first.passage_ids == submission.log.viewed_passage_ids[:1]
    assert second.answers == ("Rachel Zegler",)
    assert len(submission.content.warnings) >= 2
    assert {e.query for e in submission.log.events if e.query} == {"Maria West Side Story"}
    assert submission.seconds > 0
    assert SECOND in texts(app)  # the next item came at once


def test_suggestions_accepted_edited_rejected(annotate: Open, store: Store) -> None:
    app = answered(annotate, store)
    assert "Natalie Wood" in texts(app)
    assert "3 of 3 left" in texts(app)
    click(app, "accept", 0)
    click(app, "accept", 1)
    click(app, "reject", 2)
    write(app, "Rachel Zegler | R. Zegler", "answers", 1)
    assert "0 of 3 left" in texts(app)
    read_something(app)
    fine(click(app, "submit"))
    (prediction,) = store.predictions.recent_predictions()
    content = sent(store).content
    uses = [(use.prediction_id, use.position, use.action) for use in content.suggestions]
    assert uses == [(prediction.id, i, action) for i, action in enumerate(("accepted", "edited", "rejected"))]
    assert content.annotation.pairs[0] == QAPair(FILM, ("Natalie Wood",), ("p1",))


def test_all_suggestions_at_once(annotate: Open, store: Store) -> None:
    app = answered(annotate, store)
    click(app, "reject", 1)
    click(app, "accept.all")
    assert "0 of 3 left" in texts(app)
    assert len(keyed(app.text_input, ".answers.")) == 2
    click(app, "undo")
    assert "2 of 3 left" in texts(app)


def test_the_evidence_of_a_suggestion_counts_as_read(annotate: Open, store: Store) -> None:
    app = answered(annotate, store)
    click(app, "read", 0)
    assert ":orange-background[**Natalie Wood**]" in texts(app)
    click(app, "accept", 0)
    fine(click(app, "submit"))
    assert sent(store).log.viewed_passage_ids == ("p1",)


def test_a_draft_is_there_after_the_tab_is_closed_and_undo_goes_back(annotate: Open, store: Store) -> None:
    project = make_project(store)
    app = annotate(project=project.id)
    click(app, "kind", "single")
    write(app, "Natalie", "answers", 0)
    write(app, "Natalie Wood", "answers", 0)
    again = annotate(project=project.id)
    assert find(again.text_input, "answers", 0).value == "Natalie Wood"
    click(app, "undo")
    assert find(app.text_input, "answers", 0).value == ""  # typing into one field is one step
    click(app, "undo")
    assert not keyed(app.text_input, ".answers.0")


def test_two_windows_of_one_person(annotate: Open, store: Store) -> None:
    project = make_project(store)
    first, second = annotate(project=project.id), annotate(project=project.id)
    click(first, "kind", "single")
    write(first, "Natalie Wood", "answers", 0)
    click(second, "kind", "none")
    assert "changed in another window" in second.warning[0].value
    assert "Natalie Wood" in texts(second)
    click(second, "theirs")
    fine(second)
    assert find(second.text_input, "answers", 0).value == "Natalie Wood"
    click(second, "undo")
    assert find(second.button, "kind", "none").proto.type == "primary"


def test_skip_with_a_reason_and_reopen(annotate: Open, store: Store) -> None:
    project = make_project(store)
    app = annotate(project=project.id)
    assert not [b for b in app.button if b.key.endswith("skip.it")]
    fine(click(app, "skip"))
    assert find(app.button, "skip.it").disabled
    write(app, "not my field", "reason")
    fine(click(app, "skip.it"))
    assert SECOND in texts(app)
    skipped = store.queue.tasks(project.id, "me", state="skipped")
    assert [(t.question, t.reason) for t in skipped] == [(QUESTION, "not my field")]
    fine(app.button(key="annotate.reopen").click().run())
    assert QUESTION in texts(app)
    assert store.queue.tasks(project.id, "me", state="skipped") == []


def test_reopen_after_submitting(annotate: Open, store: Store) -> None:
    project = make_project(store)
    app = annotate(project=project.id)
    read_something(app)
    click(app, "kind", "single")
    write(app, "Natalie Wood", "answers", 0)
    click(app, "submit")
    assert SECOND in texts(app)
    fine(app.button(key="annotate.reopen").click().run())
    assert find(app.text_input, "answers", 0).value == "Natalie Wood"
    assert store.submissions.submissions(project.id, "me") == []


def test_own_passages_of_an_item(annotate: Open, store: Store) -> None:
    project = store.projects.create_project("me", "own", corpus="small")
    passages = (Passage("x1", "Own title", "Anna met Ben in Rome."),)
    store.intake.add_items("me", project.id, [ReferenceQuestion("q", "Where did they meet?", (), passages)])
    app = annotate(project=project.id)
    assert "1 passage of this question" in texts(app)
    assert "Anna met Ben in Rome." in texts(fine(click(app, "open", "x1")))


# ---------------------------------------------------------------- validation


ANNA = Annotation("multiple", (QAPair(FILM, ("Natalie Wood",), ("p1",)), QAPair(STAGE, ("Carol Lawrence",))))
BEN = Annotation(
    "multiple", (QAPair("Who was Maria in the 1961 film?", ("natalie wood", "Natasha Gurdin")), QAPair(REMAKE, ("Zegler",)))
)


def validating(store: Store, **changes: Any) -> str:
    """A project of one question, which Anna and Ben have answered."""
    stages = ("generation", "validation")
    project = make_project(store, stages=stages, annotators_per_item=2, questions=(QUESTION,), **changes)
    for person, annotation in (("Anna", ANNA), ("Ben", BEN)):
        item = take(store, project, person).item
        store.drafts.log_view(item, person, "generation", "p1", "West Side Story (1961 film)")
        store.submissions.submit(item, person, "generation", GenerationWork(annotation), seconds=30.0)
    return project.id


def test_validation_of_answers_and_their_questions(annotate: Open, store: Store) -> None:
    validating(store)
    app = fine(annotate("Vera", stage="validation"))
    shown = texts(app)
    assert "A: 2 answers · B: 2 answers" in shown
    assert "Anna" not in shown
    click(app, "choose", 1)
    click(app, "choose", 2)
    click(app, "combine")
    assert len(keyed(app.button, ".choose.")) == 2
    click(app, "undo")
    assert len(keyed(app.button, ".choose.")) == 3
    write(app, "Rachel Zegler", "aliases", 2, 0)
    click(app, "keep", 0, 1)  # strike Ben's wording
    assert find(app.text_input, "wording", 0, 1).disabled
    click(app, "keep", 1, 0)
    assert "would have no question" in app.error[0].value
    write(app, "Who played Maria in the film of 2021?", "wording", 2, 0)
    fine(click(app, "submit"))
    pairs = sent(store, "Vera", stage="validation").content.annotation.pairs
    assert [p.question for p in pairs] == [FILM, STAGE, "Who played Maria in the film of 2021?"]
    assert pairs[0].answers == ("Natalie Wood", "natalie wood", "Natasha Gurdin")
    assert pairs[2].answers == ("Rachel Zegler",)

    shown = texts(fine(annotate("Anna").segmented_control(key="annotate.view").set_value("My items").run()))
    assert "**Final**" in shown
    assert "**Rachel Zegler**" in shown


def test_one_answer_has_no_questions_to_validate_and_work_is_sent_back(annotate: Open, store: Store) -> None:
    project = validating(store)
    app = annotate("Vera", stage="validation")
    click(app, "choose", 1)
    click(app, "choose", 2)
    click(app, "delete")
    assert not keyed(app.button, ".keep.")
    click(app, "restart")
    assert find(app.button, "keep", 0, 0)
    write(app, "look at the remake too", "return.reason")
    fine(click(app, "return.it"))
    returned = store.queue.tasks(project, "Vera", state="returned")
    assert [(t.annotator, t.reason) for t in returned] == [("Anna", "look at the remake too")]
    anna = annotate("Anna")
    assert "look at the remake too" in texts(anna)
    assert find(anna.text_input, "answers", 0).value == "Natalie Wood"


def test_two_windows_of_a_validator_show_no_names(annotate: Open, store: Store) -> None:
    validating(store)
    first, second = (annotate("Vera", stage="validation") for _ in range(2))
    write(first, "N. Wood", "aliases", 0, 0)
    write(second, "Wood", "aliases", 0, 0)
    assert "N. Wood" in texts(second)
    assert "Anna" not in texts(second)


def test_a_validator_who_began_gets_the_list_with_the_annotation_that_came_back(annotate: Open, store: Store) -> None:
    validating(store)
    app = annotate("Vera", stage="validation")
    click(app, "choose", 2)
    click(app, "delete")
    write(app, "look at the other film", "return.reason")
    click(app, "return.it")
    (item,) = (task.item for task in store.queue.tasks(sent(store, "Vera").project, "Vera", state="returned"))
    better = Annotation("multiple", (*ANNA.pairs, QAPair("Who was Maria on the radio?", ("Anne Baxter",))))
    store.submissions.submit(item, "Anna", "generation", GenerationWork(better), seconds=9.0)
    app = annotate("Vera", stage="validation")
    assert "Anne Baxter" in [field.value for field in keyed(app.text_input, ".aliases.")]
    click(app, "undo")
    assert len(keyed(app.button, ".choose.")) == 2  # what was done before
    assert "Anna" not in texts(app)


def test_suggestions_while_validating(annotate: Open, store: Store) -> None:
    """Each with its probability and its passage; what is in the list already is not offered again."""
    store.predictions.save_prediction(predict(QUESTION, ("Natalie Wood", "Rachel Zegler"), probabilities=(0.9, 0.6)))
    validating(store, systems=("scripted",))
    app = annotate("Vera", stage="validation")
    assert "1 of 2 left" in texts(app)
    assert "0.60" in texts(app)
    click(app, "read", 1)
    assert ":orange-background[**Rachel Zegler**]" in texts(app)
    click(app, "choose", 2)
    click(app, "delete")  # a part of the same name, with the same question
    click(app, "accept", 1)
    fine(click(app, "submit"))
    submission = sent(store, "Vera", stage="validation")
    assert submission.content.annotation.pairs[-1] == QAPair(REMAKE, ("Rachel Zegler",), ("p2",))
    assert submission.log.viewed_passage_ids == ("p2",)


# ---------------------------------------------------------------- judging


def test_judging_two_systems_blind(annotate: Open, store: Store) -> None:
    store.predictions.save_prediction(predict(QUESTION, ("Natalie Wood", "Basalt"), system="other"))
    app = answered(annotate, store, systems=("scripted", "other"), **JUDGING)
    shown = texts(app)
    assert "scripted" not in shown
    assert "**Set A**" in shown
    assert "**Set B**" in shown
    click(app, "submit")
    assert "Choose a label for answer 1, 2, 3, 4." in texts(app)
    for number in range(4):  # the first one is in both sets
        click(app, "answer", number, "wrong" if number == 2 else "correct")
        if keyed(app.button, f".question.{number}.fits"):
            click(app, "question", number, "fits")
    assert "4 of 4 answers judged" in texts(app)
    click(app, "answer", 1, "correct")  # withdrawn
    click(app, "rest")  # what has a label keeps it
    assert "4 of 4 answers judged" in texts(app)
    click(app, "answer", 0, "outdated")
    click(app, "undo")
    write(app, "Isabella Boylston | Boylston", "missing", 0)
    write(app, "too few", "note")
    click(app, "prefer", "a")
    fine(click(app, "submit"))
    content = sent(store).content
    assert sorted(a.verdict for a in content.answers) == ["correct"] * 4 + ["wrong"]
    in_both = [a for a in content.answers if a.verdict == "correct" and a.position == 0]
    assert len({a.prediction_id for a in in_both}) == 2  # one label, counted for both
    assert content.missing == (MissingAnswer("Isabella Boylston", ("Boylston",)),)
    assert (content.preference, content.note) == ("a", "too few")
    assert content.preferred


def test_two_equal_sets_are_labelled_once_and_neither_is_better(annotate: Open, store: Store) -> None:
    store.predictions.save_prediction(predict(QUESTION, system="other"))
    app = answered(annotate, store, systems=("scripted", "other"), **JUDGING)
    assert "Which set is better?" not in texts(app)
    assert not keyed(app.button, ".prefer.")
    click(app, "answer", 1, "wrong")
    click(app, "rest")
    fine(click(app, "submit"))
    content = sent(store).content
    assert content.preference == "tie"
    assert sorted(a.verdict for a in content.answers) == ["correct"] * 4 + ["wrong"] * 2
    assert len({a.position for a in content.answers if a.verdict == "wrong"}) == 1


def test_the_same_answer_from_another_passage_is_labelled_twice(annotate: Open, store: Store) -> None:
    rows = [("p9", "Awards", "Natalie Wood, Rachel Zegler and Carol Lawrence were nominated.")]
    store.predictions.save_prediction(predict(QUESTION, ("Natalie Wood",), system="other", rows=rows))
    app = answered(annotate, store, predict(QUESTION, ("Natalie Wood",)), systems=("scripted", "other"), **JUDGING)
    assert "0 of 2 answers judged" in texts(app)


def test_shortcuts_belong_to_the_answer_in_turn(annotate: Open, store: Store) -> None:
    app = answered(annotate, store, **JUDGING)

    def with_keys() -> set[str]:
        return {b.key.rsplit(".", 2)[-2] for b in keyed(app.button, ".answer.") if b.proto.shortcut}

    assert with_keys() == {"0"}
    click(app, "answer", 0, "correct")
    assert with_keys() == {"0"}  # its question is open
    click(app, "question", 0, "fits")
    assert with_keys() == {"1"}
    click(app, "next")
    assert with_keys() == {"2"}
    assert button(app, "Undo").proto.shortcut.upper() == "U"


def test_all_shortcuts_are_safe(annotate: Open, store: Store) -> None:
    store.predictions.save_prediction(predict(QUESTION))
    make_project(store, systems=("scripted",), stages=("generation", "judging"))
    for stage in ("generation", "judging"):
        app = annotate(stage=stage)
        keys = [b.proto.shortcut for b in app.button if b.proto.shortcut]
        assert keys
        assert len(keys) == len(set(keys)), keys
        for key in keys:
            assert SAFE_SHORTCUTS.fullmatch(key) or SAFE_SHORTCUTS.fullmatch(key.upper()) or key.lower() == "ctrl+enter", key


# ---------------------------------------------------------------- finding one's way


def test_the_project_with_work_for_me_opens_and_the_sidebar_says_so(annotate: Open, store: Store) -> None:
    first = make_project(store, name="Pilot", thresholds={"must_read": 0})
    app = annotate("Ann", project=first.id)
    click(app, "kind", "none")
    fine(click(app, "submit"))
    make_project(store, name="Newer")
    assert annotate("Ann").selectbox(key="annotate.project").value != first.id
    (submission,) = store.submissions.submissions(first.id, "me")
    store.returns.return_item(submission.item, "Ann", "generation", "Look again.", "me")
    app = fine(annotate("Ann"))
    assert app.selectbox(key="annotate.project").value == first.id
    assert "Look again." in texts(app)
    assert "1 sent back in Pilot" in [link.proto.label for link in app.get("page_link")]


def test_a_validator_begins_with_validation_and_holds_nothing_else(open_app: Open, store: Store) -> None:
    project = make_project(store, stages=("generation", "validation"))
    people.add(store, people.manager(store), "Vera", "validator")
    app = fine(open_app("annotate", store.people.sign_in("Vera", people.PASSWORD)))
    assert "nothing left" in texts(app)
    assert store.items.progress(project.id, "Mia")["generation"].leased == 0


def test_the_last_item_can_be_reopened_after_a_reload(annotate: Open, store: Store) -> None:
    project = make_project(store, thresholds={"must_read": 0})
    app = annotate(project=project.id)
    click(app, "kind", "none")
    click(app, "submit")
    app = annotate(project=project.id)
    app.button(key="annotate.reopen").click().run()
    fine(app)
    assert QUESTION in texts(app)
    assert store.submissions.submissions(project.id, "me") == []


def test_where_nothing_is_left_the_next_stage_is_offered(annotate: Open, store: Store) -> None:
    for system in ("scripted", "other"):
        store.predictions.save_prediction(predict(QUESTION, system=system))
    stages = ("generation", "judging")
    project = make_project(
        store, stages=stages, systems=("scripted", "other"), questions=(QUESTION,), thresholds={"must_read": 0}
    )
    app = annotate(project=project.id)
    click(app, "kind", "none")
    click(app, "submit")
    app.button(key="annotate.following").click().run()
    assert "**In both sets**" in texts(fine(app))


def test_a_long_question_is_folded(annotate: Open, store: Store) -> None:
    question = "Who played Maria " + "and who sang it " * 120 + "?"
    make_project(store, questions=(question,))
    app = fine(annotate())
    assert len(app.subheader[0].value) < 400
    assert question in texts(app)


def test_what_nobody_sees_is_removed_from_what_is_pasted(annotate: Open, store: Store) -> None:
    make_project(store, thresholds={"must_read": 0})
    app = annotate()
    click(app, "kind", "single")
    write(app, "Nata\u00adlie\tWood", "answers", 0)
    assert find(app.text_input, "answers", 0).value == "Natalie Wood"
    assert "invisible characters" in texts(app)
    fine(click(app, "submit"))
    assert sent(store).content.annotation.pairs[0].answers == ("Natalie Wood",)


def test_two_drafts_are_compared_by_their_words_and_titles(annotate: Open, store: Store) -> None:
    app = answered(annotate, store, questions=(QUESTION,))
    other = annotate()
    click(app, "accept", 0)
    click(other, "accept", 1)
    shown = texts(other)
    assert "West Side Story (1961 film)" in shown  # a title, not "p1"
    assert "Answer: Natalie Wood" in shown
    assert "A single answer  \n" in shown  # equal in both, so it is not marked
    assert ":orange-background[Answer: Rachel Zegler]" in shown


def test_the_count_of_a_project_with_gold_items_is_no_bar_that_stays_at_zero(annotate: Open, store: Store) -> None:
    make_project(store, gold_rate=0.2)
    app = fine(annotate())
    assert not app.get("progress")
    assert "You: 0" in texts(app)
