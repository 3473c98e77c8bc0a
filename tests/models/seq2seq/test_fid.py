"""FidAnswerer: rows, decoding, candidates, [EOI], the ablations' switches, checkpoints.  Models are tiny and random; some are steered by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_models import word_tokenizer
from transformers import AutoModelForSeq2SeqLM

from core.errors import CheckpointError
from core.models.interleaving import ATTENTION_NAME
from core.models.seq2seq import fid
from core.models.seq2seq.decoding import locate
from core.models.seq2seq.fid import FidAnswerer, Generation, load_fid, load_network, make_fid, save_fid
from core.models.seq2seq.network import IGNORED, FidConfig, FidNetwork, collate_fid, fan_out, row_texts
from core.text import find_spans
from core.types import EOI, Candidate, Evidence, Passage, Proposal, RetrievedPassage

Network = tuple[FidNetwork, Any]  # and its tokenizer
Checkpoint = tuple[FidNetwork, Any, Path]
QUESTION = "colour of the ball ?"
TEXTS = [("north", "the ball is red"), ("south", "the ball of the boat is blue"), ("east", "a car")]


def retrieved(*texts: tuple[str, str]) -> list[RetrievedPassage]:
    return [RetrievedPassage(Passage(f"p{i}", title, text), i, 0.5) for i, (title, text) in enumerate(texts or TEXTS, 1)]


@pytest.fixture
def make(make_tiny: Any) -> Callable[..., Network]:
    """make(kind, **config): a network over a tiny random model, and its tokenizer."""

    def build(kind: str = "t5", **config: Any) -> Network:
        tokenizer = word_tokenizer("t5")
        return make_fid(make_tiny(kind), tokenizer, FidConfig(**config)).eval(), tokenizer

    return build


@pytest.fixture
def network(make: Callable[..., Network]) -> Network:
    return make(max_answer_tokens=5)


@pytest.fixture
def checkpoint(tiny_t5_folder: Path, tmp_path: Path) -> Checkpoint:
    """And the folder where the network is saved."""
    network, tokenizer = load_network(str(tiny_t5_folder))
    save_fid(network, tmp_path / "saved", tokenizer=tokenizer)
    return network, tokenizer, tmp_path / "saved"


class Steered(FidAnswerer):
    """Says what a table says: first-token probabilities, then the end.  Everything but the weights is the real thing."""

    def __init__(self, network: FidNetwork, tokenizer: Any, table: dict[str, float], **kwargs: Any) -> None:
        super().__init__(network, tokenizer, "cpu", **kwargs)
        ids = {tokenizer.convert_tokens_to_ids(word): p for word, p in table.items()}
        decode = network.decode

        def steer(states: Any, mask: Any, tokens: Any, cache: Any = None, keep: bool = False) -> Any:
            out = decode(states, mask, tokens, cache, keep)
            out.logits = torch.full_like(out.logits, -30.0)
            for token, p in ids.items() if cache is None else [(tokenizer.eos_token_id, 1.0)]:
                out.logits[..., token] = float(torch.tensor(p).log())
            return out

        network.decode = steer  # type: ignore[method-assign]


def test_rows_read_as_in_fid() -> None:
    rows = row_texts("q ?", [("t", "c d"), ("u", "e")], ["a", "b"])
    assert rows == ["question: q ? answers: a ; b", "question: q ? title: t context: c d", "question: q ? title: u context: e"]
    assert row_texts("q ?", [], []) == ["question: q ? answers:"]
    rows = row_texts("Who ?", [("T", "c d")], ["a", "b"], "ambigprompt")  # as in the authors' code
    assert rows == ["Question: who ? ## Previous Answers: a ; b", "Question: who ? ## Passage: T c d"]


def test_a_batch_is_padded_to_the_longest_question() -> None:
    tokenizer = word_tokenizer("t5")
    jobs = [(QUESTION, [("north", "the ball " * 40), TEXTS[0]], ["red ; " * 20]), (QUESTION, [], [])]
    batch = collate_fid(tokenizer, FidConfig(max_tokens=20, max_prompt_tokens=12), jobs)
    assert (batch.rows, batch.prompt_tokens, batch.input_ids.shape) == (3, 12, (6, 20))
    lengths = batch.mask.sum(1).tolist()
    assert lengths[:2] == [12, 20]  # the prompt and the passage are cut at their limits
    assert lengths[4:] == [0, 0]  # the second question has no passage
    assert batch.steps.tolist() == [1, 0]
    assert (batch.input_ids[~batch.mask] == tokenizer.pad_token_id).all()


def test_a_long_question_leaves_room_for_the_passage() -> None:
    tokenizer = word_tokenizer("t5")
    batch = collate_fid(tokenizer, FidConfig(max_question_tokens=4, max_tokens=32), [("ball " * 50, [TEXTS[0]], [])])
    assert "red" in tokenizer.decode(batch.input_ids[1])


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_the_decoder_is_the_models_own(kind: str, make: Any) -> None:
    """With rows encoded apart, the network is FiD: encode each row, concatenate, decode with the model's own forward."""
    network, tokenizer = make(kind, prompting="separate")
    model = network.model
    batch = collate_fid(tokenizer, network.config, [(QUESTION, TEXTS, ["red"]), ("who ?", TEXTS[:1], [])])
    labels = torch.tensor([[8, 9, 1], [10, 1, IGNORED]])
    with torch.no_grad():
        logits = network(batch, labels)
        for b in range(2):
            rows = range(b * batch.rows, (b + 1) * batch.rows)
            texts = [batch.input_ids[r][batch.mask[r]][None] for r in rows if batch.mask[r].any()]
            states = torch.cat([model.get_encoder()(input_ids=text).last_hidden_state for text in texts], dim=1)
            target = labels[b][labels[b] != IGNORED]
            inputs = torch.cat([torch.tensor([network.start]), target[:-1]])[None]
            expected = model(encoder_outputs=(states,), decoder_input_ids=inputs).logits[0]
            assert torch.allclose(logits[b, : len(target)], expected, atol=1e-3 * float(expected.abs().max()))


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_a_learned_prompt_knows_the_step_not_the_answers(kind: str, make: Any) -> None:
    network, tokenizer = make(kind, prompting="learned", learned_tokens=5, learned_steps=3)
    with torch.no_grad():
        red, blue, two = (
            network.encode(collate_fid(tokenizer, network.config, [(QUESTION, TEXTS, previous)]))[0]
            for previous in (["red"], ["blue"], ["red", "blue"])
        )
    assert torch.equal(red, blue)
    assert not torch.equal(red[:, 5:], two[:, 5:])  # the passages see it


