"""The arrays of a snapshot on disk: mapped, so that they open at once and the processes of a machine share memory.

The folder beside the index holds nothing else and can be deleted at any time: the arrays are derived from the index and
are built again if they are missing, out of date or damaged. A snapshot is written into a folder of its own, which the
manifest then names in one atomic step.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints
from uuid import uuid4
from zlib import crc32

from polyad.config import NearestSettings
from polyad.protocols.snapshot import Kind
from polyad.protocols.store import Damage, ReadTransaction, Store
from polyad.snapshot.array_files import (
    Array,
    ArrayEntry,
    is_array_sound,
    iterate_arrays,
    map_array,
    restore_object,
    sync_unverified_arrays,
    write_array,
    write_blocks,
)
from polyad.snapshot.binary_codes import BinaryCodes
from polyad.snapshot.columns import Column, LiveRows
from polyad.snapshot.inverted_file import InvertedFile
from polyad.snapshot.mapped_snapshot import MappedSnapshot
from polyad.snapshot.tables import EntityColumns, HyperedgeColumns, PassageColumns, SavedCounts
from polyad.snapshot.vectors import Vectors
from polyad.text.files import read_file, write_atomically

_LOG = logging.getLogger(__name__)

T = TypeVar("T")

FORMAT = 19
"""Raise it if the meaning of an array changes, such as how terms are split or what a link counts."""

FOLDER = "snapshot"
"""Name of the folder in the directory of the index."""

_FIELDS: Mapping[type, tuple[str, ...]] = {
    MappedSnapshot: ("version", "graph", "link_count", "incidences"),
    PassageColumns: ("ids", "pks", "document", "documents", "vector_sum", "terms", "intervals"),
    HyperedgeColumns: ("ids", "pks", "intervals"),
    EntityColumns: ("keys", "pks", "words", "outdated"),
}
"""Fields of a snapshot that are saved, of values within only those without a default (:func:`iterate_arrays`).

