"""LightRAG (Guo et al., 2024): entities and relations by keywords, and the passages that state them.

Local retrieval finds the entities most similar to the low-level keywords, and lists the passages of each: first those
that mention most of its neighbours. Global retrieval finds the facts most similar to the high-level keywords, and lists
their passages. Hybrid retrieval takes from both lists in turn.

A fact of more than two entities counts as all its pairs; its rank is the sum of the degrees of its entities, as that of
a pair is in the public code.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, zip_longest
from typing import ClassVar

import numpy as np

from polyad.hypergraph.sparse import is_in, rank_by_id, sort_unique
from polyad.model import Evidence, FloatArray, IntArray, Query
from polyad.protocols.snapshot import Kind, Snapshot
from polyad.retrieval.evidence import RankedHyperedge, build_evidence
from polyad_baselines.graph import get_neighbours
from polyad_baselines.pairs import PairGraph, PairRetriever
from polyad_baselines.settings import LightRAGSettings


class LightRAGRetriever(PairRetriever[LightRAGSettings]):
    """Lists the passages of entities that fit low-level keywords and of facts that fit high-level keywords."""

    name: ClassVar[str] = "lightrag"

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        """Return the passages of the retrieved entities and facts as evidence, at most ``query.k``."""
        keywords = self._keywords.extract(query.text, snapshot)
        low, high = self._embedder.encode([keywords.low_level or " ", keywords.high_level or " "], "query")
        is_local = self._settings.mode != "global" and bool(keywords.low_level)
        is_global = self._settings.mode != "local" and bool(keywords.high_level)
        graph = self.prepare(snapshot)
        entities, cosines = self._find_nearest(snapshot, "entity", low) if is_local else _NOTHING
        facts, similarities = self._find_nearest(snapshot, "hyperedge", high) if is_global else _NOTHING
        local_passages = _list_passages_of_entities(snapshot, graph, entities)
        global_passages = snapshot.graph.passages(facts).tolist()
        turns = chain.from_iterable(zip_longest(global_passages, local_passages))
        rows = list(dict.fromkeys(row for row in turns if row is not None))[: query.k]
        reasons = dict.fromkeys(local_passages, "mentions an entity of the low-level keywords")
        reasons |= dict.fromkeys(global_passages, "states a fact of the high-level keywords")
        connected = _rank_facts_of_entities(snapshot, graph, entities)[: self._settings.top_k]
        listed = dict.fromkeys(facts.tolist(), (keywords.high_level, "global"))
        listed |= {fact: (keywords.low_level, "local") for fact in connected if fact not in listed}
        scores = dict(zip(facts.tolist(), similarities.tolist(), strict=True))
        return build_evidence(
            snapshot,
            query.text,
            self.name,
            [(row, 1 / place, reasons[row]) for place, row in enumerate(rows, 1)],
            [RankedHyperedge(fact, scores.get(fact, 0.0), *how) for fact, how in listed.items()],
            list(zip(entities.tolist(), cosines.tolist(), strict=True)),
        )

    def _find_nearest(self, snapshot: Snapshot, kind: Kind, vector: FloatArray) -> tuple[IntArray, FloatArray]:
        ((rows, cosines),) = snapshot.nearest(kind, vector[None], self._settings.top_k)
        is_similar = cosines >= self._settings.threshold
        return rows[is_similar], cosines[is_similar]


_NOTHING: tuple[IntArray, FloatArray] = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)


def _list_passages_of_entities(snapshot: Snapshot, graph: PairGraph, entities: IntArray) -> list[int]:
    """Return the passages of entities: by the order of entities, then by the number of neighbours, then by id."""
    listed: dict[int, None] = {}
    for entity in entities.tolist():
        passages = sort_unique(snapshot.graph.passages(graph.hypergraph.memberships[entity]))
        edges, owners = snapshot.graph.hyperedges(passages)
        members, places = graph.hypergraph.members.get_neighbours(edges)
        is_neighbour = is_in(members, get_neighbours(graph.hypergraph, entity))
        pairs = sort_unique(owners[places[is_neighbour]] * graph.hypergraph.node_count + members[is_neighbour])
        counts = np.bincount(pairs // max(1, graph.hypergraph.node_count), minlength=len(passages))
        order = np.lexsort((rank_by_id(snapshot, "passage", passages), -counts))
        listed.update(dict.fromkeys(passages[order].tolist()))
    return list(listed)


def _rank_facts_of_entities(snapshot: Snapshot, graph: PairGraph, entities: Iterable[int]) -> list[int]:
    """Return the facts of entities, those with the highest degrees of their entities first, then by id."""
    facts = sort_unique(np.concatenate([_NOTHING[0], *(graph.hypergraph.memberships[row] for row in entities)]))
    members, owners = graph.hypergraph.members.get_neighbours(facts)
    ranks = np.bincount(owners, graph.degrees[members], len(facts))
    order = np.lexsort((rank_by_id(snapshot, "hyperedge", facts), -ranks))
    return [int(fact) for fact in facts[order]]
