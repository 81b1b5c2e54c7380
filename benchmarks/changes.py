"""Cost of two small changes to a large index: a fact is retracted, and a sentence of a document is replaced.

    python benchmarks/changes.py retraction --facts 100000
    python benchmarks/changes.py sentence --documents 1000

Facts are read by a scripted model, and vectors are hashed, so that the figures are those of polyad alone. Both print
JSON; the exit status is 1 if a retracted fact is returned anywhere or if more than the changed passage was computed.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from polyad import Document, Engine
from polyad.embedders.hashing import HashingEmbedder
from polyad.errors import NotFoundError
from polyad.language_models.scripted import ScriptedLanguageModel, extract_passage
from polyad.model import FloatArray
from polyad.protocols.components import Prompt, TextKind

_FACTS_PER_DOCUMENT = 10
_SENTENCES = 40
_FILLER = "The harvest was poor, the roads were bad, and little else was written in the town about that year."
_TOWNS = ("Arle", "Brone", "Corvin", "Dunmere", "Elsow", "Farholt", "Gant", "Harrow", "Istel", "Jorby", "Kelm")
_FACT = re.compile(r"[^.\n]*\b(Officer \w+) governed (\w+) in \w+\.")


class CountingEmbedder(HashingEmbedder):
    """A hashing embedder that counts the embedded texts, without questions."""

    texts = 0

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        """Return vectors of texts, and count the texts."""
        self.texts += len(texts) if kind == "passage" else 0
        return super().encode(texts, kind)


def main() -> int:
    """Measure, print the figures as JSON, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measurement", choices=("retraction", "sentence"))
    parser.add_argument("--facts", type=int, default=100_000, help="of retraction")
    parser.add_argument("--documents", type=int, default=1000, help="of sentence")
    parser.add_argument("--repetitions", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.measurement == "retraction":
            figures = measure_retraction(Path(folder), options.facts, options.repetitions)
        else:
            figures = measure_sentence(Path(folder), options.documents, options.repetitions)
    print(json.dumps(figures, indent=2))
    return 1 if figures["errors"] else 0


def measure_retraction(folder: Path, fact_count: int, repetitions: int) -> dict[str, Any]:
    """Return the times of retractions, and where a retracted fact was still returned."""
    count = fact_count // _FACTS_PER_DOCUMENT
    documents = [build_document(number, _FACTS_PER_DOCUMENT) for number in range(count)]
    embedder, model = CountingEmbedder(64), ScriptedLanguageModel(extract)
    errors: list[str] = []
    retract_ms, search_ms = [], []
    with Engine.open(folder / "kb", embedder=embedder, language_model=model) as engine:
        engine.index_documents(documents, method="facts")
        engine.search("Who governed Arle?")
        engine.search("Who governed Arle?", retriever="hypergraphrag")  # embeds the entities
        before = engine.catalogue.statistics()
        for repetition in range(repetitions):
            number = repetition * count // repetitions
            name = officer(number, 3)
            [fact] = [edge for edge in engine.catalogue.hyperedges_joining([name]) if name in edge.text]
            embedded, prompts = embedder.texts, len(model.prompts)
            start = time.perf_counter()
            engine.corrections.retract(hyperedge=fact.id, reason="misread")
            retract_ms.append(1000 * (time.perf_counter() - start))
            start = time.perf_counter()
            evidence = engine.search(f"Where did {name} govern?", retriever="bm25")
            search_ms.append(1000 * (time.perf_counter() - start))
            if (embedder.texts, len(model.prompts)) != (embedded, prompts):
                errors.append(f"{name}: texts were embedded, or the model was called")
            errors += list_returned(engine, fact.id, name)
            if not any(retracted.text == fact.text for hit in evidence.passages for retracted in hit.retracted):
                errors.append(f"{name}: no hit is marked as stating a retracted fact")
        after = engine.catalogue.statistics()
        if before.hyperedges - after.hyperedges != repetitions:
            errors.append(f"statistics: {before.hyperedges} facts before, {after.hyperedges} after")
        engine.export(folder / "kb.graphml", "graphml")
        exported = (folder / "kb.graphml").read_text()
    other_model = ScriptedLanguageModel(extract_differently, name="another")
    with Engine.open(folder / "kb", embedder=embedder, language_model=other_model) as engine:
        for repetition in range(repetitions):
            number = repetition * count // repetitions
            name = officer(number, 3)
            if f"{name} governed" in exported:
                errors.append(f"{name}: exported")
            engine.index_documents([build_document(number, _FACTS_PER_DOCUMENT, "Second edition.")], method="facts")
            errors += list_returned(engine, "", name)
    return {
        "facts": before.hyperedges,
        "retract_ms": summarise(retract_ms),
        "first_search_after_ms": summarise(search_ms),
        "requests_of_another_model": len(other_model.prompts),
        "errors": errors,
    }


def list_returned(engine: Engine, hyperedge_id: str, name: str) -> list[str]:
    """Return where a retracted fact, whose officer ``name`` has no other fact, is still returned."""
    evidence = engine.search(f"Where did {name} govern?", retriever="hypergraphrag")
    returned = [("search", edge.hyperedge.id) for edge in evidence.hyperedges if name in edge.hyperedge.text]
    with suppress(NotFoundError):
        returned += [("facts", edge.id) for edge in engine.catalogue.hyperedges_joining([name]) if name in edge.text]
    with suppress(NotFoundError):
        returned.append(("show", engine.catalogue.hyperedge(hyperedge_id)[0].id))
    return [f"{name}: {place} returned {id}" for place, id in returned]


def measure_sentence(folder: Path, count: int, repetitions: int) -> dict[str, Any]:
    """Return what is computed when one sentence changes, and when an open reader sees the change."""
    embedder, model = CountingEmbedder(64), ScriptedLanguageModel(extract)
    errors: list[str] = []
    index_ms, visible_ms, texts, requests = [], [], [], []
    with (
        Engine.open(folder / "kb", embedder=embedder, language_model=model) as engine,
        Engine.open(folder / "kb", embedder=HashingEmbedder(64), create=False) as reader,
    ):
        engine.index_documents([build_document(number, _SENTENCES) for number in range(count)], method="facts")
        reader.search("Who governed Arle?")
        for repetition in range(repetitions):
            number = repetition * count // repetitions
            document = build_document(number, _SENTENCES)
            name = f"Officer Zed{repetition}q"
            text = document.text.replace(officer(number, _SENTENCES // 2), name)
            embedded, prompts = embedder.texts, len(model.prompts)
            start = time.perf_counter()
            engine.index_documents([Document(document.id, document.title, text)], method="facts")
            end = time.perf_counter()
            index_ms.append(1000 * (end - start))
            while not any(name in hit.passage.text for hit in reader.search(name, retriever="bm25").passages):
                pass
            visible_ms.append(1000 * (time.perf_counter() - end))
            texts.append(embedder.texts - embedded)
            requests.append(len(model.prompts) - prompts)
        passages = engine.catalogue.statistics().passages
    if set(requests) != {1}:
        errors.append(f"requests: {requests}")
    return {
        "documents": count,
        "passages": passages,
        "index_ms": summarise(index_ms),
        "visible_after_ms": summarise(visible_ms),
        "texts_embedded": sorted(set(texts)),
        "requests": sorted(set(requests)),
        "errors": errors,
    }


def officer(number: int, sentence: int) -> str:
    """Return the name of the officer in one sentence of a document."""
    return f"Officer N{number}x{sentence}"


def build_document(number: int, sentences: int, addition: str = "") -> Document:
    """Return a document in which each second sentence states a fact."""
    lines = [
        f"{officer(number, sentence)} governed {_TOWNS[(number + sentence) % len(_TOWNS)]} in {1500 + number % 400}. "
        + _FILLER
        for sentence in range(sentences)
    ]
    return Document(f"d{number:06}", f"Chronicle {number}", " ".join([*lines, addition]).strip())


def extract(prompt: Prompt) -> str:
    """Return the reply of the scripted model: a fact for each sentence."""
    facts = [
        {"text": match[0].strip(), "entities": [match[1], match[2]], "score": 9}
        for match in _FACT.finditer(extract_passage(prompt.user))
    ]
    return json.dumps({"facts": facts, "entities": []})


def extract_differently(prompt: Prompt) -> str:
    """Return the reply of another model: the same facts with other capitals, punctuation and scores."""
    facts = [
        {"text": match[0].strip().rstrip(".").upper() + "!", "entities": [match[2], match[1]], "score": 5}
        for match in _FACT.finditer(extract_passage(prompt.user))
    ]
    return json.dumps({"facts": facts, "entities": []})


def summarise(values: Sequence[float]) -> dict[str, float]:
    """Return the median and the maximum, rounded."""
    return {"median": round(statistics.median(values), 1), "max": round(max(values), 1)}


if __name__ == "__main__":
    sys.exit(main())
