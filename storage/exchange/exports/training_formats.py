"""The exports made of answer sets: AmbigNQ light and full, FiD's layout, training rows, preference pairs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.json_io import dumps
from core.text import answer_key, content_words, mentions
from core.types import Annotation
from storage.exchange.competence import weights_of
from storage.exchange.consensus import (
    EQUAL,
    ContributedQuestion,
    annotations_by_person,
    consensus,
    final_statements,
    held_answers,
    labelled_annotation,
)
from storage.exchange.filters import Filters, Names
from storage.exchange.votes import CHUNK_QUESTIONS, contributed_questions, every_answer_set, sheets
from storage.results.standing import chunked
from storage.schema import tables, workbench

SOURCE = "ambiscope"
TrainingRow = dict[str, Any]


def _batches(questions: Iterator[ContributedQuestion]) -> Iterator[list[ContributedQuestion]]:
    while batch := list(islice(questions, CHUNK_QUESTIONS)):
        yield batch


# ---------------------------------------------------------------- AmbigNQ


def _annotations(
    session: Session, batch: Sequence[ContributedQuestion], filters: Filters, names: Names
) -> dict[int, list[tuple[Annotation, TrainingRow]]]:
    """Question -> its annotations, each with its extra fields.  These are the final answer sets (or the annotation that labels
    amount to, if nobody writes answers to the question), or everybody's answer sets with their authors."""
    if filters.answers == "final":
        labelled = {question.id: labelled_annotation(question) for question in batch if not question.is_written}
        finals = {question.id: [(final.annotation, TrainingRow()) for final in question.finals] for question in batch}
        return finals | {key: [(annotation, TrainingRow())] for key, annotation in labelled.items() if annotation is not None}
    annotations: dict[int, list[tuple[Annotation, TrainingRow]]] = defaultdict(list)
    for entry in every_answer_set(session, [question.id for question in batch], filters):
        record = entry.record
        origin = {
            "stage": record.stage,
            "annotator": names(record.annotator),
            "version": record.version,
            "counts": entry.counts,
        }
        annotations[record.question].append((record.annotation, origin))
    return annotations


def _ambignq_annotation(annotation: Annotation, full: bool) -> TrainingRow:
    """AmbigNQ's union type.  A question without an answer, which AmbigNQ doesn't have, is `noAnswer`, as our importer and
    loader read it."""
    pairs: list[TrainingRow] = [
        ({"question": p.question} if annotation.type == "multiple" else {})
        | {"answer": list(dict.fromkeys(p.answers))}
        | ({"passages": list(p.passage_ids)} if full and p.passage_ids else {})
        for p in annotation.pairs
    ]
    if annotation.type == "none":
        return {"type": "noAnswer"}
    return {"type": "singleAnswer"} | pairs[0] if annotation.type == "single" else {"type": "multipleQAs", "qaPairs": pairs}


def ambignq(session: Session, filters: Filters, names: Names, counts: Counter[str], *, full: bool = False) -> Iterator[str]:
    """A list row a question with a counted answer set.  `full`: also used_queries, viewed_doc_titles, nq_answer and nq_doc_title (both empty:
    not known), each pair's passages, and `evidence` with the texts of those that are known."""
    for batch in _batches(contributed_questions(session, filters, counts)):
        ids = [question.id for question in batch]
        logs = _logs(session, ids, filters) if full else {}
        passages = passages_of(session, ids, filters) if full else {}
        annotations = _annotations(session, batch, filters, names)
        for question in batch:
            sets = annotations.get(question.id, [])
            if not any(origin.get("counts", True) for _, origin in sets):
                counts["questions_without_an_answer_set"] += not question.is_written
                continue
            counts["questions"] += 1
            counts["annotations"] += len(sets)
            counts["annotations_without_an_answer"] += sum(annotation.type == "none" for annotation, _ in sets)
            rows = [_ambignq_annotation(annotation, full) | origin for annotation, origin in sets]
            row: TrainingRow = {"id": question.public_id, "question": question.text, "annotations": rows}
            if full:
                cited = {i for annotation, _ in sets for pair in annotation.pairs for i in pair.passage_ids}
                queries, titles = logs.get(question.id, ({}, {}))
                counts["used_queries"] += len(queries)
                row |= {
                    "viewed_doc_titles": list(titles),
                    # the interface keeps no result lists
                    "used_queries": [{"query": q, "results": []} for q in queries],
                    "nq_answer": [],
                    "nq_doc_title": "",
                    "evidence": [_text_of(p) for p in passages.get(question.id, ()) if p["id"] in cited],
                }
            yield dumps(row)


