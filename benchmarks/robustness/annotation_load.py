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
import threading
import time
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

    def __init__(self, store: Store, project: str, name: str, every: float, seed: int) -> None:
        self.store, self.project, self.name, self.every = store, project, name, every
        self.random = random.Random(seed)
        self.times: dict[str, list[float]] = {"claim": [], "draft": [], "submit": []}
        self.errors: list[str] = []
        self.drafts: dict[str, tuple[int, str]] = {}  # item -> version and text of the last acknowledged draft
        self.submitted: dict[str, str] = {}  # item -> acknowledged answer

    def _timed(self, kind: str, call: Any) -> Any:
        started = time.perf_counter()
        try:
            return call()
        except Exception as e:
            self.errors.append(f"{kind}: {type(e).__name__}: {e}")
            return None
        finally:
            self.times[kind].append(1000 * (time.perf_counter() - started))

    def work(self, until: float) -> None:
        pause = self.random.random() * self.every  # people do not start in step
        while time.monotonic() + pause < until:
            time.sleep(pause)
            pause = 0.0
            task = self._timed("claim", lambda: self.store.queue.next_item(self.project, self.name, STAGE))
            if task is None:
                return
            version = 0
            for number in range(self.random.randint(2, 6)):
                text = f"{self.name} {task.item} {number} " + "x" * self.random.randint(20, 2000)
                began = time.monotonic()
                saved = self._timed(
                    "draft",
                    lambda item=task.item, text=text, version=version: self.store.drafts.save_draft(
                        item, self.name, STAGE, {"text": text}, expected_version=version
                    ),
                )
                if saved is not None:
                    version = saved.version
                    self.drafts[task.item] = (version, text)
                left = self.every - (time.monotonic() - began)
                if time.monotonic() + max(0.0, left) >= until:
                    return
                time.sleep(max(0.0, left))
            text = f"{self.name} {task.item}"
            done = self._timed(
                "submit",
                lambda item=task.item, text=text: self.store.submissions.submit(
                    item, self.name, STAGE, answer(text), seconds=1
                ),
            )
            if done is not None:
                self.submitted[task.item] = text
            pause = self.every


def process(url: str, project: str, names: list[str], every: float, seconds: float, start: Any, results: Any) -> None:
    with Store(url) as store:
        people = [Person(store, project, name, every, seed=hash_of(name)) for name in names]
        # the app processes have been running for a while: what the first call of each kind costs is no save's
        warm = f"warm {names[0]}"
        for _ in range(2):
            task = store.queue.next_item(project, warm, STAGE)
            if task is not None:
                store.drafts.save_draft(task.item, warm, STAGE, {"text": ""})
                store.submissions.submit(task.item, warm, STAGE, answer("warm"), seconds=1)
        start.wait()
        until = time.monotonic() + seconds
        threads = [threading.Thread(target=one.work, args=(until,)) for one in people]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    results.put([(p.name, p.times, p.errors, p.drafts, p.submitted) for p in people])


def manage(url: str, project: str, count: int, start: Any, results: Any) -> None:
    """Adds many questions, then puts them in another order; tells the seconds of both, or the error."""
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


def hash_of(name: str) -> int:
    return int.from_bytes(name.encode()[-4:])


def lost(store: Store, found: list[Any]) -> int:
    """Acknowledged drafts and submissions that are not there, or not as they were acknowledged."""
    missing = 0
    for name, _, _, drafts, submitted in found:
        for item, (version, text) in drafts.items():
            draft = store.drafts.find_draft(item, name, STAGE)
            if draft is None or draft.version < version or draft.body != {"text": text}:
                missing += 1
        for item, text in submitted.items():
            history = store.submissions.submission_history(item, name, STAGE, name)
            said = [s.content.annotation.pairs[0].answers[0] for s in history if isinstance(s.content, GenerationWork)]
            if said != [text]:
                missing += 1
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
            project = store.projects.create_project(
                "Mia", f"load {time.time():.0f}", annotators_per_item=2, thresholds={"must_read": 0}
            ).id
            store.intake.add_items(
                "Mia", project, [ReferenceQuestion(f"q{i}", f"Question {i}?", ()) for i in range(args.items)]
            )
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
        found = [row for _ in workers for row in results.get(timeout=args.seconds + 300)]
        for worker in workers:
            worker.join()
        adding, refused = managed.get(timeout=args.seconds + 600) if args.adding else ({}, [])
        with Store(url) as store:
            gone = lost(store, found)
            health = store.maintenance.health(full=True)
            over = store.items.progress(project, "Mia")["generation"].over
    errors = [e for row in found for e in row[2]] + refused
    times = {kind: [t for row in found for t in row[1][kind]] for kind in ("claim", "draft", "submit")}
    out = {
        "database": "PostgreSQL" if args.url else "SQLite",
        "people": args.people,
        "processes": args.processes,
        "seconds": args.seconds,
        **({"adding": {"items": args.adding, **adding}} if args.adding else {}),
        "lost_saves": gone,
        "errors": len(errors),
        "first_errors": errors[:5],
        "over_the_number": over,
        "integrity": health.integrity,
        "save": summary(times["draft"] + times["submit"]),
        **{kind: summary(value) for kind, value in times.items()},
    }
    show(out, args.out)
    return int(bool(gone or errors or health.integrity != "ok"))


if __name__ == "__main__":
    sys.exit(main())
