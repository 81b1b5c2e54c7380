"""Plots of runs and hypergraphs with matplotlib, which is an optional dependency.

Plots are readable in black and white, by markers, dashes and labels instead of colours, and reproducible.
"""

from __future__ import annotations

import importlib.util
import io
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, cycle
from math import cos, log10, nan, pi, sin
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyad.text.files import write_atomically
from polyad_bench.reports.summary import CURVE_BUDGETS, RECALL, GroupSummary, SystemSummary
from polyad_bench.runs.records import ExampleNeighbourhood, Histogram, HypergraphStatistics

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

logger = logging.getLogger("polyad.bench.plots")

_MAX_HEIGHT = 400
"""Height in inches that a picture can have at most."""

_MARKERS = "osD^vPX*<>"
_DASHES = ("-", "--", ":", "-.")
_SHADES = ("#000000", "#555555", "#888888")


def can_plot(name: str) -> bool:
    """Return whether matplotlib is installed; otherwise log that the plot ``name`` is omitted."""
    is_installed = importlib.util.find_spec("matplotlib") is not None
    if not is_installed:
        logger.warning("no picture %s, because matplotlib is missing; pip install 'polyad[plots]'", name)
    return is_installed


def create_figure(width: float, height: float) -> Figure:
    """Return an empty matplotlib figure of ``width`` x ``height`` inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, min(height, _MAX_HEIGHT)), layout="constrained")


def escape_label(name: str) -> str:
    """Return a label, escaped so that matplotlib displays every character unchanged.

    Dollar signs would start a formula, and a leading ``_`` would hide the label.
    """
    return f" {name}".replace("$", r"\$")


def save_figure(figure: Figure, path: Path) -> None:
    """Write the figure to a PNG or SVG file atomically; the same figure always produces identical bytes.

    Args:
        figure: The figure.
        path: A ``.png`` or ``.svg`` file. An SVG file contains text instead of outlines of letters, so that the file is
        small.
    """
    from matplotlib import rc_context

    buffer, suffix = io.BytesIO(), path.suffix[1:]
    with rc_context({"svg.hashsalt": "polyad", "svg.fonttype": "none"}):  # without a salt, ids in the SVG are random
        figure.savefig(buffer, format=suffix, dpi=120, metadata={"Date": None} if suffix == "svg" else None)
    write_atomically(path, buffer.getvalue())


_MAX_LINES = 10
"""Most systems in a plot of lines or points; with more, line styles repeat."""

Systems = Mapping[str, SystemSummary]
"""Summaries of systems by their labels."""


COSTS: Mapping[str, tuple[str, Callable[[SystemSummary], float]]] = {
    "time": ("milliseconds a question, median; larger with more text", lambda system: system.p50),
    "tokens": ("tokens of a language model a question", lambda system: system.llm_tokens),
    "reading": ("words of text until {k} documents are seen, mean", lambda system: system.words),
    "answer-time": ("seconds an answer, mean", lambda system: system.answer_costs.get("seconds", 0.0)),
    "answer-tokens": ("tokens an answer, mean", lambda system: system.answer_costs.get("tokens", 0.0)),
    "dollars": ("US dollars for 1,000 answers", lambda system: 1000 * system.answer_costs.get("dollars", 0.0)),
}
"""Label of the axis and value of each cost over which measures are plotted."""


def plot_group(summary: GroupSummary, measures: Sequence[str] = (RECALL,)) -> Iterator[tuple[str, Figure]]:
    """Yield name and figure of each plot that compares systems by ``measures`` and costs on the same questions.

    Yield nothing if matplotlib is not installed.
    """
    if not can_plot(summary.name):
        return
    for measure in measures:
        yield from _plot_measure(summary.select_systems(measure), measure)
    complete = {name: system for name, system in summary.systems.items() if all(map(system.find_estimate, measures))}
    if len(measures) > 2 and 0 < len(complete) <= _MAX_LINES:  # two corners are no polygon
        yield "profile", plot_profile(complete, measures)
    if 0 < len(summary.select_systems(measures[0])) <= _MAX_LINES:
        yield "cost", plot_cost(summary.select_systems(measures[0]))
    if summary.hypergraphs:
        yield "construction", plot_distributions(summary.hypergraphs)
        neighbourhood = next(iter(summary.hypergraphs.values())).neighbourhood
        if neighbourhood:
            yield "neighbourhood", plot_neighbourhood(neighbourhood)


def _plot_measure(systems: Systems, measure: str) -> Iterator[tuple[str, Figure]]:
    """Yield name and figure of each plot that compares systems by one measure."""
    if not systems:
        return
    yield measure, plot_bars(systems, measure)
    if len(systems) <= _MAX_LINES:
        if measure == RECALL:
            yield "recall-by-depth", plot_recall_by_depth(systems)
            yield "recall-by-words", plot_recall_by_words(systems)
        for cost, (_, get_cost) in COSTS.items():
            if cost == "time" or any(get_cost(system) > 0 for system in systems.values()):
                yield f"{measure}-by-{cost}", plot_by_cost(systems, cost, measure)
    for name, figure in plot_sensitivities(systems, measure):
        yield name if measure == RECALL else f"{measure}-{name}", figure


def plot_profile(systems: Systems, measures: Sequence[str]) -> Figure:
    """Return a radar chart with one polygon per system; each corner is a measure (HyperGraphRAG, Figure 7)."""
    figure = _create_legend_figure(len(systems) + 4)
    axes = figure.subplots(subplot_kw={"projection": "polar"})
    angles = [2 * pi * position / len(measures) for position in range(len(measures) + 1)]
    means = {name: [_get_mean(system, measure) for measure in measures] for name, system in systems.items()}
    _plot_lines(axes, {name: (angles, [*values, values[0]]) for name, values in means.items()})
    axes.set_xticks(angles[:-1], [escape_label(measure) for measure in measures])
    axes.set_ylim(bottom=0)
    figure.legend(loc="outside lower left")
    return figure


def plot_recall_by_depth(systems: Systems) -> Figure:
    """Return a plot of recall over the number of ranked documents, one line per system (HyperGraphRAG, Figure 6)."""
    depth = min(len(system.by_depth) for system in systems.values())
    curves = {name: system.by_depth[:depth] for name, system in systems.items()}
    return _plot_curves("documents", range(1, depth + 1), curves)


def plot_recall_by_words(systems: Systems) -> Figure:
    """Return a plot of recall over the number of words in the retrieved passages, one line per system."""
    curves = {name: [system.by_words[budget] for budget in CURVE_BUDGETS] for name, system in systems.items()}
    return _plot_curves("words of returned text", CURVE_BUDGETS, curves)


def _plot_curves(x_label: str, positions: Sequence[int], curves: Mapping[str, Sequence[float]]) -> Figure:
    figure = _create_legend_figure(len(curves))
    axes = figure.subplots()
    _plot_lines(axes, {name: (positions, [100 * value for value in values]) for name, values in curves.items()})
    _label_axes(axes, x_label, RECALL)
    figure.legend(loc="outside lower left")
    return figure


def _plot_lines(axes: Axes, lines: Mapping[str, tuple[Sequence[float], Sequence[float]]], **style: object) -> None:
    """Plot one line per label, with markers and dashes so that lines can be distinguished without colour."""
    for (label, points), (marker, dash, shade) in zip(lines.items(), _iterate_line_styles(), strict=False):
        styles: dict[str, Any] = {"marker": marker, "linestyle": dash, "color": shade, "markersize": 5, **style}
        axes.plot(*points, label=escape_label(label), **styles)


def _iterate_line_styles() -> Iterator[tuple[str, str, str]]:
    return zip(cycle(_MARKERS), cycle(_DASHES), cycle(_SHADES), strict=False)


def _create_legend_figure(rows: int) -> Figure:
    """Return an empty figure that is high enough for a legend of ``rows`` rows below the plot."""
    return create_figure(7, 4 + 0.25 * rows)


def _label_axes(axes: Axes, x_label: str, measure: str) -> None:
    axes.set_xlabel(x_label)
    axes.set_ylabel(f"{measure}, per cent")
    axes.grid(color="#dddddd")


def plot_by_cost(systems: Systems, cost: str, measure: str = RECALL) -> Figure:
    """Return a plot of a measure over a cost of :data:`COSTS`, with one point for each system (HyperRAG, Figure 3).

    Over time, the size of a point grows with the logarithm of the words returned.
    """
    from matplotlib.ticker import LogLocator

    label, get_cost = COSTS[cost]
    if cost != "time":
        systems = {name: system for name, system in systems.items() if get_cost(system) > 0}
    figure = _create_legend_figure(len(systems))
    axes = figure.subplots()
    lowest = 1e-6 if cost == "dollars" else 0.01
    points = {name: ([max(get_cost(each), lowest)], [_get_mean(each, measure)]) for name, each in systems.items()}
    _plot_lines(axes, points, linestyle="", markersize=8)
    for line, system in zip(axes.lines, systems.values(), strict=True):
        if cost == "time" and system.words > 100:
            line.set_markersize(3 * log10(system.words))
    figure.legend(loc="outside lower left")
    if cost != "reading":  # unlike times, the numbers of words are of similar size
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        _use_plain_numbers(axes.xaxis)
    axes.margins(0.15)
    _label_axes(axes, label.format(k=next(iter(systems.values())).k), measure)
    return figure


def _use_plain_numbers(axis: Axis) -> None:
    """Label a logarithmic axis with plain numbers, such as 100, instead of powers of ten."""
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("")


def _get_mean(system: SystemSummary, measure: str) -> float:
    """Return a system's mean of a measure in per cent; NaN if the measure was not computed for the system."""
    estimate = system.find_estimate(measure)
    return 100 * estimate.mean if estimate else nan


