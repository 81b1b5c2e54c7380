"""Answers with a limit on their number and duration, from the last question of a conversation."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack

from polyad.model import Answer
from polyad.server.models import SearchBody
from polyad.server.problems import RequestError
from polyad.server.state import ServerState
from polyad.server.tracing import record_answer, trace_answer
from polyad.server.workspaces import Workspace


class WrittenAnswer(Iterator[str]):
    """The pieces of an answer as they are written; it ends when its time is over or nobody reads it any more.

    Args:
        state: Limits of the server.
        workspace: The index.
        body: The question and its options.
    """

    def __init__(self, state: ServerState, workspace: Workspace, body: SearchBody) -> None:
        self._deadline = time.monotonic() + state.settings.answer_seconds
        self._seconds = state.settings.answer_seconds
        self._is_counted = False
        self._metrics = state.metrics
        self._slot = ExitStack()
        self._slot.enter_context(state.answers.enter())
        model = workspace.engine.components.language_model
        self._span = self._slot.enter_context(trace_answer(workspace.name, model.name if model else ""))
        try:
            self._stream = workspace.engine.stream_answer(state.search(workspace, body, answers=True))
        except BaseException:
            self._slot.close()
            raise

    def __next__(self) -> str:
        """Return the next piece.

        Raises:
            RequestError: The time is over.
        """
        try:
            return self._stream.read(self._deadline - time.monotonic())
        except StopIteration:
            raise
        except TimeoutError:
            self.close()
            raise RequestError(504, "answer_timeout", f"the answer took more than {self._seconds:g} seconds") from None
        except BaseException:
            self.close()
            raise

    def finish(self) -> Answer:
        """Return the whole answer."""
        for _ in self:
            pass
        answer = self._stream.answer
        if not self._is_counted:
            self._is_counted = True
            self._metrics.count_usage(answer.usage)
            record_answer(self._span, answer)
        self.close()
        return answer

    def close(self) -> None:
        """Stop writing."""
        self._stream.close()
        self._slot.close()

    def __del__(self) -> None:
        self.close()


def write_answer(
    state: ServerState, workspace: Workspace, body: SearchBody, history: Sequence[Mapping[str, str]]
) -> WrittenAnswer:
    """Begin the answer to a question that may refer to the conversation before it.

    Args:
        state: Limits of the server.
        workspace: The index.
        body: The question and its options.
        history: Messages before the question, each with ``role`` and ``content``.
    """
    state.check_question(body.question)
    question = workspace.engine.rewrite_question(body.question, history) if history else body.question
    return WrittenAnswer(state, workspace, body.model_copy(update={"question": question}))
