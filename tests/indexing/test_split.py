# ruff: noqa: RUF001  (text in the punctuation of other languages)
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyad.config import LONG_PASSAGES, SHORT_PASSAGES, SplitSettings
from polyad.indexing.split import SentenceSplitter
from polyad.model import Span
from polyad.text import sentences as finder
from tests.examples import count_examples

SPLITTER = SentenceSplitter()

FRAGMENTS = [
    "Dr. ",
    "U.S. ",
    "A. B. ",
    "He left. ",
    "It cost 3.50... ",
    "Why? ",
    "\n\n",
    "\r\n",
    "* ",
    "1. ",
    "(b. 1930). ",
]
FRAGMENTS += [
    "> ",
    ">\n",
    "• ",
    "(1) ",
    "“",
    "--",
    "a\tb\n",
    "\nName\n",
    "今天很好。",
    "他说：“走吧。”",
    "「行こう。」",
    "😀",
    "\u3000",
    "\x85",
    "\x00",
    "\ud800",
    "\u0301",
    "word ",
    "9" * 11,
]
TEXTS = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=4)).map("".join))
LIMITS = st.integers(1, 12).flatmap(lambda limit: st.tuples(st.just(limit), st.integers(0, limit - 1)))


def split_into_sentences(text: str) -> list[str]:
    return [span.of(text) for span in SPLITTER.sentences(text)]


def non_space(text: str) -> set[int]:
    return {index for index, character in enumerate(text) if not character.isspace()}


def covered(spans: list[Span]) -> set[int]:
    return {index for span in spans for index in range(span.start, span.end)}


@pytest.mark.parametrize(
    "sentences",
    [
        ["J. R. R. Tolkien wrote The Hobbit.", "He was born in Bloemfontein."],
        ["Dr. Smith met Mr. Jones at 5 p.m. on Friday.", "They left for the U.S.", "The trip took 3.5 hours."],
        ["John Doe (b. 12 May 1930).", "He is an actor."],
        ['"I am here." she said.', '"Come in!"', "Wait... what?", "He left."],
        ["See e.g. Fig. 3 and p. 12.", "Prof. Lee et al. (2020) agree."],
    ],
)
def test_english_sentences_end_neither_at_abbreviations_nor_at_initials(sentences: list[str]) -> None:
    assert split_into_sentences(" ".join(sentences)) == sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["今天天气很好。", "我们去公园吧！", "好吗？", "他说：“走吧。”", "然后走了。"],
        ["「行きましょう。」", "彼は言った。"],
    ],
)
def test_chinese_and_japanese_sentences_end_without_a_space_and_after_the_closing_quote(sentences: list[str]) -> None:
    assert split_into_sentences("".join(sentences)) == sentences


def test_a_blank_line_ends_a_sentence() -> None:
    assert split_into_sentences("A heading\n\nIts text.") == ["A heading", "Its text."]


@pytest.mark.parametrize(
    "sign", ["•", "-", "●", "▪", "■", "○", "➢", "✓", "–", "*", "\uf0b7", "1.", "(1)", "(a)", "§ 3", "[12]"]
)
def test_a_list_sign_hides_no_sentence_end(sign: str) -> None:
    items = [f"{sign} Item one.", "The tumor is small.", "It grows slowly.", f"{sign} Item two.", "It is large."]
    assert split_into_sentences(f"{' '.join(items[:3])}\n{' '.join(items[3:])}") == items


@pytest.mark.parametrize(
    "sentences",
    [
        [
            '"It is late, and the gate of the mill is shut since noon.',
            "Nobody will come.",
            'We wait here for the miller all night."',
            "So",
        ],
        [
            "“It is late, and the gate of the mill is shut since noon.",
            "Nobody will come.",
            "We wait here for the miller all night.”",
            "So",
        ],
        ["1.1 Why this book. . . . . . . . 12"],
        ["See Figs. 3 and 4, vol. 3, in Proc. of the Conf. on Dams.", "It is long."],
        ["Eighty-three per cent. of them stayed.", "They work."],
        ["I asked the miller--Mr. Allen told me to."],
        ["_DEPLOYMENT FOR ATTACK._"],
    ],
)
def test_quotations_dots_and_abbreviations_of_books_hide_no_sentence_and_make_none(sentences: list[str]) -> None:
    assert split_into_sentences(" ".join(sentences)) == sentences


def test_lines_that_are_wrapped_are_not_cut_at_their_ends() -> None:
    sentences = [
        "The keeper of the dam, who had been told by Mr.\nHolmes and by the miller of the hamlet of St.\n"
        "John, opened the gate.",
        "> He went home when the water was\n> gone.",
    ]
    assert split_into_sentences("\n\n".join(sentences)) == sentences


def test_no_sentence_runs_across_a_blank_line_that_holds_blanks() -> None:
    assert split_into_sentences("One\n \t\nTwo\r\n\r\nThree") == ["One", "Two", "Three"]


