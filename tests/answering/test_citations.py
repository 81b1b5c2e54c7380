"""Citations are found, checked and removed, however the answer is cut into pieces."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.answering.citations import CitationFilter, Claims, Numbering
from polyad.model import Passage, ScoredPassage, Span

PASSAGE_NUMBERS = frozenset({1, 2, 3})


def filtered(*pieces: str) -> CitationFilter:
    citations = CitationFilter(PASSAGE_NUMBERS)
    for piece in pieces:
        citations.feed(piece)
    citations.finish()
    return citations


@pytest.mark.parametrize(
    ("reply", "text", "numbers", "dropped"),
    [
        ("Rome [1].", "Rome [1].", [1], 0),
        ("Rome [1, 2].", "Rome [1, 2].", [1, 2], 0),
        ("Rome [1][2].", "Rome [1][2].", [1, 2], 0),
        ("Rome [1-3].", "Rome [1-3].", [1, 2, 3], 0),
        ("Rome [1\u20133; 2].", "Rome [1\u20133; 2].", [1, 2, 3], 0),
        ("Rome [ 1 ].", "Rome [ 1 ].", [1], 0),
        ("Rome [\u0661\u060c \u0662].", "Rome [1, 2].", [1, 2], 0),
        ("Rome [\u0969] \u0661.", "Rome [3] \u0661.", [3], 0),
        ("Rome\u3010\uff11\u3011.", "Rome[1].", [1], 0),
        ("Rome [2, 2].", "Rome [2, 2].", [2], 0),
        ("Rome [3-1].", "Rome [3-1].", [1, 2, 3], 0),
        ("Rome [9].", "Rome.", [], 1),
        ("Rome [0].", "Rome.", [], 1),
        ("Rome [99999].", "Rome.", [], 1),
        ("Rome [5000, 1].", "Rome [1].", [1], 1),
        ("Rome [3-99999999999].", "Rome [3].", [3], 996),
        ("Rome [1, 9].", "Rome [1].", [1], 1),
        ("Rome [2-5].", "Rome [2, 3].", [2, 3], 2),
        ("Rome [9][1].", "Rome [1].", [1], 1),
        ("Rome [1][9].", "Rome [1].", [1], 1),
        ("Rome [9] [8] [1].", "Rome [1].", [1], 2),
        ("[9] Rome fell.", "Rome fell.", [], 1),
        ("Rome.\n[9] It fell.\n", "Rome.\nIt fell.", [], 1),
        ("Rome fell [9] in 476.", "Rome fell in 476.", [], 1),
        ("[9]", "", [], 1),
        ("In [1999] it said [sic], a[b] [1", "In [1999] it said [sic], a[b] [1", [], 0),
        ("Rome \u30101\u3011.", "Rome [1].", [1], 0),
        ("Rome \u30101\u2020source\u3011\u30102\u2020L1-L9\u3011.", "Rome [1][2].", [1, 2], 0),
        ("Rome \u30109\u2020source\u3011.", "Rome.", [], 1),
        ("Rome [citation:1].", "Rome [1].", [1], 0),
        ("Rome [^1], [#2].", "Rome [1], [2].", [1, 2], 0),
        ("Rome [Passage 1, Passage 9].", "Rome [1].", [1], 1),
        ("Rome \uff3b1-2\uff3d.", "Rome [1, 2].", [1, 2], 0),
        (
            "A [link 1](x), a \u3010note\u3011, [passage 1999]",
            "A [link 1] (x), a \u3010note\u3011, [passage 1999]",
            [],
            0,
        ),
        ("no [] [,] [1,] [-1]", "no [] [,] [1,] [-1]", [], 0),
        ("", "", [], 0),
    ],
)
def test_citations_that_point_nowhere_leave_the_text(reply: str, text: str, numbers: list[int], dropped: int) -> None:
    citation_filter = filtered(reply)
    assert (citation_filter.text, [cited.number for cited in citation_filter.cited], citation_filter.dropped) == (
        text,
        numbers,
        dropped,
    )
    assert all(
        cited.bracket.of(citation_filter.text)[0] + cited.bracket.of(citation_filter.text)[-1] == "[]"
        for cited in citation_filter.cited
    )


PIECES = [*"Ab.1290[],;- \n\u2013\u00a0\u3010\u3011\u2020", "[^", "[citation:", "[Passage "]


@given(reply=st.lists(st.sampled_from(PIECES), max_size=60).map("".join), cuts=st.lists(st.integers(0, 60)))
def test_the_pieces_make_up_the_text_wherever_they_are_cut(reply: str, cuts: list[int]) -> None:
    places = [0, *sorted(cut for cut in cuts if cut < len(reply)), len(reply)]
    citations = CitationFilter(PASSAGE_NUMBERS)
    outputs = [citations.feed(reply[start:end]) for start, end in pairwise(places)]
    outputs.append(citations.finish())
    whole = filtered(reply)
    assert "".join(outputs) == citations.text == whole.text
    assert (citations.cited, citations.dropped) == (whole.cited, whole.dropped)


@pytest.mark.parametrize(
    ("text", "bracket", "claim"),
    [
        ("Rome fell [1]. It burned [2].", "[1]", "Rome fell [1]."),
        ("Rome fell [1]. It burned [2].", "[2]", "It burned [2]."),
        ("Rome fell. [1] It burned. [2]", "[1]", "Rome fell. [1]"),
        ("Rome fell. [1] It burned. [2]", "[2]", "It burned. [2]"),
        ("Rome fell.[1][2] It burned.", "[2]", "Rome fell.[1][2]"),
        ("[1] says that Rome fell. True.", "[1]", "[1] says that Rome fell."),
        ("First.\n[1] says that Rome fell.", "[1]", "[1] says that Rome fell."),
        ("- Rome fell [1]\n- It burned [2]", "[2]", "- It burned [2]"),
        ("Dr. J. Smith paid 3.5 million [1]. Yes.", "[1]", "Dr. J. Smith paid 3.5 million [1]."),
        ('He said "no." [1] She left.', "[1]", 'He said "no." [1]'),
        ("\u7f57\u9a6c [1]\u3002\u706b [2]\u3002", "[2]", "\u706b [2]\u3002"),
        ("[1]", "[1]", "[1]"),
        ("Rome fell. It burned [1,\n2]. True.", "[1,\n2]", "It burned [1,\n2]."),
    ],
)
def test_the_claim_is_the_sentence_that_carries_the_bracket(text: str, bracket: str, claim: str) -> None:
    start = text.index(bracket)
    assert Claims(text).find_sentence(Span(start, start + len(bracket))).of(text) == claim


@given(text=st.text(alphabet="AbDr.!? \n[1]\u3002", max_size=60))
def test_every_claim_holds_its_bracket(text: str) -> None:
    citation_filter = filtered(text)
    for cited in citation_filter.cited:
        claim = Claims(citation_filter.text).find_sentence(cited.bracket)
        assert claim.start <= cited.bracket.start
        assert cited.bracket.end <= claim.end


def test_a_passage_without_number_gets_the_next_one() -> None:
    hits = [ScoredPassage(Passage(id, "doc", "", "text", 0, 4), 1.0) for id in ("doc#0000", "doc#0001")]
    numbering = Numbering(hits)
    ids = ("doc#0007", "doc#0001", "doc#0008", "doc#0007", "doc#0000")
    assert [numbering.get_number(id) for id in ids] == [3, 2, 4, 3, 1]
