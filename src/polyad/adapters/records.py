"""Files of many documents: JSON lines and CSV. Read as a stream: a record's size is limited, a file's is not."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from polyad.adapters.plain_text import clean, encoding_of, require_text, single_line
from polyad.errors import ReadError
from polyad.model import Document, Failure

_SAMPLE = 64 * 1024
"""Bytes that the encoding is determined from."""

_DELIMITERS = ",;\t|"


def read_json_lines(file: Path, name: str, max_bytes: int) -> Iterator[Document | Failure]:
    """Every line ``{"_id", "title", "text"}`` as a document; other keys are ignored.

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
    with _open(file, newline=None) as lines:
        for number in itertools.count(1):
            line = lines.readline(max_bytes + 1)
            if not line:
                return
            place = f"{name}:{number}"
            if len(line) > max_bytes and not line.endswith("\n"):
                _finish_line(lines, max_bytes)
                yield Failure(place, f"longer than {max_bytes:,} characters, the limit for one document")
            elif not line.isspace():
                try:
                    yield _record(json.loads(line), place)
                except (ValueError, RecursionError) as error:
                    yield Failure(place, f"not JSON: {single_line(str(error))}")
                except ReadError as error:
                    yield Failure(place, str(error))


def read_csv(file: Path, name: str, max_bytes: int) -> Iterator[Document | Failure]:
    """Every row below the first, which names the columns, as a document.

    Columns ``_id``, ``title`` and ``text`` mean what they mean in JSON lines, and then others are ignored. Without a
    column ``text`` the text is a line ``column: value`` for each value. A row without ``_id`` is known as ``name:row``,
    counting as a spreadsheet does, which shows the names in row 1.

    Args:
        file: What to read. Comma, semicolon, tab or bar separate its values, whichever is most frequent in line 1.
        name: What documents and failures call the file.
        max_bytes: Characters in the longest value that is read.

    Raises:
        ReadError: The file is not text.
        OSError: It cannot be read.
    """
    csv.field_size_limit(max(csv.field_size_limit(), max_bytes))
    with _open(file, newline="") as lines:
        first = lines.readline(max_bytes)
        delimiter = max(_DELIMITERS, key=first.count)
        rows = csv.reader(itertools.chain([first], lines), delimiter=delimiter)
        columns: list[str] = []
        number = 0
        try:
            for number, row in enumerate(rows, start=1):
                if number == 1:
                    columns = [single_line(column) for column in row]
                elif any(value.strip() for value in row):
                    yield _row(columns, row, f"{name}:{number}", max_bytes)
        except csv.Error as error:
            yield Failure(f"{name}:{number + 1}", f"not CSV, and the rest of the file was not read: {error}")


def _open(file: Path, newline: str | None) -> TextIO:
    with file.open("rb") as data:
        sample = data.read(_SAMPLE)
    encoding = encoding_of(sample, complete=len(sample) < _SAMPLE)
    require_text(sample.decode(encoding, errors="replace"))
    return file.open(encoding=encoding, errors="replace", newline=newline)


def _finish_line(lines: TextIO, step: int) -> None:
    while (rest := lines.readline(step)) and not rest.endswith("\n"):
        pass


def _record(record: object, place: str) -> Document:
    if not isinstance(record, dict):
        raise ReadError(f'a JSON {type(record).__name__}; expected an object {{"_id", "title", "text"}}')
    text, title = record.get("text"), record.get("title")
    if not isinstance(text, str):
        raise ReadError(f'"text" is {_shown(text)}; expected a string')
    if title is not None and not isinstance(title, str):
        raise ReadError(f'"title" is {_shown(title)}; expected a string')
    identity = record.get("_id", record.get("id"))
    if isinstance(identity, bool) or not isinstance(identity, str | int | None):
        raise ReadError(f'"_id" is {_shown(identity)}; expected a string or a whole number')
    return _document("" if identity is None else str(identity), title or "", text, place)


def _shown(value: object) -> str:
    """A value for a message: JSON, cut short."""
    shown = "missing" if value is None else json.dumps(value)
    return shown if len(shown) <= 40 else f"{shown[:40]}..."


def _row(columns: Sequence[str], row: Sequence[str], place: str, max_bytes: int) -> Document | Failure:
    if sum(map(len, row)) > max_bytes:
        return Failure(place, f"longer than {max_bytes:,} characters, the limit for one document")
    named = dict(zip((column.lower() for column in columns), row, strict=False))
    text = named.get("text")
    if text is None:
        text = "\n".join(
            f"{column or f'column {position}'}: {single_line(value)}"
            for position, (column, value) in enumerate(itertools.zip_longest(columns, row, fillvalue=""), start=1)
            if value.strip() and column.lower() not in ("_id", "title")
        )
    try:
        return _document(named.get("_id", ""), named.get("title", ""), text, place)
    except ReadError as error:
        return Failure(place, str(error))


def _document(identity: str, title: str, text: str, place: str) -> Document:
    text = clean(text)
    if not text.strip():
        raise ReadError("empty: no text")
    return Document(single_line(identity) or place, single_line(title), text, source=place)
