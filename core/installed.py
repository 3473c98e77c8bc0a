"""What is installed beside this Python and what asks for it, from the records that pip leaves.

run.py runs it under the environment's own Python; tests/test_supply_chain.py holds the requirements files to it.  Imports nothing of Ambiscope.

    python -m core.installed holds FILE...                  what pip laid into site-packages for these files, a line each
    python -m core.installed surplus NAME... -- FILE...     what only the named distributions brought, a line each
"""

from __future__ import annotations

import importlib.metadata
import re
import sys
from collections.abc import Iterable
from pathlib import Path

try:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name
except ImportError:  # a half-made environment has nothing but pip, which brings its own
    from pip._vendor.packaging.requirements import Requirement  # type: ignore[assignment]
    from pip._vendor.packaging.utils import canonicalize_name  # type: ignore[assignment]


def read_requirements(path: Path) -> list[Requirement]:
    """The requirements of a file; options, hashes and comments are left aside.  Raises OSError, InvalidRequirement (a ValueError)."""
    lines = (re.split(r"(?:^|\s)#|\s--hash=", line)[0].strip() for line in path.read_text("utf-8").splitlines())
    return [Requirement(line) for line in lines if line and not line.startswith("-")]


def asked_by(name: str, extras: Iterable[str] = ()) -> list[Requirement]:
    """What an installed distribution requires here, with these extras.  Raises PackageNotFoundError."""
    asked = [Requirement(line) for line in importlib.metadata.requires(name) or ()]
    return [r for r in asked if r.marker is None or any(r.marker.evaluate({"extra": e}) for e in ("", *extras))]


def reached(requirements: Iterable[Requirement]) -> tuple[set[str], list[Requirement]]:
    """Names of the installed distributions that these requirements lead to, and the requirements that nothing installed fulfils."""
    found: dict[str, set[str]] = {}
    unmet = []
    todo = [r for r in requirements if r.marker is None or r.marker.evaluate({"extra": ""})]
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        if name in found and requirement.extras <= found[name]:
            continue
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            unmet.append(requirement)
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            unmet.append(requirement)
        found[name] = found.get(name, set()) | requirement.extras
        todo += asked_by(name, found[name])
    return set(found), unmet


def surplus(dropped: Iterable[str], requirements: Iterable[Requirement]) -> set[str]:
    """The installed ones of `dropped`, and what came with them that nothing else needs: no requirement, nobody's own `pip install`, no other
    distribution."""
    brought, _ = reached(Requirement(name) for name in dropped)
    roots = {canonicalize_name(name) for name in dropped}
    kept = list(requirements)
    for distribution in importlib.metadata.distributions():
        name = canonicalize_name(distribution.metadata["Name"])
        by_hand = distribution.read_text("REQUESTED") is not None and name not in roots
        if name not in brought or by_hand:
            kept.append(Requirement(name))
    return brought - reached(kept)[0]


def holds(requirements: Iterable[Requirement]) -> set[str]:
    """The files and folders at the top of site-packages that belong to what these requirements reach.

    Raises ValueError for what is not installed, or half: pip writes the list of a distribution's files last.
    """
    names, unmet = reached(requirements)
    found = {name: importlib.metadata.files(name) for name in names}
    if half := [str(r) for r in unmet] + [name for name, files in found.items() if files is None]:
        raise ValueError(f"not or half installed: {', '.join(half)}")
    return {f.parts[0] for files in found.values() for f in files or () if f.parts[0] not in ("..", "__pycache__")}


def main(arguments: list[str]) -> int:
    what, rest = arguments[0], arguments[1:]
    dropped, files = ([], rest) if what == "holds" else (rest[: rest.index("--")], rest[rest.index("--") + 1 :])
    requirements = [r for file in files for r in read_requirements(Path(file))]
    print("\n".join(sorted(holds(requirements) if what == "holds" else surplus(dropped, requirements))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
