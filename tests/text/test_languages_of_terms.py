# ruff: noqa: RUF001  characters of other scripts are what is read
"""Search terms, sentences and dates by the language of the text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from polyad.model import IntArray
from polyad.text.dates import find_foreign_dates
from polyad.text.literals import infer_type, parse_date
from polyad.text.sentences import split_sentences
from polyad.text.words import count_tokens, extract_query_terms, extract_terms, infer_question_language


@pytest.mark.parametrize(
    ("one", "other", "language"),
    [
        ("Häuser", "haus", "de"),
        ("колокола", "колоколов", "ru"),
        ("évêques", "évêque", "fr"),
        ("IŞIKLAR", "ışık", "tr"),
        ("العَرَبِيّـة", "عربيه", "ar"),
        ("أحمد", "احمد", "ar"),
        ("٢٠٢١", "2021", "ar"),
        ("गाँवों", "गाँव", "hi"),
        ("ταχυδρομεία", "ΤΑΧΥΔΡΟΜΕΊΑ", "el"),
    ],
)
def test_forms_of_a_word_are_one_term_in_its_language(one: str, other: str, language: str) -> None:
    assert extract_terms(one, language) == extract_terms(other, language)


def test_thai_clusters_stay_whole() -> None:
    assert extract_terms("วิชัย") == ["วิชั", "ชัย"]
    assert extract_terms("เวลา") == ["เวลา"]


def test_the_language_of_a_text_decides_its_stems() -> None:
    assert extract_terms("Die Glocken wurden in der Stadt gegossen.")[1] == "glock"
    assert extract_query_terms("Wer goss die Glocken?")[-1] == "glock"
    assert extract_query_terms("Who cast the bells?") == ["cast", "bell"]


def count_german(terms: Sequence[str]) -> IntArray:
    return np.array([9 if term in ("und", "oder", "nicht") else 0 for term in terms])


def test_a_question_that_shows_no_language_has_that_of_the_index() -> None:
    assert infer_question_language("Tarner Glocken?", count_german) == "de"
    assert infer_question_language("Who cast the bells?", count_german) == "en"
    assert infer_question_language("Qui a fondu les cloches ?", count_german) == "fr"
    assert infer_question_language("Tarn bells", lambda terms: np.zeros(len(terms), dtype=np.int64)) == "en"


@pytest.mark.parametrize(
    "sentences",
    [
        ["Er starb am 3. Mai 1740 im 14. Jahrhundert.", "Das war z. B. in Bonn.", "Am 5. und 6. Juni kam er."],
        ["Die Fa. Müller goss die Glocke.", "Ludwig XIV. von Frankreich kam und sah sie."],
        ["Elle est née dans la ville.", "Il vint av. J.-C. à Paris.", "Mme. Curie est la fondatrice."],
        ["Он родился в 1900 г. в г. Москве, т. е. в России.", "Потом он уехал."],
        ["O Dr. Sousa é da cidade.", "A Sra. Lima não é."],
        ["वह घर में आया।", "डॉ. शर्मा भी गए।"],
        ["من هو هذا الرجل؟", "جاء د. أحمد إلى المدينة."],
        ["彼は来た。", "彼女は「はい。」と言った。", "誰?"],
        ["Han døde den 3. maj 1740 i det 14. århundrede.", "Det var sent."],
        ["1900. május 5. és ez volt az.", "A 14. században élt."],
    ],
)
def test_a_text_is_split_by_the_rules_of_its_language(sentences: list[str]) -> None:
    text = " ".join(sentences)
    assert [span.of(text) for span in split_sentences(text, "en")] == sentences


@pytest.mark.parametrize(
    ("date", "iso"),
    [
        ("2021年3月5日", "2021-03-05"),
        ("2021年3月", "2021-03"),
        ("2021년 3월 5일", "2021-03-05"),
        ("5. März 2021", "2021-03-05"),
        ("5 mars 2021", "2021-03-05"),
        ("1er mars 2021", "2021-03-01"),
        ("5 de marzo de 2021", "2021-03-05"),
        ("5 марта 2021", "2021-03-05"),
        ("۵ مارس ۲۰۲۱", "2021-03-05"),
        ("5 มีนาคม 2021", "2021-03-05"),
    ],
)
def test_a_date_in_any_language_is_that_of_iso(date: str, iso: str) -> None:
    assert infer_type(date) == "date"
    assert parse_date(date) == parse_date(iso) is not None
    assert list(find_foreign_dates(date)) == [(0, len(date))]


@pytest.mark.parametrize("value", ["April 2021", "5 April 2021", "31. Februar 2021", "2021年13月", "3 mars"])
def test_other_values_keep_their_type(value: str) -> None:
    assert infer_type(value) == "entity"


def test_letters_of_other_alphabets_are_not_a_token_each() -> None:
    assert count_tokens("Москва") == 2
    assert count_tokens("القاهرة") == 2
    assert count_tokens("東京") == 2


@pytest.mark.parametrize(("words", "language"), [({"p"}, "en"), ({"nasil"}, "en"), ({"nasil", "degil"}, "tr")])
def test_one_word_in_an_index_does_not_show_its_language(words: set[str], language: str) -> None:
    def count(terms: Sequence[str]) -> IntArray:
        return np.array([term in words for term in terms], dtype=np.int64)

    assert infer_question_language("bells", count) == language
