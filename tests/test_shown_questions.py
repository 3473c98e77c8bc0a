"""Every question that a document or a page shows is answered over the bundled corpus, by the bundled default."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_documents import OURS

from core.datasets import load
from core.engine import Engine
from core.errors import CheckpointError
from core.models.loading.packaged import MPNET, packaged_folder
from core.settings import ROOT, Settings
from core.text import answer_keys

QUESTION = re.compile(r"(?:Who|What|When|Where|Which|How|Why) [^\"\n.]{8,}\?")
QUOTED = re.compile(rf"[\"“]({QUESTION.pattern})[\"”]")
ABSENT = "Who won the 2022 World Cup?"  # shown as one that the corpus does not cover
ELSEWHERE = {  # not asked of this corpus
    "Which rock is dark?": "over passages of its own",
    "Where is the Eiffel Tower?": "over a passage of its own",
    "Which one do you mean?": "asked by a service, of a person",
    "What should they change?": "asked on Annotate, of a person",
    "Who played Maria?": "with a wrong option",
}
EXAMPLES_OF_ANNOTATION = ROOT / "pages" / "manage"  # AmbigNQ's guidelines
MARIA = "Who played Maria in West Side Story?"


def in_documents() -> Iterator[str]:
    for path in OURS:
        yield from QUOTED.findall(re.sub(r"\s+", " ", path.read_text(encoding="utf-8")))


def on_pages() -> Iterator[str]:
    """Texts of the pages' code that are a question and no part of a longer text; docstrings have full stops."""
    for path in sorted((ROOT / "pages").rglob("*.py")):
        if path.is_relative_to(EXAMPLES_OF_ANNOTATION):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            value = node.value if isinstance(node, ast.Constant) and id(node) not in parts else None
            if isinstance(value, str) and QUESTION.fullmatch(value):
                yield value


SHOWN = sorted({*in_documents(), *on_pages()} - {ABSENT, *ELSEWHERE})


def test_the_questions_are_found() -> None:
    assert MARIA in set(in_documents()) & set(on_pages())
    assert {ABSENT, *ELSEWHERE} <= {*in_documents(), *on_pages()}
    assert len(SHOWN) >= 7


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    try:
        packaged_folder(MPNET)
    except CheckpointError as error:
        pytest.skip(str(error))
    home: Path = tmp_path_factory.mktemp("home")
    return Engine(Settings(home=home, device="cpu", reader=MPNET, answerer=MPNET))


@pytest.mark.slow
@pytest.mark.parametrize("question", SHOWN)
def test_a_question_that_is_shown_has_an_answer(engine: Engine, question: str) -> None:
    """A right one, where the references know it."""
    prediction = engine.ask(question, clarify=False)
    assert prediction.answers, prediction.ended
    for reference in load(ROOT / "data" / "starter" / "questions.json"):
        if reference.question == question:
            aliases = [alias for pair in reference.annotations[0].pairs for alias in pair.answers]
            assert answer_keys(a.text for a in prediction.answers) & answer_keys(aliases)


@pytest.mark.slow
def test_the_readmes_own_question_has_its_answers(engine: Engine) -> None:
    answers = {a.text for a in engine.ask(MARIA, clarify=False).answers}
    assert {"Carol Lawrence", "Natalie Wood", "Rachel Zegler"} <= answers


@pytest.mark.slow
def test_the_question_that_is_shown_without_an_answer_has_none(engine: Engine) -> None:
    assert not engine.ask(ABSENT, clarify=False).answers
