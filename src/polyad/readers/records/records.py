"""Reads JSON lines and CSV as a stream of documents; the size of each record is limited, not the size of the file."""

from __future__ import annotations

import csv
import itertools
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import TextIO

from polyad.errors import ReadError
from polyad.model import Document, Failure, MetadataValue
from polyad.readers.format import Context, Source
from polyad.readers.records.argument_values import parse_column_name
from polyad.readers.text.encodings import detect_encoding
from polyad.readers.text.metadata import TITLE_FROM, build_metadata
from polyad.readers.text.plain_text import clean, require_text, to_single_line
from polyad.readers.text.titles import choose_record_title, is_name_column
from polyad.text.literals import parse_number

_SAMPLE_BYTES = 64 * 1024
"""Bytes from which the encoding is detected."""

_MAX_COLUMNS, _MAX_COLUMN_NAME = 5_000, 500
"""Columns of a table and characters of a column name: each row repeats them in its text."""

_DELIMITERS = ",;\t|"
_LINE_END = "\r\n"

_DECLARED_DELIMITER = re.compile('"?sep=(.)"?[;,\t]*[\r\n]*', re.IGNORECASE)
"""The first line of a table that Excel reads with another delimiter than its own."""

_TITLE_LINES = 20
"""Lines in which the column names are looked for."""

_COLUMNS = frozenset({"_id", "id", "name", "text", "title", "url"})
"""Names of columns, which stand alone in a table of one column."""

_DOCUMENT_KEYS = frozenset({"title", "text"})
"""Keys of a JSON line that are not metadata, besides the keys of every record."""


def read_json_lines(source: Source, context: Context) -> Iterator[Document | Failure]:
    """Yield a document for each line of a JSON Lines file; a line is an object ``{"_id", "title", "text", "url"}``.

    The keys of an object ``metadata``, and all other keys, become metadata. Without ``title``, the title is ``name`` or
    the first text among the other keys. The id of a document is ``_id``, or ``id``, or ``name:line``. With a line
    number as id, inserting a line changes the ids of all following documents.

    Raises:
        ReadError: The file is not text.
        OSError: The file cannot be opened.
    """
    return convert_json_lines(source, context, _build_record_document)


def read_csv(source: Source, context: Context) -> Iterator[Document | Failure]:
    """Yield a document for each row of a CSV file; the first row names the columns.

    The columns ``_id``, ``title``, ``text`` and ``url`` have the same meaning as in JSON lines; other columns become
    metadata. Without a column ``text``, the text is a line ``column: value`` for each of the other columns. Without a
    column ``title``, the title is the column ``name`` or the first text among the other columns. A type in a
    column name, such as ``dose:number[mg]``, is not part of the name; its unit is appended to the numbers. The id of a
    row without ``_id`` is ``name:row``, counted from 1 including the row of column names, as spreadsheets do.

    The delimiter is comma, semicolon, tab or bar, or that of a first line ``sep=;``. Titles before the column names are
    not read.

    Raises:
        ReadError: The file is not text.
        OSError: The file cannot be opened.
    """
    return convert_csv(source, context, _build_row_document)


def convert_json_lines(
    source: Source,
    context: Context,
    convert: Callable[[object, str], Document],
    parse_float: Callable[[str], float] = float,
    parse_int: Callable[[str], float] = int,
) -> Iterator[Document | Failure]:
    """Yield ``convert(value, place)`` for each line of a JSON Lines file: the parsed line and its place ``name:line``.

    A line that is too long or not JSON, or for which ``convert`` raises ReadError, is a failure. ``parse_float``
    converts numbers with a point or an exponent, ``parse_int`` other numbers. For errors see :func:`read_json_lines`.
    """
    max_bytes = context.settings.max_bytes
    with _open_text(source.path, newline=None) as lines:
        for number in itertools.count(1):
            line = lines.readline(max_bytes + 1)
            if not line:
                return
            place = f"{source.name}:{number}"
            if len(line) > max_bytes and not line.endswith("\n"):
                while (piece := lines.readline(max_bytes)) and not piece.endswith("\n"):  # the rest of the line
                    pass
                yield _build_length_failure(place, max_bytes)
            elif not line.isspace():
                try:
                    yield convert(json.loads(line, parse_float=parse_float, parse_int=parse_int), place)
                except (ValueError, RecursionError) as error:
                    yield Failure(place, f"not JSON: {to_single_line(str(error))}")
                except ReadError as error:
                    yield Failure(place, str(error))