def plot_bars(systems: Systems, measure: str = RECALL) -> Figure:
    """Return a bar plot of a measure with 95 per cent confidence intervals, one bar per system (HyperSU, Figure 3).

    A dashed line marks the first system if this system is the baseline of all others.
    """
    figure = create_figure(7, 0.45 * len(systems) + 1)
    axes = figure.subplots()
    estimates = [estimate for system in systems.values() if (estimate := system.find_estimate(measure))]
    for row, estimate in enumerate(estimates):
        mean, low, high = (100 * value for value in (estimate.mean, estimate.low, estimate.high))
        axes.barh(row, mean, color="#cccccc", edgecolor="#000000")
        axes.errorbar(mean, row, xerr=[[mean - low], [high - mean]], color="#000000", capsize=4)
        axes.text(1, row, f"{mean:.1f}", va="center")
    if len({system.retriever for system in systems.values()}) in (1, len(systems)):
        axes.axvline(100 * estimates[0].mean, color="#000000", linestyle="--", linewidth=0.8)
    axes.set_yticks(range(len(systems)), list(map(escape_label, systems)))
    axes.set_ylim(len(systems) - 0.4, -0.6)
    axes.set_xlim(0, 100)
    axes.set_xlabel(f"{measure}, per cent, with its 95 per cent confidence interval")
    return figure


