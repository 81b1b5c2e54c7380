"""Reading in other processes: what a document may not do to the run, and what it makes no difference to."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import docx  # type: ignore[import-untyped, unused-ignore]  # typed only when its stubs are installed
import openpyxl
import pytest
from reportlab.pdfgen.canvas import Canvas  # type: ignore[import-untyped, unused-ignore]  # likewise

from polyad.config import ReadSettings
from polyad.errors import SettingError
from polyad.model import Document, Failure, Location, Section
from polyad.readers.folder.files import FileReader
from polyad.readers.format import Content, Format
from polyad.readers.formats import list_formats
from polyad.readers.pool.one_file import read_content
from polyad.text.json_types import format_value, parse_value

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits are those of the system")

LEAST_MEMORY = 256 * 1024 * 1024

READERS = """
import ctypes, os, signal, time
from pathlib import Path
from polyad.readers.format import Content

held = []

def endless():
    while True:
        pass

def stuck():
    time.sleep(600)

def memory():
    while True:
        held.append(bytearray(10**7))

def memory_wrapped():
    try:
        memory()
    except Exception as error:
        held.clear()
        raise RuntimeError("not a document, or damaged") from error

def large():
    bytearray(10**8)
    return str(os.getpid())

def killed():
    os.kill(os.getpid(), signal.SIGKILL)

def crash():
    ctypes.string_at(0)

def leave():
    os._exit(3)

def printed():
    print('{"failure": "not mine"}', flush=True)
    os.write(1, b"no JSON\\n")
    return "printed"

def process():
    return str(os.getpid())

def long():
    return "x" * 1001

def parts():
    from polyad.model import Section
    return Content("", "x", (Section("x", 0, 1),) * 500_001)

def both():
    Path(f"here-{os.getpid()}").touch()
    while len(list(Path().glob("here-*"))) < 2:
        time.sleep(0.01)
    return "both"

def read(data):
    made = globals()[data.decode().split()[0]]()
    return made if isinstance(made, Content) else Content("", made)
"""
"""A reader of files that say what it is to do."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory."""
    (tmp_path / "readers").mkdir()
    (tmp_path / "readers" / "hostile_readers.py").write_text(READERS)
    monkeypatch.syspath_prepend(tmp_path / "readers")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def reader(settings: ReadSettings | None = None) -> FileReader:
    return FileReader(settings, [Format(name="do", extensions=(".do",), read="hostile_readers:read", takes_bytes=True)])


def done(*actions: str, **settings: float) -> Iterator[Document | Failure]:
    """What comes of files that have their reader do something, in the order of these."""
    paths = [Path(f"{number:02}-{action}.do") for number, action in enumerate(actions)]
    for path, action in zip(paths, actions, strict=True):
        path.write_text(action)
    return reader(ReadSettings(**settings)).read(paths)  # type: ignore[arg-type]


def list_texts(items: Iterator[Document | Failure]) -> list[str]:
    return [item.text if isinstance(item, Document) else item.reason for item in items]


TIME = "takes more than 1 seconds of processor time to read (max_seconds)"
MEMORY = "takes more than 268,435,456 bytes of memory to read (max_memory)"


@pytest.mark.attacks
@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("endless", TIME),
        ("memory", MEMORY),
        ("memory_wrapped", MEMORY),
        ("killed", f"the worker process ended (SIGKILL): the file is damaged, or {MEMORY}"),
        ("crash", f"the worker process ended (SIGSEGV): the file is damaged, or {MEMORY}"),
        ("leave", f"the worker process ended (exit code 3): the file is damaged, or {MEMORY}"),
        ("long", "1,001 characters of text; at most 1,000 are read (max_characters)"),
        ("parts", "500,001 headings and pages; at most 200,000 are read: split it"),
        ("unknown", "the reader 'hostile_readers:read' failed: KeyError: 'unknown'"),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_hostile_document_is_one_failure_and_the_others_are_read(action: str, reason: str, workers: int) -> None:
    if action in ("memory", "memory_wrapped") and sys.platform != "linux":
        pytest.skip("keeps to no limit of memory")
    results = list_texts(
        done(
            *("printed", action, "printed", "printed"),
            max_seconds=1,
            max_memory=LEAST_MEMORY,
            max_characters=1000,
            workers=workers,
        )
    )
    assert results == ["printed", reason, "printed", "printed"]


