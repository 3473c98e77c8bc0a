"""Is a test question, or a close paraphrase of it, in the training files?

    python -m benchmarks.overlap --questions data/starter/questions.json --train FILE [FILE ...]

For each question the 20 training questions that share most words are looked at (BM25); a pair counts as a paraphrase when their content words are
the same but for one in five, or their MiniLM cosine is at least 0.90.  Exit code 1 when there is one.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import bm25s
import numpy as np
import Stemmer

from core.models.encoders.sentence_encoder import load_encoder
from core.settings import Settings
from core.text import content_words, word_tokens
from core.training.data.excluded import questions_of

SAME_WORDS, SAME_MEANING = 0.8, 0.90


def paraphrases(tests: Sequence[str], train: Sequence[str]) -> list[tuple[str, str, float, float]]:
    """(test question, training question, share of common content words, cosine) of each suspicious pair."""
    stemmer = Stemmer.Stemmer("english")
    index = bm25s.BM25()
    index.index(bm25s.tokenize(list(train), stopwords="en", stemmer=stemmer, show_progress=False), show_progress=False)
    tokens = bm25s.tokenize(list(tests), stopwords="en", stemmer=stemmer, show_progress=False)
    found, _ = index.retrieve(tokens, k=min(20, len(train)), show_progress=False)
    encoder = load_encoder(Settings.from_env())
    near = sorted({int(i) for row in found for i in row})
    place = {i: n for n, i in enumerate(near)}
    a, b = encoder.encode(list(tests), "query"), encoder.encode([train[i] for i in near], "query")
    out = []
    for test, row, vector in zip(tests, found, a):
        for i in row:
            mine, theirs = set(content_words(test)), set(content_words(train[int(i)]))
            shared = len(mine & theirs) / max(1, len(mine | theirs))
            cosine = float(np.dot(vector, b[place[int(i)]]))
            same = word_tokens(test) == word_tokens(train[int(i)])
            if same or (shared >= SAME_WORDS and cosine >= 0.8) or cosine >= SAME_MEANING:
                out.append((test, train[int(i)], shared, cosine))
    return out


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=Path, default=Path("data/starter/questions.json"))
    parser.add_argument("--train", type=Path, nargs="+", required=True)
    args = parser.parse_args(argv)
    tests = [row["question"] for row in json.loads(args.questions.read_text(encoding="utf-8"))]
    train = list(dict.fromkeys(q for path in args.train for q in questions_of(path)))
    found = paraphrases(tests, train)
    for test, other, shared, cosine in found:
        print(f"{shared:.2f} {cosine:.2f}  {test}  <->  {other}")
    hit = {t for t, *_ in found}
    print(f"{len(hit)} of {len(tests)} questions have a paraphrase among {len(train)} training questions")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
