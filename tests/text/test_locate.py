from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.text.locate import find_name_spans, find_occurrences, is_unspaced, is_word_character

CHINESE = "IBM公司于1911年成立,开发Python语言。"  # "IBM was founded in 1911 and develops the language Python."
KOREAN = "아폴로 11호는 1969년에 NASA가 발사했다."  # "Apollo 11 was launched by NASA in 1969."
JAPANESE = "彼は東京でPythonを2001年に学んだ。"  # "He learnt Python in Tokyo in 2001."
THAI = "กรุงเทพมหานครเป็นเมืองหลวงตั้งแต่ปี1782ของประเทศไทย"  # "Bangkok is the capital of Thailand since 1782."
LAO = "ນະຄອນຫຼວງວຽງຈັນເປັນເມືອງຫຼວງ"  # "Vientiane is the capital."
KHMER = "ទីក្រុងភ្នំពេញជារាជធានី"  # "Phnom Penh is the capital."
BURMESE = "ရန်ကုန်မြို့သည်မြို့ကြီးဖြစ်သည်"  # "Yangon is a big city."


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("IBM", CHINESE),
        ("ibm", CHINESE),
        ("1911", CHINESE),
        ("Python", CHINESE),
        ("公司", CHINESE),
        ("IBM公司", CHINESE),
        ("1969", KOREAN),
        ("NASA", KOREAN),
        ("아폴로 11", KOREAN),
        ("東京", JAPANESE),
        ("Python", JAPANESE),
        ("2001", JAPANESE),
        ("กรุงเทพมหานคร", THAI),
        ("ประเทศไทย", THAI),
        ("1782", THAI),
        ("ວຽງຈັນ", LAO),
        ("ភ្នំពេញ", KHMER),
        ("ရန်ကုန်", BURMESE),
        ("𠮷野家", "昨日𠮷野家で食べた"),
    ],
)
def test_a_name_needs_no_bound_beside_a_script_without_spaces(name: str, text: str) -> None:
    ((start, end),) = find_name_spans(name, text)
    assert text[start:end].casefold() == name.casefold()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("IBM", "IBMs公司"),
        ("191", CHINESE),
        ("Pythons", CHINESE),
        ("ython", CHINESE),
        ("69", KOREAN),
        ("Rome", "Romeo"),
        ("Рим", "Римский"),  # "Rome" and "Roman" in Cyrillic script
        ("Ada", "Adaمحمد"),
        ("T恤", "XT恤"),
        ("दिल", "दिल्ली"),
        ("กรุงเทพมหานค", "กรุงเทพมหานคั"),
        ("Jose", "Jose\u0301"),
    ],
)
def test_a_name_needs_a_bound_beside_a_letter_of_a_script_with_spaces(name: str, text: str) -> None:
    assert find_name_spans(name, text) == []


@pytest.mark.parametrize("name", ["US", "U.S", "IT", "WHO", "C#", "É", "US軍"])
def test_a_name_in_capitals_has_its_own_case_only(name: str) -> None:
    assert find_name_spans(name, f"{name.lower()} or {name}") == [(4 + len(name), 4 + 2 * len(name))]
    assert find_name_spans(name, f"They told {name.lower()}.") == []


@pytest.mark.parametrize("name", ["Us", "us", "iPhone", "1969", "McX", "東京"])
def test_any_other_name_has_its_own_case_or_else_any(name: str) -> None:
    assert find_name_spans(name, f"{name.upper()} or {name}")[-1] == (4 + len(name), 4 + 2 * len(name))
    assert find_name_spans(name, f"so {name.upper()}!") == [(3, 3 + len(name))]


def test_a_blank_name_is_nowhere() -> None:
    assert find_name_spans(" ", "a b") == find_occurrences("", "a b") == []


PIECES = st.lists(
    st.sampled_from(["US", "us", "Ada", "a", "1", " ", ".", "公", "サ", "서", "ก", "ั", "क", "é"]), max_size=6
)


@given(PIECES.map("".join), PIECES.map("".join), PIECES.map("".join))
def test_a_name_is_found_unless_its_word_goes_on(name: str, before: str, after: str) -> None:
    if not name.strip():
        return
    place = len(before), len(before) + len(name)
    joins = [
        is_word_character(left)
        and is_word_character(right)
        and (right == "ั" or not (is_unspaced(left) or is_unspaced(right)))
        for left, right in ((before[-1:], name[0]), (name[-1], after[:1]))
        if left and right
    ]
    results = find_occurrences(name, before + name + after)
    assert not (any(joins) and place in results)
    assert any(joins) or place in results or any(start < place[1] and place[0] < end for start, end in results)
