"""What is said to have been spent: all calls, what was under way, and what nothing recalled would have cost."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from polyad.cli import app
from polyad.config import LanguageModelSettings
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.language_models.openai.language_model import OpenAILanguageModel
from polyad.language_models.scripted import Request
from polyad.model import Document
from tests.scripted_server import ScriptedServer

DOCUMENTS = [Document("bell", "Bell of Tarn", "The Bell of Tarn was cast by Ines Moreau in 1702.")]
QUESTION = "Who cast the Bell of Tarn?"


def reply(request: Request) -> str:
    question = json.dumps(request)
    if '"entities"' in question:
        return '{"entities": ["Bell of Tarn"]}'
    return '{"clues": ["the bell\'s maker"]}' if '"clues"' in question else "Ines Moreau [1]."


def engine_at(directory: Path, server: ScriptedServer, *, seed: int = 0, reply_cache: bool = True) -> Engine:
    settings = LanguageModelSettings(model="m", base_url=server.base_url, api_key="k", seed=seed, cache_name="m")
    return Engine.open(
        directory,
        embedder=HashingEmbedder(16),
        language_model=OpenAILanguageModel(settings),
        reply_cache=reply_cache,
    )


def test_an_answer_reports_all_calls_those_for_names_and_clues_too(tmp_path: Path) -> None:
    with ScriptedServer(reply) as server, engine_at(tmp_path / "kb", server) as engine:
        engine.index_documents(DOCUMENTS)
        for retriever in ("hypergraphrag", "hypersu"):
            request_count = len(server.requests)
            usage = engine.ask(f"{QUESTION} ({retriever})", retriever=retriever).usage
            assert usage.calls == len(server.requests) - request_count == 2
            assert engine.ask(f"{QUESTION} ({retriever})", retriever=retriever).usage.calls == 0, "all recalled"


def test_the_cost_without_the_cache_is_stated_beside_the_actual_cost(tmp_path: Path) -> None:
    with ScriptedServer(reply) as server, engine_at(tmp_path / "kb", server) as engine:
        engine.index_documents(DOCUMENTS)
        engine.ask(QUESTION, retriever="hypergraphrag")
        once = engine.components.usage.tokens
        assert once == engine.components.usage_uncached.tokens > 0
        engine.ask(QUESTION, retriever="hypergraphrag")
        assert engine.components.usage.tokens == once
        assert 1.5 * once < engine.components.usage_uncached.tokens < 2.5 * once


def test_without_the_reply_cache_each_run_asks_anew_and_keeps_what_it_got(tmp_path: Path) -> None:
    replies = iter(["first [1].", "second [1]."])
    with ScriptedServer(lambda _: next(replies)) as server:
        for reply_cache in (True, False, True):
            with engine_at(tmp_path / "kb", server, reply_cache=reply_cache) as engine:
                engine.index_documents(DOCUMENTS)
                text = engine.ask(QUESTION, retriever="bm25").text
        assert len(server.requests) == 2
    assert text.startswith("second")


def test_the_replies_of_one_seed_are_not_recalled_for_another(tmp_path: Path) -> None:
    with ScriptedServer(reply) as server:
        for seed in (0, 1, 2, 1):
            with engine_at(tmp_path / "kb", server, seed=seed) as engine:
                engine.index_documents(DOCUMENTS)
                engine.ask(QUESTION, retriever="bm25")
        assert [recorded.body.get("seed") for recorded in server.requests] == [None, 1, 2]


def test_the_command_line_can_leave_the_reply_cache_alone(tmp_path: Path) -> None:
    with ScriptedServer(reply) as server:
        with engine_at(tmp_path / "kb", server) as engine:
            engine.index_documents(DOCUMENTS)
        command = ["ask", QUESTION, "--store", str(tmp_path / "kb"), "--model", "m", "--retriever", "bm25", "--json"]
        environment = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "k"}
        calls = []
        for option in ([], [], ["--no-reply-cache"]):
            result = CliRunner().invoke(app, [*command, *option], env=environment)
            assert result.exit_code == 0, result.output
            calls.append(json.loads(result.stdout)["usage"]["calls"])
    assert calls == [1, 0, 1]


def test_eval_reports_what_a_question_costs_when_nothing_is_recalled_beside_what_was_spent(tmp_path: Path) -> None:
    folder = tmp_path / "bells"
    (folder / "qrels").mkdir(parents=True)
    record = {"_id": "bell", "title": "Bell of Tarn", "text": DOCUMENTS[0].text}
    (folder / "corpus.jsonl").write_text(json.dumps(record), encoding="utf-8")
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": QUESTION}), encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\tbell\t1\n", encoding="utf-8")
    command = ["eval", str(folder), "--retriever", "hypersu", "--store", str(tmp_path / "kb"), "--model", "m", "--json"]
    with ScriptedServer(reply) as server:
        environment = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "k"}
        results = []
        for _ in range(2):
            result = CliRunner().invoke(app, [*command, "--embedder", "hashing:16"], env=environment)
            assert result.exit_code == 0, result.output
            results.append(json.loads(result.stdout)["results"][0])
    first, second = results
    assert first["llm_tokens_per_query"] == first["llm_tokens_uncached_per_query"] > 0
    assert second["llm_tokens_per_query"] == 0
    assert second["llm_tokens_uncached_per_query"] > 0.5 * first["llm_tokens_per_query"]
