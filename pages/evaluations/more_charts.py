"""Further charts of the evaluate page: ablations, decoding variants, retrieval, grounding, errors, groups.  No Streamlit call."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from core.evaluation.published import PublishedTable
from pages.app.markup import chart_text
from pages.evaluations.charts import Names, theirs
from pages.evaluations.data import ALL, COLOURS, MULTI, Chart, layout
from storage.records.results import GroupMean, StoredEvaluation

ABLATION, ZERO_SHOT = "ablation", "zero-shot"
FULL = "none"
BUCKETS = {
    "missed": "missed (it was in the passages)",
    "not_retrieved": "not retrieved",
    "alias_mismatch": "alias mismatch",
    "spurious": "spurious",
    "duplicate": "duplicate",
    "stopped_early": "stopped too early (questions)",
    "ran_on": "ran on too long (questions)",
}
_AT = re.compile(r"(R|MRecall)@(\d+)")
GROUNDED = ("G-precision", "G-recall", "G-F1", "Sufficient%", "ungrounded precision", "ungrounded recall")


def ablations(runs: Sequence[StoredEvaluation], metric: str, table: PublishedTable | None) -> Chart:
    """Table 3: the mean without each part, beside the full model's on the same questions."""
    kept = [r for r in runs if r.tags.get(ABLATION) is not None and r.mean(metric) is not None]
    if not kept:
        return Chart(
            "ablations",
            "Ablations",
            None,
            empty=f"No run says what it goes without. Evaluate variants with: --tag '{ABLATION}=interleaving' (the full model: '{ABLATION}={FULL}')",
        )
    many = len({r.questions for r in kept}) > 1
    rows = [
        {
            "variant": _variant(r) + (f" · {r.questions}" if many else ""),
            "all": r.mean(metric),
            "multi": r.mean(metric, "multi"),
            "source": "ours",
            "rank": (r.questions, str(r.tags[ABLATION]) != FULL),
        }
        for r in kept
    ]
    rows.sort(key=lambda row: row["rank"])
    if table is not None:
        rows += [
            {
                "variant": f"{name} †",
                "all": table.value(name, metric),
                "multi": table.value(name, metric, "multi"),
                "source": theirs(table),
            }
            for name in table.values
        ]
    return _two_bars("ablations", "Ablations (Table 3)", metric, rows, "variant", table)


def _variant(run: StoredEvaluation) -> str:
    name = str(run.tags[ABLATION])
    return f"{run.system}, full" if name == FULL else f"{run.system} without {name}"


def variants(runs: Sequence[StoredEvaluation], names: Names, metric: str, table: PublishedTable | None) -> Chart:
    """Table 5: zero-shot runs (single-answer supervision only), and ways of decoding in one pass."""
    kept = [r for r in runs if (r.tags.get(ZERO_SHOT) or r.system.startswith("fid")) and r.mean(metric) is not None]
    if not kept:
        return Chart(
            "variants",
            "Zero-shot and decoding variants",
            None,
            empty=f"None of these runs is of fid and its variants or zero-shot. Evaluate weights of single-answer training with: --tag {ZERO_SHOT}=true",
        )
    rows: list[dict[str, Any]] = [
        {
            "run": names[r.id] + (" (zero-shot)" if r.tags.get(ZERO_SHOT) else ""),
            "all": r.mean(metric),
            "multi": r.mean(metric, "multi"),
            "source": "ours",
        }
        for r in kept
    ]
    if table is not None:
        rows += [
            {"run": f"{n} †", "all": table.value(n, metric), "multi": table.value(n, metric, "multi"), "source": theirs(table)}
            for n in table.values
        ]
    return _two_bars("variants", "Zero-shot and decoding variants (Table 5)", metric, rows, "run", table)


