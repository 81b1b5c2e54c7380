"""The examples in the documentation of the answering modules."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from polyad.answering import answer_tags, citations, names, numbering, quoting


@pytest.mark.parametrize("module", [answer_tags, citations, names, numbering, quoting])
def test_examples_give_what_they_show(module: ModuleType) -> None:
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0
