"""Measures of returned text against sentences of evidence, in [0, 1].

Only words are compared: line breaks, punctuation, case, emphasis and hyphens are ignored, so that readers of documents
may change these.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from polyad_bench.measures.evidence import get_first_words

_HYPHEN = re.compile("(?<=\\w)[-\u00ad\u2010\u2011]\\s*(?=\\w)")
"""A hyphen between two letters, also at the end of a line: some readers join hyphenated words, others do not."""

_WORD = re.compile(r"[^\W_]+")


def tokenize(text: str) -> list[str]:
    r"""Return the words of a text in lower case and without punctuation, for comparison with evidence.

    >>> tokenize("A _well-\nknown_ “Rule” (1)")
    ['a', 'wellknown', 'rule', '1']
    """
    return _WORD.findall(_HYPHEN.sub("", unicodedata.normalize("NFKC", text)).casefold())


def normalize_texts(texts: Sequence[str], max_words: int | None = None) -> str:
    """Return the first ``max_words`` words of the texts, normalised, as one string for substring search.

    >>> normalize_texts(["One two.", "Three four."], 3)
    ' one two three '

    Args:
        texts: Returned texts, best first.
        max_words: Budget in words separated by white space; None for all words.
    """
    limited = texts if max_words is None else get_first_words(texts, max_words)
    return f" {' '.join(tokenize(' '.join(limited)))} "


def contains_sentence(sentence: str, returned: str) -> bool:
    """Return whether the normalised text ``returned`` contains all words of a sentence in sequence.

    >>> contains_sentence("Two, three!", normalize_texts(["One two.", "Three four."]))
    True
    """
    words = tokenize(sentence)
    return bool(words) and f" {' '.join(words)} " in returned


def evidence_recall(sentences: Sequence[str], returned: str) -> float:
    """Return the share of the sentences that the normalised text ``returned`` contains.

    >>> evidence_recall(["One two.", "Five six."], normalize_texts(["One two three."]))
    0.5
    """
    return sum(contains_sentence(sentence, returned) for sentence in sentences) / len(sentences)


def contains_all_evidence(sentences: Sequence[str], returned: str) -> float:
    """Return 1 if the normalised text ``returned`` contains every sentence, otherwise 0.

    >>> contains_all_evidence(["One two.", "Five six."], normalize_texts(["One two three."]))
    0.0
    """
    return float(all(contains_sentence(sentence, returned) for sentence in sentences))


def evidence_reciprocal_rank(sentences: Sequence[str], texts: Iterable[str]) -> float:
    """Return 1 / rank of the first text that contains one of the sentences, or 0 if there is none.

    >>> evidence_reciprocal_rank(["Two three."], ["One.", "One, two, three."])
    0.5
    """
    for rank, text in enumerate(texts, 1):
        returned = normalize_texts([text])
        if any(contains_sentence(sentence, returned) for sentence in sentences):
            return 1 / rank
    return 0.0
