# ruff: noqa: RUF001  (letters of other alphabets)

import random

import pytest

from polyad.errors import ReadError
from polyad.readers.text.encodings import decode_text, detect_encoding, find_codec

GERMAN = "Der Schlüssel der Brücke hängt größtenteils über der Tür."


@pytest.mark.parametrize(
    ("label", "codec", "text"),
    [
        ("iso-8859-1", "cp1252", "“S-7” costs 14 € – it’s Müller’s."),
        ("us-ascii", "cp1252", "It’s 14 €."),
        ("latin1", "cp1252", "œuvre – 3 €"),
        ("iso-8859-9", "cp1254", "“Işık” 5 € – kapalı."),
        ("shift_jis", "cp932", "①号機の髙橋さん、㈱港。"),
        ("x-sjis", "cp932", "①号機の髙橋さん"),
        ("euc-kr", "cp949", "펌프 똠방각하 열쇠"),
        ("ks_c_5601-1987", "cp949", "펌프 똠방각하 열쇠"),
        ("gb2312", "gb18030", "镕断的密封圈在堃哥处"),
        ("x-gbk", "gb18030", "镕断的密封圈在堃哥处"),
        ("big5", "big5hkscs", "水泵的鑰匙在堃哥處，裏面。"),
        ("euc-jp", "euc_jis_2004", "①号機の点検"),
        ("tis-620", "cp874", "ปั๊มน้ำ – “เก่า”"),
        ("iso-8859-8-i", "iso8859-8", "המפתח נמצא בתיבה"),
        ("windows-31j", "cp932", "㈱港"),
        ('"KOI8-RU"', "koi8-u", "Ключ у сторожа"),
        ("x-mac-roman", "mac-roman", GERMAN),
        ("iso-2022-jp", "iso2022_jp", "予備の鍵は九番の箱にある。"),
        ("hz-gb-2312", "hz", "密封圈"),
    ],
)
def test_a_label_means_what_browsers_take_it_for(label: str, codec: str, text: str) -> None:
    assert decode_text(text.encode(codec), label) == text


@pytest.mark.parametrize("label", ["", "nonsense", "idna", "undefined", "zip", "default", "unknown-8bit", "\0", "é"])
def test_a_label_without_encoding_has_no_codec(label: str) -> None:
    assert find_codec(label) == ""
    assert decode_text(GERMAN.encode("cp1252"), label) == GERMAN


@pytest.mark.parametrize("label", ["iso-8859-1", "windows-1251", "shift_jis", "gb2312", "utf-16", "us-ascii"])
def test_valid_utf_8_wins_over_another_declaration(label: str) -> None:
    assert decode_text(GERMAN.encode(), label) == GERMAN


@pytest.mark.parametrize(
    ("label", "codec", "text"),
    [
        ("utf-8", "cp1252", GERMAN),
        ("utf-8", "cp1256", "المفتاح الاحتياطي في الصندوق رقم تسعة عند حارس البوابة."),
        ("utf-8", "gb18030", "密封圈在九号箱"),
        ("big5", "cp1251", "Ключ висит у входа в насосную станцию"),
        ("iso-8859-1", "cp1251", "Ключ висит у входа в насосную станцию города."),
        ("windows-1252", "gb18030", "备用钥匙在看门人那里的九号箱子里。"),
    ],
)
def test_a_declaration_that_does_not_fit_the_text_is_not_believed(label: str, codec: str, text: str) -> None:
    assert decode_text(text.encode(codec), label) == text


@pytest.mark.parametrize("label", ["utf-8", ""])
def test_a_damaged_byte_does_not_change_the_encoding(label: str) -> None:
    data = GERMAN.encode()
    assert decode_text(data + b"\xff", label) == GERMAN + "\ufffd"
    assert decode_text("密封圈在九号箱".encode("gb18030") + b"\xff.", "gb2312") == "密封圈在九号箱\ufffd."


def test_two_valid_letters_outweigh_a_damaged_one_in_text_that_is_declared_as_utf_8() -> None:
    assert decode_text("Tür, Brücke".encode() + b" \xff", "utf-8") == "Tür, Brücke \ufffd"


@pytest.mark.parametrize(
    ("codec", "text"),
    [
        ("koi8-r", "Ключ у сторожа."),
        ("cp855", "Ключ висит у сторожа."),
        ("cp866", "Ключ висит у сторожа."),
        ("cp1251", "Ключ"),
        ("koi8-u", "Ключ висить біля входу."),
        ("cp1251", "НАСОСНАЯ СТАНЦИЯ"),
        ("gb18030", "零件,库存\n密封圈,14\n轴承,3\n"),
        ("big5hkscs", "備用鑰匙在九號箱"),
        ("cp932", "予備の鍵"),
        ("euc_jp", "予備の鍵は九番の箱"),
        ("cp949", "예비 열쇠는 상자에 있다"),
        ("cp1255", "המפתח נמצא בתיבה."),
        ("cp1256", "المفتاح في الصندوق"),
        ("cp1253", "Το κλειδί είναι στο κουτί"),
        ("cp1250", "Śluza jest zamknięta."),
        ("iso8859-2", "Klíč visí u vchodu, přečtěte si štítek."),
        ("cp1254", "Işık söndü, çığ düştü."),
        ("cp1257", "Atslēga atrodas pie šīm durvīm, ņemiet to."),
        ("cp874", "กุญแจอยู่ในกล่อง"),
        ("cp850", "Schlüssel bei Müller."),
        ("cp1252", "Il a payé 3 € – déjà."),
        ("cp1252", "It’s 3 °C"),
        ("iso2022_jp", "予備の鍵"),
        ("utf-16-le", "The key is here"),
        ("utf-32-le", "The key 𐌓 is here"),
        ("utf-32-be", "The key 𐌓 is here"),
    ],
)
def test_the_encoding_of_a_short_text_is_recognised_by_its_letters(codec: str, text: str) -> None:
    assert decode_text(text.encode(codec)) == text


def test_a_character_that_the_end_of_a_sample_cuts_is_no_damage() -> None:
    assert detect_encoding("Straße".encode()[:5], is_whole_file=False) == "utf-8"
    assert detect_encoding("密封圈在九号箱".encode("gb18030")[:-1], "gb2312", is_whole_file=False) == "gb18030"


def test_random_bytes_are_no_text() -> None:
    with pytest.raises(ReadError):
        decode_text(random.Random(0).randbytes(3000))


def test_the_encoding_of_a_file_with_one_long_word_is_detected() -> None:
    assert detect_encoding(b"x" * 500_000 + "\nGröße".encode("cp1252")) == "cp1252"
