"""The loop, with stand-ins for the two commands: what is asked, what is refused, and that a killed loop goes on."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from storage_samples import prediction

from core.disk import locked
from core.errors import AmbiscopeError, CancelledError, ConflictError, FormatError, InputError, NotFoundError, StorageError
from core.settings import Settings
from storage.analysis import loop
from storage.analysis.loop import LoopOptions, run_loop
from storage.analysis.loop_process import last_words, run_command
from storage.exchange.filters import Filters
from storage.schema import engine
from storage.store import Store

NUMBERS = range(12)


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "SYNCHRONOUS", "OFF")
    monkeypatch.setattr(loop, "MIN_ANSWERED", 1)  # judged questions


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home")


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    """One judged question, which is the fourth of the file by its words and the fifth by its id."""
    with Store(settings.url) as opened:
        saved = opened.predictions.save_prediction(prediction("QUESTION  number 3", ["Ann", "Ben"], id="q4"))
        opened.labels.judge(saved, 0, "Ada", "correct")
        opened.labels.judge(saved, 1, "Ada", "wrong")
        yield opened


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "asked.json"
    rows = [
        {"id": f"q{n}", "question": f"Question number {n}?", "annotations": [{"type": "singleAnswer", "answer": [f"a{n}"]}]}
        for n in NUMBERS
    ]
    path.write_text(json.dumps(rows))
    return path


class Commands:
    """Both commands: training leaves a checkpoint, evaluation a report whose F1 depends on who answers."""

    def __init__(self, gain: float = 0.3) -> None:
        self.calls: list[str] = []
        self.arguments: dict[str, list[str]] = {}
        self.gain = gain
        self.fail = ""

    def __call__(self, arguments: list[str], environment: Mapping[str, str], log: Path, watch: Callable[[], None]) -> None:
        what = log.stem
        assert arguments[:3] == [sys.executable, "-m", "core"]
        out = Path(arguments[arguments.index("--out") + 1])
        if self.fail == what:
            raise AmbiscopeError(f"{what} failed")
        self.calls.append(what)
        self.arguments[what] = arguments
        watch()
        out.mkdir(parents=True, exist_ok=True)
        if what == "train":
            (out / "best").mkdir()
            (out / "best" / "config.json").write_text("{}")
            (out / "log.jsonl").write_text('{"step": 3, "minutes": 0.1}\n')
            watch()
            return
        after = environment["AMBISCOPE_ANSWERER"].endswith("best")
        assert arguments[arguments.index("--system") + 1] == "ambigprompt"  # whatever AMBISCOPE_SYSTEM says
        assert after == (what == "after")
        asked = json.loads(Path(arguments[arguments.index("--questions") + 1]).read_text())
        rows = [
            {"id": q["id"], "question": q["question"], "error": None, "ambiguous": False, "references": [], "answers": []}
            | {"metrics": {"F1 answer": 0.2 + 0.01 * i + (self.gain * (1 + i % 2) if after else 0), "recall": None}}
            for i, q in enumerate(asked)
        ]
        rows[-1] |= {"error": "failed", "metrics": {}}
        report = {"n": len(rows), "failed": 1, "rows": rows, "scores": {}, "intervals": {}, "timings": {}, "provenance": {}}
        (out / "report.json").write_text(json.dumps(report | {"after": after}))


def options(tmp_path: Path, questions: Path, **more: Any) -> LoopOptions:
    return LoopOptions(out=tmp_path / "loop", **{"questions": questions, "steps": 4, "replay": None, **more})


def test_a_better_model(store: Store, settings: Settings, questions: Path, tmp_path: Path) -> None:
    commands, said = Commands(), []
    made = run_loop(
        store, settings, options(tmp_path, questions), run=commands, progress=lambda what, share: said.append((what, share))
    )
    assert commands.calls == ["before", "train", "after"]
    assert made.verdict == "better"
    assert (made.questions, made.left_out, made.trained_on, made.main.n) == (10, 2, 1, 9)  # one question failed
    asked = json.loads((tmp_path / "loop" / "questions.json").read_text())
    assert {q["id"] for q in asked} == {f"q{n}" for n in NUMBERS} - {"q3", "q4"}  # by its words, and by its id
    assert made.main.difference > 0.3
    assert made.main.interval is not None
    assert "better" in made.words()
    assert made.differences[2].difference is None  # recall is undefined throughout
    after, before = store.evaluations.evaluations()
    assert (before.id, after.id) == (made.before, made.after)
    assert (before.label, after.label) == ("before training from snapshot 1", "after training from snapshot 1")
    assert store.evaluations.evaluation_report(after.id)["loop"]["before"] == before.id
    assert json.loads((tmp_path / "loop" / "result.json").read_text())["verdict"] == "better"
    assert said[-1] == ("done", 1.0)
    assert ("training: step 3", 0.75) in said
    (snapshot,) = store.exports.snapshots()
    train = commands.arguments["train"]
    assert train[train.index("--multi") + 1] == str(settings.home / "snapshots" / "0001" / "training.jsonl")
    assert train[train.index("--init") + 1] == "default"
    assert snapshot.number == 1


@pytest.mark.parametrize(("gain", "outcome"), [(-0.3, "worse"), (0.0, "undecided")])
def test_other_ends(store: Store, settings: Settings, questions: Path, tmp_path: Path, gain: float, outcome: str) -> None:
    made = run_loop(store, settings, options(tmp_path, questions, minutes=1.0, steps=None), run=Commands(gain))
    assert made.verdict == outcome
    assert {"worse": "worse", "undecided": "No difference"}[outcome] in made.words()
    assert (made.checkpoint == "default") == ("is not kept" in made.words()) == (outcome == "worse")


def test_too_few_judgments_are_said(
    store: Store, settings: Settings, questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "MIN_ANSWERED", 2)
    with pytest.raises(InputError, match="1 judged questions have a correct answer"):
        run_loop(store, settings, options(tmp_path, questions), run=Commands())


def test_a_loop_goes_on_where_it_stopped(store: Store, settings: Settings, questions: Path, tmp_path: Path) -> None:
    commands = Commands()
    commands.fail = "train"
    wanted = options(tmp_path, questions)
    with pytest.raises(AmbiscopeError, match="train failed"):
        run_loop(store, settings, wanted, run=commands)
    assert store.evaluations.count_evaluations() == 0  # nothing half stored
    commands.fail = "after"
    with pytest.raises(AmbiscopeError, match="after failed"):
        run_loop(store, settings, wanted, run=commands)
    commands.fail = ""
    made = run_loop(store, settings, wanted, run=commands)
    assert commands.calls == ["before", "train", "after"]  # none of them twice
    assert len(store.exports.snapshots()) == 1
    assert run_loop(store, settings, wanted, run=commands) == made  # nothing left to do
    assert store.evaluations.count_evaluations() == 2
    with pytest.raises(InputError, match=r"other settings \(steps\)"):
        run_loop(store, settings, options(tmp_path, questions, steps=5), run=commands)
    questions.write_text(questions.read_text() + " ")
    with pytest.raises(InputError, match=r"other settings \(questions\)"):
        run_loop(store, settings, wanted, run=commands)
    (tmp_path / "loop" / "loop.json").write_text("{")
    with pytest.raises(FormatError, match="damaged"):
        run_loop(store, settings, wanted, run=commands)


def test_two_loops_in_one_folder(store: Store, settings: Settings, questions: Path, tmp_path: Path) -> None:
    wanted, commands = options(tmp_path, questions), Commands()
    with (
        locked(wanted.out, "a loop"),
        ThreadPoolExecutor(1) as other,
        pytest.raises(ConflictError, match=r"loop is in use: a loop in process \d+ on "),
    ):
        other.submit(run_loop, store, settings, wanted, run=commands).result()
    assert run_loop(store, settings, wanted, run=commands).verdict


def test_what_is_refused(store: Store, settings: Settings, questions: Path, tmp_path: Path) -> None:
    commands = Commands()
    rows = json.loads(questions.read_text())
    questions.write_text(json.dumps(rows[3:6]))
    with pytest.raises(InputError, match="2 of its 3 questions were trained on"):
        run_loop(store, settings, options(tmp_path, questions), run=commands)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(InputError, match="not empty"):
        run_loop(store, settings, LoopOptions(out=tmp_path / "full", steps=1, questions=questions, replay=None), run=commands)
    with pytest.raises(NotFoundError, match="no snapshot 9; the last one is 1"):
        run_loop(store, settings, LoopOptions(out=tmp_path / "b", snapshot=9, steps=1, questions=questions, replay=None))
    nobody = Filters(stages=("validation",))
    with pytest.raises(InputError, match="0 judged questions have a correct answer"):
        run_loop(store, settings, LoopOptions(out=tmp_path / "c", filters=nobody, steps=1, questions=questions, replay=None))
    with pytest.raises(InputError, match="no such file"):
        run_loop(store, settings, LoopOptions(out=tmp_path / "d", steps=1, questions=tmp_path / "nowhere", replay=None))
    assert commands.calls == []
    for wrong in ({"steps": 1, "minutes": 1.0}, {"steps": 0}, {"minutes": 0.0}, {"steps": 1, "limit": 1}):
        with pytest.raises(InputError):
            LoopOptions(out=tmp_path, replay=None, **wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"no questions\.json"):
        LoopOptions(out=tmp_path, steps=1, replay=tmp_path / "nowhere")


def test_wrong_answers_are_trained_on_beside_right_ones_only(
    store: Store, settings: Settings, questions: Path, tmp_path: Path
) -> None:
    saved = store.predictions.save_prediction(prediction("Who is it?", ["Natalie Wood"], id="w"))
    store.labels.judge(saved, 0, "Bob", "wrong")
    assert run_loop(store, settings, options(tmp_path, questions), run=Commands()).trained_on == 2
    wrong = LoopOptions(out=tmp_path / "w", filters=Filters(annotators=("Bob",)), steps=1, questions=questions, replay=None)
    with pytest.raises(InputError, match="0 judged questions have a correct answer"):
        run_loop(store, settings, wrong, run=Commands())


def test_questions_of_the_replay_folder_are_not_asked(
    store: Store, settings: Settings, questions: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "practice"
    folder.mkdir()
    pairs = [{"question": "Question number 6?", "answer": ["x"]}, {"question": "Other?", "answer": ["y"]}]
    row = {"id": "q5", "question": "Else?", "annotations": [{"type": "multipleQAs", "qaPairs": pairs}]}
    (folder / "questions.json").write_text(json.dumps([row]))
    made = run_loop(store, settings, options(tmp_path, questions, replay=folder), run=Commands())
    assert made.left_out == 4  # q3 and q4 of the snapshot, q5 by its id, q6 as a disambiguated question


def test_rows_that_are_lines_keep_their_ids(store: Store, settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "asked.jsonl"
    rows = [{"question": f"Question number {n}?", "answers": [[f"a{n}"]], "passages": []} for n in NUMBERS]
    file.write_text("".join(json.dumps(r) + "\n" for r in rows))

    def stop(_arguments: list[str], _environment: Mapping[str, str], _log: Path, _watch: Callable[[], None]) -> None:
        raise CancelledError("stop")

    with pytest.raises(CancelledError):
        run_loop(store, settings, options(tmp_path, file), run=stop)
    kept = [json.loads(line) for line in (tmp_path / "loop" / "questions.jsonl").read_text().splitlines()]
    assert [r["id"] for r in kept] == [f"asked-{n + 1}" for n in NUMBERS if n != 3]


# ---------------------------------------------------------------- the process


def command(tmp_path: Path, code: str, watch: Callable[[], None] = lambda: None) -> Path:
    log = tmp_path / "log"
    run_command([sys.executable, "-c", code], {}, log, watch)
    return log


def test_a_command_leaves_its_words_in_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.analysis.loop_process.POLL_SECONDS", 0.02)
    assert command(tmp_path, "print('hello')").read_text() == "hello\n"
    with pytest.raises(AmbiscopeError, match=r"failed \(exit 3\): error: no such weights"):
        command(tmp_path, "import sys; print('error: no such weights'); print('later'); sys.exit(3)")
    with pytest.raises(StorageError, match="cannot be written"):
        run_command([sys.executable, "-c", ""], {}, tmp_path / "nowhere" / "log", lambda: None)
    assert last_words(tmp_path / "missing") == "it said nothing"


def test_a_stopped_loop_ends_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.analysis.loop_process.POLL_SECONDS", 0.02)
    mark = tmp_path / "pid"

    def watch() -> None:
        if mark.exists() and mark.read_text():
            raise CancelledError("stopped")

    code = f"import os, time, pathlib; pathlib.Path({str(mark)!r}).write_text(str(os.getpid())); time.sleep(60)"
    with pytest.raises(CancelledError):
        command(tmp_path, code, watch)
    assert not Path(f"/proc/{mark.read_text()}").exists()
