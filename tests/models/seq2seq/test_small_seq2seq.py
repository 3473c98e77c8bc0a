"""The small encoder-decoder and one-pass writing: the copy mechanism, kept states, checkpoints, sampling, merging.  Models are tiny and random."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tiny_models import word_tokenizer

from core.errors import CheckpointError, InputError
from core.models.loading import finding
from core.models.seq2seq.decoding import (
    AnswerSetWriter,
    SequenceDecoding,
    WrittenSequence,
    in_passage_words,
    join_passages,
    merge,
    read_answers,
    write,
)
from core.models.seq2seq.fid import FidAnswerer, load_fid, make_fid
from core.models.seq2seq.network import FidConfig
from core.models.seq2seq.rewriter import Seq2SeqRewriter
from core.models.seq2seq.small import SmallConfig, SmallSeq2Seq, from_span, load_small, make_small, save_small
from core.models.span.checkpoints import save_span_network
from core.models.span.network import SpanConfig, SpanNetwork
from core.training import seq2seq
from core.training.freezing import freeze
from core.types import EOI, AnsweringModel, Passage, RetrievedPassage

Network = tuple[SmallSeq2Seq, Any]  # and its tokenizer
QUESTION = "colour of the ball ?"
TEXTS = [("north", "the ball is red"), ("south", "the ball of the boat is blue"), ("east", "a car")]
PASSAGES = [RetrievedPassage(Passage(f"p{i}", *text), i, 0.5) for i, text in enumerate(TEXTS, 1)]


def config(**changes: Any) -> SmallConfig:
    return SmallConfig(inner=16, feed_forward=32, **changes)


@pytest.fixture
def small(one_thread: None, tiny_bert_folder: Path) -> Network:
    sizes = config(base=str(tiny_bert_folder), max_tokens=48, max_prompt_tokens=32, max_answer_tokens=8)
    network, tokenizer = make_small(sizes, seed=1)
    return network.eval(), tokenizer


def batch_of(network: Any, tokenizer: Any, previous: list[str] | None = None) -> Any:
    return network.collate(tokenizer, [(QUESTION, TEXTS, previous or []), ("who ?", TEXTS[:1], [])])


def test_decoding_token_by_token_is_decoding_at_once(small: Network) -> None:
    network, tokenizer = small
    ids = torch.tensor([[network.start, 8, 9], [network.start, 10, 11]])
    with torch.no_grad():
        states, mask = network.encode(batch_of(network, tokenizer))
        whole = network.decode(states, mask, ids).logits
        assert torch.allclose(whole.exp().sum(-1), torch.ones(2, 3), atol=1e-3)  # log probabilities
        cache, parts = None, []
        for token in ids.split(1, dim=1):
            out = network.decode(states, mask, token, cache, keep=True)
            cache, parts = out.past_key_values, [*parts, out.logits]
        assert torch.allclose(torch.cat(parts, 1), whole, atol=1e-4)
        wide = network.repeat_cache(cache, 2)
        assert wide.ids.shape == (4, 3)
        assert torch.equal(wide.keys[0], wide.keys[1])


def test_padding_changes_nothing_and_is_never_copied(small: Network) -> None:
    network, tokenizer = small
    with torch.no_grad():
        (_, states), (_, mask) = network.encode(batch_of(network, tokenizer))
        alone_states, alone_mask = network.encode(network.collate(tokenizer, [("who ?", TEXTS[:1], [])]))
        ids = torch.full((1, 1), network.start)
        together = network.decode(states[None], mask[None], ids).logits
        alone = network.decode(alone_states, alone_mask, ids).logits
    assert torch.allclose(together, alone, atol=1e-3)
    assert set(mask[mask > 0].tolist()) == set(alone_mask[alone_mask > 0].tolist())


def test_what_follows_a_copied_token_in_the_source_is_likely(small: Network) -> None:
    """Without any training: after "the", the words that stand behind "the" in a passage; the hint is what makes the difference."""
    network, tokenizer = small
    the, ball = tokenizer.convert_tokens_to_ids(["the", "ball"])
    with torch.no_grad():
        network.gate.weight.zero_()
        network.gate.bias.fill_(-4.0)  # copies
        network.query.weight.zero_()
        network.query.bias.zero_()
        states, mask = network.encode(network.collate(tokenizer, [("who ?", [("north", "red ball the boat")], [])]))
        ids = torch.tensor([[network.start, the]])
        after = network.decode(states, mask, ids).logits[0, -1].exp()
    boat = tokenizer.convert_tokens_to_ids("boat")
    assert after[boat] > 3 * after[ball]
    assert after[network.end] < after[boat]


def test_an_answer_ends_where_the_edges_say(small: Network) -> None:
    """The same token, followed by the same one, may end an answer in one source and not in the other."""
    network, tokenizer = small
    red, ball = tokenizer.convert_tokens_to_ids(["red", "ball"])
    ids = torch.tensor([[network.start, red, ball]])
    with torch.no_grad():
        network.close.fill_(1.0)
        states, mask = network.encode(network.collate(tokenizer, [("who ?", [("north", "red ball the boat")], [])]))
        cache = network.decode(states, mask, ids[:, :1], keep=True).past_key_values
        ends = []
        for score in (-6.0, 6.0):
            cache.edges[..., 1] = torch.where(mask - 1 == ball, score, 0.0)
            ends.append(network.decode(states, mask, ids[:, 1:], cache).logits[0, -1].exp())
    left, right = (float(e[network.end] + e[network.separator]) for e in ends)
    assert right > 5 * left


def test_the_edge_of_a_span_model_is_where_answers_begin(tiny_bert_folder: Path, make_tiny: Any) -> None:
    span = SpanNetwork(make_tiny("bert"), SpanConfig(base=str(tiny_bert_folder)))
    network, _ = from_span(span, config())
    assert torch.equal(network.edge.weight, span.head.edges.weight)
    assert network.config.base == str(tiny_bert_folder)
    weights = network.encoder.state_dict()
    assert all(torch.equal(weights[name], tensor) for name, tensor in span.encoder.state_dict().items())


def test_a_decoder_over_a_bundled_encoder_holds_itself_alone(
    tiny_bert_folder: Path, make_tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several decoders over one encoder cost the repository little; over other weights than they were trained with they are refused."""
    monkeypatch.setattr(finding, "BUNDLED", tmp_path)
    monkeypatch.setattr(seq2seq, "BUNDLED", tmp_path)
    save_span_network(SpanNetwork(make_tiny("bert"), SpanConfig(base=str(tiny_bert_folder))), tmp_path / "reader")
    network, _ = seq2seq.start("small:reader", "separate", "spliced", 0)
    freeze(network, 2)
    seq2seq.check_repeat(network, 1)
    save_small(network, tmp_path / "writer")
    assert not holds_an_encoder(tmp_path / "writer")
    again, _ = load_small(tmp_path / "writer")
    stored = network.state_dict()
    assert all(torch.allclose(v, stored[k], atol=1e-2) for k, v in again.state_dict().items())

    torch.manual_seed(9)
    other = SpanNetwork(make_tiny("bert"), SpanConfig(base=str(tiny_bert_folder)))
    with torch.no_grad():
        other.head.edges.bias.add_(1.0)
    save_span_network(other, tmp_path / "reader")
    with pytest.raises(CheckpointError, match=r"encoder of checkpoint 'reader'.* train it again with --init small:reader"):
        load_fid(str(tmp_path / "writer"), "cpu")

    trained, _ = seq2seq.start("small:reader", "separate", "spliced", 0)
    freeze(trained, 0)  # no layer frozen: the encoder will be its own
    save_small(trained, tmp_path / "own")
    assert holds_an_encoder(tmp_path / "own")
    load_small(tmp_path / "own")


