"""Maintenance of an index: checks of its invariants, repairs and backups."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from polyad.curation.corrections import correct_document, load_effects, load_originals, restore_originals
from polyad.curation.curator import Curator, HistoryRecorder, has_equal_content
from polyad.curation.statements import Statements
from polyad.engine.opening import list_own_files
from polyad.errors import ConfigurationError, PolyadError, StoreError, StoreUnavailableError
from polyad.model import IndexedDocument
from polyad.protocols.components import Progress, silent
from polyad.protocols.lookups import get_digests
from polyad.protocols.store import Damage, MaintainedStore, Store, StoredDocument
from polyad.snapshot.files import SnapshotFiles
from polyad.snapshot.integrity import check_files
from polyad.text.files import check_output_path

_LOG = logging.getLogger(__name__)

_BATCH = 100
"""Documents in memory at a time."""

_MAX_REPAIRS = 3


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The result of checking an index: the damaged records, before and after a repair.

    Attributes:
        damage: The violations that the check detected, sorted.
        remaining: The violations that are not repaired; all violations if no repair was requested.
        sources: Source of each damaged document, by id; indexing the source again repairs the document.
        seconds: Wall time.
    """

    damage: tuple[Damage, ...]
    remaining: tuple[Damage, ...]
    sources: dict[str, str]
    seconds: float


@dataclass(frozen=True, slots=True)
class BackupReport:
    """The result of a backup: the written files and their size.

    Attributes:
        files: The copy of the index, and the copy of the cached replies if there are any.
        bytes: Total size of the files.
        seconds: Wall time.
    """

    files: tuple[str, ...]
    bytes: int
    seconds: float


class Checker:
    """Checks one index for damage, such as wrong checksums, and repairs derived data.

    Args:
        store: The index.
        files: The saved snapshot; None if the store has no folder.
        recorder: Records repairs of documents in the history.
    """

    def __init__(self, store: Store, files: SnapshotFiles | None, recorder: HistoryRecorder) -> None:
        self._store = store
        self._files = files
        self._recorder = recorder

    def run(self, progress: Progress = silent, *, repairs: bool) -> CheckReport:
        """Check the index for damage and return a report; with ``repairs``, also repair derived data."""
        start = time.perf_counter()
        damage = remaining = self._find_damage(progress)
        for _ in range(_MAX_REPAIRS if repairs else 0):
            if not any(one.remedy == "repair" for one in remaining):
                break
            self._repair(remaining)
            remaining = self._find_damage(progress)  # after a repair, further invariants can be checked
            damage = sorted({*damage, *remaining})
        ids = sorted({one.document_id for one in remaining if one.document_id})
        sources = _get_sources(self._store, ids)
        return CheckReport(tuple(damage), tuple(remaining), sources, time.perf_counter() - start)

    def _find_damage(self, progress: Progress) -> list[Damage]:
        """Return the damage to database rows, user corrections and snapshot files.

        Corrections are checked only if all rows are intact.
        """
        try:
            progress(0, 3, "groups of invariants: rows")
            damage = self._store.verify() if isinstance(self._store, MaintainedStore) else []
            if not damage:
                progress(1, 3, "groups of invariants: corrections")
                damage += self._check_corrections()
            if self._files is not None:
                progress(2, 3, "groups of invariants: snapshot")
                changed = self._files.find_changed_files()
                damage += changed if damage else check_files(self._files, self._store, self._store.manifest.dimension)
        except StoreUnavailableError:
            raise
        except StoreError as error:
            return [Damage("structure", "file", "", str(error))]
        return sorted(damage)

    def _check_corrections(self) -> Iterator[Damage]:
        """Yield damage for each document to which the user's corrections are not applied correctly.

        Corrections that cannot be read are one damage.
        """
        try:
            statements = Statements.load(self._store)
        except (PolyadError, ValueError) as error:
            yield Damage("corrections", "value", "", f"cannot be read: {error}")
            return
        ids = list(get_digests(self._store))
        for first in range(0, len(ids), _BATCH):
            batch = ids[first : first + _BATCH]
            with self._store.read_transaction() as transaction:
                documents = transaction.get(IndexedDocument, batch)
                originals, effects = load_originals(self._store, batch), load_effects(self._store, batch)
            for id, document in documents.items():
                if id in effects and id not in originals:
                    yield Damage("corrections", "originals", id, "are missing", id, "index")
                    continue
                corrected = correct_document(restore_originals(document, originals.get(id, ())), statements)
                is_applied = (corrected.effects if corrected.originals else None) == effects.get(id)
                if not has_equal_content(corrected.document, document) or not is_applied:
                    yield Damage("corrections", "document", id, "differs from what corrections leave", remedy="repair")

    def _repair(self, damage: Sequence[Damage]) -> None:
        """Repair database rows, or apply user corrections again; delete the snapshot files, which are derived."""
        ids = [one.id for one in damage if one.invariant == "corrections" and one.remedy == "repair"]
        try:
            if ids:
                Curator(self._store).change(lambda statements: statements, lambda _: ids, self._recorder)
            elif isinstance(self._store, MaintainedStore):
                self._store.repair()
        except StoreUnavailableError:
            raise
        except StoreError as error:  # the next check reports the damage that remains
            _LOG.debug("the repair failed", exc_info=error)
        if self._files is not None:
            self._files.delete()


def _get_sources(store: Store, ids: list[str]) -> dict[str, str]:
    try:
        with store.read_transaction() as transaction:
            return {id: document.source for id, document in transaction.get(StoredDocument, ids).items()}
    except (StoreError, UnicodeEncodeError):  # the documents themselves are damaged
        return {}


def back_up(store: Store, path: Path, *, overwrite: bool) -> BackupReport:
    """Copy an index to the file ``path`` and return a report; see :meth:`polyad.engine.engine.Engine.back_up`."""
    start = time.perf_counter()
    if path.is_dir():
        raise ConfigurationError(f"{str(path)!r} is a folder; expected the name of a file")
    check_output_path(path, overwrite=overwrite, own_files=list_own_files(store))
    if not isinstance(store, MaintainedStore):
        raise StoreError(f"this store cannot be copied to {str(path)!r}; use polyad export")
    files = store.back_up(path)
    return BackupReport(tuple(map(str, files)), sum(file.stat().st_size for file in files), time.perf_counter() - start)
