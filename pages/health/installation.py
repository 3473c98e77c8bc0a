"""What the health page tells: versions, and the settings in force with secrets hidden."""

from __future__ import annotations

import importlib.metadata
import platform
import re
from dataclasses import fields
from urllib.parse import urlsplit, urlunsplit

from core import __version__
from core.settings import Settings

LIBRARIES = ("streamlit", "torch", "transformers", "faiss-gpu", "faiss-cpu", "sqlalchemy", "numpy")
SECRET = re.compile(r"key|secret|password|token", re.IGNORECASE)
HIDDEN = "(set, not shown)"


def versions() -> list[tuple[str, str]]:
    """Of what is installed; read from package metadata, so that nothing heavy is imported."""
    components = [("Ambiscope", __version__), ("Python", platform.python_version())]
    for name in LIBRARIES:
        try:
            components.append((name, importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:
            continue
    return components


def without_password(url: str) -> str:
    """A database's or an endpoint's address without the password in it, nor what follows a `?`."""
    parts = urlsplit(url)
    if not parts.scheme or not ("@" in parts.netloc or parts.query):
        return url  # as it is: putting it together again drops slashes of a file's path
    host = parts.netloc.rsplit("@", 1)
    place = parts.netloc if len(host) == 1 else f"{host[0].split(':', 1)[0]}:…@{host[1]}"
    return urlunsplit((parts.scheme, place, parts.path, "…" if parts.query else "", ""))


def settings_in_force(settings: Settings) -> list[tuple[str, str, str]]:
    """(variable, value, "default" or "set"), secrets hidden."""
    rows = []
    for f in fields(settings):
        value = getattr(settings, f.name)
        changed = "set" if value != getattr(Settings, f.name, None) else "default"
        shown = str(value)
        if value and (SECRET.search(f.name) or not f.repr):
            shown = HIDDEN
        elif "url" in f.name:
            shown = without_password(shown)
        rows.append((f"AMBISCOPE_{f.name.upper()}", shown, changed))
    return rows


def age(seconds: float | None) -> str:
    if seconds is None:
        return "never"
    for size, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {name}{'' if count == 1 else 's'} ago"
    return "just now"
