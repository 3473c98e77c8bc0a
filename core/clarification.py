"""Clarification by round trip: prompt question + answer + evidence -> the question rewritten so that this is its only answer.

Task: question disambiguation of AmbigQA (Min et al. 2020, section 2), a minimal edit.  Method: candidate edits are taken from the evidence
(title, its qualifier, dates, names and numbers of its sentence that the other answers' evidence lacks) and kept is the smallest one that,
asked over the same passages, returns this answer and none of the others (round-trip filtering as in Refuel, Gao et al. 2021, section 3.3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from core.text import contains_tokens, content_words, normalize_answer, overlapping, words
from core.types import Answer, Clarification, Passage

# (question, passage) pairs -> for each pair the text that the reader finds, or None where it abstains, with its probability
Read = Callable[[Sequence[tuple[str, Passage]]], list[tuple[str | None, float]]]

_QUALIFIED = re.compile(r"^(?P<base>.+?)\s*\((?P<qualifier>[^()]+)\)$")
_YEAR = re.compile(r"\b(1[0-9]{3}|20[0-9]{2})\b")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])")
# a preposition, then capitalised words and numbers, perhaps with "the" and small words between them: fluent behind any question
_PHRASE = re.compile(
    r"\b(?P<prep>in|on|at|by|for|during|from|with|as|under|against|of|to|after|before)\s+"
    r"(?P<body>(?:the\s+|a\s+|an\s+|its\s+|his\s+|her\s+)?(?:[a-z][\w'’-]*\s+){0,2}"
    r"(?:[A-Z0-9][\w'’.&-]*)(?:\s+(?:of|the|and|de|von|la)?\s*[A-Z0-9][\w'’.&-]*){0,4}(?:\s+(?:film|series|season|album|song|novel|"
    r"version|tournament|edition|game|games|championship|cup|musical|play|opera|team|production|remake|final))?)"
)
_SMALL_PHRASE = re.compile(
    r"\b(?P<prep>in|on|at|for|during|from|with|as|under|against|of)\s+(?P<body>(?:the|a|an)\s+(?:[a-z][a-z-]+)(?:\s+[a-z][a-z-]+)?)\b"
)
_TIME = re.compile(r"\b(now|currently|today|first|last|latest|current|original|originally)\b", re.IGNORECASE)
MAX_CANDIDATES = 10


@dataclass(frozen=True)
class Edit:
    question: str
    size: int  # tokens deleted plus tokens added, as AmbigQA's EDIT counts them
    own: int  # words of the edit that the other answers' evidence lacks


def edit_size(before: str, after: str) -> int:
    """Tokens deleted plus tokens added (multisets).

    >>> edit_size("Who played Maria?", "Who played Maria in 1961?")
    2
    """
    a, b = words(before), words(after)
    rest = list(b)
    deleted = 0
    for token in a:
        if token in rest:
            rest.remove(token)
        else:
            deleted += 1
    return deleted + len(rest)


def split_title(title: str) -> tuple[str, str]:
    """("West Side Story", "1961 film") from "West Side Story (1961 film)"; ("", "") qualifier when there is none."""
    match = _QUALIFIED.match(title)
    return (match["base"], match["qualifier"]) if match else (title, "")


def evidence_sentence(passage: Passage, start: int) -> str:
    """The sentence of the passage in which offset `start` lies."""
    at = 0
    for sentence in _SENTENCE.split(passage.text):
        at = passage.text.find(sentence, at)
        if at <= start < at + len(sentence) + 1:
            return sentence
        at += len(sentence)
    return passage.text


def _append(question: str, phrase: str) -> str:
    return f"{question.rstrip().rstrip('?').rstrip()} {phrase}?"


def _find_run(question: str, target: str) -> tuple[int, int] | None:
    """Characters of the longest run of question words that is a run of the target's words and holds a content word."""
    tokens = [(m.start(), m.end(), m.group().lower()) for m in re.finditer(r"\w+", question)]
    goal = words(target)
    best: tuple[int, int] | None = None
    longest = 0
    for i in range(len(tokens)):
        for j in range(i + 1, len(tokens) + 1):
            run = [w for _, _, w in tokens[i:j]]
            if not contains_tokens(goal, run):
                break
            size = len(content_words(" ".join(run)))
            if size > longest:
                longest, best = size, (tokens[i][0], tokens[j - 1][1])
    return best


