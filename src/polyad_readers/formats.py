"""The rows of this package's formats. A new format is one row here, and one module in the folder of its family."""

from __future__ import annotations

from polyad.readers.format import Format

_PICTURES = "polyad_readers.pictures.embedded:open_pictures"
_RENDER = "polyad_readers.pdf.page_image:render_marked_page"

FORMATS = (
    Format(
        name="text", extensions=(".txt", ".text"), read="polyad_readers.markup.asciidoc:read_text_file", in_process=True
    ),
    Format(
        name="AsciiDoc",
        extensions=(".adoc", ".asciidoc"),
        read="polyad_readers.markup.asciidoc:read_asciidoc",
        in_process=True,
    ),
    Format(name="reStructuredText", extensions=(".rst",), read="polyad_readers.markup.rst:read_rst", in_process=True),
    Format(
        name="Markdown",
        extensions=(".md", ".markdown"),
        read="polyad_readers.markup.markdown:read_markdown",
        in_process=True,
    ),
    Format(
        name="HTML",
        extensions=(".html", ".htm", ".xhtml"),
        read="polyad_readers.web.html:read_html",
        pictures=_PICTURES,
        render=_RENDER,
        characters_per_byte=6.6,  # chosen on 61 files of benchmarks/manuals: large ones are tables of links and code
        size_exponent=0.75,
    ),
    Format(
        name="e-mail", extensions=(".eml",), read="polyad_readers.web.eml:read_eml", pictures=_PICTURES, render=_RENDER
    ),
    Format(
        name="EPUB",
        extensions=(".epub",),
        read="polyad_readers.web.epub:read_epub",
        pictures=_PICTURES,
        render=_RENDER,
        characters_per_byte=0.4,
    ),
    Format(
        name="Word",
        extensions=(".docx",),
        read="polyad_readers.office.docx.reader:read_docx",
        pictures=_PICTURES,
        render=_RENDER,
        characters_per_byte=0.5,
    ),
    Format(
        name="PowerPoint",
        extensions=(".pptx",),
        read="polyad_readers.office.pptx:read_pptx",
        pictures=_PICTURES,
        render=_RENDER,
        characters_per_byte=0.05,
    ),
    Format(name="Excel", extensions=(".xlsx",), read="polyad_readers.office.xlsx:read_xlsx"),
    Format(
        name="OpenDocument text",
        extensions=(".odt",),
        read="polyad_readers.office.odt.reader:read_odt",
        characters_per_byte=0.5,
    ),
    Format(
        name="PDF",
        extensions=(".pdf",),
        read="polyad_readers.pdf.reader:read_pdf",
        render=_RENDER,
        recognize="polyad_readers.pdf.reader:recognize_pages",
        size_factor=16,  # one page is in memory at a time; a scan of 2,000 pages has 100 MB to 1 GB
        characters_per_byte=0.3,
    ),
    Format(
        name="picture",
        extensions=(".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp"),
        read="polyad_readers.pictures.reader:read_picture",
        render=_RENDER,
        is_picture=True,
        packages=("rapidocr", "onnxruntime", "PIL"),
    ),
)
