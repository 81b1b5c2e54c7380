"""Bodies of requests of the OpenAI-compatible API; fields that it does not use are ignored."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from polyad_server.models import Text


class _Body(BaseModel):
    model_config = ConfigDict(extra="ignore")


class MessagePart(_Body):
    """A part of a chat message; only text is read, and images are ignored."""

    type: Annotated[str, Field(max_length=100)] = "text"
    text: Text = ""


class Message(_Body):
    """A chat message in OpenAI's format: a role and a text."""

    role: Annotated[str, Field(max_length=100)]
    content: Text | list[MessagePart] | None = None

    @property
    def text(self) -> str:
        """The text of all parts of the message, joined."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if part.type in ("text", "input_text", "output_text"))
        return self.content or ""


class StreamOptions(_Body):
    """Options of a streamed chat completion, in OpenAI's format."""

    include_usage: bool = False


class ChatBody(_Body):
    """The request body of a chat completion; the last message of the user is the question."""

    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={
            "examples": [{"model": "kb", "messages": [{"role": "user", "content": "Who cast the bell of Tarn?"}]}]
        },
    )
    model: Annotated[str, Field(max_length=300, description="Workspace, or `workspace@retriever`.")]
    messages: Annotated[list[Message], Field(min_length=1, max_length=1000)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None


class InputItem(Message):
    """An item of the input of a response: a message; tool calls and other items, without a role, are ignored."""

    role: Annotated[str, Field(max_length=100)] = ""


class ResponseBody(_Body):
    """The request body of a response: a question, or the messages of a conversation, of which no part is stored."""

    model_config = ConfigDict(
        extra="ignore", json_schema_extra={"examples": [{"model": "kb", "input": "Who cast the bell of Tarn?"}]}
    )
    model: Annotated[str, Field(max_length=300, description="Workspace, or `workspace@retriever`.")]
    input: Text | Annotated[list[InputItem], Field(min_length=1, max_length=1000)]
    stream: bool | None = False
    previous_response_id: Annotated[str | None, Field(max_length=300)] = None


_EmbeddedText = Annotated[str, Field(max_length=100_000)]


class EmbeddingsBody(_Body):
    """The request body of embeddings: texts for the embedder of a workspace."""

    model: Annotated[str, Field(max_length=300)]
    input: _EmbeddedText | Annotated[list[_EmbeddedText], Field(min_length=1, max_length=2048)]
    encoding_format: Literal["float", "base64"] | None = "float"
    dimensions: Annotated[int | None, Field(ge=1, description="Number of components; fewer are the first ones.")] = None


class RankingOptions(_Body):
    """The score threshold of a vector store search, in OpenAI's format."""

    score_threshold: Annotated[float, Field(ge=0, le=1)] = 0.0


class VectorStoreSearchBody(_Body):
    """The request body of a search in a vector store; the score of a result is its relevance."""

    query: Text | Annotated[list[Text], Field(min_length=1, max_length=32)]
    filters: dict[str, Any] | None = None
    max_num_results: Annotated[int, Field(ge=1, le=50)] = 10
    ranking_options: RankingOptions | None = None


class DifyRetrievalSetting(_Body):
    """Limits of a search that Dify requests: the number of results and the lowest score."""

    top_k: Annotated[int, Field(ge=1, le=100)] = 5
    score_threshold: Annotated[float | None, Field(ge=0, le=1)] = 0.0


class DifyComparison(_Body):
    """A comparison of metadata in Dify's format: one of several keys, an operator and a value."""

    name: str | Annotated[list[str], Field(min_length=1)]
    comparison_operator: str
    value: str | int | float | list[str] | None = None


class DifyCondition(_Body):
    """A condition on metadata in Dify's format: comparisons that are joined by ``and`` or ``or``."""

    logical_operator: str | None = "and"
    conditions: list[DifyComparison] | None = None


class DifyBody(_Body):
    """The request body of a search through Dify's external knowledge API."""

    knowledge_id: Annotated[str, Field(max_length=300)]
    query: Text
    retrieval_setting: DifyRetrievalSetting = DifyRetrievalSetting()
    metadata_condition: DifyCondition | None = None