def ambignq_full(session: Session, filters: Filters, names: Names, counts: Counter[str]) -> Iterator[str]:
    return ambignq(session, filters, names, counts, full=True)


def _text_of(passage: Mapping[str, Any]) -> TrainingRow:
    return {name: passage[name] for name in ("id", "title", "text")}


def _logs(session: Session, questions: Sequence[int], filters: Filters) -> dict[int, tuple[dict[str, None], dict[str, None]]]:
    """Question -> (queries, titles of opened passages), each once, in the order in which they first occurred."""
    i, item = workbench.Interaction, workbench.ProjectItem
    query = (
        select(item.question_id, i.kind, i.query, i.title)
        .join(item, item.id == i.item_id)
        .join(tables.Annotator, tables.Annotator.id == i.annotator_id)
        .join(workbench.Project, workbench.Project.id == item.project_id)
        .where(item.question_id.in_(questions), item.gold.is_(None))
        .order_by(i.id)
    )
    if filters.annotators:
        query = query.where(tables.Annotator.name.in_(filters.annotators))
    if filters.project:
        query = query.where(workbench.Project.public_id == filters.project)
    logs: dict[int, tuple[dict[str, None], dict[str, None]]] = {}
    for question, kind, text, title in session.execute(query):
        queries, titles = logs.setdefault(question, ({}, {}))
        if kind == "search":
            queries[text] = None
        elif title:
            titles[title] = None
    return logs


# ---------------------------------------------------------------- the majority


def passages_of(session: Session, questions: Sequence[int], filters: Filters) -> dict[int, list[TrainingRow]]:
    """Question -> the passages of all its predictions, each once, by rank; at equal rank the newer prediction's first.  Then
    those that came with a project's question file.  Each has id, title, text and score (None if nothing was retrieved)."""
    query = (
        select(tables.Prediction.question_id, tables.Prediction.trace)
        .where(tables.Prediction.question_id.in_(questions))
        .order_by(tables.Prediction.id.desc())
    )
    if filters.system:
        query = query.where(tables.Prediction.system == filters.system)
    ranked: dict[int, dict[tuple[str, str], tuple[int, TrainingRow]]] = defaultdict(dict)
    for question, trace in session.execute(query.execution_options(yield_per=20)):
        best = ranked[question]
        for retrieved in trace["passages"]:
            passage = retrieved["passage"]
            if not passage["text"]:  # an imported prediction may name passages without their text
                continue
            key = (passage["id"], passage["text"])  # two corpora may use one id for different passages
            if key not in best or retrieved["rank"] < best[key][0]:
                best[key] = (retrieved["rank"], {**passage, "score": retrieved["score"]})
    out = {q: [body for _, body in sorted(best.values(), key=lambda entry: entry[0])] for q, best in ranked.items()}
    item = workbench.ProjectItem
    of_items = select(item.question_id, item.passages).where(item.question_id.in_(questions), item.passages.is_not(None))
    for question, passages in session.execute(of_items):
        keys = {(p["id"], p["text"]) for p in out.setdefault(question, [])}
        out[question] += [_text_of(p) | {"score": None} for p in passages if (p["id"], p["text"]) not in keys]
    return out


@dataclass(frozen=True, slots=True)
class _Agreed:
    """The majority's view of a question.  Without answers, either most said that there is none (`no_answer`), or only wrong answers
    are known: then there are negatives, and most hold nothing correct."""

    question: ContributedQuestion
    answers: list[list[str]]  # alias lists
    negatives: list[str]
    passages: list[TrainingRow]
    no_answer: bool


def _agreed(session: Session, filters: Filters, counts: Counter[str]) -> Iterator[_Agreed]:
    weights = weights_of(session, filters) if filters.weighted else EQUAL
    for batch in _batches(contributed_questions(session, filters, counts)):
        passages = passages_of(session, [question.id for question in batch], filters)
        for question in batch:
            finals = [final.annotation for final in question.finals]
            if question.is_written and not finals:
                continue  # not finished, which is counted with its item, or not among what was asked for
            view = consensus(question.votes, question.statements, weights, finals)
            counts["ties"] += view.ties
            statements = final_statements(question.statements)
            annotations = finals or list(annotations_by_person(statements).values())
            no_answer = not view.answers and 2 * sum(a.type == "none" for a in annotations) > len(annotations)
            if not view.answers:
                counts["questions_without_a_correct_answer"] += 1
                names = {s.annotator for s in statements} | {v.annotator for v in question.votes}
                wrong = sum(not held_answers(name, question.votes, statements) for name in names)
                if not no_answer and not (view.negatives and 2 * wrong > len(names)):  # `wrong` hold nothing correct
                    continue
            else:
                counts["questions"] += 1
                counts["answers"] += len(view.answers)
                counts["negatives"] += len(view.negatives)
            answers, negatives = [list(aliases) for aliases in view.answers], list(view.negatives)
            yield _Agreed(question, answers, negatives, passages.get(question.id, []), no_answer)


