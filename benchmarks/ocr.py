"""Accuracy, speed and memory of OCR on rendered pages of text, clean and degraded.

    python benchmarks/ocr.py LANGUAGE=FILE=FONT... [--pages N] [--json FILE]

Each file is a text, or a ``corpus.jsonl`` of a BEIR folder. Its pages are rendered at 150 and 300 dots per inch, clean
and degraded (2 degrees of skew, grey paper, noise, JPEG of quality 40).
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import time
import unicodedata
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import product
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from polyad.errors import ReadError
from polyad.readers.pictures import read_picture
from polyad.readers.worker import get_peak_memory
from polyad.text.removals import UNCERTAIN

_SIZE, _LEADING, _MARGIN = 11.0, 1.35, 0.9
"""Type size in points, distance of lines in type sizes, and margin in inches."""

_LINES = 24
"""Lines of a page."""


def main() -> None:
    """Render pages, read them, and print a row for each language, resolution and quality."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sources", nargs="+", metavar="LANGUAGE=FILE=FONT")
    parser.add_argument("--pages", type=int, default=1, help="pages of each language, resolution and quality")
    parser.add_argument("--dpi", type=int, nargs="+", default=[300, 150])
    parser.add_argument("--json", type=Path, help="save the rows here")
    arguments = parser.parse_args()
    rows = []
    for source, dpi, is_degraded in product(arguments.sources, arguments.dpi, (False, True)):
        language, file, font = source.split("=")
        pages = [render(lines, font, dpi) for lines in split_pages(load_text(Path(file)), font, arguments.pages)]
        row = {"language": language, "dpi": dpi, "degraded": is_degraded, **measure(pages, is_degraded)}
        rows.append(row)
        print(json.dumps(row), flush=True)
    if arguments.json:
        arguments.json.write_text(
            json.dumps({"load": os.getloadavg(), "rows": rows}, indent=1) + "\n", encoding="utf-8"
        )


def measure(pages: Sequence[tuple[Image.Image, str]], is_degraded: bool) -> dict[str, object]:
    """Return the accuracy of characters and words, the processor time of a page and the peak memory."""
    right = {"characters": 0, "words": 0}
    total = dict(right)
    uncertain, start, clock = 0, time.process_time(), time.perf_counter()
    for image, text in pages:
        file = io.BytesIO()
        (degrade(image) if is_degraded else image).save(file, "PNG")
        start, clock = time.process_time(), time.perf_counter()
        try:
            content = read_picture(file.getvalue())
        except ReadError as error:
            return {"error": str(error)}
        uncertain += len(content.removals.get(UNCERTAIN, ()))
        for unit, split in (("characters", split_characters), ("words", str.split)):
            expected, actual = split(normalize(text)), split(normalize(content.text))
            blocks = SequenceMatcher(None, expected, actual, autojunk=False).get_matching_blocks()
            right[unit] += sum(block.size for block in blocks)
            total[unit] += max(len(expected), 1)
    return {
        **{unit: round(100 * right[unit] / total[unit], 2) for unit in right},
        "uncertain": uncertain,
        "cpu_seconds": round(time.process_time() - start, 1),
        "seconds": round(time.perf_counter() - clock, 1),
        "peak_mb": get_peak_memory() // 2**20,
    }


def normalize(text: str) -> str:
    """Return text with one form of each punctuation mark and without the breaks of lines."""
    text = unicodedata.normalize("NFKC", text).translate(
        str.maketrans("\u2018\u2019\u201c\u201d\u2013\u2014", "''\"\"--")
    )
    return re.sub(r"\s+", " ", text)


def split_characters(text: str) -> list[str]:
    """Return the characters of a text without spaces."""
    return [character for character in text if not character.isspace()]


def load_text(file: Path) -> str:
    """Return the text of a file; of a ``corpus.jsonl`` the texts of its documents."""
    text = file.read_text(encoding="utf-8")
    if file.suffix != ".jsonl":
        return text[4000:60000]
    return "\n".join(json.loads(line)["text"] for line in text.splitlines()[:60])


def split_pages(text: str, font_file: str, count: int) -> Iterator[list[str]]:
    """Yield the lines of the first pages of a text."""
    font = ImageFont.truetype(font_file, 100)
    width = (8.27 - 2 * _MARGIN) * 72 / _SIZE * 100
    lines: list[str] = []
    line = ""
    for word in re.findall(r"[\u2e80-\uffef]|[^\s\u2e80-\uffef]+\s*|\s+", re.sub(r"\s+", " ", text)):
        if font.getlength((line + word).rstrip()) > width:
            lines.append(line.strip())
            line = ""
        line += word
        if len(lines) == _LINES:
            yield lines
            count -= 1
            lines = []
        if not count:
            return


def render(lines: Sequence[str], font_file: str, dpi: int) -> tuple[Image.Image, str]:
    """Return the picture of a page and its text."""
    image = Image.new("RGB", (int(8.27 * dpi), int(11.69 * dpi)), "white")
    canvas, font = ImageDraw.Draw(image), ImageFont.truetype(font_file, round(_SIZE * dpi / 72))
    for place, line in enumerate(lines):
        canvas.text((_MARGIN * dpi, (_MARGIN + place * _LEADING * _SIZE / 72) * dpi), line, font=font, fill="black")
    return image, " ".join(lines) if " " in lines[0] else "".join(lines)


def degrade(image: Image.Image) -> Image.Image:
    """Return a page as a bad scan: skewed by 2 degrees, grey, noisy and compressed."""
    grey = np.asarray(image.convert("L").rotate(2, fillcolor=255, resample=Image.Resampling.BICUBIC), dtype=float)
    noisy = 0.75 * grey + 35 + np.random.default_rng(0).normal(0, 14, grey.shape)
    file = io.BytesIO()
    Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(file, "JPEG", quality=40)
    return Image.open(file).convert("RGB")


if __name__ == "__main__":
    main()
