"""Excerpts: the sentences of a search's hits that fit the question best, within one budget of words for all hits."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, takewhile

import numpy as np

from polyad.model import Evidence, Pagination, ScoredPassage, Span
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.answer_sentences import find_answer_sentences
from polyad.retrieval.hits import PART_SEPARATOR, ScoredSpan
from polyad.text.clause_numbers import begins_next_clause, find_clause_numbers, find_clause_references
from polyad.text.sentences import find_code_blocks, find_labels, is_statement, join_halves
from polyad.text.words import count_words, extract_search_terms, extract_terms_and_codes

WORDS_PER_HIT = 105
"""Words of excerpts per hit; a hit that fits the question better than the others may have more."""

_SUMMARY_WORDS, _SUMMARY_GROUP = 90, 3
"""Words of a summary per hit, and consecutive hits that share these words: some 270 words are read at a glance."""

_FIRST_SUMMARY_WORDS = 45
"""Words of the summary of each hit before the hits compete for the rest."""

_FIRST_WORDS = 25
"""Words that each hit displays before the hits compete for the rest of the budget."""

_UNIT_WEIGHT, _RELEVANCE_WEIGHT = 0.2, 0.5
"""Weights of the similarity of a sentence's hyperedge and of the hit's relevance, relative to the share of terms."""

_PRECEDING_WEIGHT, _FOLLOWING_WEIGHT = 0.6, 0.4
"""Weights of the values of the adjacent sentences; a sentence continues the preceding one more than the following."""

_MIN_SCORE = 0.05
"""Score, without relevance, below which a sentence is not displayed unless it is the best of its hit."""

_MAX_CODE_WORDS = 60
"""Words of a code block up to which it is displayed as a whole: a command says little without the next."""

_CITED_SHARE = 0.5
"""Share of the best sentence's own score from which on the page of a sentence is cited."""

_LIST_WEIGHT = 0.8
"""Share of the score of a sentence before a list, such as "There are five types:", that each item has at least."""

_ITEM = re.compile(r"(?:[•*·+-]|\d{1,2}[.)]|[a-zA-Z][.)])\s")
"""The beginning of a list item."""

_MAX_ITEM_WORDS = 12
"""Words of a line after a colon up to which the line is a list item without a mark."""

_DERIVATION_WEIGHT, _MIN_STEM = 0.5, 5
"""Weight of a derivation of a term of the question, relative to this term, and characters of its shortest stem."""

_HEADING_MARKS = "#=-*_` \n"

_MAX_GAP_WORDS = 3
"""Number of words between two displayed sentences up to which these words are displayed too."""


@dataclass(frozen=True, slots=True)
class ExcerptSource:
    """The text, headings and ranked hyperedges of a hit, from which the sentences of the hit's excerpt are selected.

    Attributes:
        text: The text of the hit.
        head: Title and headings, which are displayed above the excerpt and not in it.
        hyperedges: Spans of the hyperedges in the text, with similarities to the question.
        relevance: Relevance of the hit, in [0, 1].
    """

    text: str
    head: str
    hyperedges: Sequence[ScoredSpan]
    relevance: float


