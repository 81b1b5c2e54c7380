"""Presets: which settings they are, and what goes before them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from polyad.cli import app
from polyad.config import AnswerSettings
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine, build_preset_settings
from polyad.engine.registry import methods, retrievers
from polyad.engine.settings import Settings
from polyad.errors import ConfigurationError
from polyad.model import Document
from polyad.presets import PRESETS
from polyad.protocols.components import Embedder
from polyad.retrieval.hyperretriever.settings import HyperRetrieverSettings
from polyad.retrieval.hypersu.settings import HyperSUSettings
from polyad_bench.runs.plans import read_plan
from polyad_bench.training.triple_examples import build_recipe

Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    return lambda *arguments, **environment: CliRunner().invoke(app, [*map(str, arguments)], env=environment)


def settings_of(result: Result) -> dict[str, tuple[object, str]]:
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["settings"]
    return {f"{row['section']}.{row['key']}".lstrip("."): (row["value"], row["origin"]) for row in rows}


@pytest.mark.parametrize("name", PRESETS)
def test_every_line_is_a_setting_with_the_place_it_is_from(name: str, run: Run) -> None:
    preset = PRESETS[name]
    outputs = settings_of(run("config", "--preset", name, "--json"))
    places = r"\b(section|appendix|table|figure|eqs?|definition|code)\b"
    for setting in preset.settings:
        assert re.search(places, setting.source, re.IGNORECASE), setting
        assert outputs[setting.name] == (setting.value, f"preset {name}: {setting.source}"), setting
    assert len({setting.name for setting in preset.settings}) == len(preset.settings), "each once"
    assert preset.method in methods
    assert preset.retriever in retrievers
    build_preset_settings(name)


def test_flags_environment_and_files_go_before_a_preset(run: Run) -> None:
    Path("polyad.toml").write_text('preset = "hypersu"\n[hypersu]\nwidth = 7\n', encoding="utf-8")
    outputs = settings_of(run("config", "--json", POLYAD_HYPERSU_DECAY="0.25", POLYAD_SEGMENTATION_KAPPA="0"))
    assert outputs["preset"] == ("hypersu", "polyad.toml")
    assert outputs["hypersu.width"] == (7, "polyad.toml")
    assert outputs["hypersu.decay"] == (0.25, "POLYAD_HYPERSU_DECAY")
    assert outputs["hypersu.anchors"] == (10, "preset hypersu: Table 10: dense seeds")
    assert settings_of(run("config", "--preset", "hypergraphrag", "--json"))["preset"] == ("hypergraphrag", "--preset")


def test_a_value_that_is_polyads_default_goes_before_a_preset_where_it_is_given(run: Run) -> None:
    outputs = settings_of(run("config", "--preset", "hypersu", "--json", POLYAD_SEGMENTATION_SEMANTICS="words"))
    assert outputs["segmentation.semantics"] == ("words", "POLYAD_SEGMENTATION_SEMANTICS")
    settings = build_preset_settings("hypersu", {"segmentation.semantics": "words"})
    assert settings.segmentation.semantics == "words"
    assert settings.segmentation.kappa == 75


@pytest.mark.parametrize("kind", ["entities", "hyperedges", "passages"])
def test_a_part_of_a_preset_is_left_out_by_one_setting(run: Run, kind: str) -> None:
    change = f"hypergraphrag.top_k_{kind}=0"
    rows = settings_of(run("--set", change, "config", "--preset", "hypergraphrag", "--json"))
    assert rows[f"hypergraphrag.top_k_{kind}"] == (0, "--set")
    threshold = {"entities": "entity", "hyperedges": "hyperedge", "passages": "passage"}[kind] + "_threshold"
    assert rows[f"hypergraphrag.{threshold}"] == (None, "default"), "the preset's threshold would do nothing"
    settings = build_preset_settings("hypergraphrag", {f"hypergraphrag.top_k_{kind}": 0})
    assert getattr(settings.hypergraphrag, threshold) is None
    refused = run("--set", change, "--set", f"hypergraphrag.{threshold}=0.4", "config", "--preset", "hypergraphrag")
    assert refused.exit_code == 2, "a value that the user sets is not dropped"


def test_presets_warn_of_what_their_paper_did_not_have(
    tmp_path: Path, embedder: Embedder, caplog: pytest.LogCaptureFixture
) -> None:
    with Engine.open(tmp_path / "kb", embedder=embedder) as engine:
        engine.index_documents([Document("bell", "Bell", "The Bell of Tarn was cast by Ines Moreau.")])
    expected = {
        "hypersu": "hypersu.activation_threshold = 0.5 of the preset is for BAAI/bge-large-en-v1.5",
        "hyperretriever": "the weights that come with polyad were trained by polyad's defaults",
    }
    for preset, message in expected.items():
        for settings in (Settings(), build_preset_settings(preset)):
            caplog.clear()
            with Engine.open(tmp_path / "kb", embedder=embedder, create=False, settings=settings) as engine:
                engine.search("Who cast the bell?", retriever=preset)
            assert (message in caplog.text) == bool(settings.preset)


def test_an_unknown_preset_is_refused_by_naming_those_there_are(run: Run, tmp_path: Path) -> None:
    result = run("config", "--preset", "hyper")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "preset is 'hyper'; expected one of hypergraphrag, hypersu, hyperretriever, hypermemory" in result.stderr
    with pytest.raises(ConfigurationError, match="preset is 'hyper'"):
        Engine.open(tmp_path / "kb", embedder="hashing:64", preset="hyper")
    assert not Engine.exists(tmp_path / "kb")
    with pytest.raises(ConfigurationError, match=r"'hypersu.depth' is no setting"):
        build_preset_settings("hypersu", {"hypersu.depth": 1})


def test_an_engine_of_a_preset_builds_and_searches_as_it_says(tmp_path: Path) -> None:
    other_settings = Settings(hypersu=HyperSUSettings(width=7), answer=AnswerSettings(max_answer_tokens=10))
    with Engine.open(tmp_path / "kb", embedder="hashing:64", preset="hypersu", settings=other_settings) as engine:
        settings = engine.components.settings
        assert settings.preset == "hypersu"
        assert settings.hypersu.width == 7
        assert settings.hypersu.activation_threshold == 0.5
        assert settings.answer.max_answer_tokens == 10
        report = engine.index_documents([Document("bell", "Bell of Tarn", "The Bell of Tarn hangs in Aldby.")])
        assert report.method == "semantic-units"
        assert engine.search("Where is the Bell of Tarn?").retriever == "hypersu"
        assert engine.search("Where is the Bell of Tarn?", retriever="bm25").retriever == "bm25"
    with Engine.open(tmp_path / "kb", settings=build_preset_settings("hypersu")) as engine:
        assert engine.search("Where is the Bell of Tarn?").retriever == "hypersu"


def test_a_preset_of_facts_asks_for_a_model_and_leaves_an_index_of_units_as_it_is(run: Run) -> None:
    Path("a.txt").write_text("The Bell of Tarn hangs in Aldby.", encoding="utf-8")
    refused = run("index", "a.txt", "--store", "kb", "--preset", "hypergraphrag", "--embedder", "hashing:64")
    assert refused.exit_code == 2
    assert "the method 'facts'" in refused.stderr
    assert not Path("kb").exists()
    made = run("index", "a.txt", "--store", "kb", "--embedder", "hashing:64", "--json")
    assert json.loads(made.stdout)["method"] == "semantic-units"
    again = run("index", "a.txt", "--store", "kb", "--preset", "hypergraphrag", "--json")
    assert (again.exit_code, json.loads(again.stdout)["method"]) == (0, "semantic-units"), again.output


def test_an_experiment_measures_presets_beside_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_text('benchmarks = ["b"]\npresets = ["", "hypersu"]\n', encoding="utf-8")
    plan = read_plan(file)
    assert [(variant.name, variant.preset) for variant in plan.variants] == [
        ("none, as set", ""),
        ("hypersu, as set", "hypersu"),
    ]
    file.write_text('benchmarks = ["b"]\npresets = ["hyper"]\n', encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"line 2: presets has 'hyper'; expected some of hypergraphrag"):
        read_plan(file)


def test_the_inputs_of_the_triple_scorer_by_preset_are_equation_9() -> None:
    settings = build_preset_settings("hyperretriever")
    recipe = build_recipe(settings.hyperretriever, HashingEmbedder(64), settings.hyperretriever_training)
    encodings = 2 * (1 + 3 + 3)  # of head and tail, three rounds in each direction: eqs. 5 to 8
    assert recipe.width == 4 * 64 + encodings, "q, h, f and t, and nothing beside the encodings"
    assert (recipe.starts, recipe.directions, recipe.closeness) == ("heads", "separate", False)
    code = build_preset_settings(
        "hyperretriever",
        {"hyperretriever_training.directions": "mixed", "hyperretriever_training.distance_starts": "topics"},
    )
    by_code = build_recipe(HyperRetrieverSettings(), HashingEmbedder(64), code.hyperretriever_training)
    assert (by_code.starts, by_code.extra_count) == ("topics", 2 * (1 + 2 + 4 + 8)), "the public code"


def test_thresholds_of_hypergraphrag_by_preset_are_the_papers_for_every_embedder() -> None:
    selection = build_preset_settings("hypergraphrag").hypergraphrag
    assert (selection.entity_threshold, selection.hyperedge_threshold, selection.passage_threshold) == (50, 5, 0.5)
