import io
import zipfile
from collections.abc import Callable
from datetime import datetime
from typing import Any

import docx  # type: ignore[import-untyped, unused-ignore]  # typed only when its stubs are installed
import pytest

from polyad.readers.format import Content, Source
from polyad.text.removals import COMMENTS, CONTENTS, FILES, PICTURES
from polyad_readers.office.docx.reader import read_docx

DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/"


def read(build: Callable[[Any], object]) -> Content:
    document = docx.Document()
    properties = document.core_properties
    properties.title = properties.author = ""
    properties.created = properties.modified = datetime(2024, 3, 1, 12)
    build(document)
    file = io.BytesIO()
    document.save(file)
    return read_docx(Source.from_bytes(file.getvalue()))


def test_text_in_the_style_title_is_the_title() -> None:
    def build(document: Any) -> None:
        document.add_heading("Revision history", 1)
        document.add_paragraph("Handbook  of\tPumps", style="Title")
        document.core_properties.title = "Report template"

    content = read(build)
    assert content.title == "Handbook of Pumps"
    assert content.metadata["title"] == "Report template"
    assert "Handbook" in content.text


def test_an_empty_title_names_nothing_and_a_made_up_one_in_the_properties_neither() -> None:
    def build(document: Any) -> None:
        document.add_paragraph("", style="Title")
        document.core_properties.title = "Microsoft Word - pumps.doc"
        document.add_heading("Pumps", 1)

    assert read(build).title == "Pumps"


def test_the_properties_of_a_word_document_are_metadata() -> None:
    def build(document: Any) -> None:
        document.core_properties.author = "Ines Moreau"
        document.core_properties.keywords = "bells; casting"
        document.core_properties.subject = "Bells"
        document.add_paragraph("Text.")

    assert read(build).metadata == {
        "author": "Ines Moreau",
        "subject": "Bells",
        "keywords": ("bells", "casting"),
        "created": "2024-03-01T12:00:00Z",
        "modified": "2024-03-01T12:00:00Z",
    }


def test_a_word_document_has_no_places_since_word_alone_knows_its_pages() -> None:
    assert read(lambda document: document.add_paragraph("Text.")).places == ()


# Documents written as XML, since python-docx cannot write most of this


