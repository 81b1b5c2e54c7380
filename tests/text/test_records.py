"""Documents as JSON and back; see polyad.text.json_types."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.model import (
    Argument,
    Document,
    Hyperedge,
    HyperedgeKind,
    Incidence,
    IndexedDocument,
    IndexedHyperedge,
    IndexedPassage,
    Location,
    MetadataValue,
    Passage,
)
from polyad.text.json_types import FieldError, format_value, parse_value

METADATA: dict[str, MetadataValue] = {
    "year": 2020,
    "large": 10**17,
    "share": 0.5,
    "draft": False,
    "authors": ("Ada", "Bo"),
    "a\nkey": "",
}


def build_document(text: str, numbers: list[float]) -> IndexedDocument:
    vector = np.array(numbers, dtype=np.float32)
    arguments = (Argument("dose", "5", "number", "mg"), Argument("drug", "Q1", names=("Abixa", "A")))
    edge = Hyperedge("d#0/0", HyperedgeKind.TUPLE, text, "d#0", 0, 3, 9.5, "gives", arguments)
    incidences = (Incidence("Q1", "d#0/0", "Abixa", "drug", "drug", "a drug", 80.0, False, 0.5),)
    passage = Passage("d#0", "d", "Doses", text, 0, len(text), page=2, heading="Doses", slide=None)
    document = Document("d", "Doses", text, "a.pdf", metadata=METADATA, places=(Location(0, 9, 2), Location(9, 12, 3)))
    hyperedges = (IndexedHyperedge(edge, incidences, vector),)
    return IndexedDocument(document, "digest", 7, (IndexedPassage(passage, "p", vector, hyperedges),))


components = st.floats(-1000, 1000, width=32)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.lists(components, min_size=1))
def test_a_document_survives_json(text: str, numbers: list[float]) -> None:
    document = build_document(text, numbers)
    parsed = parse_value(json.loads(json.dumps(format_value(document))), IndexedDocument)
    assert format_value(parsed) == format_value(document)
    assert parsed.document == document.document
    (passage,), (original,) = parsed.passages, document.passages
    assert (passage.passage, passage.vector.tobytes()) == (original.passage, original.vector.tobytes())
    assert passage.hyperedges[0].hyperedge == original.hyperedges[0].hyperedge
    assert passage.hyperedges[0].incidences == original.hyperedges[0].incidences
    again = parse_value(json.loads(json.dumps(format_value(original))), IndexedPassage)
    assert format_value(again) == format_value(original)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ((), 3, "it is 3; expected an object"),
        (("tokens",), "many", "tokens is 'many'; expected a whole number"),
        (("document", "metadata", "year"), {}, "document.metadata.year is {}; expected a text, number"),
        (("passages", 0, "vector"), "AAA", r"passages\[0\].vector is 'AAA'; expected base64"),
        (("passages", 0, "vector"), "AADAfw==", r"passages\[0\].vector is 'AADAfw=='; expected base64 of float32"),
        (
            ("passages", 0, "hyperedges", 0, "hyperedge", "kind"),
            "rumour",
            "kind is 'rumour'; expected one of 'semantic",
        ),
    ],
)
def test_json_that_is_no_document_names_the_field(path: tuple[str | int, ...], value: object, message: str) -> None:
    tree = json.loads(json.dumps(format_value(build_document("Text.", [1.0]))))
    if path:
        *parents, last = path
        node = tree
        for key in parents:
            node = node[key]
        node[last] = value
    else:
        tree = value
    with pytest.raises(FieldError, match=message):
        parse_value(tree, IndexedDocument)


def test_a_document_without_vectors_has_empty_ones() -> None:
    document = build_document("Text.", [])
    assert parse_value(format_value(replace(document, tokens=9)), IndexedDocument).passages[0].vector.shape == (0,)
