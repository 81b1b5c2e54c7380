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
from functools import partial
from typing import NamedTuple

import numpy as np

from polyad.hypergraph.incidence import sort_unique
from polyad.hypergraph.sparse import Scores, is_in, union
from polyad.model import FloatArray, IntArray
from polyad.protocols.components import Embedder
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default.links import COMMON, Hop, SimilarityScale, anchored, follow, linked, rarity
from polyad.retrieval.default.question_words import QuestionWords
from polyad.retrieval.question import LinkedQuestion, QuestionLinker

# Numbers set by hand: they decide what becomes a candidate and a source of links, which learned weights then weigh.

NEAREST_TAKEN = 40
"""Candidates by similarity, as many by words and as many by each kind of mention."""

LINKED = 160
"""Candidates by being about an entity of the question, and as many by the links of each hop."""

WORD_HITS = 100
"""Passages whose BM25 score is asked for; the signals of words are 0 for all others."""

PRIOR_WORDS, PRIOR_ABOUT = 0.5, 0.6
"""In the score before links: the shares of words and of being about an entity of the question; similarity has 1."""

LINK_FLOOR = 0.5
"""Share of a link that counts for the sources of the second hop, however little its passage resembles the remainder."""

EVERYWHERE = 2000
"""An entity of the question that more passages mention does not make any of them a candidate."""

RANK_CONSTANT = 10.0
"""Added to ranks before they are inverted: the eleventh place counts half of the first."""

FUSION_CONSTANT = 60.0
"""Added to ranks before they are inverted, where two rankings are fused."""

REWRITES = 16
"""Linked entities whose names are put to the remainder of the question, when rewriting."""


@dataclass(frozen=True, slots=True)
class SignalInputs:
    """All that is known of the candidates of a question before they are scored.

    Arrays are float32 ``[candidates]`` unless said otherwise.

    Attributes:
        question: The question and the entities it names.
        scale: Measures similarity to the question and its remainder.
        candidates: Rows of the passages to score, sorted.
        hops: The first and the second hop.
        links: What strong links, weak links and those from what is about an entity of the question count, by the hop
            in which it is the most; ``[3, candidates]``.
        dense: Similarity to the question.
        remainder: Similarity to the question without the names it links to.
        dense_rank, words_rank: The place by similarity, and by words, inverted; 0 beyond those that are ranked.
        fused_rank: Both places together.
        words: BM25 relative to the best.
        coverage: The share of the question's words, by their rarity.
        gain: What it adds to the words of a source that it shares an entity with.
        strong: 1 for the passage whose strong subject is an entity of the question; less where several have it.
        weak: The same for weaker subjects, times their strength.
        mentions: Summed rarity of the question's entities in the passage.
        prior: The score before links, a hand-set sum; its best are the sources of the first hop.
        anchor: The best hyperedge with an entity of the question, by its rarity and its similarity to the remainder.
        hop_anchor: The same with an entity that was followed, by the strength of the link.
        hyperedges: Best similarity of its hyperedges to the question and to the remainder, ``[candidates, 2]``.
        rewrites: Best similarity to the remainder with the name of a linked entity, by itself and times the strength
            of the link, ``[candidates, 2]``; zeros without rewriting.
    """

    question: LinkedQuestion
    scale: SimilarityScale
    candidates: IntArray
    hops: tuple[Hop, Hop]
    links: FloatArray
    dense: FloatArray
    remainder: FloatArray
    dense_rank: FloatArray
    words_rank: FloatArray
    fused_rank: FloatArray
    words: FloatArray
    coverage: FloatArray
    gain: FloatArray
    strong: FloatArray
    weak: FloatArray
    mentions: FloatArray
    prior: FloatArray
    anchor: FloatArray
    hop_anchor: FloatArray
    hyperedges: FloatArray
    rewrites: FloatArray


Signal = Callable[[SignalInputs], FloatArray]

