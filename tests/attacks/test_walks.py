"""People who press anything: random walks over all pages raise nothing.  `ATTACK_WALKS` and `ATTACK_STEPS` make them more and longer
(python -m benchmarks.robustness.walks)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import people
import pytest
import streamlit as st
import streamlit.config
from annotate_helpers import make_project, predict
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as profile
from hypothesis import strategies as some
from page_helpers import QUESTION
from storage_samples import evaluation_report
from streamlit.testing.v1 import AppTest

from benchmarks.robustness.walking import Walk
from core.errors import InputError
from core.settings import Settings
from storage import Store

WALKS, STEPS = int(os.environ.get("ATTACK_WALKS", 25)), int(os.environ.get("ATTACK_STEPS", 12))
PHASES = (Phase.generate, Phase.shrink)  # `explain` would trace each line
Open = Callable[..., AppTest]


@pytest.fixture
def furnished(settings: Settings, corpus: str, store: Store, light: None, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A home with a project of each kind, predictions and runs.  No walk trains a model."""
    by = people.anyone(store)
    for system in ("scripted", "other"):
        store.save_prediction(predict(QUESTION, system=system))
    make_project(store, by, name="writing", stages=("generation", "validation"), systems=["scripted"])
    make_project(store, by, name="judging", stages=("judging",), systems=["scripted", "other"], thresholds={"must_read": 0})
    for label in ("first", "second"):
        report = evaluation_report()
        store.save_evaluation(
            system="scripted", corpus="small", questions="dev", metrics=report["scores"], report=report, label=label
        )
    store.close()

    streamlit.config.set_option("client.showErrorDetails", "full")  # what a walk tells when it fails

    def no_training(*given: Any, **more: Any) -> Any:
        raise InputError("no walk trains a model")

    monkeypatch.setattr("pages._quality_loop.run_loop", no_training)
    return settings


def test_walks_raise_nothing(furnished: Settings, open_app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "kept"
    shutil.copytree(furnished.home, kept)
    walked = 0

    def start_again() -> None:
        nonlocal walked
        walked += 1
        home = tmp_path / f"walk-{walked}"
        shutil.copytree(kept, home)
        shutil.rmtree(tmp_path / f"walk-{walked - 1}", ignore_errors=True)
        monkeypatch.setenv("AMBISCOPE_HOME", str(home))
        st.cache_resource.clear()
        st.cache_data.clear()

    @profile(max_examples=WALKS, phases=PHASES, database=None, suppress_health_check=list(HealthCheck), deadline=None)
    @given(some.data())
    def walk(data: some.DataObject) -> None:
        start_again()
        Walk(open_app, lambda options: data.draw(some.sampled_from(list(options)))).go(STEPS)

    walk()
    assert walked >= WALKS
