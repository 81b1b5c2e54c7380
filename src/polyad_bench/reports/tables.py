"""Tables of runs as rows of text cells: measures, costs, hypergraphs, evidence, refusals and answers."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from polyad.text import words
from polyad_bench.answers.averages import Average
from polyad_bench.answers.judges import LISTING_JUDGES
from polyad_bench.answers.judging import A_REL, C_REC, RETRIEVAL_SIMILARITY
from polyad_bench.answers.records import JudgementLog, read_answers
from polyad_bench.datasets.beir import group_by_type
from polyad_bench.measures.ranking import parse_measure
from polyad_bench.measures.significance import bootstrap_interval, correct_holm, welch_test
from polyad_bench.reports.summary import RECALL, GroupSummary
from polyad_bench.runs.comparison import System
from polyad_bench.runs.records import QuestionRecord, compute_mean
from polyad_bench.runs.retriever_evaluation import WORD_BUDGETS, RetrieverResult

Table = Sequence[Mapping[str, str]]
"""Rows with the same columns."""

_BOLD = re.compile(r"^\*\*([\d.]+)\*\*$")


def format_percent(value: float | None) -> str:
    """Return a share in [0, 1] as text in per cent with one decimal; a dash for None."""
    return "-" if value is None else f"{100 * value:.1f}"


def format_interval(low: float, high: float) -> str:
    """Return a confidence interval, two shares in [0, 1], as text in per cent."""
    return f"{format_percent(low)} - {format_percent(high)}"


def format_count(value: float | None) -> str:
    """Return a number as text with thousands separators; a dash for None."""
    return "-" if value is None else f"{value:,}"


def format_markdown(table: Table) -> str:
    """Return a table in Markdown, with right-aligned columns after the first column."""

    def format_line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |\n"

    columns = list(table[0])
    rule = format_line(["---", *("---:" for _ in columns[1:])])
    return format_line(columns) + rule + "".join(format_line(list(row.values())) for row in table)


def format_html(table: Table) -> str:
    """Return a table in HTML; numbers in ``**bold**`` become ``<b>``."""
    head = "".join(f"<th>{escape(name)}</th>" for name in table[0])
    cells = ([_BOLD.sub(r"<b>\1</b>", escape(cell)) for cell in row.values()] for row in table)
    rows = ("".join(f"<td>{cell}</td>" for cell in row) for row in cells)
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return f"<div class='wide'><table>\n<tr>{head}</tr>\n{body}\n</table></div>"


Systems = Mapping[str, System]
"""Systems that were asked the same questions, by their names in tables."""


def format_result_row(result: RetrieverResult) -> Mapping[str, str]:
    """Return one row of the table of results: recall, MRR, latency and tokens of one retriever, as text by column."""
    tokens, uncached = result.llm_tokens_per_query, result.llm_tokens_uncached_per_query
    return {
        "retriever": result.retriever,
        "recall": format_percent(result.recall),
        "all recall": format_percent(result.all_recall),
        "MRR": format_percent(result.mrr),
        "p50 ms": f"{result.latency_p50:.1f}",
        "p95 ms": f"{result.latency_p95:.1f}",
        "encoder ms": f"{result.encode_p50:.1f}",
        "LLM tokens": f"{tokens:.0f}" + (f" ({uncached:.0f} uncached)" if uncached > tokens else ""),
    }


def format_evidence_row(result: RetrieverResult) -> Mapping[str, str]:
    """Return a table row with the share of evidence statements that a retriever finds within each budget of words."""
    return {
        "retriever": result.retriever,
        **{f"{budget:,} words": format_percent(value) for budget, value in result.evidence.items()},
        "in the index": format_percent(result.evidence_ceiling),
    }


def build_tables(summary: GroupSummary, systems: Systems, seed: int) -> list[Table]:
    """Return all tables that compare the systems of one group (with the same questions); empty tables are left out."""
    tables = (
        build_quality_table(summary),
        build_evidence_table(systems, seed),
        build_refusal_table(systems, seed),
        build_answer_table(systems),
        *build_answer_tables_by_type(systems),
        build_protocol_table(systems),
        build_repetition_table(summary, systems),
        build_cost_table(summary),
        build_source_table(systems),
        build_hypergraph_table(summary),
    )
    return [table for table in tables if table]


def build_quality_table(summary: GroupSummary) -> Table:
    """Return a table of ranking measures in per cent, with the confidence interval of recall.

    The baseline is the first system, or the first run of the same retriever if retrievers were run several times.
    Differences are in percentage points; p values are corrected by Holm. Empty if the data set has no gold documents.
    """
    rows = []
    for name, system in summary.judged_systems.items():
        first, *others = system.measures
        recall, difference = system.recall, system.difference
        row = {
            "retriever": name,
            first: format_percent(recall.mean),
            "95 %": format_interval(recall.low, recall.high),
        }
        row |= {measure: format_percent(system.measures[measure].mean) for measure in others}
        row["difference"] = f"{100 * difference.mean:+.1f}" if difference else ""
        row["p"] = f"{difference.p:.4f}" if difference else ""
        rows.append(row)
    return rows


def build_repetition_table(summary: GroupSummary, systems: Systems) -> Table:
    """Return a table of mean and standard deviation over runs that differ only in the seed of the language model.

    Empty if there are no such runs. The first system is the baseline of the differences. The p values of the
    differences are those of Welch's t-test, corrected by Holm for all rows (HyperSU, Table 23).
    """
    repetitions: dict[str, list[str]] = {}
    for name, system in systems.items():
        repetitions.setdefault(_describe_without_seed(system), []).append(name)
    groups = [
        names for names in repetitions.values() if len({_get_model(systems[name]).get("seed") for name in names}) > 1
    ]
    rows, p_values = [], []
    for measure in dict.fromkeys(name for system in summary.systems.values() for name in (RECALL, *system.answers)):
        results = [
            [100 * estimate.mean for name in names if (estimate := summary.systems[name].find_estimate(measure))]
            for names in groups
        ]
        for names, values in zip(groups, results, strict=True):
            if len(values) < 2:
                continue
            row = {"repeated runs": systems[names[0]].retriever, "first run": names[0], "runs": str(len(values))}
            row |= {"measure": measure, "mean": f"{statistics.fmean(values):.2f}"}
            row["deviation"] = f"{statistics.stdev(values):.2f}"
            is_compared = names != groups[0] and len(results[0]) > 1
            p_values += [welch_test(results[0], values)] if is_compared else []
            difference = statistics.fmean(values) - statistics.fmean(results[0]) if is_compared else None
            rows.append({**row, "difference": "" if difference is None else f"{difference:+.2f}"})
    corrected = iter(correct_holm(p_values))
    return [{**row, "p (Welch, Holm)": f"{next(corrected):.4g}" if row["difference"] else ""} for row in rows]


def _describe_without_seed(system: System) -> str:
    """Return as JSON all settings of a system's run except the seed; equal texts mean repeated runs."""
    manifest = {name: value for name, value in system.run.manifest.items() if name not in ("retrievers", "seed")}
    settings = {**manifest.get("settings", {}), "language_model": {**_get_model(system), "seed": 0}}
    judges = read_answers(system.run.folder)[1].models
    return json.dumps([system.retriever, judges, {**manifest, "settings": settings}], sort_keys=True)


