"""The plug-in point between construction methods and the pipeline: passages in, hyperedges without vectors out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from polyad.errors import LanguageModelError
from polyad.model import Document, Failure, Hyperedge, HyperedgeKind, Incidence, Passage, Usage
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


METHOD_OF: Mapping[HyperedgeKind, str] = {
    HyperedgeKind.SEMANTIC_UNIT: "semantic-units",
    HyperedgeKind.FACT: "facts",
    HyperedgeKind.TUPLE: "tuples",
}
GIVEN = METHOD_OF[HyperedgeKind.TUPLE]

_RECORD = re.compile(r":\d+$")
"""What stands behind a file's name in the source of one of its many documents."""


@dataclass(frozen=True, slots=True)
class MethodAssignment:
    """The methods of an index.

    Attributes:
        default: Of what is new.
        of_documents: Of those that were built by another one, by id.
        of_files: Of files that hold such documents, by name: their new records are built like the others.
    """

    default: str
    of_documents: Mapping[str, str] = field(default_factory=dict)
    of_files: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_index(cls, default: str, kinds: Mapping[str, HyperedgeKind], sources: Mapping[str, str]) -> MethodAssignment:
        """From the kind of the hyperedges of each document, and its source."""
        methods = {id: method for id, kind in kinds.items() if (method := METHOD_OF[kind]) != default}
        files = {_RECORD.sub("", sources[id]): method for id, method in methods.items() if sources.get(id)}
        return cls(default, methods, files)

    @property
    def methods(self) -> list[str]:
        """The default, then the others that occur."""
        return [self.default, *sorted({*self.of_documents.values()} - {self.default})]

    def method_of(self, item: Document | Failure) -> str:
        """How to build a document; of a failure, how the file it is in is read."""
        if isinstance(item, Document) and item.id in self.of_documents:
            return self.of_documents[item.id]
        file = _RECORD.sub("", item.source if isinstance(item, Document) else item.id)
        if file in self.of_files:
            return self.of_files[file]
        return GIVEN if isinstance(item, Document) and item.arguments else self.default

    def files_by(self, method: str) -> Iterable[str]:
        """The files whose documents were built by a method that is not the default one, sorted."""
        return sorted(file for file, own in self.of_files.items() if own == method)
