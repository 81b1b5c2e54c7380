"""Tables of what is measured of some runs beside their rankings: stated evidence, refusals, answers."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from polyad.evaluation.answers.averages import Average
from polyad.evaluation.datasets.beir import group_by_type
from polyad.evaluation.measures.named import parse_measure
from polyad.evaluation.measures.significance import bootstrap_interval
from polyad.evaluation.runs.comparison import System
from polyad.evaluation.runs.records import QuestionRecord
from polyad.evaluation.runs.retriever_evaluation import WORD_BUDGETS

Table = Sequence[Mapping[str, str]]
"""Rows of the same columns."""

Systems = Mapping[str, System]
"""Systems that were asked the same, by the names they have in tables."""


def build_measured_tables(systems: Systems, seed: int) -> list[Table]:
    """All of them; those of which nothing was measured are empty."""
    return [
        build_evidence_table(systems, seed),
        build_refusal_table(systems, seed),
        build_answer_table(systems),
        *build_answer_tables_by_type(systems),
    ]


def build_evidence_table(systems: Systems, seed: int) -> Table:
    """How much of the evidence that the data set states is covered, and how much of it is in the index at all.

    In per cent; of the smallest budget also where it lies with 95 per cent confidence. By type of question, too, where
    there are several. Empty where the data set states no evidence.
    """
    rows = []
    for name, system in systems.items():
        stated = [record for record in system.records if record.covered]
        by_id = {record.query.id: record for record in stated}
        kinds = {"all": list(by_id), **_types(stated)} if stated else {}
        for kind, ids in kinds.items():
            records = [by_id[id] for id in ids]
            row = {"retriever": name, "questions": kind, "counted": str(len(records))}
            for budget in WORD_BUDGETS:
                values = [parse_measure(f"evidence_recall@{budget}w")(record) for record in records]
                row[f"evidence_recall@{budget}w"] = _percent(statistics.fmean(values))
                if budget == WORD_BUDGETS[0]:
                    row["95 %"] = " - ".join(map(_percent, bootstrap_interval(values, seed)))
            ceiling = [one.coverable / one.statements for record in records if (one := record.covered)]
            rows.append({**row, "in the index": _percent(statistics.fmean(ceiling))})
    return rows


def _types(records: Sequence[QuestionRecord]) -> dict[str, list[str]]:
    """Ids of questions by their type, where there are several."""
    found = group_by_type(record.query for record in records)
    return {kind: [query.id for query in queries] for kind, queries in found.items()}


def build_refusal_table(systems: Systems, seed: int) -> Table:
    """Of questions whose gold documents were taken out, how many would be refused; empty where none were asked."""
    rows = []
    for name, system in systems.items():
        found = system.run.refusals().get(system.retriever)
        if found:
            row = {"retriever": name, "refused": _percent(found.refused)}
            row["95 %"] = " - ".join(map(_percent, bootstrap_interval([float(flag) for flag in found.flags], seed)))
            rows.append({**row, "told apart": _percent(found.told_apart), "by": found.by})
    return rows


def build_answer_table(systems: Systems) -> Table:
    """Measures of the answers in per cent, with a star where too few were judged; empty where there are none.

    Of each measure the best average is in bold, where there are several and enough were judged.
    """
    return format_answer_rows(
        {name: system.run.answers().get(system.retriever, {}) for name, system in systems.items()}
    )


def build_answer_tables_by_type(systems: Systems) -> list[Table]:
    """The same for the questions of each type, where there are several."""
    kinds: dict[str, dict[str, Mapping[str, Average]]] = {}
    for name, system in systems.items():
        for kind, found in system.run.answers_by_type().items():
            kinds.setdefault(kind, {})[name] = found.get(system.retriever, {})
    return [[{"questions": kind, **row} for row in format_answer_rows(found)] for kind, found in kinds.items()]


def format_answer_rows(found: Mapping[str, Mapping[str, Average]]) -> Table:
    """The averages of each system: a row each."""
    measures = list(dict.fromkeys(measure for averages in found.values() for measure in averages))
    best = {
        measure: _best([averages[measure] for averages in found.values() if measure in averages])
        for measure in measures
    }
    return [
        {
            "retriever": name,
            **{
                measure: _emphasised(averages[measure], best[measure]) if measure in averages else "-"
                for measure in measures
            },
        }
        for name, averages in found.items()
        if measures
    ]


def _best(averages: Sequence[Average]) -> float | None:
    """The highest of several averages of enough answers; None where there is nothing to be better than."""
    values = [one.value for one in averages if one.is_enough and one.value is not None]
    return max(values) if len(values) > 1 else None


def _emphasised(average: Average, best: float | None) -> str:
    """In bold where it is the best; never where too few were judged."""
    return f"**{average.shown()}**" if average.is_enough and average.value == best else average.shown()


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"
