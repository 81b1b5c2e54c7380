"""``polyad bench train``, and what ``polyad eval`` makes of what was trained, on a small benchmark of made-up bells."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from polyad.cli import app
from polyad.embedders.hashing import HashingEmbedder
from polyad.presets import PRESETS
from polyad.retrieval.default.scorer import LinearScorer
from polyad.retrieval.hyperretriever.settings import HyperRetrieverSettings, HyperRetrieverTraining
from polyad.retrieval.hyperretriever.triple_scorer import BUNDLED_FOR, TripleScorer
from polyad.text.digests import hash_question
from polyad_bench.datasets.beir import Question, load_beir
from polyad_bench.datasets.selection import TRAINING, VALIDATION, Splits, split_dataset, split_questions
from polyad_bench.training.triple_examples import TripleExamples, collect_triples
from polyad_bench.training.triple_scorer import UNTRAINED_RETRIEVERS

pytestmark = pytest.mark.usefixtures("empty_figures")

Run = Callable[..., Result]

FEW_EPOCHS = ("--set", "hyperretriever_training.epochs=3")

MANUALS = Path(__file__).parents[2] / "benchmarks" / "manuals"

TOWERS = ["Tarn", "Oxley", "Brill", "Corven", "Saltby", "Marden", "Fenwick", "Hexley", "Durrow", "Ottery"]
MAKERS = ["Moreau", "Ferrand", "Keller", "Stone", "Bauer", "Lindqvist", "Okafor", "Petrov", "Silva", "Tanaka"]
VILLAGES = ["Aldby", "Wexcombe", "Thornley", "Ashwick", "Burleigh", "Cotham", "Dunmere", "Elsworth", "Farley", "Grenby"]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs a command in an empty folder, with an embedder that takes no model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("polyad.engine.loaders.load_embedder", lambda *_: HashingEmbedder(32))

    def invoke(*arguments: str | Path) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return invoke


@pytest.fixture
def training_questions(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The questions that each stage of training was given."""
    seen: dict[str, list[str]] = {}

    def spy(module: str, name: str, position: int) -> None:
        original = getattr(import_module(module), name)

        def called(*arguments: Any, **options: Any) -> Any:
            seen.setdefault(name, []).extend(query.text for query in arguments[position])
            return original(*arguments, **options)

        monkeypatch.setattr(f"{module}.{name}", called)

    spy("polyad_bench.commands.train", "collect_triples", 3)
    spy("polyad_bench.commands.train", "evaluate_held_out", 4)
    spy("polyad_bench.training.linear_scorer", "build_examples", 1)
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


def result_of(result: Result, code: int = 0) -> Any:
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def error_of(result: Result) -> str:
    assert result.exit_code == 2, result.output
    assert not result.stdout or set(json.loads(result.stdout)) == {"schema", "error"}
    return result.stderr


def texts(parts: Splits, *names: str) -> list[str]:
    return [query.text for name in names for query in getattr(parts, name)]


def trained(run: Run, folder: Path, *options: str, changes: tuple[str, ...] = FEW_EPOCHS) -> Result:
    return run(
        *changes, "bench", "train", "hyperretriever", folder, "--to", "weights", "--store", "kept", "--json", *options
    )


# HyperRetriever


def test_each_stage_of_training_is_given_its_own_questions(
    run: Run, bells: Path, training_questions: dict[str, list[str]]
) -> None:
    shape = result_of(trained(run, bells))
    parts = split_dataset(load_beir(bells))
    assert [len(part) for part in (parts.train, parts.validation, parts.test)] == [6, 2, 2]
    assert training_questions == {
        "collect_triples": texts(parts, "train", "validation"),
        "build_examples": texts(parts, "train"),
        "evaluate_held_out": texts(parts, "test"),
    }
    rows = {row["retriever"]: row for row in shape["held_out"]["bells"]}
    assert list(rows) == [
        "hyperretriever",
        "hyperretriever, untrained",
        *UNTRAINED_RETRIEVERS,
        "default, trained alike",
    ]
    assert all(row["latency_ms"]["p50"] > 0 for row in rows.values())
    assert TripleScorer.load(Path("weights/hyperretriever.safetensors")).recipe.trained_on == ("bells",)
    assert shape["training"]["datasets"] == ["bells"]


def test_a_limit_moves_no_question_to_another_part(
    run: Run, bells: Path, training_questions: dict[str, list[str]]
) -> None:
    first = {query.text for query in load_beir(bells).queries[:8]}
    whole = split_dataset(load_beir(bells))
    result_of(trained(run, bells, "--limit", "8"))
    assert set(training_questions["collect_triples"]) == first & set(texts(whole, "train", "validation"))
    assert set(training_questions["build_examples"]) == first & set(texts(whole, "train"))
    assert set(training_questions["evaluate_held_out"]) == first & set(texts(whole, "test"))