def convert_csv(
    source: Source, context: Context, convert: Callable[[Sequence[str], Sequence[str], str], Document]
) -> Iterator[Document | Failure]:
    """Yield ``convert(columns, row, place)`` for each non-blank row of a CSV file, where ``place`` is ``name:row``.

    A row that is too long, or for which ``convert`` raises ReadError, is a failure, and so is a line with a quote that
    is not closed. A stray quote within a line is text. For errors see :func:`read_csv`.
    """
    max_bytes = context.settings.max_bytes
    csv.field_size_limit(max(csv.field_size_limit(), max_bytes))
    with _open_text(source.path, newline="") as stream:
        lines = _RowLines(stream, max_bytes)
        columns: list[str] = []
        number = 0
        while not lines.is_at_end:
            try:
                for row in _parse_rows(lines):
                    number += 1
                    place = f"{source.name}:{number}"
                    if number == lines.header:
                        columns = _read_column_names(row)
                    elif number > lines.header and any(value.strip() for value in row):
                        try:
                            yield convert(columns, row, place)
                        except ReadError as error:
                            yield Failure(place, str(error))
            except csv.Error as error:
                number += 1
                yield Failure(f"{source.name}:{number}", f"line {lines.record} is not CSV: {error}")
                lines.keep_first_line()
            except _TooLongError:
                number, line = number + 1, lines.record
                failure = _build_length_failure(f"{source.name}:{number}", max_bytes)
                has_end = lines.skip_record()
                if number <= lines.header or not has_end:  # the column names are too long, or a quote is not closed
                    yield Failure(failure.id, f"{failure.reason}; nothing from line {line} on was read")
                    return
                yield failure


def _parse_rows(lines: _RowLines) -> Iterator[list[str]]:
    """Yield the rows of a CSV file; in a line with a stray quotation mark, a quote ends only before a delimiter.

    Raises:
        csv.Error: A quote is not closed.
    """
    while not lines.is_at_end:
        try:
            for row in csv.reader(lines, delimiter=lines.delimiter, strict=True):
                lines.begin_record()
                yield row
        except csv.Error:
            if lines.is_at_end:
                raise
            line = lines.keep_first_line()
            mark = re.escape(lines.delimiter)
            values = re.finditer(rf'(?:^|{mark})(?:"(.*?)"(?={mark}|$)|([^{mark}]*))', line.rstrip(_LINE_END))
            yield [(value[2] if value[1] is None else value[1]).replace('""', '"') for value in values]


def _read_column_names(row: Sequence[str]) -> list[str]:
    """Return the column names in the first row of a table.

    Raises ReadError if there are too many columns, or if a name is too long.
    """
    if len(row) > _MAX_COLUMNS:
        raise ReadError(f"{len(row):,} columns; at most {_MAX_COLUMNS:,} are read: leave out some")
    if (longest := max(map(len, row), default=0)) > _MAX_COLUMN_NAME:
        raise ReadError(f"a column name of {longest:,} characters; at most {_MAX_COLUMN_NAME:,} are read: shorten it")
    return [to_single_line(column) for column in row]


class _TooLongError(Exception):
    """Raised if a row of a CSV file is longer than the limit."""


class _RowLines:
    """An iterator over the lines of a CSV file that raises an error if a row exceeds the length limit.

    Attributes:
        delimiter: The separator of values.
        header: Number of the row with the column names, from 1; the rows before it are titles.
        record: Number of the first line of the current row.
        is_at_end: Whether the whole table was read.
    """

    def __init__(self, stream: TextIO, limit: int) -> None:
        self._stream = stream
        self._limit = limit
        self._row_pieces: list[str] = []  # pieces of the current row
        self._size = 0
        self._step = limit + len(_LINE_END)
        first = stream.readline(self._step)
        declaration = _DECLARED_DELIMITER.fullmatch(first)
        self._line = 1 if declaration else 0
        self.record = self._line + 1
        self._next_lines = deque([] if declaration or not first else [first])
        while len(self._next_lines) < _TITLE_LINES and sum(map(len, self._next_lines)) < _SAMPLE_BYTES:
            if not (line := stream.readline(self._step)):
                break
            self._next_lines.append(line)
        self.delimiter, self.header = _find_header(self._next_lines, declaration[1] if declaration else _DELIMITERS)
        self.is_at_end = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._read_line()
        if not line:
            self.is_at_end = True
            raise StopIteration
        self._line += line.endswith(("\n", "\r"))
        self._row_pieces.append(line)
        if self._size + len(line.rstrip(_LINE_END)) > self._limit:
            raise _TooLongError
        self._size += len(line)
        return line

    def _read_line(self) -> str:
        return self._next_lines.popleft() if self._next_lines else self._stream.readline(self._step)

    def keep_first_line(self) -> str:
        """Return the first line of the current CSV row, which becomes a row; its other lines are read again."""
        first, *others = self._row_pieces
        self._next_lines.extendleft(reversed(others))
        self._line, self.is_at_end = self.record, False
        self.begin_record()
        return first

    def begin_record(self) -> None:
        """Reset the length limit of a CSV row, and note that the next row starts at the next line."""
        self._row_pieces, self._size = [], 0
        self.record = self._line + 1

    def skip_record(self) -> bool:
        """Skip the rest of a CSV row that is too long. Return False if the file ends inside quotation marks."""
        is_quoted, last_character = False, self.delimiter
        for piece in itertools.chain(self._row_pieces, iter(self._read_line, "")):
            is_quoted = _is_quoted_at_end(piece, is_quoted, last_character, self.delimiter)
            last_character = piece[-1]
            if not is_quoted and last_character in _LINE_END:
                break
        self.begin_record()
        return not is_quoted