Vectors are written by clusters, with the scores of entities.
"""


def iterate_snapshot_arrays(snapshot: MappedSnapshot) -> Iterator[tuple[str, Array]]:
    """Yield (name, array) for all arrays of a snapshot except vectors; arrays are built one at a time."""
    columns = {"passages": snapshot.passages, "hyperedges": snapshot.hyperedges, "entities": snapshot.entities}
    for prefix, value in {"": snapshot, **columns}.items():
        for name in _FIELDS[type(value)]:
            yield from iterate_arrays(f"{prefix}.{name}".lstrip("."), getattr(value, name))
    if snapshot.entities.scores is not None:
        yield from iterate_arrays("entities.scores", snapshot.entities.scores)


def restore_snapshot(arrays: Mapping[str, Array], vectors: Mapping[Kind, Vectors], store: Store) -> MappedSnapshot:
    """Build a snapshot from the arrays of its files, keyed by dotted name, and from its vectors, keyed by kind."""

    def restore(kind: type[T], prefix: str, **others: Any) -> T:
        types = get_type_hints(kind)
        saved = {name: restore_object(types[name], f"{prefix}{name}", arrays) for name in _FIELDS[kind]}
        return kind(**saved, **others)

    scores = Column.from_array(arrays["entities.scores"]) if "entities.scores" in arrays else None
    passages = restore(PassageColumns, "passages.", vectors=vectors["passage"])
    return restore(
        MappedSnapshot,
        "",
        store=store,
        passages=passages,
        hyperedges=restore(HyperedgeColumns, "hyperedges.", vectors=vectors["hyperedge"]),
        entities=restore(EntityColumns, "entities.", vectors=vectors.get("entity"), scores=scores),
        saved=SavedCounts(int(arrays["version"]), len(passages.ids), 0 if scores is None else len(scores)),
    )


class SnapshotFiles:
    """The files of the last saved snapshot (the index as arrays), which all processes map into memory.

    Args:
        directory: Directory of the index.
        settings: Which vectors are clustered, and how many clusters a search reads.
        shared: Files of another folder, through which several machines share them; None for none.
    """

    def __init__(
        self, directory: Path, settings: NearestSettings | None = None, shared: SnapshotFiles | None = None
    ) -> None:
        self._shared = shared
        self._folder = directory / FOLDER
        self._manifest = self._folder / "snapshot.json"
        self._settings = settings or NearestSettings()

    def get_version(self) -> int:
        """Return the store version of the saved snapshot; 0 if no snapshot is saved."""
        return int(self._get_entry("version", 0))

    def get_recall(self) -> dict[str, float]:
        """Return the measured recall of approximate vector search, for passages, hyperedges and entities."""
        return dict(self._get_entry("recall", {}))

    def _get_entry(self, name: str, default: Any) -> Any:
        with suppress(Exception):
            return self._read_manifest()[name]
        return default

    def _read_manifest(self) -> dict[str, Any]:
        """Read the manifest of the saved snapshot and verify its checksum and format.

        Raises ValueError if it is damaged, and whatever parsing damaged text raises.
        """
        manifest = json.loads(read_file(self._manifest))
        if manifest.pop("checksum") != _compute_checksum(manifest) or manifest["format"] != FORMAT:
            raise ValueError("the manifest is damaged or has another format")
        return dict(manifest)

    def find_changed_files(self) -> list[Damage]:
        """Return a Damage for each snapshot file whose contents do not match the checksum in the manifest."""
        changed: list[Damage] = []
        while self._manifest.exists():
            manifest = self._read_manifest_bytes()
            changed = [
                Damage("snapshot files", FOLDER, name, "was changed", remedy="repair")
                for name in self._list_changed_files(manifest)
            ]
            if not changed or self._read_manifest_bytes() == manifest:
                break  # otherwise another process saved a later snapshot meanwhile, and deleted these files
        return changed

    def _read_manifest_bytes(self) -> bytes:
        """Return the contents of the manifest; nothing if it cannot be read, or is no regular file."""
        try:
            return read_file(self._manifest)
        except OSError:
            return b""

    def _list_changed_files(self, manifest_bytes: bytes) -> list[str]:
        try:
            manifest = json.loads(manifest_bytes)
            is_sound = manifest.pop("checksum") == _compute_checksum(manifest)
        except Exception:
            is_sound = False
        if not is_sound:
            return [self._manifest.name]
        folder = self._folder / manifest["folder"]
        changed = [name for name, entry in manifest["arrays"].items() if not is_array_sound(folder, name, entry)]
        return [f"{name}.bin" for name in changed] if folder.exists() else []

    def delete(self) -> None:
        """Delete all files of the snapshot; the next search builds the snapshot from the store again."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def load(self, store: Store, transaction: ReadTransaction) -> MappedSnapshot | None:
        """Return the saved snapshot; None if no snapshot of this index is saved or if its files are damaged.

        Args:
            store: The index.
            transaction: Tells whether the index ever had the version with the token that was saved.
        """
        if self._shared is not None and self._shared.get_version() > self.get_version():
            self._shared.copy_to(self)
        try:
            manifest = self._read_manifest()
        except Exception:  # derived files are built again, whatever is wrong with them
            return None
        if not manifest["token"] or transaction.changes(manifest["version"]).token != manifest["token"]:
            return None
        try:
            snapshot = self._read(self._folder / manifest["folder"], manifest["arrays"], store)
        except Exception:
            _LOG.info("the saved snapshot cannot be read and is built again", exc_info=True)
            return None
        return snapshot if snapshot.version == manifest["version"] else None

    def save(self, snapshot: MappedSnapshot, token: str) -> None:
        """Write a snapshot and the ``token`` of its version to disk, unless the folder is read-only or the disk full.

        Args:
            snapshot: The snapshot.
            token: The token of the snapshot's version (:class:`polyad.protocols.store.Changes`).
        """
        with suppress(OSError), self._create_folder() as folder:
            arrays = self._write(folder, snapshot, self._settings)
            manifest = {
                "format": FORMAT,
                "version": snapshot.version,
                "token": token,
                "folder": folder.name,
                "arrays": arrays,
                "recall": self._read(folder, arrays, snapshot.store).measure_recall(),
            }
            sync_unverified_arrays(folder)
            write_atomically(self._manifest, json.dumps({"checksum": _compute_checksum(manifest), **manifest}))
            self._delete_other_folders(folder.name)
            if self._shared is not None:
                self.copy_to(self._shared)

    def copy_to(self, other: SnapshotFiles) -> None:
        """Copy the files of the saved snapshot to the folder ``other``.

        No copy is made if the folder is read-only or a copied file is damaged.
        """
        with suppress(OSError, ValueError, LookupError):
            manifest = read_file(self._manifest)
            name = Path(json.loads(manifest)["folder"]).name
            other._folder.mkdir(parents=True, exist_ok=True)
            shutil.copytree(self._folder / name, other._folder / name, dirs_exist_ok=True)
            if other._list_changed_files(manifest):
                shutil.rmtree(other._folder / name, ignore_errors=True)
                return
            sync_unverified_arrays(other._folder / name)
            write_atomically(other._manifest, manifest)
            other._delete_other_folders(name)

    def _delete_other_folders(self, name: str) -> None:
        """Delete the array folders of earlier snapshots, which are all folders except ``name``."""
        for old_folder in self._folder.glob("arrays-*"):
            if old_folder.name != name:
                shutil.rmtree(old_folder, ignore_errors=True)

    def map_unfinished(self, snapshot: MappedSnapshot) -> MappedSnapshot:
        """Return a snapshot under construction with its arrays moved from memory to mapped files, if possible.

        The files are deleted at once and stay mapped. Where an open file cannot be deleted, :meth:`save` deletes it.
        """
        with suppress(OSError), self._create_folder() as folder:
            arrays = self._write(folder, snapshot)
            try:
                return self._read(folder, arrays, snapshot.store)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
        return snapshot

    @contextmanager
    def _create_folder(self) -> Iterator[Path]:
        """Create a folder for the arrays of one snapshot and yield its path; after an error, delete the folder."""
        self._folder.mkdir(exist_ok=True)
        folder = self._folder / f"arrays-{uuid4().hex}"
        folder.mkdir()
        try:
            yield folder
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def _write(
        self, folder: Path, snapshot: MappedSnapshot, settings: NearestSettings | None = None
    ) -> dict[str, ArrayEntry]:
        """Write the arrays of a snapshot to a folder and return their sizes and checksums for the manifest.

        With ``settings``, the inverted files and binary codes of vectors are built and written too.
        """
        entries = {name: write_array(folder, name, array) for name, array in iterate_snapshot_arrays(snapshot)}
        for kind, vectors in snapshot.all_vectors.items():
            count = vectors.live.live_count
            clusters = vectors.build_clusters() if settings and count > settings.clusters_from else None
            name, base = f"{kind}_vectors", vectors.column.base
            shape = (len(vectors), *base.shape[1:])
            entries[name] = write_blocks(folder, name, vectors.iterate_blocks(clusters), shape, base.dtype)
            parts: dict[str, Any] = {f"{kind}_live": vectors.live}
            if clusters is not None:
                parts[f"{kind}_clusters"] = clusters
            if settings and count > settings.exact_up_to:
                parts[f"{kind}_codes"] = BinaryCodes.from_vectors(map_array(folder, name, entries[name]))
            for part_name, part in parts.items():
                entries |= {key: write_array(folder, key, array) for key, array in iterate_arrays(part_name, part)}
        return entries

    def _read(self, folder: Path, entries: Mapping[str, ArrayEntry], store: Store) -> MappedSnapshot:
        arrays = {name: map_array(folder, name, entry) for name, entry in entries.items()}

        def restore_vectors(kind: Kind) -> Vectors:
            column, live = (
                Column.from_array(arrays[f"{kind}_vectors"]),
                restore_object(LiveRows, f"{kind}_live", arrays),
            )
            clusters = codes = None
            if f"{kind}_clusters.rows" in arrays:
                clusters = restore_object(InvertedFile, f"{kind}_clusters", arrays).with_nprobe(self._settings.nprobe)
            if f"{kind}_codes.bits" in arrays and self._settings.nprobe:
                codes = restore_object(BinaryCodes, f"{kind}_codes", arrays)
            return Vectors(column, live, clusters, codes)

        kinds: list[Kind] = [kind for kind in get_args(Kind) if f"{kind}_vectors" in arrays]
        return restore_snapshot(arrays, {kind: restore_vectors(kind) for kind in kinds}, store)


def _compute_checksum(manifest: Mapping[str, Any]) -> int:
    return crc32(json.dumps(manifest).encode())
