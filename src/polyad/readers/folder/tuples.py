"""Reads structured facts from JSON lines and CSV: each record is one fact with any number of arguments.

A line of ``.jsonl`` is ``{"relation": "give", "arguments": [{"role": "giver", "entity": "Alice"}, ...]}``, or with
``"arguments": {"giver": "Alice", "gift": ["Book", "Pen"]}``, and may hold ``text``, ``title`` and ``_id``; other keys
are metadata. The lines of knowledge bases are read, too: ``{"subject", "relation", "object", "qualifiers": {...}}``,
``{"P39": ["Q1", "Q2"], "N": 2}`` (WikiPeople, JF17K) and ``["relation", "e1", "e2", ...]``. In ``.csv`` a row is a
fact, the columns are its roles and empty cells are omitted; the columns ``_id``, ``relation`` and ``text`` have the
same meaning as in JSON lines. A fact holds from ``valid_from`` to ``valid_to``, which are not roles. The relation of a
fact without one is the name of its file. No language model is needed: the user supplies the facts that a model would
extract (HyperRAG, section 2).

The value of an argument is stored unchanged. It is an entity, which joins facts, or a literal: a number with its unit,
a date, a boolean or a text. Its type is stated by the argument (``"type": "date"``), by its column name
(``dose:number[mg]``) or by the file ``schema.toml`` in the same folder; otherwise it is inferred from the value
(:func:`polyad.text.literals.infer_type`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from polyad.config import ReadSettings
from polyad.errors import ReadError
from polyad.model import Argument, Document, Failure
from polyad.readers.folder.files import FileReader
from polyad.readers.format import Context, Format, Source
from polyad.readers.records.argument_values import (
    UNDECLARED,
    RoleDeclaration,
    VerbatimFloat,
    build_arguments,
    parse_cell_arguments,
    parse_column_name,
    parse_json_integer,
    read_role_schema,
)
from polyad.readers.records.records import (
    convert_csv,
    convert_json_lines,
    find_values,
    format_value,
    get_cells,
    get_record_id,
    get_string,
    get_url_and_metadata,
)
from polyad.readers.text.metadata import build_metadata
from polyad.readers.text.plain_text import clean, to_single_line
from polyad.text.fact_text import format_argument_value, format_arguments, format_fact
from polyad.text.validity import VALIDITY_KEYS

__all__ = ["TupleReader", "format_fact", "read_csv_facts", "read_json_facts"]

_FORMATS = (
    Format(
        name="JSON Lines", extensions=(".jsonl",), read="polyad.readers.folder.tuples:read_json_facts", has_records=True
    ),
    Format(name="CSV", extensions=(".csv",), read="polyad.readers.folder.tuples:read_csv_facts", has_records=True),
)

_SPECIAL_COLUMNS = ("_id", "relation", "text", *VALIDITY_KEYS)
"""Columns that are not roles."""

_FACT_KEYS = frozenset({"relation", "arguments", "title", "text"})
"""Keys of a line that are not metadata, besides the keys of every record."""

_TRIPLE = ("subject", "object", "qualifiers")
_RELATIONS = ("relation", "predicate", "property")
"""Keys for the relation of a triple; the first one present counts."""

_ARITY = "N"
"""Key of the number of arguments, in lines whose other keys are roles (NaLP's form of WikiPeople and JF17K)."""

_HEAD, _TAIL = "_h", "_t"
"""Suffixes of the two roles of the primary triple in such a line; the text before the suffix is the relation."""

_LITERAL_TYPES = frozenset({"number", "date", "boolean", "string"})
"""Types of values that are not entities, so that a search finds them only by the words of the fact."""

_HASH_DIGITS = 16  # 64 bits: a collision among a million facts is less likely than one in ten million


class TupleReader(FileReader):
    """Reads files like :class:`FileReader`, but each record of a ``.jsonl`` or ``.csv`` file is a fact, not a text.

    The id of a fact without ``_id`` is ``file:hash``: a hash of its content, independent of its line and the order of
    its arguments, so that inserting a line changes no id. Equal facts are repetitions and remain distinct (HyperRAG,
    appendix A, "multiplicity"): the second is ``file:hash~2``.

    A corrected fact has another hash and therefore another id: the earlier version stays indexed until it is removed.
    Give facts that may change an ``_id``, so that the corrected fact replaces the earlier one.

    Args:
        settings: Limits on the size of a fact.
    """

    def __init__(self, settings: ReadSettings | None = None) -> None:
        super().__init__(settings, _FORMATS)


def read_json_facts(source: Source, context: Context) -> Iterator[Document | Failure]:
    """Yield a document with one fact (a relation and its arguments) for each line of a JSON Lines file.

    For errors see :func:`polyad.readers.records.records.read_json_lines`.
    """
    return convert_json_lines(
        source, context, _build_facts(source).build_from_record, VerbatimFloat, parse_json_integer
    )


def read_csv_facts(source: Source, context: Context) -> Iterator[Document | Failure]:
    """Yield a document with one fact (a relation and its arguments) for each row of a CSV file.

    For errors see :func:`polyad.readers.records.records.read_csv`.
    """
    return convert_csv(source, context, _build_facts(source).build_from_row)


def _build_facts(source: Source) -> _FactBuilder:
    return _FactBuilder(source.name, source.path.stem, read_role_schema(source.path.parent))


class _FactBuilder:
    """Builds documents from the facts of one file; repetitions of a fact are numbered, so that ids are distinct."""

    def __init__(self, name: str, relation: str, schema: Mapping[str, RoleDeclaration]) -> None:
        self._name = name
        self._relation = to_single_line(relation)
        self._schema = schema
        self._id_counts: Counter[str] = Counter()

    def build_from_record(self, record: object, place: str) -> Document:
        if isinstance(record, list) and len(record) > 1 and isinstance(record[0], str):
            record = {
                "relation": record[0],
                "arguments": {str(n): entity for n, entity in enumerate(record[1:], start=1)},
            }
        if not isinstance(record, dict):
            raise ReadError(f'the line is {format_value(record)}; expected an object {{"relation", "arguments"}}')
        title, text, fact_id = get_string(record, "title"), get_string(record, "text"), get_record_id(record)
        relation, pairs, keys = _split_record(record)
        arguments = tuple(self._build_arguments(pairs))
        document = self._build_document(
            fact_id, to_single_line(title), to_single_line(relation), arguments, text, place
        )
        url, metadata = get_url_and_metadata(record, keys)
        return replace(document, url=url, metadata=metadata)

    def build_from_row(self, columns: Sequence[str], row: Sequence[str], place: str) -> Document:
        special_values = find_values(columns, row, _SPECIAL_COLUMNS)
        arguments = tuple(self._build_cell_arguments(columns, row))
        if not arguments:
            raise ReadError("no arguments: expected a value in at least one column that names a role")
        fact_id, relation = (to_single_line(special_values.get(column, "")) for column in ("_id", "relation"))
        document = self._build_document(fact_id, "", relation, arguments, special_values.get("text", ""), place)
        return replace(document, metadata=build_metadata((key, special_values.get(key)) for key in VALIDITY_KEYS))

    def _build_arguments(self, pairs: Sequence[tuple[str, object]]) -> Iterator[Argument]:
        for role, value in pairs:
            yield from build_arguments(role, value, self._schema.get(role, UNDECLARED))

    def _build_cell_arguments(self, columns: Sequence[str], row: Sequence[str]) -> Iterator[Argument]:
        for column, text in get_cells(columns, row):
            if column.lower() not in _SPECIAL_COLUMNS:
                role, declaration = parse_column_name(column)
                yield from parse_cell_arguments(role, text, declaration or self._schema.get(role, UNDECLARED))

    def _build_document(
        self, fact_id: str, title: str, relation: str, arguments: tuple[Argument, ...], text: str, place: str
    ) -> Document:
        relation = relation or self._relation
        text = clean(text)
        if text.strip():
            document_text = _append_literals(text, arguments)
        else:
            text, document_text = "", format_fact(relation, arguments)
        return Document(
            fact_id or self._build_id(relation, arguments, text),
            title,
            document_text,
            source=place,
            arguments=arguments,
            relation=relation,
        )

    def _build_id(self, relation: str, arguments: Sequence[Argument], text: str) -> str:
        content = [relation, sorted((argument.role, argument.value) for argument in arguments), text]
        digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:_HASH_DIGITS]
        self._id_counts[digest] += 1
        repeat = f"~{self._id_counts[digest]}" if self._id_counts[digest] > 1 else ""
        return f"{self._name}:{digest}{repeat}"


