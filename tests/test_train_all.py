"""`python -m benchmarks.train_all`: every stage at a tiny size, to weights that answer; what is done once, what a broken stage does."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from command_line import jsonl

from benchmarks import train_all
from benchmarks.training import packs
from benchmarks.training.plans import RATES
from core.cli import main as core_main
from core.cli import parser
from core.commands.train import TARGETS
from core.engine import Engine
from core.models.encoders import base
from core.models.loading import finding, packaged
from core.models.loading.finding import find_fid
from core.models.ranking.ambiguity import load_ambiguity
from core.models.span import model
from core.settings import ROOT, Settings, child_environment
from core.systems.base.options import Options
from core.systems.base.system import answer
from core.training.runs import arguments_of
from core.types import Question

NAMES = ("Anna", "Bert", "Cleo", "Dora", "Emil", "Fritz", "Greta", "Hugo", "Ida", "Jan", "Karl", "Lena")


def pair(question: str, answer: str, **more: Any) -> dict[str, Any]:
    return {"question": question, "answer": [answer], **more}


def annotation(pairs: list[dict[str, Any]]) -> dict[str, Any]:
    """In AmbigNQ's layout: one answer, or several with a disambiguated question each."""
    if len(pairs) > 1:
        return {"type": "multipleQAs", "qaPairs": pairs}
    return {"type": "singleAnswer", **{name: value for name, value in pairs[0].items() if name != "question"}}


def races() -> tuple[list[str], list[dict[str, Any]]]:
    """Passages and questions: four passages that name three people each, and eight that name nobody."""
    texts: list[str] = []
    questions: list[dict[str, Any]] = []
    for i in range(4):
        first, second, third = NAMES[3 * i : 3 * i + 3]
        texts.append(f"{first} won race {i} in the rain, {second} came second and {third} came third before many guests.")
        places = (("won", first), ("came second in", second), ("came third in", third))
        all_pairs = [pair(f"Who {verb} race {i}?", name, passages=[str(i)]) for verb, name in places]
        for pairs in (all_pairs, all_pairs[:1], all_pairs[1:2]):
            question = pairs[0]["question"] if len(pairs) == 1 else f"Who was in race {i}?"
            annotated = {"question": question, "annotations": [annotation(pairs)]}
            questions += [annotated | {"split": split} for split in ("train", "held out")]
    return texts + [f"It rained on day {i}." for i in range(8)], questions


def passages_table(texts: list[str]) -> str:
    return "\n".join(["id\ttext\ttitle", *(f"{i}\t{text}\t" for i, text in enumerate(texts))]) + "\n"