@pytest.mark.parametrize("prompting", ["interleaved", "separate"])
def test_previous_answers_reach_the_passages_where_they_should(prompting: Any, tiny_bert_folder: Path) -> None:
    network, tokenizer = make_small(config(base=str(tiny_bert_folder), prompting=prompting))
    one, two = (network.collate(tokenizer, [(QUESTION, TEXTS, [answer])]) for answer in ("red", "blue"))
    with torch.no_grad():
        a, b = (network.encode(batch)[0][:, one.prompt_tokens :] for batch in (one, two))
    assert torch.allclose(a, b, atol=1e-5) == (prompting == "separate")


def test_it_serves_the_iterative_loop(small: Network) -> None:
    answerer = FidAnswerer(*small, device="cpu")
    assert isinstance(answerer, AnsweringModel)
    proposal = answerer.propose(QUESTION, PASSAGES, ["red"])
    assert proposal.candidates
    assert 0.0 <= proposal.eoi_probability <= 1.0
    assert answerer.propose(QUESTION, [], []).candidates  # no passage: from the prompt alone


def holds_an_encoder(folder: Path) -> bool:
    return any(name.startswith("encoder.") for name in load_file(folder / "model.safetensors"))


@pytest.mark.parametrize(
    ("change", "message"),
    [(None, "incomplete or damaged"), ({"feed_forward": 48}, "do not fit|incomplete or damaged"), ({"colour": 1}, "colour")],
    ids=["no weights", "other width", "unknown option"],
)
def test_a_damaged_checkpoint_is_named(
    change: dict[str, int] | None, message: str, tiny_bert_folder: Path, tmp_path: Path
) -> None:
    network, _ = make_small(config(base=str(tiny_bert_folder)))
    save_small(network, tmp_path)
    if change is None:
        (tmp_path / "model.safetensors").unlink()
    else:
        stored = json.loads((tmp_path / "config.json").read_text())
        (tmp_path / "config.json").write_text(json.dumps(stored | {"config": stored["config"] | change}))
    with pytest.raises(CheckpointError, match=message) as refusal:
        load_fid(str(tmp_path), "cpu")
    assert str(tmp_path) in str(refusal.value)


