"""By which method each document of an index was built, so that indexing it again loses nothing that was paid or given.

Facts that a model was paid for are not replaced by units of text, nor facts that were given as data, nor is a table of
these read as prose, unless the method is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from polyad.model import Document, Failure, HyperedgeKind

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
