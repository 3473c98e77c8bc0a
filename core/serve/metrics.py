"""The service's counters for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from core.serve.pool import Pool

SECONDS_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


class Metrics:
    """A separate registry, so that two services in one process don't share figures."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.questions = Counter("ambiscope_questions", "Questions by how they ended", ["system", "outcome"], registry=registry)
        self.refused = Counter("ambiscope_refused", "Requests that were refused, by status code", ["status"], registry=registry)
        self.queue, self.first_answer, self.answer_set = (
            Histogram(f"ambiscope_{name}_seconds", f"Seconds {span}", registry=registry, buckets=SECONDS_BUCKETS)
            for name, span in (
                ("queue", "that a question waited for a worker"),
                ("first_answer", "from a question's arrival to its first answer"),
                ("answer", "from a question's arrival to its whole answer set"),
            )
        )

    def watch(self, pool: Pool) -> None:
        """Reports how full a pool is."""
        waiting = Gauge("ambiscope_waiting", "Questions that wait for a worker", registry=self.registry)
        waiting.set_function(lambda: pool.waiting)
        running = Gauge("ambiscope_running", "Questions that are worked on", registry=self.registry)
        running.set_function(lambda: pool.running)

    def text(self) -> bytes:
        return generate_latest(self.registry)
