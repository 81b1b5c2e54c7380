"""Where a passage says what a language model says it says."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from polyad.indexing.locate import occurrences
from polyad.model import Span

_WORD = re.compile(r"\w+")


class Grounder:
    """Finds names and facts in one passage.

    A name is grounded when its words stand in the passage, or in its title, one after another; case, accents and
    punctuation do not matter, since models change them ("ÉMILE ZOLA" for "Emile Zola").

    Args:
        title: Of the passage's document.
        text: Of the passage.
        sentences: Their spans in ``text``.
    """

    def __init__(self, title: str, text: str, sentences: Sequence[Span]) -> None:
        self._text = text
        self._sentences = sentences
        self._words = [_words(sentence.of(text)) for sentence in sentences]
        self._plain = f"{' '.join(_words(title))} | {' '.join(_words(text))}"

    def spans(self, name: str) -> list[tuple[int, int]]:
        """Where the name stands in the text, with its own case or else in any."""
        return occurrences(name, self._text) or occurrences(name, self._text, ignore_case=True)

    def slice(self, span: tuple[int, int]) -> str:
        """The text's own words at a span."""
        return self._text[span[0] : span[1]]

    def is_grounded(self, name: str) -> bool:
        """Whether the passage or its title names it."""
        return bool(occurrences(" ".join(_words(name)), self._plain))

    def span_of(self, fact: str) -> Span:
        """Where a fact comes from: its own words, or else the sentence that shares most words with it.

        The whole passage when no sentence shares any.
        """
        verbatim = occurrences(fact, self._text)
        if verbatim:
            return Span(*verbatim[0])
        wanted = set(_words(fact))
        shared = [len(wanted.intersection(words)) for words in self._words]
        if not any(shared):
            return Span(0, len(self._text))
        return self._sentences[shared.index(max(shared))]


def _words(text: str) -> list[str]:
    decomposed = unicodedata.normalize("NFKD", text)
    plain = "".join(c for c in decomposed if not unicodedata.combining(c))
    # Put together again what is no accent: syllables of Hangul, which need no bound beside them.
    return _WORD.findall(unicodedata.normalize("NFC", plain).casefold())
