from __future__ import annotations

import json
import warnings
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from polyad.errors import ConfigurationError
from polyad.hypergraph.distance import Triples
from polyad.model import FloatArray
from polyad.retrieval.default.signals import SIGNAL_NAMES
from polyad.retrieval.hyperretriever.triple_scorer import (
    BUNDLED_FOR,
    Recipe,
    TripleScorer,
    get_weights_file_name,
)

RECIPE = Recipe(embedder="table", dimension=8, rounds=1, closeness=True, signals=("one", "two"))


def vectors(seed: int, *shape: int) -> FloatArray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def triples(count: int, entities: int, edges: int) -> Triples:
    random = np.random.default_rng(count)
    return Triples(
        random.integers(entities, size=count), random.integers(edges, size=count), random.integers(entities, size=count)
    )


def test_a_recipe_counts_the_numbers_a_scorer_reads() -> None:
    assert RECIPE.extra_count == 2 * 3 + 3 + 2
    assert RECIPE.width == 4 * 8 + RECIPE.extra_count
    assert replace(RECIPE, rounds=0, closeness=False, signals=()).extra_count == 2


@pytest.mark.parametrize("count", [0, 1, 50, 2048, 5000])
def test_multiplying_beforehand_gives_the_plain_forward_pass(count: int) -> None:
    scorer = TripleScorer.create_untrained(RECIPE, seed=3)
    entities, edges, question = vectors(1, 20, 8), vectors(2, 10, 8), vectors(3, 8)
    actual, extras = triples(count, 20, 10), vectors(4, count, RECIPE.extra_count)
    features = np.hstack(
        [
            np.repeat(question[None], count, axis=0),
            entities[actual.heads],
            edges[actual.edges],
            entities[actual.tails],
            extras,
        ]
    )
    projected = scorer.predict_by_row(question, (entities, edges, entities), actual, extras)
    np.testing.assert_allclose(projected, scorer.predict(features), atol=1e-5)
    assert projected.dtype == np.float32


def test_the_forward_pass_is_a_hidden_layer_and_a_sigmoid() -> None:
    recipe = Recipe(embedder="table", dimension=1, rounds=0, closeness=False)
    scorer = TripleScorer(
        recipe,
        np.array([[1, 0, 0, 0, 0, 0], [0, 0, -1, 0, 0, 0]], dtype=np.float32),
        np.array([0, 1], dtype=np.float32),
        np.array([2, -3], dtype=np.float32),
        np.array([0.5], dtype=np.float32),
    )
    features = np.array([[2, 9, 5, 9, 9, 9], [-1, 9, 0, 9, 9, 9]], dtype=np.float32)
    logits = np.array([2 * 2 + 0.5, -3 * 1 + 0.5])
    np.testing.assert_allclose(scorer.predict(features), 1 / (1 + np.exp(-logits)), rtol=1e-5)


