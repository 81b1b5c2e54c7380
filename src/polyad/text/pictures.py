"""The labels of the pictures of a document, by which hits and pages find the pictures."""

from __future__ import annotations

import re
from collections.abc import Mapping

from polyad.model import MetadataValue
from polyad.text.words import collapse_whitespace, shorten_at_word

PICTURE_LIST = "pictures"
"""Metadata key with the caption, description or name of each picture of a document."""

MAX_LISTED, _MAX_LABEL = 200, 120
"""Most pictures that a document lists, and characters of the label of each."""

MAX_LIST_CHARACTERS = MAX_LISTED * (_MAX_LABEL + 3)
"""Characters of the labels of a document together, each with the end of a shortened one."""

_CUT = " \u2026"
"""End of a label that was shortened."""

_MIN_LINE = 4
"""Characters of the shortest text that leads to a picture."""


def contains_text(text: str, part: str) -> bool:
    r"""Return whether a text has a part, whatever white space is between the words.

    >>> contains_text("Figure 3:\nthe old  pump", "the old pump"), contains_text("A pump", "A")
    (True, False)
    """
    words = collapse_whitespace(part)
    return len(words) >= _MIN_LINE and words in collapse_whitespace(text)


def build_label(caption: str) -> str:
    """Return a caption, description or name in one line of limited length.

    >>> build_label("Figure 3: The  pump of the sta-")
    'Figure 3: The pump of the …'
    """
    line = collapse_whitespace(caption)
    return f"{line.rpartition(' ')[0]}{_CUT}" if line.endswith("-") else shorten_at_word(line, _MAX_LABEL)


def find_label(text: str, label: str) -> int | None:
    r"""Return the offset at which a text has a label, whatever white space is between its words; None if it has not.

    >>> find_label("See\nFigure 3:\nThe pump", "Figure 3: The ...".replace("...", "\u2026"))
    4
    """
    words = label.removesuffix(_CUT)[:_MAX_LABEL].split()  # an author may have written a longer list
    match = re.search(r"\s+".join(map(re.escape, words)), text) if words else None
    return match.start() if match else None


def select_labels(metadata: Mapping[str, MetadataValue], text: str) -> Mapping[str, MetadataValue]:
    """Return the metadata of a document with the labels of those pictures that a part of its text names."""
    labels = metadata.get(PICTURE_LIST)
    if not isinstance(labels, tuple):
        return metadata
    rest = {key: value for key, value in metadata.items() if key != PICTURE_LIST}
    words = collapse_whitespace(text)
    named = tuple(label for label in labels[:MAX_LISTED] if contains_text(words, label.removesuffix(_CUT)))
    return {**rest, PICTURE_LIST: named} if named else rest
