"""One root error; subclasses by what the caller can do about it.

Every message says what was wrong, where (file, line, field) and what to do.  The command line prints it in one line and exits
with `exit_code`; pages show it as it is.
"""

from __future__ import annotations


class AmbiscopeError(Exception):
    """Root of all errors that Ambiscope raises on purpose."""

    exit_code = 1


class InputError(AmbiscopeError):
    """The input is wrong (a question, a file, an option): correct it."""

    exit_code = 2


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
    """A download failed, was incomplete or gave something else; a partial download is kept if it can be resumed: try again."""

    exit_code = 8


class ServiceError(AmbiscopeError):
    """A service (`core serve`) could not be reached, refused, or gave no usable reply: check its address, or try again later."""

    exit_code = 9


class ClusterError(AmbiscopeError):
    """A Ray cluster cannot be used: start it, or make its machines the same; then give the command again."""

    exit_code = 9


class CancelledError(AmbiscopeError):
    """A person stopped the run."""

    exit_code = 130
