"""Conflicts: facts that give one subject different values where facts of this relation usually give one value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from polyad.model import Argument, Condition, Hyperedge, HyperedgeKind
from polyad.text.fact_text import format_argument_value
from polyad.text.keys import build_argument_key, build_name_key
from polyad.text.literals import is_satisfied
from polyad.text.validity import parse_bounds
from polyad.text.words import normalize_value

MIN_SINGLE_SHARE: Final = 0.5
"""Least share of subjects with one value in a role, for a role that counts as single-valued."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Contradictory facts: one role of the same subject (main entity) has different values at the same time.

    Attributes:
        relation: The relation of the facts.
        subject: The value of their first argument.
        role: The role with different values.
        values: Each value as text, with the facts that state it.
    """

    relation: str
    subject: str
    role: str
    values: tuple[tuple[str, tuple[Hyperedge, ...]], ...]

    def describe(self) -> str:
        """Return one sentence with the relation, the subject, the role and its contradictory values.

        >>> Conflict("born", "Ada Lee", "year", (("1990", ()), ("1991", ()))).describe()
        "born: 'Ada Lee' has year 1990 and 1991"
        """
        values = " and ".join(value for value, _ in self.values)
        return f"{self.relation or 'facts'}: {self.subject!r} has {self.role} {values}"


def find_conflicts(facts: Iterable[Hyperedge], min_single_share: float = MIN_SINGLE_SHARE) -> list[Conflict]:
    """Return the contradictions among ``facts``, sorted by relation, subject (main entity) and role.

    The subject of a fact is its first argument; names of entities in extracted facts are compared by their keys. A fact
    does not conflict with another that shares a value with it in the role. A role in which most subjects have several
    values, such as the film of an actor, is not single-valued: its values do not conflict. Facts whose intervals of
    validity do not overlap do not conflict either.

    Args:
        facts: Hyperedges; those without arguments are ignored.
        min_single_share: Least share of subjects with one value, in [0, 1], of a single-valued role; 0 for any role.
    """
    stated: defaultdict[tuple[str, str], defaultdict[str, list[tuple[Argument, Hyperedge]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    labels: dict[str, str] = {}
    for fact in facts:
        subject = fact.arguments[0] if fact.arguments else None
        for argument in fact.arguments[1:]:
            if subject is not None and argument.role != subject.role and argument.type != "null":
                stated[fact.relation, argument.role][_build_key(subject, fact)].append((argument, fact))
                labels.setdefault(_build_key(subject, fact), normalize_value(subject.value))
    conflicts = []
    for (relation, role), subjects in sorted(stated.items()):
        groups = [(labels[subject], _group_by_value(values)) for subject, values in sorted(subjects.items())]
        single = sum(len(group) == 1 for _, group in groups)
        if single >= min_single_share * len(groups):
            conflicts += [
                Conflict(relation, subject, role, tuple(group)) for subject, group in groups if _overlap(group)
            ]
    return conflicts


def _is_equal(argument: Argument, fact: Hyperedge, other_argument: Argument, other_fact: Hyperedge) -> bool:
    """Return whether the arguments of two facts state the same value, even if unit or spelling differ."""
    text = f"{argument.value} {argument.unit}".strip()
    if is_satisfied(Condition(other_argument.role, "=", text), other_argument):
        return True
    is_extracted = HyperedgeKind.FACT in (fact.kind, other_fact.kind)
    return is_extracted and _build_key(argument, fact) == _build_key(other_argument, other_fact)


def _build_key(argument: Argument, fact: Hyperedge) -> str:
    """Return the normalised form of an argument's value: the entity key of a name, or the number, date or text."""
    key = build_name_key(argument.value) if fact.kind is HyperedgeKind.FACT else ""
    key = key or (build_argument_key(argument.value) if argument.type == "entity" else "")
    return key or normalize_value(argument.value)


def _group_by_value(stated_values: Sequence[tuple[Argument, Hyperedge]]) -> list[tuple[str, tuple[Hyperedge, ...]]]:
    """Return each distinct value of one role as text, with the facts that state it; 1 g and 1000 mg are one value."""
    groups: list[tuple[Argument, list[Hyperedge]]] = []
    for argument, fact in stated_values:
        group = next((facts for first, facts in groups if _is_equal(argument, fact, first, facts[0])), None)
        if group is None:
            groups.append((argument, [fact]))
        else:
            group.append(fact)
    return [(format_argument_value(argument), tuple(facts)) for argument, facts in groups]


def _overlap(facts_by_value: Sequence[tuple[str, Sequence[Hyperedge]]]) -> bool:
    """Return whether any two facts with different values have overlapping validity periods."""
    values: defaultdict[str, set[str]] = defaultdict(set)
    for value, facts in facts_by_value:
        for fact in facts:
            values[fact.id].add(value)
    intervals = {fact.id: parse_bounds(fact.valid_from, fact.valid_to) for _, facts in facts_by_value for fact in facts}
    return any(
        values[one.id].isdisjoint(values[other.id]) and intervals[one.id].overlaps(intervals[other.id])
        for (_, some), (_, others) in combinations(facts_by_value, 2)
        for one in some
        for other in others
    )
