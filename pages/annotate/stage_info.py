"""Beside the form: guidelines, progress, and how practice work compares with the reference."""

from __future__ import annotations

import re

import streamlit as st

from core.annotating.aliases import join_aliases
from core.types import Annotation
from pages.annotate import place
from pages.annotate.state import Feedback
from pages.annotate.submit_bar import FEEDBACK
from pages.ui.formatting import percent
from pages.ui.keyboard import SUBMIT
from pages.ui.markup import changes, escape, without_pictures
from storage.records.annotation import GenerationWork, JudgingWork, ValidationWork
from storage.records.enumerations import WorkStage
from storage.records.projects import Example, Guidelines, Project, StageProgress

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
    """(heading, text with it) of each part; "" for what is before the first one."""
    starts = list(_PART.finditer(text))
    ends = [m.start() for m in starts] + [len(text)]
    before = text[: ends[0]].strip()
    parts = [(m[1], text[m.start() : end].strip()) for m, end in zip(starts, ends[1:])]
    return [("", before), *parts] if before else parts


def by_stage(text: str, stage: WorkStage) -> tuple[str, str]:
    """(the part for people of this stage, the other parts).  A text without this stage's heading has other parts only; what is before
    the first heading is for everybody, and comes first."""
    parts = parts_of(text)
    if PARTS[stage][0] not in dict(parts):
        return "", text.strip()
    headings = ("", *PARTS[stage])
    stage_text = "\n\n".join(body for name, body in parts if name in headings)
    return stage_text, "\n\n".join(body for name, body in parts if name not in headings)


def draw_annotation(annotation: Annotation, prompt: str) -> None:
    """An answer set to read."""
    if annotation.type == "none":
        st.markdown("No answer")
    for pair in annotation.pairs:
        question = f"{changes(prompt, pair.question)}  \n" if pair.question else ""
        st.markdown(f"{question}→ **{escape(join_aliases(pair.answers))}**")


def draw_guidelines(guidelines: Guidelines | None, stage: WorkStage, expanded: bool = False) -> None:
    """The one place where Markdown of a person is drawn as Markdown: a manager's guidelines, without pictures and with HTML off (Streamlit's default)."""
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


def draw_example(example: Example) -> None:
    badge = ":green-badge[Right]" if example.right else ":red-badge[Wrong]"
    st.markdown(f"{badge} **{escape(example.prompt)}**")
    draw_annotation(example.annotation, example.prompt)
    if example.why:
        st.caption(escape(example.why))


def draw_progress(project: Project, stage: WorkStage, user: str) -> StageProgress:
    """The user's and everybody's, of this stage.  Returns the user's."""
    store = place.store()
    mine = store.items.progress(project.id, user, annotator=user, stage=stage)[stage]
    share, team = 0.0, ""
    if not project.gold_rate:  # a gold item does not count for the team, which would give it away
        everybody = store.items.submitted(project.id, user, stage)
        share = everybody / mine.slots if mine.slots else 0.0
        team = f" · Team: {everybody:,} of {mine.slots:,}"
    counts = {"sent back to you": mine.returned, "drafts": mine.drafts, "skipped": mine.skipped}
    details = "".join(f", {count} {words}" for words, count in counts.items() if count)
    st.progress(min(1.0, share), text=f"You: {mine.submitted}{details}{team}")
    return mine


TAKERS: dict[WorkStage, tuple[str, str]] = {
    "generation": ("to write", "annotators"),
    "validation": ("to validate", "validators"),
    "judging": ("to judge", "annotators"),
}


def remaining(progress: StageProgress, unanswered: int, is_current: bool) -> str:
    """The remaining work of a stage, and who can take it.  `unanswered`: items without a system's answer; `is_current`: it is the
    stage of the user, for whom it has nothing more."""
    work, takers = TAKERS[progress.stage]
    per_item = progress.slots // progress.items if progress.items else 0
    to_do = per_item * (progress.open - unanswered)  # what was validated is done, also by fewer people
    free = min(to_do, to_do + per_item * progress.done - progress.submitted) - progress.leased - progress.returned
    counts = {
        f"{work}, by {'other ' if is_current else ''}{takers}": free,
        "open with somebody now": progress.leased,
        "sent back to the person who did them": progress.returned,
        "waiting for the previous stage": progress.waiting,
        "waiting for a system's answer, which a manager starts on Manage under Suggestions": unanswered,
    }
    return "; ".join(f"{count:,} {words}" for words, count in counts.items() if count > 0) or "nothing"


def draw_nothing_left(project: Project, stage: WorkStage, user: str, mine: StageProgress) -> None:
    """The remaining work of the project, stage by stage.  `mine`: the user's progress at this stage."""
    everybody = place.store().items.progress(project.id, user)
    unanswered = 0
    if stage == "judging":
        # at least this many, where the queue has none to judge: open ones that are neither the user's nor with others
        judging = everybody["judging"]
        unanswered = max(0, judging.open - judging.leased - mine.submitted - mine.over - mine.skipped)
    if unanswered:
        st.info("There is nothing to judge yet.", icon=":material/hourglass_empty:")
    else:
        st.info("There is nothing left for you at this stage. Thank you!", icon=":material/check:")
    lines = (
        f"- **{STAGES[name]}**: {remaining(progress, unanswered if name == 'judging' else 0, name == stage)}"
        for name, progress in everybody.items()
    )
    st.markdown("Still to do in this project:\n" + "\n".join(lines))


def _continue() -> None:
    st.session_state.pop(FEEDBACK, None)


def draw_feedback() -> bool:
    """After a practice item: the comparison with the reference.  True while it is on the screen."""
    outcome = st.session_state.get(FEEDBACK)
    if not isinstance(outcome, Feedback):
        return False
    feedback = outcome.feedback
    st.subheader(escape(outcome.question))
    if feedback.right:
        st.success(f"Right: {percent(feedback.score)} agreement with the reference.", icon=":material/check:")
    else:
        st.error(f"Not quite: {percent(feedback.score)} agreement with the reference.", icon=":material/close:")
    mine, reference = st.columns(2)
    with mine:
        st.markdown("**Yours**")
        _content(outcome.content, outcome.question)
    with reference:
        st.markdown("**Reference**")
        for annotation in feedback.references:
            draw_annotation(annotation, outcome.question)
    st.button("Continue", type="primary", shortcut=SUBMIT, on_click=_continue, key="annotate.go_on")
    return True


def _content(content: object, prompt: str) -> None:
    if isinstance(content, GenerationWork | ValidationWork):
        draw_annotation(content.annotation, prompt)
    elif isinstance(content, JudgingWork):
        for answer in content.answers:
            st.markdown(f"Answer {answer.position + 1}: **{escape(answer.verdict)}**")
