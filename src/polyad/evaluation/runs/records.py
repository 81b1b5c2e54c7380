"""What was found for one question: all that measures, tables and pictures are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from polyad.errors import ConfigurationError
from polyad.evaluation.datasets.beir import Question
from polyad.evaluation.json_lines import read_json_lines
from polyad.evaluation.measures.statement_recall import StatementCoverage
from polyad.model import Evidence, ScoredPassage, Timings
from polyad.text.counting import count_words


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """A passage that a retriever returned.

    Attributes:
        passage_id, document_id: Which it is.
        score: The retriever's.
        words: Length of its text; see :mod:`polyad.text.counting`.
        relevance: How likely it is to be evidence, in [0, 1]; None where the retriever does not say.
    """

    passage_id: str
    document_id: str
    score: float
    words: int
    relevance: float | None = None

    def to_json(self) -> dict[str, object]:
        """A passage of a line of ``per_query.jsonl``."""
        told = {} if self.relevance is None else {"relevance": self.relevance}
        return {
            "passage_id": self.passage_id,
            "document_id": self.document_id,
            "score": self.score,
            "words": self.words,
            **told,
        }


@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """A question put to a retriever, and what came back.

    Attributes:
        retriever: Its name.
        query: The question with what is judged to be its evidence.
        passages: Best first.
        hyperedges: Ids of those that led to the passages, best first.
        encode_ms, retrieve_ms: Milliseconds in the embedder and everywhere else.
        llm_tokens: Spent on language models.
        llm_tokens_uncached: What it would have been had no reply been recalled.
        covered: How much of the evidence that the data set states is covered; None where it states none.
    """

    retriever: str
    query: Question
    passages: tuple[RankedPassage, ...]
    hyperedges: tuple[str, ...] = ()
    encode_ms: float = 0.0
    retrieve_ms: float = 0.0
    llm_tokens: int = 0
    llm_tokens_uncached: int = 0
    covered: StatementCoverage | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Retriever and question: there is one record of each."""
        return self.retriever, self.query.id

    @property
    def milliseconds(self) -> float:
        """All that the search took."""
        return self.encode_ms + self.retrieve_ms

    @property
    def documents(self) -> list[str]:
        """The documents of the passages, each once, in the order of its best passage."""
        return list(dict.fromkeys(passage.document_id for passage in self.passages))

    def first(self, k: int) -> list[str]:
        """The ids of the best ``k`` passages."""
        return [passage.passage_id for passage in self.passages[:k]]

    def words_of_first(self, k: int) -> int:
        """Words of the passages that are read until ``k`` documents have been seen, or all there are."""
        seen: set[str] = set()
        words = 0
        for passage in self.passages:
            if passage.document_id not in seen and len(seen) == k:
                break
            seen.add(passage.document_id)
            words += passage.words
        return words

    def within_words(self, budget: int) -> list[str]:
        """The documents of the passages that fit, whole and in their order, into a budget of words.

        Reading stops at the first passage that does not fit: so retrievers of long and of short passages can be
        compared by what their reader has read.
        """
        kept: list[str] = []
        for passage in self.passages:
            budget -= passage.words
            if budget < 0:
                break
            kept.append(passage.document_id)
        return list(dict.fromkeys(kept))


def build_record(
    retriever: str,
    query: Question,
    evidence: Evidence,
    timings: Timings,
    llm_tokens: tuple[int, int],
    covered: StatementCoverage | None = None,
) -> QuestionRecord:
    """The record of a question from the evidence found; ``llm_tokens`` spent, and had nothing been recalled."""
    return QuestionRecord(
        retriever,
        query,
        tuple(_found(hit) for hit in evidence.passages),
        tuple(edge.hyperedge.id for edge in evidence.hyperedges),
        timings.encode,
        timings.retrieve,
        *llm_tokens,
        covered,
    )


_words_of = lru_cache(maxsize=1 << 14)(count_words)
"""The same passages come back for many questions, and from many retrievers."""


def _found(hit: ScoredPassage) -> RankedPassage:
    passage = hit.passage
    relevance = None if hit.relevance is None else float(hit.relevance)
    return RankedPassage(passage.id, passage.document_id, float(hit.score), _words_of(passage.text), relevance)


_TELLING = ("type", "evidence", "easy", "hard")
"""Of a question, what few data sets say."""


def record_to_json(record: QuestionRecord) -> dict[str, object]:
    """A line of ``per_query.jsonl``."""
    query = record.query
    return {
        "query_id": query.id,
        "retriever": record.retriever,
        "question": query.text,
        "gold": sorted(query.gold),
        "answers": list(query.answers),
        **{name: value for name in _TELLING for value in [getattr(query, name)] if value},
        "passages": [one.to_json() for one in record.passages],
        "hyperedges": list(record.hyperedges),
        "timings_ms": {"encode": record.encode_ms, "retrieve": record.retrieve_ms},
        "llm_tokens": record.llm_tokens,
        "llm_tokens_uncached": record.llm_tokens_uncached,
        **({"covered": record.covered.to_json()} if record.covered else {}),
    }


def record_from_json(line: Mapping[str, Any]) -> QuestionRecord:
    """What :func:`record_to_json` wrote.

    Raises:
        KeyError, TypeError, ValueError: it did not write that.
    """
    passages = tuple(
        RankedPassage(
            str(one["passage_id"]),
            str(one["document_id"]),
            float(one["score"]),
            int(one["words"]),
            float(one["relevance"]) if "relevance" in one else None,
        )
        for one in line["passages"]
    )
    query = Question(
        str(line["query_id"]),
        str(line["question"]),
        frozenset(line["gold"]),
        tuple(line["answers"]),
        str(line.get("type", "")),
        tuple(line.get("evidence", ())),
        easy=tuple(line.get("easy", ())),
        hard=tuple(line.get("hard", ())),
    )
    return QuestionRecord(
        str(line["retriever"]),
        query,
        passages,
        tuple(map(str, line["hyperedges"])),
        float(line["timings_ms"]["encode"]),
        float(line["timings_ms"]["retrieve"]),
        int(line["llm_tokens"]),
        int(line.get("llm_tokens_uncached", line["llm_tokens"])),  # of a run that knew no difference
        _covered(line["covered"]) if "covered" in line else None,
    )


def read_records(path: Path) -> Iterator[QuestionRecord]:
    """The records of a file.

    Raises:
        ConfigurationError: it cannot be read, or a line is something else: says file and line.
    """
    for number, line in enumerate(read_json_lines(path), 1):
        try:
            yield record_from_json(line)
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigurationError(
                f"{str(path)!r}, line {number}: expected the record of a question as polyad eval writes it"
            ) from error


def _covered(told: Mapping[str, Any]) -> StatementCoverage:
    at_words = {int(budget): int(count) for budget, count in told["at_words"].items()}
    return StatementCoverage(int(told["statements"]), int(told["coverable"]), at_words)
