"""Each person's preferences about the app, in a small file in the home folder: whether the tour was seen, what is hidden."""

from __future__ import annotations

import threading
from pathlib import Path

from core.disk import write_json
from core.errors import AmbiscopeError
from core.json_io import read

FILE = "preferences.json"
_LOCK = threading.Lock()


class Preferences:
    """The preferences in the home `folder`.  A damaged file counts as empty, because nothing depends on it."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE

    def _all(self) -> dict[str, dict[str, str]]:
        if not self._file.is_file():
            return {}
        try:
            preferences = read(self._file)
        except AmbiscopeError:
            return {}
        items = preferences.items() if isinstance(preferences, dict) else ()
        return {person: values for person, values in items if isinstance(values, dict)}

    def get(self, person: str, key: str) -> str:
        """A preference; empty if it was never set."""
        return str(self._all().get(person, {}).get(key, ""))

    def put(self, person: str, key: str, value: str) -> None:
        """Stores a preference.  Raises StorageError if the disk refuses."""
        with _LOCK:
            preferences = self._all()
            preferences.setdefault(person, {})[key] = value
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_json(self._file, preferences)
