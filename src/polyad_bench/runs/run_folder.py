"""Run folders: all files of one evaluation, from which every table and plot is computed.

``manifest.json`` describes data set, settings, code and machine. ``per_query.jsonl`` holds one record for each question
and retriever, ``passages.jsonl`` the returned texts. ``cost.json`` holds the cost of indexing and searching,
``hypergraph.json`` the statistics of the index, ``titles.json`` the titles of gold documents. ``run.trec`` (rankings
for other tools) and ``results.json`` (the output of ``polyad eval --json``) are derived from these files. A killed run
leaves only complete records; the next run asks the questions that are missing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from polyad.errors import ConfigurationError
from polyad.model import Evidence
from polyad.schemas.places import shorten
from polyad.text.files import write_atomically
from polyad.text.json_types import format_value
from polyad_bench.answers.averages import Average, average_answers
from polyad_bench.answers.records import read_answers
from polyad_bench.datasets.beir import Dataset, get_document_titles, group_by_type
from polyad_bench.files import RecordFile, find_line, index_records, make_folder, read_records, require_no_links
from polyad_bench.runs import retriever_evaluation
from polyad_bench.runs.manifest import read_index_cost, read_manifest, read_object, require_type
from polyad_bench.runs.records import HypergraphStatistics, PassageText, QuestionRecord

MANIFEST, COST, PER_QUERY, PASSAGES = "manifest.json", "cost.json", "per_query.jsonl", "passages.jsonl"
STATISTICS, TITLES, TREC, RESULTS = "hypergraph.json", "titles.json", "run.trec", "results.json"

Json = Mapping[str, Any]

_REQUEST_SETTINGS = frozenset(
    {
        "concurrency",
        "timeout",
        "max_retries",
        "retry_delay",
        "requests_per_minute",
        "tokens_per_minute",
        "prompt_price",
        "completion_price",
    }
)
"""Settings of a language model that do not change its replies, so that they may differ within a run."""


class RunWriter(ExitStack):
    """A context manager that appends the result of each question to the files of a run folder.

    Args:
        folder: The folder; created if it is missing.
        manifest: Description of the run; see :func:`polyad_bench.runs.manifest.build_manifest`. The retrievers of
            an earlier run in the folder are added to it.

    Raises:
        ConfigurationError: the folder holds another run or other files, or another process is writing into it.
    """

    def __init__(self, folder: Path, manifest: Json) -> None:
        super().__init__()
        self.folder = folder
        _make_run_folder(folder)
        with ExitStack() as files:
            self._records = files.enter_context(RecordFile(folder / PER_QUERY, QuestionRecord))
            self._passages = files.enter_context(RecordFile(folder / PASSAGES, PassageText))
            if not self._records.records:  # nothing was measured, so the earlier run may have had other settings
                for name in (COST, STATISTICS, TITLES):
                    (folder / name).unlink(missing_ok=True)
            elif (folder / MANIFEST).exists():
                earlier = read_manifest(folder / MANIFEST)
                _require_same_run(folder, earlier, manifest, has_model_replies=self._has_replies())
                names = list(dict.fromkeys([*earlier["retrievers"], *manifest["retrievers"]]))
                manifest = {**manifest, "retrievers": names}
            _write_json(folder / MANIFEST, manifest)
            self.push(files.pop_all())

    def _has_replies(self) -> bool:
        """Return whether any stored result of the run depends on replies of a language model."""
        answers, judgements = read_answers(self.folder)
        index = read_index_cost(self.folder / COST) if (self.folder / COST).exists() else {}
        has_spent = any(record.llm_tokens_uncached for record in self._records.by_key.values())
        return bool(answers or judgements.attempts or has_spent or index.get("llm", {}).get("calls"))

    def add_record(self, record: QuestionRecord, evidence: Evidence) -> None:
        """Append the record of one question, and the texts of its passages, to the run folder."""
        passages = [hit.passage for hit in evidence.passages if hit.passage.id not in self._passages.by_key]
        if passages:
            self._passages.append(*(PassageText(one.id, one.document_id, one.title, one.text) for one in passages))
        self._records.append(record)

    def write_index_cost(self, index: Json) -> None:
        """Write the cost of indexing (time, memory, tokens) to ``cost.json``, unless the file exists."""
        if not (self.folder / COST).exists():
            _write_json(self.folder / COST, {"index": dict(index)})

    def add_preparation_cost(self, retriever: str, usage: Mapping[str, object]) -> None:
        """Add to ``cost.json`` the usage of a language model for a retriever before the first question, if any."""
        index = read_index_cost(self.folder / COST)
        if usage.get("calls"):
            index["preparation"] = {retriever: dict(usage)} | index.get("preparation", {})
            _write_json(self.folder / COST, {"index": index})

    def write_statistics(self, compute_statistics: Callable[[], HypergraphStatistics]) -> None:
        """Write the result of ``compute_statistics`` to ``hypergraph.json``; do not call it if the file exists."""
        if not (self.folder / STATISTICS).exists():
            _write_json(self.folder / STATISTICS, format_value(compute_statistics()))

    def write_titles(self, dataset: Dataset, document_ids: Iterable[str] = ()) -> None:
        """Write the titles of the gold documents, and of ``document_ids``, to ``titles.json``, unless it exists."""
        if not (self.folder / TITLES).exists():
            ids = {id for query in dataset.queries for id in query.gold}.union(document_ids)
            _write_json(self.folder / TITLES, get_document_titles(dataset, ids))

    @property
    def by_key(self) -> Mapping[tuple[str, str], QuestionRecord]:
        """The stored records by retriever and question id."""
        return self._records.by_key


@dataclass(frozen=True, slots=True)
class Run:
    """An evaluation run loaded from its folder: settings, results and costs.

    Attributes:
        folder: The folder.
        manifest: Description of the run.
        index: Cost of indexing and size of the index.
        records: Records by retriever, in the order of the manifest and of the questions.
        statistics: Statistics of the hypergraph; None if they were not written.
    """

    folder: Path
    manifest: Json
    index: Json
    records: Mapping[str, Sequence[QuestionRecord]]
    statistics: HypergraphStatistics | None = None

    @property
    def k(self) -> int:
        """Depth of the ranking: number of documents per question."""
        return int(self.manifest["k"])

    @property
    def seed(self) -> int:
        """Random seed of confidence intervals and significance tests."""
        return int(self.manifest.get("seed", 0))

    @property
    def dataset(self) -> str:
        """Name of the data set."""
        return str(self.manifest["dataset"]["name"])

    @property
    def question_count(self) -> int:
        """Number of questions of the data set."""
        return len(self.manifest["dataset"]["questions"])

    @property
    def questions(self) -> tuple[tuple[str, frozenset[str]], ...]:
        """The pair (id, ids of the gold documents) of each question."""
        return tuple((record.query.id, record.query.gold) for record in next(iter(self.records.values())))

    def compute_results(self) -> list[retriever_evaluation.RetrieverResult]:
        """Return the mean measures and times of each retriever in a list."""
        return [retriever_evaluation.summarise_records(name, records, self.k) for name, records in self.records.items()]

    def average_answers(self) -> dict[str, dict[str, Average]]:
        """Return the mean of each answer measure, keyed by retriever and then by measure; empty without answers."""
        answers, judgements = read_answers(self.folder)
        averages = {
            name: average_answers(name, [record.query for record in records], answers, judgements)
            for name, records in self.records.items()
        }
        return {name: average for name, average in averages.items() if average}

    def average_answers_by_type(self) -> dict[str, dict[str, dict[str, Average]]]:
        """Return the mean of each answer measure in nested dictionaries: by question type, retriever and measure.

        The result is empty if all questions have the same type.
        """
        answers, judgements = read_answers(self.folder)
        by_type: dict[str, dict[str, dict[str, Average]]] = {}
        for name, records in self.records.items():
            for question_type, queries in group_by_type(record.query for record in records).items():
                if averages := average_answers(name, queries, answers, judgements):
                    by_type.setdefault(question_type, {})[name] = averages
        return by_type

    def measure_refusals(self) -> dict[str, retriever_evaluation.Refusal]:
        """Return for each retriever how often it finds nothing after the relevant documents were removed."""
        without_gold = retriever_evaluation.read_records_without_gold(self.folder)
        refusals = {
            name: retriever_evaluation.measure_refusal(records, without_gold) for name, records in self.records.items()
        }
        return {name: refusal for name, refusal in refusals.items() if refusal}

    def to_json(self) -> dict[str, object]:
        """Return the run's results as the JSON object that ``polyad eval --json`` prints."""
        answers, refusals, by_type = self.average_answers(), self.measure_refusals(), self.average_answers_by_type()
        results = []
        for result in self.compute_results():
            name, value = result.retriever, result.to_json(self.k)
            if name in answers:
                value["answers"] = _averages_to_json(answers[name])
            if by_type:
                value["answers_by_type"] = {
                    question_type: _averages_to_json(averages[name])
                    for question_type, averages in by_type.items()
                    if name in averages
                }
            if name in refusals:
                value["refusal"] = refusals[name].to_json()
            results.append(value)
        return {
            "dataset": self.dataset,
            "k": self.k,
            "queries": self.question_count,
            "index": dict(self.index),
            "results": results,
        }

    def read_titles(self) -> dict[str, str]:
        """Return the titles of gold documents and of retrieved documents by document id, as far as they are stored."""
        path = self.folder / TITLES
        titles = {
            passage.document_id: passage.title or shorten(passage.text, 40)
            for passage in reversed(self.read_passages().values())
        }
        stored = read_object(path) if path.exists() else {}
        return {id: str(title) for id, title in (stored | titles).items() if title}

    def read_passages(self) -> dict[str, PassageText]:
        """Return title and text of all retrieved passages, keyed by passage id."""
        return index_records(read_records(self.folder / PASSAGES, PassageText))