@dataclass(frozen=True, slots=True)
class SelectedSentences:
    """The sentences of a hit that form its excerpt.

    Attributes:
        spans: Spans of one or more adjacent sentences, in text order.
        best: Span of the sentence with the highest score.
        cited: Span from the first to the last sentence whose page is cited.
        answers: Spans of the one or two sentences of the hit that most likely answer the question, best first.
        summary: Spans of the sentences for people, a part of the excerpt with the best answer, in text order.
    """

    spans: Sequence[Span]
    best: Span
    cited: Span
    answers: Sequence[Span]
    summary: Sequence[Span]


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence of a hit, with its character span, number of words, and score for the question.

    ``own_score`` is the part of the score that the adjacent sentences and the hit's other sentences do not share.
    """

    hit: int
    span: Span
    words: int
    score: float
    own_score: float
    fits: bool


class ExcerptSelector:
    """Selects the excerpts of one question's hits: the sentences that fit the question best.

    The value of a sentence is the share of the question's terms that it contains, weighted by inverse document
    frequency, plus a fraction of the similarity of its hyperedge. Its score adds a share of the values of the
    adjacent sentences and half the relevance of its hit.

    Args:
        snapshot: The index, for document frequencies.
        question: The question.
        split_sentences: Splits a text into sentences.
    """

    def __init__(self, snapshot: Snapshot, question: str, split_sentences: Callable[[str], Sequence[Span]]) -> None:
        self._snapshot = snapshot
        self._question = question
        self._split_sentences = split_sentences

    def select(self, hits: Sequence[ExcerptSource], max_words: int | None = None) -> list[SelectedSentences]:
        """Return the best sentences of each hit as its excerpt: at least one per hit, ``max_words`` words in all.

        Args:
            hits: Best first.
            max_words: Number of words in all excerpts together, to be filled; None for :data:`WORDS_PER_HIT` on
                average, without sentences that hardly fit the question.
        """
        scored = [self._score_sentences(number, hit) for number, hit in enumerate(hits)]
        sentences = [sentence for in_hit in scored for sentence in in_hit]
        sentences.sort(key=lambda sentence: (not sentence.fits, -sentence.score, sentence.hit, sentence.span.start))
        words = max_words or WORDS_PER_HIT * len(hits)
        by_hit = _group_by_hit(_fill_budget(sentences, words, _FIRST_WORDS, fills=max_words is not None), len(hits))
        answers = [self._find_answers(hit.text, in_hit) for hit, in_hit in zip(hits, scored, strict=True)]
        summaries = _group_by_hit(_summarize(sentences, [spans[0] for spans in answers]), len(hits))
        return [
            SelectedSentences(
                join_adjacent(hit.text, _list_spans(best)),
                best[0].span,
                _find_cited_span(best),
                answer_spans,
                join_adjacent(hit.text, _list_spans(summary)),
            )
            for hit, best, answer_spans, summary in zip(hits, by_hit, answers, summaries, strict=True)
        ]

    def rank_sentences(self, hit: ExcerptSource) -> list[ScoredSpan]:
        """Return a hit's sentences with their similarities to the question, best first; ties in text order."""
        spans, scores, _ = self._score_spans(hit)
        order = sorted(range(len(spans)), key=lambda place: (-scores[place], place))
        return [ScoredSpan(spans[place], scores[place]) for place in order]

    def _find_answers(self, text: str, sentences: Sequence[_Sentence]) -> list[Span]:
        spans = [sentence.span for sentence in sentences]
        values = [sentence.own_score + self._value_derivations(text, sentence.span) for sentence in sentences]
        return find_answer_sentences(self._question, text, spans, values)

    def _value_derivations(self, text: str, span: Span) -> float:
        """Return the weighted share of the question's terms of which a sentence has a derivation, but not the term.

        "Apprenticed" is a derivation of "apprenticeship": the stem of one begins with that of the other.
        """
        terms, _ = extract_terms_and_codes(" ".join(span.of(text).split()), self._language)
        missing = [(term, weight) for term, weight in self._weights.items() if term not in terms]
        stems = [term for term in terms if len(term) >= _MIN_STEM]
        derived = (
            weight
            for term, weight in missing
            if len(term) >= _MIN_STEM and any(term.startswith(stem) or stem.startswith(term) for stem in stems)
        )
        return _DERIVATION_WEIGHT * sum(derived)

    def _score_sentences(self, number: int, hit: ExcerptSource) -> list[_Sentence]:
        return [
            _Sentence(
                number,
                span,
                count_words(span.of(hit.text)),
                score + _RELEVANCE_WEIGHT * hit.relevance,
                own_score,
                fits=score >= _MIN_SCORE,
            )
            for span, score, own_score in zip(*self._score_spans(hit), strict=True)
        ]

    def _score_spans(self, hit: ExcerptSource) -> tuple[list[Span], list[float], list[float]]:
        """Return the sentences of a hit except headings, in text order, their scores and their own scores.

        Scores do not include the relevance of the hit.
        """
        sentences = _join_code(hit.text, [_trim_ellipsis(hit.text, span) for span in self._split_sentences(hit.text)])
        sentences = join_halves(hit.text, sentences)
        spans = [
            span
            for span in sentences
            if (span.of(hit.text).strip(_HEADING_MARKS) not in hit.head and is_statement(span.of(hit.text)))
            or self._find_clauses(span.of(hit.text))
        ]
        spans = join_labels(hit.text, spans or sentences) or [Span(0, len(hit.text))]
        coverage, similarity = np.array([self._value_sentence(hit, span) for span in spans]).T
        values = coverage + similarity
        own_scores: list[float] = (values - similarity.min()).tolist()
        scores: list[float] = np.convolve(values, [_FOLLOWING_WEIGHT, 1, _PRECEDING_WEIGHT])[1:-1].tolist()
        for place in range(len(spans)):
            for item in self._find_continuations(hit.text, spans[place:]):
                for each in (scores, own_scores):
                    each[place + item] = max(each[place + item], _LIST_WEIGHT * each[place])
        return spans, scores, own_scores

    def _find_continuations(self, text: str, sentences: Sequence[Span]) -> Iterable[int]:
        """Return the indices of the sentences that belong to the first: items of its list, or the rest of its clause.

        Only the rest of a clause that the question names counts.
        """
        first = sentences[0].of(text)
        if first.rstrip(_HEADING_MARKS).endswith(":"):
            return _find_list_items(text, sentences)
        if not (clauses := self._find_clauses(first)):
            return ()
        return takewhile(
            lambda index: not begins_next_clause(sentences[index].of(text), clauses[0]), range(1, len(sentences))
        )

    def _find_clauses(self, sentence: str) -> list[str]:
        """Return the search terms of the clause numbers with which a sentence begins and that the question names."""
        return [term for term in find_clause_numbers(sentence) if term in self._clauses] if self._clauses else []

    def _value_sentence(self, hit: ExcerptSource, span: Span) -> tuple[float, float]:
        """Return the share of the question's terms in a sentence, and the weighted similarity of its hyperedge."""
        terms, codes = extract_terms_and_codes(" ".join(span.of(hit.text).split()), self._language)
        coverage = sum(self._weights.get(term, 0.0) for term in {*terms, *codes})
        overlapping = (edge for edge in hit.hyperedges if edge.span.start < span.end and span.start < edge.span.end)
        return coverage, _UNIT_WEIGHT * max((edge.similarity for edge in overlapping), default=0.0)

    @cached_property
    def _clauses(self) -> frozenset[str]:
        return frozenset(find_clause_references(self._question))

    @cached_property
    def _language(self) -> str:
        return self._snapshot.infer_language(self._question)

    @cached_property
    def _weights(self) -> dict[str, float]:
        """The weight of each question term: its inverse document frequency, scaled so that all sum to 1."""
        terms = extract_search_terms(self._question, self._language)
        counts = np.maximum(1, self._snapshot.document_frequencies(terms))
        rarity = np.log(1 + self._snapshot.passage_count / counts)
        return dict(zip(terms, (rarity / rarity.sum()).tolist(), strict=True))


