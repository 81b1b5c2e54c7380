# ruff: noqa: RUF001  (text in the punctuation of other languages)
import io
import json
import os
import re
import sys
import tracemalloc
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import docx  # type: ignore[import-untyped, unused-ignore]  # typed only when its stubs are installed
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reportlab.lib.pdfencrypt import StandardEncryption  # type: ignore[import-untyped, unused-ignore]  # likewise
from reportlab.pdfgen.canvas import Canvas  # type: ignore[import-untyped, unused-ignore]  # likewise

from polyad.config import ReadSettings
from polyad.errors import ConfigurationError
from polyad.model import Document, Failure, MetadataValue
from polyad.readers.folder.files import FileReader
from polyad.readers.format import Source
from polyad.readers.text.plain_text import clean, decode
from polyad.readers.text.sources import format_path
from polyad_readers.markup.markdown import read_markdown
from polyad_readers.web.html import parse_markup


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, so that ids are short."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: str, content: str | bytes) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(content.encode() if isinstance(content, str) else content)


def read(*paths: str, max_bytes: int = 10**6) -> list[Document | Failure]:
    return list(FileReader(ReadSettings(max_bytes=max_bytes)).read([Path(path) for path in paths]))


def read_one(path: str) -> Document:
    (document,) = read(path)
    assert isinstance(document, Document), document
    return document


def records(*paths: str) -> list[Document | Failure]:
    """What is read, without what is known of its file."""
    get_file_metadata = ("path", "folder", "extension", "modified")

    def without(names: Mapping[str, MetadataValue]) -> dict[str, MetadataValue]:
        return {key: value for key, value in names.items() if key not in get_file_metadata}

    return [
        replace(item, metadata=without(item.metadata)) if isinstance(item, Document) else item for item in read(*paths)
    ]


def failure_of(path: str, max_bytes: int = 10**6) -> str:
    (failure,) = read(path, max_bytes=max_bytes)
    assert isinstance(failure, Failure), failure
    assert failure.id == path
    return failure.reason


def ids(results: list[Document | Failure]) -> list[str]:
    return [result.id for result in results]


# Folders


def test_a_folder_is_read_in_sorted_order_under_ids_that_begin_with_its_name() -> None:
    for name in ("b.txt", "a/z.txt", "a/c.md", "c.txt"):
        write(f"handbook/{name}", "text")
    assert ids(read("handbook")) == ["handbook/a/c.md", "handbook/a/z.txt", "handbook/b.txt", "handbook/c.txt"]


@pytest.mark.parametrize("spelling", ["handbook", "handbook/", "./handbook", "other/../handbook"])
def test_ids_do_not_depend_on_how_a_path_is_spelled(spelling: str) -> None:
    write("handbook/a.txt", "text")
    write("other/b.txt", "text")
    assert ids(read(spelling)) == ["handbook/a.txt"]


def test_the_current_folder_adds_nothing_to_ids() -> None:
    write("a.txt", "text")
    assert ids(read(".")) == ["a.txt"]


def test_a_file_named_twice_is_read_once() -> None:
    write("handbook/a.txt", "text")
    assert ids(read("handbook", "handbook/a.txt", "./handbook")) == ["handbook/a.txt"]


def test_hidden_files_and_folders_are_passed_over() -> None:
    for name in (".hidden.txt", ".git/a.txt", "seen.txt"):
        write(f"handbook/{name}", "text")
    assert ids(read("handbook")) == ["handbook/seen.txt"]


def test_unknown_extensions_in_a_folder_are_counted_and_those_named_are_failures() -> None:
    write("handbook/a.txt", "text")
    write("handbook/clip.mp4", b"\xff\xd8")
    reader = FileReader()
    assert ids(list(reader.read([Path("handbook")]))) == ["handbook/a.txt"]
    assert reader.skipped == ["handbook/clip.mp4"]
    assert "cannot read .mp4; expected .adoc, .asciidoc, .csv, .docx" in failure_of("handbook/clip.mp4")


def test_minified_code_in_a_folder_is_skipped_and_one_that_is_named_is_read() -> None:
    write("manual/index.html", "<p>Oil the pump.</p>")
    write("manual/searchindex.js", "window.search = " + '{"body": "Oil the pump."},' * 100)
    write("manual/pump.js", "// " + "Oil the pump. " * 30 + "\noil();\n" * 5)
    reader = FileReader()
    assert ids(list(reader.read([Path("manual")]))) == ["manual/index.html", "manual/pump.js"]
    assert reader.skipped == ["manual/searchindex.js"]
    assert ids(read("manual/searchindex.js")) == ["manual/searchindex.js"]


def test_skipped_files_are_those_of_the_last_reading() -> None:
    write("handbook/photo.jpg", b"\xff\xd8")
    write("a.txt", "text")
    reader = FileReader()
    list(reader.read([Path("handbook")]))
    list(reader.read([Path("a.txt")]))
    assert reader.skipped == []


def test_a_path_that_does_not_exist_is_an_error_before_anything_is_read() -> None:
    write("a.txt", "text")
    with pytest.raises(ConfigurationError, match=r"missing\.txt cannot be read"):
        FileReader().read([Path("a.txt"), Path("missing.txt")])


def test_symlink_loops_are_harmless() -> None:
    write("outside.txt", "text")
    write("handbook/deep/a.txt", "text")
    for link, target in (("up", "../.."), ("deep/self", "."), ("deep/loop", "../../handbook")):
        Path("handbook", link).symlink_to(target, target_is_directory=True)
    assert ids(read("handbook")) == ["handbook/deep/a.txt"]


def test_a_link_to_itself_is_reported() -> None:
    write("handbook/a.txt", "text")
    Path("handbook/x.txt").symlink_to("x.txt")
    results = read("handbook")
    assert ids(results) == ["handbook/a.txt", "handbook/x.txt"]
    assert isinstance(results[1], Failure)