def _get_model(system: System) -> Mapping[str, Any]:
    """Return the language model settings of a run; empty without a language model."""
    return system.run.manifest.get("settings", {}).get("language_model") or {}


def build_source_table(systems: Systems) -> Table:
    """Return a table of the origins of imported runs; empty if polyad measured all runs."""
    sources = {name: system.run.manifest.get("source") for name, system in systems.items()}
    return [{"imported": name, "source": str(source)} for name, source in sources.items() if source]


def build_cost_table(summary: GroupSummary) -> Table:
    """Return a table of search latency and tokens per question, and of indexing time and index size, by system.

    The words to read are the words of the first passages, until k documents have been seen. Seconds and dollars of
    answers include the search. Columns of dollars need the prices of the language model. Cached replies count as
    if they were new, and hyperedges cost nothing for a retriever that does not read them.
    """
    has_answers = any(system.answer_costs for system in summary.systems.values())
    has_prices = any(
        system.answer_costs.get("dollars") or system.index.get("llm_dollars") for system in summary.systems.values()
    )
    rows = []
    for name, system in summary.systems.items():
        index = system.index
        thousands = index.get("tokens", 0) / 1000 if {"seconds", "llm_tokens"} & index.keys() else 0
        rows.append(
            {
                "retriever": name,
                "p50 ms": f"{system.p50:.1f}" if system.p50 else "-",
                "p95 ms": f"{system.p95:.1f}" if system.p95 else "-",
                "encoder ms": f"{system.encode_p50:.1f}" if system.p50 else "-",
                "words to read": f"{system.words:.0f}" if system.words else "-",
                "LLM tokens": f"{system.llm_tokens:.0f}",
                "indexing s": format_count(index.get("seconds")),
                "passages": format_count(index.get("passages")),
                "hyperedges": format_count(index.get("hyperedges")),
                "entities": format_count(index.get("entities")),
                "memory MB": format_count(index.get("peak_rss_mb")),
                "indexing ms / 1k tokens": _divide(index.get("seconds"), thousands / 1000, 1),
                "LLM tokens / 1k tokens": _divide(index.get("llm_tokens", 0), thousands, 0),
            }
        )
        costs = system.answer_costs
        if has_answers:
            rows[-1]["answer s"] = f"{costs['seconds']:.3f}" if costs else "-"
            rows[-1]["LLM tokens / answer"] = f"{costs['tokens']:.0f}" if costs else "-"
        if has_prices:
            rows[-1]["indexing $ / 1k tokens"] = _divide(index.get("llm_dollars", 0), thousands, 4)
            rows[-1]["$ / 1k questions"] = f"{1000 * costs['dollars']:.3f}" if costs else "-"
    return rows


