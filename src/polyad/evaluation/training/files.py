"""Files that training writes beside the weights: a report as JSON and a plot."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from polyad.errors import ConfigurationError
from polyad.evaluation.figures import can_plot, save_figure
from polyad.text.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@contextmanager
def create_training_folder(folder: Path) -> Iterator[None]:
    """Create a folder, and raise ConfigurationError if it or a file in the ``with`` block cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise ConfigurationError(f"cannot write into {str(folder)!r}: {error.strerror}") from error


def write_training_report(weights_path: Path, report: Mapping[str, object], plot: Callable[[], Figure]) -> None:
    """Write a report as JSON, and a plot as PNG if matplotlib is installed, beside a file of weights."""
    write_atomically(weights_path.with_suffix(".json"), json.dumps(report, indent=2) + "\n")
    if can_plot(weights_path.stem):
        save_figure(plot(), weights_path.with_suffix(".png"))
