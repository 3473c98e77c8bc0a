"""The evaluate page with many runs stored: how long the database needs to fill, the page to open and each view to draw.

    python -m benchmarks.speed.evaluate_page [--runs 100] [--questions 2000] [--home FOLDER] [--json]

Values are random; their number, size and spread are those of a real run.  Seconds are of the server's side: the script of the page, through
Streamlit's own test client, with no browser.  CPU seconds stand beside those of the clock, for machines that are busy with other things.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from pathlib import Path
from typing import Any

METRICS = (
    "F1 answer",
    "precision",
    "recall",
    "exact set",
    "answers",
    "reference answers",
    "F1 bleu4",
    "F1 edit-f1",
    "R@10",
    "MRecall@10",
)
SYSTEMS = ("ambigprompt", "fid", "fid-nucleus", "dpr-threshold", "spanseqgen", "jpr", "rectify", "refuel")
BUCKETS = ("missed", "spurious", "alias_mismatch", "duplicate", "stopped_early", "ran_on", "not_retrieved")


def row(number: int, draw: random.Random, level: float) -> dict[str, Any]:
    said = draw.randint(1, 4)
    values = {name: min(1.0, max(0.0, draw.gauss(level, 0.3))) for name in METRICS}
    return {
        "id": f"q{number}",
        "question": f"Who was the number {number} in the list of people that this question asks about?",
        "source": draw.choice(("asqa", "multispanqa", "quotesum")),
        "ambiguity": draw.choice(("event references", "properties", "entity references", "time-dependency")),
        "ambiguous": number % 2 == 0,
        "references": [[[f"Answer {i} of question {number}", f"Alias {i}"] for i in range(draw.randint(1, 4))]],
        "error": None,
        "answers": [
            {
                "text": f"Answer {i} of question {number}",
                "probability": draw.random(),
                "passages": [f"p{i}"],
                "question": None,
                "passed": None,
            }
            for i in range(said)
        ],
        "passages": 10,
        "k": 10,
        "metrics": values | {"answers": float(said), "reference answers": float(draw.randint(1, 4))},
        "errors": {name: draw.randint(0, 1) for name in BUCKETS},
        "weights": {},
        "seconds": draw.expovariate(2.0),
        "first_answer_seconds": draw.random(),
    }


def report(run: int, questions: int) -> dict[str, Any]:
    draw = random.Random(run)
    rows = [row(number, draw, 0.35 + 0.2 * draw.random()) for number in range(questions)]
    scores: dict[str, Any] = {}
    for name in METRICS:
        parts = {"all": rows, "multi": [r for r in rows if r["ambiguous"]]}
        scores[name] = {scope: sum(r["metrics"][name] for r in part) / len(part) for scope, part in parts.items()}
    ends = {name: {scope: [value - 0.02, value + 0.02] for scope, value in by.items()} for name, by in scores.items()}
    system = SYSTEMS[run % len(SYSTEMS)]
    return {
        "n": questions,
        "failed": 0,
        "rows": rows,
        "scores": scores,
        "intervals": ends,
        "timings": {"seconds_median": 0.3 + draw.random(), "seconds_p95": 2.0, "peak_memory_mb": 900 + 400 * draw.random()},
        "provenance": {
            "system": {"name": system, "checkpoint": "default", "checkpoint_digest": f"{run:064x}", "settings": {"top_k": 10}},
            "commit": f"{run:040x}",
            "seed": run % 3,
            "parameters": draw.choice((33_000_000, 60_000_000, 220_000_000)),
            "tags": {"training questions": 10 ** (1 + run % 4)} if system == "ambigprompt" else {},
        },
        "summary": {"cost": {"retriever_calls": 1.0, "model_calls": 2.5, "seconds": 0.5, "model_seconds": 0.4}},
    }


def fill(url: str, runs: int, questions: int) -> float:
    """Seconds to store all runs."""
    from storage.store import Store

    began = time.perf_counter()
    with Store(url) as store:
        for run in range(runs):
            made = report(run, questions)
            store.evaluations.save_evaluation(
                system=made["provenance"]["system"]["name"],
                corpus="starter",
                questions="dev_light.json",
                metrics=made["scores"],
                report=made,
                label=f"run {run}",
            )
    return time.perf_counter() - began


def measure() -> dict[str, float]:
    """Seconds of the first opening and of each view, after the libraries were imported."""
    from streamlit.runtime.pages_manager import PagesManager
    from streamlit.testing.v1 import AppTest

    from core.settings import ROOT
    from pages.evaluate.data import VIEWS

    begin = PagesManager.__init__

    def as_with_navigation(self: PagesManager, *args: Any, **kw: Any) -> None:
        begin(self, *args, **kw)
        PagesManager.uses_pages_directory = False

    PagesManager.__init__ = as_with_navigation  # type: ignore[method-assign]
    found: dict[str, float] = {}
    app = AppTest.from_file(str(ROOT / "streamlit_app.py"), default_timeout=120)
    app.run()

    def timed(name: str, step: Any) -> Any:
        began, used = time.perf_counter(), time.process_time()
        done = step()
        found[name], found[f"{name} (CPU)"] = time.perf_counter() - began, time.process_time() - used
        if done.exception or done.error:
            raise SystemExit(f"{name}: {[e.value for e in [*done.exception, *done.error]]}")
        return done

    app = timed("open", lambda: app.switch_page("pages/evaluate/page.py").run())
    app = timed("open again", app.run)
    for view in VIEWS[1:4]:
        app = timed(view, lambda a=app, v=view: a.segmented_control(key="evaluate.view").set_value(v).run())
        if view == "Charts":
            for kind in app.selectbox(key="evaluate.kind").options[1:]:
                app = timed(f"chart {kind}", lambda a=app, k=kind: a.selectbox(key="evaluate.kind").set_value(k).run())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--questions", type=int, default=2000)
    parser.add_argument("--home", type=Path, help="keep the database here; one that is there already is measured as it is")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        home = args.home or Path(scratch)
        os.environ["AMBISCOPE_HOME"] = str(home)
        file = home / "ambiscope.db"
        filled = None if file.exists() else fill(f"sqlite:///{file}", args.runs, args.questions)
        found = {"fill": filled, "MB": file.stat().st_size / 1e6, **measure()}
    if args.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:32} {'kept' if value is None else f'{value:8.2f}'}")


if __name__ == "__main__":
    main()
