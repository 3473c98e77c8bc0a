"""`python -m core datasets`: lists the public data sets that can be downloaded, with licence and state."""

from __future__ import annotations

import argparse
import json
from typing import Any

from core.settings import Settings


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("datasets", help="list public data sets, and the question file formats")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, settings: Settings) -> int:
    from core.datasets import LAYOUTS
    from core.datasets.catalogue import DATASETS, downloaded

    files = {name: [str(p) for p in downloaded(settings.home, name)] for name in DATASETS}
    if args.json:
        rows = [
            {
                **{name: getattr(data, name) for name in ("name", "summary", "layout", "licence", "source", "homepage")},
                "urls": [f.url for f in data.files],
                "files": files[data.name],
            }
            for data in DATASETS.values()
        ]
        print(json.dumps({"datasets": rows, "layouts": {n: e.summary for n, e in LAYOUTS.items()}}, ensure_ascii=False))
        return 0
    for data in DATASETS.values():
        state = "here" if files[data.name] else "not here"
        print(f"{data.name} ({state}): {data.summary}\n  {data.source}; licence: {data.licence}; {data.homepage}")
        for path in files[data.name]:
            print(f"  {path}")
        if data.note:
            print(f"  note: {data.note}")
    print("\nformats that `evaluate --questions` reads")
    for name, entry in LAYOUTS.items():
        print(f"  {name:10} {entry.summary}")
    return 0
