"""Prefixes of queries and of other texts that embedding models were trained with, by the names of the models."""

from __future__ import annotations

import re
from typing import NamedTuple


class Prefixes(NamedTuple):
    """The texts before a query and before any other text."""

    query: str = ""
    passage: str = ""


_BGE = Prefixes("Represent this sentence for searching relevant passages: ")
_TASK = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"

_MODELS = tuple(
    (re.compile(pattern), prefixes)
    for pattern, prefixes in (
        (r"e5-.*instruct", Prefixes(f"{_TASK} ")),
        (r"^(?:multilingual-)?e5-(?:small|base|large)", Prefixes("query: ", "passage: ")),
        (r"^bge-(?:small|base|large)-en|arctic-embed(?!2|.*v2)|^mxbai-embed-large|^uae-large", _BGE),
        (r"^bge-(?:small|base|large)-zh", Prefixes("为这个句子生成表示以用于检索相关文章：")),  # noqa: RUF001  Chinese colon
        (r"arctic-embed", Prefixes("query: ")),
        (r"^nomic-embed-text|^modernbert-embed", Prefixes("search_query: ", "search_document: ")),
        (r"^qwen3-embedding", Prefixes(_TASK)),
        (r"^embeddinggemma", Prefixes("task: search result | query: ", "title: none | text: ")),
    )
)
"""The first pattern that occurs in the last part of a model's name, in lower case, decides. From the models' cards."""


def find_prefixes(model: str) -> Prefixes:
    """Return the prefixes that a model was trained with, by the last part of its name; empty ones if unknown.

    >>> find_prefixes("intfloat/multilingual-e5-large").query
    'query: '
    >>> find_prefixes("nomic-embed-text:latest").passage
    'search_document: '
    """
    name = model.rstrip("/").rpartition("/")[2].lower()
    return next((prefixes for pattern, prefixes in _MODELS if pattern.search(name)), Prefixes())
