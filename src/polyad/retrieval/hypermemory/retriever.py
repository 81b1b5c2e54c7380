"""HyperMemory's retrieval: a beam search guided by a language model (HyperRAG, section 3.2).

From each entity reached, the model chooses among its hyperedges, then among the entities of the chosen ones; the best
paths are kept, and the search ends when the model finds their evidence sufficient. What the model does not settle is
settled by similarity to the question: which hyperedges are shown to it, ties, and replies that fail.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from polyad.config import HyperMemorySettings
from polyad.hypergraph.cosines import cosines
from polyad.model import Evidence, FloatArray, TraceStep
from polyad.protocols import Embedder, LanguageModel
from polyad.retrieval.hypermemory.scores import Judge
from polyad.retrieval.hypermemory.search import BeamSearch, Step
from polyad.retrieval.question import LinkedQuestion
from polyad.retrieval.ranking import Hit, filled
from polyad.retrieval.snapshot import Snapshot
from polyad.text.counting import counted


class Linker(Protocol):
    """Finds the entities a question is about; such as :class:`polyad.retrieval.question.QuestionLinker`."""

    def link(self, question: str) -> LinkedQuestion:
        """The entities of the index that ``question`` names."""


class HyperMemoryRetriever:
    """Follows the hyperedges that a language model finds worth following.

    Where the question names no entity, the search starts from the entities of the three nearest hyperedges, at most
    ``width`` of each. Everything is deterministic given the model's replies.

    Args:
        snapshot: The index.
        embedder: The one the index was built with.
        linker: Finds the question's topic entities.
        language_model: Scores and decides.
        settings: See :class:`polyad.config.HyperMemorySettings`.
        linker_calls: How often the linker asks the language model for one question; 0 for one that goes by rules.
    """

    name = "hypermemory"

    def __init__(
        self,
        snapshot: Snapshot,
        embedder: Embedder,
        linker: Linker,
        language_model: LanguageModel,
        settings: HyperMemorySettings,
        *,
        linker_calls: int = 1,
    ) -> None:
        self._snapshot = snapshot
        self._embedder = embedder
        self._linker = linker
        self._language_model = language_model
        self._settings = settings
        self._linker_calls = linker_calls

    def retrieve(self, question: str, k: int) -> Evidence:
        """The ``k`` best passages; where the search reaches fewer, the nearest others follow with score 0 or less.

        A passage's score is the sum over the kept paths that lead through its hyperedges, not the best of them: the
        entities of a hyperedge share its score, so that the best path alone would rank a hyperedge lower the more
        entities lead on from it.

        ``notes`` of the evidence has ``llm_calls`` (prompts, the linker's included, which count against ``max_calls``),
        ``llm_requests`` (sent to score and to decide, retries included, recalled replies not), the ``depth`` reached,
        ``sufficient`` (1) if the model said so, and the kinds of
        :class:`polyad.retrieval.hypermemory.replies.Repair` that occurred.

        Raises:
            NoMoreRepliesError: the language model cannot be asked any more. Other failures fall back to similarity.
        """
        settings = self._settings
        judge = Judge(
            self._language_model, question, width=settings.width, max_calls=settings.max_calls, calls=self._linker_calls
        )
        vector = self._embedder.encode([question], "query")[0]
        search = BeamSearch(self._snapshot, self._embedder, judge, settings, vector)
        topics = list(self._linker.link(question).entities)
        search.run(topics or search.starts())
        hits = _ranked(self._snapshot, search.steps, cosines(self._snapshot.passage_vectors, vector), k)
        found = self._evidence(question, hits, search, set(topics))
        return replace(found, notes={**judge.notes(), **search.notes()})

    def _evidence(self, question: str, hits: list[Hit], search: BeamSearch, topics: set[int]) -> Evidence:
        snapshot = self._snapshot
        entities = dict.fromkeys(search.topics, 1.0)
        through: defaultdict[int, list[Step]] = defaultdict(list)
        for step in search.steps:
            through[step.edge].append(step)
            if step.tail >= 0:
                entities[step.tail] = entities.get(step.tail, 0.0) + step.score
        edges = _by_score({edge: sum(step.score for step in steps) for edge, steps in through.items()})
        names = snapshot.entity_names(sorted({row for step in search.steps for row in (step.topic, *step.heads)}))
        trace = [
            TraceStep(
                snapshot.hyperedge_id(edge),
                snapshot.passage_id(int(snapshot.passage_of[edge])),
                names[through[edge][0].topic] if through[edge][0].topic in topics else question,
                f"depth {through[edge][0].depth}",
                tuple(names[head] for head in through[edge][0].heads),
                score,
            )
            for edge, score in edges
        ]
        return snapshot.evidence(question, self.name, hits, edges, _by_score(entities), trace)


def _by_score(scores: dict[int, float]) -> list[tuple[int, float]]:
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))


def _ranked(snapshot: Snapshot, steps: Sequence[Step], dense: FloatArray, k: int) -> list[Hit]:
    """(row, score, reason) of the best passages: by the paths through them, then by similarity alone."""
    scores: defaultdict[int, float] = defaultdict(float)
    edges: defaultdict[int, set[int]] = defaultdict(set)
    for step in steps:
        passage = int(snapshot.passage_of[step.edge])
        scores[passage] += step.score
        edges[passage].add(step.edge)
    hits = [
        (passage, score, f"{counted(len(edges[passage]), 'hyperedge')} on the paths kept")
        for passage, score in _by_score(scores)
    ]
    return filled(hits, dense, k)
