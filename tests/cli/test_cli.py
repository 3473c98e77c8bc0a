"""The command line: exit codes, one line on stderr, a clean stdout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import Run, write_jsonl

from core.settings import ROOT

QUESTION = "Who played Maria in West Side Story?"
ROW = {"id": "1", "question": QUESTION, "answers": ["Natalie Wood"]}


def test_index_then_ask(run: Run) -> None:
    code, out, _ = run("index", "--passages", "facts.tsv", "--json")
    assert (code, json.loads(out)["passages"]) == (0, 3)
    code, out, _ = run("index", "--passages", "facts.tsv")
    assert (code, out) == (0, "corpus 'facts' is up to date: 3 passages\n")
    code, out, _ = run("ask", QUESTION, "--corpus", "facts", "--top-k", 2, "--json")
    prediction = json.loads(out)
    assert (code, prediction["question"], prediction["system"]) == (0, QUESTION, "scripted")
    assert {"answers", "steps", "seconds"} <= set(prediction)
    assert [{"id", "title", "score"} <= set(passage) for passage in prediction["passages"]] == [True] * 2
    assert all({"text", "probability", "passages", "question"} <= set(answer) for answer in prediction["answers"])
    code, out, _ = run("ask", QUESTION, "--corpus", "facts")
    assert (code, out.startswith("1. "), " passages, " in out.splitlines()[-1]) == (0, True, True)
    assert "%" not in out.splitlines()[0]  # its probabilities are not calibrated


def test_pins_bans_and_limits(run: Run) -> None:
    run("index", "--passages", "facts.tsv")
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
    ("words", "message"),
    [
        (["ask", ""], "the question is empty"),
        (["ask", "who\x00"], "question 'who\\x00' cannot be read: it contains a NUL character"),
        (["ask", "who " * 25_000], "the question has 99999 characters; at most"),
        (["ask", "who", "--pin", "a\udcff"], "pin 'a\\udcff' cannot be read: it contains a lone surrogate"),
        (["ask", "who", "--corpus", "a\udcff"], "lone surrogate"),
        (["ask", "who", "--top-k", "0"], "at least 1"),
        (["evaluate", "--questions", "x.json", "--limit", "0"], "the limit is 0; it must be at least 1"),
        (["evaluate", "--questions", "x.json", "--seed", "-1"], "the seed is -1; it must be at least 0"),
        (["ask", "who", "--stop-above", "2"], "between 0 and 1"),
        (["ask", "who", "--system", "ambigpromt"], "Did you mean 'ambigprompt'?"),
        (["ask", "who", "--corpus", "nowhere"], "nowhere"),
        (["index", "--passages", "/no/such/file.tsv"], "no such file"),
        (["download", "ambignq-lite"], "Did you mean 'ambignq-light'"),
        (["evaluate", "--questions", "facts.tsv", "--repeat", "0"], "--repeat"),
        (["lm-server", "--port", "8123"], "core lm-server was removed: serve the model with llama.cpp or Ollama"),
        (["push", "minilm", "ada/mine"], "core push was removed: upload the checkpoint's folder with `hf upload"),
        (["train", "reranker", "--out", "x"], "core train reranker was removed: the reader says which answers are wrong"),
        (["train", "reader"], "train reader needs --reading"),
        (["train", "seq2seq"], "needs --init: a folder or hub name"),
        (["train", "disambiguation", "--init", "small"], "train disambiguation needs --ambignq FILE"),
        (["train", "retriever"], "needs --annotated FOLDER"),
        (["train", "passages"], "needs --annotated FOLDER"),
        (["train", "calibration"], "--annotated FOLDER"),
        (["train", "calibration", "--systems", "no-such", "--multi", "facts.tsv"], "no-such"),
        (["train", "calibration", "--skip", "-1"], "--skip is -1"),
        (["train", "answerer", "--evaluate-every", "0"], "--evaluate-every is 0; it must be at least 1"),
        (["train", "passages", "--freeze", "2"], "core train passages has no option --freeze; see python -m core train"),
        (["train", "reader", "--joined=0.5", "--models", "3"], "core train reader has no option --joined, --models; see"),
        (["train", "ambiguity", "more"], "core train ambiguity does not take 'more'; see python -m core train"),
    ],
)
def test_mistakes_cost_one_line(run: Run, words: list[str], message: str) -> None:
    code, out, err = run(*words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("error: ")
    assert message in err


def test_a_corpus_of_fewer_passages_than_the_default_is_read_whole(run: Run) -> None:
    run("index", "--passages", "facts.tsv")
    code, out, _ = run("ask", QUESTION, "--corpus", "facts", "--json")
    assert (code, len(json.loads(out)["passages"]), json.loads(out)["info"]["settings"]["top_k"]) == (0, 3, 3)


def test_names_of_files_in_another_encoding(run: Run, home: Path) -> None:
    folder = home / "files"
    folder.mkdir()
    (home / "facts.tsv").rename(folder / "facts\udcff.tsv")
    (folder / "bad\udcff.pdf").write_bytes(b"no PDF")
    code, out, err = run("index", "--passages", folder, "--name", "facts")
    assert (code, "error" in err) == (0, False)  # a slow machine prints its progress there
    assert "bad?.pdf: the file is skipped" in out
    out.encode()
    assert run("index", "--passages", folder, "--name", "facts")[1].startswith("corpus 'facts' is up to date")
    questions = write_jsonl(home / "q\udcff.jsonl", ROW)
    code, out, _ = run("evaluate", "--questions", questions, "--corpus", "facts", "--json", "--out", "run")
    assert (code, json.loads(out)["provenance"]["questions"]) == (0, "q?.jsonl")
    out.encode()


def test_systems(run: Run) -> None:
    code, out, _ = run("systems", "--json")
    rows = json.loads(out)
    assert (code, {"name", "needs", "ready", "source"} <= set(rows[0])) == (0, True)
    assert "scripted" not in [r["name"] for r in rows]
    assert {"scoring", "threshold"} <= {option["name"] for option in json.loads(run("systems", "one-pass", "--json")[1])}
    assert run("systems", "scripted", "--json") == (0, "[]\n", "")  # what it takes is for programs, not for people
    code, out, _ = run("systems")
    assert (code, [r["name"] for r in rows if r["name"] not in out or r["expect"] not in out]) == (0, [])


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "error: stopped"),
        (MemoryError(), 1, "not enough memory"),
        (OSError(28, "No space left on device", "/disk/file"), 1, "error: /disk/file No space left on device"),
        (BrokenPipeError(), 1, ""),
    ],
)
def test_machine_errors(monkeypatch: pytest.MonkeyPatch, run: Run, error: BaseException, code: int, message: str) -> None:
    def fail(*_: Any) -> int:
        raise error

    monkeypatch.setattr("core.commands.systems.run", fail)
    exit_code, out, err = run("systems")
    assert (exit_code, out, err.count("\n")) == (code, "", bool(message))
    assert message in err


@pytest.mark.slow
def test_a_real_process_prints_one_object_and_nothing_else(run: Run) -> None:
    def python(*words: str) -> tuple[int, str, str]:
        command = [sys.executable, "-m", "core", *words]
        process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, env={**os.environ})
        return process.returncode, process.stdout, process.stderr

    run("index", "--passages", "facts.tsv")
    code, out, err = python("ask", QUESTION, "--corpus", "facts", "--json")
    assert (code, out.count("\n"), err) == (0, 1, "")
    assert json.loads(out)["answers"]
    assert python("ask", "") == (2, "", "error: the question is empty; type a question\n")


def test_an_evaluation_in_which_everything_failed(run: Run, home: Path) -> None:
    row = {"id": "1", "question": "Who?", "answers": ["Ann"], "passages": [{"id": "p", "title": "T", "text": "Ann did."}]}
    questions = write_jsonl(home / "q.jsonl", row)
    code, out, err = run("evaluate", "--questions", questions, "--json")
    assert (code, err, json.loads(out)["failed"]) == (0, "", 0)
    write_jsonl(questions, row | {"passages": []})
    code, out, err = run("evaluate", "--questions", questions, "--json")
    assert (code, json.loads(out)["failed"]) == (1, 1)
    assert err.splitlines()[-1].startswith("error: every question failed; the first one: the question has an empty list")
    code, out, err = run("evaluate", "--questions", questions, "--set", "tabel=1")
    assert (code, out) == (2, "")
    assert "Did you mean 'table'?" in err
