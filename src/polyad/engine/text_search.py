"""Exact search: the lines of documents that match a regular expression or contain a phrase.

Lines are those of the whole text of a document, so that a match may begin in one passage and end in the next. The word
index selects documents that contain the literal words of the pattern; their texts are read from the store and matched,
many documents in one block of memory, since a call for each document would take longer than the search.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import NamedTuple

import numpy as np

from polyad.errors import SettingError
from polyad.model import IntArray, Pagination, Passage, TextMatch, TextMatches
from polyad.protocols.store import DocumentText, ReadTransaction
from polyad.snapshot.mapped_snapshot import MappedSnapshot
from polyad.text.patterns import LineMatch, TextPattern
from polyad.text.words import list_possible_terms

_BATCH = 1000
"""Passages, roughly, of the documents that are read and searched at a time."""

_SEPARATOR = b"\n\0\n"
"""Bytes between documents in a block: a line of its own, which no text contains."""

_MAX_BLOCK = 1 << 20
_MAX_BLOCKS = 128
"""Bytes of the largest block that is cached, and the number of blocks: the texts of some 100,000 passages."""

_MAX_LINE = 300
"""Characters of a line that a match displays; of a longer line, those around the match."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSearchOptions:
    """The page of results of an exact search, and its limits.

    Attributes:
        limit: Maximum number of matching lines to return.
        cursor: Number of matching lines to skip: that of the result before.
        context: Number of lines to return before and after each matching line.
        seconds: Time after which the search ends with the matches so far.

    Raises:
        SettingError: A value is out of range.
    """

    limit: int = 20
    cursor: int = 0
    context: int = 0
    seconds: float = 10.0

    def __post_init__(self) -> None:
        for name, lowest, highest in (("limit", 1, 10_000), ("cursor", 0, 10**9), ("context", 0, 100)):
            if not lowest <= getattr(self, name) <= highest:
                raise SettingError(name, getattr(self, name), f"{lowest:,} to {highest:,}")


class TextBlock(NamedTuple):
    """The texts of some documents in one piece of memory.

    Attributes:
        ids: Ids of the documents.
        starts: Offset at which each text begins, and the end of the last with its separator.
        data: The texts as UTF-8, joined by separators.
    """

    ids: list[str]
    starts: list[int]
    data: bytes


class TextBlockCache:
    """A cache of the texts that recent searches read, of one version of an index, for several threads.

    Reading takes most of the time of a search: of 100,000 passages 0.4 s, where matching takes 0.01 to 0.7 s.
    """

    def __init__(self) -> None:
        self._version = -1
        self._blocks: dict[bytes, TextBlock] = {}

    def get_block(self, version: int, passages: IntArray, transaction: ReadTransaction) -> TextBlock:
        """Return the texts of the documents that begin with ``passages``, which are primary keys of this version."""
        if version != self._version:
            self._version, self._blocks = version, {}
        blocks, key = self._blocks, passages.tobytes()
        if key not in blocks:
            documents = transaction.get(DocumentText, passages.tolist()).values()
            texts = [document.text.encode() for document in documents]
            starts = [0, *accumulate(len(text) + len(_SEPARATOR) for text in texts)]
            block = TextBlock([document.id for document in documents], starts, _SEPARATOR.join(texts))
            if len(block.data) > _MAX_BLOCK or len(blocks) >= _MAX_BLOCKS:
                return block
            blocks[key] = block
        return blocks[key]