def _split_record(record: Mapping[str, object]) -> tuple[str, list[tuple[str, object]], frozenset[str]]:
    """Return three results for a fact in a JSON record: relation, (role, value) pairs, and the keys of both.

    Raises:
        ReadError: The record has no arguments.
    """
    arguments = record.get("arguments")
    if arguments is None and "subject" in record and "object" in record:
        return _split_triple(record)
    if arguments is None and isinstance(record.get(_ARITY), int):
        return _split_arity(record)
    if isinstance(arguments, dict) and arguments:
        pairs = [(_parse_role(role, place), value) for place, (role, value) in enumerate(arguments.items(), start=1)]
    elif isinstance(arguments, list) and arguments:
        pairs = [_parse_item(value, place) for place, value in enumerate(arguments, start=1)]
    else:
        raise ReadError(
            f'"arguments" is {format_value(arguments)}; expected a list of at least one {{"role", "entity"}}'
        )
    return get_string(dict(record), "relation"), pairs, _FACT_KEYS


def _split_triple(record: Mapping[str, object]) -> tuple[str, list[tuple[str, object]], frozenset[str]]:
    """Return relation, (role, value) pairs, and their keys in a JSON record with ``subject`` and ``object``."""
    key = next((key for key in _RELATIONS if key in record), "relation")
    qualifiers = record.get("qualifiers")
    pairs: list[tuple[str, object]] = [("subject", record["subject"]), ("object", record["object"])]
    for qualifier in qualifiers if isinstance(qualifiers, list) else [qualifiers]:
        if isinstance(qualifier, dict):
            pairs += qualifier.items() if "role" not in qualifier else [_parse_item(qualifier, len(pairs) + 1)]
        elif qualifier is not None:
            pairs.append(_parse_item(qualifier, len(pairs) + 1))
    return get_string(dict(record), key), pairs, _FACT_KEYS.union(_TRIPLE, [key])


