from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from polyad.embedders.minilm.weights import get_model_folder
from polyad.embedders.minilm.word_pieces import WordPieceTokenizer

_FOLDER = get_model_folder()
REFERENCE = Tokenizer.from_file(str(_FOLDER / "tokenizer.json"))
REFERENCE.no_truncation()
REFERENCE.no_padding()
WORD_PIECES = WordPieceTokenizer((_FOLDER / "vocab.txt").read_text(encoding="utf-8").splitlines())

OLD = unicodedata.ucd_3_2_0
"""Unicode of 2002: the library knows no character that is newer than 2015, nor what later versions changed."""


def known(text: str) -> bool:
    kinds = [OLD.category(character) for character in text]
    return kinds == [unicodedata.category(character) for character in text] and not {"Cn", "Cs"} & set(kinds)


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8"), max_size=60).filter(known))
def test_the_tokens_of_any_text_are_those_of_the_library(text: str) -> None:
    assert WORD_PIECES.split_windows(text, 1000) == [REFERENCE.encode(text).ids]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Where was the maker of the Bell of Tarn born?",
        "don't stop-gap e-mail@host.example £3.50 50% x^2 ~ `code` | a_b",
        "Ångström café naïve İstanbul ΣΊΣΥΦΟΣ straße ﬁne Ⅳ ½",
        "東京タワーは、1958年に建てられた。 한국어 العربية हिन्दी ไทย",
        "zero\u200bwidth soft\u00adhyphen no\u00a0break \u2028 \x00 \x85 \ufffd tab\tnew\nline\r\n",
        "a" * 100 + " " + "a" * 101 + " 🙂 👩‍👩‍👧 \u0301",
        "[CLS] is [MASK]ed, [cls] is not [SEP",
    ],
)
def test_the_tokens_of_unusual_texts_are_those_of_the_library(text: str) -> None:
    assert WORD_PIECES.split_windows(text, 1000) == [REFERENCE.encode(text).ids]


def test_every_character_is_taken_as_the_library_takes_it_but_for_new_ones() -> None:
    every = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    texts = [f"ab{character}cd" for character in every if known(character)]
    expected = [encoding.ids for encoding in REFERENCE.encode_batch(texts)]
    assert [WORD_PIECES.split_windows(text, 1000)[0] for text in texts] == expected


def test_a_long_text_is_cut_into_windows_that_begin_and_end_as_texts_do() -> None:
    windows = WORD_PIECES.split_windows("one two three four five six seven", 5)
    begin, end = REFERENCE.token_to_id("[CLS]"), REFERENCE.token_to_id("[SEP]")
    assert [len(window) for window in windows] == [5, 5, 3]
    assert all((window[0], window[-1]) == (begin, end) for window in windows)
    whole = [id for window in windows for id in window[1:-1]]
    assert whole == REFERENCE.encode("one two three four five six seven", add_special_tokens=False).ids
