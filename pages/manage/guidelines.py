"""A project's guidelines: Markdown with right and wrong examples, versioned; and what a new project starts from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from core.annotating.aliases import join_aliases, parse_aliases
from core.errors import InputError
from core.types import Annotation, QAPair
from pages.annotate import stage_info
from pages.session import shared
from pages.session.actions import reported, say
from pages.ui.edit_conflicts import loaded_version, reload_fields
from pages.ui.markup import escape, named
from storage.records.enumerations import WorkStage
from storage.records.projects import Example, Guidelines, Project

CHARS = 20_000
TEMPLATE = Path(__file__).with_suffix(".md")  # a part for each stage, and one for those that write


def template(stages: Sequence[WorkStage]) -> str:
    """The text that a project with these stages starts from."""
    wanted = {name for stage in stages for name in stage_info.PARTS[stage]}
    parts = stage_info.parts_of(TEMPLATE.read_text(encoding="utf-8"))
    return "\n\n".join(body for name, body in parts if name in wanted) + "\n"


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
    loaded = loaded_version(
        name, stored, lambda held: _typed(project, held) != _text(project, held), lambda: _over(project, who, stored)
    )
    key = _key(project, loaded)
    st.caption(f"Version {stored.version} is in use." if stored else "Nothing is saved yet: below is a proposal.")
    left, right = st.columns(2, gap="medium")
    with left:
        text = st.text_area(
            "Text (Markdown)",
            value=_text(project, loaded),
            key=f"{key}.text",
            height=420,
            max_chars=CHARS,
        )
        st.button(
            "Save as a new version",
            key=f"{key}.save",
            type="primary",
            on_click=_save,
            args=(project, who, loaded),
        )
    with right:
        st.caption("As annotators see it")
        with st.container(border=True):
            version = loaded.version if loaded else 0
            preview = Guidelines(project.id, version, text or "", loaded.examples if loaded else (), who, project.created)
            stage_info.draw_guidelines(preview, project.stages[0], expanded=True)
    _examples(project, who, loaded, key)
    _versions(project)


def _name(project: Project) -> str:
    return f"guide.{project.id}"


def _key(project: Project, loaded: Guidelines | None) -> str:
    return f"{_name(project)}.{loaded.version if loaded else 0}"


def _text(project: Project, loaded: Guidelines | None) -> str:
    return loaded.text if loaded else template(project.stages)


def _typed(project: Project, loaded: Guidelines | None) -> str:
    """What stands in the field that began from `found`."""
    return str(st.session_state.get(f"{_key(project, loaded)}.text", _text(project, loaded)))


def _save(project: Project, who: str, loaded: Guidelines | None) -> None:
    _store(project, who, _typed(project, loaded), loaded.examples if loaded else (), loaded)


def _over(project: Project, who: str, stored: Guidelines | None) -> None:
    """This tab's text over the newer version, whose examples stay."""
    held = st.session_state.get(_name(project))
    _store(project, who, _typed(project, held), stored.examples if stored else (), stored)


def _keep(project: Project, who: str, examples: tuple[Example, ...], loaded: Guidelines | None) -> None:
    """These examples, with the text as it stands in the field: what was typed there and not saved yet must not be lost."""
    _store(project, who, _typed(project, loaded), examples, loaded)


@reported
def _store(project: Project, who: str, text: str, examples: tuple[Example, ...], loaded: Guidelines | None) -> None:
    version = loaded.version if loaded else 0
    saved = shared.store().projects.save_guidelines(who, project.id, text, examples, expected_version=version)
    reload_fields(_name(project))
    say(f"Guidelines saved. Version {saved.version} is now in use.")


def _examples(project: Project, who: str, loaded: Guidelines | None, key: str) -> None:
    st.markdown("**Examples** :gray[right and wrong answer sets, shown below the text]")
    examples = loaded.examples if loaded else ()
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
                args=(project, who, rest, loaded),
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
        st.form_submit_button("Add example", on_click=_add, args=(project, who, loaded, key))


def example_of(right: bool, prompt: str, pairs: str, why: str) -> Example:
    """Raises InputError without a question, or for a line without an answer."""
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
    return Example(right, " ".join(prompt.split()), Annotation(kind, tuple(answer_pairs)), why.strip())  # type: ignore[arg-type]


@reported
def _add(project: Project, who: str, loaded: Guidelines | None, key: str) -> None:
    prompt, pairs, why = (str(st.session_state.get(f"{key}.{field}") or "") for field in ("prompt", "pairs", "why"))
    example = example_of(st.session_state.get(f"{key}.right") == "Right", prompt, pairs, why)
    _keep(project, who, (*(loaded.examples if loaded else ()), example), loaded)


def _versions(project: Project) -> None:
    versions = shared.store().projects.guideline_versions(project.id)
    if len(versions) < 2:
        return
    with st.expander(f"Earlier versions ({len(versions) - 1})"):
        for old in versions[1:]:
            st.markdown(f"**Version {old.version}** :gray[{old.created.astimezone():%Y-%m-%d %H:%M} by {escape(old.author)}]")
            st.text(old.text)
            for example in old.examples:
                st.caption(
                    f"{'Right' if example.right else 'Wrong'}: {escape(example.prompt)} → "
                    + escape("; ".join(join_aliases(p.answers) for p in example.annotation.pairs) or "no answer")
                )
