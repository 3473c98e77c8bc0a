"""Quality: how far people agree, how systems and judges compare with them; snapshots, and the loop."""

from __future__ import annotations

import time as clock
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, cast

import streamlit as st

from core.errors import AmbiscopeError
from pages.quality import snapshots, tables, training_loop
from pages.session import shared
from pages.ui.markup import escape, named
from storage.analysis.agreement import Quality, quality
from storage.exchange.filters import Filters
from storage.shipped import beside, practice

HOLD_SECONDS = 60.0


def _day(value: object) -> datetime | None:
    return datetime.combine(value, time(), UTC) if isinstance(value, date) else None


def choose() -> Filters:
    """Project, people and days that everything on this page is of."""
    store, me = shared.store(), shared.annotator()
    projects = {p.id: p.name for p in store.projects.projects(limit=200)}
    names = [a.name for a in store.people.annotators()]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        project = st.selectbox(
            "Project", ["", *projects], format_func=lambda i: projects.get(i, "All questions"), key="quality.project", width=220
        )
        people = st.multiselect("People", names, key="quality.people", placeholder="Everybody", width=220)
        since = st.date_input("From", value=None, key="quality.since", width=140)
        until = st.date_input("To", value=None, key="quality.until", width=140)
    store.people.require(me, "validator")
    last = _day(until)
    return Filters(
        annotators=tuple(people), project=project or "", since=_day(since), until=last + timedelta(days=1) if last else None
    )


def table(rows: Sequence[dict[str, Any]], name: str, empty: str, whole: bool = False) -> None:
    """A table with its CSV file, or why there is none.  `whole`: no cell is cut off, so it may have to be moved sideways."""
    if not rows:
        st.info(empty)
        return
    columns = (
        {c: st.column_config.Column(width=w, help=tables.HELP.get(c)) for c, w in tables.widths(rows).items()} if whole else {}
    )
    st.dataframe(list(rows), hide_index=True, width="stretch", column_config=columns, alt=name)
    st.download_button(
        named("CSV", f"of {name}"),
        tables.as_csv(rows),
        file_name=f"{name.lower().replace(' ', '-')}.csv",
        mime="text/csv",
        icon=":material/download:",
        key=f"quality.csv.{name}",
        on_click="ignore",
    )


def computed_quality(filters: Filters) -> Quality:
    """The tables, made again when the filters change or what is held is old: a click elsewhere on the page should not wait for them."""
    held = st.session_state.get("quality.held")
    if held is not None and held[0] == filters and clock.monotonic() - held[2] < HOLD_SECONDS:
        return cast(Quality, held[1])
    found = quality(
        shared.store().store_for("see others' work"),
        shared.annotator(),
        project=filters.project,
        people=filters.annotators,
        since=filters.since,
        until=filters.until,
    )
    st.session_state["quality.held"] = (filters, found, clock.monotonic())
    return found


def anything(found: Quality) -> bool:
    """Whether somebody wrote or judged something."""
    return bool(found.types or found.times or found.systems or found.pairs or found.label_pairs)


def of_example() -> Quality:
    """The tables of the example that comes with Ambiscope, made once a session."""
    held = st.session_state.get("quality.example")
    if held is None:
        file = shared.settings().home / "shipped" / f"people-{practice.digest()}.db"
        with st.spinner("Preparing an example"):
            store = shared.beside(beside.made(file, practice.example))
            project = store.projects.find_project_named(practice.EXAMPLE)
            held = quality(store, practice.MAKER, project=project.id if project else "")
        st.session_state["quality.example"] = held
    return cast(Quality, held)


def agreement(filters: Filters) -> None:
    found = computed_quality(filters)
    defined = any(f.defined for f in (*found.figures, found.labels))
    if not anything(found) or (not defined and st.toggle("Show an example of agreement", key="quality.example.show")):
        found = of_example()
        st.info(
            "No two people have annotated or judged the same here yet. **This is an example:** three invented people on twelve starter "
            "questions. It is not among your data.",
            icon=":material/school:",
        )
    for said in found.truncated:
        st.caption(escape(f"Not everything is shown: {said}."))
    overall, people, items, over_time, work, systems = st.tabs(
        ["Overall", "Pairs of people", "Questions", "Over time", "Types and time spent", "Systems and judges"]
    )
    with overall:
        table(tables.overall(found), "Agreement", "", whole=True)
        st.caption(
            "Alpha is Krippendorff's, with the MASI distance between answer sets. Kappa is Cohen's for two people and Fleiss' for more. Both are "
            "1 for perfect agreement and 0 for agreement by chance. Intervals are 95% bootstrap intervals over questions. n counts what at "
            "least two people did. Undefined is not zero: it means that there are too few data, and the last column says why."
        )
    with people:
        table(
            tables.pairs(found),
            "Pairs of people",
            "No two people have annotated the same question or judged the same answer yet.",
        )
    with items:
        table(tables.items(found), "Questions", "No question has been annotated by two people yet.")
        st.caption("The questions with the least agreement come first.")
    with over_time:
        if chart := tables.periods_chart(found):
            st.plotly_chart(chart, key="quality.periods", alt="Agreement over time. The table below has the same data.")
        table(tables.periods(found), "Over time", "No question has been annotated by two people yet.")
    with work:
        if found.types:
            st.plotly_chart(
                tables.types_chart(found), key="quality.types", alt="Shares of the types. The table below has the same data."
            )
        table(tables.types(found), "Types", "Nothing has been annotated yet.")
        st.caption("AmbigNQ: the shares that its authors told their annotators to expect.")
        table(tables.times(found), "Time spent", "No task has been finished yet.")
    with systems:
        if chart := tables.systems_chart(found):
            st.plotly_chart(
                chart, key="quality.systems", alt="Labels of each system's answers. The table below has the same data."
            )
        table(tables.systems(found), "Systems", "No prediction has been judged or annotated yet.", whole=True)
        st.caption(
            "Correct is the share of a question's judged answers that most people label correct, averaged over questions. Each question counts "
            "the same, so this differs from all correct answers divided by all judged ones. Answers on whose label people are tied are left out. "
            f"'{tables.ADDED}' counts the answers that annotators added because the system did not give them."
        )
        table(tables.judges(found), "Judges", "", whole=True)
        st.caption(
            "A judge is a model, or a system's check of its own answers. It is compared with the majority of the people who judged the same answer."
        )


def main() -> None:
    st.header("Quality")
    if said := st.session_state.pop("quality.said", None):
        st.success(escape(said), icon=":material/check:")
    if error := st.session_state.pop("quality.error", None):
        shared.show_error(error)
    filters = choose()
    agreement(filters)
    store = shared.store()
    if not store.may("take snapshots"):  # what managers do is not shown to others
        return
    st.subheader("Snapshots", divider="gray")
    snapshots.draw(filters)
    st.subheader("Training loop", divider="gray")
    training_loop.draw(filters, [s.number for s in store.exports.snapshots(limit=100)])


shared.enter("quality")
try:
    main()
except AmbiscopeError as error:
    shared.show_error(error)
