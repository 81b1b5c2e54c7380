"""Output of measurements and of training."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from pathlib import Path

from polyad.cli.output import join_first, show_table
from polyad.cli.streams import say, warn
from polyad.evaluation.answers.averages import Average
from polyad.evaluation.datasets.beir import Dataset
from polyad.evaluation.reports.tables import format_evidence_row, format_percent, format_result_row
from polyad.evaluation.runs.retriever_evaluation import FALSE_REFUSALS, Refusal, RetrieverResult
from polyad.evaluation.training.linear_scorer import K, TrainingReport
from polyad.evaluation.training.triple_scorer import TripleTrainingReport
from polyad.text.words import format_count


def warn_of_judgements(dataset: Dataset, documents: Container[str]) -> None:
    """Print a warning if relevance judgements of a benchmark name missing questions or documents.

    Args:
        dataset: The benchmark.
        documents: Ids of the indexed documents.
    """
    if dataset.unknown:
        questions = f"{format_count(len(dataset.unknown), 'question')}, {join_first(dataset.unknown)}"
        warn("warning", f"judged in {dataset.name}'s qrels, but not in queries.jsonl: {questions}")
    if missing := dataset.find_missing_gold(documents):
        gold = f"{format_count(len(missing), 'gold document')}, {join_first(missing)}"
        warn(
            "warning",
            f"named in {dataset.name}'s qrels, but not indexed from corpus.jsonl: {gold}; they lower the recall",
        )


def show_eval(
    dataset: str, questions: int, k: int, index: Mapping[str, object], results: Sequence[RetrieverResult]
) -> None:
    """Print the scores that ``polyad eval`` measured, one row per retriever."""
    say(f"{dataset}: {format_count(questions, 'question')}, k = {k}; measures in per cent, times in milliseconds")
    say(f"indexed in {index.get('seconds', 0)} s, of it {index.get('encode_seconds', 0)} s in the embedder:")
    say(", ".join(f"{name}: {index.get(name, 0):,}" for name in ("passages", "hyperedges", "entities")))
    say(f"memory at its peak: {index.get('peak_rss_mb', 0)} MB")
    show_table([format_result_row(result) for result in results])
    if any(result.evidence for result in results):
        say("stated evidence that is covered within so many words of returned text, and by any passage, in per cent:")
        show_table([format_evidence_row(result) for result in results])


def show_refusals(refusals: Mapping[str, Refusal]) -> None:
    """Print how often each retriever returns nothing for questions without evidence, in per cent."""
    if refusals:
        say(f"without gold documents; refused where {100 * FALSE_REFUSALS:.0f} % of the others are, in per cent:")
        rows = [
            {
                "retriever": name,
                "refused": format_percent(refusal.refused),
                "ROC AUC": format_percent(refusal.roc_auc),
                "criterion": refusal.criterion,
                "questions": str(len(refusal.flags)),
            }
            for name, refusal in refusals.items()
        ]
        show_table(rows)


def show_answers(answers: Mapping[str, Mapping[str, Average]]) -> None:
    """Print the scores of the answers for each retriever, in per cent; print nothing without answers."""
    names = list(dict.fromkeys(name for measures in answers.values() for name in measures))
    if names:
        say("answers; in per cent, with a star where too few were judged:")
        rows = [
            {"measure": name}
            | {
                retriever: averages[name].format() if name in averages else "-"
                for retriever, averages in answers.items()
            }
            for name in names
        ]
        show_table(rows)


def show_training(reports: Mapping[str, TrainingReport], directory: Path) -> None:
    """Print the recall of a trained linear scorer and the path of its weights."""
    for file, report in reports.items():
        say(f"{directory / file}, recall@{K} in per cent:")
        show_table(
            [
                {
                    "benchmark": name,
                    "trained on the others": f"{100 * report.unseen[name]:.1f}" if name in report.unseen else "-",
                    "with these weights": f"{100 * report.seen[name]:.1f}",
                    "among the candidates": f"{100 * report.candidates[name]:.1f}",
                }
                for name in report.seen
            ]
        )


def show_triple_training(
    report: TripleTrainingReport, results: Mapping[str, Sequence[RetrieverResult]], file: Path, k: int
) -> None:
    """Print the scores of a trained HyperRetriever on held-out questions, and the path of its weights."""
    reached = report.best_epoch
    say(f"{file}: epoch {report.best + 1} of {len(report.epochs)}, {format_count(report.train_triples, 'triple')}")
    say(f"of them {report.train_positives:,} right; on validation precision {100 * reached.precision:.1f}, ")
    say(f"recall {100 * reached.recall:.1f} per cent. Questions kept aside, k = {k}:")
    for name, rows in results.items():
        say(f"\n{name}")
        show_table(
            [
                {
                    "retriever": row.retriever,
                    "recall": format_percent(row.recall),
                    "all recall": format_percent(row.all_recall),
                    "MRR": format_percent(row.mrr),
                }
                for row in rows
            ]
        )
