"""Every bundled weight, from data to model card, by one command.

    python -m benchmarks.manuals cut --mirrors FOLDER --out var/manuals
    python -m benchmarks.train_all --data DATA --device cuda [--scale 1] [--minutes N] [--only STAGE ...] [--tiny] [--dry-run]
    python -m benchmarks.train_all --data DATA --pack FOLDER [--bases] [--only STAGE ...]

The order of the stages is that in which they read each other's weights: the two networks that read and answer (over MiniLM, over MPNet), the writer,
passage reranker, calibration, retriever, ambiguity, the encoder-decoders.  Each is the `python -m core train ...` of the model card in
checkpoints/, with the same arguments, data and seed, for as many steps (tests/test_train_all.py compares them); the bundled writer
is of two runs, only the second of which excluded questions, and the bundled retriever of one that was stopped early.  No passage reranker is bundled.  OUT has the layout of checkpoints/, so the AMBISCOPE_* settings that are printed at the end use it, and so does copying it
there (the only way for ambiguity/).  Of each run, the best weights by the held-out practice questions are taken.

A finished stage (OUT/records) is not repeated; one that is repeated invalidates the stages that read its weights.  A failed stage stops the
plan; the same command continues there.  `--tiny` rehearses everything in seconds per stage, over a few rows of the data.  `--dry-run` prints the stages
and how much computing they take.

`--minutes N` ends the plan within N minutes: what loading and fitting leave is shared by the trainings in proportion to their computing.
`--pack FOLDER` writes what the stages read, in parts of at most 60 MB with their digests, for a machine that nothing else reaches; the plan unpacks it there with
`--data FOLDER`.  What is below data/ comes with the code.  `--bases` adds the base models, for a machine without their packages.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.training.cards import record_of, write_card
from benchmarks.training.packs import BASES, PARTS, base_files, pack, unpack
from benchmarks.training.plans import PARAMETERS, RATES, computing, operations, run
from benchmarks.training.small_data import write_small
from core import disk
from core.settings import ROOT
from core.training.data.held_out_passages import PRACTICE_FOLDERS

READING, MULTI, AMBIGNQ, WIKI = (
    "reading/train.jsonl.gz",
    "multi/train.jsonl.gz",
    "ambignq/train_light.json",
    "passages/wiki.tsv.gz",
)
EXCLUDED = (  # below DATA: what is evaluated on
    "ambignq/dev_light.json",
    "reading/dev.jsonl.gz",
    "multi/dev.jsonl.gz",
    "multi/condambigqa_dev.jsonl.gz",
    "conflict/wikicontradict_dev.jsonl.gz",
    "open/nq_open_dev.jsonl",
    "open/webquestions.jsonl",
)
OWN_EXCLUDED = tuple(ROOT / "data" / name / "questions.json" for name in ("starter", "starter_test"))
QUESTION_OPERATIONS = 5e11  # of one question of a fit: ten passages read a few times
LAST_LINES = 20  # of a failed stage's log
LOADING_MINUTES = (
    0.5  # of a stage, assumed: its start, its data and its last evaluation, which --minutes of `core train` doesn't count
)
STEP_SECONDS = 0.05  # assumed: of a step that is too small to keep a GPU busy
MANUALS = "manuals/train.jsonl.gz"


@dataclass(frozen=True)
class Stage:
    """One command.  `kind`: the folder of OUT that it makes or completes; `reads`: stages whose weights it reads."""

    name: str
    kind: str
    words: tuple[str, ...]  # of python -m MODULE
    out: Path  # --out: the run folder of a training, else where it writes its files
    data: tuple[Path, ...] = ()
    reads: tuple[str, ...] = ()
    operations: float = 0.0
    published: bool = False  # the best weights of its run become OUT/KIND
    note: str = ""  # how the bundled weights were made otherwise

    @property
    def weights(self) -> Path:
        return self.out / "best"


class Plan:
    """The stages in order."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.out, self.stages = args, Path(args.out), list[Stage]()

    def _data(self, names: Sequence[str]) -> tuple[list[str], tuple[Path, ...]]:
        """(options that name these data, the files and folders that are trained on)."""
        data, manuals = self.args.data, self.args.manuals
        files = {
            "reading": [data / READING],
            "multi": [data / MULTI, *[manuals] * 2, *[self.args.relations] * 2],
            "ambignq": [data / AMBIGNQ],
            "passages": [data / WIKI],
            "annotated": list(self.args.annotated),
            "manuals": [manuals],
            "lists": [data / MULTI],
            "exclude": [*(data / name for name in EXCLUDED), *OWN_EXCLUDED],
        }
        words = [word for name in names for word in (f"--{name}", *map(str, files[name]))]
        return words, tuple(dict.fromkeys(path for name in names if name != "exclude" for path in files[name]))

    def _words(self, words: Sequence[str], out: Path, seed: int | None = None) -> tuple[str, ...]:
        return ("train", *words, "--seed", str(self.args.seed if seed is None else seed), "--out", str(out))

    def train(
        self,
        name: str,
        words: str,
        data: Sequence[str],
        steps: int,
        reads: Sequence[str] = (),
        cost: float = 0.0,
        note: str = "",
        seed: int | None = None,
    ) -> None:
        """A network trained in steps; evaluated four times, the last one at the end.  `cost`: operations of `steps` steps (0: of the small encoder);
        `seed`: another one than that of the plan."""
        args, out, (data_words, paths) = self.args, self.out / "runs" / name, self._data(data)
        length = 2 if args.tiny else max(1, round(args.scale * steps))
        evaluate_every = 1_000_000 if args.tiny else length // 4 + 1
        options = ["--steps", str(length), "--evaluate-every", str(evaluate_every), "--precision", args.precision]
        cost = (cost or operations(steps)) * length / steps
        command = self._words([*words.split(), *data_words, *options], out, seed)
        self.stages.append(Stage(name, name, command, out, paths, tuple(reads), cost, True, note))

    def fit(
        self,
        name: str,
        kind: str,
        words: str,
        data: Sequence[str],
        questions: int,
        out: str,
        reads: Sequence[str] = (),
        seed: int | None = None,
    ) -> None:
        """Fits parameters to `questions` on top of trained weights, and writes them beside the weights."""
        data_words, paths = self._data(data)
        folder, cost = self.out / out, QUESTION_OPERATIONS * (12 if self.args.tiny else questions)
        self.stages.append(
            Stage(name, kind, self._words([*words.split(), *data_words], folder, seed), folder, paths, tuple(reads), cost)
        )


