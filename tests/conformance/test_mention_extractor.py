"""What every mention extractor promises; see :class:`polyad.protocols.components.MentionExtractor`."""

# ruff: noqa: RUF001  (text in the punctuation of other languages)
from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from polyad.engine.loaders import load_extractor
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.protocols.components import MentionExtractor, Prompt

TEXTS = (
    "The Bell of Tarn was cast by Ines Moreau in 1702. It hangs in Corven Tower, and Ines Moreau with it.",
    "“Corven Tower” — a café 🦦 of Tarn’s\nowner, Ines Moreau.",
    "Tarn",
    "Otters and Tarn: Otters, Tarn; Otters.\r\n\r\nCorven Tower",
)
NAMES = ("Bell of Tarn", "Tarn", "Ines Moreau", "Corven Tower", "Otters")


def given_names(directory: Path) -> MentionExtractor:
    file = directory / "names.jsonl"
    of_one_text = json.dumps({"text": TEXTS[0], "entities": NAMES})
    file.write_text(f"{json.dumps({'entities': NAMES})}\n{of_one_text}\n", encoding="utf-8")
    return load_extractor(f"given:{file}", None)


def capitalised_words(prompt: Prompt) -> str:
    """The last first, some twice, and among them names that the text does not have."""
    return json.dumps({"entities": [*re.findall(r"\b[A-Z]\w+", prompt.user)[::-1], *NAMES, "Lord Byron"]})


EXTRACTORS: dict[str, Callable[[Path], MentionExtractor]] = {
    "rules": lambda _: load_extractor("rules", None),
    "given": given_names,
    "llm": lambda _: load_extractor("llm", ScriptedLanguageModel(capitalised_words)),
}
"""One line for each implementation of the protocol that needs no model of its own."""


@pytest.fixture(params=sorted(EXTRACTORS))
def extractor(request: pytest.FixtureRequest, tmp_path: Path) -> MentionExtractor:
    return EXTRACTORS[request.param](tmp_path)


def test_each_text_has_a_list_of_its_own_mentions(extractor: MentionExtractor) -> None:
    results = extractor.extract(TEXTS)
    assert len(results) == len(TEXTS)
    for text, mentions in zip(TEXTS, results, strict=True):
        assert mentions
        assert [text[mention.start : mention.end] for mention in mentions] == [mention.name for mention in mentions]
        assert all(mention.name.strip() and 0 < mention.score <= 100 for mention in mentions)


def test_mentions_are_ordered_by_their_start(extractor: MentionExtractor) -> None:
    for mentions in extractor.extract(TEXTS):
        starts = [mention.start for mention in mentions]
        assert starts == sorted(starts)


def test_a_name_is_found_wherever_it_stands(extractor: MentionExtractor) -> None:
    text = TEXTS[0]
    numbers = [mention.start for mention in extractor.extract([text])[0] if mention.name == "Ines Moreau"]
    assert numbers == [match.start() for match in re.finditer("Ines Moreau", text)]


def test_an_empty_text_has_no_mentions(extractor: MentionExtractor) -> None:
    first, *between, last = extractor.extract(["", TEXTS[0], " \n", TEXTS[0], ""])
    assert first == between[1] == last == []
    assert between[0] == between[2] != []


def test_no_texts_give_no_lists(extractor: MentionExtractor) -> None:
    assert extractor.extract([]) == []


def test_the_mentions_in_a_text_do_not_depend_on_the_texts_beside_it(extractor: MentionExtractor) -> None:
    assert extractor.extract(TEXTS) == [extractor.extract([text])[0] for text in TEXTS]