SIGNALS: dict[str, Signal] = {
    "similarity to the question": lambda s: s.dense,
    "rank by similarity": lambda s: s.dense_rank,
    "words of the question": lambda s: s.words,
    "rank by words": lambda s: s.words_rank,
    "fused rank by similarity and words": lambda s: s.fused_rank,
    "share of the question's words": lambda s: s.coverage,
    "words that a passage with a shared mention lacks": lambda s: s.gain,
    "about an entity of the question": lambda s: s.strong,
    "about an entity of the question, and similar": lambda s: s.strong * s.dense,
    "perhaps about an entity of the question": lambda s: s.weak,
    "perhaps about an entity of the question, and similar": lambda s: s.weak * s.dense,
    "mentions entities of the question": lambda s: s.mentions,
    "hyperedge similar to the question": lambda s: s.hyperedges[:, 0],
    "hyperedge similar to the remainder": lambda s: s.hyperedges[:, 1],
    "similarity to the remainder": lambda s: s.remainder,
    "score before links": lambda s: s.prior,
    "hyperedge with an entity of the question": lambda s: s.anchor,
    "hyperedge with a followed entity": lambda s: s.hop_anchor,
    "link": lambda s: s.links[0],
    "link, and similar to the remainder": lambda s: s.links[0] * s.remainder,
    "weak link": lambda s: s.links[1],
    "weak link, and similar to the remainder": lambda s: s.links[1] * s.remainder,
    "link from what is about an entity of the question": lambda s: s.links[2],
    "shared mention": lambda s: s.hops[0].mention.get(s.candidates),
    "shared mention at the second hop": lambda s: s.hops[1].mention.get(s.candidates),
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


def measures_of(inputs: SignalInputs, scores: FloatArray) -> FloatArray:
    """What the relevance of each candidate is told by; float32, ``[candidates, measures]``.

    Args:
        inputs: Of the question.
        scores: Of its candidates.
    """
    means, spreads = inputs.scale.means, inputs.scale.spreads
    columns = [
        scores,
        means[0] + spreads[0] * inputs.dense,
        means[0] + spreads[0] * inputs.hyperedges[:, 0],
        inputs.coverage,
        inputs.strong,
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
        linkability: See :attr:`polyad.protocols.snapshot.Snapshot.linkability`.

    Returns:
        float32 ``[candidates, 2 x signals]``.
    """
    return np.concatenate([signals * np.float32(linkability), signals * np.float32(1 - linkability)], axis=1)


def signal_matrix(inputs: SignalInputs, rewriting: bool) -> FloatArray:
    """All signals of all candidates, float32 ``[candidates, signals]``, in the order of :func:`signal_names`."""
    signals = [*SIGNALS.values(), *(REWRITE_SIGNALS.values() if rewriting else ())]
    return np.stack([signal(inputs) for signal in signals], axis=1).astype(np.float32)


def _inverted(rows: IntArray, candidates: IntArray) -> FloatArray:
    """From 1 for the first of some ranked rows down: constant / (constant + rank); 0 for candidates not among them."""
    ranks = np.arange(len(rows), dtype=np.float32)
    return Scores.from_pairs(rows, RANK_CONSTANT / (RANK_CONSTANT + ranks)).get(candidates)


def _fused(rankings: Sequence[IntArray], candidates: IntArray) -> FloatArray:
    """Ranks by similarity and by words, each inverted, summed; 1 for what is the best by both.

    Cormack and others, 2009: reciprocal rank fusion, with its constant of 60.
    """
    total = np.zeros(len(candidates), dtype=np.float32)
    for rows in rankings:
        ranks = np.arange(min(len(rows), WORD_HITS), dtype=np.float32)
        total += Scores.from_pairs(rows[:WORD_HITS], FUSION_CONSTANT / (2 * (FUSION_CONSTANT + ranks))).get(candidates)
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
    """Computes the signals of a question over a snapshot.

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
        self._order = partial(snapshot.rank_by_id, "passage")

    def candidates(self, question: str) -> Candidates:
        """The candidate passages and their signals, to train a scorer on."""
        inputs, snapshot = self.inputs(question), self._snapshot
        return Candidates(
            snapshot.document_ids(inputs.candidates),
            signal_matrix(inputs, self._rewriting),
            snapshot.ids("passage", inputs.candidates),
            snapshot.linkability,
            measures_of(inputs, np.zeros(len(inputs.candidates), dtype=np.float32)),
        )

    def inputs(self, question: str) -> SignalInputs:
        """Everything the signals need."""
        snapshot = self._snapshot
        named = self._linker.link(question)
        scale = SimilarityScale(self._embedder.encode([question, named.remainder], "query"), snapshot)
        found, words = self._words(question)
        entities = np.array(list(named.entities), dtype=np.int64)
        degrees = snapshot.graph.mention_counts(entities)
        telling, is_hub = rarity(snapshot, degrees), degrees > EVERYWHERE
        strong, weak, mentions = self._question_entities(entities[~is_hub], telling[~is_hub])
        about = Scores.from_max(np.concatenate([strong.rows, weak.rows]), np.concatenate([strong.values, weak.values]))
        rows = union([scale.nearest[0], words.rows, about.rows])
        prior = Scores(rows, _prior(scale.similarities("passage", rows)[:, 0], words.get(rows), about.get(rows)))
        first = follow(snapshot, prior, about, scale)
        second = follow(snapshot, self._after(first, words, about, scale), about, scale)
        hops = first, second
        is_rare = degrees <= COMMON
        asked = Scores.from_pairs(entities[is_rare], telling[is_rare])
        anchor, hop_anchor = self._anchors(asked, hops, prior.top_k(1, self._order), scale)
        few = [mentions, first.mention, second.mention, anchor, hop_anchor]
        many = [about, first.link, second.link]
        candidates = union(
            [
                *(rows[:NEAREST_TAKEN] for rows in scale.similar),
                found[:NEAREST_TAKEN],
                *(self._best(scores, NEAREST_TAKEN) for scores in few),
                *(self._best(scores, LINKED) for scores in many),
            ]
        )
        if not len(candidates):  # nothing speaks for any passage, as in an index of one
            candidates = np.sort(scale.nearest[0][:NEAREST_TAKEN])
        dense, remainder = scale.similarities("passage", candidates).T
        words_of_them, about_them = words.get(candidates), about.get(candidates)
        sources = [hop.mentions.sources for hop in hops]
        question_words = QuestionWords.of(question, snapshot, union([candidates, *sources]))
        held = question_words.held(candidates)
        return SignalInputs(
            named,
            scale,
            candidates,
            hops,
            np.maximum(*(hop.links_to(candidates) for hop in hops)),
            dense=dense,
            remainder=remainder,
            dense_rank=_inverted(scale.nearest[0], candidates),
            words_rank=_inverted(found, candidates),
            fused_rank=_fused([scale.similar[0], found], candidates),
            words=words_of_them,
            coverage=question_words.coverage(held),
            gain=np.maximum(*(question_words.gain(candidates, held, hop.mentions) for hop in hops)),
            strong=strong.get(candidates),
            weak=weak.get(candidates),
            mentions=mentions.get(candidates) + self._mentions_of_hubs(entities[is_hub], telling[is_hub], candidates),
            prior=_prior(dense, words_of_them, about_them),
            anchor=anchor.get(candidates),
            hop_anchor=hop_anchor.get(candidates),
            hyperedges=self._hyperedge_similarities(candidates, scale),
            rewrites=self._rewrites(named, candidates, hops, scale),
        )

    def _best(self, scores: Scores, k: int) -> IntArray:
        """The rows of the ``k`` highest scores above 0, in any order."""
        above = scores.above(0)
        return above.rows if len(above) <= k else above.top_k(k, self._order)

    def _words(self, question: str) -> tuple[IntArray, Scores]:
        """The passages with words of the question, best first, and their BM25 relative to the best."""
        rows, scores = self._snapshot.terms.search(question, WORD_HITS)
        return rows, Scores.from_pairs(rows, scores / max(float(scores.max(initial=0)), 1e-9))

    def _question_entities(self, entities: IntArray, telling: FloatArray) -> tuple[Scores, Scores, Scores]:
        """Of passages: those surely, or perhaps, about one of some entities, and those that mention some.

        Args:
            entities: Of the question, but hubs.
            telling: The rarity of each.
        """
        mentioned, owners, strengths = self._snapshot.graph.mentions(entities)
        rows, _, shares, sure = linked(mentioned, owners, strengths, len(entities))
        return (
            Scores.from_max(rows[sure], shares[sure]),
            Scores.from_max(rows[~sure], shares[~sure]),
            Scores.from_sum(mentioned, telling[owners]),
        )

    def _mentions_of_hubs(self, hubs: IntArray, telling: FloatArray, passages: IntArray) -> FloatArray:
        """Summed rarity, as given, of some entities that are mentioned everywhere, in each of some passages."""
        graph = self._snapshot.graph
        found = np.zeros(len(passages), dtype=np.float32)
        if len(hubs):
            order = hubs.argsort()
            edges, owners = graph.hyperedges(passages)
            members, places = graph.members(edges)
            mentioned = is_in(members, hubs[order])
            hub_of = hubs[order].searchsorted(members[mentioned])
            pairs = sort_unique(owners[places[mentioned]] * len(hubs) + hub_of)
            np.add.at(found, pairs // len(hubs), telling[order][pairs % len(hubs)])
        return found

    def _anchors(
        self, asked: Scores, hops: tuple[Hop, Hop], best_source: IntArray, scale: SimilarityScale
    ) -> tuple[Scores, Scores]:
        """The best hyperedge of each passage that holds an entity of the question, and one that was followed.

        Args:
            asked: The rarity of the entities of the question, but common ones.
            hops: Tell what was followed; it counts by its rarity and the best source that mentions it.
            best_source: Row of the passage in which no followed entity counts.
            scale: Measures similarity to the remainder.
        """
        mentions = [hop.mentions for hop in hops]
        followed = Scores.from_max(
            np.concatenate([own.entities for own in mentions]),
            np.concatenate([own.weights * own.rarities for own in mentions]),
        )
        passages, owners, values = anchored(
            self._snapshot,
            np.concatenate([asked.rows, followed.rows]),
            np.concatenate([asked.values, followed.values]),
            scale,
        )
        is_asked = owners < len(asked)
        away = ~is_asked & (passages != best_source)
        return Scores.from_max(passages[is_asked], values[is_asked]), Scores.from_max(passages[away], values[away])

    def _after(self, hop: Hop, words: Scores, about: Scores, scale: SimilarityScale) -> Scores:
        """The score before links and what the links of a hop add to it."""
        rows = union([scale.nearest[0], words.rows, about.rows, hop.link.rows])
        dense, remainder = scale.similarities("passage", rows).T
        prior = _prior(dense, words.get(rows), about.get(rows))
        return Scores(rows, prior + hop.link.get(rows) * (LINK_FLOOR + remainder))

    def _hyperedge_similarities(self, candidates: IntArray, scale: SimilarityScale) -> FloatArray:
        edges, owners = self._snapshot.graph.hyperedges(candidates)
        found = np.zeros((len(candidates), 2), dtype=np.float32)
        np.maximum.at(found, owners, scale.similarities("hyperedge", edges))
        return found

    def _rewrites(
        self, question: LinkedQuestion, candidates: IntArray, hops: tuple[Hop, Hop], scale: SimilarityScale
    ) -> FloatArray:
        snapshot, none = self._snapshot, np.zeros((len(candidates), 2), dtype=np.float32)
        if not self._rewriting:
            return none
        rows, values = (np.concatenate(column) for column in zip(*(hop.followed for hop in hops), strict=True))
        followed = Scores.from_max(rows, values)
        chosen = followed.top_k(REWRITES, partial(snapshot.rank_by_id, "entity"))
        if not len(chosen):
            return none
        vectors = self._embedder.encode(
            [f"{question.remainder} {key}" for key in snapshot.ids("entity", chosen)], "query"
        )
        found = snapshot.cosines("passage", candidates, vectors)
        similarities = np.maximum(0, (found - snapshot.mean_cosines(vectors)) / scale.spreads[0])
        weights = followed.get(chosen)
        return np.stack([similarities.max(axis=1), (similarities * weights).max(axis=1)], axis=1)


def _prior(dense: FloatArray, words: FloatArray, about: FloatArray) -> FloatArray:
    """The score before links of some passages."""
    prior: FloatArray = dense + PRIOR_WORDS * words + PRIOR_ABOUT * about
    return prior
