"""What files say of themselves, as metadata."""

from __future__ import annotations

import re

from polyad.adapters.reading.plain_text import single_line
from polyad.model import MetadataValue

_SEPARATOR = re.compile("[,;\n]")


def listed(keywords: str) -> tuple[str, ...]:
    """Keywords that were written as one text.

    >>> listed("pumps, seals; ,valves")
    ('pumps', 'seals', 'valves')
    """
    parts = map(single_line, _SEPARATOR.split(keywords))
    return tuple(dict.fromkeys(part for part in parts if part))


def stated(**values: MetadataValue) -> dict[str, MetadataValue]:
    """The values that are not empty."""
    return {key: value for key, value in values.items() if value not in ("", ())}