def supporting(
    question: ContributedQuestion, answers: Sequence[Sequence[str]], passages: Sequence[Mapping[str, Any]]
) -> set[str]:
    """Ids of the passages that support these answers, as far as that is known: those that annotations cite for them,
    and the first evidence passage of a predicted answer that was judged correct (all its evidence was judged as a whole).

    An answer without any (a judge added it) is looked for in the passages: `_holding`.  Empty where only other passages hold a one-word
    answer: training looks for such an answer in the supporting ones only, and would take it for absent.
    """
    number_of = {answer_key(alias): number for number, aliases in enumerate(answers) for alias in aliases}
    cited_for: dict[int, set[str]] = defaultdict(set)  # answer -> its passages
    for pair in (pair for statement in question.statements for pair in statement.annotation.pairs):
        for key in number_of.keys() & map(answer_key, pair.answers):
            cited_for[number_of[key]].update(pair.passage_ids)
    for vote in question.votes:
        if vote.label == "correct" and answer_key(vote.answer) in number_of:
            cited_for[number_of[answer_key(vote.answer)]].update(vote.passage_ids[:1])
    cited = set().union(*cited_for.values())
    for number, aliases in enumerate(answers):
        if not cited_for[number] and not cited & _occurrences(aliases, passages).keys():
            cited |= _holding(aliases, passages)
    for aliases in answers:
        if all(len(alias.split()) == 1 for alias in aliases):
            occurrences = _occurrences(aliases, passages).keys()
            if occurrences and not occurrences & cited:
                return set()
    return cited


