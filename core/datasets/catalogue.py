"""The public data sets: address, licence and layout.  None of them is in this repository."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from core.errors import UnknownNameError
from core.registry import did_you_mean


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """One address and the question files in it.

    `members`: the question files in a zip archive, in any folder of it; empty: the file itself is the question file, `name`.
    `sha256`: empty if the authors give none; then the digest of the first download is stored, and a different one is refused.
    """

    url: str
    name: str
    members: tuple[str, ...] = ()
    sha256: str = ""

    @property
    def question_files(self) -> tuple[str, ...]:
        return self.members or (self.name,)


@dataclass(frozen=True, slots=True)
class DataSet:
    name: str
    summary: str
    layout: str  # of core.datasets.LAYOUTS
    licence: str
    source: str
    homepage: str
    files: tuple[RemoteFile, ...]
    note: str = ""

    @property
    def question_files(self) -> list[str]:
        """The names of the files that can be asked once they are downloaded."""
        return [name for file in self.files for name in file.question_files]


_AMBIGQA = "https://nlp.cs.washington.edu/ambigqa/data/"
_MIN2020 = "Min et al. 2020, AmbigQA"

DATASETS: Mapping[str, DataSet] = {
    d.name: d
    for d in (
        DataSet(
            "ambignq-light",
            "questions, answers and disambiguated questions: 10,036 to train on, 2,002 to develop on",
            "ambignq",
            "CC BY-SA 3.0",
            _MIN2020,
            "https://nlp.cs.washington.edu/ambigqa/",
            (
                RemoteFile(
                    f"{_AMBIGQA}ambignq_light.zip",
                    "ambignq_light.zip",
                    ("train_light.json", "dev_light.json"),
                ),
            ),
        ),
        DataSet(
            "ambignq",
            "the same with everything that the annotators saw and searched for",
            "ambignq",
            "CC BY-SA 3.0",
            _MIN2020,
            "https://nlp.cs.washington.edu/ambigqa/",
            (RemoteFile(f"{_AMBIGQA}ambignq.zip", "ambignq.zip", ("train.json", "dev.json")),),
        ),
        DataSet(
            "ambignq-evidence",
            "the same with three Wikipedia articles a question, which become its own passages",
            "ambignq",
            "CC BY-SA 3.0",
            f"{_MIN2020}; evidence articles of November 2021",
            "https://github.com/shmsw25/AmbigQA/blob/master/evidence.md",
            (
                RemoteFile(
                    f"{_AMBIGQA}ambignq_with_evidence_articles.zip",
                    "ambignq_with_evidence_articles.zip",
                    ("train_with_evidence_articles.json", "dev_with_evidence_articles.json"),
                ),
            ),
            note="several hundred MB unpacked; a whole file is held in memory when it is loaded",
        ),
        DataSet(
            "nq-open",
            "Natural Questions without their pages: a question and the aliases of its one answer",
            "nq-open",
            "CC BY-SA 3.0",
            "Lee et al. 2019; Kwiatkowski et al. 2019",
            "https://github.com/google-research-datasets/natural-questions/tree/master/nq_open",
            tuple(
                RemoteFile(
                    f"https://raw.githubusercontent.com/google-research-datasets/natural-questions/master/nq_open/NQ-open.{split}.jsonl",
                    f"NQ-open.{split}.jsonl",
                )
                for split in ("train", "dev")
            ),
        ),
        DataSet(
            "webqsp",
            "questions to a knowledge base, recast as textual answers when loaded",
            "webqsp",
            "Microsoft Research data licence: research use; read it in the archive",
            "Yih et al. 2016; the recast after Min et al. 2021",
            "https://www.microsoft.com/en-us/download/details.aspx?id=52763",
            (
                RemoteFile(
                    "https://download.microsoft.com/download/F/5/0/F5012144-A4FB-4084-897F-CFDA99C60BDF/WebQSP.zip",
                    "WebQSP.zip",
                    ("WebQSP.train.json", "WebQSP.test.json"),
                ),
            ),
        ),
        DataSet(
            "asqa",
            "AmbigNQ questions with long answers that people wrote",
            "asqa",
            "Apache-2.0",
            "Stelmakh et al. 2022",
            "https://github.com/google-research/language/tree/master/language/asqa",
            (RemoteFile("https://storage.googleapis.com/gresearch/ASQA/data/ASQA.json", "ASQA.json"),),
        ),
        DataSet(
            "ramdocs",
            "questions with conflicting documents: several right answers, some that are false on purpose, and noise",
            "ramdocs",
            "MIT",
            "Wang et al. 2025",
            "https://github.com/HanNight/RAMDocs",
            (RemoteFile("https://raw.githubusercontent.com/HanNight/RAMDocs/main/RAMDocs_test.jsonl", "RAMDocs_test.jsonl"),),
        ),
    )
}


def data_set(name: str) -> DataSet:
    """The data set of that name.  Raises UnknownNameError with the list."""
    if name not in DATASETS:
        raise UnknownNameError(f"unknown data set '{name}'.{did_you_mean(name, DATASETS)} Available: {', '.join(DATASETS)}")
    return DATASETS[name]


def folder_of(home: Path, name: str) -> Path:
    return home / "datasets" / name


def downloaded(home: Path, name: str) -> list[Path]:
    """The question files of a data set that have been downloaded."""
    folder = folder_of(home, name)
    return [path for file in data_set(name).question_files if (path := folder / file).is_file()]
