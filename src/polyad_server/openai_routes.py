"""The OpenAI-compatible API under ``/v1``, and the retrieval API of Dify.

A workspace is a model, a vector store and a knowledge base; ``kb@hypersu`` selects a retriever.
"""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, TypeVar

import numpy as np
import numpy.typing as npt
from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

from polyad.engine.registry import NEED_LANGUAGE_MODEL
from polyad.model import Evidence, ScoredPassage
from polyad.schemas.objects import JsonObject
from polyad.schemas.places import get_excerpt
from polyad.text.json_types import format_value
from polyad.text.pictures import select_labels
from polyad_server.access import Access, AuthenticatedRoute, Gatekeeper
from polyad_server.answers import complete_within, write_answer
from polyad_server.chat import AnswerFormat, ChatFormat, complete_task, is_client_task, split_conversation
from polyad_server.keys import Scope
from polyad_server.links import get_base_url
from polyad_server.openai_filters import parse_dify_condition, parse_openai_filter
from polyad_server.openai_models import ChatBody, DifyBody, EmbeddingsBody, Message, ResponseBody, VectorStoreSearchBody
from polyad_server.openai_responses import ResponseFormat
from polyad_server.openai_results import (
    ChatCompletion,
    DifyRecord,
    DifyRecords,
    EmbeddingList,
    EmbeddingResult,
    EmbeddingUsage,
    ModelList,
    ModelResult,
    ResponseResult,
    TextContent,
    VectorStoreHit,
    VectorStoreHits,
    VectorStoreList,
    VectorStoreResult,
)
from polyad_server.problems import RequestError
from polyad_server.responses import EVENTS, EventResponse
from polyad_server.state import State
from polyad_server.workspaces import Workspace


class CompatibleRoute(AuthenticatedRoute):
    """A route of an API of others, whose objects state no version of polyad's."""

    encode = staticmethod(format_value)


router = APIRouter(tags=["OpenAI-compatible"], route_class=CompatibleRoute)

ModelName = Annotated[str, Path(min_length=1, max_length=300)]

T = TypeVar("T")

_TEXTS_PER_BATCH = 64
"""Texts that are embedded before the server checks whether their client still waits."""


def authorize(request: Request, model: str, scope: Scope = Scope.READ) -> tuple[Access, str]:
    """Return the authorised workspace and the retriever that a model name ``WORKSPACE@RETRIEVER`` states.

    The name of the retriever is empty for the default retriever.
    """
    name, _, retriever = model.partition("@")
    gatekeeper: Gatekeeper = request.app.state.gatekeeper
    access = gatekeeper.authorize(request, name, scope)
    if retriever and retriever not in request.app.state.server.retrievers:
        raise RequestError(404, "model_not_found", f"there is no retriever {retriever!r}")
    return access, retriever


def _map_workspaces(request: Request, function: Callable[[Workspace], T]) -> list[T]:
    """Return ``function(workspace)`` for each workspace (index) that the API key of a request may use."""
    gatekeeper: Gatekeeper = request.app.state.gatekeeper
    names = gatekeeper.list_names(gatekeeper.authenticate(request))
    return [*gatekeeper.workspaces.map_all(function, names).values()]


# Models


@router.get("/v1/models")
def list_models(request: Request, state: State) -> ModelList:
    """List the models that an API key may use: each workspace (index).

    With the setting `server.list_retrievers`, each workspace with each retriever is listed too.
    """
    offered = state.retrievers if state.settings.list_retrievers else []
    names = [name for listed in _map_workspaces(request, partial(_list_model_names, offered)) for name in listed]
    return ModelList(data=[ModelResult(id=name) for name in names])


@router.get("/v1/models/{model:path}")
def read_model(request: Request, model: ModelName) -> ModelResult:
    """Return one entry of OpenAI's list of models; each workspace (index) is a model, such as ``kb`` or ``kb@bm25``."""
    authorize(request, model)
    return ModelResult(id=model)


def _list_model_names(offered: Sequence[str], workspace: Workspace) -> Iterator[str]:
    yield workspace.name
    has_model = workspace.engine.components.language_model is not None
    for retriever in offered:
        if has_model or retriever not in NEED_LANGUAGE_MODEL:
            yield f"{workspace.name}@{retriever}"


# Chat


