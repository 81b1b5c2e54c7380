"""Rewrites a question before retrieval: misspelt words, and dates such as "last March".

A word is misspelt if no passage has it and some passages have one of similar spelling. Numbers, codes and file names
are never changed, nor are words that an index may lack by chance: common English words, forms of words that it has, and
words that the embedding model has in its vocabulary. Without such a model, the word as it is typed is searched too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache

from polyad.model import Evidence
from polyad.protocols.components import WordModel
from polyad.protocols.snapshot import Snapshot
from polyad.text.date_terms import resolve_relative_dates
from polyad.text.function_words import read_function_words
from polyad.text.words import WORD_LETTERS, extract_terms, fold_letters, list_possible_terms

_MIN_LENGTH_FOR_TWO = 8
"""Letters of a word from which on two edits count as a misspelling; shorter words may differ by one."""

_MIN_LENGTH_FOR_REPLACEMENT = 6
"""Letters of a word from which on a replaced letter counts: "hope" is not "home". In shorter words, a letter may be
missing, added or swapped with the next."""

_UMLAUTS = str.maketrans({"\u00e4": "ae", "\u00f6": "oe", "\u00fc": "ue", "\u00df": "ss"})
"""Letters that are typed as two: "Mueller" for "M\u00fcller"."""

_MAX_COMPARED = 16
"""Similarly spelt words whose frequencies are compared."""

_MAX_WORDS = 64
"""Words of the longest question that is corrected."""


@dataclass(frozen=True, slots=True)
class RewrittenQuestion:
    """A question as it is searched.

    Attributes:
        text: The question with its changes.
        spelling: The word of the index by misspelt word of the question.
        dates: The date by relative date of the question.
        keeps_typed: Whether the text has a misspelt word too, before its correction.
    """

    text: str
    spelling: Mapping[str, str] = field(default_factory=dict)
    dates: Mapping[str, str] = field(default_factory=dict)
    keeps_typed: bool = False

    @classmethod
    def from_question(
        cls, question: str, snapshot: Snapshot, now: float, word_model: WordModel | None = None
    ) -> RewrittenQuestion:
        """Return a question with corrected words and dates, on the day of the time ``now`` in seconds since 1970.

        Args:
            question: The question.
            snapshot: The index.
            now: Time of the question.
            word_model: Knows words that are not misspelt although the index lacks them.
        """
        spelling = find_misspelt_words(question, snapshot, word_model)
        dates = resolve_relative_dates(question, datetime.fromtimestamp(now, UTC).date())
        rewritten = cls(question, spelling, dates, keeps_typed=word_model is None)
        return replace(rewritten, text=rewritten.apply(question))

    def apply(self, text: str) -> str:
        """Return ``text`` with the changes of this question."""
        words = {typed: f"{typed} {word}" for typed, word in self.spelling.items()}
        changes = {
            **(words if self.keeps_typed else self.spelling),
            **{phrase: f"{phrase} ({date})" for phrase, date in self.dates.items()},
        }
        if not changes:
            return text
        pattern = "|".join(map(re.escape, sorted(changes, key=len, reverse=True)))
        return re.sub(rf"(?<!\w)(?:{pattern})(?!\w)", lambda match: changes[match[0]], text)

    def explain(self, evidence: Evidence, question: str) -> Evidence:
        """Return evidence for the ``question`` as it was written, whose hits say which corrected words they contain."""
        if not self.spelling:
            return replace(evidence, question=question)
        passages = []
        for hit in evidence.passages:
            text = f"{hit.passage.title} {hit.passage.text}".lower()
            notes = [f"for {typed}: {word}" for typed, word in self.spelling.items() if word.lower() in text]
            passages.append(replace(hit, reason="; ".join(filter(None, [hit.reason, *notes]))))
        return replace(evidence, question=question, passages=tuple(passages), spelling=self.spelling)


def find_misspelt_words(question: str, snapshot: Snapshot, word_model: WordModel | None = None) -> dict[str, str]:
    """Return for each misspelt word of a question the word of the index that is meant; a capital is kept."""
    tokens = (token for token in question.split()[:_MAX_WORDS] if not re.search(r"[\d_@/\\]|\w[.:]\w", token))
    words = dict.fromkeys(word for token in tokens for word in _compile_word().findall(token))
    language = snapshot.infer_language(question)
    terms = {word: extract_terms(word, language)[:1] for word in words}
    counts = snapshot.document_frequencies([term for each in terms.values() for term in each])
    passage_counts = dict(zip((word for word, each in terms.items() if each), counts.tolist(), strict=True))
    unknown = [word for word in words if not passage_counts.get(word, 1) and not _is_common(word.lower())]
    corrections = {word: correction for word in unknown if (correction := _find_correction(word, snapshot))}
    if word_model and corrections:
        is_word = dict(zip(corrections, word_model.knows_words(list(corrections)), strict=True))
        corrections = {
            word: correction
            for word, correction in corrections.items()
            if not is_word[word] or correction.translate(_UMLAUTS) == word.lower()
        }
    return {
        word: correction.capitalize() if word[0].isupper() else correction for word, correction in corrections.items()
    }


def _find_correction(word: str, snapshot: Snapshot) -> str:
    """Return the word of the index that a misspelt word stands for: fewest edits, then most passages; empty if none."""
    folded = fold_letters(word.lower())
    neighbours = snapshot.find_similar_words(word.lower(), 2 if len(folded) >= _MIN_LENGTH_FOR_TWO else 1)
    candidates = []
    for edits, neighbour in [pair for pair in neighbours if _is_plausible(folded, fold_letters(pair[1]))][
        :_MAX_COMPARED
    ]:
        count = int(snapshot.document_frequencies(list_possible_terms(neighbour)).max())
        if count:
            candidates.append((edits, -count, neighbour))
    edits, _, correction = min(candidates, default=(0, 0, ""))
    return correction if edits else ""


def _is_plausible(word: str, other: str) -> bool:
    """Return whether a word may be ``other`` with a misspelling.

    They begin with the same letter, or the same two in another order. Another last letter, or more letters, are an
    inflexion: "handles" is no misspelling of "handler".
    """
    is_replaced = len(word) == len(other) and sorted(word) != sorted(other)
    begins_alike = word[0] == other[0] or word[:2] == other[1::-1]
    is_inflexion = word.startswith(other) or (other.startswith(word[:-1]) and not other.startswith(word))
    return begins_alike and not is_inflexion and not (is_replaced and len(word) < _MIN_LENGTH_FOR_REPLACEMENT)


def _is_common(word: str) -> bool:
    from polyad.text.lexicon import COMMON_WORDS, FUNCTION_WORDS  # takes milliseconds; most questions need none

    return (
        word in COMMON_WORDS or word in FUNCTION_WORDS or any(word in words for words in read_function_words().values())
    )


@cache
def _compile_word() -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){WORD_LETTERS}(?!\w)", re.IGNORECASE)
