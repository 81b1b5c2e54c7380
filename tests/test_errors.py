"""The tree of exceptions that is drawn is the one there is."""

from __future__ import annotations

import inspect
import re

from polyad import errors


def test_every_exception_hangs_in_the_tree_where_its_class_does() -> None:
    drawn: dict[str, str] = {}
    above = {-1: "Exception"}
    for line in (errors.__doc__ or "").splitlines():
        if result := re.match(r"([ │├└─]*)(\w+Error)  ", line):
            depth = len(result[1]) // 4
            above[depth] = result[2]
            drawn[result[2]] = above[max(level for level in above if level < depth)]
            above = {level: name for level, name in above.items() if level <= depth}
    classes = dict(inspect.getmembers(errors, inspect.isclass))
    items = {name: kind for name, kind in classes.items() if kind.__module__ == errors.__name__}
    assert drawn == {name: (kind.__base__ or object).__name__ for name, kind in items.items()}
