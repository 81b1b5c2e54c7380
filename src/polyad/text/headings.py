"""The headings that a text stands under, as they are shown."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise, takewhile

BETWEEN = " / "
"""A heading and one below it."""

BESIDE = "; "
"""Headings of which a text holds parts."""

MOST = 4
"""Headings beside one another that are shown; where there are more, this is said."""

_MORE = "..."


def joined_headings(paths: Iterable[Iterable[str]]) -> str:
    """What parts of a text stand under, the first part first: what they have in common, then the headings of each.

    Where only the beginning stands higher up than the rest, that is the heading of all.

    Args:
        paths: The headings above each part, the highest first.

    >>> joined_headings([["Pump manual", "Safety"], ["Pump manual", "Oil change"]])
    'Pump manual / Safety; Oil change'
    >>> joined_headings([["Pump manual"], ["Pump manual", "Safety"]])
    'Pump manual'
    """
    distinct = list(dict.fromkeys(map(tuple, paths)))
    kept = [path for path, after in pairwise([*distinct, ("",)]) if after[: len(path)] != path]
    if len(kept) < 2:
        return BETWEEN.join(distinct[0]) if distinct else ""
    common = [names[0] for names in takewhile(lambda names: len(set(names)) == 1, zip(*kept, strict=False))]
    beside = [one for path in kept for one in BETWEEN.join(path[len(common) :]).split(BESIDE)]
    shown = [one for one in dict.fromkeys(beside) if one not in ("", _MORE)]
    cut = [*shown[:MOST], _MORE] if len(shown) > MOST or _MORE in beside else shown
    return BETWEEN.join([*common, BESIDE.join(cut)])
