from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from polyad.indexing import locate, quoting
from polyad.indexing.facts import extraction, paper


@pytest.mark.parametrize("module", [locate, quoting, extraction, paper], ids=lambda module: module.__name__)
def test_the_examples_in_the_docstrings_hold(module: ModuleType) -> None:
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0
