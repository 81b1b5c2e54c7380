"""The functions that the reading order names run in this order, at these depths."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType

import polyad
from polyad.engine import Engine
from polyad.model import Document
from polyad.protocols.components import Embedder
from tests.docs.pages import DOCS

SOURCE = Path(polyad.__file__).parent
PAGE = (DOCS / "architecture" / "reading-order.md").read_text(encoding="utf-8")

Call = tuple[int, str, str]
"""Depth, file and qualified name of a function."""


def list_steps(heading: str) -> list[Call]:
    """Return the rows of the table below a heading that begins with some words."""
    section = PAGE.split(f"## {heading}")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (\d+) \| `([\w/.]+)` \| `([\w.]+)` \|", section, re.MULTILINE)
    return [(int(depth), file, function) for depth, file, function in rows]


def record_calls(run: Callable[[], object]) -> list[Call]:
    """Return every call of a function of polyad in this thread, in order."""
    calls: list[Call] = []

    def is_polyad(frame: FrameType) -> bool:
        return frame.f_code.co_filename.startswith(f"{SOURCE}{os.sep}")

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not is_polyad(frame):
            return
        depth, caller = 0, frame.f_back
        while caller is not None:
            depth += is_polyad(caller)
            caller = caller.f_back
        code = frame.f_code
        calls.append((depth, Path(code.co_filename).relative_to(SOURCE).as_posix(), code.co_qualname))

    previous = sys.getprofile()
    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(previous)
    return calls


def assert_in_order(steps: list[Call], calls: list[Call]) -> None:
    position = 0
    for step in steps:
        assert step in calls[position:], f"{step} does not run after the step before it; update the page"
        position = calls.index(step, position)


def test_a_document_passes_the_functions_of_the_page(tmp_path: Path, embedder: Embedder) -> None:
    (tmp_path / "bell.md").write_text("# Bell of Tarn\n\nThe Bell of Tarn was cast by Ines Moreau.", encoding="utf-8")
    steps = list_steps("A document")
    assert len(steps) > 10
    with Engine.open(tmp_path / "kb", embedder=embedder) as engine:
        assert_in_order(steps, record_calls(lambda: engine.index([tmp_path / "bell.md"])))


def test_a_change_passes_the_functions_of_the_page(tmp_path: Path, embedder: Embedder) -> None:
    steps = list_steps("A change")
    assert len(steps) > 5
    with Engine.open(tmp_path / "kb", embedder=embedder) as engine:
        for number in range(2):
            text = f"The Bell {number} of Tarn was cast by Ines Moreau."
            document = Document(f"bell {number}", f"Bell {number}", text)
            calls = record_calls(partial(engine.index_documents, [document]))
    assert_in_order(steps, calls)


def test_a_question_passes_the_functions_of_the_page(small_engine: Engine) -> None:
    steps = list_steps("A question")
    assert len(steps) > 10
    small_engine.search("Who cast the Bell of Tarn?", 1)  # loads the components
    assert_in_order(steps, record_calls(lambda: small_engine.search("Where was its maker born?", 2)))
