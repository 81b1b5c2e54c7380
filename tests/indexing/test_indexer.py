from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyad.config import SplitSettings
from polyad.embedders.hashing import HashingEmbedder
from polyad.errors import ConfigurationError, EmbedderError, LanguageModelError, NoMoreRepliesError, StoreError
from polyad.indexing import embedding
from polyad.indexing.embedding import format_embedding_text
from polyad.indexing.facts.budget import Budget
from polyad.indexing.facts.builder import FactBuilder
from polyad.indexing.facts.settings import FactSettings
from polyad.indexing.facts.style import ExtractionStyle
from polyad.indexing.indexer import Indexer
from polyad.indexing.mentions.rules import RuleMentionExtractor
from polyad.indexing.run import IndexCounts
from polyad.indexing.segmentation import SegmentationSettings
from polyad.indexing.semantic_units import SemanticUnitBuilder
from polyad.indexing.split import SentenceSplitter
from polyad.language_models.reply_cache import CachedLanguageModel
from polyad.language_models.scripted import ScriptedLanguageModel, ScriptedOutcome, extract_passage
from polyad.model import (
    Document,
    Entity,
    Failure,
    FloatArray,
    Hyperedge,
    IndexedPassage,
    Location,
    Mention,
    Passage,
    Section,
    Usage,
)
from polyad.protocols.components import (
    BuildResult,
    Embedder,
    HyperedgeBuilder,
    LanguageModel,
    MentionExtractor,
    OnMessage,
    Prompt,
    TextKind,
    ignore_message,
)
from polyad.protocols.lookups import (
    get_all,
    get_digests,
    get_document_passages,
    get_incidences,
    get_statistics,
    get_version,
)
from polyad.protocols.store import Manifest, Store, ValueStore
from polyad.snapshot.provider import SnapshotProvider
from polyad.stores.sqlite import SqliteStore, SqliteValueFile
from tests.examples import count_examples

SENTENCES = [
    "Anna Keller was born in Oslo and studied physics in Paris before the war.",
    "She met Bob Stone there, and they married in 1961 at the Hotel Astoria.",
    "The Hotel Astoria burned down in 1975, which ended the Stone family's fortune.",
    "Nothing happened for a long while after that.",
    "In Oslo, the Keller Institute keeps the letters of Anna Keller (physicist).",
    "Wait! Really? Yes.",
    "东京塔是东京的电视塔。它高三百三十三米。",
    "A line\x00with a control character\x07 in it, and Bob Stone.",
    "   ",
]
TITLES = ["", "Anna Keller", "Hotel Astoria", "东京塔"]
QUESTIONS = ["Where was Anna Keller born?", "hotel fire 1975", "东京的塔", "nothing after that"]
SMALL = SplitSettings(passage_tokens=40, overlap_tokens=15)


FOLDERS = tempfile.TemporaryDirectory()
"""Removed when the interpreter ends; examples of Hypothesis have no ``tmp_path`` of their own."""


def make_replies() -> SqliteValueFile:
    return SqliteValueFile(Path(tempfile.mkdtemp(dir=FOLDERS.name)) / "replies.sqlite")


def make_store(dimension: int = 16) -> SqliteStore:
    return SqliteStore.open(Path(tempfile.mkdtemp(dir=FOLDERS.name)), Manifest("test", dimension, "rules"))


class CountingEmbedder:
    """Remembers what it was asked to embed."""

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder or HashingEmbedder(16)
        self.texts: list[str] = []

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        self.texts += texts
        return self._embedder.encode(texts, kind)


class Fussy(CountingEmbedder):
    """Fails on some texts."""

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        if any("unlucky" in text for text in texts):
            raise EmbedderError("too unlucky")
        return super().encode(texts, kind)


class FailingExtractor:
    """The rules, except that some texts raise."""

    name = "failing"

    def __init__(self, errors: Mapping[str, Exception]) -> None:
        self._errors = errors

    def extract(self, texts: Sequence[str]) -> list[list[Mention]]:
        for text in texts:
            for sign, error in self._errors.items():
                if sign in text:
                    raise error
        return RuleMentionExtractor().extract(texts)


def indexer_of(
    store: Store,
    embedder: Embedder | None = None,
    *,
    extractor: MentionExtractor | None = None,
    split: SplitSettings = SMALL,
    segmentation: SegmentationSettings | None = None,
) -> Indexer:
    embedder = embedder or HashingEmbedder(16)
    splitter = SentenceSplitter(split)
    builder = SemanticUnitBuilder(
        splitter, extractor or RuleMentionExtractor(), embedder, segmentation or SegmentationSettings()
    )
    return Indexer(store, embedder, splitter, builder)


def silent(done: int, total: int | None, message: str) -> None:
    pass


