"""`import`: a jsonl export, an AmbigNQ file, predictions or questions."""

from __future__ import annotations

import argparse
from pathlib import Path

from storage.commands.base import Add, Result, counted
from storage.exchange.imports.importing import FORMATS as READ
from storage.store import Store


def run(url: str, args: argparse.Namespace) -> Result:
    with Store(url) as store:
        report = store.imports.import_file(args.file, format=args.format, annotator=args.annotator)
    known = f"; already there: {counted(dict(report.known))}" if report.known else ""
    return report.to_json(), f"{args.file}: stored {counted(dict(report.stored))}{known}"


def add_parser(add: Add) -> None:
    read = add("import", run, "import a jsonl export, an AmbigNQ file, predictions or questions; stores all of it or nothing")
    read.add_argument("file", type=Path, metavar="FILE", help="file to read")
    read.add_argument("--format", default="auto", choices=("auto", *READ), help="format of the file (default: auto)")
    read.add_argument(
        "--annotator",
        default="ambignq",
        metavar="NAME",
        help="name for AmbigNQ's annotators; the n-th becomes 'NAME n' (default: ambignq)",
    )
