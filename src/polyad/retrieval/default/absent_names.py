"""Names and codes of a question that no passage of the index contains: nothing can be said about them.

A code is a short word with a digit, such as "HP-2212", "E117" or "C-2024-009". Encoders hardly distinguish codes, so
the best passages about one that does not exist are about another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import ascii_uppercase, digits
from typing import Self

import numpy as np

from polyad.model import AbsentName, FloatArray
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.question import LinkedQuestion
from polyad.text.function_words import infer_language
from polyad.text.words import extract_codes, extract_query_terms, extract_terms

_WORD = re.compile(r"\w[\w'\u2019-]*")

_CODE = re.compile(
    r"(?<![\w./:@-])(?!v\d)(?:[A-Za-z]{1,5}-?|[A-Z]{1,5}-[A-Z]{1,5}-?)\d[\dA-Z]*(?:[-./][\dA-Z]+)*(?![\w-]|[./]\w)"
    r"|(?<![\w.,/:-])\d{5,}(?![\w-]|[.,/]\w)"
)
"""A code: some letters and a digit, with further parts; or a number of at least five digits."""

_MAX_CODE = 24
"""Characters of the longest code whose neighbours are looked up."""


@dataclass(frozen=True, slots=True)
class UnknownNames:
    """The capitalised words of a question, after its first word, that no passage of the index contains.

    Attributes:
        share: Number of unknown names divided by the number of all capitalised words after the first, in [0, 1].
        rest: The question without the unknown names.
        names: The unknown names; adjacent words are one name.
    """

    share: float
    rest: str
    names: tuple[str, ...] = ()

    @classmethod
    def from_question(cls, question: LinkedQuestion, snapshot: Snapshot) -> Self:
        """Find the capitalised words of a question that no passage contains, except in names of entities."""
        names = [word for word in list(_WORD.finditer(question.text))[1:] if word[0][0].isupper()]
        language = snapshot.infer_language(question.text)
        mentions = question.entities.values()
        linked_terms = {term for mention in mentions for term in extract_query_terms(mention.name, language)}
        terms = (
            [term for term in extract_query_terms(question.text, language) if term not in linked_terms] if names else []
        )
        counts = snapshot.document_frequencies(terms)
        unknown_terms = {term for term, count in zip(terms, counts, strict=True) if count == 0}
        unknown_names = [name for name in names if unknown_terms.issuperset(extract_query_terms(name[0], language))]
        rest, joined = question.text, ""
        for name in reversed(unknown_names):
            rest = rest[: name.start()] + rest[name.end() :]
        for name in unknown_names:
            is_next = joined and question.text[: name.start()].rstrip().endswith(joined.splitlines()[-1])
            joined += (" " if is_next else "\n") + name[0]
        share = len(unknown_names) / max(1, len(names))
        return cls(share, " ".join(rest.split()), tuple(dict.fromkeys(joined.splitlines()[1:])))

    def compute_weighted_share(
        self, question_vector: FloatArray, rest_vector: FloatArray, name_cosines: tuple[float, float]
    ) -> float:
        """Return the share of unknown names, weighted by how much they change the question's vector, in [0, 1].

        Args:
            question_vector: Unit vector of the question.
            rest_vector: Unit vector of the question without the unknown names.
            name_cosines: Cosines of the two vectors at which the weight is 1 and 0.
        """
        return self.share * float(np.interp(question_vector @ rest_vector, name_cosines, (1, 0)))


def find_absent_names(question: LinkedQuestion, snapshot: Snapshot) -> list[AbsentName]:
    """Return the codes of a question that no passage contains, each with the nearest that one contains, and the names.

    Names are capitalised words, except in German, where all nouns are. A code that names an entity is not absent, such
    as an alias.
    """
    linked = [mention.name for mention in question.entities.values()]
    codes = list(dict.fromkeys(match[0] for match in _CODE.finditer(question.text)))
    codes = [code for code in codes if not any(code in name for name in linked)]
    is_present = _are_present(codes, snapshot)
    absent = [
        AbsentName(code, _find_nearest_code(code, snapshot))
        for code, present in zip(codes, is_present, strict=True)
        if not present
    ]
    if infer_language(question.text) == "de":
        return absent
    names = UnknownNames.from_question(question, snapshot).names
    return [*absent, *(AbsentName(name) for name in names if not any(code in name for code in codes))]


def compute_absent_code_share(question: str, absent: Sequence[AbsentName]) -> float:
    """Return the share of the question's codes that are ``absent``; 0 without codes."""
    codes = {match[0] for match in _CODE.finditer(question)}
    return sum(name.text in codes for name in absent) / max(1, len(codes))


def _are_present(codes: Sequence[str], snapshot: Snapshot) -> list[bool]:
    """Return whether any passage contains each code, with or without the hyphen between its letters and digits."""
    forms = [(place, term) for place, code in enumerate(codes) for term in _list_terms(code)]
    counts = snapshot.document_frequencies([term for _, term in forms]).tolist()
    present = {place for (place, _), count in zip(forms, counts, strict=True) if count}
    return [place in present for place in range(len(codes))]


def _list_terms(code: str) -> list[str]:
    """Return the terms under which an index may have a code.

    >>> _list_terms("HP-2212")
    ['hp 2212', 'hp2212']
    """
    joined = re.sub(r"[-./]", "", code)
    divided = re.sub(r"(?<=[A-Za-z])(?=\d)", "-", joined)
    return list(dict.fromkeys([*extract_codes(code), *extract_codes(divided), *extract_terms(joined, "en")[:1]]))


def _find_nearest_code(code: str, snapshot: Snapshot) -> str:
    """Return the code of the index that differs least from ``code``, in the last place if possible; else empty."""
    if len(code) > _MAX_CODE:
        return ""
    for variants in _list_variants(code):
        present = _are_present(variants, snapshot)
        if neighbours := [variant for variant, is_present in zip(variants, present, strict=True) if is_present]:
            return neighbours[0]
    return ""


def _list_variants(code: str) -> Iterator[list[str]]:
    """Yield the codes that differ in one character, the last first, and those that differ in the last two digits."""
    places = [place for place, character in enumerate(code) if character.isdigit() or character.isupper()][::-1]
    yield [
        code[:place] + character + code[place + 1 :]
        for place in places
        for character in sorted(
            digits if code[place].isdigit() else ascii_uppercase, key=lambda other: abs(ord(other) - ord(code[place]))
        )[1:]
    ]
    if match := re.search(r"\d\d$", code):
        numbers = sorted(range(100), key=lambda number: (abs(number - int(match[0])), number))
        yield [f"{code[:-2]}{number:02}" for number in numbers[1:]]
