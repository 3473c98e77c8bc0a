"""The recipe of the bundled weights: examples and their shares, from files in the documented layouts."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from core import json_io
from core.disk import plain_or_gz
from core.errors import FormatError
from core.text import PASSAGE_WORDS, mentions
from core.training.data.examples import (
    MultiExample,
    ReadingExample,
    ReadingRow,
    Titled,
    crop,
    read_annotated,
    read_multi,
    read_passages_tsv,
    read_reading,
)
from core.training.data.mining import Miner
from core.training.data.statements import insert, statement

SEARCHED_PASSAGES = 12  # passages of an annotated question, so that enough are left where the supporting ones are taken away
# share of a source's rows that an epoch takes; sources not named: 1.  qamr is one sentence a row and plentiful; policyqa's answers are clauses
SOURCE_SHARES = {"qamr": 0.4, "policyqa": 0.15, "hotpotqa": 0.0}


def load_reading(paths: Sequence[Path], keep: dict[str, float] | None = None, seed: int = 0) -> list[ReadingExample]:
    """The rows of `reading` files.  `keep`: the share of each source to keep.  Raises FormatError."""
    rng = random.Random(seed)
    shares = SOURCE_SHARES if keep is None else keep
    return [e for path in paths for e in read_reading(path) if rng.random() < shares.get(e.source, 1.0)]


def context_passages(path: Path | None, reading: Sequence[ReadingExample]) -> list[Titled]:
    """The passages to mine in: the file's, or the reading passages themselves."""
    if path is not None:
        return [p for p in read_passages_tsv(path).values() if len(p[1].split()) >= 15]
    return list({(e.title, e.passage): None for e in reading})


def reader_rows(
    reading: Sequence[ReadingExample], miner: Miner, seed: int = 0, log: Callable[[str], None] = print
) -> list[ReadingRow]:
    """Each example once with its passage; for a third of them also a passage that looks right but has no answer."""
    rng = random.Random(seed)
    by_title: dict[str, list[str]] = defaultdict(list)
    for e in reading:
        if e.title and e.passage not in by_title[e.title][-3:]:
            by_title[e.title].append(e.passage)
    sampled = [e for e in reading if e.source != "qamr" and rng.random() < 0.45]
    log(f"mining neighbours of {len(sampled)} questions in {len(miner.passages)} passages")
    rows = [ReadingRow(e.question, (e.title, crop(e.passage, e.answers, PASSAGE_WORDS, rng)), e.answers) for e in reading]
    for e, neighbours in zip(sampled, miner.neighbours([e.question for e in sampled], 12)):
        same_title = by_title[e.title] if e.title and rng.random() < 0.5 else []
        other = next((p for p in rng.sample(same_title, len(same_title)) if not mentions(p, e.answers)), None)
        if other is not None:
            rows.append(ReadingRow(e.question, (e.title, crop(other, (), PASSAGE_WORDS, rng)), ()))
        elif mined := miner.without(neighbours, e.answers, [e.passage], 3):
            title, text = rng.choice(mined)
            rows.append(ReadingRow(e.question, (title, crop(text, (), PASSAGE_WORDS, rng)), ()))
    return rows


def load_pairs(path: Path) -> list[tuple[str, list[tuple[str, tuple[str, ...]]]]]:
    """AmbigNQ light: (prompt question, [(disambiguated question, aliases)]) of annotations with several answers."""
    rows = json_io.read(path)
    out = []
    number = 0
    try:
        for number, row in enumerate(rows, 1):  # noqa: B007
            for annotation in row["annotations"]:
                if annotation["type"] == "multipleQAs":
                    pairs = [(p["question"].split("|")[0], tuple(p["answer"])) for p in annotation["qaPairs"]]
                    if 2 <= len(pairs) <= 8:
                        out.append((row["question"], pairs))
                    break
    except (KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"question {number} does not have AmbigNQ's layout ({error})", file=path) from None
    return out


def statement_examples(path: Path, miner: Miner, context: int = 5, seed: int = 0) -> list[MultiExample]:
    """AmbigNQ's answer sets over passages with an inserted statement for each pair (core.training.data.statements)."""
    rng = random.Random(seed)
    pairs_of = load_pairs(path)
    out = []
    for (question, pairs), neighbours in zip(pairs_of, miner.neighbours([question for question, _ in pairs_of], 20)):
        pairs = rng.sample(pairs, min(len(pairs), context))
        aliases = [a for _, names in pairs for a in names]
        mined = miner.without(neighbours, aliases, [], 2 * context + len(pairs))
        if len(mined) < len(pairs) + 1:
            continue
        passages, gold, questions = [], [], []
        for (clarified, names), (title, text) in zip(pairs, mined):
            sentence = statement(clarified, rng.choice(names), rng)
            if sentence is None or not mentions(sentence, names):
                continue
            passages.append((title, insert(sentence, text, rng)))
            gold.append(names)
            questions.append(clarified)
        if gold:
            unused = mined[len(pairs) : len(pairs) + max(1, context - len(passages))]
            others = [(t, crop(p, (), PASSAGE_WORDS, rng)) for t, p in unused]
            out.append(MultiExample(question, (*passages, *others), tuple(gold), "ambignq", extra={"questions": questions}))
    return out