def test_a_folder_reached_through_two_links_is_read_once() -> None:
    write("shared/a.txt", "text")
    Path("handbook").mkdir()
    for link in ("one", "two"):
        Path("handbook", link).symlink_to("../shared", target_is_directory=True)
    reader = FileReader(ReadSettings(follow_links=True))
    assert ids(list(reader.read([Path("handbook")]))) == ["handbook/one/a.txt"]


@pytest.mark.parametrize("target", ["../secret/key.txt", "/etc/passwd"])
def test_a_link_out_of_the_folder_is_reported_and_not_followed(target: str) -> None:
    write("secret/key.txt", "the key")
    write("handbook/a.txt", "text")
    Path("handbook/readme.txt").symlink_to(target)
    assert ids(read("handbook")) == ["handbook/a.txt", "handbook/readme.txt"]
    assert failure_of("handbook/readme.txt").startswith("a link to a target outside handbook")
    Path("handbook/readme.txt").unlink()
    Path("handbook/more").symlink_to("../secret", target_is_directory=True)
    assert [item.reason for item in read("handbook") if isinstance(item, Failure)] == [
        "a link to a target outside handbook; name the target's path, or set follow_links in the section [read]"
    ]
    assert FileReader().count([Path("handbook")]) == 2


def test_links_within_the_folder_and_links_to_a_folder_that_is_given_are_followed() -> None:
    write("handbook/deep/a.txt", "text")
    write("handbook/deep/b.txt", "more text")
    Path("handbook/link.txt").symlink_to("deep/a.txt")
    Path("manual").symlink_to("handbook", target_is_directory=True)
    assert ids(read("handbook")) == ["handbook/deep/a.txt", "handbook/deep/b.txt", "handbook/link.txt"]
    assert ids(read("manual")) == ["manual/deep/a.txt", "manual/deep/b.txt", "manual/link.txt"]


def test_links_out_of_the_folder_are_followed_where_the_settings_say_so() -> None:
    write("secret/key.txt", "the key")
    Path("handbook").mkdir()
    Path("handbook/readme.txt").symlink_to("../secret/key.txt")
    (result,) = FileReader(ReadSettings(follow_links=True)).read([Path("handbook")])
    assert isinstance(result, Document)
    assert result.text == "the key"


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("target", ["/proc/self/environ", "/proc/kmsg"])
def test_files_of_the_system_are_never_read(target: str) -> None:
    Path("handbook").mkdir()
    Path("handbook/readme.txt").symlink_to(target)
    (result,) = FileReader(ReadSettings(follow_links=True)).read([Path("handbook")])
    assert result == Failure("handbook/readme.txt", "below /proc or /sys; system files are not read")
    assert failure_of("handbook/readme.txt") == "below /proc or /sys; system files are not read"
    assert failure_of("/proc/self/task") == "below /proc or /sys; system files are not read"


def test_a_file_is_read_to_its_limit_whatever_size_the_system_states(monkeypatch: pytest.MonkeyPatch) -> None:
    write("a.txt", "word " * 1000)
    stated = Path.stat

    def states_nothing(path: Path, **options: bool) -> os.stat_result:
        status = list(stated(path, **options))
        status[6] = 0
        return os.stat_result(status)

    monkeypatch.setattr(Path, "stat", states_nothing)
    (failure,) = read("a.txt", max_bytes=100)
    assert failure == Failure("a.txt", "101 bytes; at most 100 are read (max_bytes)")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_reported_and_not_waited_for() -> None:
    os.mkfifo("pipe.txt")
    assert failure_of("pipe.txt") == "not a regular file"


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes on Linux only")
def test_a_file_name_that_is_not_unicode_gives_an_id_that_is() -> None:
    write("names/" + os.fsdecode(b"caf\xe9\n.txt"), "text")
    assert ids(read("names")) == ["names/caf\\xe9\\x0a.txt"]


def test_a_unicode_file_name_is_its_id() -> None:
    write("手册/泵.txt", "text")
    assert ids(read("手册")) == ["手册/泵.txt"]


def test_one_bad_file_does_not_keep_others_from_being_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a library's own\ntrouble")

    monkeypatch.setattr("polyad_readers.markup.markdown.read_markdown", fail)
    for name in ("a.txt", "b.md", "c.txt"):
        write(f"handbook/{name}", "text")
    results = read("handbook")
    assert ids(results) == ["handbook/a.txt", "handbook/b.md", "handbook/c.txt"]
    assert results[1] == Failure("handbook/b.md", "cannot be read: RuntimeError: a library's own trouble")


@pytest.mark.parametrize(("package", "name"), [("pypdfium2", "a.pdf"), ("resiliparse", "a.html")])
def test_a_missing_package_is_reported_with_the_command_that_installs_it(
    package: str, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(f"without/{package}.py", "raise ImportError")
    monkeypatch.syspath_prepend(folder / "without")
    write(name, "anything")
    assert 'is not installed; run: pip install "polyad[documents]"' in failure_of(name)


# Text


def test_a_file_written_beyond_the_calendar_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    write("a.txt", "text")
    results = list(Path("a.txt").stat())
    results[8] = 2**60  # when it was written
    monkeypatch.setattr(Path, "stat", lambda self, **_: os.stat_result(results))
    assert "modified" not in read_one("a.txt").metadata


@pytest.mark.parametrize("content", ["", " \n\t", "\ufeff"])
@pytest.mark.parametrize("extension", ["txt", "md", "html"])
def test_a_file_without_text_is_reported(content: str, extension: str) -> None:
    write(f"a.{extension}", content)
    assert failure_of(f"a.{extension}") == "empty: no text"


def test_a_file_above_the_limit_is_reported() -> None:
    write("a.txt", "x" * 11)
    assert failure_of("a.txt", max_bytes=10) == "11 bytes; at most 10 are read (max_bytes)"
    assert isinstance(read("a.txt", max_bytes=11)[0], Document)


@pytest.mark.parametrize(
    "data", [bytes(range(256)) * 20, b"\x00" * 100 + b"abc", b"\x89PNG\r\n\x1a\n" + b"\x00\x01" * 99]
)
def test_binary_data_is_reported(data: bytes) -> None:
    write("a.txt", data)
    assert "binary" in failure_of("a.txt")


GERMAN = "Größe der Straße: die Lüfter überprüfen."
CHINESE = "离心泵的维护手册：每季度检查一次轴承温度。"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"])
def test_western_text_is_read_in_any_usual_encoding(encoding: str) -> None:
    write("a.txt", GERMAN.encode(encoding))
    assert read_one("a.txt").text == GERMAN


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (CHINESE, "utf-16"),
        (CHINESE, "gb18030"),
        (CHINESE * 3000, "gb18030"),
        ("離心泵的維護手冊：每季度檢查一次軸承溫度。", "big5"),
        ("ポンプの保守手順書：軸受の温度を確認してください。", "shift_jis"),
        ("Руководство по обслуживанию насосов и клапанов.", "cp1251"),
        ("Руководство по обслуживанию насосов и клапанов." * 3, "koi8-r"),
        ("El niño comió piña en España; señor Muñoz pagó £5.", "latin-1"),
        ("He said “hello” – it’s déjà vu.", "cp1252"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy.", "cp1250"),
    ],
)
def test_the_encoding_of_other_text_is_detected(text: str, encoding: str) -> None:
    write("a.txt", text.encode(encoding))
    assert read_one("a.txt").text == text


