"""Results of the OpenAI-compatible API, and of the retrieval API of Dify."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from polyad.schemas.objects import JsonObject


class ModelResult(JsonObject):
    """A model: a workspace (index), or a workspace with a retriever."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "polyad"


class ModelList(JsonObject):
    """The models that a key may use."""

    object: Literal["list"] = "list"
    data: Sequence[ModelResult]


class ChatUsage(JsonObject):
    """Tokens of a chat completion."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatMessage(JsonObject):
    """The message of a chat completion; ``annotations`` are its citations."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None
    annotations: Sequence[Mapping[str, Any]]


class ChatChoice(JsonObject):
    """The only choice of a chat completion."""

    index: int = 0
    message: ChatMessage
    finish_reason: str
    logprobs: None


class ChatCompletion(JsonObject):
    """An answer as a chat completion; ``citations`` are the addresses that its marks ``[n]`` refer to."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: Sequence[ChatChoice]
    usage: ChatUsage
    citations: Sequence[str]


class ResponseUsage(JsonObject):
    """Tokens of a response."""

    input_tokens: int
    input_tokens_details: Mapping[str, int]
    output_tokens: int
    output_tokens_details: Mapping[str, int]
    total_tokens: int


class OutputText(JsonObject):
    """The text of a message, whose annotations are its citations."""

    type: Literal["output_text"] = "output_text"
    text: str
    annotations: Sequence[Mapping[str, Any]]
    logprobs: Sequence[Any] = ()


class OutputMessage(JsonObject):
    """The message of a response."""

    id: str
    type: Literal["message"] = "message"
    status: str
    role: Literal["assistant"] = "assistant"
    content: Sequence[OutputText]


class ResponseResult(JsonObject):
    """An answer as a response of OpenAI's Responses API; ``citations`` are the addresses of its sources."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    model: str
    status: str
    error: Mapping[str, str] | None
    output: Sequence[OutputMessage]
    usage: ResponseUsage | None
    incomplete_details: None
    instructions: None
    max_output_tokens: None
    metadata: Mapping[str, str]
    parallel_tool_calls: bool
    previous_response_id: None
    temperature: None
    tool_choice: str
    tools: Sequence[Any]
    top_p: None
    citations: Sequence[str]


class EmbeddingUsage(JsonObject):
    """Tokens of the embedded texts."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingResult(JsonObject):
    """The vector of one text: numbers, or base64 of little-endian float32."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: Sequence[float] | str


class EmbeddingList(JsonObject):
    """The vectors of the texts of a request, in their order."""

    object: Literal["list"] = "list"
    data: Sequence[EmbeddingResult]
    model: str
    usage: EmbeddingUsage


class VectorStoreResult(JsonObject):
    """A vector store, which is a workspace."""

    id: str
    object: Literal["vector_store"] = "vector_store"
    created_at: int = 0
    name: str
    usage_bytes: int
    file_counts: Mapping[str, int]
    status: str = "completed"
    last_active_at: None
    metadata: Mapping[str, str]


class VectorStoreList(JsonObject):
    """The workspaces that a key may use."""

    object: Literal["list"] = "list"
    data: Sequence[VectorStoreResult]
    first_id: str | None
    last_id: str | None
    has_more: bool = False


class TextContent(JsonObject):
    """The text of a result of a vector store."""

    type: Literal["text"] = "text"
    text: str


class VectorStoreHit(JsonObject):
    """A passage; ``attributes`` are the metadata of its document, with the id of the passage."""

    file_id: str
    filename: str
    score: float
    attributes: Mapping[str, str | int | float | bool]
    content: Sequence[TextContent]


class VectorStoreHits(JsonObject):
    """The result of a search in a vector store."""

    object: Literal["vector_store.search_results.page"] = "vector_store.search_results.page"
    search_query: Sequence[str]
    data: Sequence[VectorStoreHit]
    has_more: bool = False
    next_page: None


class DifyRecord(JsonObject):
    """A passage in Dify's format."""

    content: str
    score: float
    title: str
    metadata: Mapping[str, str | int | float | bool]


class DifyRecords(JsonObject):
    """The result of a search for Dify."""

    records: Sequence[DifyRecord]
