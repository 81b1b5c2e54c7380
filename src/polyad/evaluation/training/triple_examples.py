"""What HyperRetriever's scorer is trained on: triples met on the way to the evidence (HyperRAG, section 3.1.4).

The walk is that of the search, but only right triples are followed: those right are the positives, the others of the
same heads the negatives. Which are right follows from what a benchmark knows, answers and gold passages; see
:func:`collect_triples`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from polyad.config import NamesLinked
from polyad.evaluation.datasets.beir import Question
from polyad.hypergraph.distance import Triples
from polyad.hypergraph.incidence import Hypergraph, sort_unique
from polyad.model import BoolArray, FloatArray, IntArray
from polyad.protocols.components import Embedder, MentionExtractor, Progress, silent
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default.signals import list_signal_names
from polyad.retrieval.hyperretriever.settings import HyperRetrieverSettings, HyperRetrieverTraining
from polyad.retrieval.hyperretriever.triple_scorer import Recipe
from polyad.retrieval.hyperretriever.triple_walk import QuestionPreparer, SearchSpace, TripleWalk
from polyad.retrieval.question import QuestionLinker
from polyad.text.keys import entity_key

POSITIVES = 32
"""Most positives taken of one question at one hop."""

DEFAULT_TRAINING = HyperRetrieverTraining()
"""What is read and learned where nothing else is wanted."""

NEGATIVES = 96
"""Most negatives likewise. What bounds them is the hop, not the head: one gold passage makes dozens of heads."""


@dataclass(frozen=True, slots=True, eq=False)
class TripleExamples:
    """Labelled triples as rows of arrays of vectors, so that tens of thousands take little room.

    Attributes:
        recipe: What a scorer reads of them.
        question_vectors: ``[questions, dimension]``.
        entity_vectors: ``[entities, dimension]``.
        hyperedge_vectors: ``[hyperedges, dimension]``.
        questions: Row of each triple's question, ``[triples]``; so the next three.
        heads: Row of its head.
        edges: Row of its hyperedge.
        tails: Row of its tail.
        extras: What follows the vectors in x, float32 ``[triples, recipe.extra_count]``.
        labels: Whether it is right.
        texts: Of the questions.
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

    def features(self, rows: IntArray) -> FloatArray:
        """The vector x of some triples (HyperRAG, eq. 9), float32 ``[rows, recipe.width]``."""
        return np.hstack(
            [
                self.question_vectors[self.questions[rows]],
                self.entity_vectors[self.heads[rows]],
                self.hyperedge_vectors[self.edges[rows]],
                self.entity_vectors[self.tails[rows]],
                self.extras[rows],
            ]
        )


def merge_examples(sets: Sequence[TripleExamples]) -> TripleExamples:
    """The examples of several sets as one; at least one, all of one recipe."""
    if len(sets) == 1:
        return sets[0]
    questions, entities, edges = (
        np.cumsum([0, *(len(getattr(one, name)) for one in sets[:-1])])
        for name in ("question_vectors", "entity_vectors", "hyperedge_vectors")
    )
    return TripleExamples(
        sets[0].recipe,
        np.concatenate([one.question_vectors for one in sets]),
        np.concatenate([one.entity_vectors for one in sets]),
        np.concatenate([one.hyperedge_vectors for one in sets]),
        np.concatenate([one.questions + start for one, start in zip(sets, questions, strict=True)]),
        np.concatenate([one.heads + start for one, start in zip(sets, entities, strict=True)]),
        np.concatenate([one.edges + start for one, start in zip(sets, edges, strict=True)]),
        np.concatenate([one.tails + start for one, start in zip(sets, entities, strict=True)]),
        np.concatenate([one.extras for one in sets]),
        np.concatenate([one.labels for one in sets]),
        tuple(text for one in sets for text in one.texts),
    )


