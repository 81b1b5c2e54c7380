"""Extracts the question from a language model's reply to a request to write one."""

from __future__ import annotations

import re

from polyad.replies.loose_json import find_first_json
from polyad.replies.thoughts import remove_thoughts
from polyad.text.words import collapse_whitespace

_JSON = re.compile(r"(?:[^{\n]{0,80}\n)?\s*(?:```\w*\s*)?\{")
_LABEL = re.compile(
    r"[^?？:：]{0,60}\b(?:question|query|rewritten|pregunta|frage|domanda|vraag|sure)\b[^?？:：]{0,30}[:：](?=\W)"  # noqa: RUF001  Chinese
    r"|(?:sure|certainly|of course|okay|ok)\b[^.!?:]{0,40}[.!]",
    re.IGNORECASE,
)
"""Words before the question, such as "Sure! Here is the standalone question:" """

_QUOTES = " \t\"'*_`\u201c\u201d\u201e\u201a\u2018\u2019\u00ab\u00bb\u300c\u300d\u300e\u300f"
_QUESTION_END = re.compile(r"[?？؟;]\W*$")  # noqa: RUF001  signs of other scripts


def is_question(text: str) -> bool:
    """Return whether a text ends with a question mark of some script."""
    return _QUESTION_END.search(text) is not None


def extract_question(reply: str) -> str:
    r"""Return the question in a reply, on one line, without thoughts, JSON, labels, quotation marks and Markdown.

    A reply without a question is returned as a whole.

    >>> extract_question('Sure! Here is the question:\n\n"How long is the hose?"')
    'How long is the hose?'
    >>> extract_question('{"question": "How long is the hose?"}')
    'How long is the hose?'
    """
    text = remove_thoughts(reply)
    value = find_first_json(text) if _JSON.match(text) else None
    if isinstance(value, dict):
        strings = {key: field for key, field in value.items() if isinstance(field, str) and field.strip()}
        named = [field for key, field in strings.items() if re.search("question|query", key, re.IGNORECASE)]
        text = next(iter([*named, *strings.values()]), "")
    lines = [_unwrap_line(line) for line in text.splitlines()]
    lines = [line for line in lines if line]
    return next(filter(is_question, lines), collapse_whitespace(" ".join(lines)))


def _unwrap_line(line: str) -> str:
    line = line.lstrip(" \t>#-").strip(_QUOTES)
    while (label := _LABEL.match(line)) and label.end() < len(line):
        line = line[label.end() :].strip(_QUOTES)
    return "" if line.startswith("```") else collapse_whitespace(line)
