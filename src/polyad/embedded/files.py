"""The arrays of a view on disk: mapped, so that they open at once and the processes of a machine share them.

They lie in a folder beside the index that nothing else is in, and can be deleted at any time: the index is the truth,
and what is missing, out of date or damaged is made from it again. A view is written whole into a folder of its own
and then named in one step, so that nobody sees half of it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from functools import reduce
from pathlib import Path
from typing import Any
from uuid import uuid4
from zlib import crc32

import numpy as np

from polyad.embedded.columns import Column
from polyad.embedded.ids import EntityKeys, Ids
from polyad.embedded.incidences import Incidences
from polyad.embedded.names import SubjectNames
from polyad.embedded.strings import Lookup, Strings
from polyad.embedded.vectors import Vectors
from polyad.embedded.view import EmbeddedView
from polyad.embedded.words import Postings, WordIndex
from polyad.hypergraph.incidence import Adjacency, PatchedAdjacency, WeightedAdjacency
from polyad.protocols import Moment, Moments
from polyad.text.files import write_whole

FORMAT = 3
"""To be raised with whatever the arrays mean, such as how words are told apart or what a link counts."""

FOLDER = "view"
"""In the directory of the index."""

_LARGEST_CHECKED = 2**28
"""Bytes up to which an array is compared with its checksum when it is opened: reading more would take seconds."""

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = dict[str, Array]


def arrays_of(view: EmbeddedView) -> Arrays:
    """All that a view holds, as arrays: each part of it whole."""
    graph, words, names = view.graph, view.word_index, view.graph.names
    passages, edges, entities = (view.row_count(kind) for kind in ("passage", "hyperedge", "entity"))
    postings = Postings.merged(words.parts) if words.parts else Postings.none()
    return {
        **_ids("passage_ids", view.passage_ids),
        **_ids("hyperedge_ids", view.hyperedge_ids),
        **_ids("entity_keys", view.keys.ids),
        **_lookup("entity_lookup", view.keys.lookups),
        **_strings("documents", view.documents),
        "passage_numbers": view.passage_numbers.whole(),
        "hyperedge_numbers": view.hyperedge_numbers.whole(),
        "entity_numbers": view.entity_numbers.whole(),
        "document": view.document.whole(),
        "passage_vectors": view.passage_vectors.column.whole(),
        "hyperedge_vectors": view.hyperedge_vectors.column.whole(),
        "passage_is_there": view.passage_vectors.is_there,
        "hyperedge_is_there": view.hyperedge_vectors.is_there,
        "vector_sum": view.vector_sum,
        "edge_passage": graph.edge_passage.whole(),
        "edge_score": graph.edge_score.whole(),
        **_adjacency("edge_members", graph.edge_members, edges),
        **_adjacency("entity_edges", graph.entity_edges, entities),
        **_adjacency("entity_passages", graph.entity_passages, entities),
        **_adjacency("passage_edges", graph.passage_edges, passages),
        **_adjacency("names", names.names, entities),
        **_lookup("long_names", names.long),
        **_lookup("short_names", names.short),
        "subject": names.subject.whole(),
        "word_hashes": postings.hashes,
        "word_offsets": postings.offsets,
        "word_rows": postings.rows,
        "word_counts": postings.counts,
        "lengths": words.lengths.whole(),
        "counts": np.array([view.version, view.linkable, words.passages, words.total_length], dtype=np.int64),
    }


def view_from(arrays: Mapping[str, Array], store: Moments) -> EmbeddedView:
    """The view that some arrays were made of."""

    def column(name: str) -> Column:
        return Column.of(arrays[name])

    def ids(name: str) -> Ids:
        texts = Strings(arrays[f"{name}_offsets"], arrays[f"{name}_data"])
        return Ids(texts, column(f"{name}_keys"), arrays[f"{name}_ordered"])

    def lookup(name: str) -> tuple[Lookup, ...]:
        return (Lookup(arrays[f"{name}_hashes"], arrays[f"{name}_rows"]),)

    def adjacency(name: str) -> PatchedAdjacency:
        rows = Adjacency(arrays[f"{name}_offsets"], arrays[f"{name}_neighbours"])
        return PatchedAdjacency.unpatched(WeightedAdjacency(rows, arrays[f"{name}_weights"]))

    def vectors(kind: str) -> Vectors:
        is_there = arrays[f"{kind}_is_there"]
        return Vectors(column(f"{kind}_vectors"), is_there, int(len(is_there) - is_there.sum()))

    version, linkable, passages, total_length = arrays["counts"].tolist()
    keys = EntityKeys(ids("entity_keys"), lookup("entity_lookup"))
    names = SubjectNames(keys, lookup("long_names"), lookup("short_names"), column("subject"), adjacency("names"))
    postings = Postings(*(arrays[f"word_{part}"] for part in ("hashes", "offsets", "rows", "counts")))
    return EmbeddedView(
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
        passage_vectors=vectors("passage"),
        hyperedge_vectors=vectors("hyperedge"),
        vector_sum=arrays["vector_sum"],
        graph=Incidences(
            column("edge_passage"),
            column("edge_score"),
            adjacency("edge_members"),
            adjacency("entity_edges"),
            adjacency("entity_passages"),
            adjacency("passage_edges"),
            names,
        ),
        word_index=WordIndex((postings,), column("lengths"), arrays["passage_is_there"], passages, total_length),
        linkable=linkable,
        kept=len(arrays["passage_numbers"]),
        kept_version=version,
    )


class ViewFiles:
    """The arrays of the latest view of an index that was kept, in a folder.

    Args:
        directory: Of the index.
    """

    def __init__(self, directory: Path) -> None:
        self._folder = directory / FOLDER
        self._manifest = self._folder / "view.json"

    def version(self) -> int:
        """Of the view that was kept last; 0 where there is none."""
        with suppress(OSError, ValueError, LookupError, TypeError):
            return int(json.loads(self._manifest.read_text(encoding="utf-8"))["version"])
        return 0

    def load(self, store: Moments, moment: Moment) -> EmbeddedView | None:
        """The view that was kept last; None where there is none of this index, or it is damaged.

        Args:
            store: The index.
            moment: Tells whether the index ever was as the view shows it.
        """
        try:
            manifest = json.loads(self._manifest.read_text(encoding="utf-8"))
            if manifest["format"] != FORMAT or not manifest["state"]:
                return None
            if moment.state(manifest["version"]) != manifest["state"]:
                return None
            folder = self._folder / manifest["folder"]
            view = view_from({name: _mapped(folder, name, own) for name, own in manifest["arrays"].items()}, store)
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return None
        return view if view.version == manifest["version"] else None

    def keep(self, view: EmbeddedView, moment: Moment) -> None:
        """Write a view, unless the folder may not be written, or the disk is full: it can be made again.

        Args:
            view: Of the index.
            moment: The index when it was as the view shows it, or later.
        """
        with suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            own = self._folder / f"arrays-{uuid4().hex}"
            own.mkdir()
            try:
                arrays = {name: _written(own, name, array) for name, array in arrays_of(view).items()}
            except OSError:
                shutil.rmtree(own, ignore_errors=True)
                raise
            manifest = {
                "format": FORMAT,
                "version": view.version,
                "state": moment.state(view.version),
                "folder": own.name,
                "arrays": arrays,
            }
            write_whole(self._manifest, json.dumps(manifest))
            for other in self._folder.glob("arrays-*"):
                if other != own:
                    shutil.rmtree(other, ignore_errors=True)


def _written(folder: Path, name: str, array: Array) -> dict[str, object]:
    plain = np.ascontiguousarray(array)
    np.save(folder / f"{name}.npy", plain, allow_pickle=False)
    return {"shape": list(plain.shape), "type": plain.dtype.str, "checksum": _checksum(plain)}


def _mapped(folder: Path, name: str, expected: Mapping[str, object]) -> Array:
    """An array from its file, which is as it was written. Raises ValueError where it is not."""
    array: Array = np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
    found = {"shape": list(array.shape), "type": array.dtype.str, "checksum": expected["checksum"]}
    if found != expected or (array.nbytes <= _LARGEST_CHECKED and _checksum(array) != expected["checksum"]):
        raise ValueError(f"{name} is damaged")
    return array.view(np.ndarray)  # still mapped; numpy.memmap runs Python for every slice


def _checksum(array: Array) -> int:
    return crc32(array.reshape(-1).view(np.uint8).data) if array.size else 0


def _strings(name: str, strings: Strings) -> Arrays:
    whole = strings.whole()
    return {f"{name}_offsets": whole.offsets, f"{name}_data": whole.data}


def _ids(name: str, ids: Ids) -> Arrays:
    return {**_strings(name, ids.texts), f"{name}_keys": ids.keys.whole(), f"{name}_ordered": ids.ordered}


def _lookup(name: str, parts: tuple[Lookup, ...]) -> Arrays:
    whole = reduce(Lookup.joined, parts, Lookup.of([], np.empty(0, dtype=np.int64)))
    return {f"{name}_hashes": whole.hashes, f"{name}_rows": whole.rows}


def _adjacency(name: str, adjacency: PatchedAdjacency, rows: int) -> Arrays:
    whole = adjacency.whole(rows)
    return {
        f"{name}_offsets": whole.adjacency.offsets,
        f"{name}_neighbours": whole.adjacency.neighbours.astype(np.int32),
        f"{name}_weights": whole.weights,
    }
