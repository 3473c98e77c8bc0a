"""Disambig-F1: who reads, what counts, and that the bundled reader's figure stands under its own name."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny_models import tiny_bert_config, word_tokenizer

from core import types as t
from core.errors import CheckpointError
from core.evaluation.long_reader import load_long_reader, read_long
from core.metrics import metric
from core.metrics.base import Example
from core.models.span.squad import SquadReader, best_span
from core.settings import Settings

ASQA = "Disambig-F1"
BUNDLED = "Disambig-F1 (bundled reader, not comparable)"
PAIRS = (t.QAPair("Who won in 1990?", ("Ada Lund", "Lund")), t.QAPair("Who won in 2000?", ("Bo",)))
EXAMPLE = Example("Who won?", (t.Annotation("multiple", PAIRS),), ("Ada", "Cy"), long_answers=("Ada won, then Bo.",))


class Table:
    """Says what it is told of a year; the text that it reads is that of the answers."""

    weights = "none"

    def read(self, question: str, text: str) -> str:
        assert text == "Ada.\nCy."
        return "the Ada Lund" if "1990" in question else "Cy"


def test_the_words_of_each_meaning_count() -> None:
    named = read_long(Table(), "some/reader", EXAMPLE)
    bundled = read_long(Table(), "default", EXAMPLE)
    assert named is not None
    for readings, counted, other in ((named, ASQA, BUNDLED), (bundled, BUNDLED, ASQA)):
        example = Example(EXAMPLE.prompt, EXAMPLE.annotations, EXAMPLE.answers, readings=readings)
        assert metric(counted)(example) == 0.5  # all of Ada Lund, nothing of Bo
        assert metric(other)(example) is None
    assert read_long(Table(), "default", Example("Who?", EXAMPLE.annotations, ("Ada",))) is None  # not of ASQA
    assert metric(ASQA)(EXAMPLE) is None


def test_no_reader_where_none_is_set() -> None:
    assert load_long_reader(Settings()) is None
    with pytest.raises(CheckpointError, match="the reader '/no/such/folder' cannot be loaded"):
        load_long_reader(Settings(asqa_reader="/no/such/folder"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers import BertForQuestionAnswering

    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("squad")
    BertForQuestionAnswering(tiny_bert_config()).save_pretrained(path)
    word_tokenizer("bert").save_pretrained(path)
    return path


def test_a_reader_of_transformers_gives_a_span_or_nothing(folder: Path) -> None:
    reader = load_long_reader(Settings(asqa_reader=str(folder), device="cpu"))
    assert isinstance(reader, SquadReader)
    text = "The red ball, the blue car; the green door."
    assert reader.weights == SquadReader(str(folder), "cpu").weights != ""
    reader.network.qa_outputs.bias.data = torch.tensor([0.0, 0.0])
    assert reader.read("colour of the car ?", text) in text
    assert reader.read("colour of the car ?", "  ") == ""
    with torch.no_grad():
        reader.network.qa_outputs.weight.zero_()
    assert reader.read("colour of the car ?", text) == ""  # no span scores above the first token


def test_an_encoder_without_its_head_is_no_reader(tiny_bert_folder: Path) -> None:
    with pytest.raises(CheckpointError, match=r"is not a reader: it lacks qa_outputs"):
        SquadReader(str(tiny_bert_folder), "cpu")


def test_spans_end_after_they_start() -> None:
    starts, ends = torch.tensor([0.0, 5.0, 0.0]), torch.tensor([9.0, 0.0, 1.0])
    assert best_span(starts, ends, torch.tensor([True, True, True])) == (0, 0, 9.0)
    assert best_span(starts, ends, torch.tensor([False, True, True])) == (1, 2, 6.0)
    assert best_span(starts, ends, torch.tensor([False] * 3)) is None
