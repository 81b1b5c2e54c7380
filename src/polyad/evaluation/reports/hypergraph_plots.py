"""Pictures of what is built: how hyperedges and entities are distributed, and one entity's surroundings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import cos, pi, sin
from typing import TYPE_CHECKING

from polyad.evaluation.figures import create_figure, escape_label, iterate_line_styles
from polyad.evaluation.runs.hypergraph_statistics import Counts, HypergraphStatistics, Neighbourhood

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LONGEST_NAME = 26


def plot_distributions(constructions: Mapping[str, HypergraphStatistics]) -> Figure | None:
    """Which share of hyperedges join so many entities and are of so many sentences, and of entities have that degree.

    Each line says how many have at least so many, so that the few large ones show too (HyperSU, Table 5).
    """
    figure = create_figure("construction", 9, 3.2 + 0.22 * len(constructions))
    if figure is None:
        return None
    panels = figure.subplots(1, 3, sharey=True)
    _at_least(panels[0], {name: one.arity for name, one in constructions.items()}, "entities of a hyperedge")
    _at_least(panels[1], {name: one.degree for name, one in constructions.items()}, "hyperedges of an entity")
    _at_least(panels[2], {name: one.sentences for name, one in constructions.items()}, "sentences of a hyperedge")
    panels[0].set_ylabel("per cent that have so many or more")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower left", ncols=2)
    return figure


def _at_least(axes: Axes, lines: Mapping[str, Counts], across: str) -> None:
    for (name, counts), (marker, dash, shade) in zip(lines.items(), iterate_line_styles(), strict=False):
        sizes = [size for size in counts if size > 0]
        reached = list(accumulate(counts[size] for size in reversed(sizes)))[::-1]
        shares = [100 * count / sum(counts.values()) for count in reached]
        (line,) = axes.plot(
            sizes, shares, label=escape_label(name), marker=marker, linestyle=dash, color=shade, markersize=4
        )
        line.set_markevery(0.06)  # all of them would hide the dashes
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("")
    axes.set_xlabel(across)
    axes.grid(color="#dddddd")


def plot_neighbourhood(construction: HypergraphStatistics) -> Figure | None:
    """An entity, its hyperedges as squares, and all that they join it to (HyperGraphRAG, Figure 5).

    None where no entity has a few hyperedges.
    """
    near = construction.neighbourhood
    figure = create_figure("neighbourhood", 9, 7) if near else None
    if figure is None or near is None:
        return None
    axes = figure.subplots()
    others, squares = _places(near)
    for number, members in enumerate(near.hyperedges):
        for name in members:
            end = others.get(name, (0.0, 0.0))
            axes.plot(*zip(squares[number], end, strict=True), color="#999999", linewidth=1, zorder=1)
    axes.plot(*zip(*squares, strict=True), marker="s", color="#000000", linestyle="", markersize=9)
    axes.plot(0, 0, marker="o", color="#ffffff", markeredgecolor="#000000", linestyle="", markersize=14)
    _write(axes, near.entity, (0.0, -0.12), "center")
    for name, (x, y) in others.items():
        axes.plot(x, y, marker="o", color="#ffffff", markeredgecolor="#000000", linestyle="", markersize=6)
        _write(axes, name, (x + (0.04 if x >= 0 else -0.04), y), "left" if x >= 0 else "right")
    axes.set_xlim(-1.9, 1.9)
    axes.set_ylim(-1.15, 1.15)
    axes.set_axis_off()
    return figure


def _places(near: Neighbourhood) -> tuple[dict[str, tuple[float, float]], list[tuple[float, float]]]:
    """Entities on a circle, by the first hyperedge that joins them; hyperedges halfway to the middle of theirs."""
    names = list(dict.fromkeys(name for members in near.hyperedges for name in members if name != near.entity))
    angles = {name: 2 * pi * (place + 0.5) / max(1, len(names)) for place, name in enumerate(names)}
    squares, drawn = [], 0
    for number, members in enumerate(near.hyperedges):
        own = [name for name in names[drawn:] if name in members] or [name for name in members if name in angles]
        drawn = max([drawn, *(names.index(name) + 1 for name in own)])
        middle = sum(angles[name] for name in own) / len(own) if own else 0.0
        far = 0.45 if number % 2 else 0.6  # those that join the same are not drawn at one place
        squares.append((far * cos(middle), far * sin(middle)))
    return {name: (cos(angle), sin(angle)) for name, angle in angles.items()}, squares


def _write(axes: Axes, name: str, place: Sequence[float], side: str) -> None:
    shown = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8}
    axes.text(place[0], place[1], escape_label(shown), ha=side, va="center", fontsize=8, bbox=box)
