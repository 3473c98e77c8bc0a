"""Proof of core.models.interleaving: against the models' own attention, and against a literal Eq. 4, 6 and 7.

The literal encoder below knows no padding, no batch and no mask: it holds the rows of one question as they are and loops over rows, heads and
tokens.  What the fast function makes of padded batches must agree with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from core.models.interleaving import ATTENTION_NAME, Packing, _packed, _spread, interleaved_attention, use_interleaving
from core.models.span.network import RowBatch, SpanConfig, SpanNetwork

VOCABULARY = 40
TOLERANCE = 1e-4
# lengths of the rows of each question, the prompt first: unequal lengths, unequal numbers of passages, prompts shorter and longer
SHAPES = {
    "short prompts": [[3, 7, 5, 9], [2, 6], [4, 8, 8]],
    "long prompts": [[9, 4, 6], [11, 3, 5, 2, 7], [6, 5]],
    "one question, one passage": [[4, 6]],
}


def attend(query: Tensor, keys: list[Tensor], values: list[Tensor], biases: list[float], scaling: float) -> Tensor:
    """Attn of one query over a list of keys."""
    scores = [float(query @ key) * scaling + bias for key, bias in zip(keys, biases)]
    top = max(scores)
    weights = [math.exp(score - top) for score in scores]
    out = torch.zeros_like(values[0])
    for weight, value in zip(weights, values):
        out = out + value * (weight / sum(weights))
    return out


def attention(
    q: list[Tensor], k: list[Tensor], v: list[Tensor], heads: int, scaling: float, bias: Tensor | None
) -> list[Tensor]:
    """One layer for one question.  q, k, v: a (tokens, width) tensor for each row, the prompt first."""
    width = q[0].shape[1] // heads
    out = [torch.zeros_like(row) for row in q]
    for h in range(heads):
        part = slice(h * width, (h + 1) * width)
        for r in range(len(q)):
            # Eq. 6: the prompt e sees Cat(K(e), K(x_1), ..., K(x_m)); Eq. 4: a passage x sees Cat(K(E), K(x))
            sees = list(range(len(q))) if r == 0 else [0, r]
            for i in range(q[r].shape[0]):
                keys, values, biases = [], [], []
                for s in sees:
                    for j in range(k[s].shape[0]):
                        keys.append(k[s][j, part])
                        values.append(v[s][j, part])
                        biases.append(float(bias[h, i, j]) if bias is not None and s == r else 0.0)
                out[r][i, part] = attend(q[r][i, part], keys, values, biases, scaling)
    return out


def literal_t5(stack: Any, rows: list[Tensor]) -> list[Tensor]:
    states = [stack.embed_tokens(row) for row in rows]
    longest = max(len(row) for row in rows)
    bias = stack.block[0].layer[0].SelfAttention.compute_bias(longest, longest)[0]  # (H, L, L)
    for block in stack.block:
        layer = block.layer[0].SelfAttention
        normed = [block.layer[0].layer_norm(x) for x in states]
        q, k, v = ([project(x) for x in normed] for project in (layer.q, layer.k, layer.v))
        mixed = attention(q, k, v, layer.n_heads, 1.0, bias)
        states = [x + layer.o(m) for x, m in zip(states, mixed)]
        states = [block.layer[1](x) for x in states]
    return [stack.final_layer_norm(x) for x in states]


def literal_bert(model: Any, rows: list[Tensor]) -> list[Tensor]:
    states = [model.embeddings(input_ids=row[None], token_type_ids=torch.zeros_like(row)[None])[0] for row in rows]
    heads = model.config.num_attention_heads
    for layer in model.encoder.layer:
        inner = layer.attention.self
        q, k, v = ([project(x) for x in states] for project in (inner.query, inner.key, inner.value))
        mixed = attention(q, k, v, heads, (q[0].shape[1] // heads) ** -0.5, None)
        states = [layer.attention.output(m, x) for x, m in zip(states, mixed)]
        states = [layer.output(layer.intermediate(x), x) for x in states]
    return states


@dataclass
class Sample:
    """`ids` (B * R, L) with random ids in the padding, `mask` alike, and the rows of each question without padding."""

    ids: Tensor
    mask: Tensor
    rows: int
    prompt_tokens: int
    questions: list[list[Tensor]]

    @property
    def inputs(self) -> dict[str, Any]:
        return {"input_ids": self.ids, "attention_mask": self.mask.long()}

    @property
    def extra(self) -> dict[str, int]:
        return {"rows": self.rows, "prompt_tokens": self.prompt_tokens}

    def changed(self, question: int, row: int) -> Sample:
        """Other tokens in one row."""
        ids = self.ids.clone()
        n = question * self.rows + row
        ids[n] = torch.where(self.mask[n], (ids[n] + 7) % (VOCABULARY - 1) + 1, ids[n])
        assert not torch.equal(ids, self.ids)
        return replace(self, ids=ids)

    def unpadded(self, states: Tensor) -> list[list[Tensor]]:
        grid, mask = (t.view(-1, self.rows, *t.shape[1:]) for t in (states, self.mask))
        return [[grid[b, r][mask[b, r]] for r in range(len(rows))] for b, rows in enumerate(self.questions)]


def make_sample(lengths: list[list[int]], seed: int = 0) -> Sample:
    generator = torch.Generator().manual_seed(seed)
    count, longest = max(map(len, lengths)), max(max(rows) for rows in lengths)
    ids = torch.randint(1, VOCABULARY, (len(lengths) * count, longest), generator=generator)
    mask = torch.zeros_like(ids, dtype=torch.bool)
    for b, rows in enumerate(lengths):
        for r, size in enumerate(rows):
            mask[b * count + r, :size] = True
    questions = [[ids[b * count + r, :size] for r, size in enumerate(rows)] for b, rows in enumerate(lengths)]
    return Sample(ids, mask, count, max(rows[0] for rows in lengths), questions)


@pytest.fixture(params=["t5", "bert"])
def encoder(request: pytest.FixtureRequest, make_tiny: Any) -> Any:
    model = make_tiny(request.param)
    return model.get_encoder() if request.param == "t5" else model


def literal(encoder: Any, rows: list[Tensor]) -> list[Tensor]:
    with torch.no_grad():
        return literal_bert(encoder, rows) if hasattr(encoder, "embeddings") else literal_t5(encoder, rows)


def run(encoder: Any, sample: Sample, **extra: Any) -> Tensor:
    with torch.no_grad():
        return encoder(**sample.inputs, **extra).last_hidden_state


def close(a: Tensor, b: Tensor, tolerance: float = TOLERANCE) -> None:
    assert a.shape == b.shape
    assert float((a - b).abs().max()) <= tolerance, float((a - b).abs().max())


@pytest.mark.parametrize("own_attention", ["eager", "sdpa"])
def test_without_rows_it_is_the_models_own_attention(encoder: Any, own_attention: str) -> None:
    encoder.set_attn_implementation(own_attention)
    sample = make_sample([[5], [9], [2], [9]])
    full = replace(sample, mask=torch.ones_like(sample.mask))  # no padding: transformers passes no mask at all
    before, before_full = run(encoder, sample), run(encoder, full)
    use_interleaving(encoder)
    assert encoder.config._attn_implementation == ATTENTION_NAME
    close(run(encoder, sample)[sample.mask], before[sample.mask], 1e-5)
    close(run(encoder, full), before_full, 1e-5)


@pytest.mark.parametrize("lengths", SHAPES.values(), ids=SHAPES.keys())
def test_equations_4_and_6(encoder: Any, lengths: list[list[int]]) -> None:
    use_interleaving(encoder)
    sample = make_sample(lengths)
    states = sample.unpadded(run(encoder, sample, **sample.extra))
    for question, rows in zip(states, sample.questions):
        for state, expected in zip(question, literal(encoder, rows)):
            close(state, expected)


@pytest.mark.parametrize("gradients", [False, True])  # the packed and the padded layout
def test_a_prompt_alone_reads_no_passage_and_is_read_by_them(encoder: Any, gradients: bool) -> None:
    use_interleaving(encoder)
    sample = make_sample([[3, 4, 5], [2, 6, 3]])

    def states(of: Sample) -> list[list[Tensor]]:
        with torch.set_grad_enabled(gradients):
            return of.unpadded(encoder(**of.inputs, **of.extra, alone=True).last_hidden_state.detach())

    first, other_passage, other_prompt = states(sample), states(sample.changed(0, 1)), states(sample.changed(0, 0))
    close(first[0][0], other_passage[0][0])
    assert not torch.allclose(first[0][1], other_passage[0][1])
    assert not torch.allclose(first[0][2], other_prompt[0][2])


@pytest.mark.parametrize("lengths", SHAPES.values(), ids=SHAPES.keys())
def test_equation_7_the_span_head_reads_prompt_and_passages(lengths: list[list[int]], make_tiny: Any) -> None:
    torch.manual_seed(3)
    network = SpanNetwork(make_tiny("bert"), SpanConfig(max_answer_tokens=3, max_tokens=32)).eval()
    sample = make_sample(lengths)
    in_passages = sample.mask.clone()
    in_passages[:: sample.rows] = False  # no answer stands in a prompt
    types, layout = torch.zeros_like(sample.ids), (sample.rows, sample.prompt_tokens, True)
    with torch.no_grad():
        spans, eoi = network(RowBatch(sample.ids, types, sample.mask, in_passages, in_passages, *layout))
        for b, rows in enumerate(sample.questions):
            e, *passages = literal(network.encoder, rows)
            x = torch.cat(passages)[None]
            seen = torch.ones(1, x.shape[1], dtype=torch.bool)
            prompt = torch.ones(1, len(e), dtype=torch.bool)
            with_e = network.head.remember(x, e[None], prompt)
            close(eoi[b : b + 1], network.head.eoi(e[None], with_e, seen))
            for n, states in enumerate(with_e[0].split([len(passage) for passage in passages])):
                allowed = torch.ones(1, len(states), dtype=torch.bool)
                expected = network.head.spans(states[None], allowed, allowed)[0]
                scores, finite = spans[b, n, : len(states), : expected.shape[1]], expected.isfinite()
                assert torch.equal(scores.isfinite(), finite)
                close(scores[finite], expected[finite], 1e-3)
            assert not spans[b, len(passages) :].isfinite().any()  # rows of padding hold no answer
            assert not torch.allclose(network.head.remember(x, e[None] + 1.0, prompt), with_e)  # E reaches every passage token


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_runs_and_is_near(encoder: Any, dtype: torch.dtype) -> None:
    use_interleaving(encoder)
    sample = make_sample(SHAPES["short prompts"])
    exact = run(encoder, sample, **sample.extra)[sample.mask]
    with torch.autocast("cpu", dtype=dtype):
        states = encoder(**sample.inputs, **sample.extra).last_hidden_state
        states.float()[sample.mask].square().mean().backward()
    rough = states.detach().float()[sample.mask]
    assert rough.isfinite().all()
    assert float((rough - exact).abs().mean()) < 0.1 * float(exact.abs().mean()) + 0.02
    assert all(p.grad.isfinite().all() for p in encoder.parameters() if p.grad is not None)


def test_dropout_acts_while_training_only(make_tiny: Any) -> None:
    model = make_tiny("bert", attention_probs_dropout_prob=0.5)
    use_interleaving(model)
    sample = make_sample(SHAPES["short prompts"])
    assert torch.equal(run(model, sample, **sample.extra), run(model, sample, **sample.extra))
    model.train()
    assert not torch.equal(run(model, sample, **sample.extra), run(model, sample, **sample.extra))


def test_rows_that_do_not_divide_the_batch_are_refused() -> None:
    q = torch.zeros(5, 1, 2, 4)
    with pytest.raises(ValueError, match="5 rows are not a multiple of 3"):
        interleaved_attention(torch.nn.Identity(), q, q, q, None, rows=3, prompt_tokens=2)


def test_a_prompt_without_passages_is_read_alike_with_and_without_gradients() -> None:
    q = torch.randn(2, 1, 4, 4)
    states = []
    for gradients in (True, False):  # padded, packed
        with torch.set_grad_enabled(gradients):
            states.append(interleaved_attention(torch.nn.Identity(), q, q, q, None, rows=1, prompt_tokens=2)[0])
    torch.testing.assert_close(*states)


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("rows", [None, 3])
def test_padding_for_the_attention_alone_changes_nothing(rows: int | None, alone: bool) -> None:
    """As a GPU does with packed rows; with gradients, so that the padded layout computes it on a CPU too."""
    packing = Packing((3, 5, 2, 4, 0, 6), rows, alone and rows is not None)
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, 20, 4, requires_grad=True) for _ in range(3))
    bias = torch.randn(1, 2, 6, 6)
    outputs = [layout(q, k, v, packing, 0.5, bias) for layout in (_spread, _packed)]
    torch.testing.assert_close(*outputs)
    torch.testing.assert_close(*(torch.autograd.grad(t.square().sum(), k) for t in outputs))
