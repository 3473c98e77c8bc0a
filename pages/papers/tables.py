"""A paper's table beside our runs of the same systems, and a job that repeats such runs here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import streamlit as st

from core.errors import AmbiscopeError, CancelledError, InputError
from core.evaluation.plan import EvaluationPlan
from core.evaluation.published import PublishedTable, published
from core.systems import remark
from core.text import listed
from pages.session import background as jobs
from pages.session import evaluations, run_source, shared
from pages.session.actions import action
from pages.ui.formatting import duration, format_score
from pages.ui.markup import escape
from pages.ui.tables import table
from storage.records.results import StoredEvaluation

KIND = "papers"
MAX_RUNS = 300  # the newest, that are searched for systems of the table
VARIANT = "variant"  # tag of a run with options, by which it is recognised
DEFAULT_QUESTIONS = 50  # of a run that is started here


def _split(spec: str) -> tuple[str, str]:
    """The system of a row, and its options."""
    name, _, options = spec.partition(" ")
    return name, options


# ---------------------------------------------------------------- figures


def _number(metric: str, value: float | None) -> str:
    """Shares in percent, other figures in the paper's units."""
    if value is None or metric not in ("parameters", "seconds", "memory GB"):
        return format_score(metric, value)
    return f"{value / 1e6:,.0f} M" if metric == "parameters" else f"{value:.2f}"


def _columns(paper_table: PublishedTable) -> Mapping[str, tuple[str, str]]:
    """Heading -> (metric, scope)."""
    keys = dict.fromkeys(key for row in paper_table.values.values() for key in row)
    return {f"{metric}{' (multi)' if scope == 'multi' else ''}": (metric, scope) for metric, scope in keys}


def _measured(run: StoredEvaluation, metric: str, scope: str) -> float | None:
    memory = run.peak_memory_mb / 1000 if run.peak_memory_mb is not None else None
    return {"parameters": run.parameters, "seconds": run.seconds_median, "memory GB": memory}.get(
        metric, run.mean(metric, scope)
    )


def ours(paper_table: PublishedTable, runs: list[StoredEvaluation]) -> list[dict[str, Any]]:
    """One row for the newest run of each system of the table over each question file.  `runs`: newest first."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for label, spec in paper_table.systems.items():
        name, options = _split(spec)
        for run in runs:
            if run.system == name and str(run.tags.get(VARIANT, "")) == options and (label, run.questions) not in rows:
                corpus = "" if run.corpus == run.questions else f" over {run.corpus or 'passages of their own'}"
                rows[label, run.questions] = {
                    "": label,
                    "questions": f"{run.questions} ({run.n}){corpus}",
                    **{c: _number(key[0], _measured(run, *key)) for c, key in _columns(paper_table).items()},
                    "system": f"{spec} ({note})" if (note := remark(name, run.checkpoint)) else spec,
                }
    return list(rows.values())


def _figures(paper_table: PublishedTable) -> None:
    st.markdown(f"**Published** :gray-badge[{escape(paper_table.data)}]")
    columns = _columns(paper_table).items()
    rows = [
        {"": name, **{c: _number(key[0], paper_table.value(name, *key)) for c, key in columns}} for name in paper_table.values
    ]
    table(rows, f"Published: {paper_table.label}", height="content", csv_name="published figures")
    if note := paper_table.note:
        st.caption(escape(f"{note[:1].upper()}{note[1:]}."))
    st.markdown("**Ours** :orange-badge[other data, other weights: not comparable]")
    our_rows = ours(paper_table, list(run_source.store().evaluations.evaluations(MAX_RUNS)))
    if our_rows:
        table(our_rows, f"Our runs of the systems in {paper_table.label}", height="content", csv_name="our runs")
        st.caption(escape(f"{run_source.current()}. Compare runs over the same questions on Evaluate."))
    elif paper_table.systems:
        st.info("No run of these systems is stored yet.")
    else:
        st.info("Needs training: no run of ours repeats this table.")


# ---------------------------------------------------------------- runs


def _key(paper_table: PublishedTable, field: str) -> str:
    return f"papers.{paper_table.id}.{field}"


@action("run evaluations")
def _start(table_id: str) -> None:
    paper_table = next(t for t in published() if t.id == table_id)
    state = st.session_state
    path = evaluations.question_file(str(state[_key(paper_table, "questions")]))
    limit, corpus = int(state[_key(paper_table, "limit")]) or None, state[_key(paper_table, "corpus")]
    ready = {status.name for status in shared.systems() if status.ready}
    plans = []
    for name, options in map(_split, paper_table.systems.values()):
        if name in ready:
            extra = dict(part.split("=", 1) for part in options.split())
            tags = {VARIANT: options} if options else {}
            plans.append(
                EvaluationPlan(str(path), system=name, corpus=corpus, limit=limit, clarify=False, extra=extra, tags=tags)
            )
    if not plans:
        raise InputError("no system of this table is ready here; the list beside the button says what each one needs")
    engine, store, runs_dir = shared.engine(), shared.servers_store(), shared.settings().runs_dir
    stopped = "stopped; finished runs are stored, and the unfinished one can be resumed on Evaluate"

    def work(job: jobs.BackgroundJob) -> list[str]:
        """Runs the plans one after the other.  A failure doesn't stop the others.  Returns the errors, one a line."""
        problems: list[str] = []

        def progress(number: int, done: int, total: int) -> None:
            job.share = (number + (done / total if total else 0.0)) / len(plans)
            job.stage = f"{plans[number].system}, {done:,} of {total:,} questions"

        for number, plan in enumerate(plans):
            folder = evaluations.folder_for(runs_dir, plan)
            try:
                evaluations.run_and_store(job, plan, engine, store, folder, partial(progress, number))
            except CancelledError:
                raise
            except AmbiscopeError as error:
                problems.append(f"{plan.system}: {error}")
        return problems

    title = f"{paper_table.paper}, {paper_table.where}"
    jobs.begin(KIND, paper_table.id, jobs.BackgroundJob(work, title, "loading the models", stopped))


