"""A project's items answered by a system in the background, so that annotators get suggestions, or judges something to judge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core import types as t
from core.engine import Engine
from core.systems.base.options import Options
from pages.jobs.worker import Worker
from pages.session import shared
from storage.analysis.answering import Answering
from storage.records.projects import Project
from storage.store import Store

if TYPE_CHECKING:
    from core.serve.remote import RemoteEngine


class Preannotation(Answering, Worker):
    """`storage.analysis.answering.Answering` in a thread that the page watches."""

    def __init__(
        self, engine: Engine | RemoteEngine, store: Store, project: Project, system: str, by: str, options: Options
    ) -> None:
        def build(own_passages: bool) -> t.AnsweringSystem:
            return engine.system(system, project.corpus or None, options, lambda: self.stopping, own_passages=own_passages)

        Worker.__init__(self, f"preannotate-{project.id[:8]}")
        Answering.__init__(self, store, project, system, by, build)
        self.title = f"{system}: {project.name}"
        self.start()

    def _tell(self) -> None:
        self.share = self.part

    def work(self) -> None:
        self.answer_items(lambda: self.stopping, self._tell)


def running() -> dict[str, Preannotation]:
    """Runs of a system over a project's items that this process has begun, by the project's id."""
    return shared.running("preannotations")
