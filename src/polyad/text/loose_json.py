"""JSON in the reply of a language model, which may put words or a code fence around it."""

from __future__ import annotations

import json
import re
from typing import Any

_OPENING = re.compile(r"[{\[]")


def first_json(reply: str) -> Any:
    r"""The first JSON object or array in ``reply``; None when there is none.

    >>> first_json('Sure: ```json\\n{"clues": []}\\n```')
    {'clues': []}
    """
    decoder = json.JSONDecoder()
    for start in _OPENING.finditer(reply):
        try:
            return decoder.raw_decode(reply, start.start())[0]
        except (ValueError, RecursionError):
            continue
    return None


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
