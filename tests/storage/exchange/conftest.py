"""A small project of the workbench with work of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from annotation_samples import multiple, project, single, validate
from storage_samples import prediction

from core import types as t
from storage.records.annotation import GenerationWork, JudgedAnswer, JudgingWork, MissingAnswer, SuggestionUse
from storage.store import Store

QUESTION = "Who played part 0?"
FORMULA = "=cmd|'/C calc'!A0"  # what a spreadsheet would run


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store in which Ada and Bob annotated two questions of its project and judged the first one, which Val validated."""
    with Store(f"sqlite:///{tmp_path_factory.mktemp('worked') / 'ambiscope.db'}") as store:
        stages, systems = ("generation", "validation", "judging"), ("ambigprompt", "fid")
        parts = project(store, 2, stages=stages, systems=systems, annotators_per_item=2)
        first = store.predictions.save_prediction(prediction(QUESTION, ["Natalie Wood", "Rachel Zegler"], id="q0"))
        second = store.predictions.save_prediction(prediction(QUESTION, ["Natalie Wood", "Nobody"], id="q0", system="fid"))
        store.intake.link_predictions("Mia", parts.id)
        items = {i.question: i.id for i in store.items.items(parts.id, "Mia", stage="generation")}
        item, other = items[QUESTION], items["Who played part 1?"]
        uses = (SuggestionUse(second, 1, "Nobody", "rejected"), SuggestionUse(first, 0, "Natalie Wood", "accepted"))
        for name, answer in (("Ada", "Rachel Zegler"), ("Bob", "Carol")):
            store.queue.claim_item(item, name, "generation")
            store.drafts.log_search(item, name, "generation", "maria film")
            store.drafts.log_view(item, name, "generation", "p1", "Title 1")
            pairs = tuple(replace(pair, passage_ids=("p1",)) for pair in multiple("Natalie Wood", answer).pairs)
            content = GenerationWork(t.Annotation("multiple", pairs), uses)
            store.submissions.submit(item, name, "generation", content, seconds=60)
            store.queue.claim_item(other, name, "generation")
            store.submissions.submit(other, name, "generation", GenerationWork(single(FORMULA)), seconds=30)
        store.queue.claim_item(item, "Val", "validation")
        validate(store, item, "Val", multiple("Natalie Wood", "Rachel Zegler"))
        answers = (
            JudgedAnswer(first, 0, "correct", "fits"),
            JudgedAnswer(first, 1, "correct", "ambiguous_still"),
            JudgedAnswer(second, 0, "correct", "fits"),
            JudgedAnswer(second, 1, "wrong", "changes_meaning"),
        )
        for name in ("Ada", "Bob"):
            store.queue.claim_item(item, name, "judging")
            sides = store.reviews.judging_sheet(item, name).sides
            preferred = next(side.name for side in sides if side.prediction_id == first)
            judged = JudgingWork(answers, (MissingAnswer("Maria Lopez", ("M. Lopez",)),), preferred)
            store.submissions.submit(item, name, "judging", judged, seconds=40)
        yield store
