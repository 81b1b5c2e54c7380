"""Reads structured facts from JSON lines and CSV: each record is one fact with any number of arguments.

A line of ``.jsonl`` is ``{"relation": "give", "arguments": [{"role": "giver", "entity": "Alice"}, ...]}``, or with
``"arguments": {"giver": "Alice", "gift": ["Book", "Pen"]}``, and may hold ``text``, ``title`` and ``_id``; other keys
are metadata. The lines of knowledge bases are read, too: ``{"subject", "relation", "object", "qualifiers": {...}}``,
``{"P39": ["Q1", "Q2"], "N": 2}`` (WikiPeople, JF17K) and ``["relation", "e1", "e2", ...]``. In ``.csv`` a row is a
fact, the columns are its roles and empty cells are left out; the columns ``_id``, ``relation`` and ``text`` mean what
they mean in JSON lines. A fact that names no relation has the name of its file. No language model is needed: these are
the facts one would be asked for (HyperRAG, section 2).

Every argument is kept word for word. It is an entity, by which facts are joined, or a literal: a number with its unit,
a date, a boolean, a text. What it is, an argument says itself (``"type": "date"``), or the header of its column
(``dose:number[mg]``), or the file ``schema.toml`` in the same folder; otherwise it is inferred from the value
(:func:`polyad.text.literals.infer_type`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from polyad.config import ReadSettings
from polyad.errors import ReadError
from polyad.model import Argument, Document, Failure
from polyad.readers.files import FileReader
from polyad.readers.given_values import (
    UNDECLARED,
    Declared,
    SpeltFloat,
    build_arguments,
    parse_cell_arguments,
    parse_column_name,
    parse_int_spelling,
    read_role_schema,
)
from polyad.readers.plain_text import clean, single_line
from polyad.readers.records import (
    convert_csv,
    convert_json_lines,
    find_values,
    get_record_id,
    get_string,
    get_url_and_metadata,
    shown,
)
from polyad.text.fact_text import format_argument_value, format_arguments, format_fact

__all__ = ["TupleReader", "format_fact", "read_csv_facts", "read_json_facts"]

_FORMATS = {
    ".jsonl": "polyad.readers.tuples:read_json_facts",
    ".csv": "polyad.readers.tuples:read_csv_facts",
}
"""Extension to the ``module:function`` that streams the facts of a file."""

_COLUMNS = ("_id", "relation", "text")
"""Columns that are no roles."""

_KEYS = frozenset({"relation", "arguments", "title", "text"})
"""Keys of a line that are no metadata, beside those that all kinds of records have."""

_TRIPLE = ("subject", "object", "qualifiers")
_RELATIONS = ("relation", "predicate", "property")
"""Under the first of these that is there, a triple has its relation."""

_ARITY = "N"
"""Key of the number of arguments, in lines whose other keys are roles (NaLP's form of WikiPeople and JF17K)."""

_HEAD, _TAIL = "_h", "_t"
"""What ends the roles of the primary triple in such a line; before it stands the relation."""

_READ_IN_TEXT = frozenset({"number", "date", "boolean", "string"})
"""Types of values that are found by the words of a fact alone."""

_DIGITS = 16  # of the hash in an id: 64 bits, so that a clash in a million facts is less likely than one in ten million


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
    """Yield a fact for each line. For arguments and errors see :func:`polyad.readers.records.read_json_lines`."""
    facts = _Facts(name, file.stem, read_role_schema(file.parent))
    return convert_json_lines(file, name, max_bytes, facts.of_record, SpeltFloat, parse_int_spelling)


def read_csv_facts(file: Path, name: str, max_bytes: int) -> Iterator[Document | Failure]:
    """Yield a fact for each row. For arguments and errors see :func:`polyad.readers.records.read_csv`."""
    return convert_csv(file, name, max_bytes, _Facts(name, file.stem, read_role_schema(file.parent)).of_row)


class _Facts:
    """Builds documents from the facts of one file and numbers repeated facts."""

    def __init__(self, name: str, relation: str, schema: Mapping[str, Declared]) -> None:
        self._name = name
        self._relation = single_line(relation)
        self._schema = schema
        self._seen: Counter[str] = Counter()

    def of_record(self, record: object, place: str) -> Document:
        if isinstance(record, list) and len(record) > 1 and isinstance(record[0], str):
            record = {"relation": record[0], "arguments": {str(n): one for n, one in enumerate(record[1:], start=1)}}
        if not isinstance(record, dict):
            raise ReadError(f'a JSON {type(record).__name__}; expected an object {{"relation", "arguments"}}')
        title, text, identity = get_string(record, "title"), get_string(record, "text"), get_record_id(record)
        relation, given, keys = _parts(record)
        arguments = tuple(self._arguments(given))
        document = self._document(identity, single_line(title), single_line(relation), arguments, text, place)
        url, metadata = get_url_and_metadata(record, keys)
        return replace(document, url=url, metadata=metadata)

    def of_row(self, columns: Sequence[str], row: Sequence[str], place: str) -> Document:
        named = find_values(columns, row, _COLUMNS)
        arguments = tuple(self._of_cells(columns, row))
        if not arguments:
            raise ReadError("no arguments: expected a value in at least one column that names a role")
        identity, relation = (single_line(named.get(column, "")) for column in ("_id", "relation"))
        return self._document(identity, "", relation, arguments, named.get("text", ""), place)

    def _arguments(self, given: Sequence[tuple[str, object]]) -> Iterator[Argument]:
        for role, value in given:
            yield from build_arguments(role, value, self._schema.get(role, UNDECLARED))

    def _of_cells(self, columns: Sequence[str], row: Sequence[str]) -> Iterator[Argument]:
        for place, text in enumerate(row):
            column = columns[place] if place < len(columns) else ""
            if text.strip() and column.lower() not in _COLUMNS:
                role, declared = parse_column_name(column or f"column {place + 1}")
                yield from parse_cell_arguments(role, text, declared or self._schema.get(role, UNDECLARED))

    def _document(
        self, identity: str, title: str, relation: str, arguments: tuple[Argument, ...], text: str, place: str
    ) -> Document:
        relation = relation or self._relation
        text = clean(text)
        if text.strip():
            shown_text = _with_literals(text, arguments)
        else:
            text, shown_text = "", format_fact(relation, arguments)
        return Document(
            identity or self._identity(relation, arguments, text),
            title,
            shown_text,
            source=place,
            arguments=arguments,
            relation=relation,
        )

    def _identity(self, relation: str, arguments: Sequence[Argument], text: str) -> str:
        content = [relation, sorted((argument.role, argument.value) for argument in arguments), text]
        digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:_DIGITS]
        self._seen[digest] += 1
        repeat = f"~{self._seen[digest]}" if self._seen[digest] > 1 else ""
        return f"{self._name}:{digest}{repeat}"


