# ruff: noqa: RUF001  letters that look alike

import io
from collections.abc import Sequence

import pytest

from polyad.readers.format import Source
from polyad_readers.lines.right_to_left import Glyph, order_letters
from polyad_readers.pdf.reader import read_pdf


def place(glyphs: Sequence[str], *, order: int = 1) -> list[Glyph]:
    """The characters of glyphs that stand side by side, 10 points apart; a space is a gap. ``order`` -1 reverses."""
    placed = [
        [Glyph(character, 10.0 * number, 10.0 * number, 10.0 * number + 10) for character in glyph]
        for number, glyph in enumerate(glyphs)
    ]
    return [glyph for characters in placed[::order] for glyph in characters if glyph.text != " "]


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    ("glyphs", "text"),
    [
        (["ج", "ا", "ت", "ن", "إل", "ا"], "الإنتاج"),  # one glyph for lam and alef, whose letters PDFium exchanges
        (["ج", "ا", "ت", "ن", "لإ", "ا"], "الإنتاج"),
        (["م", "ل", "ا", "ع", " ", "ف", "ي"], "يف عالم"),
        ([*"2025", " ", *"ماع"], "عام 2025"),
        ([*"1,234.50", " ", *"غلبم"], "مبلغ 1,234.50"),
        ([*"iPhone 15", " ", *"ديدجلا جتنملا"], "المنتج الجديد iPhone 15"),
        ([*"$50 םולש"], "שלום $50"),
        ([*"(12 דומע)"], "(עמוד 12)"),
        ([*")12 דומע("], "(עמוד 12)"),  # the signs as they are stored, not as they are shown
        ([*"The word םולש means peace."], "The word שלום means peace."),
    ],
)
def test_letters_are_ordered_by_their_positions(glyphs: list[str], text: str, order: int) -> None:
    assert order_letters(place(glyphs, order=order), 20) == text


def test_a_mark_follows_the_letter_above_which_it_stands() -> None:
    glyphs = [Glyph("ל", 0, 0, 10), Glyph("\u05b8", 12, 12, 18), Glyph("ש", 10, 10, 20)]
    assert order_letters(glyphs, 20) == "ש\u05b8ל"


def draw_codes(codes: str, letters: dict[str, str]) -> bytes:
    """A PDF with one line of ``codes`` in a font that maps each code to letters."""
    mappings = "\n".join(f"<{ord(code):02x}> <{text.encode('utf-16-be').hex()}>" for code, text in letters.items())
    to_unicode = f"1 begincodespacerange <00> <ff> endcodespacerange {len(letters)} beginbfchar\n{mappings}\nendbfchar"
    page = f"BT /F1 20 Tf 72 700 Td ({codes}) Tj ET"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 5 0 R /Resources "
        "<< /Font << /F1 4 0 R >> >> >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Courier /ToUnicode 6 0 R >>",
        *(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream" for stream in (page, to_unicode)),
    ]
    file = io.BytesIO()
    file.write(b"%PDF-1.4\n")
    offsets = []
    for number, item in enumerate(objects, 1):
        offsets.append(file.tell())
        file.write(f"{number} 0 obj\n{item}\nendobj\n".encode())
    start = file.tell()
    entries = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    file.write(f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{entries}".encode())
    file.write(f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF".encode())
    return file.getvalue()


def test_a_ligature_of_arabic_letters_is_read_in_order() -> None:
    letters = dict(zip("abcdef", ["ج", "ا", "ت", "ن", "لإ", "ا"], strict=True))
    assert read_pdf(Source.from_bytes(draw_codes("abcdef", letters))).text == "الإنتاج"


def test_letters_in_the_form_that_they_have_in_a_word_are_read_as_letters() -> None:
    letters = dict(zip("abcd", ["\ufe8e", "\ufee4", "\ufee0", "\ufee3"], strict=True))
    assert read_pdf(Source.from_bytes(draw_codes("abcd", letters))).text == "ملما"
