"""Answers that are names: reads them from a JSON array, and finds the passages that name them too.

HyperRAG (appendix D) asks for such answers, so that they can be compared with the entities of a knowledge base.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Container, Iterable

from polyad.answering.citations import LARGEST_NUMBER, Citable
from polyad.model import Citation, Span
from polyad.replies.loose_json import NOT_JSON, find_json_values, repair_json
from polyad.text.words import sanitize

SEPARATOR = "; "
"""Between the names, where they are shown as a text."""

_LONGEST_LINE = 8
"""Words in a reply of one line up to which it may be a name."""

_LONGEST_REFUSAL = 300
"""Characters in a sentence that says that there is no answer."""

_NEVER = re.compile(r"(?!)")
_LONGEST_CITED = 1000
"""Characters of a name that is looked for in the sources."""

_STRING = r'"(?:[^"\\]|\\.)*"'
_STRINGS = rf"{_STRING}(?:\s*,\s*{_STRING})*"
_UNFINISHED_ARRAY = re.compile(rf"\[\s*({_STRINGS})")
_BARE_STRINGS = re.compile(rf"\s*({_STRINGS})\s*+(?:,\s*+)?")
_ARRAY = re.compile(r"\[")
_FENCE = re.compile(r"^[^\S\n]*```.*$", re.MULTILINE)
_REFUSAL = re.compile(r"\b(?:not|cannot|unknown|unclear|sorry)\b|n['\u2019]t\b", re.IGNORECASE)
_SENTENCE = re.compile(r"[a-z]{2}[.!?]$|[\u3002\uff01\uff1f]$")
_CITED_BACKWARDS = re.compile(r"(?:\][\d\s,;\u2013-]+\[\s+)+")
_ITEM = re.compile(r"\s*(?:[-*+\u2013\u2022]|(\d{1,3})[.)])\s+(\S.*)")
_REST = r"[^.!?\n]*"
_LACKING = r"(?:not|no|never|cannot|unable|unknown|unclear|insufficient|missing|\w+n't)"
_THINGS = (
    r"(?:answers?|information|contexts?|passages?|texts?|sources?|evidence|documents?|facts?|questions?|data|details?)"
)
_AVAILABLE = (
    r"(?:known|clear|sure|certain|applicable|available|provided|given|stated|specified|mentioned|found|possible)"
)
_DO = r"(?:know|have|see|find|determine|answer|tell|say|identify|provide|confirm|infer)"
_NO_ANSWER = re.compile(
    r"(?:none|null|n/a|n\.a|unknown|unclear|unspecified|undetermined|unanswerable|cannot be \w+"
    rf"|(?:it(?:'s| is| was) )?not {_AVAILABLE}\b{_REST}|it(?:'s| is| was) un(?:known|clear|specified)\b{_REST}"
    rf"|(?:there (?:is|was|are) )?(?:no|insufficient|not enough) (?:\w+ ){{0,2}}?{_THINGS}\b{_REST}"
    rf"|(?:(?:the|this|these|that|any) )?(?:\w+ ){{0,2}}?{_THINGS}\b{_REST}\b{_LACKING}\b{_REST}"
    rf"|(?:sorry\W+|unfortunately\W+)?(?:but )?(?:i|we) (?:do not|don't|cannot|can't|could not|couldn't) {_DO}\b{_REST}"
    rf"|(?:sorry\W+)?(?:i'm|i am|we are) (?:not (?:sure|certain|aware|able to)|unable to {_DO})\b{_REST})[.!?]?",
    re.IGNORECASE,
)
"""What is said in place of a name, as one sentence at most: songs and films have names such as Don't Look Up."""

_LETTER = r"[^\W\u2e80-\U0003ffff]"  # of a script that puts blanks between words


def parse_names(reply: str, sources: Container[int] = range(1, LARGEST_NUMBER + 1)) -> tuple[str, ...] | None:
    r"""Return the distinct names that a reply lists, in order, or None if no list can be read.

    A JSON array of strings is taken out of whatever stands around it, also one that was cut short or ends in a comma.
    An array of numbers will do when it is all of the reply and they are not those of sources. Without an array, quoted
    names with commas between them will do, or lines that are numbered or bulleted, or a single line that reads like a
    name. An empty array is a list without names; so is one that says there is no answer, or a line that does.

    Args:
        reply: What the model said.
        sources: The numbers by which it could cite what it was shown.

    >>> parse_names('The kings are:\n```json\n["Odoacer", "Theoderic",]\n```')
    ('Odoacer', 'Theoderic')
    >>> parse_names("Odoacer"), parse_names("[]"), parse_names("I do not know."), parse_names("He was deposed.")
    (('Odoacer',), (), (), None)
    """
    listed = _find_strings(reply)
    if listed is None:
        listed = _find_numbers(reply, sources)
    if listed is None:
        listed = _read_truncated_strings(reply)
    if listed is None:
        listed = _find_strings(repair_json(reply, _ARRAY)) or None
    if listed is None:
        listed = _without_array(_FENCE.sub("", reply).strip())
    if listed is None:
        return None
    distinct: dict[str, str] = {}
    for name in listed:
        whole = name.encode("utf-8", "ignore").decode("utf-8")  # JSON can spell half a character
        cleaned = _remove_citations(" ".join(sanitize(whole).split()))
        if cleaned and not _is_no_answer(cleaned):
            distinct.setdefault(cleaned.casefold(), cleaned)
    return tuple(distinct.values())


