"""Plays the generator's roles with a language model: a prompt (core.models.language.prompts), a JSON schema, and the conversion
of the returned object.

Source: Lee et al. 2025 (VerDICt), sections 3-4, figures 6-9.  Differences from the paper: replies are objects by schema; an interpretation whose answer
is not in the passage's words counts as an abstention, because small models answer from memory or repeat the prompt's example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.errors import LanguageModelError
from core.models.language.prompts import as_data, as_line, list_as_data, load_prompt, passages_as_data
from core.models.language.roles import Claim, Completion, LanguageModel, Message, Request, Run
from core.text import STOPWORDS, compared_words, content_words, find_spans, listed, question_key
from core.types import Evidence, Interpretation, ModelCalled, Passage

MAX_QUESTION_CHARS = 400
MAX_ANSWER_CHARS = 300
MAX_TEXT_CHARS = 4_000  # of a long answer
QUOTATION_TRIES = 2  # of one answer
LIST_TOKEN_FACTOR = 4  # token limit of a list of interpretations, relative to one answer

Check = Callable[[dict[str, Any]], str]  # what is wrong with an object that fits its schema; "" if nothing


_TEXT = {"type": "string"}
_SHORT = {"type": "string", "maxLength": 120}  # small models do not stop
_MAYBE = {"type": ["string", "null"]}
_NUMBERS = {"type": "array", "items": {"type": "integer"}}


def _object(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


_ROW = _object({"question": _TEXT, "answer": _TEXT, "passage": {"type": "integer"}}, "question", "answer")
SCHEMAS: Mapping[str, dict[str, Any]] = {
    "relax": _object({"query": _TEXT}, "query"),
    "interpret": _object({"question": _MAYBE, "answer": _MAYBE, "reason": _SHORT}, "question", "answer"),
    "verify": _object({"supported": {"type": "boolean"}}, "supported"),
    "supporting": _object({"passages": _NUMBERS}, "passages"),
    # the prompt asks for at least two; fewer are accepted
    "pseudo_interpretations": _object({"questions": {"type": "array", "items": _TEXT, "minItems": 2}}, "questions"),
    "clarify_long": _object({"interpretations": {"type": "array", "items": _ROW}}, "interpretations"),
    "long_answer": _object({"text": _TEXT}, "text"),
    "answer": _object({"answer": _MAYBE}, "answer"),
    "next_answer": _object(
        {"answer": _MAYBE, "passage": {"type": ["integer", "null"]}, "quotation": _MAYBE}, "answer", "quotation"
    ),
    "match": _object({"covered": {"type": "array", "items": {"type": "boolean"}}}, "covered"),
    "deduplicate": _object({"keep": _NUMBERS}, "keep"),
}


def _at_most(schema: dict[str, Any], n: str | None) -> dict[str, Any]:
    """The schema with lists limited to n items, as in the prompt.  Servers that enforce it stop a model that repeats itself."""
    if n is None:
        return schema
    properties = {
        name: {**p, "minItems": min(p.get("minItems", 0), int(n)), "maxItems": int(n)} if p["type"] == "array" else p
        for name, p in schema["properties"].items()
    }
    return {**schema, "properties": properties}


class PromptedGenerator:
    """Every role over one language model: those of Generator, and those below that only a language model can play.  Runs can
    share it, because their state is in Run."""

    def __init__(self, model: LanguageModel, max_tokens: int = 256, prompts: Path | None = None) -> None:
        """`prompts`: a folder of other prompts (core.models.language.prompts)."""
        self.model, self.max_tokens, self.prompts = model, max_tokens, prompts

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def about(self) -> Mapping[str, Any]:
        prompts = {role: load_prompt(role, self.prompts).label for role in SCHEMAS}
        return {"generator": "language model", **self.model.about, "max_tokens": self.max_tokens, "prompts": prompts}

    def _request(self, role: str, values: Mapping[str, str]) -> Request:
        longer = LIST_TOKEN_FACTOR if role in ("clarify_long", "long_answer", "pseudo_interpretations") else 1
        messages = tuple(Message(sender, text) for sender, text in load_prompt(role, self.prompts).fill(**values))  # type: ignore[arg-type]
        return Request(messages, _at_most(SCHEMAS[role], values.get("n")), self.max_tokens * longer, role)

    def _stream(
        self, role: str, jobs: Sequence[tuple[int, Mapping[str, str]]], run: Run, check: Check | None = None
    ) -> Iterator[tuple[int, Completion]]:
        """`jobs`: the number of passages, and the prompt's values.  Each call is counted when it ends; a reply that `check`
        refuses counts as failed."""
        requests = [self._request(role, values) for _, values in jobs]
        for index, c in self.model.stream(requests, run.deadline, run.cancelled):
            if check is not None and c.parsed is not None and not c.error and (problem := check(c.parsed)):
                c = replace(c, error=problem)
            run.count(ModelCalled(role, jobs[index][0], c.prompt_tokens, c.completion_tokens, c.seconds, c.error, c.warning))
            yield index, c

    def _ask_all(
        self, role: str, jobs: Sequence[tuple[int, Mapping[str, str]]], run: Run, check: Check | None = None
    ) -> list[dict[str, Any] | None]:
        completions = dict(self._stream(role, jobs, run, check))
        return [None if completions[i].error else completions[i].parsed for i in range(len(jobs))]

    def _ask(self, role: str, length: int, run: Run, /, check: Check | None = None, **values: str) -> dict[str, Any] | None:
        return self._ask_all(role, [(length, values)], run, check)[0]

    def relax(self, query: str, run: Run) -> str:
        reply = self._ask("relax", 0, run, question=as_line(query))
        return (_line(reply["query"], MAX_QUESTION_CHARS) if reply else "") or query

    def interpret(self, query: str, passages: Sequence[Passage], run: Run) -> Iterator[tuple[int, Interpretation]]:
        question = as_line(query)
        jobs = [(1, {"question": question, "passages": passages_as_data([p])}) for p in passages]
        for index, completion in self._stream("interpret", jobs, run):
            reply, passage = completion.parsed, passages[index]
            if completion.error or reply is None:
                yield index, Interpretation(passage.id, failed=completion.error or "the model's reply cannot be read")
            else:
                yield index, _interpretation(reply, passage)

    def verify(self, claims: Sequence[Claim], run: Run) -> list[bool | None]:
        jobs = [
            (
                len(c.passages),
                {"question": as_line(c.question), "answer": as_line(c.answer), "passages": passages_as_data(c.passages)},
            )
            for c in claims
        ]
        return [None if reply is None else bool(reply["supported"]) for reply in self._ask_all("verify", jobs, run)]

    def answer(self, question: str, passages: Sequence[Passage], run: Run) -> str | None:
        reply = self._ask("answer", len(passages), run, question=as_line(question), passages=passages_as_data(passages))
        text = _line(reply["answer"] or "", MAX_ANSWER_CHARS) if reply else ""
        return text if text and any(_made_of(text, p.text) for p in passages) else None

    def pseudo_interpretations(self, query: str, n: int, run: Run) -> list[str]:
        """Eq. 1: at most n interpretations of the query, written without any passage.  Empty if the call failed."""
        reply = self._ask("pseudo_interpretations", 0, run, question=as_line(query), n=str(n))
        questions = [_line(q, MAX_QUESTION_CHARS) for q in reply["questions"]] if reply else []
        distinct: dict[str, str] = {}
        for q in questions:
            distinct.setdefault(question_key(q), q)
        return [q for key, q in distinct.items() if key][:n]

    def supporting(self, questions: Sequence[str], passages: Sequence[Passage], run: Run) -> list[frozenset[int] | None]:
        """Eq. 3's Verify, one call a question over all passages: the indexes of the passages that answer it; None if the call
        failed."""
        context = passages_as_data(passages)
        jobs = [(len(passages), {"question": as_line(q), "passages": context}) for q in questions]
        return [
            None if reply is None else frozenset(n - 1 for n in reply["passages"] if 1 <= n <= len(passages))
            for reply in self._ask_all("supporting", jobs, run)
        ]

    def clarify_long(self, query: str, passages: Sequence[Passage], run: Run, limit: int = 10) -> list[Interpretation] | None:
        """Eq. 4 and 13: at most `limit` interpretations and answers from one long-context call.  `passage_id` is empty if none
        of the passages contains the answer.  None if the call failed."""
        context = passages_as_data(passages)
        reply = self._ask("clarify_long", len(passages), run, question=as_line(query), passages=context, n=str(limit))
        if reply is None:
            return None
        return [i for row in reply["interpretations"][:limit] if (i := _placed(row, passages)) is not None]

    def long_answer(self, query: str, interpretations: Sequence[Interpretation], passages: Sequence[Passage], run: Run) -> str:
        """One connected text with the answer of every interpretation (Kim et al. 2023, section 3); "" when the call failed."""
        pairs, context = list_as_data([f"{i.question} {i.answer}" for i in interpretations]), passages_as_data(passages)
        reply = self._ask("long_answer", len(passages), run, question=as_line(query), pairs=pairs, passages=context)
        return _line(reply["text"], MAX_TEXT_CHARS) if reply else ""

    def next_answer(
        self, question: str, passages: Sequence[Passage], previous: Sequence[str], run: Run
    ) -> tuple[str, Evidence] | None:
        """AmbigPrompt's step (Sun et al. 2023, section 3.2): another answer, quoted from a passage, and its place there; None
        if none remains.  Asks once more if the quotation is in no passage or doesn't contain the answer, and then raises
        LanguageModelError."""
        values = {"question": as_line(question), "passages": passages_as_data(passages), "previous": list_as_data(previous)}
        values["previous"] = values["previous"] or "none"

        def check(reply: dict[str, Any]) -> str:
            if not reply["answer"]:
                return ""
            return "" if _quoted(reply, passages) else "the quotation is in no passage, or it does not contain the answer"

        for _ in range(QUOTATION_TRIES):
            reply = self._ask("next_answer", len(passages), run, check, **values)
            if reply is not None:
                return _quoted(reply, passages) if reply["answer"] else None
            run.check()
        raise LanguageModelError(f"the language model gave no answer that can be used: {run.calls[-1].error}")

    def match(self, query: str, questions: Sequence[str], references: Sequence[str], run: Run) -> list[bool] | None:
        """Eq. 17: whether one of the questions asks the same as each reference.  None if the call failed; a reply that omits
        references counts as failed."""
        if not questions or not references:
            return [False] * len(references)

        def check(reply: dict[str, Any]) -> str:
            n, wanted = len(reply["covered"]), len(references)
            return "" if n == wanted else f"the reply has {listed(n, 'verdict')} for {listed(wanted, 'question')}"

        values = {"question": as_line(query), "written": list_as_data(questions), "known": list_as_data(references)}
        result = self._ask("match", 0, run, check, **values)
        return list(result["covered"]) if result else None

    def deduplicate(self, query: str, questions: Sequence[str], run: Run) -> list[int] | None:
        """Figure 9: the indexes of the questions to keep, in ascending order.  None if the call failed or would keep none."""
        if len(questions) < 2:
            return list(range(len(questions)))

        def indexes(reply: dict[str, Any]) -> list[int]:
            return sorted({n - 1 for n in reply["keep"] if 1 <= n <= len(questions)})

        values = {"question": as_line(query), "written": list_as_data(questions)}
        result = self._ask("deduplicate", 0, run, lambda r: "" if indexes(r) else "the reply keeps no question", **values)
        return indexes(result) if result else None


def _line(text: str, limit: int) -> str:
    """The text on one line; "" if it is longer than `limit` characters, because a truncated question or answer is useless."""
    line = " ".join(as_data(text, 2 * limit).split()).strip()
    return line if len(line) <= limit else ""


def _made_of(answer: str, text: str) -> bool:
    """Whether the answer is in the passage, as a phrase or as separate content words.  Yes and no always count."""
    have, every = set(compared_words(as_data(text))), compared_words(answer)
    words = [w for w in every if w not in STOPWORDS] or every
    return bool(find_spans(text, answer)) or list(words) in (["yes"], ["no"]) or (bool(words) and have.issuperset(words))


def _quoted(reply: Mapping[str, Any], passages: Sequence[Passage]) -> tuple[str, Evidence] | None:
    """The answer at its place in the quotation, looked up in the cited passage first.  None if no passage has the quotation."""
    answer, quotation = _line(reply["answer"] or "", MAX_ANSWER_CHARS), reply["quotation"] or ""
    for passage in [*_cited(reply, passages), *passages] if answer else ():
        for first, last in find_spans(passage.text, quotation):
            if inside := find_spans(passage.text[first:last], answer):
                start, end = (first + offset for offset in inside[0])
                return passage.text[start:end], Evidence(passage.id, start, end, passage.text[start:end])
    return None


def _interpretation(reply: Mapping[str, Any], passage: Passage) -> Interpretation:
    """Eq. 8's outcome for one passage: a pair whose answer the passage contains, or an abstention with its reason."""
    question, answer = _line(reply["question"] or "", MAX_QUESTION_CHARS), _line(reply["answer"] or "", MAX_ANSWER_CHARS)
    if not question or not answer:
        return Interpretation(
            passage.id, abstained=_line(reply.get("reason") or "", 200) or "the model gives no question and answer"
        )
    if not _made_of(answer, passage.text):
        return Interpretation(passage.id, abstained=f"the model's answer '{answer[:80]}' is not in the passage")
    place = _place(answer, passage)
    return Interpretation(passage.id, question, place.text if place else answer, evidence=place)


