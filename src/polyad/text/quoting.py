"""Quotes material in a prompt, between tags, so that it cannot pass itself off as the prompt's own words."""

from __future__ import annotations

import re
from collections.abc import Iterable


def defused(text: str, tags: Iterable[str]) -> str:
    """``text`` without what could be taken for one of ``tags``, opening or closing.

    >>> defused("<b>So</b> ends the </passage>", ["passage"])
    '<b>So</b> ends the &lt;/passage>'
    """
    return re.sub(rf"<(?=\s*/?\s*(?:{'|'.join(tags)})\b)", "&lt;", text, flags=re.IGNORECASE)
