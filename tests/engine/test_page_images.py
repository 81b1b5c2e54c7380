"""Pictures of pages with the place of a passage marked."""

import base64
import hashlib
import io
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from reportlab.lib.utils import ImageReader  # type: ignore[import-untyped, unused-ignore]  # typed only with its stubs
from reportlab.pdfgen.canvas import Canvas  # type: ignore[import-untyped, unused-ignore]  # typed only with its stubs
from typer.testing import CliRunner

from polyad import Document, Engine
from polyad.cli import app
from polyad.config import ReadSettings
from polyad.engine import page_images
from polyad.engine.settings import Settings
from polyad.errors import NotFoundError, PageImageError
from polyad.readers.format import Content, Context, Format, Source
from polyad.readers.formats import list_formats
from polyad.readers.pool import workers
from polyad_readers.pdf import page_image
from polyad_readers.pdf.page_image import find_marks, join_boxes
from polyad_readers.web.html import read_html

LINES = [
    "The bell of Tarn was cast in 1702 by Anna Voss.",
    "It weighs nine tons and hangs in the north tower.",
    "Its tone is a low A, which is heard in Aldby.",
]
TOP, STEP, LEFT, SIZE = 700, 20, 72, 12


def build_pdf(pages: int = 2, rotation: int = 0) -> bytes:
    """A PDF whose last page has LINES, 20 points apart."""
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=(842 if rotation else 595, 842), invariant=1)
    for number in range(pages):
        canvas.setFont("Helvetica", SIZE)
        canvas.setPageRotation(rotation)
        for place, line in enumerate(LINES if number == pages - 1 else ["The first page has another text."]):
            canvas.drawString(LEFT, TOP - STEP * place, line)
        canvas.showPage()
    canvas.save()
    return file.getvalue()


def scan(data: bytes) -> bytes:
    """The PDF with pictures in place of its pages."""
    import pypdfium2  # type: ignore[import-untyped, unused-ignore]  # has no stubs

    file = io.BytesIO()
    canvas = Canvas(file, pagesize=(595, 842), invariant=1)
    for page in pypdfium2.PdfDocument(data):
        canvas.drawImage(ImageReader(page.render(scale=2).to_pil()), 0, 0, 595, 842)
        canvas.showPage()
    canvas.save()
    return file.getvalue()


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.chdir(tmp_path)
    with Engine.open("kb", embedder="hashing:64") as engine:
        yield engine


def index(engine: Engine, data: bytes, name: str = "bell.pdf") -> str:
    """Index a file and return the id of the passage with LINES."""
    Path(name).write_bytes(data)
    report = engine.index([name])
    assert report.is_complete, report.failures
    return next(passage.id for passage in engine.catalogue.passages() if "nine tons" in passage.text)


def get_box(line: int, text: str = "") -> tuple[float, float, float, float]:
    """The box of a line of the last page as shares of the page."""
    from reportlab.pdfbase.pdfmetrics import stringWidth  # type: ignore[import-untyped, unused-ignore]

    baseline = 842 - (TOP - STEP * line)
    width = stringWidth(text or LINES[line], "Helvetica", SIZE)
    return LEFT / 595, (baseline - 0.5 * SIZE) / 842, (LEFT + width) / 595, baseline / 842


def covers(box: tuple[float, ...], other: tuple[float, ...], tolerance: float = 0.006) -> bool:
    return all(a <= b + tolerance for a, b in zip(box[:2], other[:2], strict=True)) and all(
        a >= b - tolerance for a, b in zip(box[2:], other[2:], strict=True)
    )


@pytest.mark.parametrize("is_scan", [False, True])
def test_the_box_covers_the_sentence_on_its_page(engine: Engine, is_scan: bool) -> None:
    id = index(engine, scan(build_pdf()) if is_scan else build_pdf())
    passage = engine.catalogue.passage(id)
    start = passage.start + passage.text.index("It weighs")

    whole = engine.page_images.render(id, page=2)
    sentence = engine.page_images.render(id, start=start, end=start + len(LINES[1]))

    assert (sentence.page, sentence.pages) == (2, 2)
    assert len(sentence.boxes) == 1
    assert covers(sentence.boxes[0], get_box(1))
    assert not covers(sentence.boxes[0], get_box(0))
    assert sentence.boxes[0][3] - sentence.boxes[0][1] < 2.2 * SIZE / 842
    assert all(any(covers(box, get_box(line)) for box in whole.boxes) for line in range(3))
    image = Image.open(io.BytesIO(sentence.png))
    assert image.size[0] == 1000
    left, top, _, _ = (round(share * side) for share, side in zip(sentence.boxes[0], image.size * 2, strict=True))
    assert image.getpixel((left + 1, top + 1)) != (255, 255, 255)
    assert image.getpixel((left + 1, top - 4)) == (255, 255, 255)


