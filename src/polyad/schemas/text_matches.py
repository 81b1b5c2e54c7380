"""JSON of exact searches: lines that match a pattern."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polyad.model import TextMatch, TextMatches
from polyad.schemas.objects import JsonObject


class TextMatchesSchema(JsonObject):
    """Output of ``polyad grep --json``: matching lines of one page, with numbers of all that match.

    ``counts`` has the number of matching lines by document, of the documents of the page. ``is_complete`` is false if
    the time limit ended the search.
    """

    pattern: str
    matches: Sequence[TextMatch]
    total: int
    documents: int
    counts: Mapping[str, int]
    next_cursor: int | None
    is_complete: bool


def text_matches_json(result: TextMatches, *, all_counts: bool = False) -> TextMatchesSchema:
    """Return the result of an exact search as JSON, with counts of all matching documents if ``all_counts``."""
    ids = result.counts if all_counts else dict.fromkeys(match.document_id for match in result.matches)
    return TextMatchesSchema.from_object(
        result, documents=len(result.counts), counts={id: result.counts[id] for id in ids}
    )
