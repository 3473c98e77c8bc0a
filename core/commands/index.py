"""`python -m core index --passages FILE`: builds a corpus from files."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.cluster.connect import add_option, connected
from core.errors import InputError
from core.settings import Settings

if TYPE_CHECKING:
    from core.retrieval.build import BuildProgress, BuildReport

SAY_SECONDS = 10.0  # between two lines of progress


def add_parser(commands: Any) -> None:
    index = commands.add_parser(
        "index", help="build a corpus from tables, data sets, documents, or vectors that are there already"
    )
    index.add_argument(
        "--passages",
        type=Path,
        nargs="+",
        required=True,
        metavar="FILE",
        help="files, folders or zips of folders (docs/formats.md)",
    )
    index.add_argument("--name", help="name of the corpus (default: made from the first file or folder)")
    index.add_argument("--replace", action="store_true", help="replace a corpus of the same name")
    for field in ("id", "text", "title"):
        index.add_argument(
            f"--{field}-column", metavar="NAME", help=f"of JSON lines, Parquet and Arrow: the field of the {field}"
        )
    index.add_argument(
        "--vectors",
        nargs="+",
        metavar="FILE",
        help="vectors of the passages: .npy or .faiss files",
    )
    index.add_argument("--ids", type=Path, metavar="FILE", help="the ids of the vectors, a line each or a JSON list")
    add_option(index)
    index.add_argument("--json", action="store_true", help="print the report as one JSON object")
    index.set_defaults(run=run)


def run(args: argparse.Namespace, settings: Settings) -> int:
    from core.retrieval.library import BuildOptions, CorpusLibrary
    from core.retrieval.readers.lines import Columns, Limits
    from core.retrieval.vectors import VectorFiles
    from core.retrieval.vectors import files_of as vector_files

    if args.ids and not args.vectors:
        raise InputError("--ids is for vectors; give --vectors too")
    first = args.passages[0]
    stem = (first.resolve() if first.is_dir() else first).name.split(".")[0].lower()
    name = args.name or re.sub(r"[^a-z0-9_-]+", "-", stem).strip("-")[:64] or "corpus"
    columns = {n: (column,) for n in ("id", "text", "title") if (column := getattr(args, f"{n}_column"))}
    vectors = VectorFiles(vector_files(args.vectors), args.ids) if args.vectors else None
    library = CorpusLibrary(settings)
    with shown_progress() as progress, connected(args.ray, settings) as cluster:
        encode = None
        if cluster is not None:
            from core.cluster.jobs import encoding  # imports every system

            encode = encoding(cluster, library.encoder())
        report = library.create(
            name,
            args.passages,
            progress,
            BuildOptions(
                Limits.for_own_files(settings),
                replace=args.replace,
                encode=encode,
                columns=Columns(**columns),
                vectors=vectors,
            ),
        )
    print_report(report, as_json=args.json)
    return 0


@contextmanager
def shown_progress() -> Iterator[BuildProgress]:
    """Shows a progress bar on a terminal, or else an occasional line."""
    from tqdm import tqdm

    last_print = time.monotonic()
    with tqdm(file=sys.stderr, disable=not sys.stderr.isatty()) as bar:

        def progress(count: int, total: int, stage: str) -> None:
            nonlocal last_print
            if bar.disable:
                if time.monotonic() - last_print >= SAY_SECONDS:
                    last_print = time.monotonic()
                    print(f"{stage}: {count}{f' of {total}' if total else ''}", file=sys.stderr, flush=True)
                return
            if bar.desc != f"{stage}: ":
                bar.reset(total=total or None)
                bar.set_description(stage)
            bar.n = count
            bar.refresh()

        yield progress


def print_report(report: BuildReport, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(asdict(report)))
        return
    if report.already_built:
        print(f"corpus '{report.name}' is up to date: {report.passages} passages")
    else:
        print(f"corpus '{report.name}': {report.passages} passages from {len(report.files)} file(s) in {report.seconds:.1f} s")
    for warning in report.warnings:
        print(f"warning: {warning}")
    if report.already_built:
        return
    if report.others_total:
        names = ", ".join(row.file for row in report.others[:5])
        more = f" and {report.others_total - 5} more" if report.others_total > 5 else ""
        print(f"{report.others_total} other file(s) not read: {names}{more}")
    if report.rejected_total:
        print(f"{report.rejected_total} row(s) rejected:")
        for row in report.rejected[:20]:
            print(f"  {row}")