def collect_triples(
    snapshot: Snapshot,
    embedder: Embedder,
    extractor: MentionExtractor,
    queries: Sequence[Question],
    settings: HyperRetrieverSettings,
    seed: int = 0,
    progress: Progress = silent,
    learning: HyperRetrieverTraining = DEFAULT_TRAINING,
    names: NamesLinked = "all",
) -> TripleExamples:
    """Walk towards the evidence of some questions and label what is met.

    With ``learning.positives`` being ``evidence``, a triple is right when its hyperedge is in a gold passage. With
    ``answers``, as in the paper, when it is on a shortest path from a topic entity to an entity that is an accepted
    answer, found by its normalised name. Questions whose answer is no entity other than a topic (yes, no, a choice of
    two that are named) have the subjects of their gold passages in its place, or all entities of these where they
    have no subject. Paths stay inside the hyperedges of gold passages if one does, since many others are as short.

    Args:
        snapshot: The index, its entities described.
        embedder: The one it was built with.
        extractor: Finds the names in the questions.
        queries: With gold documents.
        settings: What is walked, and how far.
        seed: Of the choice where a hop has more than :data:`POSITIVES` or :data:`NEGATIVES`.
        progress: Told of each question.
        learning: What the scorer will read, and what is right.
        names: What of a question links to entities; see :class:`polyad.config.QuestionSettings`.
    """
    recipe = build_recipe(settings, embedder, learning)
    preparer = QuestionPreparer(
        snapshot, embedder, QuestionLinker(snapshot, extractor, names=names), signals=recipe.signals
    )
    space = SearchSpace.from_snapshot(snapshot, binary=settings.binary)
    graph = space.build_hypergraph()
    passages = space.passages(np.arange(graph.edge_count))
    gold_passages = _gold_passages(snapshot, queries)
    vectors = np.zeros((len(queries), embedder.dimension), dtype=np.float32)
    found = [_no_triples(recipe)]
    for number, (query, gold) in enumerate(zip(queries, gold_passages, strict=True)):
        question = preparer.prepare(query.text)
        vectors[number] = question.vector
        is_right = _rule_for(snapshot, graph, passages, query, gold, question.topics, settings, learning)
        walk = TripleWalk(space, recipe, question, settings.triples_per_hop)
        random = np.random.default_rng([seed, _seed(query.id)])
        for _ in range(settings.depth or graph.node_count):
            triples, extras = walk.enumerate_hop()
            labels = is_right(triples)
            rows = _sampled(labels, random, learning)
            origins = space.to_snapshot_rows(triples.edges[rows])
            numbers = np.full(len(rows), number)
            found.append((numbers, triples.heads[rows], origins, triples.tails[rows], extras[rows], labels[rows]))
            if not labels.any():
                break
            walk.follow(triples, np.flatnonzero(labels))
        progress(number + 1, len(queries), "questions walked")
    numbers, heads, edges, tails, extras, labels = (
        np.concatenate([hop[column] for hop in found]) for column in range(6)
    )
    entities, hyperedges = (
        snapshot.vectors("entity", np.arange(snapshot.row_count("entity"))),
        snapshot.vectors("hyperedge", np.arange(snapshot.row_count("hyperedge"))),
    )
    texts = tuple(query.text for query in queries)
    return TripleExamples(recipe, vectors, entities, hyperedges, numbers, heads, edges, tails, extras, labels, texts)


def _no_triples(recipe: Recipe) -> tuple[IntArray, IntArray, IntArray, IntArray, FloatArray, BoolArray]:
    none = np.empty(0, dtype=np.int64)
    return none, none, none, none, np.empty((0, recipe.extra_count), dtype=np.float32), np.empty(0, dtype=bool)


def build_recipe(
    settings: HyperRetrieverSettings, embedder: Embedder, learning: HyperRetrieverTraining = DEFAULT_TRAINING
) -> Recipe:
    """What a scorer trained with some settings reads."""
    return Recipe(
        embedder=embedder.name,
        dimension=embedder.dimension,
        rounds=learning.rounds,
        directions=learning.directions,
        starts=learning.distance_starts,
        closeness=learning.closeness,
        signals=tuple(list_signal_names(rewriting=False)) if settings.signals else (),
    )


def compute_distances(graph: Hypergraph, starts: IntArray, allowed: BoolArray, depth: int) -> IntArray:
    """Hyperedges on the shortest way from any of ``starts`` to each entity, -1 beyond ``depth``; ``[entities]``.

    Args:
        graph: The hypergraph.
        starts: Rows of entities.
        allowed: Which hyperedges may be used, ``[hyperedges]``.
        depth: Farthest entity looked for.
    """
    found = np.full(graph.node_count, -1)
    found[starts] = 0
    frontier = starts
    for distance in range(1, depth + 1):
        edges = sort_unique(graph.memberships.get_neighbours(frontier)[0])
        reached = sort_unique(graph.members.get_neighbours(edges[allowed[edges]])[0])
        frontier = reached[found[reached] < 0]
        found[frontier] = distance
        if not len(frontier):
            break
    return found


