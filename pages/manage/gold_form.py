"""Creates a gold item by hand: a question, and each of its right answers with the question that has only this answer."""

from __future__ import annotations

import streamlit as st

from core.annotating.aliases import parse_aliases
from core.errors import InputError
from core.types import Annotation, AnnotationType, QAPair, ReferenceQuestion
from pages.session import shared
from pages.session.actions import reported, say
from storage.records.projects import Project

ARROW = "->"
KEY_PREFIX = "manage.gold"


def right_answers(text: str) -> Annotation:
    """The reference of a gold item: an answer a line, aliases separated by `|`; of several, each after its question and an arrow.  Nothing:
    the question has no answer.  Raises InputError naming the line.

    >>> [pair.answers for pair in right_answers("Who played her on stage? -> Carol Lawrence\\nWho in 1961? -> Natalie Wood | N. Wood").pairs]
    [('Carol Lawrence',), ('Natalie Wood', 'N. Wood')]
    >>> right_answers("Natalie Wood | N. Wood").type
    'single'
    """
    pairs = []
    lines = [line for line in text.splitlines() if line.strip()]
    for number, line in enumerate(lines, 1):
        question, arrow, answers = (part.strip() for part in line.partition(ARROW))
        if not arrow:
            question, answers = "", question
        aliases = parse_aliases(answers)
        if not aliases:
            raise InputError(f"line {number} has no answer: write it after the arrow, QUESTION {ARROW} ANSWER | ALIAS")
        if len(lines) > 1 and not question:
            raise InputError(f"line {number} has no question: several answers need one each, QUESTION {ARROW} ANSWER | ALIAS")
        pairs.append(QAPair(question if len(lines) > 1 else "", aliases))
    kind: AnnotationType = "multiple" if len(pairs) > 1 else "single" if pairs else "none"
    return Annotation(kind, tuple(pairs))


def draw(project: Project, user: str) -> None:
    with st.expander("Add a gold item", icon=":material/verified:", key=f"{KEY_PREFIX}.open"):
        st.caption(
            "A question whose right answers you know. It is mixed into the work, as often as the project's settings say, and measures how "
            "often people are right. To use a finished item, select it in the table."
        )
        st.text_input("Question", key=f"{KEY_PREFIX}.question", max_chars=2_000)
        st.text_area(
            "Right answers, one per line (none: the question has no answer)",
            key=f"{KEY_PREFIX}.answers",
            max_chars=20_000,
            placeholder=f"Who played Maria in the 1961 film? {ARROW} Natalie Wood | Natasha Gurdin\n"
            f"Who played Maria on Broadway in 1957? {ARROW} Carol Lawrence",
        )
        st.button("Add gold item", key=f"{KEY_PREFIX}.add", on_click=_add, args=(project, user))


@reported
def _add(project: Project, user: str) -> None:
    state = st.session_state
    question = " ".join(str(state.get(f"{KEY_PREFIX}.question") or "").split())
    reference = right_answers(str(state.get(f"{KEY_PREFIX}.answers") or ""))
    report = shared.store().intake.add_items(user, project.id, [ReferenceQuestion("", question, (reference,))], gold=True)
    if not report.added:
        raise InputError("this question is in the project already: select its item in the table, and make it gold there")
    state[f"{KEY_PREFIX}.question"] = state[f"{KEY_PREFIX}.answers"] = ""
    say(
        "Gold item added."
        if project.gold_rate
        else "Gold item added. Under Settings, say how often gold items are mixed into the work."
    )
