from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.config import SplitSettings
from polyad.indexing.facts.grounding import Grounder, compute_grounded_share
from polyad.indexing.split import SentenceSplitter
from polyad.model import Span

TEXT = (
    "The Bell of Tarn was cast by Émile Zola-Moreau in 1702.\nIt hangs in Corven\nTower, a gift of W. E. B. Du Bois. "
    'Smith & Sons sold it to "The Who" for 1,000 marks.'
)


def grounder(text: str = TEXT, title: str = "Bell of Tarn (film)") -> Grounder:
    return Grounder(title, text, SentenceSplitter(SplitSettings()).sentences(text))


@pytest.mark.parametrize(
    "name",
    [
        "Bell of Tarn",
        "BELL of tarn",
        "Emile Zola-Moreau",
        "émile ZOLA MOREAU",
        "E\u0301mile Zola\u2011Moreau",
        "Corven Tower",
        "W.E.B. Du Bois",
        "Smith & Sons",
        "Smith Sons",
        "the who",
        "1702",
        "film",
        "Bell of Tarn (film)",
    ],
)
def test_a_name_whose_words_stand_in_passage_or_title_is_grounded(name: str) -> None:
    assert grounder().is_grounded(name)


@pytest.mark.parametrize(
    "name",
    [
        "Bells",
        "BELL OF TARN",
        "FILM",
        "Corven Castle",
        "Tower Corven",
        "Bel",
        "ell of Tar",
        "170",
        "Film The Bell",
        "Paris",
        "",
        " ",
        "?!",
    ],
)
def test_a_name_that_is_not_there_is_not_grounded(name: str) -> None:
    assert not grounder(title="Film").is_grounded(name)


def test_title_and_text_do_not_make_a_name_together() -> None:
    assert not grounder("Lovelace wrote it.", title="Ada").is_grounded("Ada Lovelace")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("東京", "彼は東京に住む。"),
        ("ガンダム", "機動戦士ガンダムは有名だ。"),
        ("서울", "그는 서울에서 태어났다."),
        ("서울", unicodedata.normalize("NFD", "그는 서울에서 태어났다.")),
        ("Việt Nam", "ở Viet Nam"),
        ("Straße", "die STRASSE"),
        ("IBM", "IBM公司于1911年成立,开发Python语言。"),
        ("1911", "IBM公司于1911年成立,开发Python语言。"),
        ("Python", "IBM公司于1911年成立,开发Python语言。"),
        ("Python 语言", "IBM公司于1911年成立,开发Python语言。"),
        ("《红楼梦》", "小说红楼梦有一百二十回"),
        ("1969", "아폴로 11호는 1969년에 발사되었다."),
        ("กรุงเทพมหานคร", "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย"),
        ("ประเทศไทย", "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย"),
        ("ວຽງຈັນ", "ນະຄອນຫຼວງວຽງຈັນເປັນເມືອງຫຼວງ"),
        ("ភ្នំពេញ", "ទីក្រុងភ្នំពេញជារាជធានី"),
        ("ရန်ကုန်", "ရန်ကုန်မြို့သည်မြို့ကြီးဖြစ်သည်"),
        ("दिल्ली", "भारत की राजधानी दिल्ली है।"),
    ],
)
def test_names_of_scripts_without_spaces_and_with_accents_are_grounded(name: str, text: str) -> None:
    assert grounder(text, title="").is_grounded(name)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("가바", "가방"),  # syllables of Hangul
        ("カンタム", "ガンダム"),
        ("ปี", "ปา"),  # the vowel is written above the letter
        ("กรง", "กรุงเทพ"),  # and below it
        ("大阪東京", "東京、大阪、東京"),
        ("दिल", "दिल्ली"),
        ("IBM", "IBMs公司"),
        ("Python", "Python3を"),
    ],
)
def test_part_of_another_word_is_not_grounded(name: str, text: str) -> None:
    assert not grounder(text, title="").is_grounded(name)


@pytest.mark.parametrize("name", ["US", "U.S.", "WHO", "IT"])
def test_an_acronym_is_grounded_by_capitals_alone(name: str) -> None:
    other_grounder = grounder("She told us who knew it.", title="Us (film)")
    assert not other_grounder.is_grounded(name)
    assert other_grounder.find_spans(name) == []
    assert other_grounder.is_grounded(name.lower().replace("u.s.", "us"))
    assert grounder(f"The {name} knew.").is_grounded(name)
    assert grounder("She knew.", title=name).is_grounded(name)


