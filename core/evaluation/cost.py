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


PARTS = ("retrieval", "reading", "verifying", "rewriting", "other")
_VERIFYING = ("verify", "match")  # roles of calls


def times_of(prediction: Prediction) -> dict[str, float]:
    """Seconds by part of a run, in the order of PARTS, parts without time left out.

    Calls that ran at the same time are scaled to the time that they took together.
    """
    events, calls = prediction.events, calls_of(prediction.events)
    found = {
        "retrieval": sum(e.seconds for e in events if isinstance(e, PassagesRetrieved)),
        "reading": sum(s.seconds for s in prediction.steps),
        "rewriting": sum(e.seconds for e in events if isinstance(e, QuestionClarified)),
    }
    verifying = sum(c.seconds for c in calls if c.role in _VERIFYING)
    calling = sum(c.seconds for c in calls)
    free = max(0.0, prediction.seconds - sum(found.values()))
    share = min(1.0, free / calling) if calling else 0.0
    found["verifying"] = share * verifying
    found["reading"] += share * (calling - verifying)
    found["other"] = max(0.0, prediction.seconds - sum(found.values()))
    return {part: found[part] for part in PARTS if found[part] > 0}


def failures(calls: Iterable[ModelCalled]) -> str:
    """In words how many calls of a model failed, and the first reason; "" where none did.

    >>> failures([ModelCalled("interpret", 1, 9, 9, 0.1), ModelCalled("interpret", 1, 9, 0, 0.1, "HTTP 500")])
    "1 of 2 calls of the model failed; the first one at 'interpret': HTTP 500"
    """
    made = list(calls)
    wrong = [c for c in made if c.error]
    if not wrong:
        return ""
    return (
        f"{len(wrong)} of {listed(len(made), 'call')} of the model failed; the first one at '{wrong[0].role}': {wrong[0].error}"
    )


def doubts(calls: Iterable[ModelCalled]) -> str:
    """In words how many calls that did not fail are doubtful, and the first reason; "" where none is.

    >>> doubts([ModelCalled("interpret", 1, 9, 9, 0.1), ModelCalled("verify", 1, 9, 9, 0.1, warning="a prompt was cut")])
    "1 of 2 calls of the model is doubtful; the first one at 'verify': a prompt was cut"
    """
    made = list(calls)
    doubtful = [c for c in made if c.warning and not c.error]
    if not doubtful:
        return ""
    verb = "is" if len(doubtful) == 1 else "are"
    return (
        f"{len(doubtful)} of {listed(len(made), 'call')} of the model {verb} doubtful; the first one at '{doubtful[0].role}': "
        f"{doubtful[0].warning}"
    )


def calls_of(events: Iterable[Event]) -> list[ModelCalled]:
    return [e for e in events if isinstance(e, ModelCalled)]
