"""Rows of the exports made of answer sets: AmbigNQ light and full, FiD's layout, training rows, preference pairs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.json_io import dumps
from core.text import answer_key, content_words, has_answer
from core.types import Annotation
from storage.exchange.competence import weights_of
from storage.exchange.consensus import EQUAL, Said, annotation_of, consensus, own_statements, validated
from storage.exchange.filters import Filters, Names
from storage.exchange.votes import CHUNK, said, sheets
from storage.schema import tables, workbench

SOURCE = "ambiscope"
Row = dict[str, Any]


def batched(items: Iterable[Said], size: int = CHUNK) -> Iterator[list[Said]]:
    found = iter(items)
    while batch := list(islice(found, size)):
        yield batch


# ---------------------------------------------------------------- AmbigNQ


def _annotations(one: Said, order: dict[str, int], counts: Counter[str]) -> Iterator[tuple[str, Annotation]]:
    """(annotator, their answer set) of everybody whose annotation stands, those without a correct answer aside."""
    statements = [s for s in one.statements if s.stage == "validation"] if validated(one.statements) else one.statements
    names = {s.annotator for s in statements} | (set() if validated(one.statements) else {v.annotator for v in one.votes})
    own = own_statements(statements)
    for name in sorted(names, key=order.__getitem__):
        made = annotation_of(name, one.votes, statements, one.text)
        if made is not None:
            yield name, made
        elif name in own and own[name].type == "none":
            counts["annotations_without_an_answer"] += 1  # AmbigNQ has no such type: the question is left out
        else:
            counts["annotators_without_a_correct_answer"] += 1


def _pair_fields(passages: Sequence[str], full: bool) -> Row:
    return {"passages": list(passages)} if full and passages else {}


def ambignq(session: Session, filters: Filters, names: Names, counts: Counter[str], *, full: bool = False) -> Iterator[str]:
    """A list row a question.  `full`: also used_queries, viewed_doc_titles, nq_answer and nq_doc_title (both empty: not known), each pair's
    passages, and `evidence` with the texts of those that are known."""
    for batch in batched(said(session, filters, counts)):
        logs = _logs(session, batch, filters) if full else {}
        texts = passages_of(session, [one.id for one in batch], filters) if full else {}
        for one in batch:
            annotations: list[Row] = []
            cited: dict[str, None] = {}
            for _, made in _annotations(one, names.order, counts):
                cited |= dict.fromkeys(i for p in made.pairs for i in p.passage_ids)
                if made.type == "single":
                    (pair,) = made.pairs
                    body: Row = {"type": "singleAnswer", "answer": list(pair.answers)}
                    annotations.append(body | _pair_fields(pair.passage_ids, full))
                    continue
                pairs = [
                    {"question": p.question, "answer": list(p.answers)} | _pair_fields(p.passage_ids, full) for p in made.pairs
                ]
                counts["pairs_with_the_prompt_question"] += sum(p.question == one.text for p in made.pairs)
                annotations.append({"type": "multipleQAs", "qaPairs": pairs})
            if not annotations:
                counts["questions_without_a_correct_answer"] += 1
                continue
            counts["questions"] += 1
            counts["annotations"] += len(annotations)
            row: Row = {"id": one.public_id, "question": one.text, "annotations": annotations}
            if full:
                queries, titles = logs.get(one.id, ({}, {}))
                counts["used_queries"] += len(queries)
                row |= {
                    "viewed_doc_titles": list(titles),
                    # the interface keeps no result lists
                    "used_queries": [{"query": q, "results": []} for q in queries],
                    "nq_answer": [],
                    "nq_doc_title": "",
                    "evidence": [{k: p[k] for k in ("id", "title", "text")} for p in texts.get(one.id, ()) if p["id"] in cited],
                }
            yield dumps(row)


def ambignq_full(session: Session, filters: Filters, names: Names, counts: Counter[str]) -> Iterator[str]:
    return ambignq(session, filters, names, counts, full=True)


def _logs(session: Session, batch: Sequence[Said], filters: Filters) -> dict[int, tuple[dict[str, None], dict[str, None]]]:
    """Question -> (queries, titles of opened passages), each once, in the order of the first time."""
    i, item = workbench.Interaction, workbench.ProjectItem
    query = (
        select(item.question_id, i.kind, i.query, i.title)
        .join(item, item.id == i.item_id)
        .where(item.question_id.in_([one.id for one in batch]), item.gold.is_(None))
        .order_by(i.id)
    )
    if filters.annotators:
        query = query.join(tables.Annotator, tables.Annotator.id == i.annotator_id).where(
            tables.Annotator.name.in_(filters.annotators)
        )
    if filters.project:
        query = query.join(workbench.Project, workbench.Project.id == item.project_id).where(
            workbench.Project.public_id == filters.project
        )
    found: dict[int, tuple[dict[str, None], dict[str, None]]] = {}
    for question, kind, text, title in session.execute(query):
        queries, titles = found.setdefault(question, ({}, {}))
        if kind == "search":
            queries[text] = None
        elif title:
            titles[title] = None
    return found


# ---------------------------------------------------------------- the majority


def passages_of(session: Session, questions: Sequence[int], filters: Filters) -> dict[int, list[Row]]:
    """Question -> the passages of all its predictions, each once, by rank; those of the newer prediction first at equal rank.  Then those
    that a project's question file brought.  Each has id, title, text and score (None where nothing was retrieved)."""
    query = (
        select(tables.Prediction.question_id, tables.Prediction.trace)
        .where(tables.Prediction.question_id.in_(questions))
        .order_by(tables.Prediction.id.desc())
    )
    if filters.system:
        query = query.where(tables.Prediction.system == filters.system)
    ranked: dict[int, dict[tuple[str, str], tuple[int, Row]]] = defaultdict(dict)
    for question, trace in session.execute(query.execution_options(yield_per=20)):
        found = ranked[question]
        for item in trace["passages"]:
            passage = item["passage"]
            if not passage["text"]:  # an imported prediction may name passages without their text
                continue
            key = (passage["id"], passage["text"])  # two corpora may use one id for different passages
            if key not in found or item["rank"] < found[key][0]:
                found[key] = (item["rank"], {**passage, "score": item["score"]})
    out = {q: [body for _, body in sorted(found.values(), key=lambda entry: entry[0])] for q, found in ranked.items()}
    own = select(workbench.ProjectItem.question_id, workbench.ProjectItem.passages).where(
        workbench.ProjectItem.question_id.in_(questions),
        workbench.ProjectItem.passages.is_not(None),
    )
    for question, passages in session.execute(own):
        known = {(p["id"], p["text"]) for p in out.setdefault(question, [])}
        out[question] += [
            {**{k: p[k] for k in ("id", "title", "text")}, "score": None} for p in passages if (p["id"], p["text"]) not in known
        ]
    return out


