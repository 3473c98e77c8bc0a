"""SpanAnswerer, PassageReader and their checkpoints on a tiny random BERT."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from serving import until

from core.errors import CheckpointError
from core.models.encoders.base import load_base
from core.models.loading.files import digest
from core.models.scheduling import turns
from core.models.span import checkpoints
from core.models.span.answerer import Decoding, SpanAnswerer, load_answerer
from core.models.span.checkpoints import load_span_network, save_span_network
from core.models.span.model import collate
from core.models.span.network import SpanConfig, SpanHead, SpanNetwork
from core.models.span.reader import PassageReader, Readout, load_reader
from core.text import shares_words
from core.types import Candidate, Passage, Proposal, RetrievedPassage

TEXTS = [
    "the red ball is in the white car , the blue door is in the boat",
    "a green boat and the red ball in the north town",
    "one two three first last year film song book",
]
Make = Callable[..., SpanNetwork]
LONG = " ".join(["the black car is in the south town , the red ball is in the west film"] * 12)
PASSAGES = [
    RetrievedPassage(Passage(str(i), "title film", text), i + 1, 1.0, sim)
    for i, (text, sim) in enumerate(zip(TEXTS, (0.9, 0.8, 0.2)))
]


@pytest.fixture(scope="module")
def make(tiny_bert_folder: Path) -> Make:
    def build(prompting: Any = "interleaved") -> SpanNetwork:
        torch.manual_seed(0)
        sizes = {"max_tokens": 40, "max_prompt_tokens": 32, "max_answer_tokens": 4, "span_width": 8}
        config = SpanConfig(base=str(tiny_bert_folder), prompting=prompting, **sizes)
        network = SpanNetwork(load_base(config.base), config)
        for parameter in network.head.parameters():  # random, so that scores differ
            torch.nn.init.normal_(parameter, std=0.4)
        return network

    return build


@pytest.fixture(scope="module")
def answerer(make: Make) -> SpanAnswerer:
    return SpanAnswerer(make(), "cpu")


def assert_equal(one: Proposal, other: Proposal, tolerance: float) -> None:
    assert [(c.text, c.evidence) for c in one.candidates] == [(c.text, c.evidence) for c in other.candidates]
    assert [c.probability for c in one.candidates] == pytest.approx([c.probability for c in other.candidates], abs=tolerance)
    assert one.eoi_probability == pytest.approx(other.eoi_probability, abs=tolerance)


def total(proposal: Any) -> float:
    return sum(c.probability for c in proposal.candidates) + proposal.eoi_probability


@pytest.mark.parametrize("prompting", ["interleaved", "separate", "learned"])
def test_proposals_are_probabilities_with_exact_evidence(make: Make, prompting: str) -> None:
    model = SpanAnswerer(make(prompting), "cpu", Decoding(candidates=500))
    for previous in ([], ["red ball"], ["x"] * 12):  # more steps than there are learned prompts
        proposal = model.propose("who is it", PASSAGES, previous)
        assert 0 < total(proposal) <= 1 + 1e-5
        ordered = [c.probability for c in proposal.candidates]
        assert ordered == sorted(ordered, reverse=True)
        for c in proposal.candidates:
            text = TEXTS[int(c.evidence.passage_id)]
            assert text[c.evidence.start : c.evidence.end] == c.text == c.evidence.text
            assert not shares_words(c.text, previous)


def test_equal_spans_add_up(make: Make) -> None:
    """Against the scores themselves: the probability of a text is the sum over all places where it stands."""
    model = SpanAnswerer(make(), "cpu", Decoding(eoi_bias=0.0, candidates=500))
    passages = [p.passage for p in PASSAGES]
    rows = model.rows("who", passages)
    spans, eoi = model.scores(collate([rows], [model.prompt("who", [])]))
    weights = torch.softmax(torch.cat([spans.flatten(), eoi]), 0)[:-1].view_as(spans[0])

    def plain(text: str) -> str:
        return " ".join(word for word in text.split() if word not in ("the", "a", ","))

    expected: Counter[str] = Counter()
    for r, s, w in torch.nonzero(weights > 0).tolist():
        text = TEXTS[rows.passage[r]][rows.offsets[r][s][0] : rows.offsets[r][s + w][1]]
        expected[plain(text)] += float(weights[r, s, w])
    del expected[""]
    candidates = {plain(c.text): c.probability for c in model.propose("who", PASSAGES, []).candidates}
    assert candidates["red ball"] == pytest.approx(expected["red ball"], rel=0.05)
    assert max(candidates, key=candidates.__getitem__) == expected.most_common(1)[0][0]


def test_previous_answers_leave_and_their_mass_with_them(answerer: SpanAnswerer) -> None:
    first = answerer.propose("who", PASSAGES, []).candidates[0].text
    after = answerer.propose("who", PASSAGES, [first])
    assert all(not shares_words(c.text, [first]) for c in after.candidates)
    assert total(after) <= 1 + 1e-5
    assert answerer.propose("who", PASSAGES[2:], TEXTS[2].split()) == Proposal((), pytest.approx(1.0, abs=1e-4))


def test_the_eoi_bias(make: Make) -> None:
    models = (SpanAnswerer(make(), "cpu", Decoding(eoi_bias=bias)) for bias in (-3.0, 3.0))
    low, high = (model.propose("who", PASSAGES, []).eoi_probability for model in models)
    assert math.log(high / (1 - high)) - math.log(low / (1 - low)) == pytest.approx(6.0, abs=1e-2)


class LastWordReader:
    """Gives the last word of the second and of the third passage a probability, and abstains on the others."""

    asked = 0

    def log_probabilities(self, question: str, passages: Sequence[Passage], spans: int) -> dict[tuple[int, int, int], float]:
        self.asked += 1
        texts = {i: passages[i].text for i in (1, 2)}
        return {(i, len(text) - len(text.split()[-1]), len(text)): math.log(0.9) for i, text in texts.items()}


def test_the_first_step_has_a_bias_of_its_own_which_the_reader_does_not_override(make: Make) -> None:
    def ask(previous: list[str], **how: float) -> float:
        model = SpanAnswerer(make(), "cpu", Decoding(eoi_bias=-60.0, candidates=500, **how))
        model.reader = LastWordReader()  # type: ignore[assignment]
        return model.propose("who", PASSAGES, previous).eoi_probability

    silent = {"first_eoi_bias": 60.0, "keep_above": 0.4}
    assert ask([]) < 0.01 < 0.99 < ask([], **silent)
    assert ask(["somebody"], **silent) < 0.01


def test_what_the_reader_alone_would_give_comes_before_eoi(make: Make) -> None:
    word = TEXTS[2].split()[-1]

    def ask(**how: float) -> tuple[dict[str, float], float, LastWordReader]:
        model = SpanAnswerer(make(), "cpu", Decoding(eoi_bias=60.0, candidates=500, **how))
        model.reader = reader = LastWordReader()  # type: ignore[assignment]
        proposal = model.propose("who", PASSAGES, [])
        return {c.text: c.probability for c in proposal.candidates}, proposal.eoi_probability, reader

    candidates, eoi, reader = ask(keep_above=0.6)  # each has half of what DPR's score gives away
    assert eoi > candidates[word]
    assert reader.asked == 1
    candidates, eoi, _ = ask(keep_above=0.4)
    assert candidates[word] > eoi
    assert ask(keep_above=1.0)[2].asked == 0


def test_previous_answers_matter_only_through_the_prompt(make: Make) -> None:
    """Interleaved: passage states change with the prompt.  Separate: only the head and [EOI] see it.  Learned: only its step counts."""
    states = {}
    for prompting in ("interleaved", "separate", "learned"):
        model = SpanAnswerer(make(prompting), "cpu")
        rows = model.rows("who", [PASSAGES[0].passage])
        out = []
        for answer in ("red", "blue"):
            batch = collate([rows], [model.prompt("who", [answer])])
            batch.steps = torch.tensor([1])
            with torch.inference_mode():
                out.append(model.network.encode(batch)[1])
        states[prompting] = torch.allclose(*out, atol=1e-6)
    assert states == {"interleaved": False, "separate": True, "learned": True}


def test_the_reader_reads_long_passages_in_windows(make: Make) -> None:
    reader = PassageReader(make(), "cpu")
    passages = [Passage("long", "title", LONG), Passage("short", "", "red ball"), Passage("empty", "", "")]
    long, short, empty = reader.read("who", passages, candidates=50)
    assert max(c.evidence.start for c in long.candidates if c.evidence) > 200
    for readout in (long, short):
        assert sum(c.probability for c in readout.candidates) + readout.abstain_probability <= 1 + 1e-5
        for c in readout.candidates:
            assert readout.passage.text[c.evidence.start : c.evidence.end] == c.text
    assert (empty.candidates, empty.best) == ((), None)
    assert empty.abstain_probability == pytest.approx(1.0)
    (again,) = reader.read("who", passages[1:2])
    assert again.abstain_probability == pytest.approx(short.abstain_probability, abs=1e-4)


def test_the_reader_reads_a_passage_once_for_all_that_ask(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, rows_read = PassageReader(make(), "cpu"), list[int]()
    scores = reader.scores
    monkeypatch.setattr(reader, "scores", lambda batch: rows_read.append(batch.rows * len(batch.mask)) or scores(batch))
    passages = [p.passage for p in PASSAGES]
    places = reader.log_probabilities("who", passages, 3)
    pairs = [("who", passages[0]), ("where", passages[0]), ("who", passages[0])]
    first, _, again = reader.read_pairs(pairs, 1)
    assert first == again
    best = max((place for place in places if place[0] == 0), key=lambda place: places[place])
    assert math.log(first.candidates[0].probability) == pytest.approx(places[best], abs=1e-4)
    assert rows_read == [len(passages), 1]


def test_readouts_keep_the_order_of_the_pairs(make: Make) -> None:
    reader = PassageReader(make(), "cpu")
    passages = [Passage(str(i), "", " ".join(["red ball"] * (1 + i * 7 % 11))) for i in range(70)]
    assert [r.passage for r in reader.read_pairs([("who", p) for p in passages], 1)] == passages


def test_abstention() -> None:
    passage = Passage("p", "", "red")
    assert Readout(passage, (Candidate("red", 0.4),), 0.5).best is None
    assert Readout(passage, (Candidate("red", 0.5),), 0.4).best == Candidate("red", 0.5)
    assert Readout(passage, (), 0.0).best is None


def test_looking_at_the_prompt_is_the_attention_of_torch() -> None:
    """Computed in another order, for few keys and many queries; the weights are those of nn.MultiheadAttention."""
    torch.manual_seed(5)
    head = SpanHead(24, SpanConfig()).eval()
    x, e = torch.randn(2, 9, 24), torch.randn(2, 5, 24)
    seen = torch.tensor([[True] * 5, [True, True, False, False, False]])
    expected, _ = head.recall(x, e, e, key_padding_mask=~seen, need_weights=False)
    assert torch.allclose(head.remember(x, e, seen), x + expected, atol=1e-5)


@pytest.mark.parametrize("prompting", ["interleaved", "learned"])
def test_a_checkpoint_survives_the_round_trip(make: Make, tmp_path: Path, prompting: str) -> None:
    network = make(prompting)
    save_span_network(network, tmp_path / "c", {"figures": {"f1": 0.5}})
    stored = load_file(tmp_path / "c" / "model.safetensors")
    assert all(tensor.dtype == torch.float16 for tensor in stored.values())
    assert not any("embeddings" in name for name in stored)
    assert json.loads((tmp_path / "c" / "config.json").read_text())["about"] == {"figures": {"f1": 0.5}}
    assert sorted(p.name for p in (tmp_path / "c").iterdir()) == ["config.json", "model.safetensors"]
    loaded = load_span_network(tmp_path / "c")
    assert loaded.config == network.config
    before, after = (SpanAnswerer(n, "cpu").propose("who", PASSAGES, ["red"]) for n in (network, loaded))
    assert after.eoi_probability == pytest.approx(before.eoi_probability, abs=0.02)
    save_span_network(loaded, tmp_path / "d")
    assert digest(tmp_path / "c") == digest(tmp_path / "d")  # half precision is reached once
    model, mark = load_answerer(str(tmp_path / "c"), "cpu")
    assert mark == digest(tmp_path / "c")
    assert model.propose("who", PASSAGES, []).candidates


def test_another_mechanism_over_the_same_weights(make: Make, tmp_path: Path) -> None:
    save_span_network(make(), tmp_path)
    for prompting in ("separate", "learned"):
        network = load_span_network(tmp_path, prompting)  # type: ignore[arg-type]
        assert network.config.prompting == prompting
        assert SpanAnswerer(network, "cpu").propose("who", PASSAGES, []).candidates


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda weights: weights.unlink(), "is incomplete"),
        (lambda weights: weights.write_bytes(weights.read_bytes()[:500]), "is damaged"),
        (lambda weights: save_file({"something.else": torch.zeros(2)}, weights), "does not fit its network: missing"),
    ],
    ids=["none", "cut", "of another network"],
)
def test_bad_weights(make: Make, tmp_path: Path, damage: Callable[[Path], object], message: str) -> None:
    save_span_network(make(), tmp_path)
    damage(tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=f"{tmp_path}.*{message}"):
        load_span_network(tmp_path)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"colour": "red"}, "is damaged"),
        ({"max_tokens": 4}, "is damaged"),
        ({"span_width": 9}, "does not fit its network"),
        ({"base": "/nowhere"}, "cannot be loaded"),
    ],
    ids=["unknown", "out of bounds", "other sizes", "no base"],
)
def test_a_bad_option_of_a_checkpoint(make: Make, tmp_path: Path, option: dict[str, Any], message: str) -> None:
    save_span_network(make(), tmp_path)
    stored = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**stored, "config": {**stored["config"], **option}}))
    with pytest.raises(CheckpointError, match=f"({tmp_path}|/nowhere).*{message}"):
        load_span_network(tmp_path)


@pytest.mark.parametrize("wrong", [{"prompting": "none"}, {"max_tokens": 16}, {"max_tokens": 513}, {"max_answer_tokens": 0}])
def test_bad_configurations(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must be|use interleaved"):
        SpanConfig(**wrong)


@pytest.mark.parametrize("load", [load_answerer, load_reader])
def test_several_threads_load_once(load: Any, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_span_network(make(), tmp_path / "c")
    loads: list[Path] = []
    monkeypatch.setattr(checkpoints, "load_span_network", lambda folder: loads.append(folder) or load_span_network(folder))
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: load(str(tmp_path / "c"), "cpu"), range(3)))
    assert len(loads) == 1


def test_an_answering_model_is_refused_as_a_reader(make: Make, tmp_path: Path) -> None:
    save_span_network(make(), tmp_path / "answerer", {"arguments": {"what": "answerer", "stage": "tune"}})
    with pytest.raises(CheckpointError, match=r"answerer holds an answering model.*`core train reader`"):
        load_reader(str(tmp_path / "answerer"), "cpu")


def at_the_same_moment(model: SpanAnswerer, jobs: list[Any]) -> list[Proposal]:
    """The proposals of as many threads, which all wait for the same turn."""
    with ThreadPoolExecutor(len(jobs)) as pool, turns.MODEL_LOCK:
        proposals = []
        for job in jobs:
            proposals.append(pool.submit(model.propose, *job))
            until(lambda: turns.MODEL_LOCK.waiting >= len(proposals))
    return [proposal.result() for proposal in proposals]


@pytest.mark.parametrize("prompting", ["interleaved", "separate", "learned"])
def test_questions_that_wait_together_get_what_they_get_alone(make: Make, prompting: str) -> None:
    model = SpanAnswerer(make(prompting), "cpu")
    jobs = [
        ("who is in the red car", PASSAGES, ()),
        ("what", PASSAGES[:1], ("red ball",)),
        ("which film song", [*PASSAGES[1:], RetrievedPassage(Passage("long", "t", LONG), 3, 1.0, 0.1)], ("boat", "one two")),
    ]
    alone = [model.propose(*job) for job in jobs]
    batches: list[int] = []
    run = model._together._run
    model._together._run = lambda items: (batches.append(len(items)), run(items))[1]
    turns.gather(8)
    try:
        together = at_the_same_moment(model, jobs)
    finally:
        turns.gather(1)
    assert batches == [len(jobs)]
    for one, other in zip(alone, together, strict=True):
        assert_equal(one, other, 1e-5)
