import io
import zlib
from collections.abc import Sequence

import pytest
from reportlab.pdfgen.canvas import Canvas  # type: ignore[import-untyped, unused-ignore]  # typed only with its stubs

from polyad.errors import ReadError
from polyad.readers.format import Content, Source
from polyad.text.removals import PAGES
from polyad_readers.pdf.reader import read_pdf

KOREAN = [0x0213, 0x1A4C, 0x0455, 0x0939, 0x0E12, 0x05D3, 0x0627, 0x10A4, 0x0391, 0x0C21, 0x03B6, 0x0531]
"""Numbers of glyphs, as a subset of a Korean font has them."""


def read_glyphs(pages: Sequence[Sequence[Sequence[int] | str]], *, code_map: str = "") -> Content:
    """The content of a PDF whose lines are numbers of glyphs in a font without a code map, or texts."""
    count = len(pages)
    kids = " ".join(f"{number} 0 R" for number in range(6, 6 + count))
    fonts = "/Resources<</Font<</F 3 0 R/G 4 0 R>>>>"
    to_unicode = f"/ToUnicode {6 + 2 * count} 0 R" if code_map else ""
    bodies = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {count}>>".encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
        f"<</Type/Font/Subtype/Type0/BaseFont/Batang/Encoding/Identity-H/DescendantFonts[5 0 R]{to_unicode}>>".encode(),
        b"<</Type/Font/Subtype/CIDFontType2/BaseFont/Batang"
        b"/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>/DW 1000>>",
    ]
    for number in range(count):
        contents = f"/MediaBox[0 0 612 792]/Contents {6 + count + number} 0 R"
        bodies.append(f"<</Type/Page/Parent 2 0 R{contents}{fonts}>>".encode())
    for page in pages:
        stream = ""
        for row, line in enumerate(page):
            codes = f"({line})" if isinstance(line, str) else "<" + "".join(f"{glyph:04x}" for glyph in line) + ">"
            stream += f"BT /{'F' if isinstance(line, str) else 'G'} 11 Tf 72 {700 - 14 * row} Td {codes} Tj ET\n"
        packed = zlib.compress(stream.encode("latin-1"))
        bodies.append(b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (len(packed), packed))
    if code_map:
        bodies.append(f"<</Length {len(code_map)}>>stream\n{code_map}\nendstream".encode())
    data, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(bodies, 1):
        offsets.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    size = len(bodies) + 1
    rows = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    trailer = b"xref\n0 %d\n0000000000 65535 f \n%strailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF"
    return read_pdf(Source.from_bytes(data + trailer % (size, rows, size, len(data))))


def test_a_page_of_glyph_numbers_is_one_that_cannot_be_read() -> None:
    content = read_glyphs([["Report of the harbour"], [KOREAN, KOREAN[::-1]], ["Signed at Saltby"]])
    assert content.text.splitlines() == ["Report of the harbour", "Signed at Saltby"]
    assert content.removals == {PAGES: ("p. 2",)}


def test_a_file_of_such_pages_alone_fails() -> None:
    with pytest.raises(ReadError, match=r"p\. 1"):
        read_glyphs([[KOREAN, KOREAN[::-1]]])


def test_garbled_lines_of_a_page_are_left_out_and_the_page_is_named() -> None:
    glyphs = [*range(4, 10), 3, *range(12, 20)]  # "Volumes" as a subset of a font numbers its letters
    content = read_glyphs([["Report of the harbour", *["It is calm."] * 20, glyphs, "Signed at Saltby"]])
    assert [line for line in content.text.splitlines() if line][-2:] == ["It is calm.", "Signed at Saltby"]
    assert content.removals == {PAGES: ("p. 1",)}


def test_glyphs_with_a_code_map_are_read() -> None:
    letters = "한국어정보보안기술항구배"
    pairs = "".join(f"<{glyph:04x}> <{ord(letter):04x}> " for glyph, letter in zip(KOREAN, letters, strict=True))
    code_map = f"begincmap 1 begincodespacerange <0000><ffff> endcodespacerange {len(KOREAN)} beginbfchar {pairs}"
    content = read_glyphs([[KOREAN]], code_map=code_map + "endbfchar endcmap")
    assert content.text == letters
    assert content.removals == {}


def test_symbols_and_signs_are_read() -> None:
    file = io.BytesIO()
    canvas = Canvas(file, invariant=1)
    for font, text in [
        ("Symbol", "\u03b1\u03b2\u03b3\u03b4\u03b5\u03b6"),
        ("ZapfDingbats", "\u2701\u2702\u2703\u2704\u260e"),
    ]:
        canvas.setFont(font, 11)
        canvas.drawString(72, 720, text)
        canvas.showPage()
    canvas.save()
    content = read_pdf(Source.from_bytes(file.getvalue()))
    assert "\u03b1\u03b2\u03b3" in content.text
    assert "\u2701\u2702\u2703" in content.text
    assert content.removals == {}
