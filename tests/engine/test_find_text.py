"""Exact search of the documents of an index, compared with ``grep -E`` over their exported texts."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from polyad import Document, Engine, Settings
from polyad.config import SplitSettings
from polyad.errors import ConfigurationError
from polyad.model import TextMatch

WORDS = (
    *("bell", "bells", "Bell", "tower", "Tarn", "rang", "ringing", "cast", "by", "the", "of", "Ines", "Moreau"),
    *("1850", "12.5", "été", "naïve", "東京", "a-b", "Acme™", "(x)"),
)
BELL = Document(
    "bell.md", "Bell", "The bell of Tarn rings.\nIt was cast by Ines\nMoreau in 1850.", metadata={"year": 1850}
)
TOWER = Document("tower.md", "Tower", "The tower near Ines Moreau street.", metadata={"year": 1900})


def open_engine(tmp_path: Path, *documents: Document, passage_tokens: int | None = None) -> Engine:
    settings = Settings(split=SplitSettings(passage_tokens=passage_tokens, overlap_tokens=0))
    engine = Engine.open(tmp_path / "kb", embedder="hashing:16", settings=settings)
    engine.index_documents(documents)
    return engine


def test_lines_with_their_places(tmp_path: Path) -> None:
    with open_engine(tmp_path, TOWER, BELL) as engine:
        result = engine.find_text("Ines", context=1)
        first, second = result.matches
        assert (first.document_id, first.line, first.text) == ("bell.md", 2, "It was cast by Ines")
        assert (first.before, first.after) == (("The bell of Tarn rings.",), ("Moreau in 1850.",))
        assert BELL.text[first.start : first.end] == "Ines"
        assert (second.document_id, second.passage_id, second.title) == ("tower.md", "tower.md#0000", "Tower")
        assert (result.total, result.counts) == (2, {"bell.md": 1, "tower.md": 1})
        assert [match.text for match in engine.find_text("Ines Moreau", phrase=True).matches] == [
            "It was cast by Ines\nMoreau in 1850.",
            "The tower near Ines Moreau street.",
        ]


def test_a_match_crosses_passages(tmp_path: Path) -> None:
    sentences = [f"Person {number} rang the bell of Tarn." for number in range(60)]
    with open_engine(tmp_path, Document("long", "", " ".join(sentences)), passage_tokens=40) as engine:
        assert engine.catalogue.statistics().passages > 5
        for number in range(59):
            [match] = engine.find_text(f"Tarn. Person {number + 1} rang", phrase=True).matches
            passage = engine.catalogue.passage(match.passage_id)
            assert passage.start <= match.start < passage.end
            assert f"Person {number + 1} rang" in match.text
            assert len(match.text) < 400


def test_filters_dates_and_removed_documents(tmp_path: Path) -> None:
    old = Document("old", "", "The bell hangs in Lisle.", metadata={"valid_to": "1800-01-01"})
    with open_engine(tmp_path, BELL, TOWER, old) as engine:
        assert list(engine.find_text("The").counts) == ["bell.md", "tower.md"]
        assert list(engine.find_text("The", where="year >= 1900").counts) == ["tower.md"]
        assert list(engine.find_text("The", as_of="1700").counts) == ["bell.md", "old", "tower.md"]
        engine.corrections.disable(["tower.md"], "test")
        assert list(engine.find_text("The").counts) == ["bell.md"]
        engine.remove("bell.md")
        assert engine.find_text("The").counts == {}
        with pytest.raises(ConfigurationError):
            engine.find_text("The", where="colour = red")


def test_a_change_of_the_index_is_seen(tmp_path: Path) -> None:
    with open_engine(tmp_path, BELL, TOWER) as engine:
        assert list(engine.find_text("The").counts) == ["bell.md", "tower.md"]
        engine.index_documents([Document("bell.md", "Bell", "A bell.")])
        assert list(engine.find_text("The").counts) == ["tower.md"]
        with Engine.open(tmp_path / "kb", create=False) as other:
            other.index_documents([Document("a.md", "", "The new one.")])
        assert list(engine.find_text("The").counts) == ["a.md", "tower.md"]


def test_pages_of_results(tmp_path: Path) -> None:
    documents = [Document(str(number), "", "the bell\nthe tower\nnothing\nthe end") for number in range(5)]
    with open_engine(tmp_path, *documents) as engine:
        everything = engine.find_text("the").matches
        assert len(everything) == 15
        parts: list[TextMatch] = []
        cursor: int | None = 0
        while cursor is not None:
            result = engine.find_text("the", 4, cursor=cursor)
            assert result.total == 15
            parts += result.matches
            cursor = result.next_cursor
        assert parts == list(everything)
        with pytest.raises(ConfigurationError, match="limit"):
            engine.find_text("the", 0)


def _build_text(chance: random.Random) -> str:
    lines = [" ".join(chance.choices(WORDS, k=chance.randint(0, 9))) for _ in range(chance.randint(1, 6))]
    return "\n".join(lines) + chance.choice(["", "\n", ".\n\n"]) + "end"


def _build_pattern(chance: random.Random) -> str:
    def build_piece() -> str:
        word = chance.choice(WORDS).replace("(", "\\(").replace(")", "\\)").replace(".", "\\.")
        piece = chance.choice(
            [word, word, word[: chance.randint(1, 3)].rstrip("\\") or "x", ".", "[a-m]", "[^ a]", "[0-9]"]
        )
        return piece + chance.choice(["", "", "", "+", "*", "?", "{2}", "{1,3}"])

    pieces = [build_piece() for _ in range(chance.randint(1, 4))]
    pattern = chance.choice(["", " "]).join(pieces)
    if chance.random() < 0.3:
        pattern = f"({pattern})?{build_piece()}" if chance.random() < 0.5 else f"{pattern}|{build_piece()}"
    return f"^{pattern}" if chance.random() < 0.1 else f"{pattern}$" if chance.random() < 0.1 else pattern


@pytest.mark.parametrize("patterns", [60, pytest.param(400, marks=pytest.mark.slow)])
def test_the_lines_are_those_of_grep(tmp_path: Path, patterns: int) -> None:
    grep = shutil.which("grep")
    if grep is None:
        pytest.skip("needs grep")
    chance = random.Random(patterns)
    documents = [Document(f"d{number:03}", "", _build_text(chance)) for number in range(60)]
    with open_engine(tmp_path, *documents, passage_tokens=10) as engine:
        for document in documents:
            (tmp_path / document.id).write_text(engine.catalogue.document(document.id).text, encoding="utf-8")
        matched = 0
        for _ in range(patterns):
            pattern = _build_pattern(chance)
            command = [grep, "-nE", "-e", pattern, *(document.id for document in documents)]
            finished = subprocess.run(
                command, cwd=tmp_path, env={"LC_ALL": "C.UTF-8"}, capture_output=True, check=False, encoding="utf-8"
            )
            assert finished.returncode < 2, (pattern, finished.stderr)
            expected = [tuple(line.split(":", 2)) for line in finished.stdout.split("\n") if line]
            result = engine.find_text(pattern, 10_000)
            assert [(m.document_id, str(m.line), m.text) for m in result.matches] == expected, pattern
            assert result.total == len(expected)
            matched += bool(expected)
        assert matched > patterns / 2


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*c", "([a-z]*)*x", "(.*)(.*)(.*)(.*)[0-9]", "(a?){30}a{30}!"])
def test_catastrophic_patterns_take_linear_time(tmp_path: Path, pattern: str) -> None:
    with open_engine(tmp_path, Document("a", "", "a" * 20_000)) as engine:
        result = engine.find_text(pattern, seconds=5.0)
        assert (result.total, result.is_complete) == (0, True)


def test_a_search_that_takes_too_long_is_incomplete(tmp_path: Path) -> None:
    with open_engine(tmp_path, BELL) as engine:
        assert not engine.find_text("bell", seconds=-1.0).is_complete


def test_context_and_numbers_of_lines_are_those_of_the_text(tmp_path: Path) -> None:
    lines = [f"line {number} é bell" if number % 3 else "" for number in range(41)]
    with open_engine(tmp_path, Document("a", "", "\n".join(lines))) as engine:
        for match in engine.find_text("bell", 100, context=2).matches:
            place = match.line - 1
            assert match.text == lines[place]
            assert list(match.before) == lines[max(0, place - 2) : place]
            assert list(match.after) == lines[place + 1 : place + 3]


def test_very_many_lines_end_at_the_time_limit(tmp_path: Path) -> None:
    with open_engine(tmp_path, Document("a", "", "a\n" * 300_000)) as engine:
        started_at = time.monotonic()
        result = engine.find_text("a", phrase=True, seconds=0.2)
        assert not result.is_complete
        assert time.monotonic() - started_at < 5