def _kind_of(qualifier: str) -> bool:
    """True for a qualifier that reads as a kind of thing ("1961 film", "soundtrack"), to be said before the name."""
    return bool(re.fullmatch(r"(?:\d{4}\s+)?(?:[A-Za-z-]+\s+){0,3}[a-z]+", qualifier))


def title_edits(question: str, title: str) -> Iterator[str]:
    """The question with the full, qualified name where it had the ambiguous one; or with the title behind it."""
    base, qualifier = split_title(title)
    run = _find_run(question, base)
    mention = question[run[0] : run[1]] if run else ""
    if run and qualifier and len(words(mention)) >= min(2, len(words(base))):
        before, after = question[: run[0]], question[run[1] :]
        before = re.sub(r"\bthe\s+$", "", before, flags=re.IGNORECASE)
        if _kind_of(qualifier):
            yield f"{before}the {qualifier} {base if len(words(base)) > len(words(mention)) else mention}{after}"
        else:
            joint = "of" if _YEAR.fullmatch(qualifier) else "in"
            yield f"{question[: run[0]]}{mention} {joint} {qualifier}{after}"
        yield f"{question[: run[0]]}{mention} ({qualifier}){after}"
    if run and len(words(base)) > len(words(mention)):
        before = question[: run[0]]
        name = base
        if re.search(r"\bthe\s+$", before, re.IGNORECASE) and base.lower().startswith("the "):
            name = base[4:]
        yield f"{before}{name}{question[run[1] :]}"
    if not run or len(words(base)) > len(words(mention)) + 2:
        yield _append(question, f"in the case of {base}")
        if qualifier:
            yield _append(question, f"in the case of {base} ({qualifier})")


def evidence_edits(question: str, sentence: str, text: str, answer: str) -> Iterator[str]:
    """The question followed by a date, a name or a number of the evidence."""
    asked_for_time = question.lower().startswith(("when", "what year", "which year", "in what year", "in which year"))
    for source in (sentence, text):
        for match in _PHRASE.finditer(source):
            body = re.sub(r"['’]s$", "", match["body"].rstrip(".,;: "))
            phrase = f"{match['prep']} {body}"
            if asked_for_time and _YEAR.search(body) and match["prep"] in ("in", "on", "from", "after", "before"):
                continue
            yield _append(question, phrase)
        if not asked_for_time:
            for match in _YEAR.finditer(source):
                yield _append(question, f"in {match.group()}")
        for match in _SMALL_PHRASE.finditer(source):
            yield _append(question, f"{match['prep']} {match['body']}")


def propose_edits(question: str, answer: str, evidence: tuple[Passage, int], others: Sequence[Passage]) -> list[Edit]:
    """Candidate edits, the most promising first: words that the others' evidence lacks, few of them, never the answer itself."""
    passage, start = evidence
    theirs = {w for p in others for w in content_words(f"{p.title} {p.text}")}
    asked = words(question)
    sentence = evidence_sentence(passage, start)
    seen: dict[str, Edit] = {}
    candidates = [*title_edits(question, passage.title), *evidence_edits(question, sentence, passage.text, answer)]
    for text in candidates:
        text = " ".join(text.split())
        text = text[:1].upper() + text[1:] if question[:1].isupper() else text
        added = [w for w in words(text) if w not in asked]
        if not added or len(added) > 9 or contains_tokens(words(text), words(normalize_answer(answer))):
            continue
        if contains_tokens(added, words(answer)) or any(w in added for w in content_words(answer)):
            continue
        own = sum(w not in theirs for w in content_words(" ".join(added)))
        seen.setdefault(text.lower(), Edit(text, edit_size(question, text), own))
    ranked = sorted(seen.values(), key=lambda e: (e.own == 0, e.size))
    return ranked[:MAX_CANDIDATES]


