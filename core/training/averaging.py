"""The mean of two trainings of one network: two sets of weights that were tuned from the same beginning, each with its share.

Source: Wortsman et al. 2022, "Model soups", section 2.  The weights that ship are such means of what a run made and what it began from.

    python -m core.training.averaging --before FOLDER --after FOLDER --share 0.6 --out FOLDER
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path

from core.errors import AmbiscopeError, CheckpointError, InputError
from core.models.finding import WEIGHTS


def average(before: Path, after: Path, share: float, out: Path) -> int:
    """Writes `out` with `share` of `after`, the rest of `before`, and returns the number of tensors.  Raises InputError for a share outside
    0..1, CheckpointError for weights that are not of one network."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file, save_file

    if not (math.isfinite(share) and 0 <= share <= 1):
        raise InputError(f"the share is {share}; it must be between 0 and 1")
    try:
        old, new = (load_file(folder / WEIGHTS) for folder in (before, after))
        about = json.loads((after / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, SafetensorError) as error:
        raise CheckpointError(f"weights cannot be read ({error}); give folders with config.json and {WEIGHTS}") from None
    if old.keys() != new.keys() or any(old[name].shape != new[name].shape for name in old):
        raise CheckpointError(f"{before} and {after} are not of one network; give two trainings of one")
    mean = {name: ((1 - share) * old[name].float() + share * new[name].float()).to(new[name].dtype) for name in new}
    about.setdefault("about", {})["averaged"] = {"with": "the weights before", "share": share}
    out.mkdir(parents=True, exist_ok=True)
    save_file(mean, out / WEIGHTS)
    (out / "config.json").write_text(json.dumps(about, indent=1), encoding="utf-8")
    return len(mean)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("before", "after", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--share", type=float, default=0.6, help="of --after")
    args = parser.parse_args()
    try:
        print(f"{average(args.before, args.after, args.share, args.out)} tensors averaged: {args.out}")
    except AmbiscopeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
