"""Embeds the texts of a batch of documents in small calls, so that progress is visible and an interruption is cheap."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from polyad.model import FloatArray, IndexedDocument, IndexedHyperedge, IndexedPassage, Passage
from polyad.protocols.components import Embedder
from polyad.protocols.store import PENDING_VECTORS, Store
from polyad.text.words import split_by_size

BLOCK_CHARACTERS = 512_000
"""Characters of texts that are sorted by length together; usually all texts of one batch of documents."""

CALL_CHARACTERS = 128_000
"""Characters embedded in one call, which takes a few seconds on a slow machine. The passes of an embedder are filled
better by longer calls: with half of this, padding adds a tenth more tokens (docs/adr/0007)."""

SAVE_SECONDS = 2.0
"""Seconds of embedding after which new vectors are saved. An interrupted run loses these and the call in progress."""

MAX_PENDING = 100_000
"""Maximum number of saved vectors of one batch of documents, enough for some 25 MB of text."""

OnEmbedded = Callable[[Passage, int, int], None]
"""Callback that receives the passage that was reached, the number of embedded texts, and the number of all texts."""


class PendingVectors:
    """A checkpoint of an indexing run: saved vectors of documents that the store does not contain yet.

    An interrupted run resumes from these vectors.

    Vectors that were computed within the last ``save_seconds`` are not saved: computing them again costs no more.

    Args:
        store: The store that saves the vectors until the documents are stored.
        prefix: Beginning of the keys of the vectors; empty for the embedder of the index.
        save_seconds: Seconds of embedding after which new vectors are saved; None for :data:`SAVE_SECONDS`.
        clock: Returns the time in seconds.

    Attributes:
        computed: Number of vectors that were added.
    """

    def __init__(
        self,
        store: Store,
        prefix: str = "",
        save_seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.computed = 0
        self._store = store
        self._prefix = prefix
        self._save_seconds = SAVE_SECONDS if save_seconds is None else save_seconds
        self._clock = clock
        self._saved_at = clock()
        self._keys: list[str] = []
        self._unsaved: list[int] = []
        self._saved: set[str] = set()

    def load(self, texts: Sequence[str]) -> dict[int, FloatArray]:
        """Return the saved vectors of an interrupted run, as a dictionary from position in ``texts`` to vector."""
        digests = (hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() for text in texts)
        self._keys = [f"{self._prefix}{digest}" for digest in digests]
        values = self._store.get_values(PENDING_VECTORS, self._keys)
        self._saved.update(values)
        return {
            row: np.frombuffer(values[key], dtype="<f4").astype(np.float32, copy=False)
            for row, key in enumerate(self._keys)
            if key in values
        }

    def add(self, rows: Sequence[int], vectors: FloatArray) -> None:
        """Add ``vectors[rows]`` to the checkpoint, and save unsaved vectors if the last save is long ago.

        Vectors are saved ``save_seconds`` after the last save.

        Args:
            rows: Positions of the texts that were embedded.
            vectors: An array with a row for each text; the rows at ``rows`` are computed.
        """
        self.computed += len(rows)
        self._unsaved += rows
        if self._clock() - self._saved_at >= self._save_seconds:
            rows = self._unsaved[: MAX_PENDING - len(self._saved)]
            values = {self._keys[row]: vectors[row].astype("<f4", copy=False).tobytes() for row in rows}
            self._store.put_values(PENDING_VECTORS, values)
            self._saved.update(values)
            self._unsaved = []
            self._saved_at = self._clock()

    def delete(self) -> None:
        """Delete the saved vectors from the store, after the documents with these vectors are stored."""
        if self._saved:
            self._store.put_values(PENDING_VECTORS, dict.fromkeys(self._saved))
            self._saved = set()


def get_parallelism(embedder: Embedder) -> int:
    """Return the number of processes of an embedder: its attribute ``parallelism``, or 1 without the attribute.

    Each call of the embedder has enough text for all processes.
    """
    return getattr(embedder, "parallelism", 1)


def embed_texts(
    embedder: Embedder,
    texts: Sequence[str],
    on_progress: Callable[[int], None],
    pending: PendingVectors | None = None,
) -> FloatArray:
    """Return vectors of texts, float32 ``[texts, dimension]``; ``pending`` supplies vectors of an interrupted run.

    Texts are embedded block by block, and sorted by length within a block: the embedder pads less, and the position of
    a text still shows the progress.

    Args:
        embedder: The embedder. A text's vector must not depend on the other texts of a call.
        texts: The texts to embed.
        on_progress: Receives the number of embedded texts after each call.
        pending: Saved vectors, which are not computed again.
    """
    vectors = np.zeros((len(texts), embedder.dimension), dtype=np.float32)
    saved = pending.load(texts) if pending else {}
    for row, vector in saved.items():
        vectors[row] = vector
    count = len(saved)
    parallelism = get_parallelism(embedder)

    def get_length(row: int) -> int:
        return len(texts[row])

    missing = [row for row in range(len(texts)) if row not in saved]
    for block in split_by_size(missing, get_length, BLOCK_CHARACTERS * parallelism):
        by_length = sorted(block, key=lambda row: (len(texts[row]), row))
        for rows in split_by_size(by_length, get_length, CALL_CHARACTERS * parallelism):
            vectors[rows] = embedder.encode([texts[row] for row in rows], "passage")
            if pending:
                pending.add(rows, vectors)
            count += len(rows)
            on_progress(count)
    return vectors


def format_embedding_text(title: str, text: str) -> str:
    """Return the text that is embedded for a passage or hyperedge: the passage's title, a new line, and ``text``."""
    return f"{title}\n{text}" if title else text


