import re
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.errors import ReadError
from polyad.readers.format import Source
from polyad.text.removals import NAVIGATION, PICTURES
from polyad_readers.web.html import parse_markup, read_html


def text(markup: str) -> str:
    return parse_markup(markup).text


def sections(markup: str) -> Mapping[str, str]:
    page = parse_markup(markup)
    return {section.name: page.text[section.start : section.end].strip() for section in page.sections}


# What is no content


SURROUNDINGS = [
    '<nav><a href="/">Away</a></nav>',
    '<div role="navigation"><h3>Away</h3></div>',
    '<div class="sphinxsidebar"><h3>Away</h3></div>',
    '<div class="related">Away</div>',
    '<div class="navheader"><table><tr><th>Away</th></tr></table></div>',
    '<ul class="breadcrumb"><li>Away</li></ul>',
    '<div id="toc"><h2>Away</h2></div>',
    '<div class="toc"><dl><dt>Away</dt></dl></div>',
    '<div class="edit-this-page">Away</div>',
    '<div id="footer">Away</div>',
    "<footer>Away</footer>",
    '<div class="header"><p>Next: <a href="x">Away</a></p></div>',
    '<div class="spirit-nav">Away</div><div class="copyright-footer">Away</div>',
    '<div class="cookie-banner">Away</div>',
    '<p aria-hidden="true">Away</p>',
    "<p hidden>Away</p>",
    "<select><option>Away</option></select><button>Away</button>",
]


@pytest.mark.parametrize("surrounding", SURROUNDINGS)
def test_navigation_around_a_text_is_omitted(surrounding: str) -> None:
    assert text(f"<body>{surrounding}<h1>Pumps</h1><p>Old.</p>{surrounding}") == "Pumps\n\nOld."


@pytest.mark.parametrize("navigation", SURROUNDINGS[:6])
def test_a_page_of_nothing_but_navigation_keeps_it(navigation: str) -> None:
    assert "Away" in text(navigation)


def test_of_a_page_with_a_main_content_only_that_is_kept() -> None:
    page = parse_markup("<div>Menu</div><h1>Site</h1><main><h1>Pumps</h1><p>Old.</p></main><aside>Advert</aside>")
    assert page.text == "Pumps\n\nOld."
    assert [(section.name, section.start, section.end) for section in page.sections] == [("Pumps", 0, 11)]


def test_a_main_content_with_hardly_any_text_is_not_believed() -> None:
    assert "Old" in text(f"<main>Skip</main><p>{'Old pumps. ' * 20}</p>")


def test_elements_with_main_content_or_the_first_heading_are_never_clutter() -> None:
    assert text('<div class="toc"><main>Pumps are old.</main></div>') == "Pumps are old."
    assert text('<div class="navigation"><h1>Pumps</h1><p>Old.</p></div>') == "Pumps\n\nOld."
    assert text('<div class="header"><h2>Pumps</h2></div><p>Old.</p>') == "Pumps\n\nOld."
    assert text('<table><tr class="header"><th>Pump<th>Flow<tr><td>P1<td>3</table>') == "Pump: P1\tFlow: 3"


def test_permalinks_are_dropped_and_other_links_to_places_of_the_page_are_not() -> None:
    headings = (
        '<h1>Pumps<a class="headerlink" href="#p">¶</a></h1><h2><a href="#s">#</a> Seals<a href="#x">\u200b</a></h2>'
    )
    assert text(f'{headings}<p>See <a href="#n">note 1</a>.') == "Pumps\n\nSeals\n\nSee note 1."


def test_line_numbers_of_code_are_dropped_and_its_lines_are_kept() -> None:
    code = '<td class="linenos"><pre>1\n2</pre></td><td class="code"><pre>def f():\n    return 1\n</pre></td>'
    assert text(f'<table class="highlighttable"><tr>{code}</tr></table>') == "def f():\n    return 1"
    assert text('<pre><span class="linenos">1</span>a\n<span class="lineno">2</span>b</pre>') == "```\na\nb\n```"


# Structure


NOTES = [
    '<div class="admonition note"><p class="admonition-title">Note</p><p>Mind the seal.</p></div>',
    '<div class="note"><h3 class="title">Note</h3><p>Mind the seal.</p></div>',
    '<div class="theme-admonition theme-admonition-tip"><div><h5>Note</h5></div><div><p>Mind the seal.</p></div></div>',
    '<aside role="note"><h4>Note</h4>Mind the seal.</aside>',
    '<div class="markdown-alert"><p class="markdown-alert-title">Note</p><p>Mind the seal.</p></div>',
]