def index(indexer: Indexer, *items: Document | Failure) -> IndexCounts:
    return indexer.index(items, silent)


def search_text(store: Store, question: str, k: int) -> list[tuple[str, float]]:
    snapshot = SnapshotProvider(store, store.manifest.dimension).get_current()
    rows, scores = snapshot.search_terms(question, k)
    return list(zip(snapshot.ids("passage", rows), scores.tolist(), strict=True))


def passages_of(store: Store) -> list[Passage]:
    """All passages, by id."""
    return [item.passage for item in get_document_passages(store, list(get_digests(store)))]


def hyperedge_ids(store: Store) -> list[str]:
    return [edge.id for edge in get_all(store, Hyperedge)]


def contents(store: Store) -> dict[str, object]:
    """All that is in a store, as values that compare; vectors bit for bit."""
    ids = list(get_digests(store))
    passages = get_document_passages(store, ids)
    edges = [edge for item in passages for edge in item.hyperedges]
    return {
        "digests": get_digests(store),
        "documents": get_all(store, Document, ids),
        "passages": [item.passage for item in passages],
        "passage vectors": [item.vector.tobytes() for item in passages],
        "hyperedges": [edge.hyperedge for edge in edges],
        "hyperedge vectors": [edge.vector.tobytes() for edge in edges],
        "incidences": [edge.incidences for edge in edges],
        "entities": get_all(store, Entity),
        "words": [search_text(store, question, k) for question in QUESTIONS for k in (1, 3, 100)],
        "tokens": get_statistics(store).tokens,
    }


def text_of(*numbers: int) -> str:
    return " ".join(SENTENCES[number] for number in numbers)


# Exactness

DOCUMENTS = st.builds(
    Document,
    id=st.sampled_from(["a", "b", "c/d.txt", "é"]),
    title=st.sampled_from(TITLES),
    text=st.lists(st.sampled_from(SENTENCES), max_size=7).map(" ".join),
    source=st.sampled_from(["", "s"]),
    sections=st.lists(
        st.builds(
            lambda name, start, length: Section(name, start, start + length),
            st.sampled_from([*TITLES, "The\nwar"]),
            st.integers(0, 200),
            st.integers(0, 300),
        ),
        max_size=3,
    ).map(tuple),
)
RUNS = st.lists(
    st.lists(DOCUMENTS, min_size=1, max_size=4) | st.sets(st.sampled_from(["a", "b", "c/d.txt", "é"]), min_size=1),
    max_size=8,
)


def apply(runs: Iterable[list[Document] | set[str]], store: Store, indexer: Indexer) -> dict[str, Document]:
    """Index the lists and remove the sets; what should be left."""
    survivors: dict[str, Document] = {}
    for run in runs:
        if isinstance(run, set):
            names = run & survivors.keys()
            store.remove(sorted(names & get_digests(store).keys()))  # a document that was left is not there
            for id in names:
                del survivors[id]
        else:
            index(indexer, *run)
            first = {document.id: document for document in reversed(run)}
            survivors |= {id: document for id, document in first.items() if document.text.strip()}
    return survivors


def assert_exact(runs: Iterable[list[Document] | set[str]], make_indexer: Callable[[Store], Indexer]) -> None:
    grown, fresh = make_store(), make_store()
    survivors = apply(runs, grown, make_indexer(grown))
    index(make_indexer(grown), *survivors.values())  # changes nothing, unless some passages are still without facts
    index(make_indexer(fresh), *survivors.values())
    assert contents(grown) == contents(fresh)
    grown.close()
    fresh.close()


@settings(max_examples=count_examples(50), deadline=None)
@given(runs=RUNS)
def test_after_any_sequence_the_index_equals_a_fresh_one_of_the_surviving_documents(
    runs: list[list[Document] | set[str]],
) -> None:
    assert_exact(runs, indexer_of)


def extracted(prompt: Prompt) -> str:
    """A fact for each sentence of a passage, that joins the capitalised words in it and one that is nowhere."""
    text = extract_passage(prompt.user)
    facts = []
    table: dict[str, str] = {}
    for sentence in text.split(". "):
        names = re.findall(r"\b[A-Z]\w+", sentence)
        facts.append({"text": f"It is said: {sentence}", "score": 1 + len(sentence) % 9, "entities": [*names, "Nemo"]})
        table |= {name: f"{name} | {name[-1]} | in {sentence[:20]} | {len(sentence)}" for name in names}
    return json.dumps({"facts": facts, "entities": list(table.values())})