def test_a_part_without_questions_is_refused_before_anything_is_done(run: Run, bells: Path, tmp_path: Path) -> None:
    error = error_of(trained(run, bells, "--limit", "2"))
    assert "the questions of 'bells' are" in error
    assert "--limit" in error
    assert not (tmp_path / "kept").exists()
    assert not (tmp_path / "weights").exists()


def test_a_preset_is_trained_as_it_searches(run: Run, bells: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    walked: list[dict[str, Any]] = []

    def spied(*arguments: Any, **options: Any) -> TripleExamples:
        walked.append(options)
        return collect_triples(*arguments, **options)

    monkeypatch.setattr("polyad_bench.commands.train.collect_triples", spied)
    preset = ("--preset", "hyperretriever", "--method", "semantic-units")
    shape = result_of(trained(run, bells, *preset, changes=("--set", "hyperretriever_training.epochs=2")))
    searching, learning = HyperRetrieverSettings(**of_preset("hyperretriever")), of_preset("hyperretriever_training")
    for options in walked:
        assert options["settings"] == searching
        assert options["training_settings"] == HyperRetrieverTraining(**learning, epochs=2)
        assert options["names"] == "found"
    assert searching.depth == 0, "until no new triples are plausible"
    assert shape["training"]["train_triples"] > 2 * shape["training"]["train_positives"], "most that it meets are wrong"
    recipe = TripleScorer.load(Path("weights/hyperretriever.safetensors")).recipe
    assert (recipe.rounds, recipe.directions, recipe.closeness) == (3, "separate", False)
    weights = ("--retriever", "hyperretriever", "--split", "unseen", "--store", "kept", "--json")
    use_trained("hyperretriever", "hyperretriever.safetensors")
    assert result_of(run("eval", bells, *preset, *weights))["queries"] == 2


def test_the_variant_of_the_public_code_is_stated_by_its_weights(run: Run, bells: Path) -> None:
    preset = ("--preset", "hyperretriever", "--method", "semantic-units")
    one_epoch = ("--set", "hyperretriever_training.epochs=1")
    shape = result_of(trained(run, bells, *preset, "--variant", "code", changes=one_epoch))
    recipe = TripleScorer.load(Path("weights/hyperretriever.safetensors")).recipe
    assert (recipe.starts, recipe.directions) == ("topics", "mixed")
    assert shape["training"]["train_triples"] <= 2 * shape["training"]["train_positives"]


def of_preset(section: str) -> dict[str, Any]:
    settings = PRESETS["hyperretriever"].settings
    return {setting.place[1]: setting.value for setting in settings if setting.place[0] == section}


# What holds for both


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_indexed(
    run: Run, bells: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    result = run(
        "bench", "train", "default", bells, "--to", tmp_path / "file" / "weights", "--store", tmp_path / "kept"
    )
    assert result.exit_code == 2
    assert "cannot write into" in result.stderr
    assert not (tmp_path / "kept").exists()


def test_training_the_default_scorer_writes_its_report(run: Run, bells: Path, tmp_path: Path) -> None:
    printed = json.loads(run("bench", "train", "default", bells, "--to", tmp_path / "weights", "--json").stdout)
    written = json.loads((tmp_path / "weights" / "weights.json").read_text(encoding="utf-8"))
    assert printed["weights.tsv"] == written
    assert written["recall@5"]["bells"]["with_these_weights"] > 0
    assert LinearScorer.load(tmp_path / "weights" / "weights.tsv").network is None, "too few questions"


def test_options_set_how_a_scorer_is_fitted(run: Run, bells: Path, tmp_path: Path) -> None:
    options = ("--epochs", "2", "--batch", "8", "--rate", "0.01", "--device", "cpu", "--quiet")
    result = run("bench", "train", "hyperretriever", bells, "--to", tmp_path / "to", *options)
    assert result.exit_code == 0, result.output
    written = json.loads((tmp_path / "to" / "hyperretriever.json").read_text(encoding="utf-8"))
    assert len(written["epochs"]) == 2
    refused = run("bench", "train", "default", bells, "--epochs", "2")
    assert (refused.exit_code, "--epochs is for the training of hyperretriever" in refused.stderr) == (2, True)


def test_the_fit_of_a_scorer_is_a_setting(run: Run, bells: Path, tmp_path: Path) -> None:
    values = {"epochs": "2", "batch": "8", "rate": "0.01", "device": "cpu"}
    changes = [part for name, value in values.items() for part in ("--set", f"hyperretriever_training.{name}={value}")]
    result = run(*changes, "bench", "train", "hyperretriever", bells, "--to", tmp_path / "to", "--quiet")
    assert result.exit_code == 0, result.output
    written = json.loads((tmp_path / "to" / "hyperretriever.json").read_text(encoding="utf-8"))
    assert len(written["epochs"]) == 2
    other = ("--set", "hyperretriever_training.device=abacus")
    nowhere = run(*other, "bench", "train", "hyperretriever", bells, "--to", tmp_path / "to")
    assert (nowhere.exit_code, "device is 'abacus'; expected auto, or a device" in nowhere.stderr) == (2, True)


@pytest.mark.parametrize(
    ("interrupted", "written"),
    [
        ("polyad_bench.training.triple_scorer.train_triple_scorer", False),
        ("polyad_bench.commands.train.evaluate_held_out", True),
    ],
)
def test_interrupted_training_states_what_remains(
    run: Run, bells: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupted: str, written: bool
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(interrupted, interrupt)
    options = ("--to", tmp_path / "to", "--store", tmp_path / "kb", "--quiet")
    result = run("--set", "hyperretriever_training.epochs=1", "bench", "train", "hyperretriever", bells, *options)
    assert result.exit_code == 130
    assert "the documents indexed so far are stored if you gave --store" in result.stderr
    assert "no weights" not in result.stderr
    assert list((tmp_path / "kb").iterdir())
    assert (tmp_path / "to" / "hyperretriever.safetensors").exists() is written


def test_two_benchmarks_of_one_name_are_refused_before_anything_is_indexed(
    run: Run, bells: Path, tmp_path: Path
) -> None:
    other = write_benchmark(tmp_path / "other" / "bells")
    for scorer in ("default", "hyperretriever"):
        error = error_of(run("bench", "train", scorer, bells, other, "--store", "kept", "--json"))
        assert f"{str(bells)!r} and {str(other)!r} are both called 'bells'" in " ".join(error.split())
    assert not (tmp_path / "kept").exists()


def test_training_uses_the_index_that_an_evaluation_left(run: Run, bells: Path, tmp_path: Path) -> None:
    other = write_benchmark(tmp_path / "towers")
    assert run("eval", bells, "--retriever", "bm25", "--store", "kb", "--json").exit_code == 0
    before = sorted(path.name for path in (tmp_path / "kb").rglob("*") if path.is_dir())
    one = run("bench", "train", "default", bells, other, "--to", "weights", "--store", "kb", "--json")
    assert (
        "--store names 1 directory for 2 benchmarks; expected one for each of bells, towers, in this order"
        in error_of(one)
    )
    assert not (tmp_path / "weights").exists()
    stores = ("--store", "kb", "--store", "towers-kb")
    result_of(run("bench", "train", "default", bells, other, "--to", "weights", *stores, "--json"))
    assert sorted(path.name for path in (tmp_path / "kb").rglob("*") if path.is_dir()) == before
    assert (tmp_path / "towers-kb" / "index.sqlite").exists()


@pytest.mark.parametrize("scorer", ["default", "hyperretriever"])
def test_failed_documents_set_the_exit_code_of_training(run: Run, bells: Path, scorer: str) -> None:
    with (bells / "corpus.jsonl").open("a", encoding="utf-8") as corpus:
        corpus.write("\nnot JSON\n")
    result = run(*FEW_EPOCHS, "bench", "train", scorer, bells, "--to", "weights", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)
    assert "polyad: failed: " in result.stderr
    assert "corpus.jsonl:31: not JSON" in result.stderr
    assert list(Path("weights").iterdir())


def test_an_index_that_holds_other_documents_is_said(run: Run, bells: Path) -> None:
    Path("other.txt").write_text("Otters eat fish.", encoding="utf-8")
    assert run("index", "other.txt", "--store", "kept").exit_code == 0
    result = run("bench", "train", "default", bells, "--to", "weights", "--store", "kept", "--json")
    assert "the index of bells also contains 1 other document," in result.stderr
    result_of(result)


# Measuring what was trained


def use_trained(scorer: str, file: str) -> None:
    Path("polyad.toml").write_text(f'[{scorer}]\nweights = "weights/{file}"\n', encoding="utf-8")


def reword(folder: Path, *numbers: int) -> None:
    """Change the text of some questions, and nothing else."""
    lines = (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    for number in numbers:
        lines[number] = lines[number].replace("Where was she born", "In which village was she born")
    (folder / "queries.jsonl").write_text("\n".join(lines), encoding="utf-8")


def warned(run: Run, folder: Path, scorer: str, *options: str) -> str:
    result = run("eval", folder, "--retriever", scorer, "--json", *options)
    result_of(result)
    return result.stderr


def test_eval_says_how_many_questions_were_trained_on_by_their_texts(run: Run, bells: Path) -> None:
    result_of(trained(run, bells))
    use_trained("hyperretriever", "hyperretriever.safetensors")
    seen = (*split_dataset(load_beir(bells)).train, *split_dataset(load_beir(bells)).validation)
    assert len(seen) == 8
    assert "hyperretriever were trained on 8 of 10 questions" in warned(run, bells, "hyperretriever")
    assert "trained on 6 of 6 questions" in warned(run, bells, "hyperretriever", "--split", "train")
    assert "trained on 2 of 2 questions" in warned(run, bells, "hyperretriever", "--split", "validation")
    assert warned(run, bells, "hyperretriever", "--split", "test") == ""
    assert warned(run, bells, "hyperretriever", "--split", "unseen") == ""
    chimes = bells.rename("chimes")
    assert "trained on 8 of 10 questions" in warned(run, chimes, "hyperretriever"), "a name tells nothing"
    reword(chimes, int(seen[0].id[1:]))
    assert "trained on 7 of 10 questions" in warned(run, chimes, "hyperretriever")
    reword(chimes, *range(10))
    others = chimes.rename("bells")
    assert warned(run, others, "hyperretriever") == ""


def test_eval_says_it_of_the_default_retriever_too(run: Run, bells: Path) -> None:
    assert run("bench", "train", "default", bells, "--to", "weights", "--limit", "4", "--quiet").exit_code == 0
    use_trained("default", "weights.tsv")
    assert "the weights of default were trained on 4 of 10 questions" in warned(run, bells, "default")
    result = run("eval", bells, "--retriever", "default", "--json", "--split", "unseen")
    assert (result_of(result)["queries"], result.stderr) == (6, "")
    reword(bells, 0)
    assert "trained on 3 of 10 questions" in warned(run, bells, "default")
    assert warned(run, bells, "bm25") == ""


def test_the_weights_that_come_with_polyad_know_the_questions_they_saw() -> None:
    triples, linear = (
        TripleScorer.load_bundled(BUNDLED_FOR, signals=False),
        LinearScorer.from_settings(""),
    )
    assert len(triples.recipe.questions) == 1836
    assert TripleScorer.load_bundled(BUNDLED_FOR, signals=True).recipe.questions == triples.recipe.questions
    lines = (MANUALS / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    training, validation, test = split_questions(Question("", json.loads(line)["text"], frozenset()) for line in lines)
    digests = {*linear.question_digests, *triples.recipe.questions}
    assert {hash_question(question.text) for question in (*training, *validation)} <= digests
    assert test
    assert digests.isdisjoint(hash_question(question.text) for question in test)
    assert all(int(digest, 16) / 2**64 < TRAINING + VALIDATION for digest in triples.recipe.questions), (
        "of no test split"
    )


def forget(folder: str) -> None:
    """Make files of weights as earlier versions wrote them: without digests of questions."""
    from safetensors.numpy import load_file, save

    path = Path(folder) / "hyperretriever.safetensors"
    recipe = asdict(TripleScorer.load(path).recipe)
    del recipe["questions"]
    path.write_bytes(save(load_file(path), {"recipe": json.dumps(recipe)}))
    path = Path(folder) / "weights.tsv"
    lines = path.read_text(encoding="utf-8").splitlines()
    remaining = [line for line in lines if not line.startswith("# questions: ")]
    assert len(remaining) < len(lines)
    path.write_text("\n".join(remaining), encoding="utf-8")


def test_eval_of_a_part_asks_the_questions_of_that_part(run: Run, bells: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = split_dataset(load_beir(bells))
    results: list[str] = []
    original = HashingEmbedder.encode

    def encode(self: HashingEmbedder, texts: Sequence[str], kind: Any) -> Any:
        results.extend(texts if kind == "query" else ())
        return original(self, texts, kind)

    monkeypatch.setattr(HashingEmbedder, "encode", encode)
    for name in ("train", "validation", "test"):
        options = ("--retriever", "dense", "--split", name, "--store", "kept", "--json")
        assert result_of(run("eval", bells, *options))["queries"] == len(getattr(whole, name))
        assert sorted(results) == sorted(texts(whole, name))
        results.clear()
        result_of(run("eval", bells, *options, "--limit", "1"))
        assert len(results) == 1
        assert set(results) < set(texts(whole, name))
        results.clear()
