"""Word recall of the readers on a folder of files, against the words that independent converters find.

    python benchmarks/reading.py FOLDER [--out FILE] [--cache DIR] [--only EXTENSIONS]

The converters are poppler's pdftotext for PDF, LibreOffice for office formats, and the `innerText` of Chromium for HTML
and EPUB (Debian: poppler-utils, libreoffice-writer, -calc and -impress, chromium). The formats of a missing converter
are skipped. Neither side is the truth: a converter omits notes and comments, and repeats each page's header.

Recall is the share of a converter's words that the reader returns. A word counts as returned if it occurs as often in
the text, or if its letters stand there with those of both neighbours, so that spaces and hyphens at the end of lines do
not matter. Lines that the reader removes, counts and lists (page headers, contents) are among its words. Order is the
share of adjacent pairs of words that are adjacent in the text too. Surplus is the share of the reader's words that the
converter does not have. Equal files are measured once.

`reading_reasons.json` has the reason why a reader returns fewer words of a file than the converter, if this is no fault
of the reader. Each file below 95 % should have one: the row of its format counts those that have none.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unicodedata
import zipfile
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.parse import unquote
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pypdfium2  # type: ignore[import-untyped]  # has no type hints
from measured_rows import write_rows

from polyad.config import ReadSettings
from polyad.errors import ReadError
from polyad.model import Document
from polyad.readers.folder.files import FileReader
from polyad.text.removals import CONTENTS, HEADERS

BATCH, SECONDS, MORE_SECONDS = 20, 40, 5
"""Files in one run of a converter, its seconds, and more for each file. What fails in a batch is tried alone."""

MAX_BYTES = 50_000_000
"""Bytes of a converter's output that are read; a sheet with a value in its last cell has gigabytes of tabs."""

CALC_TEXT = "csv:Text - txt - csv (StarCalc):9,34,76,1,,0,false,true,true,false,false,-1"
"""LibreOffice's export of each sheet to a text file, with tabs, UTF-8 and cells as displayed."""

PARAGRAPHS = ("p", "h", "footer-decl", "header-decl")
GENERATED = ("date", "time", "page-number", "page-count", "date-time", "header", "footer", "file-name", "note-citation")
INDEXES = ("table-of-content", "illustration-index", "table-index", "object-index")
INITIALS = ("creator", "creator-initials", "sender-initials")
PROPERTIES = ("annotation", "ruby-text", "tracked-changes", "title", "desc", "binary-data", "event-listeners")
NO_TEXT = (*GENERATED, *INDEXES, *INITIALS, *PROPERTIES)
"""Elements of OpenDocument: those with a text of their own, and those whose text is not the file's."""

FRAMES = """<!DOCTYPE html><meta charset="utf-8"><body>{frames}<script>addEventListener("load", () => {{
const texts = [...document.querySelectorAll("iframe")].map(frame => {{ const page = frame.contentDocument;
page?.querySelectorAll("{navigation}").forEach(element => element.remove());
return page ? page.body ? page.body.innerText : page.documentElement.textContent : null }});
document.body.textContent = encodeURIComponent(JSON.stringify(texts)) }})</script></body>"""
NAVIGATION = "nav,footer,[role=navigation],[role=contentinfo],[role=search],option:not(:checked)"
"""Elements that say of themselves that they are no content, or no value: readers leave them out, and so do we."""

FRAME = '<iframe sandbox="allow-same-origin" width="1200" height="900" src="{address}"></iframe>'

_WORD = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u312f\u31a0-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
    r"|\d+|[^\W\d_]+"
)
"""A number, a word, or a letter of a script without spaces; Hangul is among them, as PDFs often lack its spaces."""

REASONS = Path(__file__).with_name("reading_reasons.json")
"""The ends of the paths of files whose recall has a reason, by reason."""

_NUMBER = re.compile(r"(?<![\d.])\d{1,15}(?:\.\d+)?(?![\d.])")
_OFFICE_WORDS = re.compile(r"\bErr:\d{3}\b|\bTotal Result\b|\(empty\)")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = re.compile(rf"(?<![^\W\d_])({'|'.join(_MONTHS)})[a-z]{{0,6}}(?![^\W\d_])", re.IGNORECASE)

_SERIES = re.compile(r"^Series\d+$", re.MULTILINE)
"""Name that LibreOffice gives to a series of a chart that has none."""

