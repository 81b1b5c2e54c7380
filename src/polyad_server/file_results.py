"""The state and the outcome of each file of an indexing job: added, updated, unchanged, or failed with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from polyad.engine.catalogue import Catalogue
from polyad.model import Document, Failure

FileState = Literal["waiting", "reading", "indexing", "added", "updated", "unchanged", "failed"]

OUTCOMES = frozenset({"added", "updated", "unchanged", "failed"})
"""The last state of a file."""


@dataclass(slots=True)
class FileResult:
    """The state of one file of a job, with the outcome of its documents.

    Attributes:
        name: Name of the file, or address of the page.
        state: ``waiting``, ``reading``, ``indexing``, or the outcome: ``failed`` only if no document was indexed.
        added, updated, unchanged, failed: Numbers of documents.
        reason: Reason of the first failure; empty if there is none.
        document_id: Id of the first document that is in the index; empty if there is none.
    """

    name: str
    state: FileState = "waiting"
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    failed: int = 0
    reason: str = ""
    document_id: str = ""

    def count(self, outcome: Literal["added", "updated", "unchanged", "failed"], id: str, reason: str = "") -> None:
        """Count a document with its outcome."""
        setattr(self, outcome, getattr(self, outcome) + 1)
        if outcome == "failed":
            self.reason = self.reason or reason.removeprefix(f"{self.name}: ")
        else:
            self.document_id = self.document_id or id

    @property
    def outcome(self) -> FileState:
        """The outcome of a file all of whose documents are counted."""
        if self.added:
            return "added"
        return "updated" if self.updated else "unchanged" if self.unchanged else "failed"


@dataclass(slots=True)
class _PendingDocument:
    """A document that was read and may not be stored yet, with its content hash before the job."""

    file: FileResult
    digest: str | None


@dataclass(slots=True)
class FileResults:
    """Follows the files of a job from reading to the index, by comparing the content hashes of their documents.

    Attributes:
        catalogue: Looks up the content hashes of stored documents.
        files: One result for each file.
    """

    catalogue: Catalogue
    files: Sequence[FileResult]
    _pending: dict[str, _PendingDocument] = field(default_factory=dict)

    def begin(self, number: int) -> None:
        """Record that the file with this number is being read."""
        self.files[number].state = "reading"

    def add(self, number: int, item: Document | Failure) -> None:
        """Record a document, or a failure, of the file with this number."""
        if isinstance(item, Failure):
            self.files[number].count("failed", item.id, item.reason)
        elif item.id not in self._pending:
            self._pending[item.id] = _PendingDocument(self.files[number], self._get_digests([item.id]).get(item.id))

    def end(self, number: int) -> None:
        """Record that the file with this number was read."""
        file = self.files[number]
        is_pending = any(each.file is file for each in self._pending.values())
        if not is_pending and not any((file.added, file.updated, file.unchanged, file.failed)):
            file.count("failed", file.name, "the file contains no document")
        file.state = "indexing" if is_pending else file.outcome

    def settle(self) -> list[dict[str, Any]]:
        """Count the documents that were stored since the last call, and return all results as JSON objects."""
        digests = self._get_digests(list(self._pending))
        for id, each in list(self._pending.items()):
            if id in digests and digests[id] != each.digest:
                each.file.count("added" if each.digest is None else "updated", id)
                del self._pending[id]
        return [asdict(file) for file in self.files]

    def close(self, failures: Sequence[Failure], reason: str = "") -> list[dict[str, Any]]:
        """Count all remaining documents at the end of the job, and return all results as JSON objects.

        Args:
            failures: Documents that could not be indexed.
            reason: The reason why the job ended early; empty if it processed all documents.
        """
        self.settle()
        reasons: Mapping[str, str] = {failure.id: failure.reason for failure in failures}
        for id, each in self._pending.items():
            if id not in reasons and each.digest is not None and not reason:
                each.file.count("unchanged", id)
            else:
                each.file.count("failed", id, reasons.get(id) or reason or "the document was not indexed")
        self._pending.clear()
        for file in self.files:
            if file.state in ("waiting", "reading") and reason:
                file.count("failed", file.name, reason)
            file.state = file.outcome
        return [asdict(file) for file in self.files]

    def _get_digests(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the content hashes of stored documents; an id with a lone surrogate is in no index."""
        return self.catalogue.digests([id for id in ids if id == id.encode(errors="ignore").decode()])
