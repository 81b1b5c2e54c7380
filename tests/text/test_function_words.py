from __future__ import annotations

import pytest

from polyad.text.function_words import get_function_words, infer_language, read_function_words


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Wer goss die Glocke von Tarn, und wo wurde sie geboren?", "de"),
        ("Où est née la fondatrice de la ville ?", "fr"),
        ("¿Quién fundó la ciudad y cuándo?", "es"),
        ("Кто отлил колокол?", "ru"),
        ("Ποιος έχτισε τη γέφυρα;", "el"),
        ("La colpa di una madre is a 1952 Italian film.", "en"),
        ("Who directed Il Postino?", "en"),
        ("", "en"),
    ],
)
def test_the_language_of_most_function_words_is_inferred(text: str, language: str) -> None:
    assert infer_language(text) == language


def test_every_language_has_a_list_and_unknown_ones_have_none() -> None:
    assert all(len(words) >= 30 for words in read_function_words().values())
    assert get_function_words("xx") == get_function_words("en") == frozenset()
