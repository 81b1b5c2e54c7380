"""Role queries: find facts by the values of some roles and return the values of other roles, without a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from polyad.errors import ConfigurationError
from polyad.model import Argument, Condition, Hyperedge, HyperedgeKind, IndexedHyperedge
from polyad.protocols.lookups import get_all, get_hyperedge_ids
from polyad.protocols.store import Store
from polyad.text.keys import build_argument_key, build_name_key
from polyad.text.literals import parse_condition, parse_number
from polyad.text.words import normalize_value

_BATCH = 100
"""Facts read at once."""

_NO_VALUE = "\x00"
"""A value that no argument has."""


Select = Callable[[Sequence[str]], list[str]]
"""Returns the ids among some ids of hyperedges that a lookup may return, in the same order."""


@dataclass(frozen=True, slots=True)
class RoleBinding:
    """A fact that answers a query on roles (argument names), with the value of each requested role.

    Attributes:
        hyperedge_id: The fact.
        text: The fact in words.
        roles: Values by role, as the fact spells them; roles are sorted.
        relation: Relation of the fact; empty if it has none.
        arguments: Arguments of the fact in the requested roles, with their types.
    """

    hyperedge_id: str
    text: str
    roles: Mapping[str, tuple[str, ...]]
    relation: str = ""
    arguments: tuple[Argument, ...] = ()


def answer_roles(
    store: Store,
    conditions: Mapping[str, str | Sequence[str]] | Iterable[str],
    requested_roles: Sequence[str] = (),
    *,
    relation: str = "",
    limit: int | None = None,
    select: Select = list,
) -> list[RoleBinding]:
    """Return the facts that satisfy all conditions on roles (argument names), with values of ``requested_roles``.

    Facts are sorted by id. Implements HyperRAG, section 2.2: the posting lists of the entities are intersected, and
    each remaining hyperedge supplies its other roles. The cost is the length of the lists and of the result
    (equation 1). Pairs of entities could not answer this, since they lose which entities belong to the same fact
    (appendix A).

    Arguments, of tuples and of extracted facts with a relation, are matched exactly
    (:func:`polyad.text.literals.is_satisfied`). Other entities extracted from texts are matched by the key of their
    name; they have no numbers.

    Args:
        store: The index.
        conditions: Value or values by role, or conditions such as ``year>=1990``.
        requested_roles: Roles to return; facts without one of them are left out. Empty for all roles.
        relation: Relation of the facts, which have arguments then; empty for any.
        limit: Maximum number of facts; None for all.
        select: Returns which hyperedges, by id, may be returned; all by default.

    Raises:
        ConfigurationError: There is no condition, a condition is invalid, or the limit is below 1.
    """
    parsed = _parse_conditions(conditions)
    if not parsed and not relation:
        raise ConfigurationError(
            'there is no condition; expected at least one role with a value, as {"giver": "Alice"}, or a relation'
        )
    if limit is not None and limit < 1:
        raise ConfigurationError(f"limit is {limit}; expected 1 or more")
    query = _RoleQuery(store, parsed, requested_roles, select)
    facts = list(islice(query.find_tuples(relation), limit))
    if not relation:
        ids = {fact.hyperedge_id for fact in facts}
        facts += [fact for fact in query.find_extracted_facts() if fact.hyperedge_id not in ids]
    return sorted(facts, key=lambda fact: fact.hyperedge_id)[:limit]


def list_roles(store: Store, name: str) -> list[str]:
    """Return the sorted roles that an entity has in hyperedges, such as ``sponsor``; empty for an unknown name."""
    ids = [
        id for key in (build_argument_key(name), build_name_key(name)) if key for id in get_hyperedge_ids(store, key)
    ]
    items = get_all(store, IndexedHyperedge, sorted(set(ids)))
    arguments = (argument for item in items for argument in item.hyperedge.arguments)
    value = normalize_value(name)
    tuple_roles = {argument.role for argument in arguments if value in (argument.value, *argument.names)}
    parts = (part for item in items if item.hyperedge.kind is not HyperedgeKind.TUPLE for part in item.incidences)
    return sorted(tuple_roles | {part.role for part in parts if part.role and part.entity_key == build_name_key(name)})


def count_units(store: Store, role: str) -> dict[str, int]:
    """Count the numbers that arguments with ``role``, such as ``price``, have in each unit; "" stands for no unit.

    Returns:
        The counts by unit, sorted by unit.
    """
    units: Counter[str] = Counter()
    with store.read_transaction() as transaction:
        ids = transaction.find_tuples("", [Condition(role, "!=", _NO_VALUE)])
    for start in range(0, len(ids), _BATCH):
        for hyperedge in get_all(store, Hyperedge, ids[start : start + _BATCH]):
            for argument in hyperedge.arguments:
                is_number = argument.role == role and argument.type == "number"
                if is_number and (number := parse_number(argument.value, argument.unit)):
                    units[number.unit] += 1
    return dict(sorted(units.items()))


def _parse_conditions(conditions: Mapping[str, str | Sequence[str]] | Iterable[str]) -> list[Condition]:
    if not isinstance(conditions, Mapping):
        texts = [conditions] if isinstance(conditions, str) else conditions
        return [parse_condition(text) for text in texts]
    return [
        Condition(role, "=", name)
        for role, names in conditions.items()
        for name in ([names] if isinstance(names, str) else names)
    ]


def get_role_values(edge: Hyperedge, requested_roles: Sequence[str] = ()) -> RoleBinding:
    """Return the values of ``requested_roles`` (argument names) in a fact; of all roles if none are requested."""
    arguments = tuple(
        argument for argument in edge.arguments if not requested_roles or argument.role in requested_roles
    )
    roles = _group_by_role((argument.role, argument.value) for argument in arguments)
    return RoleBinding(edge.id, edge.text, roles, edge.relation, arguments)


@dataclass(frozen=True, slots=True)
class _RoleQuery:
    """A query for facts by the values of their roles (argument names).

    Attributes:
        store: The index.
        conditions: Conditions on the values of roles.
        requested_roles: Roles that a fact must have, and whose values are returned; empty for all.
        select: Returns which hyperedges, by id, may be returned.
    """

    store: Store
    conditions: Sequence[Condition]
    requested_roles: Sequence[str]
    select: Select

    def find_tuples(self, relation: str) -> Iterator[RoleBinding]:
        """Yield the tuples (facts supplied as data) with a ``relation`` that satisfy all conditions, by id.

        An empty relation stands for any.
        """
        with self.store.read_transaction() as transaction:
            ids = transaction.find_tuples(relation, self.conditions)
        for start in range(0, len(ids), _BATCH):
            for edge in get_all(self.store, Hyperedge, self.select(ids[start : start + _BATCH])):
                yield from self._filter(get_role_values(edge, self.requested_roles))

    def find_extracted_facts(self) -> Iterator[RoleBinding]:
        """Yield the facts extracted from texts in which the entity of each condition has the condition's role."""
        required = {(condition.role, build_name_key(condition.value)) for condition in self.conditions}
        if any(condition.operator != "=" for condition in self.conditions) or not all(key for _, key in required):
            return
        postings = [set(get_hyperedge_ids(self.store, key)) for key in sorted({key for _, key in required})]
        for item in get_all(self.store, IndexedHyperedge, self.select(sorted(set.intersection(*postings)))):
            edge, incidences = item.hyperedge, item.incidences
            entity_roles = {(incidence.role, incidence.entity_key) for incidence in incidences}
            if edge.kind is not HyperedgeKind.TUPLE and required <= entity_roles:
                roles = _group_by_role(
                    (incidence.role, incidence.name)
                    for incidence in incidences
                    if not self.requested_roles or incidence.role in self.requested_roles
                )
                yield from self._filter(RoleBinding(edge.id, edge.text, roles, edge.relation))

    def _filter(self, fact: RoleBinding) -> Iterator[RoleBinding]:
        if all(role in fact.roles for role in self.requested_roles):
            yield fact


def _group_by_role(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    values: dict[str, list[str]] = {}
    for role, value in pairs:
        values.setdefault(role, []).append(value)
    return {role: tuple(values[role]) for role in sorted(values)}
