"""The fields of a project (corpus, systems, people an item, order, qualification, how long an opened item is reserved,
warnings), changing them, and having a system answer its questions."""

from __future__ import annotations

from datetime import date
from typing import Any, get_args

import pandas as pd
import streamlit as st

from core.errors import AmbiscopeError, InputError
from core.retrieval.library import STARTER
from core.systems.base.options import Options
from pages.annotate.stage_info import STAGES
from pages.jobs import background as jobs
from pages.manage import system_answers
from pages.manage.items import ERROR, MESSAGE
from pages.manage.system_answers import Preannotation
from pages.session import shared
from pages.session.actions import action
from pages.ui.edit_conflicts import loaded_version, reload_fields
from pages.ui.markup import escape
from storage.records.defaults import GOLD_PASS, LEASE_MINUTES, THRESHOLDS
from storage.records.enumerations import Order
from storage.records.projects import Project

ORDERS: dict[Order, str] = {
    "file": "As in the file",
    "random": "Random",
    "uncertainty": "Least certain first",
    "disagreement": "Most disagreement first",
}


def _names(what: str) -> list[str]:
    """Corpora or systems to choose from."""
    if what == "systems":
        ready = [s.name for s in shared.systems() if s.ready]
        wanted = shared.settings().system
        return ready if wanted in ready else [wanted, *ready]
    return list(dict.fromkeys([STARTER, *shared.light_engine().library.names()]))


def fields(key: str, project: Project | None) -> None:
    """The fields that creating and changing share."""
    limits = project.thresholds if project else THRESHOLDS
    left, right = st.columns(2, gap="medium")
    with left:
        corpora, systems = _names("corpora"), _names("systems")
        chosen = project.corpus if project and project.corpus else shared.settings().corpus
        corpora = corpora if chosen in corpora else [chosen, *corpora]
        st.selectbox("Corpus to search", corpora, index=corpora.index(chosen), key=f"{key}.corpus")
        held = list(project.systems) if project else []
        st.multiselect(
            "Systems (up to two)",
            list(dict.fromkeys([*held, *systems])),
            default=held,
            max_selections=2,
            select_all=False,  # offered by Streamlit however few may be chosen
            key=f"{key}.systems",
            persist_state=None if project else "session",
            help="Their answers are suggestions for people who write answers, and are what people judge. Judging needs one or two systems.",
        )
        st.number_input("People per item", 1, 100, project.annotators_per_item if project else 1, key=f"{key}.number")
    with right:
        orders = list(get_args(Order))
        at = orders.index(project.order) if project else 0
        st.selectbox("Order", orders, index=at, format_func=ORDERS.__getitem__, key=f"{key}.order")
        st.date_input(
            "Reference date",
            value=project.reference_date if project else date.today(),
            key=f"{key}.date",
            help="Answers should be true on this date: questions about a later time get a warning. Leave empty for no warning.",
        )
        st.number_input("Minimum passages to open before submitting", 0, 20, int(limits["must_read"]), key=f"{key}.read")
    with st.expander("More: qualification and time limits"):
        st.number_input(
            "Qualification items per person (0 = none)",
            0,
            100,
            project.gold_first if project else 0,
            key=f"{key}.gold",
        )
        st.slider(
            "Minimum share of qualification items to get right",
            0.0,
            1.0,
            project.gold_pass if project else GOLD_PASS,
            key=f"{key}.pass",
        )
        st.number_input(
            "Reserve an opened item for this many idle minutes",
            1,
            1440,
            int(project.lease_minutes if project else LEASE_MINUTES),
            key=f"{key}.lease",
        )
        st.number_input("Warn about answers of this many words or more", 2, 50, int(limits["alias_words"]), key=f"{key}.words")
        st.number_input(
            "Minimum time before submitting no answer or a single answer (seconds)",
            0,
            600,
            int(limits["min_seconds_no_pairs"]),
            key=f"{key}.wait",
        )
        st.number_input("Random seed for the order", 0, 2**31 - 1, project.seed if project else 0, key=f"{key}.seed")


def values(key: str, project: Project | None) -> dict[str, Any]:
    """What stands in the fields now: a click may come together with the last change of a field."""
    state = st.session_state
    limits = dict(project.thresholds if project else THRESHOLDS)
    limits |= {
        "must_read": int(state[f"{key}.read"]),
        "alias_words": int(state[f"{key}.words"]),
        "min_seconds_no_pairs": int(state[f"{key}.wait"]),
    }
    return {
        "corpus": state[f"{key}.corpus"],
        "systems": tuple(state[f"{key}.systems"]),
        "annotators_per_item": int(state[f"{key}.number"]),
        "order": state[f"{key}.order"],
        "reference_date": state[f"{key}.date"],
        "gold_first": int(state[f"{key}.gold"]),
        "gold_pass": float(state[f"{key}.pass"]),
        "lease_minutes": float(state[f"{key}.lease"]),
        "seed": int(state[f"{key}.seed"]),
        "thresholds": limits,
    }


