"""Filters on the fields of documents: their text, their JSON and what they select."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.model import Document, MetadataValue
from polyad.text.filters import (
    AllOf,
    AnyOf,
    Comparison,
    Filter,
    FilterError,
    Not,
    collect_fields,
    filter_from_json,
    filter_to_json,
    format_filter,
    is_selected,
    list_document_fields,
    parse_filter,
)

PUMP: dict[str, MetadataValue] = {
    "year": 2021,
    "author": ("Ada", "Bo"),
    "path": "drafts/pump.md",
    "modified": "2024-05-31T10:00:00+00:00",
    "price": "12.50",
    "public": True,
    "published": "2019",
}

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
values = st.one_of(texts, st.booleans(), st.integers(-(10**9), 10**9), st.integers(-999, 999).map(lambda n: n / 8))
fields = texts.filter(lambda text: not set(text) & set("[]"))
comparisons = st.one_of(
    st.builds(Comparison, fields, st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "like"]), st.tuples(values)),
    st.builds(Comparison, fields, st.just("in"), st.lists(values, min_size=1, max_size=3).map(tuple)),
    st.builds(Comparison, fields, st.just("exists")),
)
filters: st.SearchStrategy[Filter] = st.recursive(
    comparisons,
    lambda parts: st.one_of(
        parts.map(Not),
        st.builds(AllOf, st.lists(parts, min_size=2, max_size=3).map(tuple)),
        st.builds(AnyOf, st.lists(parts, min_size=2, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("year >= 2020", True),
        ("year > 2021", False),
        ("YEAR >= 2020", False),
        ("year in (2019, 2021)", True),
        ('author = "Ada"', True),
        ("author = Ada and author = Bo", True),
        ("author != Ada", False),
        ("author not in (Cleo)", True),
        ('path like "drafts/*"', True),
        ('path not like "drafts/*"', False),
        ('path like "[d]rafts*"', False),
        ("modified >= 2024", True),
        ("modified <= 2024", True),
        ("modified > 2024", False),
        ("modified < 2024-06-01", True),
        ("modified > 2024-05-31", False),
        ("price > 9", True),
        ("price = 12.5", True),
        ("public = true", True),
        ("published < 2020", True),
        ("published >= 2019-01-01", True),
        ("missing = 1", False),
        ("missing != 1", True),
        ("not missing < 1", True),
        ("missing exists or year exists", True),
        ("not (year = 2021 or year = 2022)", False),
        ("year = 2021 or year = 2022 and author = Cleo", True),
        ("author > 5", False),
    ],
)
def test_a_filter_selects_documents_by_their_fields(text: str, expected: bool) -> None:
    assert is_selected(parse_filter(text), PUMP) is expected


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("", 1, "the name of a field"),
        (f"year > {'9' * 5000}", 8, "a value"),
        ("year >> 2020", 7, "a value"),
        ("year", 5, "an operator"),
        ("year = 2020 author = Ada", 13, "`and`, `or`"),
        ("(year = 2020", 13, "`)`"),
        ("author in Ada", 11, "`(`"),
        ('author = "Ada', 10, "a value"),
        ("year not = 3", 10, "`in` or `like`"),
        ("a = 1 and ;", 11, "the name of a field"),
        ("not " * 60 + "a = 1", 205, "at most 50 levels"),
    ],
)
def test_an_error_in_a_filter_names_its_position(text: str, position: int, expected: str) -> None:
    with pytest.raises(FilterError) as raised:
        parse_filter(text)
    assert f"at character {position}:" in str(raised.value)
    assert f"expected {expected}" in str(raised.value)


@given(filters)
def test_text_and_json_of_a_filter_are_parsed_to_the_same_filter(filter: Filter) -> None:
    assert parse_filter(format_filter(filter)) == filter
    assert filter_from_json(filter_to_json(filter)) == filter


@given(filters, st.dictionaries(fields, values, max_size=4))
def test_a_negated_filter_selects_what_the_filter_does_not(filter: Filter, record: dict[str, MetadataValue]) -> None:
    assert is_selected(Not(filter), record) is not is_selected(filter, record)


@given(st.text(max_size=80))
def test_any_text_is_a_filter_or_an_error_with_a_position(text: str) -> None:
    try:
        filter = parse_filter(text)
    except FilterError as error:
        message = str(error)
    else:
        message = f"at character {len(collect_fields(filter))}"
    assert "at character" in message


def test_a_filter_of_json_has_a_limited_length() -> None:
    ids = [f"{number:08}" for number in range(10_000)]
    assert filter_from_json({"field": "id", "operator": "in", "values": ids}) == Comparison("id", "in", tuple(ids))
    with pytest.raises(FilterError):
        filter_from_json({"or": [{"field": "id", "operator": "in", "values": ids}] * 10})


@pytest.mark.parametrize("joint", ["or", "and"])
def test_a_filter_has_a_limited_number_of_comparisons(joint: str) -> None:
    comparison = {"field": "year", "operator": "<", "values": [2020]}
    assert filter_from_json({joint: [comparison] * 1000})
    with pytest.raises(FilterError, match="1,001 comparisons"):
        filter_from_json({joint: [{"not": {joint: [comparison] * 1000}}, comparison]})
    with pytest.raises(FilterError):
        parse_filter(f" {joint} ".join(["a<1"] * 1100))


@given(st.lists(values, min_size=1, max_size=4), values)
def test_a_value_is_in_several_if_it_equals_one_of_them(several: list[str | bool | int | float], value: str) -> None:
    record = {"field": value}
    is_in = is_selected(Comparison("field", "in", tuple(several)), record)
    assert is_in is any(is_selected(Comparison("field", "=", (each,)), record) for each in several)


@pytest.mark.parametrize(
    "tree",
    [
        None,
        {},
        {"and": []},
        {"field": "a", "operator": "~", "values": [1]},
        {"field": "a", "operator": "=", "values": []},
    ],
)
def test_json_that_is_no_filter_is_an_error(tree: object) -> None:
    with pytest.raises(FilterError):
        filter_from_json(tree)


@pytest.mark.parametrize("key", ["not", "and", "or"])
def test_json_that_is_nested_too_deeply_is_an_error(key: str) -> None:
    tree: object = {"field": "a", "operator": "=", "values": [1]}
    for _ in range(100):
        tree = {key: tree if key == "not" else [tree]}
    with pytest.raises(FilterError, match="nested more than"):
        filter_from_json(tree)


@pytest.mark.parametrize(
    ("metadata", "year"),
    [
        ({"date": "2023-06-01"}, 2023),
        ({"date": "2023"}, 2023),
        ({"date": 2023}, 2023),
        ({"date": "5. März 2021"}, 2021),
        ({"date": "2023-06-01", "year": 2020}, 2020),
        ({"date": "unknown, 2023 or later"}, None),
        ({"date": "2023-13-01"}, None),
        ({"modified": "2023-06-01"}, None),
    ],
)
def test_the_year_of_a_document_is_that_of_its_date(metadata: dict[str, MetadataValue], year: int | None) -> None:
    assert list_document_fields("a", Document("a", "", "Text.", metadata=metadata)).get("year") == year
