from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import InputError, UnknownNameError
from core.registry import Entry, Registry
from core.settings import Settings
from core.systems import SYSTEMS


def test_a_typo_gets_a_suggestion_and_the_list() -> None:
    with pytest.raises(UnknownNameError) as caught:
        SYSTEMS.resolve("ambigpromt")
    assert "unknown system 'ambigpromt'. Did you mean 'ambigprompt'? Available: ambiscope, ambigprompt" in str(caught.value)
    assert "scripted" not in str(caught.value)  # hidden
    with pytest.raises(UnknownNameError, match=r"unknown system 'zzz'\. Available"):
        SYSTEMS["zzz"]


def test_a_registry_is_lazy() -> None:
    registry = Registry("thing", {"sqrt": Entry("math:sqrt", "root"), "missing": Entry("no.such.module:x", "never imported")})
    assert list(registry) == ["sqrt", "missing"]
    assert registry.resolve("sqrt")(9) == 3
    with pytest.raises(ModuleNotFoundError):
        registry.resolve("missing")


def test_settings_from_the_environment(tmp_path: Path) -> None:
    environment = {"AMBISCOPE_HOME": str(tmp_path), "AMBISCOPE_TOP_K": "7", "AMBISCOPE_SYSTEM": "scripted", "PATH": "/bin"}
    settings = Settings.from_env(environment)
    assert settings == Settings(home=tmp_path, top_k=7, system="scripted")
    assert (settings.corpora_dir, settings.runs_dir) == (tmp_path / "corpora", tmp_path / "runs")
    assert settings.url == f"sqlite:///{tmp_path / 'ambiscope.db'}"
    assert Settings(database_url="postgresql://x").url == "postgresql://x"
    assert Settings.from_env({}) == Settings()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("AMBISCOPE_TOPK", "3", "unknown setting AMBISCOPE_TOPK; known: AMBISCOPE_ANNOTATOR"),
        ("AMBISCOPE_VERIFIER", "default", "AMBISCOPE_VERIFIER was removed: the reader says which answers are wrong"),
        ("AMBISCOPE_TOP_K", "many", "AMBISCOPE_TOP_K is 'many'; it must be a whole number"),
        ("AMBISCOPE_TOP_K", "0", "AMBISCOPE_TOP_K is 0; it must be at least 1"),
        ("AMBISCOPE_MAX_ANSWERS", "-1", "must be at least 1"),
        ("AMBISCOPE_LM_TIMEOUT", "0", "AMBISCOPE_LM_TIMEOUT is 0"),
        ("AMBISCOPE_LM_CONCURRENCY", "0", "AMBISCOPE_LM_CONCURRENCY is 0"),
        ("AMBISCOPE_LM_RETRIES", "-1", "AMBISCOPE_LM_RETRIES is -1"),
        ("AMBISCOPE_LM_MAX_TOKENS", "0", "AMBISCOPE_LM_MAX_TOKENS is 0"),
        ("AMBISCOPE_INDEX_KIND", "tree", "AMBISCOPE_INDEX_KIND is 'tree'; use one of auto, flat, ivfpq, hnsw"),
        ("AMBISCOPE_THREADS", "-1", "AMBISCOPE_THREADS is -1; it must be 0 to 1024"),
        ("AMBISCOPE_MAX_LINE_CHARS", "0", "AMBISCOPE_MAX_LINE_CHARS is 0; it must be at least 1"),
        ("AMBISCOPE_HOME", "", "AMBISCOPE_HOME is empty"),
        ("AMBISCOPE_RETRIEVER", "google", "use one of dense, bm25, hybrid"),
    ],
)
def test_wrong_settings_say_what_to_do(name: str, value: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        Settings.from_env({name: value})
    assert says in str(caught.value)
