"""HyperMemory's retriever: a beam search guided by a language model (HyperRAG, section 3.2).

The model scores the hyperedges of each frontier entity, then the entities of the best hyperedges. The best paths form
the beam, and the search ends when the model finds their evidence sufficient. Similarity to the question selects the
hyperedges in a prompt, breaks ties, and replaces replies that fail.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from polyad.model import Evidence, FloatArray, Query
from polyad.protocols.components import Embedder, LanguageModel
from polyad.protocols.snapshot import Snapshot
from polyad.replies.candidate_scores import Repair
from polyad.retrieval.evidence import (
    RankedHyperedge,
    RankedPassage,
    build_evidence,
    fill_with_similar,
    read_entity_names,
    sort_by_score,
)
from polyad.retrieval.hypermemory.judge import MemoryJudge
from polyad.retrieval.hypermemory.search import BeamSearch, BeamStep
from polyad.retrieval.hypermemory.settings import HyperMemorySettings
from polyad.retrieval.prompting import QuestionNameExtractor
from polyad.retrieval.question import QuestionLinker
from polyad.text.prompts import DEFAULT_PROMPTS, Prompts
from polyad.text.words import format_count

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HyperMemoryRetriever:
    """Finds passages by a beam search, in which a language model scores hyperedges and entities (HyperRAG).

    If the question names no entity, the search starts from the entities of the three nearest hyperedges, at most
    ``width`` of each. The search is deterministic given the model's replies.

    Attributes:
        embedder: The embedder of the index.
        linker: Links the names in the question to entities.
        language_model: The model that scores and decides.
        settings: Width, depth and limits of the search.
        prompts: Instructions for the model.
    """

    embedder: Embedder
    linker: QuestionLinker
    language_model: LanguageModel
    settings: HyperMemorySettings
    prompts: Prompts = DEFAULT_PROMPTS
    name: ClassVar[str] = "hypermemory"

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        """Return the best passages as evidence; if the search reaches too few, passages near the question follow.

        Passages that the search did not reach have a score of 0 or less.

        A passage's score is the sum over the paths through its hyperedges, not the best of them: the entities of a
        hyperedge share its score, so the best path would rank a hyperedge lower the more entities it leads to.

        ``notes`` of the evidence has ``llm_calls`` (prompts, including those for names, which count against
        ``max_calls``), ``llm_requests`` (with retries, without cached replies), the ``depth`` reached, ``sufficient``
        (1) if the model said so, and the kinds of :class:`polyad.replies.candidate_scores.Repair` that occurred.

        Raises:
            NoMoreRepliesError: The language model accepts no further prompts. Other failures fall back to similarity.
        """
        question = query.text
        link_calls = int(isinstance(self.linker.extractor, QuestionNameExtractor))  # prompts that the linker sends
        judge = MemoryJudge(self.language_model, question, self.settings, calls=link_calls, prompts=self.prompts)
        vector = self.embedder.encode([question], "query")[0]
        search = BeamSearch(snapshot, self.embedder, judge, vector)
        topics = list(self.linker.link(question, snapshot).entities)
        search.run(topics or search.find_start_entities())
        failure_count = judge.repairs[Repair.FAILED]
        if 2 * failure_count > judge.calls - link_calls:
            _logger.warning(
                "hypermemory: %s to %s failed, so similarity decided instead; the first error: %s",
                format_count(failure_count, "request"),
                self.language_model.name,
                judge.failure,
            )
        hits = _rank_passages(snapshot, search.steps, vector, query.k)
        result = self._build_evidence(snapshot, question, hits, search, set(topics))
        return replace(result, notes={**judge.build_notes(), **search.build_notes()})

    def _build_evidence(
        self, snapshot: Snapshot, question: str, hits: list[RankedPassage], search: BeamSearch, topics: set[int]
    ) -> Evidence:
        entities = dict.fromkeys(search.topics, 1.0)
        through: defaultdict[int, list[BeamStep]] = defaultdict(list)
        for step in search.steps:
            through[step.edge].append(step)
            if step.tail >= 0:
                entities[step.tail] = entities.get(step.tail, 0.0) + step.score
        scores = {edge: sum(step.score for step in steps) for edge, steps in through.items()}
        topic_names = read_entity_names(snapshot, sorted(topics))
        edges = [
            RankedHyperedge(
                edge,
                score,
                topic_names.get(through[edge][0].topic, question),
                f"depth {through[edge][0].depth}",
                through[edge][0].heads,
                tuple(step.tail for step in through[edge] if step.tail >= 0),
                max(through[edge], key=lambda step: step.score).parent,
            )
            for edge, score in sort_by_score(snapshot, "hyperedge", scores)
        ]
        return build_evidence(snapshot, question, self.name, hits, edges, sort_by_score(snapshot, "entity", entities))


def _rank_passages(snapshot: Snapshot, steps: Sequence[BeamStep], vector: FloatArray, k: int) -> list[RankedPassage]:
    """Return the ``k`` best passages as (row, score, reason): on search paths first, then near the question."""
    scores: defaultdict[int, float] = defaultdict(float)
    edges: defaultdict[int, set[int]] = defaultdict(set)
    passages = snapshot.graph.passages(np.array([step.edge for step in steps], dtype=np.int64)).tolist()
    for step, passage in zip(steps, passages, strict=True):
        scores[passage] += step.score
        edges[passage].add(step.edge)
    hits = [
        (passage, score, f"{format_count(len(edges[passage]), 'hyperedge')} on the paths of the search")
        for passage, score in sort_by_score(snapshot, "passage", scores)
    ]
    return fill_with_similar(snapshot, hits, vector, k)
