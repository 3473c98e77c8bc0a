"""What each person chose about the app itself, as a small file of the home: whether the tour was seen, what is hidden."""

from __future__ import annotations

import threading
from pathlib import Path

from core.disk import write_json
from core.errors import AmbiscopeError
from core.json_io import read

FILE = "preferences.json"
_LOCK = threading.Lock()


class Preferences:
    """Of the home `folder`.  A damaged file counts as empty: nothing hangs on it."""

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
        """Empty where nothing was chosen."""
        return str(self._all().get(person, {}).get(key, ""))

    def put(self, person: str, key: str, value: str) -> None:
        """Raises StorageError when the disk refuses."""
        with _LOCK:
            preferences = self._all()
            preferences.setdefault(person, {})[key] = value
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_json(self._file, preferences)
