"""GraphRAG's global search (Edge et al., 2024): reports on communities of entities, rated for each question.

Entities that facts join are divided into communities. A language model writes a report on the facts of each; the
replies are cached, so a community that has not changed costs nothing again. For a question the model rates the help of
each report from 0 to 100 (the map step). The evidence are the facts and passages of the communities with the highest
ratings, the most similar to the question first; the answer from them is the reduce step.

Communities are those of the Louvain method, where the paper uses Leiden; ``level`` selects the partition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np

from polyad.errors import LanguageModelError, MissingExtraError, UnreadableReplyError
from polyad.hypergraph.incidence import Hypergraph
from polyad.hypergraph.sparse import rank_by_id, sort_unique
from polyad.model import Evidence, Hyperedge, IntArray, Query
from polyad.protocols.components import Embedder, LanguageModel, Prompt, Reply
from polyad.protocols.snapshot import Snapshot
from polyad.replies.loose_json import find_first_json
from polyad.replies.schema import NUMBER, build_object_schema
from polyad.retrieval.evidence import RankedHyperedge, build_evidence
from polyad.text.prompts import Prompts, escape_tags
from polyad.text.words import shorten_at_word
from polyad_baselines import PROMPTS
from polyad_baselines.graph import SnapshotCache, build_hypergraph, count_neighbours
from polyad_baselines.settings import GraphRAGSettings
from polyad_baselines.summaries import list_texts, write_summaries

_SCHEMA = build_object_schema(score=NUMBER)
_SEED = 0
_SHOWN_CHARACTERS = 120
_FACT_NODE = "\0"
"""Start of the name of a node that stands for a fact; no key of an entity contains it."""

_MAX_PAIRED = 64
"""Entities of a fact that are joined in pairs."""


@dataclass(frozen=True, slots=True)
class Community:
    """A community of entities: its report, and the facts between its entities, the highest degree first."""

    report: str
    facts: IntArray


class GraphRAGRetriever:
    """Ranks passages by the rating of the community reports that their facts belong to.

    Args:
        embedder: The embedder of the index.
        language_model: Writes the reports, at the first search after a change of the index, and rates them.
        settings: The parameters of the paper.
        prompts: The prompts of this package.
    """

    name: ClassVar[str] = "graphrag"

    def __init__(
        self,
        embedder: Embedder,
        language_model: LanguageModel,
        settings: GraphRAGSettings,
        prompts: Prompts = PROMPTS,
    ) -> None:
        self._embedder, self._language_model, self._settings = embedder, language_model, settings
        self._prompts = prompts
        self._communities = SnapshotCache(self._build_communities)

    def prepare(self, snapshot: Snapshot) -> list[Community]:
        """Build the communities of a snapshot and cache them."""
        return self._communities.get(snapshot)

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        """Return the passages of the communities with the highest ratings above 0 as evidence."""
        vector = self._embedder.encode([query.text], "query")[0]
        communities = self.prepare(snapshot)
        ratings = self._rate(query.text, [community.report for community in communities])
        facts: list[RankedHyperedge] = []
        for place in _sort_ratings(ratings):
            rows = communities[place].facts
            cosines = snapshot.cosines("hyperedge", rows, vector)
            order = np.lexsort((rank_by_id(snapshot, "hyperedge", rows), -cosines))
            title = shorten_at_word(communities[place].report, _SHOWN_CHARACTERS)
            facts += [RankedHyperedge(row, ratings[place], title, "community") for row in rows[order].tolist()]
        passages: dict[int, RankedHyperedge] = {}
        for fact, passage in zip(
            facts, snapshot.graph.passages(np.array([fact.row for fact in facts], dtype=np.int64)).tolist(), strict=True
        ):
            passages.setdefault(passage, fact)
        ranked = [(row, fact.score, f"in the community {fact.matched!r}") for row, fact in passages.items()]
        listed = facts[: self._settings.max_listed_facts] if self._settings.evidence == "facts" else ()
        evidence = build_evidence(snapshot, query.text, self.name, ranked[: query.k], listed)
        if self._settings.evidence == "facts":
            return evidence
        reports = [
            (report, ratings[place], snapshot.ids("passage", snapshot.graph.passages(rows[:1]))[0])
            for place in _sort_ratings(ratings)
            for report, rows in [(communities[place].report, communities[place].facts)]
        ]
        return list_texts(evidence, reports)

    def _rate(self, question: str, reports: list[str]) -> Mapping[int, float]:
        """Return the ratings above 0 by position of the report; a report without a usable rating is left out."""
        ratings: dict[int, float] = {}

        def parse(position: int, outcome: Reply | LanguageModelError) -> None:
            if isinstance(outcome, Reply):
                value = find_first_json(outcome.text)
                score = value.get("score") if isinstance(value, dict) else None
                if isinstance(score, bool) or not isinstance(score, int | float):
                    raise UnreadableReplyError(outcome.text, '{"score": number}')
                if score > 0:
                    ratings[position] = min(100.0, float(score))

        instructions = self._prompts.get_text("report_rating")
        texts = [f"{question}\n\n<text>\n{escape_tags(report, ['text'])}\n</text>" for report in reports]
        prompts = [Prompt(system=instructions, user=text, json_schema=_SCHEMA) for text in texts]
        outcomes = self._language_model.complete(prompts, parse)
        errors = [outcome for outcome in outcomes if isinstance(outcome, LanguageModelError)]
        if errors and len(errors) == len(outcomes):
            raise errors[0]
        return ratings

    def _build_communities(self, snapshot: Snapshot) -> list[Community]:
        hypergraph = build_hypergraph(snapshot)
        keys = snapshot.ids("entity", np.arange(hypergraph.node_count))
        groups = find_communities(hypergraph, keys, self._settings.level)
        label = np.full(hypergraph.node_count, -1)
        for place, rows in enumerate(groups):
            label[rows] = place
        edges = np.flatnonzero(hypergraph.members.degrees() > 1)
        members, owners = hypergraph.members.get_neighbours(edges)
        # A fact belongs to each community of its entities, as in the paper an edge to those of its two ends.
        pairs = sort_unique(label[members] * hypergraph.edge_count + edges[owners])
        facts = [pairs[pairs // hypergraph.edge_count == place] % hypergraph.edge_count for place in range(len(groups))]
        degrees = count_neighbours(hypergraph)
        members, owners = hypergraph.members.get_neighbours(np.arange(hypergraph.edge_count))
        sums = np.bincount(owners, degrees[members], hypergraph.edge_count)
        # The model reads the facts of the highest degree, if a community has too many, as in the public code.
        facts = [rows[np.lexsort((rank_by_id(snapshot, "hyperedge", rows), -sums[rows]))] for rows in facts]
        texts = ["\n".join(fact.text for fact in snapshot.get(Hyperedge, rows.tolist())) for rows in facts]
        instructions = self._prompts.get_text("community_report")
        reports = write_summaries(self._language_model, instructions, texts, self._settings.max_community_tokens)
        return [Community(report, rows) for report, rows in zip(reports, facts, strict=True) if report]


def _sort_ratings(ratings: Mapping[int, float]) -> list[int]:
    return sorted(ratings, key=lambda place: (-ratings[place], place))


def find_communities(hypergraph: Hypergraph, keys: list[str], level: int) -> list[IntArray]:
    """Return the communities of entities as sorted rows, ordered by the keys of their entities.

    The weight of two entities is the number of facts with both. A fact of many entities is a node of its own in their
    place, joined with each, so that the graph grows with the size of the facts and not with its square.

    Args:
        hypergraph: Entities of facts; entities of no fact with another entity are in no community.
        keys: Keys of entities, by row; they decide the order in which nodes are visited.
        level: Partition, from 0 for the coarsest; the finest if there are fewer.
    """
    try:
        import networkx
    except ImportError as error:
        raise MissingExtraError("networkx", "baselines") from error
    degrees = hypergraph.members.degrees()
    weights: dict[tuple[str, str], int] = defaultdict(int)
    for fact in np.flatnonzero((degrees > 1) & (degrees <= _MAX_PAIRED)).tolist():
        for pair in combinations(sorted(keys[row] for row in hypergraph.members[fact].tolist()), 2):
            weights[pair] += 1
    for fact in np.flatnonzero(degrees > _MAX_PAIRED).tolist():
        weights |= {(keys[row], f"{_FACT_NODE}{fact}"): 1 for row in hypergraph.members[fact].tolist()}
    named_graph = networkx.Graph()
    named_graph.add_nodes_from(sorted({key for pair in weights for key in pair}))
    named_graph.add_weighted_edges_from(sorted((*pair, weight) for pair, weight in weights.items()))
    partitions = list(networkx.community.louvain_partitions(named_graph, seed=_SEED)) if weights else [[]]
    row_by_key = {key: row for row, key in enumerate(keys)}
    rows = [
        [row_by_key[key] for key in group if key in row_by_key]
        for group in partitions[max(0, len(partitions) - 1 - level)]
    ]
    return [
        np.array(sorted(group), dtype=np.int64)
        for group in sorted(filter(None, rows), key=lambda group: sorted(keys[row] for row in group))
    ]
