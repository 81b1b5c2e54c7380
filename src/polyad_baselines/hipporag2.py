"""HippoRAG 2 (Gutierrez et al., "From RAG to Memory", 2025): PageRank over phrases and passages from linked facts.

The graph has a node for each entity (the paper's phrase) and each passage. Edges join the entities of a fact (weight:
number of facts), an entity and each passage that mentions it (weight 1), and entities with similar names (weight: their
cosine). A question is linked to the facts with the highest cosines; a language model removes those that do not help
(recognition memory). Then

    r = damping * r P + (1 - damping) * reset

where an entity's reset weight is the mean score of its linked facts over its number of passages, and a passage's is its
cosine, both scaled to [0, 1], times ``passage_weight``. Without a linked fact passages are ranked by cosine.

The public code stores the two directions of fact edges and synonym edges as parallel edges, which doubles their weight
beside that of passage edges (``edge_weight``), and replaces the weight of a fact edge between synonyms
(``synonyms_replace_facts``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polyad.hypergraph.incidence import Hypergraph
from polyad.hypergraph.sparse import rank_in_group
from polyad.model import Evidence, Hyperedge, IntArray, Query
from polyad.protocols.components import Embedder, LanguageModel, Prompt
from polyad.protocols.snapshot import Snapshot
from polyad.replies.loose_json import find_list
from polyad.replies.schema import INTEGER, build_array_schema, build_object_schema
from polyad.retrieval.evidence import RankedHyperedge, build_evidence
from polyad.retrieval.prompting import BestEffortPrompter
from polyad.text.prompts import Prompts, escape_tags
from polyad_baselines import PROMPTS
from polyad_baselines.graph import (
    SnapshotCache,
    WeightedGraph,
    Weights,
    build_hypergraph,
    count_mentions,
    normalize_min_max,
    rank_similar,
    select_passages,
)
from polyad_baselines.settings import HippoRAG2Settings

_MAX_SYNONYMS = 100
"""Synonyms of one entity, as in the public code."""

_MIN_CHARACTERS = 3
"""ASCII letters and digits of a name that has synonyms, as in the public code; other scripts have no such limit."""

_BLOCK = 1024
"""Entities whose synonyms are searched at a time."""

_SCHEMA = build_object_schema(facts=build_array_schema(INTEGER))


@dataclass(frozen=True, slots=True, eq=False)
class PhraseGraph:
    """The graph of HippoRAG 2: entities first, then passages, as nodes.

    Attributes:
        graph: The weighted graph; passage ``row`` is the node ``entity_count + row``.
        entity_count: Number of entity rows.
        hypergraph: Members of facts.
        passage_counts: Number of passages that mention each entity; ``[entities]``.
    """

    graph: WeightedGraph
    entity_count: int
    hypergraph: Hypergraph
    passage_counts: IntArray


class HippoRAG2Retriever:
    """Ranks passages by personalised PageRank from the facts that fit a question.

    Args:
        embedder: The embedder of the index.
        settings: The parameters of the paper.
        language_model: Filters the linked facts; None for no filter.
        prompts: The prompts of this package.
    """

    name: ClassVar[str] = "hipporag2"

    def __init__(
        self,
        embedder: Embedder,
        settings: HippoRAG2Settings,
        language_model: LanguageModel | None = None,
        prompts: Prompts = PROMPTS,
    ) -> None:
        self._embedder, self._settings, self._prompts = embedder, settings, prompts
        self._prompter = language_model and BestEffortPrompter(language_model, "all linked facts count")
        self._graphs = SnapshotCache(self._build_graph)

    def prepare(self, snapshot: Snapshot) -> PhraseGraph:
        """Build the graph of a snapshot and cache it."""
        return self._graphs.get(snapshot)

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        """Return the passages with the highest PageRank as evidence, with the linked facts and entities."""
        question, vector = query.text, self._embedder.encode([query.text], "query")[0]
        passages, cosines = rank_similar(snapshot, vector)
        facts, scores = self._link_facts(question, snapshot, *rank_similar(snapshot, vector, "hyperedge"))
        graph = self.prepare(snapshot)
        phrases, weights = self._weigh_phrases(graph, facts, scores)
        if not len(phrases):
            ranked = select_passages(snapshot, passages, cosines, query.k, "similar to the question, no fact is linked")
            return build_evidence(snapshot, question, self.name, ranked)
        reset = np.zeros(graph.graph.node_count)
        reset[phrases] = weights
        reset[graph.entity_count + passages] = self._settings.passage_weight * normalize_min_max(cosines)
        ranks = graph.graph.rank_nodes(reset, self._settings.damping)[graph.entity_count + passages]
        return build_evidence(
            snapshot,
            question,
            self.name,
            select_passages(snapshot, passages, ranks, query.k, "personalised PageRank from linked facts"),
            [
                RankedHyperedge(fact, score, question, "linked fact")
                for fact, score in zip(facts.tolist(), scores.tolist(), strict=True)
            ],
            list(zip(phrases.tolist(), weights.tolist(), strict=True)),
        )

    def _link_facts(
        self, question: str, snapshot: Snapshot, facts: IntArray, cosines: Weights
    ) -> tuple[IntArray, Weights]:
        """Return the facts most similar to the question, and scores in [0, 1]; without those the model rejects."""
        scores = normalize_min_max(cosines)[: self._settings.top_k_facts]
        facts = facts[: self._settings.top_k_facts]
        if self._prompter and self._settings.recognition_memory and len(facts):
            texts = [fact.text for fact in snapshot.get(Hyperedge, facts.tolist())]
            lines = "\n".join(f"{number}. {escape_tags(text, ['facts'])}" for number, text in enumerate(texts, 1))
            prompt = Prompt(
                system=self._prompts.get_text("recognition_memory"),
                user=f"{question}\n\n<facts>\n{lines}\n</facts>",
                json_schema=_SCHEMA,
            )
            numbers = self._prompter.ask(prompt, _parse_numbers, '{"facts": [1, ...]}')
            if numbers is not None:
                is_relevant = np.isin(np.arange(1, len(facts) + 1), numbers)
                return facts[is_relevant], scores[is_relevant]
        return facts, scores

    def _weigh_phrases(self, graph: PhraseGraph, facts: IntArray, scores: Weights) -> tuple[IntArray, Weights]:
        """Return the entities of linked facts with the highest reset weights, best first, and the weights."""
        members, owners = graph.hypergraph.members.get_neighbours(facts)
        entities, places, counts = np.unique(members, return_inverse=True, return_counts=True)
        means = np.bincount(places, scores[owners], len(entities)) / np.maximum(1, counts)
        weights = means / np.maximum(1, graph.passage_counts[entities])
        best = np.lexsort((entities, -weights))[: self._settings.top_k_phrases or len(entities)]
        best = best[weights[best] > 0]
        return entities[best], weights[best]

    def _build_graph(self, snapshot: Snapshot) -> PhraseGraph:
        hypergraph = build_hypergraph(snapshot)
        entity_count = hypergraph.node_count
        entities, passages, _ = count_mentions(snapshot, hypergraph)
        synonyms, others, cosines = self._find_synonyms(snapshot, hypergraph)
        weight = self._settings.edge_weight
        shared = np.zeros(len(cosines))
        if self._settings.synonyms_replace_facts:
            pairs = zip(synonyms.tolist(), others.tolist(), strict=True)
            memberships = hypergraph.memberships
            shared = np.array([len(np.intersect1d(memberships[one], memberships[two])) for one, two in pairs])
        graph = WeightedGraph.from_edges(
            np.concatenate([entities, synonyms]),
            np.concatenate([entity_count + passages, others]),
            np.concatenate([np.ones(len(entities)), weight * (cosines - shared)]),
            entity_count + snapshot.row_count("passage"),
            hypergraph,
            weight,
        )
        return PhraseGraph(graph, entity_count, hypergraph, np.bincount(entities, minlength=entity_count))

    def _find_synonyms(self, snapshot: Snapshot, hypergraph: Hypergraph) -> tuple[IntArray, IntArray, Weights]:
        """Return pairs of entities with similar names, each pair once, and their cosines.

        All pairs are compared, block by block: a search for the neighbours of each entity takes six times as long.
        """
        threshold = self._settings.synonym_threshold
        rows = np.flatnonzero(hypergraph.memberships.degrees() > 0)
        is_long = np.array([_is_long(key) for key in snapshot.ids("entity", rows)], dtype=bool)
        vectors = snapshot.vectors("entity", rows if threshold <= 1 else rows[:0])
        pairs = [np.empty((3, 0))]
        for start in range(0, len(vectors), _BLOCK):
            cosines = vectors[start : start + _BLOCK] @ vectors[start:].T
            first, second = np.nonzero(np.triu(cosines >= threshold, 1))
            has_long = is_long[start + first] | is_long[start + second]
            first, second = first[has_long], second[has_long]
            pairs.append(np.stack([rows[start + first], rows[start + second], cosines[first, second]]))
        joined = np.concatenate(pairs, axis=1)
        ends, weights = joined[:2].astype(np.int64), joined[2]
        order = np.lexsort((np.tile(-weights, 2), ends.ravel()))
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order] = rank_in_group(ends.ravel()[order])
        is_near = (ranks < _MAX_SYNONYMS).reshape(2, -1).any(axis=0)
        return ends[0, is_near], ends[1, is_near], weights[is_near]


def _is_long(name: str) -> bool:
    return not name.isascii() or len(re.sub("[^A-Za-z0-9]", "", name)) >= _MIN_CHARACTERS


def _parse_numbers(reply: str) -> list[int] | None:
    """Parse the numbers of the relevant facts; None if the reply has no list of numbers."""
    numbers = find_list(reply, "facts")
    return None if numbers is None else [number for number in numbers if isinstance(number, int)]
