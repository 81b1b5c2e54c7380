"""Everything of polyad that reads what others wrote, each as a function of one text: see ``growth.py``."""

# ruff: noqa: RUF001  lists of fragments and of targets read best as they stand; what looks alike is meant

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from polyad.answering.citations import CitableSource, CitationFilter, Claims
from polyad.answering.layout import TokenBudget, escape_marks, format_line, lay_out_passages
from polyad.answering.name_lists import cite_names, parse_names
from polyad.config import ReadSettings
from polyad.embedders.hashing import HashingEmbedder
from polyad.indexing.documents import build_title, find_sections, validate_document
from polyad.indexing.facts.grounding import Grounder
from polyad.indexing.facts.style import ExtractionStyle
from polyad.indexing.mentions import gliner
from polyad.indexing.mentions.capitalised import find_names
from polyad.indexing.mentions.from_file import FileMentionExtractor
from polyad.indexing.mentions.language_model import _parse_entities
from polyad.indexing.mentions.rules import (
    RuleMentionExtractor,
    find_dates,
    find_phrases,
    find_quantities,
    find_quoted_titles,
)
from polyad.indexing.segmentation import SegmentationSettings, build_word_vectors
from polyad.indexing.semantic_units import SemanticUnitBuilder, count_unit_words
from polyad.indexing.split import SentenceSplitter
from polyad.indexing.subjects import find_subjects
from polyad.language_models.openai.reply import ReceivedReply, ThoughtlessStream
from polyad.model import Document, Mention, Passage, ScoredPassage, Span, Usage
from polyad.openai_api.address import Secrets
from polyad.openai_api.endpoint import extract_error_message
from polyad.protocols.components import Reply
from polyad.readers.folder.tuples import read_csv_facts, read_json_facts
from polyad.readers.format import Context, Source
from polyad.readers.records.records import read_csv, read_json_lines
from polyad.readers.text.metadata import split_keywords
from polyad.readers.text.plain_text import decode, read_source_code, read_text, to_single_line
from polyad.readers.text.titles import clean_stated_title, is_generic_name
from polyad.replies.answer_tags import AnswerFilter, extract_tagged_answer
from polyad.replies.candidate_scores import parse_candidate_scores, parse_verdict
from polyad.replies.facts import clean_value
from polyad.replies.loose_json import find_first_json, find_list, find_strings, repair_json
from polyad.replies.thoughts import (
    ThoughtFilter,
    extract_leading_thoughts,
    extract_thoughts,
    remove_leading_thoughts,
    remove_thoughts,
)
from polyad.retrieval.hits import TextFingerprint
from polyad.retrieval.prompting import _locate_name, _parse_names
from polyad.retrieval.question import _remove_mentions
from polyad.snapshot.columns import EntityKeys, LiveRows, StringColumn
from polyad.snapshot.name_variants import NamedEntities, NameVariants
from polyad.snapshot.term_index import PassageTerms, build_postings
from polyad.text.keys import EntityNameMatcher, build_entity_key
from polyad.text.literals import infer_type, parse_condition, parse_date, parse_number
from polyad.text.locate import find_name_spans, find_occurrences
from polyad.text.prompts import escape_tags, join_lines, quote_passage
from polyad.text.sentences import begins_paragraph, find_paragraphs, split_sentences
from polyad.text.words import (
    count_tokens,
    extract_codes,
    extract_query_terms,
    extract_terms,
    find_words,
    normalize_words,
    sanitize,
    shorten_at_word,
    split_ideographs,
)
from polyad_readers.lines import paragraphs as pdf_paragraphs
from polyad_readers.lines.lines import Line, normalize_text
from polyad_readers.markup.front_matter import parse_front_matter
from polyad_readers.markup.markdown import read_markdown
from polyad_readers.markup.rst import read_rst
from polyad_readers.office.docx.reader import read_docx
from polyad_readers.office.odt.reader import read_odt
from polyad_readers.office.pptx import read_pptx
from polyad_readers.office.xlsx import read_xlsx
from polyad_readers.pdf import headings as pdf_headings
from polyad_readers.pdf.furniture import remove_furniture
from polyad_readers.web.eml import read_eml
from polyad_readers.web.epub import read_epub
from polyad_readers.web.html import parse_markup, read_html
from tests.attacks.growth import Target

_REPLY = 1 << 16
"""Characters of a model's reply, which is cut at the tokens asked for: 16,000 of them, as long as replies can be."""

_PASSAGE = 1 << 14
"""Characters of a passage: of 512 tokens, blanks apart, but white space counts for none."""

_QUESTION = 1 << 13
"""Characters of a question; longer ones are refused."""


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


# Formats


def _file(ending: str) -> Callable[[str], Path]:
    """Writes a text into one and the same file."""

    def write(text: str) -> Path:
        path = _folder() / f"growth{ending}"
        path.write_bytes(_bytes(text))
        return path

    return write


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="growth-"))


