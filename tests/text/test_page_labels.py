"""Printed page labels, as runs and looked up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.text.page_labels import PAGE_LABELS, find_page_label, format_runs

LABELS = st.lists(
    st.one_of(
        st.sampled_from(["", "i", "ii", "iii", "iv", "IX", "X", "Cover", "A-1", "A-2", "a", "b", "c", "d", "07", "08"]),
        st.integers(0, 30).map(str),
        st.text(max_size=5),
    ),
    max_size=30,
)


@given(LABELS)
def test_each_page_gets_its_label_back(labels: list[str]) -> None:
    metadata = {PAGE_LABELS: format_runs(labels)}
    results = [find_page_label(metadata, page) for page in range(1, len(labels) + 1)]
    assert results == [label.strip() or None for label in labels]


def test_pages_that_count_up_are_one_run() -> None:
    labels = ["T-1", "T-2", "i", "ii", "iii", "iv", "v", *map(str, range(1, 300))]
    assert format_runs(labels) == ("1: T-1", "3: i", "8: 1")
    assert format_runs(["", ""]) == ()


def test_labels_for_which_there_is_no_room_are_left_out() -> None:
    labels = [f"{page % 7} of {page}" for page in range(1000)]
    metadata = {PAGE_LABELS: format_runs(labels)}
    assert sum(map(len, metadata[PAGE_LABELS])) < 1000
    results = [find_page_label(metadata, page) for page in range(1, 1001)]
    assert results[:20] == labels[:20]
    assert {label for label, expected in zip(results, labels, strict=True) if label != expected} == {None}


@pytest.mark.parametrize("value", ["1: i", ("", "x", "1:", "99999999999: 1"), 3])
def test_metadata_of_another_form_give_no_label(value: str | tuple[str, ...] | int) -> None:
    assert find_page_label({PAGE_LABELS: value}, 2) is None
    assert find_page_label({}, 2) is find_page_label({PAGE_LABELS: ("1: i",)}, None) is None
