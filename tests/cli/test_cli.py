"""The command line: exit codes, one line on stderr, a clean stdout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core import cli
from core.settings import ROOT

FACTS = "id\ttext\ttitle\n" + "".join(
    f"{i}\t{text}\t{title}\n"
    for i, text, title in [
        ("p1", "Natalie Wood played Maria.", "West Side Story (1961 film)"),
        ("p2", "Rachel Zegler played Maria.", "West Side Story (2021 film)"),
        ("p3", "Basalt is a dark rock.", "Basalt"),
    ]
)
QUESTION = "Who played Maria in West Side Story?"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [n for n in os.environ if n.startswith("AMBISCOPE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AMBISCOPE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AMBISCOPE_SYSTEM", "scripted")
    monkeypatch.setenv("AMBISCOPE_ENCODER", "hashing")
    (tmp_path / "facts.tsv").write_text(FACTS)
    return tmp_path


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def go(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = cli.main([str(w) for w in words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return go


Run = Callable[..., tuple[int, str, str]]


def test_index_then_ask(run: Run, home: Path) -> None:
    code, out, _ = run("index", "--passages", home / "facts.tsv", "--json")
    assert code == 0
    assert json.loads(out)["passages"] == 3
    code, out, _ = run("index", "--passages", home / "facts.tsv")
    assert (code, out) == (0, "corpus 'facts' is up to date: 3 passages\n")
    code, out, _ = run("ask", QUESTION, "--corpus", "facts", "--top-k", 2, "--json")
    assert code == 0
    prediction = json.loads(out)
    assert {"question", "system", "answers", "steps", "passages", "seconds"} <= set(prediction)
    assert prediction["question"] == QUESTION
    assert prediction["system"] == "scripted"
    assert len(prediction["passages"]) == 2
    assert {"id", "title", "score"} <= set(prediction["passages"][0])
    for answer in prediction["answers"]:
        assert {"text", "probability", "passages", "question"} <= set(answer)
    code, out, _ = run("ask", QUESTION, "--corpus", "facts")
    assert code == 0
    assert out.startswith("1. ")
    assert " passages, " in out.splitlines()[-1]


def test_pins_bans_and_limits(run: Run, home: Path) -> None:
    run("index", "--passages", home / "facts.tsv")
    words = ("ask", QUESTION, "--corpus", "facts", "--json", "--no-clarify")
    plain = [a["text"] for a in json.loads(run(*words)[1])["answers"]]
    assert len(plain) == 2
    pinned = json.loads(run(*words, "--pin", "Ann", "--ban", plain[0])[1])["answers"]
    assert [a["text"] for a in pinned] == ["Ann", plain[1]]
    assert pinned[1]["round_trip"] is None
    assert len(json.loads(run(*words, "--max-answers", 1)[1])["answers"]) == 1
    elsewhere = (*words[:1], f"Was it in 1875? {QUESTION}", *words[2:])  # the passages do not mention this year
    assert json.loads(run(*elsewhere)[1])["answers"] == []
    assert len(json.loads(run(*elsewhere, "--no-coverage-check")[1])["answers"]) == 2
    code, out, _ = run("ask", QUESTION, "--corpus", "facts", "--stop-above", 0)
    assert code == 0
    assert "No answer" in out


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["ask", ""], 2, "the question is empty"),
        (["ask", "who\x00"], 2, "question 'who\\x00' cannot be read: it contains a NUL character"),
        (["ask", "who " * 25_000], 2, "the question has 99999 characters; at most"),
        (["ask", "who", "--pin", "a\udcff"], 2, "pin 'a\\udcff' cannot be read: it contains a lone surrogate"),
        (["ask", "who", "--corpus", "a\udcff"], 2, "lone surrogate"),
        (["index", "--passages", ".", "--name", "a\udcff"], 2, "lone surrogate"),
        (["ask", "who", "--top-k", "0"], 2, "at least 1"),
        (["evaluate", "--questions", "x.json", "--limit", "0"], 2, "the limit is 0; it must be at least 1"),
        (["ask", "who", "--stop-above", "2"], 2, "between 0 and 1"),
        (["ask", "who", "--system", "ambigpromt"], 2, "Did you mean 'ambigprompt'?"),
        (["ask", "who", "--corpus", "nowhere"], 2, "nowhere"),
        (["index", "--passages", "/no/such/file.tsv"], 2, "no such file"),
        (["train", "reader"], 2, "train reader needs --reading"),
        (["train", "seq2seq"], 2, "needs --init: a folder or hub name"),
        (["train", "disambiguation", "--init", "small"], 2, "train disambiguation needs --ambignq FILE"),
        (["train", "answerer", "--evaluate-every", "0"], 2, "--evaluate-every is 0; it must be at least 1"),
    ],
)
def test_mistakes_cost_one_line(run: Run, words: list[str], code: int, says: str) -> None:
    got, out, err = run(*words)
    assert (got, out) == (code, "")
    assert err.startswith("error: ")
    assert says in err
    assert err.count("\n") == 1


def test_more_passages_than_the_corpus_has(run: Run, home: Path) -> None:
    run("index", "--passages", home / "facts.tsv")
    words = ("--corpus", "facts", "--json")
    code, out, err = run("ask", QUESTION, *words, "--top-k", 4)
    assert (code, out) == (2, "")
    assert err == "error: 4 passages were requested, but corpus 'facts' has only 3; lower --top-k\n"
    code, out, _ = run("ask", QUESTION, *words)  # the default is more, and reads the whole corpus
    assert (code, len(json.loads(out)["passages"]), json.loads(out)["info"]["settings"]["top_k"]) == (0, 3, 3)
    questions = home / "q.jsonl"
    questions.write_text(json.dumps({"id": "1", "question": QUESTION, "answers": ["Natalie Wood"]}) + "\n")
    code, out, err = run("evaluate", "--questions", questions, *words, "--top-k", 4)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert run("evaluate", "--questions", questions, *words)[0] == 0


def test_names_of_files_in_another_encoding(run: Run, home: Path) -> None:
    folder = home / "files"
    folder.mkdir()
    (folder / "facts\udcff.tsv").write_text(FACTS)
    (folder / "bad\udcff.pdf").write_bytes(b"no PDF")
    code, out, err = run("index", "--passages", folder, "--name", "facts")
    assert (code, "error" in err) == (0, False)  # a slow machine prints its progress there
    assert "bad?.pdf: the file is skipped" in out
    out.encode()
    assert run("index", "--passages", folder, "--name", "facts")[1].startswith("corpus 'facts' is up to date")
    questions = home / "q\udcff.jsonl"
    questions.write_text(json.dumps({"id": "1", "question": QUESTION, "answers": ["Natalie Wood"]}) + "\n")
    code, out, _ = run("evaluate", "--questions", questions, "--corpus", "facts", "--json", "--out", home / "run")
    assert (code, json.loads(out)["provenance"]["questions"]) == (0, "q?.jsonl")
    out.encode()


def test_systems(run: Run) -> None:
    code, out, _ = run("systems", "--json")
    assert code == 0
    rows = json.loads(out)
    assert {"name", "needs", "ready", "source"} <= set(rows[0])
    assert "scripted" not in [r["name"] for r in rows]
    code, out, _ = run("systems")
    assert code == 0
    assert all(r["name"] in out and r["expect"] in out for r in rows)
    assert [r["name"] for r in rows if "often incomplete or wrong" in r["expect"]]


@pytest.mark.parametrize("words", [[], ["fly"], ["ask"], ["ask", "q", "--top-k", "many"]])
def test_wrong_usage_is_argparse_s(run: Run, words: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run(*words)
    assert caught.value.code == 2


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (KeyboardInterrupt(), 130, "error: stopped"),
        (MemoryError(), 1, "not enough memory"),
        (OSError(28, "No space left on device", "/disk/file"), 1, "error: /disk/file No space left on device"),
        (BrokenPipeError(), 1, ""),
    ],
)
def test_what_the_machine_refuses(
    monkeypatch: pytest.MonkeyPatch, run: Run, error: BaseException, code: int, says: str
) -> None:
    def fail(*_: Any) -> int:
        raise error

    monkeypatch.setattr("core.commands.systems.run", fail)
    got, out, err = run("systems")
    assert (got, out) == (code, "")
    assert says in err
    assert err.count("\n") == bool(says)


@pytest.mark.slow
def test_a_real_process_prints_one_object_and_nothing_else(home: Path) -> None:
    def python(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "core", *words], cwd=ROOT, capture_output=True, text=True, timeout=120, env={**os.environ}
        )

    assert python("index", "--passages", str(home / "facts.tsv")).returncode == 0
    done = python("ask", QUESTION, "--corpus", "facts", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1
    assert json.loads(done.stdout)["answers"]
    bad = python("ask", "")
    assert (bad.returncode, bad.stdout, bad.stderr) == (2, "", "error: the question is empty; type a question\n")


def test_an_evaluation_in_which_everything_failed(run: Run, home: Path) -> None:
    questions = home / "q.jsonl"
    row = {"id": "1", "question": "Who?", "answers": ["Ann"], "passages": [{"id": "p", "title": "T", "text": "Ann did."}]}
    questions.write_text(json.dumps(row) + "\n")
    code, out, err = run("evaluate", "--questions", questions, "--json")
    assert (code, err, json.loads(out)["failed"]) == (0, "", 0)
    questions.write_text(json.dumps(row | {"passages": []}) + "\n")
    code, out, err = run("evaluate", "--questions", questions, "--json")
    assert (code, json.loads(out)["failed"]) == (1, 1)
    assert err.splitlines()[-1].startswith("error: every question failed; the first one: the question has an empty list")
    code, out, err = run("evaluate", "--questions", questions, "--set", "tabel=1")
    assert (code, out) == (2, "")
    assert "Did you mean 'table'?" in err
