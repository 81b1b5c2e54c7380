"""What the records of a run come to: all that its pictures, and its tables but those of single questions, are made of.

A summary is small and says nothing of what the documents say, so it can be kept where a run folder cannot: the results
in ``docs/results`` are made of summaries.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from polyad.evaluation.measures.named import parse_measure
from polyad.evaluation.measures.ranking import recall
from polyad.evaluation.measures.significance import bootstrap_interval, correct_holm, randomisation_test
from polyad.evaluation.runs.comparison import System
from polyad.evaluation.runs.hypergraph_statistics import HypergraphStatistics
from polyad.evaluation.runs.records import QuestionRecord
from polyad.evaluation.runs.retriever_evaluation import PASSAGES_PER_DOCUMENT, WORD_BUDGETS, compute_percentile
from polyad.evaluation.runs.run_folder import Run

CURVE_BUDGETS = (100, 200, 300, 500, 750, 1000, 1500, 2000)
"""Budgets at which recall is drawn."""

_DIGITS = 6

_OF_INDEXING = ("seconds", "encode_seconds", "cpu_seconds", "peak_rss_mb")

_OF_THE_INDEX = (*_OF_INDEXING, "tokens", "passages", "hyperedges", "entities")


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean over the questions, and the interval in which it lies with 95 per cent confidence."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Difference:
    """How a system differs from a baseline in recall at k, paired by question.

    The baseline is the first system of its group; where retrievers were run several times, the first of the same one.

    Attributes:
        mean, low, high: As of an :class:`Estimate`; in [-1, 1].
        p: Of a two-sided randomisation test, corrected by Holm for all systems of the group.
    """

    mean: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemSummary:
    """What one retriever did in one run.

    Attributes:
        retriever: Its name.
        k: Depth of the ranking, in documents.
        questions: How many were asked.
        measures: By name, in [0, 1]; empty, as what follows, where nobody has judged which documents hold the evidence.
        by_depth: Recall of the first 1, 2, 3, ... documents.
        by_words: Recall of what fits into a budget of words, by the budget.
        p50, p95: Milliseconds of a question, the encoding included.
        encode_p50: Milliseconds in the embedder.
        llm_tokens: Of a language model, a question.
        words: Of the text to be read until k documents have been seen, the mean.
        index: What indexing took, and how large the index is; ``llm_tokens`` and ``llm_calls`` are those of indexing.
        settings: Those that are numbers and differ within the group, by ``section.key``.
        difference: To its baseline; None for what is one itself.
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
    settings: Mapping[str, float] = field(default_factory=dict)
    difference: Difference | None = None

    @property
    def recall(self) -> Estimate:
        """At k."""
        return self.measures[f"recall@{self.k}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    """Systems that were asked the same.

    Attributes:
        title: Of the data set, with its number of questions.
        name: For files.
        systems: By the name they have in tables and pictures.
        constructions: The hypergraphs that were searched, each once, by the name of the first run on it.
    """

    title: str
    name: str
    systems: Mapping[str, SystemSummary]
    constructions: Mapping[str, HypergraphStatistics] = field(default_factory=dict)

    @property
    def judged(self) -> Mapping[str, SystemSummary]:
        """The systems of which recall is known; all of them, or none where nobody has judged the documents."""
        return {name: system for name, system in self.systems.items() if system.measures}


def summarise_systems(title: str, name: str, systems: Mapping[str, System], seed: int) -> GroupSummary:
    """Sum up systems that were asked the same.

    Args:
        title: Of the data set, with its number of questions.
        name: For files.
        systems: By name; at least one.
        seed: Of intervals and tests.
    """
    runs = [system.run for system in systems.values()]
    varied = find_varied_settings(runs)
    summaries = {label: _summary(system, varied, seed) for label, system in systems.items()}
    compared = {other: baseline for other, baseline in _baselines(systems).items() if summaries[other].measures}
    pairs = [_differences(systems[baseline], systems[other]) for other, baseline in compared.items()]
    corrected = correct_holm([randomisation_test(values, seed) for values in pairs])
    for other, values, p in zip(compared, pairs, corrected, strict=True):
        difference = Difference(*_rounded(statistics.fmean(values), *bootstrap_interval(values, seed), p))
        summaries[other] = replace(summaries[other], difference=difference)
    return GroupSummary(title=title, name=name, systems=summaries, constructions=_constructions(systems))


def find_varied_settings(runs: Sequence[Run]) -> list[str]:
    """The settings, as ``section.key``, whose values are numbers and differ between runs."""
    stages = [run.manifest["settings"]["stages"] for run in runs]
    return [
        f"{section}.{key}"
        for section, keys in stages[0].items()
        for key in keys
        if len({repr(stage[section][key]) for stage in stages}) > 1
        and all(isinstance(stage[section][key], int | float) for stage in stages)
    ]


def _summary(system: System, varied: Sequence[str], seed: int) -> SystemSummary:
    records, k = system.records, system.run.k
    judged = _judged(system)
    names = [f"recall@{k}", f"all_recall@{k}", f"hits@{k}", f"mrr@{k}", f"ndcg@{k}"]
    names += [f"recall@{budget}w" for budget in WORD_BUDGETS]
    totals = [record.milliseconds for record in records]
    return SystemSummary(
        retriever=system.retriever,
        k=k,
        questions=len(records),
        measures={name: _estimate([parse_measure(name)(one) for one in judged], seed) for name in names if judged},
        by_depth=[
            round(statistics.fmean(recall(one.documents, one.query.gold, depth) for one in judged), _DIGITS)
            for depth in range(1, k * PASSAGES_PER_DOCUMENT // 2 + 1)
            if judged
        ],
        by_words={
            budget: round(statistics.fmean(map(parse_measure(f"recall@{budget}w"), judged)), _DIGITS)
            for budget in CURVE_BUDGETS
            if judged
        },
        p50=round(statistics.median(totals), 2),
        p95=round(compute_percentile(totals, 95), 2),
        encode_p50=round(statistics.median(record.encode_ms for record in records), 2),
        llm_tokens=round(statistics.fmean(record.llm_tokens for record in records), 1),
        index=_index(system.run),
        words=round(statistics.fmean(record.words_of_first(k) for record in records), 1),
        settings={name: _value(system.run, name) for name in varied},
    )


def _estimate(values: Sequence[float], seed: int) -> Estimate:
    return Estimate(*_rounded(statistics.fmean(values), *bootstrap_interval(values, seed)))


def _baselines(systems: Mapping[str, System]) -> dict[str, str]:
    """What each system is compared with; see :class:`Difference`."""
    retrievers = [system.retriever for system in systems.values()]
    first: dict[str, str] = {}
    for label, system in systems.items():
        first.setdefault(system.retriever, label)
    is_repeated = len(first) < len(retrievers)
    own = {label: first[system.retriever] if is_repeated else next(iter(systems)) for label, system in systems.items()}
    return {label: baseline for label, baseline in own.items() if baseline != label}


def _rounded(*values: float) -> tuple[float, ...]:
    return tuple(round(value, _DIGITS) for value in values)


def _judged(system: System) -> list[QuestionRecord]:
    """The records of questions of which it is known which documents hold the evidence."""
    return [record for record in system.records if record.query.gold]


def _differences(one: System, other: System) -> list[float]:
    measure = parse_measure(f"recall@{one.run.k}")
    return [measure(after) - measure(before) for before, after in zip(_judged(one), _judged(other), strict=True)]


def _index(run: Run) -> dict[str, float]:
    """What is known of the index; not what indexing took where the run found it made."""
    is_whole = run.index.get("written", run.index.get("passages")) == run.index.get("passages")
    unknown = () if is_whole else _OF_INDEXING
    found = {name: run.index[name] for name in _OF_THE_INDEX if name not in unknown and run.index.get(name) is not None}
    if is_whole and "llm" in run.index:
        usage = run.index["llm"]
        found["llm_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]
        found["llm_calls"] = usage.get("calls", 0)
    return found


def _value(run: Run, name: str) -> float:
    section, _, key = name.partition(".")
    return float(run.manifest["settings"]["stages"][section][key])


def _constructions(systems: Mapping[str, System]) -> dict[str, HypergraphStatistics]:
    """Each hypergraph once, under the name of the first run that searched it."""
    found: dict[str, HypergraphStatistics] = {}
    for system in systems.values():
        construction = system.run.construction
        if construction is not None and construction not in found.values():
            found[system.run.folder.name] = construction
    return found


def summary_to_json(summaries: GroupSummary) -> dict[str, Any]:
    """As JSON holds them."""
    return asdict(summaries)


def summary_from_json(value: Mapping[str, Any]) -> GroupSummary:
    """What :func:`summary_to_json` gave, also when it went through a file, where all keys are texts.

    Raises:
        KeyError, TypeError, ValueError: it did not give that.
    """
    return GroupSummary(
        title=value["title"],
        name=value["name"],
        systems={name: _summary_from(one) for name, one in value["systems"].items()},
        constructions={name: HypergraphStatistics.from_json(one) for name, one in value["constructions"].items()},
    )


def _summary_from(value: Mapping[str, Any]) -> SystemSummary:
    difference = value["difference"]
    return SystemSummary(
        **{
            **value,
            "measures": {name: Estimate(**one) for name, one in value["measures"].items()},
            "by_words": {int(budget): reached for budget, reached in value["by_words"].items()},
            "difference": Difference(**difference) if difference else None,
        }
    )