@dataclass(frozen=True, slots=True)
class _Agreed:
    """What the majority holds of a question.  Without answers, either most said that there is none (`nothing`), or it is only known
    what is wrong: then there are negatives, and most hold nothing correct."""

    said: Said
    answers: list[list[str]]  # alias lists
    negatives: list[str]
    passages: list[Row]
    nothing: bool


def _agreed(session: Session, filters: Filters, counts: Counter[str]) -> Iterator[_Agreed]:
    weights = weights_of(session, filters) if filters.weighted else EQUAL
    for batch in batched(said(session, filters, counts)):
        passages = passages_of(session, [one.id for one in batch], filters)
        for one in batch:
            view = consensus(one.votes, one.statements, weights)
            counts["ties"] += view.ties
            nothing = not view.answers and _no_answer(one)
            if not view.answers:
                counts["questions_without_a_correct_answer"] += 1
                if not nothing and not (view.negatives and _mostly_wrong(one)):
                    continue
            else:
                counts["questions"] += 1
                counts["answers"] += len(view.answers)
                counts["negatives"] += len(view.negatives)
            found = passages.get(one.id, [])
            yield _Agreed(one, [list(a) for a in view.answers], list(view.negatives), found, nothing)


def _no_answer(one: Said) -> bool:
    """Most of the standing annotations say that the corpus has no answer."""
    final = validated(one.statements)
    own = own_statements(s for s in one.statements if not final or s.stage == "validation")
    none = sum(a.type == "none" for a in own.values())
    return 2 * none > len(own)


def _mostly_wrong(one: Said) -> bool:
    """Most of those whose words stand hold nothing correct."""
    final = validated(one.statements)
    standing = [s for s in one.statements if not final or s.stage == "validation"]
    names = {s.annotator for s in standing} | {v.annotator for v in one.votes}
    return 2 * sum(annotation_of(name, one.votes, standing, one.text) is None for name in names) > len(names)