def test_a_sentence_around_its_passage_is_marked_and_of_equal_sentences_the_next() -> None:
    characters = "It runs. The bell of Tarn rings. " + 100 * "Its tone is low. " + "It runs. The end."

    assert find_marks(characters, "It runs. The bell", "It runs.") == range(7)
    assert find_marks(characters, "tone is low. It runs.", "It runs.").start == len(characters) - 17
    assert find_marks(characters, "The bell of Tarn", "The end.") == range(len(characters) - 8, len(characters) - 1)
    assert find_marks(characters, "The bell of Tarn", "Not here.") == range(9, 25)


def test_a_short_line_is_marked_apart_from_the_line_below() -> None:
    short = [(10.0 * place, 0.0, 10.0 * place + 9, 14.0) for place in range(3)]
    below = [(left, top + 16, right, bottom + 16) for left, top, right, bottom in (*short, (30.0, 0.0, 39.0, 14.0))]
    downwards = [(100.0, top, 114.0, top + 9) for top in range(0, 50, 10)]

    assert [len(join_boxes(boxes)) for boxes in (short, short + below, short + below + downwards)] == [1, 2, 3]


def test_the_lines_of_a_rotated_page_are_marked(engine: Engine) -> None:
    id = index(engine, build_pdf(rotation=90))
    passage = engine.catalogue.passage(id)
    start = passage.start + passage.text.index("It weighs")

    (box,) = engine.page_images.render(id, start=start, end=start + len(LINES[1])).boxes

    middle, long = (842 - TOP + STEP) / 842, (LEFT + 100) / 842
    assert 1 - middle - 0.02 < box[0] < box[2] < 1 - middle + 0.03
    assert box[1] < long < box[3]
    with pytest.raises(PageImageError, match="expected 1 to 2"):
        engine.page_images.render(id, page=3)


def test_a_changed_or_deleted_file_and_a_text_are_errors_without_a_path(engine: Engine) -> None:
    id = index(engine, build_pdf())
    Path("note.md").write_text("The otter eats fish.")
    engine.index(["note.md"])
    note = next(passage.id for passage in engine.catalogue.passages() if "otter" in passage.text)
    errors = []

    for prepare in (
        lambda: Path("bell.pdf").write_bytes(build_pdf(3)),
        lambda: Path("bell.pdf").write_bytes(b""),
        lambda: Path("bell.pdf").unlink(),
    ):
        prepare()
        with pytest.raises(PageImageError) as caught:
            engine.page_images.render(id)
        errors.append(str(caught.value))
    with pytest.raises(PageImageError, match="only pages of PDF files"):
        engine.page_images.render(note)
    with pytest.raises(NotFoundError):
        engine.page_images.render("unknown#1")

    assert "changed" in errors[0]
    assert "no longer there" in errors[2]
    assert not any(str(Path.cwd()) in error or "bell.pdf" in error for error in errors)


def test_a_copy_shows_the_page_of_a_deleted_file_until_the_document_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = Settings(read=ReadSettings(keep_files=True))
    with Engine.open("kb", embedder="hashing:64", settings=settings) as engine:
        id = index(engine, build_pdf())
        Path("bell.pdf").unlink()
        assert engine.page_images.render(id).boxes
        assert len(list(Path("kb/files").iterdir())) == 1

        engine.remove("bell.pdf")

        assert list(Path("kb/files").iterdir()) == []