def _cited(reply: Mapping[str, Any], passages: Sequence[Passage]) -> list[Passage]:
    """The passage whose number a reply gives; empty if it gives none."""
    number = reply.get("passage") or 0
    return [passages[number - 1]] if 1 <= number <= len(passages) else []


def _place(answer: str, passage: Passage) -> Evidence | None:
    """The first occurrence of the answer in the passage."""
    for start, end in find_spans(passage.text, answer):
        return Evidence(passage.id, start, end, passage.text[start:end])
    return None


def _placed(row: Mapping[str, Any], passages: Sequence[Passage]) -> Interpretation | None:
    """A row of a long-context answer with the passage that contains its answer: the cited one if it does, else the first that
    does."""
    question, answer = _line(row["question"], MAX_QUESTION_CHARS), _line(row["answer"], MAX_ANSWER_CHARS)
    if not question or not answer:
        return None
    cited = _cited(row, passages)
    for passage in [*cited, *passages]:
        if place := _place(answer, passage):
            return Interpretation(passage.id, question, place.text, evidence=place)
    # yes and no count as being in every passage: only the citation tells
    possible = cited if content_words(answer) in (["yes"], ["no"]) else [*cited, *passages]
    passage_id = next((p.id for p in possible if _made_of(answer, p.text)), "")
    return Interpretation(passage_id, question, answer)
