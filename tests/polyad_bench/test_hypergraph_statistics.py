from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from polyad.engine import Engine
from polyad.model import Document
from polyad.text.json_types import parse_value
from polyad_bench.reports.plots import plot_distributions, plot_neighbourhood
from polyad_bench.runs.records import (
    ExampleNeighbourhood,
    HypergraphStatistics,
    compute_mean,
    compute_statistics,
)

WITH_ENTITIES = {
    "Bell of Tarn": "The Bell of Tarn was cast by Ines Moreau.",
    "Ines Moreau": "She was born in Aldby. She learnt to cast bronze in Tolvane with Rasmus Holm.",
    "Aldby": "Aldby lies on the River Lode, and Ines Moreau is its best known child.",
}


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    (tmp_path / "names.jsonl").write_text(
        json.dumps({"entities": ["Bell of Tarn", "Ines Moreau", "Aldby", "Tolvane", "Rasmus Holm", "River Lode"]})
    )
    engine = Engine.open(tmp_path / "kb", embedder="hashing:32", mention_extractor=f"given:{tmp_path / 'names.jsonl'}")
    engine.index_documents([Document(title, title, text) for title, text in WITH_ENTITIES.items()])
    return engine


def test_a_hypergraph_is_counted(engine: Engine) -> None:
    hypergraph_statistics = compute_statistics(engine.catalogue)
    hyperedges = engine.catalogue.hyperedges()
    joined = engine.catalogue.incidences([one.id for one in hyperedges])
    members = {id: {one.entity_key for one in incidences} for id, incidences in joined.items()}
    assert (hypergraph_statistics.hyperedges, hypergraph_statistics.entities) == (
        len(hyperedges),
        len(set().union(*members.values())),
    )
    assert compute_mean(hypergraph_statistics.arity) * hypergraph_statistics.hyperedges == sum(
        map(len, members.values())
    )
    assert compute_mean(hypergraph_statistics.degree) * hypergraph_statistics.entities == pytest.approx(
        sum(map(len, members.values()))
    )
    assert hypergraph_statistics.arity[2] == 1  # the bell and its maker
    assert sum(sentences * count for sentences, count in hypergraph_statistics.sentences.items()) == 4
    assert hypergraph_statistics.words == sum(len(text.split()) for text in WITH_ENTITIES.values())


def test_the_drawn_neighbourhood_belongs_to_one_entity(engine: Engine) -> None:
    near = compute_statistics(engine.catalogue).neighbourhood
    assert near is not None
    assert near.entity == "Ines Moreau"
    assert all("Ines Moreau" in members for members in near.hyperedges)
    assert {name for members in near.hyperedges for name in members} == {
        "Ines Moreau",
        "Bell of Tarn",
        "Aldby",
        "Tolvane",
        "Rasmus Holm",
        "River Lode",
    }


def test_an_empty_index_has_nothing_to_draw(tmp_path: Path) -> None:
    hypergraph_statistics = compute_statistics(Engine.open(tmp_path / "kb", embedder="hashing:32").catalogue)
    assert hypergraph_statistics == HypergraphStatistics({}, {}, {}, 0, None)


def test_statistics_survive_json(engine: Engine) -> None:
    hypergraph_statistics = compute_statistics(engine.catalogue)
    assert (
        parse_value(json.loads(json.dumps(asdict(hypergraph_statistics))), HypergraphStatistics)
        == hypergraph_statistics
    )


def test_lines_say_how_many_have_so_many_or_more() -> None:
    some = HypergraphStatistics({0: 1, 1: 1, 3: 2}, {1: 3, 2: 1}, {1: 4}, 9, None)
    figure = plot_distributions({"some": some})
    arity, degree, sentences = (np.asarray(axes.lines[0].get_xydata()).tolist() for axes in figure.axes)
    assert arity == [[1, 75], [3, 50]]
    assert degree == [[1, 100], [2, 25]]
    assert sentences == [[1, 100]]


def test_every_member_is_drawn_and_long_names_are_cut() -> None:
    near = ExampleNeighbourhood("Tarn", [["Tarn", "Aldby"], ["Tarn", "Aldby", "A name that is longer than what fits"]])
    figure = plot_neighbourhood(near)
    assert [text.get_text().strip() for text in figure.axes[0].texts] == [
        "Tarn",
        "Aldby",
        "A name that is longer tha…",
    ]
    lines = [line for line in figure.axes[0].lines if line.get_linestyle() == "-"]
    assert len(lines) == 5  # one for each incidence
