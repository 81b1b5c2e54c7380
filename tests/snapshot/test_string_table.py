from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from polyad.snapshot.columns import StringColumn, hash_string

TEXTS = st.lists(st.text(st.characters(), max_size=6), max_size=8)
"""Surrogates included, which occur in questions."""


@given(base=TEXTS, more=st.lists(TEXTS, max_size=3))
def test_strings_are_returned_by_row(base: list[str], more: list[list[str]]) -> None:
    strings, texts = StringColumn.from_strings(base), list(base)
    for some in more:
        earlier, before = strings, list(texts)
        strings = strings.append(some)
        texts += some
        assert earlier.take(range(len(earlier))) == before, "an earlier version has changed"
    assert len(strings) == len(texts)
    assert strings.take(range(len(texts))) == texts
    rows = np.arange(len(texts))[::-1]
    assert strings.take(rows) == strings.take(rows.tolist()) == texts[::-1]


def test_hashes_are_the_same_in_every_process() -> None:
    code = "from polyad.snapshot.columns import hash_string as h; print(h('Gro\\u00dfe Glocke'), h('\\ud800'))"
    command = [sys.executable, "-c", code]
    printed = set()
    for seed in ("1", "2"):
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        printed.add(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)
    assert printed == {f"{hash_string('Große Glocke')} {hash_string(chr(0xD800))}\n"}
