"""Did the bundled weights see a test question?  And is a test question, or a close paraphrase of it, in a training file?

    python -m benchmarks.overlap --data DATA [--manuals FOLDER]
    python -m benchmarks.overlap --paraphrases --questions data/starter/questions.json --train FILE [FILE ...]

The first compares the normalised questions of every test set with the files that each checkpoint names as its training data, without the questions
that its training left out (`core train --exclude`).  Exit code 1 when one is left, or when a checkpoint does not say by folder and name what it was
trained on.  The second looks at the 20 training questions that share most words with each question (BM25); a pair counts as a paraphrase when their
content words are the same but for one in five, or their MiniLM cosine is at least 0.90.  Exit code 1 when there is one.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.manuals import most_similar
from benchmarks.train_all import EXCLUDED
from core.datasets.excluded import questions_of
from core.disk import plain_or_gz
from core.models.encoders.sentence_encoder import load_encoder
from core.settings import ROOT, Settings
from core.text import content_words, normalize_answer, word_tokens

SAME_WORDS, SAME_MEANING = 0.8, 0.90
TESTS = (  # below DATA, or below data/
    *EXCLUDED,
    "starter/questions.json",
    "starter_test/questions.json",
    "documentation/questions.jsonl",
    "manuals/dev.jsonl.gz",
)
INPUTS = ("reading", "multi", "annotated", "ambignq", "own", "statements")  # training options that name questions


@functools.cache
def normalised(path: Path) -> frozenset[str]:
    return frozenset(map(normalize_answer, questions_of(path)))


def find(name: str, folders: Sequence[Path]) -> Path | None:
    """The file of a recorded name (`multi/train.jsonl.gz`, or a folder of questions) in one of the folders."""
    for folder in folders:
        for path in (folder / name, plain_or_gz(folder / name / "questions.json")):
            if path.is_file():
                return path
    return None


def training_faults(checkpoint: Path, folders: Sequence[Path]) -> Iterator[str]:
    """The faults of a checkpoint: test questions that it was trained on, and unknown training files."""
    arguments = json.loads((checkpoint / "config.json").read_text(encoding="utf-8")).get("about", {}).get("arguments", {})
    if not arguments:
        yield f"{checkpoint.name}: does not say what it was trained on"
        return
    excluded: set[str] = set()
    for name in arguments.get("exclude") or ():
        if path := find(name, folders):
            excluded |= normalised(path)
    for option in INPUTS:
        value = arguments.get(option) or ()
        for name in dict.fromkeys([value] if isinstance(value, str) else value):
            if (path := find(name, folders)) is None:
                yield f"{checkpoint.name}: --{option} {name} is not below {', '.join(map(str, folders))}"
                continue
            for test in TESTS:
                held_out = find(test, folders)
                if held_out is not None and (common := normalised(path) & normalised(held_out) - excluded):
                    yield f"{checkpoint.name}: {len(common)} questions of {test} are in {name}, such as '{min(common)}'"


def paraphrases(tests: Sequence[str], train: Sequence[str]) -> list[tuple[str, str, float, float]]:
    """(test question, training question, share of common content words, cosine) of each suspicious pair."""
    nearest = most_similar(tests, train, 20)
    encoder = load_encoder(Settings.from_env())
    candidates = sorted({i for row in nearest for i in row})
    vectors = dict(zip(candidates, encoder.encode([train[i] for i in candidates], "query")))
    pairs = []
    for test, row, vector in zip(tests, nearest, encoder.encode(list(tests), "query")):
        for i in row:
            mine, theirs = set(content_words(test)), set(content_words(train[i]))
            shared = len(mine & theirs) / max(1, len(mine | theirs))
            cosine = float(np.dot(vector, vectors[i]))
            is_equal = word_tokens(test) == word_tokens(train[i])
            if is_equal or (shared >= SAME_WORDS and cosine >= 0.8) or cosine >= SAME_MEANING:
                pairs.append((test, train[i], shared, cosine))
    return pairs


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument(
        "--manuals", type=Path, default=ROOT / "var" / "manuals", help="where `benchmarks.manuals cut` wrote its files"
    )
    parser.add_argument("--checkpoints", type=Path, default=ROOT / "checkpoints")
    parser.add_argument("--paraphrases", action="store_true")
    parser.add_argument("--questions", type=Path, default=Path("data/starter/questions.json"))
    parser.add_argument("--train", type=Path, nargs="+", default=[])
    args = parser.parse_args(argv)
    if not args.paraphrases:
        if args.data is None:
            parser.error("--data is needed: the folder of reading/, multi/ and ambignq/")
        folders = (args.data, ROOT / "data", args.manuals.parent)
        files = sorted(args.checkpoints.glob("*/config.json"))
        faults = [fault for file in files for fault in training_faults(file.parent, folders)]
        missing = [test for test in TESTS if find(test, folders) is None]
        print("\n".join([*faults, *(f"{test}: not found, so not compared" for test in missing)]))
        print(f"{len(faults)} faults in {len(files)} checkpoints over {len(TESTS) - len(missing)} test sets")
        return 1 if faults or missing else 0
    tests = [row["question"] for row in json.loads(args.questions.read_text(encoding="utf-8"))]
    train = list(dict.fromkeys(q for path in args.train for q in questions_of(path)))
    pairs = paraphrases(tests, train)
    for test, other, shared, cosine in pairs:
        print(f"{shared:.2f} {cosine:.2f}  {test}  <->  {other}")
    questions = {t for t, *_ in pairs}
    print(f"{len(questions)} of {len(tests)} questions have a paraphrase among {len(train)} training questions")
    return 1 if pairs else 0


if __name__ == "__main__":
    sys.exit(main())
