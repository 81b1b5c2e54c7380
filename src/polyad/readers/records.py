"""Reads JSON lines and CSV files of many documents as a stream: each record's size is limited, the file's is not."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import TextIO

from polyad.errors import ReadError
from polyad.model import Document, Failure, MetadataValue
from polyad.readers.given_values import parse_column_name
from polyad.readers.metadata import build_metadata
from polyad.readers.plain_text import clean, detect_encoding, require_text, single_line
from polyad.text.literals import parse_number

_SAMPLE = 64 * 1024
"""Bytes that the encoding is determined from."""

_DELIMITERS = ",;\t|"
_LINE_END = "\r\n"

_NAMED = frozenset({"title", "text"})
"""Keys of a JSON line that are no metadata, beside those that all kinds of records have."""


def read_json_lines(file: Path, name: str, max_bytes: int) -> Iterator[Document | Failure]:
    """Yield a document for each line ``{"_id", "title", "text", "url"}``.

    Its metadata is what an object ``metadata`` holds, and all other keys.

    A record without ``_id`` is known by its ``id``, which many collections have instead, or else by its line, as
    ``name:line``. Only an identity of its own lets a record be recognised after lines were inserted before it.

    Args:
        file: What to read.
        name: What documents and failures call the file.
        max_bytes: Characters in the longest line that is read.

    Raises:
        ReadError: The file is not text.
        OSError: It cannot be read.
    """
    return convert_json_lines(file, name, max_bytes, _record)


def read_csv(file: Path, name: str, max_bytes: int) -> Iterator[Document | Failure]:
    """Yield a document for each row; the first row names the columns.

    Columns ``_id``, ``title``, ``text`` and ``url`` mean what they mean in JSON lines, and others are metadata. Without
    a column ``text`` the text is a line ``column: value`` for each of these. What a header declares for those who read
    rows as facts, such as ``dose:number[mg]``, is no part of the name; the unit goes behind the numbers. A row without
    ``_id`` is known as ``name:row``, counting as a spreadsheet does, which shows the names in row 1.

    Args:
        file: What to read. Comma, semicolon, tab or bar separate its values, whichever is most frequent in line 1.
        name: What documents and failures call the file.
        max_bytes: Characters in the longest value that is read.

    Raises:
        ReadError: The file is not text.
        OSError: It cannot be read.
    """
    return convert_csv(file, name, max_bytes, _row)


def convert_json_lines(
    file: Path,
    name: str,
    max_bytes: int,
    convert: Callable[[object, str], Document],
    parse_float: Callable[[str], float] = float,
    parse_int: Callable[[str], float] = int,
) -> Iterator[Document | Failure]:
    """What ``convert`` makes of the value in each line that is not blank, given its place as ``name:line``.

    A line that is too long, no JSON, or of which ``convert`` raises ReadError, is a failure. ``parse_float`` makes a
    number of what is written with a point or an exponent, ``parse_int`` of what is not. For the other arguments and
    errors see :func:`read_json_lines`.
    """
    with _open(file, newline=None) as lines:
        for number in itertools.count(1):
            line = lines.readline(max_bytes + 1)
            if not line:
                return
            place = f"{name}:{number}"
            if len(line) > max_bytes and not line.endswith("\n"):
                _finish_line(lines, max_bytes)
                yield _too_long(place, max_bytes)
            elif not line.isspace():
                try:
                    yield convert(json.loads(line, parse_float=parse_float, parse_int=parse_int), place)
                except (ValueError, RecursionError) as error:
                    yield Failure(place, f"not JSON: {single_line(str(error))}")
                except ReadError as error:
                    yield Failure(place, str(error))


def convert_csv(
    file: Path, name: str, max_bytes: int, convert: Callable[[Sequence[str], Sequence[str], str], Document]
) -> Iterator[Document | Failure]:
    """What ``convert`` makes of the columns' names and each row that is not blank, given its place as ``name:row``.

    A row that is too long, or of which ``convert`` raises ReadError, is a failure. So is one whose quotes do not pair:
    where it ends cannot be told, so it is the last. For arguments and errors see :func:`read_csv`.
    """
    csv.field_size_limit(max(csv.field_size_limit(), max_bytes))
    with _open(file, newline="") as stream:
        lines = _Lines(stream, max_bytes)
        columns: list[str] = []
        number = 0
        while not lines.is_at_end:
            try:
                for row in csv.reader(lines, delimiter=lines.delimiter, strict=True):
                    lines.begin_record()
                    number += 1
                    place = f"{name}:{number}"
                    if number == 1:
                        columns = [single_line(column) for column in row]
                    elif any(value.strip() for value in row):
                        try:
                            yield convert(columns, row, place)
                        except ReadError as error:
                            yield Failure(place, str(error))
            except csv.Error as error:
                reason = f"not CSV, and nothing from line {lines.record} on was read: {error}"
                yield Failure(f"{name}:{number + 1}", reason)
                return
            except _TooLongError:
                number, line = number + 1, lines.record
                failure = _too_long(f"{name}:{number}", max_bytes)
                has_end = lines.skip_record()
                if number == 1 or not has_end:  # a table without names of columns, or a quote without its pair
                    yield Failure(failure.id, f"{failure.reason}; nothing from line {line} on was read")
                    return
                yield failure


class _TooLongError(Exception):
    """Raised if a row is longer than the limit."""


class _Lines:
    """Iterates over the lines of a table for :func:`csv.reader`, and limits the length of a row.

    Attributes:
        delimiter: What separates the values of the first line.
        record: Number of the line that the row being read begins with.
        is_at_end: Whether all was read.
    """

    def __init__(self, stream: TextIO, limit: int) -> None:
        self._stream = stream
        self._limit = limit
        self._line = 0
        self._held: list[str] = []  # of the row being read
        self._size = 0
        self._step = limit + len(_LINE_END)
        self._first = stream.readline(self._step)
        self.delimiter = max(_DELIMITERS, key=self._first.count)
        self.record = 1
        self.is_at_end = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line, self._first = self._first or self._stream.readline(self._step), ""
        if not line:
            self.is_at_end = True
            raise StopIteration
        self._line += line.endswith(("\n", "\r"))
        self._held.append(line)
        if self._size + len(line.rstrip(_LINE_END)) > self._limit:
            raise _TooLongError
        self._size += len(line)
        return line

    def begin_record(self) -> None:
        """Count what comes next as another row."""
        self._held, self._size = [], 0
        self.record = self._line + 1

    def skip_record(self) -> bool:
        """Go to the end of a row that is too long, the first line ending outside of quotes; whether it has one."""
        is_quoted, before = False, self.delimiter
        for piece in itertools.chain(self._held, iter(lambda: self._stream.readline(self._step), "")):
            is_quoted = _ends_quoted(piece, is_quoted, before, self.delimiter)
            before = piece[-1]
            if not is_quoted and before in _LINE_END:
                break
        self.begin_record()
        return not is_quoted


def _ends_quoted(piece: str, is_quoted: bool, before: str, delimiter: str) -> bool:
    """Whether a piece of CSV ends inside of quotes; they open only at the beginning of a value.

    Args:
        piece: Of a table.
        is_quoted: Whether it begins inside of quotes.
        before: The character before it.
        delimiter: What separates values.
    """
    place = closed = -1
    while (place := piece.find('"', place + 1)) >= 0:
        if is_quoted:
            is_quoted, closed = False, place
        else:  # one directly behind the last is a quote within the value
            last = piece[place - 1] if place else before
            is_quoted = last in f"{delimiter}{_LINE_END}" or (last == '"' and closed in (place - 1, -1))
    return is_quoted


def cells(columns: Sequence[str], row: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield column and value of each cell that is not blank; an unnamed column gets its number."""
    for place, value in enumerate(row):
        if value.strip():
            column = columns[place] if place < len(columns) else ""
            yield column or f"column {place + 1}", single_line(value)


