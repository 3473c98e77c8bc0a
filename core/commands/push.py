"""`python -m core push CHECKPOINT REPO`: a trained checkpoint to the Hugging Face hub, with its card; it loads from there by name."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from core.errors import CheckpointError, InputError
from core.models.loading import hub
from core.models.loading.finding import BUNDLED, FID_DETAILS, WEIGHTS, read_config
from core.settings import Settings

# kind of a checkpoint -> the setting that loads it
SETTING = {
    "span": "AMBISCOPE_ANSWERER",
    "small-seq2seq": "AMBISCOPE_SEQ2SEQ",
    "fid": "AMBISCOPE_SEQ2SEQ",
}


def add_parser(commands: Any) -> None:
    push = commands.add_parser("push", help="put a trained checkpoint on the Hugging Face hub, with its card")
    push.add_argument("checkpoint", help="folder that `core train` wrote, or a name in checkpoints/")
    push.add_argument("repo", metavar="REPO", help="repository on the hub, as owner/name; made if there is none")
    push.add_argument("--licence", metavar="ID", help="licence of the weights, such as apache-2.0 (default: as the card says)")
    push.add_argument("--private", action="store_true", help="make a new repository private")
    push.add_argument("--branch", help="branch to write to (default: main)")
    push.add_argument("--json", action="store_true", help="print one JSON object")
    push.set_defaults(run=run)


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Raises CheckpointError for a folder that is no checkpoint, InputError, DownloadError."""
    folder = next((f for f in (Path(args.checkpoint).expanduser(), BUNDLED / args.checkpoint) if f.is_dir()), None)
    if folder is None:
        raise CheckpointError(f"there is no folder {args.checkpoint}; name one that `core train` wrote, such as RUN/best")
    kind = kind_of(folder)
    files = files_of(folder)
    files["README.md"] = card_of(folder, kind, args.repo, args.licence).encode()
    commit = hub.put(args.repo, files, private=args.private, branch=args.branch, message=f"A {kind} model of Ambiscope")
    pinned = f"{args.repo}@{commit}"
    if args.json:
        print(json.dumps({"repo": args.repo, "commit": commit, "name": pinned, "kind": kind, "files": sorted(files)}))
    else:
        print(f"{pinned}: {', '.join(sorted(files))}\nload it with {SETTING[kind]}={pinned}")
    return 0


def kind_of(folder: Path) -> str:
    """The kind of checkpoint in a folder.  Raises CheckpointError where it is no checkpoint of Ambiscope, or one that cannot be loaded by a hub name."""
    kind = "fid" if (folder / FID_DETAILS).exists() else str(read_config(folder).get("kind"))
    if kind not in SETTING:
        content = f"a {kind} model" if kind != "None" else "no checkpoint of Ambiscope"
        raise CheckpointError(f"{folder} holds {content}; push takes {', '.join(SETTING)} models that `core train` wrote")
    return kind


def files_of(folder: Path) -> dict[str, Path | bytes]:
    """The files for the hub: weights as safetensors, JSON, and the tokenizer.  Raises CheckpointError where there are no weights."""
    files: dict[str, Path | bytes] = {p.name: p for pattern in hub.FETCHED for p in folder.glob(pattern) if p.is_file()}
    if not any(name.endswith(".safetensors") for name in files):
        raise CheckpointError(f"{folder} has no {WEIGHTS}; only weights as safetensors go to the hub")
    return files


def card_of(folder: Path, kind: str, repo: str, licence: str | None) -> str:
    """The folder's README.md, or what its training recorded, below a head that the hub reads.  Raises InputError without a licence."""
    from huggingface_hub import ModelCard, ModelCardData

    readme = folder / "README.md"
    if readme.exists():
        card = ModelCard(readme.read_text(encoding="utf-8"))
    else:
        config = json.loads((folder / FID_DETAILS).read_text()) if kind == "fid" else read_config(folder)
        details = json.dumps({name: config.get(name) for name in ("config", "about")}, indent=1, ensure_ascii=False)
        card = ModelCard(
            f"# {repo}\n\nA {kind} model of Ambiscope, written by `core train`. Load it with `{SETTING[kind]}={repo}@REVISION`.\n\n"
            f"```json\n{details}\n```\n"
        )
    head = ModelCardData(**card.data.to_dict())  # type: ignore[no-untyped-call]
    head.license = licence or head.license
    if not head.license:
        raise InputError(f"the card of {folder} states no licence; give one with --licence, such as apache-2.0")
    head.library_name = head.library_name or "ambiscope"
    head.pipeline_tag = head.pipeline_tag or "question-answering"
    head.tags = sorted({*(head.tags or []), "ambiguous-questions"})
    return f"---\n{head.to_yaml()}\n---\n{card.text}"