def _averages_to_json(averages: Mapping[str, Average]) -> dict[str, object]:
    return {name: average.to_json() for name, average in averages.items()}


def load_run(folder: Path) -> Run:
    """Return the evaluation run that is stored in ``folder``.

    Raises:
        ConfigurationError: the folder is missing or damaged, or a question has not been asked; the message names file
            and line.
    """
    require_no_links(folder.glob("*"))
    manifest = read_manifest(folder / MANIFEST)
    by_key = index_records(read_records(folder / PER_QUERY, QuestionRecord))
    question_ids = manifest["dataset"]["questions"]
    for name in manifest["retrievers"]:
        missing = [id for id in question_ids if (name, id) not in by_key]
        if missing:
            raise ConfigurationError(
                f"{str(folder)!r} lacks {len(missing):,} of {len(question_ids):,} questions put to {name}, such as "
                f"{missing[0][:80]!r}: it was stopped; the same polyad eval goes on from there"
            )
    records = {name: [by_key[name, id] for id in question_ids] for name in manifest["retrievers"]}
    _require_same_questions(folder / PER_QUERY, records)
    path = folder / STATISTICS
    statistics = require_type(path, read_object(path), HypergraphStatistics) if path.exists() else None
    return Run(folder, manifest, read_index_cost(folder / COST), records, statistics)


