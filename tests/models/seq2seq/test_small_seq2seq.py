"""The small encoder-decoder and one-pass writing: the copy mechanism, kept states, checkpoints, sampling, merging.  Models are tiny and random."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_models import WORDS, word_tokenizer

from core.errors import CheckpointError, InputError
from core.models.loading import finding
from core.models.seq2seq import small as small_seq2seq
from core.models.seq2seq.decoding import (
    SequenceDecoding,
    Writer,
    WrittenSequence,
    in_passage_words,
    join_passages,
    merge,
    read_answers,
    write,
)
from core.models.seq2seq.fid import FidAnswerer, load_fid, make_fid
from core.models.seq2seq.network import IGNORED, FidConfig
from core.models.seq2seq.rewriter import Seq2SeqRewriter
from core.models.seq2seq.small import SmallConfig, SmallSeq2Seq, load_small, make_small, save_small
from core.training import seq2seq
from core.training.freezing import freeze
from core.types import EOI, AnsweringModel, Passage, RetrievedPassage

QUESTION = "colour of the ball ?"
TEXTS = [("north", "the ball is red"), ("south", "the ball of the boat is blue"), ("east", "a car")]
PASSAGES = [RetrievedPassage(Passage(f"p{i}", *text), i, 0.5) for i, text in enumerate(TEXTS, 1)]


def tokenizer() -> Any:
    own = word_tokenizer("bert")
    own.add_special_tokens({"additional_special_tokens": [EOI]}, replace_extra_special_tokens=False)
    own.eos_token = own.sep_token
    return own


@pytest.fixture
def small(make_tiny: Any) -> tuple[SmallSeq2Seq, Any]:
    own = tokenizer()
    torch.manual_seed(1)
    config = SmallConfig(max_tokens=48, max_prompt_tokens=32, max_answer_tokens=8, inner=16, feed_forward=32)
    return SmallSeq2Seq(make_tiny("bert"), config, own).eval(), own


def batch_of(network: Any, own: Any, previous: list[str] | None = None) -> Any:
    return network.collate(own, [(QUESTION, TEXTS, previous or []), ("who ?", TEXTS[:1], [])])


# ---------------------------------------------------------------- the network


def test_the_logits_are_log_probabilities(small: tuple[SmallSeq2Seq, Any]) -> None:
    network, own = small
    labels = torch.tensor([[8, 9, network.end], [10, network.end, IGNORED]])
    with torch.no_grad():
        logits = network(batch_of(network, own), labels)
    assert logits.shape == (2, 3, len(WORDS) + 4 + 1)
    assert torch.allclose(logits.exp().sum(-1), torch.ones(2, 3), atol=1e-3)


def test_decoding_token_by_token_is_decoding_at_once(small: tuple[SmallSeq2Seq, Any]) -> None:
    network, own = small
    ids = torch.tensor([[network.start, 8, 9], [network.start, 10, 11]])
    with torch.no_grad():
        states, mask = network.encode(batch_of(network, own))
        whole = network.decode(states, mask, ids).logits
        cache, parts = None, []
        for t in range(3):
            out = network.decode(states, mask, ids[:, t : t + 1], cache, keep=True)
            cache = out.past_key_values
            parts.append(out.logits)
        assert torch.allclose(torch.cat(parts, 1), whole, atol=1e-4)
        wide = network.repeat_cache(cache, 2)
        assert wide.ids.shape == (4, 3)
        assert torch.equal(wide.keys[0], wide.keys[1])


def test_padding_changes_nothing_and_is_never_copied(small: tuple[SmallSeq2Seq, Any]) -> None:
    network, own = small
    with torch.no_grad():
        states, mask = network.encode(batch_of(network, own))
        alone_states, alone_mask = network.encode(network.collate(own, [("who ?", TEXTS[:1], [])]))
        ids = torch.full((1, 1), network.start)
        together = network.decode(states[1:], mask[1:], ids).logits
        alone = network.decode(alone_states, alone_mask, ids).logits
    assert torch.allclose(together, alone, atol=1e-3)
    source = set(mask[1][mask[1] > 0].sub(1).tolist())
    assert source == set(alone_mask[alone_mask > 0].sub(1).tolist())


def test_what_follows_a_copied_token_in_the_source_is_likely(small: tuple[SmallSeq2Seq, Any]) -> None:
    """Without any training: after "the", the words that stand behind "the" in a passage; the hint is what makes the difference."""
    network, own = small
    the, ball = own.convert_tokens_to_ids(["the", "ball"])
    with torch.no_grad():
        network.gate.weight.zero_()
        network.gate.bias.fill_(-4.0)  # copies
        network.query.weight.zero_()
        network.query.bias.zero_()
        states, mask = network.encode(network.collate(own, [("who ?", [("north", "red ball the boat")], [])]))
        ids = torch.tensor([[network.start, the]])
        after = network.decode(states, mask, ids).logits[0, -1].exp()
    boat = own.convert_tokens_to_ids("boat")
    assert after[boat] > 3 * after[ball]
    assert after[network.end] < after[boat]


def test_an_answer_ends_where_the_edges_say(small: tuple[SmallSeq2Seq, Any]) -> None:
    """The same token, followed by the same one, may end an answer in one source and not in the other."""
    network, own = small
    red, ball = own.convert_tokens_to_ids(["red", "ball"])
    ids = torch.tensor([[network.start, red, ball]])
    with torch.no_grad():
        network.close.fill_(1.0)
        states, mask = network.encode(network.collate(own, [("who ?", [("north", "red ball the boat")], [])]))
        cache = network.decode(states, mask, ids[:, :1], keep=True).past_key_values
        ends = []
        for score in (-6.0, 6.0):
            cache.edges[..., 1] = torch.where(mask - 1 == ball, score, 0.0)
            ends.append(network.decode(states, mask, ids[:, 1:], cache).logits[0, -1].exp())
    left, right = (float(e[network.end] + e[network.separator]) for e in ends)
    assert right > 5 * left


def test_the_edge_of_a_span_model_is_where_answers_begin(tiny_bert_folder: Path, make_tiny: Any) -> None:
    from core.models.span.network import SpanConfig, SpanNetwork

    span = SpanNetwork(make_tiny("bert"), SpanConfig(base=str(tiny_bert_folder)))
    network, _ = small_seq2seq.from_span(span, SmallConfig(inner=16, feed_forward=32))
    assert torch.equal(network.edge.weight, span.head.edges.weight)
    assert network.config.base == str(tiny_bert_folder)
    own, theirs = network.encoder.state_dict(), span.encoder.state_dict()
    assert all(torch.equal(own[k], v) for k, v in theirs.items())


def test_a_decoder_over_a_bundled_encoder_holds_itself_alone(
    tiny_bert_folder: Path, make_tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several decoders over one encoder cost the repository little; over other weights than they were trained with they are refused."""
    from core.models.span.checkpoints import save_span_network
    from core.models.span.network import SpanConfig, SpanNetwork

    monkeypatch.setattr(finding, "BUNDLED", tmp_path)
    monkeypatch.setattr(seq2seq, "BUNDLED", tmp_path)
    save_span_network(SpanNetwork(make_tiny("bert"), SpanConfig(base=str(tiny_bert_folder))), tmp_path / "reader")
    network, _ = seq2seq.start("small:reader", "separate", "spliced", 0)
    freeze(network, 2)
    seq2seq.check_repeat(network, 1)
    save_small(network, tmp_path / "writer")
    assert not any(name.startswith("encoder.") for name in _names(tmp_path / "writer"))
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
    assert any(name.startswith("encoder.") for name in _names(tmp_path / "own"))
    load_small(tmp_path / "own")


