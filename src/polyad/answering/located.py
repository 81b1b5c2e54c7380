"""Where the cited passages stand, so that a reader can open them."""

from __future__ import annotations

from dataclasses import replace

from polyad.errors import NotFoundError
from polyad.model import Answer, Citation, Origin, Passage
from polyad.storage import LookUps

_Place = tuple[Passage, Origin]


def located(answer: Answer, store: LookUps) -> Answer:
    """The answer with the title and the place of every passage it cites, also of those that facts brought in."""
    places = {hit.passage.id: (hit.passage, hit.origin) for hit in answer.evidence.passages}
    for citation in answer.citations:
        if citation.passage_id not in places and (place := _place(citation.passage_id, store)):
            places[citation.passage_id] = place
    citations = (_located(citation, places.get(citation.passage_id)) for citation in answer.citations)
    return replace(answer, citations=tuple(citations))


def _place(passage_id: str, store: LookUps) -> _Place | None:
    """The passage, and what its document is; None where it has been removed meanwhile."""
    try:
        (passage,) = store.passages([passage_id])
        (origin,) = store.origins([passage.document_id])
    except NotFoundError:
        return None
    return passage, origin


def _located(citation: Citation, place: _Place | None) -> Citation:
    if place is None:
        return citation
    passage, origin = place
    return replace(citation, title=passage.title, location=passage.location, origin=origin)
