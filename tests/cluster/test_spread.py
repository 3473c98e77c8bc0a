"""Items over the workers of two Ray nodes: every result once, in order, whatever dies."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from serving import PATIENCE

from core.cluster import spreading
from core.cluster.connect import Cluster, connected
from core.cluster.spreading import in_order, spread
from core.errors import ClusterError, FormatError
from core.settings import Settings

SETTINGS = Settings(device="cpu", threads=1)


@pytest.fixture(autouse=True)
def by_value() -> Iterator[None]:
    """Workers do not see the tests' modules: what stands in this one travels."""
    ray = pytest.importorskip("ray")
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    ray.cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def cluster(two_nodes: Any) -> Iterator[Cluster]:
    with connected(two_nodes.address, SETTINGS) as connection:
        assert connection is not None
        yield connection


def loads(do: Callable[[Any], Any], **facts: str) -> Callable[[], Any]:
    return lambda: (do, facts)


def node_of(*_: Any) -> str:
    import ray

    return str(ray.get_runtime_context().get_node_id())


def wait_for(*files: Path) -> None:
    end = time.monotonic() + PATIENCE
    while not all(file.exists() for file in files):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_results_come_in_the_order_of_the_items(cluster: Cluster, tmp_path: Path) -> None:
    assert cluster.workers == 2

    def first_is_slow(item: int) -> tuple[int, str]:
        (tmp_path / f"{item}").touch()
        if item == 0:
            wait_for(tmp_path / "5")
        return item * item, node_of()

    load = loads(first_is_slow, weights="abc")
    results = list(spread(cluster, load, {"weights": "abc"}, iter(range(12)), 12))
    assert sorted(n for n, _ in results) == list(range(12))
    assert results[0][0] != 0  # the others do not wait for the slow one
    assert [r[0] for r in in_order(iter(results))] == [n * n for n in range(12)]
    assert len({r[1] for _, r in results}) == 2  # both machines worked


def test_no_item_starts_no_worker(cluster: Cluster) -> None:
    assert list(spread(cluster, loads(str), {}, [], 0)) == []


def test_items_are_taken_as_workers_are_free(cluster: Cluster, tmp_path: Path) -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for i in range(20):
            taken.append(i)
            yield i

    def stuck(item: int) -> int:
        if item == 0:
            wait_for(tmp_path / "go")
        return item

    results = spread(cluster, loads(stuck), {}, items(), 20, ahead=4)
    assert [next(results)[0] for _ in range(3)] == [1, 2, 3]
    (tmp_path / "go").touch()
    assert taken == [0, 1, 2, 3]  # no more than four are held while the first is missing
    assert sorted(n for n, _ in results) == [0, *range(4, 20)]


def test_a_node_killed_in_the_middle_costs_no_result(cluster: Cluster, kill_a_node: Callable[[], str], tmp_path: Path) -> None:
    """The pieces of the dead node are done again on the other one, which has no room for a second worker; nothing comes twice."""
    log = tmp_path / "done"
    log.touch()

    def work(item: int) -> int:
        (tmp_path / f"{item}").touch()
        if item < 2:  # both machines are at work
            wait_for(tmp_path / "0", tmp_path / "1")
        if item > 15:  # and have some left
            wait_for(tmp_path / "killed")
        with log.open("a") as file:
            file.write(f"{item} {node_of()}\n")
        return item + 100

    results: list[tuple[int, int]] = []
    dead = ""
    for row in spread(cluster, loads(work), {}, range(40), 40):
        results.append(row)
        if len(results) == 10:
            dead = kill_a_node()
            (tmp_path / "killed").touch()
    assert sorted(results) == [(n, n + 100) for n in range(40)]
    done = [line.split() for line in log.read_text().splitlines()]
    assert len({node for _, node in done}) == 2
    again = [item for item, times in Counter(item for item, _ in done).items() if times > 1]
    assert len(again) <= 1  # at most the piece whose answer was on its way
    assert done[-1][1] != dead


def test_a_process_that_dies_is_started_again(cluster: Cluster, tmp_path: Path) -> None:
    def once(item: int) -> int:
        try:
            (tmp_path / f"{item}").touch(exist_ok=False)
        except FileExistsError:
            return item
        os.kill(os.getpid(), signal.SIGKILL)
        return -1

    lines: list[str] = []
    quiet = replace(cluster, workers=1, say=lines.append)
    assert list(spread(quiet, loads(once), {}, [7], 1)) == [(0, 7)]
    assert "a worker is lost; its piece (1 of 1) is done again" in lines


def test_an_item_that_ends_every_worker_is_named(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spreading, "MAX_LOST_WORKERS", 1)
    quiet = replace(cluster, workers=1, say=lambda _: None)

    def fatal(_: int) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(ClusterError, match="piece 1 of 1 ended 1 workers"):
        list(spread(quiet, loads(fatal), {}, [7], 1))


def test_errors_of_the_work_are_those_of_one_process(cluster: Cluster) -> None:
    one = replace(cluster, workers=1)

    def wrong(_: int) -> None:
        raise FormatError("not a number", file="a.tsv", line=3)

    with pytest.raises(FormatError, match=r"a\.tsv, line 3: not a number"):
        list(spread(one, loads(wrong), {}, range(3), 3))


def test_other_versions_and_weights_are_refused(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    one = replace(cluster, workers=1)
    load, facts = loads(str, **{"its weights": "9bd1"}), {"its weights": "324c"}
    with pytest.raises(
        ClusterError, match=r"worker on [\d.]+ does not fit: its weights: 324c here, 9bd1 there\. Every machine"
    ):
        list(spread(one, load, facts, range(3), 3))

    def absent() -> Any:
        raise FileNotFoundError(2, "No such file or directory", "/corpora/mine")

    with pytest.raises(ClusterError, match=r"the worker on [\d.]+ cannot start: .*/corpora/mine"):
        list(spread(one, absent, {}, range(3), 3))
    real = spreading.versions()
    monkeypatch.setattr(spreading, "versions", lambda: {**real, "torch": "0.4.1"})
    with pytest.raises(ClusterError, match=rf"does not fit: torch: 0\.4\.1 here, {real['torch']} there\. Install the same"):
        list(spread(one, loads(str), {}, range(3), 3))


def test_what_ray_prints_leaves_stdout_alone(two_nodes: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with connected(two_nodes.address, SETTINGS):
        print("Ray says")
    assert capsys.readouterr().out == ""
