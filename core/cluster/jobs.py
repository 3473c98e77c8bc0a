"""The work that commands spread over a cluster: shards of a corpus, questions of an evaluation, pseudo answers, questions of a
project.

Each is loaded on the workers by a function of this module, with the settings of the command; only its input and its results travel.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from core.cluster.connect import Cluster
from core.cluster.same import Facts, facts_of
from core.cluster.spreading import in_order, spread
from core.engine import Engine
from core.errors import AmbiscopeError
from core.evaluation.plan import EvaluationPlan, PreparedPlan, prepared
from core.settings import Settings
from core.systems.base.options import Options
from core.systems.base.system import answer_or_error
from core.types import AnsweringSystem, Prediction, Question, ReferenceQuestion

if TYPE_CHECKING:
    from core.evaluation.run import AskQuestions
    from core.models.encoders.sentence_encoder import Encoder, Vectors
    from core.retrieval.index import Encode
    from core.training.answerer import Elsewhere
    from core.training.data.examples import MultiExample

SHARDS_AHEAD = 4  # shards per worker that may be finished before an earlier one, and are kept in memory


def _encoder_facts(encoder: Encoder) -> Facts:
    from core.models.encoders.sentence_encoder import passage_weights

    return {"the encoder": encoder.name, "the encoder's weights": passage_weights(encoder)}


def _load_encoder(settings: Settings) -> tuple[Callable[[Sequence[str]], Vectors], Facts]:
    from core.models.encoders.sentence_encoder import load_encoder

    encoder = load_encoder(settings)
    return partial(encoder.encode, kind="passage"), _encoder_facts(encoder)


def encoding(cluster: Cluster, encoder: Encoder) -> Encode:
    """Encodes shards of texts with `encoder` on the workers: `encode` of core.retrieval.index.write_vectors."""

    def encode(shards: Iterator[Sequence[str]], count: int) -> Iterator[Vectors]:
        load = partial(_load_encoder, cluster.settings)
        return in_order(spread(cluster, load, _encoder_facts(encoder), shards, count, SHARDS_AHEAD * cluster.workers))

    return encode


def _load_rows(
    plan: EvaluationPlan, settings: Settings, own_passages: bool, judge: str
) -> tuple[Callable[[ReferenceQuestion], dict[str, Any]], Facts]:
    from core.evaluation.run import run_one

    asking = prepared(plan, Engine(settings), own_passages, judge)

    def row(question: ReferenceQuestion) -> dict[str, Any]:
        return run_one(asking.system, question, asking.judge, plan.traces, asking.long_reader)

    return row, facts_of(asking.system.info)


def evaluating(cluster: Cluster, asking: PreparedPlan, plan: EvaluationPlan) -> AskQuestions:
    """The rows of an evaluation in the order in which they finish: `elsewhere` of core.evaluation.plan.run_plan, once the
    cluster is bound."""

    def ask(questions: Sequence[ReferenceQuestion]) -> Generator[dict[str, Any], None, None]:
        load = partial(_load_rows, plan, cluster.settings, asking.own_passages, asking.judge_name)
        for _, row in spread(cluster, load, facts_of(asking.system.info), questions, len(questions)):
            yield row

    return ask


def _load_pseudo(reader: str, device: str) -> tuple[Callable[[Sequence[MultiExample]], list[list[str]]], Facts]:
    from core.models.span.reader import load_reader
    from core.training.answerer import pseudo_answers

    loaded, digest = load_reader(reader, device)
    return partial(pseudo_answers, loaded), {"the reader's weights": digest}


def reading(cluster: Cluster, reader: str) -> Elsewhere:
    """Pseudo answers of parts of the questions: `elsewhere` of core.training.answerer.build."""

    def read(parts: Sequence[Sequence[MultiExample]], digest: str) -> Iterable[list[list[str]]]:
        load = partial(_load_pseudo, reader, cluster.settings.device)
        return in_order(spread(cluster, load, {"the reader's weights": digest}, parts, len(parts)))

    return read


def _facts_of_kinds(systems: dict[bool, AnsweringSystem]) -> Facts:
    """`systems`: keyed by whether the questions have their own passages."""
    return {
        f"{name}, own passages" if own_passages else name: value
        for own_passages, system in systems.items()
        for name, value in facts_of(system.info).items()
    }


def _load_answers(
    system: str, corpus: str | None, options: Options, settings: Settings, kinds: frozenset[bool]
) -> tuple[Callable[[Question], Prediction | AmbiscopeError], Facts]:
    engine = Engine(settings)
    systems = {own_passages: engine.system(system, corpus, options, own_passages=own_passages) for own_passages in kinds}

    def answer(question: Question) -> Prediction | AmbiscopeError:
        return answer_or_error(systems[question.passages is not None], question)

    return answer, _facts_of_kinds(systems)


def answering(
    cluster: Cluster, system: str, corpus: str | None, options: Options, build: Callable[[bool], AnsweringSystem]
) -> Callable[[Sequence[Question]], Generator[tuple[int, Prediction | AmbiscopeError], None, None]]:
    """(number, prediction or the reason for none) of questions, in the order in which they finish: `elsewhere` of
    storage.analysis.answering.Answering."""

    def ask(questions: Sequence[Question]) -> Generator[tuple[int, Prediction | AmbiscopeError], None, None]:
        kinds = frozenset(question.passages is not None for question in questions)
        load = partial(_load_answers, system, corpus, options, cluster.settings, kinds)
        facts = _facts_of_kinds({own_passages: build(own_passages) for own_passages in kinds})
        yield from spread(cluster, load, facts, questions, len(questions))

    return ask