def plot_cost(systems: Systems) -> Figure:
    """Return bars of search time per question and indexing time per 1,000 tokens, by system (HyperGraphRAG, Table 3).

    The time in the embedder is hatched. Indexing is omitted if the cost of some index is unknown.
    """
    has_indexing = all(system.index.get("tokens") and "seconds" in system.index for system in systems.values())
    figure = create_figure(7, 0.4 * len(systems) + 1.2)
    search_axes, *others = figure.subplots(1, 2 if has_indexing else 1, sharey=True, squeeze=False)[0]
    for row, system in enumerate(systems.values()):
        _plot_stacked_bar(search_axes, row, system.encode_p50, system.p50)
        for index_axes in others:
            thousands = system.index["tokens"] / 1000
            seconds = system.index.get("encode_seconds", 0.0), system.index["seconds"]
            _plot_stacked_bar(index_axes, row, *(1000 * part / thousands for part in seconds))
            index_axes.set_xlabel("milliseconds for 1,000 tokens indexed")
    search_axes.set_yticks(range(len(systems)), list(map(escape_label, systems)))
    search_axes.invert_yaxis()
    search_axes.set_xlabel("milliseconds a question")
    return figure


def _plot_stacked_bar(axes: Axes, row: int, encode_time: float, total_time: float) -> None:
    """Plot a horizontal bar of length ``total_time`` at height ``row``; the hatched part is the embedding time."""
    rest = max(0.0, total_time - encode_time)
    axes.barh(row, encode_time, color="#ffffff", edgecolor="#000000", hatch="///")
    axes.barh(row, rest, left=encode_time, color="#bbbbbb", edgecolor="#000000")
    label = {"xytext": (3, 0), "textcoords": "offset points", "va": "center", "fontsize": 8}
    axes.annotate(f"{total_time:.3g}", (total_time, row), **label)  # type: ignore[arg-type]
    axes.margins(x=0.18)


def plot_sensitivities(systems: Systems, measure: str = RECALL) -> Iterator[tuple[str, Figure]]:
    """Yield name and figure of each plot of a measure against a setting that differs between the systems.

    One varied setting gives a line plot, two varied settings give a heat map for each retriever.
    """
    settings = list(next(iter(systems.values())).settings)
    by_retriever: dict[str, list[SystemSummary]] = {}
    for system in systems.values():
        by_retriever.setdefault(system.retriever, []).append(system)
    if len(settings) == 1:
        yield "sensitivity", _plot_setting(by_retriever, settings[0], measure)
    if len(settings) == 2:
        for retriever, runs in by_retriever.items():
            yield f"sensitivity-{retriever}", _plot_heat_map(runs, settings, measure)


