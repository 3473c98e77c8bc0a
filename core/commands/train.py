"""`python -m core train TARGET`: trains or fits one part of the bundled systems.

A target's options are the fields of its dataclass in core.training.options.
"""

from __future__ import annotations

import argparse
import importlib
import json
from dataclasses import Field, dataclass, fields, replace
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from core.settings import Settings
from core.training import options


@dataclass(frozen=True)
class TrainingTarget:
    """One sub-command; the docstring of `config` is its help text.

    `run`: "module:function" in core, imported when it is needed, so that `--help` loads no torch.  The function takes (options, settings) and
    returns the network, the task and the function that saves, where the options are a TrainConfig; otherwise, and where the
    target `trains_itself`, it takes the output folder too and returns the figures to print.
    """

    name: str
    config: type[options.TrainingOptions]
    run: str
    trains_itself: bool = False

    @property
    def summary(self) -> str:
        return str(self.config.__doc__).partition(".")[0]


TARGETS = {
    target.name: target
    for target in (
        TrainingTarget("reader", options.ReaderOptions, "commands.training.reader:make"),
        TrainingTarget("answerer", options.AnswererOptions, "commands.training.answerer:make"),
        TrainingTarget("seq2seq", options.Seq2SeqOptions, "commands.training.answerer:make_seq2seq"),
        TrainingTarget("cotraining", options.CoTrainingOptions, "training.cotraining_run:run", trains_itself=True),
        TrainingTarget("disambiguation", options.DisambiguationOptions, "training.disambiguation:make"),
        TrainingTarget("writer", options.WriterOptions, "training.writer:make"),
        TrainingTarget("language", options.LanguageOptions, "training.language:make"),
        TrainingTarget("calibration", options.CalibrationOptions, "commands.training.calibration:fit"),
        TrainingTarget("ambiguity", options.AmbiguityOptions, "training.ambiguity:run"),
        TrainingTarget("retriever", options.RetrieverOptions, "training.retriever:make"),
        TrainingTarget("passages", options.PassagesOptions, "training.passages:make"),
    )
}


def add_parser(commands: Any) -> None:
    train = commands.add_parser("train", help="train a part of the systems, such as the reader or the answerer")
    targets = train.add_subparsers(dest="typed", required=True, metavar="TARGET")
    for target in TARGETS.values():
        command = targets.add_parser(target.name, help=target.summary, description=f"{target.summary}.")
        hints = get_type_hints(target.config)
        inputs = command.add_argument_group("inputs")
        for field in fields(target.config):
            if field.metadata:
                _add_option(inputs if field.metadata["reads"] else command, field, hints[field.name])
        command.set_defaults(run=run, what=target.name)


def _add_option(parser: Any, field: Field[Any], hint: Any) -> None:
    info = field.metadata
    text = info["text"] + (f", {options.bounds_of(info)}" if info["low"] or info["high"] else "")
    default = info["default_text"] or (field.default if isinstance(field.default, int | float) else field.default or "")
    if default != "" and hint is not bool:
        text += f" (default: {default})"
    arguments: dict[str, Any] = {"default": field.default, "help": text.replace("%", "%%")}
    flag = f"--{field.name.replace('_', '-')}"
    if hint is bool:
        parser.add_argument(flag, action="store_true", **arguments)
        return
    if get_origin(hint) is tuple:
        arguments["nargs"], hint = "+" if field.default else "*", get_args(hint)[0]
    elif NoneType in get_args(hint):
        hint = next(part for part in get_args(hint) if part is not NoneType)
    if get_origin(hint) is Literal:
        arguments["choices"] = get_args(hint)
    else:
        arguments |= {"type": hint, "metavar": info["metavar"]}
    parser.add_argument(flag, **arguments)


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Raises InputError for numbers out of bounds, missing files, and data that must not be trained on; otherwise as
    the target's `run`.
    """
    target = TARGETS[args.what]
    values = {f.name: getattr(args, f.name) for f in fields(target.config) if f.metadata}
    config: Any = target.config(**{name: tuple(v) if isinstance(v, list) else v for name, v in values.items()})
    if isinstance(config, options.PassagesOptions) and not config.reader:
        config = replace(config, reader=settings.reader)  # so that it is recorded, and identifies the run
    runs = importlib.import_module("core.training.runs")
    runs.check_files(config, settings)
    module, _, function = target.run.partition(":")
    call = getattr(importlib.import_module(f"core.{module}"), function)
    stage = f"-{config.stage}" if hasattr(config, "stage") else ""
    out = config.out or settings.runs_dir / f"{target.name}{stage}"
    if isinstance(config, options.TrainConfig) and not target.trains_itself:
        figures = runs.train_network(target.name, config, settings, out, call)
    else:
        figures = call(config, settings, out)
    if figures is not None:
        print(json.dumps({"out": str(out), **figures}))
    return 0
