"""Systems, metrics, readers and exports of other people: what docs/extending.md shows works as it stands there, and what does not work is
reported by name while everything else works."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_line import Run, home, run, write_jsonl
from plugin_files import plugin
from storage_samples import fill
from system_fakes import texts

from core import cli, plugins
from core.engine import Engine, statuses
from core.errors import InputError, PluginError
from core.metrics import METRICS
from core.metrics.base import Example
from core.metrics.score.scoring import values_and_errors
from core.registry import problems
from core.retrieval.readers import READERS
from core.settings import ROOT, Settings, child_environment
from core.systems import SYSTEMS
from core.systems.base.options import Options
from core.systems.base.system import answer
from core.types import Passage, Question
from pages.session.uploads import safe_names
from storage import __main__ as storage_cli
from storage.exchange.exports.formats import FORMATS
from storage.store import Store

__all__ = ["home", "plugin", "run"]

Plugin = Callable[..., Path]
BLOCKS = {
    found[1]: found[2]
    for found in re.finditer(
        r"(?ms)^```python\n# (my_\w+\.py)\n(.*?)^```$", (ROOT / "docs" / "extending.md").read_text("utf-8")
    )
}
PASSAGES = tuple(Passage(str(i), title, "Text.") for i, title in enumerate(["Oslo", "Bergen", "Narvik", "Hamar"]))
RAISES = "raise RuntimeError('no such library')\n"
ENTRY = 'from core.systems import SystemEntry\nSYSTEMS = {{"{}": SystemEntry({}, "a summary", "no paper", ("nothing",))}}\n'


def asked(system: str, **extra: float) -> list[str]:
    engine = Engine(Settings(encoder="hashing", device="cpu"))
    built = engine.system(system, options=Options(extra=extra), own_passages=True)
    return texts(answer(built, Question("Which town?", passages=PASSAGES, pinned=("Bodo",), banned=("Bergen",))))


def failures() -> list[str]:
    return problems(SYSTEMS, METRICS, READERS, FORMATS)


# ------------------------------------------------------------ as documented


@pytest.mark.parametrize(
    ("file", "lines"), [("my_systems.py", 30), ("my_metrics.py", 8), ("my_readers.py", 15), ("my_exports.py", 10)]
)
def test_an_example_is_as_short_as_it_should_be(file: str, lines: int) -> None:
    assert sum(bool(line.strip()) for line in BLOCKS[file].splitlines()) <= lines


def test_the_system_is_listed_and_answers(plugin: Plugin, run: Run, home: Path) -> None:
    plugin(BLOCKS["my_systems.py"], "my_systems.py")
    (status,) = [s for s in statuses(Settings.from_env()) if s.name == "titles"]
    assert (status.ready, status.origin) == (True, "my_systems.py")
    assert asked("titles", threshold=0.3) == ["Bodo", "Oslo", "Narvik"]
    assert asked("titles", threshold=0.6) == ["Bodo", "Oslo"]
    with pytest.raises(InputError, match="the option threshold is 2"):
        asked("titles", threshold=2)
    code, out, err = run("systems", "titles")
    assert (code, err) == (0, "")
    assert "`threshold`" in out
    assert run("index", "--passages", home / "facts.tsv", "--name", "facts")[0] == 0
    ask = ["ask", "Who played Maria?", "--corpus", "facts", "--system", "titles", "--set", "threshold=0.2", "--json"]
    code, out, err = run(*ask)
    assert (code, err) == (0, "")
    assert {a["text"] for a in json.loads(out)["answers"]} >= {"West Side Story (1961 film)", "West Side Story (2021 film)"}


def test_the_metric_is_in_every_report(plugin: Plugin, run: Run, home: Path) -> None:
    plugin(BLOCKS["my_metrics.py"], "my_metrics.py")
    row = {"question": "Who?", "answers": [["Ada"]], "passages": [{"id": "1", "title": "Ada", "text": "Ada Lovelace did it."}]}
    questions = write_jsonl(home / "questions.jsonl", row)
    code, out, err = run("evaluate", "--questions", questions, "--system", "scripted", "--out", home / "run", "--json")
    assert code == 0, err
    assert json.loads(out)["scores"]["short answers"]["all"] == 1.0


def test_files_of_the_reader_are_uploaded_and_read(plugin: Plugin, run: Run, home: Path) -> None:
    plugin(BLOCKS["my_readers.py"], "my_readers.py")
    path = home / "my_talk.srt"
    path.write_text("1\n00:00:01,000 --> 00:00:02,000\nBasalt is a\n\n2\n00:00:02,000 --> 00:00:03,000\ndark rock.\n")
    assert safe_names(["My talk.srt"]) == {"My_talk.srt": "My talk.srt"}
    assert run("index", "--passages", path, "--name", "talks")[0] == 0
    passages = list(Engine().corpus("talks").store)
    assert [(p.title, p.text) for p in passages] == [("my talk", "Basalt is a dark rock.")]


def test_the_export_is_written(plugin: Plugin, run: Run, home: Path) -> None:
    plugin(BLOCKS["my_exports.py"], "my_exports.py")
    with Store(Settings.from_env().url) as store:
        fill(store)
    out = home / "pairs.tsv"
    code, _, err = run("export", "--format", "pairs", "--out", out, main=storage_cli.main)
    assert code == 0, err
    assert "Who played Maria in West Side Story?\tNatalie Wood\n" in out.read_text()
    assert json.loads((home / "pairs.tsv.manifest.json").read_text())["counts"]["rows"] == len(out.read_text().splitlines())


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed distribution with the entry point of docs/extending.md, and one that names nothing."""
    (tmp_path / "my_package").mkdir()
    source = BLOCKS["my_systems.py"].replace('SYSTEMS = {"titles": ', "TITLES = ").rstrip().removesuffix("}") + "\n"
    (tmp_path / "my_package" / "entries.py").write_text(source)
    about = tmp_path / "my_package-2.1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 2.1\n")
    points = "titles = my_package.entries:TITLES\nlost = my_package.entries:LOST\n"
    (about / "entry_points.txt").write_text(f"[ambiscope.systems]\n{points}")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    plugins._entry_points.cache_clear()


