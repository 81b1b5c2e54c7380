"""Measures of a written answer against accepted ones. Each is between 0 and 1, the best over the accepted answers.

Accepted answers are the aliases of one truth: whoever gives any of them is right.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

_ARTICLE = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ROUGE_SEPARATOR = re.compile("[^a-z0-9]+")


def normalised(answer: str) -> str:
    """An answer as SQuAD compares it: lower case, without punctuation, articles and superfluous blanks.

    Source: the evaluation script of SQuAD 1.1 (Rajpurkar et al., 2016), which HotpotQA and MuSiQue share.

    >>> normalised("The  Bell, of Tarn!")
    'bell of tarn'
    """
    return " ".join(_ARTICLE.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, accepted: Sequence[str]) -> float:
    """1 when the answer is one of the accepted ones, as :func:`normalised` compares them, else 0 (SQuAD 1.1).

    >>> exact_match("The otter.", ["otter"])
    1.0
    """
    given = normalised(answer)
    return float(any(given == normalised(one) for one in accepted))


def token_f1(answer: str, accepted: Sequence[str]) -> float:
    """Harmonic mean of the shares of words that answer and accepted answer have in common (SQuAD 1.1).

    An answer without words matches one without words, as in SQuAD 2.0.

    >>> round(token_f1("the brown otter", ["otter"]), 4)
    0.6667
    """
    return max((_f1(normalised(answer).split(), normalised(one).split()) for one in accepted), default=0.0)


def _f1(given: Sequence[str], wanted: Sequence[str]) -> float:
    common = sum((Counter(given) & Counter(wanted)).values())
    return 2 * common / (len(given) + len(wanted)) if common else float(given == wanted)


def contains(answer: str, accepted: Sequence[str]) -> float:
    """1 when an accepted answer stands in the answer, word for word, else 0: Contain-Acc.

    HyperSU and LinearRAG report it by substrings, which finds "art" in "party"; here whole words count. An accepted
    answer without words stands in none.

    >>> contains("It is a brown otter.", ["the otter"]), contains("It is a party.", ["art"])
    (1.0, 0.0)
    """
    given = f" {normalised(answer)} "
    return float(any(words and f" {words} " in given for words in map(normalised, accepted)))


def contains_letters(answer: str, accepted: Sequence[str]) -> float:
    """As :func:`contains` with any letters in a row, even within words: what HyperRAG's code calls exact match.

    >>> contains_letters("It is a party.", ["art"])
    1.0
    """
    given = normalised(answer)
    return float(any(words and words in given for words in map(normalised, accepted)))


def rouge_l(answer: str, accepted: Sequence[str]) -> float:
    """F1 of the longest common subsequence of words (Lin, 2004), as the package rouge-score counts without stemming.

    >>> round(rouge_l("an otter eats fish", ["the otter eats"]), 4)
    0.5714
    """
    given = _rouge_words(answer)
    return max((_subsequence_f1(given, _rouge_words(one)) for one in accepted), default=0.0)


def _rouge_words(text: str) -> list[str]:
    return _ROUGE_SEPARATOR.sub(" ", text.lower()).split()


def _subsequence_f1(given: Sequence[str], wanted: Sequence[str]) -> float:
    common = _longest_common_subsequence(given, wanted)
    return 2 * common / (len(given) + len(wanted)) if common else 0.0


def _longest_common_subsequence(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest sequence of words that stands in both in this order, with any others between them."""
    above = [0] * (len(second) + 1)
    for word in first:
        row = [0]
        for column, other in enumerate(second):
            row.append(above[column] + 1 if word == other else max(above[column + 1], row[-1]))
        above = row
    return above[-1]
