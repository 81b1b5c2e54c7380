"""Reads charts, diagrams (SmartArt), pictures and comments, which Word, Excel and PowerPoint store in similar parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from xml.etree.ElementTree import Element

from polyad.readers.text.plain_text import clean, to_single_line
from polyad_readers.office.number_formats import format_number
from polyad_readers.shared.numbering import format_number as format_list_number

_LIST_FORMATS = {"alphaLc": "lowerLetter", "alphaUc": "upperLetter", "romanLc": "lowerRoman", "romanUc": "upperRoman"}
_LIST_SIGNS = {"ParenBoth": ("(", ")"), "ParenR": ("", ")"), "Plain": ("", ""), "Minus": ("-", "-")}
"""Format of a number, and the signs before and after, by the beginning and the end of a name such as alphaLcParenR."""

_FILE_NAME = re.compile(r"\S.*\.(?:png|jpe?g|gif|emf|wmf|bmp|tiff?|svg)", re.IGNORECASE)
"""Name of a picture's file, which programs state as its description."""


def read_graphic(reference: Element, parse_part: Callable[[str], Element]) -> str:
    """Return the text of the chart or diagram to which an element of a drawing refers; empty for another element.

    Args:
        reference: An element ``chart`` or ``relIds``.
        parse_part: Returns the root of the part with a relation id; an empty element if there is no such part.
    """
    attribute, read = GRAPHICS.get(reference.tag.rpartition("}")[2], ("", read_chart))
    relation_id = get_relation_id(reference, attribute) if attribute else ""
    return read(parse_part(relation_id)) if relation_id else ""


def iterate_drawing(drawing: Element, parse_part: Callable[[str], Element]) -> Iterator[str]:
    """Yield the text of each shape, chart and diagram of a drawing, whose text may be empty.

    Args:
        drawing: The root of a drawing; of alternatives, those for newer programs are read.
        parse_part: Returns the root of the part with a relation id; an empty element if there is no such part.
    """
    pending = [drawing]
    while pending:
        element = pending.pop()
        if element.tag.endswith("}txBody"):
            yield "\n".join(list_paragraphs(element)).strip()
        elif not element.tag.endswith("}Fallback"):
            yield describe_picture(element) or read_graphic(element, parse_part)
            pending.extend(reversed(element))


def get_relation_id(element: Element, name: str) -> str:
    """Return the id of the relation in an attribute, which has a namespace, unlike the element's own ``id``."""
    return next((value for key, value in element.items() if key.endswith(f"}}{name}")), "")


def describe_picture(picture: Element) -> str:
    """Return the description of a picture as one line; an empty string for none, and for the name of a file."""
    properties = picture.find("{*}nvPicPr/{*}cNvPr")
    line = "" if properties is None else to_single_line(properties.get("descr", ""))
    return "" if _FILE_NAME.fullmatch(line) else line


def list_undescribed_pictures(drawing: Element, with_text: Container[int] = ()) -> list[str]:
    """Return the names of the pictures without a description in a drawing or slide, except those with text.

    Args:
        drawing: The drawing or slide.
        with_text: Identities of the pictures whose text was read.
    """
    pictures = (picture for picture in drawing.iter() if picture.tag.endswith("}pic") and not describe_picture(picture))
    properties = (picture.find("{*}nvPicPr/{*}cNvPr") for picture in pictures if id(picture) not in with_text)
    return ["picture" if one is None else one.get("name") or "picture" for one in properties]


def list_comments(comments: Element) -> list[str]:
    """Return the text of each comment in a part with comments of a sheet or slide, in old and new formats."""
    lines = [
        "".join(piece for one in comment.iter() if one.tag.endswith(("}t", "}text")) for piece in [one.text or ""])
        for comment in comments.iter()
        if comment.tag.endswith(("}cm", "}comment"))
    ]
    return [line for line in map(to_single_line, lines) if line]


def read_chart(chart: Element) -> str:
    """Return the text of a chart: its titles, and a line for each category with the value of each series.

    Args:
        chart: The root of a chart part of DrawingML, ``chartSpace``.
    """
    rows: dict[tuple[int, str], list[str]] = {}
    for series in chart.iterfind(".//{*}ser"):
        name = to_single_line(" ".join(element.text or "" for element in series.iterfind("{*}tx//{*}v")))
        categories = _read_points(series.find("{*}cat")) or _read_points(series.find("{*}xVal"))
        values = _read_points(series.find("{*}val")) or _read_points(series.find("{*}yVal"))
        sizes = _read_points(series.find("{*}bubbleSize"))
        labels = _read_labels(series)
        for place, value in values.items():
            category = categories.get(place, "")
            row = rows.setdefault((place, category), [category] if category else [])
            notes = [f" ({note})" for note in (sizes.get(place), labels.get(place)) if note]
            row.append((f"{name}: {value}" if name else value) + "".join(notes))
    titles = [
        to_single_line(" ".join([*list_paragraphs(title), *(value.text or "" for value in title.iterfind(".//{*}v"))]))
        for title in chart.iterfind(".//{*}title")
    ]
    return "\n".join([*filter(None, titles), *("\t".join(row) for _, row in sorted(rows.items()))])


