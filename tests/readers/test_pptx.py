import io
import zipfile
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any
from xml.etree.ElementTree import fromstring

import pptx
import pytest
from pptx.chart.data import BubbleChartData, CategoryChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.enum.shapes import PP_PLACEHOLDER
from pptx.util import Inches

from polyad.indexing.documents import build_title, find_headings, find_sections
from polyad.model import Document, Span
from polyad.readers.format import Content, Source
from polyad_readers.office.drawings import list_paragraphs, read_diagram
from polyad_readers.office.pptx import read_pptx

TITLE, BULLETS, TITLE_ONLY, BLANK = 0, 1, 5, 6
FOOTER = PP_PLACEHOLDER.FOOTER


def read(build: Callable[[Any], object], title: str = "") -> Content:
    presentation = pptx.Presentation()
    presentation.core_properties.title = title
    build(presentation)
    file = io.BytesIO()
    presentation.save(file)
    return read_pptx(Source.from_bytes(file.getvalue()))


def slide(presentation: Any, layout: int, title: str = "", body: str = "") -> Any:
    made = presentation.slides.add_slide(presentation.slide_layouts[layout])
    if title:
        made.shapes.title.text = title
    if body:
        made.placeholders[1].text = body
    return made


def test_each_slide_is_a_place_and_its_title_a_section() -> None:
    def build(presentation: Any) -> None:
        slide(presentation, BULLETS, "Pumps", "Old\nWorn")
        slide(presentation, BLANK)
        slide(presentation, BULLETS, "Valves", "New")

    content = read(build)
    assert [(place.slide, content.text[place.start : place.end]) for place in content.places] == [
        (1, "Pumps\n\nOld\nWorn"),
        (2, ""),
        (3, "Valves\n\nNew"),
    ]
    assert {part.name: content.text[part.start : part.end] for part in content.sections if part.strength} == {
        "Pumps": "Pumps\n\nOld\nWorn",
        "Valves": "Valves\n\nNew",
    }
    assert content.metadata["slides"] == 3


def test_the_text_of_boxes_groups_tables_and_notes_is_read() -> None:
    def build(presentation: Any) -> None:
        made = slide(presentation, TITLE_ONLY, "Pumps")
        box = (Inches(1), Inches(1), Inches(2), Inches(1))
        made.shapes.add_group_shape().shapes.add_group_shape().shapes.add_textbox(*box).text_frame.text = "In a group"
        table = made.shapes.add_table(2, 2, *box).table
        for place, text in enumerate(["Name", "Flow", "P1", "3\nl/s"]):
            table.cell(place // 2, place % 2).text = text
        made.notes_slide.notes_text_frame.text = "Say why."

    assert read(build).text == "Pumps\n\nIn a group\n\nName: P1\tFlow: 3 l/s\n\nSay why."


def test_the_title_of_a_presentation_is_the_one_in_its_properties_else_that_of_its_first_slide() -> None:
    def build(presentation: Any) -> None:
        slide(presentation, TITLE, "Pumps of  Saltby", "Spring meeting")

    assert read(build, "The pumps").title == "The pumps"
    assert read(build, "PowerPoint Presentation").title == "Pumps of Saltby"


@pytest.mark.parametrize("title", ["The pumps of Saltby", ""])
def test_each_slide_stands_below_the_title_of_its_presentation_and_is_about_its_own(title: str) -> None:
    def build(presentation: Any) -> None:
        slide(presentation, TITLE, "Pumps of Saltby", "Spring meeting")
        slide(presentation, BULLETS, "Valves", "New")
        slide(presentation, BLANK).shapes.add_textbox(0, 0, 9, 9).text_frame.text = "Otters"

    content = read(build, title)
    deck = title or "Pumps of Saltby"
    document = Document("d", content.title, content.text, sections=content.sections, places=content.places)
    spans = [Span(place.start, place.end) for place in content.places]
    first, *others = find_sections(document, spans)
    assert {section.strength for section in first if section.name == deck} >= {1.0}
    subjects = [[section.name for section in sections if section.strength] for sections in others]
    assert subjects == [["Valves"], []]
    titles = [build_title(sections, span.end - span.start) for sections, span in zip(others, spans[1:], strict=True)]
    assert titles == [f"{deck} / Valves", deck]
    assert list(find_headings(document, spans))[1:] == titles


def boxes(*texts_and_places: tuple[str, float, float]) -> Callable[[Any], None]:
    def build(presentation: Any) -> None:
        made = slide(presentation, TITLE_ONLY, "Pumps")
        for text, left, top in texts_and_places:
            made.shapes.add_textbox(Inches(left), Inches(top), Inches(3), Inches(1)).text_frame.text = text

    return build


def test_boxes_are_read_from_top_to_bottom_in_columns() -> None:
    columns = boxes(("d", 5, 3), ("b", 1, 3), ("c", 5, 2), ("a", 1, 2))
    assert read(columns).text == "Pumps\n\na\n\nb\n\nc\n\nd"
    rows = boxes(("d", 4.5, 5), ("b", 4.5, 2), ("c", 1, 5), ("a", 1, 2))
    assert read(rows).text == "Pumps\n\na\n\nb\n\nc\n\nd"


def test_a_chart_has_a_line_for_each_category_with_its_values() -> None:
    def build(presentation: Any) -> None:
        chart_data: Any = CategoryChartData  # has no types
        data = chart_data(number_format="0%")
        data.categories = ["Leak", "Noise"]
        data.add_series("Aldby", (0.3, 0.1))
        data.add_series("Saltby", (0.05, None))
        box = (Inches(1), Inches(1), Inches(2), Inches(1))
        chart = slide(presentation, BLANK).shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *box, data).chart
        chart.has_title = True
        chart.chart_title.text_frame.text = "Complaints"
        chart.plots[0].series[0].points[1].data_label.text_frame.text = "after the repair"
        chart_data = XyChartData
        points = chart_data()
        points.add_series("Flow").add_data_point(2, 7)
        slide(presentation, BLANK).shapes.add_chart(XL_CHART_TYPE.XY_SCATTER, *box, points)
        chart_data = BubbleChartData
        bubbles = chart_data()
        bubbles.add_series("Flow").add_data_point(2, 7, 40)
        slide(presentation, BLANK).shapes.add_chart(XL_CHART_TYPE.BUBBLE, *box, bubbles)

    assert read(build).text.split("\n\n") == [
        "Complaints\nLeak\tAldby: 30%\tSaltby: 5%\nNoise\tAldby: 10% (after the repair)",
        "2\tFlow: 7",
        "2\tFlow: 7 (40)",
    ]


