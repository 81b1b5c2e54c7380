"""Reads Excel workbooks with openpyxl: a location for each sheet, a line with column names for each row."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from itertools import zip_longest

from polyad.errors import MissingExtraError, ReadError
from polyad.model import Location, Section
from polyad.readers.archives import open_office_file
from polyad.readers.plain_text import Content, join_texts, to_single_line
from polyad.readers.titles import clean_stated_title

try:
    from openpyxl import load_workbook
except ImportError as error:
    raise MissingExtraError("openpyxl", "documents") from error

_MAX_EXPANDED = 256 * 1024 * 1024
"""Bytes of XML a workbook may unpack to. They are streamed, so the limit is one of time: 3 MB a second."""

_MAX_CELLS = 20_000_000
"""Cells that are read, including omitted cells before the last cell of a row, which take no byte of the file."""

_MAX_CHARACTERS = 50_000_000
"""Characters of text that cells may add up to; a text that many cells share is stored once in the file."""

_DEFAULT_NAME = re.compile(r"(?:sheet|tabelle|feuil|hoja|foglio|planilha|blad|лист|工作表)[ _-]?\d*", re.IGNORECASE)
"""Default names of sheets in several languages."""

_MIN_COLUMNS = 2


def read_xlsx(data: bytes) -> Content:
    """Return the content of a workbook: each sheet, with a line ``column: value; column: value`` for each row.

    The first row with several cells names the columns if all cells of the row are text. Earlier rows are lines without
    column names. A formula is read as its last computed value.

    Raises:
        ReadError: The file is encrypted, damaged, too large or not an Excel workbook.
    """
    with open_office_file(data, "an Excel workbook", max_text=_MAX_EXPANDED) as (title_property, metadata):
        sheets = list(_read_sheets(data))
    texts = [rows if _DEFAULT_NAME.fullmatch(name) else f"{name}\n\n{rows}" for name, rows in sheets]
    text, spans = join_texts(texts)
    names_and_spans = [(name, span) for (name, _), span in zip(sheets, spans, strict=True)]
    places = tuple(Location(*span, sheet=name) for name, span in names_and_spans)
    sections = tuple(Section(name, *span) for name, span in names_and_spans if not _DEFAULT_NAME.fullmatch(name))
    return Content(clean_stated_title(title_property), text, sections, places, metadata)


def _read_sheets(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield name and text of each sheet of a workbook that has text."""
    with warnings.catch_warnings():  # the library warns about extensions of the format, which contain no text
        warnings.simplefilter("ignore")
        workbook = load_workbook(io.BytesIO(data), read_only=True, data_only=True, keep_links=False)
        cells = characters = 0
        for sheet in workbook.worksheets:
            sheet.reset_dimensions()  # the stated size may be wrong
            lines = []
            columns: list[str] | None = None
            for row in sheet.iter_rows(values_only=True):
                cells += len(row) + 1
                line, columns = _format_row(row, columns)
                characters += len(line)
                if cells > _MAX_CELLS or characters > _MAX_CHARACTERS:
                    raise ReadError(
                        f"more than {_MAX_CELLS:,} cells or {_MAX_CHARACTERS:,} characters; export a part of it"
                    )
                if line:
                    lines.append(line)
            if lines:
                yield to_single_line(sheet.title), "\n".join(lines)


def _format_row(row: Sequence[object], column_names: list[str] | None) -> tuple[str, list[str] | None]:
    """Return two results: a row as one line of text, and the sheet's column names, None until a row states them."""
    values = [_format_value(value) for value in row]
    filled = [value for value in values if value]
    if column_names is None:
        if len(filled) < _MIN_COLUMNS:
            return "; ".join(filled), None
        if all(isinstance(value, str) for value in row if value is not None):
            return "", values
        column_names = []
    cells = zip_longest(column_names[: len(values)], values, fillvalue="")
    return "; ".join(f"{column}: {value}" if column else value for column, value in cells if value), column_names


def _format_value(value: object) -> str:
    """Return the value of a spreadsheet cell as readable text."""
    if value is None:
        return ""
    if isinstance(value, datetime) and value.time() == time():
        value = value.date()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    text = str(value)
    return text.strip() if text.isprintable() and "  " not in text else to_single_line(text)
