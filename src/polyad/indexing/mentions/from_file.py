"""Mentions of names from a file: a glossary, a catalogue, or annotations of another tool."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

from polyad.errors import ConfigurationError
from polyad.model import Mention
from polyad.protocols.components import LanguageModel
from polyad.text.files import read_file
from polyad.text.locate import find_occurrences
from polyad.text.words import sanitize

_FIRST_WORD = re.compile(r"\w+|[^\w\s]")


class FileMentionExtractor:
    """A mention extractor that finds the names listed in a file, as whole words in the same spelling.

    Each line of the file is a JSON object with ``entities``: a list of names, or of objects with ``name`` and,
    optionally, ``type`` and ``description``. If the line also has a ``text``, all occurrences of these names are
    mentions in that text only. The names of lines without a ``text`` are a vocabulary for all other texts, in which the
    longest name wins.

    Attributes:
        name: The extractor's name on the command line, ``given:FILE``; independent of the file's contents.

    Raises:
        ConfigurationError: the file cannot be read, or a line has another form.
    """

    def __init__(self, path: str | Path) -> None:
        self.name = f"given:{Path(path)}"
        self._mentions_by_text: dict[str, dict[str, Mention]] = defaultdict(dict)
        self._vocabulary: dict[str, list[Mention]] = {}
        names: dict[str, Mention] = {}
        for text, mentions in _read_file(Path(path)):
            by_name = names if text is None else self._mentions_by_text[text]
            for mention in mentions:
                by_name.setdefault(mention.name, mention)
        for mention in sorted(names.values(), key=lambda mention: (-len(mention.name), mention.name)):
            self._vocabulary.setdefault(_get_first_word(mention.name), []).append(mention)

    @classmethod
    def from_name(cls, path: str, language_model: LanguageModel | None = None) -> Self:  # noqa: ARG003  # the signature of all extractors
        """Return the mention extractor ``given:FILE``, which finds the names listed in the file at ``path``.

        Args:
            path: The text after the colon.
            language_model: Not used.

        Raises:
            ConfigurationError: no file is named, or the file is invalid.
        """
        if not path:
            raise ConfigurationError("no mention extractor 'given'; expected given:FILE, a file that lists names")
        return cls(path)

    def extract(self, texts: Sequence[str]) -> list[list[Mention]]:
        """Return the mentions in each text as one list per text, ordered by ``start``, the longest first."""
        return [
            sorted(
                (
                    replace(mention, start=start, end=end)
                    for mention in self._mentions_by_text[text].values()
                    for start, end in find_occurrences(mention.name, text)
                )
                if text in self._mentions_by_text
                else self._find_longest(text),
                key=lambda mention: (mention.start, -mention.end),
            )
            for text in texts
        ]

    def _find_longest(self, text: str) -> Iterator[Mention]:
        """Yield the mentions of listed names, from left to right without overlaps; at each word the longest name."""
        position = 0
        for word in _FIRST_WORD.finditer(text):
            if word.start() < position:
                continue
            for mention in self._vocabulary.get(word.group(), ()):
                end = word.start() + len(mention.name)
                if text.startswith(mention.name, word.start()) and _is_word_end(text, end):
                    yield replace(mention, start=word.start(), end=end)
                    position = end
                    break


def _get_first_word(name: str) -> str:
    match = _FIRST_WORD.search(name)
    return match.group() if match else name


def _is_word_end(text: str, end: int) -> bool:
    return end >= len(text) or not (text[end].isalnum() and text[end - 1].isalnum())


def _read_file(path: Path) -> Iterator[tuple[str | None, list[Mention]]]:
    try:
        lines = read_file(path).decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the file of mentions {path} cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            text = record.get("text")
            mentions = [_parse_mention(entity) for entity in record["entities"]]
            if text is not None and not isinstance(text, str):
                raise TypeError("'text' is not a string")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ConfigurationError(
                f'{path}, line {number}: expected {{"entities": ["a name", ...]}}, '
                f'with "text" where they belong to one text ({type(error).__name__}: {error})'
            ) from error
        yield text, [mention for mention in mentions if mention.name]


def _parse_mention(entity: object) -> Mention:
    if isinstance(entity, str):
        return Mention(entity.strip(), -1, -1)
    if isinstance(entity, dict) and isinstance(entity.get("name"), str):
        return Mention(
            entity["name"].strip(),
            -1,
            -1,
            type=sanitize(str(entity.get("type", ""))),
            description=sanitize(str(entity.get("description", ""))),
        )
    raise TypeError(f"{entity!r} is neither a name nor an object with a name")
