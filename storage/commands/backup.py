"""`backup`: a verified copy of the database."""

from __future__ import annotations

import argparse
from pathlib import Path

from storage.commands.base import Add, Result, refuse_missing
from storage.store import Store


def run(url: str, args: argparse.Namespace) -> Result:
    refuse_missing(url)
    with Store(url) as store:
        manifest = store.maintenance.backup(args.file)
    return manifest.to_json(), f"{manifest.file}: {manifest.bytes} bytes, verified"


def add_parser(add: Add) -> None:
    save = add("backup", run, "make a verified copy of the database, even while it is in use")
    save.add_argument(
        "file",
        type=Path,
        nargs="?",
        metavar="FILE",
        help="the backup file (default: a file in the folder backups beside the database)",
    )
