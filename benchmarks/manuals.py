"""Practice questions about the documentation of open-source projects: checks them, and cuts their passages out of the repositories again.

    python -m benchmarks.manuals compile --mirrors FOLDER --draft DRAFT.jsonl --out data/manuals/PROJECT.jsonl
    python -m benchmarks.manuals check   --mirrors FOLDER
    python -m benchmarks.manuals cut     --mirrors FOLDER --out FOLDER [--projects NAME ...]
    python -m benchmarks.manuals corpora --mirrors FOLDER --out FOLDER [--projects NAME ...]

The documentation is not in this repository: a row of `data/manuals/PROJECT.jsonl` names files and character offsets, and `data/manuals/sources.json`
the repository, commit and licence of each project.  FOLDER holds one git repository per project, `OWNER+NAME/repo` or `OWNER+NAME`; what is
missing is cloned from GitHub.  `cut` writes `train.jsonl.gz` and `dev.jsonl.gz` in the layout of `multi` training files
(core.training.data.examples): the passages with the answers first, then the passages of the same project that share most words with the question.
`corpora` writes a project's documents for `core index`, and its questions with answers for `core retrieval-eval`; without --projects, those held out.

A draft row has `question` and `answers`; an answer has `file`, `names` (its spellings, the one in the file first) and `quote`, a piece of the
file that occurs once, with the answer between « and ».  `when` says in a few words which reading of the question the answer belongs to.  A
question without an answer has `near` instead: `file` and `quote` of a passage that looks like an answer.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import bm25s
import Stemmer

from core import disk, json_io
from core.errors import AmbiscopeError, FormatError, InputError
from core.settings import ROOT
from core.text import answer_key, find_spans

FOLDER = ROOT / "data" / "manuals"
DOCUMENTS = (".md", ".mdx", ".rst", ".txt")
PASSAGE_WORDS = 110
CONTEXT = 8  # passages of a question, those with answers included
_HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*#*\s*(\{.*\})?$")
_UNDERLINE = re.compile(r"^([=\-~^\"'`#*+.])\1{2,}\s*$")
_FENCE = re.compile(r"^\s*(```|~~~)")


@dataclass(frozen=True)
class Source:
    """A project: its repository at one commit, and the folders that hold its documentation in English."""

    project: str
    repository: str  # owner/name on GitHub
    commit: str
    licence: str
    folders: tuple[str, ...]
    dev: bool = False  # held out entirely

    def git(self, mirrors: Path, *words: str) -> bytes:
        """The output of git.  Raises CalledProcessError."""
        return subprocess.run(["git", "-C", str(self.place(mirrors)), *words], check=True, capture_output=True).stdout

    def place(self, mirrors: Path) -> Path:
        """The repository, cloned if it is missing.  Raises InputError if that fails."""
        folder = mirrors / self.repository.replace("/", "+")
        if (folder / "repo").exists():
            return folder / "repo"
        if not folder.exists():
            address = f"https://github.com/{self.repository}"
            if subprocess.run(["git", "clone", "--quiet", "--bare", "--filter=blob:none", address, str(folder)]).returncode:
                raise InputError(f"{address} could not be cloned into {folder}: put a clone there, or leave {self.project} out")
        return folder


def sources() -> dict[str, Source]:
    rows = json.loads((FOLDER / "sources.json").read_text(encoding="utf-8"))
    return {row["project"]: Source(**{**row, "folders": tuple(row["folders"])}) for row in rows}


class Documents:
    """The documentation files of a project as texts, by path."""

    def __init__(self, source: Source, mirrors: Path) -> None:
        self.source, self.mirrors = source, mirrors

    @lru_cache(maxsize=2048)  # noqa: B019  (a few objects, for the whole run)
    def text(self, path: str) -> str:
        """Raises FormatError for a file that the commit does not have."""
        try:
            return self.source.git(self.mirrors, "show", f"{self.source.commit}:{path}").decode("utf-8")
        except subprocess.CalledProcessError:
            raise FormatError(f"{self.source.repository} has no file {path} at {self.source.commit[:10]}") from None

    def paths(self) -> list[str]:
        names = self.source.git(self.mirrors, "ls-tree", "-r", "--name-only", self.source.commit, *self.source.folders)
        return [path for path in names.decode("utf-8").splitlines() if path.endswith(DOCUMENTS)]


@dataclass(frozen=True)
class Piece:
    """A passage: whole lines of a file under one heading.  `start` and `end` count characters of the file."""

    path: str
    start: int
    end: int
    title: str
    text: str


def pieces(path: str, text: str) -> list[Piece]:
    """A document in passages of up to PASSAGE_WORDS words, cut between lines and at headings; a title is the document's with its headings."""
    result: list[Piece] = []
    headings: dict[int, str] = {}
    piece_start = line_end = words = 0
    fenced = False
    lines = text.splitlines(keepends=True)

    def title() -> str:
        return " > ".join(dict.fromkeys(headings[level] for level in sorted(headings))) or Path(path).stem

    def flush(end: int) -> None:
        nonlocal piece_start, words
        body = text[piece_start:end]
        if body.strip():
            result.append(Piece(path, piece_start, end, title(), body))
        piece_start, words = end, 0

    if text.startswith("---\n") and (end := text.find("\n---", 4)) > 0:  # front matter
        if match := re.search(r"^title:\s*[\"']?(.+?)[\"']?\s*$", text[:end], re.MULTILINE):
            headings[0] = match.group(1)
        piece_start = text.find("\n", end + 1) + 1 or len(text)
    for number, line in enumerate(lines):
        start, line_end = line_end, line_end + len(line)
        if start < piece_start:
            continue
        fenced ^= bool(_FENCE.match(line))
        level = 0
        name = ""
        if not fenced and (match := _HEADING.match(line.rstrip("\n"))):
            level, name = len(match.group(1)), match.group(2)
        elif (
            path.endswith((".rst", ".txt")) and number + 1 < len(lines) and line.strip() and _UNDERLINE.match(lines[number + 1])
        ):
            level, name = 1 + "=-~^\"'`#*+.".index(lines[number + 1][0]), line.strip()
        if level:
            flush(start)
            headings = {k: v for k, v in headings.items() if k < level} | {level: name}
        words += len(line.split())
        if words > PASSAGE_WORDS and text[piece_start:start].strip():
            flush(start)
            words = len(line.split())
    flush(len(text))
    return result