Rule = Callable[[Triples], BoolArray]
"""Says of each triple whether it is right."""


def _rule_for(
    snapshot: Snapshot,
    graph: Hypergraph,
    passages: IntArray,
    query: Question,
    gold: IntArray,
    topics: IntArray,
    settings: HyperRetrieverSettings,
    learning: HyperRetrieverTraining,
) -> Rule:
    """The rule for one question; see :func:`collect_triples`."""
    in_gold = np.isin(passages, gold)
    if learning.positives == "evidence":
        return lambda triples: in_gold[triples.edges]
    targets = _targets(snapshot, query, gold, topics)
    depth = settings.depth or graph.node_count
    inside = _paths(graph, topics, targets, in_gold, depth)
    return inside or _paths(graph, topics, targets, np.ones_like(in_gold), depth) or _nothing


def _nothing(triples: Triples) -> BoolArray:
    return np.zeros(len(triples), dtype=bool)


def _paths(graph: Hypergraph, topics: IntArray, targets: IntArray, allowed: BoolArray, depth: int) -> Rule | None:
    """On a shortest path from the topics to a target; None when no target is within reach."""
    there = compute_distances(graph, topics, allowed, depth)
    back = [
        (there[target], compute_distances(graph, np.array([target]), allowed, depth)) for target in targets.tolist()
    ]
    ways = [(length, rest) for length, rest in back if length > 0]

    def is_right(triples: Triples) -> BoolArray:
        before, after = there[triples.heads], there[triples.tails]
        steps = allowed[triples.edges] & (before >= 0) & (after == before + 1)
        onward = np.zeros(len(triples), dtype=bool)
        for length, rest in ways:
            onward |= (rest[triples.tails] >= 0) & (after + rest[triples.tails] == length)
        right: BoolArray = steps & onward
        return right

    return is_right if ways else None


def _targets(snapshot: Snapshot, query: Question, gold: IntArray, topics: IntArray) -> IntArray:
    """Answers that are entities; else the subjects of the gold passages; else all of their entities. No topics."""
    keys = (entity_key(answer) for answer in query.answers)
    answers = set(snapshot.find_entity_rows(key for key in keys if key).values())
    entities = sort_unique(snapshot.graph.members(snapshot.graph.hyperedges(gold)[0])[0])
    about, owners, _ = snapshot.graph.passages_about(entities)
    subject = np.bincount(owners[np.isin(about, gold)], minlength=len(entities)) > 0
    for rows in (np.array(sorted(answers), dtype=np.int64), entities[subject], entities):
        others = rows[~np.isin(rows, topics)]
        if len(others):
            return others
    return topics[:0]


def _gold_passages(snapshot: Snapshot, queries: Sequence[Question]) -> list[IntArray]:
    """Rows of the passages of each question's gold documents."""
    rows: dict[str, list[int]] = {}
    passages = snapshot.graph.passages(np.arange(snapshot.row_count("hyperedge")))
    for row in sort_unique(passages).tolist():
        rows.setdefault(snapshot.document_ids([row])[0], []).append(row)
    return [
        np.array(sorted(row for document in query.gold for row in rows.get(document, ())), dtype=np.int64)
        for query in queries
    ]


def _sampled(labels: BoolArray, random: np.random.Generator, learning: HyperRetrieverTraining) -> IntArray:
    """Rows of at most so many right and wrong triples, chosen at random, in order."""
    most = NEGATIVES if learning.negatives == "hop" else min(POSITIVES, int(labels.sum()))
    shuffled = random.permutation(len(labels))
    right, wrong = shuffled[labels[shuffled]], shuffled[~labels[shuffled]]
    return np.sort(np.concatenate([right[:POSITIVES], wrong[:most]]))


def _seed(text: str) -> int:
    """A number that depends on the text alone, in [0, 2 ** 64)."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")
