"""A language model that is dead, refuses, or talks garbage: an error of the question, never an empty answer set; what fails in part is counted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from loopback_endpoint import Reply, endpoint, no_server, said
from serving import with_corpus

from core import cli
from core import types as t
from core.engine import Engine
from core.errors import LanguageModelError
from core.evaluation.cost import cost_of
from core.settings import Settings
from core.systems.base.options import Options
from core.systems.base.system import answer

SYSTEMS = ("verdict", "dtv", "dtv-unverified", "rac", "rac-tree")
PASSAGES = [
    ("p1", "West Side Story (1961 film)", "Natalie Wood played Maria in the film directed by Robert Wise."),
    ("p2", "West Side Story (2021 film)", "Rachel Zegler played Maria in the remake by Steven Spielberg."),
    ("p3", "West Side Story (musical)", "Carol Lawrence created the role of Maria on Broadway."),
    ("p4", "West Side Story (opera)", "Ada Lund sang Maria in the opera house of Oslo."),
]
QUESTION = "Who played Maria in West Side Story?"
NAMES = ("Natalie Wood", "Rachel Zegler", "Carol Lawrence", "Ada Lund")
Answer = Callable[[dict[str, Any], int], Reply]


def words_of(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"])


def asks_for(body: dict[str, Any], member: str) -> bool:
    return member in json.dumps(body.get("response_format") or {})


def sound(body: dict[str, Any], number: int = 0) -> Reply:
    """One object that has what every role wants."""
    held = [n for n in NAMES if n in words_of(body)]
    rows = [{"question": f"Who was Maria, {n}?", "answer": n, "passage": i} for i, n in enumerate(held, 1)]
    first = rows[0] if rows else {"question": None, "answer": None}
    return said(
        {
            "query": "Maria West Side Story",
            "question": first["question"],
            "answer": first["answer"],
            "reason": "",
            "supported": True,
            "passages": list(range(1, len(held) + 1)),
            "questions": ["Who played Maria in 1961?", "Who played Maria in 2021?"],
            "interpretations": rows,
            "covered": [True] * words_of(body).partition("<known>")[2].count(". "),
            "keep": [1, 2],
            "text": f"It was {first['answer']}.",
        }
    )


# what an endpoint itself may do is in test_endpoint
FAULTS: dict[str, tuple[Answer | None, str]] = {
    "dead": (None, "can't be reached"),
    "500": (lambda body, n: Reply("oops", 500), "HTTP 500"),
    "garbage": (lambda body, n: said("lorem ipsum dolor sit amet"), "no JSON object"),
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    language_model = {"LM_MODEL": "m", "LM_RETRIES": "0", "LM_TIMEOUT": "5"}
    others = {"HOME": str(tmp_path / "home"), "ENCODER": "hashing", "DEVICE": "cpu", "TOP_K": "4", "CORPUS": "facts"}
    for name, value in {**language_model, **others}.items():
        monkeypatch.setenv(f"AMBISCOPE_{name}", value)
    with_corpus(tmp_path / "home", "facts", PASSAGES)
    return tmp_path


@contextmanager
def model(answering: Answer | None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """The settings of a language model that answers so; None: nobody listens there."""
    with no_server() if answering is None else endpoint(answering) as (url, _):
        monkeypatch.setenv("AMBISCOPE_LM_URL", url)
        yield Settings.from_env()


def build(name: str, settings: Settings, **options: Any) -> t.AnsweringSystem:
    """Four passages have four answers: too few for a cluster, so that `verdict` keeps what is outside of one."""
    extra = {"unclustered": "keep"} if name == "verdict" else {}
    return Engine(settings).system(name, "facts", Options(top_k=4, extra=extra, **options))


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_sound_model_answers(name: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with model(sound, monkeypatch) as settings:
        prediction = answer(build(name, settings), t.Question(QUESTION))
    assert "Natalie Wood" in [a.text for a in prediction.answers]
    assert cost_of(prediction).failed_calls == 0


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_model_that_says_nothing_of_use_is_an_error(
    name: str, fault: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering, says = FAULTS[fault]
    with model(answering, monkeypatch) as settings:
        system = build(name, settings)
        with pytest.raises(LanguageModelError, match=says) as caught:
            answer(system, t.Question(QUESTION))
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 7


def half(body: dict[str, Any], number: int) -> Reply:
    """Every second passage fails."""
    wrong = any(n in words_of(body) for n in NAMES[::2])
    return Reply("oops", 500) if wrong and asks_for(body, "reason") else sound(body)


@pytest.mark.parametrize(("name", "member"), [("verdict", "query"), ("rac", "query"), ("rac-tree", "supported")])
def test_a_role_that_a_run_can_do_without(name: str, member: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relaxing and checking: the run goes on, and the failure is counted."""

    def answering(body: dict[str, Any], number: int) -> Reply:
        return Reply("oops", 500) if asks_for(body, member) else sound(body)

    with model(answering, monkeypatch) as settings:
        prediction = answer(build(name, settings), t.Question(QUESTION))
    assert prediction.answers
    assert cost_of(prediction).failed_calls >= 1


def test_ask_tells_what_failed_in_part(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["ask", QUESTION, "--system", "verdict"]
    with model(half, monkeypatch):
        assert cli.main(words) == 0
        message = "warning: 2 of 5 calls of the model failed; the first one at 'interpret': the endpoint returned HTTP 500"
        assert message in capsys.readouterr().out
        assert cli.main([*words, "--json"]) == 0
    calls = json.loads(capsys.readouterr().out)["calls"]
    assert (calls["made"], calls["failed"], calls["errors"]) == (5, 2, ["the endpoint returned HTTP 500: oops"])
