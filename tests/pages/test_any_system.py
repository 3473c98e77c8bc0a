"""No page asks which system it draws."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from core.settings import ROOT
from core.systems import SYSTEMS

FILES = sorted((ROOT / "pages").rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_page_asks_for_a_system_by_name(path: Path) -> None:
    comparisons = [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (
            isinstance(node, ast.Compare)
            or (isinstance(node, ast.Call) and ast.unparse(node.func).endswith((".startswith", ".endswith")))
        )
        and {n.value for n in ast.walk(node) if isinstance(n, ast.Constant)} & set(SYSTEMS)
    ]
    assert not comparisons
