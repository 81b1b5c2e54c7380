"""Routes of saved conversations: list, save, open, rename, export and delete them."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from polyad_server.access import AuthenticatedRoute, Reader
from polyad_server.conversations import Conversations, format_markdown
from polyad_server.index_routes import Cursor, Id, Limit
from polyad_server.keys import Scope
from polyad_server.models import ConversationBody, ConversationChangeBody
from polyad_server.responses import build_page, describe_responses, respond_json

router = APIRouter(prefix="/api/v1", tags=["conversations"], route_class=AuthenticatedRoute)


def _open_conversations(access: Reader) -> Conversations:
    principal = access.principal
    owner = principal.key.id if principal.key else ""
    return Conversations(access.workspace.values, owner, is_admin=principal.scope >= Scope.ADMIN)


Saved = Annotated[Conversations, Depends(_open_conversations)]

_RESPONSES = describe_responses(dict[str, Any], statuses=(401, 403, 404, 409, 413, 422, 429))


@router.get("/conversations", responses=_RESPONSES)
def list_conversations(
    conversations: Saved,
    everybody: Annotated[bool, Query(description="Whether those of all keys are listed; for admin keys.")] = False,
    limit: Limit = 100,
    cursor: Cursor = "",
) -> JSONResponse:
    """List the conversations that this key saved, the last changed first, without their turns."""
    rows = list(map(asdict, conversations.list_all(of_everybody=everybody)))
    return respond_json(build_page("conversations", rows, limit, cursor))


@router.post("/conversations", status_code=201, responses=_RESPONSES)
def save_conversation(body: ConversationBody, conversations: Saved) -> JSONResponse:
    """Save a conversation with the index. Only this key, and admin keys, can read, change or delete it."""
    turns = [turn.model_dump() for turn in body.turns]
    conversation = conversations.add(body.title, turns, body.options.model_dump(), datetime.now(UTC))
    return respond_json(asdict(conversation), 201)


@router.get("/conversation", responses=_RESPONSES)
def read_conversation(conversations: Saved, id: Id) -> JSONResponse:
    """Return a saved conversation with its turns: question, answer and sources."""
    return respond_json({**asdict(conversations.get(id)), "turns": conversations.get_turns(id)})


@router.patch("/conversation", responses=_RESPONSES)
def change_conversation(body: ConversationChangeBody, conversations: Saved, id: Id) -> JSONResponse:
    """Rename a saved conversation, or replace its turns."""
    turns = None if body.turns is None else [turn.model_dump() for turn in body.turns]
    return respond_json(asdict(conversations.change(id, body.title, turns, datetime.now(UTC))))


@router.delete("/conversation", responses=_RESPONSES)
def delete_conversation(conversations: Saved, id: Id) -> JSONResponse:
    """Delete a saved conversation."""
    conversations.delete(id)
    return respond_json({"deleted": id})


@router.get("/conversation/markdown", responses={200: {"content": {"text/markdown": {}}}}, response_class=Response)
def export_conversation(conversations: Saved, id: Id) -> PlainTextResponse:
    """Return a saved conversation as Markdown, with the sources of each answer."""
    text = format_markdown(conversations.get(id), conversations.get_turns(id))
    return PlainTextResponse(text, media_type="text/markdown")
