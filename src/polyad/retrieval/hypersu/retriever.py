"""HyperSU's retriever: clue-guided bidirectional expansion (HyperSU, section 4.2).

The forward walk spreads activation from the entities of the question, the backward walk from the entities of the
nearest passages. Hyperedges reached by both walks count more. A passage's score is the mean of its best hyperedges.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar, Protocol

import numpy as np

from polyad.hypergraph.frontier import Walk, expand_frontier
from polyad.hypergraph.sparse import Scores, find_top_positions, rank_by_id, union
from polyad.model import Evidence, FloatArray, Query
from polyad.protocols.components import Embedder, LanguageModel, Prompt
from polyad.protocols.snapshot import Snapshot
from polyad.replies.loose_json import find_strings
from polyad.replies.schema import STRING, build_array_schema, build_object_schema
from polyad.retrieval.evidence import (
    HYPEREDGES_PER_PASSAGE,
    RankedHyperedge,
    RankedPassage,
    build_evidence,
    fill_with_similar,
    sort_by_score,
)
from polyad.retrieval.hypersu.activation import ClueActivation, HubLimitedGraph
from polyad.retrieval.hypersu.settings import HyperSUSettings
from polyad.retrieval.prompting import BestEffortPrompter
from polyad.retrieval.question import LinkedQuestion, QuestionLinker
from polyad.retrieval.similarity_thresholds import SimilarityThresholds
from polyad.text.prompts import DEFAULT_PROMPTS, Prompts
from polyad.text.words import format_count

_SCHEMA = build_object_schema(clues=build_array_schema(STRING))


class ClueAgent(Protocol):
    """A source of clues for a question: short texts whose similarity to hyperedges guides the search (HyperSU)."""

    def clues(self, question: LinkedQuestion) -> list[str]:
        """Return the clues of a question, at least one: short texts to compare with hyperedges."""


class QuestionClues:
    """Makes clues, which guide the search, without a language model: the question with and without its names.

    The second clue asks for the unknown part: "Where did the director of film die?" is nearer to the biography of a
    director than the question that names the film.

    Args:
        use_remainder: Whether to add the second clue.
    """

    def __init__(self, *, use_remainder: bool = True) -> None:
        self._use_remainder = use_remainder

    def clues(self, question: LinkedQuestion) -> list[str]:
        """Return up to two clues: the question, and the question without its entity names."""
        return list(dict.fromkeys([question.text, *([question.remainder] if self._use_remainder else [])]))


class LanguageModelClues:
    """A source of clues that a language model writes: short texts about a question to compare with hyperedges."""

    def __init__(self, language_model: LanguageModel, max_clues: int, prompts: Prompts = DEFAULT_PROMPTS) -> None:
        self._prompter = BestEffortPrompter(language_model, "the question itself is the clue")
        self._max_clues = max_clues
        self._instructions = prompts.get_text("hypersu_clues", max_clues=max_clues)

    def clues(self, question: LinkedQuestion) -> list[str]:
        """Return at most ``max_clues`` clues that the language model writes; the question if no clue arrives."""
        prompt = Prompt(user=question.text, system=self._instructions, json_schema=_SCHEMA)
        clues = self._prompter.ask(prompt, lambda reply: find_strings(reply, "clues"), '{"clues": [...]}') or []
        return clues[: self._max_clues] or [question.text]


@dataclass(frozen=True, slots=True)
class _Expansion:
    """The result of two walks on the hypergraph, from the entities of a question and from its nearest passages.

    Attributes:
        question: The question with its entities.
        vector: Vector of the question, ``[dimension]``.
        clues: The clues of the question.
        activation: The activation of the hyperedges.
        forward: The walk from the entities of the question.
        backward: The walk from the entities of the passages nearest to the question.
        edge_scores: Scores of the hyperedges that the forward walk reached, by the row of their passage, then by the
            row of the hyperedge; higher if both walks reached the hyperedge.
    """

    question: LinkedQuestion
    vector: FloatArray
    clues: list[str]
    activation: ClueActivation
    forward: Walk
    backward: Walk
    edge_scores: Mapping[int, Mapping[int, float]]


@dataclass(frozen=True)
class HyperSURetriever:
    """Finds passages by walking from the question's entities along similar hyperedges (HyperSU).

    Attributes:
        embedder: The embedder of the index.
        linker: Links the names in the question to entities.
        clue_agent: Derives clues from the question; unused if the settings disable clues.
        settings: The parameters of the paper.
    """

    embedder: Embedder
    linker: QuestionLinker
    clue_agent: ClueAgent
    settings: HyperSUSettings
    name: ClassVar[str] = "hypersu"

    @cached_property
    def _thresholds(self) -> SimilarityThresholds:
        return SimilarityThresholds(self.embedder)

    def measure_thresholds(self, snapshot: Snapshot) -> None:
        """Measure the threshold of activation on the whole index, unless the settings or the embedder have one."""
        if self.settings.activation_threshold is None:
            self._thresholds.measure(snapshot)

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        """Return the best passages as evidence; if the walk reaches too few, passages near the question follow.

        Passages that the walk did not reach have a score of 0 or less.
        """
        expansion = self._expand(self.linker.link(query.text, snapshot), snapshot)
        hits = self._rank_passages(expansion, snapshot, query.k)
        return self._build_evidence(expansion, snapshot, hits)

    def _expand(self, question: LinkedQuestion, snapshot: Snapshot) -> _Expansion:
        settings, graph = self.settings, snapshot.graph
        clues = self.clue_agent.clues(question) if settings.max_clues else [question.text]
        texts = list(dict.fromkeys([question.text, *clues]))
        vectors = self.embedder.encode(texts, "query")
        clue_vectors = vectors[[texts.index(clue) for clue in clues]]
        threshold = settings.activation_threshold
        if threshold is None:
            threshold = self._thresholds.values.activation_threshold
        activation = ClueActivation(snapshot, clue_vectors, threshold, settings.sharpening)
        walk = partial(
            expand_frontier,
            HubLimitedGraph(snapshot, clue_vectors, threshold, settings.hub_degree),
            activation=activation,
            sort_key=partial(rank_by_id, snapshot, "entity"),
            width=settings.width,
            decay=settings.decay,
        )
        forward = walk(dict.fromkeys(question.entities, 1.0), depth=settings.forward_depth)
        ((anchors, _),) = snapshot.nearest("passage", vectors[:1], settings.anchors if settings.backward_depth else 0)
        starts = union([graph.members(graph.hyperedges(anchors)[0])[0]])
        backward = walk(dict.fromkeys(starts.tolist(), 1.0), depth=settings.backward_depth)
        edge_scores: defaultdict[int, dict[int, float]] = defaultdict(dict)
        passages = graph.passages(np.array(list(forward.bridges), dtype=np.int64)).tolist()
        for passage, (edge, score) in zip(passages, forward.bridges.items(), strict=True):
            edge_scores[passage][edge] = score * (settings.convergence_bonus if edge in backward.bridges else 1.0)
        return _Expansion(question, vectors[0], clues, activation, forward, backward, edge_scores)

    def _rank_passages(self, expansion: _Expansion, snapshot: Snapshot, k: int) -> list[RankedPassage]:
        """Return the ``k`` best passages as (row, score, reason), by similarity and their best hyperedges."""
        weight, edge_scores = self.settings.dense_weight, expansion.edge_scores
        passages = np.array(list(edge_scores), dtype=np.int64)
        similarities = snapshot.cosines("passage", passages, expansion.vector).tolist()
        scores = []
        for passage_edges, similarity in zip(edge_scores.values(), similarities, strict=True):
            strongest = sorted(passage_edges.values(), reverse=True)[: self.settings.units_per_passage]
            scores.append((1 - weight) * sum(strongest) / len(strongest) + weight * similarity)
        best = find_top_positions(np.array(scores), k, lambda places: rank_by_id(snapshot, "passage", passages[places]))
        hits = [
            (row, scores[place], format_count(len(edge_scores[row]), "activated hyperedge"))
            for place, row in zip(best.tolist(), passages[best].tolist(), strict=True)
        ]
        return fill_with_similar(snapshot, hits, expansion.vector, k)

    def _build_evidence(self, expansion: _Expansion, snapshot: Snapshot, hits: list[RankedPassage]) -> Evidence:
        forward, backward = expansion.forward, expansion.backward
        edges = [
            RankedHyperedge(
                edge,
                score,
                expansion.clues[expansion.activation.get_nearest_clue(edge)],
                "both" if edge in backward.bridges else "forward",
                (forward.entered_from[edge],),
            )
            for passage, _, _ in hits
            for edge, score in sort_by_score(snapshot, "hyperedge", expansion.edge_scores.get(passage, {}))[
                :HYPEREDGES_PER_PASSAGE
            ]
        ]
        nodes = Scores.from_pairs(np.array([*forward.nodes], dtype=np.int64), np.array([*forward.nodes.values()]))
        strongest = nodes.top_k(self.settings.width, partial(rank_by_id, snapshot, "entity")).tolist()
        entities = [(node, forward.nodes[node]) for node in strongest]
        return build_evidence(snapshot, expansion.question.text, self.name, hits, edges, entities)