def annotated_examples(folder: Path, held_out: float, context: int = 8) -> tuple[list[MultiExample], list[MultiExample]]:
    """(training, held-out) examples of a folder in the layout of data/starter, with BM25 neighbours from its own corpus.

    Held out are the questions whose `split` is "held out".  If no question has that field, it is every k-th block of 15
    questions in file order, k = 1 / `held_out` rounded; with `held_out` 0, none.  A context passage may occur on both
    sides.  `extra["context"]` holds the ids of all passages, supporting ones first.
    """
    examples, passages = read_annotated(folder)
    ids = list(passages)
    miner = Miner([passages[i] for i in ids])
    out = []
    for e, neighbours in zip(examples, miner.neighbours([e.question for e in examples], context + 6)):
        supporting = set(e.extra["supporting"])
        added = [ids[i] for i in neighbours if ids[i] not in supporting][: max(2, context - len(supporting))]
        extra = {**e.extra, "context": [*e.extra["supporting"], *added]}
        out.append(replace(e, passages=(*e.passages, *(passages[i] for i in added)), extra=extra))
    if held_out and any("split" in e.extra for e in out):
        splits = [e.extra.get("split") for e in out]
        if odd := next((s for s in splits if s not in ("train", "held out")), None) or (None in splits and "no split"):
            problem = f"a question has {odd!r} as its split: each has 'train' or 'held out'"
            raise FormatError(problem, file=plain_or_gz(folder / "questions.json"))
        are_held_out = [split == "held out" for split in splits]
    else:  # every k-th block of 15 neighbouring questions: a block shares its topic, so whole blocks are held out
        interval = round(1 / held_out) if held_out else len(out) + 1
        are_held_out = [(i // 15 + 1) % interval == 0 for i in range(len(out))]
    training, dev = ([e for e, is_held_out in zip(out, are_held_out) if is_held_out == side] for side in (False, True))
    return training, dev


def load_annotated(
    folders: Sequence[Path], rng: random.Random, limit: int
) -> tuple[list[MultiExample], list[tuple[str, list[MultiExample]]]]:
    """The training examples of all folders, and (name, at most `limit` held-out examples) of each."""
    training, held_out = [], []
    for folder in folders:
        examples, dev = annotated_examples(folder, held_out=0.2, context=SEARCHED_PASSAGES)
        training += examples
        held_out.append((folder.name, rng.sample(dev, min(limit, len(dev)))))
    return training, held_out


def clarified_examples(examples: Sequence[MultiExample]) -> list[MultiExample]:
    """Each disambiguated question over the same passages.  It has one answer, and the others are tempting wrong ones.

    Where an example knows which passages support which pair (`extra["supporting_of"]`), the pair's own come first and are its supporting ones.
    """
    out = []
    for e in examples:
        questions, supporting_of = e.extra.get("questions", []), e.extra.get("supporting_of")
        if len(e.gold) < 2 or len(questions) != len(e.gold):
            continue
        for number, (question, names) in enumerate(zip(questions, e.gold)):
            others = tuple(a for other in e.gold if other is not names for a in other[:1])
            passages = e.passages
            extra: dict[str, Any] = {"pseudo": others}
            if supporting_of and (pair_passages := list(dict.fromkeys(supporting_of[number]))):
                ids = e.extra.get("context", e.extra["supporting"])
                order = sorted(range(len(ids)), key=lambda i: ids[i] not in pair_passages)  # stable
                passages = tuple(e.passages[i] for i in order)
                extra |= {"supporting": pair_passages, "context": [ids[i] for i in order]}
            out.append(MultiExample(question, passages, (names,), f"{e.source}-clarified", extra=extra))
    return out


def reader_rows_of_multi(examples: Sequence[MultiExample], seed: int = 0, empty: int | None = None) -> list[ReadingRow]:
    """The passages of a multi-answer example as reading rows: with their answers, or with none.

    `empty`: most rows without an answer per example, drawn from twice as many of its first ones (those that look most
    like an answer).  If the supporting passages are known, another passage that contains an answer is left out: it may or may not answer the question.
    """
    rows = []
    for number, e in enumerate(examples):
        supporting = len(e.extra["supporting"]) if "supporting" in e.extra else len(e.passages)
        answering: list[ReadingRow] = []
        silent: list[ReadingRow] = []
        for i, (title, text) in enumerate(e.passages):
            answers = tuple(a for names in e.gold for a in names if mentions(text, [a]))
            if answers and i >= supporting:
                continue
            if len(text.split()) > PASSAGE_WORDS + 20:
                text = crop(text, answers, PASSAGE_WORDS, random.Random(f"{seed}{e.question}"))
            (answering if answers else silent).append(ReadingRow(e.question, (title, text), answers))
        if empty is not None:
            silent = random.Random(f"{seed}-{number}").sample(silent[: 2 * empty], min(empty, len(silent)))
        rows += answering + silent
    return rows


def in_shares(sources: Sequence[tuple[Sequence[ReadingRow], float]], rng: random.Random) -> list[ReadingRow]:
    """One epoch: all rows of the first source, and as many of each other source as its share relative to the first.

    A source that has fewer rows gives all of them.
    """
    (first, share), *others = sources
    rows = list(first)
    for source, part in others:
        rows += rng.sample(source, min(len(source), round(len(first) * part / share)))
    return rows


def load_multi(paths: Sequence[Path], negatives: bool = False) -> list[MultiExample]:
    """Examples with passages and answers, and examples that are known to have no answer.

    `negatives`: also those of which only wrong answers are known, for a task that uses nothing else of them
    (`sample_item`).  Raises FormatError.
    """
    flags = ("no_answer", "negatives_only") if negatives else ("no_answer",)
    return [e for path in paths for e in read_multi(path) if e.passages and (e.gold or any(e.extra.get(w) for w in flags))]
