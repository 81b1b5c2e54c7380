"""A stream of the pieces of an answer, as the language model generates them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue

from polyad.model import Answer

Write = Callable[[Callable[[str], None]], Answer]
"""Function that generates an answer, and passes each piece of the text to a callback as soon as it is complete."""


class _StoppedError(Exception):
    """Raised in the answering thread to stop generation after the reader closed the stream."""


class AnswerStream(Iterator[str]):
    """An iterator over the pieces of an answer's text; the property ``answer`` is the complete answer.

    A thread generates the answer, from the request for the first piece on. :meth:`close`, or the end of a ``with``
    block, stops the thread early; requests that were not sent to the language model by then cost nothing.

    Args:
        write: Writes the answer.
    """

    def __init__(self, write: Write) -> None:
        self._write = write
        self._pieces: SimpleQueue[str | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._reason: BaseException | None = None
        self._is_over = False
        self._answer: Answer | None = None
        self._error: BaseException | None = None

    def __next__(self) -> str:
        """Return the next piece of text.

        Raises:
            LanguageModelError: The language model returned no usable reply.
        """
        return self.read()

    def read(self, timeout: float | None = None) -> str:
        """Return the next piece of the answer's text, or raise TimeoutError after ``timeout`` seconds.

        Args:
            timeout: Seconds after which to give up; None to wait.

        Raises:
            StopIteration: There are no more pieces.
            TimeoutError: No piece came in time.
            LanguageModelError: The language model returned no usable reply.
        """
        if self._thread is None and not self._is_closed:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        try:
            waits = not self._is_over and self._thread is not None
            piece = self._pieces.get(timeout=None if timeout is None else max(timeout, 0.0)) if waits else None
        except Empty:
            raise TimeoutError("no piece of the answer came in time") from None
        if piece is None:
            self._is_over = True
            error = self._error or (self._reason if self._answer is None else None)
            raise error or StopIteration
        return piece

    @property
    def answer(self) -> Answer:
        """The complete answer, with citations; waits for the end of the stream.

        Raises:
            LanguageModelError: the language model gave no usable reply.
            ValueError: the stream was closed before the answer was whole.
        """
        for _ in self:
            pass
        if self._answer is None:
            raise ValueError("the stream was closed before its answer was whole; read it to its end")
        return self._answer

    def close(self, reason: BaseException | None = None) -> None:
        """Stop the generation of the answer; has no effect after its end.

        Args:
            reason: Exception that the reader receives after the pieces generated so far; None to end the stream there.
        """
        self._reason = reason
        self._is_closed = True
        if reason is not None:
            self._pieces.put(None)  # the reader does not wait for the language model

    def __enter__(self) -> AnswerStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        try:
            self._answer = self._write(self._queue_piece)
        except _StoppedError:
            pass
        except BaseException as error:  # raised in the thread that reads the pieces
            self._error = error
        finally:
            self._pieces.put(None)

    def _queue_piece(self, piece: str) -> None:
        if self._is_closed:
            raise _StoppedError
        self._pieces.put(piece)
