"""Pictures of what training did, where matplotlib is installed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

logger = logging.getLogger(__name__)


def new_figure(name: str, width: float, height: float) -> Figure | None:
    """An empty figure of so many inches; without matplotlib None, and a warning that there will be no ``name``."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        logger.warning("no picture %s, because matplotlib is missing; pip install 'polyad[plots]'", name)
        return None
    return Figure(figsize=(width, height), layout="constrained")