def _two_bars(key: str, title: str, metric: str, rows: list[dict[str, Any]], name: str, table: PublishedTable | None) -> Chart:
    figure = go.Figure()
    for scope, colour in (("all", ALL), ("multi", MULTI)):
        ours = [r for r in rows if r["source"] == "ours"]
        figure.add_trace(
            go.Bar(
                y=[chart_text(r[name], 48) for r in ours],
                x=[r[scope] for r in ours],
                orientation="h",
                name=scope,
                marker_color=colour,
                hovertemplate="%{y}: %{x:.3f}<extra></extra>",
            )
        )
        other = [r for r in rows if r["source"] != "ours" and r[scope] is not None]
        if other:
            figure.add_trace(
                go.Scatter(
                    y=[chart_text(r[name], 48) for r in other],
                    x=[r[scope] for r in other],
                    mode="markers",
                    marker={"symbol": "diamond-open", "size": 11, "color": colour, "line": {"width": 2}},
                    name=f"† published, {scope}",
                    hovertemplate="%{y}: %{x:.3f}<extra></extra>",
                )
            )
    layout(
        figure,
        150 + 40 * len(rows),
        barmode="group",
        yaxis={"autorange": "reversed", "automargin": True},
        xaxis={"title": metric, "rangemode": "tozero"},
    )
    caption = f"Diamonds †: {theirs(table)}; not comparable with ours." if table is not None else ""
    kept = [{k: v for k, v in r.items() if k != "rank"} for r in rows]
    return Chart(key, title, figure, pd.DataFrame(kept), caption)


def retrieval(runs: Sequence[StoredEvaluation], names: Names, scope: str, tables: Sequence[PublishedTable] = ()) -> Chart:
    """Table 6: R@k (solid) and MRecall@k (dotted) of every run that has them."""
    figure, rows, k_seen = go.Figure(), [], set[int]()
    for i, run in enumerate(runs):
        for kind, dash in (("R", "solid"), ("MRecall", "dot")):
            line = sorted(
                (int(m[2]), run.mean(name, scope)) for name in run.scores if (m := _AT.fullmatch(name)) and m[1] == kind
            )
            line = [(k, v) for k, v in line if v is not None]
            if not line:
                continue
            k_seen.update(k for k, _ in line)
            figure.add_trace(
                go.Scatter(
                    x=[k for k, _ in line],
                    y=[v for _, v in line],
                    mode="lines+markers",
                    name=f"{chart_text(names[run.id], 36)}, {kind}@k",
                    line={"dash": dash, "color": COLOURS[i % len(COLOURS)]},
                )
            )
            rows += [
                {"run": names[run.id], "metric": f"{kind}@{k}", "questions": scope, "mean": v, "source": "ours"}
                for k, v in line
            ]
    if not rows:
        return Chart(
            "retrieval",
            "Retrieval",
            None,
            empty="None of these runs has R@k. Measure the retrievers with: python -m core retrieval-eval --questions FILE --out RUNS",
        )
    for table in tables:
        for j, system in enumerate(table.values):
            points = [
                (m[1], int(m[2]), v)
                for (name, _), v in table.values[system].items()
                if v is not None and (m := _AT.fullmatch(name))
            ]
            for kind in ("R", "MRecall"):
                line = [(k, v) for found, k, v in points if found == kind]
                if line:
                    k_seen.update(k for k, _ in line)
                    figure.add_trace(
                        go.Scatter(
                            x=[k for k, _ in line],
                            y=[v for _, v in line],
                            mode="markers",
                            marker={
                                "symbol": "diamond-open" if kind == "R" else "square-open",
                                "size": 10,
                                "color": COLOURS[-1 - j],
                                "line": {"width": 2},
                            },
                            name=f"† {chart_text(system, 30)}, {kind}@k, {table.data}",
                            visible="legendonly" if j else True,
                        )
                    )
                    rows += [
                        {"run": system, "metric": f"{kind}@{k}", "questions": "all", "mean": v, "source": theirs(table)}
                        for k, v in line
                    ]
    layout(
        figure,
        460,
        xaxis={
            "title": "passages (logarithmic)",
            "type": "log",
            "tickvals": sorted(k_seen),
            "ticktext": [str(k) for k in sorted(k_seen)],
        },
        yaxis={"title": f"share of questions, {scope}", "range": [0, 1.02]},
    )
    figure.update_layout(legend={"orientation": "v", "x": 1.02, "y": 1, "yanchor": "top"})
    caption = "R@k: some answer is in the top k passages. MRecall@k: all n answers are (or k of them when n > k)." + (
        " Marks †: published, on other data; a click in the legend shows more of them." if tables else ""
    )
    return Chart("retrieval", "Retrieval (Table 6)", figure, pd.DataFrame(rows), caption)


