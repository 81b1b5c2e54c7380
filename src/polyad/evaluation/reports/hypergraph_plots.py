"""Plots of hypergraphs: distributions of sizes, and the neighbourhood of one entity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import cos, pi, sin
from typing import TYPE_CHECKING

from polyad.evaluation.figures import create_figure, escape_label, iterate_line_styles
from polyad.evaluation.runs.hypergraph_statistics import Histogram, HypergraphStatistics, Neighbourhood

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MAX_NAME_LENGTH = 26

Point = tuple[float, float]


def plot_distributions(hypergraphs: Mapping[str, HypergraphStatistics]) -> Figure:
    """Plot the distributions of arity, degree and sentences per hyperedge, one line per hypergraph (HyperSU, Table 5).

    Each line shows the share of hyperedges or entities of at least a size, so that the few large ones are visible.
    """
    figure = create_figure(9, 3.2 + 0.22 * len(hypergraphs))
    panels = figure.subplots(1, 3, sharey=True)
    labels = {
        "arity": "entities of a hyperedge",
        "degree": "hyperedges of an entity",
        "sentences": "sentences of a hyperedge",
    }
    for axes, (attribute, label) in zip(panels, labels.items(), strict=True):
        histograms = {name: getattr(hypergraph, attribute) for name, hypergraph in hypergraphs.items()}
        _plot_cumulative(axes, histograms, label)
    panels[0].set_ylabel("per cent of this size or larger")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower left", ncols=2)
    return figure


def _plot_cumulative(axes: Axes, histograms: Mapping[str, Histogram], x_label: str) -> None:
    for (name, histogram), (marker, dash, shade) in zip(histograms.items(), iterate_line_styles(), strict=False):
        sizes = [size for size in histogram if size > 0]
        counts = list(accumulate(histogram[size] for size in reversed(sizes)))[::-1]
        shares = [100 * count / sum(histogram.values()) for count in counts]
        style = {"marker": marker, "linestyle": dash, "color": shade, "markersize": 4}
        (line,) = axes.plot(sizes, shares, label=escape_label(name), **style)  # type: ignore[arg-type]
        line.set_markevery(0.06)  # markers at every point would hide the dashes
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("")
    axes.set_xlabel(x_label)
    axes.grid(color="#dddddd")


def plot_neighbourhood(neighbourhood: Neighbourhood) -> Figure:
    """Plot an entity, its hyperedges (squares) and their other members (HyperGraphRAG, Figure 5)."""
    figure = create_figure(9, 7)
    axes = figure.subplots()
    entities, squares = _compute_layout(neighbourhood)
    for square, members in zip(squares, neighbourhood.hyperedges, strict=True):
        for name in members:
            end = entities.get(name, (0.0, 0.0))
            axes.plot(*zip(square, end, strict=True), color="#999999", linewidth=1, zorder=1)
    axes.plot(*zip(*squares, strict=True), marker="s", color="#000000", linestyle="", markersize=9)
    axes.plot(0, 0, marker="o", color="#ffffff", markeredgecolor="#000000", linestyle="", markersize=14)
    _write_name(axes, neighbourhood.entity, (0.0, -0.12), "center")
    for name, (x, y) in entities.items():
        axes.plot(x, y, marker="o", color="#ffffff", markeredgecolor="#000000", linestyle="", markersize=6)
        _write_name(axes, name, (x + (0.04 if x >= 0 else -0.04), y), "left" if x >= 0 else "right")
    axes.set_xlim(-1.9, 1.9)
    axes.set_ylim(-1.15, 1.15)
    axes.set_axis_off()
    return figure


def _compute_layout(neighbourhood: Neighbourhood) -> tuple[dict[str, Point], list[Point]]:
    """Return the positions of entities and hyperedges.

    Entities lie on a circle in the order of the hyperedges. A hyperedge lies between the centre and the entities that
    it adds.
    """
    names = list(
        dict.fromkeys(name for members in neighbourhood.hyperedges for name in members if name != neighbourhood.entity)
    )
    angles = {name: 2 * pi * (row + 0.5) / max(1, len(names)) for row, name in enumerate(names)}
    squares, placed = [], 0
    for number, members in enumerate(neighbourhood.hyperedges):
        added = [name for name in names[placed:] if name in members] or [name for name in members if name in angles]
        placed = max([placed, *(names.index(name) + 1 for name in added)])
        angle = sum(angles[name] for name in added) / len(added) if added else 0.0
        radius = 0.45 if number % 2 else 0.6  # hyperedges with the same members would overlap
        squares.append((radius * cos(angle), radius * sin(angle)))
    return {name: (cos(angle), sin(angle)) for name, angle in angles.items()}, squares


def _write_name(axes: Axes, name: str, position: Sequence[float], alignment: str) -> None:
    text = name if len(name) <= _MAX_NAME_LENGTH else f"{name[: _MAX_NAME_LENGTH - 1]}…"
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8}
    axes.text(position[0], position[1], escape_label(text), ha=alignment, va="center", fontsize=8, bbox=box)