def get_string(record: dict[str, object], key: str) -> str:
    """Return the string under ``key``; an empty string if the key is missing.

    Raises:
        ReadError: Something else is there.
    """
    value = record.get(key)
    if value is not None and not isinstance(value, str):
        raise ReadError(f'"{key}" is {shown(value)}; expected a string')
    return value or ""


def get_record_id(record: dict[str, object]) -> str:
    """Return the record's ``_id`` or ``id``; an empty string if it has neither.

    Raises:
        ReadError: It is neither a string nor a whole number.
    """
    identity = record.get("_id", record.get("id"))
    if isinstance(identity, bool) or not isinstance(identity, str | int | None):
        raise ReadError(f'"_id" is {shown(identity)}; expected a string or a whole number')
    return "" if identity is None else single_line(str(identity))


def shown(value: object) -> str:
    """Return a value as abbreviated JSON for an error message."""
    text = "missing" if value is None else json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]}..."


def _too_long(place: str, max_bytes: int) -> Failure:
    return Failure(place, f"longer than {max_bytes:,} characters, the limit for one document")


def _open(file: Path, newline: str | None) -> TextIO:
    with file.open("rb") as data:
        sample = data.read(_SAMPLE)
    encoding = detect_encoding(sample, complete=len(sample) < _SAMPLE)
    require_text(sample.decode(encoding, errors="replace"))
    return file.open(encoding=encoding, errors="replace", newline=newline)


