"""Answers in the format of OpenAI's Responses API: one message of text, whose annotations are the citations."""

from __future__ import annotations

import json
import secrets
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from polyad.errors import PolyadError
from polyad.model import Answer, Usage
from polyad.text.json_types import format_value
from polyad_server.answers import WrittenAnswer
from polyad_server.chat import AnswerFormat
from polyad_server.openai_results import OutputMessage, OutputText, ResponseResult, ResponseUsage
from polyad_server.problems import describe_error, get_kind

_NOT_SUPPORTED: Mapping[str, Any] = {
    "incomplete_details": None,
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": False,
    "previous_response_id": None,
    "temperature": None,
    "tool_choice": "none",
    "tools": [],
    "top_p": None,
}
"""Keys that clients expect in a response."""

_PLACE = {"output_index": 0, "content_index": 0}


class ResponseFormat(AnswerFormat):
    """Formats one answer as a response of OpenAI's Responses API, or as the events of its stream.

    Args:
        model, workspace, base_url, has_footer: See :class:`polyad_server.chat.AnswerFormat`.
    """

    def __init__(self, model: str, workspace: str, base_url: str, *, has_footer: bool) -> None:
        super().__init__(model, workspace, base_url, has_footer=has_footer)
        self._id, self._item_id = f"resp_{secrets.token_hex(12)}", f"msg_{secrets.token_hex(12)}"
        self._numbers = count()

    def format_text(self, text: str, usage: Usage) -> ResponseResult:
        """Return a text without citations as a response."""
        return self._build_response("completed", self._build_message(text, []), usage)

    def format_answer(self, answer: Answer) -> ResponseResult:
        """Return an answer as a response; without an answer's text, its evidence."""
        message = self._build_message(self.build_text(answer), self._list_annotations(answer))
        return self._build_response("completed", message, answer.usage, self.list_urls(answer))

    def stream_text(self, text: str, usage: Usage) -> Generator[str]:
        """Yield a text without citations as the events of a streamed response."""
        yield from self._begin()
        yield self._build_delta(text)
        yield from self._end(text, [], self.format_text(text, usage))

    def stream_answer(self, written: WrittenAnswer) -> Generator[str]:
        """Yield the events of a streamed response while the answer is written; after an error, ``response.failed``."""
        yield from self._begin()
        try:
            for piece in written:
                yield self._build_delta(piece)
            answer = written.finish()
        except PolyadError as error:
            problem = {"code": get_kind(error), "message": describe_error(error)}
            yield self._build_event("response.failed", response=self._build_response("failed", None, error=problem))
            return
        text = self.build_text(answer)
        if rest := text.removeprefix(answer.text):
            yield self._build_delta(rest)
        yield from self._end(text, self._list_annotations(answer), self.format_answer(answer))

    def _list_annotations(self, answer: Answer) -> list[dict[str, Any]]:
        return [{"type": "url_citation", **place} for place in self.list_places(answer)]

    def _build_message(self, text: str | None, annotations: Sequence[Mapping[str, Any]]) -> OutputMessage:
        """Return the message of a response; None as its text while it is written."""
        content = [] if text is None else [OutputText(text=text, annotations=annotations)]
        status = "in_progress" if text is None else "completed"
        return OutputMessage(id=self._item_id, status=status, content=content)

    def _build_response(
        self,
        status: str,
        message: OutputMessage | None,
        usage: Usage | None = None,
        citations: Sequence[str] = (),
        error: Mapping[str, str] | None = None,
    ) -> ResponseResult:
        return ResponseResult(
            id=self._id,
            created_at=self._created,
            model=self._model,
            status=status,
            error=error,
            output=[message] if message else [],
            usage=_format_usage(usage) if usage else None,
            **_NOT_SUPPORTED,
            citations=citations,
        )

    def _begin(self) -> Iterator[str]:
        for name in ("created", "in_progress"):
            yield self._build_event(f"response.{name}", response=self._build_response("in_progress", None))
        yield self._build_event("response.output_item.added", output_index=0, item=self._build_message(None, []))
        yield self._build_event(
            "response.content_part.added", item_id=self._item_id, **_PLACE, part=OutputText(text="", annotations=[])
        )

    def _end(self, text: str, annotations: Sequence[Mapping[str, Any]], response: ResponseResult) -> Iterator[str]:
        place = {"item_id": self._item_id, **_PLACE}
        for index, annotation in enumerate(annotations):
            name = "response.output_text.annotation.added"
            yield self._build_event(name, **place, annotation_index=index, annotation=annotation)
        yield self._build_event("response.output_text.done", **place, text=text, logprobs=[])
        yield self._build_event(
            "response.content_part.done", **place, part=OutputText(text=text, annotations=annotations)
        )
        item = self._build_message(text, annotations)
        yield self._build_event("response.output_item.done", output_index=0, item=item)
        yield self._build_event("response.completed", response=response)

    def _build_delta(self, delta: str) -> str:
        name = "response.output_text.delta"
        return self._build_event(name, item_id=self._item_id, **_PLACE, delta=delta, logprobs=[])

    def _build_event(self, name: str, **values: Any) -> str:
        data = {"type": name, "sequence_number": next(self._numbers), **format_value(values)}
        return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"


def _format_usage(usage: Usage) -> ResponseUsage:
    return ResponseUsage(
        input_tokens=usage.prompt_tokens,
        input_tokens_details={"cached_tokens": 0},
        output_tokens=usage.completion_tokens,
        output_tokens_details={"reasoning_tokens": 0},
        total_tokens=usage.tokens,
    )
