"""Keeps the view of an index that is used now, and moves it on when the index has changed."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from polyad.embedded.described import Undescribed, described
from polyad.embedded.files import ViewFiles
from polyad.embedded.view import EmbeddedView
from polyad.model import FloatArray
from polyad.protocols import Changes, Embedder, Moment, Progress, Store, silent

FEWEST = 1000
"""Hyperedges from which on a view is kept in files; a smaller one is made in a moment."""


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
        self._nothing = EmbeddedView.none(store, dimension)
        self._view: EmbeddedView | None = None
        self._moving = threading.Lock()

    def current(self, at_least: int = 0) -> EmbeddedView:
        """The latest view there is.

        Args:
            at_least: A version of the store that the view must have reached, such as that of one's own last write.
        """
        view = self._view
        if view is None or view.version < at_least:
            with self._moving:
                return self._moved_on()
        if self._moving.acquire(blocking=False):
            try:
                return self._moved_on()
            finally:
                self._moving.release()
        return view

    def described(self, embedder: Embedder, progress: Progress = silent) -> EmbeddedView:
        """The latest view, with a vector for each entity: see :mod:`polyad.embedded.described`."""
        with self._moving:
            with self._store.moment() as moment:
                self._view = view = self._moved_on_to(moment)
                missing = Undescribed.of(view)
            self._view = described(view, missing, self._store, embedder, progress)
            return self._view

    @contextmanager
    def held(self, embedder: Embedder | None = None) -> Iterator[EmbeddedView]:
        """The latest view, and the store held in its moment for this thread: nothing it shows can be removed meanwhile.

        Args:
            embedder: Describes the entities, unless they are; None where that is not wanted.
        """
        with ExitStack() as stack:
            with self._moving:
                self._view = view = self._moved_on_to(stack.enter_context(self._store.moment()))
                if embedder is not None:
                    self._view = view = described(view, Undescribed.of(view), _Recalled(self._store), embedder)
            yield view

    def settle(self) -> None:
        """Keep the latest view for the next process, where much of it is new; searches go on meanwhile."""
        with self._moving, self._store.moment() as moment:
            self._view = self._kept(self._moved_on_to(moment), moment)

    def _moved_on(self) -> EmbeddedView:
        """The view of the store as it is now; made by one thread at a time."""
        with self._store.moment() as moment:
            first = self._view is None
            view = self._moved_on_to(moment)
            self._view = self._kept(view, moment) if first else view
        return self._view

    def _moved_on_to(self, moment: Moment) -> EmbeddedView:
        view = self._view
        if self._files and (view is None or (view.is_mostly_new and self._files.version() > view.kept_version)):
            view = self._files.load(self._store, moment) or view  # in the second case another process kept a later one
        if view is not None and view.version == moment.version:
            return view
        changes = moment.changes(view.version) if view else None
        if view is None or changes is None or view.is_mostly_gone:
            view, changes = self._nothing, Changes(moment.version, (), tuple(moment.documents()))
        return view.advanced(changes, moment.rows(changes.documents))

    def _kept(self, view: EmbeddedView, moment: Moment) -> EmbeddedView:
        """The view with its arrays on disk, where that is worth while and can be done."""
        if self._files is None or not view.is_mostly_new or view.row_count("hyperedge") < FEWEST:
            return view
        self._files.keep(view, moment)
        return self._files.load(self._store, moment) or view
