from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from polyad.engine import Engine
from polyad.engine.registry import SpendingLimits
from polyad.engine.settings import Settings
from polyad.errors import NoLanguageModelError
from polyad.indexing.facts.settings import FactSettings
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import Passage
from polyad.protocols.components import Embedder
from polyad_baselines.registration import HYPER_RAG

NAMES = ("Aldby", "Bell of Tarn", "Corven Tower", "Ines Moreau", "Isk", "Otterly")
TEXT = ", ".join(NAMES) + " are names."
PASSAGE = Passage("p#0000", "p", "Tarn", TEXT, 0, len(TEXT))
NO_LIMITS = SpendingLimits()


def write_reply(correlations: dict[str, list[str]]) -> str:
    facts = [{"text": text, "score": 8, "entities": names} for text, names in correlations.items()]
    used = {name for names in correlations.values() for name in names}
    table = [f"{name} | place | known of old | 70" for name in sorted(used)]
    return json.dumps({"facts": facts, "entities": table})


def build(engine: Engine, *passages: Passage) -> dict[str, set[str]]:
    """The members of each hyperedge, by its text."""
    results = HYPER_RAG.build(engine.components, NO_LIMITS).build(passages)
    return {
        indexed.hyperedge.text: {incidence.name for incidence in indexed.incidences}
        for result in results
        for indexed in result.hyperedges
    }


@pytest.mark.parametrize("seed", range(30))
def test_hyperedges_are_the_correlations_of_two_and_more_entities(
    seed: int, tmp_path: Path, embedder: Embedder
) -> None:
    rng = random.Random(seed)
    stated = {
        f"correlation {number} of {' '.join(names)}": names
        for number in range(rng.randint(1, 6))
        for names in [rng.sample(NAMES, rng.randint(1, 5))]
    }
    model = ScriptedLanguageModel([write_reply(stated)])
    with Engine.open(tmp_path / "kb", embedder=embedder, language_model=model) as engine:
        expected = {text: set(names) for text, names in stated.items() if len(names) > 1}
        assert build(engine, PASSAGE) == expected


def test_the_model_is_asked_for_pairs_and_groups_and_counts_say_how_many(tmp_path: Path, embedder: Embedder) -> None:
    stated = {"The Isk flows by Aldby.": ["Isk", "Aldby"], "Three of Tarn.": [*NAMES[1:4]], "Alone.": ["Isk"]}
    model = ScriptedLanguageModel(["no idea", write_reply(stated)])
    with Engine.open(tmp_path / "kb", embedder=embedder, language_model=model) as engine:
        (result,) = HYPER_RAG.build(engine.components, NO_LIMITS).build([PASSAGE])
    assert {"low-order correlations", "high-order correlations"} <= result.notes.keys()
    assert result.notes["correlations of fewer than two entities left out"] == 1
    assert result.notes["subjects of passages joined to facts that do not name them"] == 0
    first, again = model.prompts
    assert "First pairs" in first.system
    assert "Then groups" in first.system
    assert again.user.startswith(first.user), "an unreadable reply is requested again"


def test_missed_correlations_are_requested_in_the_same_form(tmp_path: Path, embedder: Embedder) -> None:
    replies = [write_reply({"one": ["Isk", "Aldby"]}), write_reply({"two": ["Isk", "Otterly"]})]
    model = ScriptedLanguageModel(replies)
    settings = Settings(facts=FactSettings(gleaning=1))
    with Engine.open(tmp_path / "kb", embedder=embedder, language_model=model, settings=settings) as engine:
        assert build(engine, PASSAGE).keys() == {"one", "two"}
    assert "pairs and groups that they missed" in model.prompts[1].user
    assert "one" in model.prompts[1].user


def test_a_prompt_of_the_user_replaces_that_of_the_method(tmp_path: Path, embedder: Embedder) -> None:
    (tmp_path / "prompts" / "polyad_baselines").mkdir(parents=True)
    file = tmp_path / "prompts" / "polyad_baselines" / "correlations.md"
    file.write_text("Correlate in {language}.", encoding="utf-8")
    names = []
    for prompts in (None, tmp_path / "prompts"):
        model = ScriptedLanguageModel([write_reply({"one": ["Isk", "Aldby"]})])
        with Engine.open(tmp_path / "kb", embedder=embedder, language_model=model, prompts=prompts) as engine:
            build(engine, PASSAGE)
            names.append(HYPER_RAG.build(engine.components, NO_LIMITS).name)
    assert model.prompts[0].system == "Correlate in the language of the passage."
    assert names[0] != names[1], "documents are extracted anew after a change of the prompt"


def test_the_method_needs_a_model(tmp_path: Path, embedder: Embedder) -> None:
    with (
        Engine.open(tmp_path / "kb", embedder=embedder) as engine,
        pytest.raises(NoLanguageModelError, match="hyper-rag"),
    ):
        build(engine, PASSAGE)