def _same(a: str, b: str) -> bool:
    return normalize_answer(a) == normalize_answer(b) or overlapping(a, b)


def clarify(question: str, answers: Sequence[Answer], passages: Sequence[Passage], read: Read) -> Iterator[Clarification]:
    """One clarification an answer, in order.  With a single answer the question is already clear and stays as it is.

    `passed` means: over the same passages the reader returned this answer and none of the others.  When no edit passes, the best one is
    given with the reason in `why`.
    """
    by_id = {p.id: p for p in passages}
    if len(answers) == 1:
        returned = _returned(read([(question, p) for p in passages]))
        passed = any(_same(r, answers[0].text) for r in returned)
        yield Clarification(answers[0].text, question, passed, 0, tuple(returned), "one answer: the question stays as it is")
        return
    for answer in answers:
        others = [a for a in answers if a.text != answer.text]
        located = next(((by_id[e.passage_id], e.start) for e in answer.evidence if e.passage_id in by_id), None)
        if located is None:
            yield Clarification(
                answer.text, question, False, 0, (), "no passage holds this answer, so there is nothing to take an edit from"
            )
            continue
        rivals = [
            by_id[e.passage_id]
            for a in others
            for e in a.evidence[:1]
            if e.passage_id in by_id and e.passage_id != located[0].id
        ]
        edits = propose_edits(question, answer.text, located, rivals)
        yield _best(question, answer, others, edits, located[0], rivals, passages, read)


def _returned(readings: Sequence[tuple[str | None, float]]) -> list[str]:
    """Distinct answers that the reader gave, the likeliest first."""
    out: list[str] = []
    for text, _ in sorted((r for r in readings if r[0]), key=lambda r: -r[1]):
        if text and not any(normalize_answer(text) == normalize_answer(o) for o in out):
            out.append(text)
    return out


def _best(
    question: str,
    answer: Answer,
    others: Sequence[Answer],
    edits: Sequence[Edit],
    own: Passage,
    rivals: Sequence[Passage],
    passages: Sequence[Passage],
    read: Read,
) -> Clarification:
    if not edits:
        return Clarification(
            answer.text, question, False, 0, (), "the evidence has no word that tells this answer from the others"
        )
    # first over the passages that decide (this answer's and its rivals'), then the survivors over all of them
    deciding = list({p.id: p for p in (own, *rivals)}.values())
    readings = iter(read([(e.question, p) for e in edits for p in deciding]))
    scored: list[tuple[tuple[bool, bool, float], Edit, list[str]]] = []
    for edit in edits:
        found = [next(readings) for _ in deciding]
        returned = _returned(found)
        hit = any(_same(r, answer.text) for r in returned)
        wrong = [r for r in returned if any(_same(r, o.text) for o in others) and not _same(r, answer.text)]
        scored.append(((not hit, bool(wrong), edit.size), edit, returned))
    scored.sort(key=lambda s: s[0])
    rest = [p for p in passages if p.id not in {d.id for d in deciding}]
    best: Clarification | None = None
    for (missed, confused, _), edit, returned in scored:
        if missed or confused:
            break
        everything = returned + _returned(read([(edit.question, p) for p in rest])) if rest else returned
        wrong = [r for r in everything if any(_same(r, o.text) for o in others) and not _same(r, answer.text)]
        tried = Clarification(answer.text, edit.question, not wrong, len(edits), tuple(dict.fromkeys(everything)), "")
        if tried.passed:
            return tried
        best = best or tried
    if best is not None:
        return Clarification(
            best.answer, best.question, False, len(edits), best.returned, "another passage still gives one of the other answers"
        )
    (missed, _, _), edit, returned = scored[0]
    why = (
        "asked this way the reader does not return the answer"
        if missed
        else "asked this way the reader returns another answer too"
    )
    return Clarification(answer.text, edit.question, False, len(edits), tuple(returned), why)
