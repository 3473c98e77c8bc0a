"""Every pair of thresholds of `verdict` without a language model, on practice questions held out from training; never on a test set.

    python -m benchmarks.tuning.verdict [--reader FOLDER] [--answerer FOLDER] [--annotated FOLDER ...] [--limit 300] [--write]

Weights and thresholds are fitted as by `core train signals` (core.training.signals); `--write` puts them into checkpoints/reader/signals.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

from core.models.ranking.signal_weights import FILE, write_signals
from core.settings import ROOT, Settings, quiet_libraries
from core.training.data.held_out_passages import WRITTEN
from core.training.signals import fit_signals, see

TARGET = ROOT / "checkpoints" / "reader"


def main() -> int:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reader", default="default")
    parser.add_argument("--answerer", default="default")
    parser.add_argument("--annotated", type=Path, nargs="+", default=list(WRITTEN), metavar="FOLDER")
    parser.add_argument("--limit", type=int, default=0, help="at most this many questions, drawn evenly from the folders")
    parser.add_argument("--write", action="store_true", help=f"write {(TARGET / FILE).relative_to(ROOT)}")
    args = parser.parse_args()
    settings = replace(Settings.from_env(), reader=args.reader, answerer=args.answerer)
    seen = see(settings, args.annotated, args.limit, lambda text: print(text, file=sys.stderr))
    found, table = fit_signals(seen, f"{len(seen)} practice questions held out from training")
    for row in table:
        if row["abstain_below"] == row["verified_above"]:
            print(json.dumps(row))
    print(f"best G-F1 at any precision: {json.dumps(max(table, key=lambda r: r['g_f1']))}")
    chosen = {"abstain_below": found.abstain_below, "verified_above": found.verified_above, **found.figures}
    print(f"chosen on {len(seen)} held-out practice questions, cross-validated: {json.dumps(chosen)}")
    if args.write:
        print(f"written: {write_signals(TARGET, found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