def change(data: bytes, part: str, *changes: tuple[str, str]) -> bytes:
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(changed, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            for old, new in changes if name == part else ():
                content = content.replace(old.encode(), new.encode())
            target.writestr(name, content)
    return changed.getvalue()


def save(build: Callable[[Any], object]) -> bytes:
    presentation = pptx.Presentation()
    build(presentation)
    file = io.BytesIO()
    presentation.save(file)
    return file.getvalue()


def test_a_shape_with_the_id_of_the_title_is_read() -> None:
    data = change(save(boxes(("Old", 1, 2))), "ppt/slides/slide1.xml", (' id="3"', ' id="2"'))
    assert read_pptx(Source.from_bytes(data)).text == "Pumps\n\nOld"


def test_a_presentation_that_refers_to_a_missing_part_is_read() -> None:
    relation = '<Relationship Id="rId9" Type="http://x/image" Target="../media/NULL"/></Relationships>'
    data = save(boxes(("Old", 1, 2)))
    assert (
        read_pptx(
            Source.from_bytes(change(data, "ppt/slides/_rels/slide1.xml.rels", ("</Relationships>", relation)))
        ).text
        == "Pumps\n\nOld"
    )


def test_the_texts_of_a_diagram_are_in_the_order_of_its_hierarchy() -> None:
    texts = {"d": "", "b": "Second", "c": "Detail", "a": "First"}
    points = "".join(
        f'<dgm:pt modelId="{key}" type="{"doc" if key == "d" else "node"}"><dgm:t><a:p><a:r><a:t>{text}</a:t></a:r>'
        "</a:p></dgm:t></dgm:pt>"
        for key, text in texts.items()
    )
    links = "".join(
        f'<dgm:cxn srcId="{source}" destId="{target}" srcOrd="{order}"/>'
        for source, target, order in (("d", "b", 1), ("d", "a", 0), ("a", "c", 0))
    )
    spaces = 'xmlns:dgm="http://x/diagram" xmlns:a="http://x/main"'
    model = f"<dgm:dataModel {spaces}><dgm:ptLst>{points}</dgm:ptLst><dgm:cxnLst>{links}</dgm:cxnLst></dgm:dataModel>"
    assert read_diagram(fromstring(model)) == "First\nDetail\nSecond"


@pytest.mark.parametrize(
    ("styles", "text"),
    [
        (['type="arabicPeriod"'] * 3, "1. a\n2. b\n3. c"),
        (['type="alphaLcParenBoth" startAt="3"'] * 3, "(c) a\n(d) b\n(e) c"),
        (['type="romanUcParenR"', None, 'type="romanUcParenR"'], "I) a\nb\nI) c"),
        (['type="arabicPlain"', ('type="alphaUcPeriod"', 1), 'type="arabicPlain"'], "1 a\nA. b\n2 c"),
    ],
)
def test_paragraphs_have_the_numbers_that_powerpoint_displays(styles: Sequence[Any], text: str) -> None:
    paragraphs = ""
    for letter, style in zip("abc", styles, strict=True):
        kind, level = style if isinstance(style, tuple) else (style, 0)
        number = f"<a:buAutoNum {kind}/>" if kind else ""
        paragraphs += f'<a:p><a:pPr lvl="{level}">{number}</a:pPr><a:r><a:t>{letter}</a:t></a:r></a:p>'
    assert "\n".join(list_paragraphs(fromstring(f'<a:txBody xmlns:a="a">{paragraphs}</a:txBody>'))) == text


def test_a_footer_is_read_once() -> None:
    def build(presentation: Any) -> None:
        for text in ("Strictly confidential", "Strictly confidential", "Draft 7"):
            made = slide(presentation, BLANK)
            footer = next(one for one in made.slide_layout.placeholders if one.placeholder_format.type == FOOTER)
            made.shapes._spTree.append(deepcopy(footer._element))
            made.shapes[-1].text_frame.text = text

    assert read(build).text.split() == ["Strictly", "confidential", "Draft", "7"]


def test_text_of_layouts_and_masters_outside_of_placeholders_is_read_once() -> None:
    def build(presentation: Any) -> None:
        for background, text in (
            (presentation.slide_master, "ACME"),
            (presentation.slide_layouts[BLANK], "Secret \u2039#\u203a"),
        ):
            source = slide(presentation, BLANK)
            source.shapes.add_textbox(0, 0, Inches(1), Inches(1)).text_frame.text = text
            background.shapes._spTree.append(source.shapes[-1]._element)
        slide(presentation, BLANK)

    assert read(build).text.split() == ["Secret", "ACME"]


def test_repeated_footers_pictures_comments_and_embedded_files_are_listed() -> None:
    def build(presentation: Any) -> None:
        for _ in range(2):
            made = slide(presentation, BLANK)
            footer = next(one for one in made.slide_layout.placeholders if one.placeholder_format.type == FOOTER)
            made.shapes._spTree.append(deepcopy(footer._element))
            made.shapes[-1].text_frame.text = "Draft 7"

    pictures = "".join(
        f'<p:pic><p:nvPicPr><p:cNvPr id="9" name="Picture {descr[:1]}" descr="{descr}"/></p:nvPicPr></p:pic>'
        for descr in ("The hall in 1902", "hall.JPG")
    )
    relations = "".join(
        f'<Relationship Id="{kind}" Type="urn:x/{kind}" Target="../{kind}.xml"/>' for kind in ("comments", "oleObject")
    )
    data = change(save(build), "ppt/slides/slide2.xml", ("</p:spTree>", f"{pictures}</p:spTree>"))
    data = change(data, "ppt/slides/_rels/slide2.xml.rels", ("</Relationships>", f"{relations}</Relationships>"))
    file = io.BytesIO(data)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr(
            "ppt/comments.xml", '<c:cmLst xmlns:c="urn:c"><c:cm><c:text>Too long</c:text></c:cm></c:cmLst>'
        )
    content = read_pptx(Source.from_bytes(file.getvalue()))
    assert content.text.split("\n\n") == ["Draft 7", "The hall in 1902"]
    assert content.removals == {
        "removed_headers": ("Draft 7",),
        "pictures_without_text": ("Picture h",),
        "removed_comments": ("Too long",),
        "embedded_files": ("oleObject.xml",),
    }


@pytest.mark.parametrize("part", ["ppt/slides/slide1.xml", "ppt/notesSlides/notesSlide1.xml"])
def test_headers_and_typed_dates_are_read_and_numbers_and_dates_of_today_are_not(part: str) -> None:
    def build(presentation: Any) -> None:
        slide(presentation, BLANK).notes_slide.notes_text_frame.text = "Say why."

    shapes = "".join(
        f'<p:sp><p:nvSpPr><p:cNvPr id="{place}" name=""/><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr><p:txBody>'
        f"<a:p><a:{element}><a:t>{text}</a:t></a:{element}></a:p></p:txBody></p:sp>"
        for place, (kind, element, text) in enumerate(
            [("hdr", "r", "Secret"), ("dt", "r", "May 1995"), ("dt", "fld", "Today"), ("sldNum", "fld", "7")], 90
        )
    )
    content = read_pptx(Source.from_bytes(change(save(build), part, ("</p:spTree>", f"{shapes}</p:spTree>"))))
    assert sorted(content.text.split("\n\n")) == ["May 1995", "Say why.", "Secret"]
    assert content.removals == {"removed_headers": ("Today", "7")}
