"""Questions that bind roles: given who takes some roles of a fact, read off who takes the others. No model is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from polyad.errors import ConfigurationError
from polyad.model import Incidence
from polyad.protocols import LookUps
from polyad.text.keys import entity_key


@dataclass(frozen=True, slots=True)
class RoleBinding:
    """One fact that matches, with the entities in its roles.

    Attributes:
        hyperedge_id: The fact.
        text: The fact in words.
        roles: The names in each role, as this fact spells them and ordered by entity key; roles are sorted.
    """

    hyperedge_id: str
    text: str
    roles: Mapping[str, tuple[str, ...]]


def answer_roles(
    store: LookUps, bound: Mapping[str, str | Sequence[str]], wanted: Sequence[str] = ()
) -> list[RoleBinding]:
    """Every hyperedge in which each bound entity takes its bound role, sorted by id.

    Implements HyperRAG, section 2.2: the posting lists of the bound entities are intersected by hyperedge, and each
    survivor gives its other roles from its one record. Equation 1: the cost is the length of the lists and of the
    result. Pairs of entities could not answer this; they lose which of them belong to the same fact (appendix A).

    Args:
        store: The index.
        bound: Role to the name of the entity in it, at least one, or to the names of several that all take it. Roles
            are matched as spelt, names by their key.
        wanted: Roles to read; a hyperedge that lacks one is left out. Empty for all roles there are, bound ones too.

    Raises:
        ConfigurationError: Nothing is bound, or a name is none that an entity can have.
    """
    required = {(role, _key(role, name)) for role, names in bound.items() for name in _listed(names)}
    if not required:
        raise ConfigurationError(
            'bound is empty; expected at least one role and the entity in it, as {"giver": "Alice"}'
        )
    postings = [set(store.memberships(key)) for key in sorted({key for _, key in required})]
    candidates = sorted(set.intersection(*postings))
    members = store.incidences(candidates)
    found = {}
    for id in candidates:
        if required <= {(part.role, part.entity_key) for part in members[id]}:
            roles = _by_role(members[id])
            if all(role in roles for role in wanted):
                found[id] = {role: roles[role] for role in wanted} if wanted else roles
    return [RoleBinding(edge.id, edge.text, found[edge.id]) for edge in store.hyperedges(list(found))]


def roles_taken(store: LookUps, name: str) -> list[str]:
    """The roles that an entity takes anywhere, sorted; none for a name that is no entity's."""
    ids = store.memberships(entity_key(name))
    parts = (part for members in store.incidences(ids).values() for part in members)
    return sorted({part.role for part in parts if part.role and part.entity_key == entity_key(name)})


def _listed(names: str | Sequence[str]) -> Sequence[str]:
    return [names] if isinstance(names, str) else names


def _key(role: str, name: str) -> str:
    key = entity_key(name)
    if not key:
        raise ConfigurationError(f"{role} is bound to {name!r}, which names no entity; expected a name such as 'Alice'")
    return key


def _by_role(incidences: Sequence[Incidence]) -> dict[str, tuple[str, ...]]:
    names: dict[str, list[str]] = {}
    for part in incidences:
        names.setdefault(part.role, []).append(part.name)
    return {role: tuple(names[role]) for role in sorted(names)}