def cite_names(names: Iterable[str], sources: Iterable[Citable]) -> tuple[Citation, ...]:
    """Return a citation for each name and each source that contains the name, by name and then number.

    A source holds a name when the name stands in what the model was shown of it (the title and text of a passage, a
    fact and its members), whole words, whatever the case. Each ``answer_span`` is the name's place in the names
    joined by :data:`SEPARATOR`.
    """
    source_list = list(sources)
    citations = []
    start = 0
    for name in names:
        span = Span(start, start + len(name))
        # Of a long name in a text of nothing but repetitions the time is their product.
        pattern = _pattern(name) if len(name) <= _LONGEST_CITED else _NEVER
        citations += [
            Citation(source.number, source.passage_id, source.document_id, span)
            for source in source_list
            if pattern.search(source.text)
        ]
        start = span.end + len(SEPARATOR)
    return tuple(citations)


def _find_strings(reply: str) -> list[str] | None:
    """Return the strings of the first JSON array of strings in a reply; None if the reply has no array."""
    is_empty = False
    for value in find_json_values(reply, _ARRAY, nested=True):
        if value is NOT_JSON:
            continue
        strings = [item for item in value if isinstance(item, str)]
        if strings:
            return strings
        is_empty = is_empty or all(item is None for item in value)
    return [] if is_empty else None


def _read_truncated_strings(reply: str) -> list[str] | None:
    """Return the complete strings of a JSON array that was cut at the end of the reply."""
    match = _UNFINISHED_ARRAY.search(reply)
    return _strings(match[1]) if match else None


def _find_numbers(reply: str, sources: Container[int]) -> list[str] | None:
    """Return the numbers of a reply that is an array such as ``[1990]``; None if all are numbers of sources."""
    try:
        value = json.loads(_FENCE.sub("", reply))
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, list) or not value or not all(map(_is_number, value)):
        return None
    return None if all(number in sources for number in value) else [str(number) for number in value]


def _is_number(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _without_array(text: str) -> list[str] | None:
    """Return names without an array: quoted strings, items of a text list, or a single line."""
    quoted = _BARE_STRINGS.fullmatch(text)
    if quoted:
        return _strings(quoted[1])
    listed = _split_items(text)
    if listed is not None:
        return listed
    line = text.strip("*`")
    return [line] if _is_no_answer(line) or (_is_name(line) and not _REFUSAL.search(line)) else None


def _split_items(text: str) -> list[str] | None:
    """Return the items of a list of names, which may follow a line that ends in a colon; None for another text."""
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and lines[0].rstrip("* ").endswith((":", "\uff1a")):
        lines = lines[1:]
    matches = [_ITEM.fullmatch(line) for line in lines]
    items = [match for match in matches if match]
    numbers = [int(match[1]) for match in items if match[1]]
    if not items or len(items) < len(lines) or (numbers and numbers != list(range(1, len(items) + 1))):
        return None
    names = [_remove_citations(match[2].strip()).rstrip(",;").strip('*`"') for match in items]
    return names if all(_is_name(name) or _is_no_answer(name) for name in names) else None


def _remove_citations(name: str) -> str:
    """Return a name without trailing citations."""
    cited = _CITED_BACKWARDS.match(name[::-1]) if name.endswith("]") else None
    return name[: len(name) - cited.end()] if cited else name


def _is_name(line: str) -> bool:
    """Return whether a text looks like a name: one short line that is not a sentence."""
    is_short = bool(line) and "\n" not in line and len(line.split()) <= _LONGEST_LINE
    return is_short and not set(line) & set("[]{}") and not _SENTENCE.search(line)


def _is_no_answer(text: str) -> bool:
    stripped = text.replace("\u2019", "'").strip(" \"'")
    return len(stripped) <= _LONGEST_REFUSAL and _NO_ANSWER.fullmatch(stripped) is not None


def _strings(text: str) -> list[str]:
    strings = []
    for string in re.findall(_STRING, text):
        try:
            strings.append(str(json.loads(string, strict=False)))
        except ValueError:  # an escape that JSON does not have
            strings.append(string[1:-1])
    return strings


def _pattern(name: str) -> re.Pattern[str]:
    words = r"\s+".join(map(re.escape, name.split()))
    return re.compile(rf"(?<!{_LETTER}){words}(?!{_LETTER})", re.IGNORECASE)
