"""`backup`, `restore` and `check`."""

from __future__ import annotations

import argparse
from pathlib import Path

from core.errors import InputError, StorageError
from storage.commands.base import Add, CommandResult, format_counts
from storage.exchange.backup import restore as restore_file
from storage.schema.engine import parse_url, sqlite_path
from storage.store import Store


def backup(url: str, args: argparse.Namespace) -> CommandResult:
    _refuse_missing(url)
    with Store(url) as store:
        manifest = store.maintenance.backup(args.file)
    return manifest.to_json(), f"{manifest.file}: {manifest.bytes} bytes, verified"


def restore(url: str, args: argparse.Namespace) -> CommandResult:
    previous = restore_file(url, args.file)
    words = f"restored {args.file}" + (f"; the previous database is kept in {previous}" if previous else "")
    return {"restored": str(args.file), "kept": str(previous) if previous else None}, words


def check(url: str, _args: argparse.Namespace) -> CommandResult:
    _refuse_missing(url)
    with Store(url) as store:
        health, counts = store.maintenance.health(full=True), store.maintenance.counts()
    if not health.ok:
        raise StorageError(f"{health.where}: {health.integrity}")
    lines = [f"{health.where}: intact, schema {health.revision}, {health.bytes} bytes, {format_counts(counts)}"]
    return {**health.to_json(), "counts": counts}, "\n".join(lines + [f"note: {w}" for w in health.warnings])


def _refuse_missing(url: str) -> None:
    """Raises InputError if a store would make a new, empty database."""
    path = sqlite_path(parse_url(url))
    if path is not None and not path.exists():
        raise InputError(f"{path}: there is no database; look at AMBISCOPE_HOME, or put a backup back with `restore`")


def add_parser(add: Add) -> None:
    save = add("backup", backup, "make a verified copy of the database, even while it is in use")
    save.add_argument(
        "file",
        type=Path,
        nargs="?",
        metavar="FILE",
        help="the backup file (default: a file in the folder backups beside the database)",
    )
    back = add("restore", restore, "restore a backup; the present database is kept beside it")
    back.add_argument("file", type=Path, metavar="FILE", help="the backup file")
    add("check", check, "check the whole database for damage")
