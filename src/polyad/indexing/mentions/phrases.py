"""Salient noun phrases of a text with few names: "serum creatinine", "chronic kidney disease".

Candidates as in RAKE (Rose et al. 2010): runs of words between function words, verbs and punctuation. A candidate
weighs what its words are worth: most for words outside everyday English, and more with every further occurrence.
"""

# ruff: noqa: RUF001  the look-alike punctuation below is what is being told apart

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from polyad.text.lexicon import BREAKING_WORDS, COMMON_WORDS, NOUNS_BEFORE_OF

_LONGEST = 4
"""Words of a phrase."""

_SHORTEST_WORD = 6
"""Letters of a word that is a phrase by itself."""

_RARE = 3.0
"""Weight of a word outside everyday English, relative to one of it."""

_PIECE = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*|[^\w\s]|\w+")
_BREAKING_ENDING = re.compile(r"(?:ly|ed|n[’']t|[’'](?:re|ll|ve|d|m))$")
_SENTENCE_END = re.compile(r"(?:\A|[.!?:;]|\n)\s*\Z")


def phrases(text: str, count: int) -> list[tuple[int, int]]:
    """Spans of every occurrence of the ``count`` most salient phrases of ``text``, in order."""
    if count <= 0:
        return []
    spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for start, end in _candidates(text):
        spans[text[start:end].lower()].append((start, end))
    weights = {phrase: _weight(phrase, len(found)) for phrase, found in spans.items()}
    best = sorted((phrase for phrase in weights if weights[phrase] > 0), key=lambda phrase: (-weights[phrase], phrase))
    return sorted(span for phrase in best[:count] for span in spans[phrase])


def _candidates(text: str) -> Iterator[tuple[int, int]]:
    run: list[re.Match[str]] = []
    for piece in _PIECE.finditer(text):
        adjoins = bool(run) and text[run[-1].end() : piece.start()].isspace()
        if _breaks(text, piece):
            if adjoins and piece.group() == "of" and run[-1].group().lower() in NOUNS_BEFORE_OF:
                run.append(piece)
                continue
            yield from _in_run(run)
            run = []
        elif adjoins:
            run.append(piece)
        else:
            yield from _in_run(run)
            run = [piece]
    yield from _in_run(run)


def _in_run(run: list[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """The last words of a run are its head: what is too long loses words at its beginning."""
    if run and run[-1].group() == "of":
        run = run[:-1]
    if run:
        yield run[max(0, len(run) - _LONGEST)].start(), run[-1].end()


def _breaks(text: str, piece: re.Match[str]) -> bool:
    word = piece.group()
    if not word.islower():
        if not word.istitle() or not _SENTENCE_END.search(text, max(0, piece.start() - 3), piece.start()):
            return True
        word = word.lower()
    return len(word) < 3 or word in BREAKING_WORDS or _BREAKING_ENDING.search(word) is not None


def _weight(phrase: str, occurrences: int) -> float:
    words = phrase.split()
    rare = sum(word not in COMMON_WORDS for word in words)
    if len(words) == 1 and (not rare or len(phrase) < _SHORTEST_WORD):
        return 0.0
    return (_RARE * rare + len(words) - rare) * (1 + 0.5 * (occurrences - 1))
