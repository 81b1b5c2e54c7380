from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from polyad.text import keys, loose_json, quoting, thoughts, tokens


@pytest.mark.parametrize("module", [keys, loose_json, quoting, thoughts, tokens], ids=lambda module: module.__name__)
def test_the_examples_in_the_docstrings_hold(module: ModuleType) -> None:
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0