def plan(args: argparse.Namespace) -> list[Stage]:
    """The stages, in the order in which they have to run."""
    stages, out, tiny = Plan(args), Path(args.out), bool(args.tiny)
    batch, workers = (512, 0) if tiny else (32_768, args.workers)
    all_data = ("reading", "multi", "ambignq", "passages", "annotated", "exclude")
    for base, rank, rate, steps in (("minilm", 64, "6e-4", 1834), ("mpnet", 32, "4e-4", 2998)):
        stages.train(
            base,
            f"answerer --stage joint --base {base} --rank {rank} --lr {rate} --head-lr {rate} --context {4 if tiny else 6}"
            f" --batch-tokens {batch} --workers {workers}" + (" --limit 12" if tiny else ""),
            all_data,
            steps,
            cost=operations(steps, PARAMETERS[base], batch // 2),  # half of a batch is padding, which costs nothing
        )
    stages.train(
        "writer",
        f"writer --batch-tokens {256 if tiny else 2048} --head-lr 8e-4",
        ("ambignq", "passages", "annotated", "manuals", "lists", "exclude"),
        1000,
        cost=operations(1000, PARAMETERS["smollm2"], 2048),
        note="The bundled weights are of two runs of two processes: 300 of 1,000 steps without exclusions, then 420 steps with them.",
        seed=0,
    )
    stages.train(
        "passages",
        f"passages --reader {out / 'mpnet'} --limit {12 if tiny else 450} --pool {6 if tiny else 20} --head-lr 1e-3",
        ("annotated",),
        400,
        ["mpnet"],
        QUESTION_OPERATIONS * 650,  # reading the pools; the network itself is small
    )
    if not tiny:  # a network trained for two steps has no probabilities worth calibrating
        words = "calibration --systems ambiscope --limit 120"
        stages.fit("calibration", "mpnet", words, ("annotated",), 120, ".", ["mpnet"], seed=0)
    stages.train(
        "retriever",
        f"retriever --rank 8 --lr 5e-4 --batch {8 if tiny else 64}",
        ("annotated",),
        600,
        cost=operations(600, tokens=64 * 16),
        note="The bundled weights are those of step 300.",
        seed=0,
    )
    stages.fit("ambiguity", "ambiguity", "ambiguity", ("ambignq",), 20, "ambiguity", seed=0)
    # without held-out questions a rehearsal does not wait for decoders that have not learned to end
    answering_data = ("multi", "exclude") if tiny else all_data
    rewriting_data = ("ambignq", "passages") if tiny else ("annotated", "ambignq", "passages")
    batch_tokens = 512 if tiny else 16_384
    decoder = (
        f"--init small:{out / 'minilm'} --freeze 6 --batch-tokens {batch_tokens} --workers {workers} --lr 2e-3 --head-lr 2e-3"
    )
    decoder_operations = operations(1, 2_000_000, batch_tokens)  # of a step: the decoder alone is trained
    for name, words, data, steps in (
        (
            "fid",
            f"seq2seq --target spliced --joined 0.2 --prompting separate --eoi-share 0.25 --context {2 if tiny else 6}",
            answering_data,
            3142,
        ),
        (
            "answerer-seq2seq",
            f"seq2seq --target step --prompting interleaved --eoi-share 0.25 --context {2 if tiny else 6}",
            answering_data,
            2943,
        ),
        ("rewriter", f"disambiguation --prompting interleaved --context {2 if tiny else 4}", rewriting_data, 2066),
    ):
        stages.train(name, f"{words} {decoder}", data, steps, ["minilm"], steps * decoder_operations)
    return stages.stages


def within(stages: Sequence[Stage], minutes: float, device: str) -> list[Stage]:
    """The stages, with each training's share of the minutes.  Raises SystemExit if no minutes remain for the trainings."""
    rate = RATES["cuda" if device.startswith("cuda") else "cpu"]

    def needed(stage: Stage) -> float:
        steps = int(stage.words[stage.words.index("--steps") + 1]) if stage.published else 0
        return max(stage.operations / rate, steps * STEP_SECONDS) / 60

    trainings = sum(needed(stage) for stage in stages if stage.published)
    other = LOADING_MINUTES * len(stages) + sum(needed(stage) for stage in stages if not stage.published)
    if minutes <= other:
        sys.exit(f"--minutes {minutes:g}: loading and fitting take {other:.3g} of them; name fewer stages with --only")
    share = (minutes - other) / trainings if trainings else 1.0
    if share < 1:
        print(f"the trainings don't fit: each stops after about {share:.0%} of its steps")
    return [replace(s, words=(*s.words, "--minutes", f"{share * needed(s):.3g}")) if s.published else s for s in stages]


def inputs(args: argparse.Namespace, stages: Sequence[Stage]) -> dict[str, Path]:
    """What the stages read, by its place below DATA, without what comes with the code or is made by a stage."""
    paths = {path for stage in stages for word in stage.words if (path := Path(word)).is_absolute()}
    read = sorted(p for p in paths if not p.is_relative_to(args.out) and not p.is_relative_to(ROOT / "data"))
    if missing := [str(path) for path in read if not path.exists()]:
        sys.exit(f"there is no {', '.join(missing)}")
    files = {
        MANUALS if p == args.manuals else str(p.relative_to(args.data) if p.is_relative_to(args.data) else p.name): p
        for p in read
    }
    if args.bases:
        names = {name for stage in stages for name in (stage.name, *stage.reads)}
        by_stage = {"mpnet": "mpnet", "writer": "smollm2"}
        files |= base_files({"minilm", *(base for name, base in by_stage.items() if name in names)})
    return files


def record_file(out: Path, stage: Stage) -> Path:
    return out / "records" / f"{stage.name}.json"


def untimed(words: Sequence[str]) -> list[str]:
    """The words without the share of the time, which `within` puts last."""
    return list(words[: words.index("--minutes")] if "--minutes" in words else words)


def is_done(out: Path, stage: Stage) -> bool:
    """Raises SystemExit for a stage that was done by another command."""
    file = record_file(out, stage)
    if not file.exists():
        return False
    recorded = json.loads(file.read_text(encoding="utf-8"))["words"]
    if untimed(recorded) != untimed(stage.words):
        sys.exit(
            f"{out} holds the stage '{stage.name}' of another command; name another folder with --out, or delete {file}\nbefore: {shlex.join(recorded)}"
        )
    return True


def undo(out: Path, stages: Sequence[Stage], name: str) -> None:
    """Forgets the stages that read this one's weights, and those that read theirs."""
    for stage in stages:
        if name in stage.reads and record_file(out, stage).exists():
            record_file(out, stage).unlink()
            undo(out, stages, stage.name)


def settings_of(out: Path) -> dict[str, str]:
    """The settings with which systems use the weights of OUT."""
    return dict.fromkeys(("reader", "answerer"), str(out / "mpnet"))


def carry_out(args: argparse.Namespace, stage: Stage, log: Path) -> dict[str, Any]:
    """Runs a stage; returns its record.  Raises CalledProcessError."""
    out: Path = args.out
    log.parent.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    # a home of its own: corpora are known by their folder's name, and small ones must not replace complete ones
    run(stage.words, args.device, log, home=str(out / "home"), encoder="minilm", **settings_of(out))
    if stage.published:
        shutil.rmtree(out / stage.kind, ignore_errors=True)
        shutil.copytree(stage.weights, out / stage.kind)
    record = record_of(stage.name, stage.words, out, stage.data, log, args.device, time.monotonic() - start)
    return {"kind": stage.kind, "note": stage.note, **record}


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="holds reading/, multi/, ambignq/ and passages/")
    parser.add_argument("--annotated", type=Path, nargs="+", default=list(PRACTICE_FOLDERS), metavar="FOLDER")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", choices=["auto", "bf16", "fp32"], default="auto")
    parser.add_argument("--workers", type=int, default=0, metavar="N", help="of each training: a GPU needs about six")
    parser.add_argument(
        "--manuals", type=Path, help=f"what `benchmarks.manuals cut` writes (default: {MANUALS} in DATA or var/)"
    )
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument(
        "--scale",
        type=float,
        default=1.0,
        help="of the steps of each training (default: %(default)s, as many as the bundled weights took)",
    )
    parser.add_argument("--minutes", type=float, metavar="N", help="for the whole plan")
    parser.add_argument("--pack", type=Path, metavar="FOLDER", help="write what the stages read, and end")
    parser.add_argument("--bases", action="store_true", help="with --pack: also the base models")
    parser.add_argument("--only", nargs="+", metavar="STAGE", help="only these; what they read has to be done")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--out", type=Path, default=ROOT / "var" / "runs" / "train_all")
    parser.add_argument("--dry-run", action="store_true")
    args = parser.parse_args(argv)
    args.data, args.out, args.annotated = args.data.resolve(), args.out.resolve(), [f.resolve() for f in args.annotated]
    if (args.data / PARTS).exists():
        unpack(args.data)
    manuals = args.manuals or next((f for f in (args.data / MANUALS,) if f.exists()), ROOT / "var" / MANUALS)
    args.manuals, args.relations = manuals.resolve(), ROOT / "data" / "practice_relations" / "pairs.jsonl"
    names = [stage.name for stage in plan(args)]
    if unknown := sorted(set(args.only or ()) - set(names)):
        parser.error(f"--only: there is no stage {', '.join(unknown)}; stages: {' '.join(names)}")
    return args


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    if (args.data / BASES).exists():
        places = (str(args.data / BASES), os.environ.get("PYTHONPATH"))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, places))
    if args.tiny and not args.dry_run and not args.pack:
        small = args.out / "data"
        args.annotated = write_small(args.data, args.annotated, [args.manuals, args.relations], EXCLUDED, small, args.seed)
        args.manuals, args.relations = (small / f"{path.parent.name}/{path.name}" for path in (args.manuals, args.relations))
        args.data = small
    stages = plan(args)
    selected = [stage for stage in stages if not args.only or stage.name in args.only]
    if args.pack:
        print(f"{pack(inputs(args, selected), args.pack)} parts in {args.pack}")
        return 0
    if args.minutes:
        selected = within(selected, args.minutes, args.device)
    amount = sum(stage.operations for stage in selected)
    print(f"{len(selected)} stages, {computing(amount)}; loading data, evaluating and what CPUs do is not counted", flush=True)
    if args.dry_run:
        for stage in selected:
            print(f"{stage.name} ({stage.operations / 1e15:.3g} PFLOP): python -m core {shlex.join(stage.words)}")
        return 0
    for stage in selected:
        if is_done(args.out, stage):
            continue
        if missing := [s.name for s in stages if s.name in stage.reads and not is_done(args.out, s)]:
            sys.exit(f"the stage '{stage.name}' reads what {', '.join(missing)} makes: do that first")
        print(f"{time.strftime('%H:%M:%S')} {stage.name}", flush=True)
        log = args.out / "runs" / f"{stage.name}.log"
        undo(args.out, stages, stage.name)
        try:
            record = carry_out(args, stage, log)
        except subprocess.CalledProcessError as error:
            last = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:])
            print(
                f"{last}\nthe stage '{stage.name}' ended with exit status {error.returncode}; its output is in {log}",
                file=sys.stderr,
            )
            return 1
        disk.write_json(record_file(args.out, stage), record)
        record_files = [record_file(args.out, s) for s in stages if s.kind == stage.kind]
        write_card(args.out / stage.kind, [json.loads(f.read_text(encoding="utf-8")) for f in record_files if f.exists()])
    settings = {
        **settings_of(args.out),
        "seq2seq": str(args.out / "fid"),
        "rewriter": str(args.out / "rewriter"),
        "writer": str(args.out / "writer"),
    }
    print(" ".join(f"AMBISCOPE_{name.upper()}={shlex.quote(folder)}" for name, folder in settings.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
