"""How many examples the tests of properties try: all of them nightly, two fifths in each run of the tests."""

from __future__ import annotations

import os


def count_examples(number: int) -> int:
    """Return how many of a number of examples this run tries; ``EXAMPLES=all`` tries all."""
    return number if os.environ.get("EXAMPLES") == "all" else max(3, number * 2 // 5)
