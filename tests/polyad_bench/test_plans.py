from __future__ import annotations

from pathlib import Path

import pytest

from polyad.engine.changes import change_settings
from polyad.engine.settings import Settings
from polyad.errors import ConfigurationError
from polyad.indexing.segmentation import SegmentationSettings
from polyad.retrieval.hyperretriever.settings import HyperRetrieverSettings
from polyad.retrieval.hypersu.settings import HyperSUSettings
from polyad_bench.runs.plans import ABLATIONS, Plan, Variant, build_grid, get_run_names, parse_sweep, read_plan


def plan_of(folder: Path, text: str) -> Plan:
    (folder / "plan.toml").write_text(text, encoding="utf-8")
    return read_plan(folder / "plan.toml")


WHOLE = """\
benchmarks = ["tarn", "more/isk"]
retrievers = ["hypersu"]
methods = ["semantic-units", "facts"]
k = 3
split = "test"
out = "runs"

[variants.shallow]
"hypersu.forward_depth" = 1

[sweep]
"hypersu.decay" = [0.3, 1]
"segmentation.method" = ["mdl", "window"]
"""


def test_a_plan_holds_variants_and_sweeps_with_each_method(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, WHOLE)
    assert plan.benchmarks == (tmp_path / "tarn", tmp_path / "more" / "isk")
    assert (plan.retrievers, plan.k, plan.split, plan.limit, plan.out) == (
        ("hypersu",),
        3,
        "test",
        None,
        tmp_path / "runs",
    )
    assert len(plan.variants) == 2 * (1 + 4)
    assert (plan.variants[0].name, plan.variants[0].method) == ("semantic-units, shallow", "semantic-units")
    assert plan.variants[9].name == "facts, hypersu.decay=1, segmentation.method=window"
    assert len(set(get_run_names(plan))) == 10


def test_settings_may_stand_without_quotes(tmp_path: Path) -> None:
    text = 'benchmarks = ["a"]\n[sweep]\nhypersu.decay = [0.5]\n[variants.x]\nhypersu.width = 7\n'
    assert [variant.settings for variant in plan_of(tmp_path, text).variants] == [
        {"hypersu.width": 7},
        {"hypersu.decay": 0.5},
    ]


def test_a_plan_of_benchmarks_alone_measures_everything_as_it_is_set(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, 'benchmarks = ["tarn"]')
    assert [variant.name for variant in plan.variants] == ["as set"]
    assert change_settings(Settings(), plan.variants[0].settings) == Settings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('retrievers = ["bm25"]', "line 1: benchmarks are missing"),
        ('benchmarks = ["a"]\nretreivers = ["bm25"]', "line 2: retreivers is no key of an experiment"),
        ('benchmarks = ["a"]\n\nk = "5"', "line 3: k is '5'; expected a value of type int"),
        ("benchmarks = []", "line 1: benchmarks is .*; expected a list of texts"),
        ('benchmarks = ["a"]\nsplit = "half"', "line 2: split is 'half'; expected one of all, train"),
        ('benchmarks = ["a"]\n[sweep]\n"hypersu.deacy" = [1]', "line 3: 'hypersu.deacy' is no setting"),
        ('benchmarks = ["a"]\n[sweep]\n"hypersu.decay" = 1', "line 3: hypersu.decay is 1; expected a list"),
        ('benchmarks = ["a"]\n[sweep]\n"hypersu.decay" = [2.0]', "line 3: in hypersu.decay: decay is 2.0"),
        ('benchmarks = ["a"]\n[variants.x]\n"hypersu.width" = 0.5', "line 3: hypersu.width is 0.5; expected a whole"),
        ('benchmarks = ["a"]\n[variants]\nx = 1', "line 3: the variant 'x' is 1"),
        ('benchmarks = ["a"]\nlimit = 0', "line 2: limit is 0; expected 1 or more"),
        ('benchmarks = ["a"]\nk = -1', "line 2: k is -1; expected 1 or more"),
        ('benchmarks = ["a"]\nseed = -1', "line 2: seed is -1; expected 0 or more"),
        ('benchmarks = ["a"]\nretrievers = ["bm52"]', "line 2: retrievers has 'bm52'; expected some of default"),
        ('benchmarks = ["a"]\nmethods = ["x"]', "line 2: methods has 'x'; expected some of semantic-units"),
        ('benchmarks = ["a"]\nanswering = ["x"]', "line 2: answering has 'x'; expected some of concise"),
        ('benchmarks = ["a"]\n[variants.x]\nhypersu.deacy = 1', "line 3: 'hypersu.deacy' is no setting"),
        ("benchmarks = [", "is not TOML"),
    ],
)
def test_errors_in_a_plan_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        plan_of(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hypersu.decay=0.3,1", ("hypersu.decay", [0.3, 1])),
        ("hypersu.use_remainder=true, false", ("hypersu.use_remainder", [True, False])),
        ("segmentation.method=mdl,window", ("segmentation.method", ["mdl", "window"])),
        ("segmentation.kappa=20", ("segmentation.kappa", [20])),
        ("seed=1,2", ("seed", [1, 2])),
        ("model=gpt-4o-mini,qwen3:8b", ("model", ["gpt-4o-mini", "qwen3:8b"])),
        ("method=facts", ("method", ["facts"])),
    ],
)
def test_values_to_sweep_are_read_as_toml_or_words(text: str, expected: object) -> None:
    assert parse_sweep(text) == expected


