"""Invariants of a saved snapshot: its arrays are compared with the rows of the index that they were derived from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final
from zlib import crc32

import numpy as np

from polyad.model import IntArray
from polyad.protocols.snapshot import Kind
from polyad.protocols.store import Damage, Store
from polyad.snapshot.adjacency import PrunedAdjacency
from polyad.snapshot.advancing import advance
from polyad.snapshot.columns import hash_string
from polyad.snapshot.files import SnapshotFiles
from polyad.snapshot.mapped_snapshot import MappedSnapshot
from polyad.snapshot.reading import SnapshotReader
from polyad.snapshot.segments import Hashes, SegmentList
from polyad.snapshot.vectors import Vectors

_MAX_DIFFERENT_BITS: Final = 2
"""Bits of a binary code that may differ from the code of the same vector that another machine computed."""

_BLOCK: Final = 1 << 14
"""Vectors encoded at a time."""

Digests = Mapping[str, int]
"""A checksum by id of a row: it does not depend on the numbers of rows, which differ between snapshots."""


def check_files(files: SnapshotFiles, store: Store, dimension: int) -> Iterator[Damage]:
    """Yield damage in the files of a saved snapshot: wrong checksums, or rows that differ from the store's rows.

    Args:
        files: The saved snapshot.
        store: The index, which has no damage.
        dimension: Length of its vectors.
    """
    changed = files.find_changed_files()
    yield from changed
    if changed:
        return
    with store.read_transaction() as transaction:
        saved = files.load(store, transaction)
        if saved is None or (changes := transaction.changes(saved.version)).is_complete:
            return
        if changes.version != saved.version:
            saved = advance(saved, changes, transaction.rows(changes.documents, saved.entities.pks.last()))
        yield from compare_snapshots(saved, SnapshotReader(store, dimension).build(transaction))


def compare_snapshots(saved: MappedSnapshot, rebuilt: MappedSnapshot) -> Iterator[Damage]:
    """Yield each difference between a saved snapshot and the same snapshot rebuilt from the store."""
    for invariant, compute in _DIGESTS.items():
        ours, expected = compute(saved), compute(rebuilt)
        for id in sorted(ours.keys() | expected.keys()):
            if ours.get(id) != expected.get(id):
                yield Damage(invariant, "snapshot", id, "differs from the rows of the index", remedy="repair")
    for kind, vectors in saved.all_vectors.items():
        yield from check_clusters(kind, vectors)
        yield from check_codes(kind, vectors)


def digest_rows(snapshot: MappedSnapshot) -> Digests:
    """Return a checksum of the data and vector of each passage and hyperedge, keyed by id."""
    passages, hyperedges = snapshot.graph.live_passages.to_rows(), snapshot.graph.live_hyperedges.to_rows()
    ids = [*snapshot.ids("passage", passages), *snapshot.ids("hyperedge", hyperedges)]
    owners = [*snapshot.document_ids(passages), *snapshot.ids("passage", snapshot.graph.passages(hyperedges))]
    vectors = [*snapshot.passages.vectors.take(passages), *snapshot.hyperedges.vectors.take(hyperedges)]
    return {
        id: crc32(vector.tobytes(), crc32(owner.encode("utf-8", "surrogatepass")))
        for id, owner, vector in zip(ids, owners, vectors, strict=True)
    }


def digest_postings(snapshot: MappedSnapshot) -> Digests:
    """Return a checksum of the terms and length of each passage, keyed by passage id."""
    terms, rows = snapshot.passages.terms, snapshot.graph.live_passages.to_rows()
    totals = terms.lengths.to_array().astype(np.uint64)
    for segment in terms.postings.segments:
        hashes = segment.keys.repeat(np.diff(segment.offsets)).astype(np.uint64)
        np.add.at(totals, segment.rows, hashes * (2 * segment.weights.astype(np.uint64) + 1))
    totals_by_id = dict(zip(snapshot.ids("passage", rows), totals[rows].tolist(), strict=True))
    return {**totals_by_id, "": terms.total_length}


def digest_incidences(snapshot: MappedSnapshot) -> Digests:
    """Return a checksum of the hypergraph neighbours of each passage, hyperedge and entity, keyed by id."""
    graph = snapshot.graph
    rows: dict[Kind, IntArray] = {
        "passage": graph.live_passages.to_rows(),
        "hyperedge": graph.live_hyperedges.to_rows(),
        "entity": np.flatnonzero(graph.are_live(np.arange(len(snapshot.entities.keys)))),
    }
    hashes = {kind: _hash_ids(snapshot, kind, kind_rows) for kind, kind_rows in rows.items()}
    totals = {kind: np.zeros(len(kind_rows), dtype=np.uint64) for kind, kind_rows in rows.items()}
    adjacencies: tuple[tuple[Kind, Kind, SegmentList | PrunedAdjacency], ...] = (
        ("hyperedge", "entity", graph.edge_members),
        ("entity", "hyperedge", graph.entity_edges),
        ("entity", "passage", graph.entity_passages),
        ("entity", "passage", graph.subject_passages),
        ("passage", "hyperedge", graph.passage_edges),
    )
    for number, (kind, neighbour_kind, adjacency) in enumerate(adjacencies, start=1):
        neighbours, owners, weights = adjacency.get_neighbours(rows[kind])
        weighted = weights.astype(np.float32).view(np.uint32).astype(np.uint64) * np.uint64(2) + np.uint64(number)
        np.add.at(totals[kind], owners, hashes[neighbour_kind][neighbours] * weighted)
    subjects = graph.variants.subject.take(rows["entity"])
    is_variant = subjects >= 0
    totals["entity"][is_variant] += hashes["entity"][subjects[is_variant]]
    totals["hyperedge"] += graph.edge_score.take(rows["hyperedge"]).view(np.uint32)
    ids = {kind: snapshot.ids(kind, kind_rows) for kind, kind_rows in rows.items()}
    digests = {
        f"{kind} {id}": total for kind in rows for id, total in zip(ids[kind], totals[kind].tolist(), strict=True)
    }
    return {**digests, "links": snapshot.link_count, "sum of vectors": crc32(snapshot.passages.vector_sum.tobytes())}


_DIGESTS: Final[Mapping[str, Callable[[MappedSnapshot], Digests]]] = {
    "snapshot rows": digest_rows,
    "postings": digest_postings,
    "incidences": digest_incidences,
}


def check_clusters(kind: Kind, vectors: Vectors) -> Iterator[Damage]:
    """Yield damage if an inverted file (vector index) does not contain each saved vector exactly once."""
    clusters = vectors.clusters
    if clusters is None:
        return
    count, offsets = len(vectors.column.base), clusters.offsets
    is_permutation = len(clusters.rows) == len(clusters.places) == count and bool(
        (np.sort(clusters.places) == np.arange(count)).all()
        and (clusters.rows[clusters.places] == np.arange(count)).all()
    )
    are_offsets_sorted = offsets[0] == 0 and offsets[-1] <= count and bool((np.diff(offsets) >= 0).all())
    if not (is_permutation and are_offsets_sorted) or bool(
        (clusters.places[vectors.live.mask[:count]] >= offsets[-1]).any()
    ):
        yield Damage("clusters", "snapshot", kind, "does not contain each vector once", remedy="repair")


def check_codes(kind: Kind, vectors: Vectors) -> Iterator[Damage]:
    """Yield damage if stored binary codes differ from codes computed again from the vectors."""
    codes, base = vectors.codes, vectors.column.base
    if codes is None:
        return
    is_equal = codes.bits.shape[1] == len(base)
    for start in range(0, len(base) if is_equal else 0, _BLOCK):
        expected = codes.encode(base[start : start + _BLOCK])
        different = np.bitwise_count(expected ^ codes.bits[:, start : start + _BLOCK]).sum(axis=0)
        is_equal = is_equal and bool((different <= _MAX_DIFFERENT_BITS).all())
    if not is_equal:
        yield Damage("codes", "snapshot", kind, "are not the codes of the vectors", remedy="repair")


def _hash_ids(snapshot: MappedSnapshot, kind: Kind, rows: IntArray) -> Hashes:
    """Return the 64-bit hashes of the ids of ``rows``, in an array indexed by row number; other rows have 0."""
    hashes = np.zeros(int(rows.max(initial=-1)) + 1, dtype=np.uint64)
    hashes[rows] = [hash_string(id) for id in snapshot.ids(kind, rows)]
    return hashes
