from __future__ import annotations

import re

import pytest

from polyad.replies.loose_json import NOT_JSON, find_first_json, find_json_values, find_list, find_strings


def test_values_are_found_between_words_and_what_only_begins_like_one_is_marked() -> None:
    assert list(find_json_values('Of {these, [1, [2]] and {"a": [3]}.')) == [NOT_JSON, [1, [2]], {"a": [3]}]


def test_values_inside_a_value_follow_it_on_request() -> None:
    assert list(find_json_values("[1, [2]]", re.compile(r"\["), nested=True)) == [[1, [2]], [2]]


@pytest.mark.parametrize("repeated", ["{", "[", '{"facts":[', '["a",'])
def test_a_bracket_that_is_repeated_for_ever_is_given_up(repeated: str) -> None:
    reply = repeated * 100_000
    tried = sum(1 for _ in find_json_values(reply))
    assert tried <= 500
    assert find_first_json(reply) is None


@pytest.mark.parametrize(
    "reply",
    [
        '{"entities": ["Ada", "Bo",]}',
        '{"entities": ["Ada", // who met\n"Bo"]}',
        "Sure: {'entities': ['Ada', 'Bo']}",
        '{"Entities": ["Ada", "Bo"]}',
        '[{"entities": ["Ada", "Bo"]}]',
        '{"result": {"entities": ["Ada", "Bo"]}}',
        '{"name": "reply", "arguments": {"entities": ["Ada", "Bo"]}}',
        'The question [1] names: {"entities": ["Ada", "Bo"]}',
        'Of [1]: ["Ada", "Bo"]',
        '{"properties": {"entities": {"type": "array"}}, "required": ["entities"]}\n{"entities": ["Ada", "Bo"]}',
        '{"entities"\uff1a["Ada"\uff0c"Bo"]}',
    ],
)
def test_a_list_is_found_wherever_a_model_put_it(reply: str) -> None:
    assert find_list(reply, "entities") == ["Ada", "Bo"]


@pytest.mark.parametrize(
    "reply",
    [
        '{"type": "object", "properties": {"entities": {"type": "array"}}, "required": ["entities"]}',
        '{"entities": ["Ada", "B',
        '{"entities": null}',
        "None.",
        "[" * 100_000,
        "{'a" * 100_000,
    ],
)
def test_a_reply_without_a_list_is_none(reply: str) -> None:
    assert find_list(reply, "entities") is None


def test_half_a_character_in_a_string_becomes_the_sign_for_none() -> None:
    assert find_strings('{"clues": ["who \\ud83d"]}', "clues") == ["who \ufffd"]
