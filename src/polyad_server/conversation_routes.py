"""Routes of saved conversations: list, save, open, rename, export and delete them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.responses import PlainTextResponse, Response

from polyad_server.access import AuthenticatedRoute, Reader
from polyad_server.conversations import Conversations, format_markdown
from polyad_server.index_routes import Cursor, Id, Limit
from polyad_server.keys import Scope
from polyad_server.models import ConversationBody, ConversationChangeBody
from polyad_server.responses import PROBLEMS, cut_page, describe_problems
from polyad_server.results import ConversationSchema, ConversationsPageSchema, DeletionSchema

router = APIRouter(prefix="/api/v1", tags=["conversations"], route_class=AuthenticatedRoute, responses=PROBLEMS)


def _open_conversations(access: Reader) -> Conversations:
    principal = access.principal
    owner = principal.key.id if principal.key else ""
    return Conversations(access.workspace.values, owner, is_admin=principal.scope >= Scope.ADMIN)


Saved = Annotated[Conversations, Depends(_open_conversations)]


@router.get("/conversations")
def list_conversations(
    conversations: Saved,
    everybody: Annotated[bool, Query(description="Whether those of all keys are listed; for admin keys.")] = False,
    limit: Limit = 100,
    cursor: Cursor = "",
) -> ConversationsPageSchema:
    """List the conversations that this key saved, the last changed first, without their turns."""
    listed, page = cut_page(conversations.list_all(of_everybody=everybody), limit, cursor)
    return ConversationsPageSchema(**vars(page), conversations=list(map(ConversationSchema.from_object, listed)))


@router.post("/conversations", status_code=201, responses=describe_problems(409))
def save_conversation(body: ConversationBody, conversations: Saved) -> ConversationSchema:
    """Save a conversation with the index. Only this key, and admin keys, can read, change or delete it."""
    turns = [turn.model_dump() for turn in body.turns]
    return ConversationSchema.from_object(
        conversations.add(body.title, turns, body.options.model_dump(), datetime.now(UTC))
    )


@router.get("/conversation")
def read_conversation(conversations: Saved, id: Id) -> ConversationSchema:
    """Return a saved conversation with its turns: question, answer and sources."""
    return ConversationSchema.from_object(conversations.get(id), turns=conversations.get_turns(id))


@router.patch("/conversation")
def change_conversation(body: ConversationChangeBody, conversations: Saved, id: Id) -> ConversationSchema:
    """Rename a saved conversation, or replace its turns."""
    turns = None if body.turns is None else [turn.model_dump() for turn in body.turns]
    return ConversationSchema.from_object(conversations.change(id, body.title, turns, datetime.now(UTC)))


@router.delete("/conversation")
def delete_conversation(conversations: Saved, id: Id) -> DeletionSchema:
    """Delete a saved conversation."""
    conversations.delete(id)
    return DeletionSchema(deleted=id)


@router.get("/conversation/markdown", responses={200: {"content": {"text/markdown": {}}}}, response_class=Response)
def export_conversation(conversations: Saved, id: Id) -> PlainTextResponse:
    """Return a saved conversation as Markdown, with the sources of each answer."""
    text = format_markdown(conversations.get(id), conversations.get_turns(id))
    return PlainTextResponse(text, media_type="text/markdown")
