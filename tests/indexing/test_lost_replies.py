"""Replies that are cut, untidy or without scores: over HTTP, through the engine and the command line."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from polyad.cli import app
from polyad.config import LanguageModelSettings
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.engine.settings import Settings
from polyad.indexing.facts.builder import UNSUPPORTED
from polyad.indexing.facts.settings import FactSettings
from polyad.indexing.run import IndexReport
from polyad.language_models.openai.language_model import OpenAILanguageModel
from polyad.language_models.scripted import Request, ScriptedReply, extract_passage
from polyad.model import Document, Entity, IndexedPassage
from polyad.protocols.lookups import get_all, get_digests, get_document_passages
from polyad.stores.sqlite import SqliteStore
from tests.scripted_server import ChatOutcome, ScriptedServer

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from flawed_replies import FlawedReplies

STYLES = ["compact", "paper"]
NAMES = ("Aldby", "Corven", "Isk", "Tarn", "Moreau", "Zell", "Orrin", "Pell", "Quay", "Ravel", "Sund", "Toft", "Ulm")


def place(number: int) -> str:
    return f"{NAMES[number % len(NAMES)]} {number}"


def sentences(number: int) -> list[str]:
    return [f"{place(number)} lies {n} miles from {place(number + n)}." for n in range(1, 14)]


def documents(count: int) -> list[Document]:
    return [Document(f"d{number:02}", place(number), " ".join(sentences(number))) for number in range(count)]


def reply_about(text: str, style: str) -> str:
    """Thirteen facts, one a sentence, with the two places in it."""
    facts = []
    for sentence in (f"{part}." for part in text.removesuffix(".").split(". ")):
        words = sentence.removesuffix(".").split(" ")
        facts.append((sentence, [" ".join(words[:2]), " ".join(words[-2:])]))
    if style == "paper":
        records = []
        for sentence, names in facts:
            records.append(f'("hyper-relation"<|>{sentence}<|>{7 + len(sentence) % 3})')
            records += [f'("entity"<|>{name}<|>place<|>A place called {name}.<|>{len(name) * 7})' for name in names]
        return "##\n".join([*records, "<|COMPLETE|>"])
    listed = [{"text": text, "score": 7 + len(text) % 3, "entities": names} for text, names in facts]
    table = dict.fromkeys(name for _, names in facts for name in names)
    lines = [f"{name} | place | A place called {name}. | {len(name) * 7}" for name in table]
    return json.dumps({"facts": listed, "entities": lines})


def whole(style: str) -> Callable[[Request], ChatOutcome]:
    return lambda request: reply_about(asked_about(request), style)


def asked_about(request: Request) -> str:
    return extract_passage(str(request["messages"][-1]["content"]))


def cut_at(share: float, style: str) -> Callable[[Request], ChatOutcome]:
    """Replies that end at a share of their length, as at a limit of tokens."""

    def reply(request: Request) -> ChatOutcome:
        text = reply_about(asked_about(request), style)
        return ScriptedReply(text=text[: int(share * len(text))], finish_reason="length")

    return reply


def engine_at(directory: Path, server: ScriptedServer, style: str) -> Engine:
    settings = LanguageModelSettings(model="m", base_url=server.base_url, max_retries=0, cache_name="m")
    stages = Settings(facts=FactSettings(style=style))  # type: ignore[arg-type]
    model = OpenAILanguageModel(settings)
    return Engine.open(directory, embedder=HashingEmbedder(16), language_model=model, settings=stages)


def index(
    directory: Path,
    replies: Callable[[Request], ChatOutcome],
    style: str,
    count: int = 2,
    results: Sequence[Document] = (),
) -> tuple[IndexReport, int]:
    """The report of a run, and how many requests it made."""
    with ScriptedServer(replies) as server, engine_at(directory, server, style) as engine:
        return engine.index_documents(results or documents(count), method="facts"), len(server.requests)


def contents(directory: Path) -> list[object]:
    """All that is in an index, as values that compare."""
    store = SqliteStore.open(directory)
    passages = get_document_passages(store, list(get_digests(store)))
    results: list[object] = [get_digests(store), get_all(store, Entity)]
    results += [(item.passage, item.digest, item.vector.tobytes()) for item in passages]
    results += [
        (edge.hyperedge, edge.incidences, edge.vector.tobytes()) for item in passages for edge in item.hyperedges
    ]
    store.close()
    return results


@pytest.mark.parametrize("share", [0.35, 0.7, 0.95])
@pytest.mark.parametrize("style", STYLES)
def test_a_reply_cut_at_its_limit_is_kept_named_and_asked_on_by_the_next_run(
    tmp_path: Path, style: str, share: float
) -> None:
    index(tmp_path / "sound", whole(style), style)
    report, requests = index(tmp_path / "kb", cut_at(share, style), style)
    assert requests == 2
    assert [failure.id for failure in report.failures] == ["d00#0000", "d01#0000"]
    assert all("cut at the model's limit" in failure.reason for failure in report.failures)
    assert 2 <= report.counts.hyperedges <= 26
    report, requests = index(tmp_path / "kb", whole(style), style)
    assert (requests, report.failures, report.counts.updated) == (2, (), 2)
    assert contents(tmp_path / "kb") == contents(tmp_path / "sound")
    report, requests = index(tmp_path / "kb", whole(style), style)
    assert (requests, report.counts.unchanged) == (0, 2)


def test_the_command_line_names_what_was_cut_and_ends_with_1_until_it_is_whole(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(documents(1)[0].text, encoding="utf-8")
    command = ["index", str(tmp_path / "a.txt"), "--method", "facts", "--store", str(tmp_path / "kb"), "--model", "m"]
    command += ["--embedder", "hashing:16"]
    replies = [cut_at(0.5, "compact"), whole("compact")]
    questions: Counter[str] = Counter()

    def reply(request: Request) -> ChatOutcome:
        questions["times"] += 1
        return replies[min(questions["times"], 2) - 1](request)

    with ScriptedServer(reply) as server:
        environment = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "k"}
        first = CliRunner().invoke(app, command, env=environment)
        assert first.exit_code == 1, first.output
        assert "cut at the model's limit" in first.output
        second = CliRunner().invoke(app, command, env=environment)
    assert second.exit_code == 0, second.output
    with Engine.open(tmp_path / "kb", create=False) as engine:
        assert engine.catalogue.statistics().hyperedges == 13


@pytest.mark.parametrize("kind", ["hyperedge", "knowledge_segment", "relationship"])
def test_records_of_another_kind_are_facts_in_the_index(tmp_path: Path, kind: str) -> None:
    index(tmp_path / "sound", whole("paper"), "paper")
    other = index(
        tmp_path / "kb",
        lambda request: reply_about(asked_about(request), "paper").replace("hyper-relation", kind),
        "paper",
    )[0]
    assert other.is_complete
    assert contents(tmp_path / "kb") == contents(tmp_path / "sound")


def test_records_without_a_fact_leave_the_passage_named_and_to_be_asked_about(tmp_path: Path) -> None:
    def without_facts(request: Request) -> str:
        return reply_about(asked_about(request), "paper").replace("hyper-relation", "assertion")

    report, requests = index(tmp_path / "kb", without_facts, "paper", 1)
    assert (len(report.failures), requests) == (1, 2)
    report, requests = index(tmp_path / "kb", whole("paper"), "paper", 1)
    assert (report.failures, requests, report.counts.hyperedges) == ((), 1, 13)


def test_the_second_attempt_says_what_was_wrong_with_the_first(tmp_path: Path) -> None:
    with (
        ScriptedServer(["I cannot help with that."]) as server,
        engine_at(tmp_path / "kb", server, "compact") as engine,
    ):
        engine.index_documents(documents(1), method="facts")
        first, second = (recorded.body["messages"][-1]["content"] for recorded in server.requests)
    assert second.startswith(first)
    assert "I cannot help with that." in second
    assert '"facts"' in second


def test_a_score_that_is_missing_does_not_spread_as_the_best(tmp_path: Path) -> None:
    def without_scores(request: Request) -> str:
        reply = json.loads(reply_about(asked_about(request), "compact"))
        for fact in reply["facts"]:
            del fact["score"]
        return json.dumps({**reply, "entities": [line.rpartition(" | ")[0] for line in reply["entities"]]})

    report, _ = index(tmp_path / "kb", without_scores, "compact")
    assert report.notes["score missing"] > 0
    with Engine.open(tmp_path / "kb", create=False, embedder=HashingEmbedder(16)) as engine:
        assert {edge.score for edge in engine.catalogue.hyperedges()} == {5.0}
        assert {entity.score for entity in engine.catalogue.entities()} == {50.0}


@pytest.mark.parametrize("opening", ["<reasoning>", "<think>", ""])
def test_thoughts_that_draft_facts_are_no_facts(tmp_path: Path, opening: str) -> None:
    closing = opening.replace("<", "</") or "</think>"

    def thoughtful(request: Request) -> str:
        draft = '("hyper-relation"<|>A draft of a fact.<|>3)##("entity"<|>Draft<|>x<|>y<|>9)'
        return f"{opening}{draft}{closing}{reply_about(asked_about(request), 'paper')}"

    index(tmp_path / "sound", whole("paper"), "paper")
    index(tmp_path / "kb", thoughtful, "paper")
    assert contents(tmp_path / "kb") == contents(tmp_path / "sound")


def test_a_fact_says_how_much_of_it_stands_in_its_passage(tmp_path: Path) -> None:
    def inventive(request: Request) -> str:
        facts = [
            {"text": text, "score": 8, "entities": ["Aldby 0"]} for text in (sentences(0)[0], "Rembrandt painted.")
        ]
        return json.dumps({"facts": facts, "entities": []})

    report, _ = index(tmp_path / "kb", inventive, "compact", 1)
    assert report.notes[UNSUPPORTED] == 1
    command = ["show", "hyperedge", "--json", "--store", str(tmp_path / "kb")]
    outputs = [json.loads(CliRunner().invoke(app, [*command, f"d00#0000/00{n}"]).stdout) for n in (0, 1)]
    assert [edge["grounded"] for edge in outputs] == [1.0, 0.0]


PASSAGES = 1890


@pytest.mark.slow
@pytest.mark.parametrize("style", STYLES)
def test_after_two_runs_with_faults_the_index_is_as_without(tmp_path: Path, style: str) -> None:
    """Every 20th reply is cut, every 30th has another kind of record, every 40th no scores.

    Scores that were never said are in the middle of the scale. All else is equal.
    """
    corpus = [Document(f"d{number:04}", place(number), " ".join(sentences(number)[:4])) for number in range(PASSAGES)]
    index(tmp_path / "sound", whole(style), style, results=corpus)
    untidy = FlawedReplies(lambda request: reply_about(asked_about(request), style))
    report, requests = index(tmp_path / "kb", untidy, style, results=corpus)
    counts = {fault: len(passages) for fault, passages in untidy.damaged_passages.items()}
    assert counts == {"cut": 94, "renamed": 63, "unscored": 48}
    assert len(report.failures) == PASSAGES // 20
    assert all("cut at the model's limit" in failure.reason for failure in report.failures)
    report, more = index(tmp_path / "kb", untidy, style, results=corpus)
    assert (report.failures, report.counts.updated, report.counts.unchanged) == (
        (),
        PASSAGES // 20,
        PASSAGES - PASSAGES // 20,
    )
    assert (requests, more) == (PASSAGES, PASSAGES // 20), "no reply was paid for twice"
    sound, kb = SqliteStore.open(tmp_path / "sound"), SqliteStore.open(tmp_path / "kb")
    assert get_digests(kb) == get_digests(sound)
    unscored = set(untidy.damaged_passages["unscored"])
    for ours, theirs in zip(
        *(get_document_passages(store, list(get_digests(store))) for store in (kb, sound)), strict=True
    ):
        if ours.passage.text in unscored:
            assert {edge.hyperedge.score for edge in ours.hyperedges} == {5.0}
            assert without_scores(ours) == without_scores(theirs)
        else:
            assert plain(ours) == plain(theirs)
    kb.close()
    sound.close()


def plain(item: IndexedPassage) -> object:
    edges = [(edge.hyperedge, edge.incidences, edge.vector.tobytes()) for edge in item.hyperedges]
    return item.passage, item.digest, item.vector.tobytes(), edges


def without_scores(item: IndexedPassage) -> object:
    edges = [
        replace(
            edge,
            hyperedge=replace(edge.hyperedge, score=5.0),
            incidences=tuple(replace(part, score=50.0) for part in edge.incidences),
        )
        for edge in item.hyperedges
    ]
    return plain(replace(item, hyperedges=tuple(edges)))