def test_a_package_registers_by_entry_points(plugin: Plugin, package: Path) -> None:
    assert asked("titles", threshold=0.3) == ["Bodo", "Oslo", "Narvik"]
    assert SYSTEMS.origin("titles") == "my-package 2.1"
    (failure,) = failures()
    assert failure.startswith("system 'lost' of my-package 2.1: AttributeError")


# ------------------------------------------------------------ what does not work


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        (RAISES, "plugin file broken.py: RuntimeError: no such library (broken.py, line 1)"),
        ("import sys; sys.exit(3)\n", "plugin file broken.py: SystemExit: 3 (broken.py, line 1)"),
        ("def f(:\n", "plugin file broken.py: SyntaxError"),
        ("x = 1\n", "plugin file broken.py: the file has none of SYSTEMS, METRICS, READERS, EXPORTS"),
        ("SYSTEMS = ['x']\n", "plugin file broken.py: SYSTEMS is a list"),
        ("SYSTEMS = {'x': 1}\n", "system 'x' of broken.py: it is registered as a int; expected a SystemEntry"),
        (ENTRY.format("fid", "print"), "system 'fid' of broken.py: the name is used by Ambiscope; choose another"),
        (ENTRY.format("sound", "print"), "system 'sound' of broken.py: the name is used by sound.py; choose another"),
        (ENTRY.format("x", "'nowhere:build'"), "system 'x' of broken.py: ModuleNotFoundError: No module named 'nowhere'"),
        (ENTRY.format("x", "3"), "system 'x' of broken.py: TypeError: 3 cannot be called"),
        (ENTRY.format(" x", "print"), "system ' x' of broken.py: the name must be one line"),
        (
            "from core.retrieval.readers import ReaderEntry\nREADERS = {'srt': ReaderEntry(print, 'x')}\n",
            "reader 'srt' of broken.py: 'srt' is no suffix",
        ),
        (
            "from storage.exchange.exports.formats import Format\nEXPORTS = {'../x': Format(print, 'x', suffix='.x')}\n",
            "export format '../x' of broken.py: the name must have lower-case letters",
        ),
    ],
)
def test_a_bad_plugin_is_named_and_the_others_work(plugin: Plugin, text: str, reported: str) -> None:
    ours = {registry.kind: set(registry) for registry in (SYSTEMS, METRICS, READERS, FORMATS)}
    plugin(ENTRY.format("sound", "print"), "sound.py")
    registered = plugin(text, "broken.py")
    for registry in (SYSTEMS, METRICS, READERS, FORMATS):
        registry._is_complete = False
    (failure,) = failures()
    assert failure.startswith(reported), registered
    assert {r.kind: set(r) for r in (METRICS, READERS, FORMATS)} == {k: v for k, v in ours.items() if k != "system"}
    assert set(SYSTEMS) == ours["system"] | {"sound"}


def test_a_command_warns_and_goes_on(plugin: Plugin, run: Run, home: Path) -> None:
    plugin(RAISES, "broken.py")
    plugin(BLOCKS["my_systems.py"], "my_systems.py")
    for main, words in ((cli.main, ["systems", "--json"]), (storage_cli.main, ["snapshots", "--json"])):
        code, out, err = run(*words, main=main)
        assert code == 0
        assert err == "warning: plugin file broken.py: RuntimeError: no such library (broken.py, line 1)\n"
        json.loads(out)
    assert "from my_systems.py" in run("systems")[1]


