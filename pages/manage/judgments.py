"""What judges said of an item: each answer with its label, in the order of the prediction, and what was missing."""

from __future__ import annotations

import streamlit as st

from core.annotating.aliases import join_aliases
from core.types import Prediction
from pages.session import shared
from pages.ui.markup import changes, escape
from storage.records.annotation import JudgedAnswer, JudgingWork, Submission

COLOURS = {"correct": "green", "wrong": "red", "unsupported": "orange", "duplicate": "gray"}
QUESTIONS = {
    "fits": "green-badge[question fits]",
    "ambiguous_still": "orange-badge[question still ambiguous]",
    "changes_meaning": "red-badge[question changes the meaning]",
}


def predictions_of(content: JudgingWork, item: str, who: str) -> dict[str, Prediction]:
    """By id, in the order of the project's systems."""
    store = shared.store()
    order = [p.prediction_id for p in store.items.get_item(item, who).predictions]
    order += sorted({a.prediction_id for a in content.answers} - set(order))
    found = ((name, store.predictions.find_prediction(name)) for name in order)
    return {name: stored.prediction for name, stored in found if stored is not None}


def draw(submission: Submission, content: JudgingWork, who: str) -> None:
    found = predictions_of(content, submission.item, who)
    given = sorted(content.answers, key=lambda a: a.position)
    for name, prediction in found.items():
        if len(found) > 1:
            better = " :blue-badge[preferred]" if name == content.preferred else ""
            st.markdown(f"Answers of **{escape(prediction.system.name)}**{better}")
        own = [a for a in given if a.prediction_id == name]
        if not prediction.answers:
            st.caption("The system found no answer.")
        st.markdown("\n".join(_line(a, prediction, submission.question) for a in own))
    if lost := [a for a in given if a.prediction_id not in found]:
        st.markdown("\n".join(_line(a, None, submission.question) for a in lost))
    if content.preference == "tie":
        st.caption("Both sets are equally good.")
    if content.missing:
        st.markdown("**Missing answers**")
        st.markdown("\n".join(f"- {escape(join_aliases((m.text, *m.aliases)))}" for m in content.missing))


def _line(answer: JudgedAnswer, prediction: Prediction | None, prompt: str) -> str:
    """An entry of a list."""
    known = prediction is not None and answer.position < len(prediction.answers)
    text = prediction.answers[answer.position].text if prediction is not None and known else "an answer that is not stored"
    parts = [f"{answer.position + 1}. **{escape(text)}** :{COLOURS[answer.verdict]}-badge[{escape(answer.verdict)}]"]
    clarified = prediction.clarification_of(text) if prediction is not None else None
    if answer.question is not None:
        parts[0] += f" :{QUESTIONS[answer.question]}"
    if clarified is not None:
        parts.append(changes(prompt, clarified.question))
    if answer.note:
        parts.append(f":gray[Note: {escape(answer.note)}]")
    return "  \n   ".join(parts)
