"""The candidates of a step and their probabilities as bars: a table of text.

No chart: plotly's scripts and a chart a step would keep the browser busier than the models keep the server, on the same two cores.
"""

from __future__ import annotations

from collections.abc import Sequence

from core import types as t
from pages.ui.formatting import percent
from pages.ui.markup import escape, short

CELLS, SHOWN, NAME_CHARS = 10, 8, 40
EIGHTHS = " ▏▎▍▌▋▊▉█"


def bar(value: float, cells: int = CELLS) -> str:
    """Block characters, `cells` of them for a probability of 1; to an eighth of a cell, and at least that above 0."""
    eighths = round(min(1.0, max(0.0, value)) * cells * 8) or int(value > 0)
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def candidates_table(step: t.Step) -> str:
    """Markdown: the likeliest first, the chosen one marked, [EOI] last (a system without it leaves its probability at 0); what the answering model
    alone and the verifier say beside it, where a reranker weighed them."""
    more = [n for n in ("model", "verifier") if any(getattr(c, n) is not None for c in step.candidates)]
    lines = [f"| {' | '.join(['Candidate', 'Probability', *map(str.capitalize, more)])} |", "|:--|:--|" + "--:|" * len(more)]
    for c in step.candidates[:SHOWN]:
        chosen = step.choice is not None and c.text == step.choice.text
        name = escape(short(c.text, NAME_CHARS))
        said = [getattr(c, n) for n in more]
        lines.append(_row(f"**{name}**" if chosen else name, c.probability, "blue" if chosen else "gray", said))
    if step.eoi_probability or step.choice is None:
        lines.append(_row(f"{escape(t.EOI)} no further answer", step.eoi_probability, "orange", [None] * len(more)))
    return "\n".join(lines)


def candidates_note(step: t.Step) -> str:
    """Why the columns differ, in a line; "" where there is one only."""
    if all(c.model is None for c in step.candidates):
        return ""
    verifier = (
        ", and Verifier how sure another model is that the passage supports it"
        if any(c.verifier is not None for c in step.candidates)
        else ""
    )
    return f"Probability is what the reranker makes of all signals. Model is what the answering model alone says{verifier}."


def _row(name: str, probability: float, colour: str, said: Sequence[float | None]) -> str:
    blocks = bar(probability)
    more = "".join(f" {'' if p is None else percent(p)} |" for p in said)
    return f"| {name} | {f':{colour}[{blocks}] ' if blocks else ''}{percent(probability)} |{more}"
