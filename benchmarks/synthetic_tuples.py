"""Writes a synthetic knowledge base of n-ary facts, and questions of one to three hops with exactly one answer.

    python benchmarks/synthetic_tuples.py OUT_DIR --tuples 5000 --questions 300 --seed 7

The folder holds ``facts.jsonl`` (what ``--method tuples`` reads) and a benchmark in the BEIR layout: ``corpus.jsonl``,
the same facts with their text, ``queries.jsonl`` and ``qrels/test.tsv``.

Most facts come in Latin squares: of three people, three prizes and three years each pair of values occurs in exactly
one fact. Two roles together then decide the third, while the pairs of a binary graph leave all three values open: this
is the role ambiguity of HyperRAG, appendix A. The other facts hold each entity's origin, and so tie relations together.

A question of two hops describes an entity in place of naming it, by another fact; one of three hops does so twice. The
text never names an answer or an entity that it describes, and what a step names does not decide its answer without
what it describes. The ``metadata`` of a question has its ``answers``, its ``hops``, its ``steps`` in the order in which
they can be answered, and whether a step is ``ambiguous`` for pairs.
"""

from __future__ import annotations

import argparse
import json
import random
import string
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from polyad.model import Argument
from polyad.readers.folder.tuples import format_fact
from polyad.text.keys import build_entity_key

FEWEST_TUPLES = 300
MOST_HOPS = 3
_SQUARE = 3  # values a role in a Latin square, hence 9 facts
_SHARE_IN_SQUARES = 0.7
_TRIES = 20_000  # for one question
_HEADS = (*"bcdfghjklmnprstv", "br", "dr", "gr", "qu", "st", "tr")
_ARTICLE = frozenset({"prize", "organisation", "river"})  # kinds whose names are spoken of with "the"


class Ask(NamedTuple):
    """A question template for one role of a fact, as a whole question and as part of another question."""

    requested_role: str
    question: str
    phrase: str

    @property
    def bound(self) -> tuple[str, ...]:
        """The roles that the question names."""
        return tuple(name for _, name, _, _ in string.Formatter().parse(self.question) if name)


@dataclass(frozen=True)
class Relation:
    """A kind of fact: the entity kind of each role, and its question templates.

    Either ``square`` has three roles of which any two decide the third, or each entity of its kind is in the role
    ``once`` of exactly one fact.
    """

    name: str
    roles: Mapping[str, str]
    asks: tuple[Ask, ...]
    square: tuple[str, ...] = ()
    once: str = ""


def _relation(record: Mapping[str, Any]) -> Relation:
    asks = tuple(Ask(**ask) for ask in record["asks"])
    return Relation(record["name"], record["roles"], asks, tuple(record.get("square", ())), record.get("once", ""))


RELATIONS = tuple(map(_relation, json.loads(Path(__file__).with_name("synthetic_relations.json").read_text("utf-8"))))
"""Kept apart from the code: wording is data."""


@dataclass(frozen=True)
class Fact:
    """An n-ary fact."""

    id: str
    relation: Relation
    roles: Mapping[str, str]

    @property
    def arguments(self) -> list[Argument]:
        """Its roles as polyad has them."""
        return [Argument(role, entity) for role, entity in self.roles.items()]


@dataclass
class Knowledge:
    """Facts, queried as n-ary facts or as pairs."""

    facts: list[Fact]
    _by_role: dict[tuple[str, str, str], set[int]] = field(default_factory=lambda: defaultdict(set))

    def __post_init__(self) -> None:
        for number, fact in enumerate(self.facts):
            for role, entity in fact.roles.items():
                self._by_role[fact.relation.name, role, entity].add(number)

    @cached_property
    def asked_of(self) -> dict[str, list[tuple[Fact, Ask]]]:
        """The ways to describe each entity."""
        ways: dict[str, list[tuple[Fact, Ask]]] = defaultdict(list)
        for fact, ask in self.asks:
            ways[fact.roles[ask.requested_role]].append((fact, ask))
        return ways

    @cached_property
    def asks(self) -> list[tuple[Fact, Ask]]:
        """Everything that can be asked of single facts."""
        return [(fact, ask) for fact in self.facts for ask in fact.relation.asks]

    def answers(self, relation: str, bound: Mapping[str, str], expected: str) -> set[str]:
        """Who is ``wanted`` in a fact that has all of ``bound``; with nothing bound, in any fact."""
        if not bound:
            return {fact.roles[expected] for fact in self.facts if fact.relation.name == relation}
        matching = set.intersection(*(self._by_role[relation, role, entity] for role, entity in bound.items()))
        return {self.facts[number].roles[expected] for number in matching}

    def answers_of_pairs(self, relation: str, bound: Mapping[str, str], expected: str) -> set[str]:
        """Who is ``wanted`` together with each of ``bound``, in one fact or in several."""
        return set.intersection(*(self.answers(relation, {role: entity}, expected) for role, entity in bound.items()))