def _split_arity(record: Mapping[str, object]) -> tuple[str, list[tuple[str, object]], frozenset[str]]:
    """Return relation, (role, value) pairs, and their keys in a JSON record whose keys are roles, as in NaLP.

    The relation is the name of the primary triple, whose roles come first.
    """
    identity = "_id" if "_id" in record else "id"
    other_keys = (_ARITY, identity, "relation", "title", "text", *VALIDITY_KEYS)
    pairs = [(key, value) for key, value in record.items() if key not in other_keys]
    if not pairs:
        raise ReadError(f'no arguments: expected roles beside "{_ARITY}"')
    heads = [key for key, _ in pairs if key.endswith(_HEAD) and f"{key.removesuffix(_HEAD)}{_TAIL}" in record]
    relation = get_string(dict(record), "relation") or (heads[0].removesuffix(_HEAD) if heads else pairs[0][0])
    return relation, pairs, _FACT_KEYS.union([_ARITY], (key for key, _ in pairs))


def _parse_item(value: object, item_number: int) -> tuple[str, object]:
    """Return role and value of an item in a fact's list of arguments; the default role is ``argument N``."""
    if not isinstance(value, dict) or not {"role", "entity", "value", "id"} & value.keys():
        return f"argument {item_number}", value
    described = {key: part for key, part in value.items() if key != "role"}
    return _parse_role(value.get("role"), item_number), described if described.keys() - {"type", "unit"} else None


def _parse_role(role: object, item_number: int) -> str:
    """Return the role of a fact's argument on one line; ``argument N`` with its number if the role is blank."""
    name = to_single_line(role if isinstance(role, str) else "" if role is None else json.dumps(role))
    return name or f"argument {item_number}"


def _append_literals(text: str, arguments: Sequence[Argument]) -> str:
    """Return ``text`` followed by those numbers, dates and other literal values that the text does not contain.

    Literals are not entities: a search finds literals only by the words of the fact.
    """
    literals = [
        (argument, format_argument_value(argument)) for argument in arguments if argument.type in _LITERAL_TYPES
    ]
    missing = {
        literal
        for literal in {literal for _, literal in literals}
        if not re.search(rf"(?<!\w){re.escape(literal)}(?!\w)", text)
    }
    unmentioned = [argument for argument, literal in literals if literal in missing]
    return f"{text.rstrip()} ({format_arguments(unmentioned)})" if unmentioned else text
