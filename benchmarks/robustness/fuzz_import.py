"""Import fuzzing: python -m benchmarks.robustness.fuzz_import --cases 10000

Files of every format that `import` reads, sound ones and what becomes of them when they are cut, spliced and poisoned: malformed JSON and
JSON lines, deep nesting, NaN, duplicate keys, huge numbers and lines, NUL, lone surrogates, byte order marks, damaged gzip and zip bombs.
A case fails when anything but an AmbiscopeError comes out, when its message does not name the file, or when a refused file left a row in
the database, or an accepted one left what cannot be exported.  Cases are drawn from numbers: the same `--seed` gives the same cases.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import random
import shutil
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core import json_io
from core.errors import AmbiscopeError
from storage.records.annotation import GenerationWork
from storage.schema import engine
from storage.store import Store

FORMATS = ("auto", "auto", "ambignq", "questions", "predictions", "jsonl")
MOMENT = "2026-01-31T12:00:00+00:00"
WORDS = (
    "Who played it?",
    "Ada",
    "",
    " ",
    "\u00fc\u4e2d\U0001f600",
    "=1+1",
    "q1",
    "the",
    "a|b",
    "x" * 300,
    "1932",
    "\ufeff",
    "\u202e",
)
TRAPS = (
    "NaN", "-Infinity", "1e999", "9" * 5000, str(2**63), '"\\ud800"', '"\\u0000"', '{"a": 1, "a": 2}', "[" * 100_000, "[" * 70 + "]" * 70,
    '"' + "x" * 200_000 + '"', "true", "null", "-0", "{}", "[]", '"\t"', "'x'", "01", '{"kind": "ambiscope", "layout": 4}',
)  # fmt: skip
JUNK = (
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xc3",
    b"\r",
    b"\x1a",
    b"PK\x03\x04",
    b"\x1f\x8b\x08\x00",
    b"\xed\xa0\x80",
    b"{",
    b"]",
    b",,",
    b"\n\n",
)


# ---------------------------------------------------------------- sound rows


def text(rng: random.Random) -> str:
    return (
        rng.choice(WORDS)
        if rng.random() < 0.7
        else "".join(rng.choice("ab ?|\u00e9\U0001f600") for _ in range(rng.randint(0, 9)))
    )


def some(rng: random.Random, make: Callable[[random.Random], Any], most: int = 3) -> list[Any]:
    return [make(rng) for _ in range(rng.randint(0, most))]


def ambignq(rng: random.Random) -> Any:
    def annotation(r: random.Random) -> Any:
        kind = r.choice(("singleAnswer", "multipleQAs", "noAnswer", "other"))
        pairs = [{"question": text(r), "answer": some(r, text), "passages": some(r, text)} for _ in range(r.randint(0, 3))]
        return {"type": kind, "answer": some(r, text), "qaPairs": pairs}

    full = (
        {"used_queries": [{"query": text(rng), "results": []}], "viewed_doc_titles": some(rng, text)}
        if rng.random() < 0.3
        else {}
    )
    return {"id": text(rng), "question": text(rng), "annotations": some(rng, annotation), **full}


def prediction(rng: random.Random) -> Any:
    def answer(r: random.Random) -> Any:
        whole = {"answer": text(r), "question": text(r), "probability": r.choice((0, 0.5, 1, 7)), "passages": some(r, text)}
        return text(r) if r.random() < 0.5 else whole

    passages = [{"id": text(rng), "title": text(rng), "text": text(rng)} for _ in range(rng.randint(0, 2))]
    return {"id": text(rng), "question": text(rng), "system": text(rng), "answers": some(rng, answer), "passages": passages}


def question(rng: random.Random) -> Any:
    return {"id": text(rng), "question": text(rng)} if rng.random() < 0.8 else {"question": text(rng)}


def dump_lines(rng: random.Random, lines: list[str]) -> list[Any]:
    """Lines of a real dump, some left out or twice or in another order, some with a field of another kind."""
    rows = [json.loads(line) for line in lines]
    for _ in range(rng.randint(0, 3)):
        at = rng.randrange(len(rows))
        act = rng.random()
        if act < 0.3:
            del rows[at]
        elif act < 0.5:
            rows.insert(rng.randrange(len(rows)), rows[at])
        elif rows[at]:
            name = rng.choice(list(rows[at]))
            rows[at] = {
                **rows[at],
                name: rng.choice((None, 1, -1, 2**62, True, text(rng), [], {}, MOMENT, [text(rng)], {"a": [1]})),
            }
        if not rows:
            break
    return rows


# ---------------------------------------------------------------- files


def sound(rng: random.Random, dump: list[str]) -> bytes:
    kind = rng.choice(("ambignq", "predictions", "questions", "dump", "dump", "list"))
    if kind == "dump":
        rows = dump_lines(rng, dump)
        return "".join(json.dumps(r) + "\n" for r in rows).encode()
    make = {"ambignq": ambignq, "predictions": prediction, "questions": question, "list": question}[kind]
    rows = some(rng, make, 4)
    if kind in ("ambignq", "list"):
        return json.dumps(rows, indent=rng.choice((None, 0)), ensure_ascii=rng.random() < 0.5).encode()
    return "".join(json.dumps(r) + "\n" for r in rows).encode()


def poisoned(rng: random.Random, raw: bytes) -> bytes:
    """Raw bytes with one to three wounds."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randint(0, len(raw))
        act = rng.random()
        if act < 0.25:
            raw = raw[:at]
        elif act < 0.5:
            raw = raw[:at] + rng.choice(JUNK) + raw[at:]
        elif act < 0.75:  # a value exchanged for a trap
            spot = raw.find(b": ", at)
            end = min((p for p in (raw.find(c, spot + 2) for c in (b",", b"}", b"\n")) if p > 0), default=-1)
            if spot >= 0 and end > 0:
                raw = raw[: spot + 2] + rng.choice(TRAPS).encode() + raw[end:]
        elif act < 0.9 and raw:
            flipped = bytearray(raw)
            flipped[min(at, len(raw) - 1)] = rng.randrange(256)
            raw = bytes(flipped)
        else:
            raw = raw + raw[at:]
    return raw


