"""The sentences of a hit that answer a question, chosen without a model.

A sentence scores by the question's terms in it and beside it, since an answer often follows the sentence that repeats
the question. The best candidates gain if they look like the kind of answer that the question expects: a number after
"how long", an option or instruction after "how do I", a reason after "why". These kinds are recognised in English; in
other languages only terms and question marks count.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Sequence
from typing import NamedTuple

from polyad.model import Span

_MAX_SENTENCES = 2

_SECOND_SHARE = 0.6
"""Share of the best sentence's score from which on a second sentence is selected too."""

_MAX_CANDIDATES = 10
"""Sentences that are compared with the expected kind of answer; other sentences fit the question too little."""

_NEIGHBOUR_WEIGHT, _QUESTION_WEIGHT = 0.3, 0.8
"""Weights of the better of the two adjacent sentences, and of a preceding question.

Chosen, as the gains below, on 88 sentences of evidence in the HTML and text files of ``benchmarks/manuals``, each with
some 300 words around it: 49 of them are among the sentences returned, 42 if only their own terms count.
"""

_SHARE_OF_QUESTION = 0.3
"""Share of its score that a sentence keeps that is a question itself."""

_SHARE_OF_FRAGMENT = 0.5
"""Share of its score that a line of at most :data:`_MAX_FRAGMENT_WORDS` words without punctuation keeps."""

_MAX_FRAGMENT_WORDS = 3
_FRAGMENT = re.compile(rf"\W*(?:[^\W_]+[^\w\n\t:=.]*){{1,{_MAX_FRAGMENT_WORDS}}}")

_CONTINUATION = re.compile(
    r"(?:this|that|these|those|it|they|he|she|then|otherwise|dies|diese[rs]?|das|dann|sonst|ceci|cela|esto|eso)\b",
    re.IGNORECASE,
)
"""The beginning of a sentence that says little without the preceding one."""

_QUESTION_END = re.compile(r"[?？؟]\W*$")  # noqa: RUF001  signs of other scripts


class _ExpectedAnswer(NamedTuple):
    """A kind of answer: how a question asks for it, what a sentence with such an answer contains, and the gain."""

    question: re.Pattern[str]
    sentence: re.Pattern[str]
    gain: float


def _compile(question: str, sentence: str, gain: float) -> _ExpectedAnswer:
    return _ExpectedAnswer(re.compile(question, re.IGNORECASE), re.compile(sentence), gain)


_INSTRUCTION = (
    r"\bhow (?:do|can|could|should|would|to|must|may)\b|\bwhat (?:now|helps|do i)\b|\b(?:which|what) (?:\w+ ){0,2}"
    r"(?:option|command|flag|key|argument|setting|parameter|function|file|variable|hook|operator|directive|method)\b"
)

_EXPECTED_ANSWERS = (
    _compile(
        r"\bhow (?:many|much|long|often|large|big|fast|far|old|soon|deep|high|wide)\b|\bwhen\b|\bfactor\b"
        r"|\b(?:which|what) (?:exit )?(?:size|number|percentage|port|status|code|value|version|year|speed|length|"
        r"limit|maximum|minimum)",
        r"(?i:\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twice|zero|hundred|thousand|once|half)\b)",
        0.15,
    ),
    _compile(
        _INSTRUCTION,
        r"(?<![\w-])--?[a-zA-Z]|`|\w_\w|\w\.\w+\(|\(\)|[$~/]\w+/|<\w+>|\b\w+=\w|[a-z][A-Z]",
        0.1,
    ),
    _compile(
        _INSTRUCTION,
        r"(?i:(?:^|[,;:(] |\b(?:to|can|must|should|you|just|then|and|or) )(?:use|run|set|type|press|choose|select|"
        r"click|add|remove|hit|enter|give|pass|put|open|edit|specify|append|boot|install|call|try|hold|lock|delete|create|"
        r"change|invoke)\b|\busing\b|\bby \w+ing\b)",
        0.1,
    ),
    _compile(
        r"\bwhy\b|\breasons?\b|\bwhat causes\b",
        r"(?i:\b(?:because|since|due to|so that|reasons?|therefore|in order|cause[sd]?|otherwise|thus)\b)",
        0.15,
    ),
    _compile(
        r"(?:^|[,.;?:] )(?:can|may|must|do|does|is|are|should|will|did|has|have)\b",
        r"(?i:\b(?:yes|no|not|never|cannot|only|must|always|possible|guaranteed)\b|n[’']t\b)",  # noqa: RUF001  apostrophe
        0.1,
    ),
)


def find_answer_sentences(question: str, text: str, sentences: Sequence[Span], values: Sequence[float]) -> list[Span]:
    """Return the one or two sentences of a text that most likely answer a question, best first; ties in text order.

    Args:
        question: The question.
        text: The text of a hit.
        sentences: Spans of the sentences, in text order; at least one.
        values: How well each sentence fits the question by itself: 1 if it contains all terms of the question.
    """
    is_question = [bool(_QUESTION_END.search(text, max(span.start, span.end - 4), span.end)) for span in sentences]
    scores: list[float] = []
    for place, value in enumerate(values):
        preceding = values[place - 1] if place else 0.0
        following = values[place + 1] if place + 1 < len(values) else 0.0
        after_question = _QUESTION_WEIGHT if place and is_question[place - 1] else _NEIGHBOUR_WEIGHT
        context = max(after_question * preceding, _NEIGHBOUR_WEIGHT * following)
        share = _SHARE_OF_FRAGMENT if _FRAGMENT.fullmatch(sentences[place].of(text)) else 1.0
        scores.append(_SHARE_OF_QUESTION * value if is_question[place] else share * (value + context))
    expected = [each for each in _EXPECTED_ANSWERS if each.question.search(question)]
    candidates = heapq.nsmallest(_MAX_CANDIDATES, range(len(scores)), key=lambda place: (-scores[place], place))
    for place in () if not expected else candidates:
        span = sentences[place]
        gain = sum(each.gain for each in expected if each.sentence.search(text, span.start, span.end))
        scores[place] += _SHARE_OF_QUESTION * gain if is_question[place] else gain
    ranked = sorted(candidates, key=lambda place: (-scores[place], place))[:_MAX_SENTENCES]
    if (companion := _find_companion(text, sentences, ranked[0])) is not None:
        return [sentences[ranked[0]], sentences[companion]]
    return [sentences[place] for place in ranked if scores[place] >= _SECOND_SHARE * scores[ranked[0]]]


def _find_companion(text: str, sentences: Sequence[Span], place: int) -> int | None:
    """Return the index of the sentence without which a sentence says little: the one before "It ..." or after ":"."""
    sentence = sentences[place].of(text)
    if sentence.rstrip("*_ \n").endswith(":") and place + 1 < len(sentences):
        return place + 1
    return place - 1 if place and _CONTINUATION.match(sentence) else None