# ---------------------------------------------------------------- settings


def settings(stored: Project, who: str) -> None:
    name = f"manage.set.{stored.id}"
    project = loaded_version(name, stored, _touched, lambda: _save(stored, who, _key(st.session_state[name])))
    key = _key(project)
    st.text_input("Name", value=project.name, key=f"{key}.name", max_chars=200)
    fields(key, project)
    st.caption("Stages (cannot be changed): " + ", ".join(STAGES[s] for s in project.stages))
    with st.container(horizontal=True):
        st.button("Save", type="primary", key=f"{key}.save", on_click=_save, args=(project, who, key))
        state = "closed" if project.state == "open" else "open"
        st.button(
            "Close project" if project.state == "open" else "Reopen project",
            key=f"{key}.state",
            on_click=_update,
            args=(project, who, {"state": state}),
        )


def _key(project: Project) -> str:
    return f"manage.set.{project.id}.{project.version}"


def _changes(project: Project, key: str) -> dict[str, Any]:
    return {"name": str(st.session_state[f"{key}.name"]), **values(key, project)}


def _touched(project: Project) -> bool:
    """Something was changed in the fields that began from this version."""
    key = _key(project)
    drawn = f"{key}.name" in st.session_state
    return drawn and any(getattr(project, name) != value for name, value in _changes(project, key).items())


def _save(project: Project, who: str, key: str) -> None:
    _update(project, who, _changes(project, key))


def _update(project: Project, who: str, changes: dict[str, Any]) -> None:
    try:
        shared.store().projects.update_project(who, project.id, project.version, **changes)
        reload_fields(f"manage.set.{project.id}")
        st.session_state[MESSAGE] = "Saved."
    except AmbiscopeError as error:
        st.session_state[ERROR] = error


# ---------------------------------------------------------------- suggestions


def suggestions(project: Project, who: str) -> None:
    st.markdown(
        "A system answers the project's questions in the background; you can leave this page. Its answers are suggestions for people who "
        "write answers, and are what people judge. This does not count as work done."
    )
    running = system_answers.running().get(project.id)
    if running is not None and not running.done:
        jobs.watch("preannotations")
        return
    if running is not None:
        report(running)
    if not project.systems:
        st.info("This project has no system. Choose one under Settings first.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        system = st.selectbox("System", list(project.systems), key="manage.pre.system")
        k = st.number_input("Passages to read", 1, 200, value=min(shared.settings().top_k, 200), key="manage.pre.k")
        clarify = st.checkbox(
            "Write disambiguated questions",
            value=True,
            key="manage.pre.clarify",
            help="Rewrites the question for each answer. This takes most of the time. Without it, only the answers are suggested and judged.",
        )
        st.button(
            "Answer questions",
            type="primary",
            key="manage.pre.go",
            on_click=_begin,
            args=(project, system, int(k), clarify),
        )
    st.button(
        "Link predictions already stored",
        key="manage.pre.link",
        icon=":material/link:",
        on_click=_link,
        args=(project, who),
        type="tertiary",
    )


@action("manage projects", ERROR)
def _begin(project: Project, system: str, k: int, clarify: bool) -> None:
    running = system_answers.running().get(project.id)
    if running is not None and not running.done:
        raise InputError("a system is already answering this project's questions; wait until it is finished, or stop it")
    usual = min(shared.settings().top_k, 200)  # left as it is: the system's own default, at most the whole corpus
    options = Options(top_k=None if k == usual else k, max_answers=shared.settings().max_answers, clarify=clarify)
    who = shared.annotator()  # the server's store takes any name
    system_answers.running()[project.id] = Preannotation(shared.engine(), shared.servers_store(), project, system, who, options)


@action("manage projects", ERROR)
def _link(project: Project, who: str) -> None:
    count = shared.store().intake.link_predictions(who, project.id)
    st.session_state[MESSAGE] = f"{count:,} stored predictions linked."


def report(run: Preannotation) -> None:
    if not jobs.ended(run):
        st.success(f"{run.answered:,} questions answered by {escape(run.system)}; {run.linked:,} predictions linked.")
    if run.failures:
        st.warning(f"{run.failures:,} questions could not be answered. The first ones:")
        st.dataframe(
            pd.DataFrame(run.failed, columns=["Question", "Reason"]),
            hide_index=True,
            alt="Questions that could not be answered, with the reason",
        )
    jobs.close_button("preannotations", run.project.id)
