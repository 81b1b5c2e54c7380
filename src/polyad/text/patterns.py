"""Exact search in texts: patterns of RE2, which match in linear time, and the words that every match contains.

A regular expression is matched line by line, as ``grep -E`` does: no match crosses the end of a line. A phrase is
literal text whose words any white space separates, so that a phrase is found across lines too.

RE2 (Cox, 2010) runs an automaton instead of trying alternatives, so that no pattern takes exponential time. Texts are
UTF-8 bytes: RE2 reads no other form, and a conversion for each match would take longer than the match.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from polyad.errors import ConfigurationError
from polyad.text.words import collapse_whitespace

MAX_PATTERN = 1000
"""Characters of the longest pattern."""

_BLOCK = 1 << 18
"""Bytes that are searched between two looks at the clock: at least 0.1 s for the slowest patterns."""

_SEPARATOR = "[\\s\\p{Z}]+"
"""White space between two words of a phrase, with the spaces of Unicode."""

_PIECE = re.compile(
    r"\\(?P<escaped>[^\w\s])|\\(?:[pPx]\{[^}]*\}|x[0-9A-Fa-f]{2}|[0-7]{1,3}|.)"  # \., \p{Greek}, \x41, \b
    r"|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]"  # [^a-z]
    r"|(?P<meta>[.^$()|])|(?P<repeat>[*+?]|\{\d+,?\d*\})|(?P<literal>.)",
    re.DOTALL,
)
"""A piece of a regular expression: an escape, a class of characters, a metacharacter, a repetition or a letter."""

_SINGLE_BYTE = re.compile(r"(?>\\Q(?:(?!\\E).)*|\\[^C]|[^\\])*+\\C", re.DOTALL)
"""The beginning of a regular expression up to ``\\C``, a single byte in RE2, which may be half a character."""

_WHOLE_WORD = re.compile(r"(?<=[ -/:-@\[-`{-~])[A-Za-z0-9]{1,40}(?=[ -/:-@\[-`{-~])")
"""An ASCII word between two ASCII characters that belong to no word. Other letters and signs may join words once an
index folds them: ``Acme™`` is one term."""


@dataclass(frozen=True, slots=True)
class LineMatch:
    """A line of a text that matches a pattern, as byte offsets.

    Attributes:
        start, end: The line; several lines if a phrase crosses their ends.
        match_start, match_end: The first match in the line.
    """

    start: int
    end: int
    match_start: int
    match_end: int


@dataclass(frozen=True)  # no slots, for the cached property
class TextPattern:
    """A regular expression or a phrase that is searched for in texts.

    Attributes:
        text: The pattern.
        is_phrase: Whether the pattern is a phrase, that is literal text; otherwise a regular expression of RE2.
        ignore_case: Whether upper and lower case are the same.

    Raises:
        ConfigurationError: The pattern is empty, too long, no text or no regular expression.
    """

    text: str
    is_phrase: bool = False
    ignore_case: bool = False

    def __post_init__(self) -> None:
        if not self.text.strip() or len(self.text) > MAX_PATTERN:
            raise ConfigurationError(
                f"the pattern has {len(self.text.strip()):,} characters; expected 1 to {MAX_PATTERN:,}"
            )
        if any(0xD800 <= ord(letter) < 0xE000 for letter in self.text):
            raise ConfigurationError(f"the pattern {self.text!r} has a byte that is no text; expected UTF-8")
        if not self.is_phrase and _SINGLE_BYTE.match(self.text):
            raise ConfigurationError(
                f"{self.text!r} has \\C, a single byte; expected '.', a character, since texts consist of characters"
            )
        self._compiled  # noqa: B018  raises if the pattern is no regular expression

    @cached_property
    def _compiled(self) -> Any:
        import re2  # takes 10 ms, which other commands do not need

        options = re2.Options()
        options.never_nl = not self.is_phrase
        options.case_sensitive = not self.ignore_case
        options.log_errors = False
        source = _SEPARATOR.join(map(re2.escape, self.text.split())) if self.is_phrase else f"(?m){self.text}"
        try:
            return re2.compile(source, options)
        except re2.error as error:
            reason = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else error
            reason = str(reason).removesuffix(f": {source}")
            raise ConfigurationError(
                f"{self.text!r} is no regular expression: {reason}; expected the syntax of RE2, without look-around "
                "and back references. Search for literal text as a phrase (polyad grep -F)"
            ) from error

    def list_words(self) -> list[str]:
        """Return ASCII words that each match contains as whole words, by which an index of words finds candidates.

        >>> TextPattern("was (born|raised) in [A-Z]+ on the [0-9]+").list_words()
        ['in', 'on', 'the']
        >>> TextPattern("Bell of Tarn", is_phrase=True).list_words()
        ['of']
        """
        literals = [collapse_whitespace(self.text)] if self.is_phrase else _find_literals(self.text)
        return list(dict.fromkeys(word for literal in literals for word in _WHOLE_WORD.findall(literal)))

    def find_lines(self, text: bytes, deadline: float = float("inf")) -> Iterator[LineMatch]:
        """Yield the lines of a text that match, in order.

        Args:
            text: UTF-8 bytes.
            deadline: Value of ``time.monotonic()`` from which on the search ends.

        Raises:
            TimeoutError: The deadline has passed.
        """
        start = 0
        while start < len(text):
            if time.monotonic() > deadline:
                raise TimeoutError
            # A phrase may cross the end of a block, but its automaton is small and fast.
            end = len(text) if self.is_phrase else _find_line_end(text, min(start + _BLOCK, len(text)))
            while start < end and (match := self._compiled.search(text, start, end)):
                if time.monotonic() > deadline:
                    raise TimeoutError
                match_start, match_end = (_find_character(text, place) for place in match.span())
                line_end = _find_line_end(text, match_end)
                yield LineMatch(text.rfind(b"\n", 0, match_start) + 1, line_end, match_start, match_end)
                start = line_end + 1
            start = max(start, end + 1)


def _find_line_end(text: bytes, place: int) -> int:
    end = text.find(b"\n", place)
    return len(text) if end < 0 else end


def _find_character(text: bytes, place: int) -> int:
    r"""Return where the character at a byte begins: RE2 finds ``\B`` between the bytes of a character too."""
    while place < len(text) and text[place] & 0xC0 == 0x80:
        place -= 1
    return place


def _find_literals(pattern: str) -> list[str]:
    """Return literal texts that each match of a regular expression contains.

    Alternatives and groups are skipped: a group may be optional.
    """
    if "\\Q" in pattern:  # quoted text, in which metacharacters are letters
        return []
    literals, depth = [""], 0
    for piece in _PIECE.finditer(pattern):
        letter = piece["escaped"] or piece["literal"]
        depth += {"(": 1, ")": -1}.get(piece["meta"] or "", 0)
        if piece["meta"] == "|" and not depth:
            return []
        if piece["repeat"]:
            literals[-1] = literals[-1][:-1]  # the letter before may be missing
        if letter and not depth:
            literals[-1] += letter
        elif literals[-1]:
            literals.append("")
    return literals
