from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from polyad.text.json_types import parse_value
from polyad_bench.datasets.beir import Question
from polyad_bench.measures.significance import bootstrap_interval, randomisation_test
from polyad_bench.reports.summary import GroupSummary, summarise_systems
from polyad_bench.reports.tables import build_average_table, build_cost_table
from polyad_bench.runs.comparison import System
from polyad_bench.runs.records import HypergraphStatistics, QuestionRecord, RankedPassage
from polyad_bench.runs.run_folder import Run

QUERIES = [Question(f"q{number}", "Who?", frozenset({"a", "b"})) for number in range(6)]

INDEX = {
    "seconds": 3.0,
    "encode_seconds": 2.0,
    "cpu_seconds": 4.0,
    "tokens": 1500,
    "written": 7,
    "passages": 7,
    "hyperedges": 9,
    "entities": 4,
    "peak_rss_mb": 80.0,
    "llm": {"calls": 2, "prompt_tokens": 20, "completion_tokens": 5},
    "failed": 0,
}


def system(retriever: str, count: int, *, folder: str = "one", decay: float = 0.5) -> System:
    """A retriever that finds both documents of so many questions and one of the others."""
    records = [
        QuestionRecord(
            retriever,
            query,
            (RankedPassage("p", "a", 2.0, 90), RankedPassage("r", "b" if place < count else "c", 1.0, 60)),
            (),
            1.0,
            3.0 + place,
        )
        for place, query in enumerate(QUERIES)
    ]
    manifest = {"k": 5, "settings": {"stages": {"hypersu": {"decay": decay}}}}
    construction = HypergraphStatistics({2: 9}, {1: 4}, {1: 9}, 5, None)
    run = Run(Path(folder), manifest, INDEX, {retriever: records}, construction)
    return System(retriever, run, records)


def test_answers_have_estimates_and_costs_per_answer(tmp_path: Path) -> None:
    other_system = system("bm25", 3, folder=str(tmp_path))
    queries = [replace(query, answers=("Ada Lovelace",)) for query in QUERIES]
    records = [replace(record, query=query) for record, query in zip(other_system.records, queries, strict=True)]
    texts = ["Ada", "Ada Lovelace", "nobody", "Ada"]  # the last two questions are not answered
    lines = [
        {
            "retriever": "bm25",
            "query_id": f"q{number}",
            "text": text,
            "tokens": 100,
            "milliseconds": 500.0,
            "cost": 2e-6,
        }
        for number, text in enumerate(texts)
    ]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    summary = summarise_systems("tarn", "tarn", {"bm25": replace(other_system, records=records)}, 3)
    system_summary = summary.systems["bm25"]
    assert system_summary.answers["f1"].mean == pytest.approx((2 / 3 + 1 + 0 + 2 / 3) / 4)
    assert system_summary.answers["em"].mean == pytest.approx(1 / 4)
    assert system_summary.answer_costs == pytest.approx({"seconds": 0.5, "tokens": 100, "dollars": 2e-6})
    (row,) = build_cost_table(summary)
    assert (row["answer s"], row["LLM tokens / answer"], row["$ / 1k questions"]) == ("0.500", "100", "0.002")


def both() -> GroupSummary:
    return summarise_systems(
        "tarn, 6 questions", "tarn", {"first": system("bm25", 1), "second": system("default", 5)}, 3
    )


def test_means_come_with_their_intervals() -> None:
    first = both().systems["first"]
    values = [1.0, 0.5, 0.5, 0.5, 0.5, 0.5]
    low, high = bootstrap_interval(values, 3)
    assert (first.recall.mean, first.recall.low, first.recall.high) == pytest.approx((3.5 / 6, low, high), abs=1e-6)
    assert first.measures["all_recall@5"].mean == pytest.approx(1 / 6, abs=1e-6)
    assert list(first.by_depth) == pytest.approx([0.5, *[3.5 / 6] * 9], abs=1e-6)
    assert (first.by_words[100], first.by_words[200]) == pytest.approx((0.5, 3.5 / 6), abs=1e-6)
    assert (first.p50, first.encode_p50, first.questions) == (6.5, 1.0, 6)
    assert first.words == 150


def test_others_are_compared_with_the_first_question_by_question() -> None:
    group_summary = both()
    differences = [0.0, 0.5, 0.5, 0.5, 0.5, 0.0]
    second = group_summary.systems["second"].difference
    assert group_summary.systems["first"].difference is None
    assert second is not None
    assert (second.mean, second.p) == pytest.approx((2 / 6, randomisation_test(differences, 3)), abs=1e-6)
    assert (second.low, second.high) == pytest.approx(bootstrap_interval(differences, 3), abs=1e-6)