def fact_indexer_of(
    store: Store,
    model: LanguageModel,
    embedder: Embedder | None = None,
    split: SplitSettings = SMALL,
    facts: FactSettings | None = None,
    replies: ValueStore | None = None,
) -> Indexer:
    splitter = SentenceSplitter(split)
    cached = CachedLanguageModel(model, replies or make_replies(), store.charge)
    builder = FactBuilder(splitter, cached, ExtractionStyle(), facts or FactSettings(), Budget(cached))
    return Indexer(store, embedder or HashingEmbedder(16), splitter, builder)


@settings(max_examples=count_examples(40), deadline=None)
@given(runs=RUNS)
def test_after_any_sequence_facts_too_equal_those_of_a_fresh_index(runs: list[list[Document] | set[str]]) -> None:
    assert_exact(runs, lambda store: fact_indexer_of(store, ScriptedLanguageModel(extracted)))


@settings(max_examples=count_examples(40), deadline=None)
@given(runs=RUNS, faults=st.lists(st.sampled_from(["", "busy", "odd", "stop"]), min_size=1, max_size=20))
def test_after_any_failures_one_run_without_makes_the_index_equal_a_fresh_one(
    runs: list[list[Document] | set[str]], faults: list[str]
) -> None:
    waiting = iter(faults)

    def moody(prompt: Prompt) -> ScriptedOutcome:
        match next(waiting, ""):
            case "busy":
                return LanguageModelError("busy")
            case "stop":
                return NoMoreRepliesError("enough")
            case "odd":
                return "I cannot help with that."
        return extracted(prompt)

    grown, fresh = make_store(), make_store()
    tried = apply(runs, grown, fact_indexer_of(grown, ScriptedLanguageModel(moody)))
    for store in (grown, fresh):
        counts = index(fact_indexer_of(store, ScriptedLanguageModel(extracted)), *tried.values())
        assert (counts.failures, counts.stop_reason, counts.unprocessed) == ((), "", 0)
    assert contents(grown) == contents(fresh)
    grown.close()
    fresh.close()


def test_with_a_real_model_too_the_index_equals_a_fresh_one_bit_for_bit(embedder: Embedder) -> None:
    runs: list[list[Document] | set[str]] = [
        [Document("a", "Anna Keller", text_of(0, 1, 2)), Document("b", "", text_of(3, 4, 5, 0))],
        [Document("c", "Hotel Astoria", text_of(2, 2, 3, 1, 4, 0, 5, 6))],
        {"a"},
        [Document("b", "", text_of(3, 4, 5, 1, 0)), Document("a", "Anna Keller", text_of(1, 0, 2))],
        [Document("d", "Hotel Astoria", text_of(2, 2, 3, 1, 4, 0, 5, 6)), Document("e", "", text_of(4) * 20)],
        {"c"},
    ]
    grown, fresh = make_store(embedder.dimension), make_store(embedder.dimension)
    survivors = apply(runs, grown, indexer_of(grown, embedder))
    assert sorted(survivors) == ["a", "b", "d", "e"]
    index(indexer_of(fresh, embedder), *survivors.values())
    assert contents(grown) == contents(fresh)


# Paying once


def test_indexing_twice_embeds_nothing_and_writes_nothing() -> None:
    store, embedder = make_store(), CountingEmbedder()
    documents = [Document(str(n), "", text_of(n % 5, 1)) for n in range(6)]
    first = index(indexer_of(store, embedder), *documents)
    version = get_version(store)
    embedder.texts.clear()

    again = index(indexer_of(store, embedder), *documents)

    assert (first.added, first.unchanged) == (6, 0)
    assert (again.added, again.updated, again.unchanged, again.passages) == (0, 0, 6, 0)
    assert embedder.texts == []
    assert get_version(store) == version


LONG = [
    f"Number {n} is the name of Street {n} in Oslo, where {n} people of the Keller family lived." for n in range(60)
]
NO_OVERLAP = SplitSettings(passage_tokens=60, overlap_tokens=0)


def test_changing_one_passage_embeds_only_its_texts_again() -> None:
    store, embedder = make_store(), CountingEmbedder()
    index(indexer_of(store, embedder, split=NO_OVERLAP), Document("a", "Oslo", " ".join(LONG)))
    before = {passage.text for passage in passages_of(store)}
    embedder.texts.clear()

    changed = [*LONG[:30], LONG[30].replace("people", "horses"), *LONG[31:]]
    counts = index(indexer_of(store, embedder, split=NO_OVERLAP), Document("a", "Oslo", " ".join(changed)))

    (new,) = {passage.text for passage in passages_of(store)} - before
    assert counts.updated == 1
    assert len(before) > 10
    assert "horses" in new
    assert format_embedding_text("Oslo", new) in embedder.texts
    assert all(text.removeprefix("Oslo\n") in new for text in embedder.texts)


