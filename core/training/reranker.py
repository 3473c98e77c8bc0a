"""Fits the rerankers of systems (core.models.ranking.reranker) to runs over annotated questions that their models were
not trained on.

For a loop, the candidates of every step are labelled by the references; they fit a conditional logit with [EOI] as the
alternative.  The loop's new runs are then added, because other choices lead to other steps (two rounds, as in dataset
aggregation: Ross et al. 2011).  For a system that reads once, each candidate is a step of its own, so the same fit is a
logistic regression.  The figure is cross-validated by blocks of questions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from core.errors import InputError
from core.models.ranking.features import FEATURES, Embed, Judge, QuestionFeatures, Read, read_with
from core.models.ranking.reranker import Weights, correct, rerank, with_said
from core.models.ranking.verifier import load_verifier
from core.models.span.reader import load_reader
from core.settings import OFF
from core.systems.base.lists import PartByPart, by_parts, parts_of
from core.systems.base.loop import LoopSystem
from core.systems.base.options import Options
from core.systems.base.rescoring import Rescoring, examined
from core.systems.base.selection import distinct
from core.systems.base.system import SystemParts, answer
from core.text import normalize_answer
from core.training.data.examples import MultiExample
from core.training.held_out import answer_f1
from core.training.logit import Labelled, Logit, with_parameters
from core.types import AnsweringSystem, BatchAnsweringModel, Candidate, Proposal, Question, RetrievedPassage

SHIFTS = tuple(np.arange(-1.4, 1.41, 0.2))  # added to the fitted bias: the logistic loss is not F1
FOLDS = 5
MAX_ANSWERS = 8
_RIDGE = 1.0
_RIDGE_FIRST = 5.0  # of what is added at the first step
# of a system that reads once, whose candidates of one question say much the same: of 1, 5, 20 and 80 the best cross-validated F1 of dpr-threshold, all and multi together,
# is at 20 and at 80
_RIDGE_ONCE = 20.0


class Runs(Protocol):
    """Runs of a system over fixed questions, with the candidates it chose from."""

    examples: Sequence[MultiExample]

    @property
    def log(self) -> Callable[[str], None]:
        """Where progress is reported."""
        ...

    def f1(self, ids: Sequence[int], weights: Weights | None) -> dict[int, float]:
        """F1 of each question with these weights, from 0 to 1; without weights, of the unchanged system."""
        ...

    def steps(self, ids: Sequence[int]) -> list[Labelled]:
        """The recorded steps of these questions."""
        ...


@dataclass
class LoopRuns:
    """Greedy runs of an answering model.

    The model's proposals and their features are kept for each (question, previous answers).
    """

    model: BatchAnsweringModel
    examples: Sequence[MultiExample]
    passages: Sequence[Sequence[RetrievedPassage]]
    embed: Embed
    read: Read
    log: Callable[[str], None] = print
    judge: Judge | None = None
    _seen: dict[int, QuestionFeatures] = field(default_factory=dict)
    _kept: dict[tuple[int, tuple[str, ...]], tuple[Proposal, NDArray[np.float64]]] = field(default_factory=dict)

    def step(self, i: int, previous: Sequence[str]) -> tuple[Proposal, NDArray[np.float64]]:
        """The candidates and features of one step, computed once."""
        key = (i, tuple(previous))
        if key not in self._kept:
            question = self.examples[i].question
            if i not in self._seen:
                self._seen[i] = QuestionFeatures(question, self.passages[i], self.embed, self.read, self.judge)
            (proposal,) = self.model.propose_many([(question, self.passages[i], list(previous))])
            proposal = self._seen[i].with_second_readings(previous, proposal)
            values = self._seen[i].step(previous, proposal)
            self._kept[key] = with_said(proposal, values, self.judge is not None), values
            if len(self._kept) % 100 == 0:
                self.log(f"{len(self._kept)} steps read")
        return self._kept[key]

    @dataclass(frozen=True)
    class _Ranked:
        """The steps of one question as an answering model; without weights, the model's own."""

        runs: LoopRuns
        number: int
        weights: Weights | None

        def propose(self, question: str, passages: Sequence[RetrievedPassage], previous: Sequence[str]) -> Proposal:
            proposal, values = self.runs.step(self.number, previous)
            return proposal if self.weights is None else rerank(proposal, self.weights.scores(values))

    def answers(self, i: int, weights: Weights | None) -> list[str]:
        """One greedy run; without weights, the model's own."""
        found: list[str] = []
        model = self._Ranked(self, i, weights)
        loop = PartByPart(model) if weights is not None else model
        while len(found) < MAX_ANSWERS:
            proposal = loop.propose(self.examples[i].question, self.passages[i], found)
            top = proposal.candidates[0] if proposal.candidates else None
            if (
                top is None
                or top.probability <= proposal.eoi_probability
                or normalize_answer(top.text) in map(normalize_answer, found)
            ):
                break
            found.append(top.text)
        return found

    def f1(self, ids: Sequence[int], weights: Weights | None) -> dict[int, float]:
        return {i: answer_f1(self.answers(i, weights), self.examples[i].gold) for i in ids}

    def steps(self, ids: Sequence[int]) -> list[Labelled]:
        """All steps ever taken for these questions that had a candidate."""
        out: list[Labelled] = []
        wanted = set(ids)
        for (i, previous), (proposal, values) in sorted(self._kept.items(), key=lambda item: item[0]):
            if i in wanted and len(values):
                out.append(labelled(self.examples[i], previous, proposal.candidates, values, len(self.passages[i]) == 1))
        return out