class TextSearcher:
    """Searches the texts of the documents of a snapshot for one pattern.

    Args:
        snapshot: The index, or the part of it that a filter selects.
        transaction: An open read transaction of the version of the snapshot.
        pattern: The pattern.
        cache: Texts that earlier searches of the index read.
    """

    def __init__(
        self, snapshot: MappedSnapshot, transaction: ReadTransaction, pattern: TextPattern, cache: TextBlockCache
    ) -> None:
        self._cache = cache
        self._snapshot = snapshot
        self._transaction = transaction
        self._pattern = pattern

    def search(self, options: TextSearchOptions) -> TextMatches:
        """Return matching lines, ordered by document id and line, and their number in each document.

        Raises:
            StaleSnapshotError: A document was deleted since the version of the snapshot.
        """
        counts: dict[str, int] = {}
        rows: dict[str, int] = {}
        is_complete = True
        deadline = time.monotonic() + options.seconds
        try:
            for row, id in self._find_matching_lines(deadline):
                counts[id] = counts.get(id, 0) + 1
                rows[id] = row
        except TimeoutError:
            is_complete = False
        ordered = {id: counts[id] for id in sorted(counts)}
        total, last = sum(counts.values()), options.cursor + options.limit
        matches: list[TextMatch] = []
        try:
            for id, first, number in _select_documents(ordered, options.cursor, last):
                places = slice(first, first + number)
                matches.extend(self._build_matches(rows[id], places, options.context, deadline + options.seconds))
        except TimeoutError:
            is_complete = False
        next_cursor = last if last < total else None
        return TextMatches(self._pattern.text, tuple(matches), total, ordered, next_cursor, is_complete)

    def _find_matching_lines(self, deadline: float) -> Iterator[tuple[int, str]]:
        """Yield (row of the first passage, id) of a document for each line that matches."""
        for rows in self._split_candidates():
            block = self._cache.get_block(
                self._snapshot.version, self._snapshot.passages.pks.take(rows), self._transaction
            )
            for line in self._pattern.find_lines(block.data, deadline):
                place = bisect_right(block.starts, line.start) - 1
                if line.start < max(block.starts[place] + 1, block.starts[place + 1] - len(_SEPARATOR)):  # no separator
                    yield int(rows[place]), block.ids[place]

    def _split_candidates(self) -> list[IntArray]:
        """Return the first passages of the documents that may match, in batches of rows."""
        passages = self._snapshot.passages
        rows = self._snapshot.graph.live_passages.to_rows()
        documents, places, sizes = np.unique(passages.document.take(rows), return_index=True, return_counts=True)
        may_match = np.ones(len(documents), dtype=bool)
        for word in self._pattern.list_words():
            containing = passages.terms.find_passages(list_possible_terms(word))
            may_match &= np.isin(documents, passages.document.take(containing))
        rows, batches = rows[places[may_match]], sizes[may_match].cumsum() // _BATCH
        return np.split(rows, np.flatnonzero(np.diff(batches)) + 1) if len(rows) else []

    def _build_matches(self, row: int, places: slice, context: int, deadline: float) -> Iterator[TextMatch]:
        """Yield the matching lines at ``places`` of the document that begins with the passage ``row``.

        Raises:
            TimeoutError: The deadline has passed.
        """
        [document] = self._transaction.get(
            DocumentText, self._snapshot.passages.pks.take(np.array([row])).tolist()
        ).values()
        [pagination] = self._snapshot.get(Pagination, [row])
        _, [end] = self._snapshot.document_ranges(np.array([row]))
        data = document.text.encode()
        start = number = before = 0  # characters and lines before the match, counted from the match before
        for line in islice(self._pattern.find_lines(data, deadline), places.start, places.stop):
            start += len(data[before : line.match_start].decode())
            number += data.count(b"\n", before, line.match_start)
            before = line.match_start
            passage = self._find_passage(range(row, int(end)), start)
            yield TextMatch(
                document_id=document.id,
                passage_id=passage.id,
                title=passage.title,
                page=pagination.find(start).page,
                heading=passage.heading,
                line=number - data.count(b"\n", line.start, line.match_start) + 1,
                text=_shorten_line(data, line),
                start=start,
                end=start + len(data[line.match_start : line.match_end].decode()),
                before=_decode_lines(_list_lines_before(data, line.start, context)),
                after=_decode_lines(_list_lines_after(data, line.end + 1, context)),
            )

    def _find_passage(self, rows: Sequence[int], offset: int) -> Passage:
        """Return the passage of a document in which the character at ``offset`` of its text lies."""
        place = bisect_right(rows, offset, key=lambda row: self._snapshot.get(Passage, [row])[0].start)
        return self._snapshot.get(Passage, [rows[max(0, place - 1)]])[0]


def _select_documents(counts: Mapping[str, int], first: int, last: int) -> Iterator[tuple[str, int, int]]:
    """Yield (document id, first line, number of lines) of the documents with the lines ``first`` to ``last``."""
    start = 0
    for id, count in counts.items():
        skipped = max(0, first - start)
        number = min(count, last - start) - skipped
        if number > 0:
            yield id, skipped, number
        start += count


def _shorten_line(data: bytes, line: LineMatch) -> str:
    """Return the line of a match, or the part of a long line around the match."""
    text = data[line.start : line.end].decode()
    place = len(data[line.start : line.match_start].decode())
    start = max(0, min(place - _MAX_LINE // 2, len(text) - _MAX_LINE))
    return f"{'…' if start else ''}{text[start : start + _MAX_LINE]}{'…' if start + _MAX_LINE < len(text) else ''}"


def _list_lines_before(data: bytes, end: int, count: int) -> list[bytes]:
    """Return up to ``count`` lines before the line that begins at ``end``."""
    lines: list[bytes] = []
    while end and len(lines) < count:
        start = data.rfind(b"\n", 0, end - 1) + 1
        lines.insert(0, data[start : end - 1])
        end = start
    return lines


def _list_lines_after(data: bytes, start: int, count: int) -> list[bytes]:
    """Return up to ``count`` lines from the line that begins at ``start`` on."""
    lines: list[bytes] = []
    while start < len(data) and len(lines) < count:
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        lines.append(data[start:end])
        start = end + 1
    return lines


def _decode_lines(lines: Sequence[bytes]) -> tuple[str, ...]:
    return tuple(line.decode()[:_MAX_LINE] for line in lines)
