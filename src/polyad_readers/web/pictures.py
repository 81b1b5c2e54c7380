"""Reads the pictures of an HTML page, with their captions."""

from __future__ import annotations

from collections.abc import Callable

from resiliparse.parse.html import ElementNode, HTMLTree

from polyad.readers.format import Load, Pictures

_MAX_FIGURE_DEPTH = 6
"""Elements between a picture and the figure whose caption belongs to it."""

FindPicture = Callable[[str], tuple[str, Load] | None]
"""Returns key and bytes of the picture with an address; None if the picture is not part of the document."""


class HtmlPictures:
    """The pictures of a page.

    Args:
        pictures: Reads the text of pictures.
        find_picture: Returns key and bytes of the picture with an address.
        tree: The page.
    """

    def __init__(self, pictures: Pictures, find_picture: FindPicture, tree: HTMLTree) -> None:
        self._pictures = pictures
        self._find_picture = find_picture
        images = tree.body.query_selector_all("img") if tree.body else []
        pictures.count(place[0] for image in images if (place := find_picture(image.getattr("src") or "")))

    def read(self, image: ElementNode) -> str:
        """Return the text of an ``img`` element to be written at its place."""
        place = self._find_picture(image.getattr("src") or "")
        if place is None:
            return ""
        self._pictures.add_caption("")
        self._pictures.add_caption(_find_caption(image))
        return self._pictures.read(*place, image.getattr("alt") or "")

    def has_text(self, image: ElementNode) -> bool:
        """Return whether text of this ``img`` element was read."""
        place = self._find_picture(image.getattr("src") or "")
        return place is not None and self._pictures.has_text(place[0])


def _find_caption(image: ElementNode) -> str:
    """Return the caption of the figure that contains a picture; an empty string if there is none."""
    parent = image.parent
    for _ in range(_MAX_FIGURE_DEPTH):
        if not isinstance(parent, ElementNode):
            break
        if parent.tag == "figure":
            caption = parent.query_selector("figcaption")
            return (caption.text or "") if caption else ""
        parent = parent.parent
    return ""
