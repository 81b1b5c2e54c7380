"""Growing structures against plain dictionaries and lists; earlier versions stay unchanged."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from polyad.model import IntArray
from polyad.snapshot.adjacency import PrunedAdjacency
from polyad.snapshot.columns import AppendOnlyArray, LiveRows
from polyad.snapshot.segments import Segment, SegmentList

ROWS = 8

Pairs = dict[tuple[int, int], float]
"""The weight of each pair of row and neighbour."""

COMING = st.lists(
    st.tuples(
        st.integers(1, 3),
        st.lists(st.tuples(st.integers(0, ROWS - 1), st.integers(0, 2), st.sampled_from([0.25, 0.5, 1.0])), max_size=9),
        st.sets(st.integers(0, 20), max_size=3),
    ),
    max_size=12,
)
"""In each step: number of new neighbours, pairs of row and new neighbour with weights, and deleted neighbours."""

REQUESTED_ROWS = st.lists(st.integers(0, ROWS + 1), max_size=6)


def integers(*numbers: int) -> IntArray:
    return np.array(numbers, dtype=np.int64)


def sort_pairs(triples: list[tuple[int, int, float]]) -> Segment:
    rows, neighbours, weights = zip(*triples, strict=True) if triples else ((), (), ())
    return Segment.from_entries(integers(*rows), integers(*neighbours), np.array(weights, dtype=np.float32))


def gathered(adjacency: SegmentList | PrunedAdjacency, requested: list[int]) -> list[list[tuple[int, float]]]:
    neighbours, owners, weights = adjacency.get_neighbours(integers(*requested))
    assert (np.diff(owners) >= 0).all()
    assert adjacency.degrees(integers(*requested)).tolist() == np.bincount(owners, minlength=len(requested)).tolist()
    return [
        list(zip(neighbours[owners == place].tolist(), weights[owners == place].tolist(), strict=True))
        for place in range(len(requested))
    ]


def expected(pairs: Pairs, requested: list[int]) -> list[list[tuple[int, float]]]:
    of_row = defaultdict(list)
    for (row, neighbour), weight in sorted(pairs.items()):
        of_row[row].append((neighbour, weight))
    return [of_row[row] for row in requested]


@given(steps=COMING, requested=REQUESTED_ROWS, laid_down=st.integers(0, 12))
def test_a_row_has_its_added_neighbours_without_deleted_ones(
    steps: list[tuple[int, list[tuple[int, int, float]], set[int]]], requested: list[int], laid_down: int
) -> None:
    growing, pruned = SegmentList.empty(), PrunedAdjacency.empty()
    came: Pairs = {}
    there: Pairs = {}
    count, all_gone = 0, set[int]()
    for number, (more, triples, going) in enumerate(steps):
        earlier = growing, pruned, gathered(growing, requested), gathered(pruned, requested)
        new = [(row, count + place % more, weight) for row, place, weight in triples]
        count += more
        growing = growing.append(sort_pairs(new))
        pruned = pruned.with_changes(pruned.live.with_changes(integers(), more), sort_pairs([]), sort_pairs(new))
        for row, neighbour, weight in new:
            for pairs in (came, there):
                pairs[row, neighbour] = max(weight, pairs.get((row, neighbour), 0.0))
        removed_rows = sorted(neighbour for neighbour in going if neighbour < count and neighbour not in all_gone)
        lost = [pair for pair in there if pair[1] in removed_rows]
        deleted = sort_pairs([(*pair, 0.0) for pair in lost])
        pruned = pruned.with_changes(pruned.live.with_changes(integers(*removed_rows), 0), deleted, sort_pairs([]))
        there = {pair: weight for pair, weight in there.items() if pair[1] not in removed_rows}
        all_gone |= set(removed_rows)
        assert gathered(growing, requested) == expected(came, requested)
        assert gathered(pruned, requested) == expected(there, requested)
        assert gathered(earlier[0], requested) == earlier[2], "an earlier version has changed"
        assert gathered(earlier[1], requested) == earlier[3], "an earlier version has changed"
        if number == laid_down:
            growing, pruned = growing.compact(), pruned.compact()
            assert len(growing.segments) == len(pruned.pairs.segments) == 1
    assert gathered(growing.compact(), requested) == expected(came, requested)


@given(pairs=st.lists(st.tuples(st.integers(0, ROWS), st.integers(0, 9), st.sampled_from([0.25, 0.5, 1.0]))))
def test_of_duplicate_pairs_the_highest_weight_counts(pairs: list[tuple[int, int, float]]) -> None:
    highest: Pairs = {}
    for row, neighbour, weight in pairs:
        highest[row, neighbour] = max(weight, highest.get((row, neighbour), 0.0))
    adjacency, requested = SegmentList.empty().append(sort_pairs(pairs)), list(range(ROWS + 1))
    assert gathered(adjacency, requested) == gathered(adjacency.compact(), requested) == expected(highest, requested)


def test_an_adjacency_has_few_segments_after_many_additions() -> None:
    adjacency = SegmentList.empty().append(sort_pairs([(0, 0, 1.0)])).compact()
    for number in range(1, 1000):
        adjacency = adjacency.append(sort_pairs([(number % 3, number, 1.0)]))
    assert len(adjacency.segments) <= 5
    assert adjacency.degrees(integers(0, 1, 2)).tolist() == [334, 333, 333]


@given(steps=st.lists(st.tuples(st.lists(st.integers(0, 99), max_size=5), st.booleans()), max_size=20))
def test_appending_does_not_change_earlier_arrays(steps: list[tuple[list[int], bool]]) -> None:
    tails = [(AppendOnlyArray.from_values(integers()), list[int]())]
    for more, from_the_last in steps:
        tail, values = tails[-1 if from_the_last else len(tails) // 2]
        tails.append((tail.append(integers(*more)), values + more))
        assert [tail.values.tolist() for tail, _ in tails] == [values for _, values in tails]


@given(
    steps=st.lists(st.tuples(st.integers(0, 5), st.sets(st.integers(0, 30), max_size=3), st.booleans()), max_size=20)
)
def test_deleting_rows_does_not_change_earlier_live_rows(
    steps: list[tuple[int, set[int], bool]],
) -> None:
    names = [(LiveRows.empty(), list[bool]())]
    for came, going, from_the_last in steps:
        presence, there = names[-1 if from_the_last else len(names) // 2]
        deleted = [row for row in sorted(going) if row < len(there) and there[row]]
        left = [is_there and row not in deleted for row, is_there in enumerate(there)]
        names.append((presence.with_changes(integers(*deleted), came), left + came * [True]))
        for presence, there in names:
            assert presence.mask.tolist() == there
            assert presence.to_rows().tolist() == [row for row, is_there in enumerate(there) if is_there]
            assert presence.are_live(np.arange(len(there))).tolist() == there
            assert (len(presence), presence.deleted_count) == (len(there), there.count(False))


def test_segments_are_few_and_entries_are_rarely_copied() -> None:
    lookup = SegmentList.empty()
    moved = 0
    for row in range(2000):
        before = {id(segment) for segment in lookup.segments}
        lookup = lookup.append(Segment.from_entries(np.array([row], dtype=np.uint64), np.array([row])))
        moved += sum(len(segment) for segment in lookup.segments if id(segment) not in before)
        assert len(lookup.segments) <= 4
    assert moved <= 2000 * 4 * 8
    assert sorted(row for segment in lookup.segments for row in segment.rows.tolist()) == list(range(2000))
    sizes = [len(segment) for segment in lookup.segments]
    assert sizes == sorted(sizes, reverse=True)


@given(
    parts=st.lists(st.lists(st.tuples(st.integers(0, 5) | st.just(2**64 - 1), st.integers(0, 9))), max_size=3),
    requested=st.lists(st.integers(0, 6) | st.just(2**64 - 1), max_size=4),
)
def test_rows_are_found_by_hash(parts: list[list[tuple[int, int]]], requested: list[int]) -> None:
    lookup = SegmentList.empty()
    for part in parts:
        hashes = np.array([hashed for hashed, _ in part], dtype=np.uint64)
        lookup = lookup.append(Segment.from_entries(hashes, np.array([row for _, row in part], dtype=np.int64)))
    entries = [(hashed, row) for part in parts for hashed, row in set(part)]
    expected = [sorted(row for hashed, row in entries if hashed == key) for key in requested]
    for whole in (lookup, lookup.compact()):
        rows, owners, _ = whole.get_neighbours(np.array(requested, dtype=np.uint64))
        assert [sorted(rows[owners == place].tolist()) for place in range(len(requested))] == expected
        assert whole.degrees(np.array(requested, dtype=np.uint64)).tolist() == list(map(len, expected))
