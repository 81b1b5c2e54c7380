"""Construction methods: the protocol of hyperedge builders, and the method of each document of an index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from polyad.errors import LanguageModelError
from polyad.model import Document, Failure, Hyperedge, HyperedgeKind, Incidence, Passage, Usage
from polyad.protocols.components import Prompt
from polyad.text.files import get_source_file

OnMessage = Callable[[str], None]
"""Callback that receives a short message about the progress of a long step."""

FindReplies = Callable[[Sequence[Prompt]], list[str | None]]
"""Returns the cached reply to each prompt, or None for a prompt without one."""


def ignore_message(message: str) -> None:
    """Discard a progress message: the default ``on_message`` callback."""


@dataclass(frozen=True, slots=True)
class DraftHyperedge:
    """A hyperedge and its incidences, before it is embedded."""

    hyperedge: Hyperedge
    incidences: tuple[Incidence, ...]


@dataclass(frozen=True, slots=True)
class BuildResult:
    """The hyperedges built from one passage.

    Attributes:
        hyperedges: The hyperedges, ordered by position.
        failure: The reason why hyperedges are missing; None if there are none missing.
        notes: Counts of extracted, dropped and repaired items, by reason.
    """

    hyperedges: Sequence[DraftHyperedge]
    failure: LanguageModelError | None = None
    notes: Counter[str] = field(default_factory=Counter)


class HyperedgeBuilder(Protocol):
    """Builds the hyperedges of passages by one construction method."""

    @property
    def name(self) -> str:
        """The method with its settings; passages that were built under another name are built again."""

    def build(self, passages: Sequence[Passage], on_message: OnMessage = ignore_message) -> list[BuildResult]:
        """Build the hyperedges of each passage.

        If a language model gives no usable reply for a passage, the result has that failure: the text is indexed, and
        the next run retries the passage. A NoMoreRepliesError as the failure ends the run.

        Raises:
            PolyadError: a passage cannot be built; the indexer then finds that passage and reports its document.
        """

    def estimate(self, passages: Sequence[Passage], find_replies: FindReplies) -> Usage:
        """Estimate the language model usage of building passages: prompts are counted, replies guessed.

        Args:
            passages: Passages that are not in the index yet.
            find_replies: Returns the cached reply to each prompt, which costs nothing.
        """


def build_hyperedge_id(passage_id: str, position: int) -> str:
    """Return the id of a passage's hyperedge, zero-padded so that up to 1,000 ids sort by position."""
    return f"{passage_id}/{position:03}"


def build_passage_id(document_id: str, position: int) -> str:
    """Return the id of a document's passage, zero-padded so that up to 10,000 ids sort by position."""
    return f"{document_id}#{position:04}"


METHOD_BY_KIND: Mapping[HyperedgeKind, str] = {
    HyperedgeKind.SEMANTIC_UNIT: "semantic-units",
    HyperedgeKind.FACT: "facts",
    HyperedgeKind.TUPLE: "tuples",
}
TUPLES = METHOD_BY_KIND[HyperedgeKind.TUPLE]


@dataclass(frozen=True, slots=True)
class MethodAssignment:
    """Which construction method built each document of an index.

    An indexed document keeps its method unless the user names another. So neither paid facts nor tuples are replaced by
    semantic units, and a table of tuples is not read as prose.

    Attributes:
        default: Method of new documents.
        document_methods: Method by document id, for documents built by another method than the default.
        file_methods: Method by file, for files that contain such documents; new records of the file get this method.
    """

    default: str
    document_methods: Mapping[str, str] = field(default_factory=dict)
    file_methods: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_index(
        cls, default: str, document_kinds: Mapping[str, HyperedgeKind], document_sources: Mapping[str, str]
    ) -> MethodAssignment:
        """Derive the method of each document and source file from the kind of each document's hyperedges."""
        methods = {id: method for id, kind in document_kinds.items() if (method := METHOD_BY_KIND[kind]) != default}
        files = {
            get_source_file(source): method for id, method in methods.items() if (source := document_sources.get(id))
        }
        return cls(default, methods, files)

    @property
    def methods(self) -> list[str]:
        """The default method, followed by the other methods in the index."""
        return [self.default, *sorted({*self.document_methods.values()} - {self.default})]

    def get_method(self, item: Document | Failure) -> str:
        """Return the method of a document; for a failure, return the method of the file that could not be read."""
        if isinstance(item, Document) and item.id in self.document_methods:
            return self.document_methods[item.id]
        file = get_source_file(item.source if isinstance(item, Document) else item.id)
        if file in self.file_methods:
            return self.file_methods[file]
        return TUPLES if isinstance(item, Document) and item.arguments else self.default

    def list_files(self, method: str) -> Iterable[str]:
        """Return the files whose documents were built by a method other than the default, sorted."""
        return sorted(file for file, file_method in self.file_methods.items() if file_method == method)