NAMESPACES = " ".join(
    f'xmlns:{prefix}="{uri}"'
    for prefix, uri in {
        "w": "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
        "m": "http://schemas.openxmlformats.org/officeDocument/2006/math",
        "r": "http://schemas.openxmlformats.org/officeDocument/2006/relationships",
        "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
        "wp": "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing",
        "w14": "http://schemas.microsoft.com/office/word/2010/wordml",
    }.items()
)
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def write_word(body: str, **parts: str) -> bytes:
    """A Word document; the name of each further part is its kind of relation, such as ``numbering``."""
    names = {kind: f"{kind}.html" if kind == "aFChunk" else f"{kind}.xml" for kind in parts}
    relations = "".join(
        f'<Relationship Id="{kind}" Type="{OFFICE}/{kind.rstrip("0123456789")}" Target="{name}"/>'
        for kind, name in names.items()
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", f"<w:document {NAMESPACES}><w:body>{body}</w:body></w:document>")
        archive.writestr("word/_rels/document.xml.rels", f"<Relationships>{relations}</Relationships>")
        for kind, content in parts.items():
            root = f"<w:{kind} {NAMESPACES}>{content}</w:{kind}>"
            archive.writestr(f"word/{names[kind]}", content if kind == "aFChunk" else root)
    return file.getvalue()


def text_of(body: str, **parts: str) -> str:
    return read_docx(Source.from_bytes(write_word(body, **parts))).text


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(text: str, style: str = "", properties: str = "") -> str:
    return f'<w:p><w:pPr><w:pStyle w:val="{style}"/>{properties}</w:pPr>{run(text)}</w:p>'


def numbered(text: str, level: int = 0, number: int = 1, style: str = "") -> str:
    return paragraph(
        text, style, f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>' if number else ""
    )


def field(instruction: str, result: str) -> str:
    return (
        f'<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>{instruction}</w:instrText></w:r>'
        f'<w:r><w:fldChar w:fldCharType="separate"/></w:r>{result}<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    )


def list_level(level: int, text: str, number_format: str = "decimal", more: str = "") -> str:
    return (
        f'<w:lvl w:ilvl="{level}"><w:start w:val="1"/><w:numFmt w:val="{number_format}"/>{more}'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
    )


def row(*cells: str, properties: str = "") -> str:
    return f"<w:tr><w:trPr>{properties}</w:trPr>{''.join(cells)}</w:tr>"


def cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{paragraph(text)}</w:tc>"


CONTRACT = (
    f'<w:abstractNum w:abstractNumId="7">{list_level(0, "%1.", more="<w:pStyle w:val=&quot;Clause&quot;/>")}'
    f"{list_level(1, '%1.%2')}{list_level(2, '(%3)', 'lowerLetter')}</w:abstractNum>"
    '<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num>'
    '<w:num w:numId="2"><w:abstractNumId w:val="7"/>'
    '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride></w:num>'
).replace("&quot;", '"')


def test_text_in_elements_of_any_name_is_read() -> None:
    wrapped = [
        f'<w:{name} w:val="x" w:instr="REF x">{run(f"{name} ")}</w:{name}>'
        for name in ("fldSimple", "bdo", "dir", "smartTag", "customXml", "hyperlink", "ins", "moveTo", "unknown")
    ]
    assert text_of(f"<w:p>{''.join(wrapped)}</w:p>").split() == [
        *("fldSimple", "bdo", "dir", "smartTag", "customXml", "hyperlink", "ins", "moveTo", "unknown")
    ]


def test_the_base_text_under_a_reading_is_kept() -> None:
    ruby = f"<w:ruby><w:rubyPr/><w:rt>{run('とうきょう')}</w:rt><w:rubyBase>{run('東京')}</w:rubyBase></w:ruby>"
    assert text_of(f"<w:p><w:r>{ruby}</w:r>{run('の駅')}</w:p>") == "東京の駅"


def test_deleted_and_moved_text_is_left_out() -> None:
    deletion = f"<w:del><w:r><w:delText>old</w:delText></w:r></w:del><w:moveFrom>{run('x')}</w:moveFrom>"
    body = f"<w:p>{run('New')}{deletion}</w:p>"
    joined = paragraph("Two ", properties="<w:rPr><w:del/></w:rPr>") + paragraph("parts.")
    deleted = f"<w:tbl>{row(cell('kept'))}{row(cell('gone'), properties='<w:del/>')}</w:tbl>"
    assert text_of(body + joined + deleted) == "New\n\nTwo parts.\n\nkept"


def test_characters_that_are_elements_are_read() -> None:
    body = (
        "<w:p><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:ptab/><w:t>c</w:t><w:cr/><w:t>d</w:t><w:br/><w:t>e</w:t>"
        '<w:noBreakHyphen/><w:t>f</w:t><w:softHyphen/><w:t>g</w:t><w:sym w:font="Symbol" w:char="F0A3"/>'
        '<w:sym w:font="Wingdings" w:char="ZZ"/></w:r></w:p>'
    )
    assert text_of(body) == "a b c\nd\ne\u2011fg≤"


def test_a_power_stays_a_power() -> None:
    raised = '<w:vertAlign w:val="superscript"/>'
    assert text_of(f"<w:p>{run('10')}{run('-3', raised)}{run(' m')}{run('2', raised)}</w:p>") == "10^-3 m2"


def test_numbers_of_headings_clauses_and_lists_are_those_that_word_displays() -> None:
    body = (
        numbered("Supply", style="Heading1") + numbered("Ten days.", 1) + numbered("In parts.", 1)
        + numbered("Payment", style="Heading1") + numbered("Thirty days.", 1) + numbered("by bank", 2)
        + paragraph("Note.") + numbered("in euros", 2) + numbered("Interest.", 1)
        + paragraph("By its style.", "Clause") + numbered("Restarted.", 0, 2) + numbered("Bare.", 0, 0)
    )  # fmt: skip
    styles = '<w:style w:styleId="Clause"><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
    content = read_docx(Source.from_bytes(write_word(body, numbering=CONTRACT, styles=styles)))
    assert content.text == (
        "1. Supply\n\n    1.1 Ten days.\n    1.2 In parts.\n\n"
        "2. Payment\n\n    2.1 Thirty days.\n\n      (a) by bank\n\nNote.\n\n      (b) in euros\n    2.2 Interest.\n"
        "  3. By its style.\n  5. Restarted.\n\nBare."
    )
    assert [section.name for section in content.sections] == ["Supply", "Payment"]


@pytest.mark.parametrize(
    ("number_format", "labels"),
    [
        ("upperRoman", "I. II. III. IV."),
        ("lowerLetter", "a. b. c. d."),
        ("ordinal", "1st. 2nd. 3rd. 4th."),
        ("chineseCounting", "一. 二. 三. 四."),
        ("bullet", "• • • •"),
    ],
)
def test_a_list_has_labels_in_its_format(number_format: str, labels: str) -> None:
    numbering = f'<w:abstractNum w:abstractNumId="7">{list_level(0, "%1.", number_format)}</w:abstractNum>'
    numbering += '<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num>'
    text = text_of("".join(numbered("x") for _ in range(4)), numbering=numbering)
    assert text.split() == " x ".join([*labels.split(), ""]).split()


def test_equations_are_read_in_one_line() -> None:
    def part(name: str, text: str) -> str:
        return f"<m:{name}><m:r><m:t>{text}</m:t></m:r></m:{name}>"

    loss = f"<m:sSub>{part('e', 'h')}{part('sub', 'loss')}</m:sSub><m:r><m:t>=</m:t></m:r>"
    power = f"<m:sSup>{part('e', 'D')}{part('sup', '5')}</m:sSup>"
    fraction = f"<m:f>{part('num', 'f·L')}<m:den>{power}</m:den></m:f>"
    root = f"<m:rad><m:deg/>{part('e', 'x')}</m:rad>"
    scripts = part("sub", "i=1") + part("sup", "n")
    total = f'<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr>{scripts}{part("e", "i")}</m:nary>'
    body = f"<w:p>{run('Loss ')}<m:oMath>{loss}{fraction}</m:oMath>{run('.')}</w:p>"
    body += f"<w:p><m:oMathPara><m:oMath>{root}</m:oMath><m:oMath>{total}</m:oMath></m:oMathPara></w:p>"
    assert text_of(body) == "Loss h_loss=(f·L)/(D^5).\n\n√x\n∑_(i=1)^n i"


def test_ticked_and_unticked_boxes_differ() -> None:
    def control(state: str) -> str:
        properties = f'<w:sdtPr><w14:checkbox><w14:checked w14:val="{state}"/></w14:checkbox></w:sdtPr>'
        return f"<w:sdt>{properties}<w:sdtContent>{run('☐')}</w:sdtContent></w:sdt>"

    def legacy(state: str) -> str:
        box = f'<w:ffData><w:checkBox><w:default w:val="1"/>{state}</w:checkBox></w:ffData>'
        return f'<w:r><w:fldChar w:fldCharType="begin">{box}</w:fldChar></w:r>'

    body = control("1") + run(" a ") + control("0") + run(" b ") + legacy("") + run(" c ")
    body += legacy('<w:checked w:val="0"/>') + run(" d ") + run("\uf0fe", '<w:rFonts w:ascii="Wingdings"/>') + run(" e")
    assert text_of(f"<w:p>{body}</w:p>") == "[x] a [ ] b [x] c [ ] d ☒ e"


def test_values_of_tables_stay_under_the_names_of_their_columns() -> None:
    table = (
        row(cell("Plant"), cell("Basic"), cell("Plus"))
        + row(cell("Aldby", '<w:vMerge w:val="restart"/>'), cell(""), cell("40"))
        + row(cell("", "<w:vMerge/>"), cell("30"), cell("50"))
        + row(cell("Saltby"), cell("60", '<w:gridSpan w:val="2"/>'))
    )
    assert text_of(f"<w:tbl>{table}</w:tbl>") == (
        "Plant: Aldby\tPlus: 40\nPlant: Aldby\tBasic: 30\tPlus: 50\nPlant: Saltby\tBasic: 60\tPlus: 60"
    )


def test_a_row_that_repeats_on_each_page_names_the_columns() -> None:
    table = row(cell("Pump"), cell("Use"), properties="<w:tblHeader/>") + row(cell("P1"), cell("Lifts."))
    assert text_of(f"<w:tbl>{table}</w:tbl>") == "Pump: P1\tUse: Lifts."


def test_tables_in_tables_and_headings_in_tables_are_read() -> None:
    inner = f"<w:tc><w:tbl>{row(cell('a'), cell('b'))}</w:tbl><w:p/></w:tc>"
    content = read_docx(Source.from_bytes(write_word(f"<w:tbl>{row(cell('x'), inner)}</w:tbl>")))
    assert content.text == "x\n\na\tb"
    heading = f"<w:tc>{paragraph('Pumps', 'Heading1')}{paragraph('Old.')}</w:tc>"
    content = read_docx(Source.from_bytes(write_word(f"<w:tbl>{row(heading)}</w:tbl>")))
    assert (content.text, [section.name for section in content.sections]) == ("Pumps\n\nOld.", ["Pumps"])


def test_headings_are_found_by_style_and_outline_level_in_any_language() -> None:
    styles = (
        '<w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>'
        '<w:style w:styleId="Mine"><w:name w:val="Meine"/><w:basedOn w:val="berschrift1"/></w:style>'
        '<w:style w:styleId="Plain"><w:basedOn w:val="berschrift1"/><w:pPr><w:outlineLvl w:val="9"/></w:pPr></w:style>'
    )
    body = paragraph("A", "berschrift1") + paragraph("B", "Mine") + paragraph("C", "Plain")
    body += paragraph("D", properties='<w:outlineLvl w:val="1"/>') + paragraph("E", "Heading3")
    assert [section.name for section in read_docx(Source.from_bytes(write_word(body, styles=styles))).sections] == [
        "A",
        "B",
        "D",
        "E",
    ]


def test_several_headings_of_the_highest_level_are_no_title() -> None:
    chapters = paragraph("Supply", "Heading1") + paragraph("x") + paragraph("Payment", "Heading1")
    assert read_docx(Source.from_bytes(write_word(chapters))).title == ""
    with_appendix = paragraph("Pumps", "Heading1") + paragraph("Old.") + paragraph("Appendix", "Heading1")
    assert read_docx(Source.from_bytes(write_word(with_appendix))).title == "Pumps"
    assert (
        read_docx(Source.from_bytes(write_word(paragraph("Manual of pumps", "Heading1") + chapters))).title
        == "Manual of pumps"
    )


def spaced(text: str, properties: str = "") -> str:
    return f'<w:p>{properties}<w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


def test_lines_of_code_keep_their_indentation() -> None:
    lines = ["if ready(pump):", "    start(pump)", "    note = 1", "stop(pump)"]
    assert text_of("".join(map(spaced, lines))) == "if ready(pump):\n\n" + "\n".join(lines[1:])


def test_an_indent_in_monospaced_type_is_as_many_spaces() -> None:
    font = '<w:rPr><w:rFonts w:ascii="Courier New"/></w:rPr>'
    body = paragraph("") + "".join(
        f'<w:p><w:pPr><w:ind w:left="{480 * level}"/></w:pPr><w:r>{font}<w:t>{line}</w:t></w:r></w:p>'
        for level, line in enumerate(["if ready(pump):", "start the pump"])
    )
    assert text_of(body) == "if ready(pump):\n    start the pump"


def test_prose_that_begins_with_spaces_is_no_code() -> None:
    body = spaced("    The pump was mended in the spring.") + spaced("   It runs.") + spaced("\tNo one hears it")
    assert text_of(body) == "The pump was mended in the spring.\n\nIt runs.\n\nNo one hears it"


def test_generated_tables_of_contents_are_left_out() -> None:
    by_style = paragraph("1 Pumps 2", "TOC1")
    gallery = '<w:sdtPr><w:docPartObj><w:docPartGallery w:val="Table of Contents"/></w:docPartObj></w:sdtPr>'
    by_control = f"<w:sdt>{gallery}<w:sdtContent>{paragraph('Pumps 2')}</w:sdtContent></w:sdt>"
    begin, end = field('TOC \\o "1-3"', "|").split("|")
    by_field = f"<w:p>{begin}{run('Pumps 2')}</w:p>{paragraph('Seals 3')}<w:p>{end}</w:p>"
    content = read_docx(Source.from_bytes(write_word(by_style + by_control + by_field + paragraph("Text."))))
    assert content.text == "Text."
    assert content.removals == {CONTENTS: ("1 Pumps 2", "Pumps 2", "Pumps 2", "Seals 3")}


def test_pictures_without_a_description_are_counted() -> None:
    pictures = "".join(
        f'<w:p><w:r><w:drawing><wp:inline xmlns:wp="{DRAWING}wordprocessingDrawing">'
        f'<wp:docPr id="1" name="Picture {number}"'
        f' descr="{description}"/><a:blip xmlns:a="{DRAWING}main"/></wp:inline></w:drawing></w:r></w:p>'
        for number, description in enumerate(["A pump", ""])
    )
    content = read_docx(Source.from_bytes(write_word(pictures + paragraph("Text."))))
    assert content.text == "A pump\n\nText."
    assert content.removals == {PICTURES: ("Picture 1",)}


def graphic(name: str, reference: str) -> str:
    return (
        f'<w:r><w:drawing><wp:inline><wp:docPr name="Graphic"/><a:graphicData xmlns:a="{DRAWING}main">'
        f'<c:{name} xmlns:c="{DRAWING}{name}" {reference}/></a:graphicData></wp:inline></w:drawing></w:r>'
    )


def test_charts_and_diagrams_are_read() -> None:
    series = (
        f'<c:ser xmlns:c="{DRAWING}chart"><c:tx><c:v>Pumps</c:v></c:tx>'
        '<c:cat><c:pt idx="0"><c:v>May</c:v></c:pt></c:cat><c:val><c:pt idx="0"><c:v>31</c:v></c:pt></c:val></c:ser>'
    )
    point = (
        f'<d:ptLst xmlns:d="{DRAWING}diagram" xmlns:a="{DRAWING}main"><d:pt modelId="1"><d:t><a:p><a:r><a:t>Order</a:t>'
        "</a:r></a:p></d:t></d:pt></d:ptLst>"
    )
    chart, diagram = graphic("chart", 'r:id="chart"'), graphic("relIds", 'r:dm="diagramData"')
    lost = graphic("chart", 'r:id="lost"')
    choice = f'<mc:AlternateContent><mc:Choice Requires="wpg">{chart}</mc:Choice><mc:Fallback/></mc:AlternateContent>'
    text = text_of(
        f"<w:p>{run('Output')}{choice}</w:p><w:p>{diagram}</w:p><w:p>{lost}</w:p>{paragraph('End')}",
        chart=series,
        diagramData=point,
    )
    assert text == "Output\n\nMay\tPumps: 31\n\nOrder\n\nEnd"


def test_each_body_is_read() -> None:
    assert text_of(f"{paragraph('One')}</w:body><w:body>{paragraph('Two')}") == "One\n\nTwo"


def test_comments_and_embedded_files_are_listed() -> None:
    comments = f"<w:comment>{paragraph('Which pump?')}<w:p/></w:comment>"
    content = read_docx(
        Source.from_bytes(write_word(paragraph("Pumps leak."), comments=comments, package="", oleObject1=""))
    )
    assert content.text == "Pumps leak."
    assert content.removals == {COMMENTS: ("Which pump?",), FILES: ("package.xml", "oleObject1.xml")}


def test_a_table_of_contents_whose_field_does_not_end_takes_no_text_with_it() -> None:
    begin, end = field("TOC", "|").split("|")
    assert text_of(f"<w:p>{begin}{run('Pumps 2')}</w:p>{paragraph('Text.')}") == "Pumps 2\n\nText."
    late = f"<w:p>{begin}{run('Pumps 2')}</w:p>{paragraph('Pumps', 'Heading1')}{paragraph('Text.')}<w:p>{end}</w:p>"
    assert text_of(late).endswith("Pumps\n\nText.")


def test_text_of_headers_and_footers_comes_first_and_once_without_page_numbers() -> None:
    pages = f"<w:p>{run('WI-4471, page ')}{field('PAGE', run('2'))}{run(' of ')}{field('NUMPAGES', run('9'))}</w:p>"
    simple = '<w:p><w:fldSimple w:instr=" PAGE "><w:r><w:t>2</w:t></w:r></w:fldSimple></w:p>'
    body = paragraph("Screens", "Heading1") + paragraph("Lift them.")
    content = read_docx(
        Source.from_bytes(
            write_word(body, header1=pages, header2=pages + paragraph("Screens"), footer1=simple + paragraph("- 17 -"))
        )
    )
    assert content.text == "WI-4471,\n\nScreens\n\nLift them."
    assert (content.title, content.text[content.sections[0].start :][:7]) == ("Screens", "Screens")


def test_notes_come_last_with_the_numbers_of_their_references() -> None:
    body = f'<w:p>{run("Old")}<w:r><w:footnoteReference w:id="4"/></w:r>{run(" bells")}'
    body += '<w:r><w:endnoteReference w:id="2"/></w:r></w:p>'
    notes = {
        "footnotes": f'<w:footnote w:id="4">{paragraph("Of 1702.")}</w:footnote>',
        "endnotes": f'<w:endnote w:id="2">{paragraph("Of bronze.")}</w:endnote>',
    }
    assert text_of(body, **notes) == "Old[1] bells[2]\n\n  1. Of 1702.\n  2. Of bronze."


def test_a_note_with_several_references_is_read_once() -> None:
    reference = '<w:r><w:footnoteReference w:id="4"/></w:r>'
    notes = f'<w:footnote w:id="4">{paragraph("Of 1702.")}</w:footnote>'
    assert text_of(f"<w:p>{run('Old')}{reference}{run(' bell')}{reference}</w:p>", footnotes=notes) == (
        "Old[1] bell[1]\n\n  1. Of 1702."
    )


def test_only_one_alternative_of_a_text_box_is_read_after_its_paragraph() -> None:
    box = f"<w:txbxContent>{paragraph('Boxed.')}</w:txbxContent>"
    choices = f"<mc:AlternateContent><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback></mc:AlternateContent>"
    assert text_of(f"<w:p>{run('Be')}<w:r>{choices}</w:r>{run('fore.')}</w:p>") == "Before.\n\nBoxed."


def test_a_missing_target_of_a_relation_leaves_the_text() -> None:
    body = (
        f'<w:p>{run("Intro")}<w:hyperlink r:id="x">{run(" link")}</w:hyperlink><w:footnoteReference w:id="77"/></w:p>'
    )
    picture = '<w:drawing><wp:inline><wp:docPr descr="A pump"/></wp:inline></w:drawing>'
    body += f'<w:altChunk r:id="gone"/><w:p><w:r>{picture}</w:r></w:p>'
    assert text_of(body) == "Intro link\n\nA pump"
    assert text_of(paragraph("Text."), styles="<w:damaged>") == "Text."


@pytest.mark.parametrize(
    "chunk",
    [
        "<html><body><h1>Boilers</h1><p>Opened at 9.1 bar.</p></body></html>",
        'MIME-Version: 1.0\nContent-Type: multipart/related; boundary="b"\n\n--b\nContent-Type: text/html\n\n'
        "<h1>Boilers</h1><p>Opened at 9.1 bar.</p>\n--b--",
    ],
)
def test_embedded_pages_are_read_at_their_place(chunk: str) -> None:
    content = read_docx(
        Source.from_bytes(
            write_word(paragraph("Cover.") + '<w:altChunk r:id="aFChunk"/>' + paragraph("End."), aFChunk=chunk)
        )
    )
    assert content.text == "Cover.\n\nBoilers\n\nOpened at 9.1 bar.\n\nEnd."
    assert [section.name for section in content.sections] == ["Boilers"]


def test_a_document_in_the_strict_form_is_read() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(
            "word/document.xml",
            '<w:document xmlns:w="http://purl.oclc.org/ooxml/wordprocessingml/main"><w:body>'
            f"{paragraph('Text.')}</w:body></w:document>",
        )
    assert read_docx(Source.from_bytes(file.getvalue())).text == "Text."