@pytest.mark.parametrize("mark", ["; ", ", ", "\n"])
def test_a_sentence_of_many_hundred_words_is_cut_at_the_best_mark_it_has(mark: str) -> None:
    sentences = split_into_sentences(mark.join(["one two three, four five" if mark == "; " else "one two three"] * 200))
    assert max(len(sentence.split()) for sentence in sentences) <= 240
    assert all(sentence.endswith(mark.strip() or "three") for sentence in sentences[:-1])


def test_a_passage_ends_with_a_paragraph_if_it_is_full_enough_then() -> None:
    text = "One pump here. Two pumps here.\n\nSix pumps here. Ten pumps here."

    def split_at(limit: int) -> list[str]:
        splitter = SentenceSplitter(SplitSettings(passage_tokens=limit, overlap_tokens=0))
        return [span.of(text) for span in splitter.passages(text)]

    assert split_at(12) == ["One pump here. Two pumps here.", "Six pumps here. Ten pumps here."]
    assert split_at(15) == ["One pump here. Two pumps here.\n\nSix pumps here.", "Ten pumps here."]


def test_a_passage_does_not_end_with_a_heading_for_the_sake_of_a_paragraph() -> None:
    text = "One pump here. Two pumps.\n\nThe big pumps\n\nSix pumps here. Ten pumps here."
    splitter = SentenceSplitter(SplitSettings(passage_tokens=11, overlap_tokens=0))
    passages = [span.of(text) for span in splitter.passages(text)]
    assert passages == ["One pump here. Two pumps.", "The big pumps\n\nSix pumps here. Ten pumps here."]


@pytest.mark.parametrize("gap", ["\n", "\n    ", "\n\n    "])
def test_no_passage_ends_between_a_term_and_its_definition(gap: str) -> None:
    options = [f"--option{number}=<value>{gap}Sets option {number} to a value. It is off.\n\n" for number in range(60)]
    text = "OPTIONS\n\n" + "".join(options)
    for limit in range(20, 60):
        settings = SplitSettings(passage_tokens=limit, overlap_tokens=limit // 4)
        passages = [span.of(text) for span in SentenceSplitter(settings).passages(text)]
        assert len(passages) > 20
        assert not any(passage.endswith(">") or passage.startswith("Sets") for passage in passages)


def test_a_list_of_short_lines_is_divided_where_a_passage_is_full() -> None:
    text = "\n\n".join(f"item {number}" for number in range(100))
    passages = SentenceSplitter(SplitSettings(passage_tokens=20, overlap_tokens=0)).passages(text)
    assert [span.of(text).count("item") for span in passages] == [10] * 10


def test_a_text_longer_than_a_window_is_split_where_a_short_one_is() -> None:
    sentences = [f"Dr. Adams (b. {year}) moved to the U.S. in {year + 20}." for year in range(1000, 2000)]
    text = " ".join(sentences)
    assert len(text) > 10 * finder._WINDOW_CHARACTERS
    assert split_into_sentences(text) == sentences


def test_a_sentence_longer_than_a_window_stays_whole() -> None:
    long = "Word " * finder._WINDOW_CHARACTERS + "end."
    assert split_into_sentences(f"Short one. {long} Another one.") == ["Short one.", long, "Another one."]


@pytest.mark.parametrize("code", ["pt", "pt-BR", "PT"])
def test_a_language_may_be_named_with_its_region_and_in_capitals(code: str) -> None:
    splitter = SentenceSplitter(SplitSettings(language=code))
    text = "A Dra. Lima saiu ontem. O Sr. Silva ficou."
    assert [span.of(text) for span in splitter.sentences(text)] == ["A Dra. Lima saiu ontem.", "O Sr. Silva ficou."]


def test_a_library_that_alters_the_text_costs_sentence_ends_but_never_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finder, "segment", lambda language, text: ["One.", "two."])
    assert split_into_sentences(" One. Two. ") == ["One. Two."]


def test_a_panic_of_the_library_leaves_the_text_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    panic = type("PanicException", (BaseException,), {})

    def fail(language: str, text: str) -> list[str]:
        raise panic

    monkeypatch.setattr(finder, "segment", fail)
    assert split_into_sentences("One. Two.") == ["One. Two."]