def _parts(record: Mapping[str, object]) -> tuple[str, list[tuple[str, object]], frozenset[str]]:
    """Return the relation, the roles with their values, and the record keys that contain them.

    Raises:
        ReadError: There are no roles.
    """
    given = record.get("arguments")
    if given is None and "subject" in record and "object" in record:
        return _of_triple(record)
    if given is None and isinstance(record.get(_ARITY), int):
        return _of_arity(record)
    if isinstance(given, dict) and given:
        found = [(_role(role, place), value) for place, (role, value) in enumerate(given.items(), start=1)]
    elif isinstance(given, list) and given:
        found = [_listed(value, place) for place, value in enumerate(given, start=1)]
    else:
        raise ReadError(f'"arguments" is {shown(given)}; expected a list of one {{"role", "entity"}} or more')
    return get_string(dict(record), "relation"), found, _KEYS


def _of_triple(record: Mapping[str, object]) -> tuple[str, list[tuple[str, object]], frozenset[str]]:
    key = next((key for key in _RELATIONS if key in record), "relation")
    qualifiers = record.get("qualifiers")
    pairs: list[tuple[str, object]] = [("subject", record["subject"]), ("object", record["object"])]
    for one in qualifiers if isinstance(qualifiers, list) else [qualifiers]:
        if isinstance(one, dict):
            pairs += one.items() if "role" not in one else [_listed(one, len(pairs) + 1)]
        elif one is not None:
            pairs.append(_listed(one, len(pairs) + 1))
    return get_string(dict(record), key), pairs, _KEYS.union(_TRIPLE, [key])


def _of_arity(record: Mapping[str, object]) -> tuple[str, list[tuple[str, object]], frozenset[str]]:
    """Of a line whose keys are roles; its relation is that of its primary triple, which comes first."""
    identity = "_id" if "_id" in record else "id"
    no_roles = (_ARITY, identity, "relation", "title", "text")
    others = [(key, value) for key, value in record.items() if key not in no_roles]
    if not others:
        raise ReadError(f'no arguments: expected roles beside "{_ARITY}"')
    heads = [key for key, _ in others if key.endswith(_HEAD) and f"{key.removesuffix(_HEAD)}{_TAIL}" in record]
    relation = get_string(dict(record), "relation") or (heads[0].removesuffix(_HEAD) if heads else others[0][0])
    return relation, others, _KEYS.union([_ARITY], (key for key, _ in others))


def _listed(value: object, place: int) -> tuple[str, object]:
    """Role and value of one in a list of arguments; one that is no object is a value without a role."""
    if not isinstance(value, dict) or not {"role", "entity", "value", "id"} & value.keys():
        return f"argument {place}", value
    described = {key: part for key, part in value.items() if key != "role"}
    return _role(value.get("role"), place), described if described.keys() - {"type", "unit"} else None


def _role(role: object, place: int) -> str:
    name = single_line(role if isinstance(role, str) else "" if role is None else json.dumps(role))
    return name or f"argument {place}"


def _with_literals(text: str, arguments: Sequence[Argument]) -> str:
    """``text`` with those values added by which no fact is found and that it does not mention: else they are unread."""
    literals = [(argument, format_argument_value(argument)) for argument in arguments if argument.type in _READ_IN_TEXT]
    missing = {
        words for words in {words for _, words in literals} if not re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text)
    }
    lost = [argument for argument, words in literals if words in missing]
    return f"{text.rstrip()} ({format_arguments(lost)})" if lost else text
