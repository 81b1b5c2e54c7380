from email.message import EmailMessage

import pytest

from polyad.errors import ReadError
from polyad.model import Section
from polyad.readers.format import Source
from polyad_readers.web.eml import read_eml

HEADER = "From: Ines Moreau <ines@example.org>\nTo: bob@example.org\nDate: 1 May 2023, 10:00\n\n"


def message(text: str = "The pump is old.\n> Is it?\n") -> EmailMessage:
    made = EmailMessage()
    made["Subject"] = "Übersicht: the\tpump"
    made["From"] = "Ines Moreau <ines@example.org>"
    made["To"] = "bob@example.org"
    made["Date"] = "Mon, 01 May 2023 10:00:00 +0200"
    if text:
        made.set_content(text)
    return made


def test_the_subject_is_the_title_and_who_wrote_when_precedes_the_text() -> None:
    content = read_eml(Source.from_bytes(message().as_bytes()))
    assert (content.title, content.text) == ("Übersicht: the pump", f"{HEADER}The pump is old.\n> Is it?")
    assert content.metadata == {
        "from": "Ines Moreau <ines@example.org>",
        "to": "bob@example.org",
        "date": "Mon, 01 May 2023 10:00:00 +0200",
    }


def test_of_several_forms_plain_text_is_read() -> None:
    made = message()
    made.add_alternative("<p>The <b>page</b></p>", subtype="html")
    assert read_eml(Source.from_bytes(made.as_bytes())).text == f"{HEADER}The pump is old.\n> Is it?"


def test_html_is_read_where_there_is_no_plain_text() -> None:
    made = message("")
    made.set_content("<h1>Pumps</h1><nav>Away</nav><p>Old.</p>", subtype="html")
    content = read_eml(Source.from_bytes(made.as_bytes()))
    assert content.text == f"{HEADER}Pumps\n\nOld."
    assert content.sections == (Section("Pumps", 0, len(content.text)),)


def test_attachments_are_named_and_attached_texts_read() -> None:
    made = message()
    made.add_attachment(b"\x00\x01", maintype="image", subtype="png", filename="pump.png")
    made.add_attachment("The dredger is sold.\n", filename="notes.txt")
    made.add_attachment(b"<p>The gate</p>", maintype="application", subtype="octet-stream", filename="Süd.html")
    content = read_eml(Source.from_bytes(made.as_bytes()))
    assert content.metadata["attachments"] == ("pump.png", "notes.txt", "Süd.html")
    assert content.removals == {"pictures_without_text": ("pump.png",)}
    assert content.text == (
        f"{HEADER[:-1]}Attachments: pump.png, notes.txt, Süd.html\n\nThe pump is old.\n> Is it?\n\n"
        "Attachment: notes.txt\n\nThe dredger is sold.\n\nAttachment: Süd.html\n\nThe gate"
    )
    assert [section.name for section in content.sections] == ["notes.txt", "Süd.html"]
    assert (
        content.text[content.sections[0].start : content.sections[0].end]
        == "Attachment: notes.txt\n\nThe dredger is sold."
    )


@pytest.mark.parametrize("filename", ["x.txt", "x.csv", "x.html"])
def test_an_attachment_that_is_no_text_in_spite_of_its_name_is_only_named(filename: str) -> None:
    made = message()
    made.add_attachment(bytes(99), maintype="application", subtype="octet-stream", filename=filename)
    assert (
        read_eml(Source.from_bytes(made.as_bytes())).text
        == f"{HEADER[:-1]}Attachments: {filename}\n\nThe pump is old.\n> Is it?"
    )


@pytest.mark.parametrize(
    ("plain", "html", "text"),
    [
        ("Open this message in another program.", "<p>The order comes on 9 May.</p>", "The order comes on 9 May."),
        ("Hello,", "<p>Hello,</p><p>The seal costs 14 euros and is here.</p>", None),
        ("The seal\ncosts 14 euros.", "<p>The seal costs <b>14</b> euros.</p>", "The seal\ncosts 14 euros."),
        (
            "A report of the pump and the gate.",
            "<p>No preview</p>",
            "A report of the pump and the gate.",
        ),
    ],
)
def test_plain_text_gives_way_to_html_if_it_is_a_stub(plain: str, html: str, text: str | None) -> None:
    made = message(plain)
    made.add_alternative(html, subtype="html")
    expected = text or "Hello,\n\nThe seal costs 14 euros and is here."
    assert read_eml(Source.from_bytes(made.as_bytes())).text == HEADER + expected


def test_a_footer_of_plain_text_does_not_hide_a_body_of_html() -> None:
    made = message("")
    made.set_content("<p>The pump is old.</p>", subtype="html")
    made.make_mixed()
    footer = EmailMessage()
    footer.set_content("To unsubscribe, write to the list.")
    made.attach(footer)
    assert (
        read_eml(Source.from_bytes(made.as_bytes())).text
        == f"{HEADER}The pump is old.\n\nTo unsubscribe, write to the list."
    )