def supporting(one: Said, answers: Sequence[Sequence[str]], passages: Sequence[Mapping[str, Any]]) -> set[str]:
    """Ids of the passages that support these answers, as far as that is known: those that annotations cite for them,
    and the first evidence passage of a predicted answer that was judged correct (all its evidence was judged as a whole).

    An answer without any (a judge added it) is looked for in the passages: `_holding`.  Empty where a one-word answer would be left that
    only other passages hold: training counts such an answer in the supporting ones only, and would take it for absent.
    """
    of = {answer_key(alias): number for number, aliases in enumerate(answers) for alias in aliases}
    named: dict[int, set[str]] = defaultdict(set)  # answer -> its passages
    for pair in (pair for statement in one.statements for pair in statement.annotation.pairs):
        for number in {of[key] for key in map(answer_key, pair.answers) if key in of}:
            named[number].update(pair.passage_ids)
    for vote in one.votes:
        if vote.label == "correct" and answer_key(vote.answer) in of:
            named[of[answer_key(vote.answer)]].update(vote.passage_ids[:1])
    cited = set().union(*named.values())
    for number, aliases in enumerate(answers):
        if not named[number] and not cited & _places(aliases, passages).keys():
            cited |= _holding(aliases, passages)
    for aliases in answers:
        if all(len(alias.split()) == 1 for alias in aliases):
            places = _places(aliases, passages).keys()
            if places and not places & cited:
                return set()
    return cited


