"""The state and the outcome of each file of an indexing job: added, updated, unchanged, or failed with the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from polyad.indexing.run import Outcome
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

    def count(self, outcome: Outcome, id: str, reason: str = "") -> None:
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
class FileResults:
    """Follows the files of a job from reading to the index, by the outcomes of their documents.

    Attributes:
        files: One result for each file.
    """

    files: Sequence[FileResult]
    _pending: dict[str, list[FileResult]] = field(default_factory=dict)
    _open: Counter[int] = field(default_factory=Counter)

    def begin(self, number: int) -> None:
        """Record that the file with this number is being read."""
        self.files[number].state = "reading"

    def add(self, number: int, item: Document | Failure) -> None:
        """Record a document, or a failure, of the file with this number."""
        if isinstance(item, Failure):
            self.files[number].count("failed", item.id, item.reason)
        else:
            self._pending.setdefault(item.id, []).append(self.files[number])
            self._open[id(self.files[number])] += 1

    def end(self, number: int) -> None:
        """Record that the file with this number was read."""
        file = self.files[number]
        is_pending = self._open[id(file)] > 0
        if not is_pending and not any((file.added, file.updated, file.unchanged, file.failed)):
            file.count("failed", file.name, "the file contains no document")
        file.state = "indexing" if is_pending else file.outcome

    def record(self, document_id: str, outcome: Outcome, reason: str) -> None:
        """Count a document with its outcome; of documents with one id, the first is indexed."""
        if files := self._pending.get(document_id):
            file = files.pop(0 if outcome in ("added", "updated") else -1)
            file.count(outcome, document_id, reason)
            self._open[id(file)] -= 1
            if file.state == "indexing" and not self._open[id(file)]:
                file.state = file.outcome

    def format(self) -> list[dict[str, Any]]:
        """Return all results as JSON objects."""
        return [asdict(file) for file in self.files]

    def close(self, reason: str = "") -> None:
        """Count all remaining documents as failed at the end of the job.

        Args:
            reason: The reason why the job ended early; empty if it processed all documents.
        """
        for document_id, files in self._pending.items():
            for file in files:
                file.count("failed", document_id, reason or "the document was not indexed")
        self._pending.clear()
        for file in self.files:
            if file.state in ("waiting", "reading") and reason:
                file.count("failed", file.name, reason)
            file.state = file.outcome