def question_files(projects: dict[str, Source]) -> list[tuple[Source, Path]]:
    """The projects that have questions, with their files."""
    return [(source, path) for source in projects.values() if (path := FOLDER / f"{source.project}.jsonl").exists()]


def _located(documents: Documents, answer: dict[str, Any], draft: Path, line: int) -> dict[str, Any]:
    """A draft's quotation as offsets.  Raises FormatError."""
    text = documents.text(answer["file"])
    before, opening, tail = answer["quote"].partition("«")
    span, closing, after = tail.partition("»")
    if not opening or not closing or not span:
        raise FormatError("a quote has its answer between « and »", file=draft, line=line, field="quote")
    quote = before + span + after
    if text.count(quote) != 1:
        raise FormatError(
            f"{quote!r} occurs {text.count(quote)} times in {answer['file']}", file=draft, line=line, field="quote"
        )
    start = text.index(quote) + len(before)
    return {"file": answer["file"], "start": start, "end": start + len(span)}


def compile_draft(source: Source, mirrors: Path, draft: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """(rows, problems) of a draft."""
    documents, out, problems = Documents(source, mirrors), [], []
    for line, row in json_io.read_lines(draft):
        try:
            answers = []
            for answer in row.get("answers", ()):
                place = _located(documents, answer, draft, line)
                text = documents.text(place["file"])[place["start"] : place["end"]]
                names = list(dict.fromkeys([text, *answer.get("names", ())]))
                answers.append({"names": names, "when": answer.get("when", ""), **place})
            compiled = {"question": row["question"].strip(), "answers": answers}
            if not answers:
                compiled["near"] = _located(documents, row["near"], draft, line)
            if len({answer_key(a["names"][0]) for a in answers}) < len(answers):
                raise FormatError("two answers are the same", file=draft, line=line, field="answers")
            out.append(compiled)
        except (KeyError, FormatError) as error:
            problems.append(f"line {line}: {error!r}" if isinstance(error, KeyError) else str(error))
    return out, problems


def check(source: Source, mirrors: Path, path: Path) -> list[str]:
    """The faults in the rows of a project: offsets that don't match a name, answers that are in no passage."""
    documents, problems = Documents(source, mirrors), []
    for line, row in json_io.read_lines(path):
        for answer in row["answers"]:
            text = documents.text(answer["file"])
            piece = _piece(documents, answer)
            if text[answer["start"] : answer["end"]] not in answer["names"]:
                problems.append(f"{path.name}:{line}: {text[answer['start'] : answer['end']]!r} is none of {answer['names']}")
            elif piece is None or answer["names"][0] not in piece.text:
                problems.append(f"{path.name}:{line}: no passage holds {answer['names'][0]!r}")
    return problems


@lru_cache(maxsize=4096)
def _pieces(documents: Documents, path: str) -> tuple[Piece, ...]:
    return tuple(pieces(path, documents.text(path)))


def _piece(documents: Documents, place: dict[str, Any]) -> Piece | None:
    matches = (p for p in _pieces(documents, place["file"]) if p.start <= place["start"] and place["end"] <= p.end)
    return next(matches, None)


def most_similar(queries: Sequence[str], texts: Sequence[str], k: int) -> list[list[int]]:
    """The indices of the k texts that share most words with each query (BM25), best first."""

    def tokens(strings: Sequence[str]) -> Any:
        return bm25s.tokenize(list(strings), stopwords="en", stemmer=Stemmer.Stemmer("english"), show_progress=False)

    index = bm25s.BM25()
    index.index(tokens(texts), show_progress=False)
    indices: list[list[int]] = index.retrieve(tokens(queries), k=min(k, len(texts)), show_progress=False)[0].tolist()
    return indices


def cut(source: Source, mirrors: Path, path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a project in the layout of `multi` files."""
    documents = Documents(source, mirrors)
    everything = [p for file in documents.paths() for p in _pieces(documents, file)]
    rows = list(json_io.read_lines(path))
    nearest = most_similar([row["question"] for _, row in rows], [f"{p.title}\n{p.text}" for p in everything], 30)
    for (line, row), near in zip(rows, nearest):
        supporting_pieces = [_piece(documents, place) for place in (row["answers"] or [row["near"]])]
        supporting = list(dict.fromkeys(p for p in supporting_pieces if p is not None))
        names = [name for answer in row["answers"] for name in answer["names"]]
        # a passage that also holds an answer may or may not answer the question: it is left out
        others = [everything[i] for i in near if everything[i] not in supporting]
        others = [p for p in others if not any(find_spans(p.text, name) for name in names)]
        passages = [*supporting, *others[: max(2, CONTEXT - len(supporting))]]
        yield {
            "id": f"{source.project}-{line}",
            "source": f"manuals-{source.project}",
            "question": row["question"],
            "passages": [{"id": f"{p.path}@{p.start}", "title": p.title, "text": p.text} for p in passages],
            "answers": [answer["names"] for answer in row["answers"]],
            "conditions": [answer["when"] for answer in row["answers"]],
            "supporting": [f"{p.path}@{p.start}" for p in supporting] if row["answers"] else [],
            **({} if row["answers"] else {"no_answer": True}),
        }


def write_corpus(source: Source, mirrors: Path, path: Path, out: Path) -> None:
    """OUT/PROJECT has the documents, OUT/PROJECT.jsonl the questions that have an answer.  Raises CalledProcessError."""
    documents = Documents(source, mirrors)
    for name in documents.paths():
        file = out / source.project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(documents.text(name), encoding="utf-8")
    rows = (
        {"id": f"{source.project}-{line}", "question": row["question"], "answers": [a["names"] for a in row["answers"]]}
        for line, row in json_io.read_lines(path)
        if row["answers"]
    )
    (out / f"{source.project}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["compile", "check", "cut", "corpora"])
    parser.add_argument("--draft", type=Path)
    parser.add_argument("--mirrors", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--projects", nargs="+", choices=sorted(projects := sources()), metavar="NAME")
    args = parser.parse_args(argv)
    try:
        return run(args, projects)
    except (AmbiscopeError, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def run(args: argparse.Namespace, projects: dict[str, Source]) -> int:
    """The exit code: 1 where answers are not where they should be.  Raises AmbiscopeError, and CalledProcessError of git."""
    if args.what == "compile":
        rows, problems = compile_draft(projects[args.out.stem], args.mirrors, args.draft)
        args.out.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        several, none = (sum(len(r["answers"]) > 1 for r in rows), sum(not r["answers"] for r in rows))
        summary = f"{len(rows)} questions, {several} with several answers, {none} without; {len(problems)} problems"
        print(*problems, summary, sep="\n")
        return 1 if problems else 0
    files = [(source, path) for source, path in question_files(projects) if source.project in (args.projects or projects)]
    if args.what == "check":
        problems = [problem for source, path in files for problem in check(source, args.mirrors, path)]
        print("\n".join(problems) or "all answers are where they are said to be")
        return 1 if problems else 0
    args.out.mkdir(parents=True, exist_ok=True)
    if args.what == "corpora":
        for source, path in files:
            if args.projects or source.dev:
                write_corpus(source, args.mirrors, path, args.out)
        return 0
    for name, held_out in (("train", False), ("dev", True)):
        if chosen := [(source, path) for source, path in files if source.dev == held_out]:
            rows = [row for source, path in chosen for row in cut(source, args.mirrors, path)]
            with disk.replacing(args.out / f"{name}.jsonl.gz") as draft, gzip.open(draft, "wt", encoding="utf-8") as file:
                file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            print(f"{name}: {len(rows)} questions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
