from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import ir_measures
import pytest

from polyad.config import LanguageModelSettings, RerankerSettings
from polyad.engine.registry import get_settings_by_section
from polyad.engine.settings import Settings
from polyad.errors import ConfigurationError
from polyad.model import Evidence, Passage, ScoredPassage, Timings
from polyad_bench.answers.records import ANSWERS, AnswerRecord
from polyad_bench.datasets.beir import Dataset, Question
from polyad_bench.files import RecordFile
from polyad_bench.runs.manifest import build_manifest, settings_to_json
from polyad_bench.runs.records import QuestionRecord, RankedPassage, find_missing_questions
from polyad_bench.runs.retriever_evaluation import ask_questions
from polyad_bench.runs.run_folder import PER_QUERY, RESULTS, TREC, Run, RunWriter, load_run, write_derived_files

QUERIES = (
    Question("q 1", "Who cast the bell?", frozenset({"a", "b c"}), ("Ines",)),
    Question("q2", "Où?", frozenset({"x%"})),
    Question("q3", "When?", frozenset({"a"})),
)


def search(question: str, k: int) -> Evidence:
    documents = ["a", "b c", "x%", "a"] if question != "When?" else ["x%", "b c"]
    passages = tuple(
        ScoredPassage(Passage(f"{id}#{place}", id, f"Title of {id}", f"{question} {id}", 0, 9), 0.5)
        for place, id in enumerate(documents)
    )
    return Evidence(question, "scripted", passages, timings=Timings(1 / 3, len(question) / 7))


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    folder = tmp_path / "tarn"
    (folder / "qrels").mkdir(parents=True)
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        (folder / name).write_text(name)
    return Dataset("tarn", folder / "corpus.jsonl", QUERIES)


@pytest.fixture
def manifest(dataset: Dataset) -> dict[str, Any]:
    return build_manifest(dataset, ["scripted"], 2, get_settings_by_section(Settings()), seed=0)


def measured(folder: Path, manifest: dict[str, Any], names: tuple[str, ...] = ("scripted",)) -> Run:
    with RunWriter(folder, {**manifest, "retrievers": list(names)}) as writer:
        writer.write_index_cost({"seconds": 1.5})
        for name in names:
            missing = find_missing_questions(writer.by_key, name, QUERIES)
            if missing:
                for record, evidence in ask_questions(name, search, missing, 2):
                    writer.add_record(record, evidence)
    run = load_run(folder)
    write_derived_files(run)
    return run


def test_a_run_is_read_as_it_was_measured(tmp_path: Path, manifest: dict[str, Any]) -> None:
    run = measured(tmp_path / "run", manifest)
    first = run.records["scripted"][0]
    assert first.query == QUERIES[0]
    assert first.documents == ["a", "b c", "x%"]
    assert (first.encode_ms, first.retrieve_ms) == (1 / 3, 18 / 7)
    assert [result.recall for result in run.compute_results()] == [pytest.approx((1 + 0 + 0) / 3)]
    assert (run.dataset, run.k, run.question_count, run.index) == ("tarn", 2, 3, {"seconds": 1.5})
    assert run.read_passages()["b c#1"].text == "Who cast the bell? b c"
    assert json.loads((tmp_path / "run" / "cost.json").read_text())["search"]["scripted"]["questions"] == 3


def test_derived_files_are_rewritten_identically(tmp_path: Path, manifest: dict[str, Any]) -> None:
    folder = measured(tmp_path / "run", manifest).folder
    remaining = {name: (folder / name).read_bytes() for name in (TREC, RESULTS, "cost.json")}
    for name in (TREC, RESULTS):
        (folder / name).unlink()
    write_derived_files(load_run(folder))
    assert {name: (folder / name).read_bytes() for name in remaining} == remaining


@pytest.mark.parametrize("torn", [0, 1, 200, -2, -1])
def test_a_question_that_was_being_written_is_asked_again(tmp_path: Path, manifest: dict[str, Any], torn: int) -> None:
    whole = measured(tmp_path / "run", manifest)
    file = tmp_path / "run" / PER_QUERY
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:2]) + lines[2][:torn])
    with pytest.raises(ConfigurationError, match="lacks 1 of 3 questions put to scripted, such as 'q3'"):
        load_run(tmp_path / "run")
    assert measured(tmp_path / "run", manifest).to_json() == whole.to_json()
    assert len(file.read_bytes().splitlines()) == 3


def test_a_retriever_may_be_added_and_nothing_is_asked_twice(tmp_path: Path, manifest: dict[str, Any]) -> None:
    measured(tmp_path / "run", manifest)
    run = measured(tmp_path / "run", manifest, ("other",))
    assert list(run.records) == ["scripted", "other"]
    assert len((tmp_path / "run" / PER_QUERY).read_text().splitlines()) == 6


