"""RAMDocs as published: JSON lines of `question`, `documents` (text, type, answer), `gold_answers`, `wrong_answers`.

Source: Wang et al. 2025.  Each question brings its documents; those of type `misinfo` are false on purpose.
"""

from __future__ import annotations

from pathlib import Path

from core.datasets.lines import DataLine, load_lines
from core.text import answer_key
from core.types import Annotation, Passage, QAPair, ReferenceQuestion

TYPES = ("correct", "misinfo", "noise")


def load(path: Path) -> list[ReferenceQuestion]:
    """Loads a file.  Raises FormatError with the line, also for a document of an unknown type."""
    return load_lines(path, _question)


def _question(line: DataLine, name: str) -> ReferenceQuestion:
    question = line.text(line.row.get("question"), "question")
    gold = line.texts(line.row.get("gold_answers"), "gold_answers")
    wrong = line.texts(line.row.get("wrong_answers", []), "wrong_answers", empty=True)
    documents = line.items(line.row.get("documents"), "documents", dict)
    passages, support = [], dict[str, list[str]]()
    for i, body in enumerate(documents):
        field = f"documents[{i}]"
        kind = line.text(body.get("type"), f"{field}.type")
        if kind not in TYPES:
            raise line.error(f"the type '{kind[:40]}' is unknown; expected {', '.join(TYPES)}", f"{field}.type")
        passage = Passage(f"{name}#{i + 1}", "", line.text(body.get("text"), f"{field}.text"))
        passages.append(passage)
        if kind == "correct" and isinstance(body.get("answer"), str):
            support.setdefault(answer_key(body["answer"]), []).append(passage.id)
    pairs = tuple(QAPair(question if len(gold) == 1 else "", (a,), tuple(support.get(answer_key(a), ()))) for a in gold)
    used_fields = ("id", "question", "documents", "gold_answers", "wrong_answers")
    extra = {"source": "ramdocs", **{k: v for k, v in line.row.items() if k not in used_fields}, "wrong_answers": wrong}
    note = Annotation("single" if len(pairs) == 1 else "multiple", pairs)
    return ReferenceQuestion(name, question, (note,), tuple(passages), extra)