def _read_labels(series: Element) -> dict[int, str]:
    """Return the typed labels of the points of a series by their place."""
    labels = ((label.find("{*}idx"), list_paragraphs(label)) for label in series.iterfind("{*}dLbls/{*}dLbl"))
    return {int(index.get("val", 0)): to_single_line(" ".join(lines)) for index, lines in labels if index is not None}


def _read_points(data: Element | None) -> dict[int, str]:
    """Return the texts or numbers of a series by their place; labels of several levels are joined."""
    if data is None:
        return {}
    code = data.findtext(".//{*}formatCode") or ""
    points: dict[int, str] = {}
    for depth, level in enumerate(data.findall(".//{*}lvl") or [data]):
        labels = {int(point.get("idx", 0)): point.findtext("{*}v") or "" for point in level.iterfind(".//{*}pt")}
        if not depth:
            points = {place: _format_value(label, code) for place, label in labels.items()}
        else:  # an outer level, whose labels hold until the next one
            label = ""
            for place in sorted(points):
                label = labels.get(place, label)
                points[place] = f"{label} {points[place]}".strip()
    return points


def _format_value(text: str, code: str) -> str:
    if code:
        with suppress(ValueError):
            return format_number(float(text), code)
    return to_single_line(text)


def read_diagram(diagram: Element) -> str:
    """Return the texts of a diagram in the order of its hierarchy, a line each.

    Args:
        diagram: The root of a part with the data of a diagram, ``dataModel``.
    """
    points = {point.get("modelId", ""): point for point in diagram.iterfind("{*}ptLst/{*}pt")}
    children: dict[str, list[tuple[int, str]]] = {}
    for link in diagram.iterfind("{*}cxnLst/{*}cxn"):
        if link.get("type", "parOf") == "parOf":
            children.setdefault(link.get("srcId", ""), []).append((int(link.get("srcOrd", 0)), link.get("destId", "")))
    pending = [*reversed(points)]  # points that no link reaches come last
    pending += [key for key, point in points.items() if point.get("type") == "doc"]
    lines = []
    while pending:
        point = points.pop(key := pending.pop(), None)
        if point is not None:
            lines += list_paragraphs(point)
            pending += [child for _, child in sorted(children.get(key, ()), reverse=True)]
    return "\n".join(line for line in lines if line.strip())


GRAPHICS = {"chart": ("id", read_chart), "relIds": ("dm", read_diagram)}
"""Name of the element that refers to a graphic, to its attribute with the relation id and the reader of the part."""


def list_paragraphs(element: Element) -> list[str]:
    """Return the text of each paragraph in an element of DrawingML, with its automatic number and its line breaks."""
    lines = []
    numbers: dict[int, int] = {}
    for paragraph in element.iterfind(".//{*}p"):
        text = clean("".join(_iterate_texts(paragraph))).strip()
        lines.append(f"{_count_item(paragraph, numbers)} {text}".lstrip() if text else "")
    return lines


def _count_item(paragraph: Element, numbers: dict[int, int]) -> str:
    """Return the label of a paragraph, such as "2." or "(b)"; an empty string if it has no automatic number.

    Args:
        paragraph: A paragraph with text.
        numbers: The last number of each level of the list; the paragraph's number is added.
    """
    properties = paragraph.find("{*}pPr")
    level = 0 if properties is None else int(properties.get("lvl", 0))
    style = None if properties is None else properties.find("{*}buAutoNum")
    for ended in [one for one in numbers if one > level or (one == level and style is None)]:
        del numbers[ended]
    if style is None:
        return ""
    numbers[level] = numbers.get(level, int(style.get("startAt", 1)) - 1) + 1
    name = style.get("type", "")
    number_format = next((_LIST_FORMATS[start] for start in _LIST_FORMATS if name.startswith(start)), "decimal")
    before, after = next((_LIST_SIGNS[end] for end in _LIST_SIGNS if name.endswith(end)), ("", "."))
    return f"{before}{format_list_number(numbers[level], number_format)}{after}"


def _iterate_texts(paragraph: Element) -> Iterator[str]:
    for element in paragraph.iter():
        if element.tag.endswith("}t"):
            yield element.text or ""
        elif element.tag.endswith("}br"):
            yield "\n"
