"""`snapshot`: a numbered export that never changes."""

from __future__ import annotations

import argparse

from core.settings import Settings
from storage.commands.base import Add, Result, add_filters, filters_of, format_counts
from storage.exchange.exports.formats import FORMATS
from storage.exchange.exports.snapshots import SNAPSHOT_FORMATS
from storage.store import Store


def run(url: str, args: argparse.Namespace) -> Result:
    folder = Settings.from_env().home / "snapshots"
    formats = tuple(args.format) or SNAPSHOT_FORMATS
    with Store(url) as store:
        snapshot = store.exports.take_snapshot(folder, filters=filters_of(store, args), formats=formats, note=args.note)
    counts = snapshot.counts.get("training") or next(iter(snapshot.counts.values()))
    path = folder / f"{snapshot.number:04d}"
    return snapshot.to_json() | {"folder": str(path)}, f"snapshot {snapshot.number} in {path}: {format_counts(counts)}"


def add_parser(add: Add) -> None:
    files = [name for name, format in FORMATS.items() if not format.is_folder]
    others = [name for name in files if name not in SNAPSHOT_FORMATS]
    snap = add(
        "snapshot",
        run,
        f"take a numbered export that never changes: {', '.join(SNAPSHOT_FORMATS)}; {' and '.join(others)} only if --format names them",
    )
    snap.add_argument(
        "--format",
        action="append",
        default=[],
        choices=files,
        help=f"export only this format; may be repeated (default: {', '.join(SNAPSHOT_FORMATS)})",
    )
    snap.add_argument("--note", default="", help="purpose of the snapshot")
    add_filters(snap)