def test_a_damaged_byte_does_not_turn_utf_8_into_another_encoding() -> None:
    write("a.txt", CHINESE.encode() + b"\xff" + CHINESE.encode())
    document = read_one("a.txt")
    assert (document.text, document.metadata["undecodable"]) == (f"{CHINESE}\ufffd{CHINESE}", 1)


def test_the_encoding_that_source_code_declares_is_believed() -> None:
    write("a.py", "# -*- coding: koi8-r -*-\n# да\n".encode("koi8-r"))
    write("b.tex", "\\usepackage[cp1250]{inputenc}\nčez\n".encode("cp1250"))
    assert read_one("a.py").text.endswith("# да\n")
    assert read_one("b.tex").text.endswith("čez\n")


def test_stray_control_characters_become_blanks_and_line_endings_newlines() -> None:
    write("a.txt", b"one\x00two\x1b three\r\nfour\rfive\x0csix\x7f and a good deal more")
    assert read_one("a.txt").text == "one two  three\nfour\nfive\nsix  and a good deal more"


def titled(path: str) -> tuple[str, object]:
    """A document's title, and where it is from if not from the document."""
    document = read_one(path)
    return document.title, document.metadata.get("title_from")


def test_plain_text_is_called_by_its_file_which_is_said() -> None:
    write("manuals/the-old_pump.v2.txt", "A first line\n\nand more")
    assert titled("manuals/the-old_pump.v2.txt") == ("the old pump.v2", "file name")


@pytest.mark.parametrize(
    ("path", "heading", "title"),
    [
        ("old-pumps.md", "Valves", ("Valves", None)),
        ("old-pumps.md", "Chapter 1", ("old pumps", "file name")),
        ("old-pumps.md", "2. Introduction", ("old pumps", "file name")),
        ("intro.md", "Introduction", ("Introduction", None)),
        ("old-pumps/README.md", "Contents", ("old pumps / README", "file name")),
        ("README.md", "", ("README", "file name")),
    ],
)
def test_a_heading_that_could_be_any_documents_is_no_title_where_the_files_name_says_more(
    path: str, heading: str, title: tuple[str, str | None]
) -> None:
    write(path, f"# {heading}\n\nText." if heading else "Text.")
    assert titled(path) == title


def test_the_metadata_of_every_document_says_where_its_file_is_and_when_it_was_written() -> None:
    for name in ("manuals/A.TXT", "manuals/a.jsonl"):
        write(name, '{"text": "one"}')
        os.utime(name, (1_700_000_000.5, 1_700_000_000.5))
    text, record = read("manuals")
    names = {"folder": "manuals", "modified": "2023-11-14T22:13:20+00:00"}
    assert isinstance(text, Document)
    assert isinstance(record, Document)
    assert text.metadata == {**names, "path": "manuals/A.TXT", "extension": ".txt", "title_from": "file name"}
    assert record.metadata == {**names, "path": "manuals/a.jsonl", "extension": ".jsonl"}


@given(st.text(st.characters(exclude_categories=[])))
def test_cleaned_text_can_be_stored_and_keeps_its_length(text: str) -> None:
    cleaned = clean(text)
    assert len(cleaned) == len(text.replace("\r\n", "\n"))
    assert not set(cleaned) & {chr(code) for code in [*range(9), *range(11, 32), *range(127, 160)]}
    cleaned.encode("utf-8")


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1))
def test_utf_8_is_read_as_it_was_written(text: str) -> None:
    assert decode(text.encode()) == text.removeprefix("\ufeff")


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Intro\n\n## The *main* `pump` ##\n\n# Later", "The main pump"),
        ("The pump\n========\n\nText", "The pump"),
        ("```sh\n# a comment\n```\n# Pump", "Pump"),
        ("~~~~\n~~~\n# a comment\n~~~~\n# Pump", "Pump"),
        ("# [Pump](pump.html) snake_case", "Pump snake_case"),
        ("# ##\n\n# Pump #1 ##", "Pump #1"),
        ("no heading\n#hashtag\n", ""),
        ("\n---\nonly a rule", ""),
    ],
)
def test_the_title_of_markdown_is_its_first_heading_and_its_text_is_whole(text: str, title: str) -> None:
    content = read_markdown(Source.from_bytes(text.encode()))
    assert (content.title, content.text) == (title, text)


def sections(document: Document) -> dict[str, str]:
    """What stands under each heading."""
    return {section.name: document.text[section.start : section.end].strip() for section in document.sections}


def test_the_sections_of_markdown_are_what_stands_under_its_headings() -> None:
    write(
        "a.md",
        "Intro\n\nPumps\n=====\n\nOld.\n\n## Repair of `P-17`\nSeals.\n```\n# no heading\n```\n# Valves #\nNew.\n",
    )
    assert sections(read_one("a.md")) == {
        "Pumps": "Pumps\n=====\n\nOld.\n\n## Repair of `P-17`\nSeals.\n```\n# no heading\n```",
        "Repair of P-17": "## Repair of `P-17`\nSeals.\n```\n# no heading\n```",
        "Valves": "# Valves #\nNew.",
    }


