"""What hostile input costs: time in proportion to its size. Each of these took the square of it, or more."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from polyad.answering.citations import CitableSource, CitationFilter, Claims
from polyad.answering.name_lists import cite_names, parse_names
from polyad.indexing.documents import find_headings
from polyad.indexing.facts.grounding import Grounder
from polyad.indexing.facts.style import ExtractionStyle
from polyad.model import Document, Section, Span
from polyad.readers.folder.tuples import read_json_facts
from polyad.readers.format import DEFAULT_CONTEXT, Source
from polyad.readers.records.records import read_csv
from polyad.replies.candidate_scores import parse_candidate_scores
from polyad.replies.loose_json import repair_json
from polyad.replies.thoughts import remove_thoughts
from polyad.snapshot.columns import EntityKeys
from polyad.snapshot.name_variants import NamedEntities, NameVariants
from polyad.text.keys import EntityNameMatcher, build_entity_key
from polyad.text.locate import find_occurrences
from polyad.text.prompts import escape_tags
from polyad_readers.markup.front_matter import parse_front_matter
from polyad_readers.web.eml import read_eml
from polyad_readers.web.epub import read_epub
from polyad_readers.web.html import read_html
from tests.cost import measure_cost

MAX_COST = 100.0
"""Each costs less than a tenth of it, and cost more than twice of it when its time was not in proportion."""

MARKS = "\u0301\u0327"
"""Two marks on a letter that have to change places."""


def streamed(pieces: list[str]) -> str:
    citations = CitationFilter(frozenset({1}))
    return "".join(map(citations.feed, pieces)) + citations.finish()


def claimed(text: str) -> list[Span]:
    citations = CitationFilter(frozenset({1}))
    citations.feed(text)
    citations.finish()
    claims = Claims(citations.text)
    return [claims.find_sentence(cited.bracket) for cited in citations.cited]


def bars(count: int) -> str:
    facts = [{"text": "A fact.", "score": 5, "entities": [f"a|{number}" for number in range(count)]}]
    return json.dumps({"facts": facts, "entities": [f"a|x{number} | b | c | 5" for number in range(count)]})


INPUTS: dict[str, Callable[[], object]] = {
    "remarks behind a name": lambda: build_entity_key("a" + " (b)" * 20_000),
    "articles before a name": lambda: build_entity_key("the " * 100_000 + "x"),
    "marks on a letter of a name": lambda: build_entity_key("a" + MARKS * 50_000),
    "marks on a letter of a question": lambda: EntityNameMatcher({"a"}.intersection).find("a" + MARKS * 50_000),
    "marks on a letter of a fact": lambda: Grounder("", "a", []).is_grounded("a" + MARKS * 50_000),
    "comments without an end": lambda: repair_json("[[" + "/* " * 60_000),
    "blanks behind the beginning of a tag": lambda: escape_tags("<" + " " * 60_000, ["passage"]),
    "thoughts without content": lambda: remove_thoughts("<think></think>" * 100_000),
    "blanks in a delimiter": lambda: ExtractionStyle(style="paper").parse(
        '("entity"<|' + " " * 4_000 + ")<|COMPLETE|>"
    ),
    "names with bars": lambda: ExtractionStyle().parse(bars(12_000)),
    "a long name in repetitions": lambda: find_occurrences("1" * 100_000, "1" * 200_000),
    "a long name cited": lambda: cite_names(["a " * 30_000 + "b"], [CitableSource(1, "p", "d", "a " * 60_000)]),
    "a name that ends in no subject": lambda: NameVariants.empty().resolve(
        ["c " * 60_000 + "d"], NamedEntities(EntityKeys.empty(), np.zeros_like, np.zeros_like)
    ),
    "blanks behind a score in braces": lambda: parse_candidate_scores("{1.1" + " " * 60_000, 2),
    "blanks behind a score": lambda: parse_candidate_scores(json.dumps({"1": "1" + " " * 60_000 + "x"}), 2),
    "a reply of empty lines": lambda: parse_names("\n" * 100_000 + "x"),
    "a reply of opening brackets": lambda: parse_names("[" * 100_000),
    "a reply of opening braces": lambda: parse_names("{" * 100_000),
    "citations within a name": lambda: parse_names(json.dumps(["a" + " [1]" * 20_000 + " x"])),
    "blanks behind a quoted name": lambda: parse_names('"a"' + " " * 60_000 + "x"),
    "blanks in an answer": lambda: streamed(["a" + " " * 120_000 + "b"]),
    "blanks in an answer in pieces": lambda: streamed(["a", *["    "] * 100_000, "b"]),
    "a citation without an end in pieces": lambda: streamed(["[", *["1, 1"] * 20_000]),
    "names of tags that do not end": lambda: read_html(Source.from_bytes(b"<a:" * 60_000)),
    "letters of closing tags": lambda: read_html(Source.from_bytes(b"</b " * 40_000)),
    "a long name of a tag in a book": lambda: read_epub(Source.from_bytes(book(1, chapter="<" + "a:" * 30_000))),
    "parameters of an e-mail": lambda: read_eml(
        Source.from_bytes(b"Subject: a\nContent-Type: multipart/x" + b"; a=b" * 200_000 + b"\n\nx")
    ),
    "pieces of the name of an attachment": lambda: read_eml(
        Source.from_bytes(
            b"Content-Disposition: attachment"
            + b"".join(b"; filename*%d=b" % number for number in range(100_000))
            + b"\n\nx"
        )
    ),
    "citations of one sentence": lambda: claimed("[1]" * 4_000),
}


@pytest.mark.parametrize("run", INPUTS.values(), ids=INPUTS.keys())
def test_time_is_in_proportion_to_the_size(run: Callable[[], object]) -> None:
    assert measure_cost(run) < MAX_COST


def test_rows_of_a_table_cost_what_they_hold_whatever_its_columns(tmp_path: Path) -> None:
    file = tmp_path / "wide.csv"
    file.write_text("," * 4_000 + "\n" + "a\n" * 50_000, encoding="utf-8")
    assert measure_cost(lambda: list(read_csv(Source(file, "wide.csv"), DEFAULT_CONTEXT))) < MAX_COST


def test_a_fact_is_searched_once_for_a_value_that_comes_again(tmp_path: Path) -> None:
    file = tmp_path / "facts.jsonl"
    arguments = [{"role": "age", "entity": "42"}] * 20_000
    file.write_text(json.dumps({"relation": "is", "text": "a " * 100_000, "arguments": arguments}), encoding="utf-8")
    assert measure_cost(lambda: list(read_json_facts(Source(file, "facts.jsonl"), DEFAULT_CONTEXT))) < MAX_COST


SPACE = 'xmlns="http://www.idpf.org/2007/opf"'


def book(chapters: int, contents: str = "", chapter: str = "<p>A chapter.</p>") -> bytes:
    """A book of so many equal chapters, and one with ``contents`` that is its table of contents."""
    items = "".join(f'<item id="c{number}" href="{number}.xhtml"/>' for number in range(chapters))
    spine = "".join(f'<itemref idref="c{number}"/>' for number in range(chapters))
    items += '<item id="nav" href="nav.xhtml" properties="nav"/>'
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("META-INF/container.xml", '<container><rootfile full-path="p.opf"/></container>')
        archive.writestr(
            "p.opf",
            f"<package {SPACE}><manifest>{items}</manifest><spine>{spine}</spine></package>",
        )
        archive.writestr("nav.xhtml", f'<html xmlns="http://www.w3.org/1999/xhtml"><body>{contents}</body></html>')
        for number in range(chapters):
            archive.writestr(f"{number}.xhtml", f"<html><body>{chapter}</body></html>")
    return file.getvalue()


def test_the_files_of_a_book_are_listed_a_few_times_whatever_its_chapters(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = []
    namelist = zipfile.ZipFile.namelist

    def counted(archive: zipfile.ZipFile) -> list[str]:
        listed.append(archive)
        return namelist(archive)

    monkeypatch.setattr(zipfile.ZipFile, "namelist", counted)
    assert read_epub(Source.from_bytes(book(50))).text.count("A chapter") == 50
    assert len(listed) < 10


def test_a_file_that_a_book_names_many_times_is_read_once() -> None:
    data = book(1)
    archive = io.BytesIO()
    items = "".join(f'<item id="c{number}" href="0.xhtml"/>' for number in range(50))
    spine = "".join(f'<itemref idref="c{number}"/>' for number in range(50))
    with zipfile.ZipFile(io.BytesIO(data)) as before, zipfile.ZipFile(archive, "w") as after:
        after.writestr("META-INF/container.xml", before.read("META-INF/container.xml"))
        after.writestr("0.xhtml", before.read("0.xhtml"))
        after.writestr("p.opf", f"<package {SPACE}><manifest>{items}</manifest><spine>{spine}</spine></package>")
    assert read_epub(Source.from_bytes(archive.getvalue())).text == "A chapter."


def test_links_within_links_of_a_table_of_contents_are_read_once() -> None:
    nested = '<a href="0.xhtml">x' * 20_000 + "</a>" * 20_000
    data = book(1, nested)
    assert measure_cost(lambda: read_epub(Source.from_bytes(data))) < MAX_COST


def test_the_rows_of_a_table_on_a_slide_are_read_one_after_another() -> None:
    pytest.importorskip("pptx")
    from copy import deepcopy

    from pptx import Presentation
    from pptx.util import Inches

    from polyad_readers.office.pptx import read_pptx

    presentation = Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    table = slide.shapes.add_table(1, 1, Inches(1), Inches(1), Inches(1), Inches(1)).table
    table.cell(0, 0).text = "a"
    row = table._tbl.tr_lst[0]
    table._tbl.extend(deepcopy(row) for _ in range(8_000))
    file = io.BytesIO()
    presentation.save(file)
    assert measure_cost(lambda: read_pptx(Source.from_bytes(file.getvalue()))) < MAX_COST
    assert read_pptx(Source.from_bytes(file.getvalue())).text.split() == ["a"] * 8_001


def test_front_matter_is_short() -> None:
    assert parse_front_matter("+++\n" + "a = 1\n" * 3_000 + "+++\nText.").end == 0
    assert parse_front_matter("+++\na = 1\n+++\nText.").metadata == {"a": 1}


def test_headings_above_passages_cost_time_in_proportion_to_both() -> None:
    sections = tuple(Section(f"Section {number}", 10 * number, 10 * number + 10) for number in range(10_000))
    document = Document("d", "", "x" * 100_000, sections=sections)
    spans = [Span(part.start + 3, part.end) for part in sections]
    results: list[str] = []
    assert measure_cost(lambda: results.extend(find_headings(document, spans))) < MAX_COST
    assert results == [part.name for part in sections]


def test_names_that_many_subjects_end_like_are_looked_up_once_for_each_ending() -> None:
    keys = EntityKeys.empty().append([f"{number} j r" for number in range(40_000)])
    rows = np.arange(len(keys))
    entities = NamedEntities(keys, lambda some: some % 2 == 0, lambda some: some >= 0)
    names = NameVariants.empty()
    assert measure_cost(lambda: names.with_changes(entities, rows[::2], rows)) < 3 * MAX_COST
