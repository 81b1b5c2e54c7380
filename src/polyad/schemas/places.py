"""Descriptions of locations for people, and excerpts of passages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from polyad.model import Citation, Evidence, Excerpt, Location, Origin, ScoredPassage
from polyad.retrieval.hits import join_spans
from polyad.text.page_labels import find_page_label
from polyad.text.sentences import find_code_blocks, find_lines, is_fence

_HEADING_MARKS = re.compile(r"^#{1,6}[ \t]+", re.MULTILINE)

_QUOTE_MARKS = re.compile(r"^(?:[ \t]*>)+")
"""Marks of a Markdown quotation at the beginning of a line."""

_BETWEEN = " / "


def describe_hit(hit: ScoredPassage, full: bool = False) -> str:
    """Return the location of a hit for people: ``R Data Import/Export, p. 36, "9 Reading spreadsheets"``.

    Args:
        hit: The hit.
        full: Whether to locate the whole passage in place of its excerpt.
    """
    passage, origin = hit.passage, hit.origin
    title = origin.title or passage.title or passage.document_id
    if full:
        return describe_location(title, passage.location, origin)
    return describe_location(title, hit.location, origin, hit.excerpt)


def describe_location(title: str, location: Location, origin: Origin, excerpt: Excerpt | None = None) -> str:
    """Return a location for people: the title of the document, then page, slide, sheet and heading.

    Headings that the title contains are left out.

    A page has its printed label and, if that is another, its number in the file: ``p. 10 (16th)``. An excerpt may end
    on a later page than the location begins on: ``pp. 10-11 (16th-17th)``.
    """
    parts = [title]
    if location.page is not None:
        last = max(location.page, excerpt.end_page or 0) if excerpt else location.page
        parts.append(_format_pages(sorted({location.page, last}), origin))
    if location.slide is not None:
        parts.append(f"slide {location.slide}")
    if location.sheet:
        parts.append(f"sheet {location.sheet}")
    if heading := _remove_title(title, location.heading):
        parts.append(f'"{heading}"')
    return ", ".join(parts)


def describe_citation(citation: Citation, evidence: Evidence) -> str:
    """Return the location of a cited passage for people, with the pages of its excerpt in ``evidence``."""
    origin, excerpt = citation.origin, map_excerpts(evidence).get(citation.passage_id)
    title = origin.title or citation.title or citation.document_id
    return describe_location(title, citation.location, origin, excerpt)


def _format_pages(pages: Sequence[int], origin: Origin) -> str:
    """Return the printed labels of one or two pages as text, such as "p. iv" or "pp. 3-4".

    Numbers in the file follow if they differ.
    """
    labels = [find_page_label(origin.metadata, page) or str(page) for page in pages]
    text = f"{'p' * len(pages)}. {'-'.join(labels)}"
    return text if labels == [*map(str, pages)] else f"{text} ({'-'.join(map(_format_ordinal, pages))})"


def _format_ordinal(number: int) -> str:
    """Return a number as an English ordinal: "1st", "2nd".

    >>> [_format_ordinal(number) for number in (1, 2, 3, 4, 11, 112, 123)]
    ['1st', '2nd', '3rd', '4th', '11th', '112th', '123rd']
    """
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _remove_title(title: str, heading: str) -> str:
    """Return a heading path such as ``Handbook / Pumps`` without the document's title at its start.

    >>> _remove_title("Handbook", "Handbook / Pumps"), _remove_title("Pumps", "Pumps"), _remove_title("", "Pumps")
    ('Pumps', '', 'Pumps')
    """
    if heading == title:
        return ""
    return heading.removeprefix(f"{title}{_BETWEEN}")


def get_file_name(origin: Origin) -> str:
    """Return the name of the file that a document was read from, or else its URL; empty without both."""
    return PurePath(origin.source).name or origin.url


def describe_copies(hit: ScoredPassage) -> Iterator[str]:
    """Yield a description for people of the location of each copy of a hit's text in another document."""
    for origin, location in hit.copies:
        place = describe_location(origin.title, location, origin) if origin.title else ""
        yield ", ".join(filter(None, (place, get_file_name(origin)))) or "another document"


def get_excerpt(hit: ScoredPassage) -> str:
    """Return the text of a hit's excerpt, or the text of its passage if it has no excerpt."""
    return hit.excerpt.text if hit.excerpt else hit.passage.text


def summarize_hit(hit: ScoredPassage) -> str:
    """Return the sentences of a hit that fit the question best, for people; a hit without a summary its excerpt."""
    return join_spans(hit.passage.text, hit.summary) if hit.summary else get_excerpt(hit)


def map_excerpts(evidence: Evidence) -> dict[str, Excerpt]:
    """Return the excerpt of each hit, keyed by passage id."""
    return {hit.passage.id: hit.excerpt for hit in evidence.passages if hit.excerpt}


def split_lines(hit: ScoredPassage, text: str) -> Iterator[str]:
    """Yield the lines of a hit's excerpt, or of its whole text, for people: lines that were wrapped are joined.

    Lines of code, rows of tables and items of lists remain lines, with their indentation; the fences of code are
    omitted. The whole text of the hit determines which lines these are, since an excerpt may begin in the middle of a
    line or of a code block.
    """
    whole = hit.passage.text
    beginnings = {_get_first_words(whole[start:]) for start in find_lines(whole)}
    code = {_get_first_words(line) for block in find_code_blocks(whole) for line in block.of(whole).splitlines()}
    joined = ""
    is_complete = False
    for line in text.splitlines():
        if is_fence(line):
            is_complete = True
            continue
        words = _get_first_words(line)
        if joined and (is_complete or not words or words in beginnings or words in code):
            yield joined
            joined = ""
        is_complete = words in code
        if is_complete or not joined:
            content = (line if is_complete else _HEADING_MARKS.sub("", line)).rstrip().expandtabs()
            indent = len(content) - len(content.lstrip())
            joined = content if is_complete else " " * indent + " ".join(content.split())
        else:
            joined += " " + " ".join(_QUOTE_MARKS.sub("", line).split())
    if joined:
        yield joined


def _get_first_words(line: str) -> tuple[str, ...]:
    """Return up to two words at the beginning of a line, by which the line is recognised in another text."""
    return tuple(line.partition("\n")[0].split(maxsplit=2)[:2])


def shorten(text: str, limit: int) -> str:
    """Return a text as one line of at most about ``limit`` characters, cut between words, without heading marks."""
    words = " ".join(_HEADING_MARKS.sub("", text).split())
    return words if len(words) <= limit else f"{words[:limit].rsplit(' ', 1)[0]} ..."
