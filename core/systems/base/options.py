"""The options of a run: `Options`, which every system takes, and the frozen dataclass of each system's own options
(core.systems.options).

A field of such a dataclass says all that is known of an option: its values or its range, its default, its meaning.  The command line, the sidebar,
the tables of docs/systems.md and the settings stored with a prediction derive from it.
"""

from __future__ import annotations

import inspect
import math
import typing
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, NamedTuple, TypeVar

from core.errors import InputError
from core.registry import did_you_mean
from core.settings import Settings

TOP_K = Settings.top_k  # default number of passages to read
StoppingRule = Literal["compare", "threshold"]  # when a loop ends (core.systems.base.loop)
Scoring = Literal["passage", "dpr"]  # of spans (core.systems.base.selection.candidates_of)
Switch = Literal["on", "off"]
SHARED = "see above"  # the meaning of options that docs/systems.md explains once, for all systems
S = TypeVar("S", bound="SystemOptions")


@dataclass(frozen=True)
class Options:
    """Options of a run.  `top_k`: passages to read; None means the system's default, at most the whole corpus (set by the
    engine).  `stop_above`: a loop stops when P([EOI]) exceeds it; None leaves it to the option `stop`."""

    top_k: int | None = None
    max_answers: int = 8
    stop_above: float | None = None
    clarify: bool = True
    check_coverage: bool = True  # refuse answers whose document lacks what the question names (core.systems.base.coverage)
    extra: dict[str, Any] = field(default_factory=dict)  # the system's own options by name, for SystemOptions.read

    def __post_init__(self) -> None:
        if self.top_k is not None and self.top_k < 1:
            raise InputError(f"the number of passages is {self.top_k}; it must be at least 1")
        if not 1 <= self.max_answers <= 50:
            raise InputError(f"the maximum number of answers is {self.max_answers}; it must be 1 to 50")
        if self.stop_above is not None and not 0 <= self.stop_above <= 1:
            raise InputError(f"the stopping threshold is {self.stop_above}; it must be between 0 and 1")

    @property
    def passages(self) -> int:
        return TOP_K if self.top_k is None else self.top_k


class OptionRow(NamedTuple):
    """One option as documents and menus show it.  `values`: a choice's values, the default first.  `in_menu`: the sidebar shows
    it."""

    name: str
    values: tuple[str, ...]
    default: Any
    meaning: str
    in_menu: bool


def option(
    default: Any, meaning: str, low: float = -math.inf, high: float = math.inf, in_menu: bool = False, usual: str = ""
) -> Any:
    """A field of SystemOptions: a choice if its type is a Literal, else a number from `low` to `high`.

    `usual`: the value in words where the default None stands for one that depends on other options or on the weights.
    """
    return field(default=default, metadata={"meaning": meaning, "range": (low, high), "in_menu": in_menu, "usual": usual})


@dataclass(frozen=True)
class SystemOptions:
    """A system's own options.  Raises InputError, which names the bad value, for one that an option doesn't take.  Numbers get
    their field's type."""

    def __post_init__(self) -> None:
        types = typing.get_type_hints(type(self))
        for f in fields(self):
            object.__setattr__(self, f.name, _checked(f.name, types[f.name], f.metadata, getattr(self, f.name)))
        for name, value in self.usual().items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)

    def usual(self) -> Mapping[str, Any]:
        """The values of options whose default depends on other options."""
        return {}

    @classmethod
    def read(cls: type[S], system: str, values: Mapping[str, Any]) -> S:
        """Options from values by name, as a command line or a service passes them.  None stands for the default.  Raises
        InputError, also for an unknown name."""
        names = cls.names()
        for name in values:
            if name not in names:
                hint = did_you_mean(name[:80], names)
                raise InputError(f"{system} has no option '{name[:80]}'.{hint} Its options: {', '.join(names) or 'none'}")
        return cls(**{name: value for name, value in values.items() if value is not None})

    @classmethod
    def names(cls) -> list[str]:
        return [f.name for f in fields(cls)]

    @classmethod
    def rows(cls) -> Iterator[OptionRow]:
        """One row for each field that `option` made.  Those that several systems share come last."""
        types = typing.get_type_hints(cls)
        names = dict.fromkeys(name for each in cls.__mro__ for name in inspect.get_annotations(each))
        for f in (f for name in names if (f := cls.__dataclass_fields__[name]).metadata):
            values = tuple(v for v in typing.get_args(types[f.name]) if isinstance(v, str))
            default: Any = f.default
            ordered = (default, *(v for v in values if v != default)) if values else ()
            default_text = f.metadata.get("usual") or default
            yield OptionRow(f.name, ordered, default_text, f.metadata["meaning"], f.metadata["in_menu"])

    def as_dict(self) -> dict[str, Any]:
        """Every value as plain JSON, in the form that `read` takes."""
        return asdict(self)


@dataclass(frozen=True)
class ClarifierOptions(SystemOptions):
    """The choice of who writes the disambiguated questions (core.systems.base.clarifying)."""

    clarifier: Literal["writer", "copy"] = option("writer", SHARED)


@dataclass(frozen=True)
class ReadingOptions(SystemOptions):
    """Options of `one-pass`, whose threshold isn't tuned, and of other systems that select from one reading."""

    threshold: float = option(0.5, "an answer needs this probability", 0, 1)
    calibration: Switch = option("on", SHARED)


def table(options: type[SystemOptions]) -> str:
    """A system's options as the Markdown table of docs/systems.md; empty if it has none."""
    lines = [
        f"| `{row.name}` | {', '.join(f'`{v}`' for v in row.values) or _number(row.default)} | {row.meaning} |"
        for row in options.rows()
    ]
    return "\n".join(["| option | values | meaning |", "|---|---|---|", *lines]) if lines else ""


def _number(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _checked(name: str, kind: Any, metadata: Mapping[str, Any], value: Any) -> Any:
    if "range" not in metadata or value is None:
        return value  # a field with a check of its own; a default that depends on other options or on the weights
    if typing.get_origin(kind) is Literal:
        if value not in typing.get_args(kind):
            raise InputError(f"the option {name} is '{str(value)[:80]}'; use {' or '.join(typing.get_args(kind))}")
        return value
    try:
        number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"the option {name} is '{str(value)[:40]}'; it must be a number")
    low, high = metadata["range"]
    is_whole = kind is int
    if not low <= number <= high or (is_whole and number != int(number)):
        bounds = "" if math.isinf(low) else f" from {low:g} to {high:g}" if math.isfinite(high) else f" of at least {low:g}"
        raise InputError(f"the option {name} is {number:g}; it must be a {'whole ' if is_whole else ''}number{bounds}")
    return int(number) if is_whole else number
