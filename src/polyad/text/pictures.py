"""The labels of the pictures of a document, by which hits and pages find the pictures."""

from __future__ import annotations

from collections.abc import Mapping

from polyad.model import MetadataValue
from polyad.text.words import collapse_whitespace

PICTURE_LIST = "pictures"
"""Metadata key with the caption, description or name of each picture of a document."""

_MIN_LINE = 4
"""Characters of the shortest text that leads to a picture."""


def contains_text(text: str, part: str) -> bool:
    r"""Return whether a text has a part, whatever white space is between the words.

    >>> contains_text("Figure 3:\nthe old  pump", "the old pump"), contains_text("A pump", "A")
    (True, False)
    """
    words = collapse_whitespace(part)
    return len(words) >= _MIN_LINE and words in collapse_whitespace(text)


def select_labels(metadata: Mapping[str, MetadataValue], text: str) -> Mapping[str, MetadataValue]:
    """Return the metadata of a document with the labels of those pictures that a part of its text names."""
    labels = metadata.get(PICTURE_LIST)
    if not isinstance(labels, tuple):
        return metadata
    rest = {key: value for key, value in metadata.items() if key != PICTURE_LIST}
    named = tuple(label for label in labels if contains_text(text, label.removesuffix(" \u2026")))
    return {**rest, PICTURE_LIST: named} if named else rest