def test_each_passage_and_unit_is_embedded_once_and_no_sentence() -> None:
    store, embedder = make_store(), CountingEmbedder()
    split, segmentation = SplitSettings(passage_tokens=200), SegmentationSettings(max_words=50)
    document = Document("a", "Oslo", " ".join(LONG))
    index(indexer_of(store, embedder, split=split, segmentation=segmentation), document)
    passages, edges = passages_of(store), get_all(store, Hyperedge)
    texts = {passage.text for passage in passages} | {edge.text for edge in edges}
    assert len(edges) > len(passages) > 1
    assert sorted(embedder.texts) == sorted(f"Oslo\n{text}" for text in texts)


def test_sentences_are_embedded_where_their_vectors_are_asked_for() -> None:
    embedder = CountingEmbedder()
    segmentation = SegmentationSettings(semantics="embedder", kappa=10)
    split = SplitSettings(passage_tokens=200)
    index(indexer_of(make_store(), embedder, split=split, segmentation=segmentation), Document("a", "", " ".join(LONG)))
    assert set(LONG) <= set(embedder.texts)


def test_progress_says_which_page_is_embedded() -> None:
    text = " ".join(LONG)
    places = tuple(Location(start, start + 100, page=page) for page, start in enumerate(range(0, len(text), 100), 1))
    messages: list[str] = []
    document = Document("a", "Oslo", text, source="in/plot.pdf", places=places)
    indexer = indexer_of(make_store(), split=NO_OVERLAP)
    indexer.index([document], lambda done, total, message: messages.append(message), file_count=1)
    assert any(re.match(r"files, plot.pdf p. 5\d/53, (\d+) of \1 texts embedded", message) for message in messages)
    assert any(message.startswith("files, finding names, passage 1 of ") for message in messages)


def test_a_changed_title_is_embedded_again_because_it_is_part_of_what_is_embedded() -> None:
    store, embedder = make_store(), CountingEmbedder()
    index(indexer_of(store, embedder), Document("a", "Oslo", text_of(0)))
    embedder.texts.clear()
    index(indexer_of(store, embedder), Document("a", "Paris", text_of(0)))
    assert f"Paris\n{text_of(0)}" in embedder.texts


def test_other_headings_make_other_passages() -> None:
    store = make_store()
    indexer = indexer_of(store, split=SplitSettings(section_tokens=0))
    text = f"{text_of(0)} {text_of(2)}"
    end = len(text_of(0))

    def titles(*sections: Section) -> list[str]:
        assert index(indexer, Document("a", "", text, sections=sections)).updated == 1
        return [passage.title for passage in passages_of(store)]

    index(indexer, Document("a", "", text))
    assert titles(Section("Life", 0, len(text))) == ["Life"]
    assert titles(Section("Work", 0, len(text))) == ["Work"]
    assert titles(Section("Work", 0, end), Section("Fire", end + 1, len(text))) == ["Work", "Fire"]
    subjects = [
        item.entity_key for items in get_incidences(store, ["a#0001/000"]).values() for item in items if item.role
    ]
    assert subjects == ["fire"]


def vectors_of(passages: Sequence[IndexedPassage]) -> list[tuple[bytes, list[bytes]]]:
    return [(item.vector.tobytes(), [edge.vector.tobytes() for edge in item.hyperedges]) for item in passages]


def test_a_moved_or_renamed_document_reuses_its_vectors() -> None:
    store, embedder = make_store(), CountingEmbedder()
    document = Document("old.txt", "Oslo", " ".join(LONG))
    index(indexer_of(store, embedder), document)
    before = get_document_passages(store, ["old.txt"])
    embedder.texts.clear()

    moved = Document("new/name.txt", document.title, document.text)
    assert index(indexer_of(store, embedder), moved).added == 1
    store.remove(["old.txt"])

    assert embedder.texts == []
    after = get_document_passages(store, list(get_digests(store)))
    assert vectors_of(after) == vectors_of(before)
    assert hyperedge_ids(store)[0] == "new/name.txt#0000/000"
    assert {edge.passage_id for edge in get_all(store, Hyperedge)} == {item.passage.id for item in after}


def test_text_inserted_in_front_moves_the_passages_behind_it_without_embedding_them() -> None:
    store, embedder = make_store(), CountingEmbedder()
    one_each = SplitSettings(passage_tokens=30, overlap_tokens=0)
    index(indexer_of(store, embedder, split=one_each), Document("a", "", " ".join(LONG[:20])))
    embedder.texts.clear()
    index(indexer_of(store, embedder, split=one_each), Document("a", "", f"{LONG[40]}\n\n{' '.join(LONG[:20])}"))
    assert set(embedder.texts) == {LONG[40]}
    document = get_all(store, Document, ["a"])[0]
    for passage in passages_of(store):
        assert passage.text == document.text[passage.start : passage.end]


