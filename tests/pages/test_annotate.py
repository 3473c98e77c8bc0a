"""The annotate page: what is shown and what is stored, stage by stage."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from annotate_helpers import QUESTIONS, SECOND, click, find, fine, make_project, predict, read_something, write
from page_helpers import QUESTION, button, texts
from streamlit.testing.v1 import AppTest

from core.types import Annotation, Passage, QAPair, ReferenceQuestion
from storage.records.annotation import GenerationWork, JudgingWork, SuggestionUse, ValidationWork
from storage.store import Store

pytestmark = pytest.mark.usefixtures("light")
Open = Callable[..., AppTest]
FILM, REMAKE, STAGE = QUESTIONS.values()


# ---------------------------------------------------------------- launch


def test_launches_on_an_empty_database(open_app: Open) -> None:
    app = open_app("annotate")
    fine(app)
    assert "There is no open project yet" in texts(app)


def test_a_new_annotator_sees_the_guidelines_and_the_keys(annotate: Open, store: Store) -> None:
    make_project(store, guidelines="# Look twice\nUse **dates**.")
    app = annotate()
    fine(app)
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
    assert "This is the prompt question" in shown
    assert "Write the answer." in shown
    assert "Search and open a passage first" in shown
    assert store.submissions.submissions(project.id, "me") == []

    write(app, "Which actress played Maria in the other film?", "question", 1)
    write(app, "Rachel Zegler", "answers", 1)
    assert "It asks 'which'" in texts(app)  # doubts, kept
    assert "'other' cannot be understood" in texts(app)
    read_something(app)
    assert "Opened so far" in texts(app) or "Back to the search results" in str([b.label for b in app.button])
    cite = [b for b in app.button if b.key and ".cite." in b.key]
    cite[0].click().run()
    click(app, "submit")
    fine(app)

    (sent,) = store.submissions.submissions(project.id, "me")
    assert isinstance(sent.content, GenerationWork)
    first, second = sent.content.annotation.pairs
    assert (first.question, first.answers) == (FILM, ("Natalie Wood", "Natasha Gurdin"))
    assert first.passage_ids == sent.log.viewed_passage_ids[:1]
    assert second.answers == ("Rachel Zegler",)
    assert len(sent.content.warnings) >= 2
    assert sent.log.used_queries == ("Maria West Side Story",)
    assert sent.seconds > 0
    assert SECOND in texts(app)  # the next item came at once


def test_suggestions_accepted_edited_rejected(annotate: Open, store: Store) -> None:
    prediction = store.predictions.save_prediction(predict(QUESTION))
    project = make_project(store, systems=("scripted",))
    app = annotate(project=project.id)
    fine(app)
    assert "Natalie Wood" in texts(app)
    assert "3 of 3 left" in texts(app)
    click(app, "accept", 0)
    click(app, "accept", 1)
    click(app, "reject", 2)
    write(app, "Rachel Zegler | R. Zegler", "answers", 1) if any(
        e.key.endswith("answers.1") for e in app.text_input if e.key
    ) else write(app, "Rachel Zegler | R. Zegler", "answers", 2)
    assert "0 of 3 left" in texts(app)
    read_something(app)
    click(app, "submit")
    fine(app)
    (sent,) = store.submissions.submissions(project.id, "me")
    assert isinstance(sent.content, GenerationWork)
    assert [(u.position, u.action) for u in sent.content.suggestions] == [(0, "accepted"), (1, "edited"), (2, "rejected")]
    assert isinstance(sent.content.suggestions[0], SuggestionUse)
    assert {u.prediction_id for u in sent.content.suggestions} == {prediction}
    assert sent.content.annotation.pairs[0] == QAPair(FILM, ("Natalie Wood",), ("p1",))


def test_all_suggestions_at_once(annotate: Open, store: Store) -> None:
    store.predictions.save_prediction(predict(QUESTION))
    make_project(store, systems=("scripted",))
    app = annotate()
    click(app, "reject", 1)
    click(app, "accept.all")
    assert "0 of 3 left" in texts(app)
    assert len([e for e in app.text_input if e.key and ".answers." in e.key]) == 2
    click(app, "undo")
    assert "2 of 3 left" in texts(app)


def test_the_evidence_of_a_suggestion_counts_as_read(annotate: Open, store: Store) -> None:
    store.predictions.save_prediction(predict(QUESTION))
    project = make_project(store, systems=("scripted",))
    app = annotate(project=project.id)
    click(app, "read", 0)
    assert ":orange-background[**Natalie Wood**]" in texts(app)
    click(app, "accept", 0)
    click(app, "submit")
    fine(app)
    (sent,) = store.submissions.submissions(project.id, "me")
    assert sent.log.viewed_passage_ids == ("p1",)


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
    assert not [e for e in app.text_input if e.key and e.key.endswith("answers.0")]


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
    assert find(app.button, "skip.it").disabled
    write(app, "not my field", "reason")
    click(app, "skip.it")
    fine(app)
    assert SECOND in texts(app)
    skipped = store.queue.tasks(project.id, "me", state="skipped")
    assert [(t.question, t.reason) for t in skipped] == [(QUESTION, "not my field")]
    app.button(key="annotate.reopen").click().run()
    fine(app)
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
    app.button(key="annotate.reopen").click().run()
    fine(app)
    assert find(app.text_input, "answers", 0).value == "Natalie Wood"
    assert store.submissions.submissions(project.id, "me") == []


def test_own_passages_of_an_item(annotate: Open, store: Store) -> None:
    project = store.projects.create_project("me", "own", corpus="small")
    passages = (Passage("x1", "Own title", "Anna met Ben in Rome."),)
    store.intake.add_items("me", project.id, [ReferenceQuestion("q", "Where did they meet?", (), passages)])
    app = annotate(project=project.id)
    assert "1 passages come with this question" in texts(app)
    click(app, "open", "x1")
    assert "Anna met Ben in Rome." in texts(app)
    fine(app)


# ---------------------------------------------------------------- validation


def annotate_by_store(store: Store, project: str, who: str, annotation: Annotation) -> str:
    task = store.queue.next_item(project, who, "generation")
    assert task is not None
    store.drafts.log_view(task.item, who, "generation", "p1", "West Side Story (1961 film)")
    store.submissions.submit(task.item, who, "generation", GenerationWork(annotation), seconds=30.0)
    return task.item


ANNA = Annotation("multiple", (QAPair(FILM, ("Natalie Wood",), ("p1",)), QAPair(STAGE, ("Carol Lawrence",))))
BEN = Annotation(
    "multiple", (QAPair("Who was Maria in the 1961 film?", ("natalie wood", "Natasha Gurdin")), QAPair(REMAKE, ("Zegler",)))
)


def validating(store: Store) -> tuple[str, str]:
    project = make_project(store, stages=("generation", "validation"), annotators_per_item=2, questions=(QUESTION,))
    item = annotate_by_store(store, project.id, "Anna", ANNA)
    annotate_by_store(store, project.id, "Ben", BEN)
    return project.id, item


def test_validation_of_answers_and_their_questions(annotate: Open, store: Store) -> None:
    project, _ = validating(store)
    app = annotate("Vera", project=project, stage="validation")
    fine(app)
    shown = texts(app)
    assert "A: 2 answers · B: 2 answers" in shown
    assert "Anna" not in shown
    click(app, "choose", 1)
    click(app, "choose", 2)
    click(app, "combine")
    assert len([b for b in app.button if b.key and ".choose." in b.key]) == 2
    click(app, "undo")
    assert len([b for b in app.button if b.key and ".choose." in b.key]) == 3
    write(app, "Rachel Zegler", "aliases", 2, 0)
    click(app, "keep", 0, 1)  # strike Ben's wording
    assert find(app.text_input, "wording", 0, 1).disabled
    click(app, "keep", 1, 0)
    assert "would have no question" in app.error[0].value
    write(app, "Who played Maria in the film of 2021?", "wording", 2, 0)
    click(app, "submit")
    fine(app)
    (sent,) = store.submissions.submissions(project, "Vera", stage="validation")
    assert isinstance(sent.content, ValidationWork)
    pairs = sent.content.annotation.pairs
    assert [p.question for p in pairs] == [FILM, STAGE, "Who played Maria in the film of 2021?"]
    assert pairs[0].answers == ("Natalie Wood", "natalie wood", "Natasha Gurdin")
    assert pairs[2].answers == ("Rachel Zegler",)

    mine = annotate("Anna", project=project)
    mine.segmented_control(key="annotate.view").set_value("My items").run()
    fine(mine)
    assert "**Final**" in texts(mine)
    assert "**Rachel Zegler**" in texts(mine)


def test_one_answer_has_no_questions_to_validate_and_work_is_sent_back(annotate: Open, store: Store) -> None:
    project, _ = validating(store)
    app = annotate("Vera", project=project, stage="validation")
    click(app, "choose", 1)
    click(app, "choose", 2)
    click(app, "delete")
    assert not [b for b in app.button if b.key and ".keep." in b.key]
    click(app, "restart")
    assert find(app.button, "keep", 0, 0)
    write(app, "look at the remake too", "return.reason")
    click(app, "return.it")
    fine(app)
    returned = store.queue.tasks(project, "Vera", state="returned")
    assert [(t.annotator, t.reason) for t in returned] == [("Anna", "look at the remake too")]
    anna = annotate("Anna", project=project)
    assert "look at the remake too" in texts(anna)
    assert find(anna.text_input, "answers", 0).value == "Natalie Wood"


def test_suggestions_while_validating(annotate: Open, store: Store) -> None:
    """Each with its probability and its passage; what is in the list already is not offered again."""
    store.predictions.save_prediction(predict(QUESTION, ("Natalie Wood", "Rachel Zegler"), probabilities=(0.9, 0.6)))
    project = make_project(
        store, stages=("generation", "validation"), annotators_per_item=2, questions=(QUESTION,), systems=("scripted",)
    )
    for who, annotation in (("Anna", ANNA), ("Ben", BEN)):
        annotate_by_store(store, project.id, who, annotation)
    app = annotate("Vera", project=project.id, stage="validation")
    assert "1 of 2 left" in texts(app)
    assert "60%" in texts(app)
    click(app, "read", 1)
    assert ":orange-background[**Rachel Zegler**]" in texts(app)
    click(app, "choose", 2)
    click(app, "delete")  # a part of the same name, with the same question
    click(app, "accept", 1)
    click(app, "submit")
    fine(app)
    (sent,) = store.submissions.submissions(project.id, "Vera", stage="validation")
    assert isinstance(sent.content, ValidationWork)
    assert sent.content.annotation.pairs[-1] == QAPair(REMAKE, ("Rachel Zegler",), ("p2",))
    assert sent.log.viewed_passage_ids == ("p2",)


# ---------------------------------------------------------------- judging


def test_judging_two_systems_blind(annotate: Open, store: Store) -> None:
    store.predictions.save_prediction(predict(QUESTION))
    store.predictions.save_prediction(predict(QUESTION, ("Natalie Wood", "Basalt"), system="other"))
    project = make_project(store, stages=("judging",), systems=("scripted", "other"), questions=(QUESTION,))
    app = annotate(project=project.id)
    fine(app)
    shown = texts(app)
    assert "scripted" not in shown
    assert "**Set A**" in shown
    assert "**Set B**" in shown
    click(app, "submit")
    assert "Choose a label for answer 1, 2, 3, 4, 5." in texts(app)
    for at in range(5):
        click(app, "answer", at, "wrong" if at == 2 else "correct")
        if any(b.key and b.key.endswith(f"question.{at}.fits") for b in app.button):
            click(app, "question", at, "fits")
    assert "5 of 5 answers judged" in texts(app)
    click(app, "answer", 1, "correct")  # withdrawn
    click(app, "rest")  # what has a label keeps it
    assert "5 of 5 answers judged" in texts(app)
    click(app, "answer", 0, "outdated")
    click(app, "undo")
    write(app, "Isabella Boylston | Boylston", "missing", 0)
    write(app, "too few", "note")
    click(app, "prefer", "a")
    click(app, "submit")
    fine(app)
    (sent,) = store.submissions.submissions(project.id, "me")
    assert isinstance(sent.content, JudgingWork)
    assert sorted(a.verdict for a in sent.content.answers) == ["correct"] * 4 + ["wrong"]
    assert (sent.content.missing[0].text, sent.content.missing[0].aliases) == ("Isabella Boylston", ("Boylston",))
    assert sent.content.preference == "a"
    assert sent.content.preferred
    assert sent.content.note == "too few"


def test_shortcuts_belong_to_the_answer_in_turn(annotate: Open, store: Store) -> None:
    store.predictions.save_prediction(predict(QUESTION))
    project = make_project(store, stages=("judging",), systems=("scripted",), questions=(QUESTION,))
    app = annotate(project=project.id)

    def with_keys() -> set[str]:
        return {b.key.rsplit(".", 2)[-2] for b in app.button if b.key and ".answer." in b.key and b.proto.shortcut}

    assert with_keys() == {"0"}
    click(app, "answer", 0, "correct")
    assert with_keys() == {"0"}  # its question is open
    click(app, "question", 0, "fits")
    assert with_keys() == {"1"}
    click(app, "next")
    assert with_keys() == {"2"}
    assert button(app, "Undo").proto.shortcut.upper() == "U"


def test_all_shortcuts_are_safe(annotate: Open, store: Store) -> None:
    from pages.ui.keyboard import SAFE

    store.predictions.save_prediction(predict(QUESTION))
    make_project(store, systems=("scripted",), stages=("generation", "judging"))
    for stage in ("generation", "judging"):
        app = annotate(stage=stage)
        keys = [b.proto.shortcut for b in app.button if b.proto.shortcut]
        assert keys
        assert len(keys) == len(set(keys)), keys
        for key in keys:
            assert SAFE.fullmatch(key) or SAFE.fullmatch(key.upper()) or key.lower() == "ctrl+enter", key
