"""Recall@5 of LinearRAG's public code with the names and vectors of polyad, to explain differences from ``linearrag``.

    python benchmarks/linearrag_public_code.py CHECKOUT BEIR_DIR... [--vectors FILE] [--json FILE]

``CHECKOUT`` is a checkout of its repository (https://github.com/DEEP-PolyU/LinearRAG), whose modules are imported as
they are; it needs ``igraph``, ``pandas``, ``pyarrow`` and ``openai``. Names come from polyad's rules, where the code
takes those of spaCy. A passage is its text, or its title and its text; its number stands before it as ``run.py`` of
that repository writes it, which also joins passages of adjacent numbers by an edge, or not.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import types
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measured_rows import write_rows
from second_stage_training import StoredVectors

from polyad import Engine
from polyad.model import FloatArray
from polyad.protocols.components import Embedder, MentionExtractor
from polyad_bench.datasets.beir import Dataset
from polyad_bench.datasets.selection import load_dataset

PARAMETERS: Mapping[str, Mapping[str, float]] = {
    "defaults": {"max_iterations": 3, "iteration_threshold": 0.4, "passage_ratio": 2, "top_k_sentence": 3},
    "hotpotqa, 2wiki": {"max_iterations": 3, "iteration_threshold": 0.4, "passage_ratio": 0.05, "top_k_sentence": 1},
}
"""The parameters of its ``run.py``, and those of its ``scripts/run.sh`` for two data sets."""

_K = 5
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n")


class Variant(NamedTuple):
    """What is indexed, and with which parameters."""

    has_titles: bool
    has_numbers: bool
    parameters: str = "defaults"


VARIANTS = (Variant(False, False), Variant(True, False), Variant(True, True), Variant(True, False, "hotpotqa, 2wiki"))


class Model:
    """Polyad's embedder with the method that the code calls."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def encode(self, texts: str | list[str], **_: object) -> FloatArray:
        """Return the vector of a question, or the vectors of texts."""
        if isinstance(texts, str):
            (vector,) = self._embedder.encode([texts], "query")
            return np.asarray(vector)
        vectors = [self._embedder.encode(texts[start : start + 512], "passage") for start in range(0, len(texts), 512)]
        return np.concatenate(vectors) if vectors else np.empty((0, self._embedder.dimension), dtype=np.float32)


class Names:
    """Polyad's names with the methods that the code calls."""

    def __init__(self, extractor: MentionExtractor) -> None:
        self._extractor = extractor

    def batch_ner(self, passages: Mapping[str, str], _: int) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        """Return the names of each passage by its id, and the names of each sentence."""
        by_passage: dict[str, list[str]] = {}
        by_sentence: dict[str, list[str]] = defaultdict(list)
        extracted = self._extractor.extract(list(passages.values()))
        for (id, text), mentions in zip(passages.items(), extracted, strict=True):
            by_passage[id] = list(dict.fromkeys(text[mention.start : mention.end] for mention in mentions))
            for start, end in _split(text):
                names = [text[one.start : one.end] for one in mentions if start <= one.start < end]
                by_sentence[text[start:end]] += [
                    name for name in dict.fromkeys(names) if name not in by_sentence[text[start:end]]
                ]
        return by_passage, {sentence: names for sentence, names in by_sentence.items() if names}

    def question_ner(self, question: str) -> set[str]:
        """Return the names in a question, in lower case as in the code."""
        return {mention.name.lower() for mention in self._extractor.extract([question])[0]}


def _split(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for end in _SENTENCE_END.finditer(text):
        yield start, end.start()
        start = end.end()
    yield start, len(text)


def main() -> None:
    """Print the rows, and write them to a JSON file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("folders", nargs="+", type=Path, metavar="BEIR_DIR")
    parser.add_argument("--vectors", type=Path, help="keep the vectors of texts in this file")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    arguments = parser.parse_args()
    sys.path.insert(0, str(arguments.checkout))
    sys.modules["spacy"] = types.ModuleType("spacy")  # imported there, and not used
    rows = []
    with tempfile.TemporaryDirectory() as directory, Engine.open(directory, embedder="all-MiniLM-L6-v2") as engine:
        embedder: Any = engine.components.embedder
        if arguments.vectors:
            embedder = StoredVectors(embedder, arguments.vectors)
        for folder in arguments.folders:
            for variant in VARIANTS:
                rows.append(measure(load_dataset(folder), variant, Model(embedder), Names(engine.components.extractor)))
                print(json.dumps(rows[-1]), flush=True)
                if arguments.json:
                    write_rows(arguments.json, rows)


def measure(dataset: Dataset, variant: Variant, model: Model, names: Names) -> dict[str, object]:
    """Return the row of a variant on a data set, with the recall of dense retrieval from the same vectors."""
    public_code = import_module("src.LinearRAG")  # of the checkout
    make_config = import_module("src.config").LinearRAGConfig
    vars(public_code)["SpacyNER"] = lambda _: names
    ids = {text: id for id, text in _list_passages(dataset.corpus, variant)}
    questions = [{"question": query.text, "answer": ""} for query in dataset.queries]
    with tempfile.TemporaryDirectory() as directory:
        config = make_config(
            dataset_name="data",
            embedding_model=model,
            max_workers=1,
            working_dir=directory,
            retrieval_top_k=_K,
            **PARAMETERS[variant.parameters],
        )
        system = public_code.LinearRAG(config)
        system.index(list(ids))
        retrieved = [result["sorted_passage"] for result in system.retrieve(questions)]
    store = system.passage_embedding_store
    vectors = np.array(store.embeddings)
    similar = [
        [store.texts[place] for place in np.argsort(-(vectors @ model.encode(query.text)), kind="stable")[:_K]]
        for query in dataset.queries
    ]
    recall = {
        name: [
            len({ids[text] for text in texts} & query.gold) / len(query.gold)
            for texts, query in zip(ranking, dataset.queries, strict=True)
        ]
        for name, ranking in (("dense", similar), ("linearrag", retrieved))
    }
    means = {name: round(float(np.mean(shares)), 4) for name, shares in recall.items()}
    return {"dataset": dataset.name, "questions": len(questions), **variant._asdict(), **means}


def _list_passages(corpus: Path, variant: Variant) -> Iterator[tuple[str, str]]:
    """Yield id and text of each passage as it is indexed."""
    records: Sequence[dict[str, str]] = [json.loads(line) for line in corpus.read_text(encoding="utf-8").splitlines()]
    for number, record in enumerate(records):
        text = f"{record['title']}\n{record['text']}" if variant.has_titles else record["text"]
        yield record["_id"], f"{number}:{text}" if variant.has_numbers else text


if __name__ == "__main__":
    main()