def _divide(value: float | None, divisor: float, digits: int) -> str:
    """Return a quotient as text; a dash if the value is unknown or the divisor is 0."""
    return "-" if value is None or not divisor else f"{value / divisor:.{digits}f}"


def build_hypergraph_table(summary: GroupSummary) -> Table:
    """Return a table with sizes and mean degrees of each searched hypergraph; empty without statistics."""
    return [
        {
            "hypergraph": name,
            "hyperedges": format_count(hypergraph.hyperedges),
            "entities": format_count(hypergraph.entities),
            "entities per hyperedge": f"{compute_mean(hypergraph.arity):.2f}",
            "hyperedges per entity": f"{compute_mean(hypergraph.degree):.2f}",
            "sentences per hyperedge": f"{compute_mean(hypergraph.sentences):.2f}",
            "words per hyperedge": f"{hypergraph.words / max(1, hypergraph.hyperedges):.1f}",
        }
        for name, hypergraph in summary.hypergraphs.items()
    ]


def build_evidence_table(systems: Systems, seed: int) -> Table:
    """Return a table of the recall of evidence statements in per cent, for all questions and for each question type.

    The smallest budget has a 95 per cent interval; the last column is the share that any passage of the index covers.
    Empty if the data set states no evidence.
    """
    rows = []
    for name, system in systems.items():
        records = [record for record in system.records if record.coverage]
        groups = {"all": records, **_group_records(records)} if records else {}
        for question_type, group in groups.items():
            row = {"retriever": name, "questions": question_type, "counted": str(len(group))}
            for budget in WORD_BUDGETS:
                measure = parse_measure(f"evidence_recall@{budget}w")
                values = [measure(record) for record in group]
                row[measure.name] = format_percent(statistics.fmean(values))
                if budget == WORD_BUDGETS[0]:
                    row["95 %"] = format_interval(*bootstrap_interval(values, seed))
            ceilings = [record.coverage.ceiling for record in group if record.coverage]
            rows.append({**row, "in the index": format_percent(statistics.fmean(ceilings))})
    return rows


def _group_records(records: Sequence[QuestionRecord]) -> dict[str, list[QuestionRecord]]:
    """Return the records of each question type in a dictionary; empty if all questions have the same type."""
    by_id = {record.query.id: record for record in records}
    groups = group_by_type(record.query for record in records)
    return {question_type: [by_id[query.id] for query in queries] for question_type, queries in groups.items()}


def build_refusal_table(systems: Systems, seed: int) -> Table:
    """Return a table of how often each system rejects all passages if the relevant documents are not in the index.

    The result is empty if refusal was not measured.
    """
    rows = []
    for name, system in systems.items():
        if refusal := system.run.measure_refusals().get(system.retriever):
            interval = bootstrap_interval([float(flag) for flag in refusal.flags], seed)
            row = {"retriever": name, "refused": format_percent(refusal.refused), "95 %": format_interval(*interval)}
            rows.append({**row, "ROC AUC": format_percent(refusal.roc_auc), "criterion": refusal.criterion})
    return rows


def build_answer_table(systems: Systems) -> Table:
    """Return a table of answer measures in per cent, one row per system; empty without answers.

    A star marks too few judged answers. The best average of each measure is bold if several systems have enough judged
    answers.
    """
    averages = {name: system.run.average_answers().get(system.retriever, {}) for name, system in systems.items()}
    return format_answer_rows(averages)


