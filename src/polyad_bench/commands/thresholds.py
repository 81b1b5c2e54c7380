"""``polyad bench thresholds``: the thresholds of presets, measured for the embedder of an index."""

from __future__ import annotations

from polyad.cli import options
from polyad.cli.streams import say, say_json
from polyad.retrieval.similarity_thresholds import SimilarityThresholds

_SECTIONS = {
    "hypersu.activation_threshold": "activation_threshold",
    **{f"hypergraphrag.{kind}_threshold": f"{kind}_threshold" for kind in ("entity", "hyperedge", "passage")},
}
"""Settings, and their names in the calibration of an embedder."""


def thresholds(store: options.Store = None, embedder: options.Embedder = None, json: options.Json = False) -> None:
    """Print the thresholds of presets for the embedder of an index.

    They are printed as settings. The presets' own values belong to the embedders of the papers. An embedder that polyad
    has calibrated has fixed values; for another one they are measured on the index, so that as few unrelated texts
    exceed them.

    Example: polyad bench thresholds --store kb
    """
    with options.open_engine(options.load_settings(store=store, embedder=embedder)) as engine:
        measured = SimilarityThresholds(engine.components.embedder, has_entity_vectors=True)
        measured.measure(engine.snapshot("hypergraphrag"))
    values = {setting: round(getattr(measured.values, name), 4) for setting, name in _SECTIONS.items()}
    if json:
        say_json({"thresholds": values})
    else:
        say("\n".join(f"--set {setting}={value:g}" for setting, value in values.items()))
