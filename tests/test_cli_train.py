"""``polyad train``, and what ``polyad eval`` makes of what was trained, on a small benchmark of made-up bells."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from polyad.adapters.hashing import HashingEmbedder
from polyad.cli import app
from polyad.evaluation.datasets import load
from polyad.evaluation.held_out import BESIDE
from polyad.evaluation.splits import Splits, splits_of
from polyad.retrieval.hyperretriever.triple_scorer import TripleScorer

Run = Callable[..., Result]

TOWERS = ["Tarn", "Oxley", "Brill", "Corven", "Saltby", "Marden", "Fenwick", "Hexley", "Durrow", "Ottery"]
MAKERS = ["Moreau", "Ferrand", "Keller", "Stone", "Bauer", "Lindqvist", "Okafor", "Petrov", "Silva", "Tanaka"]
VILLAGES = ["Aldby", "Wexcombe", "Thornley", "Ashwick", "Burleigh", "Cotham", "Dunmere", "Elsworth", "Farley", "Grenby"]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs a command in an empty folder, with an embedder that takes no model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("polyad.engine.registry.load_embedder", lambda *_: HashingEmbedder(32))

    def invoke(*arguments: str | Path) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return invoke


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The questions that each stage of training was given."""
    seen: dict[str, list[str]] = {}

    def spy(module: str, name: str, position: int) -> None:
        original = getattr(import_module(module), name)

        def called(*arguments: Any, **options: Any) -> Any:
            seen.setdefault(name, []).extend(query.text for query in arguments[position])
            return original(*arguments, **options)

        monkeypatch.setattr(f"{module}.{name}", called)

    spy("polyad.cli.train", "collect", 3)
    spy("polyad.cli.train", "held_out", 4)
    spy("polyad.evaluation.signal_training", "examples_of", 1)
    return seen


def write_benchmark(folder: Path) -> Path:
    """Ten bells, their makers, where these were born; a question on each."""
    (folder / "qrels").mkdir(parents=True)
    corpus, queries, qrels = [], [], ["query-id\tcorpus-id\tscore"]
    for number, (tower, maker, village) in enumerate(zip(TOWERS, MAKERS, VILLAGES, strict=True)):
        bell = f"Bell of {tower}"
        corpus += [
            {"_id": f"bell{number}", "title": bell, "text": f"The {bell} was cast by Ines {maker}."},
            {"_id": f"maker{number}", "title": f"Ines {maker}", "text": f"Ines {maker} was born in {village}."},
            {"_id": f"place{number}", "title": village, "text": f"{village} is a village near {tower}."},
        ]
        queries.append({"_id": f"q{number}", "text": f"Where was she born who cast the {bell}?"})
        qrels += [f"q{number}\tbell{number}\t1", f"q{number}\tmaker{number}\t1"]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)), encoding="utf-8")
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)), encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text("\n".join(qrels), encoding="utf-8")
    return folder


@pytest.fixture
def bells(tmp_path: Path) -> Path:
    return write_benchmark(tmp_path / "bells")


def result_of(found: Result, code: int = 0) -> Any:
    assert found.exit_code == code, found.output
    return json.loads(found.stdout)


def error_of(found: Result) -> str:
    assert (found.exit_code, found.stdout) == (2, ""), found.output
    return found.stderr


def texts(parts: Splits, *names: str) -> list[str]:
    return [query.text for name in names for query in getattr(parts, name)]


def trained(run: Run, folder: Path, *options: str) -> Result:
    return run("train", "hyperretriever", folder, "--to", "weights", "--store", "kept", "--json", *options)


# HyperRetriever


def test_each_stage_of_training_is_given_its_own_questions(run: Run, bells: Path, asked: dict[str, list[str]]) -> None:
    shape = result_of(trained(run, bells))
    parts = splits_of(load(bells))
    assert [len(part) for part in (parts.train, parts.validation, parts.test)] == [6, 2, 2]
    assert asked == {
        "collect": texts(parts, "train", "validation"),
        "examples_of": texts(parts, "train"),
        "held_out": texts(parts, "test"),
    }
    rows = {row["retriever"]: row for row in shape["held_out"]["bells"]}
    assert list(rows) == ["hyperretriever", "hyperretriever, untrained", *BESIDE, "default, trained alike"]
    assert all(row["latency_ms"]["p50"] > 0 for row in rows.values())
    assert TripleScorer.load(Path("weights/hyperretriever.safetensors")).recipe.trained_on == ("bells",)
    assert shape["training"]["datasets"] == ["bells"]


def test_a_limit_moves_no_question_to_another_part(run: Run, bells: Path, asked: dict[str, list[str]]) -> None:
    first = {query.text for query in load(bells).queries[:8]}
    whole = splits_of(load(bells))
    result_of(trained(run, bells, "--limit", "8"))
    assert set(asked["collect"]) == first & set(texts(whole, "train", "validation"))
    assert set(asked["examples_of"]) == first & set(texts(whole, "train"))
    assert set(asked["held_out"]) == first & set(texts(whole, "test"))


def test_a_part_without_questions_is_refused_before_anything_is_done(run: Run, bells: Path, tmp_path: Path) -> None:
    error = error_of(trained(run, bells, "--limit", "2"))
    assert "the questions of 'bells' are" in error
    assert "--limit" in error
    assert not (tmp_path / "kept").exists()
    assert not (tmp_path / "weights").exists()


