"""A retriever over one view, asked question after question."""

from __future__ import annotations

from dataclasses import dataclass

from polyad.model import Evidence, Query
from polyad.protocols import Retriever
from polyad.view import View


@dataclass(frozen=True)
class Over:
    """Asks a retriever of one view."""

    view: View
    retriever: Retriever

    def retrieve(self, question: str, k: int) -> Evidence:
        return self.retriever.retrieve(Query(question, k), self.view)