def test_a_passage_that_begins_a_paragraph_no_longer_is_built_anew() -> None:
    store, embedder = make_store(), CountingEmbedder()
    one_each = SplitSettings(passage_tokens=30, overlap_tokens=0)
    index(indexer_of(store, embedder, split=one_each), Document("a", "", " ".join(LONG[:20])))
    embedder.texts.clear()
    index(indexer_of(store, embedder, split=one_each), Document("a", "", " ".join([LONG[40], *LONG[:20]])))
    assert set(embedder.texts) == {LONG[40], LONG[0]}, "it is less surely about what it defines"


def test_texts_that_several_documents_share_are_embedded_once() -> None:
    store, embedder = make_store(), CountingEmbedder()
    index(indexer_of(store, embedder), *(Document(id, "", text_of(0)) for id in "abc"))
    assert embedder.texts == [text_of(0)]


@pytest.mark.parametrize(
    "change",
    [
        lambda store: indexer_of(store, segmentation=SegmentationSettings(method="sentence")),
        lambda store: indexer_of(store, extractor=FailingExtractor({})),
        lambda store: indexer_of(store, split=SplitSettings(passage_tokens=20, overlap_tokens=0)),
    ],
    ids=["segmentation", "extractor", "splitter"],
)
def test_other_settings_build_every_document_again(change: Callable[[Store], Indexer]) -> None:
    store = make_store()
    document = Document("a", "", text_of(0, 1, 2, 4))
    index(indexer_of(store), document)
    assert index(change(store), document).updated == 1
    assert index(change(store), document).unchanged == 1


# What goes wrong

GOOD, BAD = Document("good", "", text_of(0)), Document("bad", "", "The unlucky passage.")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (LanguageModelError("the model gave up"), "the model gave up"),
        (ValueError("odd"), "the mention extractor 'failing' failed: ValueError: odd"),
    ],
)
def test_a_document_whose_extraction_fails_is_reported_and_the_rest_lands(error: Exception, reason: str) -> None:
    store = make_store()
    counts = index(
        indexer_of(store, extractor=FailingExtractor({"unlucky": error})), GOOD, BAD, Document("c", "", "Late.")
    )
    assert counts.failures == (Failure("bad", reason),)
    assert counts.added == 2
    assert list(get_digests(store)) == ["c", "good"]


def test_a_failed_update_leaves_the_earlier_document() -> None:
    store = make_store()
    index(indexer_of(store), GOOD, Document("bad", "", text_of(1)))
    before = contents(store)
    failing = indexer_of(store, extractor=FailingExtractor({"unlucky": LanguageModelError("no")}))
    counts = index(failing, BAD)
    assert [failure.id for failure in counts.failures] == ["bad"]
    assert contents(store) == before


def test_a_document_that_failed_is_tried_again_in_the_next_run() -> None:
    store = make_store()
    index(indexer_of(store, extractor=FailingExtractor({"unlucky": LanguageModelError("no")})), BAD)
    counts = index(indexer_of(store, extractor=FailingExtractor({})), BAD)
    assert (counts.added, counts.failures) == (1, ())


@pytest.mark.parametrize("error", [StoreError("the disk is full"), ConfigurationError("no such model")])
def test_an_error_that_is_no_documents_fault_ends_the_run(error: Exception) -> None:
    with pytest.raises(type(error)):
        index(indexer_of(make_store(), extractor=FailingExtractor({"unlucky": error})), GOOD, BAD)


def test_an_embedder_that_fails_on_one_text_costs_one_document() -> None:
    store = make_store()
    assert index(indexer_of(store, Fussy()), BAD, GOOD).failures == (Failure("bad", "too unlucky"),)
    assert list(get_digests(store)) == ["good"]


def test_failures_of_the_reader_are_passed_into_the_report() -> None:
    store = make_store()
    counts = index(indexer_of(store), Failure("broken.pdf", "no text layer"), GOOD)
    assert counts.failures == (Failure("broken.pdf", "no text layer"),)
    assert counts.added == 1


@pytest.mark.parametrize("text", ["", " \n\t ", "\u3000"])
def test_a_document_without_text_is_a_failure(text: str) -> None:
    store = make_store()
    assert index(indexer_of(store), Document("a", "Title", text)).failures == (Failure("a", "it has no text"),)
    assert get_digests(store) == {}


@pytest.mark.parametrize(
    "document",
    [
        Document("a\ud800", "", "Text."),
        Document("a", "", "Half \ud800 a character."),
        Document("a", "", "Text.", source="\ud800"),
    ],
)
def test_half_a_character_anywhere_is_a_failure_that_can_be_printed(document: Document) -> None:
    store = make_store()
    counts = index(indexer_of(store), document, GOOD)
    (failure,) = counts.failures
    assert f"{failure.id} {failure.reason}".encode()
    assert "\\ud800" in failure.reason
    assert list(get_digests(store)) == ["good"]


