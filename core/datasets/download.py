"""Downloads data sets: resumed after an interruption, checked, and put in place atomically.

HTTP ranges as in RFC 9110, section 14; a partial download is resumed only if the server's validator (ETag or Last-Modified) is unchanged
(If-Range).
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from filelock import FileLock, Timeout

from core import disk, json_io
from core.datasets.catalogue import DataSet, folder_of
from core.errors import AmbiscopeError, ConflictError, DownloadError, InputError, StorageError

CHUNK_BYTES = 1 << 20
TIMEOUT_SECONDS = 30.0  # seconds without a byte
MAX_TRIES = 4
FIRST_PAUSE_SECONDS = 0.5  # seconds before the second try; then twice as long each time
MAX_MEMBER_BYTES = 20_000_000_000  # of an archive
RETRY_ADVICE = "free some space, then run the same command again"
_PAGE = "{url} returned a web page instead of data (a login, a notice, or it has moved); nothing was kept"
DownloadProgress = Callable[[int, int | None], None]  # bytes received, bytes in all (None: the server does not say)


class _Broken(Exception):
    """The connection ended early.  The partial file is on disk."""


def fetch(
    url: str, target: Path, *, sha256: str = "", progress: DownloadProgress | None = None, pause: float = FIRST_PAUSE_SECONDS
) -> str:
    """Downloads `url` to `target` and returns its SHA-256; interrupted downloads are retried, and partial data stays in `target.part`.

    Raises DownloadError (no connection, an error of the server, a web page in place of data, truncated, wrong checksum), StorageError
    (disk full), InputError for an address that is not http or https.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise InputError(f"'{url[:200]}' is not an http or https address")
    part = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for attempt in range(MAX_TRIES):
            try:
                _receive(url, part, progress)
                break
            except _Broken as broken:
                if attempt == MAX_TRIES - 1:
                    size = part.stat().st_size if part.exists() else 0
                    problem = f"{url}: {broken}; {size:,} bytes were kept: run the same command again to resume"
                    raise DownloadError(problem) from None
                time.sleep(pause * 2**attempt)
        digest = _checked_digest(url, part, target, sha256)
        part.replace(target)
        _notes(part).unlink(missing_ok=True)
        return digest
    except OSError as e:
        raise StorageError(f"{target} cannot be written ({disk.describe_error(e, target)}); {RETRY_ADVICE}") from e