def test_a_heading_directly_above_another_of_lower_rank_is_part_of_its_section() -> None:
    write("a.md", "# Pumps\n\n## Repair\n\n### Seals\nOld.\n## Parts\n## Prices\nHigh.")
    assert sections(read_one("a.md")) == {
        "Pumps": "# Pumps\n\n## Repair\n\n### Seals\nOld.\n## Parts\n## Prices\nHigh.",
        "Repair": "# Pumps\n\n## Repair\n\n### Seals\nOld.",
        "Seals": "# Pumps\n\n## Repair\n\n### Seals\nOld.",
        "Parts": "## Parts",
        "Prices": "## Prices\nHigh.",
    }


def test_a_first_heading_with_nothing_under_it_is_the_heading_of_all() -> None:
    write("a.md", "# Guide\n\n# Setup\nOne.\n\n# Use\nTwo.")
    assert sections(read_one("a.md"))["Guide"] == "# Guide\n\n# Setup\nOne.\n\n# Use\nTwo."


def test_a_paragraph_that_is_marked_as_a_heading_is_none() -> None:
    write("a.md", f"# {'word ' * 60}\n\nText.\n\n# \n\nMore.")
    assert sections(read_one("a.md")) == {}


@pytest.mark.parametrize("line", [f"# a{' ' * 200_000}b", f"# {'[' * 200_000}", f"{'[' * 200_000}\n---"])
def test_a_line_without_end_is_no_heading_and_costs_no_time(line: str) -> None:
    write("a.md", f"# Pump\n\n{line}")
    assert sections(read_one("a.md")).keys() == {"Pump"}


# HTML, Word, PDF

PAGE = """<!doctype html><html><head><title> The
 Pump &amp; Valve</title><style>p{}</style><script>alert(1)</script></head><body><nav><a href="/">Home</a></nav>
<h1>Pumps</h1><p>A <b>b</b>old wo<i>r</i>d.<br>Next line.</p><ul><li>One</li><li>Two</li></ul>
<table><tr><td>Flow</td><td>3 l/s</td></tr></table><div>中文。</div><aside>Aside</aside><footer>Foot</footer></body>"""


def test_html_is_read_as_a_page_shows_it() -> None:
    write("a.html", PAGE)
    document = read_one("a.html")
    assert document.title == "The Pump & Valve"
    for output in ("Pumps", "A bold word.\nNext line.", "One", "Two", "Flow", "3 l/s", "中文。", "Aside"):
        assert output in document.text
    for hidden in ("alert", "p{}", "Home", "<", "Valve", "Foot"):
        assert hidden not in document.text
    assert "One" not in document.text[document.text.index("Two") - 3 :]


def test_a_row_of_a_table_is_a_line_and_a_page_laid_out_as_a_table_keeps_its_paragraphs() -> None:
    row = "<tr><td><p>Flow</p></td><td>\n<p>3 l/s</p>\n</td></tr>"
    write("a.html", f"<table>{row}</table><table><tr><td><p>One text.</p><p>Another.</p></td></tr></table>")
    assert [line.split() for line in read_one("a.html").text.splitlines() if line] == [
        ["Flow", "3", "l/s"],
        ["One", "text."],
        ["Another."],
    ]


def test_a_page_of_nothing_but_navigation_keeps_it() -> None:
    write("a.html", "<h1><img></h1><nav>Home of pumps</nav>")
    assert read_one("a.html").text.strip() == "Home of pumps"


def test_the_sections_of_a_page_are_what_stands_under_its_headings() -> None:
    body = "<h1>Pu<b>mp</b>s</h1><p>Old.</p><nav><h2>Menu</h2></nav><h2>\n Seals </h2>Worn.<h3><i></i></h3>Out."
    write("a.html", f"<title>Works</title>{body}<h1>Valves</h1>New.<ul><li><h2>Gate</h2>a</li></ul>")
    document = read_one("a.html")
    assert document.title == "Works"
    assert {name: text.split() for name, text in sections(document).items()} == {
        "Pumps": ["Pumps", "Old.", "Seals", "Worn.", "Out."],
        "Seals": ["Seals", "Worn.", "Out."],
        "Valves": ["Valves", "New.", "•", "Gate", "a"],
        "Gate": ["•", "Gate", "a"],
    }


@given(st.lists(st.sampled_from(["<h1>", "<h2>", "</h1>", "</h2>", "<p>", "<ul><li>", "<pre>", "a b ", "c. ", "\n"])))
def test_finding_the_headings_of_a_page_alters_no_word_of_it(pieces: list[str]) -> None:
    page = parse_markup("".join(pieces))
    assert re.findall(r"\w+", page.text) == re.findall(r"\w+", re.sub("<.*?>", " ", "".join(pieces)))
    assert all(section.name.split()[0] in page.text[section.start : section.end] for section in page.sections)


def test_the_title_of_a_page_without_one_is_its_first_heading() -> None:
    write("a.htm", "<p>Intro</p><h1>The <i>pump</i></h1><h2>Other</h2>")
    assert read_one("a.htm").title == "The pump"


@pytest.mark.parametrize("encoding", ["gb2312", "windows-1252", "utf-8"])
def test_a_page_is_read_in_the_encoding_that_it_declares(encoding: str) -> None:
    text = CHINESE if encoding == "gb2312" else GERMAN
    write("a.html", f'<meta charset="{encoding}"><p>{text}</p>'.encode(encoding))
    assert read_one("a.html").text == text


def test_sound_utf_8_beats_what_a_page_declares_and_an_unknown_declaration_is_ignored() -> None:
    write("a.html", f'<meta charset="iso-8859-1"><p>{CHINESE}</p>')
    write("b.html", f'<meta charset="nonsense"><p>{GERMAN}</p>'.encode("cp1252"))
    assert (read_one("a.html").text, read_one("b.html").text) == (CHINESE, GERMAN)


