"""Promises of the design: folders, import arrows without cycles, lazy names, one reader of the environment."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest

from core import EXPORTS
from core.settings import ROOT
from core.systems import SYSTEMS

MODULES = sorted(p for folder in ("core", "storage", "pages") for p in (ROOT / folder).rglob("*.py"))
BESIDE = sorted(p for folder in ("benchmarks", "tests") for p in (ROOT / folder).rglob("*.py"))
BASICS = ("core.errors", "core.json_io", "core.plugins", "core.registry", "core.short_names", "core.text", "core.types")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(tree(path)))


@cache
def imports(path: Path) -> list[tuple[str, int]]:
    """Every module that a file imports anywhere, functions and TYPE_CHECKING blocks included, with its line."""
    modules: list[tuple[str, int]] = []
    for node in nodes(path):
        if isinstance(node, ast.Import):
            modules += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules += [(name, node.lineno) for name in (node.module, *(f"{node.module}.{a.name}" for a in node.names))]
    return modules


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


NAMES = {name_of(path): path for path in MODULES}


def inside(module: str, *packages: str) -> bool:
    return any(module == package or module.startswith(package + ".") for package in packages)


def wrong_imports(paths: Iterable[Path], is_wrong: Callable[[str], bool]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line} imports {module}"
        for path in paths
        for module, line in imports(path)
        if is_wrong(module)
    ]


# module or package -> (what it must never import, what of that it may)
ARROWS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "core": (("storage", "pages", "streamlit", "sqlalchemy", "alembic", "benchmarks", "tests"), ()),
    "storage": (("pages", "streamlit", "torch", "transformers", "benchmarks", "tests"), ()),
    "pages": (("benchmarks", "tests", "sqlalchemy"), ()),
    "core.types": (("core",), ()),
    "core.errors": (("core",), ("core.types",)),
    "core.text": (("core",), ("core.types",)),
    "core.metrics": (("core", "torch"), ("core.metrics", *BASICS)),
    "core.datasets": (("core",), ("core.datasets", "core.disk", "core.metrics", *BASICS)),
    "core.annotating": (("core",), ("core.annotating", *BASICS)),
    "core.disambiguation": (("core",), ("core.disambiguation", *BASICS)),
    "core.models": (("core.systems", "core.training", "core.evaluation", "core.engine"), ()),
    "core.systems": (("core.training", "core.evaluation", "core.metrics", "core.datasets", "core.engine"), ()),
    "storage.records": (("storage",), ("storage.records",)),
    "storage.schema": (("storage",), ("storage.schema", "storage.records")),
}


@pytest.mark.parametrize(("importing", "never", "but"), [(name, *rule) for name, rule in ARROWS.items()], ids=ARROWS)
def test_import_arrows(importing: str, never: tuple[str, ...], but: tuple[str, ...]) -> None:
    def is_wrong(module: str) -> bool:
        return module not in ("core", "storage", "pages") and inside(module, *never) and not inside(module, *but)

    paths = [path for name, path in NAMES.items() if inside(name, importing)]
    assert paths
    assert wrong_imports(paths, is_wrong) == []


PAGES = {path.parent.name for path in (ROOT / "pages").glob("*/page.py")}


def test_no_page_imports_a_page() -> None:
    """Pages stand on pages.ui and pages.session; what several of them use is there.  Nothing around the pages imports one either."""
    assert len(PAGES) >= 10

    def is_in_another(own: str) -> Callable[[str], bool]:
        others = tuple(f"pages.{page}" for page in PAGES - {own})
        # `from pages.x import y` is met as both pages.x and pages.x.y
        return lambda module: module not in others and inside(module, *others)

    paths = {path: name.split(".")[1] for name, path in NAMES.items() if name.startswith("pages.")}
    paths[ROOT / "streamlit_app.py"] = ""
    assert [wrong for path, own in paths.items() for wrong in wrong_imports([path], is_in_another(own))] == []


def test_pages_ui_stands_alone() -> None:
    """Drawing from records needs no session and no store."""
    paths = [path for name, path in NAMES.items() if inside(name, "pages.ui")]
    assert wrong_imports(paths, lambda m: inside(m, "pages") and not inside(m, "pages.ui") and m != "pages") == []


FOLDERS = {name_of(path) for path in MODULES if path.name == "__init__.py"}
NESTED = {folder for folder in FOLDERS if any(inside(other, folder) for other in FOLDERS - {folder})}


def room(module: str) -> str:
    """The folder of a module; a file beside folders counts for itself."""
    folder = module if module in FOLDERS else module.rpartition(".")[0]
    return module if folder in NESTED else folder


@pytest.mark.parametrize("level", ["files", "folders", "parts"])
def test_there_is_no_import_cycle(level: str) -> None:
    """Between files, between folders, and between the parts of core, storage and pages; lazy imports count."""
    name = {"files": str, "folders": room, "parts": lambda module: ".".join(module.split(".")[:2])}[level]
    graph: dict[str, set[str]] = {}
    for path in MODULES:
        module = name_of(path)
        targets = {home(imported) for imported, _ in imports(path)} & NAMES.keys() - {module, "core", "storage", "pages"}
        graph.setdefault(name(module), set()).update({name(target) for target in targets} - {name(module)})
    assert sum(map(len, graph.values())) > len(graph)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def home(module: str) -> str:
    """The module that an imported name is in: `core.text` for `core.text.word_tokens`."""
    return module if module in NAMES else module.rpartition(".")[0]


def test_a_name_is_imported_from_where_it_is_defined() -> None:
    """No re-exports: an `__init__.py` holds its docstring and, where it is a registry, what it defines itself."""
    taken = {
        name: {a.asname or a.name for node in tree(path).body if isinstance(node, ast.ImportFrom) for a in node.names}
        for name, path in NAMES.items()
    }
    listed = [
        f"{path.relative_to(ROOT)}: __all__ lists {name}, which it imports"
        for path in MODULES
        for node in tree(path).body
        if isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == ["__all__"]
        for name in ast.literal_eval(node.value)
        if name in taken[name_of(path)]
    ]
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno} imports {a.name} from {node.module}, which does not define it"
        for path in (*MODULES, *BESIDE)
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and node.module in NAMES
        for a in node.names
        if a.name in taken[node.module] and f"{node.module}.{a.name}" not in NAMES
    ]
    assert not wrong + listed


def test_our_own_code_does_not_come_through_the_door() -> None:
    """`core.EXPORTS` is for other programs: it resolves names that are defined elsewhere, and nothing else in the product does."""
    assert wrong_imports(MODULES, {f"core.{name}" for name in EXPORTS}.__contains__) == []
    definitions = [(name, n.name) for name, p in NAMES.items() for n in tree(p).body if isinstance(n, ast.FunctionDef)]
    assert [name for name, function in definitions if function == "__getattr__"] == ["core"]


def test_one_system_never_imports_another() -> None:
    """The shared parts of systems are in core.systems.base; a file that the registry names belongs to one system."""
    systems = {entry.target.partition(":")[0] for entry in SYSTEMS.values()}
    assert len(systems) >= 3
    for path in (ROOT / "core" / "systems").glob("*.py"):
        others = systems - {name_of(path)}
        assert wrong_imports([path], lambda module, others=others: inside(module, *others)) == []  # type: ignore[misc]


def test_transformers_is_imported_by_one_thread_at_a_time() -> None:
    """In core every import of it stands in a `with TRANSFORMERS:`; core.models.language.local is imported in one."""
    wrong = []
    for path in MODULES:
        locked: set[int] = set()
        for node in nodes(path):
            if isinstance(node, ast.With) and any(ast.unparse(item.context_expr) == "TRANSFORMERS" for item in node.items):
                locked |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        for module, line in imports(path):
            heavy = inside(module, "transformers", "sentence_transformers", "core.models.language.local")
            if heavy and line not in locked and name_of(path) != "core.models.language.local":
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {module}")
    assert not wrong


def test_dates_and_keys_are_written_in_one_place() -> None:
    """core.text formats dates (names of files and folders aside); pages.ui.keys has the keys of buttons."""
    dates = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and any(d in node.value for d in ("%Y-", "%H:", "%b"))
    ]
    assert {place.rpartition(":")[0] for place in dates} == {"core/text.py"}
    keys = [
        f"{path.relative_to(ROOT)}:{node.value.lineno}"
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.keyword)
        and node.arg == "shortcut"
        and isinstance(node.value, ast.Constant)
        and node.value.value
    ]
    assert keys == []


def test_settings_is_the_only_reader_of_the_environment() -> None:
    readers = {
        name
        for name, path in NAMES.items()
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv", "environb")
    }
    assert readers == {"core.settings"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "what", ["core.systems", "core.registry", "core.trace", "core.cli; core.cli.parser()", "core.settings"]
)
def test_listing_imports_nothing_heavy(what: str) -> None:
    heavy = ("torch", "transformers", "faiss", "sentence_transformers", "streamlit", "sqlalchemy", "ray")
    code = f"import {what.replace('; ', chr(10))}\nimport sys\nprint([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_ray_is_imported_in_one_room_when_it_is_asked_for() -> None:
    importing = [p for p in MODULES if any(inside(module, "ray") for module, _ in imports(p))]
    assert {name_of(path).rpartition(".")[0] for path in importing} == {"core.cluster"}
    at_once = [ast.unparse(n) for p in importing for n in tree(p).body if isinstance(n, ast.Import | ast.ImportFrom)]
    assert [line for line in at_once if inside(line.split()[1], "ray")] == []


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_every_system_resolves_and_is_described(name: str) -> None:
    entry = SYSTEMS[name]
    assert callable(SYSTEMS.resolve(name))
    assert entry.summary
    assert entry.hidden or (entry.source and entry.needs)
    assert "F1" not in f"{entry.summary} {entry.expect} {entry.missing}"  # how good a system is, its shipped run says
