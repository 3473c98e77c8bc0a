"""Simple English Wikipedia as a corpus, from the Wikimedia Foundation's Parquet file of November 2023 with one plain-text row
an article.

Source: https://huggingface.co/datasets/wikimedia/wikipedia, 20231101.simple: 241,787 articles.
"""

from __future__ import annotations

from core.datasets.catalogue import DataSet, RemoteFile
from core.datasets.download import obtain
from core.retrieval.build import BuildProgress, BuildReport, no_progress
from core.retrieval.library import BuildOptions, CorpusLibrary
from core.retrieval.readers.lines import MB, Limits

NAME = "simple-wikipedia"
DOWNLOADING = "downloading"  # a stage, counted in MB; the others are those of a build
COST = (
    "240,000 articles: 160 MB to download, about 1.5 GB of disk. It can be searched by words first; "
    "its vectors take hours on a CPU, in the background"
)
DATA = DataSet(
    NAME,
    "a corpus of 240,000 articles in plain English",
    "",
    "CC BY-SA 3.0 and GFDL",
    "Wikimedia Foundation, dump of 1 November 2023",
    "https://huggingface.co/datasets/wikimedia/wikipedia",
    (
        RemoteFile(
            "https://huggingface.co/datasets/wikimedia/wikipedia/resolve/main/20231101.simple/train-00000-of-00001.parquet",
            f"{NAME}.parquet",
        ),
    ),
)


def add_wikipedia(library: CorpusLibrary, progress: BuildProgress = no_progress, *, again: bool = False) -> BuildReport:
    """Downloads the file unless it is present (or `again`), and builds the corpus.  A second call resumes either step.

    Raises as `core.datasets.download.obtain` and `CorpusLibrary.create`.
    """

    def received(url: str, done: int, total: int | None) -> None:
        progress(done // MB, (total or 0) // MB, DOWNLOADING)

    files = obtain(DATA, library.settings.home, again=again, progress=received)
    return library.create(NAME, files, progress, BuildOptions(Limits.for_own_files(library.settings), replace=again))
