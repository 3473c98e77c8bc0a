"""`restore`: puts a backup back."""

from __future__ import annotations

import argparse
from pathlib import Path

from storage.commands.base import Add, Result
from storage.exchange.backup import restore


def run(url: str, args: argparse.Namespace) -> Result:
    previous = restore(url, args.file)
    words = f"restored {args.file}" + (f"; the previous database is kept in {previous}" if previous else "")
    return {"restored": str(args.file), "kept": str(previous) if previous else None}, words


def add_parser(add: Add) -> None:
    back = add("restore", run, "restore a backup; the present database is kept beside it")
    back.add_argument("file", type=Path, metavar="FILE", help="the backup file")
