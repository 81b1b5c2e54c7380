from hypothesis import given
from hypothesis import strategies as st

from polyad.text.words import count_tokens


@given(text=st.text(), more=st.text())
def test_joining_two_texts_never_gives_more_than_the_sum_of_their_lengths(text: str, more: str) -> None:
    assert count_tokens(text) <= count_tokens(text + more) <= count_tokens(text) + count_tokens(more)


@given(text=st.text())
def test_only_blank_text_has_no_tokens(text: str) -> None:
    assert (count_tokens(text) == 0) == (not text.strip())