def _require_same_questions(path: Path, records: Mapping[str, Sequence[QuestionRecord]]) -> None:
    """Raise ConfigurationError if the records of a question, one per retriever, have different gold documents.

    The error is also raised if a record lacks the recall of evidence statements for a word budget, such as 1000 words.
    """
    for group in zip(*records.values(), strict=True):
        for record in group:
            if record.query.gold != group[0].query.gold or (
                record.coverage and not record.coverage.at_words.keys() >= set(retriever_evaluation.WORD_BUDGETS)
            ):
                raise ConfigurationError(
                    f"{str(path)!r}, line {find_line(path, record.query.id)}: the records of {record.query.id!r} have "
                    "different gold documents or budgets; measure again"
                )


def write_derived_files(run: Run) -> None:
    """Write the files computed from the records of a run: ``run.trec``, ``results.json`` and the search times."""
    search_costs = {
        name: {
            "questions": len(records),
            "seconds": round(sum(record.milliseconds for record in records) / 1000, 3),
            "encode_seconds": round(sum(record.encode_ms for record in records) / 1000, 3),
            "llm_tokens": sum(record.llm_tokens for record in records),
        }
        for name, records in run.records.items()
    }
    _write_json(run.folder / COST, {"index": dict(run.index), "search": search_costs})
    write_atomically(run.folder / TREC, "".join(format_trec_lines(run)))
    _write_json(run.folder / RESULTS, run.to_json())