def _occurrences(aliases: Sequence[str], passages: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """Ids of the passages that hold the answer, with how many passages have this id."""
    return Counter(str(p["id"]) for p in passages if mentions(str(p["text"]), aliases))


def _holding(aliases: Sequence[str], passages: Sequence[Mapping[str, Any]]) -> set[str]:
    """The passages that support an answer because they have its words.  A single word or number may occur anywhere, so it must
    be in one passage only."""
    distinctive = [a for a in aliases if len(tokens := content_words(a)) > 1 and not all(t.isdigit() for t in tokens)]
    if occurrences := _occurrences(distinctive, passages):
        return set(occurrences)
    occurrences = _occurrences(aliases, passages)
    return set(occurrences) if occurrences.total() == 1 else set()


def fid(session: Session, filters: Filters, names: Names, counts: Counter[str]) -> Iterator[str]:
    """Rows {id, question, target, answers, ctxs, negatives} of the questions with an answer (facebookresearch/FiD's layout)."""
    for agreed in _agreed(session, filters, counts):
        if not agreed.answers:  # FiD's layout needs a target
            continue
        counts["questions_without_passages"] += not agreed.passages
        yield dumps(
            {
                "id": agreed.question.public_id,
                "question": agreed.question.text,
                "target": agreed.answers[0][0],
                "answers": agreed.answers,
                "ctxs": agreed.passages,
                "negatives": agreed.negatives,
            }
        )


def training(session: Session, filters: Filters, names: Names, counts: Counter[str]) -> Iterator[str]:
    """Rows of `core train --multi`.  `supporting`: ids of the passages that support the answers, where that is known (`supporting`);
    `no_answer`: most said that the passages hold none, so that [EOI] comes at once; `answers_known` (false): the judged ones were all
    wrong and nobody said more, so that the negatives are training signal and [EOI] is not."""
    for agreed in _agreed(session, filters, counts):
        passages = [_text_of(p) for p in agreed.passages]
        row: TrainingRow = {
            "id": agreed.question.public_id,
            "source": SOURCE,
            "question": agreed.question.text,
            "passages": passages,
            "answers": agreed.answers,
            "negatives": agreed.negatives,
        }
        if not agreed.answers and not agreed.no_answer:
            if any(mentions(p["text"], agreed.negatives) for p in passages):  # else there is no span to avoid
                counts["questions_with_negatives_only"] += 1
                yield dumps(row | {"answers_known": False})
            continue
        if agreed.no_answer and not passages:
            continue
        counts["questions_without_passages"] += not passages
        counts["questions_with_no_answer"] += agreed.no_answer
        cited = supporting(agreed.question, agreed.answers, passages)
        counts["questions_with_evidence"] += bool(cited)
        supporting_ids = [p["id"] for p in passages if p["id"] in cited]
        yield dumps(
            row | ({"supporting": supporting_ids} if supporting_ids else {}) | ({"no_answer": True} if agreed.no_answer else {})
        )


# ---------------------------------------------------------------- preferences


def preferences(session: Session, filters: Filters, names: Names, counts: Counter[str]) -> Iterator[str]:
    """Pairs of answer sets of one question of which a majority preferred one: {id, prompt, chosen, rejected, ...}.

    `chosen` and `rejected` are texts with an answer a line (as `question | answer`, where it has a disambiguated question);
    `chosen_set` and `rejected_set` hold the same as lists, with system and prediction.  Ties are counted and left out.
    """
    item = workbench.ProjectItem
    ids = session.scalars(select(item.question_id).distinct().order_by(item.question_id)).all()
    for chunk in chunked(ids, CHUNK_QUESTIONS):
        choices: dict[tuple[int, frozenset[str]], dict[str, str]] = defaultdict(dict)
        linked = _sides(session, chunk)
        for row in sheets(session, chunk, replace(filters, stages=())):
            if row.body.get("preference") is None:
                continue
            # those that were judged; one of them may have no answer, and then the item's link says which it was
            prediction_ids = {a["prediction_id"] for a in row.body["answers"]} | ({row.body["preferred"]} - {""})
            prediction_ids = prediction_ids if len(prediction_ids) == 2 else prediction_ids | linked.get(row.item, set())
            if len(prediction_ids) == 2:
                choices[row.question_id, frozenset(prediction_ids)][row.name] = row.body["preferred"]
        bodies = _predictions(session, {i for _, pair in choices for i in pair})
        for (_, pair), preferred_by_person in choices.items():
            tally = Counter(preferred_by_person.values())
            first, second = sorted(pair)
            if tally[first] == tally[second] or any(i not in bodies for i in pair):
                counts["ties"] += 1
                continue
            chosen, rejected = (first, second) if tally[first] > tally[second] else (second, first)
            (head, chosen_set), (_, rejected_set) = bodies[chosen], bodies[rejected]
            if filters.system and filters.system not in (chosen_set["system"], rejected_set["system"]):
                continue
            counts["pairs"] += 1
            yield dumps(
                {
                    **head,
                    "chosen": _lines_of(chosen_set),
                    "rejected": _lines_of(rejected_set),
                    "chosen_set": chosen_set,
                    "rejected_set": rejected_set,
                    "preferring": tally[chosen],
                    "against": tally[rejected],
                    "undecided": tally[""],
                }
            )


def _sides(session: Session, questions: Sequence[int]) -> dict[str, set[str]]:
    """Item -> the predictions that its judges see."""
    link, item = workbench.ItemPrediction, workbench.ProjectItem
    query = (
        select(item.public_id, tables.Prediction.public_id)
        .join(link, link.item_id == item.id)
        .join(tables.Prediction, tables.Prediction.id == link.prediction_id)
        .where(item.question_id.in_(questions))
    )
    sides: dict[str, set[str]] = defaultdict(set)
    for name, prediction in session.execute(query):
        sides[name].add(prediction)
    return sides


def _predictions(session: Session, ids: Iterable[str]) -> dict[str, tuple[TrainingRow, TrainingRow]]:
    """Prediction -> (`id` and `prompt` of its question, its answer set)."""
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
    bodies: dict[str, tuple[TrainingRow, TrainingRow]] = {}
    for row in rows:
        head = {"id": row.question_id, "prompt": row.text}
        body: TrainingRow = {"system": row.system, "prediction": row.public_id, "answers": []}
        _, body = bodies.setdefault(row.public_id, (head, body))
        if row.answer is not None:
            body["answers"].append({"question": row.clarified or "", "answer": row.answer})
    return bodies


def _lines_of(answer_set: TrainingRow) -> str:
    return "\n".join(f"{a['question']} | {a['answer']}" if a["question"] else a["answer"] for a in answer_set["answers"])
