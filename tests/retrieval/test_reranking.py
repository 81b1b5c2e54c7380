"""What a retriever finds, in the order of a reranker."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from polyad.errors import RerankerError
from polyad.model import Evidence, FloatArray, Passage, ScoredPassage
from polyad.retrieval.postprocessing import rerank


class ByLength:
    """The shortest passage is the best."""

    name = "length"

    def __init__(self, *scores: float) -> None:
        self.read: list[str] = []
        self._scores = scores

    def scores(self, question: str, passages: Sequence[str]) -> FloatArray:
        self.read += passages
        return np.array(self._scores or [-len(passage) for passage in passages], dtype=np.float32)


def retrieve(k: int) -> Evidence:
    passages = [Passage(f"d{n}#0000", f"d{n}", f"T{n}" * (n == 1), "x" * (100 - n), 0, 100 - n) for n in range(60)]
    return Evidence("q", "test", tuple(ScoredPassage(passage, 1.0, "found") for passage in passages[:k]))


def test_all_passages_are_read_and_put_in_order() -> None:
    judge = ByLength()
    passages = rerank(retrieve(50), judge).passages
    assert [hit.passage.id for hit in passages[:2]] == ["d49#0000", "d48#0000"]
    assert passages[0].reason == "with the score of the reranker; found"
    assert (len(judge.read), judge.read[1]) == (50, "T1\n" + "x" * 99)


def test_the_reranker_adds_to_the_ranking_of_the_retriever() -> None:
    passages = [
        ScoredPassage(Passage(f"d{n}#0000", f"d{n}", "", "x", 0, 1), score) for n, score in enumerate((9.0, 8.0, 1.0))
    ]
    reranker = ByLength(0.0, 0.2, 1.0)  # likes the third, which the retriever ranks far below the others
    orders = {
        weight: [
            hit.passage.document_id for hit in rerank(Evidence("q", "t", tuple(passages)), reranker, weight).passages
        ]
        for weight in (0.0, 0.5, 4.0)
    }
    assert orders == {0.0: ["d0", "d1", "d2"], 0.5: ["d0", "d1", "d2"], 4.0: ["d2", "d1", "d0"]}


def test_nothing_found_is_not_reranked() -> None:
    judge = ByLength()
    assert rerank(Evidence("q", "test"), judge).passages == ()
    assert judge.read == []


@pytest.mark.parametrize("scores", [(1.0, 2.0), (float("nan"),) * 50])
def test_a_reranker_that_breaks_its_promise_is_an_error(scores: tuple[float, ...]) -> None:
    with pytest.raises(RerankerError, match="'length' gave no finite number for each of 50 passages"):
        rerank(retrieve(50), ByLength(*scores))
