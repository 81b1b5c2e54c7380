"""Training examples of HyperRetriever's scorer: triples on the way to the evidence (HyperRAG, section 3.1.4).

The walk follows the same steps as the search, but only along positive triples. The other triples of the same heads are
negatives. Answers and gold passages of a benchmark determine the positives; see :func:`collect_triples`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from polyad.config import NamesLinked
from polyad.hypergraph.distance import Triples
from polyad.hypergraph.incidence import Hypergraph
from polyad.hypergraph.sparse import sort_unique
from polyad.model import BoolArray, FloatArray, IntArray
from polyad.protocols.components import Embedder, MentionExtractor, Progress, silent
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default.signals import SIGNAL_NAMES
from polyad.retrieval.hyperretriever.settings import HyperRetrieverSettings, HyperRetrieverTraining
from polyad.retrieval.hyperretriever.triple_scorer import Recipe
from polyad.retrieval.hyperretriever.triple_walk import QuestionPreparer, SearchSpace, TripleWalk
from polyad.retrieval.question import QuestionLinker
from polyad.text.keys import build_entity_key
from polyad_bench.datasets.beir import Question

POSITIVES = 32
"""Largest number of positive triples of one question at one hop."""

DEFAULT_TRAINING = HyperRetrieverTraining()
"""Default features and labels."""

NEGATIVES = 96
"""Largest number of negative triples of one question at one hop, because one gold passage has dozens of heads."""


@dataclass(frozen=True, slots=True, eq=False)
class TripleExamples:
    """Labelled training triples (head entity, hyperedge, tail entity) as row numbers of shared arrays of vectors.

    Attributes:
        recipe: Features that a scorer reads.
        question_vectors: Vectors of the questions, ``[questions, dimension]``.
        entity_vectors: Vectors of the entities, ``[entities, dimension]``.
        hyperedge_vectors: Vectors of the hyperedges, ``[hyperedges, dimension]``.
        questions: Row of each triple's question, ``[triples]``.
        heads: Row of each head, ``[triples]``.
        edges: Row of each hyperedge, ``[triples]``.
        tails: Row of each tail, ``[triples]``.
        extras: Features after the vectors in x, float32 ``[triples, recipe.extra_count]``.
        labels: Whether each triple is positive, ``[triples]``.
        texts: Texts of the questions.
    """

    recipe: Recipe
    question_vectors: FloatArray
    entity_vectors: FloatArray
    hyperedge_vectors: FloatArray
    questions: IntArray
    heads: IntArray
    edges: IntArray
    tails: IntArray
    extras: FloatArray
    labels: BoolArray
    texts: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.labels)

    def get_features(self, rows: IntArray) -> FloatArray:
        """Return the feature vectors of the triples at the row numbers ``rows``; float32 ``[rows, width]``.

        These are the features of HyperRAG, equation 9.
        """
        return np.hstack(
            [
                self.question_vectors[self.questions[rows]],
                self.entity_vectors[self.heads[rows]],
                self.hyperedge_vectors[self.edges[rows]],
                self.entity_vectors[self.tails[rows]],
                self.extras[rows],
            ]
        )


_VECTORS = {
    "questions": "question_vectors",
    "heads": "entity_vectors",
    "edges": "hyperedge_vectors",
    "tails": "entity_vectors",
}
"""The array of vectors to which the row numbers in each column of :class:`TripleExamples` refer."""


def merge_examples(sets: Sequence[TripleExamples]) -> TripleExamples:
    """Return one set of training triples that contains all sets; all sets have the same features."""
    if len(sets) == 1:
        return sets[0]
    merged: dict[str, Any] = {}
    for name in (each.name for each in fields(TripleExamples) if each.name not in ("recipe", "texts")):
        parts = [getattr(one, name) for one in sets]
        if vectors := _VECTORS.get(name):
            starts = np.cumsum([0, *(len(getattr(one, vectors)) for one in sets[:-1])])
            parts = [rows + start for rows, start in zip(parts, starts, strict=True)]
        merged[name] = np.concatenate(parts)
    return replace(sets[0], **merged, texts=tuple(text for one in sets for text in one.texts))


def collect_triples(
    snapshot: Snapshot,
    embedder: Embedder,
    extractor: MentionExtractor,
    queries: Sequence[Question],
    settings: HyperRetrieverSettings,
    progress: Progress = silent,
    training_settings: HyperRetrieverTraining = DEFAULT_TRAINING,
    names: NamesLinked = "all",
) -> TripleExamples:
    """Return labelled training triples (head, hyperedge, tail), collected by one walk in the hypergraph per question.

    The walk starts at the entities that the question names, its topics, and follows positive triples.
    With ``training_settings.positives`` being ``evidence``, a triple is positive if its hyperedge is in a gold passage.
    With ``answers``, as in the paper, a triple is positive on a shortest path from a topic entity to an accepted answer
    (an entity found by normalised name). If no answer is an entity other than a topic (yes, no, a choice of two named
    entities), the subjects of the gold passages are the targets, or all entities of these without a subject. Paths
    inside the hyperedges of gold passages take precedence, since many other paths are as short.

    Args:
        snapshot: The index, with entity vectors.
        embedder: Embedder of the index.
        extractor: Extracts the mentions of the questions.
        queries: Questions with gold documents.
        settings: Settings of the walk.
        progress: Called after each question.
        training_settings: Features of the scorer, definition of positives, and seed of the sample of a hop with more
            than :data:`POSITIVES` or :data:`NEGATIVES` triples.
        names: Which names of a question link to entities; see :class:`polyad.config.QuestionSettings`.
    """
    recipe = build_recipe(settings, embedder, training_settings)
    preparer = QuestionPreparer(snapshot, embedder, QuestionLinker(extractor, names), signals=recipe.signals)
    space = SearchSpace.from_snapshot(snapshot, binary=settings.binary)
    graph = space.build_hypergraph()
    passages = space.passages(np.arange(graph.edge_count))
    gold_passages = _find_gold_passages(snapshot, queries)
    max_distance = settings.depth or graph.node_count
    vectors = np.zeros((len(queries), embedder.dimension), dtype=np.float32)
    columns = [_create_empty_columns(recipe)]
    for number, (query, gold) in enumerate(zip(queries, gold_passages, strict=True)):
        question = preparer.prepare(query.text)
        vectors[number] = question.vector
        is_in_gold = np.isin(passages, gold)
        if training_settings.positives == "evidence":
            is_positive = _build_evidence_labeller(is_in_gold)
        else:
            targets = _find_target_entities(snapshot, query, gold, question.topics)
            is_positive = _build_answer_labeller(graph, question.topics, targets, is_in_gold, max_distance)
        walk = TripleWalk(space, recipe, question, settings.triples_per_hop)
        random = np.random.default_rng([training_settings.seed, _compute_seed(query.id)])
        for _ in range(max_distance):
            triples, extras = walk.enumerate_hop()
            labels = is_positive(triples)
            rows = _sample_rows(labels, random, training_settings)
            origins = space.to_snapshot_rows(triples.edges[rows])
            numbers = np.full(len(rows), number)
            columns.append((numbers, triples.heads[rows], origins, triples.tails[rows], extras[rows], labels[rows]))
            if not labels.any():
                break
            walk.follow(triples, np.flatnonzero(labels))
        progress(number + 1, len(queries), "questions walked")
    numbers, heads, edges, tails, extras, labels = (
        np.concatenate([hop[column] for hop in columns]) for column in range(6)
    )
    entities, hyperedges = (
        snapshot.vectors("entity", np.arange(snapshot.row_count("entity"))),
        snapshot.vectors("hyperedge", np.arange(snapshot.row_count("hyperedge"))),
    )
    texts = tuple(query.text for query in queries)
    return TripleExamples(recipe, vectors, entities, hyperedges, numbers, heads, edges, tails, extras, labels, texts)


def _create_empty_columns(recipe: Recipe) -> tuple[IntArray, IntArray, IntArray, IntArray, FloatArray, BoolArray]:
    none = np.empty(0, dtype=np.int64)
    return none, none, none, none, np.empty((0, recipe.extra_count), dtype=np.float32), np.empty(0, dtype=bool)


def build_recipe(
    settings: HyperRetrieverSettings, embedder: Embedder, training_settings: HyperRetrieverTraining = DEFAULT_TRAINING
) -> Recipe:
    """Return a description of the input features of HyperRetriever's triple scorer, which is saved with its weights."""
    return Recipe(
        embedder=embedder.name,
        dimension=embedder.dimension,
        rounds=training_settings.rounds,
        directions=training_settings.directions,
        starts=training_settings.distance_starts,
        closeness=training_settings.closeness,
        signals=SIGNAL_NAMES if settings.signals else (),
    )


