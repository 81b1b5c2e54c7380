"""Accuracy, speed and memory of OCR on rendered pages of text, clean and degraded.

    python benchmarks/ocr.py LANGUAGE=FILE=FONT[,FONT...]... [--pages N] [--lines N] [--json FILE]

Each file is a text, a PDF file, or a ``corpus.jsonl`` of a BEIR folder. Its pages are rendered at 150 and 300 dots per
inch, clean and degraded (2 degrees of skew, grey paper, noise, JPEG of quality 40); one after another has the next
font. A process reads them, whose time and peak memory are measured. Pages a minute on two cores are computed from the
processor time, so that they do not depend on the load of the machine.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import tempfile
import time
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from difflib import SequenceMatcher
from itertools import islice, product
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pypdfium2  # type: ignore[import-untyped]  # has no stubs
from measured_rows import write_rows
from PIL import Image, ImageDraw, ImageFont

from polyad.errors import ReadError
from polyad.readers.format import Source
from polyad.readers.pool.worker import get_peak_memory
from polyad.text.removals import UNCERTAIN
from polyad_readers.pictures.reader import read_picture

_SIZE, _LEADING, _MARGIN = 11.0, 1.35, 0.9
"""Type size in points, distance of lines in type sizes, and margin in inches."""


class PageText(NamedTuple):
    """The lines of a page, and the file of its font."""

    lines: Sequence[str]
    font: str


class Reading(NamedTuple):
    """What a process read in a picture: the text, the number of uncertain words, its time and its peak memory.

    ``error`` says why the picture cannot be read.
    """

    text: str
    uncertain: int
    seconds: float
    peak_bytes: int
    error: str


def main() -> None:
    """Render pages, read them, and print a row for each language, resolution and quality."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sources", nargs="+", metavar="LANGUAGE=FILE=FONT[,FONT...]")
    parser.add_argument("--pages", type=int, default=1, help="pages of each source")
    parser.add_argument("--lines", type=int, default=24, help="lines of each page")
    parser.add_argument("--dpi", type=int, nargs="+", default=[300, 150])
    parser.add_argument("--json", type=Path, help="save the rows here")
    arguments = parser.parse_args()
    pages: dict[str, list[PageText]] = defaultdict(list)
    for source in arguments.sources:
        language, file, fonts = source.split("=")
        text = load_text(Path(file))
        for place, font in enumerate((fonts.split(",") * arguments.pages)[: arguments.pages]):
            lines = next(islice(split_pages(text, font, arguments.lines), place, None))
            pages[language].append(PageText(lines, font))
    rows: list[dict[str, object]] = []
    print(sum(map(len, pages.values())), "pages", flush=True)
    for (language, language_pages), dpi, is_degraded in product(pages.items(), arguments.dpi, (False, True)):
        rows.append(
            {"language": language, "dpi": dpi, "degraded": is_degraded, **measure(language_pages, dpi, is_degraded)}
        )
        rows[-1]["load"] = os.getloadavg()[0]
        print(json.dumps(rows[-1]), flush=True)
    if arguments.json:
        write_rows(arguments.json, rows)


def measure(pages: Sequence[PageText], dpi: int, is_degraded: bool) -> Mapping[str, object]:
    """Return the accuracy of characters and words in percent, the processor time of a page and the peak memory."""
    right: dict[str, int] = defaultdict(int)
    total: dict[str, int] = defaultdict(int)
    readings = []
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process,
    ):
        path = Path(folder, "page.png")
        for page in pages:
            image, text = render(page.lines, page.font, dpi)
            (degrade(image) if is_degraded else image).save(path)
            del image
            reading = process.submit(read_file, path).result()
            readings.append(reading)
            font = Path(page.font).stem
            units = {"characters": split_characters} | ({"words": str.split} if " " in page.lines[0] else {})
            for unit, split in units.items():
                expected, actual = split(normalize(text)), split(normalize(reading.text))
                blocks = SequenceMatcher(None, expected, actual, autojunk=False).get_matching_blocks()
                for name in (unit, f"{unit} {font}"):
                    right[name] += sum(block.size for block in blocks)
                    total[name] += len(expected)
    shares = {name: round(100 * right[name] / total[name], 2) for name in total}
    seconds = sum(reading.seconds for reading in readings) / len(readings)
    return {
        "pages": len(pages),
        **{unit: shares.get(unit) for unit in ("characters", "words")},
        "words_by_font": {name.split()[1]: share for name, share in shares.items() if name.startswith("words ")},
        "uncertain": sum(reading.uncertain for reading in readings),
        "errors": sorted({reading.error for reading in readings if reading.error}),
        "cpu_seconds_a_page": round(seconds, 2),
        "pages_a_minute_on_two_cores": round(120 / seconds, 1),
        "peak_mb": max(reading.peak_bytes for reading in readings) // 2**20,
    }


def read_file(path: Path) -> Reading:
    """Return what this process reads in a picture."""
    start = time.process_time()
    text, uncertain, error = "", 0, ""
    try:
        content = read_picture(Source.from_bytes(path.read_bytes()))
        text, uncertain = content.text, len(content.removals.get(UNCERTAIN, ()))
    except ReadError as failure:
        error = str(failure)
    return Reading(text, uncertain, time.process_time() - start, get_peak_memory(), error)


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
    """Return the text of a file without its first pages; of a ``corpus.jsonl`` the texts of its documents."""
    if file.suffix == ".pdf":
        with pypdfium2.PdfDocument(file) as document:
            return "\n".join(document[place].get_textpage().get_text_range() for place in range(8, len(document))[:20])
    text = file.read_text(encoding="utf-8")
    if file.suffix != ".jsonl":
        return text[4000:60000]
    return "\n".join(json.loads(line)["text"] for line in text.splitlines()[:60])


def split_pages(text: str, font_file: str, count: int) -> Iterator[list[str]]:
    """Yield the lines of each page of a text, ``count`` a page."""
    font = ImageFont.truetype(font_file, 100)
    width = (8.27 - 2 * _MARGIN) * 72 / _SIZE * 100
    text = re.sub(r"[\u00ad\ufffe\ufffd]", "", re.sub(r"[\ue000-\uf8ff]|(?<=\w)[-\u00ad\ufffe]\s*\n", "", text))
    lines: list[str] = []
    line = ""
    for word in re.findall(r"[\u2e80-\uffef]|[^\s\u2e80-\uffef]+\s*|\s+", re.sub(r"\s+", " ", text)):
        if font.getlength((line + word).rstrip()) > width:
            lines.append(line.strip())
            line = ""
        line += word
        if len(lines) == count:
            yield lines
            lines = []


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