def _records(read: Callable[[Source, Context], Any]) -> Callable[[Path], object]:
    return lambda path: list(read(Source(path, "file"), Context(ReadSettings(max_bytes=1 << 30))))


def _from_bytes(read: Callable[[Source], object]) -> Callable[[bytes], object]:
    return lambda data: read(Source.from_bytes(data))


def _zipped(parts: dict[str, str]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, _bytes(text))
    return file.getvalue()


def _headed(text: str) -> bytes:
    return _bytes("Subject: a\nContent-Type: text/plain; charset=utf-8\n\n" + text)


def _parted(text: str) -> bytes:
    head = 'Subject: a\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="b"\n\n--b\n'
    return _bytes(head + "Content-Type: text/plain\n\n" + text + "\n--b--\n")


_WORD_SPACE = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def _docx(body: str) -> bytes:
    return _zipped(
        {
            "[Content_Types].xml": f'<Types xmlns="{_TYPES}"/>',
            "_rels/.rels": f'<Relationships xmlns="{_RELATIONS}"><Relationship Id="r1" '
            f'Type="{_OFFICE}/officeDocument" Target="word/document.xml"/></Relationships>',
            "word/document.xml": f"<w:document {_WORD_SPACE}><w:body>{body}</w:body></w:document>",
        }
    )


_RUN = "<w:r><w:t>a b. </w:t></w:r>"
_CELL = f"<w:tc><w:p>{_RUN}</w:p></w:tc>"
_DOCX = (
    f"<w:p>{_RUN}</w:p>",
    f"<w:p>{_RUN * 30}</w:p>",
    "<w:p/>",
    '<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>One</w:t></w:r></w:p>',
    '<w:p><w:pPr><w:pStyle w:val="Title"/></w:pPr><w:r><w:t>One</w:t></w:r></w:p>',
    '<w:p><w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr></w:pPr><w:r><w:t>x</w:t></w:r></w:p>',
    "<w:p><w:r><w:rPr><w:b/></w:rPr><w:t>b</w:t></w:r><w:r><w:rPr><w:i/></w:rPr><w:t>i</w:t><w:br/></w:r></w:p>",
    f"<w:tbl><w:tr>{_CELL}{_CELL}</w:tr></w:tbl>",
    f"<w:tbl><w:tr>{_CELL * 20}</w:tr></w:tbl>",
    '<w:p><w:bookmarkStart w:id="1" w:name="b"/><w:hyperlink w:anchor="b"><w:r><w:t>l</w:t></w:r></w:hyperlink></w:p>',
    '<w:p><w:r><w:fldChar w:fldCharType="begin"/><w:instrText> PAGE </w:instrText></w:r></w:p>',
    '<w:p><w:ins w:id="1"><w:r><w:t>n</w:t></w:r></w:ins><w:del w:id="2"><w:r><w:t>o</w:t></w:r></w:del></w:p>',
    '<w:p><w:r><w:fldChar w:fldCharType="begin"/><w:instrText> TOC </w:instrText></w:r></w:p>',
    '<w:p><w:r><w:t>n</w:t><w:fldChar w:fldCharType="end"/></w:r></w:p>',
    f'<w:tbl><w:tr><w:tc><w:tcPr><w:vMerge/><w:gridSpan w:val="900"/></w:tcPr><w:p>{_RUN}</w:p></w:tc></w:tr></w:tbl>',
    "<w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr><w:r><w:t>n</w:t></w:r></w:p>",
    '<w:p><w:r><w:footnoteReference w:id="1"/></w:r></w:p>',
)


@cache
def _empty_workbook() -> dict[str, str]:
    from openpyxl import Workbook

    file = io.BytesIO()
    Workbook().save(file)
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def _xlsx(rows: str) -> bytes:
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    sheet = f'<worksheet xmlns="{space}"><sheetData>{rows}</sheetData></worksheet>'
    return _zipped({**_empty_workbook(), "xl/worksheets/sheet1.xml": sheet})


_TEXT_CELL = '<c t="inlineStr"><is><t>a b</t></is></c>'
_XLSX = (
    f"<row>{_TEXT_CELL}</row>",
    f"<row>{_TEXT_CELL * 3}</row>",
    f"<row>{_TEXT_CELL * 50}</row>",
    "<row><c><v>1.5</v></c><c><v>2</v></c></row>",
    '<row><c r="ZZ1"><v>1</v></c></row>',
    '<row r="100"/>',
    "<row/>",
    '<row><c t="b"><v>1</v></c><c t="e"><v>#N/A</v></c><c t="str"><f>A1</f><v>x</v></c></row>',
)


