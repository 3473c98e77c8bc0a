"""No page asks which system it draws."""

from __future__ import annotations

import ast

from core.settings import ROOT
from core.systems import SYSTEMS


def test_no_page_asks_for_a_system_by_name() -> None:
    comparisons = [
        f"{path}, line {node.lineno}: {ast.unparse(node)}"
        for path in (ROOT / "pages").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare)
        or (isinstance(node, ast.Call) and ast.unparse(node.func).endswith((".startswith", ".endswith")))
        if {n.value for n in ast.walk(node) if isinstance(n, ast.Constant)} & set(SYSTEMS)
    ]
    assert not comparisons
