"""Conflicts: facts that give one subject different values where facts of this relation usually give one value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from polyad.model import Argument, Condition, Hyperedge
from polyad.text.fact_text import format_argument_value
from polyad.text.literals import is_satisfied, normalize_value
from polyad.text.validity import Interval, parse_bounds

MIN_SINGLE_SHARE: Final = 0.5
"""Least share of subjects with one value in a role, for a role that counts as single-valued."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Facts that hold at the same time and give one subject different values in a role.

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
        """Return the conflict in words.

        >>> Conflict("born", "Ada Lee", "year", (("1990", ()), ("1991", ()))).describe()
        "born: 'Ada Lee' has year 1990 and 1991"
        """
        values = " and ".join(value for value, _ in self.values)
        return f"{self.relation or 'facts'}: {self.subject!r} has {self.role} {values}"


def find_conflicts(facts: Iterable[Hyperedge], min_single_share: float = MIN_SINGLE_SHARE) -> list[Conflict]:
    """Return the conflicts among facts given as data, sorted by relation, subject and role.

    The subject of a fact is its first argument. A role in which most subjects have several values, such as the film of
    an actor, is not single-valued: its values do not conflict. Facts whose intervals of validity do not overlap do not
    conflict either.

    Args:
        facts: Hyperedges; those without arguments are ignored.
        min_single_share: Least share of subjects with one value, in [0, 1], of a single-valued role; 0 for any role.
    """
    stated: defaultdict[tuple[str, str], defaultdict[str, list[tuple[Argument, Hyperedge]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for fact in facts:
        subject = fact.arguments[0] if fact.arguments else None
        for argument in fact.arguments[1:]:
            if subject is not None and argument.role != subject.role and argument.type != "null":
                stated[fact.relation, argument.role][normalize_value(subject.value)].append((argument, fact))
    conflicts = []
    for (relation, role), subjects in sorted(stated.items()):
        groups = {subject: _group_by_value(values) for subject, values in sorted(subjects.items())}
        single = sum(len(group) == 1 for group in groups.values())
        if single >= min_single_share * len(groups):
            conflicts += [
                Conflict(relation, subject, role, tuple(group)) for subject, group in groups.items() if _overlap(group)
            ]
    return conflicts


def _group_by_value(values: Sequence[tuple[Argument, Hyperedge]]) -> list[tuple[str, tuple[Hyperedge, ...]]]:
    """Return each distinct value with the facts that state it; 1 g and 1000 mg are one value."""
    groups: list[tuple[Argument, list[Hyperedge]]] = []
    for argument, fact in values:
        text = f"{argument.value} {argument.unit}".strip()
        group = next((facts for first, facts in groups if is_satisfied(Condition(first.role, "=", text), first)), None)
        if group is None:
            groups.append((argument, [fact]))
        else:
            group.append(fact)
    return [(format_argument_value(argument), tuple(facts)) for argument, facts in groups]


def _overlap(group: Sequence[tuple[str, Sequence[Hyperedge]]]) -> bool:
    """Return whether facts with different values hold at the same time."""
    intervals = [[parse_bounds(fact.valid_from, fact.valid_to) for fact in facts] for _, facts in group]
    return any(
        _is_overlap(one, other)
        for place, some in enumerate(intervals)
        for others in intervals[place + 1 :]
        for one in some
        for other in others
    )


def _is_overlap(one: Interval, other: Interval) -> bool:
    return max(one.start, other.start) < min(one.end, other.end)