def labelled(
    example: MultiExample,
    previous: Sequence[str],
    candidates: Sequence[Candidate],
    values: NDArray[np.float64],
    lists: bool = False,
) -> Labelled:
    """A step by what is known of its question.  Where that is only which answers are wrong, all others are right, and [EOI] is too.

    `lists`: read by their parts (core.systems.base.lists); one is right if most of them are.
    """
    if example.extra.get("negatives_only"):
        return Labelled(values, np.array([not correct(c, [example.bad]) for c in candidates]), True)
    left = [g for g in example.gold if not any(answer_f1([p], [g]) for p in previous)]
    parts = [parts_of(c) if lists else (c,) for c in candidates]
    right = np.array([2 * sum(correct(p, left) for p in own) > len(own) for own in parts])
    return Labelled(values, right, not right.any())


class _Recorder(Rescoring):
    """Records the candidates that a system would rescore, without changing them."""

    def __init__(self, parts: SystemParts) -> None:
        super().__init__(parts)
        self.noted: list[tuple[Sequence[RetrievedPassage], Sequence[Candidate], Any, bool]] = []

    @property
    def on(self) -> bool:
        return True

    def rescored(
        self,
        question: str,
        passages: Sequence[RetrievedPassage],
        candidates: Sequence[Candidate],
        readouts: Any = None,
        whole_lists: bool = False,
    ) -> list[Candidate]:
        self.noted.append((passages, candidates, readouts, not whole_lists and self.parts.retriever is None))
        return list(candidates)