class Step(NamedTuple):
    """One hop: the bound roles of a fact, and the role of the answer."""

    fact: Fact
    bound: dict[str, str]
    requested_role: str

    @property
    def answer(self) -> str:
        """The entity that is read off."""
        return self.fact.roles[self.requested_role]


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="OUT_DIR", help="created if need be; its files are replaced")
    parser.add_argument("--tuples", type=int, default=5000, help=f"how many facts, {FEWEST_TUPLES} or more")
    parser.add_argument("--questions", type=int, default=300, help="how many, a third for each number of hops")
    parser.add_argument("--seed", type=int, default=7, help="the same seed writes the same files")
    options = parser.parse_args(arguments)
    if options.tuples < FEWEST_TUPLES:
        parser.error(f"--tuples is {options.tuples}; expected {FEWEST_TUPLES} or more")
    if options.questions < 1:
        parser.error(f"--questions is {options.questions}; expected 1 or more")
    knowledge = Knowledge(list(make_facts(options.tuples, random.Random(options.seed))))
    queries = list(make_queries(knowledge, options.questions, random.Random(options.seed + 1)))
    write(options.folder, knowledge.facts, queries)
    print(f"{len(knowledge.facts):,} facts and {len(queries):,} questions in {options.folder}")


def make_facts(count: int, chance: random.Random) -> Iterator[Fact]:
    """Return ``count`` facts: Latin squares in turn, then one fact for the origin of each entity."""
    squared = [relation for relation in RELATIONS if relation.square]
    squares = int(_SHARE_IN_SQUARES * count) // (len(squared) * _SQUARE**2)
    left = count - squares * len(squared) * _SQUARE**2
    sizes = {"organisation": left // 4, "drug": left // 8, "opera": left // 8, "city": left // 15}
    sizes["person"] = left - sum(sizes.values())
    sizes |= {"prize": 20 + count // 60, "disease": 20 + count // 60, "country": 8, "river": 10 + count // 100}
    pools = make_names(sizes, chance)
    for relation in RELATIONS:
        rows = (
            [row for _ in range(squares) for row in _build_latin_square(relation, pools, chance)]
            if relation.square
            else [
                _build_fact(relation, {relation.once: entity}, pools, chance)
                for entity in pools[relation.roles[relation.once]]
            ]
        )
        for number, row in enumerate(rows, start=1):
            yield Fact(f"{relation.name}-{number:04}", relation, row)


def _build_latin_square(
    relation: Relation, pools: Mapping[str, Sequence[str]], chance: random.Random
) -> Iterator[dict[str, str]]:
    """Return the facts of a Latin square; an organisation outside the square is the same in all facts."""
    kinds = [relation.roles[role] for role in relation.square]
    drawn = {kind: chance.sample(pools[kind], _SQUARE * kinds.count(kind)) for kind in dict.fromkeys(kinds)}
    values = [[drawn[kind].pop() for _ in range(_SQUARE)] for kind in kinds]
    common = {
        role: chance.choice(pools[kind])
        for role, kind in relation.roles.items()
        if kind == "organisation" and role not in relation.square
    }
    for first, second in product(range(_SQUARE), repeat=2):
        selection = (values[0][first], values[1][second], values[2][(first + second) % _SQUARE])
        yield _build_fact(relation, common | dict(zip(relation.square, selection, strict=True)), pools, chance)


def _build_fact(
    relation: Relation, values: Mapping[str, str], pools: Mapping[str, Sequence[str]], chance: random.Random
) -> dict[str, str]:
    """Return a fact with the given roles and random other roles; no entity has two roles."""
    row: dict[str, str] = {}
    for role, kind in relation.roles.items():
        selection = {*row.values(), *values.values()}
        row[role] = values.get(role) or chance.choice([name for name in pools[kind] if name not in selection])
    return row


def make_names(sizes: Mapping[str, int], chance: random.Random) -> dict[str, list[str]]:
    """Return invented names of each kind without equal keys; years, posts and phases are fixed."""
    pools = {
        "year": [str(year) for year in range(1900, 2020)],
        "stage": ["phase I", "phase II", "phase III", "phase IV"],
        "post": ["director", "treasurer", "archivist", "chief engineer", "librarian", "inspector", "head of research"],
    }
    used = {build_entity_key(name) for pool in pools.values() for name in pool}
    first_names = [_stem(chance, 2) for _ in range(60)]
    surnames = [_stem(chance, 3) for _ in range(max(60, sizes["person"] // 4))]
    for kind, size in sizes.items():
        pool: list[str] = []
        while len(pool) < size:
            name = (
                f"{chance.choice(first_names)} {chance.choice(surnames)}" if kind == "person" else _name(kind, chance)
            )
            key = build_entity_key(name)
            if key and key not in used:
                used.add(key)
                pool.append(name)
        pools[kind] = pool
    return pools


def _name(kind: str, chance: random.Random) -> str:
    stem = _stem(chance, 3)
    if kind == "organisation":
        return f"{stem} {chance.choice(('Institute', 'Company', 'Trust', 'Society', 'Academy', 'Laboratory'))}"
    patterns = {
        "prize": "{} Prize",
        "drug": "{}in",
        "disease": "{} syndrome",
        "opera": "The {}a of {}",
        "country": "{}ia",
    }
    return patterns.get(kind, "{}").format(stem, _stem(chance, 2))


def _stem(chance: random.Random, syllables: int) -> str:
    word = "".join(chance.choice(_HEADS) + chance.choice("aeiou") for _ in range(syllables))
    return (word + chance.choice("lmnrst")).capitalize()


def make_queries(knowledge: Knowledge, count: int, chance: random.Random) -> Iterator[dict[str, Any]]:
    """Return distinct questions of 1, 2 and 3 hops in turn, as lines of ``queries.jsonl`` with their gold facts."""
    seen: set[str] = set()
    for number in range(count):
        hops = 1 + number % MOST_HOPS
        for _ in range(_TRIES):
            fact, ask = chance.choice(knowledge.asks)
            step = _describe(knowledge, fact, ask, hops, chance, whole=True)
            if step and step[0] not in seen and not _reveals_entity(step[1]):
                break
        else:
            raise SystemExit(f"only {number} questions found; expected {count}: ask for fewer, or for more tuples")
        text, steps = step
        seen.add(text)
        yield {"_id": f"q{number + 1:04}", "text": text, "metadata": _metadata(knowledge, steps)}


def _describe(
    knowledge: Knowledge, fact: Fact, ask: Ask, hops: int, chance: random.Random, *, whole: bool = False
) -> tuple[str, list[Step]] | None:
    """Return words that identify one role of a fact uniquely through ``hops`` facts, and the steps."""
    relation = fact.relation
    bound = {role: fact.roles[role] for role in ask.bound}
    if len(knowledge.answers(relation.name, bound, ask.requested_role)) != 1:
        return None
    words = {role: _spoken(relation.roles[role], entity) for role, entity in bound.items()}
    steps: list[Step] = []
    if hops > 1:
        described = _describe_role(knowledge, fact, bound, ask.requested_role, hops - 1, chance)
        if described is None:
            return None
        role, words[role], steps = described
    text = (ask.question if whole else ask.phrase).format(**words)
    return text, [*steps, Step(fact, bound, ask.requested_role)]


def _describe_role(
    knowledge: Knowledge, fact: Fact, bound: Mapping[str, str], expected: str, hops: int, chance: random.Random
) -> tuple[str, str, list[Step]] | None:
    """Return a bound role that the question needs, and words for its entity."""
    for role in chance.sample(sorted(bound), len(bound)):
        rest = {other: entity for other, entity in bound.items() if other != role}
        ways = [way for way in knowledge.asked_of.get(bound[role], ()) if way[0] is not fact]
        if not ways or len(knowledge.answers(fact.relation.name, rest, expected)) == 1:
            continue
        inner, ask = chance.choice(ways)
        if result := _describe(knowledge, inner, ask, hops, chance):
            return role, *result
    return None


def _spoken(kind: str, name: str) -> str:
    return f"the {name}" if kind in _ARTICLE else name


def _reveals_entity(steps: Sequence[Step]) -> bool:
    """Return whether the text names an entity that it describes or asks for, or uses a fact twice."""
    hidden = [step.answer for step in steps]
    named = {
        entity
        for step, described in zip(steps, ["", *hidden], strict=False)
        for entity in step.bound.values()
        if entity != described
    }
    is_repeated = len(set(hidden)) < len(steps) or len({step.fact.id for step in steps}) < len(steps)
    return is_repeated or bool(named & set(hidden))


def _metadata(knowledge: Knowledge, steps: Sequence[Step]) -> dict[str, Any]:
    return {
        "answers": [steps[-1].answer],
        "hops": len(steps),
        "ambiguous": any(
            len(knowledge.answers_of_pairs(step.fact.relation.name, step.bound, step.requested_role)) > 1
            for step in steps
        ),
        "steps": [
            {
                "fact": step.fact.id,
                "relation": step.fact.relation.name,
                "bound": step.bound,
                "wanted": step.requested_role,
            }
            for step in steps
        ],
    }


def write(folder: Path, facts: Sequence[Fact], queries: Sequence[Mapping[str, Any]]) -> None:
    """Write the four files."""
    lines = [
        {
            "_id": fact.id,
            "relation": fact.relation.name,
            "arguments": [{"role": role, "entity": entity} for role, entity in fact.roles.items()],
        }
        for fact in facts
    ]
    texts = [format_fact(fact.relation.name, fact.arguments) for fact in facts]
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    _write_lines(folder / "facts.jsonl", map(json.dumps, lines))
    _write_lines(
        folder / "corpus.jsonl",
        (json.dumps({**line, "text": text}) for line, text in zip(lines, texts, strict=True)),
    )
    _write_lines(folder / "queries.jsonl", map(json.dumps, queries))
    _write_lines(
        folder / "qrels" / "test.tsv",
        [
            "query-id\tcorpus-id\tscore",
            *(f"{query['_id']}\t{step['fact']}\t1" for query in queries for step in query["metadata"]["steps"]),
        ],
    )


def _write_lines(path: Path, lines: Iterator[str] | Sequence[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
