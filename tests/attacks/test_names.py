"""Names that want to be paths: of corpora, projects, runs and snapshots, in fields, addresses, options nobody offered and commands.
Nothing outside the home is read, written or deleted, and the answer is one line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import people
import pytest
from annotate_helpers import QUESTION, make_project
from page_helpers import Open, texts
from walking import PAGES

from core.errors import AmbiscopeError, InputError, NotFoundError
from core.retrieval.library import CorpusLibrary
from core.settings import Settings
from storage import __main__ as storage_cli
from storage.store import Store

pytestmark = pytest.mark.usefixtures("light")
SECRET = "the bait's words"
PATHS = 4  # of the baits, that lead there; pages get only these, as each takes a run of the app
_touched: list[str] = []
_listening = False


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _listening and event.split(".")[0] in ("open", "os", "shutil"):
        _touched.extend(str(a) for a in arguments if isinstance(a, (str, bytes, Path)) and "bait" in str(a))


sys.addaudithook(_hook)  # one for the process: it cannot be taken away again


@pytest.fixture
def bait(tmp_path: Path, settings: Settings) -> Iterator[list[str]]:
    """Names that lead from folders of the home to a folder beside it.  It is left as it was, and nobody looks into it."""
    global _listening
    folder = tmp_path / "bait"
    folder.mkdir()
    for name in ("manifest.json", "passages.tsv", "report.json", "rows.jsonl"):
        (folder / name).write_text(SECRET)
    settings.home.mkdir(exist_ok=True)
    before = {p: p.read_bytes() for p in folder.rglob("*")}
    _touched.clear()
    _listening = True
    above = ["../bait", "../../bait", "../../../bait", str(folder)]
    yield [*above, f"file://{folder}", "..\\..\\bait", "%2e%2e/bait", "bait\x00", "....//bait"]
    _listening = False
    assert {p: p.read_bytes() for p in folder.rglob("*")} == before
    # what only looks at a name that stays below the home ("....//bait", "%2e%2e/bait") leads nowhere
    assert [t for t in _touched if Path(t.replace("\x00", "")).resolve().is_relative_to(folder)] == []


def test_a_corpus_has_no_path_for_a_name(bait: list[str], settings: Settings, corpus: str, tmp_path: Path) -> None:
    library, text = CorpusLibrary(settings), tmp_path / "x.txt"
    text.write_text("Some words.")
    for name in [*bait, "", ".", "..", "/", "a/b", "A", "ü", ".lock-small", "con" * 30]:
        for act in (library.open, library.delete, library.digest, lambda n: library.create(n, [text])):
            with pytest.raises((InputError, NotFoundError)):
                act(name)
    assert library.names() == ["small", "starter"]


@pytest.mark.parametrize("page", PAGES)
def test_addresses(bait: list[str], open_app: Open, store: Store, corpus: str, page: str) -> None:
    make_project(store, people.anyone(store), questions=(QUESTION,))
    for value in [*bait[:PATHS], "bait\x00", "x" * 100_000, "' OR 1=1 --", "<b>"]:
        app = open_app(page, **dict.fromkeys(("prediction", "other", "project", "item", "stage", "corpus", "run", "me"), value))
        assert not app.exception, value[:80]
        assert SECRET not in texts(app)
        for error in app.error:
            assert len(error.value) < 1000


def test_a_project_may_be_called_anything_and_its_exports_stay_where_they_belong(
    bait: list[str], store: Store, settings: Settings, tmp_path: Path
) -> None:
    by = people.anyone(store)
    names = [name for name in bait if "\x00" not in name]
    for name in names:
        project = make_project(store, by, name=name, questions=(QUESTION,))
        assert store.projects.get_project(project.id).name == name
    before = set(tmp_path.iterdir())
    store.exports.take_snapshot(settings.home / "snapshots", note=bait[0])
    out = tmp_path / "out"
    out.mkdir()
    for name in names:
        assert storage_cli.main(["export", "--format", "csv", "--out", str(out / "x.csv"), "--project", name]) == 0, name
    assert set(tmp_path.iterdir()) - before == {out}
    assert sorted(p.name for p in out.iterdir()) == ["x.csv", "x.csv.manifest.json"]


def test_snapshots_are_found_by_number_alone(bait: list[str], store: Store, settings: Settings) -> None:
    store.exports.take_snapshot(settings.home / "snapshots")
    for way in [*bait, -1, 0, 2]:
        with pytest.raises((AmbiscopeError, ValueError, TypeError)):
            store.exports.snapshot_files(way, settings.home / "snapshots")  # type: ignore[arg-type]
