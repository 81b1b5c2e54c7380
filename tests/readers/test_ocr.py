"""OCR of scanned pages and pictures, with the real models."""

import hashlib
import io
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pypdfium2  # type: ignore[import-untyped, unused-ignore]  # has no stubs
import pytest
from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.utils import ImageReader  # type: ignore[import-untyped, unused-ignore]  # typed only with its stubs
from reportlab.pdfgen.canvas import Canvas  # type: ignore[import-untyped, unused-ignore]  # typed only with its stubs

from polyad import Engine
from polyad.config import ReadSettings
from polyad.errors import ConfigurationError, ReadError
from polyad.model import Document, Failure
from polyad.readers.folder.files import FileReader
from polyad.readers.format import NEW_SCAN, STORED_SCAN, TEXT_PAGE, Context, Format, Source
from polyad.readers.pool.workers import ReadJob, WorkerPool
from polyad.readers.text import ocr_cache
from polyad.text.removals import PAGES, PICTURES, SCANS, UNCERTAIN
from polyad_readers.pdf.reader import read_pdf, recognize_pages
from polyad_readers.pictures import ocr
from polyad_readers.pictures import reader as pictures
from polyad_readers.pictures import scanned_pages as pdf_scans
from polyad_readers.pictures.reader import read_picture

pytest.importorskip("rapidocr")

BELL = ["The bell of Tarn was cast in 1702 by Anna Voss.", "It weighs nine tons and hangs in the north tower."]
PUMP = ["The pumps of the old station were mended in spring.", "Each valve is closed by hand before the night shift."]
DPI = 150


def draw_page(
    *blocks: tuple[float, float, Sequence[str]], size: float = 12, width: float = 8.27, height: float = 5.0
) -> Image.Image:
    """A white page with blocks of lines, each at its distance from the left and upper edge in inches."""
    image = Image.new("RGB", (int(width * DPI), int(height * DPI)), "white")
    canvas, font = ImageDraw.Draw(image), ImageFont.load_default(size * DPI / 72)
    for left, top, lines in blocks:
        for place, line in enumerate(lines):
            canvas.text((left * DPI, (top * 72 + place * 1.4 * size) * DPI / 72), line, font=font, fill="black")
    return image


def encode(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def build_pdf(*pages: Image.Image | Sequence[str]) -> bytes:
    """A PDF with a page for each picture or list of lines."""
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=(595, 360), invariant=1)
    for page in pages:
        if isinstance(page, Image.Image):
            canvas.drawImage(ImageReader(page), 0, 0, 595, 360)
        else:
            for place, line in enumerate(page):
                canvas.drawString(72, 300 - 14 * place, line)
        canvas.showPage()
    canvas.save()
    return file.getvalue()


def draw_pdf(draw: Callable[[Canvas], object], page: Image.Image) -> bytes:
    """A PDF with one page, which has the size of a picture."""
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=(595, 595 * page.height / page.width), invariant=1, pageCompression=0)
    draw(canvas)
    canvas.showPage()
    canvas.save()
    return file.getvalue()


def draw_over(canvas: Canvas, page: Image.Image) -> None:
    canvas.drawImage(ImageReader(page), 0, 0, 595, 595 * page.height / page.width)


def build_scan(count: int) -> bytes:
    """A PDF with scanned pages, each with a line of its own, since equal lines are taken for page headers."""
    letters = "ABCDEFGHIJKLMNOP"[:count]
    return build_pdf(*(draw_page((1, 1 + place / 9, [f"Tarn, part {each}."])) for place, each in enumerate(letters)))


def without_ocr(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the tests' process one without the extra."""
    monkeypatch.setattr(Format, "is_installed", lambda _: False)
    for module in (pdf_scans, pictures):
        monkeypatch.setattr(module, "is_ocr_installed", lambda: False)


def get_lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line]


def test_a_scanned_page_between_pages_of_text_is_read_with_its_page_number() -> None:
    content = read_pdf(Source.from_bytes(build_pdf(PUMP, draw_page((1, 1, BELL)), [])))

    assert get_lines(content.text) == [*PUMP, *BELL]
    assert content.text[content.places[1].start : content.places[1].end].split("\n") == BELL
    assert content.removals == {SCANS: ("p. 2",)}


