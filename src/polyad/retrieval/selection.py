"""From the passages that a retriever ranks to what a search gives back.

Passages of one section that follow one another become one hit, a text that stands in several places is shown once,
and within a budget of words long passages are shown by their parts nearest to the question. What is freed goes to
further passages. The order of the retriever stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from polyad.errors import SettingError
from polyad.model import Evidence, Passage, ScoredHyperedge, ScoredPassage, Span
from polyad.retrieval.copies import Wording
from polyad.retrieval.hits import Hit, abridged, beginning, overlap
from polyad.retrieval.nearest import Nearest, Part
from polyad.text.counting import count_words

DEFAULT_K = 5
"""Hits where neither their number nor their words are limited; the depth that published results are given for."""

_DEEPEST = 16
"""Times as many passages as were asked for at first are the most, before a search ends with what it has."""

_WORDS_OF_A_PASSAGE = 100
"""About how many, to ask for as many passages as a budget needs; passages of the default length have 150."""

_LONGEST = 200
"""Words shown of one passage while there is another to show: more than a passage of the default length has."""

_TELLING = 12
"""Runs of words from which on a text says the same under another title; "It is a village in Poland" does not."""

_FILLERS = 3
"""Passages that are cut to fill the last of a budget, before it counts as full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """What a search is to give back.

    Attributes:
        k: The most hits; None for the default, or for no limit where there is a budget of words.
        words: The most words of text in all hits together; None for no limit.
        merge: Whether passages that follow one another are one hit and copies are shown once. Without, the hits are
            the passages as the retriever ranks them.
        min_relevance: Relevance, in [0, 1], below which nothing is shown; 0 shows all.
    """

    k: int | None = None
    words: int | None = None
    merge: bool = True
    min_relevance: float = 0.0

    def __post_init__(self) -> None:
        for name, limit in (("k", self.k), ("words", self.words)):
            if limit is not None and limit < 1:
                raise SettingError(name, limit, "1 or more")
        if not 0 <= self.min_relevance <= 1:
            raise SettingError("min_relevance", self.min_relevance, "0 (show all) to 1")

    @property
    def most(self) -> int | None:
        """The most hits; None for no limit."""
        return self.k or (None if self.words else DEFAULT_K)

    @property
    def depth(self) -> int:
        """Passages to ask a retriever for at first."""
        return self.most or max(DEFAULT_K, (self.words or 0) // _WORDS_OF_A_PASSAGE)


def assemble_hits(
    retrieve: Callable[[int], Evidence],
    wanted: SearchOptions,
    nearest: Nearest,
    *,
    is_listed: bool = False,
    again: bool = True,
) -> Evidence:
    """Ask a retriever for passages until there is as much to show as is wanted, or no more.

    Args:
        retrieve: Finds so many passages, best first.
        wanted: What is to be given back.
        nearest: Tells which part of a passage is nearest to the question.
        is_listed: Whether the evidence's hyperedges tell that too, by their scores.
        again: Whether asking for more passages may bring more.

    Raises:
        SettingError: a least relevance is wanted, and the retriever does not say how relevant passages are.
    """
    asked, most = 0, wanted.depth * (_DEEPEST if again else 1)
    more = wanted.depth
    while True:
        asked = min(asked + more, most)
        found = retrieve(asked)
        evidence = _relevant(found, wanted.min_relevance)
        selection = _selection(evidence.passages, wanted, nearest)
        if selection.is_full or len(evidence.passages) < asked or asked == most:
            break
        missing = wanted.most - len(selection.hits) if wanted.most else asked
        more = max(2 * missing, asked // 2)
    longest = _LONGEST
    while selection.was_cut and not selection.is_full:  # nothing else is left to show: show more of each
        longest *= 2
        selection = _selection(evidence.passages, wanted, nearest, longest)
    given = _given_back(evidence, found.passages, selection.hits)
    return _highlighted(given, selection.hits, None if is_listed else nearest) if wanted.merge else given


def _relevant(evidence: Evidence, least: float) -> Evidence:
    """The evidence without what is less relevant; where that is all of it, with its best relevance alone."""
    if not least or not evidence.passages:
        return evidence
    known = [hit.relevance for hit in evidence.passages if hit.relevance is not None]
    if len(known) < len(evidence.passages):
        raise SettingError(
            "min_relevance", least, f"0 with {evidence.retriever!r}, which does not say how relevant a passage is"
        )
    if max(known) < least:
        return Evidence(evidence.question, evidence.retriever, timings=evidence.timings, best_relevance=max(known))
    return replace(
        evidence, passages=tuple(hit for hit in evidence.passages if hit.relevance and hit.relevance >= least)
    )


# Choosing


class _Selection:
    """Takes passages best first, as long as there is room for them.

    Attributes:
        hits: What is shown.
        is_full: Whether nothing more can be.
        was_cut: Whether a passage was cut though there was room for more of it.
    """

    def __init__(self, wanted: SearchOptions, nearest: Nearest, longest: int) -> None:
        self.hits: list[Hit] = []
        self.is_full = False
        self.was_cut = False
        self._wanted = wanted
        self._nearest = nearest
        self._longest = longest
        self._left = wanted.words
        self._fillers = 0

    def take(self, scored: ScoredPassage) -> None:
        """Show a passage as a hit, as part of one or as a copy, or be full."""
        passage, merges = scored.passage, self._wanted.merge
        wording = Wording.of(passage.text) if merges else None
        beside = [hit for hit in self.hits if merges and hit.is_beside(passage)]
        if wording and self._is_copy(scored, wording, beside):
            return
        hit = Hit(scored, [passage], wordings=[wording] if wording else [])
        if self._left is not None:
            self._cut(hit, beside, self._left)
        if hit.parts is None and beside:
            self._join(beside, hit)
        elif hit.parts != []:
            self.hits.append(hit)
        self.is_full = self.is_full or len(self.hits) == self._wanted.most

    def _is_copy(self, scored: ScoredPassage, wording: Wording, beside: Sequence[Hit]) -> bool:
        for hit in self.hits:
            is_beside = any(hit is other for other in beside)  # and may share most of its words with it: they overlap
            says_itself = len(wording.runs) >= _TELLING or scored.passage.title == hit.best.passage.title
            if says_itself and not is_beside and any(wording.repeats(own) for own in hit.wordings):
                hit.copies.append((scored.passage, scored.origin))
                return True
        return False

    def _cut(self, hit: Hit, beside: Sequence[Hit], left: int) -> None:
        """Count the words of a hit, and where it cannot be shown whole, choose the parts of it that are."""
        passage, text = hit.best.passage, hit.best.passage.text
        hidden = self._shown_already(passage)
        new = max(0, count_words(text) - sum(count_words(span.of(text)) for span in hidden))
        room = min(left, self._longest)
        if new > room or (hidden and not beside):
            (parts,) = self._nearest([passage])
            hit.parts = abridged(text, parts, room, hidden)
            if not hit.parts and not self.hits:
                hit.parts = beginning(text, parts[0], room)
            self.was_cut = self.was_cut or new > self._longest
            self._fillers += room == left < new
            new = sum(count_words(part.of(text)) for part in hit.parts)
        self._left = left - new
        self.is_full = self._left == 0 or self._fillers == _FILLERS

    def _shown_already(self, passage: Passage) -> list[Span]:
        """What the hits show of a passage's text."""
        if not self._wanted.merge:
            return []
        same = (hit for hit in self.hits if hit.best.passage.document_id == passage.document_id)
        return overlap(passage, (span for hit in same for span in hit.shown()))

    def _join(self, beside: Sequence[Hit], hit: Hit) -> None:
        """Make one hit of a passage and the hits before and after it, which it may have parted."""
        first, *others = beside
        for other in (hit, *others):
            first.take_in(other)
        self.hits = [kept for kept in self.hits if not any(kept is other for other in others)]


def _selection(
    passages: Sequence[ScoredPassage], wanted: SearchOptions, nearest: Nearest, longest: int = _LONGEST
) -> _Selection:
    selection = _Selection(wanted, nearest, longest)
    for scored in passages:
        selection.take(scored)
        if selection.is_full:
            break
    return selection


# What is given back


def _given_back(evidence: Evidence, found: Sequence[ScoredPassage], hits: Sequence[Hit]) -> Evidence:
    """The evidence with hits in place of the passages found, and of what led to the passages what led to these."""
    hit_of = {passage.id: hit for hit in hits for passage in hit.passages}
    left_out = {scored.passage.id for scored in found} - set(hit_of)
    merged = {id: hit.id for id, hit in hit_of.items() if hit.id != id}
    steps = [step for step in evidence.trace if step.passage_id not in left_out]
    lifting = {step.hyperedge_id for step in steps}
    edges = {
        scored.hyperedge.id: _moved(scored, hit_of)
        for scored in evidence.hyperedges
        if scored.hyperedge.passage_id not in left_out or scored.hyperedge.id in lifting
    }
    dropped = {scored.hyperedge.id for scored in evidence.hyperedges if not edges.get(scored.hyperedge.id)}
    return replace(
        evidence,
        passages=tuple(hit.scored() for hit in hits),
        hyperedges=tuple(edge for edge in edges.values() if edge),
        trace=tuple(
            replace(step, passage_id=merged[step.passage_id]) if step.passage_id in merged else step
            for step in steps
            if step.hyperedge_id not in dropped
        ),
    )


def _moved(scored: ScoredHyperedge, hit_of: Mapping[str, Hit]) -> ScoredHyperedge | None:
    """A hyperedge as part of the hit that shows its passage; None where the hit does not show this part."""
    edge = scored.hyperedge
    hit = hit_of.get(edge.passage_id)
    if hit is None:
        return scored
    span = hit.moved(edge.passage_id, Span(edge.start, edge.end))
    if span is None:
        return None
    if hit.id == edge.passage_id and span == Span(edge.start, edge.end):
        return scored
    return replace(scored, hyperedge=replace(edge, passage_id=hit.id, start=span.start, end=span.end))


def _highlighted(evidence: Evidence, hits: Sequence[Hit], nearest: Nearest | None) -> Evidence:
    """The evidence with what is nearest to the question in each hit, by the scores of hyperedges or ``nearest``."""
    found = []
    for parts, shown in zip(_parts_shown(evidence, hits, nearest), evidence.passages, strict=True):
        best = max(parts, key=lambda part: part.nearness, default=None)
        found.append(replace(shown, highlight=shown.highlight or (best.span if best else None)))
    return replace(evidence, passages=tuple(found))


def _parts_shown(evidence: Evidence, hits: Sequence[Hit], nearest: Nearest | None) -> list[list[Part]]:
    """The parts of each hit, where they are in its text."""
    if nearest is None:
        listed: dict[str, list[Part]] = {}
        for scored in evidence.hyperedges:
            edge = scored.hyperedge
            listed.setdefault(edge.passage_id, []).append(Part(Span(edge.start, edge.end), scored.score))
        return [listed.get(hit.id, []) for hit in hits]
    passages = [passage for hit in hits for passage in hit.passages]
    parts_of = {passage.id: parts for passage, parts in zip(passages, nearest(passages), strict=True)}
    return [list(hit.parts_shown(parts_of)) for hit in hits]
