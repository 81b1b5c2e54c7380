"""A scripted extractor: returns, over the real protocol, facts that a model extracted earlier from a corpus.

``python benchmarks/scripted_extractor.py corpus.jsonl openie.jsonl`` serves the extractor. Each line of the corpus is a
record ``{"_id", "title", "text"}``, each line of the triples a record ``{"_id", "entities", "triples"}``. The triples
of a passage are grouped by subject, each group one n-ary fact; with ``--ungrouped`` each triple is a fact. Real
passages are then indexed with real extractions, requests, retries and parsing, on a machine without any model.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyad.errors import ConfigurationError
from polyad.language_models.scripted import Request, ScriptedServer, cite_first_passage, extract_passage
from polyad.language_models.scripted.server import add_server_options, serve

_NAME = re.compile(r"\b[A-Z0-9][\w.'-]*(?:\s+(?:of|the|and|de|in)(?=\s+[A-Z0-9])|\s+[A-Z0-9][\w.'-]*)*")


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence and its entities; the value of an entity states whether the entity is a name."""

    text: str
    members: Mapping[str, bool]


class ScriptedExtractor:
    """Replies to the requests of indexing and searching.

    The reply to a passage of the corpus is its facts, in the requested format; to a question, the capitalised names in
    the question, or the question itself as the only clue; to another request, the first passage with a citation.

    Args:
        facts: Facts of each passage, by its text.
    """

    def __init__(self, facts: Mapping[str, Sequence[Fact]]) -> None:
        self._facts = facts

    @classmethod
    def from_files(cls, corpus: Path, triples: Path, *, grouped: bool = True) -> ScriptedExtractor:
        """Build the extractor from a corpus and the triples of its passages.

        Args:
            corpus: File of the passages.
            triples: File of their triples.
            grouped: Whether the triples of a subject are one fact; otherwise each triple is one.

        Raises:
            ConfigurationError: a file cannot be read, or a line lacks an expected key.
        """
        texts = {record["_id"]: record["text"].strip() for record in _read_records(corpus, _id=str, text=str)}
        return cls(
            {
                texts[record["_id"]]: [
                    fact
                    for triples_of_fact in ([record["triples"]] if grouped else [[one] for one in record["triples"]])
                    for fact in group_by_subject(triples_of_fact, frozenset(record["entities"]))
                ]
                for record in _read_records(triples, _id=str, triples=list, entities=list)
                if record["_id"] in texts
            }
        )

    def __call__(self, request: Request) -> str:
        """Return the reply to a request."""
        passage = extract_passage(str((request.get("messages") or [{}])[-1].get("content"))).strip()
        requested = _get_schema_properties(request)
        if "facts" in requested:
            return _format_json(self._find_facts(passage))
        if "<|COMPLETE|>" in json.dumps(request.get("messages")):
            return _format_records(self._find_facts(passage))
        if "clues" in requested:
            return json.dumps({"clues": [passage]})
        if "entities" in requested:
            return json.dumps({"entities": _NAME.findall(passage)})
        return cite_first_passage(request)

    def _find_facts(self, passage: str) -> Sequence[Fact]:
        if passage in self._facts:
            return self._facts[passage]
        return next((facts for text, facts in self._facts.items() if text in passage), ())


def group_by_subject(triples: Sequence[Sequence[str]], names: frozenset[str]) -> list[Fact]:
    """Return one fact for each subject of the triples, in order of first appearance.

    >>> fact, = group_by_subject([["Ada", "met", "Babbage"], ["Ada", "lived in", "London"]], frozenset({"Ada"}))
    >>> fact.text, dict(fact.members)
    ('Ada met Babbage; lived in London.', {'Ada': True, 'Babbage': False, 'London': False})
    """
    grouped: dict[str, list[tuple[str, str]]] = {}
    for subject, relation, value in (triple for triple in triples if len(triple) == 3):
        if subject.strip():
            grouped.setdefault(subject.strip(), []).append((relation.strip(), value.strip()))
    facts = []
    for subject, rest in grouped.items():
        reply = "; ".join(dict.fromkeys(f"{relation} {value}".strip() for relation, value in rest))
        members = dict.fromkeys([subject, *(value for _, value in rest if value)])
        facts.append(Fact(f"{subject} {reply}.", {member: member in names for member in members}))
    return facts


def _format_json(facts: Sequence[Fact]) -> str:
    names = {name: is_name for fact in facts for name, is_name in fact.members.items()}
    return json.dumps(
        {
            "facts": [{"text": fact.text, "score": 9, "entities": list(fact.members)} for fact in facts],
            "entities": [
                f"{name.replace('|', '/')} | {_type(is_name)} |  | {_get_score(is_name)}"
                for name, is_name in names.items()
            ],
        },
        ensure_ascii=False,
    )


def _format_records(facts: Sequence[Fact]) -> str:
    records = []
    for fact in facts:
        records.append(f'("hyper-relation"<|>{fact.text}<|>9)')
        records += [
            f'("entity"<|>{name}<|>{_type(is_name)}<|><|>{_get_score(is_name)})'
            for name, is_name in fact.members.items()
        ]
    return "\n##\n".join([*records, "<|COMPLETE|>"])


def _type(is_name: bool) -> str:
    return "name" if is_name else "concept"


def _get_score(is_name: bool) -> int:
    return 90 if is_name else 60


def _get_schema_properties(request: Request) -> Mapping[str, Any]:
    """Return the properties of the JSON schema in a request; an empty mapping if there are none."""
    schema = ((request.get("response_format") or {}).get("json_schema") or {}).get("schema") or {}
    properties = schema.get("properties") or {}
    return properties if isinstance(properties, dict) else {}


def _read_records(file: Path, **expected: type) -> list[dict[str, Any]]:
    """Return the records of a file. Raise ConfigurationError if one lacks a key of the ``expected`` type."""
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read {str(file)!r}: {error}") from error
    records = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if not isinstance(record, dict) or not all(isinstance(record.get(key), expected[key]) for key in expected):
            target = ", ".join(f'"{key}"' for key in expected)
            raise ConfigurationError(f"{str(file)!r}, line {number}: {line[:80]!r}; expected an object with {target}")
        records.append(record)
    return records


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve the extractor until interrupted."""
    parser = argparse.ArgumentParser(prog="python benchmarks/scripted_extractor.py", description=main.__doc__)
    parser.add_argument("corpus", type=Path, help='.jsonl file with a passage a line: {"_id", "title", "text"}')
    parser.add_argument(
        "triples",
        type=Path,
        help='.jsonl file with the triples of each passage: {"_id", "entities": [name, ...], "triples": [[subject, '
        "relation, object], ...]}",
    )
    parser.add_argument("--ungrouped", action="store_true", help="make each triple a fact, instead of each subject")
    add_server_options(parser)
    options = parser.parse_args(arguments)

    def build_server() -> ScriptedServer:
        extractor = ScriptedExtractor.from_files(options.corpus, options.triples, grouped=not options.ungrouped)
        return ScriptedServer(extractor, port=options.port, delay=options.delay)

    serve(parser, build_server)


if __name__ == "__main__":
    main()
