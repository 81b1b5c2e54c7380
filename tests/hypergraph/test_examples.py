from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from polyad.hypergraph import bipartite, distance, incidence


@pytest.mark.parametrize("module", [incidence, bipartite, distance], ids=lambda module: module.__name__)
def test_the_examples_in_the_docstrings_hold(module: ModuleType) -> None:
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0
