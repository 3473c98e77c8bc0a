"""FidTask: what Eq. 9 and Eq. 10 ask for and resumable batches."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_models import word_tokenizer

from core.errors import InputError
from core.models.encoders.base import load_base
from core.models.encoders.low_rank import differences
from core.models.seq2seq.decoding import AnswerSetWriter
from core.models.seq2seq.fid import load_fid, make_fid
from core.models.seq2seq.network import IGNORED, FidConfig
from core.models.seq2seq.small import SmallConfig, make_small
from core.models.span.network import SpanConfig, SpanNetwork
from core.training.answerer import Item
from core.training.data.chunks import batches
from core.training.data.examples import MultiExample
from core.training.fid import FidTask, spliced_item, target_text, written_f1
from core.training.freezing import freeze, low_rank, merged
from core.training.options import TrainConfig
from core.training.seq2seq import check_repeat, saver
from core.training.trainer import fit
from core.types import EOI

PASSAGES = (
    ("north", "the ball is red"),
    ("south", "the ball is blue"),
    ("east", "the ball is green"),
    ("west", "the car is white"),
)
EXAMPLE = MultiExample("colour of the ball ?", PASSAGES, (("red",), ("blue", "azure"), ("green",)), "made")


@pytest.fixture
def parts(make_tiny: Any) -> tuple[Any, Any]:
    tokenizer = word_tokenizer("t5")
    return make_fid(make_tiny("t5"), tokenizer, FidConfig(max_answer_tokens=4)), tokenizer


def make_task(tokenizer: Any, **changes: Any) -> FidTask:
    values: dict[str, Any] = {"config": FidConfig(max_answer_tokens=4), "eoi_share": 0.3, "batch_tokens": 600}
    return FidTask([([EXAMPLE], 1.0)], [("made", [EXAMPLE])], tokenizer, **{**values, **changes})


def test_tuning_targets_are_equation_10(parts: tuple[Any, Any]) -> None:
    task = make_task(parts[1])
    pairs = [pair for chunk in range(6) for pair in task.items(0, chunk)]
    ended = [item for item, target in pairs if target == EOI]
    assert 0.2 < len(ended) / len(pairs) < 0.4  # lambda = 0.3
    assert all(len(item.previous) == 3 for item in ended)
    assert all(target not in item.previous for item, target in pairs)
    assert {len(item.previous) for item, target in pairs if target != EOI} == {0, 1, 2}
    orders = {item.previous for item, _ in pairs if len(item.previous) == 3}
    assert len(orders) == 6  # answers are shuffled: every order occurs
    first = [target for item, target in pairs if not item.previous]
    assert min(map(first.count, ("red", "blue", "green"))) > len(first) / 6
    assert "azure" not in [target for _, target in pairs]  # an alias that stands in no passage is not asked for


def test_post_pretraining_targets_are_equation_9(parts: tuple[Any, Any]) -> None:
    single = replace(EXAMPLE, gold=(("red",),), extra={"pseudo": ["red", "blue", "green", "white"]})
    task = make_task(parts[1], stage="pretrain")
    task.sources = [([single], 1.0)]
    pairs = [pair for chunk in range(3) for pair in task.items(0, chunk)]
    assert {target for _, target in pairs} == {"red", EOI}
    before = [set(item.previous) for item, target in pairs if target == "red"]
    assert all(previous <= {"blue", "green", "white"} for previous in before)  # the true answer is filtered out
    assert {len(previous) for previous in before} == {0, 1, 2, 3}
    ends = [set(item.previous) for item, target in pairs if target == EOI]
    assert all(previous == {"red", "blue", "green", "white"} for previous in ends)  # nothing is left


def test_an_answer_that_stands_nowhere_keeps_its_first_name() -> None:
    item = Item("q", (("t", "nothing"),), (), ((("rouge", "red"), None),))
    assert target_text(item, random.Random(0)) == "rouge"
    assert target_text(Item("q", (), ("red",), ()), random.Random(0)) == EOI


def test_labels_end_and_batches_keep_to_their_size(parts: tuple[Any, Any]) -> None:
    network, tokenizer = parts
    task = make_task(tokenizer)
    pairs = [(Item("q", PASSAGES, (), ()), EOI), (Item("q", PASSAGES[:1], ("red",), ()), "the red ball of the boat")]
    rows, labels = task.batch(((0, 0), False, pairs))
    assert labels.tolist()[0][:2] == [network.eoi, tokenizer.eos_token_id]
    assert (labels[0, 2:] == IGNORED).all()
    assert labels.shape[1] == 4  # cut to max_answer_tokens, the end included
    assert labels[1, 3] == tokenizer.eos_token_id
    assert rows.input_ids.shape[0] == 2 * 5
    for _, (batch, _) in itertools.islice(batches(task, 0, 0), 12):
        assert batch.input_ids.numel() <= 600


def test_the_loss_is_the_probability_of_the_whole_target(parts: tuple[Any, Any]) -> None:
    network, tokenizer = parts
    task = make_task(tokenizer)
    pairs = [(Item("colour ?", PASSAGES, ("red",), ()), "blue"), (Item("colour ?", PASSAGES[:2], (), ()), "the red ball")]
    loss = task.loss(network, task.batch(((0, 0), False, pairs)), torch.device("cpu"))
    loss.backward()
    expected = []
    with torch.no_grad():
        for pair in pairs:
            rows, labels = task.batch(((0, 0), False, [pair]))
            p = network(rows, labels).log_softmax(-1)[0]
            expected.append(-float(p.gather(1, labels.T).sum()))
    assert loss.item() == pytest.approx(sum(expected) / len(pairs), rel=1e-4)
    assert all(p.grad is not None for p in network.parameters() if p.requires_grad)


def test_spliced_targets_are_the_whole_set_in_the_order_of_the_passages(parts: tuple[Any, Any]) -> None:
    task = make_task(parts[1], target="spliced", joined_share=0.5, config=FidConfig(max_answer_tokens=12))
    pairs = [pair for chunk in range(3) for pair in task.items(0, chunk)]
    assert len(pairs) > 20
    for item, target in pairs:
        texts = " ".join(text for _, text in item.passages)
        answers = target.split(" ; ")
        assert item.previous == ()
        assert answers == sorted(answers, key=texts.index)
        assert set(answers) == {"red", "blue", "green"} & set(texts.split())
    rows = [batch.rows for _, (batch, _) in itertools.islice(batches(task, 0, 0), 30)]
    assert 2 in rows  # joined: the prompt and one row
    assert max(rows) > 3
    assert spliced_item(MultiExample("q", PASSAGES, (("pink",),), "made"), 4, random.Random(0)) is None
    wrong = MultiExample("q", PASSAGES, (("red",),), "made", bad=("white",), extra={"pseudo": ["blue"]})
    assert {spliced_item(wrong, 4, random.Random(i))[1] for i in range(20)} == {"red"}  # type: ignore[index]
    one = task.batch(((0, 0), True, pairs[:1]))[0]
    assert one.rows == 2
    assert "car is white" in parts[1].decode(one.input_ids[1])


def test_kept_states_give_the_same_loss(tiny_bert_folder: Path) -> None:
    network, tokenizer = make_small(SmallConfig(base=str(tiny_bert_folder), inner=16, feed_forward=32))
    freeze(network, 2)
    check_repeat(network, 1)
    options: dict[str, Any] = {"target": "spliced", "collate": network.collate, "config": network.config}
    task, plain = make_task(tokenizer, **options, repeat=1), make_task(tokenizer, **options)
    keys = []
    for (position, batch), (_, same) in zip(itertools.islice(batches(task, 0, 0), 40), batches(plain, 0, 0)):
        if position < 10_000:
            loss, expected = task.loss(network, batch, torch.device("cpu")), plain.loss(network, same, torch.device("cpu"))
            assert loss.item() == pytest.approx(expected.item(), rel=2e-2)  # states are kept in half precision
        keys.append(batch[0].key)
    n = len(set(keys))
    assert keys[n : 2 * n] == keys[:n]  # the chunk comes again
    assert len(task.kept) <= n
    loss.backward()
    assert network.layers[0].feed[1].weight.grad is not None
    with pytest.raises(InputError, match="must be frozen"):
        check_repeat(make_small(SmallConfig(base=str(tiny_bert_folder), inner=16))[0], 2)
    with pytest.raises(InputError, match="use a small network"):
        check_repeat(torch.nn.Linear(2, 2).requires_grad_(False), 2)  # as a T5 is: no network that takes kept states
    with pytest.raises(InputError, match="the encoder has 2 layers"):
        freeze(network, 5)


def test_the_small_network_learns_to_copy_and_is_loaded_by_name(tiny_bert_folder: Path, tmp_path: Path) -> None:
    sizes = {"inner": 16, "feed_forward": 32, "max_tokens": 48, "max_answer_tokens": 12}
    network, tokenizer = make_small(SmallConfig(base=str(tiny_bert_folder), target="spliced", **sizes))
    freeze(network, 2)
    task = make_task(tokenizer, target="spliced", collate=network.collate, config=network.config, repeat=1, size=3)
    config = TrainConfig(steps=30, lr=3e-3, head_lr=3e-3, warmup=2, evaluate_every=100, precision="fp32", device="cpu")
    batch = next(batches(task, 0, 0))[1]
    before = float(task.loss(network, batch, torch.device("cpu")).detach())
    frozen = network.encoder.encoder.layer[1].output.dense.weight.clone()
    row = fit(network, task, config, tmp_path, saver(network, tokenizer), lambda _: None)
    assert float(task.loss(network, batch, torch.device("cpu")).detach()) < 0.6 * before
    assert torch.equal(network.encoder.encoder.layer[1].output.dense.weight, frozen)
    answerer, _ = load_fid(str(tmp_path / "last"), "cpu")
    assert answerer.config.target == "spliced"
    assert row["made"] == pytest.approx(
        written_f1(AnswerSetWriter(answerer), [EXAMPLE]), abs=0.5
    )  # half precision may move a token


def test_bad_arguments_are_named(parts: tuple[Any, Any]) -> None:
    with pytest.raises(InputError, match="no training question"):
        FidTask([([], 1.0)], [], parts[1], FidConfig())
    with pytest.raises(InputError, match=r"1\.5; it must be 0\.\.1"):
        make_task(parts[1], eoi_share=1.5)
    with pytest.raises(InputError, match="make_fid"):
        make_task(word_tokenizer("t5"))


def test_low_rank_differences_are_all_that_is_trained_and_are_merged_in_a_checkpoint(span_config: SpanConfig) -> None:
    network = SpanNetwork(load_base(span_config.base), span_config)
    names = set(network.state_dict())
    low_rank(network, 2)
    trained = {name for name, p in network.named_parameters() if p.requires_grad}
    assert {name for name in trained if name.startswith("encoder.")} == set(differences(network))
    assert trained - set(differences(network))  # the head
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name.endswith(".up"):
                parameter += 0.1
    before = {name: value.clone() for name, value in network.state_dict().items()}
    states = merged(network).state_dict()
    assert set(states) == names
    plain = {name.replace(".linear.", "."): value for name, value in before.items()}
    changed = [name for name, value in states.items() if not torch.equal(value, plain[name])]
    assert len(changed) == len(differences(network)) // 2
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())  # it is trained on
