"""Pictures, where matplotlib is installed."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

from polyad.text.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

logger = logging.getLogger(__name__)

_MARKERS = "osD^vPX*<>"
_DASHES = ("-", "--", ":", "-.")
_SHADES = ("#000000", "#555555", "#888888")


def create_figure(name: str, width: float, height: float) -> Figure | None:
    """An empty figure of so many inches; without matplotlib None, and a warning that there will be no ``name``."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        logger.warning("no picture %s, because matplotlib is missing; pip install 'polyad[plots]'", name)
        return None
    return Figure(figsize=(width, height), layout="constrained")


def iterate_line_styles() -> Iterator[tuple[str, str, str]]:
    """Marker, dash and shade for one line after the other, of which those of ten in a row differ in every print."""
    return zip(cycle(_MARKERS), cycle(_DASHES), cycle(_SHADES), strict=False)


def escape_label(name: str) -> str:
    """A name as it is written: to matplotlib dollars are formulas, and what begins with ``_`` is not to be shown."""
    return f" {name}".replace("$", r"\$")


def save_figure(figure: Figure, path: Path, *, words_as_text: bool = False) -> None:
    """Write the figure to ``path``, whole or not at all; the same figure gives the same bytes.

    Args:
        figure: What to write.
        path: Of a ``.png`` or ``.svg``.
        words_as_text: Whether an SVG leaves its letters to the fonts of whoever looks at it, and is a fraction as long.
    """
    from matplotlib import rc_context

    picture, kind = io.BytesIO(), path.suffix[1:]
    letters = "none" if words_as_text else "path"
    with rc_context({"svg.hashsalt": "polyad", "svg.fonttype": letters}):  # without a salt, names in it are random
        figure.savefig(picture, format=kind, dpi=120, metadata={"Date": None} if kind == "svg" else None)
    write_atomically(path, picture.getvalue())
