"""The command line: what is printed where, and with which exit code."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup
from typer.testing import CliRunner, Result

from polyad import sample
from polyad.cli import app
from polyad.cli.progress import progress_bar
from polyad.cli.streams import say
from polyad.engine import NEED_LANGUAGE_MODEL, RETRIEVERS, Engine, loaders
from polyad.errors import EmbedderError, ModelNotFoundError, StoreError
from polyad.language_models.scripted import Request, cite_first_passage
from polyad.model import Document, Evidence
from polyad.protocols.components import Embedder
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.default.retriever import DefaultRetriever
from tests.faults import ServerErrorFault
from tests.scripted_server import ScriptedServer

Run = Callable[..., Result]

QUESTION = "Where was the maker of the Bell of Tarn born?"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, embedder: Embedder) -> Run:
    """Runs a command in an empty folder, with the embedder that is already loaded."""
    monkeypatch.chdir(tmp_path)
    load = loaders.load_embedder
    monkeypatch.setattr(
        loaders, "load_embedder", lambda *arguments: load(*arguments) if ":" in arguments[0] else embedder
    )

    def invoke(*arguments: str | Path, **environment: str) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments], env=environment)

    return invoke


@pytest.fixture
def own_index(small_index_dir: Path, tmp_path: Path) -> Path:
    """A copy of the small index that may be changed."""
    shutil.copytree(small_index_dir, tmp_path / "own")
    return tmp_path / "own"


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(cite_first_passage) as scripted:
        yield scripted


def process(*arguments: str | Path, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "polyad", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def result_of(result: Result, code: int = 0) -> Any:
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def error_of(result: Result, code: int = 2) -> str:
    assert result.exit_code == code, result.output
    assert not result.stdout or set(json.loads(result.stdout)) == {"schema", "error"}
    lines = result.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("polyad: error: ")
    return lines[0]


# index


def test_index_reports_what_became_of_each_document(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.md").write_text("# Tarn\n\nThe Bell of Tarn hangs in Corven Tower.", encoding="utf-8")
    (folder / "b.txt").write_text("Ines Moreau was born in Aldby.", encoding="utf-8")
    (folder / "c.xyz").write_text("unknown", encoding="utf-8")
    (folder / "d.md").write_text("", encoding="utf-8")
    result = run("index", "folder", "--store", "kb", "--json")
    first = result_of(result, code=1)
    assert [first[name] for name in ("added", "updated", "unchanged", "failed", "skipped")] == [2, 0, 0, 1, 1]
    assert (first["passages"], first["hyperedges"]) == (2, 2)
    assert first["failures"] == [{"id": "folder/d.md", "reason": "empty: no text"}]
    assert first["seconds"] >= first["encode_seconds"] > 0
    assert result.stderr.splitlines() == [
        "polyad: failed: folder/d.md: empty: no text",
        "polyad: warning: skipped 1 file of unsupported type or minified: 1 .xyz; "
        "polyad index --help lists what it reads",
    ]
    (folder / "d.md").unlink()
    (folder / "b.txt").write_text("Ines Moreau was born in Corven.", encoding="utf-8")
    again = result_of(run("index", "folder", "--store", "kb", "--json"))
    assert [again[name] for name in ("added", "updated", "unchanged", "failed")] == [0, 1, 1, 0]


def test_skipped_files_are_listed_by_kind_and_fail_a_strict_run(run: Run, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for name in ("a.txt", "b.mp3", "c.MP3", "d.exe", "e"):
        (tmp_path / "folder" / name).write_text("The Bell of Tarn.", encoding="utf-8")
    loose = run("index", "folder", "--store", "kb", "--json")
    report = result_of(loose)
    assert report["skipped_kinds"] == {".mp3": 2, ".exe": 1, "without extension": 1}
    assert report["skipped_files"] == ["folder/b.mp3", "folder/c.MP3", "folder/d.exe", "folder/e"]
    assert "skipped 4 files of unsupported type or minified: 2 .mp3, 1 .exe, 1 without extension; " in loose.stderr
    strict = run("index", "folder", "--store", "kb", "--strict", "--json")
    assert result_of(strict, code=1)["unchanged"] == 1
    (tmp_path / "folder2").mkdir()
    (tmp_path / "folder2" / "a.txt").write_text("The Bell of Tarn.", encoding="utf-8")
    assert run("index", "folder2", "--store", "kb", "--strict").exit_code == 0


def test_index_says_in_words_what_it_did(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Ines Moreau was born in Aldby.", encoding="utf-8")
    result = run("index", "a.txt", "--store", "kb")
    assert result.exit_code == 0
    assert result.stdout.startswith("1 added, 0 updated, 0 unchanged, 0 failed\n1 passage and 1 hyperedge written")
    assert result.stderr == ""


def test_index_of_a_folder_without_a_readable_file_says_so(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = run("index", "empty", "--store", "kb")
    assert (result.exit_code, result.stderr.count("\n")) == (0, 1)
    assert "warning: nothing to index in empty; polyad index --help" in result.stderr
    (tmp_path / "empty" / "a.xyz").write_text("unknown", encoding="utf-8")
    lines = run("index", "empty", "--store", "kb").stderr.splitlines()
    assert [("skipped" in line, "nothing to index" in line) for line in lines] == [(True, False), (False, True)]
    (tmp_path / "empty" / "a.md").write_text("", encoding="utf-8")
    assert "nothing to index" not in run("index", "empty", "--store", "kb").stderr


def test_index_of_a_path_that_is_not_there_changes_nothing(run: Run, tmp_path: Path) -> None:
    result = run("index", "missing.txt", "--store", "kb")
    assert result.exit_code == 2
    assert "missing.txt" in result.stderr
    assert not (tmp_path / "kb").exists()


@pytest.mark.parametrize("arguments", [("index", "{}", "--store", "kb"), ("stats", "--store", "{}"), ("eval", "{}")])
def test_a_path_that_the_system_refuses_is_an_error(run: Run, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    result = run(*(argument.format(300 * "a") for argument in arguments))
    assert "File name too long" in error_of(result)
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_is_a_file_is_an_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Ines Moreau was born in Aldby.", encoding="utf-8")
    assert "cannot make the directory 'a.txt'" in error_of(run("index", "a.txt", "--store", "a.txt"))


def test_names_of_any_alphabet_are_kept(run: Run, tmp_path: Path) -> None:
    (tmp_path / "földer 水").mkdir()
    (tmp_path / "földer 水" / "ä b.txt").write_text("Zoë Ångström bought the Mill of Łódź.", encoding="utf-8")
    result_of(run("index", "földer 水", "--store", "kö 水", "--json"))
    result = run("search", "Who bought the Mill of Łódź?", "--store", "kö 水", "--json")
    assert result_of(result)["hits"][0]["document_id"] == "földer 水/ä b.txt"
    assert "Zoë Ångström" in result.stdout


# search


def test_search_json_has_the_promised_shape(run: Run, small_index_dir: Path) -> None:
    shape = result_of(run("search", QUESTION, "--store", small_index_dir, "-k", "3", "--json"))
    assert (shape["query"], shape["retriever"], len(shape["hits"])) == (QUESTION, "default", 3)
    assert {"bell", "moreau"} <= {hit["document_id"] for hit in shape["hits"]}
    bell = next(hit for hit in shape["hits"] if hit["document_id"] == "bell")
    assert bell["title"] == "Bell of Tarn"
    assert bell["text"].startswith("The Bell of Tarn was cast by Ines Moreau in 1702.")
    assert isinstance(bell["score"], float)
    assert "Ines Moreau" in bell["hyperedges"][0]["entities"]
    assert {"id", "text", "score"} <= set(bell["hyperedges"][0])
    timings = shape["timings_ms"]
    assert timings["total"] == pytest.approx(timings["encode"] + timings["retrieve"], abs=0.02)
    assert "trace" not in shape
    assert (bell["start"], bell["end"], bell["source"], bell["url"]) == (0, len(bell["text"]), "", "")
    assert (bell["page"], bell["heading"], bell["sheet"], bell["slide"]) == (None, "", "", None)
    assert (bell["metadata"], bell["copies"]) == ({"language": "en"}, [])
    assert 0 < bell["relevance"] <= 1
    start, end = bell["highlight"]
    assert bell["text"][start:end] in bell["excerpt"]["text"]
    assert bell["excerpt"] == {"text": bell["text"], "start": 0, "end": len(bell["text"])}


def test_words_limit_what_search_returns(run: Run, small_index_dir: Path) -> None:
    arguments = ("search", QUESTION, "--store", small_index_dir, "--json")
    for options, environment in ((("--max-words", "30"), {}), ((), {"POLYAD_MAX_WORDS": "30"})):
        hits = result_of(run(*arguments, *options, **environment))["hits"]
        assert 0 < sum(len(hit["text"].replace(" … ", " ").split()) for hit in hits) <= 30
    many = result_of(run(*arguments, "-k", "100"))["hits"]
    within_words = result_of(run(*arguments, "--max-words", "1000"))["hits"]
    assert [(hit["passage_id"], hit["text"]) for hit in within_words] == [
        (hit["passage_id"], hit["text"]) for hit in many
    ]
    assert len(result_of(run(*arguments, "--max-words", "1000", "-k", "2"))["hits"]) == 2
    assert len(result_of(run(*arguments))["hits"]) == 5
    assert "max_words is 0; expected 1 or more (given by --max-words)" in error_of(run(*arguments, "--max-words", "0"))


def test_search_prints_the_sentences_that_fit_and_with_full_the_whole_hit(run: Run, tmp_path: Path) -> None:
    filler = "Rain fell on the meadows and nobody went out to look after the sheep in the old pen. " * 8
    text = f"{filler}The step in quick time is thirty inches. {filler}"
    (tmp_path / "drill.txt").write_text(text, encoding="utf-8")
    run("index", "drill.txt", "--store", "kb")
    arguments = ("search", "How long is a step in quick time?", "--store", "kb", "-k", "1")
    printed = run(*arguments).stdout
    assert printed.startswith("1. drill  relevance 0.")
    assert "drill.txt#0000" in printed.splitlines()[1]
    assert "The step in quick time is thirty inches." in " ".join(printed.split())
    assert len(printed.split()) < 130
    whole = " ".join(run(*arguments, "--full").stdout.split())
    assert f"{filler}The step in quick time" in whole
    assert len(whole.split()) > 160


def test_copies_are_shown_once_with_both_places(run: Run, tmp_path: Path) -> None:
    text = "The Bell of Tarn was cast by Ines Moreau and hangs in a tower of red granite above the village of Aldby."
    (tmp_path / "bell.txt").write_text(text, encoding="utf-8")
    (tmp_path / "bell.html").write_text(f"<title>Bell</title><p>{text}", encoding="utf-8")
    run("index", "bell.txt", "bell.html", "--store", "kb")
    (hit,) = result_of(run("search", QUESTION, "--store", "kb", "--json"))["hits"]
    (copy,) = hit["copies"]
    assert {hit["source"], copy["source"]} == {"bell.txt", "bell.html"}
    assert {"title", "start", "end", "source", "url", "page", "page_label", "heading", "sheet", "slide"} == set(copy)
    assert f"also in: {'Bell, bell.html' if hit['source'] == 'bell.txt' else 'bell, bell.txt'}" in (
        run("search", QUESTION, "--store", "kb").stdout
    )


def relevant(monkeypatch: pytest.MonkeyPatch, *values: float) -> None:
    """Let the default retriever say how relevant its passages are."""
    rank = DefaultRetriever.rank_candidates

    def rank_with_values(self: DefaultRetriever, question: str, snapshot: Snapshot) -> Callable[[int], Evidence]:
        build = rank(self, question, snapshot)

        def build_with_values(k: int) -> Evidence:
            evidence = build(k)
            hits = zip(evidence.passages, [*values, *[0.0] * k], strict=False)
            return replace(evidence, passages=tuple(replace(hit, relevance=value) for hit, value in hits))

        return build_with_values

    monkeypatch.setattr(DefaultRetriever, "rank_candidates", rank_with_values)


def test_hits_below_the_relevance_limit_are_omitted(
    run: Run, small_index_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    relevant(monkeypatch, 0.9, 0.4)
    arguments = ("search", QUESTION, "--store", small_index_dir)
    hits = result_of(run(*arguments, "--min-relevance", "0.3", "--json"))["hits"]
    assert [hit["relevance"] for hit in hits] == [0.9, 0.4]
    assert len(result_of(run(*arguments, "--json", POLYAD_MIN_RELEVANCE="0.5"))["hits"]) == 1
    result = run(*arguments, "--min-relevance", "0.95")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "nothing in the documents fits this question: best relevance 0.90\n"
    shape = result_of(run(*arguments, "--min-relevance", "0.95", "--json"))
    assert (shape["hits"], shape["best_relevance"]) == ([], 0.9)


def test_ask_without_relevant_evidence_asks_no_model(
    run: Run, own_index: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    relevant(monkeypatch, 0.12)
    environment = {"OPENAI_BASE_URL": server.base_url, "POLYAD_MODEL": "scripted"}
    arguments = ("ask", "Who flew to the moon?", "--store", own_index, "--min-relevance", "0.5")
    shape = result_of(run(*arguments, "--json", **environment))
    assert (shape["answer"], shape["usage"]["calls"], server.requests) == ("", 0, [])
    assert shape["note"].startswith("Nothing in the documents fits this question")
    result = run(*arguments, **environment)
    assert (result.exit_code, result.stdout) == (0, f"{shape['note']}\n")
    assert "0.12" in shape["note"]


def test_a_least_relevance_is_refused_where_none_is_measured(run: Run, small_index_dir: Path) -> None:
    arguments = ("search", "x", "--store", small_index_dir, "--retriever", "bm25")
    message = error_of(run(*arguments[:1], "bell", *arguments[2:], "--min-relevance", "0.5"))
    assert "min_relevance is 0.5; expected 0 with 'bm25', which does not predict relevance" in message
    assert "min_relevance is 2.0; expected 0" in error_of(run(*arguments, "--min-relevance", "2"))


def test_a_reranker_orders_hits_and_measurements(run: Run, small_index_dir: Path, benchmark_folder: Path) -> None:
    def prefer_third(request: Request) -> list[float]:
        return [100.0 * (place == 2) for place, _ in enumerate(request["documents"])]

    with ScriptedServer(rankings=prefer_third) as server:
        environment = {"POLYAD_RERANKER_BASE_URL": server.base_url}
        search = ("search", QUESTION, "--store", small_index_dir, "--retriever", "dense", "--json")
        plain = result_of(run(*search, "-k", "6"))["hits"]
        shape = result_of(run(*search, "-k", "6", "--rerank", "endpoint:r", **environment))
        places = [hit["document_id"] for hit in shape["hits"]]
        assert places.index(plain[2]["document_id"]) < places.index(plain[1]["document_id"])
        assert places[0] == plain[0]["document_id"], "which the retriever ranks far above the others"
        request_count = len(server.requests)
        run("eval", benchmark_folder, "--retriever", "bm25", "--rerank", "endpoint:r", "--json", **environment)
        assert len(server.requests) > request_count
    shape = error_of(run(*search, "--rerank", "endpoint:r", **environment), code=1)
    assert "cannot be reached" in shape
    assert "no reranker 'x'; expected one of cross-encoder:" in error_of(run(*search, "--rerank", "x"))


def test_search_finds_the_passage_that_shares_no_name_with_the_question(run: Run, small_index_dir: Path) -> None:
    question = "In which village was the maker of the Bell of Tarn born?"
    hits = result_of(run("search", question, "--store", small_index_dir, "-k", "2", "--json"))["hits"]
    assert [hit["document_id"] for hit in hits] == ["bell", "moreau"]


def test_explain_adds_the_trace(run: Run, small_index_dir: Path) -> None:
    options = ("--store", small_index_dir, "--retriever", "hypersu", "--explain")
    trace = result_of(run("search", QUESTION, *options, "--json"))["trace"]
    assert {"hyperedge_id", "passage_id", "matched", "reached", "via", "score", "tails", "parent"} == set(trace[0])
    assert "Bell of Tarn" in {name for step in trace for name in step["via"]}
    text = run("search", QUESTION, *options).stdout
    assert "because: " in text
    assert "reached" in text


def test_search_for_people_numbers_its_hits(run: Run, small_index_dir: Path) -> None:
    text = run("search", QUESTION, "--store", small_index_dir, "-k", "2").stdout
    assert text.startswith("1. ")
    assert "\n2. " in text
    assert "\n3. " not in text
    assert "because" not in text
    assert "\x1b" not in text


@pytest.mark.parametrize("retriever", sorted({*RETRIEVERS} - NEED_LANGUAGE_MODEL))
def test_every_retriever_that_needs_no_model_can_be_named(run: Run, small_index_dir: Path, retriever: str) -> None:
    shape = result_of(run("search", QUESTION, "--store", small_index_dir, "--retriever", retriever, "--json"))
    assert shape["retriever"] == retriever
    assert bool(shape["hits"]) == (retriever != "none")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["  "], "the question is blank"),
        (["x", "-k", "0"], "k is 0; expected 1 or more"),
        (["x", "--retriever", "bm52"], "retriever is 'bm52'; expected one of default"),
    ],
)
def test_an_invalid_search_prints_one_line(run: Run, small_index_dir: Path, arguments: list[str], message: str) -> None:
    assert message in error_of(run("search", *arguments, "--store", small_index_dir))


def test_an_index_without_documents_says_so(run: Run, own_index: Path) -> None:
    result = run("search", "xyzzy", "--store", own_index, "--retriever", "bm25")
    assert (result.stdout, result.stderr) == ("nothing found\n", "")
    run("remove", "bell", "moreau", "tower", "aldby", "isk", "otter", "--store", own_index)
    for command in ("search", "ask"):
        result = run(command, "xyzzy", "--store", own_index)
        assert (result.exit_code, result.stderr.count("\n")) == (0, 1)
        assert "this index has no documents; add some with polyad index" in result.stderr


@pytest.mark.parametrize(
    "command", [["search", "x"], ["ask", "x"], ["stats"], ["remove", "x"], ["show", "entity", "x"]]
)
def test_a_missing_index_is_an_error_and_none_is_made(run: Run, tmp_path: Path, command: list[str]) -> None:
    assert "no index in 'nowhere'" in error_of(run(*command, "--store", "nowhere"))
    assert "give --store DIR" in error_of(run(*command))
    assert not (tmp_path / "nowhere").exists()


def test_a_file_that_is_no_index_is_an_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "index.sqlite").write_bytes(b"this was never a database" * 100)
    for command in (["search", "x"], ["stats"], ["index", "kb"]):
        assert "damaged or not an index" in error_of(run(*command, "--store", "kb"))


def test_an_index_opened_with_another_extractor_is_an_error(run: Run, small_index_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "names.jsonl").write_text('{"entities": ["Ines Moreau"]}\n', encoding="utf-8")
    result = run("search", "x", "--store", small_index_dir, "--mention-extractor", "given:names.jsonl", "--json")
    assert "was built with the mention extractor 'rules" in error_of(result)


# ask


def test_ask_cites_its_sources(run: Run, own_index: Path, server: ScriptedServer) -> None:
    environment = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none", "POLYAD_MODEL": "scripted"}
    arguments = ("ask", "Who cast the Bell of Tarn?", "--store", own_index, "--retriever", "bm25", "-k", "2")
    shape = result_of(run(*arguments, "--json", **environment))
    assert shape["answer"] == "The Bell of Tarn was cast by Ines Moreau in 1702 [1]."
    (citation,) = shape["citations"]
    assert (citation["number"], citation["document_id"], citation["title"]) == (1, "bell", "Bell of Tarn")
    assert citation["claim"] == shape["answer"]
    assert (shape["usage"]["calls"], shape["dropped_citations"], shape["note"]) == (1, 0, "")
    assert shape["evidence"]["hits"][0]["passage_id"] == citation["passage_id"]
    text = run(*arguments, **environment).stdout
    assert text.splitlines()[0] == shape["answer"]
    assert f"[1] Bell of Tarn  {citation['passage_id']}" in text
    hit = shape["evidence"]["hits"][0]
    for name in ("start", "end", "source", "url", "page", "heading"):
        assert citation[name] == hit[name]
    assert len(server.requests) == 1  # the second answer was paid for by the first


def test_replies_are_kept_in_the_file_that_is_named(
    run: Run, own_index: Path, server: ScriptedServer, tmp_path: Path
) -> None:
    environment = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none", "POLYAD_MODEL": "scripted"}
    shutil.copytree(own_index, tmp_path / "copy")
    calls = [
        result_of(run("ask", "Who cast the Bell of Tarn?", "--store", directory, *option, "--json", **environment))
        for directory in (own_index, tmp_path / "copy")
        for option in (("--retriever", "bm25", "--replies", tmp_path / "replies"), ("--retriever", "bm25"))
    ]
    assert [shape["usage"]["calls"] for shape in calls] == [1, 1, 0, 1]


def saying(reply: str) -> ScriptedServer:
    return ScriptedServer([reply])


@pytest.mark.parametrize(
    ("reply", "numbers"),
    [("Moreau [1]. In 1702 [1].", ["1"]), ("So [2, 1]. And so [2].", ["1", "2"])],
)
def test_a_source_that_is_cited_twice_is_listed_once(run: Run, own_index: Path, reply: str, numbers: list[str]) -> None:
    with saying(reply) as server:
        environment = {"OPENAI_BASE_URL": server.base_url, "POLYAD_MODEL": "m"}
        text = run("ask", "Who cast the Bell of Tarn?", "--store", own_index, "-k", "2", **environment).stdout
    listed = text.split("Sources:\n")[1].splitlines()
    assert [line.strip()[1] for line in listed] == numbers


def test_an_answer_without_citations_comes_with_a_warning(run: Run, own_index: Path) -> None:
    with saying("Moreau did.") as server:
        environment = {"OPENAI_BASE_URL": server.base_url, "POLYAD_MODEL": "m"}
        result = run("ask", "Who cast the Bell of Tarn?", "--store", own_index, **environment)
    assert "cites none of the evidence" in result.stderr


def test_an_answer_in_names_says_where_each_stands(run: Run, own_index: Path) -> None:
    with saying('["Ines Moreau", "Made Up"]') as server:
        environment = {"OPENAI_BASE_URL": server.base_url, "POLYAD_MODEL": "m"}
        arguments = ("ask", "Who cast the Bell of Tarn?", "--store", own_index, "-k", "2", "--form", "entities")
        text = run(*arguments, **environment).stdout
    assert "  Ines Moreau  [1]" in text
    assert "  Made Up  in none of the evidence" in text


def test_ask_without_a_model_gives_the_evidence_and_says_so(run: Run, small_index_dir: Path) -> None:
    shape = result_of(run("ask", QUESTION, "--store", small_index_dir, "--json"))
    assert (shape["answer"], shape["citations"]) == ("", [])
    assert "No language model is set" in shape["note"]
    assert shape["evidence"]["hits"]
    text = run("ask", QUESTION, "--store", small_index_dir).stdout
    assert text.startswith("1. ")
    assert "No language model is set" in text.splitlines()[-1]


def test_a_code_that_no_passage_contains_is_named(run: Run, tmp_path: Path) -> None:
    for number in (2209, 2210):
        (tmp_path / f"{number}.txt").write_text(f"The seal kit HP-{number} costs 84 EUR.", encoding="utf-8")
    run("index", ".", "--store", "kb", "--embedder", "hashing:32")
    arguments = ("ask", "What does HP-2212 cost?", "--store", "kb")
    statement = "No passage contains HP-2212; the nearest is HP-2210."
    assert statement in run(*arguments).stdout
    shape = result_of(run(*arguments, "--json"))
    assert statement in shape["note"]
    assert shape["evidence"]["absent_names"] == [{"text": "HP-2212", "nearest": "HP-2210"}]


@pytest.mark.parametrize("as_json", [False, True])
def test_a_language_model_that_fails_is_exit_code_1_and_the_evidence_is_printed(
    run: Run, small_index_dir: Path, as_json: bool
) -> None:
    with ScriptedServer([ServerErrorFault()]) as broken:
        environment = {"OPENAI_BASE_URL": broken.base_url, "OPENAI_API_KEY": "none"}
        environment["POLYAD_LANGUAGE_MODEL_MAX_RETRIES"] = "0"
        arguments = ("ask", "Who fails?", "--store", small_index_dir, "--model", "m", "--min-relevance", "0")
        result = run(*arguments, *(["--json"] if as_json else []), **environment)
    if as_json:
        assert result.exit_code == 1
        shape = json.loads(result.stdout)
        assert "500" in shape["error"]["message"]
        assert shape["evidence"]["hits"]
    else:
        assert result.exit_code == 1
        assert "500" in result.stderr
        assert result.stdout.startswith("1. ")
        assert "no answer" in result.stdout


# remove, stats, show


def test_remove_takes_documents_out_or_none(run: Run, own_index: Path) -> None:
    assert "no document 'x'" in error_of(run("remove", "bell", "x", "--store", own_index))
    removed = result_of(run("remove", "bell", "otter", "--store", own_index, "--json"))
    assert removed == {"schema": 1, "removed": ["bell", "otter"], "documents": 4, "is_trial": False}
    text = run("remove", "moreau", "tower", "aldby", "--store", own_index).stdout
    assert text == "3 removed, 1 document left\n"
    assert "no document 'bell'" in error_of(run("show", "document", "bell", "--store", own_index))


def test_remove_takes_folders_and_patterns_and_shows_before_what_it_would_remove(run: Run, tmp_path: Path) -> None:
    for name in ("old/a.md", "old/deep/b.md", "older/c.md", "new/d.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"The text of {name}.", encoding="utf-8")
    run("index", "old", "older", "new", "--store", "kb", "--embedder", "hashing:16")
    shutil.rmtree(tmp_path / "old")
    trial = result_of(run("remove", "old", "--dry-run", "--store", "kb", "--json"))
    assert (trial["removed"], trial["documents"], trial["is_trial"]) == (["old/a.md", "old/deep/b.md"], 4, True)
    assert "no document 'ol'" in error_of(run("remove", "old", "ol", "--store", "kb"))
    assert run("remove", "old/", "--store", "kb").stdout == "2 removed, 2 documents left\n"
    assert run("remove", "old*/*.md", "--store", "kb").stdout == "1 removed, 1 document left\n"


def test_show_prints_what_a_document_says_of_itself_as_it_stands_there(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"_id": "a", "text": "Ada met Bo.", "year": 1999, "kept": true}', encoding="utf-8")
    run("index", "a.jsonl", "--store", "kb")
    outputs = [line.split() for line in run("show", "document", "a", "--store", "kb").stdout.splitlines()]
    assert ["year", "1999"] in outputs
    assert ["kept", "True"] in outputs


def test_what_a_document_leaves_out_is_counted_and_listed(run: Run, tmp_path: Path) -> None:
    page = "<body><nav>Home and search</nav><main><h1>Pumps</h1><p>The pumps run.</p><img src='a.png'></main></body>"
    (tmp_path / "a.html").write_text(page, encoding="utf-8")
    (tmp_path / "b.html").write_text(page.replace("run", "stop"), encoding="utf-8")
    notes = {"removed texts of site navigation": 2, "pictures without text": 2}
    assert result_of(run("index", "a.html", "b.html", "--store", "kb", "--json"))["notes"] == notes
    shape = result_of(run("show", "document", "a.html", "--show-removed", "--store", "kb", "--json"))
    assert shape["removed"] == {"removed_navigation": ["Home and search"], "pictures_without_text": ["a.png"]}
    assert (shape["metadata"]["removed_navigation"], shape["metadata"]["pictures_without_text"]) == (1, 1)
    assert "  - Home and search\n" in run("show", "document", "a.html", "--show-removed", "--store", "kb").stdout
    assert "Home and search" not in run("show", "document", "a.html", "--store", "kb").stdout
    assert "document" in error_of(run("show", "entity", "pumps", "--show-removed", "--store", "kb"))
    (tmp_path / "a.html").unlink()
    assert "a.html" in error_of(run("show", "document", "a.html", "--show-removed", "--store", "kb"))


def test_list_names_documents_and_entities(run: Run, small_index_dir: Path) -> None:
    documents = result_of(run("list", "documents", "--store", small_index_dir, "--json"))["documents"]
    assert [item["id"] for item in documents] == sorted(item["id"] for item in documents)
    assert len(documents) == 6
    results = result_of(run("list", "entities", "--like", "MOREAU", "--store", small_index_dir, "--json"))["entities"]
    assert [entity["key"] for entity in results] == ["ines moreau"]
    assert run("list", "documents", "--like", "otter", "--store", small_index_dir).stdout == "otter\n"
    assert run("list", "entities", "--like", "xyz", "--store", small_index_dir).stdout == "nothing found\n"


def test_list_prints_passages(run: Run, small_index_dir: Path) -> None:
    passages = result_of(run("list", "passages", "--store", small_index_dir, "--json"))["passages"]
    assert len(passages) == result_of(run("stats", "--store", small_index_dir, "--json"))["passages"]
    [line] = run("list", "passages", "--like", "otter#0000", "--store", small_index_dir).stdout.splitlines()
    assert line.startswith("otter#0000  ")


def test_list_prints_what_hyperedges_say(run: Run, small_index_dir: Path) -> None:
    every = result_of(run("list", "hyperedges", "--store", small_index_dir, "--json"))["hyperedges"]
    assert len(every) == result_of(run("stats", "--store", small_index_dir, "--json"))["hyperedges"]
    some = run("list", "hyperedges", "--like", "otter", "--store", small_index_dir).stdout.splitlines()
    assert some == [
        f"{edge['id']}  {edge['text']}" for edge in every if "otter" in f"{edge['id']} {edge['text']}".lower()
    ]
    assert 0 < len(some) < len(every)


def test_a_hit_names_the_headings_that_it_stands_under(run: Run, tmp_path: Path) -> None:
    bell = "It was cast by Ines Moreau, who had learnt it in Vell, and hangs in Corven Tower. " * 3
    moreau = "She was born in Aldby, where her father kept the ferry, and cast bells all her life. " * 3
    text = f"# Handbook\n\n## Bell of Tarn\n\n{bell}\n\n## People\n\n### *Ines Moreau*\n\n{moreau}"
    (tmp_path / "handbook.md").write_text(text, encoding="utf-8")
    run("index", "handbook.md", "--store", "kb")
    hits = result_of(run("search", QUESTION, "--store", "kb", "--json"))["hits"]
    assert {hit["title"] for hit in hits} == {"Handbook / Bell of Tarn", "Handbook / People / Ines Moreau"}
    output = run("search", QUESTION, "--store", "kb").stdout
    assert '. Handbook, "Bell of Tarn"  relevance 0.' in output
    assert "#" not in output.replace("#0000", "").replace("#0001", "")
    entity = result_of(run("show", "entity", "Ines Moreau", "--store", "kb", "--json"))
    assert len(entity["hyperedges"]) == 2


def test_index_prunes_what_is_gone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name in "ab":
        (tmp_path / "docs" / f"{name}.txt").write_text(f"The text of {name}.", encoding="utf-8")
    run("index", "docs", "--store", "kb")
    (tmp_path / "docs" / "a.txt").unlink()
    assert "1 missing on disk; --prune removes them: docs/a.txt" in run("index", "docs", "--store", "kb").stdout
    shape = result_of(run("index", "docs", "--store", "kb", "--prune", "--json"))
    assert (shape["missing"], shape["pruned"], shape["unchanged"]) == (["docs/a.txt"], True, 1)
    assert run("list", "documents", "--store", "kb").stdout == "docs/b.txt\n"


def test_a_folder_that_is_suddenly_empty_costs_the_index_nothing(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.txt").write_text("The text of a.", encoding="utf-8")
    run("index", "docs", "--store", "kb")
    (folder / "a.txt").unlink()
    assert "not removed because" in run("index", "docs", "--store", "kb", "--prune").stdout
    assert run("list", "documents", "--store", "kb").stdout == "docs/a.txt\n"
    (folder / "b.txt").write_text("The text of b.", encoding="utf-8")
    run("index", "docs", "--store", "kb", "--prune")
    assert run("list", "documents", "--store", "kb").stdout == "docs/b.txt\n"


def test_the_same_content_under_two_ids_is_a_warning_that_names_a_pair(run: Run, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name in "ab":
        (tmp_path / "docs" / f"{name}.txt").write_text(f"The text of {name}.", encoding="utf-8")
    first = run("index", "docs", "--store", "kb", "--json")
    assert (first.stderr, result_of(first)["duplicates"]) == ("", [])
    again = run("index", tmp_path / "docs", "--store", "kb", "--json")
    pairs = [{"id": f"{tmp_path}/docs/{name}.txt", "of": f"docs/{name}.txt"} for name in "ab"]
    assert result_of(again)["duplicates"] == pairs
    (line,) = again.stderr.splitlines()
    assert "2 documents have the same content" in line
    assert "polyad remove" in line
    assert run("index", tmp_path / "docs", "--store", "kb").stderr == "", "what is left alone was told of before"


def test_a_file_that_was_moved_is_no_duplicate(run: Run, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "b.txt").write_text("The text.", encoding="utf-8")
    run("index", "docs", "--store", "kb")
    (tmp_path / "docs" / "b.txt").rename(tmp_path / "docs" / "c.txt")
    shape = result_of(run("index", "docs", "--store", "kb", "--json"))
    assert (shape["missing"], shape["duplicates"]) == (["docs/b.txt"], [])


def test_failures_for_one_reason_share_a_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for number in range(8):
        (tmp_path / "docs" / f"{number}.txt").write_text("", encoding="utf-8")
    (line,) = run("index", "docs", "--store", "kb").stderr.splitlines()
    assert line.startswith("polyad: failed: docs/0.txt, docs/1.txt,")
    assert "and 3 more: empty" in line


def test_stats_counts(run: Run, small_index_dir: Path) -> None:
    shape = result_of(run("stats", "--store", small_index_dir, "--json"))
    assert (shape["documents"], shape["passages"], shape["hyperedges"]) == (6, 6, 6)
    assert shape["mean_arity"] == pytest.approx(shape["incidences"] / 6, abs=1e-3)
    assert shape["density"] == pytest.approx(6 / shape["entities"], abs=1e-3)
    assert shape["settings"]["embedder"] == "all-MiniLM-L6-v2"
    assert {"tokens", "cost", "disk_bytes"} <= set(shape)
    assert "mean arity" in run("stats", "--store", small_index_dir).stdout


def test_show_prints_each_kind_of_thing(run: Run, small_index_dir: Path) -> None:
    def show_json(kind: str, id: str) -> Any:
        return result_of(run("show", kind, id, "--store", small_index_dir, "--json"))

    entity = show_json("entity", "the Ines MOREAU")
    assert (entity["key"], entity["name"]) == ("ines moreau", "Ines Moreau")
    edge = show_json("hyperedge", entity["hyperedges"][0])
    assert "Ines Moreau" in {incidence["name"] for incidence in edge["incidences"]}
    passage = show_json("passage", edge["passage_id"])
    assert passage["document_id"] == "bell"
    document = show_json("document", "bell")
    assert document["text"][passage["start"] : passage["end"]] == passage["text"]
    text = run("show", "hyperedge", edge["id"], "--store", small_index_dir).stdout
    assert "name: Ines Moreau" in text


def test_showing_a_missing_record_is_an_error(run: Run, small_index_dir: Path) -> None:
    for kind in ("document", "passage", "entity", "hyperedge"):
        assert f"no {kind} 'zzz'" in error_of(run("show", kind, "zzz", "--store", small_index_dir))


# eval and demo


@pytest.fixture
def benchmark_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "tarn"
    (folder / "qrels").mkdir(parents=True)
    corpus = [
        {"_id": "bell", "title": "Bell of Tarn", "text": "The Bell of Tarn was cast by Ines Moreau."},
        {"_id": "moreau", "title": "Ines Moreau", "text": "She was born in Aldby."},
        {"_id": "otter", "title": "otter", "text": "An otter eats fish."},
    ]
    queries = [{"_id": "q1", "text": QUESTION}, {"_id": "q2", "text": "What do otters eat?"}]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)), encoding="utf-8")
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)), encoding="utf-8")
    qrels = "query-id\tcorpus-id\tscore\nq1\tbell\t1\nq1\tmoreau\t1\nq2\totter\t1\n"
    (folder / "qrels" / "test.tsv").write_text(qrels, encoding="utf-8")
    return folder


def test_eval_measures_each_retriever(run: Run, benchmark_folder: Path) -> None:
    arguments = ("eval", benchmark_folder, "--retriever", "none,default", "-k", "2", "--store", "kept")
    shape = result_of(run(*arguments, "--json"))
    assert (shape["dataset"], shape["k"], shape["queries"]) == ("tarn", 2, 2)
    assert (shape["index"]["passages"], shape["index"]["hyperedges"]) == (3, 3)
    assert shape["index"]["peak_rss_mb"] > 10
    assert shape["index"]["cpu_seconds"] > 0
    nothing, default = shape["results"]
    assert (nothing["retriever"], nothing["recall@2"], nothing["mrr"]) == ("none", 0, 0)
    assert (default["retriever"], default["recall@2"], default["all_recall@2"]) == ("default", 1, 1)
    assert set(default["latency_ms"]) == {"p50", "p95", "encode_p50"}
    again = run(*arguments, "--limit", "1", "--json")
    assert (result_of(again)["queries"], result_of(again)["index"]["encode_seconds"]) == (1, 0)
    table = run(*arguments).stdout
    assert "recall" in table
    assert "default" in table


@pytest.mark.usefixtures("empty_figures")
def test_train_writes_weights_that_search_can_use(run: Run, benchmark_folder: Path, tmp_path: Path) -> None:
    arguments = ("bench", "train", "default", benchmark_folder, "--to", "trained", "--store", "kept", "--json")
    assert "no question can be trained on" in error_of(run(*arguments)), "all candidates are gold"
    others = [{"_id": f"n{n}", "title": "", "text": f"Where maker {n} lived, none can tell."} for n in range(9)]
    with (benchmark_folder / "corpus.jsonl").open("a", encoding="utf-8") as corpus:
        corpus.write("".join("\n" + json.dumps(other) for other in others))
    shape = result_of(run(*arguments))
    recall = shape["weights.tsv"]["recall@5"]["tarn"]
    assert recall == {"trained_on_the_others": None, "with_these_weights": 1.0, "among_the_candidates": 1.0}
    (tmp_path / "polyad.toml").write_text('[default]\nweights = "trained/weights.tsv"\n', encoding="utf-8")
    result = result_of(run("search", QUESTION, "--store", "kept", "-k", "2", "--json"))
    assert {hit["document_id"] for hit in result["hits"]} == {"bell", "moreau"}
    (tmp_path / "trained" / "weights.tsv").unlink()
    message = error_of(run("search", QUESTION, "--store", "kept"))
    assert "cannot read the weights" in message
    assert "polyad bench train default" in message


def test_train_knows_what_it_can_train(run: Run, benchmark_folder: Path) -> None:
    assert "scorer is 'luck'; expected one of default" in error_of(run("bench", "train", "luck", benchmark_folder))


def test_eval_checks_every_name_before_it_indexes(run: Run, benchmark_folder: Path, tmp_path: Path) -> None:
    result = run("eval", benchmark_folder, "--retriever", "bm25,bm26", "--store", "kept")
    assert "retriever is 'bm26'" in error_of(result)
    assert not (tmp_path / "kept").exists()
    assert "corpus.jsonl' is missing" in error_of(run("eval", "nowhere"))


def test_eval_names_what_is_judged_and_is_not_there(run: Run, benchmark_folder: Path) -> None:
    with (benchmark_folder / "qrels" / "test.tsv").open("a", encoding="utf-8") as qrels:
        qrels.write("".join(f"q{n}\totter\t1\n" for n in range(3, 10)))
    result = run("eval", benchmark_folder, "--retriever", "bm25", "--json")
    assert result.stderr.rstrip().endswith("not in queries.jsonl: 7 questions, q3, q4, q5, q6, q7 and 2 more")
    assert result_of(result)["queries"] == 2
    with (benchmark_folder / "qrels" / "test.tsv").open("a", encoding="utf-8") as qrels:
        qrels.write("q2\tseal\t1\n")
    message = error_of(run("eval", benchmark_folder, "--retriever", "bm25"))
    assert "qrels/test.tsv', line 12: document 'seal' is judged to be evidence for question 'q2'" in message


def test_eval_names_gold_documents_that_could_not_be_indexed(run: Run, benchmark_folder: Path) -> None:
    with (benchmark_folder / "corpus.jsonl").open("a", encoding="utf-8") as corpus:
        corpus.write('\n{"_id": "seal", "title": "seal", "text": 7}')
    with (benchmark_folder / "qrels" / "test.tsv").open("a", encoding="utf-8") as qrels:
        qrels.write("q2\tseal\t1\n")
    result = run("eval", benchmark_folder, "--retriever", "bm25", "--json")
    assert result.exit_code == 1
    assert "not indexed from corpus.jsonl: 1 gold document, seal" in result.stderr


def test_eval_says_when_other_documents_are_in_the_way(run: Run, benchmark_folder: Path, own_index: Path) -> None:
    run("remove", "bell", "--store", own_index)
    result = run("eval", benchmark_folder, "--retriever", "bm25", "--store", own_index, "--json")
    assert "3 other documents" in result.stderr
    result_of(result)


def test_the_default_finds_all_evidence_in_the_demo_and_similarity_alone_does_not(
    run: Run, tmp_path: Path, embedder: Embedder
) -> None:
    shape = result_of(run("demo", "--store", "sample", "--json"))
    assert len(shape["questions"]) == len(sample.questions()) == 6
    assert [question["missing"] for question in shape["questions"]] == [[]] * 6
    with Engine.open(tmp_path / "sample", embedder=embedder, create=False) as engine:
        results = [
            {hit.passage.document_id for hit in engine.search(query.text, 5, retriever="dense").passages}
            for query in sample.questions()
        ]
    assert sum(query.gold <= documents for query, documents in zip(sample.questions(), results, strict=True)) < 6
    text = run("demo", "--store", "sample").stdout
    assert "12 unchanged" in text
    assert "6 of 6 questions have all their evidence" in text
    assert "Next: polyad index" in text


def test_every_gold_document_of_the_sample_exists() -> None:
    titles = {document.id: getattr(document, "title", "") for document in sample.documents()}
    assert all(titles.values())
    assert all(len(query.gold) == 2 and query.gold <= set(titles) for query in sample.questions())


# What holds for every command


def list_commands() -> set[str]:
    """Return the names of all commands, also of those that other packages add."""
    top = typer.main.get_group(app)
    groups = {name: top.get_command(typer.Context(top), name) for name in top.list_commands(typer.Context(top))}
    return {
        f"{name} {inner}".removesuffix(" ")
        for name, command in groups.items()
        for inner in (command.commands if isinstance(command, TyperGroup) else ("",))
    }


COMMANDS = list_commands()


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_help_has_an_example_and_json(run: Run, command: str) -> None:
    text = run(*command.split(), "--help").stdout
    assert "Example:" in text
    assert f"polyad {'eval' if command == 'bench run' else command}" in text.split("Example:")[1]
    assert "--json" in text or command in ("serve", "mcp")


def test_version_is_the_packages(run: Run) -> None:
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, "polyad 0.1.0\n")


def test_settings_come_from_the_file_in_the_working_directory(run: Run, tmp_path: Path, small_index_dir: Path) -> None:
    (tmp_path / "polyad.toml").write_text(f"store = '{small_index_dir}'\nretriever = 'bm25'\n", encoding="utf-8")
    assert result_of(run("search", "otter", "--json"))["retriever"] == "bm25"
    assert result_of(run("search", "otter", "--json", POLYAD_RETRIEVER="dense"))["retriever"] == "dense"
    (tmp_path / "polyad.toml").write_text("stoer = 'kb'\n", encoding="utf-8")
    assert "stoer in 'polyad.toml' is no setting" in error_of(run("stats"))


def test_an_embedder_behind_the_endpoint_of_the_file_is_found_again(
    run: Run, tmp_path: Path, server: ScriptedServer
) -> None:
    (tmp_path / "polyad.toml").write_text(f"[language_model]\nbase_url = '{server.base_url}'\n", encoding="utf-8")
    (tmp_path / "otter.txt").write_text("The otter eats fish.", encoding="utf-8")
    assert result_of(run("index", "otter.txt", "--store", "kb", "--embedder", "openai:e", "--json"))["added"] == 1
    assert result_of(run("search", "otter", "--store", "kb", "--json"))["hits"]
    assert "was built with the embedder 'openai:e'" in error_of(run("search", "x", "--store", "kb", "--embedder", "m"))


def test_a_key_goes_to_an_endpoint_that_the_file_names_only_where_a_flag_says_so(
    run: Run, tmp_path: Path, small_index_dir: Path, server: ScriptedServer
) -> None:
    toml = f"[language_model]\nmodel = 'm'\nbase_url = '{server.base_url}'\n"
    (tmp_path / "polyad.toml").write_text(toml, encoding="utf-8")
    command = ["--store", small_index_dir, "--retriever", "bm25", "--json"]
    result = run("ask", "otter", *command, OPENAI_API_KEY="sk-own")
    assert f"no API key of the environment is sent to {server.base_url}, which only polyad.toml names" in result.stderr
    assert run("--trust-endpoint", "ask", "otters", *command, OPENAI_API_KEY="sk-own").stderr == ""
    keys = [request.headers["authorization"] for request in server.requests]
    assert keys == ["Bearer no-key", "Bearer sk-own"]


def test_an_embedder_behind_such_an_endpoint_gets_no_key_either(
    run: Run, tmp_path: Path, server: ScriptedServer
) -> None:
    (tmp_path / "polyad.toml").write_text(f"[language_model]\nbase_url = '{server.base_url}'\n", encoding="utf-8")
    (tmp_path / "otter.txt").write_text("The otter eats fish.", encoding="utf-8")
    result = run("index", "otter.txt", "--store", "kb", "--embedder", "openai:e", OPENAI_API_KEY="sk-own")
    assert "no API key of the environment is sent" in result.stderr
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer no-key"}


def test_a_misspelt_variable_is_a_warning(run: Run, small_index_dir: Path) -> None:
    result = run("stats", "--json", POLYAD_STORE=str(small_index_dir), POLYAD_STOER="x")
    assert result.stderr == "polyad: warning: POLYAD_STOER in the environment is no setting of polyad\n"
    assert result_of(result)["documents"] == 6


@pytest.mark.parametrize(("error", "code"), [(StoreError("disk full"), 2), (EmbedderError("no vector"), 1)])
def test_errors_become_a_line_and_an_exit_code(
    run: Run, small_index_dir: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Engine, "search", fail)
    result = run("search", "x", "--store", small_index_dir, "--json")
    assert error_of(result, code) == f"polyad: error: {error}"


@pytest.mark.parametrize(
    ("arguments", "remaining"),
    [
        (["index", "."], "the documents so far are stored"),
        (["search", "x"], "no document was changed; complete replies of the language model are stored"),
    ],
)
def test_an_interrupt_says_what_is_kept(
    run: Run, own_index: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], remaining: str
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for method in ("index", "search"):
        monkeypatch.setattr(Engine, method, interrupt)
    result = run(*arguments, "--store", own_index)
    assert (result.exit_code, result.stdout) == (130, "")
    assert remaining in result.stderr
    assert result.stderr.count("\n") == 1


TERMINATED = """
import signal, sys, time
from polyad.cli import main
from polyad.engine import Engine
from polyad.engine import loaders