@pytest.mark.parametrize("note", NOTES)
def test_a_note_stays_inside_its_section_and_has_no_heading(note: str) -> None:
    page = f"<h1>Pumps</h1><p>Old.</p>{note}<p>More.</p>"
    assert text(page) == "Pumps\n\nOld.\n\nNote\nMind the seal.\n\nMore."
    assert sections(page).keys() == {"Pumps"}


def test_paragraphs_are_apart_by_blank_lines_whatever_they_are_marked_with() -> None:
    assert text("<p>One.<p>Two.<div>Three.</div><div>Four.<br>Five.<br><br>Six.</div>Seven.") == (
        "One.\n\nTwo.\n\nThree.\n\nFour.\nFive.\n\nSix.\n\nSeven."
    )


def test_a_definition_stands_directly_below_its_term() -> None:
    assert text("<dl><dt>seal<dt>ring<dd><p>Keeps water in.</p><p>Worn.</p><dt>gate</dt><dd>Shuts.</dl>End.") == (
        "seal\nring\nKeeps water in.\n\nWorn.\n\ngate\nShuts.\n\nEnd."
    )


def test_items_of_lists_are_lines_with_their_marks() -> None:
    assert text("Parts:<ul><li><p>seal</p></li><li>gate<ol start=3><li>left<li>right</ol></li></ul>End.") == (
        "Parts:\n\n  • seal\n  • gate\n\n    3. left\n    4. right\n\nEnd."
    )


def test_cells_have_the_names_of_their_columns() -> None:
    rows = "<tr><th>Pump<th>Flow<tr><td>P1<td>3 l/s<tr><td>P2<td>"
    assert text(f"<table>{rows}</table>") == "Pump: P1\tFlow: 3 l/s\nPump: P2"


def test_names_of_columns_are_kept_where_they_do_not_fit_the_cells() -> None:
    assert text("<table><tr><th>Pump<th>Flow<tr><td>P1<td>3<td>l/s</table>") == "Pump\tFlow\nP1\t3\tl/s"
    assert text("<table><tr><th>Pump<th>Flow</table>") == "Pump\tFlow"


def test_cells_over_several_rows_and_columns_name_each_of_them() -> None:
    assert text("<table><tr><th colspan=2>Pump<th>Flow<tr><td>P1<td>old<td>3</table>") == "Pump: P1\tPump: old\tFlow: 3"
    head = "<tr><th rowspan=2>Town<th colspan=2>2023<tr><th>Basic<th>Plus"
    assert text(f"<table>{head}<tr><td rowspan=2>Aldby<td>1<td>2<tr><td>3<td>4</table>") == (
        "Town: Aldby\t2023 Basic: 1\t2023 Plus: 2\nTown: Aldby\t2023 Basic: 3\t2023 Plus: 4"
    )


def test_blank_cells_move_no_value_to_another_column() -> None:
    rows = "<tr><td>Fees<td>Basic<td>Plus<tr><td>Storage<td><td>40<tr><td>Backup<td>15<td>60"
    assert text(f"<table>{rows}</table>") == "Fees: Storage\tPlus: 40\nFees: Backup\tBasic: 15\tPlus: 60"
    assert text("<table><tr><td>a<td>b<td>c<tr><td>d<td><td>e</table>") == "a\tb\tc\nd\t\te"
    assert text("<table><tr><td>a<td><td>c<tr><td>d<td><td></table>") == "a\tc\nd"


def test_a_long_name_of_a_column_is_shortened_before_its_values_and_kept_once() -> None:
    name = "Flow in litres, " * 8
    lines = text(f"<table><tr><th>Pump<th>{name}<tr><td>P1<td>3</table>").split("\n")
    assert lines[0] == f"Pump\t{name.strip()}"
    assert lines[1].startswith("Pump: P1\tFlow in litres, Flow")
    assert lines[1].endswith("…: 3")


def test_a_row_of_a_table_with_a_header_whose_cells_hold_paragraphs_is_one_paragraph() -> None:
    table = "<table><tr><th>Pump<th>Use<tr><td>P1<td><p>Lifts.</p><p>Holds.</p><tr><td>P2<td>None.</table>"
    assert text(table) == "Pump: P1\nUse: Lifts.\nHolds.\n\nPump: P2\tUse: None."


