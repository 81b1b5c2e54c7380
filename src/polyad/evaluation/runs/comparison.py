"""Two runs on the same questions: how they differ, how surely, and on which questions."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from polyad.errors import ConfigurationError
from polyad.evaluation.measures.named import Measure, parse_measure
from polyad.evaluation.measures.significance import bootstrap_interval, correct_holm, randomisation_test
from polyad.evaluation.runs.records import QuestionRecord
from polyad.evaluation.runs.retriever_evaluation import WORD_BUDGETS
from polyad.evaluation.runs.run_folder import Run, load_run


@dataclass(frozen=True, slots=True)
class System:
    """What one retriever did in one run.

    Attributes:
        name: Folder and retriever.
        run: The run it is of.
        records: One of each question.
    """

    name: str
    run: Run
    records: Sequence[QuestionRecord]

    @property
    def retriever(self) -> str:
        """Name of the retriever alone."""
        return self.records[0].retriever


@dataclass(frozen=True, slots=True)
class Difference:
    """How a second system differs from a first one by one measure; all in [-1, 1].

    Attributes:
        measure: Its name.
        first, second: Means.
        low, high: Interval in which the difference second - first lies with 95 per cent confidence.
        p: Of a two-sided randomisation test.
        holm: The same, corrected for all differences that are told together.
    """

    measure: str
    first: float
    second: float
    low: float
    high: float
    p: float
    holm: float

    @property
    def difference(self) -> float:
        """Second - first."""
        return self.second - self.first


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems, compared.

    Attributes:
        first, second: The baseline, and what is compared to it.
        differences: By measure.
    """

    first: System
    second: System
    differences: Sequence[Difference]

    def questions(self, measure: Measure) -> list[tuple[float, QuestionRecord, QuestionRecord]]:
        """The questions on which they differ: by how much, and what each found; the worst for the second first."""
        pairs = zip(self.first.records, self.second.records, strict=True)
        found = [(measure(other) - measure(one), one, other) for one, other in pairs]
        return sorted((item for item in found if item[0]), key=lambda item: (item[0], item[1].query.id))


def load_systems(names: Sequence[str]) -> list[list[System]]:
    """The systems of each name: all of a run's retrievers for its folder, one of them for ``FOLDER:RETRIEVER``.

    Raises:
        ConfigurationError: there is no such run or retriever.
    """
    runs: dict[Path, Run] = {}
    found = []
    for name in names:
        folder, retriever = _parted(name)
        run = runs.setdefault(folder, runs.get(folder) or load_run(folder))
        if retriever and retriever not in run.records:
            raise ConfigurationError(
                f"the run {str(folder)!r} has no retriever {retriever!r}; it has {', '.join(run.records)}"
            )
        chosen = [retriever] if retriever else list(run.records)
        found.append([System(f"{folder}:{one}", run, run.records[one]) for one in chosen])
    return found


def _parted(name: str) -> tuple[Path, str]:
    folder, colon, retriever = name.rpartition(":")
    if Path(name).is_dir() or not colon or not Path(folder).is_dir():
        return Path(name), ""
    return Path(folder), retriever


def pair_systems(groups: Sequence[Sequence[System]]) -> list[tuple[System, System]]:
    """What is compared with what, the baseline first.

    Of one run, its other retrievers with its first. Of two, each retriever with itself where both have it, else with
    the only one of the first run; one system by itself is compared with the only system of the other run.

    Raises:
        ConfigurationError: that leaves nothing to compare, or the systems were not asked the same.
    """
    if len(groups) == 1:
        pairs = [(groups[0][0], other) for other in groups[0][1:]]
    else:
        first, second = groups
        by_retriever = {system.retriever: system for system in first}
        pairs = [(by_retriever[one.retriever], one) for one in second if one.retriever in by_retriever]
        if len(first) == 1:
            pairs = [(first[0], one) for one in second]
    if not pairs:
        raise ConfigurationError(
            "there is nothing to compare: expected two runs of the same retriever, one run of several, or retrievers "
            "named as in RUN:bm25"
        )
    for one, other in pairs:
        _require_same_questions(one, other)
    return pairs


