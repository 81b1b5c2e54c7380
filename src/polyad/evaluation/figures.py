"""Figures with matplotlib, which is an optional dependency: readable in black and white, and reproducible."""

from __future__ import annotations

import importlib.util
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

_MAX_HEIGHT = 400
"""Height in inches that a picture can have at most."""

_MARKERS = "osD^vPX*<>"
_DASHES = ("-", "--", ":", "-.")
_SHADES = ("#000000", "#555555", "#888888")


def can_plot(name: str) -> bool:
    """Return whether matplotlib is installed; log a warning that names the missing plot if it is not."""
    is_installed = importlib.util.find_spec("matplotlib") is not None
    if not is_installed:
        logger.warning("no picture %s, because matplotlib is missing; pip install 'polyad[plots]'", name)
    return is_installed


def create_figure(width: float, height: float) -> Figure:
    """Create an empty figure; width and height are in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, min(height, _MAX_HEIGHT)), layout="constrained")


def iterate_line_styles() -> Iterator[tuple[str, str, str]]:
    """Yield marker, dash pattern and shade of successive lines; ten in a row can be told apart without colour."""
    return zip(cycle(_MARKERS), cycle(_DASHES), cycle(_SHADES), strict=False)


def escape_label(name: str) -> str:
    """Return a label that matplotlib shows literally.

    Dollar signs would start a formula, and a leading ``_`` would hide the label.
    """
    return f" {name}".replace("$", r"\$")


def save_figure(figure: Figure, path: Path, *, keep_svg_text: bool = False) -> None:
    """Write the figure to ``path`` atomically. Writing the same figure again produces identical bytes.

    Args:
        figure: The figure.
        path: A ``.png`` or ``.svg`` file.
        keep_svg_text: Whether an SVG holds text instead of outlines of letters, which makes it several times smaller.
    """
    from matplotlib import rc_context

    buffer, suffix = io.BytesIO(), path.suffix[1:]
    fonts = "none" if keep_svg_text else "path"
    with rc_context({"svg.hashsalt": "polyad", "svg.fonttype": fonts}):  # without a salt, ids in the SVG are random
        figure.savefig(buffer, format=suffix, dpi=120, metadata={"Date": None} if suffix == "svg" else None)
    write_atomically(path, buffer.getvalue())
