"""Two evaluations of one folder, a torn row, a full disk: told in one line, and nothing is lost or mixed."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_disks import resize, small_disk
from test_run_folder import QUESTIONS, Slow

from core import types as t
from core.disk import LOCK, locked
from core.errors import ConflictError, StorageError
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
    assert state_of(tmp_path).done == 6
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


def test_what_goes_on_is_said_with_the_failed_ones(tmp_path: Path) -> None:
    said: list[str] = []
    evaluate(Slow("c"), QUESTIONS, out_dir=tmp_path, bootstrap=10, say=said.append)
    assert said == []
    evaluate(Slow(), QUESTIONS, out_dir=tmp_path, bootstrap=10, say=said.append)
    (line,) = said
    assert re.findall(r"\d+", line.removeprefix(f"resuming in {tmp_path}")) == ["5", "1"]


def test_a_full_disk_ends_a_run_with_whole_rows_and_it_goes_on(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", 8) as folder:
        asked: list[str] = []
        refused: list[str] = []
        for _ in range(12):
            system = Slow()
            try:
                report = evaluate(system, QUESTIONS, out_dir=folder / "run", traces=True, bootstrap=10)
                break
            except StorageError as error:
                refused.append(str(error))
                path = folder / "run" / "rows.jsonl"
                if path.exists():
                    assert all(json.loads(line)["error"] is None for line in path.read_text().splitlines())
                assert not [p.name for p in folder.rglob("*.part")]
            asked += system.asked
            resize(folder, 8 + 4 * (1 + len(asked)))
        else:
            pytest.fail("it never had room enough")
        assert all(" are free in " in line for line in refused)
        assert asked  # it was refused at least once in the middle
        assert report.n == 6


def test_the_lock_of_a_folder_is_no_row(tmp_path: Path) -> None:
    with locked(tmp_path / "run", "an evaluation"):
        assert state_of(tmp_path / "run").done == 0
