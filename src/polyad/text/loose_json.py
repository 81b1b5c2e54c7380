"""JSON in the reply of a language model, which may put words or a code fence around it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

_OPENING = re.compile(r"[{\[]")

NOT_JSON: Final = object()
"""In place of a value that could not be decoded."""

_PATIENCE = 2000
"""Values that are no JSON after which a text is given up: a model that repeats a bracket does not stop by itself."""

_TOO_DEEP = 100
"""What a value nested too deep to decode counts for: it takes so much longer."""


def json_values(text: str, opening: re.Pattern[str] = _OPENING, *, nested: bool = False) -> Iterator[Any]:
    """The JSON values in ``text``, in order, and :data:`NOT_JSON` for what only begins like one.

    Args:
        text: With anything between the values.
        opening: Where to look for values: it ends with the first character of one.
        nested: Yield the values inside a value after it too.
    """
    decoder = json.JSONDecoder(strict=False)
    position, patience = 0, _PATIENCE
    while patience > 0 and (start := opening.search(text, position)):
        position = start.end()
        try:
            value, end = decoder.raw_decode(text, start.end() - 1)
        except (ValueError, RecursionError) as error:
            patience -= _TOO_DEEP if isinstance(error, RecursionError) else 1
            yield NOT_JSON
        else:
            yield value
            position = position if nested else end


def first_json(reply: str) -> Any:
    r"""The first JSON object or array in ``reply``; None when there is none.

    >>> first_json('Sure: ```json\\n{"clues": []}\\n```')
    {'clues': []}
    """
    return next((value for value in json_values(reply) if value is not NOT_JSON), None)


def listed_under(reply: str, key: str) -> list[Any] | None:
    r"""The list in ``reply``: in an object under ``key``, as it was asked for, or by itself; None when there is none.

    >>> listed_under('{"entities": ["Ada"]}', "entities"), listed_under('["Ada"]', "entities")
    (['Ada'], ['Ada'])
    """
    found = first_json(reply)
    if isinstance(found, dict):
        found = found.get(key)
    return found if isinstance(found, list) else None


def distinct_strings(items: list[Any]) -> list[str]:
    """The strings among ``items`` that are not blank, without blanks around them, each once.

    >>> distinct_strings([" Ada ", "", 1815, "Ada", "Babbage"])
    ['Ada', 'Babbage']
    """
    return list(dict.fromkeys(item.strip() for item in items if isinstance(item, str) and item.strip()))
