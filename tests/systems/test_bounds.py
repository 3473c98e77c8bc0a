"""A long-running process piles up no cache without an end, handle or freed memory (`benchmarks.robustness.memory`)."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from serving import with_corpus

from core.engine import Engine
from core.errors import InputError
from core.models.scheduling import memory
from core.settings import ROOT
from core.systems.base.options import Options
from core.systems.base.system import answer
from core.types import Question

MAX_ENTRIES = 1 << 16  # of a cache of short texts


def cached() -> Iterator[tuple[str, ast.FunctionDef, ast.expr]]:
    """file:function, the function, and its caching decorator."""
    for folder in ("core", "storage", "pages"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            code = path.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(code)) if "cache" in code else ():
                for decorator in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
                    text = ast.unparse(decorator)
                    if text.split("(")[0].split(".")[-1] in ("cache", "lru_cache"):
                        yield f"{path.relative_to(ROOT).as_posix()}:{node.name}", node, decorator


def bound(decorator: ast.expr) -> int | None:
    """Entries that functools keeps; None: all."""
    if not isinstance(decorator, ast.Call):
        return 128 if "lru_cache" in ast.unparse(decorator) else None
    sizes = [*decorator.args, *(k.value for k in decorator.keywords if k.arg == "maxsize")]
    return ast.literal_eval(sizes[0]) if sizes else 128


def test_every_cache_of_a_function_has_a_bound() -> None:
    caches = [row for row in cached() if row[1].args.args or row[1].args.kwonlyargs]
    assert caches
    for place, _, decorator in caches:
        size = bound(decorator)
        assert size is not None, f"{place} keeps everything that it was ever asked: give it lru_cache(maxsize=...)"
        assert size <= MAX_ENTRIES, place


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    rows = [(f"p{i}", f"West {i}", f"Natalie Wood {i} played Maria.") for i in range(20)]
    return Engine(replace(with_corpus(tmp_path / "home", "facts", rows), device="cpu", system="scripted"))


def test_memory_is_given_back_after_each_question_also_one_that_fails(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    trims: list[int] = []
    monkeypatch.setattr(memory, "trim", lambda: trims.append(1))
    system = engine.system(corpus="facts", options=Options(clarify=False))
    answer(system, Question("Who played Maria?"))
    assert len(trims) == 1
    with pytest.raises(InputError, match="question"):
        answer(system, Question(""))
    assert len(trims) == 2
    events = iter(system.run(Question("Who played Maria?")))
    next(events)
    events.close()  # a person left
    assert len(trims) == 3


def test_handles_and_threads_stay_as_many(engine: Engine) -> None:
    """Each question in a thread of its own, its system and its corpus asked for again, as the app does."""

    def ask(number: int) -> None:
        engine.corpus("facts").passages(0, 5)
        answer(engine.system(corpus="facts", options=Options(clarify=False)), Question(f"Who played Maria {number}?"))

    def opened(questions: int) -> tuple[int, int]:
        for number in range(questions):
            thread = threading.Thread(target=ask, args=(number,))
            thread.start()
            thread.join()
        return len(os.listdir("/proc/self/fd")), threading.active_count()  # noqa: PTH208

    few, many = opened(10), opened(50)
    # a handle or thread a question would be 50 more; a few come and go with what other tests of this process left behind
    assert max(after - before for before, after in zip(few, many, strict=True)) < 25


CLI = "from core.settings import quiet_libraries as go"
APP = "from pages.server import launch as m; m.cli.main = m.preload = lambda *_: None; go = lambda: m.main([])"


@pytest.mark.parametrize("start", [CLI, APP], ids=["command line", "app"])
@pytest.mark.slow
def test_kernels_are_few_before_torch_is_there(start: str) -> None:
    code = f"{start}\nimport os, sys\nassert 'torch' not in sys.modules\ngo()\nprint(os.environ['ONEDNN_PRIMITIVE_CACHE_CAPACITY'])"
    environment = {k: v for k, v in os.environ.items() if k != "ONEDNN_PRIMITIVE_CACHE_CAPACITY"}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "128", done.stderr