def _fill_budget(sentences: Sequence[_Sentence], max_words: int, first_words: int, *, fills: bool) -> list[_Sentence]:
    """Return the sentences that are displayed: at least one per hit, ``max_words`` words in all.

    Args:
        sentences: Sentences of all hits, best first.
        max_words: Number of words in all.
        first_words: Number of words that each hit has before the hits compete for the rest.
        fills: Whether sentences that hardly fit the question fill the rest.
    """
    words: Counter[int] = Counter()
    selected: list[_Sentence] = []
    for sentence in sentences:
        if not words[sentence.hit] or (sentence.fits and words[sentence.hit] + sentence.words <= first_words):
            selected.append(sentence)
            words[sentence.hit] += sentence.words
    rest = max_words - words.total()
    for sentence in sentences:
        if sentence.words <= rest and (sentence.fits or fills) and sentence not in selected:
            selected.append(sentence)
            rest -= sentence.words
    return selected


def _summarize(sentences: Sequence[_Sentence], answers: Sequence[Span]) -> list[_Sentence]:
    """Return the sentences of the summaries: the best answer of each hit, and others that fit the question best.

    Args:
        sentences: Sentences of all hits, best first.
        answers: Span of the sentence of each hit that most likely answers the question.
    """
    by_answer = sorted(sentences, key=lambda sentence: sentence.span != answers[sentence.hit])
    selected: list[_Sentence] = []
    for start in range(0, len(answers), _SUMMARY_GROUP):
        hits = range(start, min(start + _SUMMARY_GROUP, len(answers)))
        group = [sentence for sentence in by_answer if sentence.hit in hits]
        selected += _fill_budget(group, _SUMMARY_WORDS * len(hits), _FIRST_SUMMARY_WORDS, fills=True)
    return selected


