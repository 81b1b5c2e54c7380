"""Facts end to end: the engine and the command line against a real HTTP server that does what it is told."""

from __future__ import annotations

import json
import re
import socket
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from typer.testing import CliRunner, Result

from polyad.cli import app
from polyad.config import LanguageModelSettings, SplitSettings
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.engine.settings import Settings
from polyad.errors import ConfigurationError, LanguageModelError, NoMoreRepliesError
from polyad.indexing.facts.builder import JOINED_SUBJECTS, TOO_FEW_ENTITIES, UNGROUNDED, UNSUPPORTED
from polyad.indexing.facts.settings import FactSettings
from polyad.indexing.run import IndexReport
from polyad.language_models.openai.language_model import OpenAILanguageModel
from polyad.language_models.scripted import Request, ScriptedLanguageModel, extract_passage
from polyad.model import Document, Entity, Incidence, Usage
from polyad.protocols.components import BudgetCheck, Prompt, Reply
from polyad.protocols.lookups import get_all, get_digests, get_document_passages, get_statistics
from polyad.protocols.store import ENTITY_VECTORS
from polyad.snapshot.provider import SnapshotProvider
from polyad.stores.sqlite import SqliteStore
from polyad.text.words import count_tokens
from tests.faults import (
    EmptyReplyFault,
    HangFault,
    MalformedJsonFault,
    RateLimitFault,
    RejectionFault,
    ServerErrorFault,
)
from tests.scripted_server import ChatOutcome, ScriptedServer

SPLIT = SplitSettings(passage_tokens=30, overlap_tokens=0)
REFUSAL = "I cannot help with that."
CONCURRENCY = 16


def founded(number: int) -> str:
    return f"Town {number} was founded by Person {number % 7} in the year {1500 + number}, near the river Isk."


def burned(number: int) -> str:
    return f"It burned down in {1700 + number}, when Person {number % 5} was mayor of Town {number}, and was rebuilt."


def town(number: int) -> Document:
    """Of one passage, or every third of two."""
    text = founded(number) if number % 3 else f"{founded(number)} {burned(number)}"
    return Document(f"d{number:03}", f"Town {number}", text)


TOWNS = [town(number) for number in range(90)]
PASSAGES = {
    f"{document.id}#{position:04}": text
    for number, document in enumerate(TOWNS)
    for position, text in enumerate([founded(number)] if number % 3 else [founded(number), burned(number)])
}
"""All 120, by id."""


def text_in(request: Request) -> str:
    """The passage that a request is about."""
    return extract_passage(str(request["messages"][-1]["content"]))


def extracted(text: str) -> str:
    """One fact, of the names in the text."""
    names = re.findall(r"[A-Z]\w+ \d+|Isk|\b\d{4}\b", text)
    facts = [{"text": f"They say: {text}", "score": 8, "entities": names}]
    return json.dumps({"facts": facts, "entities": [f"{name} | thing | told of {name} | 70" for name in names]})


def healthy(request: Request) -> ChatOutcome:
    return extracted(text_in(request))


def list_requested_texts(server: ScriptedServer) -> list[str]:
    return sorted(text_in(recorded.body) for recorded in server.requests)


def model_at(url: str, **settings: Any) -> OpenAILanguageModel:
    values = {"max_retries": 0, "concurrency": CONCURRENCY, "timeout": 10.0, "cache_name": "m", **settings}
    return OpenAILanguageModel(LanguageModelSettings(model="m", base_url=url, **values))


def run(
    directory: Path,
    server: ScriptedServer | str,
    documents: Iterable[Document] = TOWNS,
    *,
    max_cost: float = 0.0,
    max_tokens: int = 0,
    facts: FactSettings | None = None,
    **settings: Any,
) -> IndexReport:
    """Index with the model at a server or an address."""
    model = model_at(server if isinstance(server, str) else server.base_url, **settings)
    stages = Settings(split=SPLIT, facts=facts or FactSettings())
    with Engine.open(directory, embedder=HashingEmbedder(16), language_model=model, settings=stages) as engine:
        return engine.index_documents(documents, method="facts", max_cost=max_cost, max_tokens=max_tokens)


def search_text(store: SqliteStore, question: str, k: int) -> list[tuple[str, float]]:
    snapshot = SnapshotProvider(store, store.manifest.dimension).get_current()
    rows, scores = snapshot.search_terms(question, k)
    return list(zip(snapshot.ids("passage", rows), scores.tolist(), strict=True))


