"""The sentences that are displayed of hits."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad import Document, Engine
from polyad.model import Span
from polyad.protocols.components import Embedder
from polyad.retrieval.excerpts import ExcerptSelector, ExcerptSource
from polyad.retrieval.hits import ScoredSpan, join_spans
from polyad.text.sentences import split_sentences
from polyad.text.words import count_words

MANUAL = (
    "The squad marches. "
    + "Nothing of note happens on the parade ground at noon. " * 12
    + "The full step in quick time is thirty inches. The cadence is 120 steps in a minute. "
    + "The band plays on and nobody listens to the drummer. " * 12
)
QUESTION = "How long is the full step in quick time?"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    engine = Engine.open(tmp_path_factory.mktemp("kb"), embedder="hashing:64")
    engine.index_documents([Document("drill", "Drill", MANUAL), Document("song", "Song", "Sing in quick time.")])
    return engine


def selector(engine: Engine, question: str = QUESTION) -> ExcerptSelector:
    return ExcerptSelector(engine.snapshot("bm25"), question, partial(split_sentences, language="en"))


def test_an_excerpt_has_the_sentence_that_answers_and_its_neighbour(engine: Engine) -> None:
    (selected,) = selector(engine).select([ExcerptSource(MANUAL, "", (), 1.0)], 30)
    text = join_spans(MANUAL, selected.spans)
    assert "The full step in quick time is thirty inches. The cadence is 120 steps in a minute." in text
    assert count_words(text.replace(" … ", " ")) <= 30
    assert selected.best.of(MANUAL) == "The full step in quick time is thirty inches."


def test_a_sentence_whose_hyperedge_is_similar_is_preferred(engine: Engine) -> None:
    start = MANUAL.index("The band plays on")
    similar = [ScoredSpan(Span(start, start + 20), 0.9)]
    (selected,) = selector(engine, "Who tuned the violin?").select([ExcerptSource(MANUAL, "", similar, 1.0)], 12)
    assert selected.best.start == start


def test_words_go_to_the_hit_that_fits_best_and_each_hit_has_some(engine: Engine) -> None:
    dull = "It rained on the village. " * 40
    hits = [ExcerptSource(dull, "", (), 0.5), ExcerptSource(MANUAL, "", (), 0.4)]
    best, other = selector(engine).select(hits)
    assert join_spans(dull, best.spans) == "It rained on the village."
    assert "thirty inches" in join_spans(MANUAL, other.spans)


def test_a_budget_of_words_is_filled_even_by_sentences_that_hardly_fit(engine: Engine) -> None:
    dull = "It rained on the village. " * 40
    (selected,) = selector(engine).select([ExcerptSource(dull, "", (), 0.5)], 60)
    assert 55 <= count_words(join_spans(dull, selected.spans)) <= 60


@given(
    st.lists(st.text("ab quick step.!\n|\u6771…", max_size=60), min_size=1, max_size=4),
    st.integers(1, 40),
    st.floats(0, 1),
)
def test_spans_are_disjoint_and_in_order_and_only_first_sentences_exceed_the_budget(
    engine: Engine, texts: list[str], max_words: int, relevance: float
) -> None:
    selected = selector(engine).select([ExcerptSource(text, "", (), relevance) for text in texts], max_words)
    longest = 0
    total = 0
    for text, sentences in zip(texts, selected, strict=True):
        offsets = [offset for span in sentences.spans for offset in (span.start, span.end)]
        assert offsets == sorted(offsets)
        assert any(span.start <= sentences.best.start and sentences.best.end <= span.end for span in sentences.spans)
        words = [count_words(span.of(text)) for span in split_sentences(text, "en")]
        longest += max(25, *words, 0) if words else 0
        total += sum(count_words(span.of(text)) for span in sentences.spans)
    gaps = 3 * sum(len(sentences.spans) + 9 for sentences in selected)
    assert total <= max(max_words, longest) + gaps


@pytest.mark.parametrize("max_words", [None, 40, 9])
def test_the_excerpt_of_a_hit_lies_where_it_says(engine: Engine, max_words: int | None) -> None:
    hit = engine.search(QUESTION, 1, max_words=max_words, retriever="bm25").passages[0]
    assert hit.excerpt is not None
    output = hit.excerpt.text
    assert output.split(" … ")[0] in MANUAL[hit.excerpt.start :][: len(output)]
    assert MANUAL[: hit.excerpt.end].endswith(output.split(" … ")[-1])
    assert "thirty inches" in output
    assert hit.excerpt.highlight.of(hit.passage.text) in output


def test_without_merging_hits_have_no_excerpts(engine: Engine) -> None:
    assert engine.search(QUESTION, 1, merge=False).passages[0].excerpt is None


def test_a_span_that_begins_a_line_begins_a_line() -> None:
    text = "Parts of the pump:\n- lid\n- bolt\n- seal\nOne. Two. Three."
    assert join_spans(text, [Span(0, 18), Span(32, 38)]) == "Parts of the pump: …\n- seal"
    assert join_spans(text, [Span(39, 43), Span(49, 55)]) == "One. … Three."


def test_a_heading_that_stands_above_the_excerpt_is_not_repeated(engine: Engine) -> None:
    text = "# Steps\n\n## Quick time\n\nThe full step is thirty inches."
    (selected,) = selector(engine).select([ExcerptSource(text, "Drill\nSteps / Quick time", (), 1.0)], 50)
    assert join_spans(text, selected.spans) == "The full step is thirty inches."
    (selected,) = selector(engine).select([ExcerptSource("# Steps", "Steps", (), 1.0)], 50)
    assert join_spans("# Steps", selected.spans) == "# Steps"


def test_a_budget_smaller_than_the_semantic_unit_displays_the_sentence_that_answers(
    tmp_path: Path, embedder: Embedder
) -> None:
    text = (
        "The drill book of the infantry describes the steps of a squad on the parade ground. "
        "The steps of the squad are learned before the steps of the company. "
        "The full step in quick time is thirty inches. "
        "The steps of the company are learned before the steps of the battalion."
    )
    with Engine.open(tmp_path, embedder=embedder) as engine:
        engine.index_documents([Document("drill", "Drill", text)])
        for max_words in (9, 12, 20):
            (hit,) = engine.search(QUESTION, max_words=max_words).passages
            assert hit.excerpt
            assert "The full step in quick time is thirty inches." in hit.excerpt.text
        (hit,) = engine.search(QUESTION, max_words=4).passages
        assert hit.passage.text == "The full step in"


def test_a_budget_of_words_is_filled_with_sentences_that_hardly_fit(engine: Engine) -> None:
    (selected,) = selector(engine, "Where is the Eiffel tower?").select([ExcerptSource(MANUAL, "", (), 1.0)], 200)
    longest = max(count_words(span.of(MANUAL)) for span in split_sentences(MANUAL, "en"))
    assert 200 - longest <= sum(count_words(span.of(MANUAL)) for span in selected.spans) <= 200


@pytest.mark.parametrize("mark", ["- ", "3. ", "• ", ""])
def test_the_items_of_a_list_are_displayed_with_the_sentence_that_introduces_it(engine: Engine, mark: str) -> None:
    items = ["Slow march, with arms still", "Double, at a run", "Halt of the whole line"]
    text = (
        "The drill ground is inspected before noon. " * 4
        + "There are three kinds of step in squad drill:\n\n"
        + "\n".join(f"{mark}{item}" for item in items)
        + "\n\nNobody listens to the drummer at drill, who keeps the time of the music. " * 4
    )
    (selected,) = selector(engine, "What kinds of step are in squad drill?").select(
        [ExcerptSource(text, "", (), 1.0)], 35
    )
    displayed = join_spans(text, selected.spans)
    assert all(item in displayed for item in items)


def test_a_short_code_block_is_displayed_as_a_whole(engine: Engine) -> None:
    block = "```sh\npump key add --scope write\npump start --full step\n```"
    text = f"A pump needs a key{' and oil' * 9}.\n\n{block}\nThe oil is hot{' and black' * 9}."
    (selected,) = selector(engine, "full step of the pump").select([ExcerptSource(text, "", (), 1.0)], 15)
    assert [span.of(text) for span in selected.spans] == [block]


def test_a_cut_passage_keeps_its_lines(tmp_path: Path, embedder: Embedder) -> None:
    items = ["The full step in quick time is thirty inches.", "Wait until the others come.", "The step is short."]
    text = "\n".join(f"- {item}" for item in items)
    with Engine.open(tmp_path, embedder=embedder) as engine:
        engine.index_documents([Document("drill", "Drill", text)])
        (hit,) = engine.search(QUESTION, max_words=15).passages
    lines = hit.passage.text.splitlines()
    assert len(lines) == 2
    assert lines[0].endswith("inches. …")
    assert lines[1].removeprefix("- ") == "The step is short."


def test_a_term_and_its_definition_are_displayed_together(engine: Engine) -> None:
    text = "Nobody marches here today.\n\n--quick\nThe step is shorter. Nobody sings.\n\n--slow\nThe parade is over."
    for question in ("quick", "shorter step"):
        (selected,) = selector(engine, question).select([ExcerptSource(text, "", (), 0.5)], 9)
        assert selected.best.of(text) == "--quick\nThe step is shorter."


def test_the_summaries_of_three_hits_share_270_words_and_each_has_its_best_answer(engine: Engine) -> None:
    hits = [ExcerptSource(MANUAL, "", (), relevance) for relevance in (0.9, 0.5, 0.1, 0.1)]
    selected = selector(engine).select(hits)
    words = [sum(count_words(span.of(MANUAL)) for span in each.summary) for each in selected]
    assert 200 < sum(words[:3]) <= 275
    assert words[3] <= 95
    for each in selected:
        assert any(span.start <= each.answers[0].start and each.answers[0].end <= span.end for span in each.summary)


@pytest.mark.parametrize(
    "line",
    [
        "## The full step in quick time",
        "Figure 3: The full step in quick time",
        "The full step in quick time ...... 14",
    ],
)
def test_headings_captions_and_lines_of_contents_are_no_answers(engine: Engine, line: str) -> None:
    text = f"{line}\n\nIt is long enough for men in quick time.\n"
    (selected,) = selector(engine).select([ExcerptSource(text, "", (), 0.5)])
    assert [span.of(text) for span in selected.answers] == ["It is long enough for men in quick time."]
    assert line not in join_spans(text, selected.spans)


def test_halves_of_a_line_are_one_sentence(engine: Engine) -> None:
    text = "The squad marches on.\n\nThe full step in quick\ntime is thirty inches.\n\nThe band plays.\n"
    spans = [Span(0, 21), Span(23, 45), Span(46, 68), Span(70, 85)]
    halves = ExcerptSelector(engine.snapshot("bm25"), QUESTION, lambda _: spans)
    (selected,) = halves.select([ExcerptSource(text, "", (), 0.5)])
    assert selected.answers[0].of(text) == "The full step in quick\ntime is thirty inches."