SUFFICIENT, LITTLE = 0.99, 0.01
"""Recall of a file that is read well, and a difference of recall without meaning."""

_LISTED = 30
"""Missing words that are listed for a file."""

Texts = dict[Path, str]


class Reading(NamedTuple):
    """The text or failure of each file of a format, and the processor seconds and memory of reading all of them."""

    texts: Mapping[Path, str]
    failures: Mapping[Path, str]
    seconds: float
    peak_mb: float


class FileRow(NamedTuple):
    """The measured values of a file; see the top of this script."""

    file: str
    format: str
    words: int
    recall: float
    order: float
    surplus: float
    failure: str
    reason: str
    missing: Sequence[str]


def main() -> None:
    """Convert and read the files below the folder, print a table and the files below 99 %, and save the rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--out", type=Path, metavar="FILE", help="save the rows here, as JSON")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="keep the texts of the converters here")
    parser.add_argument("--only", default=",".join(CONVERTERS), help="extensions, such as .pdf,.docx")
    arguments = parser.parse_args()
    files: list[FileRow] = []
    formats: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as temporary:
        for extension in arguments.only.split(","):
            paths = list_distinct_files(arguments.folder, extension)
            if not paths or (converted := convert(paths, extension, arguments.cache or Path(temporary))) is None:
                continue
            reading = read_in_new_process(paths)
            rows = [
                measure_file(path, arguments.folder, converted[path], reading)
                for path in paths
                if find_words(converted[path])
            ]
            files += rows
            formats.append(summarise(extension, rows, reading))
            print(format_row(formats[-1]), flush=True)
    for row in sorted(files, key=lambda row: (row.format, row.recall)):
        if row.recall < SUFFICIENT:
            print(f"{row.recall:7.1%}  {row.file}: {row.reason or row.failure or ' '.join(row.missing)}")
    if arguments.out:
        write_rows(arguments.out, [*formats, *(row._asdict() for row in files)])


def list_distinct_files(folder: Path, extension: str) -> list[Path]:
    """Return the files with the extension below the folder, sorted; of files with equal bytes the first one."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() == extension and path.is_file())
    return sorted({hash_file(path): path for path in reversed(paths)}.values())


