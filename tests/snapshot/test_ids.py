from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.snapshot import ids as ids_module
from polyad.snapshot.ids import EntityKeys, Ids

TEXTS = st.lists(st.lists(st.text("aAé中~#0", max_size=3), max_size=6), max_size=5)


@pytest.fixture(autouse=True, scope="module", params=[1024, 2])
def _marked(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every how many ids are kept in memory; among few rows none of those in thousands is ever passed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ids_module, "_MARKED", request.param)
        yield


def row_of(keys: EntityKeys, key: str) -> int | None:
    row = int(keys.rows([key])[0])
    return None if row < 0 else row


def in_order(ids: Ids) -> list[str]:
    """The ids as their numbers order them."""
    rows = np.arange(len(ids))
    return ids.take(rows[np.lexsort((rows, ids.order(rows)))])


@given(batches=TEXTS)
def test_numbers_order_rows_as_their_ids_do(batches: list[list[str]]) -> None:
    ids, texts = Ids.none(), list[str]()
    for batch in batches:
        earlier, before = ids, in_order(ids)
        ids = ids.extended(batch)
        texts += batch
        assert in_order(earlier) == before, "what was there is as it was"
        assert ids.take(range(len(ids))) == texts
        assert in_order(ids) == sorted(texts)
        assert ids.take(ids.all_ordered().tolist()) == sorted(texts)
        keys = ids.order(np.arange(len(texts)))
        for row, text in enumerate(texts):
            assert all(keys[row] < keys[other] for other, later in enumerate(texts) if text < later)


@given(batches=TEXTS, asked=st.text("aAé中~#0", max_size=3))
def test_of_equal_ids_the_last_is_found(batches: list[list[str]], asked: str) -> None:
    ids, keys = Ids.none(), EntityKeys.none()
    for batch in batches:
        ids, keys = ids.extended(batch), keys.extended(batch)
    texts = [text for batch in batches for text in batch]
    for text in (*texts, asked):
        expected = max((row for row, other in enumerate(texts) if other == text), default=None)
        assert ids.find(text) == row_of(keys, text) == expected
    assert len(keys) == len(texts)
    assert [keys[row] for row in range(len(texts))] == texts


@pytest.mark.parametrize("place", ["before the last", "after the first", "in the middle", "at the end", "at the front"])
def test_the_order_holds_when_thousands_come_at_one_place(place: str) -> None:
    ids = Ids.none().extended(["m", "p"])
    expected = ["m", "p"]
    low, high = "m", "p"
    for number in range(3000):
        middle = f"n{number:05}"
        new = {
            "before the last": f"n{number:05}",
            "after the first": f"n{99999 - number:05}",
            "in the middle": middle if number % 2 else f"o{99999 - number:05}",
            "at the end": f"q{number:05}",
            "at the front": f"a{99999 - number:05}",
        }[place]
        assert place.startswith("at") or low < new < high
        ids = ids.extended([new])
        expected.append(new)
        if number % 500 == 0:
            assert in_order(ids) == sorted(expected)
    assert in_order(ids) == sorted(expected)
    keys = ids.order(np.arange(len(ids)))
    assert len(set(keys.tolist())) == len(ids)


def test_numbers_are_given_anew_only_when_those_between_two_neighbours_are_used_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = Ids.none().extended(["a", "z"])
    kept = 0
    for number in range(200):
        before = ids.order(np.arange(len(ids)))
        ids = ids.extended([f"b{number:03}"])
        kept += bool((ids.order(np.arange(len(before))) == before).all())
    assert 150 < kept < 200
    monkeypatch.setattr(ids_module, "_SMALLEST_STEP", 10)
    before = ids.order(np.arange(len(ids)))
    ids = ids.extended(["c"])
    assert ids.order(ids.all_ordered().astype(np.int64)).tolist() == list(range(203))
    assert len(ids.keys.tail) == 0


def test_many_that_come_at_one_place_at_once_are_in_order() -> None:
    ids = Ids.none().extended(["a", "z"]).extended([f"m{number:05}" for number in range(5000)][::-1])
    assert in_order(ids) == sorted(ids.take(range(5002)))


def test_no_ids_change_nothing() -> None:
    ids = Ids.none().extended(["a"])
    assert ids.extended([]) is ids
    keys = EntityKeys.none()
    assert keys.extended([]) is keys
    assert row_of(keys, "a") is None


def test_keys_whose_hashes_are_the_same_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids_module, "hash_of", lambda text: 7)
    keys = EntityKeys.none().extended(["a", "b"]).extended(["c", "a"])
    assert [row_of(keys, key) for key in ("a", "b", "c", "d")] == [3, 1, 2, None]
