"""Each preset end to end, from the command line against a real HTTP server: what is asked, and what is handed on."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from polyad.cli import app
from polyad.language_models.scripted import Request, ScriptedServer
from polyad.retrieval.hyperretriever.triple_scorer import Recipe, TripleScorer

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from scripted_extractor import Fact, ScriptedExtractor

TEXTS = {
    "bell.txt": "The Bell of Tarn was cast by Ines Moreau in Lode Bridge. It hangs in Corven Tower.",
    "moreau.txt": "Ines Moreau was born in Aldby. Her brother Tomas Ferrand sold ginger beer.",
    "otter.txt": "The otter eats fish and crabs.",
}
FACTS = {
    TEXTS["bell.txt"]: [
        Fact("Ines Moreau cast the Bell of Tarn in Lode Bridge.", dict.fromkeys(["Ines Moreau", "Bell of Tarn"], True)),
        Fact("The Bell of Tarn hangs in Corven Tower.", dict.fromkeys(["Bell of Tarn", "Corven Tower"], True)),
    ],
    TEXTS["moreau.txt"]: [
        Fact("Ines Moreau was born in Aldby.", dict.fromkeys(["Ines Moreau", "Aldby"], True)),
        Fact("Tomas Ferrand is the brother of Ines Moreau.", dict.fromkeys(["Tomas Ferrand", "Ines Moreau"], True)),
    ],
    TEXTS["otter.txt"]: [Fact("The otter eats fish and crabs.", {"otter": False, "fish": False})],
}
QUESTION = "Where was the maker of the Bell of Tarn born?"
EXTRACTOR = ScriptedExtractor(FACTS)

S_F = {"cast": 0.6, "hangs": 0.4, "born": 0.7, "brother": 0.3}
S_E = {"Ines Moreau": 0.9, "Corven Tower": 0.5, "Aldby": 0.8, "Tomas Ferrand": 0.2}


def system_of(body: Request) -> str:
    return str(next((one["content"] for one in body["messages"] if one["role"] == "system"), ""))


def user_of(body: Request) -> str:
    return str(body["messages"][-1]["content"])


def numbered(body: Request) -> list[tuple[int, str]]:
    return [(int(number), item) for number, item in re.findall(r"^(\d+)\. (.+)$", user_of(body), re.MULTILINE)]


def scores(body: Request, table: dict[str, float]) -> str:
    found = [(number, next((table[key] for key in table if key in item), 0.0)) for number, item in numbered(body)]
    return json.dumps({"scores": [{"number": number, "score": score} for number, score in found]})


def reply(body: Request) -> str:
    """What a model would say to each kind of prompt."""
    system = system_of(body)
    if "sufficient" in system:
        return json.dumps({"reason": "it says so", "sufficient": "Aldby" in user_of(body)})
    if "which of\nthe texts" in system or "the texts that mention it" in system:
        return scores(body, S_F)
    if "which of\nthe entities" in system or "the entities in it" in system:
        return scores(body, S_E)
    if "clues" in system:
        return json.dumps({"clues": ["who cast the Bell of Tarn", "where Ines Moreau was born", "Aldby", "one more"]})
    if "<think>" in system:
        return "<think>Ines Moreau made it.</think><answer>In Aldby [1].</answer>"
    if "JSON array" in system:
        return '["Aldby"]'
    return EXTRACTOR(body)


Ask = Callable[..., tuple[dict[str, Any], list[Request], list[Request]]]


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ask]:
    """Indexes the texts and asks the question by a preset: the answer, and the requests of either."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts").mkdir()
    with ScriptedServer(reply) as server:

        def run(preset: str, texts: dict[str, str] = TEXTS) -> tuple[dict[str, Any], list[Request], list[Request]]:
            for name, text in texts.items():
                (tmp_path / "texts" / name).write_text(text, encoding="utf-8")
            environment = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "key", "POLYAD_MODEL": "scripted"}
            options = ["--store", "kb", "--preset", preset, "--json"]
            made = CliRunner().invoke(app, ["index", "texts", "--embedder", "hashing:256", *options], env=environment)
            assert made.exit_code == 0, made.output
            indexing = len(server.requests)
            found = CliRunner().invoke(app, ["ask", QUESTION, "--explain", *options], env=environment)
            assert found.exit_code == 0, found.output
            bodies = [request.body for request in server.requests]
            return json.loads(found.stdout), bodies[:indexing], bodies[indexing:]

        yield run


def test_hypersu_asks_nothing_to_build_and_once_for_clues(ask: Ask) -> None:
    answer, building, asking = ask("hypersu")
    assert building == [], "section 4.1: no model is asked"
    clues, reader = asking
    assert "at most 3" in system_of(clues), "Table 10: M"
    assert user_of(clues) == QUESTION
    assert clues["response_format"]["type"] == "json_schema", "appendix C.4: valid JSON"
    assert (clues["temperature"], reader["temperature"]) == (0, 0), "Table 10"
    matched = {step["matched"] for step in answer["evidence"]["trace"]}
    assert matched <= {"who cast the Bell of Tarn", "where Ines Moreau was born", "Aldby"}, "the fourth is not taken"
    for text in TEXTS.values():
        assert text.split(".")[0] in user_of(reader), "the passages are handed on, up to five"


