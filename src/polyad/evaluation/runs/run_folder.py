"""A run is a folder: what was asked, with what, and what came back. All that is printed of it is made of these files.

``manifest.json`` says what the run is of: data set, settings, code, machine. ``per_query.jsonl`` holds a record of each
question and retriever, in the order in which they were asked, ``passages.jsonl`` the texts that came back, each once.
``cost.json`` is what indexing and asking took, ``construction.json`` the hypergraph in numbers. From these ``run.trec``
is made, the rankings for other tools, and ``results.json``, what ``polyad eval --json`` prints. A question is in the
folder or not, whatever dies when: the next run asks those that are not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

from polyad.errors import ConfigurationError
from polyad.evaluation.answers.averages import Average, average_answers
from polyad.evaluation.answers.files import read_answers
from polyad.evaluation.datasets.beir import Question, group_by_type
from polyad.evaluation.json_lines import JsonLinesFile, read_json_lines
from polyad.evaluation.runs.hypergraph_statistics import HypergraphStatistics
from polyad.evaluation.runs.records import QuestionRecord, read_records, record_to_json
from polyad.evaluation.runs.refusal import Refusal, measure_refusal, read_records_without_gold
from polyad.evaluation.runs.retriever_evaluation import PASSAGES_PER_DOCUMENT, RetrieverResult, summarise_records
from polyad.model import Evidence
from polyad.text.files import write_atomically

FORMAT = 1
"""Of the folder; another one is not read."""

MANIFEST, COST, PER_QUERY, PASSAGES_FILE = "manifest.json", "cost.json", "per_query.jsonl", "passages.jsonl"
CONSTRUCTION, TREC, RESULTS = "construction.json", "run.trec", "results.json"

Json = Mapping[str, Any]


class RunWriter:
    """Adds records to a run folder, each whole before the next question is asked.

    Args:
        folder: Made when it is not there.
        manifest: What the run is of; see :func:`polyad.evaluation.runs.manifest.build_manifest`. The
            retrievers of an earlier run of the same are kept.

    Raises:
        ConfigurationError: the folder holds the run of something else, something that is no run, or another process
            is writing into it.
    """

    def __init__(self, folder: Path, manifest: Json) -> None:
        self.folder = folder
        _make(folder)
        self._records = JsonLinesFile(folder / PER_QUERY)
        self._passages = JsonLinesFile(folder / PASSAGES_FILE)
        try:
            self._known: dict[tuple[str, str], QuestionRecord] = {}
            for record in read_records(folder / PER_QUERY):
                self._known.setdefault(record.key, record)
            if not self._known:  # it was stopped before the first question: there is nothing to be mixed with
                for name in (COST, CONSTRUCTION):
                    (folder / name).unlink(missing_ok=True)
            elif (folder / MANIFEST).exists():
                earlier = _read_json(folder / MANIFEST)
                _require_same(folder, earlier, manifest, asks_model=self._has_asked_model())
                names = list(dict.fromkeys([*earlier["retrievers"], *manifest["retrievers"]]))
                manifest = {**manifest, "retrievers": names}
            _write_json(folder / MANIFEST, manifest)
            self._texts = {line["passage_id"] for line in read_json_lines(folder / PASSAGES_FILE)}
        except BaseException:
            self.close()
            raise

    def _has_asked_model(self) -> bool:
        """Whether a language model had a part in anything that is there."""
        answers, judgements = read_answers(self.folder)
        index = _read_json(self.folder / COST)["index"] if (self.folder / COST).exists() else {}
        is_spent = any(record.llm_tokens_uncached for record in self._known.values())
        return bool(answers or judgements.attempts or is_spent or index.get("llm", {}).get("calls"))

    def keep(self, record: QuestionRecord, evidence: Evidence) -> None:
        """Write what was found for one question."""
        new = [hit.passage for hit in evidence.passages if hit.passage.id not in self._texts]
        if new:
            self._passages.add(
                {"passage_id": one.id, "document_id": one.document_id, "title": one.title, "text": one.text}
                for one in new
            )
            self._texts.update(one.id for one in new)
        self._records.add([record_to_json(record)])
        self._known[record.key] = record

    def keep_index(self, index: Json) -> None:
        """Write what indexing took, the first time; a run that is taken up again finds an index or makes it again."""
        if not (self.folder / COST).exists():
            _write_json(self.folder / COST, {"index": dict(index)})

    def keep_construction(self, make: Callable[[], HypergraphStatistics]) -> None:
        """Write what the index is like, the first time."""
        if not (self.folder / CONSTRUCTION).exists():
            _write_json(self.folder / CONSTRUCTION, make().to_json())

    def lacks(self, retriever: str, queries: Iterable[Question]) -> list[Question]:
        """Those of the questions that have not been put to a retriever."""
        return [query for query in queries if (retriever, query.id) not in self._known]

    def records(self, retriever: str) -> list[QuestionRecord]:
        """What is there of a retriever."""
        return [record for record in self._known.values() if record.retriever == retriever]

    def close(self) -> None:
        """Let others write."""
        self._records.close()
        self._passages.close()

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class Run:
    """A run folder, read.

    Attributes:
        folder: Where it lies.
        manifest: What it is of.
        index: What indexing took, and how large the index is.
        records: By retriever, in the order of the manifest and of the questions.
        construction: The hypergraph that was searched, in numbers; None in runs of earlier versions.
    """

    folder: Path
    manifest: Json
    index: Json
    records: Mapping[str, Sequence[QuestionRecord]]
    construction: HypergraphStatistics | None = None

    @property
    def k(self) -> int:
        """Depth of the ranking, in documents."""
        return int(self.manifest["k"])

    @property
    def seed(self) -> int:
        """Of intervals."""
        return int(self.manifest["seed"])

    @property
    def dataset(self) -> str:
        """Name of the data set."""
        return str(self.manifest["dataset"]["name"])

    @property
    def questions(self) -> int:
        """How many there are to be asked."""
        return len(self.manifest["dataset"]["questions"])

    def results(self) -> list[RetrieverResult]:
        """Measures and times of each retriever."""
        return [summarise_records(name, records, self.k) for name, records in self.records.items()]

    def answers(self) -> dict[str, dict[str, Average]]:
        """Measures of the answers of each retriever that has answered; empty for a run without answers."""
        answers, judgements = read_answers(self.folder)
        return {
            name: found
            for name, records in self.records.items()
            for found in [average_answers(name, [record.query for record in records], answers, judgements)]
            if found
        }

    def answers_by_type(self) -> dict[str, dict[str, dict[str, Average]]]:
        """The same by type of question and retriever; empty where there is only one type."""
        answers, judgements = read_answers(self.folder)
        by_type: dict[str, dict[str, dict[str, Average]]] = {}
        for name, records in self.records.items():
            for kind, own in group_by_type([record.query for record in records]).items():
                found = average_answers(name, own, answers, judgements)
                if found:
                    by_type.setdefault(kind, {})[name] = found
        return by_type

    def refusals(self) -> dict[str, Refusal]:
        """How well each retriever refuses that was asked without gold documents, too."""
        without = read_records_without_gold(self.folder)
        found = {name: measure_refusal(records, without) for name, records in self.records.items()}
        return {name: one for name, one in found.items() if one}

    def to_json(self) -> dict[str, object]:
        """The shape that ``polyad eval --json`` prints."""
        answers, refusals, by_type = self.answers(), self.refusals(), self.answers_by_type()
        return {
            "dataset": self.dataset,
            "k": self.k,
            "queries": self.questions,
            "index": dict(self.index),
            "results": [
                result.to_json(self.k)
                | (
                    {"answers": {name: average.to_json() for name, average in answers[result.retriever].items()}}
                    if result.retriever in answers
                    else {}
                )
                | (
                    {
                        "answers_by_type": {
                            kind: {name: average.to_json() for name, average in found[result.retriever].items()}
                            for kind, found in by_type.items()
                            if result.retriever in found
                        }
                    }
                    if by_type
                    else {}
                )
                | ({"refusal": refusals[result.retriever].to_json()} if result.retriever in refusals else {})
                for result in self.results()
            ],
        }

    def texts(self) -> dict[str, Json]:
        """Title, document and text of each passage that came back, by its id."""
        return {line["passage_id"]: line for line in read_json_lines(self.folder / PASSAGES_FILE)}


def load_run(folder: Path) -> Run:
    """Read a run folder.

    Raises:
        ConfigurationError: there is none, it is damaged, or a question is missing: says file and line.
    """
    manifest = _read_json(folder / MANIFEST)
    if manifest.get("format") != FORMAT:
        raise ConfigurationError(
            f"{str(folder / MANIFEST)!r} has format {manifest.get('format')!r}; expected {FORMAT}: measure again"
        )
    found: dict[tuple[str, str], QuestionRecord] = {}
    for record in read_records(folder / PER_QUERY):
        found.setdefault(record.key, record)
    wanted = manifest["dataset"]["questions"]
    for name in manifest["retrievers"]:
        missing = [id for id in wanted if (name, id) not in found]
        if missing:
            raise ConfigurationError(
                f"{str(folder)!r} lacks {len(missing):,} of {len(wanted):,} questions put to {name}, such as "
                f"{missing[0]!r}: it was stopped; the same polyad eval goes on from there"
            )
    cost = _read_json(folder / COST)
    records = {name: [found[name, id] for id in wanted] for name in manifest["retrievers"]}
    return Run(folder, manifest, cost["index"], records, _construction(folder))


def write_derived_files(run: Run) -> None:
    """Write what is made of the run's own files: the rankings for other tools, what asking took, and the results."""
    asking = {
        name: {
            "questions": len(records),
            "seconds": round(sum(record.milliseconds for record in records) / 1000, 3),
            "encode_seconds": round(sum(record.encode_ms for record in records) / 1000, 3),
            "llm_tokens": sum(record.llm_tokens for record in records),
        }
        for name, records in run.records.items()
    }
    _write_json(run.folder / COST, {"index": dict(run.index), "asking": asking})
    write_atomically(run.folder / TREC, "".join(format_trec_lines(run)))
    _write_json(run.folder / RESULTS, run.to_json())


