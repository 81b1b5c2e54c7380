"""A small corpus that comes with polyad, for ``polyad demo``: the records of an invented river observatory.

Its questions need two documents each: one names somebody or something, the other is about it.
"""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from polyad.model import Document, Failure
from polyad.readers.folder.files import FileReader

_FILES = importlib.resources.files(__name__)


class SampleQuestion(NamedTuple):
    """A question about the sample.

    Attributes:
        text: The question.
        gold: Ids of the documents that answer it.
    """

    text: str
    gold: frozenset[str]


def documents() -> Iterator[Document | Failure]:
    """Return the documents of the sample corpus for ``polyad demo``."""
    with importlib.resources.as_file(_FILES / "documents") as folder:
        for path in sorted(folder.glob("*.md")):
            for item in FileReader().read([path]):
                yield replace(item, id=path.name)


def questions() -> list[SampleQuestion]:
    """Return the questions about the sample corpus, with the ids of the relevant documents."""
    lines = _FILES.joinpath("questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        SampleQuestion(record["text"], frozenset(record["gold"])) for record in (json.loads(line) for line in lines)
    ]