def slow(*_, **__):
    print("begun", flush=True)
    time.sleep(60)

Engine.index = Engine.search = slow
sys.argv[0] = "polyad"
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup and CI may ignore it, which processes inherit
main()
"""


@pytest.mark.parametrize(
    ("arguments", "remaining"),
    [
        (["index", "."], "the documents so far are stored"),
        (["search", "x"], "no document was changed; complete replies of the language model are stored"),
    ],
)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_request_to_end_says_what_is_kept(
    small_index_dir: Path, arguments: list[str], remaining: str, number: signal.Signals, code: int
) -> None:
    command = [sys.executable, "-c", TERMINATED, *arguments, "--store", str(small_index_dir), "--quiet"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout is not None
    assert running.stdout.readline() == "begun\n"
    running.send_signal(number)
    _, errors = running.communicate(timeout=30)
    assert running.returncode == code
    assert errors.startswith(f"polyad: terminated: {remaining}")
    assert errors.count("\n") == 1


@pytest.mark.parametrize("command", ["index", "eval"])
def test_the_help_of_a_limit_says_one_default(run: Run, command: str) -> None:
    text = " ".join(run(command, "--help").stdout.split())
    assert "[no limit]" in text
    assert "default: 0" not in text


def test_a_retriever_that_lacks_its_model_is_known_before_the_others_are_measured(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(*_: object, **__: object) -> None:
        raise AssertionError("nothing is to be indexed")

    monkeypatch.setattr(Engine, "index", measured)
    result = run("eval", tmp_path, "--retriever", "bm25,hypermemory")
    assert "the retriever 'hypermemory' needs a language model" in error_of(result)


def test_a_file_that_is_called_like_markup_is_shown_while_it_is_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress_bar(False) as progress:
        progress(0, 1, "files, reading a[/b].pdf p. 1/2")
    assert "reading a[/b].pdf p. 1/2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "kind", "code"),
    [
        (["search", "x", "--store", "nowhere"], "store_not_found", 2),
        (["search", "x", "--store", "nowhere", "--retriever", "none such"], "configuration", 2),
        (["search", "x", "--unknown"], "usage", 2),
        (["--unknown", "search", "x"], "usage", 2),
        (["bench", "unknown"], "usage", 2),
        (["bench", "compare", "none", "such"], "configuration", 2),
        (["index", "missing"], "configuration", 2),
        (["--config", "missing.toml", "config"], "configuration", 2),
    ],
)
def test_an_error_is_printed_as_json(run: Run, arguments: list[str], kind: str, code: int) -> None:
    failed = run(*arguments, "--json")
    error = result_of(failed, code)["error"]
    assert (error["kind"], set(error)) == (kind, {"kind", "message", "hint"})
    assert error["message"].split()[0] in failed.stderr
    assert error["hint"]
    assert run(*arguments).stdout == ""


def test_a_new_index_without_the_embedding_model_is_not_created(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ModelNotFoundError("the model is nowhere; --embedder hashing needs none")

    monkeypatch.setattr(loaders, "load_embedder", fail)
    Path("a.md").write_text("Anna met Bob.")
    assert "--embedder hashing" in error_of(run("index", "a.md", "--store", "kb"))
    assert not Engine.exists(Path("kb"))


def test_an_interrupt_is_printed_as_json(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("polyad.cli.search.open_engine", interrupt)
    assert result_of(run("search", "x", "--json"), 130)["error"]["kind"] == "interrupted"


def test_control_characters_of_a_document_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    say("a\x1b[2Jb\x9bc\td\u202e")
    assert capsys.readouterr().out == "a [2Jb c\td\n"


# As a process


def test_results_and_errors_go_to_their_own_streams(small_index_dir: Path, tmp_path: Path) -> None:
    good = process("stats", "--store", small_index_dir, "--json", cwd=tmp_path)
    out, errors = good.communicate()
    assert (good.returncode, errors) == (0, "")
    assert json.loads(out)["documents"] == 6
    bad = process("stats", "--store", "nowhere", "--json", cwd=tmp_path)
    out, errors = bad.communicate()
    assert (bad.returncode, json.loads(out)["error"]["kind"]) == (2, "store_not_found")
    assert errors.startswith("polyad: error: no index in 'nowhere'")
    assert "Traceback" not in errors


def test_json_is_valid_whatever_the_encoding_of_the_terminal(
    own_index: Path, tmp_path: Path, embedder: Embedder
) -> None:
    with Engine.open(own_index, embedder=embedder) as engine:
        engine.index_documents([Document("zoë 水", "Zoë", "Zoë lives in Łódź.")])
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    other_process = process("show", "document", "zoë 水", "--store", own_index, "--json", cwd=tmp_path, env=environment)
    out, errors = other_process.communicate()
    assert (json.loads(out)["text"], out.isascii(), errors) == ("Zoë lives in Łódź.", True, "")


@pytest.mark.parametrize(("target", "code", "message"), [("&-", 0, ""), ("/dev/full", 2, "No space left on device")])
def test_an_output_that_takes_nothing_is_no_crash(
    small_index_dir: Path, tmp_path: Path, target: str, code: int, message: str
) -> None:
    command = f"{sys.executable} -m polyad stats --json --store '{small_index_dir}' >{target}"
    ran = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True)
    assert (ran.returncode, "Traceback" in ran.stderr, message in ran.stderr) == (code, False, True)


@pytest.mark.parametrize("arguments", [["show", "document", "bell"], ["search", "bell"], ["list", "passages"], []])
def test_a_closed_pipe_is_silent(small_index_dir: Path, tmp_path: Path, arguments: list[str]) -> None:
    command = [*arguments, "--store", small_index_dir] if arguments else ["--help"]
    other_process = process(*command, cwd=tmp_path)
    assert other_process.stdout is not None
    assert other_process.stderr is not None
    other_process.stdout.close()  # before anything is written: the interpreter takes longer to start
    assert (other_process.stderr.read(), other_process.wait()) == ("", 141)
    other_process.stderr.close()


PAUSED_EXPORT = """
import signal, sys, time
from polyad.cli.commands import main
from polyad.interchange.contents import IndexContents

