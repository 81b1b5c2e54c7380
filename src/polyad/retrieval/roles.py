"""Questions that bind roles: given who takes some roles of a fact, read off who takes the others. No model is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from polyad.errors import ConfigurationError
from polyad.model import Argument, Condition, Hyperedge, HyperedgeKind, IndexedHyperedge
from polyad.protocols.lookups import get_all, get_hyperedge_ids
from polyad.protocols.store import Store
from polyad.text.keys import build_argument_key, build_name_key
from polyad.text.literals import normalize_value, parse_condition, parse_number

_READ_TOGETHER = 100
"""Facts."""

_NO_VALUE = "\x00"
"""A value that no argument has."""


@dataclass(frozen=True, slots=True)
class RoleBinding:
    """A fact that matches a role query, with the values of its roles.

    Attributes:
        hyperedge_id: The fact.
        text: The fact in words.
        roles: What is in each role, as this fact spells it, in the order given; roles are sorted.
        relation: Of a fact given as data.
        arguments: Likewise, with their types; those of the wanted roles.
    """

    hyperedge_id: str
    text: str
    roles: Mapping[str, tuple[str, ...]]
    relation: str = ""
    arguments: tuple[Argument, ...] = ()


def answer_roles(
    store: Store,
    bound: Mapping[str, str | Sequence[str]] | Iterable[str],
    wanted: Sequence[str] = (),
    *,
    relation: str = "",
    limit: int | None = None,
) -> list[RoleBinding]:
    """Return the facts that satisfy the conditions on their roles, sorted by id.

    Implements HyperRAG, section 2.2: the posting lists of what is bound are intersected by hyperedge, and each survivor
    gives its other roles from its one record. Equation 1: the cost is the length of the lists and of the result. Pairs
    of entities could not answer this; they lose which of them belong to the same fact (appendix A).

    Facts that were given as data are matched exactly (:func:`polyad.text.literals.is_satisfied`). What was found in
    texts has no other identity than the key of its name, and is matched by that; it has no relation and no numbers to
    compare.

    Args:
        store: The index.
        bound: Role to what is in it, or to several that all are; or conditions, as ``year>=1990``.
        wanted: Roles to read; a fact that lacks one is left out. Empty for all roles there are, bound ones too.
        relation: Of the facts; empty for any.
        limit: The most facts; None for all.

    Raises:
        ConfigurationError: nothing is asked, a condition is none, or the limit is below 1.
    """
    asked = _conditions(bound)
    if not asked and not relation:
        raise ConfigurationError(
            'bound is empty; expected at least one role and what is in it, as {"giver": "Alice"}, or a relation'
        )
    if limit is not None and limit < 1:
        raise ConfigurationError(f"limit is {limit}; expected 1 or more")
    found = list(islice(_of_given(store, relation, asked, wanted), limit))
    if not relation:
        found += filter(lambda fact: _has_all(fact, wanted), _of_texts(store, asked, wanted))
    return sorted(found, key=lambda fact: fact.hyperedge_id)[:limit]


def roles_taken(store: Store, name: str) -> list[str]:
    """Return the roles that an entity has in any hyperedge, sorted; empty for an unknown name."""
    ids = [
        id for key in (build_argument_key(name), build_name_key(name)) if key for id in get_hyperedge_ids(store, key)
    ]
    items = get_all(store, IndexedHyperedge, sorted(set(ids)))
    arguments = (one for item in items for one in item.hyperedge.arguments)
    given = {one.role for one in arguments if normalize_value(name) in (one.value, *one.names)}
    parts = (part for item in items if item.hyperedge.kind is not HyperedgeKind.TUPLE for part in item.incidences)
    return sorted(given | {part.role for part in parts if part.role and part.entity_key == build_name_key(name)})


def count_units(store: Store, role: str) -> dict[str, int]:
    """Return how many numbers in a role of tuples have each unit, sorted by unit; "" for numbers without a unit."""
    units: Counter[str] = Counter()
    with store.read_transaction() as transaction:
        ids = transaction.find_tuples("", [Condition(role, "!=", _NO_VALUE)])
    for start in range(0, len(ids), _READ_TOGETHER):
        for hyperedge in get_all(store, Hyperedge, ids[start : start + _READ_TOGETHER]):
            numbers = [one for one in hyperedge.arguments if one.role == role and one.type == "number"]
            units.update(extent.unit for one in numbers if (extent := parse_number(one.value, one.unit)))
    return dict(sorted(units.items()))


def _conditions(bound: Mapping[str, str | Sequence[str]] | Iterable[str]) -> list[Condition]:
    if not isinstance(bound, Mapping):
        return [parse_condition(text) for text in ([bound] if isinstance(bound, str) else bound)]
    return [
        Condition(role, "=", name)
        for role, names in bound.items()
        for name in ([names] if isinstance(names, str) else names)
    ]


def binding_of(edge: Hyperedge, wanted: Sequence[str] = ()) -> RoleBinding:
    """Return the role values of a tuple: those of the requested roles, or of all roles."""
    arguments = tuple(one for one in edge.arguments if not wanted or one.role in wanted)
    roles = _by_role((one.role, one.value) for one in arguments)
    return RoleBinding(edge.id, edge.text, roles, edge.relation, arguments)


def _of_given(store: Store, relation: str, asked: Sequence[Condition], wanted: Sequence[str]) -> Iterator[RoleBinding]:
    """Yield the matching tuples in id order, reading them in batches."""
    with store.read_transaction() as transaction:
        ids = transaction.find_tuples(relation, asked)
    for start in range(0, len(ids), _READ_TOGETHER):
        edges = get_all(store, Hyperedge, ids[start : start + _READ_TOGETHER])
        yield from (fact for edge in edges if _has_all(fact := binding_of(edge, wanted), wanted))


def _has_all(fact: RoleBinding, wanted: Sequence[str]) -> bool:
    return all(role in fact.roles for role in wanted)


def _of_texts(store: Store, asked: Sequence[Condition], wanted: Sequence[str]) -> list[RoleBinding]:
    """Return the hyperedges extracted from texts in which each named entity has the required role."""
    required = {(one.role, build_name_key(one.value)) for one in asked}
    if any(one.operator != "=" for one in asked) or not all(key for _, key in required):
        return []
    postings = [set(get_hyperedge_ids(store, key)) for key in sorted({key for _, key in required})]
    found = []
    for item in get_all(store, IndexedHyperedge, sorted(set.intersection(*postings))):
        edge, parts = item.hyperedge, item.incidences
        if edge.kind is HyperedgeKind.TUPLE:
            continue
        if required <= {(part.role, part.entity_key) for part in parts}:
            roles = _by_role((part.role, part.name) for part in parts if not wanted or part.role in wanted)
            found.append(RoleBinding(edge.id, edge.text, roles))
    return found


def _by_role(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    names: dict[str, list[str]] = {}
    for role, name in pairs:
        names.setdefault(role, []).append(name)
    return {role: tuple(names[role]) for role in sorted(names)}
