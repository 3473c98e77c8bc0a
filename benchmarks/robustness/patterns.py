"""Time of every regular expression of the product over long texts: it grows in proportion to the text, or the expression is listed.

    python -m benchmarks.robustness.patterns [--all]

Every call of `re` and `regex` in core, storage and pages is found in the source, its pattern evaluated in its module, and run as the product runs
it (match, fullmatch, or from every place) over 25, 50, 100 and 200 kB of

- blanks, line ends, letters, digits, brackets and quotes, and
- what the pattern itself repeats: for each of its repetitions, the shortest text that leads there, and then what is repeated, over and over.

A pattern that takes more than `MAX_SECONDS` of the processor for 200 kB is not linear: exit code 1.  `--all` lists the time of each one.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import importlib
import re
import re._constants as codes  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import regex

from core.settings import ROOT

PACKAGES = ("core", "storage", "pages")
SIZES = (25_000, 50_000, 100_000, 200_000)  # characters
MAX_SECONDS = 1.0  # of the processor; linear ones take some milliseconds, quadratic ones of this size minutes
MANY = 64  # a repetition of at most this many times is bounded: its cost is a factor
FILLERS = (" ", "\n", "a", "A", "1", "(", "[", "{", "<", '"', "a ", "A ", "1 ", "a, ", "# ", "- ", "(a", "[a", "<a ", '"a ')
ENDS = ("\0", "\n\n")
CALLS = ("compile", "match", "fullmatch", "search", "findall", "finditer", "sub", "subn", "split", "splititer")
MODULES = {"re": re, "regex": regex}


@dataclass(frozen=True)
class Pattern:
    place: str  # file and line
    compiled: Any  # re.Pattern or regex.Pattern
    methods: frozenset[str]  # by which it is run

    def run(self, text: str) -> None:
        for method in ("match", "fullmatch"):
            if method in self.methods:
                getattr(self.compiled, method)(text)
        if self.methods - {"match", "fullmatch"}:
            for _ in self.compiled.finditer(text):
                pass

    def seconds(self, text: str, most: float = MAX_SECONDS) -> float:
        """Seconds of processor time, at most `most`, because a run that takes longer is stopped."""
        start = time.thread_time()
        while time.thread_time() - start < most:  # the timer also counts other threads
            begin = time.thread_time()
            with suppress(TimeoutError), _stopped_after(most):
                self.run(text)
                return time.thread_time() - begin
        return most

    def texts(self, size: int) -> Iterator[str]:
        """Texts of that many characters, each of one piece that is repeated, with an end that few patterns expect."""
        pieces = [("", piece) for piece in FILLERS]
        for lead, piece in dict.fromkeys(_repetitions(self.compiled)):
            pieces += [(lead, piece), ("", lead + piece), ("", f"{lead}{piece} ")]
        for lead, piece in dict.fromkeys(pieces):
            for end in ENDS:
                yield lead + piece * (size // len(piece)) + end

    def slowest(self, size: int, most: float = MAX_SECONDS) -> tuple[float, str]:
        """The longest time of all texts, at most `most`, and the beginning of that text."""
        times: list[tuple[float, str]] = []
        for text in self.texts(size):
            times.append((self.seconds(text, most), text[:40]))
            if times[-1][0] >= most:
                break
        return max(times)


def _stop(number: int, frame: FrameType | None) -> None:
    raise TimeoutError


@contextmanager
def _stopped_after(seconds: float) -> Iterator[None]:
    """Raises TimeoutError in its block after that much time of the processor."""
    signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def patterns(root: Path = ROOT, packages: Sequence[str] = PACKAGES) -> list[Pattern]:
    """Every regular expression of the packages.  Raises ValueError for one that cannot be told from the source."""
    trees = {
        path: ast.parse(path.read_text(encoding="utf-8"))
        for package in packages
        for path in sorted((root / package).rglob("*.py"))
    }
    public = [_uses(tree) for tree in trees.values()]
    found = []
    for path, tree in trees.items():
        own = _uses(tree)
        for node in ast.walk(tree):
            if (isinstance(node, ast.ImportFrom) and node.module in MODULES) or (
                isinstance(node, ast.Import) and any(name.name in MODULES and name.asname for name in node.names)
            ):
                raise ValueError(
                    f"{path.relative_to(root).as_posix()}:{node.lineno}: import re and regex by their names, so that patterns are found"
                )
        module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        for function in (tree, *(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))):
            for node, name in _calls(function):
                place = f"{path.relative_to(root).as_posix()}:{node.lineno}"
                library, call = node.func.value.id, node.func.attr  # type: ignore[attr-defined]
                methods = {call}
                if call == "compile":
                    methods = set().union(*(uses.get(name, set()) for uses in ([own] if name.startswith("_") else public)))
                for text, flags in _arguments(node, module, function, place):
                    found.append(Pattern(place, MODULES[library].compile(text, flags), frozenset(methods or {"search"})))
    return found


def _calls(function: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    """The calls of the libraries in a function or a module (without those of the functions in it), and the name that a compiled pattern gets."""
    pending: list[tuple[ast.AST, str]] = [(node, "") for node in ast.iter_child_nodes(function)]
    while pending:
        node, name = pending.pop()
        if isinstance(node, ast.FunctionDef):
            pending += [(default, "") for default in (*node.args.defaults, *node.decorator_list)]
            continue
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id in MODULES
            and node.func.attr in CALLS
        ):
            yield node, name
        pending += [(child, name) for child in ast.iter_child_nodes(node)]


def _uses(tree: ast.AST) -> dict[str, set[str]]:
    """The methods by which a module runs the patterns that a name has, or that are in whatever it names."""
    uses: dict[str, set[str]] = {}
    loops: list[tuple[str, ast.AST]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in CALLS:
            uses.setdefault(node.value.id, set()).add(node.attr)
        elif isinstance(node, ast.For | ast.comprehension):
            loops += [(name.id, node.target) for name in ast.walk(node.iter) if isinstance(name, ast.Name)]
    for name, target in loops:
        for item in ast.walk(target):
            if isinstance(item, ast.Name):
                uses.setdefault(name, set()).update(uses.get(item.id, ()))
    return uses


class _Names(dict[str, Any]):
    """The meanings of names in a function: strings that it assigns, those of its module, and "name" for a value known only at
    run time."""

    def __init__(self, module: dict[str, Any], function: ast.AST) -> None:
        super().__init__()
        self.module = module
        self.assigned = {
            node.targets[0].id: node.value
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.JoinedStr)
        }

    def __missing__(self, name: str) -> Any:
        if name in self.assigned:
            return _value(self.assigned[name], self)
        if name in self.module or hasattr(builtins, name):
            raise KeyError(name)  # the module's, or Python's
        return "name"


def _value(node: ast.AST, names: _Names) -> Any:
    code = compile(ast.Expression(node), "<pattern>", "eval")  # type: ignore[arg-type]
    return eval(code, names.module, names)


def _arguments(node: ast.Call, module: str, function: ast.AST, place: str) -> Iterator[tuple[str, int]]:
    """Pattern and flags of a call; several where it is in a comprehension over patterns."""
    call, (argument, *others) = node.func.attr, node.args  # type: ignore[attr-defined]
    keywords = {keyword.arg: keyword.value for keyword in node.keywords}
    position = 0 if call == "compile" else 1 if call in ("match", "fullmatch", "search", "findall", "finditer") else len(others)
    flags = keywords.get("flags") or (others[position] if position < len(others) else None)
    names = _Names(vars(importlib.import_module(module)), function)
    values: Sequence[Any] = [argument]
    if isinstance(argument, ast.Name) and argument.id not in names.assigned and argument.id not in names.module:
        loops = [loop for loop in ast.walk(function) if isinstance(loop, ast.comprehension)]
        values = next(
            (
                v.iter.elts
                for v in loops
                if isinstance(v.target, ast.Name) and v.target.id == argument.id and isinstance(v.iter, ast.Tuple)
            ),
            [],
        )
        if not values:
            raise ValueError(f"{place}: '{argument.id}' cannot be told from the source; write the pattern there")
    for value in values:
        yield str(_value(value, names)), int(_value(flags, names) if flags else 0)


def _repetitions(compiled: Any) -> list[tuple[str, str]]:
    """A text that leads to each unbounded repetition of a pattern, and a text that it repeats.  Empty for `regex`, whose syntax
    is different."""
    if not isinstance(compiled, re.Pattern):
        return []
    tree = parser.parse(compiled.pattern, compiled.flags)
    found: list[tuple[str, str]] = []
    _walk(tree, "", found)
    return [(lead[:1000], piece) for lead, piece in found if piece]


def _walk(items: Any, lead: str, found: list[tuple[str, str]]) -> str:
    """Collects the repetitions of a sequence; returns the shortest text that it matches (without what looks around)."""
    for code, value in items:
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            low, high, inner = value
            inside: list[tuple[str, str]] = []
            piece = _walk(inner, lead, inside)[len(lead) :]
            found += inside
            if high is codes.MAXREPEAT or high > MANY:
                found += [(lead, p) for p in (piece, *_members(inner))]
            lead += piece * low
        elif code is codes.BRANCH:
            ends = [_walk(branch, lead, found) for branch in value[1]]
            lead = min(ends, key=len)
        elif code is codes.SUBPATTERN:
            lead = _walk(value[-1], lead, found)
        elif code is codes.ATOMIC_GROUP:
            lead = _walk(value, lead, found)
        elif code is codes.LITERAL:
            lead += chr(value)
        elif code is codes.NOT_LITERAL:
            lead += "a" if value != ord("a") else "b"
        elif code is codes.ANY:
            lead += "a"
        elif code is codes.IN:
            lead += (_chars(value) or ["a"])[0]
        elif code is codes.ASSERT and value[0] > 0:
            _walk(value[1], lead, found)
    return lead


def _members(inner: Any) -> list[str]:
    """Characters of different kinds that a repeated class has, so that repetitions side by side may share one."""
    if len(inner) != 1:
        return []
    code, value = inner[0]
    if code is codes.ANY:
        return ["a", " "]
    return _chars(value)[:5] if code is codes.IN else []


def _chars(members: Sequence[tuple[Any, Any]]) -> list[str]:
    """Characters of a class, of each kind one."""
    return [char for char in "a A1_-.,'\"\n\t<>()[]{}:;#=/\\|*~`é•’" if _accepts(members, char)] or _first_literals(members)


def _first_literals(members: Sequence[tuple[Any, Any]]) -> list[str]:
    return [chr(v if code is codes.LITERAL else v[0]) for code, v in members if code in (codes.LITERAL, codes.RANGE)][:3]


_KINDS: Mapping[Any, str] = {
    codes.CATEGORY_DIGIT: r"\d",
    codes.CATEGORY_NOT_DIGIT: r"\D",
    codes.CATEGORY_SPACE: r"\s",
    codes.CATEGORY_NOT_SPACE: r"\S",
    codes.CATEGORY_WORD: r"\w",
    codes.CATEGORY_NOT_WORD: r"\W",
}


def _accepts(members: Sequence[tuple[Any, Any]], char: str) -> bool:
    negated, result = False, False
    for code, value in members:
        if code is codes.NEGATE:
            negated = True
        elif code is codes.LITERAL:
            result |= ord(char) == value
        elif code is codes.RANGE:
            result |= value[0] <= ord(char) <= value[1]
        elif code is codes.CATEGORY:
            result |= re.match(_KINDS[value], char) is not None
    return result != negated


def main(argv: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--all", action="store_true", help="list the time of each pattern")
    args = options.parse_args(argv)
    slow = 0
    for pattern in patterns():
        times = []
        for size in SIZES:
            times.append(pattern.slowest(size))
            if times[-1][0] >= MAX_SECONDS:
                break
        is_slow = times[-1][0] >= MAX_SECONDS
        slow += is_slow
        if args.all or is_slow:
            shown = "  ".join(f"{1000 * seconds:7.1f}" for seconds, _ in times)
            print(
                f"{pattern.place}  {shown} ms  {times[-1][1]!r}  {pattern.compiled.pattern[:100]!r}  {sorted(pattern.methods)}",
                flush=True,
            )
    print(f"{slow} patterns are not linear" if slow else "all patterns are linear")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