def test_a_name_that_an_extractor_spelt_with_half_a_character_costs_one_document() -> None:
    class Odd:
        name = "odd"

        def extract(self, texts: Sequence[str]) -> list[list[Mention]]:
            return [[Mention("Bob\udfff", 0, 3)] if "unlucky" in text else [] for text in texts]

    store = make_store()
    assert [failure.id for failure in index(indexer_of(store, extractor=Odd()), GOOD, BAD).failures] == ["bad"]
    assert list(get_digests(store)) == ["good"]


def test_an_id_that_comes_twice_in_a_run_is_a_failure_unless_the_content_is_the_same() -> None:
    store = make_store()
    counts = index(indexer_of(store), GOOD, Document("good", "", "Something else."), GOOD)
    assert (counts.added, counts.unchanged, len(counts.failures)) == (1, 1, 1)
    assert get_all(store, Document, ["good"]) == [replace(GOOD, metadata={"language": "en"})]
    reason = "it has the id of an earlier document with other content; only that one is indexed"
    assert counts.failures == (Failure("good", reason),)


def test_of_an_id_that_comes_twice_the_first_stays_wherever_the_second_was_read() -> None:
    store = make_store()
    first, again = (Document("x", "", text_of(0), source=source) for source in ("a.jsonl:1", "b.jsonl:4"))
    other = Document("x", "", "Something else.", source="b.jsonl:5")
    for added, unchanged in ((1, 1), (0, 2)):
        counts = index(indexer_of(store), first, again, other)
        assert (counts.added, counts.updated, counts.unchanged) == (added, 0, unchanged)
        reason = "b.jsonl:5 has the id of an earlier document with other content, a.jsonl:1; only that one is indexed"
        assert counts.failures == (Failure("x", reason),)
    assert get_all(store, Document, ["x"]) == [replace(first, metadata={"language": "en"})]


def test_progress_is_told_of_every_item_whatever_became_of_it() -> None:
    numbers: list[int] = []

    def progress(done: int, total: int | None, message: str) -> None:
        numbers.append(done)

    long = [Document(f"long {n}", "", text_of(0) * 3000) for n in range(2)]
    splitter = SplitSettings(passage_tokens=5000)
    indexer_of(make_store(), split=splitter).index([*long, Failure("x", "y"), GOOD, GOOD], progress)
    assert numbers == sorted(numbers)
    assert numbers[-1] == 5


def test_a_builder_is_given_passages_with_their_place_in_the_document() -> None:
    seen: list[Passage] = []

    class Remembering:
        name = "remembering"

        def build(self, passages: Sequence[Passage], tell: OnMessage = ignore_message) -> list[BuildResult]:
            seen.extend(passages)
            return [BuildResult([]) for _ in passages]

        def estimate(self, passages: Sequence[Passage], word: object) -> Usage:
            return Usage()

    builder: HyperedgeBuilder = Remembering()
    document = Document("a", "Oslo", "  " + " ".join(LONG))
    index(Indexer(make_store(), HashingEmbedder(16), SentenceSplitter(SMALL), builder), document)
    assert len(seen) > 10
    assert all(passage.text == document.text[passage.start : passage.end] for passage in seen)
    assert [passage.id for passage in seen] == [f"a#{position:04}" for position in range(len(seen))]


# A language model that fails


def names_of(store: Store) -> list[str]:
    return [entity.name for entity in get_all(store, Entity)]


def without_reply_about(sign: str, error: LanguageModelError) -> ScriptedLanguageModel:
    return ScriptedLanguageModel(lambda prompt: error if sign in prompt.user else extracted(prompt))


ONE_EACH = SplitSettings(passage_tokens=30, overlap_tokens=0)
FOUR = Document("a", "", " ".join(LONG[:4]))
"""One passage a sentence."""


def test_a_passage_without_a_reply_is_indexed_by_its_text_and_reported() -> None:
    store = make_store()
    counts = index(
        fact_indexer_of(store, without_reply_about("Street 2", LanguageModelError("busy")), split=ONE_EACH), FOUR
    )
    assert counts.failures == (Failure("a#0002", "busy; its text is indexed, new facts are missing: index it again"),)
    assert (counts.added, counts.passages, counts.hyperedges) == (1, 4, 3)
    assert get_digests(store) == {"a": ""}
    assert search_text(store, "Number 2", 1)[0][0] == "a#0002"
    assert [edge.passage_id for edge in get_all(store, Hyperedge)] == [
        "a#0000",
        "a#0001",
        "a#0003",
    ]