def packed(rng: random.Random, raw: bytes) -> bytes:
    act = rng.random()
    if act < 0.4:
        return gzip.compress(raw)
    if act < 0.6:
        return gzip.compress(raw)[: rng.randint(0, 60)]
    if act < 0.8:  # a bomb: a thousand times its size
        start = rng.choice((b"[", b'{"question": "', b'{"kind": "ambiscope", "layout": 4}\n'))
        return gzip.compress(start + b"0" * 3_000_000, 9)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../etc/passwd", raw)
    return out.getvalue()


def case(number: int, seed: int, dump: list[str]) -> tuple[bytes, str]:
    """The file and the format of one case."""
    rng = random.Random(f"{seed}-{number}")
    raw = sound(rng, dump)
    act = rng.random()
    if act < 0.55:
        raw = poisoned(rng, raw)
    elif act < 0.7:
        raw = packed(rng, raw)
    elif act < 0.75:
        raw = rng.randbytes(rng.randint(0, 200))
    if rng.random() < 0.05:
        raw = b"\xef\xbb\xbf" + raw
    return raw, rng.choice(FORMATS)


# ---------------------------------------------------------------- the run


def tighten() -> None:
    """Smaller bounds, so that huge lines and bombs are cheap to make; the code that holds them is the same."""
    json_io.MAX_LINE_BYTES = 1_000_000
    json_io.MAX_FILE_BYTES = 8_000_000
    json_io.FREE_BYTES = 1_000_000
    engine.SYNCHRONOUS = "OFF"  # nothing here is worth a disk's patience


def run_case(store: Store, file: Path, raw: bytes, format: str, before: dict[str, int]) -> str:
    """ "stored", "nothing new" or the name of the error.  Raises AssertionError for a case that fails, and what is no AmbiscopeError."""
    file.write_bytes(raw)
    try:
        report = store.imports.import_file(file, format=format)
    except AmbiscopeError as e:
        refused: AmbiscopeError | None = e
    else:
        refused = None
    after = store.maintenance.counts()
    if refused is not None:
        assert str(file) in str(refused), f"the message does not name the file: {refused}"
        assert len(str(refused)) < 5000, "the message is a page long"
        assert after == before, "a refused file left rows behind"
        return type(refused).__name__
    if not report.stored:
        assert after == before, "nothing was reported as stored, and something was"
        return "nothing new"
    return "stored"