def choose_measures(pairs: Sequence[tuple[System, System]]) -> list[str]:
    """Measures that can be told: of rankings where documents are judged, of evidence where it is stated; or none."""
    records = [record for pair in pairs for system in pair for record in system.records]
    if all(record.query.gold for record in records):
        return ["recall@5", "all_recall@5", "mrr@5", "ndcg@5", "recall@1000w"]
    if all(record.covered for record in records):
        return [f"evidence_recall@{budget}w" for budget in WORD_BUDGETS]
    return []


def compare_systems(pairs: Sequence[tuple[System, System]], measures: Sequence[str], seed: int) -> list[Comparison]:
    """Each pair by each measure; p values are corrected for all of them together."""
    raw = [
        (one, other, [_difference(one, other, parse_measure(name), seed) for name in measures]) for one, other in pairs
    ]
    corrected = iter(correct_holm([difference.p for *_, differences in raw for difference in differences]))
    return [
        Comparison(one, other, [replace(difference, holm=next(corrected)) for difference in differences])
        for one, other, differences in raw
    ]


def _difference(one: System, other: System, measure: Measure, seed: int) -> Difference:
    before, after = [[measure(record) for record in system.records] for system in (one, other)]
    differences = [second - first for first, second in zip(before, after, strict=True)]
    return Difference(
        measure.name,
        statistics.fmean(before),
        statistics.fmean(after),
        *bootstrap_interval(differences, seed),
        randomisation_test(differences, seed),
        1.0,
    )


def _require_same_questions(one: System, other: System) -> None:
    for name in ("digest", "questions"):
        if one.run.manifest["dataset"][name] != other.run.manifest["dataset"][name]:
            raise ConfigurationError(
                f"{one.name!r} and {other.name!r} are not of the same {'data set' if name == 'digest' else name}; "
                "expected runs of the same data set, --split and --limit"
            )


def find_failures(comparisons: Sequence[Comparison], bounds: Mapping[str, float]) -> list[str]:
    """In words, which differences are below what is allowed.

    Args:
        comparisons: With the measures of the bounds among theirs.
        bounds: The least difference allowed, in percentage points, by measure.
    """
    return [
        f"{comparison.second.name}: {difference.measure} is {100 * difference.difference:+.2f} points against "
        f"{comparison.first.name}; allowed is {bounds[difference.measure]:+.2f}"
        for comparison in comparisons
        for difference in comparison.differences
        if difference.measure in bounds and 100 * difference.difference < bounds[difference.measure] - 1e-9
    ]


def parse_min_differences(texts: Sequence[str]) -> dict[str, float]:
    """Bounds from ``MEASURE=POINTS``: ``recall@5=-0.5`` allows half a point less.

    Raises:
        ConfigurationError: one is not of that form.
    """
    bounds = {}
    for text in texts:
        name, _, points = text.partition("=")
        try:
            bounds[parse_measure(name.strip()).name] = float(points)
        except ValueError as error:
            raise ConfigurationError(
                f"--fail-below is {text!r}; expected MEASURE=POINTS, such as recall@5=-0.5"
            ) from error
    return bounds


def comparisons_to_json(comparisons: Sequence[Comparison]) -> dict[str, object]:
    """The shape that ``polyad compare --json`` prints; differences in [-1, 1], the evidence by document."""
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
                        "p_holm": round(difference.holm, 6),
                    }
                    for difference in comparison.differences
                ],
                "questions": [
                    _question_json(by, one, other)
                    for by, one, other in (
                        comparison.questions(parse_measure(comparison.differences[0].measure))
                        if comparison.differences
                        else ()
                    )
                ],
            }
            for comparison in comparisons
        ]
    }


def _question_json(by: float, one: QuestionRecord, other: QuestionRecord) -> dict[str, object]:
    return {
        "query_id": one.query.id,
        "question": one.query.text,
        "gold": sorted(one.query.gold),
        "difference": round(by, 4),
        "first": [found.passage_id for found in one.passages],
        "second": [found.passage_id for found in other.passages],
    }
