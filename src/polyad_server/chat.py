"""Answers in OpenAI's chat format: text with citation marks, annotations and a list of citations."""

from __future__ import annotations

import json
import re
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

from polyad.errors import LanguageModelError, PolyadError
from polyad.model import Answer, Usage
from polyad.protocols.components import Prompt
from polyad.schemas.objects import JsonObject
from polyad.schemas.places import describe_citation, describe_hit, get_excerpt, map_excerpts
from polyad.text.json_types import format_value
from polyad.text.words import sanitize, separate_markup
from polyad_server.answers import WrittenAnswer
from polyad_server.links import build_passage_url
from polyad_server.openai_models import Message
from polyad_server.openai_results import ChatChoice, ChatCompletion, ChatMessage, ChatUsage
from polyad_server.problems import describe_error, format_openai_error, get_kind, get_status
from polyad_server.workspaces import Workspace

_TASK_HEADING = re.compile(r"\s*#+\s*Task:", re.IGNORECASE)
_TASK_VERB = re.compile(r"\s*(please\s+)?(provide|generate|create|write|suggest)\b", re.IGNORECASE)
_TASK_PURPOSE = re.compile(
    r"\b(titles?|tags?|follow-?ups?)\b.{0,200}\b(conversation|chat)\b", re.IGNORECASE | re.DOTALL
)
_QUOTED_CHAT = re.compile(r"chat.history|^(conversation|user|human|ai|assistant)\s*:", re.IGNORECASE | re.MULTILINE)
_MAX_PURPOSE = 400
"""Characters at the beginning of a message in which a request of the client itself states its purpose."""


def is_client_task(text: str) -> bool:
    r"""Return whether a message comes from the chat program itself: a request for a title, tags or follow-up questions.

    Such requests quote the conversation; a search for them would find passages with words of the conversation.

    >>> is_client_task("### Task:\nGenerate 1-3 broad tags.\n<chat_history>...</chat_history>")
    True
    >>> is_client_task("Write the title of the conversation that Moreau recorded in 1921.")
    False
    """
    if _TASK_HEADING.match(text):
        return _QUOTED_CHAT.search(text) is not None
    has_purpose = _TASK_VERB.match(text) and _TASK_PURPOSE.search(text[:_MAX_PURPOSE])
    return bool(has_purpose) and _QUOTED_CHAT.search(text) is not None


def split_conversation(messages: Sequence[Message]) -> tuple[str, list[dict[str, str]]]:
    """Return the user's last message of a chat, and the earlier messages of user and assistant."""
    turns = [{"role": each.role, "content": each.text} for each in messages if each.role in ("user", "assistant")]
    last = next((number for number in range(len(turns) - 1, -1, -1) if turns[number]["role"] == "user"), None)
    return ("", []) if last is None else (turns[last]["content"], turns[:last])


def complete_task(workspace: Workspace, text: str, max_characters: int) -> tuple[str, Usage]:
    """Return the reply of the language model to a chat program's own request, such as for a title, and its usage.

    The model reads the first and the last characters of a longer request, whose middle is the conversation. Without a
    language model, the reply is empty.

    Raises:
        LanguageModelError: The language model returned no reply.
    """
    model = workspace.engine.components.language_model
    if model is None:
        return "", Usage()
    if len(text) > max_characters:
        text = f"{text[: max_characters // 2]}\n{text[len(text) - (max_characters - 1) // 2 :]}"
    [reply] = model.complete([Prompt(user=text)])
    if isinstance(reply, LanguageModelError):
        raise reply
    return separate_markup(sanitize(reply.text)), reply.usage


class AnswerFormat(ABC):
    """Formats one answer in a format of OpenAI: as one object, or as the events of a stream.

    Args:
        model: Name of the model in the request.
        workspace: Name of the workspace, for the addresses of passages.
        base_url: Address of the server.
        has_footer: Whether the text ends with a list of its sources.
    """

    def __init__(self, model: str, workspace: str, base_url: str, *, has_footer: bool) -> None:
        self._model = model
        self._workspace = workspace
        self._base_url = base_url
        self._has_footer = has_footer
        self._created = int(time.time())

    @abstractmethod
    def format_text(self, text: str, usage: Usage) -> JsonObject:
        """Return a text without citations."""

    @abstractmethod
    def format_answer(self, answer: Answer) -> JsonObject:
        """Return an answer; without its text, its evidence."""

    @abstractmethod
    def stream_text(self, text: str, usage: Usage) -> Generator[str]:
        """Yield a text without citations as server-sent events."""

    @abstractmethod
    def stream_answer(self, written: WrittenAnswer) -> Generator[str]:
        """Yield the server-sent events of an answer while it is written."""

    def build_text(self, answer: Answer) -> str:
        """Return the text of an answer; without it, its evidence."""
        return (answer.text or self.format_evidence(answer)) + self._format_footer(answer)

    def format_evidence(self, answer: Answer) -> str:
        """Format retrieved passages as Markdown with citation marks, for servers without a language model."""
        parts = [separate_markup(answer.note)] if answer.note else []  # may quote facts of documents
        for number, hit in enumerate(answer.evidence.passages, 1):
            quoted = "\n".join(f"> {_escape(line)}" for line in get_excerpt(hit).splitlines())
            parts.append(f"**{_escape(describe_hit(hit))}** [{number}]\n\n{quoted}")
        return "\n\n".join(parts)

    def list_urls(self, answer: Answer) -> list[str]:
        """Return the URLs of the cited passages, in the order of the citation marks ``[n]``."""
        if not answer.text:
            return [self._get_url(answer, hit.passage.id) for hit in answer.evidence.passages]
        last = max((citation.number for citation in answer.citations), default=0)
        cited = {citation.number: citation.passage_id for citation in answer.citations}
        passage_ids = {number: passage.id for number, passage, _ in answer.context.passages} | cited
        numbers = range(1, last + 1)
        return [self._get_url(answer, passage_ids[each]) if each in passage_ids else "" for each in numbers]

    def list_places(self, answer: Answer) -> list[dict[str, Any]]:
        """Return the address and title of each citation, and where it stands in the text."""
        return [
            {
                "url": self._get_url(answer, citation.passage_id),
                "title": describe_citation(citation, answer.evidence),
                "start_index": citation.answer_span.start,
                "end_index": citation.answer_span.end,
            }
            for citation in answer.citations
        ]

    def _format_footer(self, answer: Answer) -> str:
        names = answer.evidence.absent_names if answer.text else ()  # otherwise the note says it
        absent = "".join(f"\n\n{_escape(name.describe())}" for name in names)
        if not self._has_footer or not answer.citations:
            return absent
        sources = {citation.number: citation for citation in answer.citations}
        places = {number: _escape(describe_citation(each, answer.evidence)) for number, each in sources.items()}
        lines = [
            f"[{number}] [{places[number]}]({self._get_url(answer, each.passage_id)})"
            for number, each in sorted(sources.items())
        ]
        return absent + "\n\nSources:\n\n" + "\n\n".join(lines)

    def _get_url(self, answer: Answer, passage_id: str) -> str:
        excerpt = map_excerpts(answer.evidence).get(passage_id)
        return build_passage_url(self._base_url, self._workspace, passage_id, excerpt)