def _notes(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _receive(url: str, part: Path, progress: DownloadProgress | None) -> None:
    """Appends to `part` until the download is complete.  Raises _Broken, DownloadError, OSError of the disk."""

    def check(request: httpx.Request) -> None:
        if url.startswith("https:") and request.url.scheme != "https":
            raise DownloadError(f"{url} redirects to an unencrypted address ({str(request.url)[:200]}); nothing was downloaded")

    headers = {"User-Agent": "ambiscope", "Accept-Encoding": "identity"}
    have = part.stat().st_size if part.exists() else 0
    if have and (validator := _validator(part, url)):
        headers |= {"Range": f"bytes={have}-", "If-Range": validator}
    try:
        with (
            httpx.Client(follow_redirects=True, timeout=TIMEOUT_SECONDS, event_hooks={"request": [check]}) as client,
            client.stream("GET", url, headers=headers) as response,
        ):
            code, fields = response.status_code, response.headers
            is_other_part = code == 206 and not fields.get("Content-Range", "").startswith(f"bytes {have}-")
            if code == 416 or is_other_part:  # nothing is left, or the file is shorter now: start again
                part.unlink(missing_ok=True)
                raise _Broken("the server has no further part")
            if code in (408, 425, 429) or code >= 500:
                raise _Broken(f"the server answered {code} {response.reason_phrase}")
            if not response.is_success:
                raise DownloadError(f"{url}: the server answered {code} {response.reason_phrase}; the address may have moved")
            if fields.get("Content-Type", "").lower().startswith("text/html"):
                part.unlink(missing_ok=True)
                raise DownloadError(_PAGE.format(url=url))
            start = have if code == 206 else 0
            length = fields.get("Content-Length", "")
            total = start + int(length) if length.isdigit() else None
            disk.need(part.parent, (total or 0) - start)
            notes = {"url": url, "validator": fields.get("ETag") or fields.get("Last-Modified") or ""}
            _notes(part).write_text(json.dumps(notes), encoding="utf-8")
            tell = progress or (lambda received, total: None)
            tell(start, total)
            with part.open("ab" if start else "wb") as stream:
                for block in response.iter_raw():
                    stream.write(block)
                    tell(start + response.num_bytes_downloaded, total)
    except httpx.TransportError as e:
        raise _Broken(f"the connection broke ({type(e).__name__}: {e})") from None
    except httpx.HTTPError as e:
        raise DownloadError(f"{url} cannot be read ({type(e).__name__}: {e})") from None


def _validator(part: Path, url: str) -> str:
    """The validator stored when the partial download started; empty if it must start again.  Weak validators don't count."""
    try:
        notes = json.loads(_notes(part).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    is_usable = isinstance(notes, dict) and notes.get("url") == url and isinstance(notes.get("validator"), str)
    return notes["validator"] if is_usable and not notes["validator"].startswith("W/") else ""


def _checked_digest(url: str, part: Path, target: Path, sha256: str) -> str:
    """The SHA-256 of a complete download.  Raises DownloadError for a web page, an empty file, or a digest other than `sha256`."""
    with part.open("rb") as stream:
        head = stream.read(CHUNK_BYTES)
        if head.lstrip()[:15].lower().startswith((b"<!doctype html", b"<html")):
            part.unlink()
            raise DownloadError(_PAGE.format(url=url))
        stream.seek(0)
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if not head or (sha256 and digest != sha256):
        part.unlink()
        problem = f"its SHA-256 is {digest}, expected was {sha256}" if head else "it is empty"
        raise DownloadError(
            f"{url} is not the file that was expected: {problem}; nothing was kept, and {target.name} is as it was"
        )
    return digest


def unpack(archive: Path, members: Sequence[str], folder: Path) -> None:
    """Extracts the members with these names, in any folder of the archive, each atomically.  Raises DownloadError,
    StorageError."""
    try:
        with zipfile.ZipFile(archive) as contents:
            for name in members:
                member = next((m for m in contents.infolist() if f"/{m.filename}".endswith(f"/{name}")), None)
                if member is None:
                    raise DownloadError(f"{archive.name} has no '{name}'; the authors may have changed it")
                if member.file_size > MAX_MEMBER_BYTES:
                    raise DownloadError(
                        f"{archive.name}: '{name}' would have {member.file_size:,} bytes; that is not a question file"
                    )
                disk.need(folder, member.file_size)
                with (
                    disk.replacing(folder / name, RETRY_ADVICE) as draft,
                    contents.open(member) as source,
                    draft.open("wb") as stream,
                ):
                    shutil.copyfileobj(source, stream, CHUNK_BYTES)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as e:
        archive.unlink(missing_ok=True)
        raise DownloadError(f"{archive.name} is damaged ({e}); it was deleted: run the same command again") from None
    except OSError as e:
        raise StorageError(f"{folder} cannot be written ({disk.describe_error(e, folder)}); {RETRY_ADVICE}") from e


def obtain(
    data: DataSet,
    home: Path,
    *,
    again: bool = False,
    progress: Callable[[str, int, int | None], None] | None = None,
    pause: float = FIRST_PAUSE_SECONDS,
) -> list[Path]:
    """The question files of a data set, downloaded if missing (or `again`).

    `progress`: address, bytes received, bytes in all.  Checksums are stored in `manifest.json`; without one from the authors, that of the
    first download is required later.  Raises DownloadError, StorageError, ConflictError if another process is downloading the same set.
    """
    folder = folder_of(home, data.name)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / ".lock", timeout=0):
            digests = _stored_digests(folder)
            for file in data.files:
                if not again and file.name in digests and all((folder / name).is_file() for name in file.question_files):
                    continue
                tell = None if progress is None else (lambda received, total, url=file.url: progress(url, received, total))
                target, expected = folder / file.name, file.sha256 or digests.get(file.name, "")
                digests[file.name] = fetch(file.url, target, sha256=expected, progress=tell, pause=pause)
                if file.members:
                    unpack(target, file.members, folder)
                    target.unlink()
                disk.write_json(
                    folder / "manifest.json",
                    {"name": data.name, "licence": data.licence, "homepage": data.homepage, "sha256": digests},
                )
            return [folder / name for name in data.question_files]
    except Timeout:
        raise ConflictError(f"another process is downloading '{data.name}'; wait for it") from None


def _stored_digests(folder: Path) -> dict[str, str]:
    """File name -> SHA-256 of the first download; empty if there is none."""
    try:
        return {str(k): str(v) for k, v in json_io.read(folder / "manifest.json")["sha256"].items()}
    except (AmbiscopeError, KeyError, TypeError, AttributeError):
        return {}
