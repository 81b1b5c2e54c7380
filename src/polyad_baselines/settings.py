"""Settings of the baselines: a section of ``polyad.toml`` each, with the name of the retriever."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from polyad.config import require


@dataclass(frozen=True, slots=True, kw_only=True)
class HippoRAG2Settings:
    """Settings of HippoRAG 2; defaults as in the public code.

    Attributes:
        top_k_facts: Facts linked to the question.
        top_k_phrases: Entities of linked facts from which walks start; 0 for all.
        synonym_threshold: Lowest cosine of the names of two entities that an edge joins; above 1 for no such edges.
        damping: Probability of another step of the walk, in [0, 1).
        passage_weight: Factor of the reset weights of passages.
        edge_weight: Factor of the weights of edges between entities: 1 as the paper states them, 2 as the public code
            stores them.
        synonyms_replace_facts: Whether the edge between similar names replaces those of facts between them, as in the
            public code; otherwise the weights are added.
        recognition_memory: Whether a configured language model filters the linked facts.
    """

    top_k_facts: int = 5
    top_k_phrases: int = 5
    synonym_threshold: float = 0.8
    damping: float = 0.5
    passage_weight: float = 0.05
    edge_weight: float = 2.0
    synonyms_replace_facts: bool = False
    recognition_memory: bool = True

    def __post_init__(self) -> None:
        require(self.top_k_facts > 0, "top_k_facts", self.top_k_facts, "1 or more")
        require(self.top_k_phrases >= 0, "top_k_phrases", self.top_k_phrases, "0 or more")
        require(self.synonym_threshold > 0, "synonym_threshold", self.synonym_threshold, "above 0")
        _require_walk(self.damping, self.passage_weight)
        require(self.edge_weight > 0, "edge_weight", self.edge_weight, "above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearRAGSettings:
    """Settings of LinearRAG; defaults as in the public code.

    Attributes:
        rounds: Rounds of activation, the first of which are the names in the question (public code: 3; 5 for musique).
        threshold: Lowest activation, in [0, 1] (public code: 0.4; 0.1 for musique).
        top_k_sentences: Sentences that an entity selects in a round (public code: 3; 4 for musique, 1 for others).
        passage_ratio: Factor of a passage's similarity beside its entities (public code: 2; 0.05 for hotpotqa, 2wiki).
        passage_weight: Factor of the reset weights of passages.
        damping: Probability of another step of the walk, in [0, 1).
    """

    rounds: int = 3
    threshold: float = 0.4
    top_k_sentences: int = 3
    passage_ratio: float = 2.0
    passage_weight: float = 0.05
    damping: float = 0.5

    def __post_init__(self) -> None:
        for name in ("rounds", "top_k_sentences"):
            require(getattr(self, name) > 0, name, getattr(self, name), "1 or more")
        require(0 <= self.threshold <= 1, "threshold", self.threshold, "0 to 1")
        require(self.passage_ratio >= 0, "passage_ratio", self.passage_ratio, "0 or more")
        _require_walk(self.damping, self.passage_weight)


@dataclass(frozen=True, slots=True, kw_only=True)
class LightRAGSettings:
    """Settings of LightRAG; defaults as in the public code at publication.

    Attributes:
        mode: Retrieve by low-level keywords (local), high-level keywords (global) or both (hybrid).
        top_k: Entities, and facts, that are retrieved.
        threshold: Lowest cosine of an entity or fact with the keywords, in [-1, 1].
        fact_order: Order of the passages of facts: by the degree of the fact, as in the public code, or by cosine.
    """

    mode: Literal["local", "global", "hybrid"] = "hybrid"
    top_k: int = 60
    threshold: float = 0.2
    fact_order: Literal["degree", "cosine"] = "degree"

    def __post_init__(self) -> None:
        require(self.mode in ("local", "global", "hybrid"), "mode", self.mode, "local, global or hybrid")
        require(self.top_k > 0, "top_k", self.top_k, "1 or more")
        require(-1 <= self.threshold <= 1, "threshold", self.threshold, "-1 to 1")
        require(self.fact_order in ("degree", "cosine"), "fact_order", self.fact_order, "degree or cosine")


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperRAGSettings(LightRAGSettings):
    """Settings of Hyper-RAG's retrieval, which are those of LightRAG; defaults as in the public code.

    Attributes:
        mode: Retrieve by low-level keywords (local), high-level keywords (global) or both (hybrid).
        top_k: Entities, and hyperedges, that are retrieved.
        threshold: Lowest cosine of an entity or hyperedge with the keywords, in [-1, 1].
        fact_order: Order of the passages of hyperedges: by the number of entities, as in the public code, or by cosine.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRAGSettings:
    """Settings of PathRAG; defaults as in the public code.

    Attributes:
        top_k_entities: Entities retrieved by the keywords, between which paths are searched.
        top_k_paths: Paths in the evidence.
        max_hops: Edges of a path; at most 3 for the flow over paths.
        decay: Share of the resource that a node passes on, in (0, 1].
        threshold: Lowest resource that flows on, in (0, 1]: over an edge of a path, or to each neighbour in the graph.
        flow: Where the resource flows: over the paths between two entities, as in the public code, or over the whole
            graph, as in the paper's formula (for which a threshold of 0.05 leaves some paths).
        sources: Whether the passages of entities and facts that fit the keywords follow those of paths.
        fill: Whether the passages most similar to the question come last.
    """

    top_k_entities: int = 40
    top_k_paths: int = 15
    max_hops: int = 3
    decay: float = 0.8
    threshold: float = 0.3
    flow: Literal["paths", "graph"] = "paths"
    sources: bool = True
    fill: bool = False

    def __post_init__(self) -> None:
        for name in ("top_k_entities", "top_k_paths", "max_hops"):
            require(getattr(self, name) > 0, name, getattr(self, name), "1 or more")
        require(0 < self.decay <= 1, "decay", self.decay, "above 0, at most 1")
        require(0 < self.threshold <= 1, "threshold", self.threshold, "above 0, at most 1")
        require(self.flow in ("paths", "graph"), "flow", self.flow, "paths or graph")
        is_short = self.flow == "graph" or self.max_hops <= 3
        require(is_short, "max_hops", self.max_hops, "at most 3 for the flow over paths")