def pause(*arguments, **options):
    print("begun", flush=True)
    time.sleep(60)

IndexContents.iterate_documents = pause
sys.argv[0] = "polyad"
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # processes in the background inherit that both are ignored
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_export_leaves_no_file(small_index_dir: Path, tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "out").mkdir()
    command = [sys.executable, "-c", PAUSED_EXPORT, "export", "--out", "out/e.jsonl", "--store", str(small_index_dir)]
    running = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    assert running.stdout.readline() == "begun\n"
    running.send_signal(number)
    running.communicate(timeout=30)
    assert running.returncode == 128 + number
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.slow
def test_an_answer_is_streamed_to_a_terminal(own_index: Path, tmp_path: Path, server: ScriptedServer) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none", "POLYAD_MODEL": "m"}
    arguments = ["ask", "Who cast the Bell of Tarn?", "--store", str(own_index), "--retriever", "bm25"]
    command = [sys.executable, "-m", "polyad", *arguments]
    with subprocess.Popen(
        command, stdout=theirs, stderr=subprocess.PIPE, cwd=tmp_path, env=environment
    ) as other_process:
        other_process.wait()
    os.close(theirs)
    text = os.read(ours, 65536).decode()
    os.close(ours)
    assert server.requests[0].body["stream"] is True
    assert text.count("was cast by Ines Moreau in 1702 [1].") == 1
    assert "Sources:" in text


