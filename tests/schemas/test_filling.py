"""JSON objects that are derived and filled from dataclasses."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NotRequired, get_type_hints

from typing_extensions import TypedDict

from polyad.schemas.filling import fields_of, fill_schema


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Part:
    name: str


@dataclass(frozen=True)
class Machine:
    weight: float
    names: tuple[str, ...]
    parts: tuple[Part, ...]
    colour: Colour = Colour.RED


class PartSchema(TypedDict):
    name: str


@fields_of(Machine)
class MachineSchema(TypedDict):
    """A machine."""

    parts: list[PartSchema]
    note: NotRequired[str]


def test_a_typed_dictionary_has_the_fields_of_its_dataclass_and_further_keys() -> None:
    assert (MachineSchema.__doc__, MachineSchema.__module__) == ("A machine.", __name__)
    assert get_type_hints(MachineSchema, include_extras=True) == {
        "weight": float,
        "names": list[str],
        "parts": list[PartSchema],
        "colour": str,
        "note": NotRequired[str],
    }


def test_a_derived_object_is_filled_from_the_dataclass() -> None:
    assert fill_schema(MachineSchema, Machine(2.5, ("a",), (Part("wheel"),))) == {
        "weight": 2.5,
        "names": ["a"],
        "parts": [{"name": "wheel"}],
        "colour": "red",
    }
