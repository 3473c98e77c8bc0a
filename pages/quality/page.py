"""Quality: agreement between people, and of systems and judges with them; snapshots, and retraining."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from pages.quality import tables
from pages.session import retraining, shared, snapshots
from pages.ui import charts
from pages.ui.markup import escape
from pages.ui.tables import csv_button, fitted
from pages.ui.tables import table as draw_table
from storage.analysis.agreement import Quality, quality
from storage.exchange.competence import MIN_ANSWERS
from storage.exchange.filters import Filters
from storage.shipped import beside, practice
from storage.store import Store

CACHE_SECONDS = 60.0


def _day(value: object) -> datetime | None:
    return datetime.combine(value, time(), UTC) if isinstance(value, date) else None


def choose() -> Filters:
    """The filters of this page: project, people and days."""
    store = shared.store()
    projects = {p.id: p.name for p in store.projects.projects(limit=200)}
    names = store.people.annotators()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        project = st.selectbox(
            "Project", ["", *projects], format_func=lambda i: projects.get(i, "All questions"), key="quality.project", width=220
        )
        people = st.multiselect("People", names, key="quality.people", placeholder="Everybody", width=220)
        since = st.date_input("From", value=None, key="quality.since", width=140)
        until = st.date_input("To", value=None, key="quality.until", width=140)
    store.people.require(shared.annotator(), "validator")
    last = _day(until)
    return Filters(
        annotators=tuple(people), project=project or "", since=_day(since), until=last + timedelta(days=1) if last else None
    )


def table(rows: Sequence[dict[str, Any]], name: str, empty: str, is_complete: bool = False) -> None:
    """A table with its CSV file; `empty`: the text if there are no rows; `is_complete`: no cell is cut off, so it may need scrolling."""
    if not rows:
        st.info(empty)
        return
    draw_table(rows, name, columns=fitted(rows, help=tables.HELP) if is_complete else None)
    csv_button(rows, name, f"quality.csv.{name}")


@st.cache_data(show_spinner=False, ttl=CACHE_SECONDS, max_entries=100)
def computed_quality(filters: Filters, user: str, _store: Store) -> Quality:
    """Cached for a moment: a click elsewhere on the page should not wait for it again."""
    since, until = filters.since, filters.until
    return quality(_store, user, project=filters.project, people=filters.annotators, since=since, until=until)


@st.cache_data(show_spinner="Preparing an example")
def example_quality(file: Path) -> Quality:
    """The tables of the example that comes with Ambiscope; `file`: its database, created if needed."""
    store = shared.beside(beside.ensure_database(file, practice.example))
    project = store.projects.find_project_named(practice.EXAMPLE)
    return quality(store, practice.MANAGER_NAME, project=project.id if project else "")


def draw_chart(chart_figure: go.Figure | None, key: str, name: str) -> None:
    if chart_figure is not None:
        charts.show(chart_figure, key, f"{name}. The table below has the same data.")


def agreement(filters: Filters) -> None:
    result = computed_quality(filters, shared.annotator(), shared.store().store_for("see others' work"))
    is_defined = any(f.defined for f in (*result.figures, result.labels))
    is_empty = not (result.types or result.times or result.systems or result.pairs or result.label_pairs)
    if is_empty or (not is_defined and st.toggle("Show an example of agreement", key="quality.example.show")):
        result = example_quality(shared.settings().home / "shipped" / f"people-{practice.digest()}.db")
        st.info(
            "No two people have annotated or judged the same item here yet. **This is an example** with three invented people and twelve "
            "starter questions. It is not part of your data.",
            icon=":material/school:",
        )
    for gap in result.truncated:
        st.caption(escape(f"Not everything is shown: {gap}."))
    overall, people, competence, items, over_time, by_day, work, systems = st.tabs(
        [
            "Overall",
            "Pairs of people",
            "Competence",
            "Questions",
            "Over time",
            "By day and person",
            "Types and time spent",
            "Systems and judges",
        ]
    )
    with overall:
        table(tables.overall(result), "Agreement", "", is_complete=True)
        st.caption(
            "Alpha is Krippendorff's, with the MASI distance between answer sets. Kappa is Cohen's for two people and Fleiss' for more. Both are "
            "1 for perfect agreement and 0 for agreement by chance. Intervals are 95% bootstrap intervals over questions. n: items done by "
            "at least two people. 'Undefined' means too little data; see the last column."
        )
    with people:
        table(
            tables.pairs(result),
            "Pairs of people",
            "No two people have annotated the same question or judged the same answer yet.",
        )
    with competence:
        table(
            tables.competence(result),
            "Competence",
            "No two people have written or judged the same answer yet.",
            is_complete=True,
        )
        st.caption(
            "Estimated by the method of Dawid and Skene (1979) from where people agree, without knowing the right answers: somebody who often "
            f"stands alone is taken to be wrong. Undefined: fewer than {MIN_ANSWERS} shared answers. Exports can weigh people by it. Gold items "
            "compare each person with the right answers."
        )
    with items:
        table(tables.items(result), "Questions", "No question has been annotated by two people yet.")
        st.caption("The questions with the least agreement come first.")
    with over_time:
        draw_chart(tables.periods_chart(result), "quality.periods", "Agreement over time")
        table(tables.periods(result), "Over time", "No question has been annotated by two people yet.")
        if filters.project:
            table(tables.guidelines(result), "Guidelines", "No question has been annotated by two people yet.")
            st.caption("Agreement of people who were shown the same version of the guidelines.")
    with by_day:
        measure = st.segmented_control(
            "Measure", tables.DAY_MEASURES, default=tables.DAY_MEASURES[0], required=True, key="quality.days.measure"
        )
        draw_chart(tables.days_chart(result, measure or tables.DAY_MEASURES[0]), "quality.days", f"{measure} by day and person")
        table(tables.days(result), "Days", "Nothing has been submitted yet.")
        st.caption(
            "Items: what a person submitted for the first time on that day, at any stage, gold items and extra work included. Minutes: the time "
            "spent on all that they submitted. Agreement: answer F1 with the others who wrote answers to the same questions."
        )
    with work:
        draw_chart(tables.types_chart(result), "quality.types", "Shares of the types")
        table(tables.types(result), "Types", "Nothing has been annotated yet.")
        st.caption("AmbigNQ: the shares its authors told their annotators to expect.")
        table(tables.times(result), "Time spent", "No task has been finished yet.")
    with systems:
        draw_chart(tables.systems_chart(result), "quality.systems", "Labels of each system's answers")
        table(tables.systems(result), "Systems", "No prediction has been judged or annotated yet.", is_complete=True)
        st.caption(
            "Correct is the share of a question's judged answers that most people label correct, averaged over questions. Each question counts "
            "the same, so this differs from all correct answers divided by all judged ones. Answers with tied labels are left out. "
            f"'{tables.ADDED}' counts the answers that annotators added because the system did not give them."
        )
        table(tables.judges(result), "Judges", "", is_complete=True)
        st.caption(
            "A judge is a model, or a system's check of its own answers. It is compared with the majority of the people who judged the same answer."
        )


def main() -> None:
    st.header("Quality")
    filters = choose()
    agreement(filters)
    store = shared.store()
    if not store.may("take snapshots"):  # the rest is for managers
        return
    st.subheader("Snapshots", divider="gray")
    snapshots.draw(filters)
    st.subheader("Retraining", divider="gray")
    retraining.draw(filters, [s.number for s in store.exports.snapshots(limit=100)])


main()
