"""The loop, with stand-ins for the two commands: what is asked, what is refused, and that a killed loop goes on."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from storage_helpers import put_lines, read_lines
from storage_samples import prediction

from core.disk import locked
from core.errors import AmbiscopeError, CancelledError, ConflictError, FormatError, InputError, NotFoundError, StorageError
from core.settings import Settings
from storage.analysis import loop, loop_process
from storage.analysis.loop import LoopOptions, LoopResult, run_loop
from storage.analysis.loop_process import Runner, last_words, run_command
from storage.exchange.filters import Filters
from storage.store import Store

NUMBERS = range(12)
Start = Callable[..., LoopResult]


@pytest.fixture(autouse=True)
def one_judged_question_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "MIN_ANSWERED", 1)
    monkeypatch.setattr(loop_process, "POLL_SECONDS", 0.02)


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


@pytest.fixture
def start(store: Store, settings: Settings, questions: Path, tmp_path: Path) -> Start:
    """start(commands, steps=5, ...): a loop in the folder `loop`, of four steps unless these options say otherwise."""

    def start(run: Runner, progress: Any = lambda what, share: None, **more: Any) -> LoopResult:
        options = LoopOptions(**{"out": tmp_path / "loop", "questions": questions, "steps": 4, "replay": None, **more})
        return run_loop(store, settings, options, run=run, progress=progress)

    return start


class Commands:
    """Both commands: training leaves a checkpoint, evaluation a report whose F1 depends on who answers."""

    def __init__(self, gain: float = 0.3, fail: str = "") -> None:
        self.calls: list[str] = []
        self.arguments: dict[str, list[str]] = {}
        self.gain, self.fail, self.corpus = gain, fail, "starter"

    def __call__(self, arguments: list[str], environment: Mapping[str, str], log: Path, watch: Callable[[], None]) -> None:
        name = log.stem
        assert arguments[:3] == [sys.executable, "-m", "core"]
        out = Path(arguments[arguments.index("--out") + 1])
        if self.fail == name:
            raise AmbiscopeError(f"{name} failed")
        self.calls.append(name)
        self.arguments[name] = arguments
        watch()
        out.mkdir(parents=True, exist_ok=True)
        if name == "train":
            (out / "best").mkdir()
            (out / "best" / "config.json").write_text("{}")
            (out / "log.jsonl").write_text('{"step": 3, "minutes": 0.1}\n')
            watch()
            return
        after = environment["AMBISCOPE_ANSWERER"].endswith("best")
        assert arguments[arguments.index("--system") + 1] == "ambigprompt"  # whatever AMBISCOPE_SYSTEM says
        assert after == (name == "after")
        asked = json.loads(Path(arguments[arguments.index("--questions") + 1]).read_text())
        rows = [
            {"id": q["id"], "question": q["question"], "error": None, "ambiguous": False, "references": [], "answers": []}
            | {"metrics": {"F1 answer": 0.2 + 0.01 * i + (self.gain * (1 + i % 2) if after else 0), "recall": None}}
            for i, q in enumerate(asked)
        ]
        rows[-1] |= {"error": "failed", "metrics": {}}
        report = {"n": len(rows), "failed": 1, "rows": rows, "scores": {}, "intervals": {}, "timings": {}}
        report["provenance"] = {"system": {"corpus": self.corpus}}
        (out / "report.json").write_text(json.dumps(report | {"after": after}))


def test_a_better_model_is_kept_with_both_evaluations(store: Store, settings: Settings, start: Start, tmp_path: Path) -> None:
    commands, steps = Commands(), []
    result = start(commands, progress=lambda what, share: steps.append((what, share)))
    assert commands.calls == ["before", "train", "after"]
    assert (result.questions, result.left_out, result.trained_on, result.main.n) == (10, 2, 1, 9)  # one question failed
    asked = json.loads((tmp_path / "loop" / "questions.json").read_text())
    assert {q["id"] for q in asked} == {f"q{n}" for n in NUMBERS} - {"q3", "q4"}  # by its words, and by its id
    assert result.main.difference > 0.3
    assert result.main.interval is not None
    assert result.differences[2].difference is None  # recall is undefined throughout
    after, before = store.evaluations.evaluations()
    assert (before.id, after.id) == (result.before, result.after)
    assert (before.label, after.label) == ("before training from snapshot 1", "after training from snapshot 1")
    assert store.evaluations.evaluation_report(after.id)["loop"]["before"] == before.id
    assert json.loads((tmp_path / "loop" / "result.json").read_text())["verdict"] == result.verdict == "better"
    assert "better" in result.words()
    assert steps[-1] == ("done", 1.0)
    assert ("training: step 3", 0.75) in steps
    assert [s.number for s in store.exports.snapshots()] == [1]
    train = commands.arguments["train"]
    assert train[train.index("--multi") + 1] == str(settings.home / "snapshots" / "0001" / "training.jsonl")
    assert train[train.index("--init") + 1] == "default"


@pytest.mark.parametrize(("gain", "verdict", "words"), [(-0.3, "worse", "worse"), (0.0, "undecided", "No difference")])
def test_a_loop_may_end_worse_or_undecided(start: Start, gain: float, verdict: str, words: str) -> None:
    result = start(Commands(gain), minutes=1.0, steps=None)
    assert result.verdict == verdict
    assert words in result.words()
    assert (result.checkpoint == "default") == ("is not kept" in result.words()) == (verdict == "worse")


def test_a_loop_goes_on_where_it_stopped(store: Store, start: Start, questions: Path, tmp_path: Path) -> None:
    commands = Commands(fail="train")
    with pytest.raises(AmbiscopeError, match="train failed"):
        start(commands)
    assert store.evaluations.count_evaluations() == 0  # nothing half stored
    commands.fail = "after"
    with pytest.raises(AmbiscopeError, match="after failed"):
        start(commands)
    commands.fail = ""
    result = start(commands)
    assert commands.calls == ["before", "train", "after"]  # none of them twice
    assert len(store.exports.snapshots()) == 1
    assert start(commands) == result  # nothing left to do
    assert store.evaluations.count_evaluations() == 2
    with pytest.raises(InputError, match=r"other settings \(steps\)"):
        start(commands, steps=5)
    questions.write_text(questions.read_text() + " ")
    with pytest.raises(InputError, match=r"other settings \(questions\)"):
        start(commands)
    (tmp_path / "loop" / "loop.json").write_text("{")
    with pytest.raises(FormatError, match="damaged"):
        start(commands)


def test_a_loop_with_too_little_to_train_on_begins_anew(
    store: Store, start: Start, questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "MIN_ANSWERED", 2)
    trained_on = tmp_path / "trained.json"
    trained_on.write_text(json.dumps(json.loads(questions.read_text())[3:6]))
    for more in ({}, {"questions": trained_on}):
        with pytest.raises(InputError, match=r"judged questions have a correct|can be asked"):
            start(Commands(), **more)
        saved = store.predictions.save_prediction(prediction("Who is it?", ["Natalie Wood"], id="w"))
        store.labels.judge(saved, 0, "Ada", "correct")
    assert start(Commands()).trained_on == 2


def test_a_loop_without_a_time_is_continued_with_the_usual_one(start: Start) -> None:
    commands = Commands(fail="train")
    with pytest.raises(AmbiscopeError, match="train failed"):
        start(commands, steps=None)
    commands.fail = ""
    assert start(commands, steps=None, minutes=loop.MINUTES).verdict == "better"


def test_measurements_over_other_passages_are_not_compared(store: Store, start: Start, tmp_path: Path) -> None:
    commands = Commands(fail="after")
    with pytest.raises(AmbiscopeError, match="after failed"):
        start(commands)
    commands.fail, commands.corpus = "", "mine"
    with pytest.raises(InputError, match=r"after holds a run with other settings \(corpus\)"):
        start(commands)
    assert store.evaluations.count_evaluations() == 0
    commands.corpus = "starter"
    assert start(commands).verdict == "better"


def test_a_damaged_measurement_is_made_again(start: Start, tmp_path: Path) -> None:
    commands = Commands()
    result = start(commands)
    (tmp_path / "loop" / "after" / "report.json").write_text("{")
    with pytest.raises(FormatError, match=rf"delete {tmp_path / 'loop' / 'after'}$"):
        start(commands)
    shutil.rmtree(tmp_path / "loop" / "after")
    assert start(commands) == result


def test_a_second_loop_in_a_folder_is_refused(start: Start, tmp_path: Path) -> None:
    with (
        locked(tmp_path / "loop", "a loop"),
        ThreadPoolExecutor(1) as other,
        pytest.raises(ConflictError, match=r"loop is in use: a loop in process \d+ on "),
    ):
        other.submit(start, Commands()).result()
    assert start(Commands()).verdict


def test_wrong_options_are_refused_first(
    start: Start, questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = Commands()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    trained_on = tmp_path / "trained.json"
    trained_on.write_text(json.dumps(json.loads(questions.read_text())[3:6]))
    refused: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (InputError, "2 of its 3 questions were trained on", {"questions": trained_on}),
        (InputError, "not empty", {"out": tmp_path / "full"}),
        (NotFoundError, "no snapshot 9; the last one is 1", {"out": tmp_path / "b", "snapshot": 9}),
        (InputError, "0 judged questions have a correct", {"out": tmp_path / "c", "filters": Filters(stages=("validation",))}),
        (InputError, "no such file", {"out": tmp_path / "d", "questions": tmp_path / "nowhere"}),
        (InputError, r"no questions\.json", {"out": tmp_path / "e", "replay": tmp_path / "nowhere"}),
        (InputError, "not both", {"minutes": 1.0}),
        (InputError, "--steps is 0", {"steps": 0}),
        (InputError, r"--minutes is 0\.0", {"steps": None, "minutes": 0.0}),
        (InputError, "--limit is 1", {"limit": 1}),
    ]
    for error, words, more in refused:
        with pytest.raises(error, match=words):
            start(commands, **more)
    monkeypatch.setattr(loop, "MIN_ANSWERED", 2)
    with pytest.raises(InputError, match="1 judged questions have a correct answer"):
        start(commands, out=tmp_path / "f")
    assert commands.calls == []


def test_wrong_answers_are_trained_on_beside_right_ones_only(store: Store, start: Start, tmp_path: Path) -> None:
    saved = store.predictions.save_prediction(prediction("Who is it?", ["Natalie Wood"], id="w"))
    store.labels.judge(saved, 0, "Bob", "wrong")
    assert start(Commands()).trained_on == 2
    with pytest.raises(InputError, match="0 judged questions have a correct answer"):
        start(Commands(), out=tmp_path / "w", filters=Filters(annotators=("Bob",)))


def test_questions_of_the_replay_folder_are_not_asked(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "practice"
    folder.mkdir()
    pairs = [{"question": "Question number 6?", "answer": ["x"]}, {"question": "Other?", "answer": ["y"]}]
    row = {"id": "q5", "question": "Else?", "annotations": [{"type": "multipleQAs", "qaPairs": pairs}]}
    (folder / "questions.json").write_text(json.dumps([row]))
    # q3 and q4 of the snapshot, q5 by its id, q6 as a disambiguated question
    assert start(Commands(), replay=folder).left_out == 4


def test_rows_that_are_lines_keep_their_ids(start: Start, tmp_path: Path) -> None:
    rows = [{"question": f"Question number {n}?", "answers": [[f"a{n}"]], "passages": []} for n in NUMBERS]
    with pytest.raises(AmbiscopeError, match="before failed"):
        start(Commands(fail="before"), questions=put_lines(tmp_path / "asked.jsonl", *rows))
    asked = read_lines(tmp_path / "loop" / "questions.jsonl")
    assert [r["id"] for r in asked] == [f"asked-{n + 1}" for n in NUMBERS if n != 3]


# ---------------------------------------------------------------- the process


def command(tmp_path: Path, code: str, watch: Callable[[], None] = lambda: None) -> Path:
    log = tmp_path / "log"
    run_command([sys.executable, "-c", code], {}, log, watch)
    return log


def test_a_command_leaves_its_words_in_the_log(tmp_path: Path) -> None:
    assert command(tmp_path, "print('hello')").read_text() == "hello\n"
    with pytest.raises(AmbiscopeError, match=r"failed \(exit 3\): error: no such weights"):
        command(tmp_path, "import sys; print('error: no such weights'); print('later'); sys.exit(3)")
    with pytest.raises(AmbiscopeError, match=r"failed \(exit 4\): it said nothing"):  # not what the one before said
        command(tmp_path, "import sys; sys.exit(4)")
    with pytest.raises(StorageError, match="cannot be written"):
        run_command([sys.executable, "-c", ""], {}, tmp_path / "nowhere" / "log", lambda: None)
    assert last_words(tmp_path / "missing") == "it said nothing"


def test_a_stopped_loop_ends_its_process(tmp_path: Path) -> None:
    mark = tmp_path / "pid"

    def watch() -> None:
        if mark.exists() and mark.read_text():
            raise CancelledError("stopped")

    code = f"import os, time, pathlib; pathlib.Path({str(mark)!r}).write_text(str(os.getpid())); time.sleep(60)"
    with pytest.raises(CancelledError):
        command(tmp_path, code, watch)
    assert not Path(f"/proc/{mark.read_text()}").exists()
