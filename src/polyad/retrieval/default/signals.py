"""Signals: what speaks for a passage as evidence, as numbers that a scorer weighs.

A question names some entities and asks for something about them, or about what they lead to. Its evidence is what
resembles the question, what is *about* an entity it names, and what is about an entity that such a passage mentions:
a link from a mention to the passage whose subject it is (:mod:`polyad.retrieval.default.links`). Links are followed
twice.

All signals are at least 0: the more, the better; 0 where they do not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from polyad.model import FloatArray, IntArray
from polyad.protocols import Embedder
from polyad.retrieval.default.links import Gauge, Hop, follow
from polyad.retrieval.question import LinkedQuestion, QuestionLinker
from polyad.retrieval.ranking import above
from polyad.retrieval.snapshot import Snapshot

NEAREST = 40
"""Candidates by similarity, as many by words and as many by each kind of mention."""

REWRITES = 16
"""Linked entities whose names are put to the remainder of the question, when rewriting."""


@dataclass(frozen=True, slots=True)
class State:
    """All that is known of a question before passages are scored. Arrays over passages unless said otherwise.

    Attributes:
        linked: The question and the entities it names.
        gauge: Measures similarity to the question and its remainder.
        dense: Similarity to the question.
        remainder: Similarity to the question without the names it links to.
        words: BM25 relative to the best.
        about: 1 for the passage about an entity of the question; less where several are about it.
        mentions: Summed rarity of the question's entities in the passage.
        prior: Hand-set sum of the first step; its best are the sources of the first hop.
        hops: The first and the second hop.
        candidates: Rows of the passages to score, sorted.
        units: Best similarity of each candidate's hyperedges to the question and to the remainder, ``[candidates, 2]``.
        rewrites: Best similarity of each candidate to the remainder with the name of a linked entity, by itself and
            times the strength of the link, ``[candidates, 2]``; zeros without rewriting.
    """

    linked: LinkedQuestion
    gauge: Gauge
    dense: FloatArray
    remainder: FloatArray
    words: FloatArray
    about: FloatArray
    mentions: FloatArray
    prior: FloatArray
    hops: tuple[Hop, Hop]
    candidates: IntArray
    units: FloatArray
    rewrites: FloatArray

    @property
    def links(self) -> FloatArray:
        """The best link of either hop to each candidate, ``[candidates]``."""
        return np.maximum(self.hops[0].link, self.hops[1].link)[self.candidates]


Signal = Callable[[State], FloatArray]

SIGNALS: dict[str, Signal] = {
    "similarity to the question": lambda s: s.dense[s.candidates],
    "rank by similarity": lambda s: _reciprocal_ranks(s.dense)[s.candidates],
    "words of the question": lambda s: s.words[s.candidates],
    "rank by words": lambda s: (_reciprocal_ranks(s.words) * (s.words > 0))[s.candidates],
    "about an entity of the question": lambda s: s.about[s.candidates],
    "about an entity of the question, and similar": lambda s: (s.about * s.dense)[s.candidates],
    "mentions entities of the question": lambda s: s.mentions[s.candidates],
    "unit similar to the question": lambda s: s.units[:, 0],
    "unit similar to the remainder": lambda s: s.units[:, 1],
    "similarity to the remainder": lambda s: s.remainder[s.candidates],
    "first step": lambda s: s.prior[s.candidates],
    "link": lambda s: s.links,
    "link, and similar to the remainder": lambda s: s.links * s.remainder[s.candidates],
    "link from what is about an entity of the question": lambda s: np.maximum(
        s.hops[0].about_link, s.hops[1].about_link
    )[s.candidates],
    "shared mention": lambda s: s.hops[0].mention[s.candidates],
    "shared mention at the second hop": lambda s: s.hops[1].mention[s.candidates],
}
"""Every signal, by the name that weights use."""

REWRITE_SIGNALS: dict[str, Signal] = {
    "similarity to a rewritten question": lambda s: s.rewrites[:, 0],
    "similarity to a rewritten question, by its link": lambda s: s.rewrites[:, 1],
}
"""Signals that rewriting adds."""


IN_WORDS = {
    "similarity to the question": "similar to the question",
    "rank by similarity": "among the most similar to the question",
    "words of the question": "has words of the question",
    "rank by words": "among the best by words of the question",
    "about an entity of the question": "about an entity of the question",
    "about an entity of the question, and similar": "about an entity of the question and similar to it",
    "mentions entities of the question": "mentions entities of the question",
    "unit similar to the question": "holds a hyperedge similar to the question",
    "unit similar to the remainder": "holds a hyperedge similar to the question without its names",
    "similarity to the remainder": "similar to the question without its names",
    "first step": "fits the question before any link is followed",
    "link": "about an entity that a good passage mentions",
    "link, and similar to the remainder": (
        "about an entity that a good passage mentions and similar to the question without its names"
    ),
    "link from what is about an entity of the question": (
        "about an entity that is mentioned in a passage about an entity of the question"
    ),
    "shared mention": "mentions an entity that a good passage mentions too",
    "shared mention at the second hop": "mentions an entity that a passage one link away mentions too",
    "similarity to a rewritten question": "similar to the question with a linked entity put in",
    "similarity to a rewritten question, by its link": (
        "similar to the question with a linked entity put in, the more the stronger the link"
    ),
}
"""What each signal says of a passage, for people to read."""


def signal_names(rewriting: bool) -> list[str]:
    """The names of the signals that are weighed."""
    return [*SIGNALS, *(REWRITE_SIGNALS if rewriting else ())]


def matrix(state: State, rewriting: bool) -> FloatArray:
    """All signals of all candidates, float32 ``[candidates, signals]``, in the order of :func:`signal_names`."""
    signals = [*SIGNALS.values(), *(REWRITE_SIGNALS.values() if rewriting else ())]
    return np.stack([signal(state) for signal in signals], axis=1).astype(np.float32)


def _candidates(few: Sequence[FloatArray], many: Sequence[FloatArray]) -> IntArray:
    """The best passages by each of some scores, as far as they are above 0."""
    found = []
    for scores, size in (*((scores, NEAREST) for scores in few), *((scores, 4 * NEAREST) for scores in many)):
        found.append(above(scores, size, 0.0))
    return np.unique(np.concatenate(found))


def _reciprocal_ranks(scores: FloatArray, constant: float = 10.0) -> FloatArray:
    """From 1 for the best score down: constant / (constant + rank), ties by row."""
    ranks = np.empty(len(scores), dtype=np.float32)
    ranks[np.argsort(-scores, kind="stable")] = np.arange(len(scores), dtype=np.float32)
    return constant / (constant + ranks)


class SignalExtractor:
    """Computes the state of a question over a snapshot.

    Args:
        snapshot: The index; at least one passage.
        embedder: The one it was built with.
        linker: Finds the question's entities.
        rewriting: Whether rewritten questions are embedded, one more batch of :data:`REWRITES` short texts.
    """

    def __init__(self, snapshot: Snapshot, embedder: Embedder, linker: QuestionLinker, *, rewriting: bool) -> None:
        self._snapshot = snapshot
        self._embedder = embedder
        self._linker = linker
        self._rewriting = rewriting

    def state(self, question: str) -> State:
        """Everything the signals need."""
        linked = self._linker.link(question)
        vectors = self._embedder.encode([question, linked.remainder], "query")
        gauge, (dense, remainder) = Gauge.of(vectors, self._snapshot)
        words = self._words(question)
        about, mentions = self._question_entities(linked)
        prior = dense + 0.5 * words + 0.6 * about
        first = follow(self._snapshot, prior, about, gauge)
        after_first = prior + first.link * (0.5 + remainder)
        second = follow(self._snapshot, after_first, about, gauge)
        candidates = _candidates(
            few=[dense, remainder, words, mentions, first.mention, second.mention],
            many=[about, first.link, second.link],
        )
        return State(
            linked,
            gauge,
            dense,
            remainder,
            words,
            about,
            mentions,
            prior,
            (first, second),
            candidates,
            self._unit_similarities(candidates, gauge),
            self._rewrites(linked, candidates, (first, second), gauge),
        )

    def _words(self, question: str) -> FloatArray:
        """BM25 of each passage relative to the best, 0 for those without a word of the question."""
        words = np.zeros(self._snapshot.passage_count, dtype=np.float32)
        rows, scores = self._snapshot.search_text(question, 100)
        if len(rows):
            words[rows] = scores / max(float(scores.max()), 1e-9)
        return words

    def _question_entities(self, linked: LinkedQuestion) -> tuple[FloatArray, FloatArray]:
        """Of each passage: is it about an entity of the question, and which does it mention."""
        snapshot = self._snapshot
        about = np.zeros(snapshot.passage_count, dtype=np.float32)
        mentions = np.zeros(snapshot.passage_count, dtype=np.float32)
        entities = np.array(list(linked.entities), dtype=np.int64)
        rows, owners = snapshot.passages_about.gather(entities)
        shares = 1 / np.sqrt(snapshot.passages_about.degrees(entities)[owners])
        np.maximum.at(about, rows, shares.astype(np.float32))
        rows, owners = snapshot.passages_of_entity.gather(entities)
        np.add.at(mentions, rows, snapshot.rarity[entities][owners])
        return about, mentions

    def _unit_similarities(self, candidates: IntArray, gauge: Gauge) -> FloatArray:
        edges, owners = self._snapshot.hyperedges_of_passage.gather(candidates)
        found = np.zeros((len(candidates), 2), dtype=np.float32)
        np.maximum.at(found, owners, gauge.relative(self._snapshot.hyperedge_vectors[edges]).astype(np.float32))
        return found

    def _rewrites(
        self, linked: LinkedQuestion, candidates: IntArray, hops: tuple[Hop, Hop], gauge: Gauge
    ) -> FloatArray:
        snapshot = self._snapshot
        strengths = {
            entity: max(hop.followed.get(entity, 0.0) for hop in hops) for hop in hops for entity in hop.followed
        }
        chosen = sorted(strengths, key=lambda entity: (-strengths[entity], entity))[:REWRITES]
        if not chosen or not self._rewriting:
            return np.zeros((len(candidates), 2), dtype=np.float32)
        texts = [f"{linked.remainder} {snapshot.entity_key(entity)}" for entity in chosen]
        vectors = self._embedder.encode(texts, "query")
        cosines = snapshot.passage_vectors[candidates] @ vectors.T
        similarities = np.maximum(0, (cosines - vectors @ snapshot.mean_passage_vector) / gauge.spreads[0])
        weights = np.array([strengths[entity] for entity in chosen], dtype=np.float32)
        return np.stack([similarities.max(axis=1), (similarities * weights).max(axis=1)], axis=1)