def build_answer_tables_by_type(systems: Systems) -> list[Table]:
    """Return a table of answer measures for each question type; an empty list if there is only one type."""
    by_type: dict[str, dict[str, Mapping[str, Average]]] = {}
    for name, system in systems.items():
        for question_type, averages in system.run.average_answers_by_type().items():
            by_type.setdefault(question_type, {})[name] = averages.get(system.retriever, {})
    return [
        [{"questions": question_type, **row} for row in format_answer_rows(averages)]
        for question_type, averages in by_type.items()
    ]


def build_average_table(groups: Sequence[tuple[GroupSummary, Systems]]) -> Table:
    """Return a table of each measure's mean over data sets, and of answers over their question types; one row a system.

    Each data set, or each of its question types, is a setting and counts the same. Systems without results on a data
    set are left out; the table is empty if there is one setting.
    """
    rows = []
    for name in groups[0][1]:
        values: dict[str, list[float]] = {}
        settings = 0
        for summary, systems in groups if all(name in systems for _, systems in groups) else ():
            run, retriever = systems[name].run, systems[name].retriever
            answers = [*run.average_answers_by_type().values()] or [run.average_answers()]
            settings += len(answers)
            for averages in answers:
                for measure, average in averages.get(retriever, {}).items():
                    values.setdefault(measure, []).extend([] if average.value is None else [average.value])
            for measure, estimate in summary.systems[name].measures.items():
                values.setdefault(measure, []).append(estimate.mean)
        means = {measure: format_percent(statistics.fmean(each)) for measure, each in values.items() if each}
        rows += [{"retriever": name, "settings": str(settings), **means}] if settings > 1 else []
    columns = list(dict.fromkeys(column for row in rows for column in row))
    return [{column: row.get(column, "-") for column in columns} for row in rows]


def build_protocol_table(systems: Systems) -> Table:
    """Return a table that states the computation of each answer measure, such as tokenizer and number of requests.

    The table lists only measures whose computation depends on the data set or on a setting. It is empty without
    answers.
    """
    names: dict[tuple[str, str], list[str]] = {}
    for name, system in systems.items():
        answers, log = read_answers(system.run.folder)
        measured = {judge for retriever, _, judge in log.values if retriever == system.retriever}
        notes = dict.fromkeys(("c_rec_words", "a_rel_words"), "words") if answers else {}
        notes |= {judge: f"tokens of {log.models[judge]}" for judge in (C_REC, A_REL) if judge in measured}
        for judge in LISTING_JUDGES:
            requests = 1 + sum(other.startswith(f"{judge}.") for other in measured)
            notes |= {judge: f"{requests} requests for each answer"} if judge in measured else {}
        if RETRIEVAL_SIMILARITY in measured:
            notes[RETRIEVAL_SIMILARITY] = _format_reference_counts(system, log)
        for note in notes.items():
            names.setdefault(note, []).append(name)
    return [
        {"measure": measure, "computed from": note, "retrievers": ", ".join(retrievers)}
        for (measure, note), retrievers in names.items()
    ]


def _format_reference_counts(system: System, judgements: JudgementLog) -> str:
    """Return text such as "stated evidence of 5 questions": the references with which retrieved texts were compared."""
    compared = [
        record.query
        for record in system.records
        if (system.retriever, record.query.id, RETRIEVAL_SIMILARITY) in judgements.values
    ]
    stated = sum(bool(query.evidence) for query in compared)
    counts = {"stated evidence": stated, "gold documents": len(compared) - stated}
    return ", ".join(f"{gold} of {words.format_count(count, 'question')}" for gold, count in counts.items() if count)


def format_answer_rows(averages_by_system: Mapping[str, Mapping[str, Average]]) -> Table:
    """Return a table of answer measures with one row per system and one column per measure; the best mean is marked."""
    measures = list(dict.fromkeys(measure for by_measure in averages_by_system.values() for measure in by_measure))
    best = {
        measure: _find_best([by_measure.get(measure) for by_measure in averages_by_system.values()])
        for measure in measures
    }
    return [
        {
            "retriever": name,
            **{measure: _format_average(by_measure.get(measure), best[measure]) for measure in measures},
        }
        for name, by_measure in averages_by_system.items()
        if measures
    ]


def _find_best(averages: Sequence[Average | None]) -> float | None:
    """Return the highest mean to mark as best; None unless two means have a value for enough questions."""
    values = [average.value for average in averages if average and average.is_sufficient and average.value is not None]
    return max(values) if len(values) > 1 else None


def _format_average(average: Average | None, best: float | None) -> str:
    if average is None:
        return "-"
    return f"**{average.format()}**" if average.is_sufficient and average.value == best else average.format()