def test_spans_keep_to_the_case_of_the_name_if_they_can() -> None:
    actual = grounder("polish Polish people", title="")
    assert actual.find_spans("Polish") == [(7, 13)]
    assert actual.find_spans("POLish") == [(0, 6), (7, 13)]
    assert actual.text[7:13] == "Polish"
    assert actual.find_spans("Poland") == []


def test_a_fact_in_the_passages_own_words_has_their_span() -> None:
    fact = "cast by Émile Zola-Moreau in 1702."
    assert grounder().find_span(fact).of(TEXT) == fact


def test_any_other_fact_has_the_sentence_with_which_it_shares_most_words() -> None:
    span = grounder().find_span("Smith and Sons sold the bell.")
    assert span.of(TEXT).startswith("Smith & Sons sold")
    tie = grounder("Ada came. Ada left.", title="")
    assert tie.find_span("Ada slept").of("Ada came. Ada left.") == "Ada came.", "the first of equals"


def test_a_fact_that_shares_no_word_has_the_whole_passage() -> None:
    assert grounder().find_span("xyz") == Span(0, len(TEXT))
    assert Grounder("", "???", []).find_span("xyz") == Span(0, 3)


PIECES = st.lists(
    st.sampled_from(
        ["Ada", "ADA ", "é", "ß", " ", "\n", ".", "서울", "İ", "ﬁ", "½", "東京", "the", "กั", "ำ", "दि", "が"]
    )
).map("".join)


@given(title=PIECES, text=PIECES, name=PIECES, fact=PIECES | st.text())
def test_whatever_the_words_spans_lie_inside_the_passage(title: str, text: str, name: str, fact: str) -> None:
    actual = Grounder(title, text, SentenceSplitter(SplitSettings()).sentences(text))
    for start, end in actual.find_spans(name):
        assert 0 <= start < end <= len(text)
        assert actual.text[start:end].casefold() == name.casefold()
    span = actual.find_span(fact)
    assert 0 <= span.start <= span.end <= len(text)


@given(text=PIECES, start=st.integers(0, 30), length=st.integers(1, 3))
def test_words_of_the_passage_are_grounded(text: str, start: int, length: int) -> None:
    words = text.split()[start : start + length]
    if any(map(str.isalnum, "".join(words))):
        assert Grounder("", text, []).is_grounded(" ".join(words))


CHINESE = "艾达于1815年出生在伦敦。她在1833年认识了巴贝奇。分析机是用黄铜做的机器。"
JAPANESE = "エイダは1815年にロンドンで生まれた。彼女は1833年にバベッジと出会った。解析機関は真鍮の機械である。"


@pytest.mark.parametrize(
    ("text", "fact", "sentence"),
    [
        (CHINESE, "艾达·洛芙莱斯1833年认识查尔斯·巴贝奇。", 1),
        (CHINESE, "分析机由黄铜制成是一种机器。", 2),
        (JAPANESE, "エイダ・ラブレスは1833年にチャールズ・バベッジに出会った。", 1),
        (JAPANESE, "真鍮で作られた解析機関。", 2),
    ],
)
def test_a_fact_in_a_script_without_spaces_has_the_sentence_that_shares_most_characters(
    text: str, fact: str, sentence: int
) -> None:
    spans = [Span(m.start(), m.end()) for m in re.finditer(r"[^。]+。", text)]
    assert Grounder("", text, spans).find_span(fact) == spans[sentence]


@pytest.mark.parametrize(
    ("fact", "share"),
    [
        ("Smith & Sons sold the Bell of Corven Abbey.", 5 / 6),
        ("Émile Zola-Moreau cast it in 1702.", 1.0),
        ("It was painted by Rembrandt.", 0.0),
        ("It was.", 1.0),
    ],
)
def test_a_fact_is_grounded_by_the_share_of_its_content_words(fact: str, share: float) -> None:
    assert compute_grounded_share(fact, TEXT) == pytest.approx(share)


def test_a_fact_in_a_script_without_spaces_is_grounded_by_its_characters() -> None:
    assert compute_grounded_share("艾达于1815年出生", CHINESE) == 1.0
    assert compute_grounded_share("图灵出生在巴黎。", CHINESE) < 0.5
