"""HyperSU's retriever: clue-guided bidirectional expansion (HyperSU, section 4.2).

The forward walk spreads activation from the entities of the question, the backward walk from the entities of the
nearest passages. Hyperedges reached by both walks count more. A passage's score is the mean of its best hyperedges.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Protocol

import numpy as np

from polyad.calibration import get_embedder_calibration
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
from polyad.text.prompts import DEFAULT_PROMPTS, Prompts
from polyad.text.words import format_count

_SCHEMA = build_object_schema(clues=build_array_schema(STRING))


class ClueAgent(Protocol):
    """A source of clues for a question: short texts whose similarity to hyperedges guides the search (HyperSU)."""

    def clues(self, question: LinkedQuestion) -> list[str]:
        """Return the clues of a question, at least one: short texts to compare with hyperedges."""


class QuestionClues:
    """A source of clues without a language model: the question, and the question without its entity names.

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
    """The result of two walks on the hypergraph, from the question and from its nearest passages, with scores.

    Attributes:
        forward: The walk from the entities of the question.
        backward: The walk from the entities of the passages nearest to the question.
        activation: The activation of the hyperedges.
        clues: The clues of the question.
        scores: Score by row number of a hyperedge; higher if both walks reached the hyperedge.
    """

    forward: Walk
    backward: Walk
    activation: ClueActivation
    clues: list[str]
    scores: dict[int, float]


@dataclass(frozen=True, slots=True)
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

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        """Return the best passages as evidence; if the walk reaches too few, passages near the question follow.

        Passages that the walk did not reach have a score of 0 or less.
        """
        linked_question = self.linker.link(query.text, snapshot)
        clues = self.clue_agent.clues(linked_question) if self.settings.max_clues else [query.text]
        texts = list(dict.fromkeys([query.text, *clues]))
        vectors = self.embedder.encode(texts, "query")
        clue_vectors = vectors[[texts.index(clue) for clue in clues]]
        expansion = self._expand(snapshot, linked_question, clues, clue_vectors, vectors[0])
        edge_scores: defaultdict[int, dict[int, float]] = defaultdict(dict)
        passages = snapshot.graph.passages(np.array(list(expansion.scores), dtype=np.int64)).tolist()
        for passage, (edge, score) in zip(passages, expansion.scores.items(), strict=True):
            edge_scores[passage][edge] = score
        hits = self._rank_passages(snapshot, edge_scores, vectors[0], query.k)
        return self._build_evidence(snapshot, query.text, expansion, edge_scores, hits)

    def _expand(
        self,
        snapshot: Snapshot,
        linked_question: LinkedQuestion,
        clues: list[str],
        clue_vectors: FloatArray,
        question: FloatArray,
    ) -> _Expansion:
        settings = self.settings
        threshold = settings.activation_threshold
        if threshold is None:
            threshold = get_embedder_calibration(self.embedder.name).activation_threshold
        activation = ClueActivation(snapshot, clue_vectors, threshold, settings.sharpening)
        walk = partial(
            expand_frontier,
            HubLimitedGraph(snapshot, clue_vectors, threshold, settings.hub_degree),
            activation=activation,
            sort_key=partial(rank_by_id, snapshot, "entity"),
            width=settings.width,
            decay=settings.decay,
        )
        forward = walk(dict.fromkeys(linked_question.entities, 1.0), depth=settings.forward_depth)
        ((anchors, _),) = snapshot.nearest(
            "passage", question[None], settings.anchors if settings.backward_depth else 0
        )
        starts = union([snapshot.graph.members(snapshot.graph.hyperedges(anchors)[0])[0]])
        backward = walk(dict.fromkeys(starts.tolist(), 1.0), depth=settings.backward_depth)
        scores = {
            edge: bridge * (settings.convergence_bonus if edge in backward.bridges else 1.0)
            for edge, bridge in forward.bridges.items()
        }
        return _Expansion(forward, backward, activation, clues, scores)

    def _rank_passages(
        self, snapshot: Snapshot, edge_scores: Mapping[int, Mapping[int, float]], vector: FloatArray, k: int
    ) -> list[RankedPassage]:
        """Return the ``k`` best passages as (row, score, reason), by similarity and their best hyperedges.

        Args:
            snapshot: The index.
            edge_scores: For each passage, a dictionary from its hyperedges to their scores.
            vector: Vector of the question.
            k: Number of passages.
        """
        weight = self.settings.dense_weight
        limit = self.settings.units_per_passage
        passages = np.array(list(edge_scores), dtype=np.int64)
        similarities = snapshot.cosines("passage", passages, vector).tolist()
        scores = []
        for passage_edges, similarity in zip(edge_scores.values(), similarities, strict=True):
            strongest = sorted(passage_edges.values(), reverse=True)[:limit]
            scores.append((1 - weight) * sum(strongest) / len(strongest) + weight * similarity)
        best = find_top_positions(np.array(scores), k, lambda places: rank_by_id(snapshot, "passage", passages[places]))
        hits = [
            (
                int(passages[place]),
                scores[place],
                format_count(len(edge_scores[passages[place]]), "activated hyperedge"),
            )
            for place in best.tolist()
        ]
        return fill_with_similar(snapshot, hits, vector, k)

    def _build_evidence(
        self,
        snapshot: Snapshot,
        question: str,
        expansion: _Expansion,
        edge_scores: Mapping[int, Mapping[int, float]],
        hits: list[RankedPassage],
    ) -> Evidence:
        forward, backward = expansion.forward, expansion.backward
        listed = [
            RankedHyperedge(
                edge,
                score,
                expansion.clues[expansion.activation.get_nearest_clue(edge)],
                "both" if edge in backward.bridges else "forward",
                (forward.entered_from[edge],),
            )
            for passage, _, _ in hits
            for edge, score in sort_by_score(snapshot, "hyperedge", edge_scores.get(passage, {}))[
                :HYPEREDGES_PER_PASSAGE
            ]
        ]
        nodes = Scores.from_pairs(np.array([*forward.nodes], dtype=np.int64), np.array([*forward.nodes.values()]))
        strongest = nodes.top_k(self.settings.width, partial(rank_by_id, snapshot, "entity")).tolist()
        return build_evidence(
            snapshot, question, self.name, hits, listed, [(node, forward.nodes[node]) for node in strongest]
        )