def with_ids(rows: list[dict[str, Any]]) -> str:
    return json.dumps([{"id": str(i), **row} for i, row in enumerate(rows)])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Files in the layouts of DATA, and an annotated folder, `races`."""
    cups = [f"{name} won cup {i} in the rain before many guests of the old town by the sea." for i, name in enumerate(NAMES)]
    reading = [
        {
            "source": "squad",
            "question": f"Who won cup {i} that day?",
            "title": f"Cup {i}",
            "passage": cups[i],
            "answers": [name],
        }
        for i, name in enumerate(NAMES)
    ]
    multi = [
        {
            "source": "asqa",
            "question": f"Who won cup {i} or {j}?",
            "passages": [{"title": f"Cup {k}", "text": cups[k]} for k in (i, j)],
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
    texts, questions = races()
    manuals = [{**row, "conditions": ["first", "second"]} for row in multi]
    asked = jsonl([{"question": "Who is evaluated?"}])
    files = {
        "manuals/train.jsonl.gz": jsonl(manuals),
        **{
            name: with_ids([{"question": "Who is evaluated?"}]) if name.endswith(".json") else asked
            for name in train_all.EXCLUDED
        },
        "reading/train.jsonl.gz": jsonl(reading),
        "multi/train.jsonl.gz": jsonl(multi),
        "passages/wiki.tsv.gz": passages_table(cups),
        "ambignq/train_light.json": with_ids(ambignq),
        "races/passages.tsv": passages_table(texts),
        "races/questions.json": with_ids(questions),
    }
    for name, text in files.items():
        file = tmp_path / "data" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(text.encode()) if file.suffix == ".gz" else text.encode())
    return tmp_path / "data"


def words(data: Path, out: Path, *more: str) -> list[str]:
    folders = ["--data", str(data), "--annotated", str(data / "races"), "--out", str(out)]
    folders += ["--manuals", str(data / "manuals" / "train.jsonl.gz")]
    return [*folders, "--device", "cpu", "--precision", "fp32", *more]


def planned(data: Path, out: Path, *more: str) -> list[train_all.Stage]:
    return train_all.plan(train_all.parse(words(data, out, *more)))


@pytest.fixture
def in_process(
    monkeypatch: pytest.MonkeyPatch, tiny_mpnet_folder: Path, tiny_decoder_folder: Path, one_thread: None
) -> Iterator[list[str]]:
    """Each stage runs in this process, the strong network and the writer over tiny bases.  The names of the logs of what ran."""
    ran: list[str] = []
    real, tiny = packaged.packaged_folder, {packaged.MPNET: tiny_mpnet_folder, packaged.SMOLLM: tiny_decoder_folder}
    for owner in (packaged, finding, base):  # which have it by name
        monkeypatch.setattr(owner, "packaged_folder", lambda n: tiny.get(n) or real(n))
    model.load_tokenizer.cache_clear()  # another test may have loaded that of the real base

    def run(words: list[str], device: str, log: Path, **settings: str) -> None:
        ran.append(log.stem)
        with monkeypatch.context() as patch, log.open("a", encoding="utf-8") as file:
            for name, value in child_environment(device=device, **settings).items():
                patch.setenv(name, value)
            with contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
                code = core_main(list(words))
        if code:
            raise subprocess.CalledProcessError(code, words)

    monkeypatch.setattr(train_all, "run", run)
    yield ran
    model.load_tokenizer.cache_clear()


def test_the_whole_plan_makes_weights_that_answer(data: Path, tmp_path: Path, in_process: list[str]) -> None:
    out, package = tmp_path / "out", tmp_path / "package"
    assert train_all.main(words(data, out, "--pack", str(package))) == 0
    data = package  # which is unpacked there
    assert train_all.main(words(data, out, "--tiny", "--minutes", "60")) == 0
    stages = planned(data, out, "--tiny")
    assert in_process == [stage.name for stage in stages]

    bundled = {
        f.relative_to(ROOT / "checkpoints")
        for f in (ROOT / "checkpoints").glob("*/*")
        if f.is_file() and f.parent.name != "in_training"
    }
    bundled.discard(Path("mpnet", "calibration.json"))  # a network that learned for two steps is not calibrated
    assert bundled <= {f.relative_to(out) for f in out.rglob("*") if f.is_file()}  # its model card among them

    engine = Engine(Settings(home=out / "home", device="cpu", threads=1, **train_all.settings_of(out)))
    for system in ("ambigprompt", "jpr", "verdict"):
        prediction = answer(engine.system(system, "races", Options(clarify=False)), Question("Who won race 3?"))
        assert prediction.passages, system
        assert str(out / "mpnet") in f"{prediction.system}", system
    assert find_fid(str(out / "fid"))
    assert load_ambiguity(str(out / "ambiguity"), "cpu")[1]

    card = (out / "minilm" / "README.md").read_text(encoding="utf-8")
    digest = hashlib.sha256((out / "data" / "reading" / "train.jsonl.gz").read_bytes()).hexdigest()
    contents = ["## minilm", "`python -m core train answerer --stage joint --base minilm", f"sha256 `{digest}`", "exact_match"]
    assert [text for text in contents if text not in card] == []
    assert str(tmp_path) not in card
    excluded = hashlib.sha256((out / "data" / "open" / "webquestions.jsonl").read_bytes()).hexdigest()
    assert excluded in card.partition("`minilm`: the questions of ")[2]
    assert "`rewriter`: no question was excluded" in (out / "rewriter" / "README.md").read_text(encoding="utf-8")

    assert train_all.main(words(data, out, "--tiny")) == 0
    assert len(in_process) == len(stages)  # what is done is not done again


def test_every_stage_is_a_command_and_comes_after_what_it_reads(data: Path, tmp_path: Path) -> None:
    stages = planned(data, tmp_path / "out")
    before: list[str] = []
    for stage in stages:
        assert set(stage.reads) <= set(before), stage.name
        before.append(stage.name)
        args = parser().parse_args(list(stage.words))
        assert args.out == stage.out
        assert not [p for p in stage.data if "dev" in p.name or "starter" in str(p)], stage.name
        named = {s.name for s in stages if any(str(s.weights) == w.rpartition(":")[2] for w in stage.words)}
        assert named <= set(stage.reads), stage.name
    assert len(set(before)) == len(before) == 10


# what does not change the weights, or is counted otherwise: the bundled ones ended after minutes, which gave the plan's steps
NOT_COMPARED = {"what", "out", "steps", "minutes", "evaluate_every", "save_minutes", "workers", "precision", "log_with"}
NOT_TRAINED_ON = {"ambignq_dev"}  # what a command only measures
OTHERWISE = {"writer": {"init", "seed", "steps"}}  # the bundled one is of two runs, which the plan does in one


@pytest.mark.parametrize("name", sorted(p.parent.name for p in (ROOT / "checkpoints").glob("*/config.json")))
def test_the_plan_has_the_arguments_of_the_bundled_weights(data: Path, tmp_path: Path, name: str) -> None:
    options = ["--data", str(data), "--out", str(tmp_path), "--manuals", str(data / "manuals" / "train.jsonl.gz")]
    stage = next(s for s in train_all.plan(train_all.parse(options)) if s.name == name)
    about = json.loads((ROOT / "checkpoints" / name / "config.json").read_text(encoding="utf-8"))["about"]
    arguments = about["arguments"]
    args = parser().parse_args(list(stage.words))
    target = TARGETS[stage.words[1]]
    values = {f.name: getattr(args, f.name) for f in fields(target.config) if f.metadata}
    config = target.config(**{n: tuple(v) if isinstance(v, list) else v for n, v in values.items()})
    otherwise = OTHERWISE.get(name, set())
    ignored = NOT_COMPARED | NOT_TRAINED_ON | otherwise
    planned_arguments = {n: v for n, v in arguments_of(target.name, config).items() if n not in ignored}
    known = {n: v for n, v in arguments.items() if n in planned_arguments}
    if known.get("init"):
        known["init"], planned_arguments["init"] = (
            known["init"].rpartition("/")[2],
            "small:" + planned_arguments["init"].rpartition("/")[2],
        )
    assert {n: planned_arguments[n] for n in known} == known
    if "steps" in set(arguments) - otherwise:  # of a run that ended after minutes, as many as it took
        assert args.steps == (about["figures"]["step"] if arguments.get("minutes") else arguments["steps"])
    card = (ROOT / "checkpoints" / name / "README.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"(?m)^```sh\n.*-m core (train [^`]*)```$", card.replace("\\\n", ""))
    on_card = parser().parse_args([word for word in shlex.split(command) if word != "..."])
    shown = {n: v for n in values if isinstance(v := getattr(on_card, n), int | float | str) and n not in ignored | {"init"}}
    assert shown == {n: arguments.get(n, v) for n, v in shown.items()}


def test_the_plan_has_the_calibration_of_the_bundled_weights(data: Path, tmp_path: Path) -> None:
    stage = next(s for s in planned(data, tmp_path) if s.name == "calibration")
    card = " ".join((ROOT / "checkpoints" / "mpnet" / "README.md").read_text(encoding="utf-8").split())
    (command,) = re.findall(r"`python -m core (train calibration [^`]*)`", card)
    on_card, args = (parser().parse_args(list(words)) for words in (shlex.split(command), stage.words))
    assert (args.systems, args.limit, args.seed) == (on_card.systems, on_card.limit, on_card.seed)
    fitted = json.loads((ROOT / "checkpoints" / "mpnet" / "calibration.json").read_text(encoding="utf-8"))
    assert set(fitted) == set(args.systems)
    assert {f"{row['fitted_on'].split()[0]}" for row in fitted.values()} == {str(args.limit)}


def test_a_package_has_what_the_chosen_stages_read(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_mpnet_folder: Path
) -> None:
    monkeypatch.setattr(packs, "PART_BYTES", 4000)
    monkeypatch.setattr(packs, "packaged_folder", lambda name: tiny_mpnet_folder)
    monkeypatch.syspath_prepend(str(tiny_mpnet_folder.parent))
    out, package = tmp_path / "out", tmp_path / "package"
    named = ("--manuals", str(data / "manuals" / "train.jsonl.gz"), "--out", str(out), "--annotated", str(data / "races"))
    assert train_all.main(["--data", str(data), *named, "--only", "mpnet", "--bases", "--pack", str(package)]) == 0
    parts = sorted(package.glob("part-*"))
    assert len(parts) > 1
    assert max(part.stat().st_size for part in parts) <= 4000

    carried = parts[-1].read_bytes()
    for content in (b"damaged", None):
        parts[-1].unlink() if content is None else parts[-1].write_bytes(content)
        with pytest.raises(SystemExit, match=parts[-1].name):
            train_all.parse(["--data", str(package)])
        assert {f.name for f in package.iterdir()} == {packs.PARTS, *(p.name for p in parts if p.exists())}
    parts[-1].write_bytes(carried)
    args = train_all.parse(["--data", str(package)])
    read = {train_all.READING, train_all.MULTI, train_all.AMBIGNQ, train_all.WIKI, train_all.MANUALS, *train_all.EXCLUDED}
    assert {name: (package / name).read_bytes() for name in read} == {name: (data / name).read_bytes() for name in read}
    assert args.manuals == package / train_all.MANUALS
    assert (package / packs.BASES / tiny_mpnet_folder.name / "config.json").exists()

    assert train_all.main(["--data", str(data), *named, "--only", "ambiguity", "--pack", str(tmp_path / "small")]) == 0
    packs.unpack(tmp_path / "small")
    assert [f.name for f in (tmp_path / "small").iterdir() if f.is_dir()] == ["ambignq"]


def test_the_trainings_share_the_minutes_that_the_rest_leaves(data: Path, tmp_path: Path) -> None:
    stages = planned(data, tmp_path)
    timed = train_all.within(stages, 25, "cuda")
    shares = {s.name: float(s.words[-1]) for s in timed if "--minutes" in s.words}
    assert set(shares) == {s.name for s in stages if s.published}
    fits = sum(s.operations for s in stages if not s.published) / RATES["cuda"] / 60
    assert sum(shares.values()) + fits + train_all.LOADING_MINUTES * len(stages) == pytest.approx(25, rel=0.01)
    cost = {s.name: s.operations for s in stages}
    assert shares["mpnet"] / shares["writer"] == pytest.approx(cost["mpnet"] / cost["writer"], rel=0.02)
    assert shares["retriever"] > 0.1  # small steps do not keep a GPU busy
    for stage in timed:
        parser().parse_args(list(stage.words))
    with pytest.raises(SystemExit, match="--only"):
        train_all.within(stages, 1, "cuda")


def fake(monkeypatch: pytest.MonkeyPatch, broken: str = "") -> list[str]:
    """Stages that only write a config.json; one of them can be broken."""
    ran: list[str] = []

    def run(words: list[str], device: str, log: Path, **settings: str) -> None:
        ran.append(log.stem)
        if log.stem == broken:
            log.write_text(f"{log.stem} begins\nerror: the disk is full\n")
            raise subprocess.CalledProcessError(2, words)
        log.write_text('{"step": 2, "figure": 0.5, "f1": {"all": 0.25}}\n')
        folder = Path(words[words.index("--out") + 1]) / "best" if "--out" in words else Path(words[-1])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text("{}")

    monkeypatch.setattr(train_all, "run", run)
    return ran


def test_a_broken_stage_stops_the_plan_with_its_last_lines(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    fake(monkeypatch, "mpnet")
    assert train_all.main(words(data, out)) == 1
    assert "error: the disk is full\nthe stage 'mpnet' ended with exit status 2" in capsys.readouterr().err
    assert not (out / "mpnet" / "config.json").exists()
    ran = fake(monkeypatch)
    assert train_all.main(words(data, out, "--minutes", "25", "--device", "cuda")) == 0
    assert ran[0] == "mpnet"  # it goes on there
    assert "f1 all 0.25" in (out / "minilm" / "README.md").read_text(encoding="utf-8")