@pytest.mark.parametrize("name", ["note.md", "note.html"])
def test_a_digest_that_an_author_states_keeps_no_copy_of_a_removed_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = Settings(read=ReadSettings(keep_files=True))
    with Engine.open("kb", embedder="hashing:64", settings=settings) as engine:
        index(engine, build_pdf())
        [copy] = Path("kb/files").iterdir()
        digest = hashlib.sha256(Path("bell.pdf").read_bytes()).hexdigest()
        front = f"---\nsha256: {digest}\nextension: .pdf\n---\nThe otter swims.\n"
        page = f'<html><head><meta name="sha256" content="{digest}"></head><body><p>The otter swims.</p></body></html>'
        Path(name).write_text(front if name.endswith(".md") else page, encoding="utf-8")
        engine.index([name])
        assert "sha256" not in engine.catalogue.origin(name).metadata

        engine.remove("bell.pdf")

        assert not copy.exists()


def test_a_page_is_rendered_once(engine: Engine) -> None:
    id = index(engine, build_pdf())
    first = engine.page_images.render(id)
    Path("bell.pdf").touch()
    again = engine.page_images.render(id)

    assert engine.page_images.render(id) is again
    assert again == first


def render_at_once(engine: Engine, requests: list[dict[str, Any]], id: str) -> list[page_images.PageImage]:
    """Render pictures of one passage in as many threads as there are requests."""
    barrier = threading.Barrier(len(requests))

    def render(options: dict[str, Any]) -> page_images.PageImage:
        barrier.wait()
        return engine.page_images.render(id, **options)

    with ThreadPoolExecutor(len(requests)) as threads:
        return list(threads.map(render, requests))


def test_many_requests_start_no_more_processes_than_the_pool_has(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = index(engine, build_pdf())
    start, processes = subprocess.Popen, []

    def record(*arguments: Any, **options: Any) -> Any:
        processes.append(arguments)
        return start(*arguments, **options)

    monkeypatch.setattr("polyad.readers.pool.workers.subprocess.Popen", record)

    render_at_once(engine, [{"start": number, "end": 20} for number in range(6)], id)

    assert 1 <= len(processes) <= 2


def test_all_who_wait_for_a_page_get_one_rendering_whose_width_is_one_of_a_few(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = index(engine, build_pdf())
    render, widths = workers.WorkerPool.render_page, []

    def record(pool: workers.WorkerPool, path: Path, format: Format, request: Mapping[str, Any]) -> Mapping[str, Any]:
        widths.append(request["width"])
        return render(pool, path, format, request)

    monkeypatch.setattr(workers.WorkerPool, "render_page", record)
    images = render_at_once(engine, [{"width": width} for width in (610, 777, 1000)], id)
    engine.page_images.render(id, width=888)

    assert widths == [1000]
    assert Image.open(io.BytesIO(images[0].png)).width == 1000


def build_drawing(lines: int) -> bytes:
    """A PDF of a page with LINES, covered by curves."""
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=(595, 842), invariant=1)
    for place, line in enumerate(LINES):
        canvas.drawString(LEFT, TOP - STEP * place, line)
    for number in range(lines):
        canvas.bezier(number % 595, 0, 100, 842 - number % 842, 500, number % 842, 595 - number % 595, 842)
    canvas.save()
    return file.getvalue()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not limit processor time")
def test_a_page_that_takes_too_long_is_an_error_and_is_not_tried_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_images, "_SECONDS", 0.2)
    id = index(engine, build_drawing(4000))

    with pytest.raises(PageImageError, match=r"more than 0\.2 seconds"):
        engine.page_images.render(id, width=3000)
    monkeypatch.setattr(workers.WorkerPool, "render_page", lambda *_: pytest.fail("the page was rendered again"))
    with pytest.raises(PageImageError, match=r"more than 0\.2 seconds"):
        engine.page_images.render(id, width=1000)


def test_another_width_of_a_picture_reads_its_document_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pixels = io.BytesIO()
    Image.new("RGB", (40, 20), "red").save(pixels, "PNG")
    content = base64.b64encode(pixels.getvalue()).decode()
    page = tmp_path / "page.html"
    page.write_text(f'<p>Seals sleep.</p><img alt="Seals at rest" src="data:image/png;base64,{content}">')
    digest = hashlib.sha256(page.read_bytes()).hexdigest()
    format = list_formats()[".html"]
    request = {"digest": digest, "read": format.read, "page": 1, "passage": "", "sentence": "", "crop": False}
    reads = []

    def record(source: Source, context: Context) -> Content:
        reads.append(source)
        return read_html(source, context)

    monkeypatch.setattr("polyad_readers.web.html.read_html", record)

    for width in (300, 600):
        page_image.render_marked_page(Source(page), Context(), {**request, "width": width})

    assert len(reads) == 1