@dataclass(frozen=True, slots=True, kw_only=True)
class RaptorSettings:
    """Settings of RAPTOR; defaults as in the public code.

    Attributes:
        layers: Layers of summaries.
        dimension: Components to which vectors are reduced before they are clustered.
        max_clusters: Components of a mixture.
        min_probability: Lowest probability, in (0, 1], at which a node belongs to a cluster.
        max_cluster_tokens: About the tokens of a cluster that the language model reads.
        top_k_nodes: Nodes that lead to passages; 0 for all (the paper: as many as 2,000 tokens hold, about 20).
        evidence: Evidence for answers: the passages below a summary, which can be cited and measured, or the summaries
            themselves beside the passages that are nodes, as in the paper.
    """

    layers: int = 5
    dimension: int = 10
    max_clusters: int = 50
    min_probability: float = 0.1
    max_cluster_tokens: int = 3500
    top_k_nodes: int = 20
    evidence: Literal["passages", "summaries"] = "passages"

    def __post_init__(self) -> None:
        for name in ("layers", "dimension", "max_cluster_tokens"):
            require(getattr(self, name) > 0, name, getattr(self, name), "1 or more")
        require(self.max_clusters > 1, "max_clusters", self.max_clusters, "2 or more")
        require(0 < self.min_probability <= 1, "min_probability", self.min_probability, "above 0, at most 1")
        require(self.top_k_nodes >= 0, "top_k_nodes", self.top_k_nodes, "0 or more")
        require(self.evidence in ("passages", "summaries"), "evidence", self.evidence, "passages or summaries")


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRAGSettings:
    """Settings of GraphRAG's global search.

    Attributes:
        level: Partition into communities, from 0 for the coarsest (the paper's C0).
        max_community_tokens: About the tokens of a community's facts that the language model reads (paper: 8,000).
        max_listed_facts: Facts in the evidence, best first.
        evidence: Evidence for answers: the facts of communities, or their reports, as in the paper; passages follow.
    """

    level: int = 0
    max_community_tokens: int = 8000
    max_listed_facts: int = 200
    evidence: Literal["facts", "reports"] = "facts"

    def __post_init__(self) -> None:
        require(self.level >= 0, "level", self.level, "0 or more")
        for name in ("max_community_tokens", "max_listed_facts"):
            require(getattr(self, name) > 0, name, getattr(self, name), "1 or more")
        require(self.evidence in ("facts", "reports"), "evidence", self.evidence, "facts or reports")


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRAGLocalSettings:
    """Settings of GraphRAG's local search; defaults as in the public code.

    Attributes:
        top_k_entities: Entities similar to the question.
        top_k_facts: Facts in the evidence for each entity.
    """

    top_k_entities: int = 10
    top_k_facts: int = 10

    def __post_init__(self) -> None:
        for name in ("top_k_entities", "top_k_facts"):
            require(getattr(self, name) > 0, name, getattr(self, name), "1 or more")


def _require_walk(damping: float, passage_weight: float) -> None:
    require(0 <= damping < 1, "damping", damping, "0 or more, below 1")
    require(passage_weight > 0, "passage_weight", passage_weight, "above 0")
