"""Random walks over all pages: how many of them meet an exception?

    python -m benchmarks.robustness.walks [--walks 1000] [--first 0] [--steps 12]

Walk n is drawn from the seed n, so that one that failed can be repeated alone (`--first n --walks 1`).  Each begins in a home of its own with
two projects, predictions and runs (tests/attacks/test_walks.py, which takes 25 walks in the gate and shrinks what fails).  A walk fails where
a page raises, or says that an unexpected error occurred.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile

import pytest


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--walks", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--steps", type=int, default=12)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {
            "ATTACK_SEEDS": f"{args.first}:{args.first + args.walks}",
            "ATTACK_STEPS": str(args.steps),
        }
        test = "tests/attacks/test_walks.py::test_walks_from_seeds"
        return int(pytest.main([test, "-s", f"--basetemp={folder}/walks"]))


if __name__ == "__main__":
    sys.exit(main())