@pytest.mark.parametrize("degrees", [90, 180, pytest.param(270, marks=pytest.mark.slow), 3])
def test_a_page_that_was_scanned_sideways_upside_down_or_skewed_is_read(degrees: int) -> None:
    page = draw_page((1, 1, BELL + PUMP)).rotate(
        degrees, expand=True, fillcolor="white", resample=Image.Resampling.BICUBIC
    )

    assert get_lines(read_picture(Source.from_bytes(encode(page))).text) == BELL + PUMP


@pytest.mark.parametrize(("degrees", "attempts"), [(0, 1), (180, 2)])
def test_a_page_is_read_in_the_direction_that_its_longest_lines_show(
    degrees: int, attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = ocr._load_engine("")
    counts: list[int] = []
    recognize = engine.recognize_txt

    def count(crops: list[ocr.Picture]) -> object:
        counts.append(len(crops))
        return recognize(crops)

    monkeypatch.setattr(engine, "recognize_txt", count)
    page = draw_page((1, 1, [*BELL, *PUMP, "1", "2"])).rotate(degrees)

    assert get_lines(read_picture(Source.from_bytes(encode(page))).text) == [*BELL, *PUMP, "1", "2"]
    assert counts == [4] * attempts + [6]


@pytest.mark.parametrize(
    "rotation", [90, pytest.param(180, marks=pytest.mark.slow), pytest.param(270, marks=pytest.mark.slow)]
)
def test_a_scan_on_a_page_that_the_pdf_file_turns_is_read(rotation: int) -> None:
    page = draw_page((1, 1, BELL + PUMP)).rotate(rotation, expand=True)
    file = io.BytesIO()
    with pypdfium2.PdfDocument(draw_pdf(lambda canvas: draw_over(canvas, page), page)) as document:
        document[0].set_rotation(rotation)
        document.save(file)

    assert get_lines(read_pdf(Source.from_bytes(file.getvalue())).text) == BELL + PUMP


def test_a_scan_in_strips_with_a_stamp_is_read_from_its_picture() -> None:
    page = draw_page((1, 1, BELL + PUMP), height=6)
    strips = [
        page.crop((0, top, page.width, top + page.height // 4)) for top in range(0, page.height, page.height // 4)
    ]

    def draw(canvas: Canvas) -> None:
        for place, strip in enumerate(strips):
            canvas.drawImage(ImageReader(strip), 0, 432 * (3 - place) / 4, 595, 108)
        canvas.drawString(20, 10, "Archive 7")

    content = read_pdf(Source.from_bytes(draw_pdf(draw, page)))

    assert get_lines(content.text)[: len(BELL + PUMP)] == BELL + PUMP
    assert content.removals[SCANS] == ("p. 1",)


def test_an_invisible_layer_of_text_over_a_scan_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ocr, "recognize", lambda *_: pytest.fail("the page was recognised again"))
    page = draw_page((1, 1, BELL + PUMP))

    def draw(canvas: Canvas) -> None:
        draw_over(canvas, page)
        text = canvas.beginText(72, 270)
        text.setTextRenderMode(3)
        text.textLines(BELL + PUMP)
        canvas.drawText(text)

    content = read_pdf(Source.from_bytes(draw_pdf(draw, page)))

    assert get_lines(content.text) == BELL + PUMP
    assert SCANS not in content.removals


def test_a_page_whose_text_has_no_characters_is_read_from_its_picture() -> None:
    from reportlab.pdfbase.pdfmetrics import registerFont  # type: ignore[import-untyped, unused-ignore]
    from reportlab.pdfbase.ttfonts import TTFont  # type: ignore[import-untyped, unused-ignore]

    registerFont(TTFont("Vera", "Vera.ttf"))

    def draw(canvas: Canvas) -> None:
        canvas.setFont("Vera", 12)
        for place, line in enumerate(BELL + PUMP):
            canvas.drawString(72, 300 - 20 * place, line)

    data = draw_pdf(draw, draw_page())
    assert b"/ToUnicode" in data

    content = read_pdf(Source.from_bytes(data.replace(b"/ToUnicode", b"/NoUnicode")))

    assert get_lines(content.text) == BELL + PUMP


def test_an_empty_scanned_page_has_no_text() -> None:
    content = read_pdf(Source.from_bytes(build_pdf(PUMP, draw_page(), draw_page((1, 1, BELL)))))

    assert get_lines(content.text) == PUMP + BELL
    assert [place.page for place in content.places] == [1, 2, 3]
    assert content.removals == {PICTURES: ("p. 2",), SCANS: ("p. 3",)}


def test_columns_of_prose_follow_each_other_below_a_heading() -> None:
    left = ["The bell of Tarn was", "cast in the year of", "the great flood and", "hangs in the tower."]
    right = ["Its founder was a", "woman from Lund who", "had learnt the craft", "from her own father."]
    page = draw_page((1.6, 0.6, ["The history of the bell and its founder"]), (1, 1.4, left), (4.4, 1.4, right))

    text = read_picture(Source.from_bytes(encode(page))).text

    assert " ".join(left + right) in " ".join(text.split())


def test_the_rows_of_a_scanned_table_stay_together() -> None:
    columns = [["Pump", "Alpha", "Beta", "Gamma"], ["Flow", "12", "35", "70"], ["Year", "1990", "2004", "2019"]]
    page = draw_page(*((1 + 2 * place, 1, cells) for place, cells in enumerate(columns)))

    lines = get_lines(read_picture(Source.from_bytes(encode(page))).text)

    assert [[cell in line for cell in ("Beta", "35", "2004")] for line in lines if "Beta" in line] == [[True] * 3]
    assert not any("35" in line and "70" in line for line in lines)


def test_a_page_without_text_is_counted_and_words_of_doubt_are_listed(tmp_path: Path) -> None:
    photo = Image.effect_noise((600, 400), 20).convert("RGB")
    blurred = draw_page((1, 1, BELL), size=7).resize((400, 242)).resize((1240, 750))

    content = read_pdf(Source.from_bytes(build_pdf(PUMP, photo, blurred)))

    assert content.removals[PICTURES] == ("p. 2",)
    assert get_lines(content.text)[:2] == PUMP
    assert len(content.removals.get(UNCERTAIN, ())) > 0


def test_pages_of_a_tiff_and_pictures_of_all_formats_are_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = draw_page((1, 1, BELL), height=3), draw_page((1, 1, PUMP), height=3)
    Path("fax.tiff").write_bytes(encode(first, "TIFF", save_all=True, append_images=[second]))
    Path("photo.jpg").write_bytes(encode(first, "JPEG"))

    fax, photo = FileReader(ReadSettings(workers=1)).read([Path("fax.tiff"), Path("photo.jpg")])

    assert isinstance(fax, Document)
    assert isinstance(photo, Document)
    assert [place.page for place in fax.places] == [1, 2]
    assert fax.text[fax.places[1].start :].split("\n") == PUMP
    assert get_lines(photo.text) == BELL
    assert photo.metadata["scanned_pages"] == 1


def test_pages_without_text_share_one_limit_on_time() -> None:
    blank, page = Image.new("1", (40, 40), 1), draw_page((1, 1, BELL), height=3)
    kinds: list[str] = []

    data = encode(blank, "TIFF", save_all=True, append_images=[blank, page])
    read_picture(Source.from_bytes(data), Context(on_page=lambda *state: kinds.append(state[2])))

    assert kinds == [TEXT_PAGE, TEXT_PAGE, NEW_SCAN]


def test_a_picture_with_too_many_pixels_is_refused_before_it_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode(Image.new("1", (10_000, 10_000)))
    monkeypatch.setattr(Image.Image, "load", lambda _: pytest.fail("the picture was decoded"))

    with pytest.raises(ReadError, match="10,000 x 10,000 pixels"):
        read_picture(Source.from_bytes(data))


@pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n\x1a\n", encode(draw_page())[:2000], b"%PDF-1.7"])
def test_a_damaged_picture_is_an_error(data: bytes) -> None:
    with pytest.raises(ReadError):
        read_picture(Source.from_bytes(data))


def test_an_interrupted_document_continues_at_the_next_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, settings = build_pdf(draw_page((1, 1, BELL)), draw_page((1, 1, PUMP))), ReadSettings(folder=str(tmp_path))
    recognized: list[int] = []
    recognize = ocr.recognize

    def count(*arguments: object) -> list[ocr.OcrLine]:
        recognized.append(1)
        return recognize(*arguments)  # type: ignore[arg-type]

    def stop(page: int, *_: object) -> None:
        if page == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(ocr, "recognize", count)
    with pytest.raises(KeyboardInterrupt):
        read_pdf(Source.from_bytes(data), Context(settings, stop))
    content = read_pdf(Source.from_bytes(data), Context(settings))

    assert len(recognized) == 2
    assert get_lines(content.text) == BELL + PUMP
    assert read_pdf(Source.from_bytes(data), Context(settings)) == content
    assert len(recognized) == 2


def test_other_processes_recognise_pages_from_the_end_of_a_document(tmp_path: Path) -> None:
    data, settings = build_scan(4), ReadSettings(folder=str(tmp_path))
    (path := tmp_path / "scan.pdf").write_bytes(data)
    ocr_cache = ocr.PageOcr(settings, hashlib.sha256(data).hexdigest())
    pages: list[int] = []

    recognize_pages(Source(path), Context(settings, lambda page, *_: pages.append(page)), (0, 2))

    assert pages == [4, 2]
    assert [ocr_cache.find_page(page) is not None for page in range(1, 5)] == [False, True, False, True]


def test_progress_counts_the_pages_of_all_processes_and_their_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    job, seconds = ReadJob(), iter(range(0, 100, 3))
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds))

    job.add_page(1, 2000, STORED_SCAN)
    assert job.page == "p. 1/2,000"
    for page in range(2, 5):
        job.add_page(page, 2000, NEW_SCAN)
        job.add_page(2002 - page, 2000, NEW_SCAN, is_ahead=True)
    assert job.page == "p. 7/2,000, 20 pages per minute"
    job.add_page(2000, 2000, STORED_SCAN)
    assert job.page.startswith("p. 2,000/2,000,")