def _plot_setting(systems_by_retriever: Mapping[str, Sequence[SystemSummary]], setting: str, measure: str) -> Figure:
    """Return a plot of a measure over the values of one setting, one line per retriever (HyperSU, Figures 4 to 6).

    If questions were answered, dots show the tokens of an answer on a second axis (HyperGraphRAG, Figure 6).
    """
    figure = create_figure(7, 4.5)
    axes = figure.subplots()
    lines = {}
    for retriever, systems in systems_by_retriever.items():
        points = sorted((system.settings[setting], _get_mean(system, measure)) for system in systems)
        lines[retriever] = [x for x, _ in points], [y for _, y in points]
    _plot_lines(axes, lines)
    _label_axes(axes, escape_label(setting)[1:], measure)
    axes.legend()
    every = [system for systems in systems_by_retriever.values() for system in systems]
    if measure != RECALL and all(system.answer_costs for system in every):
        length_axes = axes.twinx()
        values = [system.settings[setting] for system in every]
        tokens = [system.answer_costs["tokens"] for system in every]
        length_axes.plot(values, tokens, color="#888888", marker=".", linestyle="")
        length_axes.set_ylabel("tokens an answer, mean (dots)")
    return figure


def _plot_heat_map(systems: Sequence[SystemSummary], settings: Sequence[str], measure: str) -> Figure:
    """Return a plot of a measure over two settings as a grid of grey cells with numbers (HyperSU, Figures 4 to 6)."""
    figure = create_figure(7, 4.5)
    axes = figure.subplots()
    axes.set_xlabel(escape_label(settings[0])[1:])
    axes.set_ylabel(escape_label(settings[1])[1:])
    axes.set_title(f"{measure}, per cent", fontsize=10)
    cells = {tuple(system.settings[name] for name in settings): _get_mean(system, measure) for system in systems}
    columns, rows = (sorted({position[axis] for position in cells}) for axis in (0, 1))
    grid = [[cells.get((column, row), float("nan")) for column in columns] for row in rows]
    low, high = min(cells.values()) - 1, max(cells.values()) + 8
    axes.imshow(grid, cmap="Greys", aspect="auto", origin="lower", vmin=low, vmax=high)
    axes.set_xticks(range(len(columns)), [f"{value:g}" for value in columns])
    axes.set_yticks(range(len(rows)), [f"{value:g}" for value in rows])
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
    for (column, row), mean in cells.items():
        position = (columns.index(column), rows.index(row))
        axes.text(*position, f"{mean:.1f}", ha="center", va="center", bbox=box)
    return figure


_MAX_NAME_LENGTH = 26

Point = tuple[float, float]


def plot_distributions(hypergraphs: Mapping[str, HypergraphStatistics]) -> Figure:
    """Return plots of the distributions of arity, degree and sentences per hyperedge (HyperSU, Table 5).

    Each hypergraph is a line, which shows the share of hyperedges or entities of at least a size, so that the few large
    ones are visible.
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
    lines = {}
    for name, histogram in histograms.items():
        sizes = [size for size in histogram if size > 0]
        counts = list(accumulate(histogram[size] for size in reversed(sizes)))[::-1]
        lines[name] = sizes, [100 * count / sum(histogram.values()) for count in counts]
    _plot_lines(axes, lines, markersize=4, markevery=0.06)  # markers at every point would hide the dashes
    axes.set_xscale("log")
    axes.set_yscale("log")
    _use_plain_numbers(axes.xaxis)
    _use_plain_numbers(axes.yaxis)
    axes.set_xlabel(x_label)
    axes.grid(color="#dddddd")


def plot_neighbourhood(neighbourhood: ExampleNeighbourhood) -> Figure:
    """Return a plot of an entity and its hyperedges (squares) with all their entities (HyperGraphRAG, Figure 5)."""
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


def _compute_layout(neighbourhood: ExampleNeighbourhood) -> tuple[dict[str, Point], list[Point]]:
    """Return (x, y) positions for a plot of an entity's neighbourhood: of entities, by name, and of hyperedges.

    Entities lie on a circle in the order of the hyperedges. A hyperedge lies between the centre and its entities that
    no earlier hyperedge has.
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
