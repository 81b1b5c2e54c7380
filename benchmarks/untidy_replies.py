"""Index after two runs with a model that cuts, renames and omits, compared with a faultless model.

    python benchmarks/untidy_replies.py corpus.jsonl openie.jsonl

The model is scripted: it says over HTTP what a real one once found in the passages, and spoils every 20th, 30th and
40th reply. Prints for both styles the requests of each run, what was named as incomplete, and what differs in the end.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from flawed_replies import FlawedReplies
from scripted_extractor import ScriptedExtractor

from polyad.config import LanguageModelSettings
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.engine.settings import Settings
from polyad.indexing.facts.settings import FactSettings
from polyad.language_models.openai.language_model import OpenAILanguageModel
from polyad.language_models.scripted import Request, ScriptedReply, ScriptedServer
from polyad.model import Hyperedge


def run(
    directory: Path, corpus: Path, replies: Callable[[Request], str | ScriptedReply], style: Literal["compact", "paper"]
) -> dict[str, object]:
    """Index once and return cost and extracted names."""
    started = time.process_time()
    requests: list[Request] = []

    def reply(request: Request) -> str | ScriptedReply:
        requests.append(request)
        return replies(request)

    with ScriptedServer(reply) as server:
        model = OpenAILanguageModel(LanguageModelSettings(model="m", base_url=server.base_url, cache_name="m"))
        stages = Settings(facts=FactSettings(style=style))
        with Engine.open(directory, embedder=HashingEmbedder(16), language_model=model, settings=stages) as engine:
            report = engine.index(corpus, method="facts")
    return {
        "requests": len(requests),
        "incomplete": len(report.failures),
        "updated": report.counts.updated,
        "cpu_seconds": round(time.process_time() - started, 1),
    }


def hyperedges(directory: Path) -> dict[str, tuple[Hyperedge, frozenset[str]]]:
    """Return every fact with the keys of its members, without scores."""
    with Engine.open(directory, create=False, embedder=HashingEmbedder(16)) as engine:
        return {
            edge.id: (
                replace(edge, score=0.0),
                frozenset(part.entity_key for part in engine.catalogue.hyperedge(edge.id)[1]),
            )
            for edge in engine.catalogue.hyperedges()
        }


def main() -> None:
    """Measure both styles of prompts."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("triples", type=Path)
    options = parser.parse_args()
    script = ScriptedExtractor.from_files(options.corpus, options.triples)
    styles: tuple[Literal["compact", "paper"], ...] = ("compact", "paper")
    for style in styles:
        with tempfile.TemporaryDirectory() as place:
            sound, spoilt = Path(place, "sound"), Path(place, "spoilt")
            untidy = FlawedReplies(script)
            runs = [
                run(sound, options.corpus, script, style),
                run(spoilt, options.corpus, untidy, style),
                run(spoilt, options.corpus, untidy, style),
            ]
            ours, theirs = hyperedges(spoilt), hyperedges(sound)
            differing = sum(ours.get(id) != theirs.get(id) for id in ours.keys() | theirs.keys())
            faults = {fault: len(passages) for fault, passages in untidy.damaged_passages.items()}
            print(
                json.dumps({"style": style, "runs": runs, "faults": faults, "facts": len(theirs), "differ": differing})
            )


if __name__ == "__main__":
    main()
