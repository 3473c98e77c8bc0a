"""`import-evaluation`: a finished run into the database."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from core.settings import Settings
from storage.commands.base import Add, Result
from storage.results.run_folders import import_run
from storage.store import Store


def run(url: str, args: argparse.Namespace) -> Result:
    folder = args.folder
    if not folder.is_absolute() and not folder.is_dir():
        folder = Settings.from_env().runs_dir / folder
    with Store(url) as store:
        imported = import_run(store.evaluations, folder, args.label)
    words = "stored" if imported.new else "already stored"
    return asdict(imported), f"{folder}: {words}, {imported.system}, {imported.n} questions"


def add_parser(add: Add) -> None:
    parser = add("import-evaluation", run, "store a finished run of `python -m core evaluate --out`")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="a run folder, or its name under AMBISCOPE_HOME/runs")
    parser.add_argument("--label", default="", help="name of the run on the Evaluate page")