class ChatFormat(AnswerFormat):
    """Formats one answer in OpenAI's chat format: as one completion, or as the chunks of a stream.

    Args:
        model, workspace, base_url, has_footer: See :class:`AnswerFormat`.
        includes_usage: Whether a stream states the tokens of the answer.
    """

    def __init__(
        self, model: str, workspace: str, base_url: str, *, has_footer: bool, includes_usage: bool = False
    ) -> None:
        super().__init__(model, workspace, base_url, has_footer=has_footer)
        self._includes_usage = includes_usage
        self._id = f"chatcmpl-{secrets.token_hex(12)}"

    def format_text(self, text: str, usage: Usage) -> ChatCompletion:
        """Return a text without citations as a chat completion in OpenAI's format."""
        return self._build_completion(text, [], [], usage)

    def format_answer(self, answer: Answer) -> ChatCompletion:
        """Return an answer as a chat completion in OpenAI's format; without an answer's text, its evidence."""
        text, annotations = self.build_text(answer), self._list_annotations(answer)
        return self._build_completion(text, annotations, self.list_urls(answer), answer.usage)

    def stream_text(self, text: str, usage: Usage) -> Generator[str]:
        """Yield a text without citations as the server-sent events of a streamed chat completion."""
        yield self._build_chunk({"role": "assistant", "content": text})
        yield from self._end_stream([], [], usage)

    def stream_answer(self, written: WrittenAnswer) -> Generator[str]:
        """Yield the server-sent events of a streamed chat completion while the answer is written."""
        yield self._build_chunk({"role": "assistant", "content": ""})
        try:
            for piece in written:
                yield self._build_chunk({"content": piece})
            answer = written.finish()
        except PolyadError as error:
            yield _format_event(format_openai_error(get_status(error), get_kind(error), describe_error(error)))
            yield _DONE
            return
        if rest := self.build_text(answer).removeprefix(answer.text):
            yield self._build_chunk({"content": rest})
        yield from self._end_stream(self._list_annotations(answer), self.list_urls(answer), answer.usage)

    def _list_annotations(self, answer: Answer) -> list[dict[str, Any]]:
        return [{"type": "url_citation", "url_citation": place} for place in self.list_places(answer)]

    def _build_completion(
        self, text: str, annotations: list[dict[str, Any]], citations: list[str], usage: Usage
    ) -> ChatCompletion:
        message = ChatMessage(content=text, refusal=None, annotations=annotations)
        return ChatCompletion(
            id=self._id,
            created=self._created,
            model=self._model,
            choices=[ChatChoice(message=message, finish_reason="stop", logprobs=None)],
            usage=_format_usage(usage),
            citations=citations,
        )

    def _build_chunk(self, delta: Mapping[str, Any], finish_reason: str | None = None, **values: Any) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
        return self._format_chunk(choices=[choice], **values)

    def _format_chunk(self, **values: Any) -> str:
        head = {"id": self._id, "object": "chat.completion.chunk", "created": self._created, "model": self._model}
        return _format_event({**head, **values})

    def _end_stream(self, annotations: list[dict[str, Any]], citations: list[str], usage: Usage) -> Iterator[str]:
        delta = {"annotations": annotations} if annotations else {}
        yield self._build_chunk(delta, "stop", citations=citations)
        if self._includes_usage:
            yield self._format_chunk(choices=[], usage=format_value(_format_usage(usage)), citations=citations)
        yield _DONE


_DONE = "data: [DONE]\n\n"


def _format_event(value: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"


def _format_usage(usage: Usage) -> ChatUsage:
    return ChatUsage(
        prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens, total_tokens=usage.tokens
    )


def _escape(text: str) -> str:
    """Escape all Markdown syntax in a text."""
    return re.sub(r"([\\`*_\[\]()<>#])", r"\\\1", " ".join(text.split()))
