"""The rows of documents that came to an index since a view was made, as one array each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from polyad.embedded.columns import Column
from polyad.embedded.words import Postings, counted_words
from polyad.model import FloatArray, IntArray
from polyad.storage import StoredRows


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """The rows of documents that came, all together; see :class:`polyad.storage.StoredRows`.

    Attributes:
        documents: Ids.
        document_of_passage: For each passage the place of its document in ``documents``.
        postings: The words of passages.
        lengths: Of passages, in words.
    """

    passage_numbers: IntArray
    passage_ids: list[str]
    documents: list[str]
    document_of_passage: IntArray
    passage_vectors: FloatArray
    hyperedge_numbers: IntArray
    hyperedge_ids: list[str]
    passage_of_hyperedge: IntArray
    hyperedge_scores: FloatArray
    hyperedge_vectors: FloatArray
    incidence_entity: IntArray
    incidence_hyperedge: IntArray
    incidence_strength: FloatArray
    entity_keys: dict[int, str]
    postings: list[Postings]
    lengths: IntArray

    @classmethod
    def of(cls, batches: Iterable[StoredRows], first_row: int, dimension: int) -> Arrivals:
        """All of some batches; texts are counted and dropped as they come."""
        parts: list[StoredRows] = []
        postings: list[Postings] = []
        lengths: list[IntArray] = []
        for batch in batches:
            counted, of_passages = counted_words(batch.texts, first_row)
            postings.append(counted)
            lengths.append(of_passages)
            first_row += len(batch.passage_ids)
            parts.append(replace(batch, texts=()))
        owners = [id for part in parts for id in part.document_ids]
        places = {id: place for place, id in enumerate(dict.fromkeys(owners))}

        def joined(name: str, like: npt.NDArray[Any]) -> npt.NDArray[Any]:
            return np.concatenate([like, *(getattr(part, name) for part in parts)])

        whole, real = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        return cls(
            joined("passage_numbers", whole),
            [id for part in parts for id in part.passage_ids],
            list(places),
            np.array([places[id] for id in owners], dtype=np.int64),
            joined("passage_vectors", real.reshape(0, dimension)),
            joined("hyperedge_numbers", whole),
            [id for part in parts for id in part.hyperedge_ids],
            joined("passage_of_hyperedge", whole),
            joined("hyperedge_scores", real),
            joined("hyperedge_vectors", real.reshape(0, dimension)),
            joined("incidence_entity", whole),
            joined("incidence_hyperedge", whole),
            joined("incidence_strength", real),
            {number: key for part in parts for number, key in part.entity_keys.items()},
            postings,
            np.concatenate([np.empty(0, dtype=np.int32), *lengths]),
        )


def rows_of(numbers: Column, wanted: IntArray) -> IntArray:
    """The row of each of some of the store's numbers.

    Raises:
        ValueError: there is no such row, as in a damaged file.
    """
    rows = numbers.count_below(wanted)
    if len(rows) and not (rows.max() < len(numbers) and (numbers.at(rows) == wanted).all()):
        raise ValueError("a row that refers to none")
    return rows