def test_a_search_prints_commands_of_a_code_block_line_by_line(tmp_path: Path, run: Run) -> None:
    commands = ["pump key add colleagues --scope write", "pump serve --host 0.0.0.0"]
    (tmp_path / "pump.md").write_text("# Pump\n\nA pump needs a key:\n\n```sh\n" + "\n".join(commands) + "\n```\n")
    run("index", str(tmp_path / "pump.md"), "--store", str(tmp_path / "kb"))
    printed = [line.strip() for line in run("search", "pump key", "--store", str(tmp_path / "kb")).stdout.splitlines()]
    assert [line for line in printed if line in commands] == commands


def test_grep_prints_lines_as_grep_does(run: Run, tmp_path: Path) -> None:
    with Engine.open(tmp_path / "kb", embedder="hashing:16") as engine:
        engine.index_documents([Document("a", "", "The bell\nof Tarn.\nEnd"), Document("b", "", "A tower")])
    assert run("grep", "Tarn|tower", "--store", "kb").stdout == "a:2:of Tarn.\nb:1:A tower\n"
    assert run("grep", "of", "-C", "1", "--store", "kb").stdout == "a-1-The bell\na:2:of Tarn.\na-3-End\n"
    assert run("grep", "bell of tarn", "-F", "-i", "--store", "kb").stdout == "a:1:The bell\na:2:of Tarn.\n"
    assert run("grep", "[Tt]", "-c", "--store", "kb").stdout == "a:2\nb:1\n"
    limited = run("grep", "[Tt]", "--limit", "2", "--store", "kb")
    assert limited.stdout.count("\n") == 2
    assert "2 of 3 lines in 2 documents; --cursor 2" in limited.stderr
    shape = json.loads(run("grep", "[Tt]", "--limit", "2", "--json", "--store", "kb").stdout)
    assert (shape["total"], shape["documents"], shape["counts"], shape["next_cursor"]) == (3, 2, {"a": 2}, 2)
    nothing = run("grep", "[0-9]", "--store", "kb")
    assert (nothing.stdout, nothing.exit_code) == ("", 0)
    assert "no line matches" in nothing.stderr
    failed = run("grep", "(a", "--store", "kb")
    assert failed.exit_code == 2
    assert "(a" in failed.stderr