def watch() -> None:
    """Running tables, and reports on those that ended."""
    for job in jobs.reports(KIND):
        st.success(f"{escape(job.title)}: finished in {duration(job.seconds)}. Its runs are below and on Evaluate.")
        for problem in job.result:
            st.warning(escape(problem), icon=":material/warning:")


def _repeat(paper_table: PublishedTable) -> None:
    """The form that runs the table's systems here, and the command for the paper's own figures."""
    files, systems = evaluations.question_files(), paper_table.systems
    if systems:
        if paper_table.questions not in files:
            name = paper_table.questions.partition(":")[0]
            st.info(
                f"{escape(paper_table.data)} is not on this machine: `python -m core download {name}` fetches it. Until then, other questions "
                "show how the systems compare, and their figures cannot be set against the paper's.",
                icon=":material/database_off:",
            )
        with st.form(_key(paper_table, "form")), st.container(horizontal=True, vertical_alignment="bottom"):
            start = list(files).index(paper_table.questions) if paper_table.questions in files else 0
            st.selectbox("Questions", list(files), index=start if files else None, key=_key(paper_table, "questions"))
            names = shared.light_engine().library.names()
            start = names.index(shared.settings().corpus) if shared.settings().corpus in names else 0
            st.selectbox("Corpus", names, index=start if names else None, key=_key(paper_table, "corpus"))
            limit_key = _key(paper_table, "limit")
            st.number_input("Maximum questions (0 = all)", min_value=0, value=DEFAULT_QUESTIONS, key=limit_key)
            label = f"Run {listed(len(systems), 'system')}" if len(systems) > 1 else "Run it here"
            st.form_submit_button(label, on_click=_start, args=(paper_table.id,), icon=":material/play_arrow:", type="primary")
        statuses = {s.name: s for s in shared.systems()}
        for name in dict.fromkeys(_split(spec)[0] for spec in systems.values()):
            if (status := statuses.get(name)) is None:
                continue
            if not status.ready:
                st.caption(f"**{escape(name)}** is left out. {escape(status.why_not)}")
            elif status.missing or status.mechanism_only:
                st.caption(f"**{escape(name)}**: {escape(status.missing or f'mechanism only, {status.mechanism_only}')}.")
    st.markdown(f"The paper's own figures take {escape(paper_table.takes)}:")
    st.code(paper_table.command, language="sh", wrap_lines=True)


def draw(paper: str) -> None:
    """The tables of a paper, one at a time."""
    tables = {f"{t.where}, {t.data}": t for t in published() if t.paper.endswith(f"({paper})")}
    paper_table = tables[str(st.selectbox("Table", list(tables), key=f"papers.{paper}.table"))]
    _figures(paper_table)
    _repeat(paper_table)
