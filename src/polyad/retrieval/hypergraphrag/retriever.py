"""HyperGraphRAG's retrieval (sections 4.2 and 4.3): entities and hyperedges by vector, expanded both ways, fused.

    R_V = the k_V entities with the highest sim(h_Vq, h_v) * score_v, of those above tau_V
    R_H = the k_H hyperedges with the highest sim(h_q, h_e) * score_e, of those above tau_H
    K_H = every hyperedge of an entity in R_V, and every hyperedge in R_H, each with all its entities
    K*  = K_H and the k_C passages most similar to the question, of those above tau_C

The published code multiplies by no score, applies no threshold and never queries its passage vectors; here the paper is
followed. The paper hands K* to the language model as it is. Passages are ranked here, because every retriever ranks
them: by the sum of their reciprocal ranks in up to four lists, one for each way into K*: passages of hyperedges in R_H,
passages that mention an entity in R_V, passages about an entity of a hyperedge in R_H, and all of them by similarity.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from polyad.calibration import PAPERS, RelevanceModel, calibration_for
from polyad.config import NamesLinked
from polyad.hypergraph.sparse import Scores, SortKey, find_top_positions, union
from polyad.model import Evidence, FloatArray, IntArray, Query, TraceStep
from polyad.protocols.components import Embedder, MentionExtractor
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.evidence import entity_names, evidence
from polyad.retrieval.hypergraphrag.settings import HyperGraphRAGSettings
from polyad.retrieval.question import LinkedQuestion, QuestionLinker
from polyad.retrieval.ranking import RankedPassage, filled

_RANK_CONSTANT = 5.0
"""Added to ranks before they are inverted: the lower, the more the first places of a list count. Set by hand."""

_LONGEST_LIST = 200
"""Places of a list that count."""


@dataclass(frozen=True, slots=True)
class _Knowledge:
    """K_H as arrays.

    Attributes:
        entities: R_V, rows, best first; ``entity_scores`` in (0, 100].
        retrieved: R_H, with scores in (0, 10].
        edges: All hyperedges of K_H, rows, best first; ``edge_scores`` in (0, 10].
        via: Of each of ``edges`` the entity in R_V that brought it in; -1 where none did.
    """

    entities: IntArray
    entity_scores: FloatArray
    retrieved: Scores
    edges: IntArray
    edge_scores: FloatArray
    via: IntArray


class HyperGraphRAGRetriever:
    """Retrieves entities and hyperedges by vector, expands both ways and adds passages.

    Args:
        embedder: The one the index was built with.
        extractor: Finds the names in the question.
        settings: See :class:`polyad.retrieval.hypergraphrag.settings.HyperGraphRAGSettings`.
        names: What of a question links to entities; see :class:`polyad.config.QuestionSettings`.
    """

    name = "hypergraphrag"

    def __init__(
        self,
        embedder: Embedder,
        extractor: MentionExtractor,
        settings: HyperGraphRAGSettings,
        names: NamesLinked = "all",
    ) -> None:
        self._names = names
        self._embedder = embedder
        self._extractor = extractor
        self._settings = settings
        self._thresholds = _thresholds(settings, embedder.name)

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        """The best passages, with the best of K_H: retrieved hyperedges and entities. Entities have to be described.

        Where K* has fewer passages than are wanted the most similar others follow, unless ``use_passages`` is off.
        """
        question = query.text
        linked = QuestionLinker(snapshot, self._extractor, names=self._names).link(question)
        names = _names(linked) or [question]
        each = names if self._settings.names == "each" and len(names) > 1 else []
        vectors = self._embedder.encode([question, ", ".join(names), *each], "query")
        knowledge = self._knowledge(snapshot, vectors[0], vectors[1:])
        choose = self._ranked if self._settings.passage_source == "ranked" else self._chunks
        hits = choose(snapshot, knowledge, vectors[0], query.k)
        return self._evidence(snapshot, question, ", ".join(names), knowledge, hits)

    def _knowledge(self, snapshot: Snapshot, question: FloatArray, names: FloatArray) -> _Knowledge:
        """K_H of a question, given its vector and those of its names, ``[names, dimension]``."""
        entities = self._entities(snapshot, names)
        retrieved = self._hyperedges(snapshot, question)
        edges, owners = snapshot.graph.memberships(entities.rows)
        similarity = snapshot.cosines("hyperedge", edges, question) * snapshot.graph.scores(edges)
        strength = (entities.values[owners] / 100 * np.maximum(similarity, 0)).astype(np.float32)
        # By hyperedge, then strength, then entity: the first of each hyperedge brought it in.
        order = np.lexsort((snapshot.rank_by_id("entity", entities.rows)[owners], -strength, edges))
        reached, first = np.unique(edges[order], return_index=True)
        expanded = Scores(reached, strength[order][first])
        rows = union([reached, retrieved.rows])
        scores = expanded.get(rows)
        if len(retrieved):
            places, is_retrieved = retrieved.find_positions(rows)
            scores[is_retrieved] = retrieved.values[places[is_retrieved]]
        via = np.full(len(rows), -1)
        via[np.searchsorted(rows, reached)] = entities.rows[owners[order][first]]
        ranked = find_top_positions(scores, len(rows), lambda places: snapshot.rank_by_id("hyperedge", rows[places]))
        best_entities = entities.top_k(len(entities), partial(snapshot.rank_by_id, "entity"))
        return _Knowledge(
            best_entities, entities.get(best_entities), retrieved, rows[ranked], scores[ranked], via[ranked]
        )

    def _entities(self, snapshot: Snapshot, names: FloatArray) -> Scores:
        """R_V: scores in (0, 100]."""
        settings = self._settings
        if not settings.use_entities:
            return Scores.empty()
        found = snapshot.nearest("entity", names, settings.entities, weighted=True)
        rows, values = (np.concatenate(column) for column in zip(*found, strict=True))
        best = Scores.from_max(rows, values).above(self._thresholds.entity_threshold)
        chosen = best.top_k(settings.entities, partial(snapshot.rank_by_id, "entity"))
        return Scores.from_pairs(chosen, best.get(chosen))

    def _hyperedges(self, snapshot: Snapshot, question: FloatArray) -> Scores:
        """R_H: scores in (0, 10]."""
        settings = self._settings
        if not settings.use_hyperedges:
            return Scores.empty()
        ((rows, values),) = snapshot.nearest("hyperedge", question[None], settings.hyperedges, weighted=True)
        return Scores.from_pairs(rows, values).above(self._thresholds.hyperedge_threshold)

    def _chunks(self, snapshot: Snapshot, _: _Knowledge, question: FloatArray, k: int) -> list[RankedPassage]:
        """K_chunk, the best first; none where no passage is retrieved by similarity."""
        if not self._settings.use_passages:
            return []
        ((near, cosines),) = snapshot.nearest("passage", question[None], min(k, self._settings.passages))
        return [
            (row, cosine, "similar to the question")
            for row, cosine in zip(near.tolist(), cosines.tolist(), strict=True)
            if cosine > self._thresholds.passage_threshold
        ]

    def _ranked(self, snapshot: Snapshot, knowledge: _Knowledge, question: FloatArray, k: int) -> list[RankedPassage]:
        """(row, score, reason) of the best passages of K*."""
        lists = {
            "similar hyperedge": _by_hyperedge(snapshot, knowledge),
            "similar entity": _by_entity(snapshot, knowledge),
            "about what similar hyperedges name": _by_member(snapshot, knowledge),
        }
        if self._settings.use_passages:
            ((near, cosines),) = snapshot.nearest("passage", question[None], self._settings.passages)
            known = union(
                [near[cosines > self._thresholds.passage_threshold], *(found.rows for found in lists.values())]
            )
            similarity = Scores(known, np.maximum(snapshot.cosines("passage", known, question), 0))
            lists["similar to the question"] = similarity.above(0)
        order = partial(snapshot.rank_by_id, "passage")
        shares = {reason: _reciprocal_ranks(scores, order) for reason, scores in lists.items()}
        rows = union(found.rows for found in shares.values())
        total = np.sum([found.get(rows) for found in shares.values()], axis=0)
        hits = [
            (row, score, "; ".join(reason for reason, share in shares.items() if row in share.rows))
            for row in Scores(rows, total).top_k(k, order).tolist()
            for score in [float(total[np.searchsorted(rows, row)])]
        ]
        return filled(snapshot, hits, question, k) if self._settings.use_passages else hits

    def _evidence(
        self, snapshot: Snapshot, question: str, names: str, knowledge: _Knowledge, hits: list[RankedPassage]
    ) -> Evidence:
        shown = min(len(knowledge.edges), self._settings.expanded or len(knowledge.edges))
        by_similarity = np.isin(knowledge.edges[:shown], knowledge.retrieved.rows).tolist()
        edges, scores = knowledge.edges[:shown].tolist(), knowledge.edge_scores[:shown].tolist()
        brought = knowledge.via[:shown].tolist()
        known = entity_names(snapshot, sorted({via for via in brought if via >= 0}))
        edge_ids = snapshot.ids("hyperedge", edges)
        passage_ids = snapshot.ids("passage", snapshot.graph.passages(knowledge.edges[:shown]))
        trace = [
            TraceStep(
                edge_id,
                passage_id,
                question if is_similar else names,
                _reached(via >= 0, is_similar),
                (known[via],) if via >= 0 else (),
                score,
            )
            for edge_id, passage_id, score, via, is_similar in zip(
                edge_ids, passage_ids, scores, brought, by_similarity, strict=True
            )
        ]
        return evidence(
            snapshot,
            question,
            self.name,
            hits,
            list(zip(edges, scores, strict=True)),
            list(zip(knowledge.entities.tolist(), knowledge.entity_scores.tolist(), strict=True)),
            trace,
        )


def _by_hyperedge(snapshot: Snapshot, knowledge: _Knowledge) -> Scores:
    """Of each passage its best hyperedge in R_H."""
    retrieved = knowledge.retrieved
    return Scores.from_max(snapshot.graph.passages(retrieved.rows), retrieved.values).above(0)


def _by_entity(snapshot: Snapshot, knowledge: _Knowledge) -> Scores:
    """Of each passage the best entity in R_V that it mentions, the less the more passages do."""
    graph = snapshot.graph
    passages, owners, _ = graph.mentions(knowledge.entities)
    shares = knowledge.entity_scores / np.sqrt(graph.mention_counts(knowledge.entities))
    return Scores.from_max(passages, shares[owners]).above(0)


def _by_member(snapshot: Snapshot, knowledge: _Knowledge) -> Scores:
    """Of each passage the best hyperedge in R_H, of another passage, that names what the passage is about."""
    graph, retrieved = snapshot.graph, knowledge.retrieved
    members, owners = graph.members(retrieved.rows)
    passages, pairs, _ = graph.passages_about(members)
    counts = np.bincount(pairs, minlength=len(members))
    shares = retrieved.values[owners] / np.sqrt(np.maximum(1, counts))
    away = passages != graph.passages(retrieved.rows)[owners][pairs]
    return Scores.from_max(passages[away], shares[pairs][away]).above(0)


def _thresholds(settings: HyperGraphRAGSettings, embedder: str) -> RelevanceModel:
    """tau_V, tau_H and tau_C: each as set, else the paper's or what was measured for the embedder."""
    given = {
        "entity_threshold": settings.entity_threshold,
        "hyperedge_threshold": settings.hyperedge_threshold,
        "passage_threshold": settings.passage_threshold,
    }
    defaults = PAPERS if settings.thresholds == "paper" else calibration_for(embedder)
    return replace(defaults, **{name: value for name, value in given.items() if value is not None})


def _names(question: LinkedQuestion) -> list[str]:
    """What the question names, in order, each once."""
    mentions = sorted([*question.entities.values(), *question.unlinked], key=lambda m: (m.start, -m.end))
    return list(dict.fromkeys(mention.name for mention in mentions))


def _reached(by_entity: bool, by_similarity: bool) -> str:
    if by_entity and by_similarity:
        return "both"
    return "entity" if by_entity else "similarity"


def _reciprocal_ranks(scores: Scores, order: SortKey) -> Scores:
    """1 / (constant + rank) of the best scores."""
    rows = scores.top_k(_LONGEST_LIST, order)
    return Scores.from_pairs(rows, 1 / (_RANK_CONSTANT + np.arange(len(rows), dtype=np.float32)))