def _find_header(lines: Sequence[str], delimiters: str) -> tuple[str, int]:
    """Return the delimiter of a CSV file, and the number of the row with its column names, from the first lines.

    Rows with one value before a row with several are titles, if the next row is as long.
    """
    by_frequency = sorted(delimiters, key=lambda mark: -lines[0].count(mark) if lines else 0)
    for delimiter in by_frequency:
        rows = list(csv.reader(lines, delimiter=delimiter))
        counts = [sum(map(bool, map(str.strip, row))) for row in rows]
        place = next((place for place, count in enumerate(counts) if count > 1), 0)
        following = next((len(row) for row in rows[place + 1 :] if any(map(str.strip, row))), 0)
        has_titles = place > 0 and _COLUMNS.isdisjoint(map(str.lower, rows[0]))
        if rows and following == len(rows[place]) > 1 and (has_titles or not place):
            return delimiter, place + 1
    return by_frequency[0], 1


def _is_quoted_at_end(piece: str, is_quoted: bool, previous_character: str, delimiter: str) -> bool:
    """Return whether a piece of CSV text ends inside quotation marks.

    Quotes open only at the beginning of a value.

    Args:
        piece: A piece of the table.
        is_quoted: Whether the piece starts inside quotes.
        previous_character: The character before the piece.
        delimiter: Separator of values.
    """
    position = closing_position = -1
    while (position := piece.find('"', position + 1)) >= 0:
        if is_quoted:
            is_quoted, closing_position = False, position
        else:  # a quote directly after a closing quote is part of the value
            preceding = piece[position - 1] if position else previous_character
            is_quoted = preceding in f"{delimiter}{_LINE_END}" or (
                preceding == '"' and closing_position in (position - 1, -1)
            )
    return is_quoted


