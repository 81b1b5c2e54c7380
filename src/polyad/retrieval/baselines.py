"""Baseline retrievers: dense vectors, BM25 and no retrieval."""

from __future__ import annotations

from polyad.model import Evidence, FloatArray, IntArray, Query
from polyad.protocols.components import Embedder
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.evidence import RankedPassage, build_evidence


class DenseRetriever:
    """Finds the passages whose vectors are nearest to the question's vector (the papers' StandardRAG)."""

    name = "dense"

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        """Return the passages nearest to the question as evidence, scored by cosine similarity."""
        ((rows, cosines),) = snapshot.nearest("passage", self._embedder.encode([query.text], "query"), query.k)
        return build_evidence(snapshot, query.text, self.name, _hits(rows, cosines, "similar to the question"))


class LexicalRetriever:
    """Finds passages by the BM25 score of their title and text."""

    name = "bm25"

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        """Return the passages with the highest BM25 scores as evidence; each shares a term with the question."""
        rows, scores = snapshot.search_terms(query.text, query.k)
        return build_evidence(snapshot, query.text, self.name, _hits(rows, scores, "shares words with the question"))


class NoRetriever:
    """Returns no evidence, so that a language model answers from its training alone (NaiveGeneration)."""

    name = "none"

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        """Return empty evidence: no passages, hyperedges and entities."""
        return build_evidence(snapshot, query.text, self.name, [])


def _hits(rows: IntArray, scores: FloatArray, reason: str) -> list[RankedPassage]:
    return [(row, score, reason) for row, score in zip(rows.tolist(), scores.tolist(), strict=True)]
