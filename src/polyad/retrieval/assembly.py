"""Assembles hits from the passages that a retriever ranks.

Adjacent passages of one section become one hit, a text with copies is listed once, and within a budget of words long
passages are cut to the sentences that fit the question best. The words saved go to further passages. The order of the
retriever stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from polyad.errors import SettingError
from polyad.model import Evidence, Passage, ScoredHyperedge, ScoredPassage, Span
from polyad.retrieval.excerpts import ExcerptSelector, ExcerptSource
from polyad.retrieval.hits import (
    Hit,
    RankSpans,
    ScoredSpan,
    TextFingerprint,
    find_overlap,
    select_first_words,
    select_spans,
)
from polyad.retrieval.options import AUTO, MinRelevance, SearchOptions
from polyad.text.words import count_words

MAX_DEPTH_FACTOR = 16
"""A search ends after requesting this multiple of the first number of passages."""

_MAX_PASSAGE_WORDS = 200
"""Words displayed of one passage while there are other passages: more than a default passage has."""

_MIN_COPY_SHINGLES = 12
"""Shingles from which on equal text under another title is a copy; "It is a village in Poland" is not."""

_MAX_FILLERS = 3
"""Passages that are cut to fill the rest of a budget before it counts as full."""

RankSentences = Callable[[ScoredPassage], Sequence[ScoredSpan]]
"""Returns the spans of a passage that a shortened hit may display, best first: sentences or hyperedges."""


def assemble_hits(
    retrieve: Callable[[int], Evidence],
    options: SearchOptions,
    rank_spans: RankSpans,
    selector: ExcerptSelector | None = None,
    *,
    max_depth_factor: int = MAX_DEPTH_FACTOR,
    auto_limit: float = 0.0,
) -> Evidence:
    """Retrieve passages and merge adjacent ones into hits, until there are as many hits as ``options`` requests.

    Args:
        retrieve: Returns evidence with a number of passages, best first.
        options: Number of hits, words and relevance.
        rank_spans: Ranks the hyperedges of passages by similarity to the question.
        selector: Selects the excerpts of hits; None for hits without excerpts.
        max_depth_factor: Largest multiple of the first request; 1 if a larger request returns no other passages.
        auto_limit: Relevance of the best passage below which no passage is returned, if ``options`` ask for "auto".

    Raises:
        SettingError: A minimum relevance is set, and the retriever does not predict relevance.
    """
    depth, max_depth = options.depth, options.depth * max_depth_factor
    rank_sentences = partial(_rank_sentences, rank_spans, selector)
    while True:
        retrieved = retrieve(depth)
        evidence = _drop_irrelevant(retrieved, options.min_relevance, auto_limit)
        selection = _select_hits(evidence.passages, options, rank_sentences)
        if selection.is_full or len(evidence.passages) < depth or depth == max_depth:
            break
        missing = options.max_hits - len(selection.hits) if options.max_hits else depth
        depth = min(depth + max(2 * missing, depth // 2), max_depth)
    max_passage_words = _MAX_PASSAGE_WORDS
    while selection.was_cut and not selection.is_full:  # there are no further passages: display more of each passage
        max_passage_words *= 2
        selection = _select_hits(evidence.passages, options, rank_sentences, max_passage_words)
    result = _replace_passages(evidence, retrieved.passages, selection.hits)
    return _add_excerpts(result, selection.hits, rank_spans, selector, options.max_words) if selector else result


def _rank_sentences(
    rank_spans: RankSpans, selector: ExcerptSelector | None, scored: ScoredPassage
) -> Sequence[ScoredSpan]:
    """Return the sentences of a passage, the best for the question first; its hyperedges if ``selector`` is None."""
    (hyperedges,) = rank_spans([scored.passage])
    return selector.rank_sentences(_build_source(scored, hyperedges, 0.0)) if selector else hyperedges


def _build_source(scored: ScoredPassage, hyperedges: Sequence[ScoredSpan], relevance: float) -> ExcerptSource:
    passage = scored.passage
    head = f"{scored.origin.title}\n{passage.title}\n{passage.heading}"
    return ExcerptSource(passage.text, head, hyperedges, relevance)


def _drop_irrelevant(evidence: Evidence, min_relevance: MinRelevance, auto_limit: float) -> Evidence:
    """Remove the passages whose relevance is below ``min_relevance`` from the evidence.

    A number as ``min_relevance`` drops each passage below this relevance. "auto" drops all passages if all are below
    ``auto_limit``, and otherwise none. If no passage is left, the empty evidence states the best relevance.
    """
    if not min_relevance or not evidence.passages:
        return evidence
    relevances = [hit.relevance for hit in evidence.passages if hit.relevance is not None]
    if len(relevances) < len(evidence.passages):
        if min_relevance == AUTO:
            return evidence
        raise SettingError(
            "min_relevance", min_relevance, f"0 with {evidence.retriever!r}, which does not predict relevance"
        )
    best = max(relevances)
    if best < (auto_limit if min_relevance == AUTO else min_relevance):
        return Evidence(
            evidence.question,
            evidence.retriever,
            timings=evidence.timings,
            best_relevance=best,
            absent_names=evidence.absent_names,
        )
    if min_relevance == AUTO:
        return evidence
    return replace(
        evidence, passages=tuple(hit for hit in evidence.passages if hit.relevance and hit.relevance >= min_relevance)
    )


class _HitSelection:
    """Builds hits from ranked passages: merges adjacent passages, lists copies once, and stops at the limits.

    Attributes:
        hits: The hits.
        is_full: Whether no further hit fits.
        was_cut: Whether a passage was cut though more of it would have fitted.
    """

    def __init__(self, options: SearchOptions, rank_sentences: RankSentences, max_passage_words: int) -> None:
        self.hits: list[Hit] = []
        self.is_full = False
        self.was_cut = False
        self._options = options
        self._rank_sentences = rank_sentences
        self._max_passage_words = max_passage_words
        self._words_left = options.max_words
        self._filler_count = 0

    def add(self, scored: ScoredPassage) -> None:
        """Add the next best passage: as a new hit, merged into an adjacent hit, or as a copy of an equal hit."""
        passage, merge = scored.passage, self._options.merge
        fingerprint = TextFingerprint.from_text(passage.text) if merge else None
        adjacent = [hit for hit in self.hits if merge and hit.is_adjacent(passage)]
        if fingerprint and self._record_copy(scored, fingerprint, adjacent):
            return
        hit = Hit(scored, [passage], fingerprints=[fingerprint] if fingerprint else [])
        if self._words_left is not None:
            self._shorten_hit(hit, bool(adjacent), self._words_left)
        if hit.spans is None and adjacent:
            self._merge_hits(adjacent, hit)
        elif hit.spans != []:
            self.hits.append(hit)
        self.is_full = self.is_full or len(self.hits) == self._options.max_hits

    def _record_copy(self, scored: ScoredPassage, fingerprint: TextFingerprint, adjacent_hits: Sequence[Hit]) -> bool:
        """Return whether a passage repeats the text of a hit, and if so, record the passage as a copy of the hit.

        Texts are compared by ``fingerprint``, except with ``adjacent_hits``: adjacent passages overlap.
        """
        for hit in self.hits:
            is_adjacent = any(hit is other for other in adjacent_hits)
            is_distinctive = (
                len(fingerprint.shingles) >= _MIN_COPY_SHINGLES or scored.passage.title == hit.best.passage.title
            )
            if is_distinctive and not is_adjacent and any(map(fingerprint.is_contained_in, hit.fingerprints)):
                hit.copies.append((scored.passage, scored.origin))
                return True
        return False

    def _shorten_hit(self, hit: Hit, can_merge: bool, words_left: int) -> None:
        """Cut a hit to its best sentences if it exceeds ``words_left``, or overlaps another hit and cannot merge."""
        passage, text = hit.best.passage, hit.best.passage.text
        hidden = self._find_displayed_spans(passage)
        word_count = max(0, count_words(text) - sum(count_words(span.of(text)) for span in hidden))
        max_words = min(words_left, self._max_passage_words)
        if word_count > max_words or (hidden and not can_merge):
            pieces = self._rank_sentences(hit.best)
            is_best_too_long = not self.hits and count_words(pieces[0].span.of(text)) > max_words
            hit.spans = (
                select_first_words(text, pieces[0].span, max_words)
                if is_best_too_long
                else select_spans(text, pieces, max_words, hidden)
            )
            self.was_cut = self.was_cut or word_count > self._max_passage_words
            self._filler_count += max_words == words_left < word_count
            word_count = sum(count_words(span.of(text)) for span in hit.spans)
        self._words_left = words_left - word_count
        self.is_full = self._words_left == 0 or self._filler_count == _MAX_FILLERS

    def _find_displayed_spans(self, passage: Passage) -> list[Span]:
        """Return the spans of a passage that other hits already display, since passages of a document may overlap."""
        if not self._options.merge:
            return []
        same_document = (hit for hit in self.hits if hit.best.passage.document_id == passage.document_id)
        return find_overlap(passage, (span for hit in same_document for span in hit.get_document_spans()))

    def _merge_hits(self, adjacent_hits: Sequence[Hit], new_hit: Hit) -> None:
        """Merge ``new_hit`` and ``adjacent_hits`` (of the passages before and after) into the first adjacent hit."""
        first, *others = adjacent_hits
        for other in (new_hit, *others):
            first.merge(other)
        self.hits = [hit for hit in self.hits if not any(hit is other for other in others)]


def _select_hits(
    passages: Sequence[ScoredPassage],
    options: SearchOptions,
    rank_sentences: RankSentences,
    max_passage_words: int = _MAX_PASSAGE_WORDS,
) -> _HitSelection:
    selection = _HitSelection(options, rank_sentences, max_passage_words)
    for scored in passages:
        selection.add(scored)
        if selection.is_full:
            break
    return selection


def _replace_passages(evidence: Evidence, retrieved: Sequence[ScoredPassage], hits: Sequence[Hit]) -> Evidence:
    """Replace the ``retrieved`` passages of the evidence by ``hits``, and remove the hyperedges of all other passages.

    A hyperedge of another passage stays if the search reached a hit by this hyperedge.
    """
    hit_by_id = {passage.id: hit for hit in hits for passage in hit.passages}
    dropped_passages = {scored.passage.id for scored in retrieved} - set(hit_by_id)
    merged_into = {id: hit.id for id, hit in hit_by_id.items() if hit.id != id}
    steps = [step for step in evidence.trace if step.passage_id not in dropped_passages]
    traced_edges = {step.hyperedge_id for step in steps}
    edges = {
        scored.hyperedge.id: _translate_hyperedge(scored, hit_by_id)
        for scored in evidence.hyperedges
        if scored.hyperedge.passage_id not in dropped_passages or scored.hyperedge.id in traced_edges
    }
    dropped_edges = {scored.hyperedge.id for scored in evidence.hyperedges if not edges.get(scored.hyperedge.id)}
    return replace(
        evidence,
        passages=tuple(hit.to_scored_passage() for hit in hits),
        hyperedges=tuple(edge for edge in edges.values() if edge),
        trace=tuple(
            replace(step, passage_id=merged_into[step.passage_id]) if step.passage_id in merged_into else step
            for step in steps
            if step.hyperedge_id not in dropped_edges
        ),
    )


def _translate_hyperedge(scored: ScoredHyperedge, hit_by_id: Mapping[str, Hit]) -> ScoredHyperedge | None:
    """Convert the character span of a hyperedge from its passage to the hit's text; None if the hit omits the span."""
    edge = scored.hyperedge
    hit = hit_by_id.get(edge.passage_id)
    if hit is None:
        return scored
    span = hit.translate_span(edge.passage_id, Span(edge.start, edge.end))
    if span is None:
        return None
    if hit.id == edge.passage_id and span == Span(edge.start, edge.end):
        return scored
    return replace(scored, hyperedge=replace(edge, passage_id=hit.id, start=span.start, end=span.end))


def _add_excerpts(
    evidence: Evidence, hits: Sequence[Hit], rank_spans: RankSpans, selector: ExcerptSelector, max_words: int | None
) -> Evidence:
    """Add an excerpt to each hit: the sentences that fit the question best, at most ``max_words`` words in all hits."""
    passages = [passage for hit in hits for passage in hit.passages]
    spans_by_id = {passage.id: spans for passage, spans in zip(passages, rank_spans(passages), strict=True)}
    sources = [
        _build_source(
            scored,
            hit.list_displayed_spans(spans_by_id),
            1 / rank if scored.relevance is None else scored.relevance,
        )
        for rank, (hit, scored) in enumerate(zip(hits, evidence.passages, strict=True), 1)
    ]
    selected = selector.select(sources, max_words)
    return replace(
        evidence,
        passages=tuple(
            replace(
                scored,
                excerpt=hit.build_excerpt(scored.passage.text, sentences.spans, sentences.best, sentences.cited),
                best_sentences=tuple(sentences.answers),
                summary=tuple(sentences.summary),
            )
            for hit, scored, sentences in zip(hits, evidence.passages, selected, strict=True)
        ),
    )
