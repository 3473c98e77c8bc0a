"""Transfers a reader's further training to an answering model: task arithmetic on their shared encoder.

The answering model was started from a reader's weights.  When that reader is trained further, the difference (after -
before), times a share, is added to the answering model's encoder; its head stays as it is.
Source: Ilharco et al. 2023, "Editing models with task arithmetic", section 2.

    python -m core.training.weights.merging --answerer FOLDER --before READER --after READER --share 0.5 --out FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from core import disk
from core.errors import CheckpointError
from core.training.weights import arithmetic

PREFIX = "encoder."


def merge(answerer: Path, before: Path, after: Path, share: float, out: Path) -> int:
    """Writes the merged checkpoint to `out` and returns the number of changed tensors.

    Raises InputError for a share outside 0 to 1, CheckpointError for weights that do not fit together.
    """
    arithmetic.check_share(share)
    own, old, new = arithmetic.read(answerer, before, after)
    shared = [name for name in own if name.startswith(PREFIX) and name in old and name in new]
    if not shared or any(own[n].shape != old[n].shape or own[n].shape != new[n].shape for n in shared):
        raise CheckpointError(f"{answerer}, {before} and {after} do not share an encoder; give checkpoints of one base")
    for name in shared:
        own[name] = (own[name].float() + share * (new[name].float() - old[name].float())).to(own[name].dtype)
    arithmetic.write(out, own, answerer, "merged", {"share": share, "tensors": len(shared)})
    if (answerer / "README.md").exists() and answerer.resolve() != out.resolve():
        disk.write_bytes(out / "README.md", (answerer / "README.md").read_bytes())
    return len(shared)


if __name__ == "__main__":
    sys.exit(
        arithmetic.command(
            __doc__,
            ("answerer", "before", "after"),
            0.5,
            lambda args: (
                f"{merge(args.answerer, args.before, args.after, args.share, args.out)} tensors of the encoder changed"
            ),
        )
    )