def compute_distances(graph: Hypergraph, starts: IntArray, edge_mask: BoolArray, max_distance: int) -> IntArray:
    """Return the distance of each entity from the nearest start entity, counted in hyperedges; -1 if out of reach.

    Args:
        graph: The hypergraph.
        starts: Rows of the start entities.
        edge_mask: Whether each hyperedge may be used, ``[hyperedges]``.
        max_distance: Largest distance.
    """
    distances = np.full(graph.node_count, -1)
    distances[starts] = 0
    frontier = starts
    for distance in range(1, max_distance + 1):
        edges = sort_unique(graph.memberships.get_neighbours(frontier)[0])
        reached = sort_unique(graph.members.get_neighbours(edges[edge_mask[edges]])[0])
        frontier = reached[distances[reached] < 0]
        distances[frontier] = distance
        if not len(frontier):
            break
    return distances


LabelTriples = Callable[[Triples], BoolArray]
"""Returns whether each triple is positive."""


def _build_evidence_labeller(is_in_gold: BoolArray) -> LabelTriples:
    """Return a function that labels a triple as positive if its hyperedge is in a passage of a gold document."""
    return lambda triples: is_in_gold[triples.edges]


def _build_answer_labeller(
    graph: Hypergraph, topics: IntArray, targets: IntArray, is_in_gold: BoolArray, max_distance: int
) -> LabelTriples:
    """Return a function that labels a triple as positive if it is on a shortest path from a topic to a target.

    Args:
        graph: Hypergraph of the walk.
        topics: Rows of the topic entities, at which the walk starts.
        targets: Rows of the entities that the walk should reach.
        is_in_gold: Whether each hyperedge is in a passage of a gold document, ``[hyperedges]``. Paths inside these
            hyperedges take precedence.
        max_distance: Largest number of hyperedges of a path.
    """
    for edge_mask in (is_in_gold, np.ones_like(is_in_gold)):
        if labeller := _build_path_labeller(graph, topics, targets, edge_mask, max_distance):
            return labeller
    return _label_negative