def _group_by_hit(sentences: Sequence[_Sentence], hit_count: int) -> list[list[_Sentence]]:
    by_hit: list[list[_Sentence]] = [[] for _ in range(hit_count)]
    for sentence in sentences:
        by_hit[sentence.hit].append(sentence)
    return by_hit


def _list_spans(sentences: Sequence[_Sentence]) -> list[Span]:
    return sorted((sentence.span for sentence in sentences), key=lambda span: span.start)


def _find_cited_span(sentences: Sequence[_Sentence]) -> Span:
    """Return the span from the first to the last sentence that fits nearly as well by itself as the best."""
    limit = _CITED_SHARE * max(sentence.own_score for sentence in sentences)
    spans = _list_spans([sentence for sentence in sentences if sentence.own_score >= limit])
    return Span(spans[0].start, spans[-1].end)


def _join_code(text: str, sentences: Sequence[Span]) -> list[Span]:
    """Return the spans of sentences of a text, where each short code block counts as a single sentence.

    A code block is short if it has at most :data:`_MAX_CODE_WORDS` words.
    """
    blocks = [block for block in find_code_blocks(text) if count_words(block.of(text)) <= _MAX_CODE_WORDS]
    outside = [
        span for span in sentences if not any(block.start < span.end and span.start < block.end for block in blocks)
    ]
    return sorted([*outside, *blocks], key=lambda span: span.start)


def join_labels(text: str, sentences: Sequence[Span]) -> list[Span]:
    """Return the spans of sentences of a text, where each label, such as a term, forms one span with its definition."""
    joined: list[Span] = []
    start: int | None = None
    for sentence, is_label in zip(sentences, find_labels(text, sentences), strict=True):
        start = sentence.start if start is None else start
        if not is_label:
            joined.append(Span(start, sentence.end))
            start = None
    return joined


def _find_list_items(text: str, sentences: Sequence[Span]) -> Iterator[int]:
    """Yield the indices of the items of the list that the first of ``sentences``, spans of a text, introduces."""
    for index, (previous, span) in enumerate(pairwise(sentences), 1):
        if "\n" in text[previous.end : span.start]:  # other sentences continue an item
            if not _ITEM.match(span.of(text)) and count_words(span.of(text)) > _MAX_ITEM_WORDS:
                return
            yield index


def _trim_ellipsis(text: str, span: Span) -> Span:
    """Return the span without an ellipsis at its start and end."""
    sentence = span.of(text)
    trimmed = Span(span.end - len(sentence.lstrip(PART_SEPARATOR)), span.start + len(sentence.rstrip(PART_SEPARATOR)))
    return trimmed if trimmed.start < trimmed.end else span


def join_adjacent(text: str, spans: Sequence[Span]) -> list[Span]:
    """Join two ``spans`` of a text if at most :data:`_MAX_GAP_WORDS` words lie between them; return all spans."""
    joined: list[Span] = []
    for span in spans:
        if joined and count_words(text[joined[-1].end : span.start]) <= _MAX_GAP_WORDS:
            joined[-1] = Span(joined[-1].start, span.end)
        else:
            joined.append(span)
    return joined


def locate_excerpts(evidence: Evidence, snapshot: Snapshot) -> Evidence:
    """Return the evidence with page, sheet and slide numbers added to hits and excerpts."""
    paginated = [
        hit.passage.id
        for hit in evidence.passages
        if hit.excerpt and (hit.passage.page or hit.passage.slide or hit.passage.sheet)
    ]
    rows = snapshot.find_rows("passage", paginated)
    paginations = dict(zip(rows, snapshot.get(Pagination, list(rows.values())), strict=True))
    hits = (_locate_excerpt(hit, paginations.get(hit.passage.id)) for hit in evidence.passages)
    return replace(evidence, passages=tuple(hits))


def _locate_excerpt(hit: ScoredPassage, pagination: Pagination | None) -> ScoredPassage:
    excerpt = hit.excerpt
    if excerpt is None or pagination is None:
        return hit
    cited = excerpt.cited or excerpt
    first, start, last = map(pagination.find, (hit.passage.start, cited.start, cited.end - 1))
    located = replace(excerpt, page=start.page, end_page=last.page, sheet=start.sheet, slide=start.slide)
    passage = replace(hit.passage, page=first.page, sheet=first.sheet, slide=first.slide)
    return replace(hit, passage=passage, excerpt=located)
