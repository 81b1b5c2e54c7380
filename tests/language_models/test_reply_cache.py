"""Replies are paid for once, and kept as soon as they come."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import MappingProxyType

import pytest

from polyad.config import LanguageModelSettings
from polyad.errors import LanguageModelError, NoMoreRepliesError
from polyad.language_models.openai.language_model import OpenAILanguageModel
from polyad.language_models.reply_cache import CachedLanguageModel, build_reply_key
from polyad.language_models.scripted import Request, ScriptedLanguageModel
from polyad.model import Usage
from polyad.protocols.components import BudgetCheck, LanguageModel, OnOutcome, Prompt, Reply
from polyad.protocols.store import REPLIES
from polyad.stores.sqlite import SqliteValueFile
from tests.faults import RejectionFault
from tests.scripted_server import ChatOutcome, ScriptedServer


@pytest.fixture
def replies(tmp_path: Path) -> Iterator[SqliteValueFile]:
    with closing(SqliteValueFile(tmp_path / "replies.sqlite")) as opened:
        yield opened


def no_account(usage: Usage) -> None:
    """For tests that are not about cost."""


def texts(outcomes: Sequence[Reply | LanguageModelError]) -> list[str]:
    return [outcome.text for outcome in outcomes if isinstance(outcome, Reply)]


def shout(prompt: Prompt) -> str:
    return prompt.user.upper()


def test_a_reply_is_asked_for_once_and_then_free(replies: SqliteValueFile) -> None:
    inner = ScriptedLanguageModel(shout)
    first = CachedLanguageModel(inner, replies, no_account).complete([Prompt(user="a")])[0]
    again = CachedLanguageModel(inner, replies, no_account).complete([Prompt(user="a")])[0]
    assert isinstance(first, Reply)
    assert (first.cached, first.usage.calls) == (False, 1)
    assert again == Reply("A", Usage(), cached=True)
    assert len(inner.prompts) == 1


def test_only_what_is_new_goes_out_and_the_order_stays(replies: SqliteValueFile) -> None:
    inner = ScriptedLanguageModel(shout)
    model = CachedLanguageModel(inner, replies, no_account)
    model.complete([Prompt(user="b")])
    outcomes = model.complete([Prompt(user=user) for user in "abcab"])
    assert texts(outcomes) == ["A", "B", "C", "A", "B"]
    assert [prompt.user for prompt in inner.prompts] == ["b", "a", "c"]
    assert sum(outcome.usage.calls for outcome in outcomes if isinstance(outcome, Reply)) == 2


def test_failures_are_not_kept(replies: SqliteValueFile) -> None:
    model = CachedLanguageModel(ScriptedLanguageModel([LanguageModelError("busy"), "fine"]), replies, no_account)
    failed = model.complete([Prompt(user="a"), Prompt(user="a")])
    assert [str(outcome) for outcome in failed] == ["busy", "busy"]
    assert texts(model.complete([Prompt(user="a")])) == ["fine"]


def test_a_cut_reply_stays_marked_as_cut(replies: SqliteValueFile) -> None:
    model = CachedLanguageModel(ScriptedLanguageModel([Reply("and", Usage(1), truncated=True)]), replies, no_account)
    outcomes = [model.complete([Prompt(user="a")])[0] for _ in range(2)]
    assert [outcome.truncated for outcome in outcomes if isinstance(outcome, Reply)] == [True, True]


def test_a_streamed_reply_is_kept_and_recalled_in_one_piece(replies: SqliteValueFile) -> None:
    model = CachedLanguageModel(ScriptedLanguageModel(["one two"]), replies, no_account)
    pieces: list[str] = []
    assert not model.stream(Prompt(user="a"), pieces.append).cached
    assert model.stream(Prompt(user="a"), pieces.append) == Reply("one two", Usage(), cached=True)
    assert pieces == ["one", " two", "one two"]
    assert texts(model.complete([Prompt(user="a")])) == ["one two"]


def test_on_outcome_hears_every_reply_once(replies: SqliteValueFile) -> None:
    model = CachedLanguageModel(ScriptedLanguageModel(shout), replies, no_account)
    model.complete([Prompt(user="b")])
    heard: list[tuple[int, str]] = []
    model.complete([Prompt(user=user) for user in "aba"], lambda place, reply: heard.append((place, texts([reply])[0])))
    assert sorted(heard) == [(0, "A"), (1, "B"), (2, "A")]


def test_replies_received_before_a_crash_are_stored(replies: SqliteValueFile) -> None:
    class Crashing:
        name = "scripted"

        def complete(
            self,
            prompts: Sequence[Prompt],
            on_outcome: OnOutcome | None = None,
            check_budget: BudgetCheck | None = None,
        ) -> list[Reply | LanguageModelError]:
            assert on_outcome is not None
            on_outcome(1, Reply("paid", Usage(1, 10, 10, 0.01)))
            raise KeyboardInterrupt

        def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
            return 0.0

        def stream(self, prompt: Prompt, on_text: Callable[[str], None]) -> Reply:
            raise NotImplementedError

    prompts = [Prompt(user="a"), Prompt(user="b")]
    account: list[Usage] = []
    with pytest.raises(KeyboardInterrupt):
        CachedLanguageModel(Crashing(), replies, account.append).complete(prompts)
    assert texts(CachedLanguageModel(ScriptedLanguageModel(["new"]), replies, no_account).complete(prompts)) == [
        "new",
        "paid",
    ]
    assert account == [Usage(1, 10, 10, 0.01)]


def test_concurrent_replies_reach_the_store_in_the_calling_thread(
    replies: SqliteValueFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    writers: list[threading.Thread] = []
    put_values = SqliteValueFile.put_values

    def spied(self: SqliteValueFile, namespace: str, values: Mapping[str, bytes | None]) -> None:
        writers.append(threading.current_thread())
        put_values(self, namespace, values)

    monkeypatch.setattr(SqliteValueFile, "put_values", spied)

    def reply(request: Request) -> ChatOutcome:
        user = request["messages"][-1]["content"]
        return RejectionFault(400) if user == "7" else f"re {user}"

    with ScriptedServer(reply, delay=0.01) as server:
        inner = OpenAILanguageModel(LanguageModelSettings(model="m", base_url=server.base_url))
        model: LanguageModel = CachedLanguageModel(inner, replies, no_account)
        prompts = [Prompt(user=str(number % 20)) for number in range(40)]
        outcomes = model.complete(prompts)
        assert len(server.requests) == 20
        assert texts(outcomes) == [f"re {number % 20}" for number in range(40) if number % 20 != 7]
        model.complete(prompts)
        assert len(server.requests) == 21, "only the failure is tried again"
    assert writers == [threading.current_thread()] * 19


def test_the_cost_of_failed_requests_is_recorded(replies: SqliteValueFile) -> None:
    spent = Usage(3, 30, 60, 0.03)
    inner = ScriptedLanguageModel([LanguageModelError("only thoughts", spent), "fine"])
    account: list[Usage] = []
    model = CachedLanguageModel(inner, replies, account.append)
    heard: list[Usage] = []
    model.complete([Prompt(user="a"), Prompt(user="a")], lambda place, outcome: heard.append(outcome.usage))
    assert heard == [spent, Usage()], "the same prompt twice is paid for once"
    assert model.usage == spent
    assert account == [spent]
    assert texts(model.complete([Prompt(user="a")])) == ["fine"]


def test_the_key_depends_on_everything_that_decides_the_reply() -> None:
    prompts = [
        Prompt(user="a"),
        Prompt(user="b"),
        Prompt(user="a", system="b"),
        Prompt(user="a", max_tokens=1),
        Prompt(user="a", temperature=0.5),
        Prompt(user="a", json_schema={}),
        Prompt(user="a", json_schema={"type": "object"}),
        Prompt(user="\ud800"),
    ]
    keys = {build_reply_key(model, prompt) for model in ("m", "n") for prompt in prompts}
    assert len(keys) == 2 * len(prompts)
    assert build_reply_key(
        "m", Prompt(user="a", json_schema=MappingProxyType({"a": MappingProxyType({})}))
    ) == build_reply_key("m", Prompt(user="a", json_schema={"a": {}}))


def test_a_refused_reply_is_paid_for_and_asked_again(replies: SqliteValueFile) -> None:
    def refuse(position: int, reply: Reply | LanguageModelError) -> None:
        raise LanguageModelError("unreadable")

    inner = ScriptedLanguageModel([Reply("garbage", Usage(1, 10, 10, 0.01)), Reply("fine", Usage(1, 10, 10, 0.01))])
    account: list[Usage] = []
    model = CachedLanguageModel(inner, replies, account.append)
    refused = model.complete([Prompt(user="a"), Prompt(user="a")], refuse)
    assert [str(outcome) for outcome in refused] == ["unreadable", "unreadable"]
    assert texts(model.complete([Prompt(user="a")])) == ["fine"]
    assert account == [Usage(1, 10, 10, 0.01)] * 2


def test_a_recalled_reply_can_be_refused_too(replies: SqliteValueFile) -> None:
    model = CachedLanguageModel(ScriptedLanguageModel(["first", "second"]), replies, no_account)
    model.complete([Prompt(user="a")])

    def refuse_first(position: int, reply: Reply | LanguageModelError) -> None:
        if texts([reply]) == ["first"]:
            raise LanguageModelError("no longer readable")

    assert texts(model.complete([Prompt(user="a")], refuse_first)) == ["second"]


def test_a_closed_gate_lets_nothing_more_be_asked(replies: SqliteValueFile) -> None:
    def check_budget(prompt: Prompt, spent: Usage) -> None:
        if prompt.user != "a":
            raise NoMoreRepliesError("enough")

    inner = ScriptedLanguageModel(shout)
    outcomes = CachedLanguageModel(inner, replies, no_account).complete(
        [Prompt(user=user) for user in "abc"], check_budget=check_budget
    )
    assert texts(outcomes) == ["A"]
    assert [type(outcome) for outcome in outcomes[1:]] == [NoMoreRepliesError] * 2
    assert len(inner.prompts) == 1


def served(server: ScriptedServer, replies: SqliteValueFile, cache_name: str = "") -> CachedLanguageModel:
    settings = LanguageModelSettings(model="m", base_url=server.base_url, cache_name=cache_name)
    return CachedLanguageModel(OpenAILanguageModel(settings), replies, no_account)


def test_a_model_of_the_same_name_at_another_endpoint_is_asked_itself(replies: SqliteValueFile) -> None:
    with ScriptedServer(["here"]) as here, ScriptedServer(["there"]) as there:
        assert texts(served(here, replies).complete([Prompt(user="a")])) == ["here"]
        assert served(there, replies).find_replies([Prompt(user="a")]) == [None]
        assert texts(served(there, replies).complete([Prompt(user="a")])) == ["there"]
        assert served(there, replies).stream(Prompt(user="a"), lambda piece: None).text == "there"
        assert texts(served(here, replies).complete([Prompt(user="a")])) == ["here"]
        assert len(here.requests) == 1


def test_a_key_in_the_address_may_change_without_paying_again(replies: SqliteValueFile) -> None:
    with ScriptedServer(["here"]) as server:
        for query in ("?api-key=old", "?api-key=new"):
            settings = LanguageModelSettings(model="m", base_url=server.base_url + query)
            model = CachedLanguageModel(OpenAILanguageModel(settings), replies, no_account)
            assert texts(model.complete([Prompt(user="a")])) == ["here"]
        assert len(server.requests) == 1


def test_endpoints_of_one_cache_name_share_their_replies(replies: SqliteValueFile) -> None:
    with ScriptedServer(["here"]) as here, ScriptedServer(["there"]) as there:
        assert texts(served(here, replies, "mine").complete([Prompt(user="a")])) == ["here"]
        assert texts(served(there, replies, "mine").complete([Prompt(user="a")])) == ["here"]


def test_replies_kept_by_the_name_alone_are_found_where_that_is_set_and_only_there(replies: SqliteValueFile) -> None:
    replies.put_values(REPLIES, {build_reply_key("m", Prompt(user="a")): b'{"text": "earlier", "truncated": false}'})
    with ScriptedServer(["new"]) as server:
        assert texts(served(server, replies, "m").complete([Prompt(user="a")])) == ["earlier"]
        assert texts(served(server, replies).complete([Prompt(user="a")])) == ["new"]