def test_headings_in_a_page_that_is_laid_out_as_a_table_are_found() -> None:
    page = "<table><tr><td>Logo<td><h1>Pumps</h1><p>Old.</p><h2>Seals</h2><p>Worn.</p></table>"
    assert sections(page) == {"Pumps": "Pumps\n\nOld.\n\nSeals\n\nWorn.", "Seals": "Seals\n\nWorn."}


def test_code_is_a_markdown_code_block_with_its_lines_and_blanks() -> None:
    code = "```\nif  a:\n    b\n\n  c\n```"
    assert text("<p>Run:</p><pre>\nif  a:<br>    b\n\n  c </pre><p>End.") == f"Run:\n\n{code}\n\nEnd."
    assert text("<dl><dt>Run<dd><pre># quick\nmake</pre></dl>") == "Run\n```\n# quick\nmake\n```"


@pytest.mark.parametrize(
    ("page", "content"),
    [
        ("<p>Run:<pre> </pre><p>End.", "Run:\n\nEnd."),
        ("<ul><li><pre>make</pre></ul>", "  • make"),
        ("<pre>```\nmake\n```</pre>", "```\nmake\n```"),
        ("<table><tr><td><pre>make\nrun</pre></table>", "make\nrun"),
    ],
)
def test_code_has_no_fence_where_a_fence_would_not_be_a_line_of_its_own(page: str, content: str) -> None:
    assert text(page) == content


def test_code_within_code_is_not_joined_with_what_follows() -> None:
    assert text("<pre>a<div><pre>b </pre></div>c</pre>") == "```\nab\n\nc\n```"


def test_soft_hyphens_and_invisible_blanks_are_not_part_of_words() -> None:
    assert text("<p>infra&shy;struc&#8203;ture") == "infrastructure"


# Title and metadata


@pytest.mark.parametrize(
    ("title", "headings", "expected"),
    [
        ("The pump — Manual 3.2 documentation", "<h1>The pump</h1>", "The pump"),
        ("Manual | The pump", "<h1>The pump</h1>", "The pump"),
        ("The pump — Manual 3.2", "<h1>Manual 3.2</h1><h1>The pump</h1>", "The pump"),
        ("seals | Manual 3.2", "<h1>Manual 3.2</h1><h1>The seals</h1>", "seals | Manual 3.2"),
        ("Introduction — Pumps", "<h1>Introduction</h1>", "Introduction — Pumps"),
        ("Works", "<h1>Pumps</h1>", "Works"),
        ("Untitled document", "<h1>Contents</h1><h2>Seals</h2><h1>Pumps</h1>", "Pumps"),
        ("", "<h2>Seals</h2><h1>Pumps</h1>", "Pumps"),
        ("", "", ""),
    ],
)
def test_the_title_is_the_part_of_the_pages_title_that_names_the_page(title: str, headings: str, expected: str) -> None:
    page = parse_markup(f"<title>{title}</title>{headings}<p>Text.")
    assert page.title == expected
    assert page.metadata.get("page_title") == (title if title and title != expected else None)


def test_the_name_of_the_site_is_no_heading_of_the_page() -> None:
    page = "<title>Seals - Pump manual</title><h1>Pump manual</h1><h1>Seals</h1><p>Worn.</p>"
    assert sections(page) == {"Seals": "Seals\n\nWorn."}


def test_meta_elements_are_metadata_and_the_canonical_link_is_the_url() -> None:
    head = (
        '<link rel="canonical" href="https://pumps.example/a"><link rel="author" href="about.html">'
        '<meta name="Author" content="Ines Moreau"><meta name="keywords" content="pump, seal,">'
        '<meta property="og:description" content="On pumps."><meta name="viewport" content="wide">'
        '<meta property="article:published_time" content="1702-05-01">'
    )
    page = parse_markup(f'<html lang="en-GB"><head>{head}</head><p>Text.')
    assert page.url == "https://pumps.example/a"
    assert page.metadata == {
        "language": "en-GB",
        "author": "Ines Moreau",
        "keywords": ("pump", "seal"),
        "description": "On pumps.",
        "date": "1702-05-01",
    }


def test_an_address_that_no_browser_should_open_is_not_taken() -> None:
    assert parse_markup('<link rel="canonical" href="javascript:alert(1)"><p>Text.').url == ""


# Encodings


@pytest.mark.parametrize(
    "charset", ["utf-16", "UTF-16LE", "utf-32", "idna", "undefined", "punycode", "unicode_escape", "zip"]
)
def test_a_declared_encoding_that_the_page_cannot_be_in_is_not_believed(charset: str) -> None:
    page = f'<meta charset="{charset}"><p>Größe der Straße: die Lüfter überprüfen.'
    for encoding in ("utf-8", "cp1252"):
        assert read_html(Source.from_bytes(page.encode(encoding))).text == "Größe der Straße: die Lüfter überprüfen."