def test_an_interrupt_is_not_taken_for_a_panic(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(language: str, text: str) -> list[str]:
        raise KeyboardInterrupt

    monkeypatch.setattr(finder, "segment", interrupt)
    with pytest.raises(KeyboardInterrupt):
        SPLITTER.sentences("One. Two.")


@pytest.mark.parametrize("text", ["B(–a\x85b.*U.S. x", "a.\u3000b\u2028c. D", "\ud800. A\udfff", "a.\x1c\x1dB\x00. C"])
def test_characters_that_sentencex_cannot_take_keep_their_place(text: str) -> None:
    assert non_space(text) <= covered(SPLITTER.sentences(text))


@given(TEXTS)
def test_sentences_are_disjoint_in_order_trimmed_and_hold_all_but_white_space(text: str) -> None:
    spans = SPLITTER.sentences(text)
    assert all(0 <= span.start < span.end <= len(text) for span in spans)
    assert all(before.end <= after.start for before, after in pairwise(spans))
    assert all(span.of(text) == span.of(text).strip() for span in spans)
    assert non_space(text) <= covered(spans)


@given(TEXTS, LIMITS)
@settings(max_examples=count_examples(300))
def test_passages_are_in_order_within_the_limit_and_hold_all_but_white_space(
    text: str, limits: tuple[int, int]
) -> None:
    limit, overlap = limits
    splitter = SentenceSplitter(SplitSettings(passage_tokens=limit, overlap_tokens=overlap))
    spans = splitter.passages(text)
    assert all(0 <= span.start < span.end <= len(text) for span in spans)
    assert all(a.start < b.start and a.end < b.end for a, b in pairwise(spans))
    assert all(splitter.count_tokens(span.of(text)) <= limit for span in spans)
    assert non_space(text) <= covered(spans)


@given(TEXTS, LIMITS)
@settings(max_examples=count_examples(300))
def test_passages_end_with_a_sentence_unless_they_lie_within_one_that_is_too_long(
    text: str, limits: tuple[int, int]
) -> None:
    limit, overlap = limits
    splitter = SentenceSplitter(SplitSettings(passage_tokens=limit, overlap_tokens=overlap))
    sentences = splitter.sentences(text)
    ends = {sentence.end for sentence in sentences}
    too_long = [sentence for sentence in sentences if splitter.count_tokens(sentence.of(text)) > limit]
    for passage in splitter.passages(text):
        within = any(sentence.start <= passage.start and passage.end <= sentence.end for sentence in too_long)
        assert passage.end in ends or within


@given(TEXTS, LIMITS)
@settings(max_examples=count_examples(300))
def test_overlap_is_whole_sentences_within_its_limit(text: str, limits: tuple[int, int]) -> None:
    limit, overlap = limits
    splitter = SentenceSplitter(SplitSettings(passage_tokens=limit, overlap_tokens=overlap))
    spans = splitter.passages(text)
    sentences = splitter.sentences(text)
    for before, after in pairwise(spans):
        if after.start < before.end:
            shared = [s for s in sentences if s.start >= after.start and s.end <= before.end]
            assert (shared[0].start, shared[-1].end) == (after.start, before.end)
            assert sum(splitter.count_tokens(sentence.of(text)) for sentence in shared) <= overlap


@given(TEXTS, st.lists(st.integers(0, 60)), st.integers(0, 20))
def test_passages_with_breaks_too_hold_all_but_white_space(text: str, breaks: list[int], least: int) -> None:
    splitter = SentenceSplitter(SplitSettings(passage_tokens=12, overlap_tokens=4, section_tokens=least))
    spans = splitter.passages(text, sorted(breaks))
    assert all(0 <= span.start < span.end <= len(text) for span in spans)
    assert all(a.start < b.start for a, b in pairwise(spans))
    assert all(splitter.count_tokens(span.of(text)) <= 12 for span in spans)
    assert non_space(text) <= covered(spans)
    if least == 0:
        assert not any(span.start < place < span.end for span in spans for place in breaks)


def test_only_sections_that_are_small_share_a_passage() -> None:
    sections = ["One two. ", "Three. ", "Four five six seven. ", "Eight. ", "Nine ten. ", "Eleven."]
    breaks = [len("".join(sections[:number])) for number in range(1, len(sections))]

    def split_at(least: int) -> list[str]:
        splitter = SentenceSplitter(SplitSettings(section_tokens=least))
        return [span.of("".join(sections)) for span in splitter.passages("".join(sections), breaks)]

    assert split_at(0) == [section.strip() for section in sections]
    assert split_at(5) == ["One two. Three.", "Four five six seven.", "Eight. Nine ten.", "Eleven."]
    assert split_at(100) == ["".join(sections)]


def test_overlap_takes_as_many_sentences_as_fit() -> None:
    text = "One pump. Two pumps. Six pumps. Ten pumps. Few pumps."
    splitter = SentenceSplitter(SplitSettings(passage_tokens=9, overlap_tokens=6))
    passages = [span.of(text) for span in splitter.passages(text)]
    assert passages == [
        "One pump. Two pumps. Six pumps.",
        "Two pumps. Six pumps. Ten pumps.",
        "Six pumps. Ten pumps. Few pumps.",
    ]


def test_without_overlap_passages_are_disjoint() -> None:
    text = "One pump. Two pumps. Six pumps. Ten pumps. Few pumps."
    splitter = SentenceSplitter(SplitSettings(passage_tokens=9, overlap_tokens=0))
    passages = [span.of(text) for span in splitter.passages(text)]
    assert passages == ["One pump. Two pumps. Six pumps.", "Ten pumps. Few pumps."]


def test_an_over_long_sentence_is_cut_between_words() -> None:
    text = "Start here. " + "one two three four five six seven"
    splitter = SentenceSplitter(SplitSettings(passage_tokens=3, overlap_tokens=2))
    passages = [span.of(text) for span in splitter.passages(text)]
    assert passages == ["Start here.", "one two three", "four five six", "seven"]


def test_a_word_of_several_tokens_is_not_cut_when_it_fits_a_passage() -> None:
    text = "aa bb extraordinarily cc"
    splitter = SentenceSplitter(SplitSettings(passage_tokens=3, overlap_tokens=0))
    assert [span.of(text) for span in splitter.passages(text)] == ["aa bb", "extraordinarily cc"]


def test_a_word_longer_than_a_passage_is_cut_between_characters() -> None:
    splitter = SentenceSplitter(SplitSettings(passage_tokens=2, overlap_tokens=1))
    spans = splitter.passages("x" * 40)
    assert [(span.start, span.end) for span in spans] == [(0, 16), (16, 32), (32, 40)]


def test_chinese_without_a_full_stop_is_cut() -> None:
    spans = SPLITTER.passages("没有句号" * 1000)
    assert [span.end - span.start for span in spans] == [200] * 20


@pytest.mark.parametrize("text", ["", " ", "\n\t\u3000\x85 "])
def test_blank_text_has_no_passages_no_sentences_no_tokens(text: str) -> None:
    assert (SPLITTER.passages(text), SPLITTER.sentences(text), SPLITTER.count_tokens(text)) == ([], [], 0)


def test_a_document_that_fits_is_one_passage_without_the_white_space_around_it() -> None:
    text = "  First sentence. Second one.\n"
    splitter = SentenceSplitter(SplitSettings(passage_tokens=6, overlap_tokens=0))
    assert splitter.count_tokens(text) == 6
    assert [span.of(text) for span in splitter.passages(text)] == ["First sentence. Second one."]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("the pump", 2),
        ("extraordinarily", 2),
        ("1999", 1),
        ("123456", 2),
        ("3.5 l/s", 6),
        ("今天很好。", 5),
        ("café", 1),
    ],
)
def test_tokens_are_pieces_of_words_and_single_other_characters(text: str, tokens: int) -> None:
    assert SPLITTER.count_tokens(text) == tokens