@pytest.mark.parametrize("prompting", ["interleaved", "separate"])
def test_previous_answers_reach_the_passages_where_they_should(prompting: Any, make_tiny: Any) -> None:
    own = tokenizer()
    network = SmallSeq2Seq(make_tiny("bert"), SmallConfig(prompting=prompting, inner=16, feed_forward=32), own).eval()
    with torch.no_grad():
        one, p = (batch := network.collate(own, [(QUESTION, TEXTS, ["red"])])), batch.prompt_tokens
        two = network.collate(own, [(QUESTION, TEXTS, ["blue"])])
        a, b = network.encode(one)[0][:, p:], network.encode(two)[0][:, p:]
    assert torch.allclose(a, b, atol=1e-5) == (prompting == "separate")


def test_it_serves_the_iterative_loop(small: tuple[SmallSeq2Seq, Any]) -> None:
    answerer = FidAnswerer(*small, device="cpu")
    assert isinstance(answerer, AnsweringModel)
    proposal = answerer.propose(QUESTION, PASSAGES, ["red"])
    assert proposal.candidates
    assert 0.0 <= proposal.eoi_probability <= 1.0
    assert answerer.propose(QUESTION, [], []).candidates  # no passage: from the prompt alone


def _names(folder: Path) -> list[str]:
    from safetensors import safe_open

    with safe_open(folder / "model.safetensors", "pt") as file:
        return list(file.keys())