def _label_negative(triples: Triples) -> BoolArray:
    return np.zeros(len(triples), dtype=bool)


def _build_path_labeller(
    graph: Hypergraph, topics: IntArray, targets: IntArray, edge_mask: BoolArray, max_distance: int
) -> LabelTriples | None:
    """Return a function that labels the triples on shortest paths from topic entities to target entities as positive.

    ``topics`` and ``targets`` are rows of entities. ``edge_mask`` states whether a path may use each hyperedge. Return
    None if no target is within ``max_distance`` hyperedges.
    """
    from_topics = compute_distances(graph, topics, edge_mask, max_distance)
    to_targets = [
        (from_topics[target], compute_distances(graph, np.array([target]), edge_mask, max_distance))
        for target in targets.tolist()
    ]
    paths = [(length, rest) for length, rest in to_targets if length > 0]

    def is_positive(triples: Triples) -> BoolArray:
        before, after = from_topics[triples.heads], from_topics[triples.tails]
        steps = edge_mask[triples.edges] & (before >= 0) & (after == before + 1)
        continues = np.zeros(len(triples), dtype=bool)
        for length, rest in paths:
            continues |= (rest[triples.tails] >= 0) & (after + rest[triples.tails] == length)
        positive: BoolArray = steps & continues
        return positive

    return is_positive if paths else None


def _find_target_entities(snapshot: Snapshot, query: Question, gold_passages: IntArray, topics: IntArray) -> IntArray:
    """Return the rows of the entities that a walk should reach: accepted answers, or else entities of gold passages.

    Entities of gold passages are their subjects (entities that the passages are about), else all entities. Topic
    entities, at which the walk starts, are left out.
    """
    keys = (build_entity_key(answer) for answer in query.answers)
    answers = set(snapshot.find_rows("entity", filter(None, keys)).values())
    entities = sort_unique(snapshot.graph.members(snapshot.graph.hyperedges(gold_passages)[0])[0])
    passages_about, owners, _ = snapshot.graph.mentions(entities, as_subject=True)
    subject = np.bincount(owners[np.isin(passages_about, gold_passages)], minlength=len(entities)) > 0
    for rows in (np.array(sorted(answers), dtype=np.int64), entities[subject], entities):
        others = rows[~np.isin(rows, topics)]
        if len(others):
            return others
    return topics[:0]


def _find_gold_passages(snapshot: Snapshot, queries: Sequence[Question]) -> list[IntArray]:
    """Return the snapshot rows of the passages of each question's gold documents."""
    rows: dict[str, list[int]] = {}
    passages = snapshot.graph.passages(np.arange(snapshot.row_count("hyperedge")))
    unique = sort_unique(passages)
    for row, id in zip(unique.tolist(), snapshot.ids("passage", unique), strict=True):
        rows.setdefault(id.rpartition("#")[0], []).append(row)
    return [
        np.array(sorted(row for document in query.gold for row in rows.get(document, ())), dtype=np.int64)
        for query in queries
    ]


def _sample_rows(
    is_positive: BoolArray, random: np.random.Generator, training_settings: HyperRetrieverTraining
) -> IntArray:
    """Return the row numbers, in ascending order, of a random sample of positive and of negative triples.

    The sample has at most :data:`POSITIVES` positive triples.
    """
    max_negatives = NEGATIVES if training_settings.negatives == "hop" else min(POSITIVES, int(is_positive.sum()))
    shuffled = random.permutation(len(is_positive))
    positives, negatives = shuffled[is_positive[shuffled]], shuffled[~is_positive[shuffled]]
    return np.sort(np.concatenate([positives[:POSITIVES], negatives[:max_negatives]]))


def _compute_seed(text: str) -> int:
    """Return a random seed in [0, 2 ** 64) that depends only on ``text``."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")
