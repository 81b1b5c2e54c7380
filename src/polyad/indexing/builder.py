"""The plug-in point between construction methods and the pipeline: passages in, hyperedges without vectors out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from polyad.errors import LanguageModelError
from polyad.model import Hyperedge, Incidence, Passage

Tell = Callable[[str], None]
"""Told, in a few words, how far a long piece of work is."""


def untold(words: str) -> None:
    """A :data:`Tell` that tells nobody."""


@dataclass(frozen=True, slots=True)
class DraftHyperedge:
    """A hyperedge and its members, before it is embedded."""

    hyperedge: Hyperedge
    incidences: tuple[Incidence, ...]


class HyperedgeBuilder(Protocol):
    """Builds the hyperedges of passages by one method."""

    @property
    def name(self) -> str:
        """The method with its settings; what was built under another name is built again."""

    def build(
        self, passages: Sequence[Passage], tell: Tell = untold
    ) -> list[list[DraftHyperedge] | LanguageModelError]:
        """The hyperedges of each passage, in order of their position.

        A passage for which a language model gave no usable reply is that error: its text is indexed and the next run
        asks again; with NoMoreRepliesError the run ends.

        Raises:
            PolyadError: a passage cannot be built; the pipeline then finds out which and reports its document.
        """


def hyperedge_id(passage_id: str, position: int) -> str:
    """The id of a passage's hyperedge; zero-padded, so that ids sort by position."""
    return f"{passage_id}/{position:03}"


def passage_id(document_id: str, position: int) -> str:
    """The id of a document's passage; zero-padded, so that ids sort by position."""
    return f"{document_id}#{position:04}"
