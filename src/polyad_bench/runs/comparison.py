"""Comparison of two runs on the same questions: differences, their significance, and the questions that differ."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from polyad.errors import ConfigurationError
from polyad_bench.measures.ranking import Measure, parse_measure
from polyad_bench.measures.significance import bootstrap_interval, correct_holm, randomisation_test
from polyad_bench.runs.records import QuestionRecord
from polyad_bench.runs.retriever_evaluation import WORD_BUDGETS
from polyad_bench.runs.run_folder import Run, load_run


@dataclass(frozen=True, slots=True)
class System:
    """One retriever in one evaluation run, with a result for each question: the unit of comparisons.

    Attributes:
        name: Folder of the run and name of the retriever.
        run: The run.
        records: One record per question.
    """

    name: str
    run: Run
    records: Sequence[QuestionRecord]

    @property
    def retriever(self) -> str:
        """Name of the system's retriever."""
        return self.records[0].retriever


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between the means of two systems in one measure, with confidence interval and p values.

    Attributes:
        measure: Name of the measure.
        first: Mean of the first system.
        second: Mean of the second system.
        low: Lower bound of the 95 per cent confidence interval of second - first.
        high: Upper bound of the interval.
        p: p value of a two-sided randomisation test.
        p_holm: p value corrected for all differences of the comparison (Holm, 1979).
    """

    measure: str
    first: float
    second: float
    low: float
    high: float
    p: float
    p_holm: float = 1.0

    @property
    def difference(self) -> float:
        """The mean of the second system minus the mean of the first system, which is the baseline."""
        return self.second - self.first


@dataclass(frozen=True, slots=True)
class RunComparison:
    """The difference between a system and a baseline system in each measure.

    Attributes:
        first: The baseline.
        second: The system that is compared with the baseline.
        differences: One difference per measure.
    """

    first: System
    second: System
    differences: Sequence[Difference]

    def rank_questions(self, measure: Measure) -> list[tuple[float, QuestionRecord, QuestionRecord]]:
        """Return the questions on which the two systems differ in ``measure``, largest loss of the second system first.

        Each item is a tuple: difference, record of the first system, record of the second system.
        """
        pairs = zip(self.first.records, self.second.records, strict=True)
        differences = [(measure(second) - measure(first), first, second) for first, second in pairs]
        return sorted((item for item in differences if item[0]), key=lambda item: (item[0], item[1].query.id))


def load_systems(names: Sequence[str]) -> list[list[System]]:
    """Return one list of systems (retrievers of an evaluation run) for each name, ``FOLDER`` or ``FOLDER:RETRIEVER``.

    ``FOLDER`` stands for all retrievers of the run in that folder.

    Raises:
        ConfigurationError: the run or the retriever is missing.
    """
    runs: dict[Path, Run] = {}
    groups = []
    for name in names:
        folder, retriever = _split_name(name)
        run = runs.setdefault(folder, runs.get(folder) or load_run(folder))
        if retriever and retriever not in run.records:
            raise ConfigurationError(
                f"the run {str(folder)!r} has no retriever {retriever!r}; it has {', '.join(run.records)}"
            )
        retrievers = [retriever] if retriever else list(run.records)
        groups.append([System(f"{folder}:{retriever}", run, run.records[retriever]) for retriever in retrievers])
    return groups


def _split_name(name: str) -> tuple[Path, str]:
    folder, colon, retriever = name.rpartition(":")
    if Path(name).is_dir() or not colon or not Path(folder).is_dir():
        return Path(name), ""
    return Path(folder), retriever


def pair_systems(systems_by_run: Sequence[Sequence[System]]) -> list[tuple[System, System]]:
    """Return the pairs (baseline, system) to compare, from the systems (retrievers) of one or two runs.

    In one run, the first retriever is the baseline of all other retrievers. In two runs, each retriever is compared
    with itself if both runs have it. If the first run has only one retriever, that retriever is the baseline of all.

    Raises:
        ConfigurationError: there is nothing to compare, or the systems were asked different questions.
    """
    if len(systems_by_run) == 1:
        pairs = [(systems_by_run[0][0], system) for system in systems_by_run[0][1:]]
    elif len(systems_by_run[0]) == 1:
        pairs = [(systems_by_run[0][0], system) for system in systems_by_run[1]]
    else:
        by_retriever = {system.retriever: system for system in systems_by_run[0]}
        pairs = [
            (by_retriever[system.retriever], system) for system in systems_by_run[1] if system.retriever in by_retriever
        ]
    if not pairs:
        raise ConfigurationError(
            "there is nothing to compare: expected two runs of the same retriever, one run of several, or retrievers "
            "named as in RUN:bm25"
        )
    for first, second in pairs:
        has_other_data = first.run.manifest["dataset"]["digest"] != second.run.manifest["dataset"]["digest"]
        if has_other_data or first.run.questions != second.run.questions:
            raise ConfigurationError(
                f"{first.name!r} and {second.name!r} have different {'data sets' if has_other_data else 'questions'}; "
                "expected runs of the same data set, --split and --limit"
            )
    return pairs


def choose_measures(pairs: Sequence[tuple[System, System]]) -> list[str]:
    """Return the names of the measures that the compared systems have: of ranked documents, or of evidence statements.

    The list is empty if the data set has neither gold documents nor evidence statements.
    """
    records = [record for pair in pairs for system in pair for record in system.records]
    if all(record.query.gold for record in records):
        return ["recall@5", "all_recall@5", "mrr@5", "ndcg@5", "recall@1000w"]
    if all(record.coverage for record in records):
        return [f"evidence_recall@{budget}w" for budget in WORD_BUDGETS]
    return []


def compare_systems(pairs: Sequence[tuple[System, System]], measures: Sequence[str], seed: int) -> list[RunComparison]:
    """Return a comparison of each pair of systems in each measure, with p values corrected for the number of tests."""
    differences = [
        [_compute_difference(first, second, parse_measure(name), seed) for name in measures] for first, second in pairs
    ]
    corrected = iter(correct_holm([difference.p for group in differences for difference in group]))
    return [
        RunComparison(first, second, [replace(difference, p_holm=next(corrected)) for difference in group])
        for (first, second), group in zip(pairs, differences, strict=True)
    ]


def _compute_difference(first: System, second: System, measure: Measure, seed: int) -> Difference:
    before, after = [[measure(record) for record in system.records] for system in (first, second)]
    differences = [value - baseline for baseline, value in zip(before, after, strict=True)]
    interval, p = bootstrap_interval(differences, seed), randomisation_test(differences, seed)
    return Difference(measure.name, statistics.fmean(before), statistics.fmean(after), *interval, p)


def find_failures(comparisons: Sequence[RunComparison], min_differences: Mapping[str, float]) -> list[str]:
    """Return a message for each difference between systems that is below the minimum allowed for its measure.

    Args:
        comparisons: Comparisons by the measures of ``min_differences`` and perhaps by other measures.
        min_differences: Lowest allowed difference by measure, in percentage points.
    """
    return [
        f"{comparison.second.name}: {difference.measure} is {100 * difference.difference:+.2f} points against "
        f"{comparison.first.name}; allowed is {min_differences[difference.measure]:+.2f}"
        for comparison in comparisons
        for difference in comparison.differences
        if difference.measure in min_differences
        and 100 * difference.difference < min_differences[difference.measure] - 1e-9
    ]


def parse_min_differences(options: Sequence[str]) -> dict[str, float]:
    """Return the lowest allowed difference by measure, in percentage points, from options such as ``recall@5=-0.5``.

    Raises:
        ConfigurationError: an option does not have this form.
    """
    min_differences = {}
    for option in options:
        name, _, points = option.partition("=")
        try:
            min_differences[parse_measure(name.strip()).name] = float(points)
        except ValueError as error:
            raise ConfigurationError(
                f"--fail-below is {option!r}; expected MEASURE=POINTS, such as recall@5=-0.5"
            ) from error
    return min_differences


def comparisons_to_json(comparisons: Sequence[RunComparison]) -> dict[str, object]:
    """Return comparisons as the JSON object that ``polyad bench compare --json`` prints; differences are in [-1, 1]."""
    return {
        "comparisons": [
            {
                "first": comparison.first.name,
                "second": comparison.second.name,
                "differences": [
                    {
                        "measure": difference.measure,
                        "first": round(difference.first, 4),
                        "second": round(difference.second, 4),
                        "difference": round(difference.difference, 4),
                        "interval": [round(difference.low, 4), round(difference.high, 4)],
                        "p": round(difference.p, 6),
                        "p_holm": round(difference.p_holm, 6),
                    }
                    for difference in comparison.differences
                ],
                "questions": [
                    {
                        "query_id": first.query.id,
                        "question": first.query.text,
                        "gold": sorted(first.query.gold),
                        "difference": round(difference, 4),
                        "first": [passage.passage_id for passage in first.passages],
                        "second": [passage.passage_id for passage in second.passages],
                    }
                    for difference, first, second in (
                        comparison.rank_questions(parse_measure(comparison.differences[0].measure))
                        if comparison.differences
                        else ()
                    )
                ],
            }
            for comparison in comparisons
        ]
    }