def embed_passages(
    embedder: Embedder,
    passages: Sequence[IndexedPassage],
    hyperedge_titles: bool,
    pending: PendingVectors | None = None,
    on_progress: OnEmbedded | None = None,
) -> list[IndexedPassage]:
    """Return ``passages`` with new vectors; with ``hyperedge_titles``, hyperedges are embedded with passage titles.

    Args:
        embedder: The embedder.
        passages: The passages.
        hyperedge_titles: Whether hyperedges are embedded with the title of their passage.
        pending: Saved vectors, which are not computed again.
        on_progress: Called after each call of the embedder.
    """
    texts = [_list_texts(item, hyperedge_titles) for item in passages]
    first: dict[str, IndexedPassage] = {}
    for item, item_texts in zip(passages, texts, strict=True):
        for text in item_texts:
            first.setdefault(text, item)
    items = list(first.values())

    def report(done: int) -> None:
        if on_progress is not None:
            on_progress(items[done - 1].passage, done, len(items))

    matrix = embed_texts(embedder, list(first), report, pending)
    vectors = dict(zip(first, matrix, strict=True))
    return [_replace_vectors(item, map(vectors.__getitem__, each)) for item, each in zip(passages, texts, strict=True)]


def embed_documents(
    embedder: Embedder,
    documents: Sequence[IndexedDocument],
    hyperedge_titles: bool,
    pending: PendingVectors | None = None,
) -> list[IndexedDocument]:
    """Return ``documents`` with new vectors; with ``hyperedge_titles``, hyperedges are embedded with passage titles.

    The other arguments are those of :func:`embed_passages`.
    """
    passages = [item for each in documents for item in each.passages]
    embedded = iter(embed_passages(embedder, passages, hyperedge_titles, pending))
    return [replace(each, passages=tuple(islice(embedded, len(each.passages)))) for each in documents]


def _list_texts(item: IndexedPassage, with_titles: bool) -> list[str]:
    """Return the texts to embed for a passage: its own text, then the text of each of its hyperedges.

    The passage's title precedes the passage's text and, if ``with_titles``, the text of each hyperedge.
    """
    title = item.passage.title if with_titles else ""
    hyperedges = (format_embedding_text(title, edge.hyperedge.text) for edge in item.hyperedges)
    return [format_embedding_text(item.passage.title, item.passage.text), *hyperedges]


def _replace_vectors(item: IndexedPassage, vectors: Iterator[FloatArray]) -> IndexedPassage:
    """Return a passage with new vectors from an iterator: the passage's own vector, then one for each hyperedge."""
    return replace(
        item,
        vector=next(vectors),
        hyperedges=tuple(IndexedHyperedge(edge.hyperedge, edge.incidences, next(vectors)) for edge in item.hyperedges),
    )
