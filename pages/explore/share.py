"""Shares one result, as Markdown and as a card (PNG), both with their origin and address."""

from __future__ import annotations

import io
import textwrap
from datetime import date

from PIL import Image, ImageDraw, ImageFont

from core import __version__
from core import types as t
from core.text import answer_key, date_text, probability_text, question_key
from pages.ui.markup import escape, short

WIDTH, MARGIN = 1200, 48  # pixels
INK, PALE, MARK, PAPER = "#1f2937", "#5b6675", "#0068c9", "#ffffff"
FONTS = ("DejaVuSans.ttf", "NotoSans-Regular.ttf", "Arial.ttf")  # of the system: Pillow's own has fewer scripts


def source_of(prediction: t.Prediction, passage_id: str) -> str:
    passage = prediction.passage(passage_id)
    return passage.title or passage.id if passage else passage_id


def citation(prediction: t.Prediction, link: str, day: date) -> str:
    """One line: version, system, corpus, weights and date, and the address of the answers."""
    info = prediction.system
    origin = f"system {info.name}" + (f", corpus {info.corpus}" if info.corpus else "")
    weights = f", weights {info.checkpoint_digest[:12]}" if info.checkpoint_digest else ""
    return f"Ambiscope {__version__}, {origin}{weights}, {date_text(day)}." + (f" {link}" if link else "")


def questions_of(prediction: t.Prediction, answer: t.Answer) -> list[str]:
    """The rewritten questions of an answer, without the original question.  A grounded system may have several, others have
    one."""
    questions = [i.question for i in prediction.interpretations if answer_key(i.answer) == answer_key(answer.text)]
    clarification = prediction.clarification_of(answer.text)
    if clarification and not questions:
        questions = [clarification.question]
    key = question_key(prediction.question.text)
    return [q for q in dict.fromkeys(questions) if q and question_key(q) != key]


def rows(prediction: t.Prediction) -> list[tuple[str, str, str]]:
    """(answer with its probability, its disambiguated question, titles of its passages)."""
    lines = []
    for answer in prediction.answers:
        titles = dict.fromkeys(source_of(prediction, e.passage_id) for e in answer.evidence)
        chance = "kept" if answer.pinned else probability_text(answer.probability, prediction.system.is_calibrated)
        lines.append((f"{answer.text} ({chance})", next(iter(questions_of(prediction, answer)), ""), "; ".join(titles)))
    return lines


def markdown(prediction: t.Prediction, link: str, day: date) -> str:
    """The answer set as a document; texts of corpora, models and people are escaped."""
    lines = [f"# {escape(prediction.question.text)}", ""]
    for number, (answer, question, titles) in enumerate(rows(prediction), 1):
        lines.append(f"{number}. **{escape(answer)}**")
        lines += [f"   - Question: {escape(question)}"] if question else []
        lines += [f"   - Evidence: {escape(titles)}"] if titles else []
    if not prediction.answers:
        lines.append("No answer was found.")
    return "\n".join([*lines, "", escape(citation(prediction, link, day)), ""])


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    for name in FONTS:
        try:
            return ImageFont.truetype(name, size)
        except OSError:
            continue
    return ImageFont.load_default(size)


def card(prediction: t.Prediction, link: str, day: date) -> bytes:
    """PNG, WIDTH pixels wide and as high as its text."""
    lines: list[tuple[str, int, str, int]] = []  # text, size, colour, indent

    def add(text: str, size: int, colour: str, indent: int = 0, max_lines: int = 6) -> None:
        chars = max(20, int((WIDTH - 2 * MARGIN - indent) / (size * 0.56)))
        wrapped = textwrap.wrap(short(text, chars * max_lines), chars) or [""]
        lines.extend((line, size, colour, indent) for line in wrapped[:max_lines])

    add("Ambiscope", 22, MARK)
    add(prediction.question.text, 40, INK)
    for number, (answer, question, titles) in enumerate(rows(prediction), 1):
        lines.append(("", 10, INK, 0))
        add(f"{number}. {answer}", 30, INK)
        if question:
            add(question, 22, PALE, 36)
        if titles:
            add(f"Evidence: {titles}", 20, PALE, 36, 2)
    if not prediction.answers:
        add("No answer was found.", 30, INK)
    lines.append(("", 16, INK, 0))
    add(citation(prediction, link, day), 18, PALE)
    height = 2 * MARGIN + sum(round(size * 1.4) for _, size, _, _ in lines)
    image = Image.new("RGB", (WIDTH, height), PAPER)
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, 10, height), fill=MARK)
    y = MARGIN
    for text, size, colour, indent in lines:
        draw.text((MARGIN + indent, y), text, fill=colour, font=_font(size))
        y += round(size * 1.4)
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()
