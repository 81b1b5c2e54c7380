"""Training HyperRetriever's scorer."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from polyad.errors import ConfigurationError
from polyad.retrieval.hyperretriever.settings import HyperRetrieverTraining
from polyad.retrieval.hyperretriever.triple_scorer import Recipe, TripleScorer
from polyad_bench.training.triple_examples import TripleExamples, merge_examples
from polyad_bench.training.triple_scorer import save_triple_scorer, train_triple_scorer


def examples(seed: int, count: int = 600, entities: int = 5) -> TripleExamples:
    """Triples of which those are right whose first extra, or the hyperedge's first number, is high."""
    random = np.random.default_rng(seed)
    recipe = Recipe(embedder="table", dimension=4, rounds=0, closeness=True)
    extras = random.normal(size=(count, recipe.extra_count)).astype(np.float32)
    edge_vectors = random.normal(size=(7, 4)).astype(np.float32)
    edges = random.integers(7, size=count)
    return TripleExamples(
        recipe,
        question_vectors=random.normal(size=(3, 4)).astype(np.float32),
        entity_vectors=random.normal(size=(entities, 4)).astype(np.float32),
        hyperedge_vectors=edge_vectors,
        questions=random.integers(3, size=count),
        heads=random.integers(entities, size=count),
        edges=edges,
        tails=random.integers(entities, size=count),
        extras=extras,
        labels=extras[:, 0] + edge_vectors[edges, 0] > 0.5,
    )


FAST = HyperRetrieverTraining(epochs=12, batch=16, rate=1e-2, dropout=0.1, units=16)


def test_training_finds_what_makes_a_triple_right() -> None:
    scorer, report = train_triple_scorer({"one": (examples(1), examples(2))}, FAST)
    assert report.best_epoch.validation_loss < 0.8 * report.epochs[0].validation_loss
    assert report.best_epoch.precision > 0.7
    assert report.best_epoch.recall > 0.7
    unseen = examples(3)
    every = np.arange(len(unseen))
    trained, untrained = (
        float(np.mean((one.predict(unseen.get_features(every)) >= 0.5) == unseen.labels))
        for one in (scorer, TripleScorer.create_untrained(unseen.recipe, 0, 16))
    )
    assert trained > 0.85
    assert trained > untrained + 0.1
    assert scorer.recipe.trained_on == ("one",)


def test_training_again_gives_the_same_weights_and_leaves_chance_alone() -> None:
    import torch

    torch.rand(7)  # so that the state is not that after an earlier training
    before = torch.random.get_rng_state()
    first, again = (train_triple_scorer({"one": (examples(1), examples(2))}, FAST) for _ in range(2))
    np.testing.assert_array_equal(first[0].hidden, again[0].hidden)
    assert first[1] == again[1]
    assert torch.equal(torch.random.get_rng_state(), before)
    other, _ = train_triple_scorer({"one": (examples(1), examples(2))}, replace(FAST, seed=1))
    assert not np.array_equal(first[0].hidden, other.hidden)


def test_training_stops_when_validation_no_longer_gains_and_keeps_the_best() -> None:
    noise = replace(examples(2), labels=np.random.default_rng(0).random(600) > 0.5)
    settings = replace(FAST, epochs=40, patience=3)
    scorer, report = train_triple_scorer({"one": (examples(1), noise)}, settings)
    assert len(report.epochs) == report.best + 1 + settings.patience < 40
    assert report.best_epoch.validation_loss == min(epoch.validation_loss for epoch in report.epochs)
    scores = scorer.predict(noise.get_features(np.arange(len(noise)))).astype(np.float64)
    loss = -np.log(np.where(noise.labels, scores, 1 - scores)).mean()
    assert loss == pytest.approx(report.best_epoch.validation_loss)


def test_several_data_sets_are_trained_on_as_one() -> None:
    first, second = examples(1), examples(2, count=200, entities=9)
    both = merge_examples([first, second])
    np.testing.assert_array_equal(
        both.get_features(np.arange(800)),
        np.concatenate([first.get_features(np.arange(600)), second.get_features(np.arange(200))]),
    )
    _, report = train_triple_scorer(
        {"one": (first, examples(3)), "two": (second, examples(4))}, replace(FAST, epochs=1)
    )
    assert report.datasets == ("one", "two")
    assert (report.train_triples, report.validation_triples) == (800, 1200)
    assert report.train_positives == int(first.labels.sum() + second.labels.sum())


def test_nothing_right_to_train_on_is_said() -> None:
    none = examples(1, count=0)
    with pytest.raises(ConfigurationError, match="of 0 triples for training 0 are right"):
        train_triple_scorer({"one": (none, none)}, FAST)
    nothing = replace(examples(1), labels=np.zeros(600, dtype=bool))
    with pytest.raises(ConfigurationError, match="of 600 triples for training 0 are right"):
        train_triple_scorer({"one": (nothing, examples(2))}, FAST)
    with pytest.raises(ConfigurationError, match="of 600 triples for validation 0 are right"):
        train_triple_scorer({"one": (examples(1), nothing)}, FAST)


def test_weights_report_and_picture_are_written(tmp_path: Path) -> None:
    scorer, report = train_triple_scorer({"one": (examples(1), examples(2))}, replace(FAST, epochs=2))
    path = save_triple_scorer(scorer, report, tmp_path / "new")
    assert path.name == "hyperretriever.safetensors"
    features = examples(3).get_features(np.arange(50))
    np.testing.assert_allclose(TripleScorer.load(path).predict(features), scorer.predict(features), atol=5e-3)
    written = json.loads(path.with_suffix(".json").read_text("utf-8"))
    assert written["datasets"] == ["one"]
    assert [epoch["validation_loss"] for epoch in written["epochs"]] == [
        epoch.validation_loss for epoch in report.epochs
    ]
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_saving_that_is_stopped_leaves_the_earlier_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scorer, report = train_triple_scorer({"one": (examples(1), examples(2))}, replace(FAST, epochs=1))
    earlier = save_triple_scorer(scorer, report, tmp_path).read_bytes()

    def stopped(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", stopped)
    other, report = train_triple_scorer({"one": (examples(2), examples(1))}, replace(FAST, epochs=1))
    with pytest.raises(KeyboardInterrupt):
        save_triple_scorer(other, report, tmp_path)
    assert (tmp_path / "hyperretriever.safetensors").read_bytes() == earlier


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    scorer, report = train_triple_scorer({"one": (examples(1), examples(2))}, replace(FAST, epochs=1))
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError):
        save_triple_scorer(scorer, report, tmp_path / "file")


@pytest.mark.parametrize(("name", "value"), [("epochs", 0), ("batch", 0), ("rate", 0.0), ("dropout", 1.0)])
def test_a_setting_out_of_range_is_named(name: str, value: float) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} is {value}"):
        HyperRetrieverTraining(**{name: value})  # type: ignore[arg-type]