def grounded(runs: Sequence[StoredEvaluation], names: Names, scope: str, table: PublishedTable | None) -> Chart:
    """VerDICt's Tables 2 and 4: grounded and ungrounded shares."""
    kept = [r for r in runs if any(r.mean(m, scope) is not None for m in GROUNDED)]
    if not kept:
        return Chart(
            "grounded",
            "Grounded interpretations",
            None,
            empty="None of these runs was judged. Evaluate with --judge references, reader or language-model.",
        )
    metrics = [m for m in GROUNDED if any(r.mean(m, scope) is not None for r in kept)]
    figure, rows = go.Figure(), []
    for i, run in enumerate(kept):
        colour = COLOURS[i % len(COLOURS)]
        figure.add_trace(
            go.Bar(x=metrics, y=[run.mean(m, scope) for m in metrics], name=chart_text(names[run.id], 36), marker_color=colour)
        )
        every = {m: run.mean(m, scope) for m in ("interpretations", *GROUNDED)}
        rows.append({"run": names[run.id], "questions": scope, **every, "source": "ours"})
    if table is not None:
        for j, system in enumerate(table.values):
            points = [(m, v) for m in metrics if (v := table.value(system, m)) is not None]
            if points:
                figure.add_trace(
                    go.Scatter(
                        x=[m for m, _ in points],
                        y=[v for _, v in points],
                        mode="markers",
                        marker={
                            "symbol": "diamond-open",
                            "size": 11,
                            "color": COLOURS[-1 - j % len(COLOURS)],
                            "line": {"width": 2},
                        },
                        name=f"† {chart_text(system, 36)}",
                        visible=True if system.startswith("VerDICt") else "legendonly",
                    )
                )
            every = {m: table.value(system, m) for m in ("interpretations", *GROUNDED)}
            rows.append({"run": system, "questions": "all", **every, "source": theirs(table)})
    layout(figure, 440, barmode="group", yaxis={"range": [0, 1.02], "title": "share"})
    figure.update_layout(legend={"orientation": "v", "x": 1.02, "y": 1, "yanchor": "top"})
    caption = f"Diamonds †: {theirs(table)}; a click in the legend shows more of them." if table is not None else ""
    return Chart("grounded", "Grounded interpretations (VerDICt, Tables 2 and 4)", figure, pd.DataFrame(rows), caption)


def judged(summaries: Mapping[str, Mapping[str, Any]], names: Names) -> Chart:
    """VerDICt's Figure 3: interpretations by what their passage is, and how many of them are right."""
    rows = [
        {"run": names[key], "passage": cell, "interpretations": found["n"], "right": found["right"]}
        for key, summary in summaries.items()
        for cell, found in summary.get("judged", {}).items()
    ]
    if not rows:
        return Chart(
            "judged",
            "Where interpretations go wrong",
            None,
            empty="None of these runs was judged on both relevance and answerability.",
        )
    figure = go.Figure()
    for part, colour in (("right", ALL), ("wrong", MULTI)):
        figure.add_trace(
            go.Bar(
                y=[f"{chart_text(str(r['run']), 30)}: {r['passage']}" for r in rows],
                x=[r["right"] if part == "right" else r["interpretations"] - r["right"] for r in rows],
                orientation="h",
                name=part,
                marker_color=colour,
            )
        )
    layout(
        figure,
        150 + 30 * len(rows),
        barmode="stack",
        yaxis={"autorange": "reversed", "automargin": True},
        xaxis={"title": "interpretations"},
    )
    return Chart("judged", "Where interpretations go wrong (VerDICt, Figure 3)", figure, pd.DataFrame(rows))


