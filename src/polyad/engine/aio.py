"""The engine for asynchronous callers: the same methods, each run in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import wraps
from inspect import signature
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

from polyad.engine.catalogue import Catalogue
from polyad.engine.engine import Engine, SearchArguments
from polyad.engine.streaming import AnswerStream
from polyad.model import Answer

P = ParamSpec("P")
T = TypeVar("T")

_CALLBACKS = ("progress", "on_text")
"""Callback parameters of the methods; in a callback, the work of a cancelled coroutine is stopped."""


class _CancelledError(BaseException):
    """Raised in a worker thread to stop an Engine method after its coroutine was cancelled."""


def _run_in_thread(
    method: Callable[Concatenate[Engine, P], T],
) -> Callable[Concatenate[AsyncEngine, P], Coroutine[Any, Any, T]]:
    """Return a coroutine function that runs a method of :class:`Engine` in a thread.

    After cancellation the method stops at the next callback.
    """
    parameters = set(signature(method).parameters)
    if "options" in parameters:
        parameters |= SearchArguments.__annotations__.keys()
    callbacks = [name for name in _CALLBACKS if name in parameters]

    @wraps(method)
    async def awaited(self: AsyncEngine, *arguments: P.args, **options: P.kwargs) -> T:
        is_cancelled = threading.Event()
        for name in callbacks:
            options[name] = _stop_when_cancelled(options.get(name), is_cancelled)
        try:
            return await asyncio.to_thread(method, self.engine, *arguments, **options)
        except asyncio.CancelledError:
            is_cancelled.set()
            raise

    return awaited  # type: ignore[return-value]  # mypy takes the name of self for a keyword


def _stop_when_cancelled(callback: Any, is_cancelled: threading.Event) -> Callable[..., None]:
    """Return a function that calls ``callback``, or raises _CancelledError if the event ``is_cancelled`` is set."""

    def call_or_stop(*arguments: object) -> None:
        if is_cancelled.is_set():
            raise _CancelledError
        if callback is not None:
            callback(*arguments)

    return call_or_stop


class AsyncAnswerStream(AsyncIterator[str]):
    """An asynchronous iterator over the pieces of an answer's text, as a chat model generates them.

    Args:
        begin: Searches and returns the stream of an answer; called at the first iteration.
    """

    def __init__(self, begin: Callable[[], AnswerStream]) -> None:
        self._begin = begin
        self._stream: AnswerStream | None = None

    async def __anext__(self) -> str:
        """Return the next piece of text; cancellation closes the stream."""
        try:
            if self._stream is None:
                self._stream = await asyncio.to_thread(self._begin)
            piece = await asyncio.to_thread(next, self._stream, None)
        except asyncio.CancelledError:
            if self._stream is not None:
                self._stream.close()
            raise
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def answer(self) -> Answer:
        """Read the answer stream to its end and return the complete answer, with citations."""
        async for _ in self:
            pass
        assert self._stream is not None
        return self._stream.answer


def _stream_in_threads(
    method: Callable[Concatenate[Engine, P], AnswerStream],
) -> Callable[Concatenate[AsyncEngine, P], AsyncAnswerStream]:
    """Return an asynchronous version of a method of :class:`Engine` that streams an answer."""

    @wraps(method)
    def stream(self: AsyncEngine, *arguments: P.args, **options: P.kwargs) -> AsyncAnswerStream:
        return AsyncAnswerStream(lambda: method(self.engine, *arguments, **options))

    return stream  # type: ignore[return-value]  # mypy takes the name of self for a keyword


class AsyncEngine:
    """An :class:`Engine` for asyncio: every method is a coroutine that runs in a thread.

    Example:
        >>> async with AsyncEngine(Engine.open("kb")) as engine:                # doctest: +SKIP
        ...     await engine.index("handbook/")
        ...     async for piece in engine.stream("Who funded the trial?"):
        ...         print(piece, end="")

    If a coroutine is cancelled, its caller continues at once. The method in the thread ends at its next step: indexing
    after the current document, which is stored completely or not at all; an answer at its next piece.

    Args:
        engine: Does the work; searches may run side by side.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    index = _run_in_thread(Engine.index)
    index_documents = _run_in_thread(Engine.index_documents)
    estimate = _run_in_thread(Engine.estimate)
    remove = _run_in_thread(Engine.remove)
    export = _run_in_thread(Engine.export)
    import_file = _run_in_thread(Engine.import_file)
    replace_embedder = _run_in_thread(Engine.replace_embedder)
    check = _run_in_thread(Engine.check)
    back_up = _run_in_thread(Engine.back_up)
    search = _run_in_thread(Engine.search)
    search_many = _run_in_thread(Engine.search_many)
    find_text = _run_in_thread(Engine.find_text)
    ask = _run_in_thread(Engine.ask)
    answer = _run_in_thread(Engine.answer)
    prepare = _run_in_thread(Engine.prepare)
    close = _run_in_thread(Engine.close)
    stream = _stream_in_threads(Engine.stream)

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue of the index, which looks up documents, passages, entities and hyperedges.

        Its methods are synchronous, because a lookup takes milliseconds.
        """
        return self.engine.catalogue

    async def __aenter__(self) -> AsyncEngine:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