@router.post("/v1/chat/completions", response_model=ChatCompletion, responses=EVENTS)
def complete_chat(request: Request, body: ChatBody, state: State) -> JsonObject | Response:
    """Answer the last message of the user from the documents, with citations.

    The marks `[n]` refer to the n-th address of `citations`; `annotations` say where each stands. Without a language
    model the reply is the evidence.
    """
    access, retriever = authorize(request, body.model)
    includes_usage = bool(body.stream_options and body.stream_options.include_usage)
    build = partial(ChatFormat, includes_usage=includes_usage)
    return _answer(request, state, access, retriever, body, body.messages, build)


@router.post("/v1/responses", response_model=ResponseResult, responses=EVENTS)
def create_response(request: Request, body: ResponseBody, state: State) -> JsonObject | Response:
    """Answer the last message of the user from the documents, in the format of OpenAI's Responses API.

    The annotations of the text are its citations. No response is stored: a client sends the whole conversation.
    """
    access, retriever = authorize(request, body.model)
    if body.previous_response_id:
        detail = "the server stores no responses; send the earlier messages as input, without previous_response_id"
        raise RequestError(422, "no_stored_responses", detail)
    messages = [Message(role="user", content=body.input)] if isinstance(body.input, str) else body.input
    return _answer(request, state, access, retriever, body, messages, ResponseFormat)


def _answer(
    request: Request,
    state: State,
    access: Access,
    retriever: str,
    body: ChatBody | ResponseBody,
    messages: Sequence[Message],
    build: Callable[..., AnswerFormat],
) -> JsonObject | Response:
    """Return the answer to the last message of the user, in the format that ``build`` builds."""
    question, history = split_conversation(messages)
    if not question.strip():
        raise RequestError(422, "question_required", "the conversation has no message of the user with text")
    base_url, has_footer = get_base_url(request, state), state.settings.citation_footer
    format = build(body.model, access.workspace.name, base_url, has_footer=has_footer)
    if is_client_task(question):
        with state.answers.hold_slot():
            max_characters = state.settings.max_question_characters
            text, usage = complete_within(state, lambda: complete_task(access.workspace, question, max_characters))
        if body.stream:
            return EventResponse(format.stream_text(text, usage))
        return format.format_text(text, usage)
    written = write_answer(state, access.workspace, question, history, retriever=retriever)
    if body.stream:
        return EventResponse(format.stream_answer(written))
    request.state.abandon = written.abandon
    return format.format_answer(written.finish())


# Embeddings


@router.post("/v1/embeddings")
def embed(request: Request, body: EmbeddingsBody, state: State) -> EmbeddingList:
    """Embed texts with a workspace's embedder, in the same way as indexed passages."""
    access, _ = authorize(request, body.model)
    texts = [body.input] if isinstance(body.input, str) else body.input
    components = access.workspace.engine.components
    is_abandoned = threading.Event()
    request.state.abandon = is_abandoned.set
    deadline = time.monotonic() + state.settings.answer_seconds
    batches, tokens = [], 0
    for start in range(0, len(texts), _TEXTS_PER_BATCH):
        with state.searches.hold_slot():  # other requests take their turns between two batches
            if is_abandoned.is_set() or time.monotonic() > deadline:
                raise RequestError(504, "embedding_timeout", "the embeddings took too long; send fewer texts")
            batch = texts[start : start + _TEXTS_PER_BATCH]
            batches.append(components.embedder.encode(batch, "passage"))
            tokens += sum(map(components.splitter.count_tokens, batch))
    vectors = np.concatenate(batches)
    if body.dimensions:
        vectors = _shorten(vectors, body.dimensions)
    rows: Sequence[Sequence[float] | str] = (
        [base64.b64encode(vector.astype("<f4").tobytes()).decode() for vector in vectors]
        if body.encoding_format == "base64"
        else vectors.tolist()
    )
    data = [EmbeddingResult(index=number, embedding=row) for number, row in enumerate(rows)]
    return EmbeddingList(data=data, model=body.model, usage=EmbeddingUsage(prompt_tokens=tokens, total_tokens=tokens))


def _shorten(vectors: npt.NDArray[np.float32], dimensions: int) -> npt.NDArray[np.float32]:
    """Return the first components of unit vectors, as unit vectors."""
    if dimensions > vectors.shape[1]:
        detail = f"dimensions is {dimensions}; expected at most {vectors.shape[1]}, the dimension of the embedder"
        raise RequestError(422, "invalid_dimensions", detail)
    shortened = vectors[:, :dimensions]
    lengths = np.linalg.norm(shortened, axis=1, keepdims=True)
    unit: npt.NDArray[np.float32] = shortened / np.maximum(lengths, np.finfo(np.float32).tiny)
    return unit


