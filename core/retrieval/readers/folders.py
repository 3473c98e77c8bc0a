"""Selects the files of a folder that make the corpus, with a function for each layout."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path, PurePath

from core.errors import FormatError, InputError
from core.retrieval.readers import READERS, ZIP, suffix_of
from core.retrieval.readers.lines import CorpusFile, Rejected
from core.text import storable


def by_number(path: PurePath) -> list[tuple[int, str | int]]:
    """A sort key that orders names by their numbers: shard 2 before shard 10."""
    parts = re.split(r"(\d+)", str(path))
    return [(i % 2, int(part) if i % 2 else part) for i, part in enumerate(parts)]


def _with_suffix(folder: Path, suffix: str) -> list[Path]:
    return sorted((p for p in folder.rglob("*") if p.name.lower().endswith(suffix) and not p.is_dir()), key=by_number)


def _beir(folder: Path) -> list[Path]:
    return [p for name in ("corpus.jsonl", "corpus.jsonl.gz") if (p := folder / name).is_file()][:1]


def _saved(folder: Path) -> list[Path]:
    """`datasets`' save_to_disk: state.json lists the files.  Raises FormatError, InputError."""
    state = folder / "state.json"
    if not state.is_file():
        return []
    try:
        names = [str(file["filename"]) for file in json.loads(state.read_text(encoding="utf-8"))["_data_files"]]
    except (ValueError, KeyError, TypeError) as e:
        raise FormatError("not the state of a data set; save the data set again with save_to_disk", file=state) from e
    missing = [n for n in names if not (folder / n).is_file()]
    if missing:
        raise InputError(f"{folder}: {', '.join(missing[:3])} of state.json is missing; copy the folder again")
    return [folder / n for n in names]


def _splits(folder: Path) -> list[Path]:
    """A saved DatasetDict.  Raises InputError if it has several splits."""
    if not (folder / "dataset_dict.json").is_file():
        return []
    splits = sorted(p.parent for p in folder.glob("*/state.json"))
    if len(splits) != 1:
        names = ", ".join(p.name for p in splits) or "none"
        raise InputError(f"{folder} has these splits: {names}; give the folder of one, such as {folder}/train")
    return _saved(splits[0])


def is_hidden(parts: Iterable[str]) -> bool:
    """Whether part of a path is hidden from people, such as the files that a Mac adds to a zip."""
    return any(part.startswith(".") or part == "__MACOSX" for part in parts)


def _documents(folder: Path) -> list[Path]:
    """The files below the folder that have a reader, without hidden ones and links."""
    return [p for p in _contents(folder) if not p.is_symlink() and suffix_of(p.name, READERS)]


def _contents(folder: Path) -> list[Path]:
    """Files and links below a folder, without hidden ones.  Links aren't followed."""
    files = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not is_hidden([name])]
        linked = [name for name in folders if (Path(parent) / name).is_symlink()]
        files += [Path(parent) / name for name in (*names, *linked) if not is_hidden([name])]
    return sorted(files, key=by_number)


# one a layout: the files to read in their order; none if the folder has another layout
LAYOUTS: tuple[Callable[[Path], list[Path]], ...] = (
    _beir,
    _saved,
    _splits,
    lambda folder: _with_suffix(folder, ".parquet"),  # a snapshot of the hub also has a README.md
    lambda folder: _with_suffix(folder, ".arrow"),
    _documents,
)


def files_of(
    paths: Iterable[Path],
    *,
    on_other: Callable[[Rejected], None] = lambda row: None,
    unpack: Callable[[Path], list[CorpusFile]] | None = None,
) -> list[CorpusFile]:
    """The files of a corpus, each once: the given files and, for a folder, those of its layout, named by their path in it.

    Where two would have one name, the folder's name comes before it.  `on_other` receives the files of a folder of documents that are not
    read, and why.  `unpack`: the files of a zip (zips.py).  Raises InputError for a folder without any, and for a missing file.
    """
    files: dict[Path, tuple[str, str]] = {}  # file -> its name, and that of the folder or zip that the name begins below
    for path in paths:
        if path.is_dir():
            layout, inner = next(((layout, inner) for layout in LAYOUTS if (inner := layout(path))), (None, []))
            if layout is None:
                raise InputError(f"{path}: this folder has no file of these kinds: {', '.join(READERS)}")
            for file in set(_contents(path)) - set(inner) if layout is _documents else ():
                on_other(other(file.relative_to(path).as_posix(), is_link=file.is_symlink()))
            above = path.resolve().name
            files |= {file: (file.relative_to(path).as_posix(), above) for file in inner if file not in files}
        elif not path.exists() and not path.is_symlink():
            raise InputError(f"{path}: there is no such file")
        elif unpack and path.name.lower().endswith(ZIP):
            files |= {file: (name, path.name[: -len(ZIP)]) for file, name in unpack(path)}
        else:
            files.setdefault(path, (path.name, path.resolve().parent.name))
    repeated = {name for name, count in Counter(name for name, _ in files.values()).items() if count > 1}
    return [CorpusFile(file, f"{above}/{name}" if name in repeated else name) for file, (name, above) in files.items()]


def other(name: str, *, is_link: bool = False) -> Rejected:
    """A file that is counted but not read."""
    return Rejected(storable(name), 0, "a link is not followed" if is_link else "no kind of file that is read", "file")