@pytest.mark.parametrize("name", ["gone.py", "json.py", "my systems.py"])
def test_a_file_that_cannot_be_a_module(plugin: Plugin, name: str) -> None:
    path = plugin("SYSTEMS = {}\n", name)
    if name == "gone.py":
        path.unlink()
    (failure,) = failures()
    assert failure.startswith(f"plugin file {name}: ")
    assert "AMBISCOPE_PLUGINS" in failure or "rename the file" in failure


def test_a_child_process_finds_the_files(plugin: Plugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin("SYSTEMS = {}\n", "mine.py")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AMBISCOPE_PLUGINS", "mine.py")
    assert child_environment()["AMBISCOPE_PLUGINS"] == str(tmp_path / "mine.py")


def test_a_system_that_fails_is_named(plugin: Plugin, run: Run, home: Path) -> None:
    text = BLOCKS["my_systems.py"]
    plugin(text.replace("p.passage.title", "p.passage.name"), "my_systems.py")
    with pytest.raises(PluginError, match=r"system 'titles' of my_systems.py: AttributeError: .*\(my_systems.py, line \d+\)"):
        asked("titles")


def test_a_system_that_cannot_be_built_is_named(plugin: Plugin) -> None:
    plugin("def build(*_): raise KeyError('weights')\n" + ENTRY.format("x", "build"))
    with pytest.raises(PluginError, match=r"system 'x' of my_plugin.py: KeyError: 'weights' \(my_plugin.py, line 1\)"):
        asked("x")


@pytest.mark.parametrize(
    ("body", "problem"),
    [("1 / 0", "ZeroDivisionError"), ("'much'", "'much'; it must be a finite number"), ("float('nan')", "nan; it must be")],
)
def test_a_metric_that_fails_is_undefined_and_named(plugin: Plugin, run: Run, home: Path, body: str, problem: str) -> None:
    head = "from core.metrics import MetricEntry\n"
    plugin(
        f"{head}def f(example): return {body}\nMETRICS = {{'mine': MetricEntry(f, 'x'), 'one': MetricEntry(lambda e: 1, 'x')}}\n"
    )
    values, errors = values_and_errors(Example("Q?", (), ()), ["mine", "one", "answers"])
    assert values == {"mine": None, "one": 1, "answers": 0.0}
    assert list(errors) == ["mine"]
    assert "metric 'mine' of my_plugin.py" in errors["mine"]
    assert problem in errors["mine"]
    passages = [{"id": "1", "title": "Ada", "text": "Ada Lovelace did it."}]
    questions = write_jsonl(home / "q.jsonl", {"question": "Who?", "answers": [["Ada"]], "passages": passages})
    code, out, err = run("evaluate", "--questions", questions, "--system", "scripted", "--out", home / "run", "--json")
    report = json.loads(out)
    assert code == 0
    assert "mine is undefined for 1 question; the first one: metric 'mine' of my_plugin.py" in err
    assert ("mine" in report["scores"], report["failed"], report["scores"]["one"]["all"]) == (False, 0, 1.0)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("raise ValueError('odd')", "ValueError: odd"),
        ("yield 'text'", "is no DocumentRow"),
        ("yield DocumentRow(1, '', 'A', 7)", "is no DocumentRow"),
    ],
)
def test_a_reader_that_fails_loses_its_file_only(plugin: Plugin, run: Run, home: Path, body: str, problem: str) -> None:
    head = "from core.retrieval.readers import ReaderEntry\nfrom core.retrieval.readers.lines import DocumentRow\n"
    plugin(f"{head}def read(source):\n    {body}\n    yield\nREADERS = {{'.odd': ReaderEntry(read, 'x')}}\n")
    (home / "a.odd").write_text("x")
    code, _, err = run("index", "--passages", home / "a.odd", "--name", "one")
    assert (code, problem in err, "reader '.odd' of my_plugin.py" in err) == (InputError.exit_code, True, True)
    code, out, err = run("index", "--passages", home / "a.odd", home / "facts.tsv", "--name", "two", "--json")
    assert (code, json.loads(out)["passages"]) == (0, 3), err
    assert "reader '.odd' of my_plugin.py" in out


def test_an_export_that_fails_leaves_the_earlier_file(plugin: Plugin, run: Run, home: Path) -> None:
    text = "from storage.exchange.exports.formats import Format\n"
    plugin(text + "def w(*a): a[-1].write('half'); 1 / 0\nEXPORTS = {'odd': Format(w, 'x', suffix='.x')}\n")
    (home / "out.x").write_text("earlier")
    code, _, err = run("export", "--format", "odd", "--out", home / "out.x", main=storage_cli.main)
    assert (code, "export format 'odd' of my_plugin.py: ZeroDivisionError" in err) == (PluginError.exit_code, True)
    assert (home / "out.x").read_text() == "earlier"
