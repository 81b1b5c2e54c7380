import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from polyad.embedders.hashing import HashingEmbedder
from polyad.indexing.documents import validate_document
from polyad.indexing.indexer import Indexer
from polyad.indexing.mentions.rules import RuleMentionExtractor
from polyad.indexing.run import IndexCounts
from polyad.indexing.segmentation import SegmentationSettings
from polyad.indexing.semantic_units import SemanticUnitBuilder
from polyad.indexing.split import SentenceSplitter
from polyad.model import METADATA_KEYS, Argument, Document, Failure, FloatArray
from polyad.protocols.components import TextKind, silent
from polyad.protocols.lookups import get_digests
from polyad.protocols.store import Manifest
from polyad.stores.sqlite import SqliteStore


def document(metadata: Any, url: Any = "") -> Document:
    return Document("d", "Bell", "The Bell of Tarn was cast by Ines Moreau.", metadata=metadata, url=url)


def index_metadata(metadata: Any) -> Mapping[str, object]:
    result = validate_document(document(metadata))
    assert isinstance(result, Document), result
    return result.metadata


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError


def test_sound_metadata_is_kept_as_it_is() -> None:
    other_document = document(
        {"year": 1702, "weight": 1.5, "cracked": False, "makers": ("Moreau", "Stone"), "place": "Tarn"}
    )
    assert validate_document(other_document) is other_document


def test_a_list_of_strings_becomes_a_tuple_and_half_a_character_the_sign_for_none() -> None:
    assert index_metadata({"makers": ["Moreau", "Stone"], "place": "\ud800"}) == {
        "makers": ("Moreau", "Stone"),
        "place": "\ufffd",
    }


def test_control_characters_are_removed_from_metadata_but_not_from_the_text() -> None:
    hostile = "a\x1b[2Jb\u202ec\x9d\ud800"
    other_document = Document(
        "d",
        hostile,
        f"Text \u202e of {hostile[:3]}.",
        url=f"http://x/{hostile}",
        arguments=(Argument(hostile, hostile),),
        metadata={hostile: hostile, "list": (hostile, "fine")},
    )
    clean = "a [2Jbc \ufffd"
    assert validate_document(other_document) == Document(
        "d",
        clean,
        other_document.text,
        url=f"http://x/{clean}",
        arguments=(Argument(clean, hostile.replace("\ud800", "\ufffd")),),
        metadata={clean: clean, "list": (clean, "fine")},
    )


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"parts": {"a": 1}}, "its metadata 'parts' is {'a': 1}; expected a string, a number"),
        ({"none": None}, "its metadata 'none' is None; expected"),
        ({"years": [1702]}, "its metadata 'years' is [1702]; expected"),
        ({"weight": math.nan}, "its metadata 'weight' is nan; expected"),
        ({"weight": 10**400}, "its metadata 'weight' is 1000"),
        ({"weight": 10**6000}, "its metadata 'weight' is a int; expected"),
        ({"it": Unshowable()}, "its metadata 'it' is a Unshowable; expected"),
        ({7: "seven"}, "a key of its metadata is 7; expected a string"),
        (None, "its metadata is None; expected a mapping"),
        ({str(number): number for number in range(65)}, "its metadata has 65 keys; expected at most 64"),
    ],
)
def test_invalid_metadata_is_a_failure_that_names_key_and_value(metadata: Any, reason: str) -> None:
    result = validate_document(document(metadata))
    assert isinstance(result, Failure)
    assert result.id == "d"
    assert result.reason.startswith(reason)


def test_the_maximum_number_of_metadata_keys_is_stored() -> None:
    assert len(index_metadata({str(number): number for number in range(METADATA_KEYS)})) == METADATA_KEYS


def test_an_address_that_is_no_string_is_a_failure() -> None:
    assert validate_document(document({}, url=7)) == Failure("d", "its url is 7; expected a string")


def test_a_long_string_is_cut_and_says_how_long_it_was() -> None:
    text = str(index_metadata({"abstract": "word " * 1000})["abstract"])
    assert len(text) == 1000
    assert text.endswith("... (cut; 5,000 characters)")


def test_a_long_list_is_cut_and_says_how_many_are_missing() -> None:
    results = index_metadata({"tags": [f"tag {number}" for number in range(10_000)]})["tags"]
    assert isinstance(results, tuple)
    assert results[0] == "tag 0"
    assert results[-1] == f"... ({10_000 - len(results) + 1:,} more)"
    assert sum(map(len, results)) < 1100


class CountingEmbedder(HashingEmbedder):
    """Counts what it was asked to embed."""

    count = 0

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        self.count += len(texts)
        return super().encode(texts, kind)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore.open(tmp_path, Manifest("test", 16, "rules"))) as made:
        yield made


def index(store: SqliteStore, embedder: CountingEmbedder, *documents: Document) -> IndexCounts:
    splitter = SentenceSplitter()
    builder = SemanticUnitBuilder(splitter, RuleMentionExtractor(), embedder, SegmentationSettings())
    return Indexer(store, embedder, splitter, builder).index(documents, silent)


def test_a_document_whose_metadata_cannot_be_kept_is_reported_and_the_rest_is_indexed(store: SqliteStore) -> None:
    other = Document("e", "Otter", "The otter eats fish.")
    counts = index(store, CountingEmbedder(16), document({"parts": {}}), other)
    assert [failure.id for failure in counts.failures] == ["d"]
    assert get_digests(store).keys() == {"e"}


def test_a_file_that_was_only_touched_is_unchanged_and_other_metadata_is_an_update_that_embeds_nothing(
    store: SqliteStore,
) -> None:
    index(store, CountingEmbedder(16), document({"modified": "2024-01-01T00:00:00+00:00", "place": "Tarn"}))
    embedder = CountingEmbedder(16)
    touched = index(store, embedder, document({"modified": "2025-01-01T00:00:00+00:00", "place": "Tarn"}))
    assert (touched.unchanged, touched.updated) == (1, 0)
    moved = index(store, embedder, document({"modified": "2025-01-01T00:00:00+00:00", "place": "Corven"}))
    assert (moved.unchanged, moved.updated, embedder.count) == (0, 1, 0)