def test_a_marked_sentence_has_a_limited_length(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    id = index(engine, build_pdf())
    monkeypatch.setattr(page_images, "_MAX_SENTENCE", 20)
    image = engine.page_images.render(id, start=0, end=20)
    assert engine.page_images.render(id, start=0, end=10_000_000) is image


def build_figures() -> bytes:
    """A PDF with a picture, a drawing and a table, each with a caption, and prose that mentions them."""
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=(595, 842), invariant=1)
    canvas.drawString(72, 780, "Figure 1 shows the bell, and Table 1 lists what it weighs.")
    canvas.drawImage(ImageReader(Image.new("RGB", (60, 40), "red")), 100, 560, 300, 200)
    canvas.drawString(100, 540, "Figure 1: The bell of Tarn in the")
    canvas.drawString(100, 526, "north tower")
    canvas.drawString(72, 490, "Prose about the bell of Tarn and its founder stands between the figures.")
    canvas.showPage()
    canvas.drawString(72, 780, "Abbildung 2. Der Turm")
    canvas.rect(80, 600, 150, 160, stroke=1, fill=0)
    canvas.line(80, 600, 230, 760)
    canvas.drawString(72, 400, "Table 1. Weights")
    for place, row in enumerate([("Bell", "Tons"), ("Tarn", "9"), ("Aldby", "12"), ("Lund", "3")]):
        for column, cell in enumerate(row):
            canvas.drawString(80 + 200 * column, 375 - 18 * place, cell)
    canvas.drawString(80, 560, "Figure 3. A listing without a drawing, which is nearer to another caption")
    canvas.drawString(72, 200, "Figure 4. Not there")
    canvas.save()
    return file.getvalue()


def measure(png: bytes) -> tuple[int, int]:
    return Image.open(io.BytesIO(png)).size


def test_figures_and_tables_of_a_pdf_are_listed_by_caption_and_cut_out(engine: Engine) -> None:
    Path("bell.pdf").write_bytes(build_figures())
    assert engine.index(["bell.pdf"]).is_complete
    labels = engine.catalogue.origin("bell.pdf").metadata["pictures"]
    assert labels == ("Figure 1: The bell of Tarn in the north tower", "Abbildung 2. Der Turm", "Table 1. Weights")

    images = [engine.page_images.render_picture("bell.pdf", number, width=595) for number in (1, 2, 3)]

    assert [image.page for image in images] == [1, 2, 2]
    expected = [(100, 400, 523, 760), (72, 230, 600, 790), (72, 300, 315, 412)]
    for image, (left, right, bottom, top) in zip(images, expected, strict=True):
        width, height = measure(image.png)
        assert width == pytest.approx(right - left + 24, abs=30)
        assert height == pytest.approx(top - bottom + 24, abs=20)
        assert len(image.boxes) == 1 or image is images[0]
    with pytest.raises(PageImageError, match="lists 3"):
        engine.page_images.render_picture("bell.pdf", 4)


def test_the_figure_of_a_hit_on_its_caption_is_framed_or_cut_out(engine: Engine) -> None:
    Path("bell.pdf").write_bytes(build_figures())
    engine.index(["bell.pdf"])
    passage = next(each for each in engine.catalogue.passages() if "north tower" in each.text)
    start = passage.start + passage.text.index("Figure 1: The")

    whole = engine.page_images.render(passage.id, start=start, end=start + 30)
    part = engine.page_images.render(passage.id, crop=True, width=595)

    assert (whole.figures, part.figures, whole.is_page) == (1, 1, True)
    assert measure(whole.png) == (1000, 1416)
    assert measure(part.png)[0] < 360
    red = Image.open(io.BytesIO(part.png)).getpixel((150, 100))
    assert red == (254, 0, 0) or red == (255, 0, 0)


