"""Runs of systems that polyad does not implement, imported from files of rankings so that tables can show them.

Formats of a file: TREC (``query Q0 document rank score tag``, ordered by score as in trec_eval), or JSON: an object
from question ids to documents, or from systems to such objects. Documents are a list, best first, or an object from
document ids to scores.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from polyad.errors import ConfigurationError
from polyad.model import Evidence
from polyad.text.json_types import is_number
from polyad.text.words import count_words
from polyad_bench.datasets.beir import Dataset, Question, get_document_ids, get_document_texts
from polyad_bench.files import read_json, read_lines
from polyad_bench.runs.manifest import FORMAT, compute_dataset_digest
from polyad_bench.runs.records import QuestionRecord, RankedPassage
from polyad_bench.runs.run_folder import Run, RunWriter, load_run, write_derived_files

Ranking = Sequence[tuple[str, float]]
"""Documents with scores, best first."""

Rankings = dict[str, dict[str, Ranking]]
"""The ranking of each question, by system and question id."""


def read_rankings(path: Path, name: str = "") -> Rankings:
    """Return the rankings in a TREC or JSON file.

    Args:
        path: The file.
        name: Name of the system; empty for the names in the file, or the name of the file.

    Raises:
        ConfigurationError: The file has another format; the message names file and line.
    """
    lines = iter(read_lines(path))
    _, first = next(lines, (1, ""))
    rankings = _read_json(path) if first.lstrip().startswith("{") else _read_trec(path)
    if not any(rankings.values()):
        raise ConfigurationError(f"{str(path)!r} holds no ranking; expected lines `query Q0 document rank score tag`")
    if name and len(rankings) > 1:
        raise ConfigurationError(f"{str(path)!r} has the systems {', '.join(rankings)}; leave out --name")
    return {name or system or path.stem: by_question for system, by_question in rankings.items()}


def _read_trec(path: Path) -> Rankings:
    pairs: dict[str, dict[str, list[tuple[str, float]]]] = {}
    for number, line in read_lines(path):
        columns = line.split()
        try:
            question, _, document, _, score, system = columns
            entry = document, float(score)
        except ValueError as error:
            raise ConfigurationError(
                f"{str(path)!r}, line {number}: {line.strip()[:80]!r}; expected `query Q0 document rank score tag`"
            ) from error
        pairs.setdefault(system, {}).setdefault(question, []).append(entry)
    return {
        system: {question: sorted(ranking, key=lambda entry: -entry[1]) for question, ranking in by_question.items()}
        for system, by_question in pairs.items()
    }


def _read_json(path: Path) -> Rankings:
    value = read_json(path)
    is_nested = all(
        isinstance(item, dict) and all(isinstance(one, dict | list) for one in item.values()) for item in value.values()
    )
    systems: Mapping[str, Any] = value if is_nested else {"": value}
    return {
        system: {question: _parse_ranking(path, question, documents) for question, documents in by_question.items()}
        for system, by_question in systems.items()
    }


def _parse_ranking(path: Path, question: str, documents: object) -> Ranking:
    if isinstance(documents, list) and all(isinstance(document, str) for document in documents):
        return [(document, float(len(documents) - place)) for place, document in enumerate(documents)]
    if isinstance(documents, dict) and all(is_number(score) for score in documents.values()):
        return sorted(((id, float(score)) for id, score in documents.items()), key=lambda entry: -entry[1])
    raise ConfigurationError(
        f"{str(path)!r}: the documents of {question!r} are {str(documents)[:60]}; expected a list of ids, best first, "
        "or an object from ids to scores"
    )


def import_run(rankings: Rankings, dataset: Dataset, out: Path, k: int, source: str) -> Run:
    """Write rankings as a run folder, which reports and comparisons read, and return the run.

    A question without a ranking counts with no documents. Times and costs are unknown.

    Args:
        rankings: Rankings by system and question.
        dataset: The data set with its questions.
        out: Folder of the run.
        k: Depth of the ranking, in documents.
        source: Origin of the rankings: a paper, repository or command.

    Raises:
        ConfigurationError: No ranking is of a question of the data set, or a document is not in the corpus.
    """
    documents, questions = get_document_ids(dataset), {query.id for query in dataset.queries}
    resolved = {
        system: {
            _resolve(id, questions): [(_resolve(one, documents), score) for one, score in ranking]
            for id, ranking in by_question.items()
        }
        for system, by_question in rankings.items()
    }
    for system, by_question in resolved.items():
        if not questions & by_question.keys():
            ids = ", ".join(list(by_question)[:3])
            raise ConfigurationError(
                f"the ranking of {system!r} has no question of {dataset.name!r}, but {ids}; expected the ids of "
                "queries.jsonl"
            )
        unknown = sorted({id for ranking in by_question.values() for id, _ in ranking} - documents)
        if unknown:
            raise ConfigurationError(
                f"the ranking of {system!r} has {len(unknown):,} documents that are not in the corpus of "
                f"{dataset.name!r}, such as {unknown[0][:80]!r}; expected the ids of corpus.jsonl"
            )
    words = {id: count_words(text) for id, text in get_document_texts(dataset, documents).items()}
    manifest = {
        "format": FORMAT,
        "dataset": {
            "name": dataset.name,
            "digest": compute_dataset_digest(dataset),
            "questions": [query.id for query in dataset.queries],
        },
        "retrievers": list(rankings),
        "k": k,
        "seed": 0,
        "source": source,
    }
    with RunWriter(out, manifest) as writer:
        writer.write_index_cost({})
        ranked = (id for by_question in resolved.values() for ranking in by_question.values() for id, _ in ranking)
        writer.write_titles(dataset, ranked)
        for system, by_question in resolved.items():
            for query in dataset.queries:
                if (system, query.id) not in writer.by_key:
                    record = _build_record(system, query, by_question.get(query.id, ())[:k], words)
                    writer.add_record(record, Evidence(query.text, system))
    run = load_run(out)
    write_derived_files(run)
    return run


def _resolve(id: str, expected_ids: Container[str]) -> str:
    """Return an id without percent-encoding, as in polyad's ``run.trec``, unless it is expected as it is."""
    return id if id in expected_ids else unquote(id)


def _build_record(system: str, query: Question, ranking: Ranking, words: Mapping[str, int]) -> QuestionRecord:
    distinct = dict(reversed(ranking))  # the first of several ranks of a document counts
    ordered = sorted(distinct, key=lambda id: -distinct[id])
    return QuestionRecord(
        system, query, tuple(RankedPassage(f"{id}#0000", id, distinct[id], words[id]) for id in ordered)
    )