def contents(directory: Path) -> dict[str, object]:
    """All that is in an index but the replies, as values that compare; vectors bit for bit."""
    store = SqliteStore.open(directory)
    passages = get_document_passages(store, list(get_digests(store)))
    edges = [edge for item in passages for edge in item.hyperedges]
    entities = get_all(store, Entity)
    vectors = store.get_values(ENTITY_VECTORS)
    result: dict[str, object] = {
        "digests": get_digests(store),
        "documents": get_all(store, Document, list(get_digests(store))),
        "passages": [item.passage for item in passages],
        "passage vectors": [item.vector.tobytes() for item in passages],
        "hyperedges": [edge.hyperedge for edge in edges],
        "hyperedge vectors": [edge.vector.tobytes() for edge in edges],
        "incidences": [edge.incidences for edge in edges],
        "entities": entities,
        "entity vectors": vectors,
        "words": [search_text(store, text, 3) for text in ("Town 17", "Isk burned", "Person 3")],
        "tokens": get_statistics(store).tokens,
    }
    store.close()
    return result


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The contents of an index of all towns made in one go."""
    directory = tmp_path_factory.mktemp("fresh")
    with ScriptedServer(healthy) as server:
        report = run(directory, server)
    assert report.is_complete
    return contents(directory)


# Faults


class Faulty:
    """A script whose every 10th, 17th, 23rd and 31st reply is a fault; remembers which passages met one."""

    FAULTS = ((31, HangFault(60.0)), (23, EmptyReplyFault()), (17, MalformedJsonFault()), (10, RateLimitFault(0)))

    def __init__(self) -> None:
        self.met: set[str] = set()
        self._count = 0
        self._counting = threading.Lock()

    def __call__(self, request: Request) -> ChatOutcome:
        with self._counting:
            self._count += 1
            fault = next((fault for every, fault in self.FAULTS if self._count % every == 0), None)
            if fault is not None:
                self.met.add(text_in(request))
        return fault or healthy(request)


def test_faults_cost_the_facts_of_their_passages_and_the_next_run_makes_up_for_it(
    tmp_path: Path, fresh: dict[str, object]
) -> None:
    script = Faulty()
    with ScriptedServer(script) as server:
        report = run(tmp_path, server, timeout=2.0)
        assert len(server.requests) == len(PASSAGES)
    assert len(script.met) == 12 + 7 + 5 + 3
    assert {PASSAGES[failure.id] for failure in report.failures} == script.met
    assert len(report.failures) == len(script.met)
    assert all("its text is indexed, new facts are missing" in failure.reason for failure in report.failures)
    assert (report.counts.added, report.counts.passages, report.counts.stop_reason) == (90, 120, "")
    assert report.counts.hyperedges == 120 - len(script.met)
    assert report.usage.calls == report.counts.hyperedges + 5, "empty replies are paid for too"

    with Engine.open(tmp_path, embedder=HashingEmbedder(16)) as engine:
        for failure in report.failures:
            (best,) = engine.search(PASSAGES[failure.id], 1, retriever="bm25").passages
            assert best.passage.id == failure.id

    with ScriptedServer(healthy) as server:
        second = run(tmp_path, server)
        assert list_requested_texts(server) == sorted(script.met)
        third = run(tmp_path, server)
        assert len(server.requests) == len(script.met)
    assert second.is_complete
    assert second.counts.updated == len({failure.id.partition("#")[0] for failure in report.failures})
    assert third.counts.unchanged == 90
    assert contents(tmp_path) == fresh


def test_unreadable_replies_are_paid_for_not_recalled_and_asked_for_again(
    tmp_path: Path, fresh: dict[str, object]
) -> None:
    bad = {text for text in PASSAGES.values() if "Person 3 " in text}

    def evasive(request: Request) -> ChatOutcome:
        return REFUSAL if text_in(request) in bad else healthy(request)

    with ScriptedServer(evasive) as server:
        report = run(tmp_path, server, facts=FactSettings(attempts=3))
        times = Counter(list_requested_texts(server))
    assert {text: count for text, count in times.items() if count > 1} == dict.fromkeys(bad, 3)
    assert {PASSAGES[failure.id] for failure in report.failures} == bad
    assert all(REFUSAL in failure.reason for failure in report.failures)
    assert report.usage.calls == 120 + 2 * len(bad)

    with ScriptedServer(healthy) as server:
        assert run(tmp_path, server).is_complete
        assert list_requested_texts(server) == sorted(bad)
    assert contents(tmp_path) == fresh


# What no request would survive


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_wrong_key_stops_the_run_before_anything_is_indexed(tmp_path: Path) -> None:
    with ScriptedServer([RejectionFault(401, "no such key")]) as server:
        report = run(tmp_path, server)
        assert len(server.requests) <= CONCURRENCY
    assert "refused the API key (no such key)" in report.counts.stop_reason
    assert (report.counts.added, report.counts.unprocessed, report.failures) == (0, 90, ())
    assert not report.is_complete
    assert contents(tmp_path)["digests"] == {}


def test_a_key_that_expires_on_the_way_keeps_what_is_done(tmp_path: Path, fresh: dict[str, object]) -> None:
    served = threading.Semaphore(40)

    def expiring(request: Request) -> ChatOutcome:
        return healthy(request) if served.acquire(blocking=False) else RejectionFault(401)

    with ScriptedServer(expiring) as server:
        report = run(tmp_path, server)
        assert len(server.requests) <= 40 + CONCURRENCY
    counts = report.counts
    assert counts.stop_reason
    assert 20 < counts.added <= 40
    assert (counts.added + counts.unprocessed, counts.failures) == (90, ())
    remaining = contents(tmp_path)["hyperedges"]
    assert isinstance(remaining, list)
    assert len(remaining) == counts.passages == counts.hyperedges, "no passage is there without its facts"

    with ScriptedServer(healthy) as server:
        assert run(tmp_path, server).counts.added == counts.unprocessed
        assert len(server.requests) == 120 - 40, "also of documents that were left nothing is asked twice"
    assert contents(tmp_path) == fresh


def test_nobody_at_the_address_stops_the_run(tmp_path: Path) -> None:
    report = run(tmp_path, f"http://127.0.0.1:{closed_port()}/v1")
    assert "cannot be reached" in report.counts.stop_reason
    assert (report.counts.added, report.counts.unprocessed, report.failures) == (0, 90, ())


# Budgets


def tokens(usage: Usage) -> int:
    return usage.prompt_tokens + usage.completion_tokens


@pytest.mark.parametrize("concurrency", [1, CONCURRENCY])
@pytest.mark.parametrize(("limit", "least"), [(1_500, 750), (5_000, 2_500), (20_000, 14_000)])
def test_a_run_never_takes_more_tokens_than_it_may(tmp_path: Path, concurrency: int, limit: int, least: int) -> None:
    with ScriptedServer(healthy) as server:
        report = run(tmp_path, server, max_tokens=limit, concurrency=concurrency)
        calls = len(server.requests)
    assert 0 < calls == report.usage.calls < 120
    assert least < tokens(report.usage) <= limit
    counts = report.counts
    assert "--max-tokens" in counts.stop_reason
    assert (counts.added + counts.unprocessed, counts.failures) == (90, ())
    assert counts.unprocessed > 0


def test_a_run_never_costs_more_than_it_may_and_the_next_pays_for_the_rest(
    tmp_path: Path, fresh: dict[str, object]
) -> None:
    prices: dict[str, Any] = {"prompt_price": 100.0, "completion_price": 500.0}
    spent = Usage()
    with ScriptedServer(healthy) as server:
        for _ in range(3):
            report = run(tmp_path, server, max_cost=1.5, **prices)
            assert 0.75 < report.usage.cost <= 1.5
            assert report.counts.unprocessed > 0
            assert "$1.5 " in report.counts.stop_reason
            spent += report.usage
        assert len(server.requests) == spent.calls < 120
        rest = run(tmp_path, server, **prices)
        assert len(server.requests) == 120
        assert len(set(list_requested_texts(server))) == 120
    assert rest.is_complete
    assert rest.usage.calls == 120 - spent.calls
    store = SqliteStore.open(tmp_path)
    assert get_statistics(store).cost == pytest.approx(spent.cost + rest.usage.cost)
    store.close()
    assert contents(tmp_path) == fresh


def test_the_first_requests_together_do_not_exceed_the_budget_where_replies_are_long(tmp_path: Path) -> None:
    long = [Document(f"d{number}", "", " ".join(f"{word} {number}" for word in range(500))) for number in range(40)]

    def wordy(request: Request) -> ChatOutcome:
        return json.dumps({"facts": [{"text": text_in(request), "score": 9, "entities": []}], "entities": []})

    with (
        ScriptedServer(wordy) as server,
        Engine.open(tmp_path, embedder=HashingEmbedder(16), language_model=model_at(server.base_url)) as engine,
    ):
        report = engine.index_documents(long, method="facts", max_tokens=20_000)
    assert 10_000 < tokens(report.usage) <= 20_000


def test_a_budget_that_suffices_stops_nothing(tmp_path: Path) -> None:
    with ScriptedServer(healthy) as server:
        report = run(tmp_path, server, TOWNS[:5], max_tokens=100_000)
    assert report.is_complete
    assert (report.counts.unprocessed, report.counts.stop_reason) == (0, "")


def test_a_limit_in_money_needs_prices(tmp_path: Path) -> None:
    with ScriptedServer(healthy) as server:
        with pytest.raises(ConfigurationError, match=r"prompt_price and completion_price .* polyad\.toml"):
            run(tmp_path, server, max_cost=1.0)
        assert run(tmp_path, server, TOWNS[:1], max_cost=1.0, completion_price=1.0).is_complete
        assert len(server.requests) == 2


@pytest.mark.parametrize("limits", [{"max_tokens": -1}, {"max_cost": -0.5}, {"max_cost": float("nan")}])
def test_a_limit_below_zero_is_refused(tmp_path: Path, limits: dict[str, Any]) -> None:
    with ScriptedServer(healthy) as server:
        with pytest.raises(ConfigurationError, match="expected 0"):
            run(tmp_path, server, **limits, prompt_price=1.0)
        assert server.requests == []


@pytest.mark.parametrize("limits", [{"max_tokens": 1}, {"max_cost": 1.0}])
def test_a_limit_for_a_method_that_does_not_keep_it_is_refused(tmp_path: Path, limits: dict[str, Any]) -> None:
    with (
        Engine.open(tmp_path, embedder=HashingEmbedder(16)) as engine,
        pytest.raises(ConfigurationError, match="'facts' only, not 'semantic-units'"),
    ):
        engine.index_documents(TOWNS, **limits)


# Paying once


def test_each_passage_is_one_call_and_equal_ones_are_one_together(tmp_path: Path) -> None:
    twins = [Document(f"twin {number}", "Town 3", TOWNS[3].text) for number in range(4)]
    with ScriptedServer(healthy) as server:
        report = run(tmp_path, server, [*TOWNS[:6], *twins])
        assert list_requested_texts(server) == sorted(text for id, text in PASSAGES.items() if id < "d006")
        assert report.counts.added == 10
        more = run(tmp_path, server, [Document("later", "Town 3", TOWNS[3].text)])
        assert len(server.requests) == report.usage.calls == 8
    assert (more.usage, more.counts.added, more.counts.hyperedges) == (Usage(), 1, 2)


def test_an_unchanged_document_costs_nothing_and_a_change_costs_one_passage(tmp_path: Path) -> None:
    with ScriptedServer(healthy) as server:
        run(tmp_path, server)
        again = run(tmp_path, server)
        assert (again.counts.unchanged, again.usage, again.embedded_texts) == (90, Usage(), 0)
        assert len(server.requests) == 120
        changed = Document("d003", "Town 3", f"{founded(3)} {burned(3)}".replace("mayor", "bishop"))
        report = run(tmp_path, server, [changed, *TOWNS[4:]])
        (recorded,) = server.requests[120:]
    assert (report.counts.updated, report.counts.unchanged, report.usage.calls) == (1, 86, 1)
    assert text_in(recorded.body) == burned(3).replace("mayor", "bishop")


def test_another_style_is_another_question(tmp_path: Path) -> None:
    def in_records(request: Request) -> ChatOutcome:
        return f'("hyper-relation"<|>{text_in(request)}<|>9)##("entity"<|>Isk<|>river<|>a river<|>50)<|COMPLETE|>'

    with ScriptedServer(healthy) as server:
        run(tmp_path, server, TOWNS[:2])
    with ScriptedServer(in_records) as server:
        report = run(tmp_path, server, TOWNS[:2], facts=FactSettings(style="paper"))
        assert (report.counts.updated, len(server.requests)) == (2, 3)
    with ScriptedServer(healthy) as server:
        back = run(tmp_path, server, TOWNS[:2])
        assert (back.counts.updated, server.requests) == (2, []), "the first replies are still there"


def test_facts_of_one_model_stay_when_another_continues(tmp_path: Path) -> None:
    with ScriptedServer(healthy) as server:
        run(tmp_path, server, TOWNS[:3])
        other = OpenAILanguageModel(LanguageModelSettings(model="other", base_url=server.base_url))
        stages = Settings(split=SPLIT)
        with Engine.open(tmp_path, embedder=HashingEmbedder(16), language_model=other, settings=stages) as engine:
            counts = engine.index_documents(TOWNS[:4], method="facts").counts
    assert (counts.unchanged, counts.added) == (3, 1)


# Budget checks


def outcomes_of(url: str, check_budget: BudgetCheck, **settings: Any) -> list[Reply | LanguageModelError]:
    return model_at(url, **settings).complete(
        [Prompt(user=str(number)) for number in range(60)], check_budget=check_budget
    )


def test_the_gate_is_asked_before_every_try() -> None:
    passed: list[str] = []

    def unsteady(request: Request) -> ChatOutcome:
        return ServerErrorFault() if len(server.requests) % 3 == 0 else "fine"

    def check_budget(prompt: Prompt, spent: Usage) -> None:
        passed.append(prompt.user)

    with ScriptedServer(unsteady) as server:
        outcomes = outcomes_of(server.base_url, check_budget, max_retries=9, retry_delay=0)
        assert len(passed) == len(server.requests) > 60
    assert {type(outcome) for outcome in outcomes} == {Reply}


def test_the_gate_hears_what_was_spent_in_vain_and_can_end_it() -> None:
    def check_budget(prompt: Prompt, spent: Usage) -> None:
        if spent.calls == 3:
            raise NoMoreRepliesError("enough")

    with ScriptedServer([""]) as server:
        (outcome,) = model_at(server.base_url, max_retries=9, retry_delay=0).complete(
            [Prompt(user="a")], check_budget=check_budget
        )
        assert len(server.requests) == 3
    assert isinstance(outcome, NoMoreRepliesError)
    assert outcome.usage.calls == 3


def test_a_gate_that_closes_lets_what_is_under_way_end_and_nothing_else_begin() -> None:
    room = threading.Semaphore(20)

    def check_budget(prompt: Prompt, spent: Usage) -> None:
        if not room.acquire(blocking=False):
            raise NoMoreRepliesError("enough")

    with ScriptedServer(["fine"], delay=0.02) as server:
        outcomes = outcomes_of(server.base_url, check_budget)
        assert len(server.requests) == 20
    kinds = Counter(type(outcome) for outcome in outcomes)
    assert kinds == {Reply: 20, NoMoreRepliesError: 40}
    assert {str(outcome) for outcome in outcomes if isinstance(outcome, NoMoreRepliesError)} == {"enough"}


def test_a_gate_that_closed_is_not_asked_again() -> None:
    asked_at_gate: list[str] = []

    def check_budget(prompt: Prompt, spent: Usage) -> None:
        asked_at_gate.append(prompt.user)
        if len(asked_at_gate) == 5:
            raise NoMoreRepliesError("enough")

    with ScriptedServer(["fine"]) as server:
        outcomes = outcomes_of(server.base_url, check_budget, concurrency=1)
        assert len(server.requests) == 4
    assert len(asked_at_gate) == 5
    assert [type(outcome) for outcome in outcomes] == [Reply] * 4 + [NoMoreRepliesError] * 56


def test_after_a_wrong_key_the_gate_is_not_even_asked() -> None:
    passed: list[str] = []
    with ScriptedServer([RejectionFault(401)]) as server:
        outcomes = outcomes_of(server.base_url, lambda prompt, spent: passed.append(prompt.user))
        assert len(server.requests) == len(passed) <= CONCURRENCY
    assert {type(outcome) for outcome in outcomes} == {NoMoreRepliesError}


def test_a_failure_of_one_request_is_no_reason_to_stop() -> None:
    with ScriptedServer([RejectionFault(400, "too long"), "fine"]) as server:
        outcomes = outcomes_of(server.base_url, lambda prompt, spent: None)
    assert Counter(type(outcome) for outcome in outcomes) == {Reply: 59, LanguageModelError: 1}


# What is kept of entities

TRIO = [
    Document("bell", "Bell of Tarn", "The Bell of Tarn was cast by INES MOREAU in 1702."),
    Document("moreau", "Ines Moreau", "She was born in Aldby."),
    Document("aldby", "", "Aldby is a village on the Isk."),
]


def reply_of(text: str, *lines: str, score: int = 9) -> str:
    names = [line.partition(" |")[0] for line in lines]
    return json.dumps({"facts": [{"text": text, "score": score, "entities": names}], "entities": lines})


REPLIES = {
    "bell": reply_of("Ines Moreau cast it.", "Ines Moreau | maker | Cast it. | 60", "Thor | god | Hammers. | 5"),
    "moreau": reply_of(
        "Ines Moreau is of Aldby.", "Ines Moreau | person | Of Aldby. | 90", "Aldby | place | Hers. | 40"
    ),
    "aldby": reply_of("Aldby lies on the Isk.", "aldby | place | On a river. | 70", "Isk | river |  | 30"),
}


def trio_engine(directory: Path, facts: FactSettings | None = None) -> Engine:
    def reply_to(prompt: Prompt) -> str:
        return REPLIES[next(document.id for document in TRIO if document.text in prompt.user)]  # fails for questions

    stages = Settings(facts=facts or FactSettings())
    model = ScriptedLanguageModel(reply_to)
    return Engine.open(directory, embedder=HashingEmbedder(16), language_model=model, settings=stages)


def test_incidences_come_back_as_they_were_built(tmp_path: Path) -> None:
    with trio_engine(tmp_path) as engine:
        report = engine.index_documents(TRIO, method="facts")
        edge, incidences = engine.catalogue.hyperedge("bell#0000/000")
    assert incidences == [
        Incidence("bell of tarn", edge.id, "Bell of Tarn", "subject", score=60.0),
        Incidence("ines moreau", edge.id, "INES MOREAU", "", "maker", "Cast it.", 60.0),
        Incidence("thor", edge.id, "Thor", "", "god", "Hammers.", 5.0, grounded=False),
    ]
    assert report.notes == {"entities": 6, "facts": 3, JOINED_SUBJECTS: 1, UNGROUNDED: 1, UNSUPPORTED: 1}


def test_ungrounded_entities_can_be_left_out(tmp_path: Path) -> None:
    with trio_engine(tmp_path, FactSettings(drop_ungrounded=True)) as engine:
        report = engine.index_documents(TRIO, method="facts")
        _, incidences = engine.catalogue.hyperedge("bell#0000/000")
    assert [incidence.name for incidence in incidences] == ["Bell of Tarn", "INES MOREAU"]
    assert report.notes == {
        "entities": 5,
        "facts": 3,
        TOO_FEW_ENTITIES: 1,
        JOINED_SUBJECTS: 1,
        UNGROUNDED: 1,
        UNSUPPORTED: 1,
    }


def test_an_entity_is_aggregated_over_its_incidences(tmp_path: Path) -> None:
    with trio_engine(tmp_path) as engine:
        engine.index_documents(TRIO, method="facts")
        moreau, edges = engine.catalogue.entity("ines moreau")
        aldby, _ = engine.catalogue.entity("aldby")
        assert (moreau.name, moreau.type, moreau.score) == ("INES MOREAU", "maker", 90.0), "equal votes: the first"
        assert moreau.description == "Cast it.\nOf Aldby."
        assert edges == ["bell#0000/000", "moreau#0000/000"]
        assert (aldby.name, aldby.type, aldby.description, aldby.score) == (
            "Aldby",
            "place",
            "Hers.\nOn a river.",
            70.0,
        )

        engine.remove(["bell"])
        moreau, edges = engine.catalogue.entity("ines moreau")
        assert (moreau.name, moreau.type, moreau.description) == ("Ines Moreau", "person", "Of Aldby.")


def test_removing_a_document_restores_the_earlier_index(tmp_path: Path) -> None:
    for name, documents in (("before", TRIO[1:]), ("after", TRIO)):
        with trio_engine(tmp_path / name) as engine:
            engine.index_documents(documents, method="facts")
            if name == "after":
                engine.remove(["bell"])
        with Engine.open(tmp_path / name, embedder=HashingEmbedder(16)) as engine:
            engine.search("Aldby", retriever="hypergraphrag")  # brings the vectors of entities up to date
    assert contents(tmp_path / "after") == contents(tmp_path / "before")


@pytest.mark.parametrize("retriever", ["bm25", "default", "hypergraphrag", "hypersu", "dense"])
def test_an_index_of_facts_can_be_searched_without_a_model(tmp_path: Path, retriever: str) -> None:
    with trio_engine(tmp_path) as engine:
        engine.index_documents(TRIO, method="facts")
    with Engine.open(tmp_path, embedder=HashingEmbedder(16)) as engine:
        passages = engine.search("Who cast the Bell of Tarn?", 2, retriever=retriever).passages
    assert passages[0].passage.document_id == "bell"


def test_entities_are_embedded_when_a_run_ends_and_only_those_that_changed(tmp_path: Path) -> None:
    with trio_engine(tmp_path) as engine:
        first = engine.index_documents(TRIO[:2], method="facts")
        second = engine.index_documents(TRIO, method="facts")
    assert first.embedded_texts == 2 + 2 + 4, "passages, facts, and Bell, Moreau, Thor, Aldby"
    assert second.embedded_texts == 1 + 1 + 2, "Aldby again, and the Isk"


# The command line

Run = Callable[..., Result]


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs a command in an empty folder, beside a folder of twelve towns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    (tmp_path / "towns").mkdir()
    for document in TOWNS[:12]:
        (tmp_path / "towns" / f"{document.id}.md").write_text(f"# {document.title}\n\n{document.text}", "utf-8")

    def invoke(*arguments: str, server: ScriptedServer | str, **environment: str) -> Result:
        url = server if isinstance(server, str) else server.base_url
        values = {"OPENAI_BASE_URL": url, "POLYAD_LANGUAGE_MODEL_MAX_RETRIES": "0", **environment}
        fixed = ["--method", "facts", "--store", "kb", "--model", "m", "--embedder", "hashing:64"]
        return CliRunner().invoke(app, ["index", "towns", *fixed, *arguments], env=values)

    return invoke


def result_of(result: Result, code: int = 0) -> Any:
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def prompt_tokens(server: ScriptedServer) -> int:
    return sum(count_tokens(message["content"]) for each in server.requests for message in each.body["messages"])


def test_a_dry_run_says_what_the_run_then_takes_and_leaves_nothing_behind(cli: Run, tmp_path: Path) -> None:
    prices = {"POLYAD_LANGUAGE_MODEL_PROMPT_PRICE": "2", "POLYAD_LANGUAGE_MODEL_COMPLETION_PRICE": "10"}
    with ScriptedServer(healthy) as server:
        shape = result_of(cli("--dry-run", "--json", server=server, **prices))
        assert server.requests == []
        assert sorted(path.name for path in tmp_path.iterdir()) == ["temporary", "towns"]
        assert list((tmp_path / "temporary").iterdir()) == []
        done = result_of(cli("--json", server=server, **prices))
        assert done["usage"]["calls"] == len(server.requests) == 12
        sent = prompt_tokens(server)
        unchanged = result_of(cli("--dry-run", "--json", server=server, **prices))
        assert len(server.requests) == 12
    estimate = shape["estimate"]
    assert set(shape) == {"schema", "estimate"}
    assert list(estimate) == ["calls", "prompt_tokens", "completion_tokens", "cost"]
    assert estimate["calls"] == 12
    assert estimate["prompt_tokens"] == pytest.approx(sent, rel=0.02)
    assert estimate["completion_tokens"] > 0
    assert estimate["cost"] == pytest.approx((2 * estimate["prompt_tokens"] + 10 * estimate["completion_tokens"]) / 1e6)
    assert unchanged == {"schema": 1, "estimate": {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0, "cost": 0.0}}


def test_a_dry_run_does_not_count_what_is_paid_for_nor_what_is_twice_there(cli: Run, tmp_path: Path) -> None:
    with ScriptedServer(healthy) as server:
        result_of(cli("--json", "--max-tokens", "3000", server=server), code=1)
        cost = len(server.requests)
        assert 2 < cost < 12
        twin = (tmp_path / "towns" / "d007.md").read_text("utf-8")
        (tmp_path / "towns" / "twin.md").write_text(twin, "utf-8")
        estimate = result_of(cli("--dry-run", "--json", server=server))["estimate"]
        assert estimate["calls"] == 12 - cost
        done = result_of(cli("--json", server=server))
    assert done["usage"]["calls"] == estimate["calls"]


def test_a_dry_run_in_words(cli: Run) -> None:
    with ScriptedServer(healthy) as server:
        result = cli("--dry-run", server=server)
    assert result.exit_code == 0
    assert re.match(r"about 12 calls, [\d,]+ prompt and [\d,]+ completion tokens; prompts are counted", result.stdout)
    assert "prompt_price" in result.stdout
    assert result.stderr == ""


def test_a_dry_run_of_a_method_without_a_model_costs_nothing(cli: Run) -> None:
    with ScriptedServer(healthy) as server:
        result = cli("--dry-run", "--method", "semantic-units", server=server)
    assert result.exit_code == 0
    assert result.stdout == "indexing would not call a language model\n"


def test_indexing_facts_in_words(cli: Run) -> None:
    with ScriptedServer(healthy) as server:
        result = cli(server=server)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "12 added, 0 updated, 0 unchanged, 0 failed"
    assert re.match(r"12 passages and 12 hyperedges written in", lines[1])
    assert re.match(r"language model: 12 calls, [\d,]+ prompt and", lines[2])
    assert "  facts: 12" in lines


def test_a_passage_without_a_reply_is_named_and_the_exit_code_is_1(cli: Run) -> None:
    def evasive(request: Request) -> ChatOutcome:
        return REFUSAL if "Town 7 " in text_in(request) else healthy(request)

    with ScriptedServer(evasive) as server:
        shape = result_of(result := cli("--json", server=server), code=1)
        assert len(server.requests) == 13
    assert [failure["id"] for failure in shape["failures"]] == ["towns/d007.md#0000"]
    assert (shape["added"], shape["failed"], shape["stopped"], shape["left"]) == (12, 1, "", 0)
    (line,) = result.stderr.splitlines()
    assert line.startswith("polyad: failed: towns/d007.md#0000: ")


@pytest.mark.parametrize("is_json", [True, False])
def test_a_wrong_key_is_one_line_and_exit_code_1(cli: Run, is_json: bool) -> None:
    with ScriptedServer([RejectionFault(401, "no such key")]) as server:
        result = cli(*["--json"] * is_json, server=server)
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("polyad: stopped: model 'm' at http://127.0.0.1")
    assert line.endswith("; 12 documents left")
    if is_json:
        shape = json.loads(result.stdout)
        assert (shape["added"], shape["left"], shape["failures"]) == (0, 12, [])
        assert "no such key" in shape["stopped"]


def test_nobody_at_the_address_is_one_line_and_exit_code_1(cli: Run) -> None:
    result = cli(server=f"http://127.0.0.1:{closed_port()}/v1")
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert "cannot be reached" in line


def test_a_spent_budget_says_how_to_go_on(cli: Run) -> None:
    with ScriptedServer(healthy) as server:
        result = cli("--max-tokens", "3000", server=server)
        assert result.exit_code == 1
        assert "higher --max-tokens continues from there" in " ".join(result.stderr.split())
        assert cli(server=server).exit_code == 0
        assert len(server.requests) == 12


def errors(result: Result) -> Sequence[str]:
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    return [line.removeprefix("polyad: error: ") for line in result.stderr.splitlines()]


def test_a_limit_in_money_without_prices_is_an_error_of_configuration(cli: Run, tmp_path: Path) -> None:
    with ScriptedServer(healthy) as server:
        (line,) = errors(cli("--max-cost", "1", server=server))
        assert "prompt_price and completion_price" in line
        (tmp_path / "polyad.toml").write_text("[language_model]\nprompt_price = 1\ncompletion_price = 4.5\n", "utf-8")
        assert cli("--max-cost", "1", server=server).exit_code == 0
        assert len(server.requests) == 12


def test_a_limit_for_another_method_is_an_error_of_configuration(cli: Run) -> None:
    with ScriptedServer(healthy) as server:
        (line,) = errors(cli("--method", "semantic-units", "--max-tokens", "9", server=server))
        assert "limit the method 'facts' only" in line
        assert server.requests == []


def test_facts_without_a_model_are_an_error_of_configuration(cli: Run) -> None:
    result = CliRunner().invoke(
        app, ["index", "towns", "--method", "facts", "--store", "kb", "--embedder", "hashing:64"]
    )
    (line,) = errors(result)
    assert "the method 'facts' needs a language model" in line


def test_names_that_a_model_finds_are_paid_for_once(tmp_path: Path) -> None:
    model = ScriptedLanguageModel(lambda _: '{"entities": [{"name": "Tarn", "type": "town", "importance": 90}]}')
    document = Document("bell", "Bell", "The bell hangs in Tarn.")
    for edition in ("first", "second"):
        with Engine.open(
            tmp_path / "kb", embedder="hashing:64", mention_extractor="llm", language_model=model
        ) as engine:
            engine.index_documents([document])
            engine.remove(["bell"])
        assert len(model.prompts) == 1, edition


@pytest.mark.parametrize("style", ["compact", "paper"])
def test_the_output_language_is_asked_for_in_either_style(tmp_path: Path, style: Literal["compact", "paper"]) -> None:
    model = ScriptedLanguageModel(lambda _: '{"facts": []} <|COMPLETE|>')
    settings = Settings(facts=FactSettings(style=style, language="German"))
    with Engine.open(tmp_path / "kb", embedder="hashing:64", language_model=model, settings=settings) as engine:
        engine.index_documents(TOWNS[:1], method="facts")
    assert "in German" in model.prompts[0].system


HOSTILE = "\x1b]0;pwned\x07\u202e\u2066\x9b2J"
_DRIVES_A_TERMINAL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def hostile_facts(style: str) -> str:
    """As a model that means harm, or repeats a document that does, spells them: in JSON by escapes."""
    if style == "paper":
        fact = f'("hyper-relation"<|>Ada met Ben {HOSTILE}.<|>8)'
        entities = [f'("entity"<|>Ada {HOSTILE}x<|>per{HOSTILE}son<|>Met {HOSTILE} Ben.<|>80)']
        return "##".join([fact, *entities]) + "<|COMPLETE|>"
    member = f"Ada {HOSTILE}x"
    table = [f"{member} | per{HOSTILE}son | Met {HOSTILE} Ben. | 80"]
    return json.dumps({"facts": [{"text": f"Ada met Ben {HOSTILE}.", "entities": [member, "Ben"]}], "entities": table})


@pytest.mark.parametrize("style", ["compact", "paper"])
def test_nothing_that_a_model_says_of_facts_and_entities_drives_a_terminal(
    tmp_path: Path, style: Literal["compact", "paper"]
) -> None:
    document = Document("d", "Ada", "Ada met Ben at the Isk.")
    with ScriptedServer([hostile_facts(style)]) as server:
        report = run(tmp_path / "kb", server, [document], facts=FactSettings(style=style))
    assert report.counts.added == 1
    with Engine.open(tmp_path / "kb", create=False) as engine:
        edges, entities = engine.catalogue.hyperedges(), engine.catalogue.entities()
    assert [edge.text for edge in edges] == ["Ada met Ben ]0;pwned 2J."]
    assert "per ]0;pwned 2Json" in {entity.type for entity in entities}
    replies = [text for entity in entities for text in (entity.name, entity.type, entity.description, entity.key)]
    assert not any(_DRIVES_A_TERMINAL.search(text) for text in replies)