def format_trec_lines(run: Run) -> Iterator[str]:
    """The rankings as trec_eval reads them: one line a document, the name of the retriever at its end.

    The scores count down from the depth, as such tools sort by score and break ties in ways of their own; the
    retriever's scores are in ``per_query.jsonl``. White space in ids is written as in addresses (``%20``).
    """
    for name, records in run.records.items():
        for record in records:
            for rank, id in enumerate(record.documents, 1):
                score = run.k * PASSAGES_PER_DOCUMENT - rank + 1
                yield f"{_word(record.query.id)} Q0 {_word(id)} {rank} {score} {_word(name)}\n"


def _word(id: str) -> str:
    """An id without white space."""
    return "".join(quote(letter) if letter.isspace() or letter == "%" else letter for letter in id) or "%"


# Files


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"cannot write into {str(folder)!r}: {error.strerror}") from error
    others = sorted(path.name for path in folder.iterdir())
    if others and PER_QUERY not in others:
        raise ConfigurationError(
            f"{str(folder)!r} holds {others[0]!r} and is no run; expected a folder that is new, empty or of this run"
        )


_DRIVEN = (
    "concurrency",
    "timeout",
    "max_retries",
    "retry_delay",
    "requests_per_minute",
    "tokens_per_minute",
    "prompt_price",
    "completion_price",
)
"""Settings of a language model that say how it is asked, and change nothing in what it replies."""


