"""Measures of returned text against sentences that must stand in it. Each is between 0 and 1.

Only words are compared: line breaks, punctuation, capitals, emphasis and hyphens say nothing, so that a reader may mend
them without losing what was written down before.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

_HYPHEN = re.compile("(?<=\\w)[-\u00ad\u2010\u2011]\\s*(?=\\w)")
"""Between two letters, even across a line: a word may be broken there or not, as the reader likes."""

_WORD = re.compile(r"[^\W_]+")


def tokenize(text: str) -> list[str]:
    r"""The words of a text as they are compared.

    >>> tokenize("A _well-\nknown_ “Rule” (1)")
    ['a', 'wellknown', 'rule', '1']
    """
    return _WORD.findall(_HYPHEN.sub("", unicodedata.normalize("NFKC", text)).casefold())


def normalize_texts(texts: Sequence[str], budget: int | None = None) -> str:
    """What a reader of the first ``budget`` words of the texts has seen, to be searched by :func:`contains_sentence`.

    Args:
        texts: What was returned, best first.
        budget: In words as white space divides them; None reads everything.

    Returns:
        The words compared, a blank before and after each.

    >>> normalize_texts(["One two.", "Three four."], 3)
    ' one two three '
    """
    return f" {' '.join(tokenize(' '.join(texts if budget is None else truncate_texts(texts, budget))))} "


def truncate_texts(texts: Iterable[str], budget: int) -> list[str]:
    """The first ``budget`` words of the texts, as white space divides them."""
    kept: list[str] = []
    for text in texts:
        kept += text.split(maxsplit=budget - len(kept))[: budget - len(kept)]
        if len(kept) == budget:
            break
    return kept


def contains_sentence(sentence: str, returned: str) -> bool:
    """Whether a sentence stands, whole, in what :func:`normalize_texts` gives.

    >>> contains_sentence("Two, three!", normalize_texts(["One two.", "Three four."]))
    True
    """
    words = tokenize(sentence)
    return bool(words) and f" {' '.join(words)} " in returned


def evidence_recall(sentences: Sequence[str], returned: str) -> float:
    """Share of the sentences that stand in what :func:`normalize_texts` gives.

    >>> evidence_recall(["One two.", "Five six."], normalize_texts(["One two three."]))
    0.5
    """
    return sum(contains_sentence(sentence, returned) for sentence in sentences) / len(sentences)


def contains_all_evidence(sentences: Sequence[str], returned: str) -> float:
    """1 when every sentence stands in what :func:`normalize_texts` gives, else 0.

    >>> contains_all_evidence(["One two.", "Five six."], normalize_texts(["One two three."]))
    0.0
    """
    return float(all(contains_sentence(sentence, returned) for sentence in sentences))


def evidence_reciprocal_rank(sentences: Sequence[str], texts: Iterable[str]) -> float:
    """1 / rank of the first text that holds one of the sentences whole, 0 when there is none.

    >>> evidence_reciprocal_rank(["Two three."], ["One.", "One, two, three."])
    0.5
    """
    for rank, text in enumerate(texts, 1):
        returned = normalize_texts([text])
        if any(contains_sentence(sentence, returned) for sentence in sentences):
            return 1 / rank
    return 0.0
