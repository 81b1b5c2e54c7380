"""Answers that are names: reads them from a JSON array, and finds the passages that name them too.

HyperRAG (appendix D) asks for such answers, so that they can be compared with the entities of a knowledge base.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable

from polyad.answering.citations import LARGEST_NUMBER, CitableSource
from polyad.model import Citation, Span
from polyad.replies.loose_json import NOT_JSON, close_cut_json, find_json_values, repair_json
from polyad.text.words import sanitize_line

SEPARATOR = "; "
"""Between the names, where they are shown as a text."""

_MAX_NAME_WORDS = 8
"""Words in a reply of one line up to which it may be a name."""

_NEVER = re.compile(r"(?!)")
_LONGEST_CITED = 1000
"""Characters of a name that is looked for in the sources."""

_ARRAY = re.compile(r"\[")
_FENCE = re.compile(r"^[^\S\n]*```.*$", re.MULTILINE)
_REFUSAL = re.compile(r"\b(?:not?|cannot|unclear|sorry)\b|n['\u2019]t\b", re.IGNORECASE)
_PLACEHOLDERS = frozenset({"none", "null", "n/a", "unknown"})
"""What models write in place of a name if they find none."""

_SENTENCE = re.compile(r"[a-z]{2}[.!?]$|[\u3002\uff01\uff1f]$")
_CITED_BACKWARDS = re.compile(r"(?:\][\d\s,;\u2013-]+\[\s+)+")
_ITEM = re.compile(r"\s*(?:[-*+\u2013\u2022]|(\d{1,3})[.)])\s+(\S.*)")

_LETTER = r"[^\W\u2e80-\U0003ffff]"  # of a script that puts blanks between words


def parse_names(reply: str, sources: Container[int] = range(1, LARGEST_NUMBER + 1)) -> tuple[str, ...] | None:
    r"""Return the distinct names that a reply lists; None if the reply is not a list of names.

    The requested form is a JSON array of strings, which may be malformed, cut short or surrounded by other text. An
    array of numbers is read if it is the whole reply and the numbers are not those of sources. Without an array, the
    reply may be quoted names, a numbered or bulleted list, or one line that may be a name. An empty array, or a word
    such as "unknown", means that there is no name.

    Args:
        reply: The reply of the model.
        sources: Citation numbers of the passages in the prompt.

    >>> parse_names('The kings are:\n```json\n["Odoacer", "Theoderic",]\n```')
    ('Odoacer', 'Theoderic')
    >>> parse_names("Odoacer"), parse_names("[]"), parse_names("He was deposed.")
    (('Odoacer',), (), None)
    """
    text = _FENCE.sub("", reply).strip()
    candidates = [reply, close_cut_json(reply), repair_json(reply, _ARRAY)]
    if text.startswith('"'):
        candidates.append(repair_json(f"[{text}]", _ARRAY))
    for names in (*map(_find_strings, candidates), _find_numbers(text, sources), _split_lines(text)):
        if names is not None:
            cleaned = [_remove_citations(sanitize_line(name.encode("utf-8", "ignore").decode())) for name in names]
            distinct: dict[str, str] = {}
            for name in cleaned:
                if name and not _is_placeholder(name) and not (_REFUSAL.search(name) and _SENTENCE.search(name)):
                    distinct.setdefault(name.casefold(), name)
            return tuple(distinct.values())
    return None


def cite_names(names: Iterable[str], sources: Iterable[CitableSource]) -> tuple[Citation, ...]:
    """Return a citation for each pair of a name and a source whose text contains the name.

    The text of a source is the part of it in the prompt: title and text of a passage, or a fact and its members. Names
    are compared as whole words, ignoring case. Each ``answer_span`` is the span of the name in the answer, which joins
    the names by :data:`SEPARATOR`.
    """
    source_list = list(sources)
    citations = []
    start = 0
    for name in names:
        span = Span(start, start + len(name))
        # In a repetitive text, the search time of a long name grows with the product of both lengths.
        pattern = _pattern(name) if len(name) <= _LONGEST_CITED else _NEVER
        citations += [
            Citation(source.number, source.passage_id, source.document_id, span)
            for source in source_list
            if pattern.search(source.text)
        ]
        start = span.end + len(SEPARATOR)
    return tuple(citations)


def _find_strings(text: str) -> list[str] | None:
    """Return the first JSON array of strings in a text, even an empty array; None if there is no array."""
    is_empty = False
    for value in find_json_values(text, _ARRAY, nested=True):
        if value is not NOT_JSON:
            if strings := [item for item in value if isinstance(item, str)]:
                return strings
            is_empty = is_empty or all(item is None for item in value)
    return [] if is_empty else None


def _find_numbers(text: str, sources: Container[int]) -> list[str] | None:
    """Return the numbers in a reply such as ``[1990]`` as strings; None if all are citation numbers (``sources``)."""
    numbers = next(find_json_values(text, _ARRAY), None)
    if not text.startswith("[") or not isinstance(numbers, list) or not all(map(_is_number, numbers)):
        return None
    return None if all(number in sources for number in numbers) else [str(number) for number in numbers]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _split_lines(text: str) -> list[str] | None:
    """Return the names in a bulleted or numbered list or in a single line; None for other text."""
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and lines[0].rstrip("* ").endswith((":", "\uff1a")):
        lines = lines[1:]
    items = [item for line in lines if (item := _ITEM.fullmatch(line))]
    numbers = [int(item[1]) for item in items if item[1]]
    if items and len(items) == len(lines) and numbers in ([], list(range(1, len(items) + 1))):
        names = [_remove_citations(item[2].strip()).rstrip(",;").strip('*`"') for item in items]
    else:
        names = [text.strip("*`")]
    return names if all(_is_placeholder(name) or _is_name(name) for name in names) else None


def _remove_citations(name: str) -> str:
    """Return a name without citations such as ``[1]`` at its end."""
    cited = _CITED_BACKWARDS.match(name[::-1]) if name.endswith("]") else None
    return name[: len(name) - cited.end()] if cited else name


def _is_placeholder(name: str) -> bool:
    return name.casefold().rstrip(".") in _PLACEHOLDERS


def _is_name(line: str) -> bool:
    """Return whether a line may be a name: short, and neither a sentence nor a refusal to answer."""
    is_short = bool(line) and "\n" not in line and len(line.split()) <= _MAX_NAME_WORDS
    return is_short and not set(line) & set("[]{}") and not _SENTENCE.search(line) and not _REFUSAL.search(line)


def _pattern(name: str) -> re.Pattern[str]:
    words = r"\s+".join(map(re.escape, name.split()))
    return re.compile(rf"(?<!{_LETTER}){words}(?!{_LETTER})", re.IGNORECASE)