def _require_same(folder: Path, earlier: Json, now: Json, *, asks_model: bool) -> None:
    """Refuse to put together what was measured on different things.

    Where no language model has been asked yet, be it that none could be reached, it may be another one; and how hard it
    is driven may change at any time.
    """
    earlier, now = (_of_model(manifest, known=asks_model) for manifest in (earlier, now))
    for name in sorted((earlier.keys() | now.keys()) - {"retrievers"}):
        before, after = earlier.get(name), now.get(name)
        if before != after:
            what, before, after = _difference(name, before, after)
            raise ConfigurationError(
                f"{str(folder)!r} holds a run with {what} = {_short(before)}, not {_short(after)}; give another --out "
                "for this one"
            )


def _of_model(manifest: Json, *, known: bool) -> Json:
    """A manifest with as much of the language model as has to stay the same."""
    if not isinstance(manifest.get("settings"), Mapping):
        return manifest
    settings = dict(manifest["settings"])
    model = settings.pop("language_model", None)
    if known and model:
        settings["language_model"] = {key: value for key, value in model.items() if key not in _DRIVEN}
    return {**manifest, "settings": settings}


def _difference(name: str, before: object, after: object) -> tuple[str, object, object]:
    """The first part of two values that differs."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted(before.keys() | after.keys()):
            if before.get(key) != after.get(key):
                return _difference(f"{name}.{key}", before.get(key), after.get(key))
    return name, before, after


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _construction(folder: Path) -> HypergraphStatistics | None:
    path = folder / CONSTRUCTION
    if not path.exists():
        return None
    try:
        return HypergraphStatistics.from_json(_read_json(path))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigurationError(f"{str(path)!r}: expected what polyad eval writes there") from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"{str(path)!r} is missing; expected a folder that polyad eval --out has written"
        ) from error
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{str(path)!r} cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise ConfigurationError(f"{str(path)!r}: expected an object")
    return value


def _write_json(path: Path, value: Json) -> None:
    write_atomically(path, json.dumps(value, indent=1) + "\n")
