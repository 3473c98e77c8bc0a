"""Recomputes data/starter/vectors.safetensors after the starter corpus or the encoder changed.

python -m benchmarks.starter_vectors
"""

from __future__ import annotations

from core.retrieval.corpus import PassageStore
from core.retrieval.known_vectors import write_precomputed
from core.retrieval.library import STARTER, CorpusLibrary
from core.settings import Settings


def main() -> None:
    settings = Settings.from_env()
    library = CorpusLibrary(settings)
    library.open(STARTER)
    print(write_precomputed(settings.starter_dir, PassageStore(library.folder / STARTER), library.encoder()))


if __name__ == "__main__":
    main()
