from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.snapshot import columns
from polyad.snapshot.columns import EntityKeys, StringIndex

BATCHES = st.lists(st.lists(st.text("aAé中~#0", max_size=3), max_size=6), max_size=5)


@given(batches=BATCHES, rows=st.lists(st.integers(0, 9), max_size=6))
def test_ranks_order_rows_by_id_and_equal_rows_have_equal_ranks(batches: list[list[str]], rows: list[int]) -> None:
    index, ids = StringIndex.empty(), list[str]()
    for batch in batches:
        index = index.append(batch)
        ids += batch
        assert index.strings.take(range(len(index))) == ids
        listed = [row for row in rows if row < len(ids)]
        ranks = index.strings.rank(np.array(listed, dtype=np.int64)).tolist()
        for row, rank in zip(listed, ranks, strict=True):
            for other, other_rank in zip(listed, ranks, strict=True):
                assert rank < other_rank or ids[row] >= ids[other]
                assert rank == other_rank or row != other


@given(batches=BATCHES, question=st.text("aAé中~#0", max_size=3))
def test_the_last_of_equal_ids_is_found(batches: list[list[str]], question: str) -> None:
    ids, keys = StringIndex.empty(), EntityKeys.empty()
    for batch in batches:
        ids, keys = ids.append(batch), keys.append(batch)
    texts = [text for batch in batches for text in batch]
    expected = [
        max((row for row, other in enumerate(texts) if other == text), default=-1) for text in (*texts, question)
    ]
    assert ids.find_rows([*texts, question]).tolist() == expected
    assert keys.find_rows([*texts, question]).tolist() == expected
    assert keys.find_with_aliases([*texts, question])[0].tolist() == expected
    assert len(keys) == len(texts)


def test_an_index_is_unchanged_without_new_ids() -> None:
    index = StringIndex.empty().append(["a"])
    assert index.append([]) is index
    assert EntityKeys.empty().find_rows(["a"]).tolist() == [-1]


def test_ids_with_equal_hashes_are_distinguished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "hash_string", lambda text: 7)
    keys = EntityKeys.empty().append(["a", "b"]).append(["c", "a"])
    assert keys.find_rows(["a", "b", "c", "d"]).tolist() == [3, 1, 2, -1]
