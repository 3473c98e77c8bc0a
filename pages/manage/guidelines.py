"""A project's guidelines: Markdown with right and wrong examples, versioned, and a template for new projects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import streamlit as st

from core.annotating.aliases import join_aliases, parse_aliases
from core.errors import InputError
from core.text import time_text
from core.types import Annotation, QAPair
from pages.session import shared
from pages.session.actions import reported, say
from pages.ui.edit_conflicts import loaded_version, reload_fields
from pages.ui.markup import escape, full_label
from pages.ui.stages import PARTS, draw_example, draw_guidelines, parts_of
from storage.records.enumerations import WorkStage
from storage.records.projects import GuidelineExample, Guidelines, Project

MAX_GUIDELINE_CHARS = 20_000
TEMPLATE = Path(__file__).with_suffix(".md")  # a part for each stage, and one for those that write


def template(stages: Sequence[WorkStage]) -> str:
    """The text that a new project with these stages starts with."""
    headings = {heading for stage in stages for heading in PARTS[stage]}
    parts = parts_of(TEMPLATE.read_text(encoding="utf-8"))
    return "\n\n".join(body for heading, body in parts if heading in headings) + "\n"


def first_examples(stages: Sequence[WorkStage]) -> tuple[GuidelineExample, ...]:
    """Example answer sets as people write them; none for a project that only judges."""
    return EXAMPLES if {"generation", "validation"} & set(stages) else ()


EXAMPLES = (
    GuidelineExample(
        True,
        "Who wrote the play The Crucible?",
        Annotation("single", (QAPair("", ("Arthur Miller", "Arthur Asher Miller")),)),
        "Everybody means the same play: a single answer, with its aliases.",
    ),
    GuidelineExample(
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
    GuidelineExample(
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


def draw(project: Project, user: str) -> None:
    # version 0: nothing is saved yet; without an author, so that it is the same one after a change of the user's name
    proposal = Guidelines(project.id, 0, template(project.stages), (), "", project.created)
    latest = shared.store().projects.guidelines(project.id) or proposal
    loaded = loaded_version(
        _name(project.id), latest, lambda loaded: _typed_text(loaded) != loaded.text, lambda: _overwrite(user, latest)
    )
    st.caption(f"Version {latest.version} is in use." if latest.version else "Nothing is saved yet: below is a proposal.")
    editor, preview = st.columns(2, gap="medium")
    with editor:
        text = st.text_area(
            "Text (Markdown)", value=loaded.text, key=f"{_key(loaded)}.text", height=420, max_chars=MAX_GUIDELINE_CHARS
        )
        st.button(
            "Save as a new version",
            key=f"{_key(loaded)}.save",
            type="primary",
            on_click=_save,
            args=(user, loaded, loaded.examples),
        )
    with preview:
        st.caption("As annotators see it")
        with st.container(border=True):
            draw_guidelines(replace(loaded, text=text or ""), project.stages[0], expanded=True)
    _examples(user, loaded)
    _versions(project)


def _name(project_id: str) -> str:
    return f"guide.{project_id}"


def _key(loaded: Guidelines) -> str:
    return f"{_name(loaded.project)}.{loaded.version}"


def _typed_text(loaded: Guidelines) -> str:
    """The text in the field that began from `loaded`."""
    return str(st.session_state.get(f"{_key(loaded)}.text", loaded.text))


def _overwrite(user: str, latest: Guidelines) -> None:
    """Callback: stores this tab's text over the newer version, whose examples are kept."""
    loaded = st.session_state.get(_name(latest.project), latest)
    _store(user, latest, _typed_text(loaded), latest.examples)


def _save(user: str, loaded: Guidelines, examples: tuple[GuidelineExample, ...]) -> None:
    """Callback: these examples with the text in the field, so that unsaved typing is not lost."""
    _store(user, loaded, _typed_text(loaded), examples)


@reported
def _store(user: str, earlier: Guidelines, text: str, examples: tuple[GuidelineExample, ...]) -> None:
    saved = shared.store().projects.save_guidelines(user, earlier.project, text, examples, expected_version=earlier.version)
    reload_fields(_name(earlier.project))
    say(f"Guidelines saved. Version {saved.version} is now in use.")


def _examples(user: str, loaded: Guidelines) -> None:
    st.markdown("**Examples** :gray[right and wrong answer sets, shown below the text]")
    key, examples = _key(loaded), loaded.examples
    for number, example in enumerate(examples):
        with st.container(border=True):
            draw_example(example)
            st.button(
                full_label("Delete", f"example {number + 1}"),
                key=f"{key}.drop.{number}",
                on_click=_save,
                args=(user, loaded, examples[:number] + examples[number + 1 :]),
            )
    with st.expander("Add an example"), st.form(f"{key}.example", border=False):
        st.segmented_control("This example is", ["Right", "Wrong"], default="Right", required=True, key=f"{key}.right")
        st.text_input("Question", key=f"{key}.prompt", max_chars=2_000)
        st.text_area(
            "Answers, one per line: question → answer | alias (a single answer needs no question; leave empty for no answer)",
            key=f"{key}.pairs",
            max_chars=MAX_GUIDELINE_CHARS,
            placeholder="Who wrote the play in 1953? → Arthur Miller",
        )
        st.text_input("Why", key=f"{key}.why", max_chars=2_000)
        st.form_submit_button("Add example", on_click=_add, args=(user, loaded))


def example_of(right: bool, prompt: str, pairs: str, reason: str) -> GuidelineExample:
    """The example in the fields.  Raises InputError without a question, or for a line without an answer."""
    if not prompt.strip():
        raise InputError("the example has no question; write one as somebody would ask it")
    answer_pairs = []
    for number, line in enumerate((x for x in pairs.splitlines() if x.strip()), 1):
        question, arrow, answers = line.replace("->", "→").rpartition("→")
        aliases = parse_aliases(answers)
        if not aliases:
            raise InputError(f"line {number} of the answers has no answer; write: question → answer")
        answer_pairs.append(QAPair(" ".join(question.split()) if arrow else "", aliases))
    kind = {0: "none", 1: "single"}.get(len(answer_pairs), "multiple")
    return GuidelineExample(right, " ".join(prompt.split()), Annotation(kind, tuple(answer_pairs)), reason.strip())  # type: ignore[arg-type]


@reported
def _add(user: str, loaded: Guidelines) -> None:
    key = _key(loaded)
    prompt, pairs, reason = (str(st.session_state.get(f"{key}.{field}") or "") for field in ("prompt", "pairs", "why"))
    example = example_of(st.session_state.get(f"{key}.right") == "Right", prompt, pairs, reason)
    _save(user, loaded, (*loaded.examples, example))


def _versions(project: Project) -> None:
    versions = shared.store().projects.guideline_versions(project.id)
    if len(versions) < 2:
        return
    with st.expander(f"Earlier versions ({len(versions) - 1})"):
        for old in versions[1:]:
            st.markdown(f"**Version {old.version}** :gray[{time_text(old.created)} by {escape(old.author)}]")
            st.text(old.text)
            for example in old.examples:
                st.caption(
                    f"{'Right' if example.right else 'Wrong'}: {escape(example.prompt)} → "
                    + escape("; ".join(join_aliases(p.answers) for p in example.annotation.pairs) or "no answer")
                )
