"""JSON of exact searches: lines that match a pattern."""

from __future__ import annotations

from typing_extensions import TypedDict

from polyad.model import TextMatch, TextMatches
from polyad.schemas.filling import fields_of, fill_schema


@fields_of(TextMatch)
class TextMatchSchema(TypedDict):
    """A line of a document that matches, with its place; ``start`` and ``end`` are characters of the document."""


class TextMatchesSchema(TypedDict):
    """Output of ``polyad grep --json``: matching lines of one page, with numbers of all that match.

    ``counts`` has the number of matching lines by document, of the documents of the page. ``is_complete`` is false if
    the time limit ended the search.
    """

    pattern: str
    matches: list[TextMatchSchema]
    total: int
    documents: int
    counts: dict[str, int]
    next_cursor: int | None
    is_complete: bool


def text_matches_json(result: TextMatches, *, all_counts: bool = False) -> TextMatchesSchema:
    """Return the result of an exact search as JSON, with counts of all matching documents if ``all_counts``."""
    ids = result.counts if all_counts else dict.fromkeys(match.document_id for match in result.matches)
    return fill_schema(
        TextMatchesSchema, result, documents=len(result.counts), counts={id: result.counts[id] for id in ids}
    )
