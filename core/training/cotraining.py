"""Co-training with weak supervision: single-answer data are partial labels, completed by what several models agree on.

Source: Min et al. 2020, section 5 and the algorithm in its appendix (after democratic co-training, Zhou and Goldman
2004).  In each round, C models are trained on the full data.  Then each model is asked for further answers to every
single-answer question, with its answer y given: here as the first previous answer of the iterative prompt, in the paper
as the prefix of the sequence.

- Answers that more than C / 2 models give besides y are added: (question, {y} + those) joins the next full data.
- If there are none, and no model without given answers finds anything but y, (question, {y}) joins as a question with
  a single answer.
- Everything else is left out.

Deterministic for a seed.  An interrupted run resumes: trained models and written labels are reused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from core import disk
from core.decoding import run_answers
from core.disambiguation.round_trip import same_answer
from core.errors import InputError
from core.metrics.answers import f1
from core.text import normalize_answer
from core.training.data.examples import MultiExample
from core.training.held_out import passages_of
from core.types import BatchAnsweringModel

BATCH = 8


@dataclass(frozen=True)
class CoTraining:
    """`models`: C.  `rounds`: how often to label and train again after the first training.

    `max_answers`: of a labelled question.
    """

    models: int = 3
    rounds: int = 1
    max_answers: int = 6
    seed: int = 0


@dataclass(frozen=True)
class Labels:
    """A round's labels of the partial data, by index of the example."""

    several: dict[int, tuple[str, ...]]  # index -> agreed answers besides the known one
    single: tuple[int, ...]

    def examples(self, partial: Sequence[MultiExample]) -> list[MultiExample]:
        """The labelled examples to add to the full data."""
        out = []
        for i in sorted({*self.several, *self.single}):
            e, agreed = partial[i], self.several.get(i, ())
            gold = (*e.gold, *((answer,) for answer in agreed))
            out.append(MultiExample(e.question, e.passages, gold, f"{e.source}-cotrained", e.bad, {}))
        return out


def further_answers(
    model: BatchAnsweringModel, examples: Sequence[MultiExample], given: Sequence[Sequence[str]], most: int
) -> list[list[str]]:
    """The answers that the model gives after `given`, until [EOI]."""
    return run_answers(model, [e.question for e in examples], [passages_of(e) for e in examples], most, BATCH, given)


def agreed(answers: Sequence[Sequence[str]], known: Sequence[str]) -> tuple[str, ...]:
    """Answers that more than half of the models give, without the known answer's names, in the first such model's
    words.

    >>> agreed([["Rita Moreno", "1961"], ["rita moreno"], ["Natalie Wood"]], ["Wood"])
    ('Rita Moreno',)
    """
    out: list[str] = []
    for own in answers:
        for answer in own:
            if any(same_answer(answer, name) for name in known) or any(same_answer(answer, a) for a in out):
                continue
            votes = sum(any(normalize_answer(answer) == normalize_answer(other) for other in others) for others in answers)
            if 2 * votes > len(answers):
                out.append(answer)
    return tuple(out)


def label(models: Sequence[BatchAnsweringModel], partial: Sequence[MultiExample], most: int) -> Labels:
    """The models' vote on the partial data."""
    names = [e.gold[0] for e in partial]
    after = [further_answers(model, partial, [n[:1] for n in names], most) for model in models]
    several = {i: found for i, n in enumerate(names) if (found := agreed([a[i] for a in after], n))}
    rest = [i for i in range(len(partial)) if i not in several]
    fresh = [further_answers(model, [partial[i] for i in rest], [()] * len(rest), most) for model in models]
    single = tuple(
        i for k, i in enumerate(rest) if all(all(any(same_answer(a, n) for n in names[i]) for a in own[k]) for own in fresh)
    )
    return Labels(several, single)


def ensemble_f1(models: Sequence[BatchAnsweringModel], held_out: Sequence[MultiExample], most: int) -> float:
    """Mean F1 answer, from 0 to 1, of what more than half of the models answer; the first model's answers where they agree on none."""
    own = [further_answers(model, held_out, [()] * len(held_out), most) for model in models]
    votes = ((agreed(answers, ()) or answers[0]) for answers in zip(*own))
    return sum(f1(e.gold, answers) for answers, e in zip(votes, held_out)) / len(held_out)


