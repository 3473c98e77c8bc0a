"""`python -m core download NAME`: downloads a public data set from its authors into AMBISCOPE_HOME, and builds a corpus of simple-wikipedia.

An interrupted download is resumed.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import ExitStack
from typing import Any

from core.settings import Settings


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("download", help="download a public data set from its authors; resumes interrupted downloads")
    parser.add_argument("name", help="simple-wikipedia (a corpus), or a data set; `python -m core datasets` lists them")
    parser.add_argument("--again", action="store_true", help="download again, even if the files are here")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, settings: Settings) -> int:
    from tqdm import tqdm

    from core.datasets.catalogue import data_set, folder_of
    from core.datasets.download import obtain
    from core.disk import format_bytes

    if args.name == "simple-wikipedia":
        return _corpus(args, settings)
    data = data_set(args.name)
    print(f"{data.name}: licence {data.licence}; {data.source}; {data.homepage}", file=sys.stderr)
    bars: dict[str, Any] = {}

    def progress(url: str, bytes_read: int, total: int | None) -> None:
        if url not in bars:
            size = "unknown size" if total is None else format_bytes(total)
            resumed = f", {format_bytes(bytes_read)} already here" if bytes_read else ""
            print(f"{url}: {size}{resumed}, into {folder_of(settings.home, data.name)}", file=sys.stderr)
            bar = tqdm(total=total, initial=bytes_read, unit="B", unit_scale=True, disable=not sys.stderr.isatty())  # on stderr
            bars[url] = stack.enter_context(bar)
        bars[url].update(bytes_read - bars[url].n)

    with ExitStack() as stack:
        paths = obtain(data, settings.home, again=args.again, progress=progress)
    if args.json:
        print(json.dumps({"name": data.name, "licence": data.licence, "files": [str(p) for p in paths]}, ensure_ascii=False))
    else:
        print(*paths, sep="\n")
    return 0


def _corpus(args: argparse.Namespace, settings: Settings) -> int:
    from core.commands.index import print_report, shown_progress
    from core.retrieval.library import CorpusLibrary
    from core.retrieval.wikipedia import COST, DATA, add_wikipedia

    print(f"{DATA.name}: licence {DATA.licence}; {DATA.homepage}", file=sys.stderr)
    print(f"{COST}. An interrupted run is resumed by the same command.", file=sys.stderr)
    with shown_progress() as progress:
        report = add_wikipedia(CorpusLibrary(settings), progress, again=args.again)
    print_report(report, as_json=args.json)
    return 0
