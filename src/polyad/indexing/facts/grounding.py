"""Where a passage says what a language model says it says."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from polyad.model import Span
from polyad.text.keys import limit_marks
from polyad.text.lexicon import FUNCTION_WORDS
from polyad.text.locate import UNSPACED, find_name_spans, find_occurrences, is_unspaced, is_word_character

_RUN = re.compile(rf"[{UNSPACED}]+|[^\s{UNSPACED}]+")


class _Plain(dict[int, str | None]):
    """What each character of a decomposed text becomes, decided the first time it is met: words without accents.

    What is written above and below the letters of scripts without spaces is no accent: there it tells words apart.
    """

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        is_accent = unicodedata.combining(character) and not is_unspaced(character)
        self[code] = None if is_accent else character if is_word_character(character) else " "
        return self[code]


_PLAIN = _Plain()


class Grounder:
    """Finds names and facts in one passage.

    A name is grounded when its words stand in the passage, or in its title, one after another; accents, punctuation
    and case do not matter, since models change them ("emile zola" for "Émile Zola"). Only a name in capitals alone has
    to stand there in capitals, lest "us" be taken for "US".

    Args:
        title: Of the passage's document.
        text: Of the passage.
        sentences: Their spans in ``text``.

    Attributes:
        title, text: As given.
    """

    def __init__(self, title: str, text: str, sentences: Sequence[Span]) -> None:
        self.title = title
        self.text = text
        self._sentences = sentences
        self._contents = [content(sentence.of(text)) for sentence in sentences]
        self._plain = f"{' '.join(_words(title))} | {' '.join(_words(text))}"
        self._folded = self._plain.casefold()

    def spans(self, name: str) -> list[tuple[int, int]]:
        """Where the name stands in the text; see :func:`polyad.text.locate.find_name_spans`."""
        return find_name_spans(name, self.text)

    def slice(self, span: tuple[int, int]) -> str:
        """The text's own words at a span."""
        return self.text[span[0] : span[1]]

    def is_grounded(self, name: str) -> bool:
        """Whether the passage or its title names it."""
        words = " ".join(_words(name))
        return bool(
            find_occurrences(words, self._plain) if name.isupper() else find_occurrences(words.casefold(), self._folded)
        )

    def span_of(self, fact: str) -> Span:
        """Where a fact comes from: its own words, or else the sentence that shares most of its content with it.

        The whole passage when no sentence shares any. See :func:`content`.
        """
        verbatim = find_occurrences(fact, self.text)
        if verbatim:
            return Span(*verbatim[0])
        wanted = content(fact)
        shared = [len(wanted & found) for found in self._contents]
        if not any(shared):
            return Span(0, len(self.text))
        return self._sentences[shared.index(max(shared))]


def grounded_share(fact: str, source: str) -> float:
    """The share of a fact's content that stands in a text, in [0, 1]; 1 for a fact without any.

    >>> grounded_share("Ada met Babbage in Rome.", "In 1833 Ada Lovelace met Charles Babbage.")
    0.75
    """
    wanted = content(fact)
    return len(wanted & content(source)) / len(wanted) if wanted else 1.0


def content(text: str) -> set[str]:
    """What a text says, in words that can be compared: without function words, accents and case.

    Where words stand without spaces between them, each two characters in a row stand for a word.

    >>> sorted(content("She met them in Tokyo")), sorted(content("東京に住む"))
    (['met', 'tokyo'], ['に住', '京に', '住む', '東京'])
    """
    found: set[str] = set()
    for word in _words(text.casefold()):
        if len(word) > 1 and is_unspaced(word[0]):
            found.update(word[place : place + 2] for place in range(len(word) - 1))
        elif word not in FUNCTION_WORDS:
            found.add(word)
    return found


def _words(text: str) -> list[str]:
    """The words of a text; where scripts meet that need no space between them, one ends as well."""
    plain = unicodedata.normalize("NFKD", limit_marks(text)).translate(_PLAIN)
    # Put together again what is no accent, such as the syllables of Hangul.
    return _RUN.findall(unicodedata.normalize("NFC", plain))
