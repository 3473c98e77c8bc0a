"""`snapshots`: lists them, or checks the files of one."""

from __future__ import annotations

import argparse
from typing import Any

from core.settings import Settings
from storage.commands.base import Add, Result
from storage.store import Store


def run(url: str, args: argparse.Namespace) -> Result:
    with Store(url) as store:
        snapshots = store.exports.snapshots(limit=500)
        if args.check is not None:
            files = store.exports.snapshot_files(args.check, Settings.from_env().home / "snapshots")
            body: dict[str, Any] = {"number": args.check, "files": {k: str(v) for k, v in files.items()}}
            return body, f"snapshot {args.check} is unchanged: {len(files)} files checked"
    rows = [
        f"{s.number}: {s.created:%Y-%m-%d %H:%M} UTC, {s.bytes} bytes, sha256 {s.sha256[:16]}{', ' + s.note if s.note else ''}"
        for s in snapshots
    ]
    return {"snapshots": [s.to_json() for s in snapshots]}, "\n".join(rows) or "there is no snapshot yet"


def add_parser(add: Add) -> None:
    listed = add("snapshots", run, "list snapshots, or check the files of one")
    listed.add_argument("--check", type=int, metavar="N", help="check the files of snapshot N against their digests")
