"""Settings of the default retriever."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultSettings:
    """The default retriever.

    Attributes:
        rewriting: Also embed the question with the names of linked entities in place of those it names: sixteen short
            texts a search. On the benchmarks it changes Recall@5 by less than a point either way, so it is off.
        weights: A file written by ``polyad train default``; empty for the weights that come with polyad.
    """

    rewriting: bool = False
    weights: str = ""