@cache
def _one_slide() -> dict[str, str | bytes]:
    from pptx import Presentation

    presentation = Presentation()
    presentation.slides.add_slide(presentation.slide_layouts[5])
    file = io.BytesIO()
    presentation.save(file)
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _pptx(shapes: str) -> bytes:
    parts = dict(_one_slide())
    slide = bytes(parts["ppt/slides/slide1.xml"]).decode()  # type: ignore[arg-type]
    parts["ppt/slides/slide1.xml"] = slide.replace("</p:spTree>", f"{shapes}</p:spTree>")
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()


_NAMED = '<p:nvSpPr><p:cNvPr id="9" name="n"/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr/>'
_PARAGRAPH = "<a:p><a:r><a:t>a b. </a:t></a:r></a:p>"
_PPTX = (
    f"<p:sp>{_NAMED}<p:txBody><a:bodyPr/>{_PARAGRAPH}</p:txBody></p:sp>",
    f"<p:sp>{_NAMED}<p:txBody><a:bodyPr/>{_PARAGRAPH * 40}</p:txBody></p:sp>",
    f"<p:sp>{_NAMED}</p:sp>",
    '<p:grpSp><p:nvGrpSpPr><p:cNvPr id="8" name="g"/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/></p:grpSp>',
)


_ROW = "<a:tr><a:tc><a:txBody><a:bodyPr/><a:p/></a:txBody></a:tc></a:tr>"
_TABLE = (
    '<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id="7" name="t"/><p:cNvGraphicFramePr/><p:nvPr/></p:nvGraphicFramePr>'
    '<p:xfrm/><a:graphic xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><a:graphicData '
    'uri="http://schemas.openxmlformats.org/drawingml/2006/table"><a:tbl>{}</a:tbl></a:graphicData></a:graphic>'
    "</p:graphicFrame>"
)


def _odt(body: str) -> bytes:
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{space}:1.0"'
        for name, space in (("office", "office"), ("text", "text"), ("table", "table"), ("style", "style"))
    )
    body = f"<office:body><office:text>{body}</office:text></office:body>"
    return _zipped({"content.xml": f"<office:document-content {spaces}>{body}</office:document-content>"})


_ODT = (
    "<text:p>a b. </text:p>",
    "<text:p/>",
    '<text:h text:outline-level="2">One</text:h>',
    '<text:p>a<text:s text:c="9"/>b<text:tab/>c<text:line-break/></text:p>',
    "<text:list><text:list-item><text:p>one</text:p></text:list-item></text:list>",
    "<table:table><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell></table:table-row></table:table>",
    "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>n</text:p></text:note-body></text:note>",
    '<text:p text:style-name="Title">T</text:p>',
)


def _epub(texts: list[str]) -> bytes:
    """A book with a chapter for each text."""
    items = "".join(f'<item id="c{number}" href="{number}.xhtml"/>' for number in range(len(texts)))
    spine = "".join(f'<itemref idref="c{number}"/>' for number in range(len(texts)))
    package = (
        f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}</manifest><spine>{spine}</spine></package>'
    )
    return _zipped(
        {
            "META-INF/container.xml": '<container><rootfile full-path="p.opf"/></container>',
            "p.opf": package,
            **{f"{number}.xhtml": f"<html><body>{text}</body></html>" for number, text in enumerate(texts)},
        }
    )


