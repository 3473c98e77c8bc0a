"""A language model that fails is an error of the question, never an empty answer set; what fails in part is counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback_endpoint import Reply, endpoint, said
from serving import with_corpus

from core import cli
from core import types as t
from core.engine import Engine
from core.errors import LanguageModelError
from core.settings import Settings
from core.systems.base.system import answer

PASSAGES = [
    ("p1", "West Side Story (1961 film)", "Natalie Wood played Maria in the film directed by Robert Wise."),
    ("p2", "West Side Story (2021 film)", "Rachel Zegler played Maria in the remake by Steven Spielberg."),
    ("p3", "West Side Story (musical)", "Carol Lawrence created the role of Maria on Broadway."),
    ("p4", "West Side Story (opera)", "Ada Lund sang Maria in the opera house of Oslo."),
]
QUESTION = "Who played Maria in West Side Story?"


def reply(body: dict[str, Any], number: int) -> Reply:
    """Fails for two names; an object that `relax` and `interpret` take, where their model is sound."""
    words = str(body["messages"][-1]["content"])
    if body["model"] == "broken" or "Natalie Wood" in words or "Carol Lawrence" in words:
        return Reply("oops", 500)
    name = "Rachel Zegler" if "Rachel Zegler" in words else "Ada Lund"
    return said({"query": "Maria West Side Story", "question": f"Who was Maria, {name}?", "answer": name, "reason": ""})


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with_corpus(tmp_path / "home", "facts", PASSAGES)
    with endpoint(reply) as (url, _):
        values = {"HOME": str(tmp_path / "home"), "ENCODER": "hashing", "DEVICE": "cpu", "TOP_K": "4", "CORPUS": "facts"}
        for name, value in {**values, "LM_URL": url, "LM_MODEL": "half", "LM_RETRIES": "0", "LM_TIMEOUT": "5"}.items():
            monkeypatch.setenv(f"AMBISCOPE_{name}", value)
        yield


@pytest.mark.parametrize("name", ["verdict", "dtv", "dtv-unverified", "rac", "rac-tree"])
def test_a_model_that_fails_is_an_error_of_the_question(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMBISCOPE_LM_MODEL", "broken")
    system = Engine(Settings.from_env()).system(name, "facts")
    with pytest.raises(LanguageModelError, match=r"HTTP 500: oops$") as caught:
        answer(system, t.Question(QUESTION))
    assert caught.value.exit_code == 7


def test_ask_tells_what_failed_in_part(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["ask", QUESTION, "--system", "verdict"]
    assert cli.main(words) == 0
    message = "warning: 2 of 5 calls of the model failed; the first one at 'interpret': the endpoint returned HTTP 500"
    assert message in capsys.readouterr().out
    assert cli.main([*words, "--json"]) == 0
    calls = json.loads(capsys.readouterr().out)["calls"]
    assert (calls["made"], calls["failed"], calls["errors"]) == (5, 2, ["the endpoint returned HTTP 500: oops"])
