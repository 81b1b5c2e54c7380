"""Hyperedges of facts that were given as data: one for each fact, an incidence for each of its arguments."""

from __future__ import annotations

from collections.abc import Sequence

from polyad.errors import ReadError
from polyad.indexing.builder import Built, DraftHyperedge, Tell, hyperedge_id, untold
from polyad.model import Hyperedge, HyperedgeKind, Incidence, Passage, Usage
from polyad.text.keys import entity_key


class TupleBuilder:
    """Keeps each fact whole: who took part, in which role, in one record (HyperRAG, definition 2.1 and appendix A).

    Pairs of entities would not do: from "Alice gave Bob the book and Carol the pen" they leave open who got what.

    Roles are the user's own words and stay as they are. An entity in two roles of a fact is two incidences; in one role
    twice it is one. An argument that names no entity, such as the number 42, gives none and is only in the text.
    """

    @property
    def name(self) -> str:
        """The method; it has no settings."""
        return "tuples"

    def build(
        self,
        passages: Sequence[Passage],
        tell: Tell = untold,  # noqa: ARG002  # the protocol's parameter; facts take no long time
    ) -> list[Built]:
        """One hyperedge for each passage, with the passage's own words as its text.

        Raises:
            ReadError: A passage has no arguments, so it is prose and not a fact.
        """
        return [Built([_hyperedge(passage)]) for passage in passages]

    def estimate(self, passages: Sequence[Passage], known: object) -> Usage:  # noqa: ARG002  # the protocol's
        """Nothing."""
        return Usage()


def _hyperedge(passage: Passage) -> DraftHyperedge:
    if not passage.arguments:
        raise ReadError(
            f"{passage.document_id} is prose: it has no arguments; expected a fact with roles and entities, as a line "
            "of .jsonl or a row of .csv (prose is indexed by the other methods)"
        )
    id = hyperedge_id(passage.id, 0)
    edge = Hyperedge(id, HyperedgeKind.TUPLE, passage.text, passage.id, 0, len(passage.text))
    found: dict[tuple[str, str], Incidence] = {}
    for argument in passage.arguments:
        if key := entity_key(argument.entity):
            found.setdefault((key, argument.role), Incidence(key, id, argument.entity, argument.role))
    return DraftHyperedge(edge, tuple(found[place] for place in sorted(found)))
