"""Facts given as data, questions whose answers are entities: n-ary facts against the same facts cut into pairs.

    python benchmarks/closed_domain.py DIR [--tuples 5000] [--questions 500] [--seed 7] [--json FILE]

Generates a knowledge base and questions of 1 to 3 hops with `synthetic_tuples.py`, indexes the facts as they are and
once more as pairs (each fact as all pairs of its arguments), trains HyperRetriever on the training questions of each,
and reports MRR and Hits@10 of the answers on the test questions. DIR keeps everything; a second run goes on from it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from itertools import combinations
from pathlib import Path

from polyad import Engine
from polyad.adapters.tuples import TupleReader
from polyad.evaluation.answers import ranked_entities
from polyad.evaluation.datasets import Query, load
from polyad.evaluation.measures import hits, reciprocal_rank
from polyad.text.keys import entity_key

RETRIEVERS = ("standard", "bm25", "hypergraphrag", "hypersu", "default", "hyperretriever")
DEPTH = 20


def write_pairs(facts: Path, pairs: Path) -> None:
    """Each fact as the pairs of its arguments, each pair a fact of the same relation."""
    with pairs.open("w", encoding="utf-8") as file:
        for line in facts.read_text(encoding="utf-8").splitlines():
            fact = json.loads(line)
            for number, pair in enumerate(combinations(fact["arguments"], 2)):
                piece = {"_id": f"{fact['_id']}.{number}", "relation": fact["relation"], "arguments": pair}
                file.write(json.dumps(piece, ensure_ascii=False) + "\n")


def members_of(facts: Path) -> dict[str, list[str]]:
    """Keys of the entities in the one passage of each fact."""
    return {
        f"{document.id}#0000": [key for argument in document.arguments if (key := entity_key(argument.entity))]
        for document in TupleReader().read([facts])
        if not hasattr(document, "reason")
    }


def measure(engine: Engine, retriever: str, members: dict[str, list[str]], queries: list[Query]) -> dict[str, float]:
    """MRR and Hits@10 of the answers."""
    ranks, found = [], []
    for query in queries:
        evidence = engine.search(query.text, DEPTH, retriever=retriever)
        ranked = ranked_entities(evidence, members, query.text)
        gold = {entity_key(answer) for answer in query.answers}
        ranks.append(reciprocal_rank(ranked, gold))
        found.append(hits(ranked, gold, 10))
    return {"mrr": statistics.fmean(ranks), "hits@10": statistics.fmean(found)}
