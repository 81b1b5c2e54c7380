"""Keeps the view of an index that is used now, and moves it on when the index has changed."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from polyad.embedded.described import Undescribed, described
from polyad.embedded.files import ViewFiles
from polyad.embedded.view import EmbeddedView
from polyad.model import FloatArray
from polyad.protocols import Embedder, Progress, silent
from polyad.storage import Changes, Moment, Store, StoredRows

FEWEST = 1000
"""Hyperedges from which on a view is kept in files; a smaller one is made in a moment."""

BLOCK = 150_000
"""Passages read at a time where all are: what is made of them lies on disk before the next are read."""


class _Recalled:
    """Recalls the vectors of entities and keeps none: a store that is held in a moment is not written."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def entity_vectors(self, keys: Sequence[str]) -> dict[str, tuple[str, FloatArray]]:
        return self._store.entity_vectors(keys)

    def keep_entity_vectors(self, vectors: Mapping[str, tuple[str, FloatArray]]) -> None:
        """They are made again where they are needed."""


class ViewKeeper:
    """The latest view of one store, for many threads.

    Making or moving on a view is the work of one thread; others go on with the view there is, unless they ask for
    what was just written.

    Args:
        store: Is read.
        dimension: Length of its vectors.
        files: Where the arrays of a large view are kept for the next process; None for nowhere.
    """

    def __init__(self, store: Store, dimension: int, files: ViewFiles | None = None) -> None:
        self._store = store
        self._files = files
        self._dimension = dimension
        self._view: EmbeddedView | None = None
        self._moving = threading.Lock()
        self._keeping = threading.Lock()

    def current(self, at_least: int = 0) -> EmbeddedView:
        """The latest view there is.

        Args:
            at_least: A version of the store that the view must have reached, such as that of one's own last write.
        """
        view = self._view
        if view is None:
            self._moved_on()
            return self._settled()
        if view.version < at_least:
            return self._moved_on()
        if self._moving.acquire(blocking=False):
            try:
                return self._move_on()
            finally:
                self._moving.release()
        return view

    def described(self, embedder: Embedder, progress: Progress = silent) -> EmbeddedView:
        """The latest view, with a vector for each entity: see :mod:`polyad.embedded.described`."""
        with self._moving:
            with self._store.moment() as moment:
                self._view = view = self._moved_on_to(moment, self._view)
                missing = Undescribed.of(view)
            self._view = view = described(view, missing, self._store, embedder, progress)
        settled = self._settled()
        return settled if settled.is_described else view  # others may have moved on to what is not described yet

    @contextmanager
    def held(self, embedder: Embedder | None = None) -> Iterator[EmbeddedView]:
        """The latest view, and the store held in its moment for this thread: nothing it shows can be removed meanwhile.

        Args:
            embedder: Describes the entities, unless they are; None where that is not wanted.
        """
        with ExitStack() as stack:
            with self._moving:
                moment = stack.enter_context(self._store.moment())
                self._view = view = self._moved_on_to(moment, self._view)
                if embedder is not None:
                    self._view = view = described(view, Undescribed.of(view), _Recalled(self._store), embedder)
            yield view

    def settle(self) -> None:
        """Keep the latest view for the next process, where much of it is new; searches go on meanwhile."""
        self._moved_on()
        self._settled()

    def _settled(self) -> EmbeddedView:
        """The view there is, with its arrays on disk where that is worth while; others move it on meanwhile."""
        with self._keeping:
            view = self._view
            assert view is not None, "a view is made before it is kept"
            if self._files is None or not view.is_mostly_new or view.row_count("hyperedge") < FEWEST:
                return view
            view.count_common()
            with self._store.moment() as moment:
                state = moment.state(view.version)
            self._files.keep(view, state)
            with self._store.moment() as moment:
                kept = self._files.load(self._store, moment) or view
            with self._moving, self._store.moment() as moment:
                self._view = view = self._moved_on_to(moment, kept)
            return view

    def _moved_on(self) -> EmbeddedView:
        with self._moving:
            return self._move_on()

    def _move_on(self) -> EmbeddedView:
        """To the store as it is now; by one thread at a time."""
        with self._store.moment() as moment:
            self._view = self._moved_on_to(moment, self._view)
        return self._view

    def _moved_on_to(self, moment: Moment, view: EmbeddedView | None) -> EmbeddedView:
        if self._files and (view is None or (view.is_mostly_new and self._files.version() > view.kept_version)):
            view = self._files.load(self._store, moment) or view  # in the second case another process kept a later one
        if view is not None and view.version == moment.version:
            return view
        changes = moment.changes(view.version) if view else None
        if view is None or changes is None or view.is_mostly_gone:
            return self._made(moment)
        return view.advanced(changes, moment.rows(changes.documents, view.entity_numbers.last()))

    def _made(self, moment: Moment) -> EmbeddedView:
        """The view from nothing, a block of passages at a time; which name stands for whom depends on all of them."""
        view = EmbeddedView.none(self._store, self._dimension).knowing(moment.entity_keys())
        nothing = Changes(moment.version, (), ())
        for block in _blocks(moment.rows(moment.documents(), view.entity_numbers.last())):
            if self._files and view.row_count("entity") > BLOCK:
                view = self._files.put_aside(view)
            view = view.advanced(nothing, block, is_whole=False)
        return replace(view.linked(), version=moment.version)


def _blocks(batches: Iterable[StoredRows]) -> Iterator[Iterator[StoredRows]]:
    """Some at a time, with :data:`BLOCK` passages or a few more; each block has to be read whole before the next."""
    left = iter(batches)
    for first in left:
        yield _block(first, left)


def _block(first: StoredRows, left: Iterator[StoredRows]) -> Iterator[StoredRows]:
    yield first
    passages = len(first.passage_ids)
    while passages < BLOCK and (batch := next(left, None)):
        yield batch
        passages += len(batch.passage_ids)
