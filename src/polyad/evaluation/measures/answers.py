"""Measures of a written answer against accepted ones. Each is between 0 and 1, the best over the accepted answers.

Accepted answers are the aliases of one truth: whoever gives any of them is right.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from polyad.model import Evidence
from polyad.text.counting import terms
from polyad.text.keys import entity_key

_ARTICLE = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_WORD = re.compile(r"\w+")
_ROUGE_SEPARATOR = re.compile("[^a-z0-9]+")


def normalize_answer(answer: str) -> str:
    """An answer as SQuAD compares it: lower case, without punctuation, articles and superfluous blanks.

    Source: the evaluation script of SQuAD 1.1 (Rajpurkar et al., 2016), which HotpotQA and MuSiQue share.

    >>> normalize_answer("The  Bell, of Tarn!")
    'bell of tarn'
    """
    return " ".join(_ARTICLE.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, accepted: Sequence[str]) -> float:
    """1 when the answer is one of the accepted ones, as :func:`normalize_answer` compares them, else 0 (SQuAD 1.1).

    >>> exact_match("The otter.", ["otter"])
    1.0
    """
    given = normalize_answer(answer)
    return float(any(given == normalize_answer(one) for one in accepted))


def token_f1(answer: str, accepted: Sequence[str]) -> float:
    """Harmonic mean of the shares of words that answer and accepted answer have in common (SQuAD 1.1).

    An answer without words matches one without words, as in SQuAD 2.0.

    >>> round(token_f1("the brown otter", ["otter"]), 4)
    0.6667
    """
    return max((_f1(normalize_answer(answer).split(), normalize_answer(one).split()) for one in accepted), default=0.0)


def _f1(given: Sequence[str], wanted: Sequence[str]) -> float:
    common = sum((Counter(given) & Counter(wanted)).values())
    return 2 * common / (len(given) + len(wanted)) if common else float(given == wanted)


def contain_accuracy(answer: str, accepted: Sequence[str]) -> float:
    """1 when an accepted answer stands in the answer, word for word, else 0: Contain-Acc.

    HyperSU and LinearRAG report it by substrings, which finds "art" in "party"; here whole words count. An accepted
    answer without words stands in none.

    >>> contain_accuracy("It is a brown otter.", ["the otter"]), contain_accuracy("It is a party.", ["art"])
    (1.0, 0.0)
    """
    given = f" {normalize_answer(answer)} "
    return float(any(words and f" {words} " in given for words in map(normalize_answer, accepted)))


def hyperrag_exact_match(answer: str, accepted: Sequence[str]) -> float:
    """1 when answer or accepted answer stands in the other, letter for letter without blanks: not exact at all.

    Source: what HyperRAG's code (``qa_eval_EM_F1.py``) counts as exact match: lower case, blanks removed, one in the
    other either way round. An empty answer is wrong.

    >>> hyperrag_exact_match("It is a party.", ["art"]), hyperrag_exact_match("", ["art"])
    (1.0, 0.0)
    """
    given = _without_blanks(answer)
    others = [other for other in map(_without_blanks, accepted) if other]
    return float(bool(given) and any(given in other or other in given for other in others))


def _without_blanks(text: str) -> str:
    return text.strip().replace(" ", "").lower()


def name_reciprocal_rank(names: Sequence[str], accepted: Sequence[str]) -> float:
    """1 / rank of the first name that is accepted, 0 when there is none: MRR of answers in names.

    Source: HyperRAG, section 4.1.2, for WikiTopics; its code compares names as :func:`normalize_answer` does.

    >>> name_reciprocal_rank(["Isk", "The Aldby"], ["Aldby", "Tarn"])
    0.5
    """
    known = {normalize_answer(one) for one in accepted}
    return next((1 / rank for rank, name in enumerate(names, 1) if normalize_answer(name) in known), 0.0)


def name_hits(names: Sequence[str], accepted: Sequence[str], k: int = 10) -> float:
    """1 when an accepted name is among the first ``k``, else 0: Hits@10 of answers in names (HyperRAG, section 4.1.2).

    >>> name_hits(["Isk", "Aldby"], ["Aldby"], k=1)
    0.0
    """
    return float(name_reciprocal_rank(names[:k], accepted) > 0)


def context_recall_in_words(answer: str, accepted: Sequence[str]) -> float | None:
    """Part of the different words of an accepted answer that are in the answer; None where it has none.

    Source: C-Rec of HyperGraphRAG v1, equation 22, which counts tokens of GPT-2. Here they are words without case and
    punctuation, hence the name ``c_rec_words``: the numbers are not those of the paper.

    >>> context_recall_in_words("The otter eats.", ["an otter eats fish"])
    0.5
    """
    given = set(terms(answer))
    parts = [len(words & given) / len(words) for words in (set(terms(one)) for one in accepted) if words]
    return max(parts, default=None)


def entity_recall(answer: str, accepted: Sequence[str]) -> float | None:
    """Part of the capitalised words of an accepted answer that are in the answer; None where it has none.

    Source: C-ERec of HyperGraphRAG v1, equation 23, whose entities are the words with a capital.

    >>> entity_recall("It was Moreau.", ["Ines Moreau"])
    0.5
    """
    given = _capitalised(answer)
    parts = [len(words & given) / len(words) for words in map(_capitalised, accepted) if words]
    return max(parts, default=None)


def answer_relevance_in_words(question: str, answer: str) -> float | None:
    """Part of the different words of the question that are in the answer; None where it has none.

    Source: A-Rel of HyperGraphRAG v1, equation 24, which counts tokens of GPT-2; here words, as ``a_rel_words``.

    >>> answer_relevance_in_words("What do otters eat?", "Otters eat fish.")
    0.5
    """
    words = set(terms(question))
    return len(words & set(terms(answer))) / len(words) if words else None


def _capitalised(text: str) -> set[str]:
    return {word for word in _WORD.findall(text) if word[0].isupper()}


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


def rank_entities(evidence: Evidence, members: Mapping[str, Sequence[str]], question: str) -> list[str]:
    """Keys of the entities in the evidence, best first, without those that the question names.

    An entity is as good as the first piece of evidence that holds it: the hyperedges in their order, and behind them
    the passages in theirs. Among those of one piece the retriever's own score of the entity decides, then the key.

    Args:
        evidence: What was found.
        members: Keys of the entities in each passage, by passage id; of the passages of the evidence at least.
        question: As asked.
    """
    named = f" {entity_key(question)} "
    pieces: list[Collection[str]] = [[member.key for member in edge.members] for edge in evidence.hyperedges]
    pieces += [members.get(hit.passage.id, ()) for hit in evidence.passages]
    scores = {scored.entity.key: scored.score for scored in evidence.entities}
    ranked: dict[str, None] = {}
    for piece in pieces:
        for key in sorted(piece, key=lambda key: (-scores.get(key, 0.0), key)):
            if f" {key} " not in named:
                ranked.setdefault(key)
    return list(ranked)
