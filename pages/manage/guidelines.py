"""A project's guidelines: Markdown with right and wrong examples, versioned; and what a new project starts from."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.annotating.aliases import join_aliases, parse_aliases
from core.errors import AmbiscopeError, InputError
from core.types import Annotation, QAPair
from pages.annotate import stage_info
from pages.manage.items import ERROR, MESSAGE
from pages.session import shared
from pages.ui.edit_conflicts import loaded_version, reload_fields
from pages.ui.markup import escape, named
from storage.records.enumerations import WorkStage
from storage.records.projects import Example, Guidelines, Project

CHARS = 20_000
# what a stage's part says; each is put in where the project has the stage
GENERATION = """\
**Writing answers.** You see a question as somebody typed it. Find all the answers that it can have, and for each of them a question that has this answer only.

1. **Search and read first.** Answer from the passages, not from memory. Open the passages that you use.
2. **No answer**: the passages answer the question in no reading. **A single answer**: every reader would mean the same.
   **Several answers**: the question can be read in several ways (other years, places, versions, persons of one name, parts of a whole).
"""
VALIDATION = """\
**Validating.** You see what several people answered to one question, and make one answer set of it.

1. **Combine** answers that say the same, and keep every spelling as an alias. **Separate** what is not the same.
2. **Check each answer in the passages.** Correct or delete what they do not say; add an answer that everybody missed.
3. **Keep the best question of each answer**, mend it, or strike it: it has this answer only.
"""
ANSWER_SETS = """\
**Answers and their questions.**

1. **Change the question as little as possible.** Keep its words and its question word; add what tells the readings apart: a year, a place, a title.
2. **Answers are short**: a name, a date, a number. Part other spellings of the same answer with `|`.
3. **Each question stands alone.** Do not write *other*, *another* or *the second one*.
4. **Time.** Name years instead of *last* or *current*. Of a list that grows every year, give the three latest cases.
5. **Two annotations agree** when both are of one kind, when their answers match one to one (an alias of one is an alias of the other, and of no
   third answer), and when the questions of matching answers have the same words. An item on which everybody agrees needs no validation.
"""
JUDGING = """\
**Judging.** You see what a system answered to a question as somebody typed it. Say of each answer, and of each rewritten question, what it is worth.

1. **Read the passage of each answer first.** Judge by what it says, not from memory.
2. **Correct**: an answer to the question in some reading, and its passage says so. **Wrong**: no answer to it.
   **Unsupported**: may be true, but the passage does not say so. **Duplicate**: the same as an earlier answer of the set, in other words.
3. **A rewritten question fits** where it has this answer and no other, and still asks what was asked.
   **Still ambiguous**: other answers fit it too. **Changes the meaning**: it asks something else.
4. **Add what is missing**: answers that the passages hold and the system did not give, short, with other spellings after `|`.
5. **Two sets**: prefer the one with more right answers and fewer wrong ones; how many there are is no merit.
"""


def template(stages: Sequence[WorkStage]) -> str:
    """The text that a project with these stages starts from."""
    writes = {"generation", "validation"} & set(stages)
    parts = (
        (GENERATION, "generation" in stages),
        (VALIDATION, "validation" in stages),
        (ANSWER_SETS, bool(writes)),
        (JUDGING, "judging" in stages),
    )
    return "\n".join(text for text, wanted in parts if wanted)


def first_examples(stages: Sequence[WorkStage]) -> tuple[Example, ...]:
    """They show answer sets as people write them: none for a project that only judges."""
    return EXAMPLES if {"generation", "validation"} & set(stages) else ()


EXAMPLES = (
    Example(
        True,
        "Who wrote the play The Crucible?",
        Annotation("single", (QAPair("", ("Arthur Miller", "Arthur Asher Miller")),)),
        "Everybody means the same play: a single answer, with its aliases.",
    ),
    Example(
        True,
        "When did Harry Potter and the Sorcerer's Stone come out?",
        Annotation(
            "multiple",
            (
                QAPair("When did the book Harry Potter and the Sorcerer's Stone come out?", ("June 26, 1997",)),
                QAPair("When did the film Harry Potter and the Sorcerer's Stone come out in the UK?", ("November 16, 2001",)),
            ),
        ),
        "A book and a film have this name; little was changed, and each question has one answer.",
    ),
    Example(
        False,
        "When did Harry Potter and the Sorcerer's Stone come out?",
        Annotation(
            "multiple",
            (
                QAPair("When was the book published?", ("June 26, 1997",)),
                QAPair("What about the other one?", ("2001 / November 16",)),
            ),
        ),
        "The questions do not stand alone, and / is part of an answer: part aliases with |.",
    ),
)


def draw(project: Project, who: str) -> None:
    stored = shared.store().projects.guidelines(project.id)
    name = _name(project)
    found = loaded_version(
        name, stored, lambda held: _typed(project, held) != _text(project, held), lambda: _over(project, who, stored)
    )
    key = _key(project, found)
    st.caption(f"Version {stored.version} is in use." if stored else "There are no guidelines yet.")
    left, right = st.columns(2, gap="medium")
    with left:
        text = st.text_area(
            "Text (Markdown)",
            value=_text(project, found),
            key=f"{key}.text",
            height=420,
            max_chars=CHARS,
        )
        st.button(
            "Save as a new version",
            key=f"{key}.save",
            type="primary",
            on_click=_save,
            args=(project, who, found),
        )
    with right:
        st.caption("As annotators see it")
        with st.container(border=True):
            version = found.version if found else 0
            preview = Guidelines(project.id, version, text or "", found.examples if found else (), who, project.created)
            stage_info.draw_guidelines(preview, project.stages[0], expanded=True)
    _examples(project, who, found, key)
    _versions(project)


def _name(project: Project) -> str:
    return f"guide.{project.id}"


def _key(project: Project, found: Guidelines | None) -> str:
    return f"{_name(project)}.{found.version if found else 0}"


def _text(project: Project, found: Guidelines | None) -> str:
    return found.text if found else template(project.stages)


def _typed(project: Project, found: Guidelines | None) -> str:
    """What stands in the field that began from `found`."""
    return str(st.session_state.get(f"{_key(project, found)}.text", _text(project, found)))


def _save(project: Project, who: str, found: Guidelines | None) -> None:
    _store(project, who, _typed(project, found), found.examples if found else (), found)


def _over(project: Project, who: str, stored: Guidelines | None) -> None:
    """This tab's text over the newer version, whose examples stay."""
    held = st.session_state.get(_name(project))
    _store(project, who, _typed(project, held), stored.examples if stored else (), stored)


