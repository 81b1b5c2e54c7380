"""Finds the text that Word generates in fields, such as tables of contents and page numbers."""

from __future__ import annotations

from collections.abc import Callable, Container
from xml.etree.ElementTree import Element

from polyad_readers.office.docx.package import get_number, get_value, is_on
from polyad_readers.shared.text_builder import TICKED, UNTICKED

CONTENTS_FIELDS = frozenset({"TOC", "INDEX", "TOA"})
"""Fields of tables of contents, indexes and tables of authorities."""

PAGE_FIELDS = frozenset({"PAGE", "NUMPAGES", "SECTIONPAGES", "SECTION"})


def get_field_name(instruction: str) -> str:
    r"""Return the name of a field: the first word of its instruction.

    >>> get_field_name(' TOC \\o "1-3" ')
    'TOC'
    """
    return next(iter(instruction.split(None, 1)), "").upper()


def find_generated_texts(root: Element, names: Container[str], get_rank: Callable[[Element], int]) -> set[int]:
    """Return the ``id()`` of each text element (``w-t``) in the results of complete fields with one of the names.

    A heading inside a table of contents shows that the end of the field is misplaced, so its texts are kept.

    Args:
        root: The document, or a header or footer.
        names: Names of fields, such as ``TOC``.
        get_rank: Returns the rank of a paragraph as a heading, or 0.
    """
    generated: set[int] = set()
    texts: list[int] = []
    open_fields: list[tuple[list[str], int]] = []  # instruction of each open field, and number of texts before it
    last_heading = -1  # number of texts before the last heading in an open field
    for element in root.iter():
        kind = get_value(element, "fldCharType") if element.tag == "w-fldChar" else ""
        if element.tag == "w-t":
            texts.append(id(element))
        elif element.tag == "w-instrText" and open_fields:
            open_fields[-1][0].append(element.text or "")
        elif kind == "begin":
            open_fields.append(([], len(texts)))
        elif kind == "end" and open_fields:
            instruction, start = open_fields.pop()
            if last_heading < start and get_field_name("".join(instruction)) in names:
                generated.update(texts[start:])
                del texts[start:]
        elif element.tag == "w-p" and open_fields and get_rank(element):
            last_heading = len(texts)
    return generated


def format_form_field(field: Element) -> str:
    """Return the state of a form field that has no text of its own: a check box or a list of choices."""
    if (box := field.find("w-ffData/w-checkBox")) is not None:
        state = box.find("w-checked")
        return TICKED if is_on(box.find("w-default") if state is None else state) else UNTICKED
    if (choices := field.find("w-ffData/w-ddList")) is not None:
        state = choices.find("w-result")
        place = get_number(choices.find("w-default") if state is None else state)
        return next(
            (get_value(entry) for number, entry in enumerate(choices.iterfind("w-listEntry")) if number == place), ""
        )
    return ""
