"""What one hit of a search is made of: passages that continue one another, or parts of one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise

from polyad.model import Location, Origin, Passage, ScoredPassage, Span
from polyad.retrieval.copies import Wording
from polyad.retrieval.nearest import Part
from polyad.text.counting import word_spans
from polyad.text.paragraphs import HEADING_SEPARATOR, join_headings

BETWEEN_PARTS = " … "
"""Where something of a passage is left out."""

_WIDEST_GAP = 40
"""Characters between passages that continue one another; the splitter leaves nothing out but white space."""


@dataclass(slots=True)
class Hit:
    """A hit that may still grow.

    Attributes:
        best: The passage that came first, with its score.
        passages: That one and what continues it, in the order of the document.
        parts: Spans of the only passage, where the hit is no more than these; None where all of it is shown.
        wordings: What the passages say.
        copies: Passages that say the same, and their documents.
    """

    best: ScoredPassage
    passages: list[Passage]
    parts: list[Span] | None = None
    wordings: list[Wording] = field(default_factory=list)
    copies: list[tuple[Passage, Origin]] = field(default_factory=list)

    @property
    def id(self) -> str:
        """The id of its best passage."""
        return self.best.passage.id

    def is_beside(self, passage: Passage) -> bool:
        """Whether a passage continues this hit, or this hit the passage."""
        whole = self.parts is None
        return whole and (_continues(self.passages[-1], passage) or _continues(passage, self.passages[0]))

    def take_in(self, other: Hit) -> None:
        """Make another hit, which continues this one or is continued by it, part of this one."""
        self.passages = sorted([*self.passages, *other.passages], key=lambda passage: passage.start)
        self.wordings += other.wordings
        self.copies += other.copies

    def shown(self) -> list[Span]:
        """The spans of the document that are shown."""
        first = self.passages[0].start
        if self.parts is None:
            return [Span(first, self.passages[-1].end)]
        return [Span(first + part.start, first + part.end) for part in self.parts]

    def scored(self) -> ScoredPassage:
        """The hit, whole, with the score and the id of its best passage."""
        highlight = self.best.highlight and self.moved(self.id, self.best.highlight)
        return replace(self.best, passage=self._passage(), highlight=highlight, copies=self._places_of_copies())

    def _places_of_copies(self) -> tuple[tuple[Origin, Location], ...]:
        """Where its text stands too; copies that follow one another are one."""
        found: list[tuple[Passage, Origin]] = []
        for passage, origin in sorted(self.copies, key=lambda copy: (copy[0].document_id, copy[0].start)):
            if found and _continues(found[-1][0], passage):
                found[-1] = merged([found[-1][0], passage], passage), origin
            else:
                found.append((passage, origin))
        return tuple((origin, passage.location) for passage, origin in found)

    def _passage(self) -> Passage:
        passage = self.best.passage
        if self.parts is not None:
            text = BETWEEN_PARTS.join(part.of(passage.text) for part in self.parts)
            start, end = self.parts[0].start, self.parts[-1].end
            return replace(passage, text=text, start=passage.start + start, end=passage.start + end)
        return merged(self.passages, passage) if len(self.passages) > 1 else passage

    def moved(self, passage_id: str, span: Span) -> Span | None:
        """Where in the hit's text a span of one of its passages is; None where not all of it is shown."""
        if self.parts is None:
            passage = next(passage for passage in self.passages if passage.id == passage_id)
            offset = passage.start - self.passages[0].start
            return Span(span.start + offset, span.end + offset)
        before = 0
        for part in self.parts:
            if part.start <= span.start and span.end <= part.end:
                return Span(before + span.start - part.start, before + span.end - part.start)
            before += part.end - part.start + len(BETWEEN_PARTS)
        return None

    def parts_shown(self, parts_of: Mapping[str, Sequence[Part]]) -> Iterator[Part]:
        """Those parts of its passages, given by their ids, that are shown, where they are in the hit's text."""
        for passage in self.passages:
            for part in parts_of[passage.id]:
                span = self.moved(passage.id, part.span)
                if span:
                    yield Part(span, part.nearness)


def merged(passages: Sequence[Passage], best: Passage) -> Passage:
    """Passages that continue one another as one, in the name of the best; it is where the first of them begins."""
    first = passages[0]
    texts = [first.text]
    for before, passage in pairwise(passages):
        gap = passage.start - before.end
        texts += [_blank(gap), passage.text[max(0, -gap) :]]
    heading = join_headings(passage.heading.split(HEADING_SEPARATOR) for passage in passages if passage.heading)
    return replace(best, text="".join(texts), start=first.start, end=passages[-1].end, page=first.page, heading=heading)


def _blank(length: int) -> str:
    """White space as it stands between passages: between sentences, or between paragraphs."""
    return " " * length if length < 2 else "\n\n".ljust(length)


def _continues(before: Passage, after: Passage) -> bool:
    """Whether ``after`` is the next passage of the same section, sheet or slide, and no text is between the two."""
    gap = after.start - before.end
    return (
        (before.document_id, before.title, before.sheet, before.slide)
        == (after.document_id, after.title, after.sheet, after.slide)
        and _position(after) == _position(before) + 1
        and all(len(passage.text) == passage.end - passage.start for passage in (before, after))
        and before.start < after.start
        and before.end < after.end
        and gap <= _WIDEST_GAP
        and (gap >= 0 or before.text[gap:] == after.text[:-gap])
    )


def _position(passage: Passage) -> int:
    """The number of a passage in its document, as its id tells; one that none follows where it does not."""
    number = passage.id.rpartition("#")[2]
    return int(number) if number.isdecimal() else -2


def overlap(passage: Passage, spans: Iterable[Span]) -> list[Span]:
    """The parts of a passage's text that some spans of its document cover."""
    found = []
    for span in spans:
        start, end = max(span.start, passage.start), min(span.end, passage.end)
        if start < end:
            found.append(Span(start - passage.start, end - passage.start))
    return found


def abridged(text: str, parts: Iterable[Part], room: int, hidden: Iterable[Span] = ()) -> list[Span]:
    """What to show of a text in so many words: its best parts, as many as fit, in their order.

    Args:
        text: Of a passage.
        parts: Of the text, best first; what does not fit is passed over.
        room: Words that may be shown.
        hidden: Spans that are shown elsewhere; they are left out, and cost nothing.

    Returns:
        Spans that do not touch; none where no part fits.
    """
    words = word_spans(text)
    starts = [word.start for word in words]
    is_free = [True] * len(words)

    def places(span: Span) -> range:
        return range(bisect_left(starts, span.start), bisect_left(starts, span.end))

    for span in hidden:
        for place in places(span):
            is_free[place] = False
    taken: list[int] = []
    for part in parts:
        own = [place for place in places(part.span) if is_free[place]]
        if len(own) <= room:
            room -= len(own)
            taken += own
            for place in own:
                is_free[place] = False
    return _runs(words, sorted(taken))


def _runs(words: Sequence[Span], places: Sequence[int]) -> list[Span]:
    """The spans of words that follow one another, from the numbers of the words."""
    spans = []
    for _, group in groupby(enumerate(places), key=lambda pair: pair[1] - pair[0]):
        run = [place for _, place in group]
        spans.append(Span(words[run[0]].start, words[run[-1]].end))
    return spans


def beginning(text: str, part: Part, room: int) -> list[Span]:
    """The first words of a part, as many as there is room for."""
    words = word_spans(part.span.of(text))[:room]
    return [Span(part.span.start + words[0].start, part.span.start + words[-1].end)] if words else []
