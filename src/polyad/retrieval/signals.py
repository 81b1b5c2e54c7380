"""Signals: what speaks for a passage as evidence, as numbers that a scorer weighs.

A question names some entities and asks for something about them, or about what they lead to. Its evidence is what
resembles the question, what is *about* an entity it names, and what is about an entity that such a passage mentions:
a link from a mention to the passage whose subject it is. Links are followed twice.

Similarities are cosines shifted and scaled by what is usual for the question: 0 is the corpus's mean, 1 is the most
similar passage. So weights hold for encoders whose cosines lie elsewhere. All signals are 0 where they do not apply.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from polyad.model import FloatArray, IntArray
from polyad.protocols import Embedder
from polyad.retrieval.passages import best
from polyad.retrieval.question import LinkedQuestion, QuestionLinker
from polyad.retrieval.snapshot import Snapshot

SOURCES = 8
"""Best passages whose mentions are followed, at each hop."""

COMMON = 60
"""Entities of more passages than this are not followed: they lead everywhere."""

NEAREST = 40
"""Candidates by similarity, and as many by words."""

REWRITES = 16
"""Linked entities whose names are put to the remainder of the question."""


@dataclass(frozen=True, slots=True)
class Hop:
    """What following the mentions of the best passages led to.

    Attributes:
        link: Of each passage, the best weight of a source times the rarity of its mention that is this passage's
            subject; ``[passages]``.
        mention: The same for mentions that the passage shares with the source; ``[passages]``.
        source: Row of the passage the link came from, -1 where none; ``[passages]``.
        entity: Row of the entity that made the link, -1 where none; ``[passages]``.
        entities: Rows of the entities followed, each once, strongest first; ``[entities]``.
        strengths: Their weights, ``[entities]``.
    """

    link: FloatArray
    mention: FloatArray
    source: IntArray
    entity: IntArray
    entities: IntArray
    strengths: FloatArray


@dataclass(frozen=True, slots=True)
class State:
    """All that is known of a question before passages are scored. Arrays over passages unless said otherwise.

    Attributes:
        linked: The question and the entities it names.
        vectors: Of the question and its remainder, ``[2, dimension]``.
        dense: Similarity to the question.
        remainder: Similarity to the question without the names it links to.
        words: BM25 relative to the best.
        about: Rarity of the rarest of the question's entities that the passage is about.
        mentions: Summed rarity of the question's entities in the passage.
        prior: Hand-set sum of the first step.
        hops: The first and the second hop.
        unit: Best similarity of the candidate's hyperedges to the question; ``[candidates]``.
        unit_remainder: Best similarity of them to the remainder; ``[candidates]``.
        rewrite: Best similarity to the remainder with the name of a linked entity; ``[candidates]``.
        rewrite_weighted: The same, times the entity's weight; ``[candidates]``.
        candidates: Rows of the passages to score, sorted.
    """

    linked: LinkedQuestion
    vectors: FloatArray
    dense: FloatArray
    remainder: FloatArray
    words: FloatArray
    about: FloatArray
    mentions: FloatArray
    prior: FloatArray
    hops: tuple[Hop, Hop]
    unit: FloatArray
    unit_remainder: FloatArray
    rewrite: FloatArray
    rewrite_weighted: FloatArray
    candidates: IntArray


Signal = Callable[[State], FloatArray]

SIGNALS: dict[str, Signal] = {
    "similarity to the question": lambda s: s.dense[s.candidates],
    "rank by similarity": lambda s: _reciprocal_ranks(s.dense)[s.candidates],
    "words of the question": lambda s: s.words[s.candidates],
    "rank by words": lambda s: _reciprocal_ranks(s.words)[s.candidates] * (s.words[s.candidates] > 0),
    "about an entity of the question": lambda s: s.about[s.candidates],
    "mentions entities of the question": lambda s: s.mentions[s.candidates],
    "unit similar to the question": lambda s: s.unit,
    "unit similar to the remainder": lambda s: s.unit_remainder,
    "similarity to the remainder": lambda s: s.remainder[s.candidates],
    "link": lambda s: s.hops[0].link[s.candidates],
    "shared mention": lambda s: s.hops[0].mention[s.candidates],
    "second link": lambda s: s.hops[1].link[s.candidates],
    "second shared mention": lambda s: s.hops[1].mention[s.candidates],
    "link, and similar to the remainder": lambda s: _best_link(s) * np.maximum(0, s.remainder[s.candidates]),
    "link, and its unit similar to the remainder": lambda s: _best_link(s) * np.maximum(0, s.unit_remainder),
    "similarity to a rewritten question": lambda s: s.rewrite,
    "similarity to a rewritten question, weighted": lambda s: s.rewrite_weighted,
    "entities of the question, and similar": lambda s: s.about[s.candidates] * s.dense[s.candidates],
    "first step": lambda s: s.prior[s.candidates],
    "rank after the first step": lambda s: _reciprocal_ranks(s.prior)[s.candidates],
}
"""Every signal, by the name that traces and weights use."""


def matrix(state: State) -> FloatArray:
    """All signals of all candidates, float32 ``[candidates, signals]``, in the order of :data:`SIGNALS`."""
    return np.stack([signal(state) for signal in SIGNALS.values()], axis=1).astype(np.float32)


def _best_link(state: State) -> FloatArray:
    return np.maximum(state.hops[0].link, state.hops[1].link)[state.candidates]


def _reciprocal_ranks(scores: FloatArray, constant: float = 10.0) -> FloatArray:
    """Constant / (constant + rank) of each score, from 1 for the best; ties by row."""
    ranks = np.empty(len(scores), dtype=np.float32)
    ranks[np.argsort(-scores, kind="stable")] = np.arange(len(scores), dtype=np.float32)
    return constant / (constant + ranks)


class SignalExtractor:
    """Computes the state of a question over a snapshot.

    Args:
        snapshot: The index.
        embedder: The one it was built with.
        linker: Finds the question's entities.
        rewriting: Whether rewritten questions are embedded; without, a search costs one small batch less.
    """

    def __init__(self, snapshot: Snapshot, embedder: Embedder, linker: QuestionLinker, rewriting: bool = True) -> None:
        self._snapshot = snapshot
        self._embedder = embedder
        self._linker = linker
        self._rewriting = rewriting

    def state(self, question: str) -> State:
        """Everything the signals need."""
        snapshot = self._snapshot
        linked = self._linker.link(question)
        vectors = self._embedder.encode([question, linked.remainder], "query")
        cosines = vectors @ snapshot.passage_vectors.T
        means = vectors @ snapshot.mean_passage_vector
        spreads = np.maximum(cosines.max(axis=1, initial=1e-6) - means, 1e-6)
        dense, remainder = (cosines - means[:, None]) / spreads[:, None]
        words = np.zeros_like(dense)
        rows, scores = snapshot.search_text(question, 100)
        if len(rows):
            words[rows] = scores / scores.max()
        about, mentions = self._question_entities(linked)
        prior = np.maximum(dense, 0) + 0.5 * words + 0.6 * about
        first = self._follow(prior)
        second = self._follow(prior + first.link * (0.5 + np.maximum(0, remainder)))
        candidates = self._candidates(dense, remainder, words, about, mentions, (first, second))
        unit, unit_remainder = self._unit_similarities(candidates, vectors, means, spreads)
        rewrite, weighted = self._rewrites(linked, candidates, (first, second), spreads[0])
        return State(
            linked,
            vectors,
            dense,
            remainder,
            words,
            about,
            mentions,
            prior,
            (first, second),
            unit,
            unit_remainder,
            rewrite,
            weighted,
            candidates,
        )

    def _question_entities(self, linked: LinkedQuestion) -> tuple[FloatArray, FloatArray]:
        """Of each passage: is it about an entity of the question, how many does it mention; by rarity."""
        snapshot = self._snapshot
        about = np.zeros(snapshot.passage_count, dtype=np.float32)
        mentions = np.zeros(snapshot.passage_count, dtype=np.float32)
        entities = np.array(list(linked.entities), dtype=np.int64)
        rarities = snapshot.rarity[entities]
        rows, owners = snapshot.passages_about.gather(entities)
        shares = 1 / np.sqrt(snapshot.passages_about.degrees(entities)[owners])
        np.maximum.at(about, rows, shares.astype(np.float32))
        rows, owners = snapshot.passages_of_entity.gather(entities)
        np.add.at(mentions, rows, rarities[owners])
        return about, mentions

    def _follow(self, scores: FloatArray) -> Hop:
        """Follow the mentions of the best passages to the passages about them, and to others that mention them."""
        snapshot = self._snapshot
        count = snapshot.passage_count
        sources = best(scores, SOURCES)
        weights = np.maximum(scores[sources] / max(float(scores[sources].max(initial=0)), 1e-6), 0).astype(np.float32)
        entities, owners = snapshot.entities_of_passage.gather(sources)
        followed = snapshot.passages_of_entity.degrees(entities) <= COMMON
        entities, owners = entities[followed], owners[followed]
        link = np.zeros(count, dtype=np.float32)
        mention = np.zeros(count, dtype=np.float32)
        source = np.full(count, -1)
        via = np.full(count, -1)
        targets, pairs = snapshot.passages_about.gather(entities)
        values = weights[owners[pairs]] / np.sqrt(snapshot.passages_about.degrees(entities)[pairs]).astype(np.float32)
        away = targets != sources[owners[pairs]]
        targets, pairs, values = targets[away], pairs[away], values[away]
        order = np.argsort(values, kind="stable")  # the strongest is written last
        link[targets[order]] = values[order]
        source[targets[order]] = sources[owners[pairs[order]]]
        via[targets[order]] = entities[pairs[order]]
        strengths = np.zeros(snapshot.graph.node_count, dtype=np.float32)
        np.maximum.at(strengths, entities[pairs], values)
        targets, pairs = snapshot.passages_of_entity.gather(entities)
        values = weights[owners[pairs]] * snapshot.rarity[entities[pairs]]
        away = targets != sources[owners[pairs]]
        np.maximum.at(mention, targets[away], values[away])
        strongest = best(strengths, REWRITES)
        strongest = strongest[strengths[strongest] > 0]
        return Hop(link, mention, source, via, strongest, strengths[strongest])

    def _candidates(
        self,
        dense: FloatArray,
        remainder: FloatArray,
        words: FloatArray,
        about: FloatArray,
        mentions: FloatArray,
        hops: tuple[Hop, Hop],
    ) -> IntArray:
        found = [best(dense, NEAREST), best(remainder, NEAREST // 2), np.flatnonzero(about)]
        for scores, most in ((words, NEAREST), (mentions, NEAREST), *((hop.mention, NEAREST) for hop in hops)):
            rows = best(scores, most)
            found.append(rows[scores[rows] > 0])
        for hop in hops:
            rows = best(hop.link, 4 * NEAREST)
            found.append(rows[hop.link[rows] > 0])
        return np.unique(np.concatenate(found))

    def _unit_similarities(
        self, candidates: IntArray, vectors: FloatArray, means: FloatArray, spreads: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Best similarity of each candidate's hyperedges to the question, and to its remainder."""
        edges, owners = self._snapshot.hyperedges_of_passage.gather(candidates)
        similarities = ((self._snapshot.hyperedge_vectors[edges] @ vectors.T) - means) / spreads
        found = np.full((len(candidates), 2), -np.inf, dtype=np.float32)
        np.maximum.at(found, owners, similarities.astype(np.float32))
        found[np.isinf(found)] = 0
        return found[:, 0], found[:, 1]

    def _rewrites(
        self, linked: LinkedQuestion, candidates: IntArray, hops: tuple[Hop, Hop], spread: np.float32
    ) -> tuple[FloatArray, FloatArray]:
        """Best similarity of each candidate to the remainder with the name of a linked entity."""
        snapshot = self._snapshot
        strengths: dict[int, float] = {}
        for hop in hops:
            for entity, strength in zip(hop.entities.tolist(), hop.strengths.tolist(), strict=True):
                strengths[entity] = max(strength, strengths.get(entity, 0.0))
        chosen = sorted(strengths, key=lambda entity: (-strengths[entity], entity))[:REWRITES]
        if not chosen or not self._rewriting:
            nothing = np.zeros(len(candidates), dtype=np.float32)
            return nothing, nothing
        texts = [f"{linked.remainder} {snapshot.entity_key(entity)}" for entity in chosen]
        vectors = self._embedder.encode(texts, "query")
        similarities = snapshot.passage_vectors[candidates] @ vectors.T - vectors @ snapshot.mean_passage_vector
        similarities /= spread
        weights = np.array([strengths[entity] for entity in chosen], dtype=np.float32)
        return similarities.max(axis=1), (similarities * weights).max(axis=1)
