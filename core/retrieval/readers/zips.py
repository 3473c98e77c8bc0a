"""Unpacks a zipped folder.  Its files get names of ours in a folder of ours, so that no name in it can lead outside."""

from __future__ import annotations

import gzip
import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath

from core.errors import FormatError, InputError, StorageError
from core.json_io import FREE_BYTES, MAX_PACKED_RATIO
from core.retrieval.readers import in_zip, suffix_of
from core.retrieval.readers.folders import by_number, is_hidden, other
from core.retrieval.readers.lines import MB, CorpusFile, Limits, Rejected

MAX_FILES = 50_000
MAX_ENTRY_BYTES = 512  # of the list of entries, in the mean
_ENTRY, _GZIPPED = b"PK\x01\x02", ".gz"  # begins an entry of the list
_LEAVES = re.compile(r"/|[a-zA-Z]:|(?:.*/)?\.\.(?:/|$)")  # names that begin elsewhere or go up


def unpacked(path: Path, folder: Path, limits: Limits, on_other: Callable[[Rejected], None]) -> list[CorpusFile]:
    """The readable files of a zip by their paths in its one folder, unpacked to `folder`, which must be new or empty.

    `on_other` receives those that are not read, and why.  Raises FormatError for a damaged or encrypted zip and for a name that leaves it,
    InputError for one that unpacks to too much or has nothing to read, StorageError when the disk refuses.
    """
    try:
        _check_count(path)
        with zipfile.ZipFile(path) as packed:
            members = _members(packed, path, limits, on_other)
            folder.mkdir(parents=True, exist_ok=True)
            files = []
            for number, (name, info) in enumerate(members):
                target = folder / f"{number:06}{suffix_of(name, in_zip())}"
                with packed.open(info) as source, target.open("wb") as out:
                    shutil.copyfileobj(source, out, MB)
                files.append(CorpusFile(target, name))
            return files
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, UnicodeError) as e:
        raise FormatError(f"not a zip that can be read ({e}); make it again", file=path.name) from e
    except OSError as e:
        raise StorageError(f"{path.name} cannot be unpacked ({e.strerror or e}); free some space under {folder.parent}") from e


def _check_count(path: Path) -> None:
    """Raises InputError for a zip with more entries than are read, before zipfile makes an object for each."""
    with path.open("rb") as file:
        end = zipfile._EndRecData(file)  # type: ignore[attr-defined]  # as ZipFile finds it, for zip64 too
        if not end:
            return  # ZipFile says what is wrong
        size = end[zipfile._ECD_SIZE]  # type: ignore[attr-defined]
        start = end[zipfile._ECD_LOCATION] - size  # type: ignore[attr-defined]
        if end[zipfile._ECD_SIGNATURE] == zipfile.stringEndArchive64:  # type: ignore[attr-defined]
            start -= zipfile.sizeEndCentDir64 + zipfile.sizeEndCentDir64Locator  # type: ignore[attr-defined]
        max_size = MAX_FILES * MAX_ENTRY_BYTES
        file.seek(max(0, start))
        count = max(file.read(min(size, max_size)).count(_ENTRY), end[zipfile._ECD_ENTRIES_TOTAL])  # type: ignore[attr-defined]
    if count > 2 * MAX_FILES or size > max_size:  # folders and hidden files are not counted yet
        raise InputError(f"{path.name} has {count:,} entries or more; at most {MAX_FILES:,} files are read: split it")


def _check_size(size: int, path: Path, limits: Limits) -> None:
    """Raises InputError if a zip's files, unpacked through all layers, have more bytes than are read."""
    max_size = min(limits.max_unpacked_bytes, max(FREE_BYTES, MAX_PACKED_RATIO * path.stat().st_size))
    if size > max_size:
        raise InputError(
            f"{path.name} unpacks to {size // MB} MB or more; at most {max_size // MB} MB are read from it (an attack looks like this): "
            "give the folder itself, or split it"
        )


def _check_gzipped(
    packed: zipfile.ZipFile, members: Iterable[tuple[str, zipfile.ZipInfo]], size: int, path: Path, limits: Limits
) -> None:
    """The same, including what gzipped members unpack to.  `size`: the size of the members themselves."""
    for name, info in members:
        if not name.lower().endswith(_GZIPPED):
            continue
        with (
            packed.open(info) as member,
            gzip.GzipFile(fileobj=member) as unpacked,
            suppress(EOFError, gzip.BadGzipFile, zlib.error),
        ):
            while block := unpacked.read(MB):  # a damaged one is reported when it is read
                size += len(block)
                _check_size(size, path, limits)


def _members(
    packed: zipfile.ZipFile, path: Path, limits: Limits, on_other: Callable[[Rejected], None]
) -> list[tuple[str, zipfile.ZipInfo]]:
    """The names and members to read, in a folder's order.  Raises FormatError, InputError."""
    members = [(info.filename.replace("\\", "/"), info) for info in packed.infolist() if not info.is_dir()]
    if len(members) > MAX_FILES:
        raise InputError(f"{path.name} has {len(members)} files; at most {MAX_FILES} are read: split it")
    size = sum(info.file_size for _, info in members)
    _check_size(size, path, limits)
    for name, info in members:
        if _LEAVES.match(name):
            raise FormatError(f"the name '{name[:80]}' in it leaves the zip; make it again from the folder", file=path.name)
        if info.flag_bits & 1:
            raise FormatError("it is encrypted; make it again without a password", file=path.name)
    members = [(name, info) for name, info in members if not is_hidden(name.split("/"))]
    top = members[0][0].split("/")[0] + "/" if members else ""
    if all(name.startswith(top) for name, _ in members):  # the folder that was packed
        members = [(name.removeprefix(top), info) for name, info in members]
    by_name: dict[str, zipfile.ZipInfo] = {}
    for name, info in members:
        is_link = stat.S_ISLNK(info.external_attr >> 16)
        if is_link or not suffix_of(name, in_zip()):
            on_other(other(name, is_link=is_link))
        elif name in by_name:
            on_other(Rejected(name, 0, "the zip has this name twice; the first one is read", "file"))
        else:
            by_name[name] = info
    if not by_name:
        raise InputError(f"{path.name} has no file of these kinds: {', '.join(in_zip())}")
    _check_gzipped(packed, by_name.items(), size, path, limits)
    return sorted(by_name.items(), key=lambda member: by_number(PurePosixPath(member[0])))
