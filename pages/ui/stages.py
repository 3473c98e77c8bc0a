"""The stages of a project: their names, their guidelines, and annotations as text."""

from __future__ import annotations

import re

import streamlit as st

from core.annotating.aliases import join_aliases
from core.types import Annotation
from pages.ui.markup import changes, escape, without_pictures
from storage.records.enumerations import WorkStage
from storage.records.projects import GuidelineExample, Guidelines

STAGES: dict[WorkStage, str] = {"generation": "Writing", "validation": "Validation", "judging": "Judging"}
IN_SHORT: dict[WorkStage, str] = {
    "generation": (
        "Find **every** answer the question can have. Search and open passages first. Then say whether there is no answer, a single "
        "answer, or several. If there are several, change the question as little as possible so that each version has only one answer."
    ),
    "validation": (
        "Several people answered this question. Combine answers that are the same, separate those that are not, and correct or delete "
        "wrong ones. Keep the best question for each answer, or edit it or strike it out."
    ),
    "judging": (
        "Rate each answer by its passage. **Correct**: it answers the question in some reading, and the passage says so. **Wrong**: it "
        "does not answer it. **Unsupported**: it may be true, but the passage does not say so. **Duplicate**: the same as an earlier "
        "answer. **Outdated**: it was right once, and a newer document says otherwise. **Contradicts**: another document says otherwise, and "
        "nothing tells which is right. **Fits**: the rewritten question has only this answer, and asks the same. **Still ambiguous**: it has other answers, "
        "too. **Changes the meaning**: it asks something else. Then add answers that are missing."
    ),
}


# headings of the text that a new project starts from (pages/manage/guidelines.py)
_PART = re.compile(r"^\*\*(Writing answers|Validating|Answers and their questions|Judging)\.\*\*", re.MULTILINE)
PARTS: dict[WorkStage, tuple[str, ...]] = {
    "generation": ("Writing answers", "Answers and their questions"),
    "validation": ("Validating", "Answers and their questions"),
    "judging": ("Judging",),
}


def parts_of(text: str) -> list[tuple[str, str]]:
    """(heading, text with it) of each part, with "" for the part before the first heading."""
    starts = list(_PART.finditer(text))
    ends = [m.start() for m in starts] + [len(text)]
    before = text[: ends[0]].strip()
    parts = [(m[1], text[m.start() : end].strip()) for m, end in zip(starts, ends[1:])]
    return [("", before), *parts] if before else parts


def by_stage(text: str, stage: WorkStage) -> tuple[str, str]:
    """(the part for people of this stage, the other parts).  A text without this stage's heading has other parts only.  The
    part before the first heading is for everybody and comes first."""
    parts = parts_of(text)
    if PARTS[stage][0] not in dict(parts):
        return "", text.strip()
    headings = ("", *PARTS[stage])
    stage_text = "\n\n".join(body for name, body in parts if name in headings)
    return stage_text, "\n\n".join(body for name, body in parts if name not in headings)


def draw_annotation(annotation: Annotation, prompt: str) -> None:
    """An answer set for reading."""
    if annotation.type == "none":
        st.markdown("No answer")
    for pair in annotation.pairs:
        question = f"{changes(prompt, pair.question)}  \n" if pair.question else ""
        st.markdown(f"{question}→ **{escape(join_aliases(pair.answers))}**")


def draw_guidelines(guidelines: Guidelines | None, stage: WorkStage, expanded: bool = False) -> None:
    """The one place that draws a person's Markdown as Markdown: a manager's guidelines, without pictures and with HTML off
    (Streamlit's default)."""
    more = f", {len(guidelines.examples)} examples at the end" if guidelines and guidelines.examples else ""
    label = f"Guidelines{f' (version {guidelines.version}{more})' if guidelines else ''}"
    with st.expander(label, expanded=expanded, icon=":material/menu_book:"):
        st.markdown(IN_SHORT[stage])
        if guidelines is None:
            return
        stage_text, other_text = by_stage(guidelines.text, stage)
        if stage_text:
            st.markdown(without_pictures(stage_text))  # Markdown of a manager; unsafe_allow_html stays False
        if other_text:
            if stage != "generation":
                st.caption("Guidelines for the other stages:" if stage_text else "Guidelines for the whole project:")
            st.markdown(without_pictures(other_text))
        for example in sorted(guidelines.examples, key=lambda e: not e.right):
            with st.container(border=True):
                draw_example(example)


def draw_example(example: GuidelineExample) -> None:
    badge = ":green-badge[Right]" if example.right else ":red-badge[Wrong]"
    st.markdown(f"{badge} **{escape(example.prompt)}**")
    draw_annotation(example.annotation, example.prompt)
    if example.why:
        st.caption(escape(example.why))
