"""Tuple hyperedges: one for each fact that was supplied as data, with an incidence for each entity argument."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from polyad.errors import ReadError
from polyad.model import NO_VECTOR, Argument, Hyperedge, HyperedgeKind, Incidence, IndexedHyperedge, Passage, Usage
from polyad.protocols.components import BuildResult, OnMessage, build_hyperedge_id, ignore_message
from polyad.text.keys import build_argument_key
from polyad.text.literals import get_extent
from polyad.text.words import normalize_value, sanitize


class TupleBuilder:
    """Builds a hyperedge from each fact that the user supplies as data (kind ``tuple``).

    The source is HyperRAG, definition 2.1 and appendix A.

    Pairs of entities would lose information: for "Alice gave Bob the book and Carol the pen", the pairs do not state
    who received the book.

    The hyperedge stores all arguments unchanged. Entities among the arguments are its members: an entity in two roles
    has two incidences, an entity twice in one role has one. A literal, such as a dose, is not a member.

    Attributes:
        name: Name and version of the construction method ``tuples``: hyperedges from facts that users supply. The
            version changes when equal facts result in other hyperedges.
    """

    name = "tuples 2"

    def build(
        self,
        passages: Sequence[Passage],
        on_message: OnMessage = ignore_message,  # noqa: ARG002  # a parameter of the protocol; building tuples is fast
    ) -> list[BuildResult]:
        """Return one hyperedge per passage, for the passage's fact, and counts of value types by role.

        Raises:
            ReadError: a passage has no arguments, so it is prose and not a fact.
        """
        return [BuildResult([_build_hyperedge(passage)], notes=_count_types(passage.arguments)) for passage in passages]

    def estimate(self, passages: Sequence[Passage], find_replies: object) -> Usage:  # noqa: ARG002  # the protocol's
        """Return zero token usage: facts that the user supplies as data need no language model."""
        return Usage()


def _build_hyperedge(passage: Passage) -> IndexedHyperedge:
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
    incidences: dict[tuple[str, str], Incidence] = {}
    for argument in passage.arguments:
        key = build_argument_key(argument.value) if argument.type == "entity" else ""
        if key:
            name = normalize_value(sanitize((*argument.names, argument.value)[0])) or key
            incidences.setdefault((key, argument.role), Incidence(key, id, name, argument.role))
    return IndexedHyperedge(edge, tuple(incidences[place] for place in sorted(incidences)), NO_VECTOR)


def _count_types(arguments: Sequence[Argument]) -> Counter[str]:
    """Return how many arguments have each value type, by role; values of the wrong type are counted as text."""
    return Counter(
        f"role {argument.role}: {argument.type}"
        if argument.type not in ("number", "date", "boolean") or get_extent(argument)
        else f"role {argument.role}: no {argument.type}, kept as text"
        for argument in arguments
        if argument.type != "entity"
    )