@pytest.mark.parametrize("prompting", ["interleaved", "separate"])
@pytest.mark.parametrize("training", [False, True])
def test_without_padding_the_states_are_those_of_padded_rows(
    prompting: Any, training: bool, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Questions with fewer passages and a prompt shorter and longer than they are; gradients too, where nothing is dropped."""
    network, tokenizer = make(prompting=prompting)
    network.train(training).model.get_encoder().config.dropout_rate = 0.0
    for module in network.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    texts = [("north", "the ball is red"), ("", "a"), ("east", "the ball of the boat is blue " * 3)]
    batch = network.collate(tokenizer, [(QUESTION, texts, ["red"]), (QUESTION * 9, texts[:1], []), (QUESTION, [], [])])
    batch.input_ids[~batch.mask] = 7  # padding that must not be seen

    def read(packed: bool) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        monkeypatch.setattr(FidNetwork, "_packs", lambda self, batch: packed)
        network.zero_grad()
        states, mask = network.encode(batch)
        states[mask].square().sum().backward()
        return states[mask].detach(), {name: p.grad.clone() for name, p in network.named_parameters() if p.grad is not None}

    assert network._packs(batch)
    (packed, gradients), (padded, others) = read(True), read(False)
    torch.testing.assert_close(packed, padded, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(gradients, others, atol=1e-4, rtol=1e-3)


def test_a_batch_with_one_row_and_short_rows_fits_the_learned_prompt(make: Any) -> None:
    network, tokenizer = make(prompting="learned", learned_tokens=30)
    states, mask = network.encode(collate_fid(tokenizer, network.config, [("who ?", [], [])]))
    assert states.shape[1] == 30
    assert mask.all()


def test_a_model_whose_attention_cannot_be_exchanged_is_refused(make_tiny: Any) -> None:
    model = make_tiny("t5")
    model.get_encoder()._can_set_attn_implementation = lambda: False
    with pytest.raises(ValueError, match="cannot be replaced"):
        FidNetwork(model, FidConfig(), 2)


@pytest.mark.parametrize(
    ("name", "value"), [("prompting", "woven"), ("max_tokens", 4), ("max_answer_tokens", 1), ("learned_steps", 0)]
)
def test_a_bad_config_names_the_value(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} (is )?{value!r}"):
        FidConfig(**{name: value})


def figures(proposal: Proposal) -> list[float]:
    return [*(c.probability for c in proposal.candidates), proposal.eoi_probability]


def steered(network: Network, table: dict[str, float], previous: Sequence[str] = (), **generation: Any) -> Proposal:
    return Steered(*network, table, generation=Generation(**generation)).propose(QUESTION, retrieved(), previous)


def test_the_best_candidate_is_what_generate_gives(network: Network) -> None:
    """The first candidate's tokens and probability against transformers' own greedy search over the same states."""
    net, tokenizer = network
    batch = collate_fid(tokenizer, net.config, [(QUESTION, TEXTS, []), ("who wrote the book ?", TEXTS[:2], ["red"])])
    answerer = FidAnswerer(net, tokenizer, "cpu", Generation(candidates=3))
    with torch.inference_mode():
        states, mask = net.encode(batch)
        sequences, probabilities, eoi = answerer._generate(states, mask, 3)
        banned = [net.eoi, tokenizer.pad_token_id]
        for b in range(2):
            ids, total = torch.full((1, 1), net.start), 1.0
            for position in range(net.config.max_answer_tokens):
                logits = net.decode(states[b : b + 1], mask[b : b + 1], ids).logits[0, -1].float()
                if position == 0:
                    p = logits.softmax(-1)
                    assert float(eoi[b]) == pytest.approx(float(p[net.eoi]), rel=1e-3)
                    p[[*banned, tokenizer.eos_token_id]] = 0.0
                else:
                    logits[net.eoi] = float("-inf")
                    p = logits.softmax(-1)
                token = int(p.argmax())
                total *= float(p[token])
                ids = torch.cat([ids, torch.tensor([[token]])], dim=1)
                if token == tokenizer.eos_token_id:
                    break
            assert sequences[b, 0].tolist()[: ids.shape[1] - 1] == ids[0, 1:].tolist()
            assert float(probabilities[b, 0]) == pytest.approx(total, rel=1e-3)


def test_many_questions_at_once_are_answered_as_one_by_one(network: Network) -> None:
    answerer = FidAnswerer(*network, device="cpu")
    jobs = [
        (QUESTION, retrieved(), ["red"]),
        ("who wrote the book ?", retrieved(TEXTS[1]), []),
        ("who ?", retrieved(), ["a"] * 9),
    ]
    for job, together in zip(jobs, answerer.propose_many(jobs)):
        alone = answerer.propose(*job)
        assert [c.text for c in alone.candidates] == [c.text for c in together.candidates]
        assert figures(alone) == pytest.approx(figures(together), rel=1e-3)


def test_candidates_come_with_probability_and_evidence_and_previous_answers_leave_with_theirs(network: Network) -> None:
    proposal = steered(network, {"red": 0.5, "blue": 0.3, EOI: 0.15, "white": 0.05})
    assert [c.text for c in proposal.candidates[:3]] == ["red", "blue", "white"]
    assert [c.probability for c in proposal.candidates[:3]] == pytest.approx([0.5, 0.3, 0.05], rel=1e-3)
    assert proposal.eoi_probability == pytest.approx(0.15, rel=1e-3)
    assert proposal.candidates[0].evidence == Evidence("p1", 12, 15, "red")
    assert proposal.candidates[2].evidence is None  # no passage says white
    proposal = steered(network, {"red": 0.5, "blue": 0.3, EOI: 0.2}, ["Red"])
    assert "red" not in [c.text for c in proposal.candidates]
    assert proposal.candidates[0] == Candidate("blue", pytest.approx(0.6, rel=1e-3), Evidence("p2", 24, 28, "blue"))
    assert proposal.eoi_probability == pytest.approx(0.4, rel=1e-3)


def test_many_previous_answers_leave_candidates(network: Network) -> None:
    """A model that goes on preferring the previous answers: the next best is still found."""
    previous = "red blue green black white ball car door".split()
    table = {**dict.fromkeys(previous, 0.1), "boat": 0.05, EOI: 0.1}
    proposal = steered(network, table, previous, candidates=2)
    assert proposal.candidates[0].text == "boat"
    assert len(proposal.candidates) <= 2


def test_eoi_bias_moves_eoi_alone_and_a_sure_eoi_leaves_finite_numbers(network: Network) -> None:
    proposal = steered(network, {"red": 0.5, EOI: 0.5}, eoi_bias=-2.0)
    assert proposal.eoi_probability == pytest.approx(1 / (1 + 2.718281828**2), rel=1e-2)
    assert proposal.candidates[0].text == "red"
    proposal = steered(network, {EOI: 1.0}, ["red"])
    assert proposal.eoi_probability == pytest.approx(1.0, abs=1e-3)
    assert all(0.0 <= c.probability < 0.01 for c in proposal.candidates)


def test_evidence_of_short_answers_needs_a_single_passage() -> None:
    passages = retrieved(("a", "he won 3 times, then 3 more"), ("b", "The Beatles came"), ("c", "the beatles left"))
    assert locate("3", passages) == Evidence("p1", 7, 8, "3")
    assert locate("3", [*passages, RetrievedPassage(Passage("p4", "d", "3 songs"), 4, 0.5)]) is None
    beatles = locate("the Beatles", passages)
    assert beatles.text == "The Beatles"
    assert find_spans(passages[1].passage.text, "the Beatles") == [(beatles.start, beatles.end)]


def test_eoi_is_added_once_and_survives_a_checkpoint(tiny_t5_folder: Path, tmp_path: Path) -> None:
    network, tokenizer = load_network(str(tiny_t5_folder))
    size = network.model.get_input_embeddings().weight.shape[0]
    assert tokenizer.convert_tokens_to_ids(EOI) == network.eoi == size - 1
    assert tokenizer("red [EOI]")["input_ids"][1] == network.eoi
    with torch.no_grad():
        network.model.get_input_embeddings().weight[network.eoi] = 0.5
    save_fid(network, tmp_path / "a", {"step": 1}, tokenizer=tokenizer)
    again, tokenizer = load_network(str(tmp_path / "a"))
    assert again.eoi == network.eoi
    assert again.model.get_input_embeddings().weight.shape[0] == size
    assert (again.model.get_input_embeddings().weight[again.eoi] == 0.5).all()
    assert not list(tmp_path.glob("*.writing"))


def test_spare_rows_of_the_embeddings_are_used(make_tiny: Any) -> None:
    tokenizer = word_tokenizer("t5")
    model = make_tiny("t5", vocab_size=len(tokenizer) + 20)
    network = make_fid(model, tokenizer)
    assert model.get_input_embeddings().weight.shape[0] == len(tokenizer) - 1 + 20
    assert network.eoi == len(tokenizer) - 1


@pytest.mark.parametrize("prompting", ["interleaved", "separate", "learned"])
def test_a_checkpoint_proposes_what_was_saved(prompting: Any, make: Any, tmp_path: Path) -> None:
    network, tokenizer = make(prompting=prompting, max_answer_tokens=4)
    before = FidAnswerer(network, tokenizer, "cpu").propose(QUESTION, retrieved(), ["red"])
    save_fid(network, tmp_path / "t5", tokenizer=tokenizer)
    assert (tmp_path / "t5" / "model.safetensors").exists()
    assert json.loads((tmp_path / "t5" / "fid.json").read_text())["config"]["prompting"] == prompting
    loaded, digest = load_fid(str(tmp_path / "t5"), "cpu")
    assert loaded.config == network.config
    after = loaded.propose(QUESTION, retrieved(), ["red"])
    assert [c.text for c in after.candidates] == [c.text for c in before.candidates]
    assert figures(after) == pytest.approx(figures(before), rel=1e-4)
    assert load_fid(str(tmp_path / "t5"), "cpu")[1] == digest
    assert len(digest) == 16


def test_the_stored_config_does_not_name_our_attention(checkpoint: Checkpoint) -> None:
    _, _, folder = checkpoint
    assert ATTENTION_NAME not in (folder / "config.json").read_text()
    AutoModelForSeq2SeqLM.from_pretrained(folder)  # loads in transformers without Ambiscope


def lose_a_block(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    others = {name: tensor for name, tensor in tensors.items() if "decoder.block.1" not in name}
    save_file(others, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "model.safetensors").unlink(), "incomplete or damaged"),
        (lambda folder: (folder / "config.json").unlink(), "config.json is missing"),
        (lambda folder: (folder / "config.json").write_text('{"model_type": "t5",'), "damaged"),
        (lose_a_block, "weights are missing"),
        (lambda folder: (folder / "prompts.safetensors").unlink(), "prompts.safetensors is missing"),
        (lambda folder: (folder / "config.json").write_text('{"kind": "span", "config": {}}'), "holds a span model"),
    ],
)
def test_a_damaged_checkpoint_is_named(
    damage: Callable[[Path], object], message: str, tiny_t5_folder: Path, tmp_path: Path
) -> None:
    network, tokenizer = load_network(str(tiny_t5_folder), FidConfig("learned"))
    save_fid(network, tmp_path / "damaged", tokenizer=tokenizer)
    damage(tmp_path / "damaged")
    with pytest.raises(CheckpointError, match=message) as refusal:
        load_fid(str(tmp_path / "damaged"), "cpu")
    assert str(tmp_path / "damaged") in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_weights_are_loaded_once_and_again_when_they_change(checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    network, tokenizer, folder = checkpoint
    loads: list[str] = []
    monkeypatch.setattr(fid, "load_network", lambda where: loads.append(where) or load_network(where))
    with ThreadPoolExecutor(3) as pool:
        settings = [Generation(eoi_bias=bias) for bias in (0.0, 1.0, 2.0)]
        answerers = [answerer for answerer, _ in pool.map(lambda g: load_fid(str(folder), "cpu", g), settings)]
    assert len(loads) == 1
    assert len({id(a.network) for a in answerers}) == len({id(a.lock) for a in answerers}) == 1
    assert [a.generation for a in answerers] == settings
    save_fid(network, folder, tokenizer=tokenizer)
    load_fid(str(folder), "cpu")
    assert len(loads) == 2


@pytest.mark.parametrize("questions", [1, 2])
def test_a_decoder_without_keys_and_values_of_the_passages_says_the_same(questions: int, make: Any) -> None:
    """Several tokens of several candidates, against T5's own attention, which a call with gradients uses."""
    network, tokenizer = make()
    jobs = [(QUESTION, TEXTS[:n], []) for n in (3, 1)][:questions]
    tokens = torch.tensor([[network.start], [5], [9], [3]])

    def decoded(gradients: bool) -> list[torch.Tensor]:
        with torch.set_grad_enabled(gradients):
            states, mask = network.encode(network.collate(tokenizer, jobs))
            out = network.decode(states, mask, tokens[:1].expand(questions, 1), keep=True)
            steps, cache = [out.logits], network.repeat_cache(out.past_key_values, 2)
            states, mask = fan_out(states, 2), fan_out(mask, 2)
            for token in tokens[1:]:
                out = network.decode(states, mask, (token + torch.arange(2 * questions))[:, None], cache, keep=True)
                steps, cache = [*steps, out.logits], out.past_key_values
        empty = not any(layer.is_initialized for layer in cache.cross_attention_cache.layers)
        assert empty != gradients
        return [logits.detach() for logits in steps]

    torch.testing.assert_close(decoded(False), decoded(True), atol=1e-5, rtol=1e-4)