def run(
    cases: int, seed: int, folder: Path, dump: list[str], said: Callable[[int], None] = lambda _: None
) -> tuple[Counter[str], list[str]]:
    """Outcomes, and the cases that failed with their reason."""
    outcomes: Counter[str] = Counter()
    failed: list[str] = []
    url, empty = f"sqlite:///{folder / 'fuzz.db'}", folder / "empty.db"
    with Store(url) as made:
        before = made.maintenance.counts()
    shutil.copy(folder / "fuzz.db", empty)
    store = Store(url)
    for number in range(cases):
        raw, format = case(number, seed, dump)
        try:
            outcome = run_case(store, folder / "case", raw, format, before)
        except Exception:
            failed.append(f"case {number} ({format}): {traceback.format_exc(limit=-3)}")
            outcome = "FAILED"
        outcomes[outcome] += 1
        if outcome == "stored":  # what was let in can go out, and come into an empty database
            try:
                store.exports.export("jsonl", folder / "out.jsonl")
                shutil.copy(empty, folder / "again.db")
                with Store(f"sqlite:///{folder / 'again.db'}") as again:
                    assert again.imports.import_file(folder / "out.jsonl").stored
            except Exception:
                failed.append(f"case {number} ({format}), exported: {traceback.format_exc(limit=-3)}")
            store.close()
            for file in folder.glob("fuzz.db*"):
                file.unlink()
            shutil.copy(empty, folder / "fuzz.db")
            store = Store(url)
        said(number + 1)
    store.close()
    return outcomes, failed


def sample_dump(folder: Path) -> list[str]:
    """A dump with a row of most kinds."""
    from core import types as t

    with Store(f"sqlite:///{folder / 'sample.db'}") as store:
        pairs = (t.QAPair("Who played it in 1961?", ("Ada",), ("p1",)), t.QAPair("Who played it in 2021?", ("Bob", "B.")))
        reference = t.ReferenceQuestion("q1", "Who played it?", (t.Annotation("multiple", pairs),))
        project = store.projects.create_project("Mia", "films", thresholds={"must_read": 0})
        store.intake.add_items("Mia", project.id, [reference])
        task = store.queue.next_item(project.id, "Ada", "generation")
        assert task is not None

        store.drafts.log_search(task.item, "Ada", "generation", "films")
        store.submissions.submit(task.item, "Ada", "generation", GenerationWork(t.Annotation("multiple", pairs)), seconds=9)
        info = t.SystemInfo("fid", {"top_k": 10}, "starter")
        found = t.RetrievedPassage(t.Passage("p1", "Films", "Ada played it."), 1, 0.5)
        events = (t.PassagesRetrieved((found,), 0.1, "Who played it?"), t.Finished(0.2, "one pass"))
        answers = (t.Answer("Ada", 0.9, (t.Evidence("p1", 0, 3, "Ada"),)),)
        made = t.Prediction(t.Question("Who played it?", id="q1"), info, answers, (), (), (found,), 0.2, events)
        store.labels.judge(store.predictions.save_prediction(made), 0, "Ada", "correct", "good")
        store.labels.judge(store.predictions.recent_predictions(1)[0].id, 0, "Ada", "wrong")
        store.exports.export("jsonl", folder / "sample.jsonl")
    return (folder / "sample.jsonl").read_text(encoding="utf-8").splitlines()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    tighten()
    start = time.perf_counter()

    def said(done: int) -> None:
        if not args.json and done % 500 == 0:
            print(f"{done} cases, {time.perf_counter() - start:.0f} s", flush=True)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        outcomes, failed = run(args.cases, args.seed, folder, sample_dump(folder), said)
    if args.json:
        print(json.dumps({"cases": args.cases, "seed": args.seed, "outcomes": outcomes, "failed": failed}))
    else:
        print(
            f"{args.cases} cases in {time.perf_counter() - start:.0f} s: "
            + ", ".join(f"{k} {v}" for k, v in outcomes.most_common())
        )
        print("\n".join(failed[:20]) or "none failed")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