def hash_file(path: Path) -> str:
    """Return the SHA-256 of the bytes of a file, as hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


# Converters


def convert(paths: Sequence[Path], extension: str, cache: Path) -> Texts | None:
    """Return the text of each file by the converter of its format, empty where it fails; None if it is missing.

    Args:
        paths: Files of one format.
        extension: Extension of the files, in lower case.
        cache: Folder of texts from earlier runs, by the hash of the file; new texts are added.
    """
    program, function = CONVERTERS[extension]
    if shutil.which(program) is None:
        print(f"{extension}: skipped, because {program} is not installed", file=sys.stderr)
        return None
    cache.mkdir(parents=True, exist_ok=True)
    stored = {path: cache / f"{hash_file(path)}{extension}.txt" for path in paths}
    for size in (BATCH, 1):
        left = [path for path in paths if not stored[path].exists()]
        for start in range(0, len(left), size):
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                copies = {path: Path(folder) / f"{k}{extension}" for k, path in enumerate(left[start : start + size])}
                for path, copy in copies.items():
                    shutil.copyfile(path, copy)
                for copy, text in function(list(copies.values())).items():
                    path = next(path for path in copies if copies[path] == copy)
                    stored[path].write_text(text, encoding="utf-8", errors="replace")
        if size == 1:
            for path in left:
                stored[path].touch()
    return {path: file.read_text(encoding="utf-8") for path, file in stored.items()}


def run_program(arguments: Sequence[str | Path], count: int) -> str:
    """Return the standard output of a converter for some files; empty if it exceeds its time.

    The converter has a process group of its own, because LibreOffice's processes outlive the one that was started.
    """
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            return process.communicate(timeout=SECONDS + MORE_SECONDS * count)[0].decode("utf-8", "replace")
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return ""


def convert_pdfs(paths: Sequence[Path]) -> Texts:
    """Return the text of PDF files by pdftotext."""
    return {path: run_program(("pdftotext", "-enc", "UTF-8", path, "-"), 1) for path in paths}


def convert_by_office(target: str, paths: Sequence[Path]) -> Texts:
    """Return the text of office files by LibreOffice, which ``target`` tells the format to convert to.

    A workbook has a file for each sheet. Other files become XML, which has more texts than an export as plain text.
    """
    folder = paths[0].parent
    profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
    flags = (profile, "--headless", "--convert-to", target)
    run_program(("soffice", *flags, "--outdir", folder / "out", *paths), len(paths))
    results = {path: sorted((folder / "out").glob(f"{path.stem}[.-]*")) for path in paths}
    parse = parse_flat_file if target in ("fodp", "fodt") else str
    return {
        path: "\n".join(parse(file.read_text(encoding="utf-8", errors="replace")) for file in files)
        for path, files in results.items()
        if files and sum(file.stat().st_size for file in files) < MAX_BYTES
    }


def parse_flat_file(xml: str) -> str:
    """Return the texts of a flat OpenDocument file: body, notes, charts, headers, and masters that have slides.

    What LibreOffice generates has no words of the file: dates, numbers of pages, marks of notes, prompts of empty
    placeholders, tables of contents, "Series2" in charts. Comments, deleted text, readings of words and descriptions of
    pictures are no text either.
    """
    root = ElementTree.fromstring(xml)
    regions = [region for region in root.iterfind(".//{*}changed-region") if region.find("{*}deletion") is not None]
    text = _FlatText({value for region in regions for name, value in region.items() if name.endswith("}id")})
    masters = root.iterfind("{*}master-styles/{*}master-page/*")
    shapes = [shape for shape in masters if not any(key.endswith("}class") for key, _ in shape.items())]
    texts = ["".join(text.iterate(part)) for part in (*shapes, *root.iterfind("{*}body/*"))]
    texts = [_SERIES.sub("", text) for text in texts]
    return "\n".join(dict.fromkeys(texts))  # LibreOffice copies headers and footers to each kind of page


class _FlatText:
    """Finds the text of elements of OpenDocument that is not deleted."""

    def __init__(self, deletions: Set[str]) -> None:
        self._deletions = deletions
        self._open: set[str] = set()  # deletions that have begun and not ended

    def iterate(self, element: Element, inside: bool = False) -> Iterator[str]:
        """Yield the texts of an element, which are inside a paragraph or only those of the paragraphs in it."""
        name = element.tag.rpartition("}")[2]
        if name in NO_TEXT:
            return
        change = next((value for key, value in element.items() if key.endswith("}change-id")), "")
        if change in self._deletions:
            (self._open.add if name == "change-start" else self._open.discard)(change)
        is_paragraph = name in PARAGRAPHS
        inside = is_paragraph or (inside and name != "document")
        yield "\n" if is_paragraph else " " if name in ("s", "tab", "line-break") else ""
        yield (element.text or "") if inside and not self._open else ""
        for child in element:
            yield from self.iterate(child, inside)
            yield (child.tail or "") if inside and not self._open else ""
        yield "\n" if is_paragraph else ""


def convert_by_browser(paths: Sequence[Path]) -> Texts:
    """Return what Chromium displays of HTML files, without running their scripts."""
    page = paths[0].parent / "frames.html"
    frames = "".join(FRAME.format(address=path.as_uri()) for path in paths)
    page.write_text(FRAMES.format(frames=frames, navigation=NAVIGATION), encoding="utf-8")
    flags = (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--host-resolver-rules=MAP * ~NOTFOUND",
    )
    access = ("--allow-file-access-from-files", f"--user-data-dir={page.parent / 'profile'}")
    output = run_program(("chromium", *flags, *access, "--dump-dom", page.as_uri()), len(paths))
    match = re.search(r"<body>(%5B.*?)</body>", output, re.DOTALL)
    texts: list[str | None] = json.loads(unquote(match[1])) if match else []
    return {path: text for path, text in zip(paths, texts, strict=False) if text is not None}


def convert_epubs(paths: Sequence[Path]) -> Texts:
    """Return what Chromium displays of the HTML files in EPUB files, in the order of their names."""
    return {path: text for path in paths if (text := _convert_epub(path)) is not None}


def _convert_epub(path: Path) -> str | None:
    folder = path.with_suffix("")
    try:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
    except (OSError, ValueError, RuntimeError, zipfile.BadZipFile):
        return None
    pages = sorted(page for page in folder.rglob("*") if page.suffix.lower() in (".xhtml", ".html", ".htm"))
    texts = convert_by_browser([path, *pages])
    return "\n".join(text for page, text in texts.items() if page != path) if texts else None


def _office(target: str) -> Callable[[Sequence[Path]], Texts]:
    return partial(convert_by_office, target)


CONVERTERS: Mapping[str, tuple[str, Callable[[Sequence[Path]], Texts]]] = {
    ".pdf": ("pdftotext", convert_pdfs),
    ".docx": ("soffice", _office("fodt")),
    ".odt": ("soffice", _office("fodt")),
    ".xlsx": ("soffice", _office(CALC_TEXT)),
    ".pptx": ("soffice", _office("fodp")),
    ".html": ("chromium", convert_by_browser),
    ".htm": ("chromium", convert_by_browser),
    ".xhtml": ("chromium", convert_by_browser),
    ".epub": ("chromium", convert_epubs),
}
"""Program and function that convert a format, by extension."""


# polyad


def read_in_new_process(paths: Sequence[Path]) -> Reading:
    """Return what polyad reads in files of one format, in a process of its own, whose children's memory is measured."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as executor:
        return executor.submit(read, paths).result()


