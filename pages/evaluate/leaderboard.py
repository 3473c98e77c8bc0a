"""The evaluate page's runs: filters in the sidebar, the leaderboard, and the details of one run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.errors import InputError
from core.evaluation.summary import calibration_error, failed_calls
from core.metrics import better_of, goodness
from core.systems import choice_of, is_rankable, remark
from core.text import time_text
from pages.evaluate import judges
from pages.evaluate.data import SCOPES, interval, metrics_of, names, summary_of
from pages.session import run_source, shared
from pages.session.actions import action, say
from pages.ui.formatting import format_score, is_share, scaled
from pages.ui.markup import escape
from pages.ui.tables import csv_button, table
from storage.records.results import EvaluationFilter, StoredEvaluation

MAX_RUNS = 500  # runs in the table


def filters() -> EvaluationFilter:
    """The sidebar.  Choices come from what is stored."""
    choices = run_source.store().evaluations.evaluation_choices()
    with st.sidebar:
        st.subheader("Filter the runs")
        text = st.text_input(
            "Search",
            key="evaluate.text",
            max_chars=200,
            help="Searches the run name, system, corpus, question file, checkpoint and commit.",
        )
        systems = st.multiselect("Systems", choices["system"], format_func=choice_of, key="evaluate.systems")
        # shipped runs are over several files, whose figures cannot be compared: the page opens on the first
        shipped = run_source.current() == run_source.SHIPPED
        questions = st.multiselect(
            "Question files",
            choices["questions"],
            choices["questions"][:1] if shipped else None,
            key="evaluate.shipped.questions" if shipped else "evaluate.questions",
        )
        corpora = st.multiselect("Corpora", choices["corpus"], key="evaluate.corpora")
    return EvaluationFilter(str(text or ""), tuple(systems), tuple(corpora), tuple(questions))


def leaderboard(runs: Sequence[StoredEvaluation], metric: str, scope: str) -> None:
    """The runs, the best first; below them, without a rank, those without the metric and those of systems that only show a mechanism."""
    run_names = names(runs)
    by_rank = sorted(runs, key=lambda r: (not _is_ranked(r, metric, scope), -goodness(metric, r.mean(metric, scope) or 0.0)))
    rows = [
        _row(rank if _is_ranked(run, metric, scope) else None, run, run_names[run.id], metric, scope)
        for rank, run in enumerate(by_rank, 1)
    ]
    better = better_of(metric)
    number_format = "%.1f" if is_share(metric) else "%.2f"
    # columns that say nothing new would push the others out of sight
    empty = [name for name, twin in (("system", "run"), ("note", "")) if all(row[name] == row.get(twin, "") for row in rows)]
    table(
        [{name: value for name, value in row.items() if name not in empty} for row in rows],
        f"{len(rows)} runs by {metric}, {SCOPES[scope]}",
        key="evaluate.leaderboard",
        columns={
            metric: st.column_config.NumberColumn(
                format=number_format, help=f"Mean over {SCOPES[scope]}{f'; {better} is better' if better else ''}"
            ),
            "calibration error": st.column_config.NumberColumn(
                format="%.1f",
                help="Mean distance between an answer's probability and how often such answers are right, in points; lower is better",
            ),
            "s per question": st.column_config.NumberColumn(format="%.2f", help="Median seconds per question"),
            "p95 (s)": st.column_config.NumberColumn(format="%.2f", help="Seconds: 95% of the questions took less"),
            "memory (MB)": st.column_config.NumberColumn(format="%.0f", help="Peak memory of the process, in MB"),
            "parameters": st.column_config.NumberColumn(format="compact"),
        },
    )
    csv_button(rows, "runs", "evaluate.csv.runs")


def _is_ranked(run: StoredEvaluation, metric: str, scope: str) -> bool:
    return is_rankable(run.system, run.checkpoint) and run.mean(metric, scope) is not None


def _row(rank: int | None, run: StoredEvaluation, name: str, metric: str, scope: str) -> dict[str, Any]:
    score = run.scores.get(metric, {}).get(scope)
    return {
        "#": rank,
        "run": name,
        "system": run.system,
        "note": remark(run.system, run.checkpoint),
        metric: scaled(metric, score.mean) if score else None,
        "95% interval": interval(metric, score.low, score.high) if score else "",
        "calibration error": calibration_error(summary_of(run.id, run_source.store())),
        "n": score.n if score else run.n,
        "failed": run.failed,
        "s per question": run.seconds_median,
        "p95 (s)": run.seconds_p95,
        "memory (MB)": run.peak_memory_mb,
        "parameters": run.parameters,
        "questions": run.questions,
        "corpus": run.corpus,
        "checkpoint": run.checkpoint,
        "digest": run.checkpoint_digest[:12],
        "commit": run.commit[:10],
        "seed": run.seed,
        "stored": time_text(run.created),
    }


# ---------------------------------------------------------------- one run


@action("change evaluations")
def _rename(key: str) -> None:
    shared.store().evaluations.label_evaluation(key, str(st.session_state.get(f"evaluate.label.{key}") or ""))
    say("The run was renamed.")


@action("change evaluations")
def _delete(key: str, name: str) -> None:
    if not st.session_state.get(f"evaluate.sure.{key}"):
        raise InputError("nothing was deleted; tick the box first")
    shared.store().evaluations.delete_evaluation(key)
    say(f"The run {name} was deleted from the database. Its run folder is kept.")


ENVIRONMENT = ("gpu", "driver", "cuda", "python", "torch", "transformers", "faiss")


def details(run: StoredEvaluation, name: str) -> None:
    """The provenance and the means of a run, with buttons to rename and delete it."""
    report = run_source.store().evaluations.evaluation_report(run.id)
    provenance = report.get("provenance", {})
    facts = {
        "system": run.system,
        "questions": run.questions,
        "corpus": run.corpus,
        "questions asked": f"{run.n if run.n is not None else 'unknown'}, failed {run.failed or 0}, not judged completely {report.get('judge_failed', 0)}",
        "checkpoint": f"{run.checkpoint or 'none'} {run.checkpoint_digest[:16]}",
        "commit": f"{run.commit[:12] or 'unknown'}{' with changes' if provenance.get('changed_since_commit') else ''}",
        "seed": run.seed,
        "seconds (median, p95)": f"{_seconds(run.seconds_median)}, {_seconds(run.seconds_p95)}",
        "made on": ", ".join(f"{n} {provenance[n]}" for n in ENVIRONMENT if provenance.get(n)) or "unknown",
        "peak memory": f"{run.peak_memory_mb:,.0f} MB" if run.peak_memory_mb else "unknown",
        "parameters": f"{run.parameters:,}" if run.parameters else "unknown",
        "finished": time_text(run.finished) if run.finished else "unknown",
        "tags": ", ".join(f"{k}={v}" for k, v in run.tags.items()) or "none",
    }
    for problem in failed_calls(report.get("summary") or {}):
        st.warning(escape(problem), icon=":material/warning:")
    facts_column, means_column = st.columns(2)
    with facts_column:
        table({"fact": list(facts), "value": [str(v) for v in facts.values()]}, "Facts about the run", height="content")
    with means_column:
        means = [
            {
                "metric": metric,
                **{scope: format_score(metric, run.mean(metric, scope)) for scope in SCOPES},
                "n": max(s.n for s in run.scores[metric].values()),
            }
            for metric in metrics_of([run])
        ]
        table(means, "Mean of each metric of the run")
    judges.draw([run], {run.id: name})
    with st.expander("System settings"):
        st.json(provenance.get("settings", {}))
    if run_source.current() == run_source.SHIPPED or not shared.store().may("change evaluations"):
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input("Run name", value=run.label, key=f"evaluate.label.{run.id}", max_chars=120)
        st.button("Rename", key=f"evaluate.rename.{run.id}", on_click=_rename, args=(run.id,), icon=":material/edit:")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.checkbox("Delete this run and its questions", key=f"evaluate.sure.{run.id}")
        st.button("Delete", key=f"evaluate.delete.{run.id}", on_click=_delete, args=(run.id, name), icon=":material/delete:")


def _seconds(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f} s"