@pytest.mark.attacks
def test_a_document_that_waits_without_end_is_given_up_by_the_clock() -> None:
    results = list_texts(done("stuck", "printed", max_seconds=0.2))
    assert results == ["takes more than 2 seconds by the clock to read (10 times max_seconds)", "printed"]


def test_a_process_reads_on_and_one_that_died_meanwhile_is_replaced() -> None:
    items = done(*["process"] * 8, workers=1)
    first, second = next(items), next(items)
    assert isinstance(first, Document)
    assert isinstance(second, Document)
    assert first.text == second.text
    os.kill(int(second.text), signal.SIGKILL)
    rest = list(items)
    assert len(rest) == 6
    assert sum(isinstance(item, Failure) for item in rest) <= 1, "only the one that it may have been at"
    assert isinstance(rest[-1], Document)
    assert rest[-1].text != first.text


def test_a_process_is_used_again_however_large_the_one_that_started_it_is() -> None:
    held = b"x" * (LEAST_MEMORY // 2)  # as an embedding model is
    first, second = list_texts(done("process", "process", workers=1, max_memory=LEAST_MEMORY))
    assert first == second
    assert held


def test_a_process_that_has_held_much_memory_is_not_used_again() -> None:
    large, after = list_texts(done("large", "process", workers=1, max_memory=LEAST_MEMORY))
    assert large != after


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("/bin/false", "the worker process did not start (exit code 1)"),
        ("/nowhere/python", "the worker process '/nowhere/python' did not start: No such file or directory"),
    ],
)
def test_processes_that_do_not_start_are_failures_of_documents(
    program: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", program)
    assert list_texts(done("printed", "printed")) == [reason, reason]


def test_two_files_are_read_at_a_time_and_come_in_order() -> None:
    assert list_texts(done("both", "both", workers=2)) == ["both", "both"]
    assert list_texts(done(*["process", "endless"] * 3, workers=2, max_seconds=1))[1::2] == [TIME] * 3


def is_running(pid: int) -> bool:
    """Whether there is such a process, and not only what is left of it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@needs_proc
def test_no_process_is_left_when_reading_is_given_up() -> None:
    items = done("process", "endless", "endless", "process", workers=2)
    first = next(items)
    assert isinstance(first, Document)
    assert is_running(int(first.text))
    items.close()  # type: ignore[attr-defined]
    assert not children_of(os.getpid())


def children_of(pid: int) -> list[int]:
    """The processes that a process began, if they read documents."""
    text = " ".join(path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children"))
    return [int(child) for child in text.split() if "readers.worker" in Path(f"/proc/{child}/cmdline").read_text()]


def slow_page() -> bytes:
    """A page that takes minutes: each of its elements stands in all before it."""
    return b"<ins>" * 1_900_000 + b"pump"


def until(condition: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.02)


@pytest.mark.attacks
@needs_proc
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_no_process_is_left_when_the_command_is_ended(sent: signal.Signals, code: int) -> None:
    Path("docs").mkdir()
    for name in ("a.html", "b.html", "c.html"):
        Path("docs", name).write_bytes(slow_page())
    command = [sys.executable, "-m", "polyad", "index", "docs", "--store", "kb", "--embedder", "hashing:16"]
    environment = {**os.environ, "POLYAD_READ_WORKERS": "2", "POLYAD_READ_MAX_SECONDS": "300"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, text=True) as running:
        until(lambda: len(children_of(running.pid)) == 2)
        time.sleep(1)  # they are at it
        children = children_of(running.pid)
        running.send_signal(sent)
        _, errors = running.communicate(timeout=60)
    assert running.returncode == code, errors
    assert len(children) == 2
    until(lambda: not any(map(is_running, children)), 20 if sent == signal.SIGKILL else 0.5)


# Real kinds of files


def archive(parts: dict[str, str]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in parts.items():
            packed.writestr(name, content)
    return file.getvalue()


def word(paragraphs: int, letters: int = 4) -> bytes:
    document, file = docx.Document(), io.BytesIO()
    document.core_properties.author = "Ines Moreau"
    document.core_properties.keywords = "pump, valve"
    document.add_heading("Pumps")
    document.add_paragraph("The pump is old.")
    document.save(file)
    with zipfile.ZipFile(file) as small:
        parts = {name: small.read(name).decode("latin-1") for name in small.namelist() if name.endswith((".xml", "s"))}
    more = f"<w:p><w:r><w:t>{'p' * letters}</w:t></w:r></w:p>" * paragraphs
    parts["word/document.xml"] = parts["word/document.xml"].replace("<w:body>", f"<w:body>{more}")
    return archive(parts)


def printed(pages: int, lines: int) -> bytes:
    file = io.BytesIO()
    canvas = Canvas(file)
    for page in range(pages):
        canvas.bookmarkPage(str(page))
        canvas.addOutlineEntry(f"Pump {page}", str(page))
        for line in range(lines):
            canvas.drawString(50, 800 - line % 80 * 9, f"The pump {page} has {line} valves.")
        canvas.showPage()
    canvas.save()
    return file.getvalue()


def workbook(rows: int, letters: int = 4) -> bytes:
    book, file = openpyxl.Workbook(write_only=True), io.BytesIO()
    sheet = book.create_sheet("Pumps")
    for row in range(rows):
        sheet.append(["name", "flow"] if not row else ["p" * letters, row])
    book.save(file)
    return file.getvalue()


def long_cell(letters: int) -> bytes:
    with zipfile.ZipFile(io.BytesIO(workbook(1))) as file:
        parts = {name: file.read(name).decode() for name in file.namelist()}
    cell = f'<c t="inlineStr"><is><t>{"p" * letters}</t></is></c>'
    parts["xl/worksheets/sheet1.xml"] = f"<worksheet><sheetData><row>{cell}</row></sheetData></worksheet>"
    return archive(parts)


def book(paragraphs: int) -> bytes:
    chapter = f"<html><body><h1>Pumps</h1>{'<p>The <i>pump</i> is <b>old</b>.</p>' * paragraphs}</body></html>"
    return archive(
        {
            "META-INF/container.xml": '<container><rootfiles><rootfile full-path="book.opf"/></rootfiles></container>',
            "book.opf": '<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="a" href="a.xhtml"/>'
            '</manifest><spine><itemref idref="a"/></spine></package>',
            "a.xhtml": chapter,
        }
    )


def page(paragraphs: int) -> bytes:
    return b"<html lang=en><title>Pumps</title><h1>Pumps</h1>" + b"<p>The <i>pump</i> is <b>old</b>." * paragraphs


KINDS: dict[str, tuple[Callable[[int], bytes], int]] = {
    "docx": (word, 200_000),
    "epub": (book, 200_000),
    "html": (page, 200_000),
    "pdf": (lambda count: printed(2 + count // 100, 80), 20_000),
    "xlsx": (workbook, 60_000),
}
"""How to make a file of each kind, and how large one is that takes seconds."""


def test_documents_are_the_same_as_those_read_in_this_process_and_come_in_order() -> None:
    made = [(Path(f"{number}.{kind}"), KINDS[kind][0](3 + number)) for number in range(3) for kind in KINDS]
    for path, data in made:
        path.write_bytes(data)
    paths = [path for path, _ in made]
    results = list(FileReader(ReadSettings(workers=3)).read(paths))
    assert [item.id for item in results] == [str(path) for path in paths]
    for path, item in zip(paths, results, strict=True):
        assert isinstance(item, Document), item
        here = read_content(path, list_formats()[path.suffix], ReadSettings())
        assert (item.text, item.sections, item.places) == (here.text, here.sections, here.places)
        assert here.metadata.items() <= item.metadata.items()


def test_content_survives_the_transfer_between_processes() -> None:
    content = Content(
        "A \u2028 title",
        "text \ud800\n",
        (Section("x", 0, 4), Section("y", 1, 2, 0.25)),
        (Location(0, 4, page=3), Location(4, 5, heading="h", sheet="s", slide=2)),
        {"words": ("a", "b"), "ratio": 0.1, "whole": 2**62, "is": True, "text": "x"},
        "https://pumps.example",
    )
    assert parse_value(json.loads(json.dumps(format_value(content))), Content) == content


@pytest.mark.attacks
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_any_kind_that_takes_too_long_is_ended(kind: str) -> None:
    make, count = KINDS[kind]
    Path(f"a.{kind}").write_bytes(make(count))
    Path("b.txt").write_text("The valve is new.")
    results = list_texts(FileReader(ReadSettings(max_seconds=0.5)).read([Path(f"a.{kind}"), Path("b.txt")]))
    assert results == ["takes more than 0.5 seconds of processor time to read (max_seconds)", "The valve is new."]


@pytest.mark.skipif(sys.platform != "linux", reason="keeps to no limit of memory")
@pytest.mark.parametrize("kind", ["docx", "epub", "html", "xlsx"])
def test_a_file_of_any_kind_that_takes_too_much_memory_is_ended(kind: str) -> None:
    data = {
        "docx": lambda: bytes(600_000) + word(1, 60_000_000),
        "epub": lambda: bytes(500_000) + book(1_500_000),
        "html": lambda: b"<div>" * 1_000_000,
        "xlsx": lambda: bytes(600_000) + long_cell(60_000_000),
    }[kind]()
    Path(f"a.{kind}").write_bytes(data)
    (reason,) = list_texts(FileReader(ReadSettings(max_memory=LEAST_MEMORY)).read([Path(f"a.{kind}")]))
    assert reason == MEMORY


@pytest.mark.attacks
@pytest.mark.skipif(sys.platform != "linux", reason="keeps to no limit of memory")
def test_a_pdf_that_unpacks_to_more_than_memory_ends_the_library_and_not_the_run() -> None:
    packed = zlib.compress(b" " * 400_000_000, 9)
    objects = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 4 0 R>>",
        b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (len(packed), packed),
    )
    numbered = b"".join(b"%d 0 obj%s\nendobj\n" % item for item in enumerate(objects, 1))
    Path("a.pdf").write_bytes(b"%PDF-1.5\n" + numbered + b"trailer<</Root 1 0 R>>\n%%EOF")
    settings = ReadSettings(max_memory=LEAST_MEMORY)
    (reason,) = list_texts(FileReader(settings).read([Path("a.pdf")]))
    # The library ends the process where an allocation fails; how much was allocated before depends on the machine.
    ended = r"the worker process ended \(SIG\w+\): the file is damaged, or "
    assert re.fullmatch(f"({ended})?{re.escape(MEMORY)}", reason), reason


def test_a_page_of_a_pdf_is_told_while_it_is_waited_for() -> None:
    Path("a.pdf").write_bytes(printed(150, 60))
    messages: list[str] = []
    (result,) = FileReader().read([Path("a.pdf")], messages.append)
    assert isinstance(result, Document)
    assert messages[0] == "reading a.pdf"
    assert any(words.startswith("reading a.pdf p. ") and words.endswith("/150") for words in messages)


# Plain text and records


def test_large_plain_text_is_read_by_a_process_too(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.txt").write_text("The pump is old. " * 100_000)
    Path("b.md").write_text("# Pumps\n\n" + "The pump is old. " * 100_000)
    first, second = list_texts(FileReader(ReadSettings(max_characters=1000)).read([Path("a.txt"), Path("b.md")]))
    assert first == "1,700,000 characters of text; at most 1,000 are read (max_characters)"
    assert second.startswith("1,700,0")


def test_the_time_in_which_documents_are_indexed_is_no_time_of_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.jsonl").write_text(('{"text": "' + "The pump is old. " * 50 + '"}\n') * 5000)
    monkeypatch.setattr("polyad.readers.pool.workers._CLOCK_FACTOR", 1)
    documents = FileReader(ReadSettings(max_seconds=1.0)).read([Path("a.jsonl")])
    first = next(documents)
    time.sleep(1.2)
    results = [first, *documents]
    assert [type(item) for item in results] == [Document] * 5000


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_the_records_of_a_file_end_at_a_limit_that_is_named(name: str) -> None:
    lines = ['{"text": "pump"}'] * 5 if name == "a.jsonl" else ["text", *["pump"] * 5]
    Path(name).write_text("\n".join(lines))
    results = list(FileReader(ReadSettings(max_records=3)).read([Path(name)]))
    assert [type(item) for item in results] == [Document] * 3 + [Failure]
    assert results[-1] == Failure(name, "more than 3 records (max_records); the rest was not read")
    results = list(FileReader(ReadSettings(max_file_characters=9)).read([Path(name)]))
    reason = "its records hold more than 9 characters of text (max_file_characters); the rest was not read"
    assert [type(item) for item in results] == [Document] * 2 + [Failure]
    assert results[-1] == Failure(name, reason)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_characters", 0),
        ("max_records", 0),
        ("max_file_characters", 0),
        ("max_seconds", 0.0),
        ("max_seconds", float("nan")),
        ("max_memory", LEAST_MEMORY - 1),
        ("workers", 0),
    ],
)
def test_a_limit_that_could_not_be_kept_is_refused(name: str, value: float) -> None:
    with pytest.raises(SettingError, match=name):
        ReadSettings(**{name: value})  # type: ignore[arg-type]
