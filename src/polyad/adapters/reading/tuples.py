"""Facts that already are data: JSON lines and tables, each line or row one fact that joins any number of entities.

A line of ``.jsonl`` is ``{"relation": "give", "arguments": [{"role": "giver", "entity": "Alice"}, ...]}``, and may hold
``text``, ``title`` and ``_id``; other keys are metadata. In ``.csv`` a row is a fact, the columns are its roles and
empty cells are left out; the columns ``_id``, ``relation`` and ``text`` mean what they mean in JSON lines. A fact that
names no relation has the name of its file. No language model is needed: these are the facts one
would be asked for (HyperRAG, section 2).

An entity is text or a number. A number below 100, or a word such as "the", is no name that could join facts
(:func:`polyad.text.keys.entity_key`): "42" as someone's age and "42" as someone's dose have nothing in common. Such a
value becomes no member of the hyperedge. It stays in the text, where it is found and read: a text that was given
without it has it added, as ``(age 42)``.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from polyad.adapters.reading.files import FileReader
from polyad.adapters.reading.plain_text import clean, single_line
from polyad.adapters.reading.records import (
    cells,
    convert_csv,
    convert_json_lines,
    description_of,
    identity_of,
    shown,
    string_of,
    values_of,
)
from polyad.config import ReadSettings
from polyad.errors import ReadError
from polyad.model import Argument, Document, Failure
from polyad.text.keys import entity_key

_FORMATS = {
    ".jsonl": "polyad.adapters.reading.tuples:read_json_facts",
    ".csv": "polyad.adapters.reading.tuples:read_csv_facts",
}
"""Extension to the ``module:function`` that streams the facts of a file."""

_COLUMNS = ("_id", "relation", "text")
"""Columns that are no roles."""

_KEYS = frozenset({"relation", "arguments", "title", "text"})
"""Keys of a line that are no metadata, beside those that all kinds of records have."""

_DIGITS = 16  # of the hash in an id: 64 bits, so that a clash in a million facts is less likely than one in ten million
_CAPITAL_WITHIN = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class TupleReader(FileReader):
    """Reads files and folders as :class:`FileReader` does, each record of a ``.jsonl`` or ``.csv`` file as one fact.

    A fact without an ``_id`` is known by its content, as ``file:hash``, whatever its place and the order of its
    arguments, so that a line inserted before it changes nothing. Facts that are equal happened more than once and stay
    apart (HyperRAG, appendix A, "multiplicity"): the second is ``file:hash~2``.

    A fact that is corrected has other content, and hence is another document: what was indexed before stays until it
    is removed. Give facts that may change an ``_id``, by which the corrected one replaces the other.

    Args:
        settings: How large a fact may be.
    """

    def __init__(self, settings: ReadSettings | None = None) -> None:
        super().__init__(settings, one_document={}, many_documents=_FORMATS)


def read_json_facts(file: Path, name: str, max_bytes: int) -> Iterator[Document | Failure]:
    """Every line as a fact. For arguments and errors see :func:`polyad.adapters.reading.records.read_json_lines`."""
    return convert_json_lines(file, name, max_bytes, _Facts(name, file.stem).of_record)


def read_csv_facts(file: Path, name: str, max_bytes: int) -> Iterator[Document | Failure]:
    """Every row as a fact. For arguments and errors see :func:`polyad.adapters.reading.records.read_csv`."""
    return convert_csv(file, name, max_bytes, _Facts(name, file.stem).of_row)


def fact_text(relation: str, arguments: Sequence[Argument]) -> str:
    """A fact in one line, for a reader and for an embedder.

    >>> fact_text("awardReceived", [Argument("winner", "Ines Moreau"), Argument("in_year", "1702")])
    'award received: winner Ines Moreau, in year 1702'
    """
    return f"{_in_words(relation)}: {_listed(arguments)}"


class _Facts:
    """Makes documents of the facts of one file, and remembers which there were, to tell equal ones apart."""

    def __init__(self, name: str, relation: str) -> None:
        self._name = name
        self._relation = single_line(relation)
        self._seen: Counter[str] = Counter()

    def of_record(self, record: object, place: str) -> Document:
        if not isinstance(record, dict):
            raise ReadError(f'a JSON {type(record).__name__}; expected an object {{"relation", "arguments"}}')
        relation, title, text = (string_of(record, key) for key in ("relation", "title", "text"))
        arguments = _arguments(record.get("arguments"))
        identity = identity_of(record)
        document = self._document(identity, single_line(title), single_line(relation), arguments, text, place)
        url, metadata = description_of(record, _KEYS)
        return replace(document, url=url, metadata=metadata)

    def of_row(self, columns: Sequence[str], row: Sequence[str], place: str) -> Document:
        named = values_of(columns, row, _COLUMNS)
        arguments = tuple(
            Argument(column, value) for column, value in cells(columns, row) if column.lower() not in _COLUMNS
        )
        if not arguments:
            raise ReadError("no arguments: expected a value in at least one column that names a role")
        identity, relation = (single_line(named.get(column, "")) for column in ("_id", "relation"))
        return self._document(identity, "", relation, arguments, named.get("text", ""), place)

    def _document(
        self, identity: str, title: str, relation: str, arguments: tuple[Argument, ...], text: str, place: str
    ) -> Document:
        relation = relation or self._relation
        text = clean(text)
        if text.strip():
            shown_text = _with_nameless(text, arguments)
        else:
            text, shown_text = "", fact_text(relation, arguments)
        return Document(
            identity or self._identity(relation, arguments, text), title, shown_text, source=place, arguments=arguments
        )

    def _identity(self, relation: str, arguments: Sequence[Argument], text: str) -> str:
        content = [relation, sorted((argument.role, argument.entity) for argument in arguments), text]
        digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:_DIGITS]
        self._seen[digest] += 1
        repeat = f"~{self._seen[digest]}" if self._seen[digest] > 1 else ""
        return f"{self._name}:{digest}{repeat}"


def _arguments(values: object) -> tuple[Argument, ...]:
    if not isinstance(values, list) or not values:
        raise ReadError(f'"arguments" is {shown(values)}; expected a list of one {{"role", "entity"}} or more')
    return tuple(_argument(value, f"argument {position}") for position, value in enumerate(values, start=1))


def _argument(value: object, which: str) -> Argument:
    if not isinstance(value, dict):
        raise ReadError(f'{which} is {shown(value)}; expected {{"role", "entity"}}')
    role, entity = value.get("role"), value.get("entity")
    if not isinstance(role, str) or not single_line(role):
        raise ReadError(f'"role" of {which} is {shown(role)}; expected the name of a role')
    if _is_number(entity):
        entity = str(entity)
    if not isinstance(entity, str) or not single_line(entity):
        raise ReadError(f'"entity" of {which} is {shown(entity)}; expected a name or a number, one for each argument')
    return Argument(single_line(role), single_line(entity))


def _is_number(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _with_nameless(text: str, arguments: Sequence[Argument]) -> str:
    """``text`` with those values added that no entity holds and that it does not mention: else they would be lost."""
    nameless = {argument.entity for argument in arguments if not entity_key(argument.entity)}
    left_out = {value for value in nameless if not re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text)}
    lost = [argument for argument in arguments if argument.entity in left_out]
    return f"{text.rstrip()} ({_listed(lost)})" if lost else text


def _listed(arguments: Sequence[Argument]) -> str:
    return ", ".join(f"{_in_words(argument.role)} {argument.entity}" for argument in arguments)


def _in_words(name: str) -> str:
    """A name of data as words: ``dateOfBirth`` and ``date_of_birth`` as "date of birth"."""
    words = []
    for word in name.replace("_", " ").split():
        first, *rest = _CAPITAL_WITHIN.split(word)
        words += [first, *(part.lower() if part.istitle() else part for part in rest)]
    return " ".join(words)
