"""The thresholds of presets for the embedder of an index."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from polyad.cli import app


def test_thresholds_are_those_of_a_calibrated_embedder_as_settings(small_index_dir: Path) -> None:
    done = CliRunner().invoke(app, ["bench", "thresholds", "--store", str(small_index_dir), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["thresholds"] == {
        "hypersu.activation_threshold": 0.2,
        "hypergraphrag.entity_threshold": 50.0,
        "hypergraphrag.hyperedge_threshold": 4.0,
        "hypergraphrag.passage_threshold": 0.3,
    }
    text = CliRunner().invoke(app, ["bench", "thresholds", "--store", str(small_index_dir)]).stdout
    assert "--set hypergraphrag.hyperedge_threshold=4\n" in text