_CHAPTER = "<h1>One</h1><p>a b.</p>\f"
_HTML = (
    *("<p>", "</p>", "<div>", "</div>", "<li>", "<ul>", "<ol>", "</ul>", "<table>", "<tr>", "<td>", "<th>", "</table>"),
    *(
        "<td colspan=2>",
        "<h1>",
        "</h1>",
        "<h2>",
        "<pre>",
        "</pre>",
        "<br>",
        "<a>",
        "<a name=x>",
        "<b>",
        "<i>",
        "<font>",
    ),
    *("<!--", "-->", "<script>", "</script>", "<style>", "<title>", "<main>", "</main>", "<span class=a>", "<dl><dt>"),
    *("<dd>", "<select>", "<option>", "<svg>", "<math>", "<form>", "<button>", "<nobr>", "<template>", "<![CDATA["),
    *('<div class="note">', "<article>", "<nav>", "<blockquote>", "<img alt=a>", "<p hidden>", "&lt", "&#x41;", "a=b "),
    *('<meta name="a" content="b">', '<a href="#a">¶</a>', "<caption>", "<frameset>", "<textarea>", "<input>", "</br>"),
)
_MARKDOWN = (
    *("# A\n", "## A\n", "A\n===\n", "A\n---\n", "- [a](#a)\n", "[TOC]\n", "![badge](shields.io)", "[![a](b)](c)"),
    *("{#a}", "{: #a}", '<a name="a"></a>', "> [!NOTE]\n", ":::note\n", ":::\n", "!!! note ", "<h2>a</h2>\n", "<p>\n"),
    *("```\n", "~~~\n", "<!-- ", " -->", "[¶](#a)", "**", "__", "_a", "1. [a](#a)\n", "[a]: b\n", "---\n", "a: b\n"),
)
_RST = (
    *("A\n=\n", "====\n", "----\n", ".. note::\n", ".. a\n", ".. _a: b\n", ":a: b\n", ":a:`b`", "`a <b>`_", "`a`_"),
    *("   a\n", ".. |a| image:: b\n", "::\n", ".. toctree::\n", ".. [1] a\n", "|a|", ".. a::", ":param a: b\n"),
)
_JSON = (
    *('{"', '":', '": "', '",', '"}', '{"text": "a"}', "[{", "}]", "[[", "]]", '["', '"]', "null", "true", "1e9", "-1"),
    *('{"a": 1}\n', '"text": "', '"entities": [', '"facts": [', '\\"', "\\n", "\\ud800", "//", "/*", "*/", "：", "，"),
    *("{'a': '", "'", "',", "'}", '{"number": 1, "score": 0.5}', '{"scores": [', "0.5, ", "```json\n", '"a",\n', ",]"),
    *('"a | b | c | 5", ', '{"text": "a b", "score": 5, "entities": ["a"]}, ', "NaN", "None", "a|b", " | "),
)
_CSV = ('"', '""', ",", '","', "a,b\n", '"a"\n', ";", "\t", "|", "\r", "text,_id\n", '"\n', '\n"')
_PAPER = (
    *('("hyper-relation"<|>"', '("entity"<|>"', '"<|>"', '"<|>', "<|>", "##", "<|COMPLETE|>", ")##\n", ")\n", '("'),
    *('("entity"<|>"a"<|>"b"<|>"c"<|>5)', '("hyper-relation"<|>"a b"<|>5)##', "hyper-relation", "entity", "< | >", "<"),
    *("1) ", "- ", "**", "<|", "|>", "<|#|>", "COMPLETED"),
)
_THOUGHTS = (
    *("<think>", "</think>", "<thinking>", "[THINK]", "[/THINK]", "<|channel>", "<channel|>", "<answer>", "</answer>"),
    *("<|channel|>analysis<|message|>", "<|channel|>final<|message|>", "<th", "</", "<|", "{", "[", "```", '("', "\n"),
)
_SCORES = (
    *("1. ", "2) ", "(0.5)", "(Score: 0.7)", "{{2. ", ")}}", "Score: 0.3, ", "0.3, ", "7/10 ", "50% ", ": 0.1\n", "1/"),
    *("number: 1, score: 0.5", "sufficient: ", "yes ", "No", "{1", "{1.", "1:", "- 0.5", "= .5", "+1e9", "1,5"),
)
_CITATIONS = (
    *(
        "[1]",
        " [1]",
        "[1, 2]",
        "[1-3]",
        "[",
        "【1†a】",
        "［1",
        "[citation 1]",
        "[1,",
        "[^1]",
        "1, ",
        ". ",
        ".\n",
        "!' ",
    ),
    *("[1 ", " - ", "–", "Dr.", "e.g.", "。", "[9]", " [9] "),
)
_NAME_REPLIES = (
    *('["a", "b"]', '["', '", "', '"]', '"a", ', "[", "]", "- a\n", "1. a\n", "The names:\n", "[1]", '"', "\\", " ,"),
    *(
        "not known",
        "unknown",
        "no answer ",
        "I don't know ",
        "the passages ",
        "cannot be ",
        " [1, 2]",
        "```",
        "answers ",
    ),
)
_LAYOUT = (
    "\f",
    "\n",
    "a b\n",
    "Chapter 1\n",
    "1 ",
    "Page 7\n\f",
    "# A\n",
    "\tx ",
    "= x\n",
    "a-\n",
    "b c.\n",
    "Index\n",
)
_CONTENTS = (
    "Contents\n",
    "a . . . . . 7\n",
    "a..... 12\n",
    "Abc, 1, 2-3\n",
    "xii\n",
    "A\n",
    "[a]\n",
    "• a\n",
    "a 12\n",
)
_VALUES_GIVEN = ("1", ",000", "-", ".5", "2020-01-", "T10:", " mg", "=", "<", ">=")
_CLAIMS = (
    *(
        "Ada is a ",
        "Ada (b) is the ",
        "Ada, known as B, ",
        'Ada "B" C was a ',
        "(born C)",
        " is one of",
        "J. R. ",
        ", a ",
    ),
    *("((", "))", "(a)", "née ", "or "),
)
_VALUES = (
    *(
        "12 May ",
        "May 12, ",
        "1901",
        "-",
        "12th",
        "1,000 km",
        "$5 million ",
        "5 %",
        "'a",
        "“a",
        '"a',
        "2001-01-01",
        "/",
    ),
    *("January ", "BC ", "c. ", "1990s", "5 kg ", "'", "Duke of ", "University of ", "Ministry of Health and ", "St. "),
    *("-language", "O'", "d'", "van der ", "MacA", "X.", "A.B.", "& ", "Ada's ", "Co. ", ", Jr. "),
)


