"""Files for another machine: one archive in parts that are small enough to carry, with a list of their digests."""

from __future__ import annotations

import hashlib
import json
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from core import disk
from core.models.loading.packaged import packaged_folder

PART_BYTES = 60_000_000
PARTS = "parts.json"  # sha256 by name of the part
BASES = "bases"  # folder of an unpacked package that stands for site-packages


def pack(files: Mapping[str, Path], out: Path) -> int:
    """Writes the files and folders by their names in the archive; returns the number of parts.  Packed again, each part is the same byte for byte."""
    with tempfile.TemporaryFile() as combined:
        with tarfile.open(fileobj=combined, mode="w") as archive:
            for name in sorted(files):
                archive.add(
                    files[name], name, filter=lambda info: info.replace(mtime=0, uid=0, gid=0, uname="", gname="", deep=False)
                )
        combined.seek(0)
        digests = {}
        while content := combined.read(PART_BYTES):
            name = f"part-{len(digests):02}"
            disk.write_bytes(out / name, content)
            digests[name] = hashlib.sha256(content).hexdigest()
    disk.write_json(out / PARTS, digests)
    return len(digests)


def unpack(folder: Path) -> None:
    """Unpacks what `pack` wrote to a folder there.  Raises SystemExit for a part that is missing or damaged, before anything is written."""
    with tempfile.TemporaryFile(dir=folder) as combined:
        for name, digest in json.loads((folder / PARTS).read_text(encoding="utf-8")).items():
            content = (folder / name).read_bytes() if (folder / name).is_file() else b""
            if hashlib.sha256(content).hexdigest() != digest:
                sys.exit(f"{folder / name} is {'damaged' if content else 'missing'}: carry it again")
            combined.write(content)
        combined.seek(0)
        with tarfile.open(fileobj=combined) as archive:
            archive.extractall(folder, filter="data")


def base_files(names: set[str]) -> dict[str, Path]:
    """The folders of base models, by their place in an archive.  Raises CheckpointError."""
    folders = [packaged_folder(name) for name in sorted(names)]
    sites = [Path(place) for place in sys.path]
    within = [min((f.relative_to(s) for s in sites if f.is_relative_to(s)), key=lambda p: len(p.parts)) for f in folders]
    return {f"{BASES}/{place}": folder for place, folder in zip(within, folders)}
