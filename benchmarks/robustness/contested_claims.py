"""Everybody asks for the same items at the same instant: does each item get exactly its number of people?

    python -m benchmarks.robustness.contested_claims [--items 334] [--annotators 3] [--processes 6] [--url URL] [--out FILE]

Each process, released by one barrier, takes and submits items until none is left for it; every so often it skips or gives back instead, so
that slots are taken again.  The default makes more than 1,000 claims.  Counted afterwards in the database: submissions per item, each of
which must be the project's number, and people per slot.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from sqlalchemy import text

from benchmarks.robustness.annotation_load import STAGE, answer
from core.types import ReferenceQuestion
from storage.store import Store


def process(url: str, project: str, name: str, start: Any, results: Any) -> None:
    claims, errors = 0, []
    with Store(url) as store:
        start.wait()
        idle = 0
        while idle < 3:
            try:
                task = store.queue.next_item(project, name, STAGE)
                if task is None:  # nothing now; what others give back may come
                    idle += 1
                    time.sleep(0.2)
                    continue
                idle = 0
                claims += 1
                if claims % 10 == 7 and task.reason == "":
                    store.queue.release_item(task.item, name, STAGE)
                else:
                    store.submissions.submit(task.item, name, STAGE, answer(name), seconds=1)
            except Exception as e:
                errors.append(f"{type(e).__name__}: {e}")
                if len(errors) > 20:
                    break
    results.put((claims, errors))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=334)
    parser.add_argument("--annotators", type=int, default=3)
    parser.add_argument("--processes", type=int, default=6)
    parser.add_argument("--url", default="", help="an empty database of a PostgreSQL server; default: a fresh SQLite file")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = args.url or f"sqlite:///{folder}/claims.db"
        with Store(url) as store:
            project = store.projects.create_project(
                "Mia", f"claims {time.time():.0f}", annotators_per_item=args.annotators, thresholds={"must_read": 0}
            ).id
            store.intake.add_items(
                "Mia", project, [ReferenceQuestion(f"q{i}", f"Question {i}?", ()) for i in range(args.items)]
            )
        context = multiprocessing.get_context("spawn")
        start, results = context.Barrier(args.processes), context.Queue()
        workers = [
            context.Process(target=process, args=(url, project, f"person {i}", start, results)) for i in range(args.processes)
        ]
        began = time.perf_counter()
        for worker in workers:
            worker.start()
        found = [results.get(timeout=3600) for _ in workers]
        for worker in workers:
            worker.join()
        took = time.perf_counter() - began
        with Store(url) as store, store.database.reading() as session:
            per_item = Counter(
                count
                for (count,) in session.execute(
                    text(
                        "SELECT count(t.id) FROM project_item i JOIN project p ON p.id = i.project_id "
                        "LEFT JOIN task t ON t.item_id = i.id AND t.state = 'submitted' AND t.slot IS NOT NULL "
                        "WHERE p.public_id = :project GROUP BY i.id"
                    ),
                    {"project": project},
                )
            )
            shared = session.scalar(
                text(
                    "SELECT count(*) FROM (SELECT 1 FROM task WHERE slot IS NOT NULL "
                    "GROUP BY item_id, stage, slot HAVING count(*) > 1) AS twice"
                )
            )
    errors = [e for _, many in found for e in many]
    exact = per_item[args.annotators]
    out = {
        "database": "PostgreSQL" if args.url else "SQLite",
        "processes": args.processes,
        "claims": sum(claims for claims, _ in found),
        "items": args.items,
        "annotators_per_item": args.annotators,
        "items_with_exactly_that_many": exact,
        "people_in_one_slot": shared,
        "errors": len(errors),
        "first_errors": errors[:5],
        "seconds": round(took, 1),
    }
    lines = json.dumps(out, indent=1)
    print(lines)
    if args.out:
        args.out.write_text(lines + "\n")
    return int(bool(errors or shared or exact != args.items))


if __name__ == "__main__":
    sys.exit(main())