# Pages


def _pages(text: str) -> list[list[Line]]:
    """Lines as a PDF might have them: their beginnings decide how they are set, and a form feed ends the page."""
    return [
        [_set(line.strip("\r\x00") or "x", place) for place, line in enumerate(page.split("\n")) if line.strip()]
        for page in text.split("\f")
    ]


def _set(text: str, place: int) -> Line:
    size = 18.0 if text.startswith("#") else 10.0
    left = 90.0 if text.startswith(("\t", " ")) else 72.0
    gap = 30 if text.startswith(("1", "•")) else 12
    return Line(
        text.strip() or "x",
        left,
        left + 5 * len(text),
        800.0 - gap * place,
        size,
        90 if text.startswith("|") else 0,
        text.startswith(("#", "*")),
        text.startswith("="),
    )


def _headings_of(pages: list[list[Line]]) -> object:
    laid = pdf_paragraphs.join_lines(pages)
    return pdf_headings.find_headings_by_type(pages, laid, has_title=False), pdf_headings.find_largest_lines(pages)


def _outlined(pages: list[list[Line]]) -> object:
    """With every third line as an entry of the outline."""
    entries = [
        pdf_headings.OutlineEntry(place % 3, line.text, number, line.baseline)
        for number, page in enumerate(pages)
        for place, line in enumerate(page)
        if place % 3 == 0
    ]
    return pdf_headings.locate_outline_entries(entries, pages, pdf_paragraphs.join_lines(pages))


# Indexing


def _cut_by_headings(text: str) -> object:
    """Passages and titles of what Markdown makes of a text."""
    content = read_markdown(Source.from_bytes(_bytes(text)))
    document = Document("d", content.title, content.text, sections=content.sections)
    spans = SentenceSplitter().passages(document.text, [section.start for section in document.sections])
    results = list(find_sections(document, spans))
    titles = [build_title(item, span.end - span.start) for item, span in zip(results, spans, strict=True)]
    return titles, [begins_paragraph(text, s.start) for s in spans]


class _Analysed(NamedTuple):
    passage: Passage
    sentences: list[Span]
    mentions: list[tuple[str, Mention]]


def _analysed(text: str) -> _Analysed:
    mentions = RuleMentionExtractor().extract([text])[0]
    keyed = [(key, mention) for mention in mentions if (key := build_entity_key(mention.name))]
    return _Analysed(Passage("p", "d", "", text, 0, len(text)), split_sentences(text, "en"), keyed)


def _units(text: str) -> object:
    splitter = SentenceSplitter()
    passages = [
        Passage(f"d#{number}", "d", "A title", span.of(text), span.start, span.end)
        for number, span in enumerate(splitter.passages(text))
    ]
    builder = SemanticUnitBuilder(splitter, RuleMentionExtractor(), HashingEmbedder(16), SegmentationSettings())
    return builder.build(passages)


@cache
def _load_extractor() -> FileMentionExtractor:
    listed_names = ["Ada", "Ada Lovelace", "a", "a b", "東京", "- -", '"', "(", "1", "of the"]
    path = _folder() / "names.jsonl"
    path.write_text(json.dumps({"entities": listed_names}), encoding="utf-8")
    return FileMentionExtractor(path)


_VOCABULARY = EntityNameMatcher(
    {
        "ada",
        "ada lovelace",
        "a b",
        "of a",
        "1000",
        "a b a b a b a b a b a b",
        "東京",
        "j r",
        "the the a",
        "b",
    }.intersection
)


def _subject_names(text: str) -> object:
    keys = sorted(set(filter(None, map(build_entity_key, text.split("\n")))))
    rows = np.arange(len(keys))
    entity_keys = EntityKeys.empty().append(keys)
    entities = NamedEntities(entity_keys, lambda some: some % 2 == 0, lambda some: some >= 0)
    return NameVariants.empty().with_changes(entities, rows[::2], rows)


