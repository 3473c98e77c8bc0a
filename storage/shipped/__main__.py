"""Unpacks the example runs into a database, if they are not there yet: `python -m storage.shipped FILE`.

The app does this in a separate process: within it, several seconds of reading and storing would stop everything else meanwhile.
"""

from __future__ import annotations

import sys
from pathlib import Path

from core.errors import AmbiscopeError
from storage.shipped import beside, runs


def main(file: Path) -> int:
    try:
        beside.ensure_database(file, lambda store: runs.load(store, traced=False))
    except AmbiscopeError as error:
        print(error, file=sys.stderr)
        return 1
    for old in set(file.parent.glob("runs-*.db")) - {file}:  # of another version
        beside.remove_database(old)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
