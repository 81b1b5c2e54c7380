"""The baselines: passages by vector, by words, and not at all."""

from __future__ import annotations

from polyad.hypergraph.view import View
from polyad.model import Evidence, FloatArray, IntArray
from polyad.protocols import Embedder
from polyad.retrieval.evidence import evidence
from polyad.retrieval.ranking import Hit


class DenseRetriever:
    """StandardRAG: the passages whose vectors are nearest to the question's."""

    name = "standard"

    def __init__(self, view: View, embedder: Embedder) -> None:
        self._view = view
        self._embedder = embedder

    def retrieve(self, question: str, k: int) -> Evidence:
        """The ``k`` nearest passages; the score is the cosine."""
        ((rows, cosines),) = self._view.nearest("passage", self._embedder.encode([question], "query"), k)
        return evidence(self._view, question, self.name, _hits(rows, cosines, "similar to the question"))


class LexicalRetriever:
    """BM25 over the words of title and text."""

    name = "bm25"

    def __init__(self, view: View) -> None:
        self._view = view

    def retrieve(self, question: str, k: int) -> Evidence:
        """The ``k`` passages with the highest BM25 score; fewer when fewer share a word with the question."""
        rows, scores = self._view.words.best(question, k)
        return evidence(self._view, question, self.name, _hits(rows, scores, "shares words with the question"))


class NoRetriever:
    """NaiveGeneration: no evidence at all; what the language model knows by itself."""

    name = "none"

    def __init__(self, view: View) -> None:
        self._view = view

    def retrieve(self, question: str, k: int) -> Evidence:  # noqa: ARG002  # the protocol's parameter
        """Nothing."""
        return evidence(self._view, question, self.name, [])


def _hits(rows: IntArray, scores: FloatArray, reason: str) -> list[Hit]:
    return [(row, score, reason) for row, score in zip(rows.tolist(), scores.tolist(), strict=True)]
