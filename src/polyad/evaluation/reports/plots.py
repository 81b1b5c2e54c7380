"""Pictures of runs: readable in black and white, by markers, dashes and words beside them rather than colours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from typing import TYPE_CHECKING

from polyad.evaluation.figures import create_figure, escape_label, iterate_line_styles
from polyad.evaluation.reports.hypergraph_plots import plot_distributions, plot_neighbourhood
from polyad.evaluation.reports.summary import CURVE_BUDGETS, GroupSummary, SystemSummary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_LINES = 10
"""In one picture: with more, the styles begin again and nothing can be told apart."""

Named = Mapping[str, SystemSummary]
"""Systems by the name that they have in a picture."""


def plot_figures(summaries: GroupSummary) -> Iterator[tuple[str, Figure]]:
    """The pictures of a group that there is something to draw for, by name."""
    systems = summaries.judged
    drawn = {"recall": plot_recall_bars(systems)} if systems else {}
    if 0 < len(systems) <= _MOST_LINES:
        drawn |= {
            "recall-by-depth": plot_recall_by_depth(systems),
            "recall-by-words": plot_recall_by_words(systems),
            "recall-by-time": plot_recall_by_time(systems),
            "recall-by-tokens": plot_recall_by_tokens(systems),
            "recall-by-reading": plot_recall_by_reading(systems),
            "cost": plot_cost(systems),
        }
    drawn |= plot_sensitivities(systems) if systems else {}
    if summaries.constructions:
        drawn["construction"] = plot_distributions(summaries.constructions)
        drawn["neighbourhood"] = plot_neighbourhood(next(iter(summaries.constructions.values())))
    yield from ((name, figure) for name, figure in drawn.items() if figure is not None)


def plot_recall_by_depth(systems: Named) -> Figure | None:
    """Recall over the number of documents: how deep one has to look (HyperGraphRAG, Figure 6)."""
    deepest = min(len(system.by_depth) for system in systems.values())
    lines = {name: system.by_depth[:deepest] for name, system in systems.items()}
    return _lines("recall by depth", "documents", range(1, deepest + 1), lines)


def plot_recall_by_words(systems: Named) -> Figure | None:
    """Recall over the words of text returned: what a reader, or a language model, has to read for it."""
    lines = {name: [system.by_words[budget] for budget in CURVE_BUDGETS] for name, system in systems.items()}
    return _lines("recall by words", "words of returned text", CURVE_BUDGETS, lines)


def _lines(name: str, across: str, places: Sequence[int], lines: Mapping[str, Sequence[float]]) -> Figure | None:
    figure = create_figure(name, 7, _height(lines))
    if figure is None:
        return None
    axes = figure.subplots()
    for (label, values), (marker, dash, shade) in zip(lines.items(), iterate_line_styles(), strict=False):
        percent = [100 * value for value in values]
        axes.plot(places, percent, label=escape_label(label), marker=marker, linestyle=dash, color=shade, markersize=5)
    axes.set_xlabel(across)
    axes.set_ylabel("recall, per cent")
    axes.grid(color="#dddddd")
    figure.legend(loc="outside lower left")
    return figure


def _height(lines: Sized) -> float:
    """Inches of a picture with a legend of so many lines below it."""
    return 4 + 0.25 * len(lines)


def plot_recall_by_time(systems: Named) -> Figure | None:
    """Recall at k over the time of a question (HyperRAG, Figure 3)."""
    return _points(systems, "recall by time", "milliseconds a question, median", lambda system: system.p50)


def plot_recall_by_tokens(systems: Named) -> Figure | None:
    """Recall at k over the tokens of a language model that a question took; None where none took any."""
    spent = {name: system for name, system in systems.items() if system.llm_tokens > 0}
    across = "tokens of a language model a question"
    return _points(spent, "recall by tokens", across, lambda system: system.llm_tokens) if spent else None


def plot_recall_by_reading(systems: Named) -> Figure | None:
    """Recall at k over the words of the text that it takes: what a language model would have to read."""
    returned = {name: system for name, system in systems.items() if system.words > 0}
    k = next(iter(systems.values())).k
    across = f"words of text until {k} documents are seen, mean"
    figure = _points(returned, "recall by reading", across, lambda system: system.words) if returned else None
    if figure is not None:  # of like size, unlike times
        figure.axes[0].set_xscale("linear")
    return figure


def _points(systems: Named, name: str, across: str, place: Callable[[SystemSummary], float]) -> Figure | None:
    figure = create_figure(name, 7, _height(systems))
    if figure is None:
        return None
    from matplotlib.ticker import LogLocator

    axes = figure.subplots()
    for (label, system), (marker, _, shade) in zip(systems.items(), iterate_line_styles(), strict=False):
        point = (max(place(system), 0.01), 100 * system.recall.mean)
        axes.plot(*point, label=escape_label(label), marker=marker, color=shade, linestyle="", markersize=8)
    figure.legend(loc="outside lower left")
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.margins(0.15)
    axes.set_xlabel(across)
    axes.set_ylabel("recall, per cent")
    axes.grid(color="#dddddd")
    return figure


def plot_recall_bars(systems: Named) -> Figure | None:
    """Recall at k of each system, with the interval in which it lies with 95 per cent confidence (HyperSU, Figure 3).

    The dashed line is the first of them, where the others are compared with it.
    """
    figure = create_figure("recall", 7, 0.45 * len(systems) + 1)
    if figure is None:
        return None
    axes = figure.subplots()
    for row, system in enumerate(systems.values()):
        mean, low, high = (100 * value for value in (system.recall.mean, system.recall.low, system.recall.high))
        axes.barh(row, mean, color="#cccccc", edgecolor="#000000")
        axes.errorbar(mean, row, xerr=[[mean - low], [high - mean]], color="#000000", capsize=4)
        axes.text(1, row, f"{mean:.1f}", va="center")
    if len({system.retriever for system in systems.values()}) in (1, len(systems)):
        first = next(iter(systems.values()))
        axes.axvline(100 * first.recall.mean, color="#000000", linestyle="--", linewidth=0.8)
    axes.set_yticks(range(len(systems)), [escape_label(name) for name in systems])
    axes.set_ylim(len(systems) - 0.4, -0.6)
    axes.set_xlim(0, 100)
    axes.set_xlabel("recall, per cent, and where it lies with 95 per cent confidence")
    return figure


def plot_cost(systems: Named) -> Figure | None:
    """What a question takes, and what indexing takes for each 1,000 tokens of the source (HyperGraphRAG, Table 3).

    Of both the part in the embedder is hatched. Indexing is left out where it is not known what it took.
    """
    is_known = all(one.index.get("tokens") and "seconds" in one.index for one in systems.values())
    figure = create_figure("cost", 7, 0.4 * len(systems) + 1.2)
    if figure is None:
        return None
    asking, *others = figure.subplots(1, 2 if is_known else 1, sharey=True, squeeze=False)[0]
    for row, system in enumerate(systems.values()):
        _stacked(asking, row, system.encode_p50, system.p50)
        for indexing in others:
            seconds = system.index.get("encode_seconds", 0.0), system.index["seconds"]
            _stacked(indexing, row, *(1000 * part / (system.index["tokens"] / 1000) for part in seconds))
            indexing.set_xlabel("milliseconds for 1,000 tokens indexed")
    asking.set_yticks(range(len(systems)), [escape_label(name) for name in systems])
    asking.invert_yaxis()
    asking.set_xlabel("milliseconds a question")
    return figure


def _stacked(axes: Axes, row: int, embedding: float, whole: float) -> None:
    """A bar of which the part in the embedder is hatched."""
    axes.barh(row, embedding, color="#ffffff", edgecolor="#000000", hatch="///")
    axes.barh(row, max(0.0, whole - embedding), left=embedding, color="#bbbbbb", edgecolor="#000000")
    axes.annotate(f"{whole:.3g}", (whole, row), xytext=(3, 0), textcoords="offset points", va="center", fontsize=8)
    axes.margins(x=0.18)


def plot_sensitivities(systems: Named) -> dict[str, Figure | None]:
    """Recall at k over the settings that differ: one as lines, two as a heat map of each retriever."""
    names = list(next(iter(systems.values())).settings)
    if len(names) == 1:
        return {"sensitivity": plot_sensitivity(list(systems.values()), names)}
    if len(names) != 2:
        return {}
    by_retriever: dict[str, list[SystemSummary]] = {}
    for system in systems.values():
        by_retriever.setdefault(system.retriever, []).append(system)
    return {f"sensitivity-{name}": plot_sensitivity(own, names) for name, own in by_retriever.items()}


def plot_sensitivity(systems: Sequence[SystemSummary], names: Sequence[str]) -> Figure | None:
    """Recall at k over one setting as lines, a line a retriever, or over two as a heat map (HyperSU, Figures 4 to 6).

    Args:
        systems: What was measured.
        names: Of one setting or two that differ between them.
    """
    figure = create_figure("sensitivity", 7, 4.5)
    if figure is None:
        return None
    axes = figure.subplots()
    axes.set_xlabel(names[0])
    if len(names) == 1:
        _sensitivity_lines(axes, systems, names[0])
        axes.set_ylabel("recall, per cent")
    else:
        _heat_map(axes, [tuple(system.settings[name] for name in names) for system in systems], systems)
        axes.set_ylabel(names[1])
        axes.set_title("recall, per cent", fontsize=10)
    return figure


def _sensitivity_lines(axes: Axes, systems: Sequence[SystemSummary], name: str) -> None:
    retrievers = list(dict.fromkeys(system.retriever for system in systems))
    for retriever, (marker, dash, shade) in zip(retrievers, iterate_line_styles(), strict=False):
        points = sorted(
            (system.settings[name], 100 * system.recall.mean) for system in systems if system.retriever == retriever
        )
        axes.plot(*zip(*points, strict=True), label=escape_label(retriever), marker=marker, linestyle=dash, color=shade)
    axes.grid(color="#dddddd")
    axes.legend()


def _heat_map(axes: Axes, places: Sequence[tuple[float, ...]], systems: Sequence[SystemSummary]) -> None:
    """Shades of grey with the numbers in them."""
    means = [100 * system.recall.mean for system in systems]
    across, down = (sorted({place[axis] for place in places}) for axis in (0, 1))
    grid = [[float("nan")] * len(across) for _ in down]
    for (first, second), mean in zip(places, means, strict=True):
        grid[down.index(second)][across.index(first)] = mean
    axes.imshow(grid, cmap="Greys", aspect="auto", origin="lower", vmin=min(means) - 1, vmax=max(means) + 8)
    axes.set_xticks(range(len(across)), [f"{value:g}" for value in across])
    axes.set_yticks(range(len(down)), [f"{value:g}" for value in down])
    for (first, second), mean in zip(places, means, strict=True):
        place = (across.index(first), down.index(second))
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
        axes.text(*place, f"{mean:.1f}", ha="center", va="center", bbox=box)