def _keep(project: Project, who: str, examples: tuple[Example, ...], found: Guidelines | None) -> None:
    """These examples, with the text as it stands in the field: what was typed there and not saved yet must not be lost."""
    _store(project, who, _typed(project, found), examples, found)


def _store(project: Project, who: str, text: str, examples: tuple[Example, ...], found: Guidelines | None) -> None:
    try:
        saved = shared.store().projects.save_guidelines(
            who, project.id, text, examples, expected_version=found.version if found else 0
        )
        reload_fields(_name(project))
        st.session_state[MESSAGE] = f"Guidelines saved. Version {saved.version} is now in use."
    except AmbiscopeError as error:
        st.session_state[ERROR] = error


def _examples(project: Project, who: str, found: Guidelines | None, key: str) -> None:
    st.markdown("**Examples** :gray[right and wrong answer sets, shown below the text]")
    examples = found.examples if found else ()
    for number, example in enumerate(examples):
        with st.container(border=True):
            st.markdown(f"{'Right' if example.right else 'Wrong'}: **{escape(example.prompt)}**")
            stage_info.draw_annotation(example.annotation, example.prompt)
            if example.why:
                st.caption(escape(example.why))
            rest = examples[:number] + examples[number + 1 :]
            st.button(
                named("Delete", f"example {number + 1}"),
                key=f"{key}.drop.{number}",
                on_click=_keep,
                args=(project, who, rest, found),
            )
    with st.expander("Add an example"), st.form(f"{key}.example", border=False):
        st.segmented_control("This example is", ["Right", "Wrong"], default="Right", required=True, key=f"{key}.right")
        st.text_input("Question", key=f"{key}.prompt", max_chars=2_000)
        st.text_area(
            "Answers, one per line: question → answer | alias (a single answer needs no question; leave empty for no answer)",
            key=f"{key}.pairs",
            max_chars=CHARS,
            placeholder="Who wrote the play in 1953? → Arthur Miller",
        )
        st.text_input("Why", key=f"{key}.why", max_chars=2_000)
        st.form_submit_button("Add example", on_click=_add, args=(project, who, found, key))


def example_of(right: bool, prompt: str, pairs: str, why: str) -> Example:
    """Raises InputError without a question, or for a line without an answer."""
    if not prompt.strip():
        raise InputError("the example has no question; write one as somebody would ask it")
    found = []
    for number, line in enumerate((x for x in pairs.splitlines() if x.strip()), 1):
        question, arrow, answers = line.replace("->", "→").rpartition("→")
        aliases = parse_aliases(answers)
        if not aliases:
            raise InputError(f"line {number} of the answers has no answer; write: question → answer")
        found.append(QAPair(" ".join(question.split()) if arrow else "", aliases))
    kind = {0: "none", 1: "single"}.get(len(found), "multiple")
    return Example(right, " ".join(prompt.split()), Annotation(kind, tuple(found)), why.strip())  # type: ignore[arg-type]


def _add(project: Project, who: str, found: Guidelines | None, key: str) -> None:
    state = st.session_state
    try:
        example = example_of(
            state.get(f"{key}.right") == "Right",
            str(state.get(f"{key}.prompt") or ""),
            str(state.get(f"{key}.pairs") or ""),
            str(state.get(f"{key}.why") or ""),
        )
    except AmbiscopeError as error:
        state[ERROR] = error
        return
    _keep(project, who, (*(found.examples if found else ()), example), found)


def _versions(project: Project) -> None:
    versions = shared.store().projects.guideline_versions(project.id)
    if len(versions) < 2:
        return
    with st.expander(f"Earlier versions ({len(versions) - 1})"):
        for old in versions[1:]:
            st.markdown(f"**Version {old.version}** :gray[{old.created.astimezone():%Y-%m-%d %H:%M} by {escape(old.by)}]")
            st.text(old.text)
            for example in old.examples:
                st.caption(
                    f"{'Right' if example.right else 'Wrong'}: {escape(example.prompt)} → "
                    + escape("; ".join(join_aliases(p.answers) for p in example.annotation.pairs) or "no answer")
                )
