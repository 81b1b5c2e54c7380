"""LightRAG (Guo et al., 2024): entities and relations by keywords, and the passages that state them.

Local retrieval finds the entities most similar to the low-level keywords, and lists the passages of each: first those
that mention most of its neighbours. Global retrieval finds the facts most similar to the high-level keywords, and lists
their passages, those of the highest degree first. Hybrid retrieval takes from both lists in turn.

A fact of more than two entities counts as all its pairs; its degree is the sum of the degrees of its entities, as that
of a pair is in the public code. Equal degrees are ordered by the score of the fact, the weight of the public code.

Hyper-RAG (Feng et al., 2026) retrieves in the same way from a hypergraph: the degree of a hyperedge is its number of
entities, and a passage of an entity counts the entities of the entity's hyperedges that it mentions, once for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import ClassVar

import numpy as np

from polyad.hypergraph.sparse import is_in, rank_by_id, sort_unique, union
from polyad.model import Evidence, FloatArray, Hyperedge, IntArray, Query
from polyad.protocols.snapshot import Kind, Snapshot
from polyad.retrieval.evidence import RankedHyperedge, build_evidence
from polyad_baselines.graph import Weights, get_neighbours
from polyad_baselines.pairs import PairRetriever
from polyad_baselines.questions import Keywords
from polyad_baselines.settings import LightRAGSettings


@dataclass(frozen=True, slots=True, eq=False)
class Sources:
    """The entities and facts of the index that are most similar to the keywords of a question.

    Attributes:
        entities: Entities that fit the low-level keywords, the most similar first.
        entity_cosines: Their cosines; ``[entities]``.
        facts: Facts that fit the high-level keywords, the most similar first.
        fact_cosines: Their cosines; ``[facts]``.
        reasons: Why each passage is listed, in the order of the list.
    """

    entities: IntArray
    entity_cosines: FloatArray
    facts: IntArray
    fact_cosines: FloatArray
    reasons: dict[int, str]


class LightRAGRetriever(PairRetriever[LightRAGSettings]):
    """Lists the passages of entities that fit low-level keywords and of facts that fit high-level keywords."""

    name: ClassVar[str] = "lightrag"

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        """Return the passages of the retrieved entities and facts as evidence, at most ``query.k``."""
        keywords = self._keywords.extract(query.text, snapshot)
        sources = self.find_sources(keywords, snapshot)
        connected = self._sort_by_degree(snapshot, self._list_facts(snapshot, sources.entities))[: self._settings.top_k]
        listed = dict.fromkeys(sources.facts.tolist(), (keywords.high_level, "global"))
        listed |= {fact: (keywords.low_level, "local") for fact in connected.tolist() if fact not in listed}
        scores = dict(zip(sources.facts.tolist(), sources.fact_cosines.tolist(), strict=True))
        return build_evidence(
            snapshot,
            query.text,
            self.name,
            [(row, 1 / place, reason) for place, (row, reason) in enumerate(sources.reasons.items(), 1)][: query.k],
            [RankedHyperedge(fact, scores.get(fact, 0.0), *how) for fact, how in listed.items()],
            list(zip(sources.entities.tolist(), sources.entity_cosines.tolist(), strict=True)),
        )

    def find_sources(self, keywords: Keywords, snapshot: Snapshot) -> Sources:
        """Return the entities and facts that fit the keywords, and their passages."""
        low, high = self._embedder.encode([keywords.low_level or " ", keywords.high_level or " "], "query")
        is_local = self._settings.mode != "global" and bool(keywords.low_level)
        is_global = self._settings.mode != "local" and bool(keywords.high_level)
        entities, entity_cosines = self._find_nearest(snapshot, "entity", low) if is_local else _NOTHING
        facts, fact_cosines = self._find_nearest(snapshot, "hyperedge", high) if is_global else _NOTHING
        local_passages = self._list_passages(snapshot, entities)
        ordered_facts = self._sort_by_degree(snapshot, facts) if self._settings.fact_order == "degree" else facts
        global_passages = snapshot.graph.passages(ordered_facts).tolist()
        reasons = dict.fromkeys(local_passages, "mentions an entity of the low-level keywords")
        reasons |= dict.fromkeys(global_passages, "states a fact of the high-level keywords")
        turns = chain.from_iterable(zip_longest(global_passages, local_passages))
        rows = dict.fromkeys(row for row in turns if row is not None)
        return Sources(entities, entity_cosines, facts, fact_cosines, {row: reasons[row] for row in rows})

    def _find_nearest(self, snapshot: Snapshot, kind: Kind, vector: FloatArray) -> tuple[IntArray, FloatArray]:
        ((rows, cosines),) = snapshot.nearest(kind, vector[None], self._settings.top_k)
        is_similar = cosines >= self._settings.threshold
        return rows[is_similar], cosines[is_similar]

    def _list_passages(self, snapshot: Snapshot, entities: IntArray) -> list[int]:
        """Return the passages of entities: by the order of entities, then by the number of neighbours, then by id."""
        memberships = self.prepare(snapshot).hypergraph.memberships
        listed: dict[int, None] = {}
        for entity in entities.tolist():
            passages = sort_unique(snapshot.graph.passages(memberships[entity]))
            counts = self._count_neighbours(snapshot, entity, passages)
            order = np.lexsort((rank_by_id(snapshot, "passage", passages), -counts))
            listed.update(dict.fromkeys(passages[order].tolist()))
        return list(listed)

    def _count_neighbours(self, snapshot: Snapshot, entity: int, passages: IntArray) -> IntArray:
        """Return how many neighbours of an entity each of its passages mentions; ``[passages]``."""
        mentions, owners = self._list_mentions(snapshot, passages)
        is_neighbour = is_in(mentions, get_neighbours(self.prepare(snapshot).hypergraph, entity))
        return np.bincount(owners[is_neighbour], minlength=len(passages))

    def _list_mentions(self, snapshot: Snapshot, passages: IntArray) -> tuple[IntArray, IntArray]:
        """Return the distinct entities of passages as parallel arrays: entity, and index of its passage."""
        hypergraph = self.prepare(snapshot).hypergraph
        edges, owners = snapshot.graph.hyperedges(passages)
        members, places = hypergraph.members.get_neighbours(edges)
        pairs = sort_unique(owners[places] * hypergraph.node_count + members)
        return pairs % max(1, hypergraph.node_count), pairs // max(1, hypergraph.node_count)

    def _list_facts(self, snapshot: Snapshot, entities: IntArray) -> IntArray:
        memberships = self.prepare(snapshot).hypergraph.memberships
        return union(memberships[row] for row in entities.tolist())

    def _sort_by_degree(self, snapshot: Snapshot, facts: IntArray) -> IntArray:
        """Return facts sorted by degree, highest first, then by score and id."""
        scores = np.array([fact.score for fact in snapshot.get(Hyperedge, facts.tolist())])
        order = np.lexsort((rank_by_id(snapshot, "hyperedge", facts), -scores, -self._compute_degrees(snapshot, facts)))
        return facts[order]

    def _compute_degrees(self, snapshot: Snapshot, facts: IntArray) -> Weights:
        """Return the degree of each fact: the sum of the degrees of its entities; ``[facts]``."""
        graph = self.prepare(snapshot)
        members, owners = graph.hypergraph.members.get_neighbours(facts)
        return np.bincount(owners, graph.degrees[members], len(facts)).astype(np.float64)


class HyperRAGRetriever(LightRAGRetriever):
    """Lists passages as LightRAG does, but counts the entities of whole hyperedges."""

    name: ClassVar[str] = "hyper-rag"

    def _count_neighbours(self, snapshot: Snapshot, entity: int, passages: IntArray) -> IntArray:
        hypergraph = self.prepare(snapshot).hypergraph
        members, _ = hypergraph.members.get_neighbours(hypergraph.memberships[entity])
        counts = np.bincount(members, minlength=hypergraph.node_count)
        mentions, owners = self._list_mentions(snapshot, passages)
        return np.bincount(owners, counts[mentions], len(passages)).astype(np.int64)

    def _compute_degrees(self, snapshot: Snapshot, facts: IntArray) -> Weights:
        return self.prepare(snapshot).hypergraph.members.degrees(facts).astype(np.float64)


_NOTHING: tuple[IntArray, FloatArray] = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
