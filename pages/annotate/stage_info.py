"""Beside the form: progress, remaining work, and the comparison of practice work with the reference."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core.text import percent
from pages.annotate.state import Feedback
from pages.annotate.submit_bar import FEEDBACK
from pages.session import place
from pages.ui.keyboard import SUBMIT, capture_keys, legend
from pages.ui.markup import escape
from pages.ui.stages import STAGES, draw_annotation
from storage.records.annotation import GenerationWork, JudgingWork, ValidationWork
from storage.records.enumerations import WorkStage
from storage.records.projects import Project, StageProgress


def draw_progress(project: Project, stage: WorkStage, user: str) -> StageProgress:
    """The user's and everybody's progress at this stage.  Returns the user's."""
    store = place.store()
    mine = store.items.progress(project.id, user, annotator=user, stage=stage)[stage]
    counts = {"sent back to you": mine.returned, "in drafts": mine.drafts, "skipped": mine.skipped}
    details = "".join(f", {count:,} {words}" for words, count in counts.items() if count)
    text = f"You: {mine.submitted:,}{details}"
    if project.gold_rate or not mine.slots:  # a gold item does not count for the team, which would give it away
        st.caption(text)
    else:
        everybody = store.items.submitted(project.id, user, stage)
        st.progress(min(1.0, everybody / mine.slots), text=f"Team: {everybody:,} of {mine.slots:,} · {text}")
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
    per_item = progress.slots / progress.items if progress.items else 0
    to_do = progress.open_slots - round(per_item * unanswered)
    filled = progress.slots - progress.open_slots if progress.done else 0  # what was validated is done, also by fewer people
    free = min(to_do, to_do + filled - progress.submitted) - progress.leased - progress.returned
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
    following = next((name for name in _stages_with_work(project, user, everybody) if name != stage), None)
    if following is not None:
        st.button(
            f"Go to {STAGES[following]}",
            key="annotate.following",
            type="primary",
            icon=":material/arrow_forward:",
            shortcut=SUBMIT,
            on_click=_go,
            args=(project, following),
        )
    st.markdown("Still to do in this project:\n" + "\n".join(lines))


def _stages_with_work(project: Project, user: str, everybody: Mapping[WorkStage, StageProgress]) -> list[WorkStage]:
    """The stages where this person may work and has open items left."""
    can_validate = place.store().may("see others' work")
    mine = place.store().items.progress(project.id, user, annotator=user)
    done = {name: p.submitted + p.over + p.skipped for name, p in mine.items()}
    names = [name for name in project.stages if name != "validation" or can_validate]
    return [n for n in names if mine[n].returned or (everybody[n].open > everybody[n].leased and done[n] < everybody[n].items)]


def _go(project: Project, stage: WorkStage) -> None:
    """Callback."""
    st.session_state[f"annotate.stage.{project.id}"] = stage
    st.query_params["project"], st.query_params["stage"] = project.id, stage


def _continue() -> None:
    st.session_state.pop(FEEDBACK, None)


def draw_feedback(stage: WorkStage) -> bool:
    """The comparison with the reference after a practice item.  True while it is on the screen; another stage ends it."""
    outcome = st.session_state.get(FEEDBACK)
    if not isinstance(outcome, Feedback) or not place.practising() or outcome.stage != stage:
        _continue()
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
    legend(((SUBMIT, "continue"),))
    capture_keys(f"feedback.{outcome.item}.{stage}")
    return True


def _content(content: object, prompt: str) -> None:
    if isinstance(content, GenerationWork | ValidationWork):
        draw_annotation(content.annotation, prompt)
    elif isinstance(content, JudgingWork):
        for answer in content.answers:
            st.markdown(f"Answer {answer.position + 1}: **{escape(answer.verdict)}**")