def test_the_next_run_asks_and_embeds_for_the_missing_passage_only() -> None:
    store = make_store()
    index(fact_indexer_of(store, without_reply_about("Street 2", LanguageModelError("busy")), split=ONE_EACH), FOUR)
    model, embedder = ScriptedLanguageModel(extracted), CountingEmbedder()
    counts = index(fact_indexer_of(store, model, embedder, ONE_EACH), FOUR)
    assert (counts.added, counts.updated, counts.failures) == (0, 1, ())
    assert [extract_passage(prompt.user) for prompt in model.prompts] == [LONG[2]]
    assert all(LONG[2].removesuffix(".") in text for text in embedder.texts)
    assert index(fact_indexer_of(store, model, embedder, ONE_EACH), FOUR).unchanged == 1


def test_facts_that_are_there_are_not_lost_when_they_cannot_be_extracted_anew() -> None:
    store = make_store()
    index(fact_indexer_of(store, ScriptedLanguageModel(extracted), split=ONE_EACH), FOUR)
    before = hyperedge_ids(store)
    failing = ScriptedLanguageModel(lambda prompt: LanguageModelError("busy"))
    changed = Document("a", "", FOUR.text.replace("Street 2", "Lane 2"))
    gleaning = FactSettings(gleaning=1)
    counts = index(fact_indexer_of(store, failing, split=ONE_EACH, facts=gleaning), changed)
    assert (counts.updated, len(counts.failures)) == (1, 4)
    assert hyperedge_ids(store) == [id for id in before if not id.startswith("a#0002")], "its text is new"
    assert get_digests(store) == {"a": ""}
    whole = fact_indexer_of(store, ScriptedLanguageModel(extracted), split=ONE_EACH, facts=gleaning)
    assert index(whole, changed).failures == ()
    assert set(before) <= set(hyperedge_ids(store))


def test_notes_of_failed_documents_are_not_counted() -> None:
    store = make_store()
    bad = Document("bad", "", f"An unlucky {LONG[5]}")
    counts = index(fact_indexer_of(store, ScriptedLanguageModel(extracted), Fussy(), ONE_EACH), FOUR, bad)
    assert (counts.added, len(counts.failures)) == (1, 1)
    assert counts.notes["facts"] == counts.hyperedges == 4


def test_an_update_that_is_stopped_leaves_the_earlier_document() -> None:
    store = make_store()
    index(fact_indexer_of(store, ScriptedLanguageModel(extracted), split=ONE_EACH), FOUR)
    before = contents(store)
    changed = Document("a", "", FOUR.text.replace("Street 2", "Lane 2"))
    stopping = without_reply_about("Lane", NoMoreRepliesError("enough"))
    counts = index(fact_indexer_of(store, stopping, split=ONE_EACH), changed)
    assert (counts.stop_reason, counts.unprocessed, counts.updated, counts.failures) == ("enough", 1, 0, ())
    assert contents(store) == before


def test_a_run_that_is_stopped_keeps_the_documents_that_are_whole() -> None:
    store = make_store()
    stopping = without_reply_about("stops", NoMoreRepliesError("enough"))
    items = [GOOD, Document("b", "", "It stops here."), Document("c", "", "And it goes on.")]
    counts = index(fact_indexer_of(store, stopping), *items)
    assert (counts.added, counts.unprocessed, counts.stop_reason) == (2, 1, "enough")
    assert list(get_digests(store)) == ["c", "good"]


def test_a_run_that_is_stopped_reads_no_further_batch() -> None:
    read: list[str] = []

    def documents() -> Iterable[Document]:
        for number in range(6):
            read.append(str(number))
            yield Document(str(number), "", text_of(0) * 3000)

    stopping = ScriptedLanguageModel(lambda prompt: NoMoreRepliesError("enough"))
    indexer = fact_indexer_of(make_store(), stopping, split=SplitSettings(passage_tokens=5000))
    counts = indexer.index(documents(), silent)
    assert (counts.stop_reason, counts.added) == ("enough", 0)
    assert 0 < counts.unprocessed == len(read) < 6


def test_of_a_document_that_is_left_no_passage_is_said_to_be_indexed() -> None:
    def reply(prompt: Prompt) -> ScriptedOutcome:
        if "Street 1" in prompt.user:
            return LanguageModelError("busy")
        return NoMoreRepliesError("enough") if "Street 3" in prompt.user else extracted(prompt)

    store = make_store()
    counts = index(fact_indexer_of(store, ScriptedLanguageModel(reply), split=ONE_EACH), FOUR)
    assert (counts.unprocessed, counts.stop_reason, counts.failures) == (1, "enough", ())
    assert get_digests(store) == {}


