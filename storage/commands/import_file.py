"""`import`: a jsonl export, an AmbigNQ file, predictions or questions."""

from __future__ import annotations

import argparse
from pathlib import Path

from storage.commands.base import Add, Result, format_counts
from storage.exchange.imports.importing import FORMATS
from storage.store import Store


def run(url: str, args: argparse.Namespace) -> Result:
    with Store(url) as store:
        report = store.imports.import_file(args.file, format=args.format, annotator=args.annotator)
    existing = f"; already there: {format_counts(report.known)}" if report.known else ""
    return report.to_json(), f"{args.file}: stored {format_counts(report.stored)}{existing}"


def add_parser(add: Add) -> None:
    parser = add("import", run, "import a jsonl export, an AmbigNQ file, predictions or questions; stores all of it or nothing")
    parser.add_argument("file", type=Path, metavar="FILE", help="file to read")
    parser.add_argument("--format", default="auto", choices=("auto", *FORMATS), help="format of the file (default: auto)")
    parser.add_argument(
        "--annotator",
        default="ambignq",
        metavar="NAME",
        help="name for AmbigNQ's annotators; the n-th becomes 'NAME n' (default: ambignq)",
    )
