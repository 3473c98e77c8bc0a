"""The distributions installed in this Python environment, and which of them require which, from pip's records.

run.py runs it under the environment's own Python; tests/test_supply_chain.py checks the requirements files against it.  Imports nothing of Ambiscope.

    python -m core.installation.distributions holds FILE...                  what these files installed in site-packages, one per line
    python -m core.installation.distributions surplus NAME... -- FILE...     what only the named distributions required, one per line
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
except ImportError:  # an incomplete environment has only pip, which vendors its own copy
    from pip._vendor.packaging.requirements import Requirement  # type: ignore[assignment]
    from pip._vendor.packaging.utils import canonicalize_name  # type: ignore[assignment]


def read_requirements(path: Path) -> list[Requirement]:
    """The requirements in a file, without options, hashes and comments.  Raises OSError, InvalidRequirement (a ValueError)."""
    lines = (re.split(r"(?:^|\s)#|\s--hash=", line)[0].strip() for line in path.read_text("utf-8").splitlines())
    return [Requirement(line) for line in lines if line and not line.startswith("-")]


def requirements_of(name: str, extras: Iterable[str] = ()) -> list[Requirement]:
    """The requirements of an installed distribution on this machine, with these extras.  Raises PackageNotFoundError."""
    required = [Requirement(line) for line in importlib.metadata.requires(name) or ()]
    return [r for r in required if r.marker is None or any(r.marker.evaluate({"extra": e}) for e in ("", *extras))]


def resolve(requirements: Iterable[Requirement]) -> tuple[set[str], list[Requirement]]:
    """(names of the installed distributions that these requirements need, directly or indirectly; unmet requirements)."""
    extras: dict[str, set[str]] = {}
    unmet = []
    queue = [r for r in requirements if r.marker is None or r.marker.evaluate({"extra": ""})]
    while queue:
        requirement = queue.pop()
        name = canonicalize_name(requirement.name)
        if name in extras and requirement.extras <= extras[name]:
            continue
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            unmet.append(requirement)
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            unmet.append(requirement)
        extras[name] = extras.get(name, set()) | requirement.extras
        queue += requirements_of(name, extras[name])
    return set(extras), unmet


def surplus(dropped: Iterable[str], requirements: Iterable[Requirement]) -> set[str]:
    """The installed ones of `dropped`, and their dependencies that no requirement, explicit `pip install` or other distribution
    needs."""
    dependencies, _ = resolve(Requirement(name) for name in dropped)
    roots = {canonicalize_name(name) for name in dropped}
    remaining = list(requirements)
    for distribution in importlib.metadata.distributions():
        name = canonicalize_name(distribution.metadata["Name"])
        is_requested = distribution.read_text("REQUESTED") is not None and name not in roots
        if name not in dependencies or is_requested:
            remaining.append(Requirement(name))
    return dependencies - resolve(remaining)[0]


def holds(requirements: Iterable[Requirement]) -> set[str]:
    """The top-level files and folders of site-packages that belong to these requirements and their dependencies.

    Raises ValueError for what is missing or incompletely installed: pip writes a distribution's list of files last.
    """
    names, unmet = resolve(requirements)
    files_by_name = {name: importlib.metadata.files(name) for name in names}
    if incomplete := [str(r) for r in unmet] + [name for name, files in files_by_name.items() if files is None]:
        raise ValueError(f"missing or incompletely installed: {', '.join(incomplete)}")
    return {f.parts[0] for files in files_by_name.values() for f in files or () if f.parts[0] not in ("..", "__pycache__")}


def main(arguments: list[str]) -> int:
    command, words = arguments[0], arguments[1:]
    dropped, files = ([], words) if command == "holds" else (words[: words.index("--")], words[words.index("--") + 1 :])
    requirements = [r for file in files for r in read_requirements(Path(file))]
    print("\n".join(sorted(holds(requirements) if command == "holds" else surplus(dropped, requirements))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