# What holds for both


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_indexed(
    run: Run, bells: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    found = run("train", "default", bells, "--to", tmp_path / "file" / "weights", "--store", tmp_path / "kept")
    assert found.exit_code == 2
    assert "cannot write into" in found.stderr
    assert not (tmp_path / "kept").exists()


def test_training_the_default_scorer_writes_its_report(run: Run, bells: Path, tmp_path: Path) -> None:
    printed = json.loads(run("train", "default", bells, "--to", tmp_path / "weights", "--json").stdout)
    for name in ("weights", "weights_rewriting"):
        written = json.loads((tmp_path / "weights" / f"{name}.json").read_text(encoding="utf-8"))
        assert written == printed[f"{name}.tsv"]
        assert written["recall@5"]["bells"]["with_these_weights"] > 0


def test_how_a_scorer_is_fitted_can_be_said(run: Run, bells: Path, tmp_path: Path) -> None:
    options = ("--epochs", "2", "--batch", "8", "--rate", "0.01", "--device", "cpu", "--quiet")
    found = run("train", "hyperretriever", bells, "--to", tmp_path / "to", *options)
    assert found.exit_code == 0, found.output
    written = json.loads((tmp_path / "to" / "hyperretriever.json").read_text(encoding="utf-8"))
    assert len(written["epochs"]) == 2
    refused = run("train", "default", bells, "--epochs", "2")
    assert (refused.exit_code, "--epochs is for the training of hyperretriever" in refused.stderr) == (2, True)
    nowhere = run("train", "hyperretriever", bells, "--to", tmp_path / "to", "--device", "abacus")
    assert (nowhere.exit_code, "device is 'abacus', which torch cannot use" in nowhere.stderr) == (2, True)


def test_what_is_left_when_training_is_interrupted_is_said(
    run: Run, bells: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("polyad.evaluation.triple_training.train", interrupt)
    found = run("train", "hyperretriever", bells, "--to", tmp_path / "to", "--store", tmp_path / "kb", "--quiet")
    assert found.exit_code == 130
    assert "the documents indexed so far are kept if you gave --store; no weights were written" in found.stderr
    assert list((tmp_path / "kb").iterdir())
    assert not list((tmp_path / "to").iterdir())


def test_two_benchmarks_of_one_name_are_refused_before_anything_is_indexed(
    run: Run, bells: Path, tmp_path: Path
) -> None:
    other = write_benchmark(tmp_path / "other" / "bells")
    for scorer in ("default", "hyperretriever"):
        error = error_of(run("train", scorer, bells, other, "--store", "kept", "--json"))
        assert f"{str(bells)!r} and {str(other)!r} are both called 'bells'" in " ".join(error.split())
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize("scorer", ["default", "hyperretriever"])
def test_what_failed_to_index_is_said_and_is_the_exit_code_though_training_goes_on(
    run: Run, bells: Path, scorer: str
) -> None:
    with (bells / "corpus.jsonl").open("a", encoding="utf-8") as corpus:
        corpus.write("\nnot JSON\n")
    found = run("train", scorer, bells, "--to", "weights", "--json")
    assert found.exit_code == 1
    assert json.loads(found.stdout)
    assert "polyad: failed: " in found.stderr
    assert "corpus.jsonl:31: not JSON" in found.stderr
    assert list(Path("weights").iterdir())


def test_an_index_that_holds_other_documents_is_said(run: Run, bells: Path) -> None:
    Path("other.txt").write_text("Otters eat fish.", encoding="utf-8")
    assert run("index", "other.txt", "--store", "kept/bells").exit_code == 0
    found = run("train", "default", bells, "--to", "weights", "--store", "kept", "--json")
    assert "the index of bells also holds 1 other document," in found.stderr
    result_of(found)


# Measuring what was trained


def test_eval_says_how_many_questions_the_weights_may_know(run: Run, bells: Path) -> None:
    result_of(trained(run, bells))
    Path("polyad.toml").write_text(
        '[hyperretriever]\nweights = "weights/hyperretriever.safetensors"\n', encoding="utf-8"
    )

    def warned(*options: str) -> str:
        found = run("eval", bells, "--store", "kept/bells", "--retriever", "hyperretriever", "--json", *options)
        result_of(found)
        return found.stderr

    assert "8 of its questions may have been trained on; --split test leaves them out" in warned()
    assert "6 of its questions" in warned("--split", "train")
    assert "2 of its questions" in warned("--split", "validation")
    assert warned("--split", "test") == ""
    assert warned("--split", "test", "--limit", "1") == ""
    bells.rename("chimes")
    found = run("eval", "chimes", "--store", "kept/bells", "--retriever", "hyperretriever", "--json")
    assert "may have been trained on" not in found.stderr, "nothing was trained on a benchmark of that name"


def test_eval_of_a_part_asks_the_questions_of_that_part(run: Run, bells: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = splits_of(load(bells))
    found: list[str] = []
    original = HashingEmbedder.encode

    def encode(self: HashingEmbedder, texts: Sequence[str], kind: Any) -> Any:
        found.extend(texts if kind == "query" else ())
        return original(self, texts, kind)

    monkeypatch.setattr(HashingEmbedder, "encode", encode)
    for name in ("train", "validation", "test"):
        options = ("--retriever", "standard", "--split", name, "--store", "kept", "--json")
        assert result_of(run("eval", bells, *options))["queries"] == len(getattr(whole, name))
        assert sorted(found) == sorted(texts(whole, name))
        found.clear()
        result_of(run("eval", bells, *options, "--limit", "1"))
        assert len(found) == 1
        assert set(found) < set(texts(whole, name))
        found.clear()
