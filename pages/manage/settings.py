"""The settings of a project (corpus, systems, people per item, order, gold items, error labels, reservation time, warnings), and having
a system answer its questions."""

from __future__ import annotations

from datetime import date
from typing import Any

import streamlit as st

from core import types as t
from core.errors import AmbiscopeError, CancelledError
from core.retrieval.library import STARTER
from core.systems import choice_of
from core.systems.base.options import Options
from core.text import listed
from pages.session import background as jobs
from pages.session import shared
from pages.session.actions import action, reported, say
from pages.session.systems import MAX_PASSAGES
from pages.ui.edit_conflicts import loaded_version, reload_fields
from pages.ui.markup import escape
from pages.ui.stages import STAGES
from pages.ui.tables import table
from storage.analysis.answering import Answering
from storage.records.enumerations import Order
from storage.records.projects import LEASE_MINUTES, MAX_GOLD_RATE, THRESHOLDS, Project

ORDERS: dict[Order, str] = {
    "file": "As in the file",
    "random": "Random",
    "uncertainty": "Least certain first",
    "disagreement": "Most disagreement first",
}

# a number of a project, or one of its thresholds -> end of its key, label, minimum, maximum, default
NUMBERS: dict[str, tuple[str, str, int, int, float]] = {
    "annotators_per_item": ("number", "People per item", 1, 100, 1),
    "must_read": ("read", "Minimum passages to open before submitting", 0, 20, THRESHOLDS["must_read"]),
    "lease_minutes": ("lease", "Reserve an opened item for this many idle minutes", 1, 1440, LEASE_MINUTES),
    "alias_words": ("words", "Warn about answers of this many words or more", 2, 50, THRESHOLDS["alias_words"]),
    "min_seconds_no_pairs": (
        "wait",
        "Minimum time before submitting no answer or a single answer (seconds)",
        0,
        600,
        THRESHOLDS["min_seconds_no_pairs"],
    ),
    "seed": ("seed", "Random seed for the order", 0, 2**31 - 1, 0),
}


def _names(kind: str) -> list[str]:
    """Corpora or systems to choose from."""
    if kind == "systems":
        ready = [s.name for s in shared.systems() if s.ready]
        default = shared.settings().system
        return ready if default in ready else [default, *ready]
    return list(dict.fromkeys([STARTER, *shared.light_engine().library.names()]))


def fields(key: str, project: Project | None) -> None:
    """The fields that the forms for creating and changing a project share."""
    first, second = st.columns(2, gap="medium")
    with first:
        corpora, systems = _names("corpora"), _names("systems")
        corpus = project.corpus if project and project.corpus else shared.settings().corpus
        corpora = corpora if corpus in corpora else [corpus, *corpora]
        st.selectbox("Corpus to search", corpora, index=corpora.index(corpus), key=f"{key}.corpus")
        selected = list(project.systems) if project else []
        st.multiselect(
            "Systems (up to two)",
            list(dict.fromkeys([*selected, *systems])),
            default=selected,
            format_func=choice_of,
            max_selections=2,
            select_all=False,  # offered by Streamlit however few may be chosen
            key=f"{key}.systems",
            persist_state=None if project else "session",
            help="Annotators get their answers as suggestions, and judges judge them. Judging needs one or two systems.",
        )
        _number(key, "annotators_per_item", project)
    with second:
        orders = list(ORDERS)
        index = orders.index(project.order) if project else 0
        st.selectbox("Order", orders, index=index, format_func=ORDERS.__getitem__, key=f"{key}.order")
        st.date_input(
            "Reference date",
            value=project.reference_date if project else date.today(),
            key=f"{key}.date",
            help="Answers should be true on this date: questions about a later time get a warning. Leave empty for no warning.",
        )
        _number(key, "must_read", project)
    with st.expander("More: gold items, error labels and time limits"):
        rate = round(100 * project.gold_rate) if project else 0
        st.slider(
            "Gold items among the work (%)",
            0,
            round(100 * MAX_GOLD_RATE),
            rate,
            key=f"{key}.mixed",
            help="How often somebody gets a gold item in the place of another one. It looks like all others. Add gold items under Items.",
        )
        st.text_area(
            "Error labels of this project, one per line",
            "\n".join(project.error_labels) if project else "",
            key=f"{key}.errors",
            max_chars=2_000,
            help="Judges can give them to an answer beside our own labels, such as correct and wrong. They are exported.",
        )
        for name in ("lease_minutes", "alias_words", "min_seconds_no_pairs", "seed"):
            _number(key, name, project)


def _number(key: str, name: str, project: Project | None) -> None:
    end, label, low, high, default = NUMBERS[name]
    value = project.thresholds[name] if project and name in THRESHOLDS else getattr(project, name, default)
    st.number_input(label, low, high, int(value), key=f"{key}.{end}")


def values(key: str) -> dict[str, Any]:
    """The current values of the fields.  A click may arrive together with the last change of a field."""
    state = st.session_state
    numbers = {name: int(state[f"{key}.{end}"]) for name, (end, *_) in NUMBERS.items()}
    thresholds = {name: numbers.pop(name) for name in THRESHOLDS}
    return {
        **numbers,
        "corpus": state[f"{key}.corpus"],
        "systems": tuple(state[f"{key}.systems"]),
        "order": state[f"{key}.order"],
        "reference_date": state[f"{key}.date"],
        "gold_rate": state[f"{key}.mixed"] / 100,
        "error_labels": tuple(line.strip() for line in state[f"{key}.errors"].splitlines() if line.strip()),
        "lease_minutes": float(numbers["lease_minutes"]),
        "thresholds": thresholds,
    }


