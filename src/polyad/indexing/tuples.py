"""Hyperedges of facts that were given as data: one for each fact, an incidence for each entity among its arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from polyad.errors import ReadError
from polyad.indexing.builders import BuildResult, DraftHyperedge, OnMessage, build_hyperedge_id, ignore_message
from polyad.model import Argument, Hyperedge, HyperedgeKind, Incidence, Passage, Usage
from polyad.text.cleaning import sanitize
from polyad.text.keys import given_key
from polyad.text.literals import extent_of, one_line


class TupleBuilder:
    """Keeps each fact whole: who took part, in which role, in one record (HyperRAG, definition 2.1 and appendix A).

    Pairs of entities would not do: from "Alice gave Bob the book and Carol the pen" they leave open who got what.

    All arguments stay with the hyperedge, word for word. Those that are entities are its members: an entity in two
    roles of a fact is two incidences; in one role twice it is one. A literal, such as a dose, joins nothing.
    """

    @property
    def name(self) -> str:
        """The method; it has no settings. The number changes when the same arguments make other hyperedges."""
        return "tuples 2"

    def build(
        self,
        passages: Sequence[Passage],
        on_message: OnMessage = ignore_message,  # noqa: ARG002  # the protocol's parameter; facts take no long time
    ) -> list[BuildResult]:
        """One hyperedge for each passage, with the passage's own words as its text; notes count the types by role.

        Raises:
            ReadError: A passage has no arguments, so it is prose and not a fact.
        """
        return [BuildResult([_hyperedge(passage)], notes=_types(passage.arguments)) for passage in passages]

    def estimate(self, passages: Sequence[Passage], known: object) -> Usage:  # noqa: ARG002  # the protocol's
        """Nothing."""
        return Usage()


def _hyperedge(passage: Passage) -> DraftHyperedge:
    if not passage.arguments:
        raise ReadError(
            f"{passage.document_id} is prose: it has no arguments; expected a fact with roles and entities, as a line "
            "of .jsonl or a row of .csv (prose is indexed by the other methods)"
        )
    id = build_hyperedge_id(passage.id, 0)
    edge = Hyperedge(
        id,
        HyperedgeKind.TUPLE,
        passage.text,
        passage.id,
        0,
        len(passage.text),
        relation=passage.relation,
        arguments=passage.arguments,
    )
    found: dict[tuple[str, str], Incidence] = {}
    for argument in passage.arguments:
        key = given_key(argument.value) if argument.type == "entity" else ""
        if key:
            name = one_line(sanitize((*argument.names, argument.value)[0])) or key
            found.setdefault((key, argument.role), Incidence(key, id, name, argument.role))
    return DraftHyperedge(edge, tuple(found[place] for place in sorted(found)))


def _types(arguments: Sequence[Argument]) -> Counter[str]:
    """How many literals there are by role and type, and how many that are not what they were declared to be."""
    return Counter(
        f"role {argument.role}: {argument.type}"
        if argument.type not in ("number", "date", "boolean") or extent_of(argument)
        else f"role {argument.role}: no {argument.type}, kept as text"
        for argument in arguments
        if argument.type != "entity"
    )
