"""`check`: the whole database, for damage."""

from __future__ import annotations

import argparse

from core.errors import StorageError
from storage.commands.base import Add, Result, format_counts, refuse_missing
from storage.store import Store


def run(url: str, _args: argparse.Namespace) -> Result:
    refuse_missing(url)
    with Store(url) as store:
        health, counts = store.maintenance.health(full=True), store.maintenance.counts()
    if not health.ok:
        raise StorageError(f"{health.where}: {health.integrity}")
    lines = [f"{health.where}: intact, schema {health.revision}, {health.bytes} bytes, {format_counts(counts)}"]
    return {**health.to_json(), "counts": counts}, "\n".join(lines + [f"note: {w}" for w in health.warnings])


def add_parser(add: Add) -> None:
    add("check", run, "check the whole database for damage")
