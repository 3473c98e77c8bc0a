"""`python -m benchmarks.train_all`: every stage at a tiny size, to weights that answer; what is done once, what a broken stage does."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import train_all
from core.cli import main as core_main
from core.cli import parser
from core.engine import Engine
from core.models.encoders import base
from core.models.loading import finding, packaged
from core.models.loading.finding import find_fid
from core.models.ranking.ambiguity import load_ambiguity
from core.models.span import model
from core.settings import ROOT, Settings, child_environment
from core.systems.base.options import Options
from core.systems.base.system import answer
from core.types import Question

NAMES = ("Anna", "Bert", "Cleo", "Dora", "Emil", "Fritz", "Greta", "Hugo", "Ida", "Jan", "Karl", "Lena")


def pair(question: str, answer: str, **more: Any) -> dict[str, Any]:
    return {"question": question, "answer": [answer], **more}


def annotation(pairs: list[dict[str, Any]]) -> dict[str, Any]:
    """In AmbigNQ's layout: one answer, or several with a disambiguated question each."""
    if len(pairs) > 1:
        return {"type": "multipleQAs", "qaPairs": pairs}
    return {"type": "singleAnswer", **{name: value for name, value in pairs[0].items() if name != "question"}}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Files in the layouts of DATA, and an annotated folder, `races`: four passages that name three people each, and eight that name nobody."""
    folder = tmp_path / "data"
    for name in ("reading", "multi", "ambignq", "passages", "races"):
        (folder / name).mkdir(parents=True)
    passages = [
        f"{name} won cup {i} in the rain before many guests of the old town by the sea." for i, name in enumerate(NAMES)
    ]
    races: list[str] = []
    asked: list[dict[str, Any]] = []
    for i in range(4):
        first, second, third = NAMES[3 * i : 3 * i + 3]
        races.append(f"{first} won race {i} in the rain, {second} came second and {third} came third before many guests.")
        found = [
            pair(f"Who {what} race {i}?", name, passages=[str(i)])
            for what, name in (("won", first), ("came second in", second), ("came third in", third))
        ]
        for pairs in (found, found[:1], found[1:2]):
            question = pairs[0]["question"] if len(pairs) == 1 else f"Who was in race {i}?"
            asked += [
                {"question": question, "split": split, "annotations": [annotation(pairs)]} for split in ("train", "held out")
            ]
    races += [f"It rained on day {i}." for i in range(8)]
    reading = [
        {
            "source": "squad",
            "question": f"Who won cup {i} that day?",
            "title": f"Cup {i}",
            "passage": passages[i],
            "answers": [name],
        }
        for i, name in enumerate(NAMES)
    ]
    multi = [
        {
            "source": "asqa",
            "question": f"Who won cup {i} or {j}?",
            "passages": [{"title": f"Cup {k}", "text": passages[k]} for k in (i, j)],
            "answers": [[NAMES[i]], [NAMES[j]]],
        }
        for i, j in zip(range(12), (*range(1, 12), 0))
    ]
    ambignq = [
        {
            "question": f"Who won cup {i}?",
            "annotations": [annotation([pair(f"Who won cup {i} in 190{k}?", NAMES[i - k]) for k in years])],
        }
        for i in range(12)
        for years in ((1, 2), (1,))
    ]
    for name, rows in (("reading", reading), ("multi", multi)):
        (folder / name / "train.jsonl.gz").write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    for file, kept in ((folder / "ambignq" / "train_light.json", ambignq), (folder / "races" / "questions.json", asked)):
        file.write_text(json.dumps([{"id": str(i), **row} for i, row in enumerate(kept)]), encoding="utf-8")
    table = [
        "\n".join(["id\ttext\ttitle", *(f"{i}\t{text}\t" for i, text in enumerate(texts))]) + "\n"
        for texts in (passages, races)
    ]
    (folder / "passages" / "wiki.tsv.gz").write_bytes(gzip.compress(table[0].encode()))
    (folder / "races" / "passages.tsv").write_text(table[1], encoding="utf-8")
    return folder


def words(data: Path, out: Path, *more: str) -> list[str]:
    return [
        "--data",
        str(data),
        "--annotated",
        str(data / "races"),
        "--device",
        "cpu",
        "--precision",
        "fp32",
        "--out",
        str(out),
        *more,
    ]


def planned(data: Path, out: Path, *more: str) -> list[train_all.Stage]:
    return train_all.plan(train_all.parse(words(data, out, *more)))


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch, tiny_mpnet_folder: Path, one_thread: None) -> Iterator[list[str]]:
    """Each stage runs in this process, the strong network over a tiny base.  The names of the logs of what ran."""
    ran: list[str] = []
    real = packaged.packaged_folder
    for owner in (packaged, finding, base):  # which have it by name
        monkeypatch.setattr(owner, "packaged_folder", lambda n: tiny_mpnet_folder if n == packaged.MPNET else real(n))
    model.load_tokenizer.cache_clear()  # another test may have loaded that of the real base

    def run(words: list[str], device: str, log: Path, **settings: str) -> None:
        ran.append(log.stem)
        with (
            monkeypatch.context() as there,
            log.open("a", encoding="utf-8") as said,
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
        ):
            for name, value in child_environment(device=device, **settings).items():
                there.setenv(name, value)
            code = core_main(list(words))
        if code:
            raise subprocess.CalledProcessError(code, words)

    monkeypatch.setattr(train_all, "run", run)
    yield ran
    model.load_tokenizer.cache_clear()


def ask(out: Path, system: str, question: str) -> Any:
    """What the weights of OUT answer, over the passages of the rehearsal."""
    settings = Settings(home=out / "home", device="cpu", threads=1, **train_all.settings_of(out))
    engine = Engine(settings)
    return answer(engine.system(system, "races", Options(clarify=False)), Question(question))


def test_the_whole_plan_makes_weights_that_answer(data: Path, tmp_path: Path, in_process: list[str]) -> None:
    out = tmp_path / "out"
    assert train_all.main(words(data, out, "--tiny")) == 0, logs(out)
    stages = planned(data, out, "--tiny")
    assert in_process == [stage.name for stage in stages]

    bundled = {f.relative_to(ROOT / "checkpoints") for f in (ROOT / "checkpoints").rglob("*") if f.is_file()}
    bundled.discard(Path("mpnet", "calibration.json"))  # a network that learned for two steps is not calibrated
    made = {f.relative_to(out) for f in out.rglob("*") if f.is_file()}
    assert bundled <= made  # every bundled file, its model card among them, has its counterpart

    for system in ("ambigprompt", "jpr", "verdict"):
        found = ask(out, system, "Who won race 3?")
        assert found.passages, system
        assert str(out / "mpnet") in f"{found.system}", system
    assert find_fid(str(out / "fid"))
    assert load_ambiguity(str(out / "ambiguity"), "cpu")[1]

    card = (out / "minilm" / "README.md").read_text(encoding="utf-8")
    assert "`python -m core train answerer --stage joint --base minilm" in card
    assert f"sha256 `{hashlib.sha256((out / 'data' / 'reading' / 'train.jsonl.gz').read_bytes()).hexdigest()}`" in card
    assert "exact_match" in card
    assert str(tmp_path) not in card
    assert "## minilm" in card

    before = len(in_process)
    assert train_all.main(words(data, out, "--tiny")) == 0
    assert len(in_process) == before  # what is done is not done again


def logs(out: Path) -> str:
    return "\n".join(f"{f.name}: {f.read_text(encoding='utf-8')[-2000:]}" for f in sorted((out / "runs").glob("*.log")))


def test_every_stage_is_a_command_and_comes_after_what_it_reads(data: Path, tmp_path: Path) -> None:
    stages = planned(data, tmp_path / "out")
    before: list[str] = []
    for stage in stages:
        assert set(stage.reads) <= set(before), stage.name
        before.append(stage.name)
        args = parser().parse_args(list(stage.words))
        assert (args.seed, args.out) == (0, stage.out)
        assert not [p for p in stage.data if "dev" in p.name or "starter" in str(p)], stage.name
        named = {s.name for s in stages if any(str(s.weights) == w.rpartition(":")[2] for w in stage.words)}
        assert named <= set(stage.reads), stage.name
    assert len(set(before)) == len(before) == 9


def fake(monkeypatch: pytest.MonkeyPatch, broken: str = "") -> list[str]:
    """Stages that only write a config.json; one of them can be broken."""
    ran: list[str] = []

    def run(words: list[str], device: str, log: Path, **settings: str) -> None:
        ran.append(log.stem)
        log.write_text(
            f"{log.stem} begins\nerror: the disk is full\n"
            if log.stem == broken
            else '{"step": 2, "figure": 0.5, "f1": {"all": 0.25}}\n'
        )
        if log.stem == broken:
            raise subprocess.CalledProcessError(2, words)
        folder = Path(words[words.index("--out") + 1]) / "best" if "--out" in words else Path(words[-1])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text("{}")

    monkeypatch.setattr(train_all, "run", run)
    return ran


def test_a_broken_stage_stops_the_plan_with_its_last_lines(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert fake(monkeypatch, "mpnet") is not None
    assert train_all.main(words(data, out)) == 1
    said = capsys.readouterr().err
    assert "error: the disk is full\nthe stage 'mpnet' ended with exit status 2" in said
    assert not (out / "mpnet" / "config.json").exists()
    ran = fake(monkeypatch)
    assert train_all.main(words(data, out)) == 0
    assert ran[0] == "mpnet"  # it goes on there
    assert "f1 all 0.25" in (out / "minilm" / "README.md").read_text(encoding="utf-8")