def test_markup_nested_without_end_is_no_crash() -> None:
    write("a.html", "<div>" * 50_000 + "text")
    assert len(read("a.html")) == 1


def word_document(build: Callable[[Any], None]) -> bytes:
    document = docx.Document()
    document.core_properties.title = ""
    build(document)
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def test_a_long_table_is_read_in_one_pass() -> None:
    rows = "".join(f"<tr><td><p>Pump {number}</p></td><td><p>old<br>new</p></td></tr>" for number in range(3000))
    write("a.html", f"<table>{rows}</table>")  # a search of the page for each cell would take minutes
    assert read_one("a.html").text.count("Pump") == 3000


def test_a_word_document_keeps_paragraphs_and_tables_in_order() -> None:
    def build(document: Any) -> None:
        document.core_properties.title = "The\nmanual"
        document.add_heading("Pumps", 1)
        document.add_paragraph("A pump & a valve. 中文。")
        document.add_table(1, 2).rows[0].cells[1].text = "3 l/s"
        document.add_paragraph("The end.")

    write("a.docx", word_document(build))
    document = read_one("a.docx")
    assert document.title == "The manual"
    positions = [document.text.index(part) for part in ("Pumps", "A pump & a valve. 中文。", "3 l/s", "The end.")]
    assert positions == sorted(positions)


def test_a_row_of_a_table_in_a_word_document_is_a_line() -> None:
    def build(document: Any) -> None:
        document.add_paragraph("Before.")
        table = document.add_table(2, 2)
        for cell, text in zip(table._cells, ["Pump", "Flow", "P1\nnew", "3 l/s"], strict=True):
            cell.text = text
        table.cell(1, 1).add_paragraph("at most")
        document.add_paragraph("After.")

    write("a.docx", word_document(build))
    assert read_one("a.docx").text == "Before.\n\nPump\tFlow\nP1 new\t3 l/s at most\n\nAfter."


def test_the_title_of_a_word_document_without_one_is_its_first_heading() -> None:
    write("a.docx", word_document(lambda document: document.add_heading("Pumps", 1)))
    assert read_one("a.docx").title == "Pumps"


def test_the_sections_of_a_word_document_are_what_stands_under_its_headings() -> None:
    def build(document: Any) -> None:
        document.add_heading("Pumps", 1)
        document.add_heading("Seals", 2)
        document.add_paragraph("Worn.")
        document.add_heading("Valves", 1)

    write("a.docx", word_document(build))
    assert sections(read_one("a.docx")) == {
        "Pumps": "Pumps\n\nSeals\n\nWorn.",
        "Seals": "Pumps\n\nSeals\n\nWorn.",
        "Valves": "Valves",
    }


def test_a_word_document_without_text_is_reported() -> None:
    write("a.docx", word_document(lambda document: None))
    assert failure_of("a.docx") == "empty: no text"


def archive(**parts: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as parts_file:
        for name, content in parts.items():
            parts_file.writestr(name, content)
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00" * 600, "encrypted, or in a format from before 2007"),
        (b"no archive", "not a Word document, or damaged"),
        (archive(readme="text"), "not a Word document, or damaged"),
        (word_document(lambda document: document.add_paragraph("x"))[:2000], "not a Word document, or damaged"),
    ],
)
def test_unreadable_word_documents_are_reported(data: bytes, reason: str) -> None:
    write("a.docx", data)
    assert failure_of("a.docx").startswith(reason)


def pdf(*pages: str, title: str = "", encrypt: object = None) -> bytes:
    file = io.BytesIO()
    canvas = Canvas(file, encrypt=encrypt)
    canvas.setTitle(title)
    for page in pages:
        canvas.drawString(100, 700, page)
        canvas.showPage()
    canvas.save()
    return file.getvalue()


def test_a_pdf_gives_the_text_of_all_pages_and_its_title() -> None:
    write("a.pdf", pdf("The pump of Dr. Smith", "moves 3.5 l/s.", title="Pump manual"))
    document = read_one("a.pdf")
    assert (document.title, document.text) == ("Pump manual", "The pump of Dr. Smith\nmoves 3.5 l/s.")


def test_a_word_that_a_pdf_breaks_at_the_end_of_a_line_is_joined() -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    for height, line in ((700, "The pumps of the infra-"), (686, "structure are old.")):
        canvas.drawString(100, height, line)
    canvas.save()
    write("a.pdf", file.getvalue())
    assert read_one("a.pdf").text == "The pumps of the infrastructure are old."


def test_the_sections_of_a_pdf_are_those_of_its_outline() -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    outline = [[("Pumps", 0), ("Seals and  Rings", 1)], [("Not on its page", 1), ("Gate", 2)], [("Valves", 0)]]
    lines = [
        ["Pumps are here.", "A pumps", "2. Pumps", "Old.", "2.1 Seals and", "rings", "Worn."],
        ["Gone.", "GATE", "Shut."],
        ["New."],
    ]
    for entries, page in zip(outline, lines, strict=True):
        for height, line in enumerate(page):
            canvas.drawString(100, 700 - 14 * height, line)
        for name, level in entries:
            canvas.bookmarkPage(name)
            canvas.addOutlineEntry(name, name, level)
        canvas.showPage()
    canvas.save()
    write("a.pdf", file.getvalue())
    assert {name: " ".join(text.split()) for name, text in sections(read_one("a.pdf")).items()} == {
        "Pumps": "2. Pumps Old. 2.1 Seals and rings Worn. Gone. GATE Shut.",
        "Seals and Rings": "2.1 Seals and rings Worn.",
        "Not on its page": "Gone. GATE Shut.",
        "Gate": "GATE Shut.",
        "Valves": "New.",
    }


@pytest.mark.parametrize("title", ["untitled", "Microsoft Word - pump.doc", "pump-v2.docx"])
def test_a_title_that_a_program_made_up_is_not_taken(title: str) -> None:
    write("the-pump.pdf", pdf("text", title=title))
    assert titled("the-pump.pdf") == ("the pump", "file name")


