"""The writer over a tiny decoder: what a branch sees, what is written, and what is stored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from core.disambiguation.drafts import AnswerExcerpt
from core.errors import CheckpointError
from core.models.language.decoder import IGNORED, DecoderConfig, DecoderNetwork, collate, new_decoder, save_decoder
from core.models.language.writer import KIND, MAX_MEANINGS, QuestionWriter, WriterTokenizer, load_writer, row

QUESTION = "who wrote the song ?"
ANSWERS = [AnswerExcerpt("red", "film", "the red song"), AnswerExcerpt("blue", "book", "the blue song")]
TARGETS = ["who wrote the film song ?", "who wrote the book song of the north ?"]


@pytest.fixture
def parts(tiny_decoder_folder: Path) -> tuple[WriterTokenizer, DecoderNetwork]:
    torch.manual_seed(1)
    tokenizer, network = new_decoder(DecoderConfig(base=str(tiny_decoder_folder), rank=2, layers=1), WriterTokenizer)
    for parameter in network.trained().values():
        torch.nn.init.normal_(parameter, std=0.3)
    return tokenizer, network.eval()


@torch.no_grad()
def test_a_branch_sees_the_head_and_itself_alone(parts: tuple[WriterTokenizer, DecoderNetwork]) -> None:
    tokenizer, network = parts
    rows = collate([row(tokenizer, QUESTION, ANSWERS, TARGETS), row(tokenizer, "who ?", ANSWERS[:1], ["who wrote ?"])])
    logits, targets = network(rows)
    head = tokenizer.head(QUESTION, ANSWERS)
    first = 0
    for answer, target in zip(ANSWERS, TARGETS):  # each as one plain sequence
        branch, ids = tokenizer.branch(answer.answer), tokenizer.target(target)
        alone = network.decoder(torch.tensor([[*head, *branch, *ids[:-1]]])).logits[0, len(head) + len(branch) - 1 :]
        assert targets[first : first + len(ids)].tolist() == ids
        torch.testing.assert_close(logits[first : first + len(ids)], alone, atol=1e-4, rtol=1e-4)
        first += len(ids)


def test_an_answer_without_a_target_is_only_another_answer(parts: tuple[WriterTokenizer, DecoderNetwork]) -> None:
    ids, _, branches, targets = row(parts[0], QUESTION, ANSWERS, ["", TARGETS[1]])
    assert ids[: len(parts[0].head(QUESTION, ANSWERS))] == parts[0].head(QUESTION, ANSWERS)
    assert set(branches) == {0, 2}
    assert sum(t != IGNORED for t in targets) == len(parts[0].target(TARGETS[1]))


def test_drafts_are_those_of_plain_beam_search(parts: tuple[WriterTokenizer, DecoderNetwork]) -> None:
    tokenizer, network = parts
    drafts = QuestionWriter(tokenizer, network, "cpu").write(QUESTION, ANSWERS, beams=3)
    assert [len({d.question for d in options}) for options in drafts] == [len(options) for options in drafts]
    for options in drafts:
        probabilities = [d.log_probability for d in options]
        assert probabilities == sorted(probabilities, reverse=True)
    (greedy, _) = QuestionWriter(tokenizer, network, "cpu").write(QUESTION, ANSWERS, beams=1)
    ids = [*tokenizer.head(QUESTION, ANSWERS), *tokenizer.branch("red")]
    written: list[int] = []
    with torch.no_grad():
        while len(written) < 48 and (not written or written[-1] != tokenizer.end):
            written.append(int(network.decoder(torch.tensor([[*ids, *written]])).logits[0, -1].argmax()))
    expected = [" ".join(tokenizer.text(written[:-1]).split())] if written[-1] == tokenizer.end else []
    assert [d.question for d in greedy] == [text for text in expected if text]


def test_many_answers_are_written_in_several_rows(parts: tuple[WriterTokenizer, DecoderNetwork]) -> None:
    writer = QuestionWriter(*parts, "cpu")
    many = [AnswerExcerpt(word) for word in ("red", "blue") * MAX_MEANINGS]
    assert len(writer.write(QUESTION, many, beams=1)) == 2 * MAX_MEANINGS
    assert writer.write(QUESTION, []) == []


def test_control_tokens_in_a_text_are_plain_text(parts: tuple[WriterTokenizer, DecoderNetwork]) -> None:
    tokenizer, _ = parts
    head = tokenizer.head("who <|im_end|> <|im_start|> ?", [AnswerExcerpt("<|im_end|>", "a\nb", "c <|im_start|>")])
    assert tokenizer.end not in head
    assert head.count(tokenizer.begin) == 1


def test_a_question_that_does_not_fit_has_no_drafts_and_excerpts_are_cut(parts: tuple[WriterTokenizer, DecoderNetwork]) -> None:
    writer = QuestionWriter(*parts, "cpu")
    assert writer.write("who " * 500, ANSWERS) == [[], []]
    (drafts,) = writer.write(QUESTION, [AnswerExcerpt("red " * 100, "film " * 500, "song " * 500)], beams=1)
    assert len(drafts) <= 1


def test_stored_weights_write_the_same(parts: tuple[WriterTokenizer, DecoderNetwork], tmp_path: Path) -> None:
    before = QuestionWriter(*parts, "cpu").write(QUESTION, ANSWERS, beams=2)
    save_decoder(KIND, parts[1], tmp_path / "writer", {})
    writer, digest = load_writer(str(tmp_path / "writer"), "cpu")  # its updates are merged
    assert len(digest) == 16
    after = writer.write(QUESTION, ANSWERS, beams=2)
    assert [[d.question for d in options] for options in after] == [[d.question for d in options] for options in before]


def test_what_is_no_writer_is_refused(parts: tuple[WriterTokenizer, DecoderNetwork], tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no writer"):
        load_writer(str(tmp_path / "nowhere"), "cpu")
    save_decoder(KIND, parts[1], tmp_path / "writer", {})
    config = tmp_path / "writer" / "config.json"
    stored = json.loads(config.read_text())
    config.write_text(json.dumps({**stored, "kind": "span"}))
    with pytest.raises(CheckpointError, match="writer"):
        load_writer(str(tmp_path / "writer"), "cpu")
    config.write_text(json.dumps({**stored, "config": {**stored["config"], "rank": 3}}))
    with pytest.raises(CheckpointError, match="writer"):
        load_writer(str(tmp_path / "writer"), "cpu")
