"""Comparison of n-ary facts with the same facts split into pairs, on questions whose answers are entities.

    python benchmarks/closed_domain.py DIR [--tuples 5000] [--questions 500] [--seed 7] [--json FILE]

Generates a knowledge base and questions of 1 to 3 hops with `synthetic_tuples.py`, indexes the facts as they are and
once more as pairs (each fact as all pairs of its arguments), trains HyperRetriever on the training questions of each,
once more with the signals of the default retriever, and reports MRR and Hits@10 of the answers on the test questions.
DIR keeps everything; a second run goes on from it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from polyad import Engine
from polyad.engine.settings import Settings
from polyad.model import Document, Evidence
from polyad.readers.folder.tuples import TupleReader
from polyad.retrieval.hyperretriever.settings import HyperRetrieverSettings, HyperRetrieverTraining
from polyad.text.keys import build_argument_key, build_entity_key
from polyad_bench.datasets.beir import Question, load_beir
from polyad_bench.datasets.selection import split_questions
from polyad_bench.measures.ranking import hits, reciprocal_rank
from polyad_bench.training import triple_scorer
from polyad_bench.training.linear_scorer import get_training_components
from polyad_bench.training.triple_examples import collect_triples

RETRIEVERS = ("dense", "bm25", "hypergraphrag", "hypersu", "default")
TRAINED = {
    "hyperretriever": HyperRetrieverSettings(),
    "hyperretriever, with signals": HyperRetrieverSettings(signals=True),
}
DEPTH = 20
TRAINING = HyperRetrieverTraining(batch=128, rate=1e-3, patience=3, epochs=10)


def rank_entities(evidence: Evidence, members: Mapping[str, Sequence[str]], question: str) -> list[str]:
    """Return the keys of the entities in the evidence as ranked answers, without entities that the question names.

    An entity ranks with the first hyperedge, or after these the first passage, that contains it. Ties are broken by the
    retriever's score of the entity, then by key.

    Args:
        evidence: Evidence of a retriever.
        members: Entity keys by passage id, for the passages of the evidence.
        question: Text of the question.
    """
    question_key = f" {build_entity_key(question)} "
    groups: list[Collection[str]] = [[member.key for member in scored.members] for scored in evidence.hyperedges]
    groups += [members.get(hit.passage.id, ()) for hit in evidence.passages]
    scores = {scored.entity.key: scored.score for scored in evidence.entities}
    ranked = (key for group in groups for key in sorted(group, key=lambda key: (-scores.get(key, 0.0), key)))
    return list(dict.fromkeys(key for key in ranked if f" {key} " not in question_key))


def write_pairs(facts: Path, pairs: Path) -> None:
    """Write each fact as pairs of its arguments; each pair is a fact of the same relation."""
    with pairs.open("w", encoding="utf-8") as file:
        for line in facts.read_text(encoding="utf-8").splitlines():
            fact = json.loads(line)
            for number, pair in enumerate(combinations(fact["arguments"], 2)):
                piece = {"_id": f"{fact['_id']}.{number}", "relation": fact["relation"], "arguments": pair}
                file.write(json.dumps(piece, ensure_ascii=False) + "\n")


def documents(facts: Path) -> list[Document]:
    """Return the facts of a file as documents."""
    return [document for document in TupleReader().read([facts]) if isinstance(document, Document)]


def get_members(facts: Path) -> dict[str, list[str]]:
    """Return the entity keys of the passage of each fact."""
    return {
        f"{document.id}#0000": [build_argument_key(one.value) for one in document.arguments if one.type == "entity"]
        for document in documents(facts)
    }


def measure(
    engine: Engine, retriever: str, members: dict[str, list[str]], queries: Sequence[Question]
) -> dict[str, float]:
    """Return MRR and Hits@10 of the answers."""
    ranks, results = [], []
    for query in queries:
        evidence = engine.search(query.text, DEPTH, retriever=retriever, merge=False)
        ranked = rank_entities(evidence, members, query.text)
        gold = {build_entity_key(answer) for answer in query.answers}
        ranks.append(reciprocal_rank(ranked, gold))
        results.append(hits(ranked, gold, 10))
    return {"mrr": statistics.fmean(ranks), "hits@10": statistics.fmean(results)}


def trained(engine: Engine, queries: Sequence[Question], settings: HyperRetrieverSettings, directory: Path) -> Settings:
    """Return settings with the weights of a scorer trained on the first two splits of the questions."""
    parts, (first, second, _) = get_training_components(engine), split_questions(queries)
    examples = {"tuples": (collect_triples(*parts, first, settings), collect_triples(*parts, second, settings))}
    weights = triple_scorer.save_triple_scorer(*triple_scorer.train_triple_scorer(examples, TRAINING), directory)
    return Settings(hyperretriever=replace(settings, weights=str(weights)))


def map_gold(queries: Sequence[Question], facts: Path) -> list[Question]:
    """Return the questions with the fact ids of a file of pairs; unchanged for the n-ary facts."""
    pieces: dict[str, set[str]] = {}
    for document in documents(facts):
        pieces.setdefault(document.id.partition(".")[0], set()).add(document.id)
    return [replace(query, gold=frozenset(id for fact in query.gold for id in pieces[fact])) for query in queries]


def compared(facts: Path, store: Path, queries: Sequence[Question]) -> Iterator[tuple[str, dict[str, float]]]:
    """Return the measures of each retriever on the test questions, by label."""
    questions, members = map_gold(queries, facts), get_members(facts)
    tests = split_questions(questions)[2]
    with Engine.open(store) as engine:
        engine.index([facts], method="tuples")
        for retriever in RETRIEVERS:
            yield retriever, measure(engine, retriever, members, tests)
        settings = {label: trained(engine, questions, kind, store / label) for label, kind in TRAINED.items()}
    for label, with_weights in settings.items():
        with Engine.open(store, settings=with_weights) as engine:
            yield label, measure(engine, "hyperretriever", members, tests)


def main() -> None:
    """Generate facts, index, train, measure and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--tuples", type=int, default=5000)
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", type=Path, help="save the results here")
    arguments = parser.parse_args()
    data = arguments.directory / "data"
    script = Path(__file__).with_name("synthetic_tuples.py")
    options = {"tuples": arguments.tuples, "questions": arguments.questions, "seed": arguments.seed}
    flags = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    made = subprocess.run([sys.executable, str(script), str(data), *flags], check=False)
    if made.returncode:
        sys.exit(made.returncode)  # what is wrong has been said
    write_pairs(data / "facts.jsonl", data / "pairs.jsonl")
    queries = load_beir(data).queries
    results: dict[str, dict[str, dict[str, float]]] = {}
    for form in ("facts", "pairs"):
        for label, row in compared(data / f"{form}.jsonl", arguments.directory / form, queries):
            results.setdefault(label, {})[form] = row
            print(f"{form:6} {label:29}", ", ".join(f"{k} {100 * v:.1f}" for k, v in row.items()), flush=True)
    print(f"{len(split_questions(queries)[2])} questions that were not trained on")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