def test_a_pdf_that_needs_a_password_is_reported_and_one_that_forbids_printing_is_read() -> None:
    write("secret.pdf", pdf("text", encrypt=StandardEncryption("user", "owner", strength=128)))
    write("restricted.pdf", pdf("text", encrypt=StandardEncryption("", "owner", canPrint=0, strength=128)))
    assert failure_of("secret.pdf") == "encrypted; save it without a password"
    assert read_one("restricted.pdf").text == "text"


def test_a_pdf_without_text_is_reported() -> None:
    write("a.pdf", pdf(""))
    assert failure_of("a.pdf") == "no text in it"


@pytest.mark.parametrize("data", [b"%PDF-1.7 nonsense", b"text", pdf("text")[:300]])
def test_a_damaged_pdf_is_reported(data: bytes) -> None:
    write("a.pdf", data)
    assert failure_of("a.pdf").startswith("not a PDF, or damaged")


# JSON lines and CSV


def test_every_json_line_is_a_document() -> None:
    write(
        "a.jsonl",
        '{"_id": "x", "title": "A\\n title", "text": "One.\\r\\nTwo.", "url": 1}\n\n{"_id": 7, "text": "中文"}\n',
    )
    assert records("a.jsonl") == [
        Document("x", "A title", "One.\nTwo.", source="a.jsonl:1", metadata={"url": 1}),
        Document("7", "", "中文", source="a.jsonl:3"),
    ]


def test_the_other_keys_of_a_json_line_and_its_metadata_are_kept_as_metadata_of_the_document() -> None:
    record = {
        "_id": "x",
        "id": 7,
        "text": "One.",
        "url": "https://pumps.example/x",
        "metadata": {"year": 1702, "tags": ["old", "pump"], "none": None},
        "year": 1703,
        "parts": {"seals": [1, 2]},
        "": True,
        "size": 10**30,
        "ratio": float("nan"),
    }
    write("a.jsonl", json.dumps(record))
    (document,) = records("a.jsonl")
    assert isinstance(document, Document)
    assert document.url == "https://pumps.example/x"
    assert document.metadata == {
        "year": 1702,
        "tags": ("old", "pump"),
        "id": 7,
        "year 2": 1703,
        "parts": '{"seals": [1, 2]}',
        "unnamed": True,
        "size": "1" + "0" * 30,
        "ratio": "NaN",
    }


def test_keys_for_which_there_is_no_room_are_named() -> None:
    write("a.jsonl", json.dumps({"text": "One.", **{f"key {number}": number for number in range(70)}}))
    metadata = read_one("a.jsonl").metadata
    assert len(metadata) <= 64
    left_out = metadata["left_out"]
    assert isinstance(left_out, tuple)
    assert {f"key {number}" for number in range(70)} <= {*metadata, *left_out}


def test_a_json_line_without_an_id_is_known_by_its_place() -> None:
    write("a.jsonl", '{"text": "one"}\n{"id": "x", "text": "two"}\n{"_id": " ", "text": "three"}')
    assert ids(read("a.jsonl")) == ["a.jsonl:1", "x", "a.jsonl:3"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("1" * 5000, "not JSON"),
        ("[1]", "the line is [1]; expected an object"),
        ('{"title": "x"}', '"text" is missing; expected a string'),
        ('{"arguments": []}', '"text" is missing; expected a string (facts given as data are read with --method'),
        ('{"text": 3}', '"text" is 3; expected a string'),
        ('{"text": "x", "title": ["y"]}', '"title" is ["y"]; expected a string'),
        ('{"text": "x", "_id": true}', '"_id" is true; expected a string or a whole number'),
        ('{"text": " \\n"}', "empty: no text"),
        (json.dumps({"text": "x" * 200_000}), "longer than 150,000 characters"),
    ],
)
def test_a_bad_json_line_is_reported_by_its_place_and_the_rest_is_read(line: str, reason: str) -> None:
    write("a.jsonl", '{"text": "first"}\n' + line + '\n{"text": "last"}\n')
    first, failure, last = read("a.jsonl", max_bytes=150_000)
    assert isinstance(failure, Failure)
    assert failure.id == "a.jsonl:2"
    assert failure.reason.startswith(reason)
    assert isinstance(first, Document)
    assert isinstance(last, Document)
    assert (first.text, last.text) == ("first", "last")


def test_an_id_that_comes_again_is_left_to_the_indexer() -> None:
    write("a.jsonl", '{"_id": "x", "text": "one"}\n{"_id": "x", "text": "two"}\n')
    write("b.jsonl", '{"_id": "x", "text": "one"}\n')
    assert records("a.jsonl", "b.jsonl") == [
        Document("x", "", "one", source="a.jsonl:1"),
        Document("x", "", "two", source="a.jsonl:2"),
        Document("x", "", "one", source="b.jsonl:1"),
    ]


def test_lone_surrogates_in_json_do_not_survive() -> None:
    write("a.jsonl", '{"_id": "\\ud800", "title": "\\udfff", "text": "a\\ud800b"}')
    document = read_one("a.jsonl")
    assert (document.id, document.title, document.text) == ("\ufffd", "\ufffd", "a\ufffdb")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_records_are_read_in_other_encodings(encoding: str, name: str) -> None:
    content = f'{{"text": "{GERMAN}"}}\n' if name == "a.jsonl" else f"text\n{GERMAN}\n"
    write(name, content.encode(encoding))
    assert read_one(name).text == GERMAN


def test_a_character_cut_by_the_end_of_the_sample_does_not_change_the_encoding() -> None:
    begin = '{"text": "'
    text = "x" * (64 * 1024 - 1 - len(begin)) + "é"
    write("a.jsonl", f'{begin}{text}"}}')
    assert read_one("a.jsonl").text == text


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_a_file_of_no_records_or_of_binary_data_is_reported(name: str) -> None:
    for content in (b"", b"\n\n"):
        write(name, content)
        assert failure_of(name) == "empty: no records"
    write(name, b"\x00" * 100)
    assert failure_of(name) == "binary data, not text"


