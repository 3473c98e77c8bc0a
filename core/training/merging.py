"""An answering model takes over what its reader has learned since: task arithmetic on the encoder that both share.

The answering model was started from a reader's weights.  When that reader is trained on, the difference (after - before), times a share, is added to
the answering model's encoder; heads and all else stay.  Source: Ilharco et al. 2023, "Editing models with task arithmetic", section 2.

    python -m core.training.merging --answerer FOLDER --before READER --after READER --share 0.5 --out FOLDER
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
from pathlib import Path

from core.errors import AmbiscopeError, CheckpointError, InputError

WEIGHTS = "model.safetensors"
PREFIX = "encoder."


def merge(answerer: Path, before: Path, after: Path, share: float, out: Path) -> int:
    """Writes `out` and returns how many tensors changed.  Raises InputError for a share outside 0..1, CheckpointError for weights that do
    not fit one another."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file, save_file

    if not (math.isfinite(share) and 0 <= share <= 1):
        raise InputError(f"the share is {share}; it must be between 0 and 1")
    try:
        own, old, new = (load_file(folder / WEIGHTS) for folder in (answerer, before, after))
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"weights cannot be read ({error}); give folders with {WEIGHTS}") from None
    shared = [name for name in own if name.startswith(PREFIX) and name in old and name in new]
    if not shared or any(own[n].shape != old[n].shape or own[n].shape != new[n].shape for n in shared):
        raise CheckpointError(f"{answerer}, {before} and {after} do not share an encoder; give checkpoints of one base")
    for name in shared:
        own[name] = (own[name].float() + share * (new[name].float() - old[name].float())).to(own[name].dtype)
    out.mkdir(parents=True, exist_ok=True)
    save_file(own, out / WEIGHTS)
    about = json.loads((answerer / "config.json").read_text(encoding="utf-8"))
    about.setdefault("about", {})["merged"] = {"share": share, "tensors": len(shared)}
    (out / "config.json").write_text(json.dumps(about, indent=1), encoding="utf-8")
    if (answerer / "README.md").exists() and answerer.resolve() != out.resolve():
        shutil.copyfile(answerer / "README.md", out / "README.md")
    return len(shared)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("answerer", "before", "after", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--share", type=float, default=0.5)
    args = parser.parse_args()
    try:
        print(
            f"{merge(args.answerer, args.before, args.after, args.share, args.out)} tensors of the encoder changed: {args.out}"
        )
    except AmbiscopeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
