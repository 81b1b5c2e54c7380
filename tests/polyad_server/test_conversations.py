"""Conversations that are saved with an index: whose they are, their limits, and what copies of an index keep."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from polyad import Engine
from polyad.engine.migration import migrate_index
from polyad_server import conversations
from polyad_server.app import create_app
from polyad_server.conversations import Conversation, Conversations
from polyad_server.keys import add_key
from polyad_server.workspaces import Workspaces
from tests.polyad_server.serving import RunningServer, build_index, open_index, run_app

SOURCE = {
    "number": 1,
    "passage_id": "bell.md#0000",
    "title": "Bell *of* Tarn",
    "place": "p. 3",
    "text": "Cast <1921>.",
}
TURN = {"question": "Who cast\nthe bell?", "answer": "**Ines** cast it [1].", "sources": [SOURCE]}
BODY = {"title": "The bell", "turns": [TURN], "options": {"where": "year = 1921"}}
SAVED, ONE = "/api/v1/conversations", "/api/v1/conversation"


def save(server: RunningServer, body: dict[str, Any] = BODY, **arguments: Any) -> str:
    response = server.client.post(SAVED, json=body, **arguments)
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


def test_a_conversation_is_saved_opened_renamed_continued_and_deleted(server: RunningServer) -> None:
    id = save(server)
    opened = server.client.get(ONE, params={"id": id}).json()
    assert (opened["title"], opened["questions"], opened["options"]["where"]) == ("The bell", 1, "year = 1921")
    assert opened["turns"] == [{**TURN, "sources": [{**SOURCE, "start": 0, "end": 0}]}]
    assert server.client.patch(ONE, params={"id": id}, json={"title": " Bells "}).json()["title"] == "Bells"
    changed = server.client.patch(ONE, params={"id": id}, json={"turns": [TURN, {"question": "And when?"}]}).json()
    assert (changed["title"], changed["questions"]) == ("Bells", 2)
    listed = server.client.get(SAVED).json()
    assert listed["total"] == 1
    assert {"schema": 1, **listed["conversations"][0]} == changed
    assert "turns" not in changed
    assert server.client.delete(ONE, params={"id": id}).status_code == 200
    assert server.client.get(ONE, params={"id": id}).status_code == 404
    assert server.client.get(SAVED).json()["total"] == 0


def test_the_export_has_answers_and_sources_as_markdown(server: RunningServer) -> None:
    id = save(server)
    response = server.client.get(f"{ONE}/markdown", params={"id": id})
    assert response.headers["content-type"].startswith("text/markdown")
    assert response.text == (
        "# The bell\n\n## Who cast the bell?\n\n**Ines** cast it [1].\n\n"
        "- [1] Bell \\*of\\* Tarn, p. 3: “Cast \\<1921\\>.”\n"
    )


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[tuple[RunningServer, dict[str, dict[str, str]]]]:
    """A server with keys, and the headers of two readers, a writer and an administrator."""
    index = build_index(tmp_path / "kb")
    scopes = {"ann": "read", "bo": "read", "writer": "write", "admin": "admin"}
    with Engine.open(index) as engine:
        keys = {name: add_key(engine.values, name, scope, datetime.now(UTC)) for name, scope in scopes.items()}
    with run_app(create_app(Workspaces(open_index(), [index]))) as running:
        yield running, {name: {"Authorization": f"Bearer {key}"} for name, key in keys.items()}


@pytest.mark.parametrize("other", ["bo", "writer"])
def test_nobody_reads_changes_or_deletes_the_conversation_of_another_key(
    keyed: tuple[RunningServer, dict[str, dict[str, str]]], other: str
) -> None:
    server, headers = keyed
    id = save(server, headers=headers["ann"])
    sender: dict[str, Any] = {"headers": headers[other], "params": {"id": id}}
    responses = [
        server.client.get(ONE, **sender),
        server.client.get(f"{ONE}/markdown", **sender),
        server.client.patch(ONE, json={"title": "taken"}, **sender),
        server.client.patch(ONE, json={"turns": [TURN, TURN]}, **sender),
        server.client.delete(ONE, **sender),
    ]
    assert [response.status_code for response in responses] == [404] * 5
    for parameters in ({}, {"everybody": True}):
        assert server.client.get(SAVED, headers=headers[other], params=parameters).json()["total"] == 0
    conversation = server.client.get(ONE, params={"id": id}, headers=headers["ann"]).json()
    assert (conversation["title"], conversation["questions"]) == ("The bell", 1)


def test_an_administrator_manages_the_conversations_of_all_keys_on_request(
    keyed: tuple[RunningServer, dict[str, dict[str, str]]],
) -> None:
    server, headers = keyed
    id = save(server, headers=headers["ann"])
    assert server.client.get(SAVED, headers=headers["admin"]).json()["total"] == 0
    assert server.client.get(SAVED, headers=headers["admin"], params={"everybody": True}).json()["total"] == 1
    assert server.client.delete(ONE, headers=headers["admin"], params={"id": id}).status_code == 200
    assert server.client.get(SAVED, headers=headers["ann"]).json()["total"] == 0


def test_number_and_size_are_limited(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversations, "MAX_CONVERSATIONS", 2)
    monkeypatch.setattr(conversations, "MAX_BYTES", 1000)
    id = save(server)
    large = [{"question": "Who?", "answer": "x" * 1000}]
    for response in (
        server.client.post(SAVED, json={**BODY, "turns": large}),
        server.client.patch(ONE, params={"id": id}, json={"turns": large}),
    ):
        assert (response.status_code, response.json()["kind"]) == (413, "conversation_too_large")
    assert server.client.get(ONE, params={"id": id}).json()["questions"] == 1
    save(server)
    response = server.client.post(SAVED, json=BODY)
    assert (response.status_code, response.json()["kind"]) == (409, "too_many_conversations")


def test_the_limit_holds_for_conversations_that_are_saved_at_once(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversations, "MAX_CONVERSATIONS", 3)
    with ThreadPoolExecutor(12) as threads:
        statuses = [
            reply.status_code for reply in threads.map(lambda _: server.client.post(SAVED, json=BODY), range(12))
        ]
    assert sorted(statuses) == [201] * 3 + [409] * 9
    assert server.client.get(SAVED).json()["total"] == 3


def test_a_conversation_that_is_changed_while_it_is_deleted_stays_deleted(
    server: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = save(server)
    is_read, get = threading.Event(), Conversations.get

    def read_slowly(self: Conversations, id: str) -> Conversation:
        conversation = get(self, id)
        if not is_read.is_set():
            is_read.set()
            time.sleep(0.3)  # in which the other request deletes it, unless it has to wait
        return conversation

    monkeypatch.setattr(Conversations, "get", read_slowly)
    with ThreadPoolExecutor() as threads:
        change = threads.submit(server.client.patch, ONE, params={"id": id}, json={"title": "Bells"})
        assert is_read.wait(10)
        assert server.client.delete(ONE, params={"id": id}).status_code == 200
        assert change.result().status_code == 200
    assert server.client.get(SAVED).json()["total"] == 0


def test_markup_of_a_saved_answer_is_inactive_in_the_export(server: RunningServer) -> None:
    turn = {**TURN, "answer": "![a](http://x/?q=1) <img src=http://x> [b](javascript:x)"}
    id = save(server, {**BODY, "turns": [turn]})
    text = server.client.get(f"{ONE}/markdown", params={"id": id}).text
    assert "![a] (http://x/?q=1) < img src=http://x> [b] (javascript:x)" in text


@pytest.mark.parametrize(
    "change",
    [{"title": " "}, {"title": "x" * 201}, {"turns": []}, {"turns": [{"answer": "no question"}]}, {"owner": "admin"}],
)
def test_what_is_no_conversation_is_refused(server: RunningServer, change: dict[str, Any]) -> None:
    assert server.client.post(SAVED, json={**BODY, **change}).status_code == 422
    id = save(server)
    assert server.client.patch(ONE, params={"id": id}, json=change).status_code == 422


def test_conversations_are_checked_and_move_with_the_index(server: RunningServer, tmp_path: Path) -> None:
    id = save(server)
    with Engine.open(tmp_path / "kb") as engine:
        assert engine.check().damage == ()
        engine.back_up(tmp_path / "copy" / "index.sqlite")
    migrate_index(tmp_path / "kb", tmp_path / "moved")
    for place in ("copy", "moved"):
        with Engine.open(tmp_path / place, create=False) as engine:
            assert conversations.Conversations(engine.values, "", is_admin=False).get_turns(id)[0]["answer"]


@pytest.mark.parametrize("value", [b"{", b"\xff", b"[]", b'{"id": "new"}'])
def test_a_damaged_conversation_hides_no_other(server: RunningServer, tmp_path: Path, value: bytes) -> None:
    id = save(server)
    with Engine.open(tmp_path / "kb") as engine:
        engine.values.put_values(conversations.CONVERSATIONS, {"damaged": value})
    assert [each["id"] for each in server.client.get(SAVED).json()["conversations"]] == [id]
    assert server.client.get(ONE, params={"id": "damaged"}).status_code == 404
    save(server)