def build_word() -> bytes:
    """A Word document with a described picture of text, a photo with a caption, and a picture that is damaged."""
    from tests.readers.test_embedded_pictures import build_docx, draw, fill, replace_part

    text = "Valve seven is closed by hand"
    data = build_docx(
        "The pump is old.", draw(text), "It runs.", fill(5), fill(6), captions={3: "Figure 2: A photo", 4: "Drawing"}
    )
    return replace_part(data, "image3.png", b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>")


def test_a_picture_of_a_word_document_is_shown_with_its_text_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rapidocr")
    monkeypatch.chdir(tmp_path)
    Path("pump.docx").write_bytes(build_word())
    with Engine.open("kb", embedder="hashing:64", settings=Settings(read=ReadSettings(keep_files=True))) as engine:
        assert engine.index(["pump.docx"]).is_complete
        Path("pump.docx").unlink()
        (passage,) = [each for each in engine.catalogue.passages() if "Valve" in each.text]
        images = engine.page_images
        pictures = [images.render(passage.id, page=page) for page in (1, 2)]
        start = passage.start + passage.text.index("Figure 2")
        photo = images.render(passage.id, start=start, end=start + 17)

        labels = engine.catalogue.origin("pump.docx").metadata["pictures"]
        assert labels == ("image1.png", "Figure 2: A photo", "Drawing")
        assert "Picture: image1.png" in passage.heading
        assert [(image.page, image.pages, image.is_page) for image in pictures] == [(1, 3, False), (2, 3, False)]
        assert measure(pictures[0].png) == (560, 100)
        assert len(pictures[0].boxes) == 1
        assert images.render_picture("pump.docx", 2).png == pictures[1].png == photo.png
        with pytest.raises(PageImageError, match="not a picture") as caught:
            images.render_picture("pump.docx", 3)
        assert str(tmp_path) not in str(caught.value)
        engine.remove("pump.docx")
        assert not [*Path("kb/files").iterdir()]


@pytest.mark.parametrize("digest", ["{victim}", "../victim", "x' OR '1'='1", "%", "0" * 64])
def test_a_digest_that_the_author_of_a_document_states_deletes_nothing_else(tmp_path: Path, digest: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("keep me", encoding="utf-8")
    settings = Settings(read=ReadSettings(keep_files=True))
    with Engine.open(tmp_path / "kb", embedder="hashing:64", settings=settings) as engine:
        metadata = {"sha256": digest.format(victim=victim)}
        engine.index_documents(
            [Document("evil", "", "The bell rings.", metadata=metadata), Document("good", "", "A bell.")]
        )
        engine.remove(["evil"])
        assert engine.catalogue.statistics().documents == 1
    assert victim.exists()


def test_a_file_is_not_stored_under_the_digest_of_another(engine: Engine, tmp_path: Path) -> None:
    note = tmp_path / "note.md"
    note.write_text(f"---\nsha256: {'a' * 64}\n---\n\nThe bell rings.", encoding="utf-8")
    with Engine.open("kept", embedder="hashing:64", settings=Settings(read=ReadSettings(keep_files=True))) as keeping:
        assert keeping.index([note]).is_complete
    assert not [*Path("kept").glob("files/*")]


def test_the_command_line_says_where_it_wrote_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Engine.open("kb", embedder="hashing:64") as engine:
        id = index(engine, build_pdf())
    arguments = ["show", "passage", id, "--store", "kb", "--image", "page.png"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == "page written to page.png"
    assert Path("page.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)["image"] == "page.png"


def test_the_command_line_lists_pictures_and_writes_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bell.pdf").write_bytes(build_figures())
    with Engine.open("kb", embedder="hashing:64") as engine:
        engine.index(["bell.pdf"])
    arguments = ["show", "document", "bell.pdf", "--store", "kb"]

    assert json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)["metadata"]["pictures"][2] == (
        "Table 1. Weights"
    )
    result = CliRunner().invoke(app, [*arguments, "--image", "table.png", "--picture", "3"])
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == "picture written to table.png"
    assert measure(Path("table.png").read_bytes())[0] < 900
    for options in (["--image", "a.png"], ["--picture", "3"], ["--crop"]):
        assert CliRunner().invoke(app, [*arguments, *options]).exit_code == 2
