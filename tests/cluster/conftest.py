"""A Ray cluster of real nodes on this machine: its processes and its folder go when the tests of this folder end.

Skipped where Ray is not installed (requirements-scale.txt, which requirements-dev.txt takes in).
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.settings import prepare_ray

STORE = 80 * 2**20  # bytes of shared memory, about the least that Ray takes


@pytest.fixture(scope="session")
def ray_folder() -> Iterator[Path]:
    """The folder of Ray's sockets and logs: a short path, since those of sockets are limited."""
    folder = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))
    (folder / "ray").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", str(folder))
        patch.setenv("RAY_worker_niceness", "0")  # else its workers wait for all that the machine does besides
        yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def head(ray_folder: Path) -> Iterator[Any]:
    """ray.cluster_utils.Cluster: a head without a CPU, so that work runs on machines that `two_nodes` adds."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install -r requirements-scale.txt")
    prepare_ray()
    from ray.cluster_utils import Cluster

    options = {"num_cpus": 0, "object_store_memory": STORE, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=options)
    yield cluster
    cluster.shutdown()


@pytest.fixture
def two_nodes(head: Any) -> Any:
    """The cluster with two machines of one CPU each; one that a test before has killed is replaced."""
    while len(head.worker_nodes) < 2:
        head.add_node(num_cpus=1, object_store_memory=STORE)
    return head


@pytest.fixture
def kill_a_node(two_nodes: Any) -> Callable[[], str]:
    """Kills the processes of a machine, and gives its id; never the one through which the test itself speaks to Ray."""

    def kill() -> str:
        import ray

        this_node = ray.get_runtime_context().get_node_id()
        victim = next(node for node in two_nodes.worker_nodes if node.node_id != this_node)
        two_nodes.remove_node(victim, allow_graceful=False)
        return str(victim.node_id)

    return kill
