from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("resource", reason="the benchmark measures processor time and memory as Unix reports them")

from reading import CONVERTERS, convert, list_distinct_files, measure

CONVERTED = "The pump is red. It stands in the cellar, near the well-known door. Nobody goes there."


@pytest.mark.parametrize(
    ("text", "recall", "missing"),
    [
        (CONVERTED, 1.0, []),
        (CONVERTED.replace("cellar", "cel- lar").replace("near the", "nearthe"), 1.0, []),
        (CONVERTED.replace("Nobody goes there.", ""), 14 / 17, ["nobody", "goes", "there"]),
        (CONVERTED.replace("The pump is red. It", "It"), 13 / 17, ["the", "pump", "is", "red"]),
        ("", 0.0, CONVERTED.casefold().replace(".", "").replace(",", "").replace("-", " ").split()),
    ],
)
def test_recall_is_the_share_of_the_words_that_are_in_the_text_however_they_are_spaced(
    text: str, recall: float, missing: list[str]
) -> None:
    row = measure(Path("a.pdf"), CONVERTED, text, "")
    assert row.recall == pytest.approx(recall, abs=1e-5)
    assert sorted(row.missing) == sorted(missing)


def test_a_line_that_each_page_repeats_is_read_if_the_text_has_it_once() -> None:
    assert measure(Path("a.pdf"), "Annual Report 2024 " * 9, "Annual Report 2024 Annual Report 2024", "").recall == 1


def test_order_is_lower_where_rows_are_read_as_columns() -> None:
    row = measure(Path("a.pdf"), "one two three four", "one three two four", "")
    assert (row.recall, row.order) == (1, 0)


def test_words_that_the_converter_does_not_have_are_surplus() -> None:
    assert measure(Path("a.docx"), "one two", "one two a note", "").surplus == 0.5


def test_equal_files_are_measured_once(tmp_path: Path) -> None:
    for name, text in (("a.html", "one"), ("b.HTML", "one"), ("c.html", "two"), ("d.pdf", "one")):
        (tmp_path / name).write_text(text)
    assert [path.name for path in list_distinct_files(tmp_path, ".html")] == ["a.html", "c.html"]


def test_formats_of_a_missing_converter_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert all(convert([tmp_path / "a"], extension, tmp_path) is None for extension in CONVERTERS)