@pytest.mark.parametrize(
    "text", ["hypersu.decay", "hypersu.decay=", "hypersu.decay=0.3,,1", "decay=1", "x.y=1", "seed=a", "method=b"]
)
def test_a_sweep_without_values_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"sweeps nothing|is no setting|(seed|method) is '[ab]'; expected"):
        parse_sweep(text)


def test_changed_settings_are_checked_and_the_others_stay() -> None:
    changed = change_settings(Settings(), {"hypersu.decay": 1, "hypersu.width": 7, "segmentation.kappa": 20})
    assert (
        changed.hypersu.decay,
        changed.hypersu.width,
        changed.segmentation.kappa,
    ) == (1.0, 7, 20.0)
    assert isinstance(changed.hypersu.decay, float)
    assert changed.hypersu.anchors == HyperSUSettings().anchors
    with pytest.raises(ConfigurationError, match=r"hypersu.use_remainder is 1; expected true or false"):
        change_settings(Settings(), {"hypersu.use_remainder": 1})


def test_a_grid_has_every_combination() -> None:
    variants = build_grid({"hypersu.decay": [0.3, 0.5], "hypersu.use_remainder": [True, False]})
    assert [variant.name for variant in variants] == [
        f"hypersu.decay={decay}, hypersu.use_remainder={clues}" for decay in (0.3, 0.5) for clues in ("true", "false")
    ]


def test_a_grid_may_vary_models_beside_settings() -> None:
    (variant,) = build_grid({"method": ["facts"], "seed": [3], "hypersu.decay": [0.3]})
    assert variant == Variant(
        "method=facts, seed=3, hypersu.decay=0.3", {"hypersu.decay": 0.3}, "facts", "", {"seed": 3}
    )


@pytest.mark.parametrize("retriever", ABLATIONS)
def test_every_ablation_changes_something(retriever: str) -> None:
    first, *others = ABLATIONS[retriever]
    assert change_settings(Settings(), first.settings) == Settings()
    changed = [change_settings(Settings(), variant.settings) for variant in others]
    assert Settings() not in changed
    assert len({repr(settings) for settings in changed}) == len(others)


@pytest.mark.parametrize(("names", "message"), [(["a/b", "a_b"], "two variants"), ([".."], "a name that a folder")])
def test_names_that_are_no_folders_of_their_own_are_refused(names: list[str], message: str) -> None:
    plan = Plan(benchmarks=(Path("tarn"),), variants=tuple(Variant(name) for name in names))
    with pytest.raises(ConfigurationError, match=message):
        get_run_names(plan)


TUNED = Settings(
    hypersu=HyperSUSettings(max_clues=5, use_remainder=False, anchors=4),
    hyperretriever=HyperRetrieverSettings(decay=0.2, minimum_over="question"),
    segmentation=SegmentationSettings(method="window", window=4),
)


@pytest.mark.parametrize("name", ABLATIONS)
def test_a_method_that_was_tuned_can_be_measured_without_each_of_its_parts(name: str) -> None:
    for variant in ABLATIONS[name]:
        settings = change_settings(TUNED, variant.settings)
        for setting, value in variant.settings.items():
            section, _, key = setting.partition(".")
            assert getattr(getattr(settings, section), key) == value
    without = change_settings(TUNED, {"hypersu.max_clues": 0}).hypersu
    assert (without.use_remainder, without.anchors) == (True, 4), "a key without effect is reset to its default"
    with pytest.raises(ConfigurationError, match=r"use_remainder is False.*max_clues"):
        change_settings(TUNED, {"hypersu.max_clues": 0, "hypersu.use_remainder": False})


def test_an_ablation_without_answers_leaves_out_variants_of_answers() -> None:
    names = [variant.name for variant in ABLATIONS["hyperretriever"] if not variant.changes_only_answers]
    assert names[0] == "as set"
    assert "one hop" in names
    assert not any(name.startswith("answers") for name in names)


def test_a_system_is_a_retriever_on_the_construction_of_its_paper_or_of_another() -> None:
    name, values = parse_sweep("system=dense,hypersu,dense@hypergraphrag")
    assert name == "system"
    dense, hypersu, crossed = build_grid({name: values})
    assert (dense.retrievers, dense.method, dense.preset) == (("dense",), "semantic-units", "")
    assert (hypersu.retrievers, hypersu.settings["segmentation.method"]) == (("hypersu",), "mdl")
    assert (crossed.retrievers, crossed.method, crossed.settings["facts.style"]) == (("dense",), "facts", "paper")
    assert crossed.name == "system=dense@hypergraphrag"
    assert not {name for each in (hypersu, crossed) for name in each.settings if name.startswith("answer.")}
    for wrong in ("system=nobody", "system=dense@nobody", "system=a@b@c"):
        with pytest.raises(ConfigurationError, match="expected A or A@B"):
            parse_sweep(wrong)
