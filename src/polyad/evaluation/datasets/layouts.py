"""Loading of data sets in any supported layout: BEIR folders, GraphRAG-Bench, WikiTopics."""

from __future__ import annotations

from pathlib import Path

from polyad.errors import ConfigurationError
from polyad.evaluation.datasets import beir, graphrag_bench, wikitopics
from polyad.evaluation.datasets.beir import Dataset


def load_dataset(path: Path) -> Dataset:
    """Read the data set in a folder or of a file of questions, with all its questions.

    Raises:
        ConfigurationError: the layout is unknown or a file is invalid; the message names file and line.
    """
    if graphrag_bench.is_graphrag_bench(path):
        return graphrag_bench.load_graphrag_bench(path)
    if wikitopics.is_wikitopics(path):
        return wikitopics.load_wikitopics(path)
    if path.is_file():
        raise ConfigurationError(
            f"{str(path)!r} is no file of questions; expected a folder, or *_questions.json of GraphRAG-Bench"
        )
    dataset = beir.load_beir(path)
    beir.require_valid_corpus(dataset)
    return dataset