def test_p_values_are_corrected_for_all_others() -> None:
    third = summarise_systems(
        "tarn", "tarn", {name: system(name, result) for name, result in (("a", 1), ("b", 5), ("c", 5))}, 3
    ).systems["c"]
    alone, together = both().systems["second"].difference, third.difference
    assert alone is not None
    assert together is not None
    assert together.p == pytest.approx(2 * alone.p, abs=1e-6)


def test_repeated_systems_are_compared_with_their_first_run() -> None:
    systems = {
        f"{folder}: {name}": system(name, results, folder=folder)
        for folder, name, results in (("as set", "a", 1), ("as set", "b", 4), ("without", "a", 2), ("without", "b", 3))
    }
    results = summarise_systems("tarn", "tarn", systems, 3).systems.values()
    assert [one.difference and round(one.difference.mean, 4) for one in results] == [None, None, 0.0833, -0.0833]


def test_an_index_that_was_found_made_says_nothing_of_what_it_took() -> None:
    made = system("default", 1)
    actual = replace(made, run=replace(made.run, index={**INDEX, "written": 0, "seconds": 0.2}))
    summaries = summarise_systems("tarn", "tarn", {"made": made, "found": actual}, 0).systems
    assert summaries["made"].index == {
        **{name: INDEX[name] for name in ("seconds", "encode_seconds", "cpu_seconds", "peak_rss_mb")},
        **{name: INDEX[name] for name in ("tokens", "passages", "hyperedges", "entities")},
        "llm_tokens": 25,
        "llm_calls": 2,
    }
    assert summaries["found"].index == {name: INDEX[name] for name in ("tokens", "passages", "hyperedges", "entities")}


def test_construction_is_paid_by_the_systems_that_read_it() -> None:
    usage = {"calls": 1, "prompt_tokens": 70, "completion_tokens": 30, "cost": 0.5}
    index = {**INDEX, "llm_uncached": {**usage, "calls": 4}, "preparation": {"raptor": usage}}
    systems = {name: system(name, 1) for name in ("none", "dense", "raptor", "hypersu")}
    systems = {name: replace(each, run=replace(each.run, index=index)) for name, each in systems.items()}
    group_summary = summarise_systems("tarn", "tarn", systems, 0)
    costs = {name: each.index for name, each in group_summary.systems.items()}
    assert [cost["llm_tokens"] for cost in costs.values()] == [0, 0, 100, 100]
    assert [cost["llm_calls"] for cost in costs.values()] == [0, 0, 1, 4]
    assert "seconds" not in costs["dense"], "the time without hyperedges was not measured"
    rows = {row["retriever"]: row for row in build_cost_table(group_summary)}
    assert [rows[name]["indexing $ / 1k tokens"] for name in ("dense", "raptor")] == ["0.0000", "0.3333"]
    assert rows["dense"]["indexing ms / 1k tokens"] == "-"


def test_the_mean_of_data_sets_counts_each_the_same() -> None:
    groups = [{"a": system("a", good), "b": system("b", 5)} for good in (1, 4)]
    summaries = [summarise_systems("tarn", "tarn", group, 0) for group in groups]
    first, second = build_average_table([*zip(summaries, groups, strict=True)])
    means = [each.systems["a"].recall.mean for each in summaries]
    assert (first["retriever"], first["settings"], second["retriever"]) == ("a", "2", "b")
    assert first["recall@5"] == f"{100 * sum(means) / 2:.1f}"
    assert not build_average_table([(summaries[0], groups[0])])


def test_settings_that_differ_and_hypergraphs_come_along_each_once() -> None:
    group_summary = summarise_systems(
        "tarn",
        "tarn",
        {"low": system("hypersu", 1, folder="low", decay=0.1), "high": system("hypersu", 2, folder="high", decay=0.9)},
        0,
    )
    assert [one.settings for one in group_summary.systems.values()] == [{"hypersu.decay": 0.1}, {"hypersu.decay": 0.9}]
    assert list(group_summary.hypergraphs) == ["low"]


def test_a_summary_is_read_from_a_file_as_it_was_written() -> None:
    group_summary = both()
    assert parse_value(json.loads(json.dumps(asdict(group_summary))), GroupSummary) == group_summary
