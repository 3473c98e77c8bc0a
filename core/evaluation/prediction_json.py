"""A prediction as the documented object of `ask --json` and of the service."""

from __future__ import annotations

from typing import Any

from core.disambiguation.outcome import result_of
from core.evaluation.cost import calls_of
from core.evaluation.how_to import section
from core.trace import to_json
from core.types import Prediction


def prediction_json(prediction: Prediction) -> dict[str, Any]:
    """The documented object of `ask --json`, including the trace."""
    calls = calls_of(prediction.events)
    result = result_of(prediction)
    answers = []
    for a in prediction.answers:
        clarification = prediction.clarification_of(a.text)
        answers.append(
            {
                "text": a.text,
                "probability": a.probability,
                "passages": list(dict.fromkeys(e.passage_id for e in a.evidence)),
                "question": prediction.question_of(a.text),
                "label": clarification.label if clarification else "",
                "round_trip": clarification.passed if clarification else None,
                "section": "\n".join(text for text, _ in section(prediction, a)),
                "evidence": [to_json(e) for e in a.evidence],
            }
        )
    return {
        "question": prediction.question.text,
        "system": prediction.system.name,
        "outcome": result.outcome,
        "clarification": to_json(result.clarification),
        "conflicts": to_json(result.conflicts),
        "answers": answers,
        "rejected": [{"answer": text, "why": reason} for text, reason in prediction.rejected.items()],
        "ended": prediction.ended,
        "steps": [to_json(s) for s in prediction.steps],
        "passages": [
            {"id": p.passage.id, "title": p.passage.title, "score": p.score, "rank": p.rank} for p in prediction.passages
        ],
        "seconds": prediction.seconds,
        "calls": {
            "made": len(calls),
            "failed": sum(1 for c in calls if c.error),
            "errors": list(dict.fromkeys(c.error for c in calls if c.error)),
            "warnings": list(dict.fromkeys(c.warning for c in calls if c.warning and not c.error)),
        },
        "info": to_json(prediction.system),
    }
