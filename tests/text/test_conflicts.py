"""Facts that give one subject different values."""

from __future__ import annotations

import pytest

from polyad.model import Argument, Hyperedge, HyperedgeKind
from polyad.text.conflicts import find_conflicts

UNTIL_2020, UNTIL_2021 = ("", "2020-01-01T00:00:00Z"), ("", "2021-01-01T00:00:00Z")
FROM_2020 = ("2020-01-01T00:00:00Z", "")


def fact(id: str, subject: str, valid: tuple[str, str] = ("", ""), relation: str = "trial", **values: str) -> Hyperedge:
    arguments = [Argument("drug", subject)]
    for role, value in values.items():
        number, _, unit = value.partition(" ")
        is_number = number.isdigit()
        arguments.append(Argument(role, number, "number", unit) if is_number else Argument(role, value))
    return Hyperedge(
        id,
        HyperedgeKind.TUPLE,
        "",
        "d#0",
        0,
        0,
        relation=relation,
        arguments=tuple(arguments),
        valid_from=valid[0],
        valid_to=valid[1],
    )


@pytest.mark.parametrize(
    ("facts", "described"),
    [
        (
            [fact("1", "Abixa", dose="5 mg"), fact("2", "Abixa", dose="10 mg")],
            ["trial: 'Abixa' has dose 5 mg and 10 mg"],
        ),
        ([fact("1", "Abixa", dose="1 g"), fact("2", "Abixa", dose="1000 mg")], []),
        ([fact("1", "Abixa", dose="5 mg"), fact("2", "Corax", dose="10 mg")], []),
        ([fact("1", "Abixa", dose="5 mg"), fact("2", "Abixa", dose="10 mg", relation="label")], []),
        ([fact("1", "Abixa", UNTIL_2020, dose="5 mg"), fact("2", "Abixa", FROM_2020, dose="10 mg")], []),
        (
            [fact("1", "Abixa", UNTIL_2021, dose="5 mg"), fact("2", "Abixa", FROM_2020, dose="10 mg")],
            ["trial: 'Abixa' has dose 5 mg and 10 mg"],
        ),
        ([fact("1", "Abixa", site="Oslo"), fact("2", "Abixa", site="oslo")], ["trial: 'Abixa' has site Oslo and oslo"]),
    ],
)
def test_values_conflict_if_they_differ_at_the_same_time(facts: list[Hyperedge], described: list[str]) -> None:
    conflicts = find_conflicts(facts, min_single_share=0.0)
    assert [conflict.describe() for conflict in conflicts] == described


def extracted(id: str, *entities: tuple[str, str]) -> Hyperedge:
    arguments = tuple(Argument(role, value) for role, value in entities)
    return Hyperedge(id, HyperedgeKind.FACT, "", "d#0", 0, 0, relation="trial", arguments=arguments)


@pytest.mark.parametrize(
    ("facts", "described"),
    [
        (
            [extracted("1", ("drug", "Abixa"), ("site", "Oslo")), extracted("2", ("drug", "ABIXA"), ("site", "Bree"))],
            ["trial: 'Abixa' has site Oslo and Bree"],
        ),
        (
            [extracted("1", ("drug", "Abixa"), ("site", "Oslo")), extracted("2", ("drug", "Abixa"), ("site", "oslo"))],
            [],
        ),
        ([fact("1", "Abixa", site="Oslo"), extracted("2", ("drug", "Abixa"), ("site", "the Oslo"))], []),
        (
            [fact("1", "Abixa", site="Oslo"), extracted("2", ("drug", "abixa"), ("site", "Bree"))],
            ["trial: 'Abixa' has site Oslo and Bree"],
        ),
        ([extracted("1", ("drug", "Abixa"), ("drug", "Corax"), ("site", "Oslo"))], []),
    ],
)
def test_names_in_extracted_facts_are_compared_by_their_keys(facts: list[Hyperedge], described: list[str]) -> None:
    assert [conflict.describe() for conflict in find_conflicts(facts, 0.0)] == described


def test_facts_conflict_only_if_they_share_no_value() -> None:
    both = extracted("1", ("drug", "Abixa"), ("site", "Oslo"), ("site", "Bree"))
    assert find_conflicts([both], 0.0) == []
    assert find_conflicts([both, extracted("2", ("drug", "Abixa"), ("site", "Bree"))], 0.0) == []
    assert len(find_conflicts([both, extracted("2", ("drug", "Abixa"), ("site", "Tarn"))], 0.0)) == 1


def test_a_role_with_several_values_for_most_subjects_has_no_conflicts() -> None:
    films = [fact(f"{actor}{film}", actor, film=film) for actor in ("Ada", "Bo", "Cleo") for film in ("Up", "Her")]
    assert find_conflicts(films) == []
    born = [fact(actor, actor, year="1990") for actor in ("Ada", "Bo", "Cleo")]
    [conflict] = find_conflicts([*films, *born, fact("other", "Bo", year="1991")])
    assert [(value, [one.id for one in facts]) for value, facts in conflict.values] == [
        ("1990", ["Bo"]),
        ("1991", ["other"]),
    ]