# Vector stores


@router.get("/v1/vector_stores")
def list_vector_stores(request: Request) -> VectorStoreList:
    """List the workspaces that the key may use as vector stores."""
    data = _map_workspaces(request, _format_vector_store)
    first_id, last_id = (data[0].id, data[-1].id) if data else (None, None)
    return VectorStoreList(data=data, first_id=first_id, last_id=last_id)


@router.get("/v1/vector_stores/{vector_store_id}")
def read_vector_store(request: Request, vector_store_id: ModelName) -> VectorStoreResult:
    """Return a vector store in OpenAI's format; a vector store is a workspace."""
    access, _ = authorize(request, vector_store_id)
    return _format_vector_store(access.workspace)


def _format_vector_store(workspace: Workspace) -> VectorStoreResult:
    statistics = workspace.engine.catalogue.statistics()
    counts = dict.fromkeys(("in_progress", "failed", "cancelled"), 0)
    return VectorStoreResult(
        id=workspace.name,
        name=workspace.name,
        usage_bytes=statistics.disk_bytes,
        file_counts={**counts, "completed": statistics.documents, "total": statistics.documents},
        last_active_at=None,
        metadata={},
    )


@router.post("/v1/vector_stores/{vector_store_id}/search")
def search_vector_store(
    request: Request, vector_store_id: ModelName, body: VectorStoreSearchBody, state: State
) -> VectorStoreHits:
    """Search a workspace as OpenAI's vector store; several queries are joined into one question."""
    access, retriever = authorize(request, vector_store_id)
    queries = [body.query] if isinstance(body.query, str) else body.query
    where = parse_openai_filter(body.filters) if body.filters else None
    evidence = state.search(access.workspace, " ".join(queries), body.max_num_results, retriever=retriever, where=where)
    hits = _select_hits(evidence, body.ranking_options.score_threshold if body.ranking_options else 0.0)
    return VectorStoreHits(search_query=queries, data=list(map(_format_hit, hits)), next_page=None)


def _select_hits(evidence: Evidence, threshold: float) -> list[ScoredPassage]:
    """Return the hits with a score of at least ``threshold``."""
    return [hit for hit in evidence.passages if _get_score(hit) >= threshold]


def _format_hit(hit: ScoredPassage) -> VectorStoreHit:
    return VectorStoreHit(
        file_id=hit.passage.document_id,
        filename=_get_title(hit),
        score=_get_score(hit),
        attributes=_list_attributes(hit),
        content=[TextContent(text=hit.passage.text)],
    )


def _get_score(hit: ScoredPassage) -> float:
    """Return the relevance of a hit, in [0, 1]; 0 if its retriever does not compute relevance."""
    return hit.relevance or 0.0


def _get_title(hit: ScoredPassage) -> str:
    return hit.origin.title or hit.passage.title or hit.passage.document_id


def _list_attributes(hit: ScoredPassage) -> dict[str, str | int | float | bool]:
    """Return a hit's metadata and passage id as OpenAI's vector store attributes; lists become text."""
    metadata: Mapping[str, Any] = select_labels(hit.origin.metadata, f"{hit.location.heading}\n{hit.passage.text}")
    attributes = {key: ", ".join(value) if isinstance(value, tuple) else value for key, value in metadata.items()}
    return {**attributes, "passage_id": hit.passage.id}


# Dify


@router.post("/dify/retrieval")
def retrieve_for_dify(request: Request, body: DifyBody, state: State) -> DifyRecords:
    """Search a workspace for Dify, which uses the workspace as an external knowledge base."""
    access, retriever = authorize(request, body.knowledge_id)
    setting = body.retrieval_setting
    sources = access.workspace.engine.catalogue.sources
    where = None
    if body.metadata_condition:
        where = parse_dify_condition(body.metadata_condition, lambda filter: bool(sources(filter)))
    evidence = state.search(access.workspace, body.query, setting.top_k, retriever=retriever, where=where)
    records = [
        DifyRecord(
            content=get_excerpt(hit), score=_get_score(hit), title=_get_title(hit), metadata=_list_attributes(hit)
        )
        for hit in _select_hits(evidence, setting.score_threshold or 0.0)
    ]
    return DifyRecords(records=records)
