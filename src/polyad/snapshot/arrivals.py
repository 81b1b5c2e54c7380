"""The rows of documents that came to an index since a snapshot was made, as one array each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from polyad.model import FloatArray, IntArray
from polyad.protocols.store import StoredRows
from polyad.snapshot.columns import Column
from polyad.snapshot.term_index import Postings, counted_words


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """The rows of documents that came, all together; see :class:`polyad.protocols.store.StoredRows`.

    Attributes:
        documents: Ids.
        entity_keys: Of entities that were not known, by their numbers.
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
    def of(cls, batches: Iterable[StoredRows], first_row: int, last_entity: int, dimension: int) -> Arrivals:
        """All of some batches; texts are counted and dropped as they come.

        Args:
            batches: In the order of their rows.
            first_row: Of the first passage.
            last_entity: The store's number of the last entity whose key is known.
            dimension: Length of vectors.
        """
        whole, real = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        columns: dict[str, list[npt.NDArray[Any]]] = {
            "passage_numbers": [whole],
            "passage_vectors": [real.reshape(0, dimension)],
            "hyperedge_numbers": [whole],
            "passage_of_hyperedge": [whole],
            "hyperedge_scores": [real],
            "hyperedge_vectors": [real.reshape(0, dimension)],
            "incidence_entity": [whole],
            "incidence_hyperedge": [whole],
            "incidence_strength": [real],
            "lengths": [whole.astype(np.int32)],
        }
        passages: list[str] = []
        hyperedges: list[str] = []
        owners: list[str] = []
        postings: list[Postings] = []
        keys: dict[int, str] = {}
        for batch in batches:
            counted, lengths = counted_words(batch.texts, first_row + len(passages))
            postings.append(counted)
            for name, parts in columns.items():
                parts.append(lengths if name == "lengths" else getattr(batch, name))
            passages += batch.passage_ids
            hyperedges += batch.hyperedge_ids
            owners += batch.document_ids
            keys.update(pair for pair in batch.entity_keys.items() if pair[0] > last_entity)
        places = {id: place for place, id in enumerate(dict.fromkeys(owners))}
        return cls(
            passage_ids=passages,
            hyperedge_ids=hyperedges,
            documents=list(places),
            document_of_passage=np.array([places[id] for id in owners], dtype=np.int64),
            entity_keys=keys,
            postings=postings,
            **{name: np.concatenate(columns.pop(name)) for name in list(columns)},
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
