"""`export`, `snapshot` and `snapshots`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from core.settings import Settings
from core.text import time_text
from storage.commands.base import Add, CommandResult, add_filters, filters_of, format_counts
from storage.exchange.exports.formats import FORMATS
from storage.exchange.exports.snapshots import SNAPSHOT_FORMATS
from storage.store import Store


def export(url: str, args: argparse.Namespace) -> CommandResult:
    with Store(url) as store:
        manifest = store.exports.export(args.format, args.out, filters=filters_of(store, args))
    words = f"{args.out}: {format_counts(manifest.counts)} ({manifest.bytes} bytes, manifest beside it)"
    return manifest.to_json(), words


def snapshot(url: str, args: argparse.Namespace) -> CommandResult:
    folder = Settings.from_env().home / "snapshots"
    formats = tuple(args.format) or SNAPSHOT_FORMATS
    with Store(url) as store:
        taken = store.exports.take_snapshot(folder, filters=filters_of(store, args), formats=formats, note=args.note)
    counts = taken.counts.get("training") or next(iter(taken.counts.values()))
    path = folder / f"{taken.number:04d}"
    return taken.to_json() | {"folder": str(path)}, f"snapshot {taken.number} in {path}: {format_counts(counts)}"


def snapshots(url: str, args: argparse.Namespace) -> CommandResult:
    with Store(url) as store:
        records = store.exports.snapshots(limit=500)
        if args.check is not None:
            files = store.exports.snapshot_files(args.check, Settings.from_env().home / "snapshots")
            body: dict[str, Any] = {"number": args.check, "files": {k: str(v) for k, v in files.items()}}
            return body, f"snapshot {args.check} is unchanged: {len(files)} files checked"
    rows = [
        f"{s.number}: {time_text(s.created, utc=True)}, {s.bytes} bytes, sha256 {s.sha256[:16]}{', ' + s.note if s.note else ''}"
        for s in records
    ]
    return {"snapshots": [s.to_json() for s in records]}, "\n".join(rows) or "there is no snapshot yet"


def add_parser(add: Add) -> None:
    out = add("export", export, "export training files, tables, or everything (jsonl), with a manifest")
    out.add_argument("--format", required=True, choices=tuple(FORMATS), help="format of the file")
    out.add_argument("--out", required=True, type=Path, metavar="FILE", help="file to write; with datasets, a new folder")
    add_filters(out)
    files = [name for name, format in FORMATS.items() if not format.is_folder]
    others = [name for name in files if name not in SNAPSHOT_FORMATS]
    summary = f"{', '.join(SNAPSHOT_FORMATS)}; {' and '.join(others)} only if --format names them"
    take = add("snapshot", snapshot, f"take a numbered export that never changes: {summary}")
    take.add_argument(
        "--format",
        action="append",
        default=[],
        choices=files,
        help=f"export only this format; may be repeated (default: {', '.join(SNAPSHOT_FORMATS)})",
    )
    take.add_argument("--note", default="", help="purpose of the snapshot")
    add_filters(take)
    listed = add("snapshots", snapshots, "list snapshots, or check the files of one")
    listed.add_argument("--check", type=int, metavar="N", help="check the files of snapshot N against their digests")