@pytest.mark.parametrize(
    ("how", "message"),
    [("no weights", "incomplete or damaged"), ("other width", "do not fit|incomplete or damaged"), ("unknown", "colour")],
)
def test_a_damaged_checkpoint_is_named(how: str, message: str, tiny_bert_folder: Path, tmp_path: Path) -> None:
    network, _ = make_small(SmallConfig(base=str(tiny_bert_folder), inner=16, feed_forward=32))
    folder = tmp_path / "small"
    save_small(network, folder)
    stored = json.loads((folder / "config.json").read_text())
    if how == "no weights":
        (folder / "model.safetensors").unlink()
    elif how == "other width":
        (folder / "config.json").write_text(json.dumps(stored | {"config": stored["config"] | {"feed_forward": 48}}))
    else:
        (folder / "config.json").write_text(json.dumps(stored | {"config": {"colour": 1}}))
    with pytest.raises(CheckpointError, match=message) as caught:
        load_fid(str(folder), "cpu")
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [{"prompting": "learned"}, {"max_tokens": 16}, {"max_tokens": 600}, {"inner": 30}, {"layers": 0}, {"target": "set"}],
)
def test_a_bad_config_names_the_value(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=str(next(iter(values.values())))):
        SmallConfig(**values)


# ---------------------------------------------------------------- writing


class Told:
    """A network that says what a table says after each token; everything around it is the real thing."""

    uncased = False

    def __init__(self, own: Any, table: dict[str, dict[str, float]]) -> None:
        self.own, self.table = own, table
        self.start, self.eoi = own.pad_token_id, own.convert_tokens_to_ids(EOI)
        self.config = FidConfig(max_answer_tokens=8)

    def collate(self, own: Any, jobs: Any, max_tokens: int | None = None) -> Any:
        self.jobs, self.max_tokens = jobs, max_tokens
        return torch.zeros(len(jobs), 1)

    def encode(self, batch: Any) -> tuple[torch.Tensor, torch.Tensor]:
        return batch, batch

    def repeat_cache(self, cache: Any, k: int) -> Any:
        return None

    def decode(self, states: Any, mask: Any, ids: torch.Tensor, cache: Any = None, keep: bool = False) -> Any:
        logits = torch.full((ids.shape[0], 1, len(self.own)), -30.0)
        for row, token in enumerate(ids[:, -1].tolist()):
            for word, p in self.table[self.own.convert_ids_to_tokens(token)].items():
                logits[row, 0, self.own.convert_tokens_to_ids(word)] = float(torch.tensor(p).log())
        return type("Out", (), {"logits": logits, "past_key_values": None})()


TABLE = {
    "<pad>": {"red": 0.6, "blue": 0.4},
    "red": {";": 0.6, "</s>": 0.4},
    "blue": {"</s>": 0.9, ";": 0.1},
    ";": {"green": 0.7, "red": 0.3},
    "green": {"</s>": 0.8, ";": 0.2},
    "</s>": {"</s>": 1.0},
}


def writer(writing: SequenceDecoding | None = None, joined: int = 0) -> Writer:
    own = word_tokenizer("t5")
    own.add_special_tokens({"additional_special_tokens": [EOI]})

    class Answerer:
        tokenizer, network, device = own, Told(own, TABLE), torch.device("cpu")
        from threading import Lock

        lock = Lock()

    Answerer.network.collate = lambda *a, **k: _Moved(Told.collate(Answerer.network, *a, **k))  # type: ignore[method-assign]
    return Writer(Answerer(), writing, joined)


class _Moved:
    def __init__(self, value: torch.Tensor) -> None:
        self.value = value

    def to(self, device: Any) -> torch.Tensor:
        return self.value


