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
