"""Answers with a limit on their number and duration, from the last question of a conversation."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from typing import Any, TypeVar

from polyad.answering.conversation import merge_evidence
from polyad.engine.streaming import AnswerStream
from polyad.model import Answer, Evidence
from polyad_server.problems import RequestError
from polyad_server.state import ServerState
from polyad_server.tracing import TraceSpan, record_answer, trace_answer
from polyad_server.workspaces import Workspace

T = TypeVar("T")

_UNREAD_SECONDS = 1.0
"""Time after the limit of an answer until its slot is freed even if the client does not read the answer."""


class WrittenAnswer(Iterator[str]):
    """An iterator over the text of an answer while a language model generates it, with a time limit.

    The slot of the answer is released when the answer ends, the time is over, or the client disconnects.

    Args:
        evidence: The evidence of the answer.
        stream: Writes the answer.
        state: Limits of the server.
        span: Records the answer.
        slot: The slot of the answer among the limited number of concurrent answers.
    """

    def __init__(
        self, evidence: Evidence, stream: AnswerStream, state: ServerState, span: TraceSpan, slot: ExitStack
    ) -> None:
        self.evidence = evidence
        self._stream = stream
        self._span = span
        self._slot = slot
        self._metrics = state.metrics
        self._seconds = state.settings.answer_seconds
        self._deadline = time.monotonic() + self._seconds
        # If the client does not read, nothing calls this iterator, so a timer ends the answer. The timer must not refer
        # to the iterator, which would then never be deleted.
        reason = TimeoutError("the time of the answer is over")
        self._timer = threading.Timer(self._seconds + _UNREAD_SECONDS, _stop_answer, [stream, slot, reason])
        self._timer.daemon = True
        self._timer.start()

    def __next__(self) -> str:
        """Return the next piece.

        Raises:
            RequestError: The time is over.
        """
        try:
            return self._stream.read(self._deadline - time.monotonic())
        except TimeoutError:
            self.close()
            raise _build_timeout_error(self._seconds) from None

    def finish(self) -> Answer:
        """Wait for the end of the answer, and return the answer with citations. May be called once."""
        try:
            for _ in self:
                pass
            answer = self._stream.answer
            self._metrics.count_usage(answer.usage)
            record_answer(self._span, answer)
            return answer
        finally:
            self.close()

    def abandon(self) -> None:
        """Stop an answer whose client has disconnected; a thread that waits for it receives RequestError."""
        _stop_answer(self._stream, self._slot, RequestError(499, "client_disconnected", "the client has disconnected"))

    def close(self) -> None:
        """Stop the generation of the answer, and free its slot for a waiting request."""
        self._timer.cancel()
        self._stream.close()
        self._slot.close()

    def __del__(self) -> None:
        self.close()


def _stop_answer(stream: AnswerStream, slot: ExitStack, reason: Exception) -> None:
    """Stop generating an answer, and free its slot for a waiting request; the reader of ``stream`` gets ``reason``."""
    stream.close(reason)
    slot.close()


def _build_timeout_error(seconds: float) -> RequestError:
    fix = "use a faster language model or raise server.answer_seconds"
    return RequestError(504, "answer_timeout", f"the answer took more than {seconds:g} seconds; {fix}")


def complete_within(state: ServerState, complete: Callable[[], T]) -> T:
    """Return the result of ``complete``, which waits for a language model, within the time limit of an answer.

    Raises:
        RequestError: The time is over; the thread of the request ends with the limits of the endpoint.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(complete())
        except BaseException as error:  # raised in the thread that waits
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        return future.result(state.settings.answer_seconds)
    except TimeoutError:
        raise _build_timeout_error(state.settings.answer_seconds) from None


def write_answer(
    state: ServerState,
    workspace: Workspace,
    question: str,
    history: Sequence[Mapping[str, str]] = (),
    *,
    model: str = "",
    regenerate: bool = False,
    **options: Any,
) -> WrittenAnswer:
    """Search, and return an iterator that generates the answer to a question, which may refer to earlier messages.

    Args:
        state: Limits of the server.
        workspace: The index.
        question: The question.
        history: Messages before the question, each with ``role`` and ``content``.
        model: Name of a further language model, which completes the question and writes the answer; empty for the
            language model of the index.
        regenerate: Whether the language model replaces a stored answer.
        **options: Options of :meth:`polyad_server.state.ServerState.search`.

    Raises:
        RequestError: A limit of the server is exceeded.
        ConfigurationError: An option is invalid.
    """
    state.check_question(question)
    engine = workspace.engine
    language_model = engine.components.get_language_model(model)
    with ExitStack() as slot:
        slot.enter_context(state.answers.hold_slot())
        span = slot.enter_context(trace_answer(workspace.name, language_model.name if language_model else ""))
        complete = complete_within(state, lambda: engine.complete_question(question, history, model=model))
        if not complete.is_rewritten and complete.text != question:  # with names, without a language model
            options["typed_question"] = question
        evidence = state.search(workspace, complete.text, answers=True, **options)
        for other in complete.others:
            if not (complete.is_rewritten and evidence.passages):
                other_evidence = state.search(workspace, other, answers=True, **options | {"typed_question": question})
                evidence = merge_evidence(evidence, other_evidence)
        stream = engine.stream_answer(evidence, model=model, regenerate=regenerate)
        return WrittenAnswer(evidence, stream, state, span, slot.pop_all())
