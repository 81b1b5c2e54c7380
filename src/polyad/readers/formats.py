"""The table of file formats.

A format is a row of :class:`Format`. A package adds its rows as one tuple, named by an entry point in the group
``polyad.formats``, or a single format by an entry point in the group ``polyad.readers``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path, PurePath

from polyad.errors import ReadError
from polyad.plugin_tables import Table
from polyad.readers.format import Format

_SOURCE_CODE = (
    *(".bash", ".bat", ".c", ".cc", ".cfg", ".clj", ".cmake", ".conf", ".cpp", ".cs", ".cxx", ".dart", ".el", ".erl"),
    *(".ex", ".exs", ".f90", ".go", ".gradle", ".graphql", ".groovy", ".h", ".hpp", ".hs", ".ini", ".java", ".jl"),
    *(".js", ".jsx", ".kt", ".lisp", ".lua", ".m", ".mjs", ".ml", ".nim", ".php", ".pl", ".pm", ".properties"),
    *(".proto", ".ps1", ".py", ".pyi", ".r", ".rb", ".rs", ".scala", ".scm", ".sh", ".sql", ".swift", ".tcl", ".tex"),
    *(".tf", ".toml", ".ts", ".tsx", ".vb", ".vue", ".yaml", ".yml", ".zig"),
)
"""Extensions of text files that people write; not of data, logs or generated files."""

FORMATS = (
    Format(
        name="source code",
        extensions=_SOURCE_CODE,
        read="polyad.readers.text.plain_text:read_source_code",
        in_process=True,
        is_code=True,
    ),
    Format(
        name="JSON Lines",
        extensions=(".jsonl",),
        read="polyad.readers.records.records:read_json_lines",
        has_records=True,
    ),
    Format(name="CSV", extensions=(".csv",), read="polyad.readers.records.records:read_csv", has_records=True),
)
"""The formats that need neither a library nor more than plain text."""


def _is_table(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(item, Format) for item in value)


_packages: Table[tuple[Format, ...]] = Table("formats", "tuple of formats", {}, _is_table)
"""The formats of packages that add several, by the name of the entry point."""


@cache
def get_readers() -> Table[Format | Callable[[bytes], object]]:
    """Return the table of formats by file extension; a plug-in may name a function of bytes in place of a format."""
    added = [format for _, formats in _packages.rows() for format in formats]
    return Table(
        "readers",
        "format",
        map_extensions((*added, *FORMATS)),
        lambda value: isinstance(value, Format) or callable(value),
        normalize_name=lambda name: f".{name.removeprefix('.').lower()}",
    )


@cache
def list_formats() -> Mapping[str, Format]:
    """Return all formats by file extension, including those of plug-ins that can be imported."""
    readers = get_readers()
    formats: dict[str, Format] = {}
    for name, row in readers.rows():
        if not isinstance(row, Format):
            row = Format(name=name, extensions=(), read=readers.plugins[name].reference, takes_bytes=True)
        for extension in (name, *row.extensions):
            formats.setdefault(extension, row)
    return formats


def map_extensions(formats: Iterable[Format]) -> dict[str, Format]:
    """Return formats by file extension; the last format of an extension counts."""
    return {extension: format for format in formats for extension in format.extensions}


def estimate_lengths(sizes: Mapping[str, int]) -> dict[str, float]:
    """Return the characters of text that files usually have, from their sizes in bytes by name."""
    formats, other = list_formats(), FORMATS[0]
    return {
        name: formats.get(PurePath(name).suffix.lower(), other).estimate_characters(size)
        for name, size in sizes.items()
    }


def find_format(path: Path, formats: Mapping[str, Format]) -> Format:
    """Return the format of a file by its extension. Raise ReadError if there is none."""
    extension = path.suffix.lower()
    if extension in formats:
        return formats[extension]
    names = sorted(name for name, format in formats.items() if not format.is_code)
    expected = ", ".join(names) + (" or source code" if len(names) < len(formats) else "")
    raise ReadError(f"cannot read {extension or 'a file without extension'}; expected {expected}")