def test_the_largest_logits_do_not_overflow() -> None:
    scorer = replace(TripleScorer.create_untrained(RECIPE), output_bias=np.array([-1e6], dtype=np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert scorer.predict(np.zeros((1, RECIPE.width), dtype=np.float32)).tolist() == [0.0]


def test_an_untrained_scorer_depends_on_its_seed_alone() -> None:
    features = vectors(5, 30, RECIPE.width)
    first, again, other = (TripleScorer.create_untrained(RECIPE, seed).predict(features) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_saved_weights_are_the_same_when_loaded(tmp_path: Path) -> None:
    recipe = replace(RECIPE, trained_on=("2wiki", "musique"), questions=("0123456789abcdef",), starts="heads")
    scorer = TripleScorer.create_untrained(recipe, units=16)
    scorer.save(tmp_path / "weights.safetensors")
    loaded = TripleScorer.load(tmp_path / "weights.safetensors")
    assert loaded.recipe == recipe
    features = vectors(6, 100, recipe.width)
    np.testing.assert_allclose(loaded.predict(features), scorer.predict(features), atol=1e-3)


@pytest.mark.parametrize("content", [None, b"", b"signal\t1.0\n"])
def test_a_file_that_holds_no_weights_is_named_with_the_way_to_make_one(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "mine.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"mine\.safetensors.*polyad bench train hyperretriever"):
        TripleScorer.load(path)


def test_weights_of_another_program_are_refused(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    path = tmp_path / "other.safetensors"
    save_file({"hidden": np.zeros((2, 3), dtype=np.float16)}, path)
    with pytest.raises(ConfigurationError, match="expected a file written by polyad bench train hyperretriever"):
        TripleScorer.load(path)


def test_weights_that_do_not_fit_their_recipe_are_refused() -> None:
    scorer = TripleScorer.create_untrained(RECIPE, units=4)
    with pytest.raises(ConfigurationError, match=r"'hidden' have shape \(4, 43\); expected \(4, 46\) for 46 numbers"):
        replace(scorer, recipe=replace(RECIPE, signals=("1", "2", "3", "4", "5")))


def test_weights_that_are_no_finite_numbers_are_refused_naming_the_file(tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save

    path = tmp_path / "mine.safetensors"
    TripleScorer.create_untrained(RECIPE, units=4).save(path)
    arrays = load_file(path)
    for name in arrays:
        for wrong in (np.nan, np.inf):
            damaged = {**arrays, name: arrays[name].copy()}
            damaged[name].flat[0] = wrong
            path.write_bytes(save(damaged, recipe_metadata()))
            with pytest.raises(
                ConfigurationError, match=rf"mine\.safetensors'.*{name!r} hold {wrong}.*expected finite"
            ):
                TripleScorer.load(path)


def test_weights_of_another_shape_are_refused_naming_the_file(tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save

    path = tmp_path / "mine.safetensors"
    TripleScorer.create_untrained(RECIPE, units=4).save(path)
    arrays = load_file(path)
    for name in arrays:
        for shape in ((), (0,), (5,), (2, 2, 2)):
            path.write_bytes(save({**arrays, name: np.zeros(shape, dtype=np.float16)}, recipe_metadata()))
            with pytest.raises(ConfigurationError, match=r"mine\.safetensors'.* have shape .*; expected .*train"):
                TripleScorer.load(path)


def recipe_metadata(**changes: object) -> dict[str, str]:
    return {"recipe": json.dumps({**asdict(RECIPE), **changes})}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("embedder", ""),
        ("embedder", 7),
        ("dimension", 0),
        ("dimension", "8"),
        ("rounds", 1.0),
        ("rounds", True),
        ("rounds", -1),
        ("starts", "nonsense"),
        ("starts", None),
        ("closeness", 1),
        ("signals", "ab"),
        ("signals", ["one", 2]),
        ("trained_on", {"2wiki": 1}),
        ("questions", ["0123456789abcdef", "0123"]),
    ],
)
def test_a_recipe_with_a_wrong_value_is_refused_naming_file_and_value(tmp_path: Path, name: str, value: object) -> None:
    from safetensors.numpy import load_file, save

    path = tmp_path / "mine.safetensors"
    TripleScorer.create_untrained(RECIPE, units=4).save(path)
    path.write_bytes(save(load_file(path), recipe_metadata(**{name: value})))
    with pytest.raises(ConfigurationError, match=rf"mine\.safetensors'.*{name}.* is .* expected .*polyad bench train"):
        TripleScorer.load(path)


@pytest.mark.parametrize("recipe", [None, "{", "[]", "{}", '{"embedder": "table"}', recipe_metadata(more=1)["recipe"]])
def test_a_file_without_a_whole_recipe_is_refused(tmp_path: Path, recipe: str | None) -> None:
    from safetensors.numpy import load_file, save

    path = tmp_path / "mine.safetensors"
    TripleScorer.create_untrained(RECIPE, units=4).save(path)
    path.write_bytes(save(load_file(path), None if recipe is None else {"recipe": recipe}))
    with pytest.raises(ConfigurationError, match="expected a file written by polyad bench train hyperretriever"):
        TripleScorer.load(path)


def test_equal_weights_are_equal_files(tmp_path: Path) -> None:
    for number in range(8):
        TripleScorer.create_untrained(RECIPE, seed=3, units=4).save(tmp_path / str(number))
    assert len({(tmp_path / str(number)).read_bytes() for number in range(8)}) == 1


def test_weights_beside_another_embedder_are_refused_naming_both() -> None:
    with pytest.raises(ConfigurationError, match=r"'table'.*'chair'.*polyad bench train hyperretriever"):
        RECIPE.require_match("chair", 8, RECIPE.signals)


def test_weights_for_vectors_of_another_length_are_refused_naming_both() -> None:
    with pytest.raises(ConfigurationError, match=r"vectors of 8 numbers, and the embedder 'table' gives 16; train"):
        RECIPE.require_match("table", 16, RECIPE.signals)


@pytest.mark.parametrize("signals", [("one",), ("one", "2")])
def test_weights_for_other_signals_are_refused_naming_both(signals: tuple[str, ...]) -> None:
    with pytest.raises(
        ConfigurationError, match=rf"signals 'one', 'two'; .* has {', '.join(map(repr, signals))}; train"
    ):
        RECIPE.require_match("table", 8, signals)


@pytest.mark.parametrize("has_signals", [True, False])
def test_weights_of_the_other_variant_are_refused_naming_the_setting(has_signals: bool) -> None:
    with_signals, without = RECIPE.signals, ()
    expected, other = (with_signals, without) if has_signals else (without, with_signals)
    recipe = replace(RECIPE, signals=expected)
    recipe.require_match("table", 8, expected)
    with pytest.raises(ConfigurationError, match=f"set signals = {str(has_signals).lower()} in the section"):
        recipe.require_match("table", 8, other)


@pytest.mark.parametrize("signals", [False, True])
def test_the_weights_that_come_with_polyad_are_for_the_default_embedder(signals: bool) -> None:
    names = SIGNAL_NAMES if signals else ()
    scorer = TripleScorer.from_settings("", BUNDLED_FOR, 384, names)
    assert scorer.recipe.embedder == BUNDLED_FOR
    assert scorer.recipe.trained_on
    assert bool(scorer.recipe.signals) == signals


def test_without_weights_for_an_embedder_the_command_that_makes_them_is_named() -> None:
    with pytest.raises(ConfigurationError, match="'bge-large'; train weights with: polyad bench train hyperretriever"):
        TripleScorer.from_settings("", "bge-large", 1024, ())


def test_weights_of_the_settings_are_checked_like_those_that_come_with_polyad(tmp_path: Path) -> None:
    path = tmp_path / get_weights_file_name(signals=True)
    TripleScorer.create_untrained(RECIPE).save(path)
    assert TripleScorer.from_settings(str(path), "table", 8, RECIPE.signals).recipe == RECIPE
    with pytest.raises(ConfigurationError, match=r"signals\.safetensors' were trained with the embedder 'table'"):
        TripleScorer.from_settings(str(path), "chair", 8, RECIPE.signals)
