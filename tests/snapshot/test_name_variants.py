"""Name variants and the subjects they stand for."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyad.model import BoolArray, IntArray
from polyad.snapshot.columns import EntityKeys
from polyad.snapshot.name_variants import NamedEntities, NameVariants
from tests.examples import count_examples

SUBJECTS = [
    "ann bradford davis",
    "edward vincent sullivan",
    "frank jeffrey edson smart",
    "john adam smith",
    "john bert smith",
    "lima",
    "piet adler",
]
OTHERS = ["jeffrey smart", "john smith", "old lima", "watchman piet adler"]


def row_of(keys: EntityKeys, key: str) -> int | None:
    row = int(keys.find_rows([key])[0])
    return None if row < 0 else row


class Names:
    """Names of subjects and of other entities, which are added and deleted."""

    def __init__(self) -> None:
        self.names = NameVariants.empty()
        self.keys = EntityKeys.empty()
        self.subjects: set[str] = set()
        self.others: set[str] = set()

    def become(self, subjects: Iterable[str], others: Iterable[str]) -> list[str]:
        """Replace the subjects and other entities; return the names whose subject changed."""
        before, after = (self.subjects, self.others), (set(subjects), set(others) - set(subjects))
        self.subjects, self.others = after
        new = sorted(key for key in after[0] | after[1] if row_of(self.keys, key) is None)
        self.keys = self.keys.append(new)
        there = before[0] | before[1], after[0] | after[1]
        self.names, changed = self.names.with_changes(
            self._entities(), self._rows(before[0] ^ after[0]), self._rows(there[0] ^ there[1])
        )
        return self.keys.strings.take(changed)

    def made_at_once(self) -> Names:
        """Return the same names, resolved for all entities at once."""
        made = Names()
        made.keys, made.names = self.keys, NameVariants.build(self._entities())
        return made

    def subject_of(self, name: str) -> str | None:
        row = int(self.names.resolve([name], self._entities())[0])
        return None if row < 0 else self.keys.strings.take([row])[0]

    def pairs(self) -> list[tuple[str, str]]:
        """Return each name with its subject, read in both directions."""
        rows = np.arange(len(self.keys))
        keys = self.keys.strings.take(rows)
        subjects = self.names.subject.take(rows).tolist()
        remaining = [(keys[row], keys[subject]) for row, subject in enumerate(subjects) if subject >= 0]
        names, owners = self.names.get_variants(rows)
        by_subject = zip(names.tolist(), owners.tolist(), strict=True)
        assert sorted((keys[name], keys[subject]) for name, subject in by_subject) == sorted(remaining)
        return sorted(remaining)

    def _entities(self) -> NamedEntities:
        return NamedEntities(self.keys, self._tells(self.subjects), self._tells(self.subjects | self.others))

    def _rows(self, keys: Iterable[str]) -> IntArray:
        numbers = [row for key in keys if (row := row_of(self.keys, key)) is not None]
        return np.array(sorted(numbers), dtype=np.int64)

    def _tells(self, selection: set[str]) -> Callable[[IntArray], BoolArray]:
        return lambda rows: np.array([key in selection for key in self.keys.strings.take(rows)], dtype=np.bool_)


def build_names(subjects: Iterable[str], others: Iterable[str]) -> Names:
    made = Names()
    made.become(subjects, others)
    return made


@pytest.mark.parametrize(
    ("name", "subject"),
    [
        ("watchman piet adler", "piet adler"),
        ("jeffrey smart", "frank jeffrey edson smart"),
        ("frank smart", "frank jeffrey edson smart"),
        ("frank jeffrey", "frank jeffrey edson smart"),
        ("ann b davis", "ann bradford davis"),
        ("f j e smart", "frank jeffrey edson smart"),
        ("ed sullivan", "edward vincent sullivan"),
        ("john a smith", "john adam smith"),
    ],
)
def test_a_name_resolves_to_the_subject_it_ends_in_or_abbreviates(name: str, subject: str) -> None:
    assert build_names(SUBJECTS, OTHERS).subject_of(name) == subject


@pytest.mark.parametrize(
    "name",
    [
        "smart",  # a single word
        "old lima",  # ends in a single word
        "john smith",  # two are called so
        "j smith",
        "jeffrey edson",  # neither the first nor the last word
        "smart frank",  # another order
        "frank jeffrey junior smart",  # a word of its own
        "lin sullivan",
        "",
    ],
)
def test_an_unspecific_name_is_not_resolved(name: str) -> None:
    assert build_names(SUBJECTS, OTHERS).subject_of(name) is None


def test_variants_are_stored_for_entities_that_are_no_subjects() -> None:
    assert build_names(SUBJECTS, OTHERS).pairs() == [
        ("jeffrey smart", "frank jeffrey edson smart"),
        ("watchman piet adler", "piet adler"),
    ]


def test_a_name_that_resembles_too_many_subjects_is_not_resolved() -> None:
    many = [f"john {letter}{other} smith" for letter in "abcdefghijk" for other in "abcdefghijk"]
    assert build_names(["john adam smith"], []).subject_of("john adam") is not None
    assert build_names([*many, "john adam smith"], []).subject_of("j adam smith") is None


def test_an_index_without_entities_has_no_variants() -> None:
    assert build_names([], []).pairs() == []
    assert build_names([], ["jeffrey smart"]).pairs() == []


def test_advancing_returns_the_names_whose_subject_changed() -> None:
    names = Names()
    assert names.become([], ["jeffrey smart"]) == []
    assert names.become(["frank jeffrey edson smart"], ["jeffrey smart"]) == ["jeffrey smart"]
    assert names.become(["frank jeffrey edson smart", "ann jeffrey smart"], ["jeffrey smart"]) == ["jeffrey smart"]
    assert names.pairs() == [], "two are called so"
    assert names.become(["ann jeffrey smart"], ["jeffrey smart"]) == ["jeffrey smart"]
    assert names.pairs() == [("jeffrey smart", "ann jeffrey smart")]
    assert names.become(["ann jeffrey smart", "jeffrey smart"], []) == ["jeffrey smart"]
    assert names.pairs() == [], "a subject stands for itself"
    assert names.become(["ann jeffrey smart"], []) == []


NAMES = st.lists(st.sampled_from(["ann", "a", "bo", "bob", "c", "cy"]), min_size=1, max_size=4).map(" ".join)
STEPS = st.lists(st.tuples(st.sets(NAMES, max_size=6), st.sets(NAMES, max_size=6)), min_size=1, max_size=5)


@settings(max_examples=count_examples(200), deadline=None)
@given(steps=STEPS, most=st.sampled_from([0, 1, 2, 100]), count=st.sampled_from([1, 2, 100]))
def test_advanced_variants_equal_built_variants(steps: list[tuple[set[str], set[str]]], most: int, count: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("polyad.snapshot.name_variants._MAX_CANDIDATES", most)
        patch.setattr("polyad.snapshot.name_variants._BLOCK", count)
        move_on(steps)


def move_on(steps: list[tuple[set[str], set[str]]]) -> None:
    moved = Names()
    before: dict[str, str] = {}
    for subjects, others in steps:
        changed = moved.become(subjects, others)
        assert moved.pairs() == build_names(subjects, others).pairs()
        assert moved.pairs() == sorted(
            (name, subject) for name in others - subjects if (subject := moved.subject_of(name)) is not None
        )
        after = dict(moved.pairs())
        assert set(changed) == {key for key in before | after if before.get(key) != after.get(key)}
        before = after
        assert moved.pairs() == moved.made_at_once().pairs()


def test_memory_grows_with_the_length_of_a_word_not_with_its_square() -> None:
    names, word = Names(), "x" * 20_000
    names.become(["piet adler"], ["old lima"])
    tracemalloc.start()
    names.become(["piet adler", f"{word} adler"], ["old lima", "x adler"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 * len(word)
    assert names.subject_of("x adler") == f"{word} adler"
