"""The options of a search: one definition, from which the command line, requests and frameworks derive theirs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Final, Literal, NamedTuple, get_type_hints

from typing_extensions import TypedDict

from polyad.errors import SettingError
from polyad.text.filters import Filter, Where, to_filter
from polyad.text.validity import Time, parse_period

MinRelevance = float | Literal["auto"]
"""Minimum relevance of passages; "auto" for a limit of the index's own that refuses questions without an answer."""

AUTO: Final = "auto"

DEFAULT_K = 5
"""Number of hits without any limit; published results use the same depth."""

_WORDS_PER_PASSAGE = 100
"""Estimate for the first request within a budget of words; passages of the default length have 150."""


def _describe(help: str, default_text: str = "", **metadata: object) -> dict[str, Any]:
    """Return the metadata of a field of :class:`SearchOptions`, among them its help text.

    The help is no docstring, because ``python -OO`` drops docstrings.
    """
    return {"help": help, "default_text": default_text, **metadata}


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """The options of a search, such as the number of hits, the word limit, the filter and the dates.

    A filter is text such as ``year >= 2020 and author = "Ada"``, JSON, or an object of :mod:`polyad.text.filters`. A
    time is a ``datetime``, or a date in ISO 8601. The texts of the fields are also the help of commands and requests.

    Raises:
        SettingError: A value is out of range, or a time is no date.
        FilterError: A filter is no filter.
    """

    k: int | None = field(default=None, metadata=_describe("Number of passages to return.", "5, POLYAD_K"))
    max_words: int | None = field(
        default=None,
        metadata=_describe(
            "Return as many passages as fit into N words.", "POLYAD_MAX_WORDS", request_maximum=1_000_000
        ),
    )
    merge: bool = field(
        default=True,
        metadata=_describe(
            "Merge adjacent passages into one hit, and list copies once. Otherwise hits are passages as ranked.",
            python_only=True,
        ),
    )
    min_relevance: MinRelevance = field(
        default=0.0,
        metadata=_describe(
            "Leave out passages with a lower relevance, 0 to 1; auto refuses questions that the documents do not "
            "answer.",
            "search: 0, ask: auto",
        ),
    )
    where: Where = field(
        default=None,
        metadata=_describe(
            "Use only the documents that a filter selects, such as 'year >= 2020 and not path like \"draft*\"'. Its "
            "fields are metadata, title, source, id, hyperedge.kind and hyperedge.role; its operators = != < <= > >= "
            "in like exists."
        ),
    )
    prefer: Where = field(
        default=None,
        metadata=_describe("Rank the documents that a filter selects higher, and hide nothing; see --where."),
    )
    as_of: Time = field(
        default=None,
        metadata=_describe(
            "Use only what holds at this time: 2024-05-17T12:00:00Z, or the first moment of 2024-05-17, 2024-05 or "
            "2024.",
            "now",
        ),
    )
    known_at: Time = field(
        default=None,
        metadata=_describe(
            "Use only documents that the index knew at this time, or by the end of this day, month or year. A document "
            "that was updated since is left out: only its last version is stored."
        ),
    )
    typed_question: str = field(
        default="",
        metadata=_describe(
            "The question as the user wrote it, if names of a conversation were added to the question. The best "
            "sentences of hits are those that answer this one: the added names would outweigh it.",
            python_only=True,
        ),
    )

    def __post_init__(self) -> None:
        for name, limit in (("k", self.k), ("max_words", self.max_words)):
            if limit is not None and limit < 1:
                raise SettingError(name, limit, "1 or more")
        value = self.min_relevance
        if value != AUTO and not (isinstance(value, int | float) and 0 <= value <= 1):
            raise SettingError("min_relevance", value, f"0 (all passages) to 1, or {AUTO}")
        self.get_filter(), self.get_preferred(), self.get_time()  # raise errors before the search begins

    @property
    def max_hits(self) -> int | None:
        """The maximum number of hits of the search; None for no limit."""
        return self.k or (None if self.max_words else DEFAULT_K)

    @property
    def depth(self) -> int:
        """The number of passages to retrieve first. If several form one hit, the search retrieves more."""
        return self.max_hits or max(DEFAULT_K, (self.max_words or 0) // _WORDS_PER_PASSAGE)

    def get_filter(self) -> Filter | None:
        """Return the filter of ``where`` and ``known_at``; None for all documents."""
        return to_filter(self.where, self.known_at)

    def get_preferred(self) -> Filter | None:
        """Return the filter of the documents that rank higher; None for none."""
        return to_filter(self.prefer)

    def get_time(self) -> float:
        """Return the time ``as_of`` in seconds since 1970; the current time if none is set."""
        return parse_period("as_of", self.as_of).start if self.as_of else time.time()


class OptionArguments(TypedDict, total=False):
    """The fields of :class:`SearchOptions` but ``k``, as keyword arguments; a type checker cannot derive them."""

    max_words: int | None
    merge: bool
    min_relevance: MinRelevance
    where: Where
    prefer: Where
    as_of: Time
    known_at: Time
    typed_question: str


class Option(NamedTuple):
    """An option of a search that commands and requests offer: its type, help and limit.

    Attributes:
        type: Type of the value in Python.
        help: What the option does.
        default: The default, for the help of commands; empty for none.
        request_maximum: Largest number in a request to the server; None for no limit.
    """

    type: Any
    help: str
    default: str
    request_maximum: int | None


@cache
def list_options() -> Mapping[str, Option]:
    """Return the options of a search that commands and requests offer, keyed by name."""
    types = get_type_hints(SearchOptions)
    return {
        each.name: Option(
            types[each.name],
            each.metadata["help"],
            each.metadata["default_text"],
            each.metadata.get("request_maximum"),
        )
        for each in fields(SearchOptions)
        if not each.metadata.get("python_only")
    }


if SearchOptions.__doc__:  # documentation pages list the fields
    SearchOptions.__doc__ += "\n    Attributes:\n" + "".join(
        f"        {each.name}: {each.metadata['help']}\n" for each in fields(SearchOptions)
    )
