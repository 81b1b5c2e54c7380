"""A scripted extractor: says, over the real protocol, the facts that a model once found in the passages of a corpus.

``python -m polyad.language_models.scripted.extractor corpus.jsonl openie.jsonl`` serves one. The corpus has a record
``{"_id", "title", "text"}`` a line, the triples a record ``{"_id", "entities", "triples"}``; the triples of a passage
are grouped by subject, each group one n-ary fact. With it real passages are indexed with real extractions, requests,
retries and parsing, on a machine without any model.
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
from polyad.language_models.scripted.model import cite_first_passage
from polyad.language_models.scripted.server import Request, ScriptedServer, add_server_options, serve

_NAME = re.compile(r"\b[A-Z0-9][\w.'-]*(?:\s+(?:of|the|and|de|in)(?=\s+[A-Z0-9])|\s+[A-Z0-9][\w.'-]*)*")


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence, and the entities in it with whether each is a name."""

    text: str
    members: Mapping[str, bool]


_PASSAGE = re.compile(r'<passage(?: title="[^\n]*")?>\n(.*?)\n</passage>', re.DOTALL)


def passage_asked_about(prompt: str) -> str:
    r"""The passage that a prompt of indexing quotes; all of the prompt where it quotes none.

    >>> passage_asked_about('<passage title="Ada">\nShe met him.\n</passage>')
    'She met him.'
    """
    quoted = _PASSAGE.search(prompt)
    return quoted[1] if quoted else prompt


class ScriptedExtractor:
    """Replies to the requests that indexing and searching make.

    To a passage of the corpus the reply is its facts, in the format that was asked for; to a question, the capitalised
    names in it, or the question itself as the only clue; to anything else the first passage, cited.

    Args:
        facts: Of each passage, by its text.
    """

    def __init__(self, facts: Mapping[str, Sequence[Fact]]) -> None:
        self._facts = facts

    @classmethod
    def from_files(cls, corpus: Path, triples: Path) -> ScriptedExtractor:
        """Read a corpus and the triples that were extracted from it.

        Raises:
            ConfigurationError: a file cannot be read, or has a line without the keys expected.
        """
        texts = {record["_id"]: record["text"].strip() for record in _records(corpus, _id=str, text=str)}
        return cls(
            {
                texts[record["_id"]]: facts_by_subject(record["triples"], frozenset(record["entities"]))
                for record in _records(triples, _id=str, triples=list, entities=list)
                if record["_id"] in texts
            }
        )

    def __call__(self, request: Request) -> str:
        """The reply to one request."""
        asked = passage_asked_about(str((request.get("messages") or [{}])[-1].get("content"))).strip()
        wanted = _wanted(request)
        if "facts" in wanted:
            return _compact(self._facts_of(asked))
        if "<|COMPLETE|>" in json.dumps(request.get("messages")):
            return _records_of(self._facts_of(asked))
        if "clues" in wanted:
            return json.dumps({"clues": [asked]})
        if "entities" in wanted:
            return json.dumps({"entities": _NAME.findall(asked)})
        return cite_first_passage(request)

    def _facts_of(self, asked: str) -> Sequence[Fact]:
        if asked in self._facts:
            return self._facts[asked]
        return next((facts for text, facts in self._facts.items() if text in asked), ())


def facts_by_subject(triples: Sequence[Sequence[str]], names: frozenset[str]) -> list[Fact]:
    """One fact for each subject of the triples, in the order of first appearance.

    >>> fact, = facts_by_subject([["Ada", "met", "Babbage"], ["Ada", "lived in", "London"]], frozenset({"Ada"}))
    >>> fact.text, dict(fact.members)
    ('Ada met Babbage; lived in London.', {'Ada': True, 'Babbage': False, 'London': False})
    """
    grouped: dict[str, list[tuple[str, str]]] = {}
    for subject, relation, value in (triple for triple in triples if len(triple) == 3):
        if subject.strip():
            grouped.setdefault(subject.strip(), []).append((relation.strip(), value.strip()))
    facts = []
    for subject, rest in grouped.items():
        said = "; ".join(dict.fromkeys(f"{relation} {value}".strip() for relation, value in rest))
        members = dict.fromkeys([subject, *(value for _, value in rest if value)])
        facts.append(Fact(f"{subject} {said}.", {member: member in names for member in members}))
    return facts


def _compact(facts: Sequence[Fact]) -> str:
    names = {name: is_name for fact in facts for name, is_name in fact.members.items()}
    return json.dumps(
        {
            "facts": [{"text": fact.text, "score": 9, "entities": list(fact.members)} for fact in facts],
            "entities": [
                f"{name.replace('|', '/')} | {_type(is_name)} |  | {_importance(is_name)}"
                for name, is_name in names.items()
            ],
        },
        ensure_ascii=False,
    )


def _records_of(facts: Sequence[Fact]) -> str:
    records = []
    for fact in facts:
        records.append(f'("hyper-relation"<|>{fact.text}<|>9)')
        records += [
            f'("entity"<|>{name}<|>{_type(is_name)}<|><|>{_importance(is_name)})'
            for name, is_name in fact.members.items()
        ]
    return "\n##\n".join([*records, "<|COMPLETE|>"])


def _type(is_name: bool) -> str:
    return "name" if is_name else "concept"


def _importance(is_name: bool) -> int:
    return 90 if is_name else 60


def _wanted(request: Request) -> Mapping[str, Any]:
    """The properties of the JSON schema in a request; empty where there is none."""
    schema = ((request.get("response_format") or {}).get("json_schema") or {}).get("schema") or {}
    properties = schema.get("properties") or {}
    return properties if isinstance(properties, dict) else {}


def _records(file: Path, **expected: type) -> list[dict[str, Any]]:
    """The records of a file, each with the ``expected`` keys of these types."""
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
            wanted = ", ".join(f'"{key}"' for key in expected)
            raise ConfigurationError(f"{str(file)!r}, line {number}: {line[:80]!r}; expected an object with {wanted}")
        records.append(record)
    return records


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve the extractor until interrupted."""
    parser = argparse.ArgumentParser(
        prog="python -m polyad.language_models.scripted.extractor", description=main.__doc__
    )
    parser.add_argument("corpus", type=Path, help='.jsonl file with a passage a line: {"_id", "title", "text"}')
    parser.add_argument(
        "triples",
        type=Path,
        help='.jsonl file with what was found in each: {"_id", "entities": [name, ...], "triples": [[subject, '
        "relation, object], ...]}",
    )
    add_server_options(parser)
    options = parser.parse_args(arguments)

    def make() -> ScriptedServer:
        extractor = ScriptedExtractor.from_files(options.corpus, options.triples)
        return ScriptedServer(extractor, port=options.port, delay=options.delay)

    serve(parser, make)


if __name__ == "__main__":
    main()