class Train(Protocol):
    """Trains one model on examples in a run folder, and resumes what is there; returns the model and its held-out
    figure.
    """

    def __call__(self, examples: Sequence[MultiExample], seed: int, folder: Path) -> tuple[BatchAnsweringModel, float]: ...


def cotrain(
    full: Sequence[MultiExample],
    partial: Sequence[MultiExample],
    train: Train,
    config: CoTraining,
    out: Path,
    log: Callable[[str], None] = print,
    identity: dict[str, Any] | None = None,
    held_out: Sequence[MultiExample] = (),
) -> dict[str, Any]:
    """Runs all rounds.  Writes run folders to out/round-R/model-I, labels to out/round-R/labels.json, and the result to
    out/cotraining.json.

    Returns the content of cotraining.json: the rounds with their figures, that of the models' vote on `held_out`, and numbers of labels, and the folder of the
    best model of the last round.  Raises InputError if there is nothing to label or `out` holds a run with other
    settings.
    """
    if not full or not partial:
        raise InputError("co-training needs multi-answer questions (--multi or --annotated) and single-answer ones (--reading)")
    if any(len(e.gold) != 1 or not e.gold[0] for e in partial):
        raise InputError("the single-answer data hold a question with no answer or several; put it with the multi-answer data")
    out.mkdir(parents=True, exist_ok=True)
    _claim(out / "identity.json", {**asdict(config), "full": len(full), "partial": len(partial), **(identity or {})})
    data = list(full)
    rounds: list[dict[str, Any]] = []
    best: tuple[float, Path] | None = None
    for number in range(config.rounds + 1):
        folder = out / f"round-{number}"
        models, figures = [], []
        for i in range(config.models):
            run = folder / f"model-{i}"
            model, figure = train(data, config.seed * 1009 + number * 101 + i, run)
            models.append(model)
            figures.append(figure)
            log(f"round {number}, model {i}: {len(data)} questions, figure {figure:.3f}")
        best = max(((f, folder / f"model-{i}") for i, f in enumerate(figures)), key=lambda pair: pair[0])
        rounds.append({"questions": len(data), "figures": figures})
        if held_out:
            rounds[-1]["ensemble"] = ensemble_f1(models, held_out, config.max_answers)
        if number < config.rounds:
            labels = _labels(folder / "labels.json", lambda models=models: label(models, partial, config.max_answers))  # type: ignore[misc]
            rounds[-1] |= {"several": len(labels.several), "single": len(labels.single), "left_out": _left(labels, partial)}
            log(f"round {number}: {len(labels.several)} questions with agreed answers, {len(labels.single)} with one answer")
            data = [*full, *labels.examples(partial)]  # labels of an earlier round are made again
    assert best is not None
    report = {"rounds": rounds, "best": str(best[1].relative_to(out)), "figure": best[0]}
    _write(out / "cotraining.json", report)
    return report


def _left(labels: Labels, partial: Sequence[MultiExample]) -> int:
    return len(partial) - len(labels.several) - len(labels.single)


def _labels(file: Path, make: Callable[[], Labels]) -> Labels:
    if file.exists():
        stored = json.loads(file.read_text())
        return Labels({int(k): tuple(v) for k, v in stored["several"].items()}, tuple(stored["single"]))
    labels = make()
    _write(file, {"several": labels.several, "single": labels.single})
    return labels


def _claim(file: Path, identity: dict[str, Any]) -> None:
    ours = json.loads(json.dumps(identity))
    if file.exists():
        theirs = json.loads(file.read_text())
        if theirs != ours:
            other = ", ".join(sorted(k for k in {*ours, *theirs} if ours.get(k) != theirs.get(k)))
            raise InputError(
                f"{file.parent} holds a run with other settings ({other}); name another folder with --out or delete it"
            )
    else:
        _write(file, ours)


def _write(file: Path, value: Any) -> None:
    disk.write_text(file, json.dumps(value, indent=1) + "\n", "free some space and start again to resume")
