"""Training of the writer: its sources, its rows, and a short run from the command line."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest
import torch

from core.cli import main
from core.disambiguation.drafts import AnswerExcerpt
from core.errors import InputError
from core.models.language.decoder import DecoderConfig, new_decoder
from core.models.language.writer import WriterTokenizer, load_writer
from core.training.data.chunks import batches
from core.training.data.examples import MultiExample, read_multi
from core.training.data.mining import Miner
from core.training.writer import (
    WriterTask,
    ambignq_examples,
    annotated_writer_examples,
    condition_examples,
    list_examples,
    meaning_of,
)

PASSAGES = (("north", "the ball of the town is red"), ("south", "the boat is blue"), ("east", "a car"))
GOLD = (("red",), ("blue", "azure"))
QUESTION = "which colour is it ?"
OWN = ["which colour is the ball ? | which ?", "which colour is the boat ?"]
EXAMPLE = MultiExample(
    QUESTION,
    PASSAGES,
    GOLD,
    "made",
    extra={"questions": OWN, "supporting": ["p0", "p1"], "supporting_of": [["p0"], ["p1"]]},
)


def test_practice_questions_bring_the_passage_of_each_answer() -> None:
    (example,) = annotated_writer_examples([EXAMPLE, MultiExample("one", PASSAGES, GOLD[:1], "made", extra=EXAMPLE.extra)])
    assert [m.target for m in example.meanings] == ["which colour is the ball ?", "which colour is the boat ?"]
    first, second = (meaning_of(m.aliases, m.passages) for m in example.meanings)
    assert first == AnswerExcerpt("red", "north", "the ball of the town is red")
    assert second == AnswerExcerpt("blue", "south", "the boat is blue")
    drawn = {meaning_of(("azure", "sky"), PASSAGES, random.Random(n)) for n in range(20)}
    assert drawn == {AnswerExcerpt("azure"), AnswerExcerpt("sky")}  # no passage has them


def test_ambignq_pairs_without_a_passage_are_only_other_answers(tmp_path: Path) -> None:
    pairs = [{"question": q, "answer": list(names)} for q, names in zip(OWN, (("red",), ("green",)))]
    rows = [{"question": QUESTION, "annotations": [{"type": "multipleQAs", "qaPairs": pairs}]}]
    (tmp_path / "ambignq.json").write_text(json.dumps(rows))
    (example,) = ambignq_examples(tmp_path / "ambignq.json", Miner(list(PASSAGES)))
    assert [(m.target, m.passages) for m in example.meanings] == [("which colour is the ball ?", PASSAGES[:1]), ("", ())]
    rows[0]["annotations"][0]["qaPairs"] = pairs[1:] * 2
    (tmp_path / "ambignq.json").write_text(json.dumps(rows))
    assert ambignq_examples(tmp_path / "ambignq.json", Miner(list(PASSAGES))) == []


def multi_row(**changes: object) -> dict[str, object]:
    passages = [{"id": f"p{n}", "title": title, "text": text} for n, (title, text) in enumerate(PASSAGES)]
    answers = [list(names) for names in GOLD]
    return {"question": "default colour", "passages": passages, "answers": answers, "supporting": ["p0", "p1"], **changes}


def read(tmp_path: Path, *rows: dict[str, object]) -> list[MultiExample]:
    path = tmp_path / "multi.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return list(read_multi(path))


def test_conditions_of_manuals_are_put_in_brackets_and_lists_keep_the_question(tmp_path: Path) -> None:
    both, one, none = read(
        tmp_path, multi_row(conditions=["ball", "boat"]), multi_row(conditions=["ball", ""]), multi_row(question="which ?")
    )
    (example,) = condition_examples([both, one, none])
    assert [m.target for m in example.meanings] == ["default colour (ball)", "default colour (boat)"]
    (with_mark,) = condition_examples(read(tmp_path, multi_row(question="which ?", conditions=["ball", "boat"])))
    assert with_mark.meanings[0].target == "which (ball)?"
    assert [m.target for e in list_examples([none]) for m in e.meanings] == ["which ?"] * 2


def test_rows_are_the_same_for_a_seed_and_train(tiny_decoder_folder: Path) -> None:
    tokenizer, network = new_decoder(DecoderConfig(base=str(tiny_decoder_folder), rank=2, layers=2), WriterTokenizer)
    sources = annotated_writer_examples([EXAMPLE])
    task = WriterTask([(sources, 1.0)], [("made", sources)], tokenizer, 400)
    assert task.groups(0, 3) == task.groups(0, 3)
    optimizer = torch.optim.Adam([p for p in network.parameters() if p.requires_grad], 0.05)
    losses = []
    for _, (_, batch) in zip(range(30), batches(task, 0, 0)):
        loss = task.loss(network, batch, torch.device("cpu"))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert sum(losses[-5:]) < 0.7 * sum(losses[:5])
    assert set(task.evaluate(network.eval())) == {"made", "figure"}
    with pytest.raises(InputError, match="disambiguated question"):
        WriterTask([([], 1.0)], [], tokenizer, 400)


@pytest.mark.slow
def test_a_short_training_from_the_command_line(
    tiny_decoder_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMBISCOPE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AMBISCOPE_DEVICE", "cpu")
    manuals, lists = tmp_path / "manuals.jsonl.gz", tmp_path / "lists.jsonl"
    with gzip.open(manuals, "wt") as file:
        file.write(json.dumps(multi_row(conditions=["ball", "boat"])) + "\n")
    lists.write_text(json.dumps(multi_row(question="which ?")) + "\n")
    words = ["train", "writer", "--base", str(tiny_decoder_folder), "--rank", "2", "--layers", "1"]
    words += ["--manuals", str(manuals), "--lists", str(lists), "--batch-tokens", "300", "--precision", "fp32"]
    assert main([*words, "--steps", "2", "--out", str(tmp_path / "out")]) == 2
    assert "--ambignq" in capsys.readouterr().err  # people's questions are what it learns from
    pairs = [{"question": q, "answer": list(names)} for q, names in zip(OWN, GOLD)]
    rows = [{"question": QUESTION, "annotations": [{"type": "multipleQAs", "qaPairs": pairs}]}]
    (tmp_path / "ambignq.json").write_text(json.dumps(rows))
    words += ["--ambignq", str(tmp_path / "ambignq.json")]
    assert main([*words, "--steps", "2", "--out", str(tmp_path / "out")]) == 2  # no --passages
    corpus = "id\ttext\ttitle\n" + "".join(f"{n}\t{text} {'word ' * 15}\t{title}\n" for n, (title, text) in enumerate(PASSAGES))
    (tmp_path / "passages.tsv").write_text(corpus)
    words += ["--passages", str(tmp_path / "passages.tsv")]
    assert main([*words, "--steps", "2", "--out", str(tmp_path / "out")]) == 0
    writer, _ = load_writer(str(tmp_path / "out" / "last"), "cpu")
    assert len(writer.write(QUESTION, [AnswerExcerpt("red"), AnswerExcerpt("blue")])) == 2
