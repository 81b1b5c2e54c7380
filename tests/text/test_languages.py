# ruff: noqa: RUF001 -- texts in many scripts
import pytest

from polyad.text.languages import detect_language, find_language, parse_language_code

SENTENCES = {
    "en": "The bell in the tower was cast by Ines Moreau, who came from Port Lisle.",
    "de": "Die Glocke im Turm wurde von Ines Moreau gegossen, die aus Port Lisle kam.",
    "fr": "La cloche de la tour a été fondue par Ines Moreau, qui venait de Port Lisle.",
    "zh": "塔里的钟是由来自利勒港的伊内斯·莫罗铸造的。",
    "ja": "塔の鐘は、リール港出身のイネス・モローによって鋳造されました。",
    "ar": "صُبَّ الجرس في البرج على يد إينيس مورو، التي جاءت من بورت ليل.",
    "th": "ระฆังในหอคอยหล่อโดยอีเนส โมโร ซึ่งมาจากท่าเรือลีล",
    "ru": "Колокол в башне отлила Инес Моро, которая приехала из Порт-Лиля.",
    "hi": "मीनार की घंटी इनेस मोरो ने ढाली थी, जो पोर्ट लिस्ले से आई थीं।",
    "el": "Η καμπάνα του πύργου χυτεύτηκε από την Ινές Μορό, που ήρθε από το Πορτ Λιλ.",
}


@pytest.mark.parametrize("code", SENTENCES)
def test_the_language_of_a_sentence_is_detected(code: str) -> None:
    assert detect_language(SENTENCES[code]) == code


@pytest.mark.parametrize("text", ["", "17", "3,5 4,7 8,1 2019 2020 2021", "Ada", "\ud800", "_-_", "钟"])
def test_a_text_that_is_too_short_has_no_language(text: str) -> None:
    assert detect_language(text) == ""


def test_most_of_a_long_text_decides() -> None:
    german, english = SENTENCES["de"] + "\n", SENTENCES["en"] + "\n"
    assert detect_language(english * 20 + german * 200) == "de"
    assert detect_language(german * 20 + english * 200) == "en"


def test_names_in_another_script_do_not_decide() -> None:
    assert detect_language("Gayathri (Tamil: காயத்ரி வெங்கட்ராகவன்) is an Indian singer who lives in Chennai.") == "en"
    assert detect_language("HyperGraphRAG 使用 GPT-4o-mini 和 LightRAG 進行比較，結果在表格中。") == "zh"


@pytest.mark.parametrize(
    ("stated", "code"),
    [("en", "en"), ("fr", "fr"), ("FR-ca", "fr"), ("ger", "de"), ("zh", "de"), ("German", "de"), ("", "de"), (7, "de")],
)
def test_a_stated_language_counts_unless_the_text_has_other_letters(stated: object, code: str) -> None:
    assert find_language(SENTENCES["de"], stated) == code


def test_the_language_of_a_template_does_not_count_for_a_text_in_other_letters() -> None:
    assert find_language(SENTENCES["ar"], "en-US") == "ar"
    assert find_language(SENTENCES["zh"], "zh-Hant-TW") == "zh"


@pytest.mark.parametrize(
    ("value", "code"),
    [("de", "de"), ("pt-BR", "pt"), ("zh_Hans", "zh"), ("eng", "en"), ("xyz", ""), ("", ""), (None, ""), (("de",), "")],
)
def test_a_language_tag_becomes_a_code(value: object, code: str) -> None:
    assert parse_language_code(value) == code
