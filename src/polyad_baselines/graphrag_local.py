"""GraphRAG's local search (Edge et al., public code): entities similar to a question, with their passages and facts.

The passages of each entity follow the order of the entities, then the number of the entity's relations that a passage
states. Facts between retrieved entities come before others, then those of the highest degree. The public code adds the
reports on the entities' communities, which ``graphrag`` retrieves.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from polyad.hypergraph.sparse import is_in, sort_unique
from polyad.model import Evidence, IntArray, Query
from polyad.protocols.components import Embedder
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.evidence import RankedHyperedge, build_evidence
from polyad_baselines.lightrag import LightRAGRetriever
from polyad_baselines.questions import KeywordExtractor
from polyad_baselines.settings import GraphRAGLocalSettings, LightRAGSettings


class GraphRAGLocalRetriever(LightRAGRetriever):
    """Lists the passages of the entities that are similar to a question.

    Args:
        embedder: The embedder of the index.
        keywords: Not used; part of the interface of retrievers over entity pairs.
        settings: The parameters of the public code.
    """

    name: ClassVar[str] = "graphrag-local"

    def __init__(self, embedder: Embedder, keywords: KeywordExtractor, settings: GraphRAGLocalSettings) -> None:
        super().__init__(embedder, keywords, LightRAGSettings(top_k=settings.top_k_entities, threshold=-1))
        self._facts_per_entity = settings.top_k_facts

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        """Return the passages of the entities most similar to the question as evidence, with their facts."""
        vector = self._embedder.encode([query.text], "query")[0]
        entities, cosines = self._find_nearest(snapshot, "entity", vector)
        rows = self._list_passages(snapshot, entities)[: query.k]
        facts = self._sort_by_degree(snapshot, self._list_facts(snapshot, entities))
        members, owners = self.prepare(snapshot).hypergraph.members.get_neighbours(facts)
        shared = np.bincount(owners[is_in(members, np.sort(entities))], minlength=len(facts))
        facts = facts[np.argsort(shared < 2, kind="stable")][: self._facts_per_entity * len(entities)]
        return build_evidence(
            snapshot,
            query.text,
            self.name,
            [(row, 1 / place, "mentions an entity similar to the question") for place, row in enumerate(rows, 1)],
            [RankedHyperedge(fact, 1 / place, query.text, "local") for place, fact in enumerate(facts.tolist(), 1)],
            list(zip(entities.tolist(), cosines.tolist(), strict=True)),
        )

    def _count_neighbours(self, snapshot: Snapshot, entity: int, passages: IntArray) -> IntArray:
        """Return how many relations of an entity each of its passages states; ``[passages]``."""
        hypergraph = self.prepare(snapshot).hypergraph
        edges = hypergraph.memberships[entity]
        members, owners = hypergraph.members.get_neighbours(edges)
        places = passages.searchsorted(snapshot.graph.passages(edges))[owners]
        pairs = sort_unique((places * hypergraph.node_count + members)[members != entity])
        return np.bincount(pairs // max(1, hypergraph.node_count), minlength=len(passages))
