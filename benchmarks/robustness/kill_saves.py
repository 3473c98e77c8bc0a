"""Processes are killed (SIGKILL) in the middle of saves: is anything lost that was acknowledged?

    python -m benchmarks.robustness.kill_saves [--kills 200] [--url URL] [--out FILE]

A writer takes items, saves drafts and submits without a pause, and reports over a pipe after each call what was acknowledged.  It is killed
after a random time, from the first moments of a save to many saves later, so that kills fall at every point: the report
counts in which call.  After each kill the database is opened again and everything acknowledged so far by this writer is looked up; the
integrity check runs after each kill too (SQLite).  A save that was under way may be there or not, but never half.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.robustness.annotation_load import STAGE, answer, make_project, submitted_texts
from benchmarks.timing import show
from storage.store import Store


def write(url: str, project: str, name: str, pipe: Any) -> None:
    """Saves until it is killed.  Sends (call, item, text) before each call as `begin` and after it as `done`."""
    with Store(url) as store:
        number = 0
        while True:
            if number == 3:
                pipe.send(("ready", "", "", ""))  # once through: statements are compiled, saves come at their real pace
            pipe.send(("begin", "claim", "", ""))
            task = store.queue.next_item(project, name, STAGE)
            if task is None:
                return
            pipe.send(("done", "claim", task.item, ""))
            for _ in range(3):
                number += 1
                text = f"{name} {number} " + "x" * 500
                pipe.send(("begin", "draft", task.item, text))
                store.drafts.save_draft(task.item, name, STAGE, {"text": text})
                pipe.send(("done", "draft", task.item, text))
            pipe.send(("begin", "submit", task.item, text))
            store.submissions.submit(task.item, name, STAGE, answer(text), seconds=1)
            pipe.send(("done", "submit", task.item, text))


def check(
    store: Store, name: str, drafts: dict[str, list[str]], submitted: dict[str, str], last_call: tuple[str, str, str]
) -> int:
    """The number of acknowledged saves that are missing; the last call may have happened."""
    missing = 0
    for item, texts in drafts.items():
        expected = [texts[-1]] + ([last_call[2]] if last_call[:2] == ("draft", item) else [])
        draft = store.drafts.find_draft(item, name, STAGE)
        missing += draft is None or draft.body.get("text") not in expected
    for item, text in submitted.items():
        missing += submitted_texts(store, item, name) != [text]
    return missing


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--longest", type=float, default=0.3, help="seconds of writing before a kill, at most")
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--url", default="", help="an empty database of a PostgreSQL server; default: a fresh SQLite file")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    chance = random.Random(0)
    kills_by_call: Counter[str] = Counter()
    missing = acknowledged = damaged = 0
    with tempfile.TemporaryDirectory() as folder:
        url = args.url or f"sqlite:///{folder}/kills.db"
        with Store(url) as store:
            project = make_project(store, "kills", args.items)
        # forked from a small process: starting Python again for each kill would take most of the time
        context = multiprocessing.get_context("fork")
        for kill in range(args.kills):
            name = f"writer {kill}"
            receiver, sender = context.Pipe(duplex=False)
            worker = context.Process(target=write, args=(url, project, name, sender))
            worker.start()
            sender.close()
            messages = []
            while not messages or messages[-1][0] != "ready":
                messages.append(receiver.recv())
            time.sleep(chance.random() ** 2 * args.longest)
            worker.kill()
            worker.join()
            assert worker.exitcode == -signal.SIGKILL, worker.exitcode
            drafts: dict[str, list[str]] = {}
            submitted: dict[str, str] = {}
            last_call = ("", "", "")
            with contextlib.suppress(EOFError):
                while True:
                    messages.append(receiver.recv())
            for state, call, item, text in messages:
                if state != "done":
                    last_call = (call, item, text)
                    continue
                last_call = ("", "", "")
                acknowledged += 1
                if call == "draft":
                    drafts.setdefault(item, []).append(text)
                elif call == "submit":
                    submitted[item] = text
            receiver.close()
            kills_by_call[last_call[0] or "between"] += 1
            with Store(url) as store:
                missing += check(store, name, drafts, submitted, last_call)
                damaged += store.maintenance.health(full=True).integrity != "ok"
    figures = {
        "database": "PostgreSQL" if args.url else "SQLite",
        "kills": args.kills,
        "killed_in": dict(kills_by_call),
        "acknowledged": acknowledged,
        "lost": missing,
        "integrity_failures": damaged,
    }
    show(figures, args.out)
    return int(bool(missing or damaged))


if __name__ == "__main__":
    sys.exit(main())