def get_cells(columns: Sequence[str], row: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield column name and value of each non-blank cell in a CSV row.

    The name of an unnamed column is its number.
    """
    for place, value in enumerate(row):
        if value.strip():
            yield (columns[place] if place < len(columns) else "") or f"column {place + 1}", value


def get_string(record: dict[str, object], key: str) -> str:
    """Return the string under ``key`` in a record; an empty string if the key is missing.

    Raises:
        ReadError: The value is not a string.
    """
    value = record.get(key)
    if value is not None and not isinstance(value, str):
        raise ReadError(f'"{key}" is {format_value(value)}; expected a string')
    return value or ""


def get_record_id(record: dict[str, object]) -> str:
    """Return the value of ``_id`` or ``id`` in a record; an empty string if both keys are missing.

    Raises:
        ReadError: The value is neither a string nor an integer.
    """
    record_id = record.get("_id", record.get("id"))
    if isinstance(record_id, bool) or not isinstance(record_id, str | int | None):
        raise ReadError(f'"_id" is {format_value(record_id)}; expected a string or a whole number')
    return "" if record_id is None else to_single_line(str(record_id))


def format_value(value: object) -> str:
    """Return a value as JSON, shortened for an error message."""
    text = "missing" if value is None else json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]}..."


def _build_length_failure(place: str, max_bytes: int) -> Failure:
    return Failure(place, f"longer than {max_bytes:,} characters, the limit for one document")


def _open_text(file: Path, newline: str | None) -> TextIO:
    """Return a text file opened in its detected encoding. Raises ReadError if the file is binary."""
    with file.open("rb") as data:
        sample = data.read(_SAMPLE_BYTES)
    encoding = detect_encoding(sample, is_whole_file=len(sample) < _SAMPLE_BYTES)
    require_text(sample.decode(encoding, errors="replace"))
    return file.open(encoding=encoding, errors="replace", newline=newline)


def _build_record_document(record: object, place: str) -> Document:
    """Return a document built from a JSON object. Raises ReadError if the object has no text."""
    if not isinstance(record, dict):
        raise ReadError(f'the line is {format_value(record)}; expected an object {{"_id", "title", "text"}}')
    text = record.get("text")
    if not isinstance(text, str):
        hint = " (facts given as data are read with --method tuples)" if "arguments" in record else ""
        raise ReadError(f'"text" is {format_value(text)}; expected a string{hint}')
    url, metadata = get_url_and_metadata(record, _DOCUMENT_KEYS)
    title = get_string(record, "title")
    if not title.strip():
        excluded_keys = {*_DOCUMENT_KEYS, "_id", "id", "url"}
        cells = ((key, value) for key, value in record.items() if isinstance(value, str) and key not in excluded_keys)
        title = _choose_title(cells, metadata)
    return _build_document(get_record_id(record), title, text, place, url, metadata)


def _choose_title(cells: Iterable[tuple[str, str]], metadata: dict[str, MetadataValue]) -> str:
    """Return a title from the values of a CSV or JSON record that has no key ``title``.

    The metadata gets the column of the title, unless the column is called ``name``. A title from another column, such
    as the class "news" of many records, is displayed, but does not state the subject of the text.
    """
    column, title = choose_record_title(cells)
    if title and not is_name_column(column):
        metadata[TITLE_FROM] = f"column {column}"
    return title


def get_url_and_metadata(record: Mapping[str, object], excluded_keys: Set[str]) -> tuple[str, dict[str, MetadataValue]]:
    """Return two results: the URL of a record, and the metadata, from the key ``metadata`` and all other keys.

    Args:
        record: A JSON object.
        excluded_keys: Keys that are not metadata, besides the key of the id.
    """
    identity = "_id" if "_id" in record else "id"
    other_values = {key: value for key, value in record.items() if key not in excluded_keys and key != identity}
    url, nested = record.get("url"), record.get("metadata")
    if isinstance(url, str):
        del other_values["url"]
    if isinstance(nested, dict):
        del other_values["metadata"]
    pairs = [*(nested.items() if isinstance(nested, dict) else ()), *other_values.items()]
    return to_single_line(url) if isinstance(url, str) else "", build_metadata(pairs)


def find_values(columns: Sequence[str], row: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Return the values of a CSV row in the columns ``names``, keyed by lower-case column name; "" for blank values.

    Raises:
        ReadError: Several columns of one name have values.
    """
    values: dict[str, str] = {}
    for column, value in zip((column.lower() for column in columns), row, strict=False):
        if column in names:
            if value.strip() and values.get(column, "").strip():
                raise ReadError(f"several columns are called {column!r}, and more than one has a value; expected one")
            values[column] = value if value.strip() else values.get(column, "")
    return values


def _format_cell(column: str, value: str) -> tuple[str, str]:
    """Return two results: the column's name without its declared type, and the cell's value with the declared unit.

    For example, "5" in the column ``dose:number[mg]`` becomes "dose" and "5 mg".
    """
    name, declaration = parse_column_name(column)
    number = parse_number(value) if declaration and declaration.unit else None
    return name, f"{value} {declaration.unit}" if declaration and number and not number.unit else value


def _build_row_document(columns: Sequence[str], row: Sequence[str], place: str) -> Document:
    """Return a document built from a row of a CSV file. Raises ReadError if the row has no text."""
    special_values = find_values(columns, row, ("_id", "title", "text", "url"))
    other_cells = [
        _format_cell(column, to_single_line(value))
        for column, value in get_cells(columns, row)
        if column.lower() not in special_values
    ]
    text, title = special_values.get("text"), special_values.get("title", "")
    metadata = build_metadata(other_cells)
    if not title.strip():
        title = _choose_title(other_cells, metadata) if text else choose_record_title(other_cells)[1]
    if text is None:
        text = "\n".join(f"{column}: {value}" for column, value in other_cells)
    document_id, url = (to_single_line(special_values.get(column, "")) for column in ("_id", "url"))
    return _build_document(document_id, title, text, place, url, metadata)


def _build_document(
    document_id: str, title: str, text: str, place: str, url: str, metadata: Mapping[str, MetadataValue]
) -> Document:
    text = clean(text)
    if not text.strip():
        raise ReadError("empty: no text")
    return Document(document_id or place, to_single_line(title), text, source=place, url=url, metadata=metadata)
