"""Facts for the health page: versions, and the settings in force with secrets hidden."""

from __future__ import annotations

import importlib.metadata
import platform
import re
from dataclasses import fields
from urllib.parse import urlsplit, urlunsplit

from core import __version__
from core.settings import Settings
from core.text import listed

LIBRARIES = ("streamlit", "torch", "transformers", "faiss-gpu", "faiss-cpu", "sqlalchemy", "numpy")
SECRET = re.compile(r"key|secret|password|token", re.IGNORECASE)
HIDDEN = "(set, not shown)"


def versions() -> list[tuple[str, str]]:
    """(component, version), from package metadata, so that no large package is imported."""
    components = [("Ambiscope", __version__), ("Python", platform.python_version())]
    for name in LIBRARIES:
        try:
            components.append((name, importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:
            continue
    return components


def without_password(url: str) -> str:
    """An address of a database or endpoint without its password and query."""
    parts = urlsplit(url)
    if not parts.scheme or not ("@" in parts.netloc or parts.query):
        return url  # unchanged: urlunsplit drops slashes of a file's path
    user, sign, host = parts.netloc.rpartition("@")
    netloc = f"{user.split(':', 1)[0]}:…@{host}" if sign else host
    return urlunsplit((parts.scheme, netloc, parts.path, "…" if parts.query else "", ""))


def settings_in_force(settings: Settings) -> list[tuple[str, str, str]]:
    """(variable, value, "default" or "set"), secrets hidden."""
    rows = []
    for f in fields(settings):
        value = getattr(settings, f.name)
        origin = "set" if value != getattr(Settings, f.name, None) else "default"
        if value and (SECRET.search(f.name) or not f.repr):
            value = HIDDEN
        elif "url" in f.name:
            value = without_password(str(value))
        rows.append((f"AMBISCOPE_{f.name.upper()}", str(value), origin))
    return rows


def age(seconds: float | None) -> str:
    if seconds is None:
        return "never"
    for size, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            return f"{listed(int(seconds // size), name)} ago"
    return "just now"
