"""Files of answers in a run folder: answers, judgements, and the hyperedges that judges assess."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from polyad.engine import Engine
from polyad.errors import ConfigurationError
from polyad_bench.datasets.beir import Question
from polyad_bench.files import RecordFile, index_records, read_records

ANSWERS, JUDGEMENTS = "answers.jsonl", "judgements.jsonl"

_CITATION = re.compile(r"\s*\[\d{1,3}(?:[\s,;\u2013-]+\d{1,3})*\]")

MAX_ATTEMPTS = 3
"""Requests for one judgement until its reply can be parsed."""

JudgementKey = tuple[str, str, str]
"""Retriever, question id and name of the judge."""


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """The answer to one question from one retriever's evidence: a line of ``answers.jsonl`` in a run folder.

    Attributes:
        retriever: Name of the retriever.
        query_id: Id of the question.
        text: The answer; empty if no evidence was found.
        cited: Ids of the cited passages.
        tokens: Language-model tokens of search and answer, including the tokens of cached replies.
        milliseconds: Time of search and answer, while other questions are answered in parallel.
        note: Why there is no answer, or why the answer was cut.
        names: Names in an answer that consists of entity names, best first; None for an answer in text.
        cost: Cost of these tokens in US dollars; 0 if no price is set.
        context: The hyperedges, entities and passages in the prompt of the answer, as one text; empty if the language
            model was not asked.
        reasoning: Text that the language model wrote before the answer, if the prompt of answers asks for reasoning.
    """

    retriever: str
    query_id: str
    text: str
    cited: tuple[str, ...] = ()
    tokens: int = 0
    milliseconds: float = 0.0
    note: str = ""
    names: tuple[str, ...] | None = None
    cost: float = 0.0
    context: str = ""
    reasoning: str = ""

    @property
    def measured_text(self) -> str:
        """The answer without citation marks, for comparison with reference answers."""
        return _CITATION.sub("", self.text) if self.cited else self.text

    @property
    def key(self) -> tuple[str, str]:
        """The key of an answer within an evaluation run: retriever and question id."""
        return self.retriever, self.query_id


@dataclass(frozen=True, slots=True)
class Judgement:
    """The score of an LLM judge for one answer, with the prompt and the reply.

    A cosine similarity of the embedder is a judgement without prompt and reply.

    Attributes:
        retriever: Retriever of the judged answer or evidence.
        query_id: Id of the question.
        judge: Name of the judge.
        prompt: The user prompt.
        reply: The reply; empty if there is none.
        value: Value in [0, 1], or a cosine; None if the reply could not be parsed.
        model: Language model that replied; empty if no model was asked.
    """

    retriever: str
    query_id: str
    judge: str
    prompt: str
    reply: str
    value: float | None
    model: str = ""

    @property
    def key(self) -> JudgementKey:
        """The key of a judgement within an evaluation run: retriever, question id and name of the judge."""
        return self.retriever, self.query_id, self.judge


@dataclass(slots=True)
class JudgementLog:
    """All scores by LLM judges in an evaluation run, and the number of requests for each score.

    Attributes:
        values: Scores of the replies that could be parsed.
        attempts: Number of requests.
        models: Language model of each judge.
        replies: Replies that could be parsed.
        store: Called with each judgement that is added, to write the judgement to a file.
    """

    values: dict[JudgementKey, float] = field(default_factory=dict)
    attempts: dict[JudgementKey, int] = field(default_factory=dict)
    models: dict[str, str] = field(default_factory=dict)
    replies: dict[JudgementKey, str] = field(default_factory=dict)
    store: Callable[[Judgement], object] = lambda _: None

    @classmethod
    def from_records(cls, judgements: Iterable[Judgement]) -> Self:
        """Return a log to which all ``judgements`` have been added, in order."""
        log = cls()
        for judgement in judgements:
            log.add(judgement)
        return log

    def add(self, judgement: Judgement) -> None:
        """Count one request for a judgement, and store its score unless the reply was invalid."""
        self.store(judgement)
        self.count_attempt(judgement.key)
        if judgement.value is not None:
            self.values[judgement.key] = judgement.value
            self.replies[judgement.key] = judgement.reply
        if judgement.model:
            self.models.setdefault(judgement.judge, judgement.model)

    def count_attempt(self, key: JudgementKey) -> None:
        """Count one more request for the judgement with this key."""
        self.attempts[key] = self.attempts.get(key, 0) + 1

    def is_pending(self, key: JudgementKey) -> bool:
        """Return whether the judgement with this key has no score yet and has been requested fewer than three times."""
        return key not in self.values and self.attempts.get(key, 0) < MAX_ATTEMPTS


@contextmanager
def open_judgements(path: Path) -> Iterator[JudgementLog]:
    """Yield a log of the judgements in a JSONL file; judgements that are added to the log are appended to the file.

    Raises:
        ConfigurationError: another process is writing, or a line is damaged.
    """
    with RecordFile(path, Judgement) as file:
        log = JudgementLog.from_records(file.records)
        log.store = file.append
        yield log


def read_answers(folder: Path) -> tuple[dict[tuple[str, str], AnswerRecord], JudgementLog]:
    """Return two results from a run folder: the answers, keyed by retriever and question id, and the log of all scores.

    Both are empty if the files are missing.

    Raises:
        ConfigurationError: a line is damaged; the message names file and line.
    """
    answers = index_records(read_records(folder / ANSWERS, AnswerRecord, missing_ok=True))
    return answers, JudgementLog.from_records(read_records(folder / JUDGEMENTS, Judgement, missing_ok=True))


HYPEREDGE_SETS = "hyperedge_sets.jsonl"

_DEPTH = 100
"""Number of search hits among which a passage of a gold document is looked for."""


@dataclass(frozen=True, slots=True)
class HyperedgeSet:
    """The hyperedges of one passage that is relevant to a question: input of the LLM judges of extraction quality.

    Attributes:
        query_id: Id of the question.
        passage: Title and text of the passage.
        hyperedges: Text and entities of each hyperedge.
    """

    query_id: str
    passage: str
    hyperedges: tuple[str, ...]

    @property
    def key(self) -> str:
        """The key of the hyperedge set: the question id."""
        return self.query_id

    def format(self) -> str:
        """Return the hyperedges as text: a bulleted list with one hyperedge per line."""
        return "\n".join(f"- {hyperedge}" for hyperedge in self.hyperedges)


def write_hyperedge_sets(engine: Engine, queries: Sequence[Question], folder: Path) -> None:
    """Append the hyperedges of one relevant passage per question to a file in the run folder, unless already stored.

    The passage is the best BM25 hit in a gold document, or the best BM25 hit if no gold document is among the first
    100.
    """
    by_passage: dict[str, list[str]] = {}
    for hyperedge in engine.catalogue.hyperedges():
        names = dict.fromkeys(incidence.name for incidence in engine.catalogue.hyperedge(hyperedge.id)[1])
        text = " ".join(hyperedge.text.split())
        by_passage.setdefault(hyperedge.passage_id, []).append(f"{text} ({'; '.join(names)})")
    with RecordFile(folder / HYPEREDGE_SETS, HyperedgeSet) as file:
        for query in queries:
            if query.id in file.by_key:
                continue
            hits = engine.search(query.text, _DEPTH, retriever="bm25", merge=False).passages
            gold = [hit for hit in hits if hit.passage.document_id in query.gold]
            for passage in [hit.passage for hit in gold or hits][:1]:
                text = f"{passage.title}\n{passage.text}".strip()
                file.append(HyperedgeSet(query.id, text, tuple(by_passage.get(passage.id, ()))))


def read_hyperedge_sets(folder: Path) -> dict[str, HyperedgeSet]:
    """Return by question id the hyperedges of one relevant passage per question, stored in a run folder.

    Raises:
        ConfigurationError: the folder has none, or a line is damaged.
    """
    if not (folder / HYPEREDGE_SETS).exists():
        raise ConfigurationError(
            f"{str(folder)!r} holds no hyperedges to judge; measure into another --out with --judge hyperedges"
        )
    return index_records(read_records(folder / HYPEREDGE_SETS, HyperedgeSet))