def test_hypergraphrag_extracts_with_two_more_rounds_and_hands_on_facts_and_chunks(ask: Ask) -> None:
    answer, building, asking = ask("hypergraphrag")
    assert len(building) == 3 * len(TEXTS), "the published code asks twice more"
    first = [body for body in building if "Earlier replies" not in user_of(body)]
    assert len(first) == len(TEXTS)
    for words in ('("hyper-relation"<|>', '("entity"<|>name<|>type<|>description<|>importance)', "10", "100"):
        assert words in system_of(first[0]), "appendix A.1: segments with 0 to 10, entities with 0 to 100"
    names, reader = asking
    assert "names" in system_of(names)
    assert user_of(names) == QUESTION, "appendix A.2"
    assert all(words in system_of(reader) for words in ("<think>", "</think>", "<answer>", "</answer>")), "figure 10"
    assert reader["temperature"] == 1.0, "appendix G"
    assert 32768 in (reader.get("max_tokens"), reader.get("max_completion_tokens")), "appendix G"
    assert answer["answer"] == "In Aldby [1]."
    hyperedges = {edge["text"] for edge in answer["evidence"]["hyperedges"]}
    assert "Ines Moreau cast the Bell of Tarn in Lode Bridge." in hyperedges, "F_V*: of the entity that is named"
    assert "The Bell of Tarn hangs in Corven Tower." in hyperedges
    assert "<facts>" in user_of(reader)
    assert all(hit["score"] > 0.5 for hit in answer["evidence"]["hits"]), "tau_C"
    assert "otter" not in user_of(reader)


@pytest.fixture
def untrained(tmp_path: Path) -> None:
    """Sets the weights of HyperRetriever to a scorer that was not trained."""
    pytest.importorskip("torch")
    weights = tmp_path / "weights.safetensors"
    TripleScorer.create_untrained(
        Recipe(embedder="hashing:256", dimension=256, rounds=3, directions="mixed", closeness=False)
    ).save(weights)
    (tmp_path / "polyad.toml").write_text(f'[hyperretriever]\nweights = "{weights}"\n', encoding="utf-8")


def test_hyperretriever_hands_on_one_name_from_half_three_tenths_and_two_tenths(ask: Ask, untrained: None) -> None:
    answer, building, asking = ask("hyperretriever")
    assert len(building) == 3 * len(TEXTS)
    names, reader = asking
    assert user_of(names) == QUESTION, "section 3.1.1"
    assert "JSON array that holds exactly one name" in system_of(reader), "figure 5a"
    assert answer["entities"] == ["Aldby"]
    assert any(step["reached"].startswith("hop") for step in answer["evidence"]["trace"])


def test_only_tokens_limit_the_facts_and_entities_that_hyperretriever_hands_on(
    ask: Ask, untrained: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ringers = [f"Ringer{letter}{other}" for letter in "abcdefgh" for other in "klmnop"]
    texts = {}
    for place in range(0, len(ringers), 6):
        sentences = [f"The Bell of Tarn was rung by {ringer}." for ringer in ringers[place : place + 6]]
        texts[f"{place}.txt"] = " ".join(sentences)
        facts = [Fact(text, {"Bell of Tarn": True, text.split()[-1][:-1]: False}) for text in sentences]
        monkeypatch.setitem(FACTS, texts[f"{place}.txt"], facts)
    answer, _, (_, reader) = ask("hyperretriever", texts)
    # There are fewer than M = 50 facts, so the threshold is lowered until each of them is accepted.
    shown = re.findall(r"rung by (\w+)\. \(members", user_of(reader))
    assert sorted(shown) == sorted(ringers), "6 facts in each of 8 passages, of which 5 are quoted"
    assert {entity["name"] for entity in answer["evidence"]["entities"]} == {"Bell of Tarn", *ringers}


def test_hypermemory_asks_once_for_each_entity_and_each_text_and_multiplies(ask: Ask) -> None:
    answer, _, asking = ask("hypermemory")
    kinds = [
        "names"
        if user_of(body) == QUESTION
        else next(
            (
                kind
                for kind in ("sufficient", "the texts that mention it", "the entities in it", "JSON array")
                if kind in " ".join(system_of(body).split())
            ),
            "?",
        )
        for body in asking
    ]
    assert kinds[0] == "names"
    assert kinds[-1] == "JSON array"
    assert "?" not in kinds
    # Depth 1, from the bell: its two texts in one prompt; each has one entity more, which has no rival.
    # Depth 2, from the maker and the tower: the maker's two other texts, of which one names Aldby; then it suffices.
    assert kinds.count("sufficient") == 2, "eq. 17, at each depth"
    edges = {edge["text"]: edge["score"] for edge in answer["evidence"]["hyperedges"]}
    assert edges["Ines Moreau cast the Bell of Tarn in Lode Bridge."] == pytest.approx(0.6 * 1.0), "eq. 16"
    assert edges["Ines Moreau was born in Aldby."] == pytest.approx(0.7 * 1.0), "of this triple alone"
    assert answer["entities"] == ["Aldby"]
