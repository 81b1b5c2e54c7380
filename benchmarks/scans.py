"""Questions about scanned manuals: hits, page numbers and marked boxes, beside the same manuals with their text.

    python benchmarks/manuals/fetch.py FOLDER
    python benchmarks/scans.py FOLDER [--questions 20] [--dpi 200] [--around 1] [--work DIR] [--json FILE]

The questions of ``manuals/questions.jsonl`` whose evidence is one sentence of a PDF file are taken in turn from each
file. Of each file, the pages with evidence and ``--around`` pages before and after these are written to two new files:
one with their text, and one with a grey JPEG picture of each page. Both are indexed alone. Printed are the questions
whose sentence is in the first three hits (of scans: nine of ten of its letters), those with the right page, and those
whose boxes cover the sentence, also if no hit has it: at least 80 % of the area that PDFium states for its lines in the
file with text, with at most 2.5 times that area marked. The folder ``--work`` keeps the files, so that a second run
recognises nothing.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import time
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pypdfium2  # type: ignore[import-untyped]  # has no stubs
from measured_rows import write_rows
from pypdfium2 import raw

from polyad import Engine
from polyad.model import Pagination

QUESTIONS = Path(__file__).parent / "manuals" / "questions.jsonl"
HITS, LETTERS = 3, 0.9
COVERED, MARKED = 0.8, 2.5
GRID = 1500
"""Cells of a page in each direction, in which areas are measured."""

Mask = npt.NDArray[np.bool_]


class Question(NamedTuple):
    """A question, the file with its evidence, the page from 1, and the sentence."""

    text: str
    file: str
    page: int
    sentence: str


def main() -> None:
    """Build both versions of the files, index them, and print a row for each question and version."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="the folder that manuals/fetch.py filled")
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--dpi", type=int, default=200)
    parser.add_argument("--around", type=int, default=1, help="pages before and after each page with evidence")
    parser.add_argument("--work", type=Path, default=Path("scanned-manuals"))
    parser.add_argument("--json", type=Path, help="save the rows here")
    arguments = parser.parse_args()
    questions = choose_questions(arguments.folder, arguments.questions)
    pages: dict[str, set[int]] = defaultdict(set)
    for question in questions:
        pages[question.file].update(range(question.page - arguments.around, question.page + arguments.around + 1))
    numbers = {file: sorted(number for number in selection if number > 0) for file, selection in pages.items()}
    for file, selection in numbers.items():
        build_versions(arguments.folder / file, selection, arguments.work, arguments.dpi)
    print(f"{len(questions)} questions, {len(numbers)} files, {sum(map(len, numbers.values()))} pages")
    rows: list[dict[str, object]] = []
    for version in ("text", "scan"):
        start = time.perf_counter()
        with Engine.open(arguments.work / f"index-{version}") as engine:
            report = engine.index([arguments.work / version])
            print(f"{version}: indexed in {time.perf_counter() - start:.0f} s, {len(report.failures)} failures")
            for question in questions:
                own_page = numbers[question.file].index(question.page) + 1
                row = judge(engine, question, own_page, arguments.work / "text" / format_name(question.file))
                rows.append({"version": version, "file": question.file, "page": own_page, **row})
                print(json.dumps(rows[-1]), flush=True)
        version_rows = [row for row in rows if row["version"] == version]
        total = {
            name: sum(bool(row.get(name)) for row in version_rows) for name in ("hit", "right_page", "right_boxes")
        }
        print(f"{version}: {total} of {len(version_rows)}")
    if arguments.json:
        write_rows(arguments.json, rows)


def choose_questions(folder: Path, count: int) -> list[Question]:
    """Return the first questions about each file, then the second ones, and so on."""
    by_file: dict[str, list[Question]] = defaultdict(list)
    for line in QUESTIONS.read_text(encoding="utf-8").splitlines():
        values = json.loads(line)
        first, *others = values["evidence"]
        if not others and first["page"] and first["file"].endswith(".pdf") and (folder / first["file"]).exists():
            by_file[first["file"]].append(Question(values["text"], first["file"], first["page"], first["text"]))
    in_turn = chain.from_iterable(zip_longest(*by_file.values()))
    return [question for question in in_turn if question][:count]


def format_name(file: str) -> str:
    """Return the name of a file of the folder without folders."""
    return file.replace("/", "-")


def build_versions(source: Path, numbers: Sequence[int], work: Path, dpi: int) -> None:
    """Write some pages of a PDF file as a PDF file with text, and as one with pictures."""
    name = format_name(str(Path(source.parent.name, source.name)))
    text, scan = work / "text" / name, work / "scan" / name
    if text.exists() and scan.exists():
        return
    for file in (text, scan):
        file.parent.mkdir(parents=True, exist_ok=True)
    with pypdfium2.PdfDocument(source) as document, pypdfium2.PdfDocument.new() as selection:
        selection.import_pages(document, [number - 1 for number in numbers])
        selection.save(text)
        images = [document[number - 1].render(scale=dpi / 72, grayscale=True).to_pil() for number in numbers]
    images[0].save(scan, save_all=True, append_images=images[1:], resolution=dpi, quality=70)


