from __future__ import annotations

from dataclasses import replace

import pytest

from polyad_bench.reports.plots import (
    plot_bars,
    plot_by_cost,
    plot_cost,
    plot_group,
    plot_sensitivities,
)
from polyad_bench.reports.summary import Estimate, GroupSummary, SystemSummary

INDEX = {"seconds": 3.0, "encode_seconds": 2.0, "tokens": 1500}


def summary(
    recall: float, *, retriever: str = "default", p50: float = 20.0, decay: float | None = None
) -> SystemSummary:
    return SystemSummary(
        retriever=retriever,
        k=5,
        questions=4,
        measures={"recall@5": Estimate(recall, recall - 0.1, recall + 0.1)},
        by_depth=[recall],
        by_words={},
        p50=p50,
        p95=2 * p50,
        encode_p50=5.0,
        llm_tokens=0.0,
        index=INDEX,
        settings={} if decay is None else {"hypersu.decay": decay},
    )


def test_bars_say_their_values_and_how_they_stand_to_the_first() -> None:
    figure = plot_bars({"as set": summary(0.7), "without": summary(0.5)})
    (axes,) = figure.axes
    assert [patch.get_width() for patch in axes.patches] == pytest.approx([70, 50])  # type: ignore[attr-defined]
    assert [text.get_text() for text in axes.texts] == ["70.0", "50.0"]
    assert any(line.get_linestyle() == "--" for line in axes.lines)


def test_no_line_compares_what_is_not_compared() -> None:
    some = {"a": summary(0.7), "b": summary(0.5, retriever="bm25"), "c": summary(0.6)}
    figure = plot_bars(some)
    assert not any(line.get_linestyle() == "--" for line in figure.axes[0].lines)


def test_cost_has_the_embedder_apart_and_leaves_out_what_is_not_known() -> None:
    figure = plot_cost({"one": summary(0.7)})
    asking, indexing = figure.axes
    assert [bar.get_width() for bar in asking.patches] == [5, 15]  # type: ignore[attr-defined]
    assert [bar.get_width() for bar in indexing.patches] == pytest.approx([2000 / 1.5, 1000 / 1.5])  # type: ignore[attr-defined]
    assert asking.patches[0].get_hatch()
    actual = plot_cost({"one": summary(0.7), "two": replace(summary(0.7), index={"tokens": 1500})})
    assert len(actual.axes) == 1


def test_quality_stands_over_time() -> None:
    figure = plot_by_cost({"slow": summary(0.7, p50=200.0), "fast": summary(0.5, p50=2.0)}, "time")
    assert [tuple(map(float, line.get_xydata()[0])) for line in figure.axes[0].lines] == [  # type: ignore[index,arg-type]
        pytest.approx((200, 70)),
        pytest.approx((2, 50)),
    ]


def test_quality_stands_over_what_is_read_for_it() -> None:
    figure = plot_by_cost(
        {"much": replace(summary(0.7), words=900.0), "little": replace(summary(0.5), words=90)}, "reading"
    )
    places = [tuple(map(float, line.get_xydata()[0])) for line in figure.axes[0].lines]  # type: ignore[index,arg-type]
    assert places == [pytest.approx((900, 70)), pytest.approx((90, 50))]


def test_one_setting_is_lines_and_two_are_a_heat_map() -> None:
    one = {f"{decay}": summary(0.5 + decay / 10, decay=decay) for decay in (0.9, 0.1)}
    ((_, lines),) = plot_sensitivities(one)
    assert [list(map(float, values)) for values in lines.axes[0].lines[0].get_data()] == [  # type: ignore[arg-type]
        pytest.approx([0.1, 0.9]),
        pytest.approx([51, 59]),
    ]
    two = {name: replace(one[name], settings={**one[name].settings, "hypersu.width": 30.0}) for name in one}
    ((name, heat),) = plot_sensitivities(two)
    assert name == "sensitivity-default"
    assert sorted(text.get_text() for text in heat.axes[0].texts) == ["51.0", "59.0"]
    assert list(plot_sensitivities({"plain": summary(0.5)})) == []


def test_any_measure_of_answers_is_plotted_over_settings_time_length_and_dollars() -> None:
    answered = {
        name: replace(
            summary(0.9, decay=decay),
            words=1000.0,
            answers={measure: Estimate(mean, mean, mean) for measure in ("f1", "r_s", "hits@10")},
            answer_costs={"seconds": 0.5, "tokens": 300.0, "dollars": 0.002},
        )
        for name, mean, decay in (("a", 0.25, 0.1), ("b", 0.5, 0.9))
    }
    group = GroupSummary(title="tarn", name="tarn", systems=answered)
    figures = dict(plot_group(group, ["f1", "r_s", "hits@10"]))
    plots = ("", "-by-time", "-by-reading", "-by-answer-time", "-by-answer-tokens", "-by-dollars", "-sensitivity")
    expected = {f"{measure}{plot}" for measure in ("f1", "r_s", "hits@10") for plot in plots}
    assert figures.keys() == expected | {"profile", "cost"}
    assert [patch.get_width() for patch in figures["f1"].axes[0].patches] == [25, 50]  # type: ignore[attr-defined]
    lines = figures["hits@10-by-dollars"].axes[0].lines
    assert [tuple(map(float, line.get_xydata()[0])) for line in lines] == [(2, 25), (2, 50)]  # type: ignore[index,arg-type]
    assert figures["hits@10-by-time"].axes[0].lines[0].get_markersize() == pytest.approx(3 * 3), "log10 of 1,000 words"
    measure, length = figures["f1-sensitivity"].axes
    assert [list(map(float, values)) for values in measure.lines[0].get_data()] == [[0.1, 0.9], [25, 50]]  # type: ignore[arg-type]
    assert list(map(float, length.lines[0].get_ydata())) == [300, 300]  # type: ignore[arg-type]
    assert figures["profile"].axes[0].name == "polar"
    assert [len(line.get_xdata()) for line in figures["profile"].axes[0].lines] == [4, 4], "closed"  # type: ignore[arg-type]
