"""The arrays of a snapshot on disk: mapped, so that they open at once and the processes of a machine share them.

They lie in a folder beside the index that nothing else is in, and can be deleted at any time: the index is the truth,
and what is missing, out of date or damaged is made from it again. A snapshot is written whole into a folder of its own
and then named in one step, so that nobody sees half of it.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import reduce
from pathlib import Path
from typing import Any, get_args
from uuid import uuid4

import numpy as np

from polyad.config import NearestSettings
from polyad.hypergraph.incidence import Adjacency, WeightedAdjacency
from polyad.protocols.snapshot import Kind
from polyad.protocols.store import ReadTransaction, Store
from polyad.snapshot.array_files import Array, Said, mapped, written, written_in_parts
from polyad.snapshot.binary_codes import BinaryCodes
from polyad.snapshot.columns import Column
from polyad.snapshot.entity_aggregates import EntityAggregates
from polyad.snapshot.growing import GrowingAdjacency, Presence, PrunedAdjacency, whole
from polyad.snapshot.ids import EntityKeys, Ids
from polyad.snapshot.incidences import Incidences
from polyad.snapshot.inverted_file import InvertedFile
from polyad.snapshot.mapped_snapshot import MappedSnapshot
from polyad.snapshot.string_table import Lookup, Strings
from polyad.snapshot.subject_names import SubjectNames
from polyad.snapshot.term_index import Postings, WordIndex
from polyad.snapshot.vectors import Vectors
from polyad.text.files import write_atomically

FORMAT = 6
"""To be raised with whatever the arrays mean, such as how words are told apart or what a link counts."""

FOLDER = "snapshot"
"""In the directory of the index."""

_OF_CELLS = ("centres", "offsets", "rows", "places")
"""Their arrays."""

_OF_CODES = ("directions", "thresholds", "bits")
"""Likewise."""

_OF_POSTINGS = ("hashes", "offsets", "rows", "counts")
"""Likewise."""

Arrays = Iterator[tuple[str, Array]]


def arrays_of(snapshot: MappedSnapshot) -> Arrays:
    """All that a snapshot holds but vectors, as arrays, each part of it whole; made one after the other."""
    graph, words, names = snapshot.graph, snapshot.word_index, snapshot.graph.names
    passages, edges, entities = (snapshot.row_count(kind) for kind in ("passage", "hyperedge", "entity"))
    yield from _ids("passage_ids", snapshot.passage_ids)
    yield from _ids("hyperedge_ids", snapshot.hyperedge_ids)
    yield from _ids("entity_keys", snapshot.keys.ids)
    yield from _lookup("entity_lookup", snapshot.keys.lookups)
    yield from _strings("documents", snapshot.documents)
    yield "passage_numbers", snapshot.passage_numbers.whole()
    yield "hyperedge_numbers", snapshot.hyperedge_numbers.whole()
    yield "entity_numbers", snapshot.entity_numbers.whole()
    yield "document", snapshot.document.whole()
    yield "vector_sum", snapshot.vector_sum
    yield "edge_passage", graph.edge_passage.whole()
    yield "edge_score", graph.edge_score.whole()
    yield from _adjacency("edge_members", graph.edge_members, edges)
    yield from _adjacency("entity_edges", graph.entity_edges, entities)
    yield from _adjacency("entity_passages", graph.entity_passages, entities)
    yield from _adjacency("subject_passages", graph.subject_passages, entities)
    yield from _adjacency("passage_edges", graph.passage_edges, passages)
    yield from _adjacency("names", names.names, entities)
    yield from _lookup("long_names", names.long)
    yield from _lookup("short_names", names.short)
    yield "subject", names.subject.whole()
    yield from _postings(words)
    yield "lengths", words.lengths.whole()
    yield "counts", np.array([snapshot.version, snapshot.linkable, words.total_length], dtype=np.int64)
    if snapshot.entity_scores is not None:
        yield "entity_score", snapshot.entity_scores.whole()
    yield "undescribed", snapshot.undescribed
    tallies = snapshot.tallies.whole()
    yield "tally_rows", tallies.rows
    yield "tally_lasts", tallies.lasts
    yield from _strings("tallies", tallies.texts)


def view_from(arrays: Mapping[str, Array], vectors: Mapping[Kind, Vectors], store: Store) -> MappedSnapshot:
    """The snapshot that some arrays were made of, and its vectors by kind."""

    def column(name: str) -> Column:
        return Column.of(arrays[name])

    def ids(name: str) -> Ids:
        texts = Strings(arrays[f"{name}_offsets"], arrays[f"{name}_data"])
        return Ids.of(texts, column(f"{name}_keys"), arrays[f"{name}_ordered"])

    def lookup(name: str) -> tuple[Lookup, ...]:
        return (Lookup(arrays[f"{name}_hashes"], arrays[f"{name}_rows"]),)

    def adjacency(name: str) -> GrowingAdjacency:
        rows = Adjacency(arrays[f"{name}_offsets"], arrays[f"{name}_neighbours"])
        return GrowingAdjacency(WeightedAdjacency(rows, arrays[f"{name}_weights"]))

    def pruned(name: str, kind: Kind) -> PrunedAdjacency:
        return PrunedAdjacency(adjacency(name), vectors[kind].there)

    version, linkable, total_length = arrays["counts"].tolist()
    there = vectors["passage"].there
    keys = EntityKeys(ids("entity_keys"), lookup("entity_lookup"))
    names = SubjectNames(keys, lookup("long_names"), lookup("short_names"), column("subject"), adjacency("names"))
    postings, none_gone = Postings(*(arrays[f"word_{part}"] for part in _OF_POSTINGS)), np.empty(0, dtype=np.int64)
    words = WordIndex((postings,), column("lengths"), there, none_gone, total_length)
    return MappedSnapshot(
        version=version,
        store=store,
        passage_ids=ids("passage_ids"),
        hyperedge_ids=ids("hyperedge_ids"),
        keys=keys,
        passage_numbers=column("passage_numbers"),
        hyperedge_numbers=column("hyperedge_numbers"),
        entity_numbers=column("entity_numbers"),
        document=column("document"),
        documents=Strings(arrays["documents_offsets"], arrays["documents_data"]),
        passage_vectors=vectors["passage"],
        hyperedge_vectors=vectors["hyperedge"],
        vector_sum=arrays["vector_sum"],
        graph=Incidences(
            column("edge_passage"),
            column("edge_score"),
            adjacency("edge_members"),
            pruned("entity_edges", "hyperedge"),
            pruned("entity_passages", "passage"),
            pruned("subject_passages", "passage"),
            adjacency("passage_edges"),
            names,
        ),
        word_index=words,
        linkable=linkable,
        entity_vectors=vectors.get("entity"),
        entity_scores=column("entity_score") if "entity_score" in arrays else None,
        undescribed=arrays["undescribed"],
        tallies=EntityAggregates(
            arrays["tally_rows"],
            arrays["tally_lasts"],
            Strings(arrays["tallies_offsets"], arrays["tallies_data"]),
        ),
        kept=len(arrays["passage_numbers"]),
        kept_described=len(arrays.get("entity_score", ())),
        kept_version=version,
    )


class SnapshotFiles:
    """The arrays of the latest snapshot of an index that was kept, in a folder.

    Args:
        directory: Of the index.
        settings: Which vectors lie in cells, and how many of these a search looks into.
    """

    def __init__(self, directory: Path, settings: NearestSettings | None = None) -> None:
        self._folder = directory / FOLDER
        self._manifest = self._folder / "snapshot.json"
        self._settings = settings or NearestSettings()

    def version(self) -> int:
        """Of the snapshot that was kept last; 0 where there is none."""
        return int(self._said("version", 0))

    def recall(self) -> dict[str, float]:
        """For each kind of vectors that lie in cells, the share of the nearest that searches find."""
        return dict(self._said("recall", {}))

    def _said(self, name: str, otherwise: Any) -> Any:
        with suppress(OSError, ValueError, LookupError, TypeError):
            return type(otherwise)(json.loads(self._manifest.read_text(encoding="utf-8"))[name])
        return otherwise

    def load(self, store: Store, transaction: ReadTransaction) -> MappedSnapshot | None:
        """The snapshot that was kept last; None where there is none of this index, or it is damaged.

        Args:
            store: The index.
            transaction: Tells whether the index ever was as the snapshot shows it.
        """
        try:
            manifest = json.loads(self._manifest.read_text(encoding="utf-8"))
            if manifest["format"] != FORMAT or not manifest["state"]:
                return None
            if transaction.changes(manifest["version"]).token != manifest["state"]:
                return None
            snapshot = self._read(self._folder / manifest["folder"], manifest["arrays"], store)
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return None
        return snapshot if snapshot.version == manifest["version"] else None

    def keep(self, snapshot: MappedSnapshot, state: str) -> None:
        """Write a snapshot, unless the folder may not be written, or the disk is full: it can be made again.

        Args:
            snapshot: Of the index.
            state: What tells the index at the snapshot's version from any other.
        """
        with suppress(OSError), self._new_folder() as own:
            arrays = self._write(own, snapshot, self._settings.exact_up_to)
            manifest = {
                "format": FORMAT,
                "version": snapshot.version,
                "state": state,
                "folder": own.name,
                "arrays": arrays,
                "recall": self._read(own, arrays, snapshot.store).recall(),
            }
            write_atomically(self._manifest, json.dumps(manifest))
            for other in self._folder.glob("arrays-*"):
                if other != own:
                    shutil.rmtree(other, ignore_errors=True)

    def put_aside(self, snapshot: MappedSnapshot) -> MappedSnapshot:
        """A snapshot that is not whole yet, with its arrays on disk; as it is where they cannot be written.

        Where a file that is open cannot be removed, :meth:`keep` removes it later.
        """
        with suppress(OSError), self._new_folder() as own:
            arrays = self._write(own, snapshot, math.inf)
            try:
                return self._read(own, arrays, snapshot.store)
            finally:
                shutil.rmtree(own, ignore_errors=True)
        return snapshot

    @contextmanager
    def _new_folder(self) -> Iterator[Path]:
        """For the arrays of one snapshot; removed again where these cannot be written."""
        self._folder.mkdir(exist_ok=True)
        own = self._folder / f"arrays-{uuid4().hex}"
        own.mkdir()
        try:
            yield own
        except OSError:
            shutil.rmtree(own, ignore_errors=True)
            raise

    def _write(self, folder: Path, snapshot: MappedSnapshot, exact_up_to: float) -> dict[str, Said]:
        said = {name: written(folder, name, array) for name, array in arrays_of(snapshot)}
        for kind, vectors in snapshot.all_vectors().items():
            cells = vectors.in_cells() if len(vectors) - vectors.there.gone > exact_up_to else None
            name, column = f"{kind}_vectors", vectors.column.base
            shape = (len(vectors), *column.shape[1:])
            said[name] = written_in_parts(folder, name, vectors.blocks(cells), shape, column.dtype)
            said[f"{kind}_is_there"] = written(folder, f"{kind}_is_there", vectors.there.whole)
            if cells is None:
                continue
            for part in _OF_CELLS:
                said[f"{kind}_cell_{part}"] = written(folder, f"{kind}_cell_{part}", getattr(cells, part))
            codes = BinaryCodes.of(mapped(folder, name, said[name]))
            for part in _OF_CODES:
                said[f"{kind}_code_{part}"] = written(folder, f"{kind}_code_{part}", getattr(codes, part))
        return said

    def _read(self, folder: Path, said: Mapping[str, Said], store: Store) -> MappedSnapshot:
        arrays = {name: mapped(folder, name, own) for name, own in said.items()}

        def vectors(kind: Kind) -> Vectors:
            column, there = Column.of(arrays[f"{kind}_vectors"]), Presence.of(arrays[f"{kind}_is_there"])
            if f"{kind}_cell_rows" not in arrays:
                return Vectors(column, there)
            centres, offsets, rows, places = (arrays[f"{kind}_cell_{part}"] for part in _OF_CELLS)
            codes = BinaryCodes(*(arrays[f"{kind}_code_{part}"] for part in _OF_CODES))
            return Vectors(column, there, InvertedFile(centres, offsets, rows, places, self._settings.nprobe), codes)

        kinds: list[Kind] = [kind for kind in get_args(Kind) if f"{kind}_vectors" in arrays]
        return view_from(arrays, {kind: vectors(kind) for kind in kinds}, store)


def _strings(name: str, strings: Strings) -> Arrays:
    whole = strings.whole()
    yield f"{name}_offsets", whole.offsets
    yield f"{name}_data", whole.data


def _ids(name: str, ids: Ids) -> Arrays:
    yield from _strings(name, ids.texts)
    yield f"{name}_keys", ids.keys.whole()
    yield f"{name}_ordered", ids.all_ordered()


def _lookup(name: str, parts: tuple[Lookup, ...]) -> Arrays:
    whole = reduce(Lookup.joined, parts, Lookup.of([], np.empty(0, dtype=np.int64)))
    yield f"{name}_hashes", whole.hashes
    yield f"{name}_rows", whole.rows


def _postings(words: WordIndex) -> Arrays:
    whole = (Postings.merged(words.parts) if words.parts else Postings.none()).among(words.there.whole)
    for part in _OF_POSTINGS:
        yield f"word_{part}", getattr(whole, part)


def _adjacency(name: str, adjacency: GrowingAdjacency | PrunedAdjacency, rows: int) -> Arrays:
    compressed = whole(adjacency, rows)
    yield f"{name}_offsets", compressed.adjacency.offsets
    yield f"{name}_neighbours", compressed.adjacency.neighbours.astype(np.int32)
    yield f"{name}_weights", compressed.weights
