"""Summaries of runs: the values behind all plots, and behind all tables except the tables of single questions.

A summary is small and contains no document text, so that it can be published: ``docs/papers/results`` is built
from summaries.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from polyad.engine.registry import retrievers
from polyad.text.json_types import is_number
from polyad_bench.answers.averages import average_answers
from polyad_bench.answers.records import AnswerRecord, JudgementLog, read_answers
from polyad_bench.measures.ranking import parse_measure
from polyad_bench.measures.significance import bootstrap_interval
from polyad_bench.runs.comparison import System, compare_systems
from polyad_bench.runs.records import HypergraphStatistics
from polyad_bench.runs.retriever_evaluation import PASSAGES_PER_DOCUMENT, WORD_BUDGETS
from polyad_bench.runs.run_folder import Run

CURVE_BUDGETS = (100, 200, 300, 500, 750, 1000, 1500, 2000)
"""Budgets of words at which recall is plotted."""

RECALL = "recall"
"""Name of recall at the depth of the run, which is plotted by default."""

_DIGITS = 6

_INDEXING_COSTS = ("seconds", "encode_seconds", "cpu_seconds", "peak_rss_mb")

_USAGE = ("prompt_tokens", "completion_tokens", "calls", "cost")

_INDEX_VALUES = (*_INDEXING_COSTS, "tokens", "passages", "hyperedges", "entities")


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean of a measure over questions, with the bounds of the 95 per cent confidence interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class RecallDifference(Estimate):
    """The paired difference in recall at k between a system and its baseline, in [-1, 1].

    The baseline is the first system of the group, or the first run of the same retriever if retrievers were run several
    times. ``p`` is the p value of a two-sided randomisation test, corrected by Holm for all systems of the group.
    """

    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemSummary:
    """The mean measures and costs of one system (a retriever in one evaluation run).

    Attributes:
        retriever: Name of the retriever.
        k: Depth of the ranking, in documents.
        questions: Number of questions.
        measures: Estimates by name, in [0, 1]; empty, like the next two, if the data set has no gold documents.
        by_depth: Recall of the first 1, 2, 3, ... documents.
        by_words: Recall by budget of words.
        p50: Median milliseconds per question, encoding included.
        p95: 95th percentile of the milliseconds.
        encode_p50: Median milliseconds in the embedder.
        llm_tokens: Mean language-model tokens per question, cached replies included: a row costs what it costs alone.
        words: Mean number of words to read until k documents have been seen.
        index: Cost and size of the index; ``llm_tokens`` and ``llm_calls`` count construction: indexing, unless the
            retriever reads no hyperedges, and reports or summaries.
        answers: Estimates of the measures of answers, over the questions that have a value.
        answer_costs: Means per answer: ``seconds`` and ``tokens`` of search and answer, and ``dollars``.
        settings: Numeric settings that differ within the group, by ``section.key``.
        difference: Difference to the baseline; None for the baseline itself.
    """

    retriever: str
    k: int
    questions: int
    measures: Mapping[str, Estimate]
    by_depth: Sequence[float]
    by_words: Mapping[int, float]
    p50: float
    p95: float
    encode_p50: float
    llm_tokens: float
    index: Mapping[str, float]
    words: float = 0.0
    answers: Mapping[str, Estimate] = field(default_factory=dict)
    answer_costs: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, float] = field(default_factory=dict)
    difference: RecallDifference | None = None

    @property
    def recall(self) -> Estimate:
        """The mean recall at depth k, with its confidence interval."""
        return self.measures[f"recall@{self.k}"]

    def find_estimate(self, measure: str) -> Estimate | None:
        """Return the mean and confidence interval of a measure, such as ``f1`` or ``recall``.

        Return None if the measure was not computed.
        """
        name = f"recall@{self.k}" if measure == RECALL else measure
        return self.answers.get(name) or self.measures.get(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    """The measures and costs of systems (a retriever in an evaluation run) that answered the same questions.

    Attributes:
        title: Name of the data set and number of questions.
        name: Name for files.
        systems: Summaries by their names in tables and plots.
        hypergraphs: Statistics of each searched hypergraph, by the name of the first run that searched it.
    """

    title: str
    name: str
    systems: Mapping[str, SystemSummary]
    hypergraphs: Mapping[str, HypergraphStatistics] = field(default_factory=dict)

    @property
    def judged_systems(self) -> Mapping[str, SystemSummary]:
        """The systems with ranking measures, keyed by name; empty if the data set has no relevance judgements."""
        return self.select_systems(RECALL)

    def select_systems(self, measure: str) -> Mapping[str, SystemSummary]:
        """Return the systems that have a value of ``measure``, keyed by name."""
        return {name: system for name, system in self.systems.items() if system.find_estimate(measure)}


def summarise_systems(title: str, name: str, systems: Mapping[str, System], seed: int) -> GroupSummary:
    """Return a summary of systems that answered the same questions: means, confidence intervals and costs.

    Args:
        title: Name of the data set and number of questions.
        name: Name for files.
        systems: Systems by name; at least one.
        seed: Seed of intervals and tests.
    """
    settings = find_varied_settings([system.run for system in systems.values()])
    summaries = {label: _summarise_system(system, settings, seed) for label, system in systems.items()}
    baselines = {label: baseline for label, baseline in _find_baselines(systems).items() if summaries[label].measures}
    judged = {label: _select_judged(system) for label, system in systems.items()}
    pairs = [(judged[baseline], judged[label]) for label, baseline in baselines.items()]
    comparisons = compare_systems(pairs, [f"recall@{next(iter(systems.values())).run.k}"], seed)
    for label, comparison in zip(baselines, comparisons, strict=True):
        (each,) = comparison.differences
        estimate = _round(each.difference, each.low, each.high, each.p_holm)
        summaries[label] = replace(summaries[label], difference=RecallDifference(*estimate))
    hypergraphs: dict[str, HypergraphStatistics] = {}
    for system in systems.values():
        hypergraph = system.run.statistics
        if hypergraph is not None and hypergraph not in hypergraphs.values():
            hypergraphs[system.run.folder.name] = hypergraph
    return GroupSummary(title=title, name=name, systems=summaries, hypergraphs=hypergraphs)


def find_varied_settings(runs: Sequence[Run]) -> list[str]:
    """Return the names (``section.key``) of numeric settings that differ between runs."""
    values = [_get_numeric_settings(run) for run in runs]
    return [
        name
        for name in values[0]
        if len({each.get(name) for each in values}) > 1 and all(name in each for each in values)
    ]


def _summarise_system(system: System, settings: Sequence[str], seed: int) -> SystemSummary:
    records, k = system.records, system.run.k
    answers = read_answers(system.run.folder)
    costs = [answer for (retriever, _), answer in answers[0].items() if retriever == system.retriever]
    judged = _select_judged(system).records
    names = [f"recall@{k}", f"all_recall@{k}", f"hits@{k}", f"mrr@{k}", f"ndcg@{k}"]
    names += [f"recall@{budget}w" for budget in WORD_BUDGETS]
    latencies = [record.milliseconds for record in records]
    gains = [0.0] * (k * PASSAGES_PER_DOCUMENT // 2 if judged else 0)
    for record in judged:
        for place, id in enumerate(record.documents[: len(gains)]):
            gains[place] += (id in record.query.gold) / len(record.query.gold) / len(judged)
    return SystemSummary(
        retriever=system.retriever,
        k=k,
        questions=len(records),
        measures={name: _estimate(list(map(parse_measure(name), judged)), seed) for name in names if judged},
        by_depth=[round(value, _DIGITS) for value in itertools.accumulate(gains)],
        by_words={
            budget: round(statistics.fmean(map(parse_measure(f"recall@{budget}w"), judged)), _DIGITS)
            for budget in CURVE_BUDGETS
            if judged
        },
        p50=round(statistics.median(latencies), 2),
        p95=round(float(np.percentile(latencies, 95)), 2),
        encode_p50=round(statistics.median(record.encode_ms for record in records), 2),
        llm_tokens=round(statistics.fmean(max(each.llm_tokens, each.llm_tokens_uncached) for each in records), 1),
        index=_summarise_index(system.run, system.retriever),
        words=round(statistics.fmean(record.count_words_to_read(k) for record in records), 1),
        answers={name: _estimate(values, seed) for name, values in _measure_answers(system, *answers).items()},
        answer_costs={
            "seconds": round(statistics.fmean(answer.milliseconds for answer in costs) / 1000, 3),
            "tokens": round(statistics.fmean(answer.tokens for answer in costs), 1),
            "dollars": statistics.fmean(answer.cost for answer in costs),
        }
        if costs
        else {},
        settings={name: _get_numeric_settings(system.run)[name] for name in settings},
    )


def _measure_answers(
    system: System, answers: Mapping[tuple[str, str], AnswerRecord], judgements: JudgementLog
) -> dict[str, list[float]]:
    """Return the answer measures of a system, keyed by measure, with one value for each question with an answer."""
    logs: dict[str, JudgementLog] = {}  # keyed by question: reading all judgements for each question would be slow
    for key, attempts in judgements.attempts.items():
        logs.setdefault(key[1], JudgementLog(judgements.values)).attempts[key] = attempts
    values: dict[str, list[float]] = {}
    for record in system.records:
        log = logs.get(record.query.id, JudgementLog())
        for name, average in average_answers(system.retriever, [record.query], answers, log).items():
            if average.value is not None:
                values.setdefault(name, []).append(average.value)
    return values


def _estimate(values: Sequence[float], seed: int) -> Estimate:
    return Estimate(*_round(statistics.fmean(values), *bootstrap_interval(values, seed)))


def _round(*values: float) -> tuple[float, ...]:
    return tuple(round(value, _DIGITS) for value in values)


def _find_baselines(systems: Mapping[str, System]) -> dict[str, str]:
    """Return the baseline's name for each system, keyed by system name; the baselines are no keys."""
    first_runs: dict[str, str] = {}
    for label, system in systems.items():
        first_runs.setdefault(system.retriever, label)
    is_repeated = len(first_runs) < len(systems)
    first = next(iter(systems))
    baselines = {label: first_runs[system.retriever] if is_repeated else first for label, system in systems.items()}
    return {label: baseline for label, baseline in baselines.items() if baseline != label}


