"""Writes the map at the end of docs/architecture.md: every file of the product with the first sentence of its docstring.

python tests/make_map.py
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
START = "## Every file"
SAID = (
    "Each file with the first line of what it says of itself. A test compares this map with the code; "
    "`python tests/make_map.py` writes it anew."
)


def first_lines(file: Path) -> str:
    """The first paragraph of a file's docstring, on one line."""
    return " ".join((ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").split("\n\n")[0].split())


def short(said: str) -> str:
    """The first sentence; of a long one what stands before its first colon or semicolon, where that says enough."""
    sentence = re.split(r"(?<=[^A-Z .][.!?]) {1,2}(?=[A-Z`])", said)[0].rstrip(".")
    if len(sentence) > 160:
        cut = [m.start() for m in re.finditer(r"[;:] ", sentence) if 40 < m.start() <= 160]
        sentence = sentence[: cut[-1]] if cut else sentence
    return sentence


def files() -> list[Path]:
    """The files of the product, without steps of migration."""
    found = [f for top in ("core", "storage", "pages") for f in sorted((ROOT / top).rglob("*.py"))]
    return [ROOT / "run.py", ROOT / "streamlit_app.py", *(f for f in found if "versions" not in f.parts)]


def as_written() -> str:
    """The map as Markdown, a heading a folder."""
    rooms: dict[Path, list[Path]] = defaultdict(list)
    for file in files():
        rooms[file.parent.relative_to(ROOT)].append(file)
    out = [START, "", textwrap.fill(SAID, 120)]
    for room in sorted(rooms, key=lambda r: (r.parts[:1], r.parts)):
        head = "At the top" if room == Path() else f"`{room}/`"
        opening = next((f for f in rooms[room] if f.name == "__init__.py"), None)
        out += ["", f"### {head}", ""]
        if opening and (said := short(first_lines(opening))):
            out += [textwrap.fill(f"{said}.", 120, break_on_hyphens=False, break_long_words=False), ""]
        for file in rooms[room]:
            if file is not opening:
                line = f"- `{file.relative_to(ROOT)}`: {short(first_lines(file))}"
                out.append(textwrap.fill(line, 120, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False))
        if out[-1] == "":
            out.pop()
    return "\n".join(out) + "\n"


def page() -> str:
    """docs/architecture.md with the map as it should be."""
    return PAGE.read_text(encoding="utf-8").split(START)[0].rstrip() + "\n\n" + as_written()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