def answers(writing: SequenceDecoding | None = None) -> list[tuple[str, float]]:
    (found,) = writer(writing).write_many([(QUESTION, PASSAGES)])
    return [(c.text, round(c.probability, 3)) for c in found]


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
    more = [text for text, _ in answers(SequenceDecoding(end_bias=-3.0))]
    assert more[:2] == ["red", "green"]
    assert [text for text, _ in answers(SequenceDecoding(end_bias=3.0))] == ["red"]


def test_diverse_beams_differ_and_are_merged() -> None:
    beams = answers(SequenceDecoding("diverse-beam", 3, diversity=2.0))
    assert {text for text, _ in beams} == {"red", "blue", "green"}
    assert answers(SequenceDecoding("diverse-beam", 1)) == answers()


def test_samples_are_reproducible_and_follow_the_probabilities() -> None:
    drawn = answers(SequenceDecoding("nucleus", 64, top_p=1.0))
    assert drawn == answers(SequenceDecoding("nucleus", 64, top_p=1.0))
    share = dict(drawn)
    assert 0.4 < share["red"] < 0.85  # 0.6 first, and some after a separator
    assert 0.25 < share["blue"] < 0.55
    assert dict(answers(SequenceDecoding("nucleus", 64, top_p=1.0, seed=1))) != share
    assert "blue" not in dict(answers(SequenceDecoding("nucleus", 32, top_p=0.5)))
    assert "blue" not in dict(answers(SequenceDecoding("top-k", 32, top_k=1)))
    assert dict(answers(SequenceDecoding("top-k", 64, top_k=2))).keys() == {"red", "blue", "green"}


def test_many_questions_are_written_as_one_by_one() -> None:
    own = writer(SequenceDecoding("nucleus", 4, top_p=1.0))
    jobs = [(QUESTION, PASSAGES), ("who ?", PASSAGES[:1])]
    assert own.write_many(jobs) == [own.write_many([job])[0] for job in jobs]


def test_the_model_itself_writes_alike_alone_and_together(make_tiny: Any) -> None:
    own = word_tokenizer("t5")
    network = make_fid(make_tiny("t5"), own, FidConfig("separate", max_answer_tokens=6)).eval()
    jobs = [(QUESTION, TEXTS, ()), ("who ?", TEXTS[:1], ())]
    with torch.inference_mode():
        states, mask = network.encode(network.collate(own, jobs))
        both = write(network, own, states, mask, SequenceDecoding("diverse-beam", 3), ["a", "b"])
        for i, job in enumerate(jobs):
            alone = write(
                network, own, *network.encode(network.collate(own, [job])), SequenceDecoding("diverse-beam", 3), ["a"]
            )
            assert [w.ids for w in alone[0]] == [w.ids for w in both[i]]
        greedy = write(network, own, states, mask, SequenceDecoding(), ["a", "b"])
        assert [g[0].ids for g in greedy] == [b[0].ids for b in both]  # the first beam is not punished


def test_joined_passages_are_one_row() -> None:
    own = writer(joined=1024)
    own.write_many([(QUESTION, PASSAGES)])
    ((question, passages, previous),) = own.answerer.network.jobs
    assert (question, previous, own.answerer.network.max_tokens) == (QUESTION, (), 1024)
    assert passages == [("north", "the ball is red south : the ball of the boat is blue east : a car")]
    assert join_passages([PASSAGES[0].passage]).text == "the ball is red"


def test_a_long_row_is_cut_or_read_in_windows(small: tuple[SmallSeq2Seq, Any]) -> None:
    network, own = small
    long = [("north", "the ball is red " * 60)]
    cut = network.collate(own, [(QUESTION, long, [])], 60)
    assert cut.input_ids.shape[1] <= 96  # the base's positions
    assert int(cut.mask[1:].sum()) < 100
    assert network.collate(own, [(QUESTION, long, [])]).rows > 3


def test_answers_are_read_back(make_tiny: Any) -> None:
    own = word_tokenizer("t5")
    ids = own("red ; the ball ; ;", add_special_tokens=False)["input_ids"]
    assert [text for text, _ in read_answers(own, WrittenSequence(tuple(ids), (0.0,) * len(ids)))] == ["red", "the ball"]
    assert read_answers(own, WrittenSequence((), ())) == []


def test_merging_counts_sequences_not_mentions() -> None:
    merged = merge(
        [[("Robert Wise", 0.9), ("Robert Wise", 0.9)], [("Wise", 0.4), ("Jerome Robbins", 0.2)], [("Robert Wise", 0.3)]]
    )
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