# ---------------------------------------------------------------- settings


def settings(latest: Project, user: str) -> None:
    name = f"manage.set.{latest.id}"
    project = loaded_version(name, latest, _touched, lambda: _save(latest, user, _key(st.session_state[name])))
    key = _key(project)
    st.text_input("Name", value=project.name, key=f"{key}.name", max_chars=200)
    fields(key, project)
    st.caption("Stages (cannot be changed): " + ", ".join(STAGES[s] for s in project.stages))
    with st.container(horizontal=True):
        st.button("Save", type="primary", key=f"{key}.save", on_click=_save, args=(project, user, key))
        label, state = ("Close project", "closed") if project.state == "open" else ("Reopen project", "open")
        st.button(label, key=f"{key}.state", on_click=_update, args=(project, user, {"state": state}))


def _key(project: Project) -> str:
    return f"manage.set.{project.id}.{project.version}"


def _changes(key: str) -> dict[str, Any]:
    return {"name": str(st.session_state[f"{key}.name"]), **values(key)}


def _touched(project: Project) -> bool:
    """Whether anything was changed in the fields that started from this version."""
    key = _key(project)
    is_drawn = f"{key}.name" in st.session_state
    return is_drawn and any(getattr(project, name) != value for name, value in _changes(key).items())


def _save(project: Project, user: str, key: str) -> None:
    _update(project, user, _changes(key))


@reported
def _update(project: Project, user: str, changes: dict[str, Any]) -> None:
    shared.store().projects.update_project(user, project.id, project.version, **changes)
    reload_fields(f"manage.set.{project.id}")
    say("Saved.")


# ---------------------------------------------------------------- suggestions


def suggestions(project: Project, user: str) -> None:
    st.markdown(
        "The project's systems answer its questions in the background, one after the other; you can leave this page. Annotators get "
        "their answers as suggestions, and judges judge them. This does not count as work done."
    )
    if project.id in jobs.running("preannotations"):
        jobs.watch("preannotations")
        return
    if (job := jobs.jobs_of("preannotations").get(project.id)) is not None:
        _report(project, job)
    if not project.systems:
        st.info("This project has no system. Choose one under Settings first.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        systems = st.multiselect(
            "Systems", project.systems, default=project.systems, format_func=choice_of, key="manage.pre.systems"
        )
        top_k = st.number_input(
            "Passages to read", 1, MAX_PASSAGES, value=min(shared.settings().top_k, MAX_PASSAGES), key="manage.pre.k"
        )
        clarify = st.checkbox(
            "Write disambiguated questions",
            value=True,
            key="manage.pre.clarify",
            help="Rewrites the question for each answer, which takes longer. Without it, only the answers are suggested and judged.",
        )
        st.button(
            "Answer questions",
            type="primary",
            key="manage.pre.go",
            on_click=_begin,
            args=(project, systems, int(top_k), clarify),
            disabled=not systems,
        )
    st.button(
        "Link predictions already stored",
        key="manage.pre.link",
        icon=":material/link:",
        on_click=_link,
        args=(project, user),
        type="tertiary",
    )


@action("manage projects")
def _begin(project: Project, systems: list[str], top_k: int, clarify: bool) -> None:
    default = min(shared.settings().top_k, MAX_PASSAGES)  # unchanged: the system's own default, at most the whole corpus
    options = Options(top_k=None if top_k == default else top_k, max_answers=shared.settings().max_answers, clarify=clarify)
    engine, user = shared.engine(), shared.annotator()
    store = shared.servers_store()  # the server's, as the work continues when the person leaves

    def answering(system: str) -> Answering:
        def build(own_passages: bool) -> t.AnsweringSystem:
            corpus = project.corpus or None
            return engine.system(system, corpus, options, lambda: job.stopping, own_passages=own_passages)

        return Answering(store, project, system, user, build)

    runs = [answering(system) for system in systems]

    def work(job: jobs.BackgroundJob) -> None:
        problems: list[AmbiscopeError] = []
        for number, run in enumerate(runs):

            def progress(number: int = number, run: Answering = run) -> None:
                job.share, job.stage = (number + run.part) / len(runs), f"{run.system}: {run.stage}"

            try:
                run.answer_items(lambda: job.stopping, progress)
            except CancelledError:
                raise
            except AmbiscopeError as problem:  # the other system may be ready
                problems.append(problem)
        if problems:
            raise problems[0]

    job = jobs.BackgroundJob(work, f"{' and '.join(systems)}: {project.name}", runs[0].stage, subject=runs)
    jobs.begin("preannotations", project.id, job)


@action("manage projects")
def _link(project: Project, user: str) -> None:
    count = shared.store().intake.link_predictions(user, project.id)
    say(f"{listed(count, 'stored prediction')} linked.")


def _report(project: Project, job: jobs.BackgroundJob) -> None:
    runs: list[Answering] = job.subject
    jobs.show_failure(job)
    for run in runs:
        if run.stage == "done":
            answered, linked = listed(run.answered, "question"), listed(run.linked, "prediction")
            st.success(f"{answered} answered by {escape(run.system)}; {linked} linked.")
        if run.failures:
            st.warning(f"{listed(run.failures, 'question')} could not be answered by {escape(run.system)}. The first ones:")
            rows = [{"Question": question, "Reason": reason} for question, reason in run.failed]
            table(rows, f"Questions that {run.system} could not answer, with the reason")
    jobs.close_button("preannotations", project.id, job)
