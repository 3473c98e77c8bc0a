"""Co-training with weak supervision: single-answer data are partial labels, which answers that several models agree on
complete.

Source: Min et al. 2020, section 5 and the algorithm in its appendix (after democratic co-training, Zhou and Goldman
2004).  In each round, C models are trained on the full data.  Then each model is asked for further answers to every single-answer question, with its answer
y given: here as the first previous answer of the iterative prompt, in the paper as the prefix of the sequence.

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
from typing import Any

from core import disk
from core.disambiguation.round_trip import same_answer
from core.errors import InputError
from core.metrics.answers import f1
from core.text import answer_key
from core.training.data.examples import MultiExample
from core.training.held_out import passages_of, run_answers
from core.training.trainer import RESUME_HINT
from core.types import BatchAnsweringModel

# (examples, seed, run folder) -> a model that is trained there, or was, and its held-out figure
Train = Callable[[Sequence[MultiExample], int, Path], tuple[BatchAnsweringModel, float]]
BATCH_QUESTIONS = 8


@dataclass(frozen=True)
class CoTraining:
    """`models`: C. `rounds`: how many times to label and train again after the first training.

    `max_answers`: of a labelled question.
    """

    models: int = 3
    rounds: int = 1
    max_answers: int = 6
    seed: int = 0


@dataclass(frozen=True)
class RoundLabels:
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
    model: BatchAnsweringModel, examples: Sequence[MultiExample], previous: Sequence[Sequence[str]], max_answers: int
) -> list[list[str]]:
    """The answers that the model finds after the `previous` ones, until [EOI]."""
    return run_answers(
        model, [e.question for e in examples], [passages_of(e) for e in examples], max_answers, BATCH_QUESTIONS, previous
    )


def agreed(answers: Sequence[Sequence[str]], names: Sequence[str]) -> tuple[str, ...]:
    """The answers that more than half of the models give, without the known answer's `names`, in the words of the first model
    that gives them.

    >>> agreed([["Rita Moreno", "1961"], ["rita moreno"], ["Natalie Wood"]], ["Wood"])
    ('Rita Moreno',)
    """
    majority: list[str] = []
    for model_answers in answers:
        for answer in model_answers:
            if any(same_answer(answer, name) for name in names) or any(same_answer(answer, a) for a in majority):
                continue
            votes = sum(answer_key(answer) in map(answer_key, others) for others in answers)
            if 2 * votes > len(answers):
                majority.append(answer)
    return tuple(majority)


def label(models: Sequence[BatchAnsweringModel], partial: Sequence[MultiExample], max_answers: int) -> RoundLabels:
    """The models' majority labels of the partial data."""
    names = [e.gold[0] for e in partial]
    after = [further_answers(model, partial, [n[:1] for n in names], max_answers) for model in models]
    several = {i: agreed_answers for i, n in enumerate(names) if (agreed_answers := agreed([a[i] for a in after], n))}
    undecided = [i for i in range(len(partial)) if i not in several]
    questions = [partial[i] for i in undecided]
    from_scratch = [further_answers(model, questions, [()] * len(questions), max_answers) for model in models]
    single = tuple(
        i
        for i, answers in zip(undecided, zip(*from_scratch))
        if all(any(same_answer(answer, name) for name in names[i]) for model_answers in answers for answer in model_answers)
    )
    return RoundLabels(several, single)


def ensemble_f1(models: Sequence[BatchAnsweringModel], held_out: Sequence[MultiExample], max_answers: int) -> float:
    """The mean answer F1, from 0 to 1, of the answers that more than half of the models give.  Where they agree on none, the
    first model's answers count."""
    answers_of = [further_answers(model, held_out, [()] * len(held_out), max_answers) for model in models]
    votes = ((agreed(answers, ()) or answers[0]) for answers in zip(*answers_of))
    return sum(f1(e.gold, answers) for answers, e in zip(votes, held_out)) / len(held_out)


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
    """Runs all rounds.  Writes run folders to out/round-R/model-I, labels to out/round-R/labels.json, and the result to out/cotraining.json.

    Returns the content of cotraining.json: each round's figures, that of the models' vote on `held_out` and the numbers of labels, and the folder of the
    last round's best model.  Raises InputError if there is nothing to label or `out` has a run with other settings.
    """
    if not full or not partial:
        raise InputError("co-training needs multi-answer questions (--multi or --annotated) and single-answer ones (--reading)")
    if any(len(e.gold) != 1 or not e.gold[0] for e in partial):
        raise InputError("the single-answer data hold a question with no answer or several; put it with the multi-answer data")
    out.mkdir(parents=True, exist_ok=True)
    ours = {**asdict(config), "full": len(full), "partial": len(partial), **(identity or {})}
    if (file := out / "identity.json").exists():
        disk.check_same_run(out, json.loads(file.read_text(encoding="utf-8")), ours)
    else:
        disk.write_json(file, ours, RESUME_HINT)
    data = list(full)
    rounds: list[dict[str, Any]] = []
    for number in range(config.rounds + 1):
        folder = out / f"round-{number}"
        models, figures = [], []
        for i in range(config.models):
            model, figure = train(data, config.seed * 1009 + number * 101 + i, folder / f"model-{i}")
            models.append(model)
            figures.append(figure)
            log(f"round {number}, model {i}: {len(data)} questions, figure {figure:.3f}")
        rounds.append({"questions": len(data), "figures": figures})
        if held_out:
            rounds[-1]["ensemble"] = ensemble_f1(models, held_out, config.max_answers)
        if number < config.rounds:
            if (file := folder / "labels.json").exists():
                row = json.loads(file.read_text(encoding="utf-8"))
                labels = RoundLabels({int(i): tuple(answers) for i, answers in row["several"].items()}, tuple(row["single"]))
            else:
                labels = label(models, partial, config.max_answers)
                disk.write_json(file, asdict(labels), RESUME_HINT)
            several, single = len(labels.several), len(labels.single)
            rounds[-1] |= {"several": several, "single": single, "left_out": len(partial) - several - single}
            log(f"round {number}: {several} questions with agreed answers, {single} with one answer")
            data = [*full, *labels.examples(partial)]  # labels of an earlier round are made again
    best = max(range(config.models), key=lambda i: figures[i])
    report = {"rounds": rounds, "best": f"round-{config.rounds}/model-{best}", "figure": figures[best]}
    disk.write_json(out / "cotraining.json", report, RESUME_HINT)
    return report
