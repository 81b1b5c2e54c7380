"""Conversations that people save with an index, in its key-value store: each belongs to the API key that saved it."""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from polyad.errors import NotFoundError
from polyad.protocols.store import ValueStore
from polyad.text.words import collapse_whitespace, separate_markup
from polyad_server.locks import hold_lock
from polyad_server.problems import RequestError

CONVERSATIONS = "server-conversations"
"""Namespace of saved conversations without their turns, by id."""

TURNS = "server-conversation-turns"
"""Namespace of the turns of saved conversations, by id of the conversation. A list of conversations reads no turns."""

MAX_CONVERSATIONS = 100
"""Maximum number of conversations of one key, so that readers cannot fill the disk."""

MAX_BYTES = 500_000
"""Maximum size of the turns of a conversation as JSON: some 200 answers of a page with their sources."""

Turns = list[dict[str, Any]]
"""Turns of a conversation, each with ``question``, ``answer`` and ``sources`` (:class:`SavedTurnBody`)."""

_LOCK = threading.Lock()
"""Lets one thread at a time wait for the lock of an index, which few connections of a database may do."""

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|])")


@dataclass(frozen=True, slots=True)
class Conversation:
    """A saved conversation without its turns.

    Attributes:
        id: Random id.
        title: Title that people gave to the conversation.
        owner: Id of the API key that saved the conversation; empty on a server without keys.
        questions: Number of questions.
        created, updated: Times in UTC.
        options: Options of its searches, such as ``where``.
    """

    id: str
    title: str
    owner: str
    questions: int
    created: str
    updated: str
    options: Mapping[str, str]


class Conversations:
    """The saved conversations of an index that one sender may use: those of its key, or all for an administrator.

    Args:
        store: The key-value store of the index.
        owner: Id of the sender's API key; empty without keys.
        is_admin: Whether the sender may also use the conversations of others.
    """

    def __init__(self, store: ValueStore, owner: str, *, is_admin: bool) -> None:
        self._store = store
        self._owner = owner
        self._is_admin = is_admin

    def list_all(self, *, of_everybody: bool = False) -> list[Conversation]:
        """Return the sender's conversations, the last changed first; those of all keys too if the sender may."""
        stored = map(_parse, self._store.get_values(CONVERSATIONS).values())
        listed = [each for each in stored if each and (each.owner == self._owner or (of_everybody and self._is_admin))]
        return sorted(listed, key=lambda each: (each.updated, each.id), reverse=True)

    def get(self, id: str) -> Conversation:
        """Return a conversation.

        Raises:
            NotFoundError: There is none with this id, or another key saved it.
        """
        stored = self._store.get_values(CONVERSATIONS, [id])
        conversation = _parse(stored[id]) if stored else None
        if conversation is None or not (conversation.owner == self._owner or self._is_admin):
            raise NotFoundError(f"there is no conversation {id!r} of this key; it may have been deleted")
        return conversation

    def get_turns(self, id: str) -> Turns:
        """Return the turns of a conversation; see :meth:`get`."""
        turns: Turns = json.loads(self._store.get_values(TURNS, [self.get(id).id]).get(id, b"[]"))
        return turns

    def add(self, title: str, turns: Turns, options: Mapping[str, str], now: datetime) -> Conversation:
        """Save a new conversation.

        Raises:
            RequestError: The key has too many conversations, or this one is too large.
        """
        time = now.isoformat(timespec="seconds")
        with self._hold_lock():
            if len(self.list_all()) >= MAX_CONVERSATIONS:
                message = f"this key has saved {MAX_CONVERSATIONS} conversations, which is the limit; delete one first"
                raise RequestError(409, "too_many_conversations", message)
            return self._put(Conversation(secrets.token_hex(8), title, self._owner, 0, time, time, options), turns)

    def change(self, id: str, title: str | None, turns: Turns | None, now: datetime) -> Conversation:
        """Rename a conversation, or replace its turns, or both; None leaves a value as it is.

        Raises:
            NotFoundError: See :meth:`get`.
            RequestError: The conversation is too large.
        """
        with self._hold_lock():
            stored = self.get(id)
            changed = replace(stored, title=title or stored.title, updated=now.isoformat(timespec="seconds"))
            return self._put(changed, turns)

    def _put(self, conversation: Conversation, turns: Turns | None) -> Conversation:
        if turns is not None:
            value = json.dumps(turns, ensure_ascii=False).encode()
            if len(value) > MAX_BYTES:
                message = f"the conversation has {len(value):,} bytes; expected at most {MAX_BYTES:,}: begin another"
                raise RequestError(413, "conversation_too_large", message)
            self._store.put_values(TURNS, {conversation.id: value})
            conversation = replace(conversation, questions=len(turns))
        self._store.put_values(CONVERSATIONS, {conversation.id: json.dumps(asdict(conversation)).encode()})
        return conversation

    def delete(self, id: str) -> None:
        """Delete a conversation; see :meth:`get`."""
        with self._hold_lock():
            self._store.put_values(CONVERSATIONS, {self.get(id).id: None})
            self._store.put_values(TURNS, {id: None})

    @contextmanager
    def _hold_lock(self) -> Iterator[None]:
        """Let one thread at a time, of all servers, change conversations."""
        with _LOCK, hold_lock(self._store, "conversations"):
            yield


def _parse(value: bytes) -> Conversation | None:
    """Return a stored conversation; None if its value is damaged, or of another version."""
    with suppress(ValueError, TypeError):
        return Conversation(**json.loads(value))
    return None


def format_markdown(conversation: Conversation, turns: Turns) -> str:
    """Return a conversation as Markdown: a heading for each question, the answer, and its numbered sources.

    Answers are Markdown already, in which links and tags are made inactive. In all other texts, characters with a
    meaning in Markdown are escaped.
    """
    parts = [f"# {_escape(conversation.title)}"]
    for turn in turns:
        parts += [f"## {_escape(turn['question'])}", separate_markup(turn["answer"]).strip()]
        parts.append("\n".join(_format_source(source) for source in turn["sources"]))
    return "\n\n".join(filter(None, parts)) + "\n"


def _format_source(source: Mapping[str, Any]) -> str:
    place = ", ".join(_escape(source[key]) for key in ("title", "place") if source[key])
    quote = f": “{_escape(source['text'])}”" if source["text"] else ""
    return f"- [{source['number']}] {place}{quote}"


def _escape(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", collapse_whitespace(text))
