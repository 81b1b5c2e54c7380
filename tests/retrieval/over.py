"""A retriever over one snapshot, asked question after question."""

from __future__ import annotations

from dataclasses import dataclass

from polyad.model import Evidence, Query
from polyad.protocols.components import Retriever
from polyad.protocols.snapshot import Snapshot


@dataclass(frozen=True)
class Over:
    """Asks a retriever of one snapshot."""

    snapshot: Snapshot
    retriever: Retriever

    def retrieve(self, question: str, k: int) -> Evidence:
        return self.retriever.retrieve(Query(question, k), self.snapshot)
