# ruff: noqa: RUF001  characters of other scripts are what is read
"""Names in texts of other languages than English, and of scripts without capitals or spaces."""

from __future__ import annotations

import re

import pytest

from polyad.indexing.mentions.rules import RuleMentionExtractor
from tests.cost import measure_cost


def find_names(text: str) -> set[str]:
    mentions = RuleMentionExtractor().extract([text])[0]
    assert all(text[mention.start : mention.end] == mention.name for mention in mentions)
    return {mention.name for mention in mentions}


@pytest.mark.parametrize(
    ("text", "names", "no_names"),
    [
        (
            "Er starb in Ottermere. Sie lebte später in Port Lisle. Später goss der Meister die Glocke von Tarn.",
            {"Ottermere", "Port Lisle", "Glocke von Tarn"},
            {"Er", "Sie", "Später", "Meister"},
        ),
        (
            "\ufeffIm Mittelalter gab es hier (so heißt es.) Die Gruppe der Weber stammt aus Tarn.",
            {"Tarn"},
            {"Im Mittelalter", "Die Gruppe"},
        ),
        (
            "Elle est née à Port Lisle. La Révolution a commencé. Plus tard, il fonda l'Église de Tarn.",
            {"Port Lisle", "Révolution", "Église de Tarn"},
            {"Elle", "La", "Plus", "La Révolution"},
        ),
        ("Mustafa Kemal'in evi Ankara'nın merkezindedir ve bir müzedir.", {"Ankara"}, {"Ankara'nın"}),
        ("Он родился в Москве. Колокол Тарна отлил Ильзе Варга.", {"Москве", "Ильзе Варга"}, {"Он"}),
        (
            "伊尔泽·瓦尔加于1740年在利斯尔港出生,她是《塔恩之钟》的作者。",
            {"伊尔泽·瓦尔加", "利斯尔港", "塔恩之钟"},
            {"于1740年在利斯尔港出生"},
        ),
        (
            "HyperGraphRAG構建了26個超圖。F1從35提升到40,超圖是HyperGraphRAG的核心。",
            {"HyperGraphRAG", "F1", "超圖"},
            {"HyperGraphRAG構建了26", "F1從35"},
        ),
        (
            "オッターミア水位計はイルゼ・ヴァルガが設計した。",
            {"オッターミア水位計", "イルゼ・ヴァルガ"},
            {"はイルゼ"},
        ),
        ("ولدت إيلزه فارغا في بورت لايل عام ١٧٤٠.", {"بورت لايل"}, {"في"}),
        ("ระฆังแห่งทาร์นอยู่ในเมืองทาร์น และ ระฆัง", {"เมืองทาร์น"}, {"ใน"}),
        ("토마스 페랑은 항구에서 조개를 수집했다.", {"토마스", "항구"}, {"토마스 페랑은", "항구에서"}),
    ],
)
def test_names_end_where_function_words_and_scripts_end(text: str, names: set[str], no_names: set[str]) -> None:
    mentions = find_names(text)
    assert names <= mentions
    assert not no_names & mentions


def test_a_foreign_name_in_parentheses_leaves_the_names_of_an_english_text_as_they_are() -> None:
    assert find_names("Li Na (李娜) won the Open in Paris.") == {"Li Na", "Open", "Paris"}


def test_a_long_chinese_text_takes_linear_time() -> None:
    text = "铸造塔恩之钟的伊尔泽·瓦尔加出生在利斯尔港," * 4000
    names: set[str] = set()
    assert measure_cost(lambda: names.update(find_names(text))) < 600
    assert not [name for name in names if re.search("的", name)]
