"""The plug-in point between construction methods and the pipeline: passages in, hyperedges without vectors out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from polyad.errors import LanguageModelError
from polyad.model import Hyperedge, Incidence, Passage, Usage
from polyad.protocols.components import Prompt

OnMessage = Callable[[str], None]
"""Told, in a few words, how far a long piece of work is."""


def no_message(words: str) -> None:
    """A :data:`OnMessage` that goes nowhere."""


@dataclass(frozen=True, slots=True)
class DraftHyperedge:
    """A hyperedge and its members, before it is embedded."""

    hyperedge: Hyperedge
    incidences: tuple[Incidence, ...]


@dataclass(frozen=True, slots=True)
class Built:
    """What became of one passage.

    Attributes:
        hyperedges: In order of their position.
        failure: Why there are not all that there should be; None when there are.
        notes: What was found, dropped and repaired, counted by reason.
    """

    hyperedges: Sequence[DraftHyperedge]
    failure: LanguageModelError | None = None
    notes: Counter[str] = field(default_factory=Counter)


class HyperedgeBuilder(Protocol):
    """Builds the hyperedges of passages by one method."""

    @property
    def name(self) -> str:
        """The method with its settings; what was built under another name is built again."""

    def build(self, passages: Sequence[Passage], on_message: OnMessage = no_message) -> list[Built]:
        """The hyperedges of each passage.

        A passage for which a language model gave no usable reply has that failure: its text is indexed and the next run
        asks again; with NoMoreRepliesError the run ends.

        Raises:
            PolyadError: a passage cannot be built; the pipeline then finds out which and reports its document.
        """

    def estimate(self, passages: Sequence[Passage], known: Callable[[Sequence[Prompt]], list[str | None]]) -> Usage:
        """What building ``passages`` is likely to cost on a language model: prompts are counted, replies guessed.

        Args:
            passages: That are not in the index yet.
            known: Of each prompt, the reply that was paid for earlier; None where there is none.
        """


def hyperedge_id(passage_id: str, position: int) -> str:
    """The id of a passage's hyperedge; zero-padded, so that the ids of fewer than 1,000 sort by position."""
    return f"{passage_id}/{position:03}"


def passage_id(document_id: str, position: int) -> str:
    """The id of a document's passage; zero-padded, so that the ids of fewer than 10,000 sort by position."""
    return f"{document_id}#{position:04}"