def _select_judged(system: System) -> System:
    """Return a copy of the system with only the results for questions that have gold (relevant) documents."""
    return replace(system, records=[record for record in system.records if record.query.gold])


def _summarise_index(run: Run, retriever: str) -> dict[str, float]:
    """Return size and cost of the index of a run for one retriever, keyed by name; costs only if the index was new.

    Hyperedges cost nothing for a retriever that does not read them; the time without them was not measured.
    """
    is_new = run.index.get("written", run.index.get("passages")) == run.index.get("passages")
    reads_hyperedges = retriever not in retrievers or retrievers[retriever].reads_hyperedges
    names = [name for name in _INDEX_VALUES if (is_new and reads_hyperedges) or name not in _INDEXING_COSTS]
    values = {name: run.index[name] for name in names if run.index.get(name) is not None}
    if is_new and "llm" in run.index:
        extraction = [run.index.get("llm_uncached", run.index["llm"])] if reads_hyperedges else []
        usages = extraction + [usage for name, usage in run.index.get("preparation", {}).items() if name == retriever]
        totals = {key: sum(usage.get(key) or 0 for usage in usages) for key in _USAGE}
        values["llm_tokens"] = totals["prompt_tokens"] + totals["completion_tokens"]
        values["llm_calls"] = totals["calls"]
        values |= {"llm_dollars": totals["cost"]} if totals["cost"] else {}
    return values


def _get_numeric_settings(run: Run) -> dict[str, float]:
    """Return the numeric settings of an evaluation run, keyed ``section.key``."""
    stages = run.manifest.get("settings", {}).get("stages") or {}
    return {
        f"{section}.{key}": float(value)
        for section, keys in stages.items()
        for key, value in (keys.items() if isinstance(keys, Mapping) else ())
        if is_number(value) or isinstance(value, bool)
    }