@given(TEXTS, TEXTS)
def test_joining_texts_never_adds_tokens(first: str, second: str) -> None:
    joined = SPLITTER.count_tokens(first + second)
    assert joined <= SPLITTER.count_tokens(first) + SPLITTER.count_tokens(second)


@pytest.mark.parametrize(
    "unit", ["One sentence of Dr. Smith. ", "今天天气很好，我们去公园。", "word ", "x", "a\n", "\x00b.\x1c"]
)
def test_a_single_line_of_100_000_characters_is_covered_by_passages_within_the_limit(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    spans = SPLITTER.passages(text)
    assert max(SPLITTER.count_tokens(span.of(text)) for span in spans) <= 1200
    assert spans[0].start == 0
    assert spans[-1].end == len(text.rstrip())
    assert all(not re.search(r"\S", text[a.end : b.start]) for a, b in pairwise(spans))


@pytest.mark.parametrize(
    ("other_settings", "usual", "expected"),
    [
        (SplitSettings(), SHORT_PASSAGES, (200, 20)),
        (SplitSettings(), LONG_PASSAGES, (1200, 100)),
        (SplitSettings(passage_tokens=300), LONG_PASSAGES, (300, 30)),
        (SplitSettings(passage_tokens=5), SHORT_PASSAGES, (5, 0)),
        (SplitSettings(overlap_tokens=7), LONG_PASSAGES, (1200, 7)),
        (SplitSettings(passage_tokens=300, overlap_tokens=0), SHORT_PASSAGES, (300, 0)),
    ],
)
def test_sizes_that_are_not_given_suit_the_method_or_the_size_that_is(
    other_settings: SplitSettings, usual: tuple[int, int], expected: tuple[int, int]
) -> None:
    length, overlap = expected
    settings = SplitSettings(passage_tokens=length, overlap_tokens=overlap)
    assert SentenceSplitter(other_settings, usual).name == SentenceSplitter(settings).name


def test_passages_for_a_language_model_are_longer() -> None:
    text = "He left the house by the river. " * 100
    assert len(SentenceSplitter(default_sizes=LONG_PASSAGES).passages(text)) == 1
    assert len(SentenceSplitter().passages(text)) > 3
