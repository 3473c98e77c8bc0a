"""Which files of a folder are the corpus: a function for each layout that people have."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from core.errors import FormatError, InputError
from core.retrieval.readers import READERS
from core.retrieval.readers.lines import CorpusFile


def by_number(path: Path) -> list[tuple[int, str | int]]:
    """Sorts names as people number them: shard 2 before shard 10."""
    parts = re.split(r"(\d+)", str(path))
    return [(i % 2, int(part) if i % 2 else part) for i, part in enumerate(parts)]


def inside(folder: Path, suffixes: Iterable[str]) -> list[Path]:
    ends = tuple(suffixes)
    return sorted((p for p in folder.rglob("*") if p.name.lower().endswith(ends) and not p.is_dir()), key=by_number)


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


# one a layout: the files to read in their order; none if the folder has another layout
LAYOUTS: tuple[Callable[[Path], list[Path]], ...] = (
    _beir,
    _saved,
    _splits,
    lambda folder: inside(folder, [".parquet"]),  # a snapshot of the hub also has a README.md
    lambda folder: inside(folder, [".arrow"]),
    lambda folder: inside(folder, READERS),
)


def files_of(paths: Iterable[Path]) -> list[CorpusFile]:
    """The files of a corpus, each once: those given, and in place of a folder those of its layout, named by their path below it.

    Where two would have one name, the folder's name comes before it.  Raises InputError for a folder without any, and for a missing file.
    """
    found: dict[Path, Path] = {}  # file -> the folder that its name begins below
    for path in paths:
        if path.is_dir():
            inner = next((files for layout in LAYOUTS if (files := layout(path))), None)
            if inner is None:
                raise InputError(f"{path}: this folder has no file of these kinds: {', '.join(READERS)}")
            found |= {file: path for file in inner if file not in found}
        elif not path.exists() and not path.is_symlink():
            raise InputError(f"{path}: there is no such file")
        else:
            found.setdefault(path, path.parent)
    names = {file: file.relative_to(folder).as_posix() for file, folder in found.items()}
    repeated = {name for name, files in Counter(names.values()).items() if files > 1}
    return [
        CorpusFile(file, f"{found[file].resolve().name}/{name}" if name in repeated else name) for file, name in names.items()
    ]