def read(paths: Sequence[Path]) -> Reading:
    """Return titles and texts of the files, with the processor seconds and the peak memory of the worker processes."""
    texts: dict[Path, list[str]] = {}
    failures: dict[Path, str] = {}
    by_name = {str(path): path for path in paths}
    for result in FileReader(ReadSettings(workers=1)).read(paths):
        if isinstance(result, Document):
            texts.setdefault(by_name[result.id], []).append(f"{result.title}\n{result.text}")
        else:
            failures[by_name[result.id]] = result.reason
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    joined = {path: "\n".join(parts) for path, parts in texts.items()}
    return Reading(joined, failures, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


# Measures


def find_words(text: str) -> list[str]:
    """Return the words of a text in compatibility form, without case and without soft hyphens."""
    return _WORD.findall(unicodedata.normalize("NFKC", text.replace("\xad", "")).casefold())


def align_numbers(converted: str, text: str) -> tuple[str, str]:
    """Return the text of the converter and that of the reader with equal forms of equal numbers and dates.

    LibreOffice displays 1234.567 as "1,234.6" and a date as "1-Mar-23" where a cell's format says so. The reader writes
    numbers with all digits, and dates as "2023-03-01". "Err:502", "Total Result" and "(empty)" are words of LibreOffice
    about formulas and in pivot tables.
    """
    converted, text = (shorten_numbers(one) for one in (_OFFICE_WORDS.sub("", converted), text))
    numbers = sorted((float(number), number) for number in _NUMBER.findall(text))

    def restore(match: re.Match[str]) -> str:
        """Return the reader's number that rounds to a number of the converter, each number of the reader once."""
        value, half = float(match[0]), 0.501 * 10.0 ** -len(match[0].partition(".")[2])
        place = bisect_left(numbers, (value, match[0]))
        if numbers[place : place + 1] != [(value, match[0])]:
            place = bisect_left(numbers, (value - half, ""))
        is_rounded = place < len(numbers) and numbers[place][0] <= value + half
        return numbers.pop(place)[1] if is_rounded else match[0]

    return _NUMBER.sub(restore, converted), text


def shorten_numbers(text: str) -> str:
    """Return a text with numbers, years and the names of months in their shortest form.

    >>> shorten_numbers("1,234.50 on 01-Mar-2023")
    '1234.5 on 1-3-23'
    """
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
    text = re.sub(r"\b(\d{1,2})\.(\d{1,2})\.(\d{4}|\d{2})\b", r"\1-\2-\3", text)
    text = _MONTH.sub(lambda name: str(_MONTHS.index(name[1].lower()) + 1), text)
    text = re.sub(r"(?<![\d.])(\d+)(?:\.0+|(\.\d*?[1-9])0+)(?![\d.])", r"\1\2", text)
    return re.sub(r"\b(?:19|20)(?=\d\d\b)|(?<![\d.])0+(?=\d)", "", text)


def measure_file(path: Path, folder: Path, converted: str, reading: Reading) -> FileRow:
    """Return the measures of a file; if words are missing, those with the lines that the reader removed and lists."""
    file, failure, text = path.relative_to(folder), reading.failures.get(path, ""), reading.texts.get(path, "")
    pair = align_numbers(converted, text) if path.suffix.lower() == ".xlsx" else (converted, text)
    row = measure(file, *pair, failure)
    if row.recall >= SUFFICIENT:
        return row
    with suppress(ReadError):
        removals = FileReader(ReadSettings()).list_removals(path)
        lines = [line for kind in (HEADERS, CONTENTS) for line in removals.get(kind, ())]
        row = row._replace(recall=measure(file, pair[0], "\n".join([pair[1], *lines]), failure).recall)
    if path.suffix.lower() == ".pdf" and not row.reason and row.recall < SUFFICIENT:
        row = row._replace(reason=find_pdf_reason(path, file, converted, row))
    return row


def find_pdf_reason(path: Path, file: Path, converted: str, row: FileRow) -> str:
    """Return why poppler finds other words in a PDF than the reader; empty if none is known."""
    if "cannot be read" in row.failure:
        return f"The reader names the pages whose characters have no meaning in PDFium: {row.failure[:80]}"
    try:
        document = pypdfium2.PdfDocument(path)
        drawn = "\n".join(page.get_textpage().get_text_range() for page in document)
    except pypdfium2.PdfiumError:
        return "PDFium cannot open the file."
    if measure(file, converted, drawn, "").recall <= row.recall + LITTLE:
        return "PDFium returns other characters, or the letters of turned text, buttons and lists of choices otherwise."
    return ""


def measure(file: Path, converted: str, text: str, failure: str) -> FileRow:
    """Return the measures of a file from the text of the converter and the text of the reader."""
    reference, words = find_words(converted), find_words(text)
    letters = "".join(words)
    missing = list(find_missing(reference, words, letters))
    pairs, reader_pairs = Counter(pairwise(reference)), set(pairwise(words))
    adjacent = sum(
        count
        for (first, second), count in pairs.items()
        if (first, second) in reader_pairs or (len(first + second) > 7 and first + second in letters)
    )
    surplus = (Counter(words) - Counter(reference)).total()
    return FileRow(
        str(file),
        file.suffix.lower(),
        len(reference),
        round(1 - len(missing) / len(reference), 5),
        round(adjacent / pairs.total(), 5) if pairs else 1.0,
        round(surplus / len(words), 5) if words else 0.0,
        failure,
        find_reason(file.as_posix()),
        missing[:_LISTED],
    )


@cache
def read_reasons() -> Mapping[str, Sequence[str]]:
    """Return the ends of the paths of files by reason."""
    reasons: Mapping[str, Sequence[str]] = json.loads(REASONS.read_text(encoding="utf-8"))
    return reasons


def find_reason(path: str) -> str:
    """Return the reason why the converter finds other words in a file than the reader; empty if none is known."""
    return next((reason for reason, ends in read_reasons().items() if path.endswith(tuple(ends))), "")


def find_missing(reference: Sequence[str], words: Iterable[str], letters: str) -> Iterator[str]:
    """Yield each word of the reference that is missing: with too few occurrences, and not between its neighbours.

    Args:
        reference: Words of the converter.
        words: Words of the reader.
        letters: All words of the reader, joined.
    """
    missing_counts = Counter(reference) - Counter(words)
    contexts: dict[str, bool] = {}
    for k, word in enumerate(reference):
        if missing_counts[word]:
            context = "".join(reference[max(0, k - 1) : k + 2])
            if not contexts.setdefault(context, context in letters):
                missing_counts[word] -= 1
                yield word


def summarise(extension: str, rows: Sequence[FileRow], reading: Reading) -> dict[str, object]:
    """Return the row of a format."""
    recalls = [row.recall for row in rows]
    return {
        "format": extension,
        "files": len(reading.texts) + len(reading.failures),
        "with words": len(rows),
        "median recall": median(recalls) if rows else None,
        "share from 99 %": round(sum(recall >= SUFFICIENT for recall in recalls) / len(rows), 4) if rows else None,
        "share from 95 %": round(sum(recall >= 0.95 for recall in recalls) / len(rows), 4) if rows else None,
        "below 95 % without reason": sum(row.recall < 0.95 and not row.reason for row in rows),
        "median order": median(row.order for row in rows) if rows else None,
        "seconds": round(reading.seconds, 2),
        "peak MB": round(reading.peak_mb),
    }


def format_row(row: Mapping[str, object]) -> str:
    """Format the row of a format."""
    return "  ".join(f"{name} {value}" for name, value in row.items())


if __name__ == "__main__":
    main()
