"""Training the verifier: which spans of which windows, and that it learns what it is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from core.errors import InputError
from core.models.encoders.mpnet import load_mpnet
from core.models.encoders.word_pieces import WordPieces
from core.models.ranking.verifier_network import VerifierConfig, VerifierNetwork
from core.models.ranking.verifier_rows import Window
from core.models.span.reader import Readout
from core.training.data.examples import MultiExample
from core.training.data.verifier_examples import Judged, VerifierQuestion, judged, of_multi
from core.training.options import TrainConfig
from core.training.trainer import fit
from core.training.verifier import VerifierTask
from core.types import Candidate, Evidence, Passage

CONFIG = VerifierConfig(rank=4, trained_layers=3, hidden=16, max_tokens=40)


def readout(text: str, *said: tuple[str, float]) -> Readout:
    found = [Candidate(s, p, Evidence("0", text.index(s), text.index(s) + len(s), s)) for s, p in said]
    return Readout(Passage("0", "", text), tuple(found), 0.1)


def test_right_and_wrong_spans_of_a_question() -> None:
    texts = ("Anna Berg won in 1999.", "Bert lost. Anna Berg watched.", "Carl came.")
    asked = VerifierQuestion("Who won?", tuple(("Race", t) for t in texts), ("Anna Berg",), frozenset({0}))
    found = judged(
        asked,
        [
            readout(texts[0], ("Anna", 0.5), ("1999", 0.1)),
            readout(texts[1], ("Bert", 0.6), ("Anna Berg", 0.3)),
            readout(texts[2]),
        ],
        words=4,
    )
    told = [{w.text[a:b]: r for (a, b), r in zip(w.spans, right)} for w, right in zip(found.windows, found.right)]
    # a half of the name is wrong, the name is right though the reader missed it; where it may or may not answer it is left out
    assert told == [{"Anna": False, "1999": False, "Anna Berg": True}, {"Bert": False}]
    assert judged(VerifierQuestion("Who?", (("", "Nobody."),), (), frozenset()), [readout("Nobody.")], 4) is None


def test_false_documents_teach_nothing_right() -> None:
    example = MultiExample(
        "Who?",
        (("", "Anna did."), ("", "Bert did.")),
        (("Anna",), ("Bert",)),
        "ramdocs",
        extra={"origin": ["correct", "misinfo"]},
    )
    assert of_multi(example).answering == {0}
    supported = MultiExample("Who?", example.passages, example.gold, "x", extra={"supporting": ["1"]})
    assert of_multi(supported).answering == {0}


def examples() -> list[Judged]:
    """A colour that is asked for is right, another word is wrong."""
    colours, things = ("red", "blue", "green", "black", "white"), ("ball", "car", "door", "boat", "town")
    out = []
    for colour in colours:
        for thing in things:
            text = f"the {colour} {thing}"
            spans = ((4, 4 + len(colour)), (5 + len(colour), len(text)))
            out.append(Judged((Window("what colour ?", "", text, spans),), ((True, False),)))
            out.append(Judged((Window("who is in the ?", "", text, spans),), ((False, True),)))
    return out


def test_it_learns_and_resumes(tiny_mpnet_folder: Path, tmp_path: Path) -> None:
    every = examples()
    network = VerifierNetwork(load_mpnet(tiny_mpnet_folder), CONFIG)
    task = VerifierTask(every, every, WordPieces(tiny_mpnet_folder), CONFIG, batch_tokens=160)
    before = task.evaluate(network)
    saved: list[Path] = []
    config = TrainConfig(steps=120, lr=5e-3, head_lr=5e-3, warmup=5, evaluate_every=120, device="cpu", precision="fp32")
    row = fit(network, task, config, tmp_path, lambda n, folder, r: saved.append(folder), lambda text: None)
    assert row["top"] >= max(0.9, before["top"])
    assert saved
    frozen = load_mpnet(tiny_mpnet_folder).encoder.layer[0].attention["self"].query.weight
    assert torch.equal(network.encoder.encoder.layer[0].attention["self"].query.linear.weight, frozen)
    again = fit(network, task, config, tmp_path, lambda n, folder, r: None, lambda text: None)
    assert again["step"] == 120  # nothing was left to do


def test_a_batch_without_a_right_span_still_teaches(tiny_mpnet_folder: Path) -> None:
    none = [Judged((Window("who ?", "", "the red ball", ((4, 7),)),), ((False,),))]
    task = VerifierTask(none, [], WordPieces(tiny_mpnet_folder), CONFIG)
    _, batch = next(task.batches(0, 0))
    loss = task.loss(VerifierNetwork(load_mpnet(tiny_mpnet_folder), CONFIG), batch, torch.device("cpu"))
    assert torch.isfinite(loss)
    assert task.evaluate(VerifierNetwork(load_mpnet(tiny_mpnet_folder), CONFIG)) == {}
    with pytest.raises(InputError, match="no question is left"):
        VerifierTask([], [], WordPieces(tiny_mpnet_folder), CONFIG)
