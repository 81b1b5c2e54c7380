"""Answers that are names: reads them from a JSON array, and finds the passages that name them too.

HyperRAG (appendix D) asks for such answers, so that they can be compared with the entities of a knowledge base.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from polyad.answering.numbering import Source
from polyad.model import Citation, Span

SEPARATOR = "; "
"""Between the names, where they are shown as a text."""

_LONGEST_LINE = 8
"""Words in a reply of one line up to which it may be a name."""

_STRING = r'"(?:[^"\\]|\\.)*"'
_STRINGS = rf"{_STRING}(?:\s*,\s*{_STRING})*"
_UNFINISHED_ARRAY = re.compile(rf"\[\s*({_STRINGS})")
_BARE_STRINGS = re.compile(rf"\s*({_STRINGS})\s*,?\s*")
_FENCE = re.compile(r"^\s*```.*$", re.MULTILINE)
_REFUSAL = re.compile(r"\b(?:not|cannot|unknown|unclear|sorry)\b|n['\u2019]t\b", re.IGNORECASE)
_SENTENCE = re.compile(r"[a-z]{2}[.!?]$|[\u3002\uff01\uff1f]$")
_CITED = re.compile(r"(?:\s+\[[\d\s,;\u2013-]+\])+$")
_LETTER = r"[^\W\u2e80-\U0003ffff]"  # of a script that puts blanks between words


def names_in(reply: str) -> tuple[str, ...] | None:
    r"""The names that a reply lists, in its order, each once; None when it lists none in any way that can be read.

    A JSON array of strings is taken out of whatever stands around it, also one that was cut short or ends in a comma.
    Without one, quoted names with commas between them will do, or a single line that reads like a name. An empty array
    is a list without names.

    >>> names_in('The kings are:\n```json\n["Odoacer", "Theoderic",]\n```')
    ('Odoacer', 'Theoderic')
    >>> names_in("Odoacer"), names_in("[]"), names_in("I do not know.")
    (('Odoacer',), (), None)
    """
    listed = _array(reply)
    if listed is None:
        listed = _unfinished_array(reply)
    if listed is None:
        listed = _bare_line(reply)
    if listed is None:
        return None
    distinct: dict[str, str] = {}
    for name in listed:
        writable = name.encode("utf-8", "ignore").decode("utf-8")  # JSON can spell half a character
        cleaned = _CITED.sub("", " ".join(writable.split()))
        if cleaned:
            distinct.setdefault(cleaned.casefold(), cleaned)
    return tuple(distinct.values())


def cite_names(names: Iterable[str], sources: Iterable[Source]) -> tuple[Citation, ...]:
    """A citation for each name and each source that holds it: by name, then by number.

    A source holds a name when the name stands in what the model was shown of it (the title and text of a passage, a
    fact and its members), whole words, whatever the case. Each ``answer_span`` is the name's place in the names
    joined by :data:`SEPARATOR`.
    """
    known = list(sources)
    citations = []
    start = 0
    for name in names:
        span = Span(start, start + len(name))
        pattern = _pattern(name)
        citations += [
            Citation(source.number, source.passage_id, source.document_id, span)
            for source in known
            if pattern.search(source.text)
        ]
        start = span.end + len(SEPARATOR)
    return tuple(citations)


def _array(reply: str) -> list[str] | None:
    """The strings of the first array that has any (``[1]`` has none); none, if there is but an empty array."""
    is_empty = False
    for value in _arrays(reply):
        strings = [item for item in value if isinstance(item, str)]
        if strings:
            return strings
        is_empty = is_empty or not value
    return [] if is_empty else None


def _arrays(reply: str) -> Iterator[list[object]]:
    decoder = json.JSONDecoder(strict=False)
    for opening in re.finditer(r"\[", reply):
        try:
            yield decoder.raw_decode(reply, opening.start())[0]
        except (ValueError, RecursionError):
            continue


def _unfinished_array(reply: str) -> list[str] | None:
    """The whole strings at the beginning of an array that is not valid to its end."""
    found = _UNFINISHED_ARRAY.search(reply)
    return _strings(found[1]) if found else None


def _bare_line(reply: str) -> list[str] | None:
    """Names that stand alone, in quotes or as one line that is neither a sentence nor a refusal."""
    text = _FENCE.sub("", reply).strip()
    quoted = _BARE_STRINGS.fullmatch(text)
    if quoted:
        return _strings(quoted[1])
    line = text.strip("*`")
    is_name = line and "\n" not in line and len(line.split()) <= _LONGEST_LINE and not set(line) & set("[]{}")
    return [line] if is_name and not _SENTENCE.search(line) and not _REFUSAL.search(line) else None


def _strings(text: str) -> list[str]:
    found = []
    for string in re.findall(_STRING, text):
        try:
            found.append(str(json.loads(string, strict=False)))
        except ValueError:  # an escape that JSON does not have
            found.append(string[1:-1])
    return found


def _pattern(name: str) -> re.Pattern[str]:
    words = r"\s+".join(map(re.escape, name.split()))
    return re.compile(rf"(?<!{_LETTER}){words}(?!{_LETTER})", re.IGNORECASE)