def test_the_rankings_are_what_trec_eval_reads(tmp_path: Path, manifest: dict[str, Any]) -> None:
    run = measured(tmp_path / "run", manifest)
    read: Any = ir_measures.read_trec_run
    lines = list(read(str(run.folder / TREC)))
    assert [(line.query_id, line.doc_id) for line in lines[:3]] == [
        ("q%201", "a"),
        ("q%201", "b%20c"),
        ("q%201", "x%25"),
    ]
    qrels = [ir_measures.Qrel(*pair, 1) for pair in (("q%201", "a"), ("q%201", "b%20c"), ("q2", "x%25"), ("q3", "a"))]
    theirs = ir_measures.calc_aggregate([ir_measures.R @ 2, ir_measures.nDCG @ 2], qrels, lines)
    (ours,) = run.compute_results()
    assert [ours.recall, ours.ndcg] == pytest.approx(
        [theirs[ir_measures.R @ 2], theirs[ir_measures.nDCG @ 2]], abs=1e-4
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda manifest: manifest | {"k": 3}, "a run with k = 2, not 3; give another --out"),
        (lambda manifest: manifest | {"settings": None}, "settings = {.*, not null; give another"),
        (lambda manifest: manifest | {"versions": {"polyad": "0"}}, "versions.numpy = .*, not null"),
        (lambda manifest: manifest | {"dataset": {**manifest["dataset"], "digest": "0"}}, "dataset.digest = "),
    ],
)
def test_another_run_is_kept_apart(
    tmp_path: Path, manifest: dict[str, Any], change: Callable[[dict[str, Any]], dict[str, Any]], message: str
) -> None:
    measured(tmp_path / "run", manifest)
    before = (tmp_path / "run" / PER_QUERY).read_bytes()
    with pytest.raises(ConfigurationError, match=message):
        RunWriter(tmp_path / "run", change(manifest))
    assert (tmp_path / "run" / PER_QUERY).read_bytes() == before


def test_two_processes_do_not_write_into_one_run(tmp_path: Path, manifest: dict[str, Any]) -> None:
    with (
        RunWriter(tmp_path / "run", manifest),
        pytest.raises(ConfigurationError),
    ):
        RunWriter(tmp_path / "run", manifest)


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path, manifest: dict[str, Any]) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigurationError, match=r"holds 'notes.txt' and is no run"):
        RunWriter(tmp_path, manifest)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", "tarn"]


@pytest.mark.parametrize(
    ("line", "message"), [("{}", "line 2: .*is no QuestionRecord"), ("[", "line 2: .* is no JSON"), ("[]", "an object")]
)
def test_a_damaged_line_is_named(tmp_path: Path, manifest: dict[str, Any], line: str, message: str) -> None:
    measured(tmp_path / "run", manifest)
    file = tmp_path / "run" / PER_QUERY
    lines = file.read_text().splitlines()
    lines[1] = line
    file.write_text("\n".join(lines) + "\n")
    with pytest.raises(ConfigurationError, match=message):
        load_run(tmp_path / "run")


def test_the_manifest_holds_no_key(dataset: Dataset) -> None:
    secret = LanguageModelSettings(model="m", base_url="https://me:pass@host/v1", api_key="sk-very-secret")
    stages = {"reranker": RerankerSettings(api_key="another")}
    written = json.dumps(build_manifest(dataset, ["bm25"], 5, {"stages": stages, "language_model": secret}))
    assert "very-secret" not in written
    assert "another" not in written
    assert "pass@" not in written
    assert "https://host/v1" in written


def test_the_manifest_says_what_ran_where(manifest: dict[str, Any]) -> None:
    assert {"polyad", "python", "numpy"} <= manifest["versions"].keys()
    assert manifest["machine"]["cores"] >= 1
    assert manifest["settings"]["hypersu"]["decay"] == 0.5
    assert len(manifest["dataset"]["digest"]) == 64


def test_passages_count_within_a_budget_of_words_until_one_does_not_fit() -> None:
    passages = tuple(RankedPassage(f"{id}#0", id, 1.0, words) for id, words in (("a", 40), ("b", 70), ("c", 10)))
    record = QuestionRecord("scripted", QUERIES[0], passages)
    assert [record.get_documents_within(budget) for budget in (39, 40, 109, 110, 120)] == [
        [],
        ["a"],
        ["a"],
        ["a", "b"],
        ["a", "b", "c"],
    ]


def test_counted_words_end_before_the_next_document() -> None:
    results = (("a", 40), ("b", 70), ("a", 5), ("c", 10), ("b", 3))
    record = QuestionRecord(
        "scripted", QUERIES[0], tuple(RankedPassage(f"{id}#{words}", id, 1.0, words) for id, words in results)
    )
    assert [record.count_words_to_read(k) for k in (1, 2, 3, 4)] == [40, 115, 128, 128]


MODEL = LanguageModelSettings(model="qwen", base_url="http://localhost:1/v1")


def with_model(manifest: dict[str, Any], **changes: Any) -> dict[str, Any]:
    model = settings_to_json(replace(MODEL, **changes))
    return {**manifest, "settings": {"stages": manifest["settings"], "language_model": model}}


def test_a_run_that_was_stopped_before_its_first_question_may_be_of_anything(
    tmp_path: Path, manifest: dict[str, Any]
) -> None:
    with RunWriter(tmp_path / "run", {**manifest, "commit": "old"}) as writer:
        writer.write_index_cost({"seconds": 9.0})
    run = measured(tmp_path / "run", manifest)
    assert (run.manifest["commit"], run.index) == (manifest["commit"], {"seconds": 1.5})


def test_the_language_model_may_be_another_one_as_long_as_it_has_replied_nothing(
    tmp_path: Path, manifest: dict[str, Any]
) -> None:
    folder = tmp_path / "run"
    measured(folder, with_model(manifest))
    RunWriter(folder, with_model(manifest, base_url="http://localhost:2/v1")).close()
    with RecordFile(folder / ANSWERS, AnswerRecord) as file:
        file.append(AnswerRecord("scripted", "q2", "Là."))
    RunWriter(folder, with_model(manifest, base_url="http://localhost:2/v1", concurrency=1, timeout=9.0)).close()
    with pytest.raises(ConfigurationError, match=r"language_model.model = \"qwen\", not \"gemma\""):
        RunWriter(folder, with_model(manifest, base_url="http://localhost:2/v1", model="gemma"))


def test_the_code_that_asked_stays_the_same(tmp_path: Path, manifest: dict[str, Any]) -> None:
    measured(tmp_path / "run", manifest)
    with pytest.raises(ConfigurationError):
        RunWriter(tmp_path / "run", {**manifest, "commit": "another"})
