"""Mentions of names that are known beforehand: a glossary, a catalogue, or annotations made elsewhere."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self

from polyad.errors import ConfigurationError
from polyad.model import Mention
from polyad.protocols.components import LanguageModel
from polyad.text.cleaning import sanitize
from polyad.text.locate import occurrences

_FIRST_WORD = re.compile(r"\w+|[^\w\s]")


class GivenMentionExtractor:
    """Finds names that a file lists, as they are written there, at the bounds of words.

    Every line of the file is a JSON object with ``entities``, a list of names or of objects with ``name`` and, if
    wanted, ``type`` and ``description``. With a ``text`` beside them, they are looked for in that text alone, each
    wherever it occurs. Names without a ``text`` are a vocabulary for all other texts; there the longest name wins.

    Raises:
        ConfigurationError: the file cannot be read, or a line is not of this form.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._of_text: dict[str, dict[str, Mention]] = defaultdict(dict)
        self._vocabulary: dict[str, list[Mention]] = {}
        names: dict[str, Mention] = {}
        for text, mentions in _read(self._path):
            known = names if text is None else self._of_text[text]
            for mention in mentions:
                known.setdefault(mention.name, mention)
        for mention in sorted(names.values(), key=lambda mention: (-len(mention.name), mention.name)):
            self._vocabulary.setdefault(_first_word(mention.name), []).append(mention)

    @classmethod
    def from_name(cls, path: str, language_model: LanguageModel | None = None) -> Self:  # noqa: ARG003  # asks none
        """The extractor of ``given:FILE``, from what follows the colon.

        Raises:
            ConfigurationError: no file is named, or it is not as above.
        """
        if not path:
            raise ConfigurationError("no mention extractor 'given'; expected given:FILE, a file that lists names")
        return cls(path)

    @property
    def name(self) -> str:
        """The path is part of the name, its contents are not."""
        return f"given:{self._path}"

    def extract(self, texts: Sequence[str]) -> list[list[Mention]]:
        """The mentions in each text by ``start``, then longest first."""
        return [
            sorted(
                _all(self._of_text[text].values(), text) if text in self._of_text else self._longest(text),
                key=lambda mention: (mention.start, -mention.end),
            )
            for text in texts
        ]

    def _longest(self, text: str) -> Iterator[Mention]:
        position = 0
        for word in _FIRST_WORD.finditer(text):
            if word.start() < position:
                continue
            for mention in self._vocabulary.get(word.group(), ()):
                end = word.start() + len(mention.name)
                if text.startswith(mention.name, word.start()) and _is_bound(text, end):
                    yield _at(mention, word.start(), end)
                    position = end
                    break


def _first_word(name: str) -> str:
    match = _FIRST_WORD.search(name)
    return match.group() if match else name


def _is_bound(text: str, end: int) -> bool:
    return end >= len(text) or not (text[end].isalnum() and text[end - 1].isalnum())


def _all(mentions: Iterable[Mention], text: str) -> Iterator[Mention]:
    for mention in mentions:
        for start, end in occurrences(mention.name, text):
            yield _at(mention, start, end)


def _at(mention: Mention, start: int, end: int) -> Mention:
    return Mention(mention.name, start, end, type=mention.type, description=mention.description, score=mention.score)


def _read(path: Path) -> Iterator[tuple[str | None, list[Mention]]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the file of mentions {path} cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            text = record.get("text")
            mentions = [_mention(entity) for entity in record["entities"]]
            if text is not None and not isinstance(text, str):
                raise TypeError("'text' is not a string")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigurationError(
                f'{path}, line {number}: expected {{"entities": ["a name", ...]}}, '
                f'with "text" where they belong to one text ({type(error).__name__}: {error})'
            ) from error
        yield text, [mention for mention in mentions if mention.name]


def _mention(entity: object) -> Mention:
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