def test_the_encoding_in_the_declaration_of_xml_is_believed() -> None:
    page = '<?xml version="1.0" encoding="koi8-r"?><html><body><p>да</p></body></html>'
    assert read_html(Source.from_bytes(page.encode("koi8-r"))).text == "да"


# Hostile pages


@pytest.mark.parametrize(
    "markup",
    [
        "<p " + " ".join(f"a{number}=1" for number in range(50_000)) + ">Pump</p>",
        "<p " + " ".join(f"a{number}='>'" for number in range(50_000)) + ">Pump</p>",
        "".join(f"<b x={number}>" for number in range(3000)) + "<p>Pump" * 3000,
        "<div class=toc>" * 20_000 + "<h1>Pump</h1>",
        "<table><tr><td>" * 20_000 + "Pump",
        "<ul><li>" * 20_000 + "Pump",
        "<td><br>" * 20_000 + "Pump",
        "<h1>" * 20_000 + "Pump",
        "<a href='" * 50_000 + "'>Pump</a>",
        "<table>" + "<tr><th>a<th>b" + "<tr><td>1" * 20_000 + "</table>Pump",
    ],
)
def test_a_page_made_to_cost_much_is_read(markup: str) -> None:
    assert "Pump" in text(markup + "<p>Pump")  # some of these would take minutes, or all memory


def test_a_page_of_more_tags_than_memory_may_be_spent_on_is_reported() -> None:
    with pytest.raises(ReadError, match="3,000,000 tags in one page; at most 2,000,000 are read"):
        parse_markup("<p>" * 3_000_000)


TAGS = "h1 h2 p div ul ol li dl dt dd table tr td th pre br span b a section blockquote hr"
PIECES = [*(f"<{tag}>" for tag in TAGS.split()), *(f"</{tag}>" for tag in TAGS.split()), *[" w ", "x y "] * 20]


@given(st.lists(st.sampled_from(PIECES)))
def test_no_word_of_a_page_is_lost_or_joined_with_another(pieces: list[str]) -> None:
    page = parse_markup("".join(pieces))
    written = re.findall(r"[wxy]+", re.sub("<.*?>", " ", "".join(pieces)))
    outputs = re.findall(r"[wxy]+", page.text)
    assert set(outputs) == set(written)
    assert len(outputs) >= len(written)  # names of columns stand before each of their cells
    assert all(section.name.split()[0] in page.text[section.start : section.end] for section in page.sections)


@pytest.mark.parametrize(
    "index",
    [
        '<div class="index"><div class="indexdiv"><h3>C</h3><dl><dt>Clone, <a href="c">Clone</a></dt></dl></div></div>',
        '<table class="indextable genindextable"><tr><td><a href="c">Clone</a></td></tr></table>',
        '<table class="index-cp" border="0"><tr><td><a href="c">Clone</a></td></tr></table>',
        '<table class="cp-entries-printindex"><tr><td><a href="c">Clone</a></td></tr></table>',
    ],
    ids=["DocBook", "Sphinx", "Texinfo 6", "Texinfo 7"],
)
def test_the_alphabetical_index_of_a_manual_is_omitted(index: str) -> None:
    page = f"<html><body><h1>Index</h1>{index}<p>See the manual.</p></body></html>"
    assert "Clone" not in read_html(Source.from_bytes(page.encode())).text


