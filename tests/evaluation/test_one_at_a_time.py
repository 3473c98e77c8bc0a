"""Two evaluations of one folder, a torn row, a full disk: told in one line, and nothing is lost or mixed."""

from __future__ import annotations

import json
import re
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
    assert len(system.refused) == 1
    assert f"{tmp_path} is in use: an evaluation in process " in system.refused[0]
    assert state_of(tmp_path).rows == 6
    assert (tmp_path / LOCK).exists()  # and holds nobody up
    assert evaluate(Slow(), QUESTIONS, out_dir=tmp_path, bootstrap=10).n == 6


@pytest.mark.parametrize("cut", [1, 40])
def test_a_torn_row_is_found_said_and_made_anew(tmp_path: Path, cut: int) -> None:
    evaluate(Slow(), QUESTIONS, out_dir=tmp_path, bootstrap=10)
    rows = tmp_path / "rows.jsonl"
    rows.write_bytes(rows.read_bytes()[:-cut])
    said: list[str] = []
    again = Slow()
    report = evaluate(again, QUESTIONS, out_dir=tmp_path, bootstrap=10, say=said.append)
    assert again.asked == ["f"]
    assert said[0].startswith(f'{rows}: the last row is incomplete (\'{{"id": "f"')
    assert said[0].endswith("its question is asked again")
    assert re.findall(r"\d+", said[1].removeprefix(f"resuming in {tmp_path}")) == ["5"]
    assert report.n == 6
    assert [json.loads(line)["id"] for line in rows.read_text().splitlines()] == list("abcdef")
