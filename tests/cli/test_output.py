# ruff: noqa: RUF001  Chinese punctuation
"""Printed tables, lists and hits whose texts have wide characters: columns stay aligned, and lines fit the terminal."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from polyad.cli.output import Display, show_evidence, show_fields, show_table
from polyad.model import Evidence, Excerpt, Passage, ScoredPassage, Span
from polyad.text.words import count_words

TEXT = "塔恩之钟由伊内斯·莫罗于1921年铸造，挂在科尔文塔楼上。" * 6


def test_columns_of_a_table_with_chinese_names_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(
        [{"name": "塔恩之钟", "count": "12"}, {"name": "Bell", "count": "3"}, {"name": "ハーヴェイ", "count": "456"}]
    )
    rows = [line for line in capsys.readouterr().out.splitlines() if line.strip().endswith(("12", "3", "456"))]
    assert len(rows) == 3
    assert len({cell_len(row.rstrip()) for row in rows}) == 1


def test_values_of_fields_with_chinese_names_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    show_fields({"metadata": {"作者": "Mei", "language": "zh", "出版年份": 1921}})
    lines = capsys.readouterr().out.splitlines()
    starts = {cell_len(line[: line.index(value)]) for line, value in zip(lines, ("Mei", "zh", "1921"), strict=True)}
    assert len(starts) == 1


@pytest.mark.parametrize("text", [TEXT, f"HyperGraphRAG {TEXT}", "The bell of Tarn was cast in 1921. " * 12])
def test_lines_of_a_hit_fit_into_the_terminal(
    text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    passage = Passage("a.md#0", "a.md", "塔恩之钟", text, 0, len(text))
    show_evidence(
        Evidence("谁铸造了塔恩之钟?", "bm25", (ScoredPassage(passage, 1.0),)), explain=False, display=Display.WHOLE
    )
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("   ")][1:]
    widths = [cell_len(line) for line in lines]
    assert max(widths) < 60
    assert min(widths[:-1]) > 45, "and are filled"
    assert "".join("".join(lines).split()) == "".join(text.split())


BEST = "The full step in quick time is *thirty* inches, measured from heel to heel."
MANUAL = f"""{"Nothing of note happens on the parade ground. " * 20}
The band rests. {BEST} The cadence is 120 steps in a minute.

{"Nobody listens to the drummer. " * 20}"""


def build_evidence() -> Evidence:
    passage = Passage("drill#0", "drill", "Drill", MANUAL, 0, len(MANUAL))
    span = Span(MANUAL.index(BEST), MANUAL.index(BEST) + len(BEST))
    excerpt = Excerpt(MANUAL[: span.end], 0, span.end, span)
    summary = Span(MANUAL.index("The band rests."), MANUAL.index("Nobody listens"))
    hit = ScoredPassage(passage, 1.0, excerpt=excerpt, best_sentences=(span,), summary=(summary,))
    return Evidence("How long is the full step?", "bm25", (hit,))


@pytest.mark.parametrize(("display", "low", "high"), [("SUMMARY", 20, 30), ("EXCERPT", 150, 200), ("WHOLE", 260, 300)])
def test_the_summary_of_a_hit_is_printed_unless_more_is_requested(
    display: str, low: int, high: int, capsys: pytest.CaptureFixture[str]
) -> None:
    show_evidence(build_evidence(), explain=False, display=Display[display])
    text = " ".join(capsys.readouterr().out.split()[4:])
    assert BEST in text
    assert low <= count_words(text) <= high


def test_the_best_sentence_is_bold_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "50")
    show_evidence(build_evidence(), explain=False)
    bold = [part.split("\x1b[0m")[0] for part in capsys.readouterr().out.split("\x1b[1m")[2:]]
    assert " ".join(bold) == BEST
