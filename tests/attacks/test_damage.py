"""An index whose bytes were changed at random: it answers as before, or with an error of polyad's own."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.errors import PolyadError, StoreError
from polyad.model import Document, Timings
from polyad.snapshot.files import FOLDER
from polyad.stores.sqlite import FILE_NAME

pytestmark = pytest.mark.attacks

FILES = 240
FLIPS = 1000
WORDS = "river tower bell otter bronze village walnut Anna Keller Bob Stone Oslo Aldby met cast born in of the".split()  # noqa: SIM905
QUESTION = "Where did Anna Keller meet Bob Stone?"


def documents() -> Iterator[Document]:
    chance = random.Random(1)
    for number in range(40):
        sentences = (" ".join(chance.choices(WORDS, k=12)).capitalize() for _ in range(6))
        yield Document(f"d{number}", f"Town {number}", ". ".join(sentences), metadata={"n": number, "tags": ("a", "b")})


@pytest.fixture(scope="module")
def sound_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("sound")
    with pytest.MonkeyPatch.context() as patch, Engine.open(directory, embedder=HashingEmbedder(32)) as engine:
        patch.setattr("polyad.snapshot.provider.MIN_SAVED", 1)
        engine.index_documents(documents())
        engine.prepare("hypergraphrag")
    return directory


@pytest.fixture(scope="module")
def sound(sound_directory: Path) -> bytes:
    return (sound_directory / FILE_NAME).read_bytes()


@pytest.fixture(scope="module")
def answers(sound_directory: Path) -> list[object]:
    with Engine.open(sound_directory, embedder=HashingEmbedder(32), create=False) as engine:
        return list(answers_of(engine))


def answers_of(engine: Engine) -> Iterator[object]:
    """What an index that has all of its rows answers always."""
    for retriever in ("default", "bm25", "dense", "hypersu", "hypergraphrag"):
        yield replace(engine.search(QUESTION, retriever=retriever), timings=Timings())
    for number in range(40):
        yield engine.catalogue.document(f"d{number}")
        yield engine.catalogue.origin(f"d{number}")


def damaged(sound: bytes, chance: random.Random) -> bytes:
    """Some bytes changed, anywhere or where the pages of the file begin; one in ten is cut off."""
    contents = bytearray(sound)
    for _ in range(chance.choice([1, 3, 10, 60])):
        page = 4096 * chance.randrange(len(contents) // 4096)
        place = chance.choice([chance.randrange(len(contents)), page + chance.randrange(120)])
        contents[place] = chance.randrange(256)
    return bytes(contents[: chance.randrange(len(contents))] if chance.random() < 0.1 else contents)


def use(directory: Path, answers: list[object]) -> None:
    """Everything that reads, which gives the answers of the sound index or raises; then what writes."""
    with Engine.open(directory, embedder=HashingEmbedder(32), create=False) as engine:
        for result, expected in zip(answers_of(engine), answers, strict=True):
            assert result == expected, f"{directory}: another answer, and no error"
        engine.search(QUESTION, retriever="bm25")
        engine.catalogue.sources()
        engine.catalogue.statistics()
        for entity in engine.catalogue.entities()[:5]:
            engine.catalogue.entity(entity.key)
        for edge in engine.catalogue.hyperedges()[:5]:
            engine.catalogue.hyperedge(edge.id)
            engine.catalogue.passage(edge.passage_id)
        engine.index_documents([Document("d3", "Town 3", "Another text of Anna Keller.")])
        engine.remove(["d5"])


def outcomes(directory: Path, files: Iterator[bytes], answers: list[object]) -> list[PolyadError | None]:
    """What becomes of each file; another answer, or any other exception, ends the test."""
    results: list[PolyadError | None] = []
    for number, contents in enumerate(files):
        place = directory / str(number)
        place.mkdir()
        (place / FILE_NAME).write_bytes(contents)
        try:
            use(place, answers)
            results.append(None)
        except PolyadError as error:
            results.append(error)
    return results


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_damaged_index_answers_as_before_or_raises_an_error_of_polyad(
    sound: bytes, answers: list[object], tmp_path: Path
) -> None:
    results = outcomes(tmp_path, (damaged(sound, random.Random(number)) for number in range(FILES)), answers)
    messages = [str(error) for error in results if isinstance(error, StoreError)]
    assert len(messages) > FILES / 2
    assert [message for message in messages if "index again" not in message and "another program" not in message] == []


def test_each_page_of_the_file_may_be_lost(sound: bytes, answers: list[object], tmp_path: Path) -> None:
    pages = range(0, len(sound), 4096 * 3)
    results = outcomes(tmp_path, (sound[:page] + bytes(4096) + sound[page + 4096 :] for page in pages), answers)
    assert len([error for error in results if isinstance(error, StoreError)]) > len(pages) / 2


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_flipped_bit_changes_no_answer(sound_directory: Path, answers: list[object], tmp_path: Path) -> None:
    files = sorted(path.relative_to(sound_directory) for path in sound_directory.rglob("*") if path.is_file())
    assert len(files) > 50, "the snapshot is among them"
    for number in range(FLIPS):
        chance = random.Random(number)
        directory = shutil.copytree(sound_directory, tmp_path / str(number))
        path = directory / chance.choice([Path(FILE_NAME), Path(FOLDER, "snapshot.json"), *files])
        contents = bytearray(path.read_bytes())
        if contents:
            header = min(len(contents), 128)
            contents[chance.randrange(chance.choice([header, len(contents)]))] ^= 1 << chance.randrange(8)
            path.write_bytes(contents)
        with suppress(PolyadError):
            use(directory, answers)
        shutil.rmtree(directory)
