"""People who press anything: random walks over all pages raise nothing.  ATTACK_SEEDS takes more of them, ATTACK_STEPS
longer ones."""

from __future__ import annotations

import itertools
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import people
import pytest
import streamlit as st
import streamlit.config
from annotate_helpers import make_project, predict
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as profile
from hypothesis import strategies as some
from page_helpers import QUESTION, Open
from storage_samples import evaluation_report, save_report
from walking import Walk

from core.errors import InputError
from core.settings import Settings
from storage.store import Store

WALKS, STEPS = 25, int(os.environ.get("ATTACK_STEPS", 8))
SEEDS = os.environ.get("ATTACK_SEEDS", "")
PHASES = (Phase.generate, Phase.shrink)  # `explain` would trace each line


@pytest.fixture
def furnished(settings: Settings, corpus: str, store: Store, light: None, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A home with a project of each kind, predictions and runs.  No walk trains a model."""
    by = people.anyone(store)
    for system in ("scripted", "other"):
        store.predictions.save_prediction(predict(QUESTION, system=system))
    make_project(store, by, name="writing", stages=("generation", "validation"), systems=["scripted"])
    make_project(store, by, name="judging", stages=("judging",), systems=["scripted", "other"], thresholds={"must_read": 0})
    for label in ("first", "second"):
        save_report(store, evaluation_report(), label=label)
    store.close()

    streamlit.config.set_option("client.showErrorDetails", "full")  # what a walk tells when it fails

    no_training = Mock(side_effect=InputError("no walk trains a model"))
    monkeypatch.setattr("pages.session.retraining.retrain", no_training)
    return settings


@pytest.fixture
def start_again(furnished: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Each walk begins in a copy of the furnished home, in a process that knows nothing yet."""
    original, numbers = tmp_path / "original", itertools.count(1)
    shutil.copytree(furnished.home, original)

    def begin() -> None:
        number = next(numbers)
        home = tmp_path / f"walk-{number}"
        shutil.copytree(original, home)
        shutil.rmtree(tmp_path / f"walk-{number - 1}", ignore_errors=True)
        monkeypatch.setenv("AMBISCOPE_HOME", str(home))
        st.cache_resource.clear()
        st.cache_data.clear()

    return begin


def test_walks_raise_nothing(start_again: Callable[[], None], open_app: Open) -> None:
    @profile(max_examples=WALKS, phases=PHASES, database=None, suppress_health_check=list(HealthCheck), deadline=None)
    @given(some.data())
    def walk(data: some.DataObject) -> None:
        start_again()
        Walk(open_app, lambda options: data.draw(some.sampled_from(list(options)))).go(STEPS)

    walk()


@pytest.mark.skipif(not SEEDS, reason="ATTACK_SEEDS names no seeds, such as 0:1000")
def test_walks_from_seeds(start_again: Callable[[], None], open_app: Open) -> None:
    """All of them, whatever fails."""
    first, last = map(int, SEEDS.split(":"))
    failed: dict[int, str] = {}
    steps: Counter[str] = Counter()
    for seed in range(first, last):
        start_again()
        draw = random.Random(seed).choice
        walk = Walk(open_app, lambda options, draw=draw: draw(list(options)))  # type: ignore[misc]
        try:
            walk.go(STEPS)
        except AssertionError as error:
            failed[seed] = str(error)
            print(f"seed {seed}: {error}", flush=True)
        steps.update(step.split()[0] for step in walk.steps)
        if (seed - first) % 50 == 49 or seed == last - 1:
            print(f"{seed - first + 1} walks, {steps.total()} steps {dict(steps)}, {len(failed)} failed", flush=True)
    assert not failed, sorted(failed)
