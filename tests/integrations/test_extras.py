"""Without a framework, its retriever says which extra to install."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module

import pytest

from polyad.errors import MissingExtraError


@pytest.mark.parametrize(
    ("module", "packages", "extra"),
    [
        ("langchain", ["pydantic"], "langchain"),
        ("langchain", ["langchain_core.callbacks"], "langchain"),
        ("llama_index", ["llama_index.core.callbacks"], "llama-index"),
        ("haystack", ["haystack"], "haystack"),
    ],
)
def test_a_missing_framework_is_an_error_that_names_the_extra(
    module: str, packages: list[str], extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"polyad.integrations.{module}"
    with suppress(MissingExtraError):
        import_module(name)  # loads all modules of the framework, which needs the hidden packages itself
    monkeypatch.delitem(sys.modules, name, raising=False)
    for package in packages:
        monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    with pytest.raises(MissingExtraError) as raised:
        import_module(name)
    assert raised.value.extra == extra
