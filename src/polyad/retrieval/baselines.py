"""The baselines: passages by vector, by words, and not at all."""

from __future__ import annotations

from polyad.hypergraph.cosines import cosines
from polyad.model import Evidence
from polyad.protocols import Embedder
from polyad.retrieval.ranking import best
from polyad.retrieval.snapshot import Snapshot


class DenseRetriever:
    """StandardRAG: the passages whose vectors are nearest to the question's, by exact search."""

    name = "standard"

    def __init__(self, snapshot: Snapshot, embedder: Embedder) -> None:
        self._snapshot = snapshot
        self._embedder = embedder

    def retrieve(self, question: str, k: int) -> Evidence:
        """The ``k`` nearest passages; the score is the cosine."""
        vector = self._embedder.encode([question], "query")[0]
        scores = cosines(self._snapshot.passage_vectors, vector)
        hits = [(row, float(scores[row]), "similar to the question") for row in best(scores, k).tolist()]
        return self._snapshot.evidence(question, self.name, hits)


class LexicalRetriever:
    """BM25 over the words of title and text."""

    name = "bm25"

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def retrieve(self, question: str, k: int) -> Evidence:
        """The ``k`` passages with the highest BM25 score; fewer when fewer share a word with the question."""
        rows, scores = self._snapshot.search_text(question, k)
        hits = [
            (row, score, "shares words with the question")
            for row, score in zip(rows.tolist(), scores.tolist(), strict=True)
        ]
        return self._snapshot.evidence(question, self.name, hits)


class NoRetriever:
    """NaiveGeneration: no evidence at all; what the language model knows by itself."""

    name = "none"

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def retrieve(self, question: str, k: int) -> Evidence:  # noqa: ARG002  # the protocol's parameter
        """Nothing."""
        return self._snapshot.evidence(question, self.name, [])
