"""`python -m core index --passages FILE`: builds a corpus from files."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from core.cluster.connect import add_option, connected
from core.errors import InputError
from core.settings import Settings

SAY_SECONDS = 10.0


def add_parser(commands: Any) -> None:
    index = commands.add_parser("index", help="build a corpus from TSV, JSONL, text, Markdown or PDF files")
    index.add_argument("--passages", type=Path, nargs="+", required=True, metavar="FILE", help="files, or folders of files")
    index.add_argument("--name", help="name of the corpus (default: made from the first file name)")
    index.add_argument("--replace", action="store_true", help="replace a corpus of the same name")
    add_option(index)
    index.add_argument("--json", action="store_true", help="print the report as one JSON object")
    index.set_defaults(run=run)


def _files(paths: list[Path]) -> list[Path]:
    """The paths, with each folder replaced by the readable files in it, by name."""
    from core.retrieval.readers import READERS

    out: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*") if not p.is_dir() and any(p.name.lower().endswith(s) for s in READERS))
            if not inside:
                raise InputError(f"{path}: this folder has no .tsv, .jsonl, .txt, .md or .pdf file")
            out += inside
        elif not path.exists():
            raise InputError(f"{path}: there is no such file")
        else:
            out.append(path)
    return out


def run(args: argparse.Namespace, settings: Settings) -> int:
    from tqdm import tqdm

    from core.retrieval.library import CorpusLibrary
    from core.retrieval.readers.lines import Limits

    files = _files(args.passages)
    name = args.name or (re.sub(r"[^a-z0-9_-]+", "-", files[0].name.split(".")[0].lower()).strip("-")[:64] or "corpus")
    said = [time.monotonic()]
    bar = tqdm(unit=" passages", file=sys.stderr, disable=not sys.stderr.isatty())

    def progress(done: int, total: int, stage: str) -> None:
        if bar.disable:  # no terminal: an occasional line
            if time.monotonic() - said[0] >= SAY_SECONDS:
                said[0] = time.monotonic()
                of = f" of {total}" if total else ""
                print(f"{stage}: {done}{of}", file=sys.stderr, flush=True)
            return
        if bar.desc != f"{stage}: ":
            bar.reset(total=total or None)
            bar.set_description(stage)
        bar.n = done
        bar.refresh()

    library = CorpusLibrary(settings)
    with bar, connected(args.ray, settings) as cluster:
        encode = None
        if cluster is not None:
            from core.cluster.jobs import encoding

            encode = encoding(cluster, library.encoder())
        report = library.create(
            name, files, progress, limits=Limits.for_own_files(settings), replace=args.replace, encode=encode
        )
    if args.json:
        print(json.dumps(asdict(report)))
        return 0
    if report.already_built:
        print(f"corpus '{name}' is up to date: {report.passages} passages")
        return 0
    print(f"corpus '{name}': {report.passages} passages from {len(report.files)} file(s) in {report.seconds:.1f} s")
    if report.rejected_total:
        print(f"{report.rejected_total} row(s) rejected:")
        for row in report.rejected[:20]:
            print(f"  {row}")
    return 0
