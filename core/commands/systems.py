"""`python -m core systems`: lists the systems, their needs, and whether they can run here; for one system, its options."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from core.settings import Settings


def add_parser(commands: Any) -> None:
    systems = commands.add_parser("systems", help="list the systems, and what each one needs")
    systems.add_argument("name", nargs="?", help="print the options of this system, which --set and the service take")
    systems.add_argument("--json", action="store_true")
    systems.set_defaults(run=run)


def run(args: argparse.Namespace, settings: Settings) -> int:
    from core.serve.choice import make_engine

    if args.name:
        from core.systems import SYSTEMS, options_of
        from core.systems.base.options import table

        SYSTEMS[args.name]  # raises UnknownNameError
        options = options_of(args.name)
        print(json.dumps([row._asdict() for row in options.rows()]) if args.json else table(options))
        return 0
    rows = make_engine(settings).statuses()
    if args.json:
        print(json.dumps([asdict(r) for r in rows]))
        return 0
    for r in rows:
        print(f"{r.name:22} {'ready' if r.ready else 'not ready':10} {r.speed}: {r.title}")
        print(f"{'':22} {'':10} {r.summary}")
        print(f"{'':22} {'':10} needs {', '.join(r.needs) or 'nothing'}; {r.source}")
        for line in (
            r.origin and f"from {r.origin}",
            r.mechanism_only and f"mechanism only, not ranked: {r.mechanism_only}",
            r.missing,
            r.expect,
        ):
            if line:
                print(f"{'':22} {'':10} {line}")
        if not r.ready:
            print(f"{'':22} {'':10} {r.why_not}")
    return 0
