"""The baselines: passages by vector, by words, and not at all."""

from __future__ import annotations

from polyad.model import Evidence, FloatArray, IntArray, Query
from polyad.protocols.components import Embedder
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.evidence import RankedPassage, build_evidence


class DenseRetriever:
    """StandardRAG: the passages whose vectors are nearest to the question's."""

    name = "dense"

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        """The nearest passages; the score is the cosine."""
        ((rows, cosines),) = snapshot.nearest("passage", self._embedder.encode([query.text], "query"), query.k)
        return build_evidence(snapshot, query.text, self.name, _hits(rows, cosines, "similar to the question"))


class LexicalRetriever:
    """BM25 over the words of title and text."""

    name = "bm25"

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        """The passages with the highest BM25 score; fewer when fewer share a word with the question."""
        rows, scores = snapshot.terms.search(query.text, query.k)
        return build_evidence(snapshot, query.text, self.name, _hits(rows, scores, "shares words with the question"))


class NoRetriever:
    """NaiveGeneration: no evidence at all; what the language model knows by itself."""

    name = "none"

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        """Nothing."""
        return build_evidence(snapshot, query.text, self.name, [])


def _hits(rows: IntArray, scores: FloatArray, reason: str) -> list[RankedPassage]:
    return [(row, score, reason) for row, score in zip(rows.tolist(), scores.tolist(), strict=True)]
