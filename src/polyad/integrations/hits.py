"""What the retrievers of all frameworks share: the metadata of a hit."""

from __future__ import annotations

from typing import Any

from polyad.model import ScoredPassage
from polyad.schemas.places import describe_hit
from polyad.text.page_labels import find_page_label
from polyad.text.pictures import select_labels

CITATION = "citation"
"""Key of the metadata with the document, page and heading of a hit, as people cite it."""


def build_metadata(hit: ScoredPassage) -> dict[str, Any]:
    """Return the metadata of a search hit (source, page, relevance and so on) as a JSON object.

    The result has the metadata of the hit's document and the keys below. These replace metadata keys of the same name,
    because a document must not be able to state another source for its text.
    """
    passage, location, origin = hit.passage, hit.location, hit.origin
    stated = select_labels(origin.metadata, f"{location.heading}\n{passage.text}")
    metadata = {key: list(value) if isinstance(value, tuple) else value for key, value in stated.items()}
    return {
        **metadata,
        CITATION: describe_hit(hit),
        "document_id": passage.document_id,
        "passage_id": passage.id,
        "title": passage.title,
        "source": origin.source or origin.url or passage.document_id,
        "url": origin.url,
        "page": location.page,
        "page_label": find_page_label(origin.metadata, location.page),
        "heading": location.heading,
        "sheet": location.sheet,
        "slide": location.slide,
        "start": location.start,
        "end": location.end,
        "score": hit.score,
        "relevance": hit.relevance,
        "reason": hit.reason,
        "retracted": [fact.text for fact in hit.retracted],
        "version": hit.version.describe() if hit.version else "",
    }
