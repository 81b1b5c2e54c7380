from __future__ import annotations

import csv
import json
import runpy
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sentence_evidence import tokenize

from polyad.model import Document, Passage, ScoredPassage

FOLDER = Path(__file__).parents[2] / "benchmarks" / "manuals"
KINDS = ["questions", "unanswerable", "unanswerable_prose"]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    sys.path.insert(0, str(FOLDER.parent))  # as where it is run by hand
    return runpy.run_path(str(FOLDER.with_suffix(".py")))


def records(kind: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("kind", KINDS)
def test_no_question_is_asked_twice(kind: str) -> None:
    for key in ("_id", "text"):
        values = [record[key] for record in records(kind)]
        assert len(set(values)) == len(values)


def test_each_piece_of_evidence_is_from_a_file_that_is_fetched() -> None:
    with (FOLDER / "files.tsv").open(encoding="utf-8", newline="") as lines:
        names = {row["name"] for row in csv.DictReader(lines, delimiter="\t")}
    for record in records("questions"):
        assert record["evidence"], record["_id"]
        for place in record["evidence"]:
            assert place["file"] in names
            assert len(tokenize(place["text"])) >= 4, place["text"]
            assert (place["page"] is not None) == place["file"].endswith(".pdf")


@pytest.mark.parametrize("kind", KINDS[1:])
def test_unanswerable_questions_state_words_that_are_absent(kind: str) -> None:
    for record in records(kind):
        assert not record.get("evidence")
        absent = record["metadata"]["absent"]
        assert absent, record["_id"]
        assert all(tokenize(words) for words in absent), record["_id"]


@pytest.mark.parametrize("size", [1, 200, 201, 380, 381, 1000])
def test_plain_pieces_hold_every_word_and_share_twenty(script: dict[str, Any], size: int) -> None:
    words = [str(number) for number in range(size)]
    pieces = [piece.text.split() for piece in script["chunks"](Document("a", "", " ".join(words)))]
    assert pieces[0] + [word for piece in pieces[1:] for word in piece[20:]] == words
    assert all(before[-20:] == after[:20] for before, after in pairwise(pieces))


@pytest.mark.parametrize(
    ("page", "count", "expected"), [(3, 3, 1.0), (3, 2, 1.0), (3, 4, 0.0), (3, None, 0.0), (None, 3, None)]
)
def test_a_page_is_right_where_the_passage_begins_on_it_or_one_before(
    script: dict[str, Any], page: int | None, count: int | None, expected: float | None
) -> None:
    place = script["Place"]("a.pdf", "The pump is red.", page)
    hit = ScoredPassage(Passage("1", "manuals/a.pdf", "", "See: the pump is red.", 0, 21, page=count), 1.0)
    assert script["has_right_page"](script["Question"]("q", "Which colour?", "fact", [place]), [hit]) == expected


def test_the_area_is_how_often_the_answered_are_above_the_others(script: dict[str, Any]) -> None:
    assert script["compute_roc_auc"]([3.0, 1.0], [2.0, 1.0]) == (1 + 1 + 0 + 0.5) / 4
    assert script["compute_roc_auc"]([3.0], []) is None


def test_those_are_refused_that_are_less_sure_than_all_but_one_in_twenty_of_the_answered(
    script: dict[str, Any],
) -> None:
    answered = [0.1, *[0.5] * 19]
    assert script["refused"](answered, [0.05, 0.3, 0.5, 0.9]) == 2 / 4
    assert script["refused"](answered[:-1], [0.05, 0.1, 0.3, 0.9]) == 1 / 4  # none of nineteen may be refused
    assert script["refused"](answered, []) is None
