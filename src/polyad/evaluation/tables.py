"""Tables as rows of text cells, formatted as Markdown or HTML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape

Table = Sequence[Mapping[str, str]]
"""Rows with the same columns."""

_BOLD = re.compile(r"^\*\*([\d.]+)\*\*$")


def format_percent(value: float | None) -> str:
    """Return a share in per cent with one decimal; a dash for None."""
    return "-" if value is None else f"{100 * value:.1f}"


def format_interval(low: float, high: float) -> str:
    """Return the bounds of an interval of shares in per cent."""
    return f"{format_percent(low)} - {format_percent(high)}"


def format_count(value: float | None) -> str:
    """Return a number with thousands separators; a dash for None."""
    return "-" if value is None else f"{value:,}"


def format_markdown(table: Table) -> str:
    """Return a table in Markdown, with right-aligned columns after the first."""

    def format_line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |\n"

    columns = list(table[0])
    rule = format_line(["---", *("---:" for _ in columns[1:])])
    return format_line(columns) + rule + "".join(format_line(list(row.values())) for row in table)


def format_html(table: Table) -> str:
    """Return a table in HTML; numbers in Markdown's bold become bold."""
    head = "".join(f"<th>{escape(name)}</th>" for name in table[0])
    cells = ([_BOLD.sub(r"<b>\1</b>", escape(cell)) for cell in row.values()] for row in table)
    rows = ("".join(f"<td>{cell}</td>" for cell in row) for row in cells)
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return f"<div class='wide'><table>\n<tr>{head}</tr>\n{body}\n</table></div>"
