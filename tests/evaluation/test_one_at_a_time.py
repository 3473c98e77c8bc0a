"""Two evaluations of one folder, a torn row, a full disk: told in one line, and nothing is lost or mixed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_run_folder import QUESTIONS, Slow

from core import types as t
from core.disk import LOCK
from core.errors import ConflictError
from core.evaluation.folder import state_of
from core.evaluation.run import evaluate


class Asks(Slow):
    """Starts another evaluation of the same folder at its second question, in a thread: as another process would."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder, self.refused = folder, list[str]()

    def run(self, question: t.Question) -> Iterator[t.Event]:
        if question.id == "b":
            thread = threading.Thread(target=self.second)
            thread.start()
            thread.join()
        return super().run(question)

    def second(self) -> None:
        try:
            evaluate(Slow(), QUESTIONS, out_dir=self.folder, bootstrap=10)
        except ConflictError as error:
            self.refused.append(str(error))


def test_a_second_evaluation_in_the_folder_is_refused(tmp_path: Path) -> None:
    system = Asks(tmp_path)
    assert evaluate(system, QUESTIONS, out_dir=tmp_path, bootstrap=10).n == 6
    (refusal,) = system.refused
    assert f"{tmp_path} is in use: an evaluation in process " in refusal
    assert state_of(tmp_path).rows == 6
    assert (tmp_path / LOCK).exists()  # and holds nobody up
    assert evaluate(Slow(), QUESTIONS, out_dir=tmp_path, bootstrap=10).n == 6


@pytest.mark.parametrize("cut", [1, 40])
def test_the_question_of_a_torn_row_is_asked_again(tmp_path: Path, cut: int) -> None:
    evaluate(Slow(), QUESTIONS, out_dir=tmp_path, bootstrap=10)
    rows = tmp_path / "rows.jsonl"
    rows.write_bytes(rows.read_bytes()[:-cut])
    messages: list[str] = []
    again = Slow()
    report = evaluate(again, QUESTIONS, out_dir=tmp_path, bootstrap=10, say=messages.append)
    assert (again.asked, report.n) == (["f"], 6)
    incomplete, resumed = messages
    assert f'{rows}: the last row is incomplete (\'{{"id": "f"' in incomplete
    assert f"resuming in {tmp_path}: 5 " in resumed
    assert [json.loads(line)["id"] for line in rows.read_text().splitlines()] == list("abcdef")
