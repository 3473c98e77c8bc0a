"""What the design promises of the code as a whole: rooms, import arrows without circles, lazy names, one reader of the environment."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from core import DOOR
from core.settings import ROOT
from core.systems import SYSTEMS

MODULES = sorted(p for folder in ("core", "storage", "pages") for p in (ROOT / folder).rglob("*.py"))
BESIDE = sorted(p for folder in ("benchmarks", "tests") for p in (ROOT / folder).rglob("*.py"))
BASICS = ("core.errors", "core.json_io", "core.registry", "core.short_names", "core.text", "core.types")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Every module that a file imports anywhere, functions and TYPE_CHECKING blocks included, with its line."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module, node.lineno
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


NAMES = {name_of(path): path for path in MODULES}


def inside(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def stands_in(module: str, packages: tuple[str, ...]) -> bool:
    return any(inside(module, package) for package in packages)


# who -> (what it must never import, what of that it may)
ARROWS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "core": (("storage", "pages", "streamlit", "sqlalchemy", "alembic", "benchmarks", "tests"), ()),
    "storage": (("pages", "streamlit", "torch", "transformers", "benchmarks", "tests"), ()),
    "pages": (("benchmarks", "tests", "sqlalchemy"), ()),
    "core.types": (("core",), ()),
    "core.errors": (("core",), ("core.types",)),
    "core.text": (("core",), ("core.types",)),
    "core.short_names": (("core",), ("core.text", "core.types")),
    "core.metrics": (("core", "torch"), ("core.metrics", *BASICS)),
    "core.datasets": (("core",), ("core.datasets", "core.disk", "core.metrics", *BASICS)),
    "core.annotating": (("core",), ("core.annotating", *BASICS)),
    "core.clarification": (("core",), ("core.clarification", "core.decoding", *BASICS)),
    "core.retrieval": (
        ("core.models", "core.systems", "core.training", "core.evaluation", "core.engine"),
        ("core.models.encoders", "core.models.running"),
    ),
    "core.models": (("core.systems", "core.training", "core.evaluation", "core.engine"), ()),
    "core.models.encoders": (("core.models",), ("core.models.encoders", "core.models.running", "core.models.weights")),
    "core.models.running": (("core.models",), ("core.models.running",)),
    "core.models.weights": (("core.models",), ("core.models.weights", "core.models.finding")),
    "core.models.span": (("core.models.seq2seq", "core.models.ranking", "core.models.language"), ()),
    "core.models.seq2seq": (("core.models.ranking", "core.models.language"), ()),
    "core.models.ranking": (("core.models.seq2seq", "core.models.language"), ()),
    "core.systems": (("core.training", "core.evaluation", "core.metrics", "core.datasets", "core.engine"), ()),
    "core.evaluation.run": (("core.models", "core.training"), ()),
    "storage.records": (("storage",), ("storage.records",)),
    "storage.schema": (("storage",), ("storage.schema", "storage.records")),
    # the sign-in calls the store that it stands before
    "storage.people": (("storage.work", "storage.tasks", "storage.projects", "storage.exchange", "storage.analysis"), ()),
    "storage.results": (("storage.work", "storage.tasks", "storage.projects", "storage.exchange", "storage.analysis"), ()),
    "storage.tasks": (("storage.work", "storage.projects", "storage.exchange", "storage.analysis", "storage.store"), ()),
    "storage.projects": (("storage.work", "storage.analysis", "storage.store"), ()),
    "storage.work": (("storage.exchange", "storage.analysis", "storage.store"), ()),
    "storage.exchange": (("storage.work", "storage.analysis", "storage.store"), ()),
    "storage.store": (("storage.analysis", "storage.__main__"), ()),
    "pages.app": (("pages",), ("pages.app",)),
}


@pytest.mark.parametrize(("who", "never", "but"), [(who, *rule) for who, rule in ARROWS.items()], ids=ARROWS)
def test_import_arrows(who: str, never: tuple[str, ...], but: tuple[str, ...]) -> None:
    checked = [p for p in MODULES if inside(name_of(p), who)]
    assert checked
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {module}"
        for path in checked
        for module, line in imports(path)
        if module not in ("core", "storage", "pages") and stands_in(module, never) and not stands_in(module, but)
    ]
    assert not wrong


def edges() -> dict[str, set[str]]:
    """Module -> the modules of the product that it imports; lazily, and under TYPE_CHECKING, counts."""
    found = {name: {home(module) for module, _ in imports(path)} & NAMES.keys() - {name} for name, path in NAMES.items()}
    assert sum(map(len, found.values())) > len(found)
    return found


def in_order(graph: dict[str, set[str]]) -> list[str]:
    """What is imported comes before what imports it.  Fails on a circle, and names it."""
    try:
        return list(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_there_is_no_import_circle() -> None:
    """A circle is one idea in two files, or a file with two."""
    in_order(edges())


def test_the_folders_of_storage_import_in_one_direction() -> None:
    """A file of `storage/` itself is a folder of its own."""
    graph: dict[str, set[str]] = {}
    for module, wanted in edges().items():
        if inside(module, "storage"):
            own = ".".join(module.split(".")[:2])
            found = {".".join(name.split(".")[:2]) for name in wanted if inside(name, "storage") and name != "storage"}
            graph[own] = graph.get(own, set()) | found - {own}
    assert sum(map(len, graph.values())) > len(graph)
    in_order(graph)


STORAGE_LAYERS = 8


def test_storage_has_few_layers() -> None:
    """The longest chain of imports in storage: who reads its last file has to know no more files one behind another."""
    graph = {name: {n for n in wanted if inside(n, "storage")} for name, wanted in edges().items() if inside(name, "storage")}
    layer: dict[str, int] = {}
    for name in in_order(graph):
        layer[name] = 1 + max((layer[n] for n in graph[name]), default=0)
    assert max(layer.values()) <= STORAGE_LAYERS, max(layer, key=lambda name: layer[name])


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
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom) and node.module in NAMES
        for a in node.names
        if a.name in taken[node.module] and f"{node.module}.{a.name}" not in NAMES
    ]
    assert not wrong + listed


def test_our_own_code_does_not_come_through_the_door() -> None:
    """`core.DOOR` is for other programs: it resolves names that are defined elsewhere, and nothing else in the product does."""
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {module}"
        for path in MODULES
        for module, line in imports(path)
        if module.partition(".")[0] == "core" and module.removeprefix("core.") in DOOR
    ]
    doors = [
        str(p.relative_to(ROOT))
        for p in MODULES
        if any(isinstance(n, ast.FunctionDef) and n.name == "__getattr__" for n in tree(p).body)
    ]
    assert (wrong, doors) == ([], ["core/__init__.py"])


@pytest.mark.parametrize("folder", sorted({p.parent for p in MODULES}), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_package_says_what_lives_there(folder: Path) -> None:
    assert "migrations" in folder.parts or ast.get_docstring(tree(folder / "__init__.py"))


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
        for node in ast.walk(tree(path)):
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
        allowed = set()
        if name_of(path) == "core.cli":
            quiet = next(n for n in tree(path).body if isinstance(n, ast.FunctionDef) and n.name == "quiet_libraries")
            allowed = {id(n) for n in ast.walk(quiet)}
        for node in ast.walk(tree(path)):
            reads = isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv", "environb")
            if reads and id(node) not in allowed and name_of(path) != "core.settings":
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not wrong


@pytest.mark.parametrize(
    "what", ["core.systems", "core.registry", "core.trace", "core.cli; core.cli.parser()", "core.settings"]
)
def test_listing_imports_nothing_heavy(what: str) -> None:
    heavy = ("torch", "transformers", "faiss", "sentence_transformers", "streamlit", "sqlalchemy", "ray")
    code = f"import {what.replace('; ', chr(10))}\nimport sys\nprint([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_ray_is_imported_in_one_room_when_it_is_asked_for() -> None:
    found = {(name_of(path), module) for path in MODULES for module, _ in imports(path) if inside(module, "ray")}
    assert {"core.cluster"} == {name.rpartition(".")[0] for name, _ in found}
    at_once = [
        n for p in MODULES for n in tree(p).body if isinstance(n, ast.Import | ast.ImportFrom) and "ray" in ast.unparse(n)
    ]
    assert [ast.unparse(n) for n in at_once if inside(ast.unparse(n).split()[1], "ray")] == []


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_every_system_resolves_and_is_described(name: str) -> None:
    entry = SYSTEMS[name]
    assert callable(SYSTEMS.resolve(name))
    assert entry.summary
    assert entry.hidden or (entry.source and entry.needs)


# folders of more than 12 files, and why they have no rooms
CROWDED = {
    "core": "what every part of core builds on, one idea a file; a room for them would be called `shared`",
    "tests/fakes": "one fake or set of samples a file, each used by several folders of tests",
    "tests/systems": "mirrors core/systems, which has a file a system",
}


# folders that grow by a file for each entry of a registry: a further system or metric is one file there and one line
REGISTERED = {"core/systems", "core/metrics"}


def test_a_folder_is_one_room() -> None:
    count = Counter(
        str(p.parent.relative_to(ROOT))
        for p in (*MODULES, *BESIDE)
        if p.name not in ("__init__.py", "__main__.py", "conftest.py") and "migrations" not in p.parts
    )
    crowded = {folder: n for folder, n in count.items() if n > 12 and folder not in REGISTERED}
    assert crowded.keys() == CROWDED.keys(), crowded


# files of more than 600 lines that are one idea all the same, and why
LONG: dict[str, str] = {}


def test_long_files_say_why() -> None:
    long = {str(p.relative_to(ROOT)): n for p in MODULES if (n := len(p.read_text(encoding="utf-8").splitlines())) > 600}
    assert long.keys() == LONG.keys(), long
