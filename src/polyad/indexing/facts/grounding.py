"""Finds where a passage supports the names and facts that a language model states."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from polyad.model import Span
from polyad.text.keys import limit_marks
from polyad.text.lexicon import FUNCTION_WORDS
from polyad.text.locate import UNSPACED, find_name_spans, find_occurrences, is_unspaced, is_word_character

_RUN = re.compile(rf"[{UNSPACED}]+|[^\s{UNSPACED}]+")


class _AccentRemover(dict[int, str | None]):
    """A ``str.translate`` table that removes accents and replaces punctuation by spaces.

    Marks above and below letters of scripts without spaces are not accents: they distinguish words.
    """

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        is_accent = unicodedata.combining(character) and not is_unspaced(character)
        self[code] = None if is_accent else character if is_word_character(character) else " "
        return self[code]


_PLAIN = _AccentRemover()


class Grounder:
    """Locates entity names and facts from a language model's reply in the text of one passage.

    A name is grounded if its words occur in the passage, or in its title, one after another. Accents, punctuation and
    case are ignored, because models change them ("emile zola" for "Émile Zola"). Only a name in capitals must occur in
    capitals, so that "us" does not ground "US".

    Args:
        title: Title of the passage.
        text: Text of the passage.
        sentences: Spans of the sentences in ``text``.

    Attributes:
        title, text: The arguments of these names.
    """

    def __init__(self, title: str, text: str, sentences: Sequence[Span]) -> None:
        self.title = title
        self.text = text
        self._sentences = sentences
        self._contents = [collect_content_words(sentence.of(text)) for sentence in sentences]
        self._plain = f"{' '.join(_split_words(title))} | {' '.join(_split_words(text))}"
        self._folded = self._plain.casefold()

    def find_spans(self, name: str) -> list[tuple[int, int]]:
        """Return the character ranges where a name occurs in the passage, as pairs of start and end.

        See :func:`polyad.text.locate.find_name_spans`.
        """
        return find_name_spans(name, self.text)

    def is_grounded(self, name: str) -> bool:
        """Return whether the passage or its title contains a name. If not, the language model may have invented it."""
        words = " ".join(_split_words(name))
        return bool(
            find_occurrences(words, self._plain) if name.isupper() else find_occurrences(words.casefold(), self._folded)
        )

    def find_span(self, fact: str) -> Span:
        """Return the part of the passage that states a fact: the exact text, or the sentence that shares most words.

        The span is the whole passage if no sentence shares a content word; see :func:`collect_content_words`.
        """
        verbatim = find_occurrences(fact, self.text)
        if verbatim:
            return Span(*verbatim[0])
        words = collect_content_words(fact)
        shared = [len(words & sentence_words) for sentence_words in self._contents]
        if not any(shared):
            return Span(0, len(self.text))
        return self._sentences[shared.index(max(shared))]


def compute_grounded_share(fact: str, source: str) -> float:
    """Return the share of a fact's content words that a source text contains, in [0, 1]; 1 without content words.

    >>> compute_grounded_share("Ada met Babbage in Rome.", "In 1833 Ada Lovelace met Charles Babbage.")
    0.75
    """
    words = collect_content_words(fact)
    return len(words & collect_content_words(source)) / len(words) if words else 1.0


def collect_content_words(text: str) -> set[str]:
    """Return the set of words of a text without function words (such as "the"), case-folded and without accents.

    In scripts without spaces between words, each pair of neighbouring characters counts as a word.

    >>> sorted(collect_content_words("She met them in Tokyo")), sorted(collect_content_words("東京に住む"))
    (['met', 'tokyo'], ['に住', '京に', '住む', '東京'])
    """
    sentence_words: set[str] = set()
    for word in _split_words(text.casefold()):
        if len(word) > 1 and is_unspaced(word[0]):
            sentence_words.update(word[place : place + 2] for place in range(len(word) - 1))
        elif word not in FUNCTION_WORDS:
            sentence_words.add(word)
    return sentence_words


def _split_words(text: str) -> list[str]:
    """Return the words of a text without accents; characters of scripts without spaces form separate words."""
    plain = unicodedata.normalize("NFKD", limit_marks(text)).translate(_PLAIN)
    # NFC joins the characters again that NFKD separated without an accent, such as the syllables of Hangul.
    return _RUN.findall(unicodedata.normalize("NFC", plain))