@pytest.mark.slow
def test_pages_of_one_document_are_recognised_by_several_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("scan.pdf").write_bytes(build_scan(12))
    messages: list[str] = []
    parts: list[object] = []
    recognize_ahead = WorkerPool._recognize_ahead

    def record(*arguments: Any) -> None:
        parts.append(arguments[3])
        recognize_ahead(*arguments)

    monkeypatch.setattr(WorkerPool, "_recognize_ahead", record)
    alone, together = (
        [*FileReader(ReadSettings(workers=workers, folder=folder)).read([Path("scan.pdf")], messages.append)]
        for workers, folder in ((1, ""), (2, str(tmp_path)))
    )

    assert together == alone
    assert parts == [0]
    assert any("pages per minute" in message for message in messages)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_an_index_run_that_is_interrupted_in_a_scan_continues_at_its_page(tmp_path: Path) -> None:
    (tmp_path / "scan.pdf").write_bytes(build_scan(6))
    command = [sys.executable, "-m", "polyad", "index", "scan.pdf", "--store", "kb", "--embedder", "hashing:64"]
    cache = tmp_path / "kb" / ocr_cache.FILE_NAME

    def count_pages() -> int:
        with suppress(sqlite3.OperationalError), closing(sqlite3.connect(f"file:{cache}?mode=ro", uri=True)) as pages:
            return int(pages.execute("SELECT count(*) FROM pages").fetchone()[0])
        return 0

    run = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not count_pages() and time.monotonic() < deadline:
        time.sleep(0.1)
    run.send_signal(signal.SIGINT)
    assert run.wait() == 130
    assert 0 < count_pages() < 6
    with closing(sqlite3.connect(cache)) as pages, pages:  # a page that is recognised again would lose the change
        pages.execute("UPDATE pages SET lines = replace(lines, 'Tarn', 'Lund') WHERE page = 1")

    subprocess.run(command, cwd=tmp_path, check=True)

    with Engine.open(tmp_path / "kb") as engine:
        [source] = engine.catalogue.sources()
        text = engine.catalogue.document(source).text
    assert (text.count("Lund"), text.count("Tarn")) == (1, 5)


