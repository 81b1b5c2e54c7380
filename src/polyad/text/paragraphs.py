"""Where paragraphs begin."""

from __future__ import annotations

_MARGIN = 16
"""Characters of white space that are looked at before an offset: blank lines with some blanks in them."""


def begins_paragraph(text: str, offset: int) -> bool:
    r"""Whether what stands at ``offset`` begins a paragraph: a blank line is before it, or nothing at all.

    >>> begins_paragraph("One.\n\nTwo. Three.", 6), begins_paragraph("One.\n\nTwo. Three.", 11)
    (True, False)
    """
    before = text[max(0, offset - _MARGIN) : offset]
    blank = before[len(before.rstrip()) :]
    return blank.count("\n") > 1 or (blank == before and offset <= _MARGIN)
