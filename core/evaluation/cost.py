"""The cost of a run: calls of the retriever and the generator, with input lengths.

Source: Lee et al. 2025 (VerDICt), Table 1 (calls and input length in passages) and Figure 5 (what runs one after the other).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from core.text import listed
from core.types import Event, ModelCalled, PassagesRetrieved, Prediction, QuestionClarified


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one run."""

    retriever_calls: int = 0
    model_calls: int = 0
    passages_read: int = 0  # summed over the calls: a passage read twice counts twice
    prompt_tokens: int = 0
    completion_tokens: int = 0
    failed_calls: int = 0
    retriever_seconds: float = 0.0
    model_seconds: float = 0.0  # summed over the calls; more than `seconds` if they ran concurrently
    seconds: float = 0.0  # of the whole run
    calls_by_role: Mapping[str, int] = field(default_factory=dict)


def cost_of(prediction: Prediction) -> Cost:
    """The cost of one prediction.  A question with its own passages has no retriever call."""
    calls = calls_of(prediction.events)
    searches = (
        [e for e in prediction.events if isinstance(e, PassagesRetrieved)] if prediction.question.passages is None else []
    )
    return Cost(
        retriever_calls=len(searches),
        model_calls=len(calls),
        passages_read=sum(c.passages for c in calls),
        prompt_tokens=sum(c.prompt_tokens for c in calls),
        completion_tokens=sum(c.completion_tokens for c in calls),
        failed_calls=sum(1 for c in calls if c.error),
        retriever_seconds=sum(s.seconds for s in searches),
        model_seconds=sum(c.seconds for c in calls),
        seconds=prediction.seconds,
        calls_by_role=dict(Counter(c.role for c in calls)),
    )


COST_PARTS = ("retrieval", "reading", "verifying", "rewriting", "other")
_VERIFYING = ("verify", "match")  # roles of calls


def times_of(prediction: Prediction) -> dict[str, float]:
    """Seconds of each part of a run, in the order of PARTS, without parts that took no time.

    Calls that ran at the same time are scaled to the time that they took together.
    """
    events, calls = prediction.events, calls_of(prediction.events)
    seconds = {
        "retrieval": sum(e.seconds for e in events if isinstance(e, PassagesRetrieved)),
        "reading": sum(s.seconds for s in prediction.steps),
        "rewriting": sum(e.seconds for e in events if isinstance(e, QuestionClarified)),
    }
    verifying = sum(c.seconds for c in calls if c.role in _VERIFYING)
    calling = sum(c.seconds for c in calls)
    remaining = max(0.0, prediction.seconds - sum(seconds.values()))
    share = min(1.0, remaining / calling) if calling else 0.0
    seconds["verifying"] = share * verifying
    seconds["reading"] += share * (calling - verifying)
    seconds["other"] = max(0.0, prediction.seconds - sum(seconds.values()))
    return {part: seconds[part] for part in COST_PARTS if seconds[part] > 0}


def call_problems(events: Iterable[Event]) -> list[str]:
    """Messages about how many calls of a model failed and how many others are doubtful, each with the first reason; [] without
    problems.

    >>> call_problems([ModelCalled("interpret", 1, 9, 9, 0.1), ModelCalled("interpret", 1, 9, 0, 0.1, "HTTP 500")])
    ["1 of 2 calls of the model failed; the first one at 'interpret': HTTP 500"]
    >>> call_problems([ModelCalled("interpret", 1, 9, 9, 0.1), ModelCalled("verify", 1, 9, 9, 0.1, warning="a prompt was cut")])
    ["1 of 2 calls of the model is doubtful; the first one at 'verify': a prompt was cut"]
    """
    calls = calls_of(events)
    failed = [(c.role, c.error) for c in calls if c.error]
    doubtful = [(c.role, c.warning) for c in calls if c.warning and not c.error]
    return [
        f"{len(problems):,} of {listed(len(calls), 'call')} of the model {verb}; the first one at '{problems[0][0]}': {problems[0][1]}"
        for problems, verb in ((failed, "failed"), (doubtful, "is doubtful" if len(doubtful) == 1 else "are doubtful"))
        if problems
    ]


def calls_of(events: Iterable[Event]) -> list[ModelCalled]:
    """The calls of language models among a run's events."""
    return [e for e in events if isinstance(e, ModelCalled)]
