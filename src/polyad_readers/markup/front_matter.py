"""Parses front matter: YAML between lines of hyphens, or TOML between lines of plus signs."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import NamedTuple

import yaml  # type: ignore[import-untyped, unused-ignore]  # typed only when its stubs are installed

from polyad.model import MetadataValue
from polyad.readers.text.metadata import NO_METADATA, build_metadata
from polyad.readers.text.plain_text import to_single_line

_MAX_CHARACTERS = 16 * 1024
"""Characters of the longest front matter; a longer block is text."""

_YAML = re.compile(rf"\A---[ \t]*\n(.{{0,{_MAX_CHARACTERS}}}?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_TOML = re.compile(rf"\A\+\+\+[ \t]*\n(.{{0,{_MAX_CHARACTERS}}}?)\n\+\+\+[ \t]*(?:\n|\Z)", re.DOTALL)
_LINE = re.compile(r"^([A-Za-z][\w -]{0,60}):[ \t]*(\S.*)$", re.MULTILINE)


class FrontMatter(NamedTuple):
    """The title, URL and metadata in a block of metadata before a text, and the offset at which the block ends."""

    end: int = 0
    title: str = ""
    url: str = ""
    metadata: Mapping[str, MetadataValue] = NO_METADATA


class _Loader(yaml.SafeLoader):  # type: ignore[misc, unused-ignore]  # its base is untyped, as above
    """A loader for plain YAML without aliases: a few lines with aliases could expand to gigabytes."""

    def compose_node(self, parent: object, index: object) -> object:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias")
        return super().compose_node(parent, index)


def parse_front_matter(text: str) -> FrontMatter:
    """Return title, URL and metadata from the YAML or TOML block at the start of a text; without a block, empty."""
    if match := _YAML.match(text):
        values = _parse_yaml(match[1])
    elif match := _TOML.match(text):
        values = _parse_toml(match[1])
    if not match or not values:
        return FrontMatter()
    values = {key.lower() if key.lower() in ("title", "url") else key: value for key, value in values.items()}
    title, url = values.pop("title", None), values.pop("url", None)
    named = {"title": title, "url": url}
    not_strings = {key: value for key, value in named.items() if value is not None and not isinstance(value, str)}
    return FrontMatter(
        match.end(),
        to_single_line(title) if isinstance(title, str) else "",
        to_single_line(url) if isinstance(url, str) else "",
        build_metadata([*values.items(), *not_strings.items()]),
    )


def _parse_yaml(text: str) -> dict[str, object]:
    """Return YAML as a dictionary; if the YAML is malformed, split each line at its first colon."""
    try:
        values = yaml.load(text, _Loader)  # _Loader is safe: a subclass of SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError):
        values = {key: value.strip("\"' \t") for key, value in _LINE.findall(text)}
    return {str(key): value for key, value in values.items()} if isinstance(values, dict) else {}


def _parse_toml(text: str) -> dict[str, object]:
    """Return a TOML document as a dictionary; an empty dictionary if the document is malformed."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}