@pytest.mark.parametrize(
    "values",
    [{"prompting": "learned"}, {"max_tokens": 16}, {"max_tokens": 600}, {"inner": 30}, {"layers": 0}, {"target": "set"}],
)
def test_a_bad_config_names_the_value(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=str(next(iter(values.values())))):
        SmallConfig(**values)


class ScriptedNetwork:
    """A network that says what a table says after each token; everything around it is the real thing."""

    uncased = False

    def __init__(self, tokenizer: Any, table: dict[str, dict[str, float]]) -> None:
        self.tokenizer, self.table = tokenizer, table
        self.start, self.eoi = tokenizer.pad_token_id, tokenizer.convert_tokens_to_ids(EOI)
        self.config = FidConfig(max_answer_tokens=8)

    def collate(self, tokenizer: Any, jobs: Any, max_tokens: int | None = None) -> Any:
        self.jobs, self.max_tokens = jobs, max_tokens
        return torch.zeros(len(jobs), 1)

    def encode(self, batch: Any) -> tuple[torch.Tensor, torch.Tensor]:
        return batch, batch

    def repeat_cache(self, cache: Any, k: int) -> Any:
        return None

    def decode(self, states: Any, mask: Any, ids: torch.Tensor, cache: Any = None, keep: bool = False) -> Any:
        logits = torch.full((ids.shape[0], 1, len(self.tokenizer)), -30.0)
        for row, token in enumerate(ids[:, -1].tolist()):
            for word, p in self.table[self.tokenizer.convert_ids_to_tokens(token)].items():
                logits[row, 0, self.tokenizer.convert_tokens_to_ids(word)] = float(torch.tensor(p).log())
        return SimpleNamespace(logits=logits, past_key_values=None)


TABLE = {
    "<pad>": {"red": 0.6, "blue": 0.4},
    "red": {";": 0.6, "</s>": 0.4},
    "blue": {"</s>": 0.9, ";": 0.1},
    ";": {"green": 0.7, "red": 0.3},
    "green": {"</s>": 0.8, ";": 0.2},
    "</s>": {"</s>": 1.0},
}


def writer(writing: SequenceDecoding | None = None, joined: int = 0) -> AnswerSetWriter:
    tokenizer = word_tokenizer("t5")
    tokenizer.add_special_tokens({"additional_special_tokens": [EOI]})
    network = ScriptedNetwork(tokenizer, TABLE)
    answerer = SimpleNamespace(tokenizer=tokenizer, network=network, device=torch.device("cpu"), lock=threading.Lock())
    return AnswerSetWriter(answerer, writing, joined)


def answers(*options: Any, **changes: Any) -> list[tuple[str, float]]:
    (candidates,) = writer(SequenceDecoding(*options, **changes)).write_many([(QUESTION, PASSAGES)])
    return [(c.text, round(c.probability, 3)) for c in candidates]


def test_greedy_writes_the_set_with_each_answers_probability() -> None:
    assert answers() == [("red", 0.6), ("green", 0.7)]