def test_a_row_is_a_document_of_its_columns() -> None:
    write("a.csv", 'name,flow,\n"P1, main",3 l/s,\n\nP2,"4\nl/s",spare,more\n,,\n')
    assert records("a.csv") == [
        Document(
            "a.csv:2",
            "P1, main",
            "name: P1, main\nflow: 3 l/s",
            source="a.csv:2",
            metadata={"name": "P1, main", "flow": "3 l/s"},
        ),
        Document(
            "a.csv:4",
            "P2",
            "name: P2\nflow: 4 l/s\ncolumn 3: spare\ncolumn 4: more",
            source="a.csv:4",
            metadata={"name": "P2", "flow": "4 l/s", "column 3": "spare", "column 4": "more"},
        ),
    ]


def test_columns_with_the_names_of_json_lines_mean_the_same() -> None:
    write("a.csv", "_ID,Title,Text,url,flow\nx,A title,One.,u,3\n,,Two.,u,\ny,,,u,\n")
    assert records("a.csv") == [
        Document("x", "A title", "One.", source="a.csv:2", url="u", metadata={"flow": "3"}),
        Document("a.csv:3", "", "Two.", source="a.csv:3", url="u"),
        Failure("a.csv:4", "empty: no text"),
    ]


@pytest.mark.parametrize(
    ("header", "row", "title"),
    [
        ("id,made,maker,city", "P-17,2021-05-03,Aldo Pumps,Tarnow", "Aldo Pumps"),
        ("site,owner", "https://pumps.example/a b,Ines Moreau", "Ines Moreau"),
        ("flow,spare,checked,maker", "3 l/s,yes,3 May 2021,Aldo", "Aldo"),
        ("city,Name", "Tarnow,P17", "P17"),
        ("pump_id,flow", "AB,3", ""),
        ("month,maker", "March,Aldo", "March"),
        ("note,maker", f"{'long words ' * 40},Aldo", f"{'long words ' * 9}…"),
        ("title,maker", ",Aldo", "Aldo"),
    ],
)
def test_a_row_without_a_title_is_called_by_its_name_or_first_text(header: str, row: str, title: str) -> None:
    write("a.csv", f"{header}\n{row}\n")
    document = read_one("a.csv")
    assert document.title == title
    assert "title_from" not in document.metadata


def test_a_record_with_a_text_is_called_by_another_text_that_is_not_its_subject() -> None:
    write("a.csv", "kind,text\nnews,One.\n")
    write("a.jsonl", '{"text": "One.", "kind": "news"}\n{"text": "Two.", "kind": "news", "name": "Ines Moreau"}')
    row, first, second = read("a.csv", "a.jsonl")
    assert isinstance(row, Document)
    assert isinstance(first, Document)
    assert isinstance(second, Document)
    assert (row.title, row.metadata["title_from"]) == ("news", "column kind")
    assert (first.title, first.metadata["title_from"]) == ("news", "column kind")
    assert second.title == "Ines Moreau"
    assert "title_from" not in second.metadata


def test_a_row_without_a_text_column_has_its_own_id_and_title() -> None:
    write("a.csv", "_id;title;flow\nx;Pump;3\n")
    assert records("a.csv") == [Document("x", "Pump", "flow: 3", source="a.csv:2", metadata={"flow": "3"})]


def test_type_declarations_are_not_part_of_column_names() -> None:
    header = "drug,dose:number[mg],note:string,at:date,ratio:1,plain:unit[x]"
    write("a.csv", f"{header}\nTarnol,50,so: so,2019,2,3\nCorvenin,5 g,,2020,,\n,few,,,,\n")
    first, second, third = records("a.csv")
    assert isinstance(first, Document)
    assert isinstance(second, Document)
    assert isinstance(third, Document)
    assert first.text == "drug: Tarnol\ndose: 50 mg\nnote: so: so\nat: 2019\nratio:1: 2\nplain:unit[x]: 3"
    assert (first.metadata["dose"], first.metadata["note"]) == ("50 mg", "so: so")
    assert (second.text, third.text) == ("drug: Corvenin\ndose: 5 g\nat: 2020", "dose: few")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_separator_of_columns_is_recognised(delimiter: str) -> None:
    write("a.csv", delimiter.join(["pump", "flow"]) + "\n" + delimiter.join(["P1", "3"]) + "\n")
    assert read_one("a.csv").text == "pump: P1\nflow: 3"


def test_a_row_above_the_limit_is_reported() -> None:
    write("a.csv", "text\n" + "x" * 200 + "\nshort\n")
    long, short = read("a.csv", max_bytes=100)
    assert long == Failure("a.csv:2", "longer than 100 characters, the limit for one document")
    assert isinstance(short, Document)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "long",
    [
        "x" * 5000,
        f'"{"x" * 5000}"',
        '"' + "x\n" * 5000 + '"',
        '"' + 'a ""quote"", and\n' * 500 + '"',
        '"a""' + "x" * 500 + '\nb"""',
        'pipe of 5" ' + "x" * 500,
        ",".join(['"x\ny"'] * 100),
    ],
)
def test_a_row_without_end_is_left_out_wherever_it_ends_and_the_rest_is_read(long: str, end: str) -> None:
    write("a.csv", f"text,flow{end}first,1{end}{long},2{end}last,3{end}")
    first, failure, last = read("a.csv", max_bytes=100)
    assert failure == Failure("a.csv:3", "longer than 100 characters, the limit for one document")
    assert isinstance(first, Document)
    assert isinstance(last, Document)
    assert (first.text, last.text, last.id) == ("first", "last", "a.csv:4")


def test_a_row_as_long_as_the_limit_is_read() -> None:
    write("a.csv", f"text\r\n{'x' * 100}\r\ny\r\n")
    assert ids(read("a.csv", max_bytes=100)) == ["a.csv:2", "a.csv:3"]


def test_a_row_without_end_is_not_held_in_memory() -> None:
    write("a.csv", "text\n" + "x" * 20_000_000 + "\nshort\n")
    tracemalloc.start()
    assert len(read("a.csv", max_bytes=100_000)) == 2
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000