class OnceRuns:
    """Runs of a system that reads once, with each candidate scored separately."""

    def __init__(
        self,
        systems: Mapping[str, tuple[AnsweringSystem, Any]],
        examples: Sequence[MultiExample],
        asked: Sequence[tuple[str, Question]],
        read: Read,
        judge: Judge | None = None,
        log: Callable[[str], None] = print,
    ) -> None:
        """`systems`: by corpus, the system without additions, and a second one whose additions are replaced by a
        recorder.

        `asked`: (corpus, question) pairs.  `judge`: the verifier, where it is asked.
        """
        self.examples, self.log = examples, log
        self._plain: dict[int, float] = {}
        self._kept: list[tuple[Sequence[Candidate], NDArray[np.float64]]] = []
        self._lists: list[Sequence[RetrievedPassage]] = []  # the passages whose lists are read by their parts
        for _, noting in systems.values():
            noting.rescoring = _Recorder(noting.parts)
        for i, (example, (corpus, question)) in enumerate(zip(examples, asked)):
            plain, noting = systems[corpus]
            self._plain[i] = answer_f1([a.text for a in answer(plain, question).answers], example.gold)
            answer(noting, question)
            noted, embed = noting.rescoring.noted, noting.parts.embed
            found = [n for n in noted if n[1]]
            noted.clear()
            self._lists.append(next((passages for passages, _, _, apart in found if apart), ()))
            if not found:
                self._kept.append(((), np.zeros((0, len(FEATURES)))))
                continue
            ((passages, candidates, readouts, _),) = found
            how = read if readouts is None else lambda *_, own=readouts: own
            self._kept.append(examined(QuestionFeatures(question.text, passages, embed, how, judge), candidates))
            if (i + 1) % 20 == 0:
                log(f"{i + 1} questions read")

    def f1(self, ids: Sequence[int], weights: Weights | None) -> dict[int, float]:
        if weights is None:
            return {i: self._plain[i] for i in ids}
        return {i: answer_f1(self._answers(i, weights), self.examples[i].gold) for i in ids}

    def _answers(self, i: int, weights: Weights) -> list[str]:
        candidates, values = self._kept[i]
        scores = weights.scores(values)
        ordered = [candidates[j] for j in np.argsort(-scores, kind="stable") if scores[j] >= 0]
        return [c.text for c in distinct(by_parts(ordered, self._lists[i]))][:MAX_ANSWERS]

    def steps(self, ids: Sequence[int]) -> list[Labelled]:
        return [
            labelled(self.examples[i], (), [c], values[j : j + 1], len(self._lists[i]) == 1)
            for i in ids
            for candidates, values in (self._kept[i],)
            for j, c in enumerate(candidates)
        ]


def runs_of(
    engine: Any,
    system: str,
    examples: Sequence[MultiExample],
    passages: Sequence[Sequence[RetrievedPassage]],
    corpora: Sequence[str],
    verified: bool,
    log: Callable[[str], None],
) -> tuple[Runs, dict[str, Any]]:
    """(the runs of a system without additions, what was run).

    What was run: the folder of its rerankers and the digests of its weights.  `corpora`: the corpus of each question,
    "" if it brings its passages.  `verified`: also ask the verifier, unless it is switched off.  Raises
    CheckpointError.
    """
    settings = engine.settings
    reader, _ = load_reader(settings.reader, settings.device)
    about: dict[str, Any] = {}
    judge = None
    if verified and settings.verifier != OFF:
        verifier, about["verifier"] = load_verifier(settings.verifier, settings.device)
        judge = verifier.judge
    plain = Options(clarify=False, extra={"additions": "none"})

    def made(corpus: str) -> Any:
        return engine.system(system, corpus or None, plain, own_passages=not corpus)

    systems = {corpus: (made(corpus), made(corpus)) for corpus in dict.fromkeys(corpora)}
    first: Any = next(iter(systems.values()))[0]
    about |= {"folder": first.rescoring.folder, "checkpoint": first.info.checkpoint_digest}
    runs: Runs
    if isinstance(first, LoopSystem):
        model: Any = first.model  # it answers many at once, as every model of weights does
        runs = LoopRuns(model, examples, passages, engine.embed, read_with(reader), log, judge)
        return runs, about
    own = [None if corpus else tuple(p.passage for p in found) for corpus, found in zip(corpora, passages)]
    asked = [(c, Question(e.question, passages=p)) for c, e, p in zip(corpora, examples, own)]
    return OnceRuns(systems, examples, asked, read_with(reader), judge, log), about


