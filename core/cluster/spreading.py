"""Spreads items over the workers of a cluster.  Each worker takes one item after another, and the item of a lost worker is
repeated.

Ray places the workers, sees which died and starts them again where there is room.  An item does not wait for its worker to come back
(Ray's own retries would: for ever, if no machine has room): it goes to the next that is free.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

from core.cluster.connect import Cluster
from core.cluster.same import Facts, differences, versions
from core.errors import AmbiscopeError, ClusterError
from core.settings import ROOT

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
# (function of one item, facts about what it loaded); run on each worker
Load = Callable[[], tuple[Callable[[ItemT], ResultT], Facts]]

MAX_LOST_WORKERS = 3  # workers that may be lost with one item
MAX_RESTARTS = 10  # of one worker: one that never gets as far as an item, for lack of memory, is given up
SAME_FILES = "Every machine needs the same files (docs/scale.md)"
WAIT_SECONDS = 20.0  # before it is reported that no worker has started


class Worker:
    """An actor that loads once and then handles one item after another."""

    def __init__(self) -> None:
        self._function: Callable[[Any], Any] | None = None

    def start(self, job: tuple[Load[Any, Any], Facts]) -> None:
        """Raises ClusterError if this machine differs from the command's or can't load."""
        if self._function is not None:
            return
        from core.settings import quiet_libraries

        quiet_libraries()
        import ray

        load, facts = job
        worker = f"the worker on {ray.util.get_node_ip_address()}"
        versions_here = versions()
        if faults := differences({n: facts[n] for n in versions_here if n in facts}, versions_here):
            raise ClusterError(f"{worker} does not fit: {'; '.join(faults)}. Install the same on every machine (docs/scale.md)")
        try:
            function, loaded_facts = load()
        except (AmbiscopeError, ImportError, OSError) as error:
            raise ClusterError(f"{worker} cannot start: {error}. {SAME_FILES}") from error
        if faults := differences({n: v for n, v in facts.items() if n not in versions_here}, loaded_facts):
            raise ClusterError(f"{worker} does not fit: {'; '.join(faults)}. {SAME_FILES}")
        self._function = function

    def do(self, job: tuple[Load[Any, Any], Facts], item: Any) -> Any:
        self.start(job)  # does nothing unless the process is new
        assert self._function is not None
        return self._function(item)


def spread(
    cluster: Cluster,
    load: Load[ItemT, ResultT],
    facts: Facts,
    items: Iterable[ItemT],
    count: int,
    ahead: int | None = None,
) -> Iterator[tuple[int, ResultT]]:
    """(number, result) of each of `count` items in the order in which they finish; no number twice.

    `load` is pickled; it runs once on each worker, where what it is made of must equal `facts`.  `items` are taken when a worker is free;
    with `ahead`, at most so many numbers beyond the first that is missing.  Closing the iterator ends the workers.

    Raises ClusterError if a worker does not fit, none is left, or an item has ended MAX_LOST_WORKERS workers; and what `load`'s function raises.
    """
    if not count:
        return
    ray = cluster.ray
    actor = ray.remote(num_cpus=cluster.cpus, num_gpus=cluster.gpus, max_restarts=MAX_RESTARTS, scheduling_strategy="SPREAD")(
        Worker
    )
    job = ray.put((load, {**versions(), **facts}))
    source = enumerate(items)
    pending: dict[int, ItemT] = {}  # taken, without a result
    taken_count = 0
    retries: list[int] = []  # a heap of those that a worker was lost with
    losses = Counter[int]()
    running: dict[Any, tuple[Any, int | None]] = {}  # Ray's reference -> (worker, number; None while it starts)
    idle: list[Any] = []

    def start(worker: Any) -> None:
        # Ray repeats this, and nothing else, on a worker that it is starting again
        running[worker.start.options(max_task_retries=-1).remote(job)] = worker, None

    def take() -> int | None:
        nonlocal taken_count
        if retries:
            return heapq.heappop(retries)
        if ahead is not None and pending and taken_count - min(pending) >= ahead:
            return None
        for number, item in source:
            pending[number], taken_count = item, number + 1
            return number
        return None

    def hand_out() -> None:
        while idle and (number := take()) is not None:
            worker = idle.pop()
            running[worker.do.remote(job, pending[number])] = worker, number

    workers = [actor.remote() for _ in range(min(cluster.workers, count))]
    finished_count, has_started, is_waiting_reported = 0, False, False
    node_id = ray.get_runtime_context().get_node_id()
    try:
        for worker in workers:
            start(worker)
        while finished_count < count:
            ready, _ = ray.wait(list(running), timeout=WAIT_SECONDS)
            if not ready:
                if not any(node["Alive"] for node in ray.nodes() if node["NodeID"] == node_id):
                    raise ClusterError("Ray on this machine has died; start it again, then give the command again to go on")
                if not has_started and not is_waiting_reported:
                    cluster.say(
                        "waiting for free CPUs of the Ray cluster; other work has them, or its machines are slow to start"
                    )
                    is_waiting_reported = True
                continue
            worker, number = running.pop(ready[0])
            try:
                result = ray.get(ready[0])
            except ray.exceptions.RayTaskError as error:
                raise error.cause from error
            except ray.exceptions.RayError as error:
                if number is not None:
                    losses[number] += 1
                    if losses[number] >= MAX_LOST_WORKERS:
                        raise ClusterError(
                            f"piece {number + 1} of {count} ended {MAX_LOST_WORKERS} workers; most often their memory is too small for it"
                        ) from error
                    heapq.heappush(retries, number)
                    cluster.say(f"a worker is lost; its piece ({number + 1} of {count}) is done again")
                if not isinstance(error, ray.exceptions.ActorDiedError):
                    idle.append(worker)
                elif workers == [worker]:  # Ray does not start this one again
                    reason = " ".join(str(error).split())[-400:]
                    problem = f"no worker can be started: {reason}. Every machine needs this folder: {ROOT}"
                    raise ClusterError(problem) from error
                else:
                    workers.remove(worker)
                while idle:  # idle ones may be lost too: starting them shows it before they get an item
                    start(idle.pop())
                continue
            has_started = True
            idle.append(worker)
            if number is not None:
                del pending[number]
                finished_count += 1
            hand_out()
            if number is not None:
                yield number, result
    finally:
        for worker in workers:
            with suppress(Exception):  # the cluster may be gone
                ray.kill(worker)


def in_order(results: Iterable[tuple[int, ResultT]]) -> Iterator[ResultT]:
    """The results in the order of their items."""
    waiting: dict[int, ResultT] = {}
    next_number = 0
    for number, result in results:
        waiting[number] = result
        while next_number in waiting:
            yield waiting.pop(next_number)
            next_number += 1