def judge(engine: Engine, question: Question, page: int, text_file: Path) -> dict[str, object]:
    """Return whether the sentence is among the first hits, and whether its page and its boxes are right."""
    hits = [hit.passage for hit in engine.search(question.text, k=HITS).passages]
    others = [passage for passage in engine.catalogue.passages() if Path(passage.document_id).name == text_file.name]
    for rank, passage in enumerate([*hits, *others], 1):
        span = find_sentence(question.sentence, passage.text)
        if Path(passage.document_id).name != text_file.name or not span:
            continue
        start, end = (passage.start + offset for offset in span)
        page_number = Pagination(engine.catalogue.document(passage.document_id).places).find(start).page
        image = engine.page_images.render(passage.id, start=start, end=end)
        expected = draw(locate_sentence(text_file, page, question.sentence))
        marked = draw(image.boxes)
        covered = (expected & marked).sum() / max(expected.sum(), 1)
        ratio = marked.sum() / max(expected.sum(), 1)
        return {
            "hit": rank if rank <= len(hits) else 0,
            "right_page": page_number == image.page == page,
            "covered": round(float(covered), 3),
            "marked": round(float(ratio), 2),
            "right_boxes": bool(covered >= COVERED and ratio <= MARKED),
        }
    return {"hit": 0}


def find_sentence(sentence: str, text: str) -> tuple[int, int] | None:
    """Return the start and end of a sentence in a text that may have other spaces, hyphens and some wrong letters."""
    letters, offsets = fold(text)
    sentence_letters, _ = fold(sentence)
    blocks = SequenceMatcher(None, sentence_letters, letters, autojunk=False).get_matching_blocks()
    long_blocks = [block for block in blocks if block.size > 2] or blocks[:1]
    if sum(block.size for block in long_blocks) < LETTERS * len(sentence_letters):
        return None
    start, end = long_blocks[0].b, long_blocks[-1].b + long_blocks[-1].size
    if end - start > 1.5 * len(sentence_letters):  # the letters of other sentences
        return None
    return offsets[start], offsets[end - 1] + 1


def fold(text: str) -> tuple[str, list[int]]:
    """Return the letters and digits of a text, and the place of each."""
    pairs = [
        (letter, place)
        for place, character in enumerate(text)
        for letter in unicodedata.normalize("NFKC", character).casefold()
        if letter.isalnum()
    ]
    return "".join(letter for letter, _ in pairs), [place for _, place in pairs]


def locate_sentence(file: Path, page_number: int, sentence: str) -> list[tuple[float, ...]]:
    """Return the boxes of the lines of a sentence in a PDF file with text, as shares of the page."""
    with pypdfium2.PdfDocument(file) as document:
        page = document[page_number - 1]
        width, height = page.get_size()
        text_page = page.get_textpage()
        characters = [chr(raw.FPDFText_GetUnicode(text_page, place)) for place in range(text_page.count_chars())]
        span = find_sentence(sentence, "".join(characters))
        if span is None:
            raise SystemExit(f"{file.name}, page {page_number}: the sentence is not on the page: {sentence}")
        lines: list[list[float]] = []
        for place in range(*span):
            left, bottom, right, top = get_box(text_page, place)
            if not characters[place].isalnum() or right <= left:
                continue
            if lines and abs((lines[-1][1] + lines[-1][3]) / 2 - (height - (top + bottom) / 2)) < 8:
                last = lines[-1]
                lines[-1] = [
                    min(last[0], left),
                    min(last[1], height - top),
                    max(last[2], right),
                    max(last[3], height - bottom),
                ]
            else:
                lines.append([left, height - top, right, height - bottom])
        return [(a / width, b / height, c / width, d / height) for a, b, c, d in lines]


def get_box(text_page: Any, place: int) -> tuple[float, float, float, float]:
    """Return the left, lower, right and upper end of a character in points."""
    ends = tuple(ctypes.c_double() for _ in range(4))
    raw.FPDFText_GetCharBox(text_page, place, *map(ctypes.byref, ends))
    left, right, bottom, top = (end.value for end in ends)
    return left, bottom, right, top


def draw(boxes: Sequence[Sequence[float]]) -> Mask:
    """Return the cells of a page that boxes cover."""
    mask = np.zeros((GRID, GRID), dtype=np.bool_)
    for left, top, right, bottom in boxes:
        mask[round(top * GRID) : round(bottom * GRID), round(left * GRID) : round(right * GRID)] = True
    return mask


if __name__ == "__main__":
    main()