def test_a_run_that_is_stopped_asks_for_no_other_document_even_where_the_embedder_failed() -> None:
    def reply(prompt: Prompt) -> ScriptedOutcome:
        return NoMoreRepliesError("enough") if "Late" in prompt.user else extracted(prompt)

    model = ScriptedLanguageModel(reply)
    late = [Document(f"late {number}", "", f"Late {number}.") for number in range(5)]
    counts = index(fact_indexer_of(make_store(), model, Fussy()), BAD, *late)
    assert (counts.unprocessed, counts.stop_reason) == (5, "enough")
    assert [failure.id for failure in counts.failures] == ["bad"]
    assert len(model.prompts) == 1 + 5 + 1, "one for each, and one more for the first of those that are left"


def test_replies_are_reused_after_an_embedder_error() -> None:
    store, replies, model = make_store(), make_replies(), ScriptedLanguageModel(extracted)
    counts = index(fact_indexer_of(store, model, Fussy(), replies=replies), BAD, GOOD)
    assert [failure.id for failure in counts.failures] == ["bad"]
    assert index(fact_indexer_of(store, model, replies=replies), BAD, GOOD).added == 1
    assert len(model.prompts) == 2
    assert "Nemo" in names_of(store)


# What is pending


def pending(indexer: Indexer, *items: Document | Failure) -> list[str]:
    return [passage.id for batch in indexer.find_new_passages(items) for passage in batch]


def test_pending_are_the_passages_that_indexing_would_build() -> None:
    store = make_store()
    indexer = indexer_of(store, split=ONE_EACH)
    assert pending(indexer, FOUR, Failure("x", "y"), Document("empty", "", " ")) == [f"a#{n:04}" for n in range(4)]
    assert get_digests(store) == {}
    index(indexer, FOUR)
    assert pending(indexer, FOUR) == []
    assert pending(indexer, Document("a", "", FOUR.text.replace("Street 2", "Lane 2"))) == ["a#0002"]
    assert pending(indexer, Document("moved", "", FOUR.text)) == []


def test_equal_passages_are_pending_once() -> None:
    text = " ".join(f"Number {number} is the name of {text_of(0)}" for number in range(4500))
    long = [Document(f"long {n}", "", text) for n in range(2)]  # each a batch of its own
    indexer = indexer_of(make_store(), split=SplitSettings(passage_tokens=5000, overlap_tokens=0))
    alone = [
        f"long 0#{position:04}"
        for position in range(
            len(SentenceSplitter(SplitSettings(passage_tokens=5000, overlap_tokens=0)).passages(text))
        )
    ]
    assert pending(indexer, *long, GOOD, Document("twin", "", GOOD.text)) == [*alone, "good#0000"]


def test_a_passage_without_its_facts_is_pending() -> None:
    store = make_store()
    failing = without_reply_about("Street 2", LanguageModelError("busy"))
    index(fact_indexer_of(store, failing, split=ONE_EACH), FOUR)
    assert pending(fact_indexer_of(store, failing, split=ONE_EACH), FOUR) == ["a#0002"]


class Interrupted(CountingEmbedder):
    """Fails, or is interrupted, from the third call on."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self._error = error
        self._calls = 0

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        self._calls += 1
        if self._calls > 2:
            raise self._error
        return super().encode(texts, kind)


LARGE = Document("large", "Large", " ".join(f"Anna met Bob in room {number}." for number in range(200)))


@pytest.fixture
def _kept_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(embedding, "CALL_CHARACTERS", 500)


@pytest.mark.usefixtures("_kept_at_once")
@pytest.mark.parametrize("error", [EmbedderError("no answer"), KeyboardInterrupt()])
def test_vectors_of_a_failed_document_are_reused(error: BaseException) -> None:
    store, first, second, whole = make_store(), Interrupted(error), CountingEmbedder(), CountingEmbedder()
    with pytest.raises(KeyboardInterrupt) if isinstance(error, KeyboardInterrupt) else nullcontext():
        assert index(indexer_of(store, first), LARGE).failures == (Failure("large", "no answer"),)
    assert first.texts
    index(indexer_of(store, second), LARGE)
    index(indexer_of(make_store(), whole), LARGE)
    assert sorted(first.texts + second.texts) == sorted(whole.texts)
    assert waiting(store, whole) == []


@pytest.mark.usefixtures("_kept_at_once")
def test_pending_vectors_of_absent_documents_are_dropped() -> None:
    store, first = make_store(), Interrupted(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        index(indexer_of(store, first), LARGE)
    assert waiting(store, first)
    index(indexer_of(store), Document("other", "Other", "Bob left."))
    assert waiting(store, first) == []


def waiting(store: Store, embedder: CountingEmbedder) -> list[int]:
    """The positions of those of an embedder's texts whose vectors wait in the store."""
    return list(embedding.PendingVectors(store).load(embedder.texts))