def test_a_rewriter_decodes_while_it_holds_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tokenizer is not thread-safe."""
    answerer, locked = writer().answerer, list[bool]()
    decode = answerer.tokenizer.decode

    def watched(*args: Any, **options: Any) -> str:
        locked.append(answerer.lock.locked())
        return str(decode(*args, **options))

    monkeypatch.setattr(answerer.tokenizer, "decode", watched)
    (candidates,) = Seq2SeqRewriter(answerer, 1).rewrite_many([(QUESTION, "red", [], [])])
    assert len(candidates) == 1
    assert locked == [True]


def test_a_bias_against_the_end_writes_more() -> None:
    assert [text for text, _ in answers(end_bias=-3.0)][:2] == ["red", "green"]
    assert [text for text, _ in answers(end_bias=3.0)] == ["red"]


def test_diverse_beams_differ_and_are_merged() -> None:
    assert dict(answers("diverse-beam", 3, diversity=2.0)).keys() == {"red", "blue", "green"}
    assert answers("diverse-beam", 1) == answers()


def test_samples_are_reproducible_and_follow_the_probabilities() -> None:
    share = dict(answers("nucleus", 64, top_p=1.0))
    assert share == dict(answers("nucleus", 64, top_p=1.0))
    assert 0.4 < share["red"] < 0.85  # 0.6 first, and some after a separator
    assert 0.25 < share["blue"] < 0.55
    assert dict(answers("nucleus", 64, top_p=1.0, seed=1)) != share
    assert "blue" not in dict(answers("nucleus", 32, top_p=0.5))
    assert "blue" not in dict(answers("top-k", 32, top_k=1))
    assert dict(answers("top-k", 64, top_k=2)).keys() == {"red", "blue", "green"}


def test_many_questions_are_written_as_one_by_one() -> None:
    nucleus = writer(SequenceDecoding("nucleus", 4, top_p=1.0))
    jobs = [(QUESTION, PASSAGES), ("who ?", PASSAGES[:1])]
    assert nucleus.write_many(jobs) == [nucleus.write_many([job])[0] for job in jobs]


def test_the_model_itself_writes_alike_alone_and_together(make_tiny: Any) -> None:
    tokenizer = word_tokenizer("t5")
    network = make_fid(make_tiny("t5"), tokenizer, FidConfig("separate", max_answer_tokens=6)).eval()

    def sequences(jobs: list[Any], *options: Any) -> list[list[tuple[int, ...]]]:
        with torch.inference_mode():
            encoded = network.encode(network.collate(tokenizer, jobs))
            beams = write(network, tokenizer, *encoded, SequenceDecoding(*options), ["a", "b"][: len(jobs)])
        return [[sequence.ids for sequence in beam] for beam in beams]

    jobs = [(QUESTION, TEXTS, ()), ("who ?", TEXTS[:1], ())]
    both = sequences(jobs, "diverse-beam", 3)
    assert both == [*sequences(jobs[:1], "diverse-beam", 3), *sequences(jobs[1:], "diverse-beam", 3)]
    assert sequences(jobs) == [beam[:1] for beam in both]  # the first beam is not punished


def test_joined_passages_are_one_row() -> None:
    one_row = writer(joined=1024)
    one_row.write_many([(QUESTION, PASSAGES)])
    network = one_row.answerer.network
    ((question, passages, previous),) = network.jobs
    assert (question, previous, network.max_tokens) == (QUESTION, (), 1024)
    assert passages == [("north", "the ball is red south : the ball of the boat is blue east : a car")]
    assert join_passages([PASSAGES[0].passage]).text == "the ball is red"


def test_a_long_row_is_cut_or_read_in_windows(small: Network) -> None:
    network, tokenizer = small
    long = [("north", "the ball is red " * 60)]
    cut = network.collate(tokenizer, [(QUESTION, long, [])], 60)
    assert cut.input_ids.shape[1] <= 96  # the base's positions
    assert int(cut.mask[1:].sum()) < 100
    assert network.collate(tokenizer, [(QUESTION, long, [])]).rows > 3


def test_answers_are_read_back() -> None:
    tokenizer = word_tokenizer("t5")
    ids = tokenizer("red ; the ball ; ;", add_special_tokens=False)["input_ids"]
    assert [text for text, _ in read_answers(tokenizer, WrittenSequence(tuple(ids), (0.0,) * len(ids)))] == ["red", "the ball"]
    assert read_answers(tokenizer, WrittenSequence((), ())) == []


def test_merging_counts_sequences_not_mentions() -> None:
    wise = ("Robert Wise", 0.9)
    merged = merge([[wise, wise], [("Wise", 0.4), ("Jerome Robbins", 0.2)], [wise]])
    assert merged == [("Robert Wise", 1.0), ("Jerome Robbins", pytest.approx(1 / 3))]
    assert merge([[("b", 0.2), ("a", 0.9)]]) == [("b", 0.2)]  # an article alone is no answer
    assert merge([]) == []
    linked = merge([[("dd", 0.5), ("db", 1.0), ("dd db", 0.5), ("db", 1.0)]])  # a longer answer links two that stand apart
    assert len({text for text, _ in linked}) == len(linked)


def test_an_uncased_answer_is_shown_as_the_passage_writes_it() -> None:
    passages = [RetrievedPassage(Passage("1", "T", "It was Élodie Muñoz-Ruiz."), 1, 1.0)]
    assert in_passage_words("elodie munoz - ruiz", passages, True) == "Élodie Muñoz-Ruiz"
    assert in_passage_words("elodie", passages, False) == "elodie"
    assert in_passage_words("nobody", passages, True) == "nobody"
    assert in_passage_words("elodie mun", passages, True) == "Élodie Muñoz"  # it broke off within a word
    assert in_passage_words("was", passages, True) == "was"
    assert in_passage_words("e", [], True) == "e"
    assert in_passage_words("?", passages, True) == "?"


@pytest.mark.parametrize(
    "values",
    [{"sequences": 0}, {"top_p": 0.0}, {"top_p": 1.5}, {"top_k": 0}, {"temperature": 0.0}, {"temperature": float("inf")}],
)
def test_bad_decoding_names_the_value(values: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(values.values()))}; it must be"):
        SequenceDecoding(**values)
