# ruff: noqa: RUF001  characters of other scripts are what is read
"""An index of several languages, and documents with two languages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from polyad.engine import Engine
from polyad.model import Document
from polyad.protocols.components import Embedder
from polyad.schemas.places import get_excerpt
from polyad.text.sentences import split_sentences
from polyad.text.words import extract_terms

FOLDER = Path(__file__).parent
ENGLISH = FOLDER.parents[1] / "src" / "polyad" / "sample" / "documents"
LANGUAGES = ("ar", "de", "zh")

GERMAN = """# Der Turm von Corven

Der Turm von Corven wurde am 3. Mai 1698 von Jonas Weber vollendet. Er steht am Ufer der Isk und hat 214 Stufen.

# Der Uhrmacher

Jonas Weber lernte das Handwerk bei seinem Onkel in Saltby. Später baute er Uhren für die Häfen der Küste.
"""
CHINESE = """# 科尔文塔楼

科尔文塔楼的大钟由伊内斯·莫罗铸造。她在1705年写了《铸钟之书》。

# 奥尔德比

奥尔德比是伊斯克河边的村庄，以核桃园闻名。村里的集市每年秋天举行一次。
"""
PARALLEL = """Die Fähre nach Skarv fährt im Winter nur am Dienstag. Der Fahrpreis beträgt vier Kronen.

عبّارة سكارف تبحر في الشتاء يوم الثلاثاء فقط. ثمن التذكرة أربع كرونات، ويدفعه المسافر للربان.
"""


def read(language: str) -> Any:
    return json.loads((FOLDER / f"sample_{language}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def mixed_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """An index of a folder with the sample in four languages, one folder in it for each language."""
    folder = tmp_path_factory.mktemp("mixed")
    files = {f"en/{path.name}": path.read_text(encoding="utf-8") for path in ENGLISH.glob("*.md")}
    for language in LANGUAGES:
        files |= {
            f"{language}/{title}.md": f"# {title}\n\n{text}" for title, text in read(language)["documents"].items()
        }
    for name, text in files.items():
        (folder / "texts" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "texts" / name).write_text(text, encoding="utf-8")
    with Engine.open(folder / "kb", embedder="hashing") as engine:
        report = engine.index([folder / "texts"])
        assert (report.counts.added, report.counts.failures) == (len(files), ())
        yield engine


def find(engine: Engine, question: str, **options: Any) -> list[str]:
    """Return the paths of the first five hits, such as ``de/Turm``."""
    ids = [hit.passage.document_id for hit in engine.search(question, k=5, **options).passages]
    return ["/".join(Path(id).parts[-2:]).removesuffix(".md") for id in ids]


@pytest.mark.parametrize("language", [*LANGUAGES, "en"])
def test_the_filter_for_a_language_selects_its_documents(mixed_engine: Engine, language: str) -> None:
    ids = {Path(id).parts[-2:] for id in mixed_engine.catalogue.sources(where=f"language = {language}")}
    folder = ENGLISH if language == "en" else FOLDER
    names = {path.name for path in folder.glob("*.md")} or {f"{title}.md" for title in read(language)["documents"]}
    assert ids == {(language, name) for name in names}


@pytest.mark.parametrize("language", LANGUAGES)
def test_multi_hop_questions_are_answered_in_an_index_of_four_languages(mixed_engine: Engine, language: str) -> None:
    complete = {"": 0, f"language = {language}": 0}
    questions = read(language)["questions"]
    for question in questions:
        gold = {f"{language}/{title}" for title in question["gold"]}
        for where in complete:
            hits = find(mixed_engine, question["text"], where=where or None)
            complete[where] += gold <= {*hits}
            assert not where or all(hit.startswith(f"{language}/") for hit in hits)
    assert len(questions) == 6
    assert min(complete.values()) >= 5


@pytest.fixture(scope="module")
def two_language_engine(tmp_path_factory: pytest.TempPathFactory, embedder: Embedder) -> Iterator[Engine]:
    with Engine.open(tmp_path_factory.mktemp("two") / "kb", embedder=embedder) as engine:
        engine.index_documents(
            [
                Document("corven", "", f"{GERMAN}\n{CHINESE}"),
                Document("fähre", "", PARALLEL),
                Document("otter", "Otter", "The otter eats fish and closes its ears when it dives. Its fur is dense."),
            ]
        )
        yield engine


@pytest.mark.parametrize(
    ("question", "document", "words"),
    [
        ("Wer vollendete den Turm von Corven?", "corven", "am 3. Mai 1698 von Jonas Weber vollendet"),
        ("Bei wem lernte Jonas Weber das Handwerk?", "corven", "bei seinem Onkel in Saltby"),
        ("《铸钟之书》是谁写的?", "corven", "伊内斯·莫罗"),
        ("奥尔德比以什么闻名?", "corven", "核桃园"),
        ("Was kostet die Fähre nach Skarv?", "fähre", "vier Kronen"),
        ("كم ثمن تذكرة عبّارة سكارف؟", "fähre", "أربع كرونات"),
        ("What does the otter eat?", "otter", "eats fish"),
    ],
)
def test_a_document_of_two_languages_is_found_in_both(
    two_language_engine: Engine, question: str, document: str, words: str
) -> None:
    hit = two_language_engine.search(question, k=1).passages[0]
    assert hit.passage.document_id == document
    assert words in get_excerpt(hit)


def test_a_document_of_two_languages_has_the_language_of_most_of_its_text(two_language_engine: Engine) -> None:
    catalogue = two_language_engine.catalogue
    assert catalogue.document("corven").metadata["language"] in ("de", "zh")
    assert catalogue.document("otter").metadata["language"] == "en"


def test_names_of_both_languages_are_entities(two_language_engine: Engine) -> None:
    names = {entity.name for entity in two_language_engine.catalogue.entities()}
    assert {"Jonas Weber", "伊内斯·莫罗", "铸钟之书"} <= names
    assert not {name for name in names if name in ("Er", "Später", "Der", "她")}


@pytest.mark.parametrize(
    "other",
    [
        "科尔文塔楼的大钟由伊内斯·莫罗铸造。她在1705年写了《铸钟之书》。",
        "عبّارة سكارف تبحر في الشتاء يوم الثلاثاء فقط. ثمن التذكرة أربع كرونات.",
        "Γέφυρα και πύργος βρίσκονται στην πόλη. Η γέφυρα είναι παλιά.",
    ],
)
def test_each_paragraph_has_the_sentences_and_stems_of_its_own_language(other: str) -> None:
    german = (
        "Der Turm wurde am 3. Mai 1698 vollendet. Später baute Dr. Weber Uhren für die Häfen bzw. Städte der Küste."
    )
    both = f"{german}\n\n{other * 2}"
    sentences = [span.of(both) for span in split_sentences(both, "en")]
    assert sentences[:2] == german.replace("vollendet. ", "vollendet.\n").splitlines()
    assert len(sentences) == 6
    assert extract_terms(both) == [*extract_terms(german), *extract_terms(other * 2)]
