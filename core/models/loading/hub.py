"""Checkpoints on the Hugging Face hub, downloaded by name: `owner/name` or `owner/name@REVISION`.

Only data is fetched: safetensors, JSON and the files of a tokenizer.  Code and pickles stay where they are, and nothing is run.  Fetched files are in
the hub's own cache.  Its client reads its own variables: HF_TOKEN (never shown or stored here), HF_HUB_OFFLINE, HF_HOME, HF_ENDPOINT.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from core.errors import CheckpointError

FETCHED = ("*.safetensors", "*.json", "*.txt", "*.model", "README.md")
_NAME = re.compile(r"(?P<repo>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@(?P<revision>\w[\w./-]*))?")


def is_name(name: str) -> bool:
    """Whether a name can be a repository's.  Callers look for a folder of that name first.

    >>> [n for n in ("ada/reader", "ada/reader@v1", "t5-base", "./ada/reader", "runs/a/best", "ada/..") if is_name(n)]
    ['ada/reader', 'ada/reader@v1']
    """
    return _NAME.fullmatch(name) is not None and ".." not in name


@contextmanager
def _readable_errors(name: str) -> Iterator[None]:
    """Rewords the client's errors as CheckpointError.  None of them contains the token."""
    from huggingface_hub import constants, errors
    from huggingface_hub.errors import HfHubHTTPError, HTTPError  # type: ignore[attr-defined]  # of the client's own httpx

    try:
        yield
    except errors.HFValidationError:
        raise CheckpointError(f"'{name}' is no name of a repository; write owner/name") from None
    except errors.GatedRepoError:
        raise CheckpointError(
            f"{name}: the hub gives this repository only to people who accepted its terms; do so there, and set HF_TOKEN"
        ) from None
    except errors.RepositoryNotFoundError:
        raise CheckpointError(
            f"there is no folder {name} here, and no repository of that name on the hub that you may read; check the name, "
            "and set HF_TOKEN for a private one"
        ) from None
    except errors.RevisionNotFoundError:
        raise CheckpointError(
            f"{name}: the repository has no such revision; name a branch, a tag or a commit after the @"
        ) from None
    except HfHubHTTPError as error:
        code = error.response.status_code if error.response is not None else 0
        if code in (401, 403):
            raise CheckpointError(
                f"{name}: the hub refuses access ({code}); set HF_TOKEN to a token with the right to do this"
            ) from None
        raise CheckpointError(f"{name}: the hub answered with an error ({code}); try again later") from None
    except (errors.EntryNotFoundError, errors.OfflineModeIsEnabled) as error:
        if constants.HF_HUB_OFFLINE:
            raise CheckpointError(
                f"{name} is not on this machine, and HF_HUB_OFFLINE forbids asking the hub for it; name a folder instead"
            ) from None
        raise CheckpointError(
            f"{name} is not on this machine, and the hub cannot be reached ({type(error).__name__}); name a folder instead"
        ) from None
    except (HTTPError, ConnectionError, TimeoutError) as error:
        raise CheckpointError(
            f"{name}: the hub cannot be reached ({type(error).__name__}); check the network, or name a folder"
        ) from None
    except OSError as error:
        from core import disk

        reason = disk.describe_error(error, Path(constants.HF_HUB_CACHE))
        raise CheckpointError(
            f"{name}: its files cannot be read or written here ({reason}); free some space, or set HF_HOME"
        ) from None


@lru_cache(maxsize=32)  # a branch is asked for once in a process: all parts of a system have the same weights
def fetch(name: str) -> Path:
    """The local folder of a repository's files. Files that are here already aren't downloaded again. Raises
    CheckpointError."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise CheckpointError(f"'{name}' is no name of a repository; write owner/name or owner/name@REVISION")
    from huggingface_hub import snapshot_download

    with _readable_errors(name):
        folder = Path(snapshot_download(match["repo"], revision=match["revision"], allow_patterns=list(FETCHED)))
    if not any(folder.glob("*.safetensors")):
        raise CheckpointError(
            f"{name} on the hub has no safetensors weights, and no others are read; name another, or a folder"
        )
    return folder
