"""Signals: what speaks for a passage as evidence, as numbers that a scorer weighs.

A question names some entities and asks for something about them, or about what they lead to. Its evidence is what
resembles the question, what is *about* an entity it names, and what is about an entity that such a passage mentions:
a link from a mention to the passage whose subject it is (:mod:`polyad.retrieval.default.links`). Links are followed
twice. Where texts do not say what they are about, the words of the question count
(:mod:`polyad.retrieval.default.question_words`), and the places where one of its entities meets what it asks.

All signals are at least 0: the more, the better; 0 where they do not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from polyad.hypergraph.cosines import cosines
from polyad.model import FloatArray, IntArray
from polyad.protocols import Embedder
from polyad.retrieval.default.links import Hop, SimilarityScale, anchored, follow, shares_of
from polyad.retrieval.default.question_words import QuestionWords
from polyad.retrieval.question import LinkedQuestion, QuestionLinker
from polyad.retrieval.ranking import above, best
from polyad.retrieval.snapshot import Snapshot

# Numbers set by hand: they decide what becomes a candidate and a source of links, which learned weights then weigh.

NEAREST = 40
"""Candidates by similarity, as many by words and as many by each kind of mention."""

LINKED = 160
"""Candidates by being about an entity of the question, and as many by the links of each hop."""

WORD_HITS = 100
"""Passages whose BM25 score is asked for; the signals of words are 0 for all others."""

PRIOR_WORDS, PRIOR_ABOUT = 0.5, 0.6
"""In the score before links: the shares of words and of being about an entity of the question; similarity has 1."""

LINK_FLOOR = 0.5
"""Share of a link that counts for the sources of the second hop, however little its passage resembles the remainder."""

RANK_CONSTANT = 10.0
"""Added to ranks before they are inverted: the eleventh place counts half of the first."""

FUSION_CONSTANT = 60.0
"""Added to ranks before they are inverted, where two rankings are fused."""

REWRITES = 16
"""Linked entities whose names are put to the remainder of the question, when rewriting."""


@dataclass(frozen=True, slots=True)
class State:
    """All that is known of a question before passages are scored. Arrays over passages unless said otherwise.

    Attributes:
        linked: The question and the entities it names.
        scale: Measures similarity to the question and its remainder.
        dense: Similarity to the question.
        remainder: Similarity to the question without the names it links to.
        words: BM25 relative to the best.
        coverage: The share of the question's words, by their rarity, in each candidate, ``[candidates]``.
        gain: What each candidate adds to those of a source that it shares an entity with, ``[candidates]``.
        strong: 1 for the passage whose strong subject is an entity of the question; less where several have it.
        weak: The same for weaker subjects, times their strength.
        mentions: Summed rarity of the question's entities in the passage.
        prior: The score before links, a hand-set sum; its best are the sources of the first hop.
        anchor: The best hyperedge with an entity of the question, by its rarity and its similarity to the remainder.
        hop_anchor: The same with an entity that was followed, by the strength of the link.
        hops: The first and the second hop.
        candidates: Rows of the passages to score, sorted.
        hyperedges: Best similarity of each candidate's hyperedges to the question and to the remainder,
            ``[candidates, 2]``.
        rewrites: Best similarity of each candidate to the remainder with the name of a linked entity, by itself and
            times the strength of the link, ``[candidates, 2]``; zeros without rewriting.
    """

    linked: LinkedQuestion
    scale: SimilarityScale
    dense: FloatArray
    remainder: FloatArray
    words: FloatArray
    coverage: FloatArray
    gain: FloatArray
    strong: FloatArray
    weak: FloatArray
    mentions: FloatArray
    prior: FloatArray
    anchor: FloatArray
    hop_anchor: FloatArray
    hops: tuple[Hop, Hop]
    candidates: IntArray
    hyperedges: FloatArray
    rewrites: FloatArray

    @property
    def strong_links(self) -> FloatArray:
        """The best link of either hop to each candidate by its strong subjects, ``[candidates]``."""
        return np.maximum(self.hops[0].strong, self.hops[1].strong)[self.candidates]

    @property
    def weak_links(self) -> FloatArray:
        """The same by its weaker subjects."""
        return np.maximum(self.hops[0].weak, self.hops[1].weak)[self.candidates]


Signal = Callable[[State], FloatArray]

SIGNALS: dict[str, Signal] = {
    "similarity to the question": lambda s: s.dense[s.candidates],
    "rank by similarity": lambda s: _reciprocal_ranks(s.dense)[s.candidates],
    "words of the question": lambda s: s.words[s.candidates],
    "rank by words": lambda s: (_reciprocal_ranks(s.words) * (s.words > 0))[s.candidates],
    "fused rank by similarity and words": lambda s: _fused_ranks(s.dense, s.words)[s.candidates],
    "share of the question's words": lambda s: s.coverage,
    "words that a passage with a shared mention lacks": lambda s: s.gain,
    "about an entity of the question": lambda s: s.strong[s.candidates],
    "about an entity of the question, and similar": lambda s: (s.strong * s.dense)[s.candidates],
    "perhaps about an entity of the question": lambda s: s.weak[s.candidates],
    "perhaps about an entity of the question, and similar": lambda s: (s.weak * s.dense)[s.candidates],
    "mentions entities of the question": lambda s: s.mentions[s.candidates],
    "hyperedge similar to the question": lambda s: s.hyperedges[:, 0],
    "hyperedge similar to the remainder": lambda s: s.hyperedges[:, 1],
    "similarity to the remainder": lambda s: s.remainder[s.candidates],
    "score before links": lambda s: s.prior[s.candidates],
    "hyperedge with an entity of the question": lambda s: s.anchor[s.candidates],
    "hyperedge with a followed entity": lambda s: s.hop_anchor[s.candidates],
    "link": lambda s: s.strong_links,
    "link, and similar to the remainder": lambda s: s.strong_links * s.remainder[s.candidates],
    "weak link": lambda s: s.weak_links,
    "weak link, and similar to the remainder": lambda s: s.weak_links * s.remainder[s.candidates],
    "link from what is about an entity of the question": lambda s: np.maximum(
        s.hops[0].about_link, s.hops[1].about_link
    )[s.candidates],
    "shared mention": lambda s: s.hops[0].mention[s.candidates],
    "shared mention at the second hop": lambda s: s.hops[1].mention[s.candidates],
}
"""Every signal, by the name that weights use. The remainder is the question without the names it links to."""

REWRITE_SIGNALS: dict[str, Signal] = {
    "similarity to a rewritten question": lambda s: s.rewrites[:, 0],
    "similarity to a rewritten question, by its link": lambda s: s.rewrites[:, 1],
}
"""Signals that rewriting adds."""

UNLINKED = "where names lead nowhere"
"""What is said of a weight that holds in texts in which names do not lead to what is about them."""

IN_WORDS = {
    "similarity to the question": "similar to the question",
    "rank by similarity": "among the most similar to the question",
    "words of the question": "has words of the question",
    "rank by words": "among the best by words of the question",
    "fused rank by similarity and words": "among the best by similarity and words together",
    "share of the question's words": "holds much of the question's words",
    "words that a passage with a shared mention lacks": (
        "holds words of the question that a good passage, with which it shares an entity, lacks"
    ),
    "about an entity of the question": "about an entity of the question",
    "about an entity of the question, and similar": "about an entity of the question and similar to it",
    "perhaps about an entity of the question": "perhaps about an entity of the question",
    "perhaps about an entity of the question, and similar": "perhaps about an entity of the question and similar to it",
    "mentions entities of the question": "mentions entities of the question",
    "hyperedge similar to the question": "holds a hyperedge similar to the question",
    "hyperedge similar to the remainder": "holds a hyperedge similar to the question without its names",
    "similarity to the remainder": "similar to the question without its names",
    "score before links": "fits the question before any link is followed",
    "hyperedge with an entity of the question": "says of an entity of the question what resembles the rest of it",
    "hyperedge with a followed entity": "says of an entity one link away what resembles the question without its names",
    "link": "about an entity that a good passage mentions",
    "link, and similar to the remainder": (
        "about an entity that a good passage mentions and similar to the question without its names"
    ),
    "weak link": "perhaps about an entity that a good passage mentions",
    "weak link, and similar to the remainder": (
        "perhaps about an entity that a good passage mentions and similar to the question without its names"
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


def measures_of(state: State, scores: FloatArray) -> FloatArray:
    """What the relevance of each candidate is told by; float32, ``[candidates, measures]``.

    Args:
        state: Of the question.
        scores: Of its candidates.
    """
    means, spreads = state.scale.means, state.scale.spreads
    columns = [
        scores,
        means[0] + spreads[0] * state.dense[state.candidates],
        means[0] + spreads[0] * state.hyperedges[:, 0],
        state.coverage,
        state.strong[state.candidates],
    ]
    return np.stack(columns, axis=1).astype(np.float32)


def profile_names(names: Sequence[str]) -> list[str]:
    """The names of the columns of :func:`profiled`."""
    return [*names, *(f"{name}, {UNLINKED}" for name in names)]


def profiled(signals: FloatArray, linkability: float) -> FloatArray:
    """Each signal twice, for an index where names lead to what is about them and for one where they do not.

    What tells evidence among articles that mention each other tells little in a novel, so a signal has two weights. An
    index in between mixes them: the first half of the columns is multiplied by its linkability, the second by the rest.

    Args:
        signals: float32 ``[candidates, signals]``.
        linkability: See :attr:`polyad.retrieval.snapshot.Snapshot.linkability`.

    Returns:
        float32 ``[candidates, 2 x signals]``.
    """
    return np.concatenate([signals * np.float32(linkability), signals * np.float32(1 - linkability)], axis=1)


def signal_matrix(state: State, rewriting: bool) -> FloatArray:
    """All signals of all candidates, float32 ``[candidates, signals]``, in the order of :func:`signal_names`."""
    signals = [*SIGNALS.values(), *(REWRITE_SIGNALS.values() if rewriting else ())]
    return np.stack([signal(state) for signal in signals], axis=1).astype(np.float32)


def _candidates(few: Sequence[FloatArray], many: Sequence[FloatArray]) -> IntArray:
    """The best passages by scores above 0: :data:`NEAREST` by each of ``few``, :data:`LINKED` by each of ``many``."""
    found = [above(scores, NEAREST, 0.0) for scores in few] + [above(scores, LINKED, 0.0) for scores in many]
    return np.unique(np.concatenate(found))


def _reciprocal_ranks(scores: FloatArray) -> FloatArray:
    """From 1 for the best score down: constant / (constant + rank), ties by row."""
    ranks = np.empty(len(scores), dtype=np.float32)
    ranks[np.argsort(-scores, kind="stable")] = np.arange(len(scores), dtype=np.float32)
    return RANK_CONSTANT / (RANK_CONSTANT + ranks)


def _fused_ranks(dense: FloatArray, words: FloatArray) -> FloatArray:
    """Ranks by similarity and by words, each inverted, summed; 1 for what is the best by both.

    Cormack and others, 2009: reciprocal rank fusion, with its constant of 60.
    """
    total = np.zeros(len(dense), dtype=np.float32)
    for scores in (dense, words):
        rows = above(scores, WORD_HITS, 0.0)
        total[rows] += FUSION_CONSTANT / (2 * (FUSION_CONSTANT + np.arange(len(rows), dtype=np.float32)))
    return total


class Candidates(NamedTuple):
    """The candidates of a question.

    Attributes:
        documents: Id of each one's document.
        signals: float32 ``[candidates, signals]``.
        passages: Id of each.
        linkability: Of the index.
        measures: What their relevance is told by, with scores of 0; float32 ``[candidates, measures]``.
    """

    documents: list[str]
    signals: FloatArray
    passages: list[str]
    linkability: float
    measures: FloatArray


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

    def candidates(self, question: str) -> Candidates:
        """The candidate passages and their signals, to train a scorer on."""
        state, snapshot = self.state(question), self._snapshot
        rows = state.candidates.tolist()
        return Candidates(
            [snapshot.document_id(row) for row in rows],
            signal_matrix(state, self._rewriting),
            [snapshot.passage_id(row) for row in rows],
            snapshot.linkability,
            measures_of(state, np.zeros(len(rows), dtype=np.float32)),
        )

    def state(self, question: str) -> State:
        """Everything the signals need."""
        linked = self._linker.link(question)
        vectors = self._embedder.encode([question, linked.remainder], "query")
        scale, (dense, remainder) = SimilarityScale.of(vectors, self._snapshot)
        words = self._words(question)
        strong, weak, mentions = self._question_entities(linked)
        about = np.maximum(strong, weak)
        prior = dense + PRIOR_WORDS * words + PRIOR_ABOUT * about
        first = follow(self._snapshot, prior, about, scale)
        after_first = prior + first.link * (LINK_FLOOR + remainder)
        second = follow(self._snapshot, after_first, about, scale)
        named = np.array(sorted(linked.entities), dtype=np.int64)
        anchor = anchored(self._snapshot, named, np.ones(len(named), dtype=np.float32), scale)
        hop_anchor = self._hop_anchor(first, second, prior, scale)
        candidates = _candidates(
            few=[dense, remainder, words, mentions, first.mention, second.mention, anchor, hop_anchor],
            many=[about, first.link, second.link],
        )
        held = QuestionWords.of(question, self._snapshot)
        gain = np.maximum(*(held.gain(candidates, hop.mentions, self._snapshot) for hop in (first, second)))
        return State(
            linked,
            scale,
            dense,
            remainder,
            words,
            held.coverage(candidates),
            gain,
            strong,
            weak,
            mentions,
            prior,
            anchor,
            hop_anchor,
            (first, second),
            candidates,
            self._hyperedge_similarities(candidates, scale),
            self._rewrites(linked, candidates, (first, second), scale),
        )

    def _words(self, question: str) -> FloatArray:
        """BM25 of each passage relative to the best, 0 for those without a word of the question."""
        words = np.zeros(self._snapshot.passage_count, dtype=np.float32)
        rows, scores = self._snapshot.search_text(question, WORD_HITS)
        if len(rows):
            words[rows] = scores / max(float(scores.max()), 1e-9)
        return words

    def _question_entities(self, linked: LinkedQuestion) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Of each passage: is it surely, or perhaps, about an entity of the question, and which does it mention."""
        snapshot = self._snapshot
        strong, weak, mentions = (np.zeros(snapshot.passage_count, dtype=np.float32) for _ in range(3))
        entities = np.array(list(linked.entities), dtype=np.int64)
        rows, owners, strengths = snapshot.subjects.gather(entities)
        strong_shares, weak_shares = shares_of(snapshot, entities)
        is_strong = strengths >= 1
        np.maximum.at(strong, rows[is_strong], strong_shares[owners[is_strong]])
        np.maximum.at(weak, rows[~is_strong], (weak_shares[owners] * strengths)[~is_strong])
        rows, owners = snapshot.passages_of_entity.gather(entities)
        np.add.at(mentions, rows, snapshot.rarity[entities][owners])
        return strong, weak, mentions

    def _hop_anchor(self, first: Hop, second: Hop, prior: FloatArray, scale: SimilarityScale) -> FloatArray:
        """The best hyperedge of each passage with an entity that was followed, away from the best source."""
        strengths: dict[int, float] = {}
        for hop in (first, second):
            weights = hop.mentions.weights.tolist()
            for entity, weight in zip(hop.mentions.entities.tolist(), weights, strict=True):
                strengths[entity] = max(weight, strengths.get(entity, 0.0))
        entities = np.array(sorted(strengths), dtype=np.int64)
        found = np.array([strengths[entity] for entity in entities.tolist()], dtype=np.float32)
        return anchored(self._snapshot, entities, found, scale, away_from=int(best(prior, 1)[0]))

    def _hyperedge_similarities(self, candidates: IntArray, scale: SimilarityScale) -> FloatArray:
        edges, owners = self._snapshot.hyperedges_of_passage.gather(candidates)
        found = np.zeros((len(candidates), 2), dtype=np.float32)
        np.maximum.at(found, owners, scale.relative(self._snapshot.hyperedge_vectors[edges]).astype(np.float32))
        return found

    def _rewrites(
        self, linked: LinkedQuestion, candidates: IntArray, hops: tuple[Hop, Hop], scale: SimilarityScale
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
        found = cosines(snapshot.passage_vectors[candidates], vectors)
        similarities = np.maximum(0, (found - vectors @ snapshot.mean_passage_vector) / scale.spreads[0])
        weights = np.array([strengths[entity] for entity in chosen], dtype=np.float32)
        return np.stack([similarities.max(axis=1), (similarities * weights).max(axis=1)], axis=1)
