"""Data sets by the files they come in: BEIR folders, GraphRAG-Bench, WikiTopics."""

from __future__ import annotations

from pathlib import Path

from polyad.errors import ConfigurationError
from polyad.evaluation.datasets import beir, graphrag_bench, wikitopics
from polyad.evaluation.datasets.beir import Dataset


def load_dataset(place: Path) -> Dataset:
    """The data set in a folder, or of a file of questions, with all of its questions.

    Raises:
        ConfigurationError: it is in none of the layouts, or not sound: says file and line.
    """
    if graphrag_bench.is_graphrag_bench(place):
        return graphrag_bench.load_graphrag_bench(place)
    if wikitopics.is_wikitopics(place):
        return wikitopics.load_wikitopics(place)
    if place.is_file():
        raise ConfigurationError(
            f"{str(place)!r} is no file of questions; expected a folder, or *_questions.json of GraphRAG-Bench"
        )
    dataset = beir.load_beir(place)
    beir.require_valid_corpus(dataset)
    return dataset
