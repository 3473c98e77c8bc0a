"""Statements from disambiguated question-answer pairs (AmbigNQ has 14,082 of them, and no passages).

"Who played Corie in Barefoot in the Park on Broadway?" + "Elizabeth Ashley" -> "Elizabeth Ashley played Corie in Barefoot in the Park on Broadway." A
statement is set between the sentences of a real passage about the same words, so that the answer has to be found.
"""

from __future__ import annotations

import random
import re

_WH = re.compile(
    r"^(who|whom|when|where|what|which|how many|how much|how long|how old|how)\b\s*(.*)$", re.IGNORECASE | re.DOTALL
)
_AUX = re.compile(r"^(did|does|do|was|were|is|are|has|have|had|will|can)\b\s*(.*)$", re.IGNORECASE | re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'])")


def statement(question: str, answer: str, rng: random.Random) -> str | None:
    """One sentence with the question's words and the answer, or None for a question of unknown form."""
    match = _WH.match(question.strip().rstrip("?").strip())
    if not match:
        return None
    wh, remainder = match.group(1).lower(), match.group(2).strip()
    aux = _AUX.match(remainder)
    if wh == "who" and not (aux and aux.group(1).lower() in ("did", "does", "do")):
        return f"{answer} {remainder}."
    verb, body = (aux.group(1).lower(), aux.group(2).strip()) if aux else ("", remainder)
    if not body:
        return None
    start = body[:1].upper() + body[1:]
    if wh in ("what", "which") and verb in ("is", "was", "are", "were"):
        forms = [f"{start} {verb} {answer}.", f"{answer} {verb} {body}."]
    elif wh in ("what", "which") and not aux:  # "which team won ..." -> "Team: answer won ..."
        noun, _, tail = body.partition(" ")
        forms = [f"The {noun} {answer} {tail}.", f"{answer} is the {noun} that {tail}."] if tail else []
    elif wh in ("how many", "how much"):
        forms = [f"{answer} {body}.", f"{start}: {answer}.", f"The number is {answer} for {body}."]
    elif wh == "when":
        forms = [f"{start} in {answer}.", f"In {answer}, {body}.", f"{start} ({answer}).", f"{start} on {answer}."]
    elif wh == "where":
        forms = [f"{start} in {answer}.", f"{answer} is where {body}.", f"{start} at {answer}."]
    else:
        forms = [f"{start}: {answer}.", f"For {body}, it is {answer}.", f"{answer} is said of {body}."]
    return rng.choice(forms) if forms else None


def insert(sentence: str, passage: str, rng: random.Random, size: int = 100) -> str:
    """The passage with the sentence between two of its own, at most `size` words; the sentence is never cut."""
    parts = _SENTENCE_END.split(passage)
    parts.insert(rng.randint(0, len(parts)), sentence)
    index = parts.index(sentence)
    while sum(len(p.split()) for p in parts) > size and len(parts) > 1:
        drop = 0 if index > len(parts) - 1 - index else len(parts) - 1
        parts.pop(drop)
        index -= drop == 0
    return " ".join(parts)
