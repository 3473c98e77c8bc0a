"""Questions with passages as a system sees them, for models that are fitted on top of trained weights.

They are held-out annotated questions with the passages that a retriever finds in their own corpus, and questions that bring their passages.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.disk import plain_or_gz
from core.errors import InputError
from core.settings import ROOT
from core.systems.base.system import as_retrieved
from core.training.data.examples import MultiExample, read_multi
from core.training.data.mixtures import annotated_examples
from core.types import Passage, RetrievedPassage

HELD_OUT_SHARE = 0.2  # of an annotated folder whose questions name no split, as `train` leaves it out
# by this project, to train on
PRACTICE_FOLDERS = tuple(ROOT / "data" / name for name in ("practice", "practice_facts", "practice_documents"))


def held_out_passages(
    engine: Any, folders: Sequence[Path], top_k: int, limit: int = 0, seed: int = 0, skip: int = 0
) -> tuple[list[MultiExample], list[Sequence[RetrievedPassage]]]:
    """(questions, their passages), folder by folder; `extra["folder"]` names the folder.  Neighbours stay neighbours.

    A folder's corpus is indexed under the folder's name unless it already is.  `limit`: most questions, drawn evenly
    from the folders (0: all).  `skip`: leaves out the questions that this limit draws with the same seed.  Raises
    InputError without a folder or for two of the same name, and what reading a folder raises.
    """
    if not folders:
        raise InputError("no annotated folder is named: --annotated FOLDER (questions.json and passages.tsv)")
    names = [folder.resolve().name for folder in folders]
    if twice := {n for n in names if names.count(n) > 1}:
        raise InputError(f"two annotated folders are named {', '.join(sorted(twice))}: a corpus has the name of its folder")
    questions: list[MultiExample] = []
    passages: list[Sequence[RetrievedPassage]] = []
    for number, (name, folder) in enumerate(zip(names, folders)):
        _, examples = annotated_examples(folder, held_out=HELD_OUT_SHARE)
        if limit or skip:
            count, first = (
                n // len(folders) + (number < n % len(folders)) for n in (limit or len(folders) * len(examples), skip)
            )
            order = list(range(len(examples)))
            random.Random(seed).shuffle(order)
            examples = [examples[i] for i in sorted(order[first : first + count])]
        engine.library.create(name, [plain_or_gz(folder / "passages.tsv")])  # left as it is where it was built before
        passages += engine.corpus(name).search_many([e.question for e in examples], top_k)
        questions += [replace(e, extra={**e.extra, "folder": name}) for e in examples]
    return questions, passages


def own_examples(files: Sequence[Path], limit: int = 0, seed: int = 0) -> list[MultiExample]:
    """The questions that have an answer and bring passages, in random order, because files list source after source.

    Raises FormatError, and InputError if no question remains.
    """
    examples = [e for file in files for e in read_multi(file) if e.passages and e.gold]
    if not examples:
        raise InputError("no question of --multi has an answer and passages of its own")
    random.Random(seed).shuffle(examples)
    return examples[: limit or None]


def own_passages(
    engine: Any, files: Sequence[Path], limit: int = 0, seed: int = 0
) -> tuple[list[MultiExample], list[Sequence[RetrievedPassage]]]:
    """(the `own_examples`, the passages that each brings, with cosines).  Raises FormatError, InputError."""
    examples = own_examples(files, limit, seed)
    passages_of = [[Passage(str(j), title, text) for j, (title, text) in enumerate(e.passages)] for e in examples]
    return examples, [as_retrieved(e.question, passages, engine.similarity) for e, passages in zip(examples, passages_of)]
