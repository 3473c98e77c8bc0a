"""`export`: training files, tables, or everything, with a manifest."""

from __future__ import annotations

import argparse
from pathlib import Path

from storage.commands.base import Add, Result, add_filters, filters_of, format_counts
from storage.exchange.exports.formats import FORMATS
from storage.store import Store


def run(url: str, args: argparse.Namespace) -> Result:
    with Store(url) as store:
        manifest = store.exports.export(args.format, args.out, filters=filters_of(store, args))
    words = f"{args.out}: {format_counts(manifest.counts)} ({manifest.bytes} bytes, manifest beside it)"
    return manifest.to_json(), words


def add_parser(add: Add) -> None:
    out = add("export", run, "export training files, tables, or everything (jsonl), with a manifest")
    out.add_argument("--format", required=True, choices=tuple(FORMATS), help="format of the file")
    out.add_argument("--out", required=True, type=Path, metavar="FILE", help="file to write; with datasets, a new folder")
    add_filters(out)
