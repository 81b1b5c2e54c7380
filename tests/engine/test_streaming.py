"""Answers piece by piece, many questions at once, and callers that do not wait in place."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import AsyncEngine, Engine
from polyad.engine.registry import RetrieverSpec
from polyad.engine.streaming import AnswerStream
from polyad.errors import ConfigurationError, LanguageModelError
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import Answer, Document, Evidence, FloatArray, Query, Timings, Usage
from polyad.protocols.components import Prompt, Reply, TextKind
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.evidence import build_evidence
from tests.conftest import SIX_DOCUMENTS

QUESTION = "Who cast the Bell of Tarn?"
WORDS = ("Ines ", "Moreau ", "cast it ", "[1].")


class Counting(HashingEmbedder):
    """Counts the batches."""

    def __init__(self) -> None:
        super().__init__(32)
        self.batches: list[int] = []

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        self.batches.append(len(texts))
        return super().encode(texts, kind)


class Speaking(ScriptedLanguageModel):
    """Says its words one by one, each when it is let."""

    def __init__(self, fails: bool = False) -> None:
        super().__init__([])
        self.messages: list[str] = []
        self.lets = threading.Semaphore(0)
        self.fails = fails

    def stream(self, prompt: Prompt, on_text: Callable[[str], None]) -> Reply:
        for word in WORDS:
            assert self.lets.acquire(timeout=30)
            self.messages.append(word)
            on_text(word)
        if self.fails:
            raise LanguageModelError("it fell silent")
        return Reply("".join(WORDS), Usage(calls=1))


def test_a_stream_that_is_closed_for_a_reason_raises_it_after_its_pieces() -> None:
    may_continue = threading.Event()

    def write(pass_on: Callable[[str], None]) -> Answer:
        pass_on("Ines ")
        assert may_continue.wait(10)
        pass_on("Moreau ")
        raise AssertionError("a closed stream takes no further piece")

    stream = AnswerStream(write)
    assert next(stream) == "Ines "
    stream.close(TimeoutError("too late"))
    may_continue.set()
    with pytest.raises(TimeoutError, match="too late"):
        next(stream)


@pytest.fixture
def embedder() -> Counting:
    return Counting()


@pytest.fixture
def model() -> Speaking:
    return Speaking()


@pytest.fixture
def engine(tmp_path: Path, embedder: Counting, model: Speaking) -> Iterator[Engine]:
    with Engine.open(tmp_path / "kb", embedder=embedder, language_model=model) as opened:
        opened.index_documents(SIX_DOCUMENTS)
        embedder.batches.clear()
        yield opened


def test_an_answer_comes_piece_by_piece_and_then_whole(engine: Engine, model: Speaking) -> None:
    stream = engine.stream(QUESTION, retriever="dense")
    pieces = []
    assert model.messages == [], "nothing is written before the first piece is asked for"
    for number, _ in enumerate(WORDS[:2], 1):
        model.lets.release()
        pieces.append(next(stream))
        assert len(model.messages) == number
    model.lets.release(2)
    pieces += stream
    assert "".join(pieces) == stream.answer.text == "Ines Moreau cast it [1]."
    assert [citation.number for citation in stream.answer.citations] == [1]
    assert list(stream) == []


def test_a_stream_that_is_closed_asks_for_no_more(engine: Engine, model: Speaking) -> None:
    with engine.stream(QUESTION, retriever="dense") as stream:
        model.lets.release()
        next(stream)
    model.lets.release(3)
    with pytest.raises(ValueError, match="closed before its answer was whole"):
        _ = stream.answer
    assert len(model.messages) == 2, "the second piece told it that nobody reads on"


def test_an_error_of_the_model_is_raised_while_streaming(tmp_path: Path) -> None:
    model = Speaking(fails=True)
    with Engine.open(tmp_path / "kb", embedder="hashing:8", language_model=model) as engine:
        engine.index_documents(SIX_DOCUMENTS)
        model.lets.release(9)
        stream = engine.stream(QUESTION, retriever="dense")
        with pytest.raises(LanguageModelError, match="it fell silent"):
            list(stream)
        with pytest.raises(LanguageModelError, match="it fell silent"):
            _ = stream.answer


@pytest.mark.parametrize("retriever", ["dense", "default", "hypersu", "bm25"])
def test_many_questions_find_what_each_finds_alone(engine: Engine, retriever: str) -> None:
    questions = [document.title for document in SIX_DOCUMENTS]
    together = engine.search_many(questions, 2, retriever=retriever)
    alone = [engine.search(question, 2, retriever=retriever) for question in questions]
    assert [plain(result) for result in together] == [plain(result) for result in alone]


def plain(evidence: Evidence) -> Evidence:
    return replace(evidence, timings=Timings(), notes={})


def test_many_questions_are_embedded_in_one_batch(engine: Engine, embedder: Counting) -> None:
    engine.search_many(["Who?", "Where?", "Who?", "When?"], 2, retriever="dense")
    assert embedder.batches == [3]


def test_one_bad_question_among_many_is_refused_before_any_is_asked(engine: Engine, embedder: Counting) -> None:
    with pytest.raises(ConfigurationError):
        engine.search_many(["Who?", " "], retriever="dense")
    assert embedder.batches == []


def test_one_text_in_place_of_many_questions_is_refused(engine: Engine) -> None:
    with pytest.raises(ConfigurationError, match=r"questions is 'Who\?'; expected a list of questions"):
        engine.search_many("Who?", retriever="dense")


class First:
    """The first passages, whatever is asked."""

    name = "first"

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        return build_evidence(snapshot, query.text, self.name, [(row, 1.0, "first") for row in range(query.k)])


def test_a_retriever_may_be_given_or_made_of_the_engines_models(engine: Engine) -> None:
    made = engine.search(QUESTION, 2, retriever=First())
    assert (made.retriever, len(made.passages)) == ("first", 2)
    questions = []
    row = RetrieverSpec(lambda models: questions.append(models.embedder.name) or First())  # type: ignore[func-returns-value]
    assert engine.search(QUESTION, 2, retriever=row).passages == made.passages
    engine.search(QUESTION, 2, retriever=row)
    assert questions == ["hashing:32"], "it is made once"


def test_the_verbs_can_be_awaited(engine: Engine, model: Speaking) -> None:
    async def work() -> tuple[Evidence, list[Evidence], str, Answer, int]:
        asynchronous = AsyncEngine(engine)
        await asynchronous.index_documents([Document("elm", "Elm", "An elm is a tree.")])
        result, many = await asyncio.gather(
            asynchronous.search("elm", 1, retriever="bm25"), asynchronous.search_many(["elm"], 1, retriever="bm25")
        )
        model.lets.release(9)
        stream = asynchronous.stream(QUESTION, retriever="dense")
        text = "".join([piece async for piece in stream])
        return result, many, text, await stream.answer(), asynchronous.catalogue.statistics().documents

    evidence, many, text, answer, documents = asyncio.run(work())
    assert [hit.passage.document_id for hit in evidence.passages] == ["elm"]
    assert [plain(one) for one in many] == [plain(evidence)]
    assert text == answer.text == "".join(WORDS)
    assert documents == 7


def test_indexing_that_is_cancelled_stops_after_its_document(engine: Engine) -> None:
    began, goes_on = threading.Event(), threading.Event()

    def documents() -> Iterator[Document]:
        for number in range(2000):
            yield Document(f"{number}", f"Title {number}", f"Words of number {number}.")
            if number == 100:
                began.set()
                assert goes_on.wait(30)

    async def work() -> None:
        task = asyncio.create_task(AsyncEngine(engine).index_documents(documents()))
        assert await asyncio.to_thread(began.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        goes_on.set()

    asyncio.run(work())  # at its end it waits for the threads
    assert engine.catalogue.statistics().documents < 2000


def test_a_stream_whose_reader_is_cancelled_is_closed(engine: Engine, model: Speaking) -> None:
    async def work() -> None:
        stream = AsyncEngine(engine).stream(QUESTION, retriever="dense")
        model.lets.release()
        assert await anext(stream) == WORDS[0].strip()
        waiting = asyncio.create_task(anext(stream))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        model.lets.release(3)

    asyncio.run(work())
    assert len(model.messages) < len(WORDS)
