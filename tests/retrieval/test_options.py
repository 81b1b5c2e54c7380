"""The one definition of the options of a search, and what is derived from it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from datetime import UTC, datetime
from typing import get_type_hints

import pytest

from polyad.errors import SettingError
from polyad.retrieval.options import OptionArguments, SearchOptions, list_options
from polyad.text.filters import FilterError, parse_filter


def test_the_keyword_arguments_have_the_names_and_types_of_the_options() -> None:
    options = get_type_hints(SearchOptions)
    assert {"k": options.pop("k"), **get_type_hints(OptionArguments)} == get_type_hints(SearchOptions)


def test_each_option_of_commands_and_requests_has_a_help_text() -> None:
    assert {each.name for each in fields(SearchOptions)} - set(list_options()) == {"merge", "typed_question"}
    assert all(option.help.endswith(".") for option in list_options().values())


def test_options_keep_their_help_without_docstrings() -> None:
    code = "from polyad.retrieval.options import list_options; print(list_options()['where'].help)"
    result = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.startswith("Use only the documents that a filter selects")


def test_filters_and_times_are_parsed() -> None:
    options = SearchOptions(where="year > 1", prefer=parse_filter("year > 2"), as_of="1970-01-02")
    assert options.get_filter() == parse_filter("year > 1")
    assert options.get_preferred() == parse_filter("year > 2")
    assert options.get_time() == 86400
    assert SearchOptions(as_of=datetime(1970, 1, 2, tzinfo=UTC)).get_time() == 86400


def test_invalid_filters_and_times_are_errors() -> None:
    with pytest.raises(FilterError):
        SearchOptions(prefer="year >")
    for name in ("as_of", "known_at"):
        with pytest.raises(SettingError, match=name):
            SearchOptions(**{name: "x"})  # type: ignore[arg-type]  # one of several types, by name