def _finish_line(lines: TextIO, step: int) -> None:
    while (rest := lines.readline(step)) and not rest.endswith("\n"):
        pass


def _record(record: object, place: str) -> Document:
    if not isinstance(record, dict):
        raise ReadError(f'a JSON {type(record).__name__}; expected an object {{"_id", "title", "text"}}')
    text = record.get("text")
    if not isinstance(text, str):
        hint = " (facts given as data are read with --method tuples)" if "arguments" in record else ""
        raise ReadError(f'"text" is {shown(text)}; expected a string{hint}')
    url, metadata = get_url_and_metadata(record, _NAMED)
    return _document(get_record_id(record), get_string(record, "title"), text, place, url, metadata)


def get_url_and_metadata(record: Mapping[str, object], named: Set[str]) -> tuple[str, dict[str, MetadataValue]]:
    """Return the address and metadata of a record: its object ``metadata``, then its other keys.

    Args:
        record: A JSON object.
        named: The keys that mean something else, beside that of its identity.
    """
    identity = "_id" if "_id" in record else "id"
    others = {key: value for key, value in record.items() if key not in named and key != identity}
    url, within = record.get("url"), record.get("metadata")
    if isinstance(url, str):
        del others["url"]
    if isinstance(within, dict):
        del others["metadata"]
    pairs = [*(within.items() if isinstance(within, dict) else ()), *others.items()]
    return single_line(url) if isinstance(url, str) else "", build_metadata(pairs)


def find_values(columns: Sequence[str], row: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """The row's value in each column called one of ``names``, in any case; "" where it is blank.

    Raises:
        ReadError: Columns of one name have values both, of which one would be lost.
    """
    found: dict[str, str] = {}
    for column, value in zip((column.lower() for column in columns), row, strict=False):
        if column in names:
            if value.strip() and found.get(column, "").strip():
                raise ReadError(f"several columns are called {column!r}, and more than one has a value; expected one")
            found[column] = value if value.strip() else found.get(column, "")
    return found


def _in_words(column: str, value: str) -> tuple[str, str]:
    """A column and its value as they are read: of a header for facts, ``dose:number[mg]``, "dose" and "5 mg"."""
    name, declared = parse_column_name(column)
    number = parse_number(value) if declared and declared.unit else None
    return name, f"{value} {declared.unit}" if declared and number and not number.unit else value


def _row(columns: Sequence[str], row: Sequence[str], place: str) -> Document:
    named = find_values(columns, row, ("_id", "title", "text", "url"))
    others = [_in_words(column, value) for column, value in cells(columns, row) if column.lower() not in named]
    text = named.get("text")
    if text is None:
        text = "\n".join(f"{column}: {value}" for column, value in others)
    identity, url = (single_line(named.get(column, "")) for column in ("_id", "url"))
    return _document(identity, named.get("title", ""), text, place, url, build_metadata(others))


def _document(
    identity: str, title: str, text: str, place: str, url: str, metadata: Mapping[str, MetadataValue]
) -> Document:
    text = clean(text)
    if not text.strip():
        raise ReadError("empty: no text")
    return Document(identity or place, single_line(title), text, source=place, url=url, metadata=metadata)
