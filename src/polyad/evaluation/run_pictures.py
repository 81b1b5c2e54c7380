"""Pictures of runs: readable in black and white, by markers, dashes and words beside them rather than colours."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence, Sized
from itertools import cycle
from typing import TYPE_CHECKING, Any

from polyad.evaluation.comparison import System
from polyad.evaluation.experiment import PASSAGES
from polyad.evaluation.measures import recall
from polyad.evaluation.pictures import new_figure
from polyad.evaluation.significance import interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS = "osD^vPX*<>"
_DASHES = ("-", "--", ":", "-.")
_SHADES = ("#000000", "#555555", "#888888")
_WORDS = (100, 200, 300, 500, 750, 1000, 1500, 2000)

Named = Mapping[str, System]
"""Systems by the name that they have in a picture."""


def _styles() -> Any:
    """A style for each line, of which those of ten in a row differ in every print."""
    return zip(cycle(_MARKERS), cycle(_DASHES), cycle(_SHADES), strict=False)


def _plain(name: str) -> str:
    """A name as it is written: to matplotlib dollars are formulas, and what begins with ``_`` is not to be shown."""
    return f" {name}".replace("$", r"\$")


def recall_by_depth(systems: Named) -> Figure | None:
    """Recall over the number of documents: how deep one has to look (HyperGraphRAG, Figure 6)."""
    deepest = min(system.run.k for system in systems.values()) * PASSAGES // 2
    return _lines(
        "recall by depth",
        "documents",
        range(1, deepest + 1),
        {
            name: [
                statistics.fmean(recall(one.documents, one.query.gold, k) for one in system.records)
                for k in range(1, deepest + 1)
            ]
            for name, system in systems.items()
        },
    )


def recall_by_words(systems: Named) -> Figure | None:
    """Recall over the words of text returned: what a reader, or a language model, has to read for it."""

    def reached(system: System, budget: int) -> float:
        read = [(one.within_words(budget), one.query.gold) for one in system.records]
        return statistics.fmean(recall(documents, gold, len(documents)) for documents, gold in read)

    lines = {name: [reached(system, budget) for budget in _WORDS] for name, system in systems.items()}
    return _lines("recall by words", "words of returned text", _WORDS, lines)


def _lines(name: str, across: str, places: Sequence[int], lines: Mapping[str, Sequence[float]]) -> Figure | None:
    figure = new_figure(name, 7, _height(lines))
    if figure is None:
        return None
    axes = figure.subplots()
    for (label, values), (marker, dash, shade) in zip(lines.items(), _styles(), strict=False):
        percent = [100 * value for value in values]
        axes.plot(places, percent, label=_plain(label), marker=marker, linestyle=dash, color=shade, markersize=5)
    axes.set_xlabel(across)
    axes.set_ylabel("recall, per cent")
    axes.grid(color="#dddddd")
    figure.legend(loc="outside lower left")
    return figure


def _height(lines: Sized) -> float:
    """Inches of a picture with a legend of so many lines below it."""
    return 4 + 0.25 * len(lines)


def quality_by_time(systems: Named) -> Figure | None:
    """Recall at k over the time of a question (HyperRAG, Figure 3)."""
    return _points(
        systems,
        "recall by time",
        "milliseconds a question, median",
        lambda system: statistics.median(one.milliseconds for one in system.records),
    )


def quality_by_tokens(systems: Named) -> Figure | None:
    """Recall at k over the tokens of a language model that a question took; None where none took any."""
    spent = {name: system for name, system in systems.items() if _tokens(system) > 0}
    return _points(spent, "recall by tokens", "tokens of a language model a question", _tokens) if spent else None


def _tokens(system: System) -> float:
    return statistics.fmean(one.llm_tokens for one in system.records)


def _points(systems: Named, name: str, across: str, place: Callable[[System], float]) -> Figure | None:
    figure = new_figure(name, 7, _height(systems))
    if figure is None:
        return None
    axes = figure.subplots()
    for (label, system), (marker, _, shade) in zip(systems.items(), _styles(), strict=False):
        point = (max(place(system), 0.01), 100 * statistics.fmean(_recalls(system)))
        axes.plot(*point, label=_plain(label), marker=marker, color=shade, linestyle="", markersize=8)
    figure.legend(loc="outside lower left")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("{x:g}")
    axes.margins(0.15)
    axes.set_xlabel(across)
    axes.set_ylabel("recall, per cent")
    axes.grid(color="#dddddd")
    return figure


def bars(systems: Named, seed: int) -> Figure | None:
    """Recall at k of each system, with the interval in which it lies with 95 per cent confidence."""
    figure = new_figure("recall", 7, 0.45 * len(systems) + 1)
    if figure is None:
        return None
    axes = figure.subplots()
    for row, system in enumerate(systems.values()):
        values = _recalls(system)
        low, high = interval(values, seed)
        mean = statistics.fmean(values)
        axes.barh(row, 100 * mean, color="#cccccc", edgecolor="#000000")
        axes.errorbar(100 * mean, row, xerr=[[100 * (mean - low)], [100 * (high - mean)]], color="#000000", capsize=4)
    axes.set_yticks(range(len(systems)), [_plain(name) for name in systems])
    axes.invert_yaxis()
    axes.set_xlabel("recall, per cent, and where it lies with 95 per cent confidence")
    return figure


def _recalls(system: System) -> list[float]:
    return [recall(one.documents, one.query.gold, system.run.k) for one in system.records]


def sensitivity(systems: Sequence[System], names: Sequence[str], values: Sequence[Sequence[float]]) -> Figure | None:
    """Recall at k over one setting as lines, a line a retriever, or over two as a heat map (HyperSU, Figures 4 to 6).

    Args:
        systems: What was measured.
        names: Of one setting or two that differ between them.
        values: Of these settings, in each system.
    """
    figure = new_figure("sensitivity", 7, 4.5)
    if figure is None:
        return None
    means = [100 * statistics.fmean(_recalls(system)) for system in systems]
    axes = figure.subplots()
    if len(names) == 1:
        _sensitivity_lines(axes, systems, [value[0] for value in values], means)
        axes.set_xlabel(names[0])
        axes.set_ylabel("recall, per cent")
    else:
        _heat_map(axes, values, means)
        axes.set_xlabel(names[0])
        axes.set_ylabel(names[1])
        axes.set_title("recall, per cent", fontsize=10)
    return figure


def _sensitivity_lines(axes: Axes, systems: Sequence[System], places: Sequence[float], means: Sequence[float]) -> None:
    retrievers = list(dict.fromkeys(system.retriever for system in systems))
    for retriever, (marker, dash, shade) in zip(retrievers, _styles(), strict=False):
        points = sorted(
            (place, mean)
            for system, place, mean in zip(systems, places, means, strict=True)
            if system.retriever == retriever
        )
        axes.plot(*zip(*points, strict=True), label=retriever, marker=marker, linestyle=dash, color=shade)
    axes.grid(color="#dddddd")
    axes.legend()


def _heat_map(axes: Axes, values: Sequence[Sequence[float]], means: Sequence[float]) -> None:
    """Shades of grey with the numbers in them."""
    across, down = (sorted({value[place] for value in values}) for place in (0, 1))
    grid = [[float("nan")] * len(across) for _ in down]
    for (first, second), mean in zip(values, means, strict=True):
        grid[down.index(second)][across.index(first)] = mean
    axes.imshow(grid, cmap="Greys", aspect="auto", origin="lower", vmin=min(means) - 1, vmax=max(means) + 8)
    axes.set_xticks(range(len(across)), [f"{value:g}" for value in across])
    axes.set_yticks(range(len(down)), [f"{value:g}" for value in down])
    for (first, second), mean in zip(values, means, strict=True):
        place = (across.index(first), down.index(second))
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
        axes.text(*place, f"{mean:.1f}", ha="center", va="center", bbox=box)
