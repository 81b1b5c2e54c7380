"""The glossary says of each word of the model what the model says."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from polyad import model

GLOSSARY = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text(encoding="utf-8")
WORDS = {
    name: kind for name, kind in vars(model).items() if inspect.isclass(kind) and kind.__module__ == model.__name__
}


def plain(text: str) -> str:
    return " ".join(text.replace("``", "`").split())


@pytest.mark.parametrize("name", WORDS)
def test_a_word_of_the_model_is_explained_as_its_docstring_does(name: str) -> None:
    summary = plain(inspect.getdoc(WORDS[name]) or "").split(". ")[0].split("; see :")[0]
    entry = plain(GLOSSARY).partition(f"(`{name}`): ")[2]
    assert entry.startswith(summary.removesuffix(".")), f"the glossary does not say of {name}: {summary}"


def test_each_class_that_is_named_is_there() -> None:
    assert set(re.findall(r"\(`(\w+)`\)", GLOSSARY)) == set(WORDS)