def _places(aliases: Sequence[str], passages: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """Ids of the passages that hold the answer, with how many passages have this id."""
    return Counter(str(p["id"]) for p in passages if has_answer(str(p["text"]), aliases))


def _holding(aliases: Sequence[str], passages: Sequence[Mapping[str, Any]]) -> set[str]:
    """Passages that support an answer as its words stand there: a word or a number alone may stand anywhere, so it must be in one only."""
    telling = [a for a in aliases if len(tokens := content_words(a)) > 1 and not all(t.isdigit() for t in tokens)]
    if found := _places(telling, passages):
        return set(found)
    found = _places(aliases, passages)
    return set(found) if found.total() == 1 else set()


def fid(session: Session, filters: Filters, names: Names, counts: Counter[str]) -> Iterator[str]:
    for one in _agreed(session, filters, counts):
        if not one.answers:  # FiD's layout needs a target
            continue
        counts["questions_without_passages"] += not one.passages
        yield dumps(
            {
                "id": one.said.public_id,
                "question": one.said.text,
                "target": one.answers[0][0],
                "answers": one.answers,
                "ctxs": one.passages,
                "negatives": one.negatives,
            }
        )


def training(session: Session, filters: Filters, names: Names, counts: Counter[str]) -> Iterator[str]:
    """Rows of `core train --multi`.  `supporting`: ids of the passages that support the answers, where that is known (`supporting`);
    `no_answer`: most said that the passages hold none, so that [EOI] comes at once; `answers_known` (false): the judged ones were all
    wrong and nobody said more, so that the negatives are a lesson and [EOI] is none."""
    for one in _agreed(session, filters, counts):
        passages = [{k: p[k] for k in ("id", "title", "text")} for p in one.passages]
        row: Row = {
            "id": one.said.public_id,
            "source": SOURCE,
            "question": one.said.text,
            "passages": passages,
            "answers": one.answers,
            "negatives": one.negatives,
        }
        if not one.answers and not one.nothing:
            if any(has_answer(p["text"], one.negatives) for p in passages):  # else there is no span to avoid
                counts["questions_with_negatives_only"] += 1
                yield dumps(row | {"answers_known": False})
            continue
        if one.nothing and not passages:
            continue
        counts["questions_without_passages"] += not passages
        counts["questions_with_no_answer"] += one.nothing
        cited = supporting(one.said, one.answers, passages)
        counts["questions_with_evidence"] += bool(cited)
        known = [p["id"] for p in passages if p["id"] in cited]
        yield dumps(row | ({"supporting": known} if known else {}) | ({"no_answer": True} if one.nothing else {}))


# ---------------------------------------------------------------- preferences


def preferences(session: Session, filters: Filters, names: Names, counts: Counter[str]) -> Iterator[str]:
    """Pairs of answer sets of one question of which people preferred one: {id, prompt, chosen, rejected, ...}, the majority's way.

    `chosen` and `rejected` are texts with an answer a line (as `question | answer`, where it has a disambiguated question);
    `chosen_set` and `rejected_set` hold the same as lists, with system and prediction.  Ties are counted and left out.
    """
    wanted = replace(filters, stages=())
    for chunk in _chunks_of_ids(session):
        votes: dict[tuple[int, frozenset[str]], Counter[str]] = defaultdict(Counter)
        people: dict[tuple[int, frozenset[str]], dict[str, str]] = defaultdict(dict)
        linked = _sides(session, chunk)
        for row in sheets(session, chunk, wanted):
            if row.body.get("preference") is None:
                continue
            # those that were judged; one of them may have no answer, and then the item's link says which it was
            shown = {a["prediction_id"] for a in row.body["answers"]} | ({row.body["preferred"]} - {""})
            shown = shown if len(shown) == 2 else shown | linked.get(row.item, set())
            if len(shown) == 2:
                people[row.question_id, frozenset(shown)][row.name] = row.body["preferred"]
        for place, words in people.items():
            votes[place].update(words.values())
        bodies = _predictions(session, {i for _, both in votes for i in both})
        for (_, both), counted in votes.items():
            first, second = sorted(both)
            if counted[first] == counted[second] or any(i not in bodies for i in both):
                counts["ties"] += 1
                continue
            chosen, rejected = (first, second) if counted[first] > counted[second] else (second, first)
            if filters.system and filters.system not in (bodies[chosen]["system"], bodies[rejected]["system"]):
                continue
            counts["pairs"] += 1
            yield dumps(
                {
                    "id": bodies[chosen].pop("question_id"),
                    "prompt": bodies[chosen].pop("prompt"),
                    "chosen": _lines_of(bodies[chosen]),
                    "rejected": _lines_of(bodies[rejected]),
                    "chosen_set": bodies[chosen],
                    "rejected_set": {k: v for k, v in bodies[rejected].items() if k not in ("question_id", "prompt")},
                    "preferring": counted[chosen],
                    "against": counted[rejected],
                    "undecided": counted[""],
                }
            )


def _chunks_of_ids(session: Session) -> Iterator[list[int]]:
    """Questions with a submission, by chunk."""
    item = workbench.ProjectItem
    query = select(item.question_id).distinct().order_by(item.question_id)
    ids = list(session.scalars(query))
    for start in range(0, len(ids), CHUNK):
        yield ids[start : start + CHUNK]


def _sides(session: Session, questions: Sequence[int]) -> dict[str, set[str]]:
    """Item -> the predictions that its judges see."""
    link, item = workbench.ItemPrediction, workbench.ProjectItem
    query = (
        select(item.public_id, tables.Prediction.public_id)
        .join(link, link.item_id == item.id)
        .join(tables.Prediction, tables.Prediction.id == link.prediction_id)
        .where(item.question_id.in_(questions))
    )
    found: dict[str, set[str]] = defaultdict(set)
    for name, prediction in session.execute(query):
        found[name].add(prediction)
    return found


def _predictions(session: Session, ids: Iterable[str]) -> dict[str, Row]:
    answer, prediction = tables.PredictedAnswer, tables.Prediction
    rows = session.execute(
        select(
            prediction.public_id,
            prediction.system,
            tables.Question.public_id.label("question_id"),
            tables.Question.text,
            answer.text.label("answer"),
            answer.clarified,
        )
        .join(tables.Question, tables.Question.id == prediction.question_id)
        .outerjoin(answer, answer.prediction_id == prediction.id)
        .where(prediction.public_id.in_(list(ids)))
        .order_by(prediction.id, answer.position)
    )
    found: dict[str, Row] = {}
    for row in rows:
        body = found.setdefault(
            row.public_id,
            {
                "system": row.system,
                "prediction": row.public_id,
                "answers": [],
                "question_id": row.question_id,
                "prompt": row.text,
            },
        )
        if row.answer is not None:
            body["answers"].append({"question": row.clarified or "", "answer": row.answer})
    return found


def _lines_of(body: Row) -> str:
    return "\n".join(f"{a['question']} | {a['answer']}" if a["question"] else a["answer"] for a in body["answers"])
