"""Chooses the engine: this process's own, or a service's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.engine import Engine
from core.settings import Settings

if TYPE_CHECKING:
    from core.serve.remote import RemoteEngine


def make_engine(settings: Settings) -> Engine | RemoteEngine:
    """The engine that AMBISCOPE_ENGINE_URL names, or else this process's own, without importing anything for HTTP."""
    if not settings.engine_url:
        return Engine(settings)
    from core.serve.remote import RemoteEngine

    return RemoteEngine(settings)
