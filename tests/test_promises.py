"""What the design promises of the code as a whole: import arrows, lazy names, one reader of the environment."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.settings import ROOT
from core.systems import SYSTEMS

MODULES = sorted(p for folder in ("core", "storage", "pages") for p in (ROOT / folder).rglob("*.py"))


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Every module that a file imports anywhere, functions and TYPE_CHECKING blocks included, with its line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module, node.lineno
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def inside(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


# who -> what it must never import
ARROWS = {
    "core": ("storage", "pages", "streamlit", "sqlalchemy", "alembic", "benchmarks", "tests"),
    "storage": ("pages", "streamlit", "torch", "transformers", "benchmarks", "tests"),
    "pages": ("benchmarks", "tests", "sqlalchemy"),
    "core.metrics": ("core.datasets", "core.systems", "core.models", "core.retrieval", "core.evaluation", "torch"),
    "core.retrieval": (
        "core.systems",
        "core.models.span",
        "core.models.seq2seq",
        "core.models.ranking",
        "core.models.language",
        "core.training",
        "core.evaluation",
    ),
    "core.models": ("core.systems", "core.training", "core.evaluation", "core.engine"),
    "core.evaluation": ("core.models.span", "core.models.seq2seq", "core.models.ranking", "core.training"),
    "core.types": ("core",),
    "core.errors": ("core",),
    "core.text": ("core",),
}


@pytest.mark.parametrize(("who", "never"), ARROWS.items(), ids=ARROWS)
def test_import_arrows(who: str, never: tuple[str, ...]) -> None:
    checked = [p for p in MODULES if inside(name_of(p), who)]
    assert checked
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {module}"
        for path in checked
        for module, line in imports(path)
        for package in never
        if inside(module, package) and module not in ("core.types", "core")
    ]
    assert not wrong


def test_one_system_never_imports_another() -> None:
    """base.py and iterative.py are what systems share; a file that the registry names belongs to one system."""
    files = {entry.target.partition(":")[0] for entry in SYSTEMS.values()}
    assert len(files) >= 3
    wrong = [
        f"{path.name}:{line} imports {module}"
        for path in (ROOT / "core" / "systems").glob("*.py")
        for module, line in imports(path)
        if any(inside(module, other) for other in files - {name_of(path)})
    ]
    assert not wrong


def test_transformers_is_imported_by_one_thread_at_a_time() -> None:
    """In core every import of it stands in a `with TRANSFORMERS:`; core.models.language.local is imported in one."""
    wrong = []
    for path in MODULES:
        locked: set[int] = set()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.With) and any(ast.unparse(item.context_expr) == "TRANSFORMERS" for item in node.items):
                locked |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        for module, line in imports(path):
            heavy = inside(module, "transformers") or inside(module, "sentence_transformers")
            heavy |= inside(module, "core.models.language.local")
            if heavy and line not in locked and name_of(path) != "core.models.language.local":
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {module}")
    assert not wrong


def test_settings_is_the_only_reader_of_the_environment() -> None:
    """`core.cli.quiet_libraries` sets variables of libraries before they are imported; it reads none."""
    wrong = []
    for path in MODULES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        allowed = set()
        if name_of(path) == "core.cli":
            quiet = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "quiet_libraries")
            allowed = {id(n) for n in ast.walk(quiet)}
        for node in ast.walk(tree):
            reads = isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv", "environb")
            if reads and id(node) not in allowed and name_of(path) != "core.settings":
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not wrong


@pytest.mark.parametrize(
    "what", ["core.systems", "core.registry", "core.trace", "core.cli; core.cli.parser()", "core.settings"]
)
def test_listing_imports_nothing_heavy(what: str) -> None:
    heavy = ("torch", "transformers", "faiss", "sentence_transformers", "streamlit", "sqlalchemy")
    code = f"import {what.replace('; ', chr(10))}\nimport sys\nprint([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_every_system_resolves_and_is_described(name: str) -> None:
    entry = SYSTEMS[name]
    assert callable(SYSTEMS.resolve(name))
    assert entry.summary
    assert entry.hidden or (entry.source and entry.needs)


def test_modules_stay_small() -> None:
    long = {str(p.relative_to(ROOT)): n for p in MODULES if (n := len(p.read_text(encoding="utf-8").splitlines())) > 400}
    assert not long