def ridge_of(weights: Weights) -> NDArray[np.float64]:
    """The penalty of each parameter but the bias, which has none."""
    n = len(weights.weights)
    return np.array([*[_RIDGE] * n, *[_RIDGE_FIRST] * n, 0.0]) if weights.first else np.array([*[_RIDGE_ONCE] * n, 0.0])


def fit_weights(steps: Sequence[Labelled], fitted_on: str = "", without: Sequence[str] = ()) -> Weights:
    """The weights that give each step's right candidates, or [EOI] if none is left, most of the deciding softmax
    (`rerank`).

    They maximise the marginal likelihood of Eq. 10's targets (Sun et al. 2023) with a ridge penalty, which is stronger
    on the extra weights of the first step.  `without`: features that get no weight.  Raises InputError if all
    candidates are right, or all are wrong.
    """
    names = [name for name in FEATURES if name not in without]
    if len({bool(y) for s in steps for y in s.right}) < 2:
        raise InputError("the candidates are all right or all wrong, so there is nothing to fit; give more annotated questions")
    rows = np.concatenate([s.values for s in steps])
    at_first, rows = rows[:, FEATURES.index("first_step")], rows[:, [FEATURES.index(name) for name in names]]
    scale = rows.std(0)
    scale[scale < 1e-6] = 1.0

    def named(values: NDArray[np.float64]) -> dict[str, float]:
        return {name: float(v) for name, v in zip(names, values)}

    none = dict.fromkeys(names, 0.0)
    first = {} if at_first.all() else none  # else there is no later step to differ from
    empty = Weights(none, named(rows.mean(0)), named(scale), 0.0, fitted_on, first)
    return with_parameters(empty, Logit.of(steps, empty).fitted(ridge_of(empty)))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _figures(runs: Runs, scores: dict[int, float]) -> dict[str, float]:
    multi = [v for i, v in scores.items() if len(runs.examples[i].gold) > 1]
    return {"f1": round(_mean(list(scores.values())), 4), "f1_multi": round(_mean(multi), 4)}


def _shifted(runs: Runs, ids: Sequence[int], weights: Weights) -> Weights:
    """The weights with the bias that gives the best F1 on these questions, all and multi together.

    It is the middle of the best three consecutive shifts, because F1 is sensitive to single questions.
    """
    tried = [replace(weights, bias=weights.bias + shift) for shift in SHIFTS]
    scores = np.array([sum(_figures(runs, runs.f1(ids, w)).values()) for w in tried])
    return tried[1 + int(np.argmax(np.convolve(scores, np.ones(3), "valid")))]


def fit_reranker(
    runs: Runs, rounds: int = 2, fitted_on: str = "", without: Sequence[str] = ()
) -> tuple[Weights, dict[str, dict[str, float]]]:
    """(weights fitted on all questions; figures: those of the unchanged runs, and cross-validated ones with the
    reranker).

    `without`: features to leave out.  Raises InputError for fewer than 2 x FOLDS questions.
    """
    everything = list(range(len(runs.examples)))
    if len(everything) < 2 * FOLDS:
        raise InputError(f"{len(everything)} annotated questions are too few to fit a reranker; give at least {2 * FOLDS}")
    figures = {"plain": _figures(runs, runs.f1(everything, None))}
    runs.log(f"plain: {figures['plain']}")
    for _ in range(rounds):
        weights = fit_weights(runs.steps(everything), fitted_on, without)
        runs.f1(everything, weights)  # collects the steps that these weights lead to
    weights = _shifted(runs, everything, fit_weights(runs.steps(everything), fitted_on, without))
    scores: dict[int, float] = {}
    for part in np.array_split(everything, FOLDS):  # blocks, because neighbouring questions share passages
        rest = [i for i in everything if i not in set(part.tolist())]
        own = _shifted(runs, rest, fit_weights(runs.steps(rest), without=without))
        scores |= runs.f1(part.tolist(), own)
    figures["cross_validated"] = _figures(runs, scores)
    runs.log(f"cross-validated: {figures['cross_validated']}")
    return weights, figures
