"""Document ids of the rows of a snapshot."""

from __future__ import annotations

from collections.abc import Sequence

from polyad.model import IntArray
from polyad.protocols.snapshot import Snapshot


def get_document_ids(snapshot: Snapshot, passages: IntArray | Sequence[int]) -> list[str]:
    return [id.rpartition("#")[0] for id in snapshot.ids("passage", passages)]
