"""The weighted mean of two sets of weights of one network.

Source: Wortsman et al. 2022, "Model soups", section 2.  The bundled weights are such means of a run's result and its
starting point.

    python -m core.training.weights.averaging --before FOLDER --after FOLDER --share 0.6 --out FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from core.errors import CheckpointError
from core.training.weights import arithmetic


def average(before: Path, after: Path, share: float, out: Path) -> int:
    """Writes the mean to `out`: `share` of `after`, the rest of `before`.  Returns the number of tensors.

    Raises InputError for a share outside 0 to 1, CheckpointError for weights of different networks.
    """
    arithmetic.check_share(share)
    old, new = arithmetic.read(before, after)
    if old.keys() != new.keys() or any(old[name].shape != new[name].shape for name in old):
        raise CheckpointError(f"{before} and {after} are not of one network; give two trainings of one")
    mean = {name: ((1 - share) * old[name].float() + share * new[name].float()).to(new[name].dtype) for name in new}
    arithmetic.write(out, mean, after, "averaged", {"with": "the weights before", "share": share})
    return len(mean)


if __name__ == "__main__":
    sys.exit(
        arithmetic.command(
            __doc__,
            ("before", "after"),
            0.6,
            lambda args: f"{average(args.before, args.after, args.share, args.out)} tensors averaged",
        )
    )