# What is easily lost or glued


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p>10<sup>-3</sup> mol, 20 m<sup>2</sup>, x<sup>n+1</sup>", "10^-3 mol, 20 m^2, x^(n+1)"),
        ("<p>1<sup>st</sup>, 2<sup>e</sup>, Foo<sup>TM</sup>, <sup>3</sup> Note", "1st, 2e, FooTM, 3 Note"),
        ('<p>sold<sup><a href="#n">3</a></sup> or sold<sup><a href="#n">[4]</a></sup>', "sold[3] or sold[4]"),
        ("<p>H<sub>2</sub>O", "H2O"),
        ("<p>東<ruby>京<rp>(</rp><rt>きょう</rt><rp>)</rp>駅<rt>えき</rt></ruby>", "東京駅"),
        ("<p><ruby>WWW<rt>World Wide Web</rt></ruby>", "WWW (World Wide Web)"),
        ("<li><input type=checkbox checked> Done<li><input type=radio> Open", "  • [x] Done\n  • [ ] Open"),
        ("<p><label>Name:<input value=Ada></label> <textarea>It leaks.</textarea>", "Name: Ada It leaks."),
        ("<p>State: <select><option>open<option selected>closed</select>.", "State: closed ."),
        ("<p>a<input type=hidden value=b><input type=submit value=c><input type=password value=d>e", "ae"),
        ("<p>a<input type=checkbox class=sd-tab-toggle checked><input type=radio name=__tabbed_1>e", "ae"),
        ("<p>a<p style='display: none'>b<p style='visibility:hidden'>c", "a"),
        ("<div style='display:none'><h1>Pump</h1><p>Old.</div>", "Pump\n\nOld."),
        ("<div class=tabcontent style='display:none'>a</div><div class=tab-pane aria-hidden=true>b</div>", "a\n\nb"),
        ("<noscript><p>Nine to five.</p></noscript><noscript>Enable JavaScript.</noscript>", "Nine to five."),
        (
            "<p>A <object data=a.mp4>rotating pen</object> and <object data=b.svg><img alt='a nib'></object>",
            "A rotating pen and a nib",
        ),
        ("<p>a<object data=a.pdf><p>Your browser cannot show it. Download it.</p></object>", "a"),
        ("<dialog open>Call us.</dialog><dialog>Away</dialog>", "Call us."),
        ("<p>a</p><iframe srcdoc='&lt;p&gt;The key &amp;amp; box'></iframe>", "a\n\nThe key & box"),
        ("<dl><dt>Seal<dd>A ring.<dd>An animal.<dt>Gate<dd>A door.</dl>", "Seal\nA ring.\nAn animal.\n\nGate\nA door."),
    ],
)
def test_markup_keeps_the_meaning_of_its_text(markup: str, text: str) -> None:
    assert parse_markup(markup).text == text


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        ("<mi>h</mi><mo>=</mo><mfrac><mrow><mi>f</mi><mi>L</mi></mrow><mi>D</mi></mfrac>", "h = (f L) / D"),
        ("<semantics><mrow><msup><mi>c</mi><mn>2</mn></msup></mrow><annotation>c^2</annotation></semantics>", "c^2"),
        ("<msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup><mo>+</mo><msqrt><mi>a</mi></msqrt>", "x_i^2 + √(a)"),
    ],
)
def test_a_formula_is_written_once_in_one_line(formula: str, text: str) -> None:
    assert parse_markup(f"<p>It is <math>{formula}</math>.").text == f"It is {text}."


@pytest.mark.parametrize("name", ["header", "related", "copyright"])
def test_sentences_below_the_heading_are_content_whatever_their_class(name: str) -> None:
    markup = "<div class='{0}'>Company of the quay.</div><h1>News</h1><div class='{0}'><p>The crane was sold.</p></div>"
    site = "<div class='{0}'>All <a>cranes</a> are here.</div><p>End.</p><div class='{0}'>© All rights reserved.</div>"
    assert parse_markup((markup + site).format(name)).text == "News\n\nThe crane was sold.\n\nEnd."


def test_a_section_with_a_linked_heading_is_content_whatever_its_id() -> None:
    section = "<div id=copyright><h2><a href='#toc'>Copyright</a></h2><p>This text is in the public domain.</p></div>"
    related = "<div id=related><h2>Related</h2><p><a href=b>Cranes of the quay.</a></p></div>"
    assert parse_markup(f"<h1>News</h1><p>Sold.</p>{section}{related}<p>End.").text == (
        "News\n\nSold.\n\nCopyright\n\nThis text is in the public domain.\n\nEnd."
    )


def test_the_first_of_several_sections_is_not_the_title() -> None:
    sections = "<h1>Supply</h1><p>By May.</p><h1>Liability</h1><p>None.</p>"
    assert parse_markup(sections).title == ""
    assert parse_markup(f"<h1>Contract</h1>{sections}").title == "Contract"


def test_navigation_and_pictures_without_text_are_listed() -> None:
    page = (
        "<body><nav><a>Home</a> <a>Docs</a><script>run()</script></nav><div>Search here</div><main><h1>Pumps</h1>"
        "<p>The pumps run.<a href='#a'>¶</a></p><img src='a.png'><img src='b.png' alt=''></main></body>"
    )
    removals = parse_markup(page).removals
    assert removals[PICTURES] == ("a.png",)
    assert [text.split()[0] for text in removals[NAVIGATION]] == ["Home", "Search"]
