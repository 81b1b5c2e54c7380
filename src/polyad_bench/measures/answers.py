"""Measures of an answer against accepted answers, in [0, 1]; the best value over the accepted answers counts.

Accepted answers are aliases of one another: an answer that equals any accepted answer is correct.
"""

from __future__ import annotations

import hashlib
import importlib
import re
import string
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence, Set
from pathlib import Path

from polyad.errors import ConfigurationError, MissingExtraError
from polyad.text.words import normalize_words, replace_surrogates, stem_word

Split = Callable[[str], Sequence[Hashable]]
"""Returns the words, or the tokens of a language model, of a text."""

_ARTICLE = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_WORD = re.compile(r"\w+")
_ROUGE_SEPARATOR = re.compile("[^a-z0-9]+")

_ONE_WORD_VERDICTS = frozenset({"yes", "no", "noanswer"})

_MIN_STEMMED = 3
"""Letters of the longest words that rouge-score does not stem."""


def normalize_answer(answer: str) -> str:
    """Return an answer in lower case, without punctuation and articles, and with single spaces between words.

    Source: the evaluation script of SQuAD 1.1 (Rajpurkar et al., 2016), which HotpotQA and MuSiQue use too.

    >>> normalize_answer("The  Bell, of Tarn!")
    'bell of tarn'
    """
    return " ".join(_ARTICLE.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, accepted: Sequence[str]) -> float:
    """Return 1 if the normalised answer equals an accepted answer, otherwise 0 (SQuAD 1.1).

    >>> exact_match("The otter.", ["otter"])
    1.0
    """
    return float(normalize_answer(answer) in map(normalize_answer, accepted))


def token_f1(answer: str, accepted: Sequence[str]) -> float:
    """Return the F1 of the word overlap between the answer and the most similar accepted answer (SQuAD 1.1).

    An answer without words matches an accepted answer without words, as in SQuAD 2.0.

    >>> round(token_f1("the brown otter", ["otter"]), 4)
    0.6667
    """
    words = normalize_answer(answer).split()
    return max((_token_f1(words, normalize_answer(text).split()) for text in accepted), default=0.0)


def hotpotqa_f1(answer: str, accepted: Sequence[str]) -> float:
    """Return HotpotQA's F1: :func:`token_f1`, but 0 if only one of the two answers is "yes", or only one is "no".

    Source: the evaluation scripts of HotpotQA and 2WikiMultiHopQA, and FlashRAG, which HyperGraphRAG v2 names.

    >>> hotpotqa_f1("Yes, it is.", ["yes"]), hotpotqa_f1("Yes.", ["yes"])
    (0.0, 1.0)
    """
    normalized = normalize_answer(answer)
    comparable = [
        text
        for text in map(normalize_answer, accepted)
        if text == normalized or not {text, normalized} & _ONE_WORD_VERDICTS
    ]
    return token_f1(answer, comparable)


def _token_f1(words: Sequence[str], reference: Sequence[str]) -> float:
    common = sum((Counter(words) & Counter(reference)).values())
    return 2 * common / (len(words) + len(reference)) if common else float(words == reference)


def contain_accuracy(answer: str, accepted: Sequence[str]) -> float:
    """Return 1 if the answer contains an accepted answer as whole words, otherwise 0: Contain-Acc.

    HyperSU and LinearRAG match substrings, which finds "art" in "party". An accepted answer without words is contained
    in no answer.

    >>> contain_accuracy("It is a brown otter.", ["the otter"]), contain_accuracy("It is a party.", ["art"])
    (1.0, 0.0)
    """
    padded = f" {normalize_answer(answer)} "
    return float(any(words and f" {words} " in padded for words in map(normalize_answer, accepted)))


def hyperrag_exact_match(answer: str, accepted: Sequence[str]) -> float:
    """Return 1 if the answer contains an accepted answer or an accepted answer contains the answer: HyperRAG's "EM".

    Source: HyperRAG's code (``qa_eval_EM_F1.py``), which lowers the case and removes blanks. An empty answer is wrong.

    >>> hyperrag_exact_match("It is a party.", ["art"]), hyperrag_exact_match("", ["art"])
    (1.0, 0.0)
    """
    letters = _remove_blanks(answer)
    references = [reference for reference in map(_remove_blanks, accepted) if reference]
    return float(bool(letters) and any(letters in reference or reference in letters for reference in references))


def _remove_blanks(text: str) -> str:
    return text.strip().replace(" ", "").lower()


def name_reciprocal_rank(names: Sequence[str], accepted: Sequence[str]) -> float:
    """Return 1 / rank of the first accepted name in a ranked list of entity names, or 0 if no name is accepted.

    Source: HyperRAG, section 4.1.2, for WikiTopics; its code compares names as :func:`normalize_answer` does.

    >>> name_reciprocal_rank(["Isk", "The Aldby"], ["Aldby", "Tarn"])
    0.5
    """
    references = {normalize_answer(name) for name in accepted}
    return next((1 / rank for rank, name in enumerate(names, 1) if normalize_answer(name) in references), 0.0)


