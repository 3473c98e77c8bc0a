"""One root error; subclasses by what the caller can do about it.

Every message says what was wrong, where (file, line, field) and what to do.  The command line prints it in one line and exits
with `exit_code`; pages show it as it is.
"""

from __future__ import annotations

# a command or a setting that no longer exists -> what replaces it
REMOVED = {
    "core push": "upload the checkpoint's folder with `hf upload OWNER/NAME FOLDER` (docs/training.md)",
    "core lm-server": "serve the model with llama.cpp or Ollama and name it in AMBISCOPE_LM_URL (docs/systems.md)",
    "core train verifier": "the reader says which answers are wrong; train it with `core train reader`",
    "core train reranker": "the reader says which answers are wrong; train it with `core train reader`",
    "core train signals": "calibrate probabilities with `core train calibration` (docs/training.md)",
    "storage loop": "take a snapshot, then use `train answerer`, `evaluate --exclude` and `compare` of python -m core (docs/managers.md)",
    "AMBISCOPE_VERIFIER": "the reader says which answers are wrong; leave the setting out, or name a reader in AMBISCOPE_READER",
}


class AmbiscopeError(Exception):
    """Root of all errors that Ambiscope raises on purpose."""

    exit_code = 1


class InputError(AmbiscopeError):
    """The input is wrong (a question, a file, an option): correct it."""

    exit_code = 2


def check_removed(*names: str) -> None:
    """Raises InputError with what replaces it if one of the names is that of a command or setting that no longer exists."""
    for name in names:
        if name in REMOVED:
            raise InputError(f"{name} was removed: {REMOVED[name]}")


class FormatError(InputError):
    """A file does not have its documented layout.  Carries file, line and field, as far as they are known."""

    def __init__(self, problem: str, *, file: object = None, line: int | None = None, field: str | None = None) -> None:
        self.problem, self.file, self.line, self.field = problem, file, line, field
        parts = ((f"{file}", file), (f"line {line}", line), (f"field '{field}'", field))
        place = ", ".join(text for text, part in parts if part is not None)
        super().__init__(f"{place}: {problem}" if place else problem)


class UnknownNameError(InputError):
    """A name (system, corpus, metric, ...) is not registered: pick one of the list in the message."""


class NotFoundError(InputError):
    """Something stored (a prediction, a corpus, a snapshot) does not exist under this id."""


class NothingRetrievedError(InputError):
    """No passage was found: another corpus or another question is needed."""


class NotAllowedError(AmbiscopeError):
    """The person's role does not allow this: sign in with another account, or ask a manager."""

    exit_code = 6


class CheckpointError(AmbiscopeError):
    """Weights are missing or damaged, or do not fit the model: fetch or train them again."""

    exit_code = 3


class IndexMismatchError(AmbiscopeError):
    """An index does not fit its passages or its encoder: build it again."""

    exit_code = 4


class StorageError(AmbiscopeError):
    """The database or the disk failed: nothing was changed."""

    exit_code = 5


class ConflictError(StorageError):
    """Somebody else changed the same thing in the meantime: compare both versions, then save again."""


class OutcomeUnknownError(StorageError):
    """The database went away during a commit: see whether the change is there, then do it again if it is not."""


class NewerDatabaseError(StorageError):
    """The database was written by a newer version of Ambiscope: update Ambiscope, or use another AMBISCOPE_HOME."""


class LanguageModelError(AmbiscopeError):
    """A language model could not be reached or gave no usable reply: check the endpoint, then try again."""

    exit_code = 7


class DownloadError(AmbiscopeError):
    """A download failed, was incomplete or returned something else: try again.  A partial download is kept if it can be
    resumed."""

    exit_code = 8


class ServiceError(AmbiscopeError):
    """A service (`core serve`) could not be reached, refused, or gave no usable reply: check its address, or try again later."""

    exit_code = 9


class ClusterError(AmbiscopeError):
    """A Ray cluster can't be used: start it, or make its machines equal; then run the command again."""

    exit_code = 9


class PluginError(AmbiscopeError):
    """Code of a plugin failed: correct the plugin that the message names, or leave it out."""

    exit_code = 10


class CancelledError(AmbiscopeError):
    """A person stopped the run."""

    exit_code = 130