def cost(summaries: Mapping[str, Mapping[str, Any]], names: Names) -> Chart:
    """VerDICt's Table 1: calls a question, and seconds in retriever and model."""
    rows = [{"run": names[key], **summary["cost"]} for key, summary in summaries.items() if summary.get("cost")]
    if not rows:
        return Chart(
            "cost", "Calls and seconds", None, empty="None of these runs counted its calls; evaluate again with this version."
        )
    figure = go.Figure()
    for field, name, colour in (("retriever_calls", "searches", ALL), ("model_calls", "model calls", MULTI)):
        figure.add_trace(
            go.Bar(
                y=[chart_text(str(r["run"]), 44) for r in rows],
                x=[r.get(field, 0) for r in rows],
                orientation="h",
                name=name,
                marker_color=colour,
                customdata=[[r.get("seconds", 0.0), r.get("model_seconds", 0.0)] for r in rows],
                hovertemplate="%{y}: %{x:.2f} a question; %{customdata[0]:.2f} s, of which the model %{customdata[1]:.2f}<extra></extra>",
            )
        )
    layout(
        figure,
        150 + 44 * len(rows),
        barmode="group",
        yaxis={"autorange": "reversed", "automargin": True},
        xaxis={"title": "a question (mean)"},
    )
    return Chart("cost", "Calls and seconds (VerDICt, Table 1)", figure, pd.DataFrame(rows))


def errors(counts: Mapping[str, Mapping[str, int]], names: Names) -> Chart:
    """Answers that went wrong by bucket, and questions that were stopped too early or ran on."""
    rows = [
        {"run": names[key], "error": BUCKETS[bucket], "count": found[bucket]}
        for key, found in counts.items()
        for bucket in BUCKETS
        if bucket in found
    ]
    if not rows:
        return Chart("errors", "Errors", None, empty="None of these runs counted its errors; evaluate again with this version.")
    figure = go.Figure()
    for i, label in enumerate(BUCKETS.values()):
        some = [r for r in rows if r["error"] == label]
        figure.add_trace(
            go.Bar(
                y=[chart_text(str(r["run"]), 44) for r in some],
                x=[r["count"] for r in some],
                orientation="h",
                name=label,
                marker_color=COLOURS[i % len(COLOURS)],
                hovertemplate="%{y}: %{x}<extra>" + label + "</extra>",
            )
        )
    runs = len({r["run"] for r in rows})
    layout(
        figure,
        200 + 110 * runs,
        barmode="group",
        yaxis={"autorange": "reversed", "automargin": True},
        xaxis={"title": "answers, or questions where it says so"},
    )
    caption = "A missing answer is in one of missed, not retrieved and alias mismatch; a wrong one in one of alias mismatch, spurious and duplicate."
    return Chart("errors", "Errors", figure, pd.DataFrame(rows), caption)


def groups(found: Sequence[GroupMean], names: Names, metric: str, by: str) -> Chart:
    """A metric for each kind of ambiguity or source."""
    title = f"{metric} by {by}"
    if not found:
        return Chart(f"by-{by}", title, None, empty=f"The questions of these runs have no {by}.")
    figure, rows = go.Figure(), []
    for i, key in enumerate(dict.fromkeys(g.evaluation_id for g in found)):
        own = [g for g in found if g.evaluation_id == key]
        figure.add_trace(
            go.Bar(
                x=[f"{chart_text(g.group, 30)}" for g in own],
                y=[g.mean for g in own],
                name=chart_text(names[key], 36),
                marker_color=COLOURS[i % len(COLOURS)],
                customdata=[g.n for g in own],
                hovertemplate="%{x}: %{y:.3f} over %{customdata} questions<extra></extra>",
            )
        )
        rows += [{"run": names[key], by: g.group, "n": g.n, metric: g.mean} for g in own]
    layout(figure, 420, barmode="group", yaxis={"title": metric, "rangemode": "tozero"})
    return Chart(f"by-{by}", title, figure, pd.DataFrame(rows))
