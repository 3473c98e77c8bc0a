"""The folders of pages: what is shared stands below all of them, none is in a circle, and none asks which system it draws."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from core.settings import ROOT
from core.systems import SYSTEMS

FILES = sorted((ROOT / "pages").rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """Every module, and every name that may be one, imported anywhere in a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))


def folder_of(module: str) -> str:
    """The deepest package of pages that a module lies in; empty for others.

    >>> folder_of("pages.explore.interpretations.grid.PassageGrid"), folder_of("core.types")
    ('pages.explore.interpretations', '')
    """
    parts = module.split(".")
    while parts and not (ROOT.joinpath(*parts) / "__init__.py").is_file():
        parts.pop()
    return ".".join(parts) if parts[:1] == ["pages"] else ""


def arrows() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in FILES:
        own = ".".join(path.relative_to(ROOT).parent.parts)
        found.setdefault(own, set()).update(f for m in imported(path) if (f := folder_of(m)) not in ("", own, "pages"))
    return found


def test_what_is_shared_knows_no_folder() -> None:
    assert arrows()["pages.app"] == set()


def test_no_circles_between_folders() -> None:
    found = arrows()
    assert len(found) > 8
    TopologicalSorter(found).prepare()  # raises CycleError, which names the circle


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_page_asks_for_a_system_by_name(path: Path) -> None:
    asked = [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (
            isinstance(node, ast.Compare)
            or (isinstance(node, ast.Call) and ast.unparse(node.func).endswith((".startswith", ".endswith")))
        )
        and {n.value for n in ast.walk(node) if isinstance(n, ast.Constant)} & set(SYSTEMS)
    ]
    assert not asked
