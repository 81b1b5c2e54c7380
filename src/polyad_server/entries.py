"""Entries in the settings files of other programs, in JSON and TOML: one entry is changed, and no other byte.

Such files are written by people and by several programs. They have comments, an order and a layout of their own, which
a parser and a writer of JSON would lose, so that an entry is inserted into the text and cut out of it.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from polyad.errors import ConfigurationError

EMPTY_JSON = "{\n}\n"
"""The text of a JSON file without entries; a new file that is left with this text is deleted."""

Entry = Mapping[str, Any]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|[{}\[\],:]|[^\s{}\[\],:"/]+|\S', re.DOTALL)
"""A string, a comment, a bracket, comma or colon, or a number or word of JSON."""


def put_json_entry(text: str, section: str, name: str, entry: Entry) -> str:
    """Return a JSON text in which the object ``section`` has ``entry`` under the key ``name``.

    Further keys of an earlier entry of this name stay.

    Raises:
        ConfigurationError: The text is no JSON object, the section is no object, or a key occurs twice.
    """
    text = text if text.strip() else EMPTY_JSON
    entry = {**(find_entry(parse_json(text), section, name) or {}), **entry}
    changed = _put_member(text, section, name, entry)
    _require_values(text, changed, section, name, entry, parse_json)
    return changed


def _put_member(text: str, section: str, name: str, entry: Entry) -> str:
    member = f"{json.dumps(name)}: {json.dumps(entry, ensure_ascii=False)}"
    start = _find_object(text)
    if _find_member(text, start, section) is None:
        # The blanks mark a section that was written together with its entry, and is removed with it.
        return _insert(text, start, "  ", f"{json.dumps(section)}: {{ {member} }}")
    start = _find_object(text, section)
    if (span := _find_member(text, start, name)) is not None:
        return text[: span[0]] + member + text[span[2] :]
    return _insert(text, start, "    ", member)


def remove_json_entry(text: str, section: str, name: str) -> str:
    """Return a JSON text without the entry ``name`` of the object ``section``; without the entry, the text as it is.

    Raises:
        ConfigurationError: The text is no JSON object, the section is no object, or a key occurs twice.
    """
    changed = _cut_entry(text, section, name)
    _require_values(text, changed, section, name, None, parse_json)
    return changed


def _cut_entry(text: str, section: str, name: str) -> str:
    outer = _find_object(text)
    if _find_member(text, outer, section) is None:
        return text
    inner = _find_object(text, section)
    remaining = _cut(text, inner, name)
    was_written_whole = remaining != text and text.startswith(' "', inner) and remaining.startswith(" }", inner)
    return _cut(text, outer, section) if was_written_whole else remaining


def _list_tokens(text: str) -> list[tuple[str, int, int]]:
    """Return the tokens of a JSON text with their offsets, without comments."""
    tokens = ((match[0], *match.span()) for match in _TOKEN.finditer(text))
    return [token for token in tokens if not token[0].startswith(("//", "/*"))]


def parse_json(text: str) -> Any:
    """Return the value of a JSON text, which may have comments and commas before closing brackets.

    Raises:
        ConfigurationError: The text is no JSON.
    """
    words = [token for token, *_ in _list_tokens(text)]
    following = [*words, ""][1:]
    last_comma_free = [word for word, after in zip(words, following, strict=True) if word != "," or after not in "}]"]
    try:
        return json.loads("".join(last_comma_free), parse_constant=str)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"the file is no JSON: {error}; correct it, or print the entry with --print"
        ) from error


def find_entry(values: Any, section: str, name: str) -> Any:
    """Return the entry ``name`` of the object or table ``section`` of parsed settings; None without one."""
    entries = values.get(section) if isinstance(values, dict) else None
    return entries.get(name) if isinstance(entries, dict) else None


def _find_object(text: str, section: str = "") -> int:
    """Return the offset after the opening brace of a JSON text, or of an object in it.

    Raises:
        ConfigurationError: The text is no JSON object, or the section is none.
    """
    value: Any = parse_json(text)
    start = _list_tokens(text)[0][2]
    if section and isinstance(value, dict) and (member := _find_member(text, start, section)):
        value, start = value[section], member[1] + 1
    if not isinstance(value, dict):
        raise ConfigurationError(f"{section or 'the file'} is {str(value)[:40]!r}; expected a JSON object")
    return start


def _find_member(text: str, start: int, key: str) -> tuple[int, int, int] | None:
    """Return the offsets of the key, of the value and of the end of a member of an object, or None.

    The content of the object begins at ``start``.
    """
    depth, tokens = 0, [token for token in _list_tokens(text) if token[1] >= start]
    for place, (word, begin, _) in enumerate(tokens):
        if not depth and word == "}":
            break
        if not depth and word.startswith('"') and tokens[place + 1][0] == ":" and json.loads(word) == key:
            for other, _, end in tokens[place + 2 :]:
                depth += (other in "{[") - (other in "}]")
                if not depth:
                    return begin, tokens[place + 2][1], end
        depth += (word in "{[") - (word in "}]")
    return None


def _insert(text: str, start: int, indent: str, member: str) -> str:
    """Return the text with a first member of the object whose content begins at ``start``; see :func:`_cut`."""
    rest = text[start:]
    is_empty = _list_tokens(text[start:])[0][0] == "}"
    line = f"\n{indent}" if rest.lstrip(" \t\r").startswith("\n") else ""
    return f"{text[:start]}{line}{member}{'' if is_empty else ','}{rest}"


def _cut(text: str, start: int, key: str) -> str:
    """Return the text without a member of the object whose content begins at ``start``: undo :func:`_insert`.

    Without the member, return the text as it is.
    """
    begin, _, end = _find_member(text, start, key) or (start, start, start)
    before = [token for token in _list_tokens(text) if start <= token[1] < begin]
    if before:  # the member is not the first: cut the comma before it
        return text[: before[-1][1]] + text[end:]
    return text[:start] + text[end:].removeprefix(",")


def put_toml_entry(text: str, section: str, name: str, entry: Entry) -> str:
    """Return a TOML text in which the table ``section.name`` has the values of ``entry``.

    Raises:
        ConfigurationError: The text is no TOML, or has the table in another form.
    """
    entry = {**(find_entry(parse_toml(text), section, name) or {}), **entry}
    rows = {key: value for key, value in entry.items() if not isinstance(value, dict)}  # others are tables of their own
    lines = "".join(f"{key} = {json.dumps(value, ensure_ascii=False, default=str)}\n" for key, value in rows.items())
    table = f"[{section}.{name}]\n{lines}"
    span = _find_table(text, section, name)
    appended = f"{text}\n{table}" if text else table
    changed = text[: span[0]] + table + text[span[1] :] if span else appended
    _require_values(text, changed, section, name, entry, parse_toml)
    return changed


def remove_toml_entry(text: str, section: str, name: str) -> str:
    """Return a TOML text without the table ``section.name``.

    Raises:
        ConfigurationError: The text is no TOML.
    """
    changed = text
    while span := _find_table(changed, section, name, r"(?:\.[^\]]+)?"):  # with tables below it, which a program added
        changed = changed[: span[0]].removesuffix("\n") + changed[span[1] :]
    _require_values(text, changed, section, name, None, parse_toml)
    return changed


def _find_table(text: str, section: str, name: str, rest: str = "") -> tuple[int, int] | None:
    """Return the start and the end of a table: of its header, and of its last line that is not blank."""
    header = rf"^\[{re.escape(section)}\.{re.escape(name)}{rest}\]"
    table = re.search(header + r"[^\n]*\n?(?:(?!\[)[^\n]*\S[^\n]*\n?)*", text, re.MULTILINE)
    return table.span() if table else None


def _require_values(
    text: str, changed: str, section: str, name: str, entry: Entry | None, parse: Callable[[str], Any]
) -> None:
    """Check that a changed text has ``entry`` (None for no entry), and all other values as they were.

    Raises:
        ConfigurationError: It has not; a key occurs twice, or the entry is in a form that is not understood.
    """
    versions = [parse(text), parse(changed)]
    written = find_entry(versions[1], section, name)
    for values in versions:
        entries = values.get(section)
        if isinstance(entries, dict):
            entries.pop(name, None)
            if not entries:
                del values[section]
    if versions[0] != versions[1] or written != entry:
        raise ConfigurationError(
            f"the entry {name!r} of {section!r} cannot be changed without changing other values, as if a key occurs "
            "twice; edit the file, or print the entry with --print"
        )


def parse_toml(text: str) -> dict[str, Any]:
    """Return the values of a TOML text.

    Raises:
        ConfigurationError: The text is no TOML.
    """
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigurationError(
            f"the file is no TOML with room for the entry: {error}; correct it, or print the entry with --print"
        ) from error