def test_a_forwarded_message_has_its_own_headers_and_section() -> None:
    inner, outer = message("The inspector needs the log book."), message("See below.")
    inner.replace_header("Subject", "Crane inspection")
    inner.replace_header("From", "Karin Holt <karin@example.net>")
    inner.add_attachment("The log.", filename="log.txt")
    outer.add_attachment(inner)
    content = read_eml(Source.from_bytes(outer.as_bytes()))
    assert content.text.endswith(
        "\n\nSee below.\n\nSubject: Crane inspection\nFrom: Karin Holt <karin@example.net>\nTo: bob@example.org\n"
        "Date: 1 May 2023, 10:00\nAttachments: log.txt\n\nThe inspector needs the log book.\n\n"
        "Attachment: log.txt\n\nThe log."
    )
    assert [section.name for section in content.sections] == ["Crane inspection", "log.txt"]


def test_an_invitation_is_read_as_lines() -> None:
    made = message("Please come.")
    made.add_alternative(
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;TZID=Europe/Paris:20240612T090000\nDTEND:20240612T100000Z\n"
        'SUMMARY:Review of the\n  lock\nLOCATION:Room 4\\, left\nORGANIZER;CN="Moreau: Ines":mailto:ines@example.org\n'
        "DESCRIPTION:Bring the drawings\\nand the log.\nEND:VEVENT\nEND:VCALENDAR\n",
        subtype="calendar",
    )
    assert read_eml(Source.from_bytes(made.as_bytes())).text == HEADER + (
        "Please come.\n\nStart: 12 June 2024, 09:00 (Europe/Paris)\nEnd: 12 June 2024, 10:00 UTC\n"
        "Event: Review of the lock\nLocation: Room 4, left\nOrganizer: Moreau: Ines, ines@example.org\n"
        "Description: Bring the drawings\nand the log."
    )


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_precedes_no_header(encoding: str) -> None:
    assert read_eml(Source.from_bytes("Subject: Tür\n\nThe gate is shut.".encode(encoding))).title == "Tür"


@pytest.mark.parametrize("charset", ["nonsense", "idna", "us-ascii"])
def test_a_text_in_another_encoding_than_it_declares_is_read(charset: str) -> None:
    headers = f"Subject: Pump\nContent-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: 8bit"
    data = f"{headers}\n\nGröße der Straße."
    assert read_eml(Source.from_bytes(data.encode())).text == "Größe der Straße."


@pytest.mark.parametrize(
    ("header", "title"),
    [
        ("=?iso-8859-8-i?B?7vT67w==?=", "מפתן"),
        ("=?iso-8859-1?Q?It=92s_14_=80?=", "It\u2019s 14 €"),
        ("=?utf-8?B?5a+G?= =?utf-8?B?5bCB?=", "密封"),
        ("=?utf-8?B?5a8=?=\n =?utf-8?B?hg==?=", "密"),
        ("Re: =?utf-8?Q?T=C3=BCr?= and gate", "Re: Tür and gate"),
        ("=?utf-8?Q?T=FCr?=", "Tür"),
        ("Tür und Tor", "Tür und Tor"),
    ],
)
def test_the_words_of_a_header_are_decoded_in_their_encodings(header: str, title: str) -> None:
    assert read_eml(Source.from_bytes(f"Subject: {header}\n\nOld.".encode())).title == title


def test_bytes_of_a_header_are_in_the_encoding_of_the_body() -> None:
    data = "Subject: Ящик\nContent-Type: text/plain; charset=koi8-r\n\nЯщик.".encode("koi8-r")
    assert read_eml(Source.from_bytes(data)).title == "Ящик"


@pytest.mark.parametrize("data", [b"", b"no headers at all\n\nat all", b"\x00\x01"])
def test_files_that_are_no_message_are_reported(data: bytes) -> None:
    with pytest.raises(ReadError, match="not an e-mail"):
        read_eml(Source.from_bytes(data))


@pytest.mark.parametrize(
    "headers",
    [
        "Subject: =?x?q?=ff?=\nFrom: <<<@,,\nDate: never",
        "Content-Disposition: attachment; filename*=x",
        "To: " + "a," * 20_000,
    ],
)
def test_malformed_headers_do_not_keep_a_message_from_being_read(headers: str) -> None:
    assert read_eml(Source.from_bytes(f"X: y\n{headers}\n\nOld.".encode())).metadata.keys() <= {
        "from",
        "to",
        "date",
        "attachments",
    }


def test_parts_within_parts_without_end_are_reported() -> None:
    nested = "".join(f"Content-Type: multipart/mixed; boundary=b{depth}\n\n--b{depth}\n" for depth in range(2000))
    with pytest.raises(ReadError):
        read_eml(Source.from_bytes(f"Subject: Pump\n{nested}".encode()))
