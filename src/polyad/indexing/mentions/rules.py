"""Mentions without a model: names, works, acronyms, dates, quantities, and salient phrases where names are few."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Self

from polyad.errors import ConfigurationError
from polyad.indexing.mentions.capitalised import names
from polyad.indexing.mentions.phrases import phrases
from polyad.indexing.mentions.values import dates, quantities, works
from polyad.model import Mention
from polyad.protocols.components import LanguageModel

SCORES = {"name": 100.0, "work": 100.0, "acronym": 100.0, "date": 60.0, "quantity": 50.0, "phrase": 40.0}
"""Score of a mention by the rule that found it, in (0, 100]."""

_MASK = "\x00"
_PHRASES_PER_WORD = 0.1
"""In a text without any name; in proportion fewer with some."""

_MOST_NAMES = 0.12
"""Share of a text's characters that may be names for it to be given phrases and quantities too. Encyclopaedic passages
have a median of 0.32 to 0.43."""

_CODE = re.compile(r"(?<![\w.,/-])[a-z]{1,4}-?\d{1,4}[a-z]?(?![\w/-])")

_BROKEN_LINE = re.compile(r"\n(?<=[^\n]{40}[^\s.!?:;]\n)(?=[^\W\d_])")
"""The end of a long line within a sentence, as in text wrapped by hand; a list has short lines, bullets or numbers."""


class RuleMentionExtractor:
    """Deterministic recognition by spelling; needs no model and no network."""

    @classmethod
    def from_name(cls, rest: str, language_model: LanguageModel | None = None) -> Self:  # noqa: ARG003  # asks none
        """The extractor of ``rules``.

        Raises:
            ConfigurationError: there is something after a colon.
        """
        if rest:
            raise ConfigurationError(f"no mention extractor 'rules:{rest}'; expected rules, and nothing after it")
        return cls()

    @property
    def name(self) -> str:
        """As on the command line."""
        return "rules"

    def extract(self, texts: Sequence[str]) -> list[list[Mention]]:
        """The mentions in each text by ``start``, then longest first. They may overlap."""
        return [_extract(text) for text in texts]


def _extract(text: str) -> list[Mention]:
    flowing = _BROKEN_LINE.sub(" ", text)  # as long as the text: a name may go over the end of a line
    types: dict[tuple[int, int], str] = dict.fromkeys(works(flowing), "work")
    rest = _masked(flowing, types)
    found_dates = list(dates(rest))
    types |= dict.fromkeys(found_dates, "date")
    rest = _masked(rest, (span for span in found_dates if not text[span[0] : span[1]].isdigit()))
    for start, end in names(rest):
        types.setdefault((start, end), "acronym" if _is_acronym(text[start:end]) else "name")
    for span, rule in _of_technical_text(rest, types):
        types.setdefault(span, rule)
    spans = sorted(types, key=lambda span: (span[0], -span[1]))
    return [
        Mention(text[start:end], start, end, type=types[start, end], score=SCORES[types[start, end]])
        for start, end in spans
    ]


def _of_technical_text(text: str, found: Iterable[tuple[int, int]]) -> Iterator[tuple[tuple[int, int], str]]:
    """Codes, quantities and phrases, where names are few: elsewhere they would join passages by chance."""
    room = 1 - _share(text, found) / _MOST_NAMES
    if room <= 0:
        return
    yield from ((match.span(), "acronym") for match in _CODE.finditer(text))
    yield from ((span, "quantity") for span in quantities(text))
    count = round(room * _PHRASES_PER_WORD * (text.count(" ") + 1))
    yield from ((span, "phrase") for span in phrases(text, count))


def _share(text: str, spans: Iterable[tuple[int, int]]) -> float:
    """How much of the text the spans cover, in [0, 1]."""
    covered = position = 0
    for start, end in sorted(spans):
        covered += max(0, end - max(start, position))
        position = max(position, end)
    return covered / len(text) if text else 0.0


def _masked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with the spans made unreadable, at the same length."""
    pieces = []
    position = 0
    for start, end in sorted(spans):
        if start >= position:
            pieces += [text[position:start], _MASK * (end - start)]
            position = end
    pieces.append(text[position:])
    return "".join(pieces)


def _is_acronym(name: str) -> bool:
    return len(name) > 1 and name.isupper() and " " not in name