def test_a_pdf_may_be_larger_than_files_that_are_read_into_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("scan.pdf").write_bytes(data := build_pdf(PUMP))

    (document,) = FileReader(ReadSettings(max_bytes=len(data) // 2)).read([Path("scan.pdf")])
    (failure,) = FileReader(ReadSettings(max_bytes=len(data) // 20)).read([Path("scan.pdf")])

    assert isinstance(document, Document)
    assert isinstance(failure, Failure)
    assert failure.reason.endswith("(max_bytes)")


@pytest.mark.parametrize("read", [read_pdf, read_picture])
def test_without_the_extra_a_scan_says_how_to_get_it(
    read: Callable[[Source], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    without_ocr(monkeypatch)
    page = draw_page((1, 1, BELL))

    with pytest.raises(ReadError, match=r'pip install "polyad\[ocr\]"'):
        read(Source.from_bytes(build_pdf(page) if read is read_pdf else encode(page)))


def test_without_the_extra_the_scans_of_a_mixed_document_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    without_ocr(monkeypatch)

    content = read_pdf(Source.from_bytes(build_pdf(PUMP, draw_page((1, 1, BELL)))))

    assert content.removals == {"unread_scans": ("p. 2",)}


def test_pictures_of_a_folder_are_skipped_without_the_extra_or_without_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("manual").mkdir()
    Path("manual/logo.png").write_bytes(encode(Image.new("RGB", (200, 100), "red")))
    Path("manual/a.txt").write_text("text")
    reader = FileReader(ReadSettings(workers=1))

    for _ in range(2):
        assert [each.id for each in reader.read([Path("manual")])] == ["manual/a.txt"]
        assert reader.skipped == ["manual/logo.png"]
        without_ocr(monkeypatch)


def test_a_single_picture_without_text_is_a_failure_that_says_so(tmp_path: Path) -> None:
    path = tmp_path / "logo.png"
    path.write_bytes(encode(Image.new("RGB", (200, 100), "red")))
    [failure] = FileReader(ReadSettings(workers=1)).read([path])
    assert isinstance(failure, Failure)
    assert failure.reason == "no text was found in the picture"


def test_a_language_without_a_model_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="ocr_model"):
        ReadSettings(ocr_language="ru")
    assert ReadSettings(ocr_language="de").ocr_language == "de"
    assert ReadSettings(ocr_language="ru", ocr_model="cyrillic.onnx").ocr_language == "ru"


def test_a_page_in_a_script_that_the_model_does_not_know_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    corners = ((72.0, 72.0), (500.0, 72.0), (500.0, 88.0), (72.0, 88.0))
    lines = [ocr.OcrLine("nt", corners, (0.1, 0.2), (0.7, 0.7)), ocr.OcrLine("", corners, (), ())]
    monkeypatch.setattr(ocr, "recognize", lambda *_: lines)

    with pytest.raises(ReadError, match="script is unknown"):
        read_picture(Source.from_bytes(encode(draw_page((1, 1, BELL)))))
    content = read_pdf(Source.from_bytes(build_pdf(PUMP, draw_page((1, 1, BELL)))))

    assert get_lines(content.text) == PUMP
    assert "script is unknown" in content.removals[PAGES][0]


def test_each_character_of_a_line_has_its_place() -> None:
    picture = np.ascontiguousarray(np.array(draw_page((1, 1, ["Tarn         Lund"])))[:, :, ::-1])

    (line,) = [line for line in ocr.recognize(picture, DPI / 72) if "Tarn" in line.text][:1]

    left = line.corners[0][0]
    assert left == pytest.approx(72, abs=6)
    assert len(line.places) == len(line.confidences) == len(line.text)
    assert list(line.places) == sorted(line.places)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is enforced on Linux")
def test_the_models_fit_into_the_memory_of_a_worker_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("scan.pdf").write_bytes(build_pdf(draw_page((1, 1, BELL))))

    (result,) = FileReader(ReadSettings(workers=1)).read([Path("scan.pdf")])

    assert isinstance(result, Document)
    assert get_lines(result.text) == BELL