def name_hits(names: Sequence[str], accepted: Sequence[str], k: int = 10) -> float:
    """Return 1 if one of the first ``k`` entity names of the answer is accepted, otherwise 0 (HyperRAG, section 4.1.2).

    >>> name_hits(["Isk", "Aldby"], ["Aldby"], k=1)
    0.0
    """
    return float(name_reciprocal_rank(names[:k], accepted) > 0)


def context_recall(answer: str, accepted: Sequence[str], split: Split = normalize_words) -> float | None:
    """Return the share of an accepted answer's distinct words (by ``split``) in the answer; the best of all accepted.

    Return None if no accepted answer has words.

    Source: C-Rec of HyperGraphRAG v1, equation 22, which counts tokens of GPT-2; ``split`` may return these. By default
    words are counted without case and punctuation, as ``c_rec_words``: the values differ from the values in the paper.

    >>> context_recall("The otter eats.", ["an otter eats fish"])
    0.5
    """
    return _best_share(set(split(answer)), [set(split(text)) for text in accepted])


def entity_recall(answer: str, accepted: Sequence[str]) -> float | None:
    """Return the share of the capitalised words of an accepted answer that the answer contains.

    Return None if no accepted answer has such a word.

    Source: C-ERec of HyperGraphRAG v1, equation 23, whose entities are capitalised words.

    >>> entity_recall("It was Moreau.", ["Ines Moreau"])
    0.5
    """
    return _best_share(_find_capitalised(answer), map(_find_capitalised, accepted))


def answer_relevance(question: str, answer: str, split: Split = normalize_words) -> float | None:
    """Return the share of the question's distinct words that the answer contains; ``split`` returns the words.

    Return None if the question has no words.

    Source: A-Rel of HyperGraphRAG v1, equation 24, which counts tokens of GPT-2; by default words, as ``a_rel_words``.

    >>> answer_relevance("What do otters eat?", "Otters eat fish.")
    0.5
    """
    return context_recall(answer, [question], split)


def _best_share(words: Set[Hashable], references: Iterable[Set[Hashable]]) -> float | None:
    return max((len(reference & words) / len(reference) for reference in references if reference), default=None)


def _find_capitalised(text: str) -> set[str]:
    return {word for word in _WORD.findall(text) if word[0].isupper()}


def rouge_l(answer: str, accepted: Sequence[str]) -> float:
    """Return ROUGE-L, the F1 of the longest common word subsequence, with the best accepted answer (Lin, 2004).

    Words are stemmed. The package rouge-score, with stemming, and GraphRAG-Bench also apply NLTK's extensions of
    Porter's stemmer. These extensions are left out here: they change the stem of one word in a hundred, mostly in all
    forms of the word alike.

    >>> round(rouge_l("an otter eats fish", ["the otter eats"]), 4)
    0.5714
    """
    words = _split_rouge_words(answer)
    return max((_rouge_l(words, _split_rouge_words(text)) for text in accepted), default=0.0)


def _split_rouge_words(text: str) -> list[str]:
    words = _ROUGE_SEPARATOR.sub(" ", text.lower()).split()
    return [stem_word(word) if len(word) > _MIN_STEMMED else word for word in words]


def _rouge_l(words: Sequence[str], reference: Sequence[str]) -> float:
    common = _lcs_length(words, reference)
    return 2 * common / (len(words) + len(reference)) if common else 0.0


def _lcs_length(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common subsequence of two word sequences."""
    previous = [0] * (len(second) + 1)
    for word in first:
        row = [0]
        for column, candidate in enumerate(second):
            row.append(previous[column] + 1 if word == candidate else max(previous[column + 1], row[-1]))
        previous = row
    return previous[-1]


def load_tokenizer(file: Path) -> tuple[str, Split]:
    """Return two results: a tokenizer's name (file name and hash of the file), and a function from text to token ids.

    Raises:
        MissingExtraError: tokenizers is not installed.
        ConfigurationError: the file cannot be read as a tokenizer.
    """
    try:
        tokenizers = importlib.import_module("tokenizers")
    except ModuleNotFoundError as error:
        raise MissingExtraError("tokenizers", "local") from error
    try:
        content = file.read_bytes()
        tokenizer = tokenizers.Tokenizer.from_buffer(content)
    except Exception as error:  # the library raises its own exceptions
        raise ConfigurationError(
            f"tokenizer is {str(file)!r}: {error}; expected a tokenizer.json, such as that of GPT-2"
        ) from error

    def split(text: str) -> list[int]:
        ids: list[int] = tokenizer.encode(replace_surrogates(text), add_special_tokens=False).ids
        return ids

    return f"{file.name} {hashlib.sha256(content).hexdigest()[:12]}", split
