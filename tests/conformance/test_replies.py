"""What every keeper of replies promises; see :class:`polyad.protocols.store.Replies`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from polyad.errors import StoreError
from polyad.model import Usage
from polyad.protocols.components import Reply
from polyad.protocols.store import Replies
from polyad.stores.sqlite import SqliteReplies

Opener = Callable[[], Replies]
"""Opens the replies of a test; each call is another handle on them."""

KEEPERS: dict[str, Callable[[Path], Replies]] = {"sqlite": SqliteReplies}
"""One line for each implementation of the protocol."""


@pytest.fixture(params=sorted(KEEPERS))
def open_replies(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    opened: list[Replies] = []

    def opener() -> Replies:
        opened.append(KEEPERS[request.param](tmp_path / "replies"))
        return opened[-1]

    yield opener
    for replies in opened:
        replies.close()


def cached(text: str, *, truncated: bool = False, thoughts: str = "") -> Reply:
    return Reply(text, Usage(), cached=True, truncated=truncated, thoughts=thoughts)


def test_a_kept_reply_is_free(open_replies: Opener) -> None:
    first, second = open_replies(), open_replies()
    assert first.known(["k1"]) == {}
    first.keep([("k1", Reply("text \x00 中", Usage(1, 10, 5, 0.25), truncated=True)), ("k2", Reply("two", Usage(1)))])
    second.keep([("k2", Reply("three", Usage(1)))])
    for replies in (first, second, open_replies()):
        assert replies.known(["k1", "nothing", "k2"]) == {
            "k1": cached("text \x00 中", truncated=True),
            "k2": cached("three"),
        }


def test_thoughts_are_kept_with_their_reply_and_go_with_it(open_replies: Opener) -> None:
    replies = open_replies()
    replies.keep([("a", Reply("one", Usage(1), thoughts="Hm. \x00 中")), ("b", Reply("two", Usage(1), thoughts="So."))])
    assert replies.known(["a", "b"]) == {"a": cached("one", thoughts="Hm. \x00 中"), "b": cached("two", thoughts="So.")}
    replies.keep([("a", Reply("three", Usage(1)))])
    replies.forget(["b"])
    replies.keep([("b", Reply("four", Usage(1)))])
    assert open_replies().known(["a", "b"]) == {"a": cached("three"), "b": cached("four")}


def test_a_forgotten_reply_is_not_known(open_replies: Opener) -> None:
    replies = open_replies()
    replies.keep([("a", Reply("garbage", Usage(1))), ("b", Reply("fine", Usage(1)))])
    replies.forget(["a", "unknown"])
    assert replies.known(["a", "b"]) == {"b": cached("fine")}


def test_a_batch_is_kept_whole_or_not_at_all(open_replies: Opener) -> None:
    def failing() -> Iterator[tuple[str, Reply]]:
        yield "a", Reply("one", Usage(1))
        raise KeyboardInterrupt

    replies = open_replies()
    with pytest.raises(KeyboardInterrupt):
        replies.keep(failing())
    assert replies.known(["a"]) == {}


def test_more_keys_than_fit_one_statement_are_found(open_replies: Opener) -> None:
    replies = open_replies()
    replies.keep((str(number), Reply(f"re {number}", Usage(1))) for number in range(1200))
    assert len(replies.known([str(number) for number in range(2000)])) == 1200


def test_closed_replies_say_so(open_replies: Opener) -> None:
    replies = open_replies()
    replies.close()
    with pytest.raises(StoreError, match="closed"):
        replies.known(["a"])
    replies.close()