def format_trec_lines(run: Run) -> Iterator[str]:
    """Yield the rankings of a run as lines in the format of trec_eval, one line for each retrieved document.

    Scores count down from the depth of the ranking, because such tools sort by score and break ties differently. White
    space in ids is percent-encoded (``%20``). ``per_query.jsonl`` has the scores of the retriever.
    """
    for name, records in run.records.items():
        for record in records:
            for rank, id in enumerate(record.documents, 1):
                score = run.k * retriever_evaluation.PASSAGES_PER_DOCUMENT - rank + 1
                yield f"{_encode_id(record.query.id)} Q0 {_encode_id(id)} {rank} {score} {_encode_id(name)}\n"


def _encode_id(id: str) -> str:
    return "".join(quote(letter) if letter.isspace() or letter == "%" else letter for letter in id) or "%"


def _make_run_folder(folder: Path) -> None:
    make_folder(folder)
    names = sorted(path.name for path in folder.iterdir())
    if names and PER_QUERY not in names:
        raise ConfigurationError(
            f"{str(folder)!r} holds {names[0]!r} and is no run; expected a folder that is new, empty or of this run"
        )


def _require_same_run(folder: Path, earlier: Json, current: Json, *, has_model_replies: bool) -> None:
    """Raise ConfigurationError if the settings of a stored run (``earlier``) and of this run (``current``) differ.

    The language model may differ as long as no result depends on a reply (``has_model_replies`` is false).
    """
    earlier, current = (_remove_changeable_settings(manifest, has_model_replies) for manifest in (earlier, current))
    for name in sorted((earlier.keys() | current.keys()) - {"retrievers"}):
        if earlier.get(name) != current.get(name):
            key, before, after = _find_difference(name, earlier.get(name), current.get(name))
            raise ConfigurationError(
                f"{str(folder)!r} holds a run with {key} = {_shorten(before)}, not {_shorten(after)}; give another "
                "--out for this one"
            )


def _remove_changeable_settings(manifest: Json, has_model_replies: bool) -> Json:
    """Return a run's manifest without the language-model settings that the user may change before continuing the run.

    These are all settings of the model if no model has replied (``has_model_replies`` is false), otherwise the settings
    that change no reply.
    """
    if not isinstance(manifest.get("settings"), Mapping):
        return manifest
    settings = dict(manifest["settings"])
    model = settings.pop("language_model", None)
    if has_model_replies and model:
        settings["language_model"] = {key: value for key, value in model.items() if key not in _REQUEST_SETTINGS}
    return {**manifest, "settings": settings}


def _find_difference(name: str, before: object, after: object) -> tuple[str, object, object]:
    """Return the first difference between two JSON values: its key, such as ``name.key``, the old and the new value."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted(before.keys() | after.keys()):
            if before.get(key) != after.get(key):
                return _find_difference(f"{name}.{key}", before.get(key), after.get(key))
    return name, before, after


def _shorten(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _write_json(path: Path, value: Json) -> None:
    write_atomically(path, json.dumps(value, indent=1) + "\n")
