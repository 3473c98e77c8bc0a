"""Many people annotate at once: is a save ever lost, refused or slow?

    python -m benchmarks.robustness.annotation_load [--seconds 300] [--people 20] [--processes 5] [--every 3] [--items 2000] [--adding 0] [--url URL] [--out FILE]

Each simulated person takes the next item, saves its draft at a fixed pace, and submits it after some drafts; the people are spread over
several processes, as several app processes would be.  A fresh SQLite file (synchronous=FULL) in a temporary folder, or `--url`: an empty
PostgreSQL database.  `--adding 10000`: a manager, in a process of their own, meanwhile adds so many questions to the same project and then changes its
order.  Afterwards everything that was acknowledged is looked up: lost saves must be 0.  Times are of single calls, in ms.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import show
from core.types import Annotation, QAPair, ReferenceQuestion
from storage.records.annotation import GenerationWork
from storage.store import Store

STAGE = "generation"


def answer(text: str) -> GenerationWork:
    return GenerationWork(Annotation("single", (QAPair("", (text,)),)))


class Person:
    """One simulated annotator and what was acknowledged to them."""

    def __init__(self, store: Store, project: str, name: str, interval: float) -> None:
        self.store, self.project, self.name, self.interval = store, project, name, interval
        self.random = random.Random(name)
        self.times: dict[str, list[float]] = {"claim": [], "draft": [], "submit": []}
        self.errors: list[str] = []
        self.drafts: dict[str, tuple[int, str]] = {}  # item -> version and text of the last acknowledged draft
        self.submitted: dict[str, str] = {}  # item -> acknowledged answer

    def _timed(self, kind: str, call: Any) -> Any:
        start = time.perf_counter()
        try:
            return call()
        except Exception as error:
            self.errors.append(f"{kind}: {type(error).__name__}: {error}")
            return None
        finally:
            self.times[kind].append(1000 * (time.perf_counter() - start))

    def work(self, until: float) -> None:
        pause = self.random.random() * self.interval  # people do not start in step
        while time.monotonic() + pause < until:
            time.sleep(pause)
            pause = 0.0
            task = self._timed("claim", lambda: self.store.queue.next_item(self.project, self.name, STAGE))
            if task is None:
                return
            version = 0
            for number in range(self.random.randint(2, 6)):
                text = f"{self.name} {task.item} {number} " + "x" * self.random.randint(20, 2000)
                start = time.monotonic()
                saved = self._timed(
                    "draft",
                    lambda item=task.item, text=text, version=version: self.store.drafts.save_draft(
                        item, self.name, STAGE, {"text": text}, expected_version=version
                    ),
                )
                if saved is not None:
                    version = saved.version
                    self.drafts[task.item] = (version, text)
                remaining = self.interval - (time.monotonic() - start)
                if time.monotonic() + max(0.0, remaining) >= until:
                    return
                time.sleep(max(0.0, remaining))
            text = f"{self.name} {task.item}"
            submission = self._timed(
                "submit",
                lambda item=task.item, text=text: self.store.submissions.submit(
                    item, self.name, STAGE, answer(text), seconds=1
                ),
            )
            if submission is not None:
                self.submitted[task.item] = text
            pause = self.interval


def process(url: str, project: str, names: list[str], interval: float, seconds: float, start: Any, results: Any) -> None:
    with Store(url) as store:
        people = [Person(store, project, name, interval) for name in names]
        # the app processes have been running for a while: what the first call of each kind costs is no save's
        warm = f"warm {names[0]}"
        for _ in range(2):
            task = store.queue.next_item(project, warm, STAGE)
            if task is not None:
                store.drafts.save_draft(task.item, warm, STAGE, {"text": ""})
                store.submissions.submit(task.item, warm, STAGE, answer("warm"), seconds=1)
        start.wait()
        until = time.monotonic() + seconds
        with ThreadPoolExecutor(len(people)) as pool:
            list(pool.map(lambda person: person.work(until), people))
    results.put([(p.name, p.times, p.errors, p.drafts, p.submitted) for p in people])


def manage(url: str, project: str, count: int, start: Any, results: Any) -> None:
    """Adds many questions, then reorders them; puts the seconds of both, and errors, into `results`."""
    times: dict[str, float] = {}
    errors: list[str] = []
    with Store(url) as store:
        questions = [
            ReferenceQuestion(f"more {i}", f"Who was the number {i} of those that were added?", ()) for i in range(count)
        ]
        start.wait()
        try:
            began = time.perf_counter()
            store.intake.add_items("Mia", project, questions)
            times["add_s"] = round(time.perf_counter() - began, 1)
            began = time.perf_counter()
            store.projects.update_project("Mia", project, store.projects.get_project(project).version, order="random")
            times["order_s"] = round(time.perf_counter() - began, 1)
        except Exception as e:
            errors.append(f"manager: {type(e).__name__}: {e}")
    results.put((times, errors))


def make_project(store: Store, name: str, items: int, **values: Any) -> str:
    """The id of a new project with so many questions, whose work can be submitted without having read a passage."""
    project = store.projects.create_project("Mia", f"{name} {time.time():.0f}", thresholds={"must_read": 0}, **values).id
    store.intake.add_items("Mia", project, [ReferenceQuestion(f"q{i}", f"Question {i}?", ()) for i in range(items)])
    return project


def submitted_texts(store: Store, item: str, name: str) -> list[str]:
    """The answer of each version that a person submitted of an item."""
    history = store.submissions.submission_history(item, name, STAGE, name)
    return [s.content.annotation.pairs[0].answers[0] for s in history if isinstance(s.content, GenerationWork)]


def lost(store: Store, results: list[Any]) -> int:
    """Acknowledged drafts and submissions that are not there, or not as they were acknowledged."""
    missing = 0
    for name, _, _, drafts, submitted in results:
        for item, (version, text) in drafts.items():
            draft = store.drafts.find_draft(item, name, STAGE)
            missing += draft is None or draft.version < version or draft.body != {"text": text}
        for item, text in submitted.items():
            missing += submitted_texts(store, item, name) != [text]
    return missing


def summary(times: list[float]) -> dict[str, float]:
    if not times:
        return {"n": 0}
    p50, p95, p99 = np.percentile(times, [50, 95, 99])
    return {
        "n": len(times),
        "p50_ms": round(float(p50), 2),
        "p95_ms": round(float(p95), 2),
        "p99_ms": round(float(p99), 2),
        "max_ms": round(max(times), 2),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--every", type=float, default=3.0, help="seconds between two saves of one person")
    parser.add_argument("--items", type=int, default=2000)
    parser.add_argument("--adding", type=int, default=0, help="questions that a manager adds meanwhile")
    parser.add_argument("--url", default="", help="an empty database of a PostgreSQL server; default: a fresh SQLite file")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = args.url or f"sqlite:///{folder}/load.db"
        with Store(url) as store:
            project = make_project(store, "load", args.items, annotators_per_item=2)
        context = multiprocessing.get_context("spawn")
        start, results = context.Barrier(args.processes + bool(args.adding)), context.Queue()
        managed = context.Queue()
        names = [f"person {i:03d}" for i in range(args.people)]
        workers = [
            context.Process(
                target=process,
                args=(url, project, names[i :: args.processes], args.every, args.seconds, start, results),
            )
            for i in range(args.processes)
        ]
        manager = context.Process(target=manage, args=(url, project, args.adding, start, managed))
        for worker in [*workers, manager] if args.adding else workers:
            worker.start()
        people = [row for _ in workers for row in results.get(timeout=args.seconds + 300)]
        for worker in workers:
            worker.join()
        adding, manager_errors = managed.get(timeout=args.seconds + 600) if args.adding else ({}, [])
        with Store(url) as store:
            lost_saves = lost(store, people)
            health = store.maintenance.health(full=True)
            surplus = store.items.progress(project, "Mia")["generation"].over
    errors = [e for row in people for e in row[2]] + manager_errors
    times = {kind: [t for row in people for t in row[1][kind]] for kind in ("claim", "draft", "submit")}
    figures = {
        "database": "PostgreSQL" if args.url else "SQLite",
        "people": args.people,
        "processes": args.processes,
        "seconds": args.seconds,
        **({"adding": {"items": args.adding, **adding}} if args.adding else {}),
        "lost_saves": lost_saves,
        "errors": len(errors),
        "first_errors": errors[:5],
        "over_the_number": surplus,
        "integrity": health.integrity,
        "save": summary(times["draft"] + times["submit"]),
        **{kind: summary(value) for kind, value in times.items()},
    }
    show(figures, args.out)
    return int(bool(lost_saves or errors or health.integrity != "ok"))


if __name__ == "__main__":
    sys.exit(main())