def test_names_of_columns_without_end_are_a_failure_and_all_there_is() -> None:
    write("a.csv", "x" * 500 + "\nshort\n")
    reason = "longer than 100 characters, the limit for one document; nothing from line 1 on was read"
    assert read("a.csv", max_bytes=100) == [Failure("a.csv:1", reason)]


def test_a_quote_without_its_pair_in_a_long_table_says_that_nothing_behind_it_was_read() -> None:
    write("a.csv", 'text\none\n"two\n' + "three\n" * 100)
    first, failure = read("a.csv", max_bytes=100)
    assert first.id == "a.csv:2"
    assert isinstance(failure, Failure)
    assert failure.reason.endswith("; nothing from line 3 on was read")


def test_a_quote_that_is_not_closed_is_a_failure_of_its_line_alone() -> None:
    write("a.csv", 'name,flow\n"P1\nmain",3\n"P2,4 l/s\nP3,5\n')
    first, failure, last = read("a.csv")
    assert failure == Failure("a.csv:3", "line 4 is not CSV: unexpected end of data")
    assert [getattr(row, "text", "") for row in (first, last)] == ["name: P1 main\nflow: 3", "name: P3\nflow: 5"]


@pytest.mark.parametrize("row", ['"P2" old,4 l/s', '"""P2"" old","4 l/s"', '""P2" old",4 l/s'])
def test_a_stray_quote_is_text(row: str) -> None:
    write("a.csv", f'name,flow\n{row}\nP3,"5\n"\n')
    first, last = read("a.csv")
    assert (getattr(first, "id", ""), getattr(last, "text", "")) == ("a.csv:2", "name: P3\nflow: 5")
    assert '"P2" old'.strip('"') in getattr(first, "text", "")
    assert "flow: 4 l/s" in getattr(first, "text", "")


@pytest.mark.parametrize(
    "beginning",
    [
        "",
        "sep=;\n",
        '"sep=;"\r\n',
        "SEP=;;\n",
        "Stock, May\n\n",
        "Stock;;\n;;\n",
        "Stock report\nof May\n",
    ],
)
def test_titles_and_a_declared_delimiter_before_the_column_names_are_no_row(beginning: str) -> None:
    write("a.csv", f"{beginning}Part;Stock;Place\nSeal S-7;1,4;Hall 1\nBolt;3;Hall 2\n")
    assert [getattr(row, "text", "") for row in read("a.csv")] == [
        "Part: Seal S-7\nStock: 1,4\nPlace: Hall 1",
        "Part: Bolt\nStock: 3\nPlace: Hall 2",
    ]


def test_a_table_with_one_column_has_no_titles() -> None:
    write("a.csv", "text\nHello, world\nGood, bye\n")
    assert [getattr(row, "text", "") for row in read("a.csv")] == ["Hello", "Good"]


def test_quotes_inside_a_value_that_does_not_begin_with_one_are_text() -> None:
    write("a.csv", 'name,flow\npipe of 5",3\n"a ""small"" one",4\n')
    assert [getattr(document, "text", "") for document in read("a.csv")] == [
        'name: pipe of 5"\nflow: 3',
        'name: a "small" one\nflow: 4',
    ]


def test_a_value_above_the_limit_of_the_csv_module_is_read() -> None:
    write("a.csv", "text\n" + "x" * 200_000 + "\n")
    assert len(read_one("a.csv").text) == 200_000


def test_files_are_counted_without_those_of_other_kinds(tmp_path: Path) -> None:
    for name in ("a.txt", "b.jsonl", "c.exe", ".hidden.txt"):
        (tmp_path / name).write_text("x")
    named = tmp_path / "c.exe"
    assert FileReader().count([tmp_path]) == 2
    assert FileReader().count([tmp_path, named]) == 3, "one that is named itself is a failure, and counted"


# Other kinds


def test_source_code_is_text_called_by_the_whole_name_of_its_file() -> None:
    write("tools/old_pump.py", "def start(pump):\n    return pump\n")
    assert titled("tools/old_pump.py") == ("old_pump.py", "file name")
    assert read_one("tools/old_pump.py").text == "def start(pump):\n    return pump\n"


@pytest.mark.parametrize("extension", ["text", "rst", "markdown", "htm", "xhtml", "yaml", "sql"])
def test_other_extensions_of_text_are_read(extension: str) -> None:
    write(f"a.{extension}", "The pump is old.")
    assert read_one(f"a.{extension}").text == "The pump is old."


def test_a_text_that_says_what_it_is_called_is_called_so() -> None:
    write(
        "pg17.txt",
        "The eBook of Pumps\n\nTitle: The Pump\n   and the Seal\n\nAuthor: Ines Moreau\n\n*** START ***\nDate: x",
    )
    document = read_one("pg17.txt")
    assert titled("pg17.txt") == ("The Pump and the Seal", None)
    assert document.metadata["author"] == "Ines Moreau"
    assert "date" not in document.metadata
    assert document.text.startswith("The eBook of Pumps")


def test_files_of_different_names_have_different_ids(tmp_path: Path) -> None:
    names = ["a\nb.md", "a\\x0ab.md", "a\\x5cx0ab.md", "a\\b.md", "a\\\nb.md"]
    for name in names:
        (tmp_path / name).write_text("Text.")
    assert len({format_path(Path(name)) for name in names}) == len(names)
    assert format_path(Path("a\\b.md")) == "a\\b.md"


@pytest.mark.parametrize(
    ("columns", "rows", "reason"),
    [
        (["a", "b" * 501], 3, "a column name of 501 characters; at most 500 are read: shorten it"),
        (["a"] * 5_001, 3, "5,001 columns; at most 5,000 are read: leave out some"),
        (["a" * 500] * 20, 6_000, "characters of text, the limit for a file of 250,020 bytes"),
    ],
)
def test_a_table_whose_rows_repeat_much_is_rejected(tmp_path: Path, columns: list[str], rows: int, reason: str) -> None:
    file = tmp_path / "a.csv"
    file.write_text(",".join(columns) + "\n" + (",".join("1" for _ in columns) + "\n") * rows)
    *_, last = FileReader().read([file])
    assert isinstance(last, Failure)
    assert reason in last.reason