def _halves(text: str) -> tuple[str, str]:
    """A text, and the beginning of it as what is looked for."""
    return text[: max(1, len(text) // 2)], text


def _few(text: str) -> tuple[str, str]:
    return text[:200], text


def _grounded(values: tuple[str, str]) -> object:
    name, text = values
    grounder = Grounder("A title", text, [Span(start, start + 40) for start in range(0, len(text), 40)])
    return grounder.is_grounded(name), grounder.find_span(name)


# Replies


def _in_pieces(text: str) -> list[str]:
    """As a stream brings a reply: a token at a time."""
    return [text[start : start + 4] for start in range(0, len(text), 4)]


def _thoughts_of(pieces: list[str]) -> object:
    thoughts = ThoughtFilter()
    return [*map(thoughts.feed, pieces), thoughts.finish()]


def _answer_of(pieces: list[str]) -> object:
    answer = AnswerFilter()
    return [*map(answer.feed, pieces), answer.finish()]


def _citations_of(pieces: list[str]) -> object:
    citations = CitationFilter(frozenset({1, 2, 3}))
    outputs = [*map(citations.feed, pieces), citations.finish()]
    claims = Claims(citations.text)
    return outputs, [claims.find_sentence(cited.bracket) for cited in citations.cited]


def _received(pieces: list[str]) -> object:
    """What a server streams, shown as it comes."""
    received, thoughtless_stream = (
        ReceivedReply(Secrets(["a b a b a b", "secret-key"])),
        ThoughtlessStream(lambda text: None),
    )
    for piece in pieces:
        thoughtless_stream.feed(received.add({"choices": [{"delta": {"content": piece}}]}))
    thoughtless_stream.feed(received.finish())
    thoughtless_stream.finish()
    return received.get_text()


def _whole(text: str) -> object:
    received = ReceivedReply(Secrets(["a b a b a b", "secret-key"]))
    received.add_whole({"choices": [{"message": {"content": text, "reasoning": text}}]})
    return received.get_text()


def _sources(text: str) -> object:
    half = len(text) // 2
    lines = text[:half].split("\n")
    return cite_names([lines[0], *lines[-3:]], [CitableSource(1, "p", "d", text[half:])])


def _laid_out(text: str) -> object:
    passage = Passage("p", "d", text[:1000], text, 0, len(text))
    return lay_out_passages([ScoredPassage(passage, 1.0)] * 3, TokenBudget("", 200, count_tokens))


# Search


@cache
def _words_of_passages() -> PassageTerms:
    texts = [f"Ada {number} met a b of the 東京 {number}" for number in range(500)]
    postings = build_postings(texts, 0)
    nothing, there = np.empty(0, dtype=np.int64), LiveRows.from_mask(np.ones(len(texts), dtype=bool))
    return PassageTerms.empty().with_changes(there, nothing, [postings])


def _searched(question: str) -> object:
    return _words_of_passages().search(question, 10, StringColumn.from_strings(map(str, range(500))))


def _linked(question: str) -> object:
    mentions = [*_VOCABULARY.find(question), *RuleMentionExtractor().extract([question])[0]]
    return [build_entity_key(mention.name) for mention in mentions], _remove_mentions(question, mentions)


def _described(text: str) -> object:
    tags = tuple(text.split("\n"))
    return validate_document(
        Document("d", text, text, metadata={"a": text, "b": tags, **dict.fromkeys(tags[:200], text)})
    )


def _all(*functions: Callable[[str], object]) -> Callable[[str], object]:
    return lambda text: [function(text) for function in functions]


TARGETS = (
    # Readers
    Target("read txt", read_text, _bytes, ("Title: a\n", "Author: b\n", " c\n")),
    Target("read bytes", decode, lambda text: text.encode("utf-16-le", "replace")[1:], most=1 << 16),
    Target("read latin", decode, lambda text: text.encode("cp1252", "replace") + b"\xe4\xf6", most=1 << 16),
    Target("read md", _from_bytes(read_markdown), _bytes, _MARKDOWN),
    Target(
        "read front matter",
        parse_front_matter,
        lambda text: f"---\n{text}\n---\nx",
        ("a: b\n", "- a\n", "? ", "{a", "&a "),
    ),
    Target(
        "read toml matter",
        parse_front_matter,
        lambda text: f"+++\n{text}\n+++\nx",
        ("a = 1\n", "[a]\n", '"""', "[[a.b]]\n"),
    ),
    Target("read html", _from_bytes(read_html), _bytes, _HTML),
    Target("read markup", parse_markup, str, _HTML),
    Target("read rst", _from_bytes(read_rst), _bytes, _RST),
    Target("read code", _from_bytes(read_source_code), _bytes, ("def f():\n", "    x = 1\n", '"""', "/*", "*/", "// ")),
    Target(
        "read eml",
        _from_bytes(read_eml),
        _bytes,
        ("Subject: ", "To: a@b, ", "\n\n", "=?utf-8?q?a?=", "=?utf-8?b?", "\n ", "From: "),
    ),
    Target(
        "read eml headers",
        _from_bytes(read_eml),
        lambda text: _bytes(f"Subject: {text}\n\nx"),
        ("=?utf-8?q?a?=", "\n ", "\nTo: a, "),
    ),
    Target(
        "read eml parameters",
        _from_bytes(read_eml),
        lambda text: _bytes("Subject: a\nContent-Type: text/plain; " + text.replace("\n", "") + "\n\nx"),
        ("; ", '"', "a*0=b;", "=", "a*", "=b;", "\\", "filename*", "name=a;"),
    ),
    Target("read eml text", _from_bytes(read_eml), _headed, ("> ", "--b\n", "<p>")),
    Target(
        "read eml parts",
        _from_bytes(read_eml),
        _parted,
        ("--b\n", "--b\n\nx\n", "Content-Type: multipart/mixed; boundary=c\n\n--c\n"),
    ),
    Target("read jsonl", _records(read_json_lines), _file(".jsonl"), _JSON, most=1 << 16),
    Target("read csv", _records(read_csv), _file(".csv"), _CSV, most=1 << 16),
    Target("read jsonl facts", _records(read_json_facts), _file(".jsonl"), _JSON, most=1 << 16),
    Target("read csv facts", _records(read_csv_facts), _file(".csv"), _CSV, most=1 << 16),
    Target(
        "read fact",
        _records(read_json_facts),
        lambda text: _file(".jsonl")(
            json.dumps({"relation": text, "text": text, "arguments": [{"role": text, "entity": text}] * 3})
        ),
        ("aB", "_", "AB"),
        most=1 << 16,
    ),
    Target("read docx", _from_bytes(read_docx), _docx, _DOCX, only=True),
    Target("read xlsx", _from_bytes(read_xlsx), _xlsx, _XLSX, only=True),
    Target("read pptx", _from_bytes(read_pptx), _pptx, _PPTX, only=True),
    Target("read pptx table", _from_bytes(read_pptx), lambda rows: _pptx(_TABLE.format(rows)), (_ROW,), only=True),
    Target("read odt", _from_bytes(read_odt), _odt, _ODT, only=True),
    Target("read epub", _from_bytes(read_epub), lambda text: _epub([text]), (*_HTML, "<a/>", "<a ", "/>", "<a:b ")),
    Target(
        "read epub chapters",
        _from_bytes(read_epub),
        lambda text: _epub(text.split("\f")),
        (_CHAPTER, "\f", "<p>a\f"),
        only=True,
    ),
    Target("pdf text", normalize_text, str, ("\ufb01", "\xa8a", "\x02", "\ufffe")),
    Target("pdf furniture", remove_furniture, _pages, _LAYOUT + _CONTENTS),
    Target("pdf paragraphs", pdf_paragraphs.join_lines, _pages, _LAYOUT),
    Target("pdf headings", _headings_of, _pages, _LAYOUT),
    Target("pdf outline", _outlined, _pages, _LAYOUT),
    Target(
        "properties",
        _all(to_single_line, split_keywords, clean_stated_title, is_generic_name),
        str,
        ("Microsoft Word - ", ".doc", ";"),
    ),
    # Texts
    Target(
        "sentences en",
        lambda text: split_sentences(text, "en"),
        str,
        ("fig. 1", "e.g. ", ". A", "! ", "“A b.” ", "No. 5"),
    ),
    Target("sentences zh", lambda text: split_sentences(text, "zh"), str, ("「", "」", "。", "，", "東京", "；")),
    Target("sentences de", lambda text: split_sentences(text, "de"), str, ("„", "“", "z.B. ", "1. Mai ")),
    Target("passages", lambda text: SentenceSplitter().passages(text), str, (". A b", "a b c d e f ", ";")),
    Target("passages of sections", _cut_by_headings, str, ("# A\n", "## B\n", "a b.\n", "\n\n")),
    Target("paragraphs", find_paragraphs, str, ("• a\n", "- a\n", "a\n", "A B:\n", "    a | b\n", "1.1.1 a\n", "> > ")),
    Target("subjects", lambda value: find_subjects(*value), _analysed, _CLAIMS, most=_PASSAGE),
    Target("semantic units", _units, str, _CLAIMS, most=1 << 16),
    Target(
        "word counts", _all(count_unit_words, count_tokens, find_words, normalize_words, TextFingerprint.from_text), str
    ),
    Target("word vectors", lambda text: build_word_vectors(text.split("\n")), str, ("a\n", "b "), most=_PASSAGE),
    Target("metadata", _described, str, ("a\n",)),
    Target(
        "outside", _all(sanitize, join_lines, format_line, escape_marks, quote_passage), str, ("</passage>", "< / ")
    ),
    Target("defused", lambda text: escape_tags(text, ("passage", "think")), str, ("<", "/", " ", "passage", "<think")),
    Target("shorten_at_word", lambda text: [shorten_at_word(text, limit) for limit in (10, 5000)], str),
    # Names
    Target("mentions", lambda text: RuleMentionExtractor().extract([text]), str, _VALUES),
    Target("names", lambda text: list(find_names(text)), str, _VALUES),
    Target("dates", lambda text: list(find_dates(text)), str, _VALUES),
    Target("quantities", lambda text: list(find_quantities(text)), str, _VALUES),
    Target("works", lambda text: list(find_quoted_titles(text)), str, _VALUES),
    Target("phrases", lambda text: find_phrases(text, 5), str, ("serum ", "of ", "-a", "’a")),
    Target("given names", lambda text: _load_extractor().extract([text]), str),
    Target("gliner windows", lambda text: list(gliner._split_into_windows(text, 100, 300)), str, ("a_b", "-a", "。")),
    Target(
        "literals", _all(infer_type, parse_number, parse_date), str, ("1", ",000", "-", ".5", "2020-01-", "T10:", " mg")
    ),
    Target(
        "conditions",
        lambda text: parse_condition(f"dose>={text}"),
        str,
        ("=", "<", ">=", "1", " mg", "2020-"),
        most=_QUESTION,
    ),
    Target(
        "keys", build_entity_key.__wrapped__, str, ("(a) ", " (", ") ", "'s", ",000", "1.5", "j r r ", "the ", "a ")
    ),
    Target("vocabulary", _VOCABULARY.find, str, ("ada ", "j. ", "the ", "'s "), most=_QUESTION),
    Target("occurrences", lambda value: [find_occurrences(*value), find_name_spans(*value)], _halves, most=1 << 16),
    Target("occurrences of few", lambda value: [find_occurrences(*value), find_name_spans(*value)], _few, most=1 << 16),
    Target("grounding", _grounded, _few, most=_PASSAGE),
    Target("grounding of long", _grounded, _halves, most=_PASSAGE),
    Target("subject names", _subject_names, str, ("a\n", "a b\n", "ada lovelace\n", "j r\n", " b c\n"), most=1 << 16),
    # Replies
    Target("repair json", repair_json, str, _JSON, most=_REPLY),
    Target("first json", find_first_json, str, _JSON, most=_REPLY),
    Target(
        "listed json",
        _all(lambda text: find_list(text, "a"), lambda text: find_strings(text, "a")),
        str,
        _JSON,
        most=_REPLY,
    ),
    Target(
        "thoughts",
        _all(remove_thoughts, remove_leading_thoughts, extract_thoughts, extract_leading_thoughts),
        str,
        _THOUGHTS,
        most=_REPLY,
    ),
    Target("thoughts in pieces", _thoughts_of, _in_pieces, _THOUGHTS, most=_REPLY),
    Target("compact facts", ExtractionStyle().parse, str, _JSON, most=_REPLY),
    Target("paper facts", ExtractionStyle(style="paper").parse, str, _PAPER, most=_REPLY),
    Target("fields of facts", clean_value, str, most=_REPLY),
    Target("mentions of a model", lambda text: _parse_entities(Reply(text, Usage())), str, _JSON, most=_REPLY),
    Target("names of a question", _parse_names, str, _JSON, most=_REPLY),
    Target("place of a name", lambda value: _locate_name(*value), _halves, most=_QUESTION),
    Target(
        "scores",
        lambda text: [parse_candidate_scores(text, 3), parse_candidate_scores(text, 500)],
        str,
        _SCORES + _JSON,
        most=_REPLY,
    ),
    Target("verdict", parse_verdict, str, _SCORES + _JSON, most=_REPLY),
    Target("received in pieces", _received, _in_pieces, _THOUGHTS, most=_REPLY),
    Target("received", _whole, str, _THOUGHTS, most=_REPLY),
    Target(
        "error of a server",
        lambda text: extract_error_message({"error": {"message": text}}, Secrets(["a b a b"])),
        str,
        most=_REPLY,
    ),
    Target("answer", extract_tagged_answer, str, _THOUGHTS, most=_REPLY),
    Target("answer in pieces", _answer_of, _in_pieces, _THOUGHTS, most=_REPLY),
    Target("citations", lambda text: _citations_of([text]), str, _CITATIONS, most=_REPLY),
    Target("citations in pieces", _citations_of, _in_pieces, _CITATIONS, most=_REPLY),
    Target("names in an answer", parse_names, str, _NAME_REPLIES, most=_REPLY),
    Target("names cited", _sources, str, most=_REPLY),
    Target("passages in a prompt", _laid_out, str, (". ", "。", "[1]", "</passage>"), most=1 << 16),
    # Questions
    Target(
        "query expression",
        _all(extract_terms, extract_codes, extract_query_terms, split_ideographs),
        str,
        ("p-17", "a.b", "-1", "東京"),
    ),
    Target("full-text search", _searched, str, ("p-17", "a.b", "-1", "東京"), most=_QUESTION),
    Target("names in a question", _linked, str, _VALUES, most=_QUESTION),
    Target("hashing", lambda text: HashingEmbedder(16).encode([text], "query"), str),
)
