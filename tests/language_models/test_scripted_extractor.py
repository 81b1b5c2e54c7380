from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from polyad.config import LanguageModelSettings
from polyad.indexing.facts.style import ExtractionStyle
from polyad.language_models.openai.language_model import OpenAILanguageModel
from polyad.language_models.scripted import extract_passage
from polyad.model import Passage
from polyad.protocols.components import Prompt, Reply
from tests.scripted_server import ScriptedServer

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from scripted_extractor import Fact, ScriptedExtractor, group_by_subject, main

ALBA, LIMA = "Alba is a film that Carla Diaz directed in 1961.", "Lima is the capital of Peru."
CORPUS: list[dict[str, Any]] = [
    {"_id": "alba", "title": "Alba", "text": f" {ALBA}\n"},
    {"_id": "lima", "title": "Lima", "text": LIMA},
    {"_id": "none", "title": "", "text": "Nothing."},
]
TRIPLES: list[dict[str, Any]] = [
    {
        "_id": "alba",
        "entities": ["Alba", "Carla Diaz", "1961"],
        "triples": [
            ["Alba", "is", "film"],
            ["Carla Diaz", "directed", "Alba"],
            ["Alba", "directed in", "1961"],
            ["Alba", "is", "film"],
            ["too", "short"],
            [" ", "is", "nothing"],
        ],
    },
    {"_id": "lima", "entities": ["Lima", "Peru"], "triples": [["Lima", "is capital of", "Peru"]]},
    {"_id": "gone", "entities": [], "triples": []},
]
FACTS = [
    Fact("Alba is film; directed in 1961.", {"Alba": True, "film": False, "1961": True}),
    Fact("Carla Diaz directed Alba.", {"Carla Diaz": True, "Alba": True}),
]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "corpus.jsonl", tmp_path / "openie.jsonl"
    for path, records in zip(paths, (CORPUS, TRIPLES), strict=True):
        path.write_text("\n".join(map(json.dumps, records)) + "\n\n", encoding="utf-8")
    return paths


@pytest.fixture
def extractor(files: tuple[Path, Path]) -> ScriptedExtractor:
    return ScriptedExtractor.from_files(*files)


def request(prompt: Prompt) -> dict[str, Any]:
    """As the adapter words it."""
    body: dict[str, Any] = {
        "messages": [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]
    }
    if prompt.json_schema is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": {"schema": prompt.json_schema}}
    return body


def wants(*properties: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "array"} for name in properties}}


def passage(text: str, title: str = "") -> Passage:
    return Passage("d#0", "d", title, text, 0, len(text))


def test_triples_are_grouped_by_subject() -> None:
    facts = group_by_subject(TRIPLES[0]["triples"], frozenset(TRIPLES[0]["entities"]))
    assert facts == FACTS
    assert group_by_subject([], frozenset()) == []
    assert group_by_subject([["Ada", "slept", ""]], frozenset()) == [Fact("Ada slept.", {"Ada": False})]


STYLES = [ExtractionStyle(), ExtractionStyle(style="paper"), ExtractionStyle("German", style="paper")]


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
@pytest.mark.parametrize("title", ["", "Alba", 'The "Alba"> of <passage>\n'])
def test_a_passage_of_the_corpus_has_its_facts_in_every_style(
    extractor: ScriptedExtractor, style: ExtractionStyle, title: str
) -> None:
    extraction = style.parse(extractor(request(style.build_prompt(passage(ALBA, title)))))
    assert [fact.text for fact in extraction.facts] == [fact.text for fact in FACTS]
    assert [[entity.name for entity in fact.entities] for fact in extraction.facts] == [
        list(fact.members) for fact in FACTS
    ]
    assert [(entity.type, entity.score) for entity in extraction.facts[0].entities] == [
        ("name", 90.0),
        ("concept", 60.0),
        ("name", 90.0),
    ]
    assert extraction.notes == {}


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_when_gleaning_the_same_facts_come_again(extractor: ScriptedExtractor, style: ExtractionStyle) -> None:
    prompt = style.build_gleaning_prompt(passage(ALBA, "Alba"), "the earlier reply")
    assert [fact.text for fact in style.parse(extractor(request(prompt))).facts] == [fact.text for fact in FACTS]


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
@pytest.mark.parametrize("text", ["Nothing.", "A text of no corpus."])
def test_any_other_passage_has_no_facts_and_says_so(
    extractor: ScriptedExtractor, style: ExtractionStyle, text: str
) -> None:
    assert style.parse(extractor(request(style.build_prompt(passage(text))))).facts == ()


@pytest.mark.parametrize("question", ["Who?", '[1]\n<passage number="1">\nLima.\n</passage>', "<passage>"])
def test_a_prompt_that_quotes_no_passage_to_index_is_taken_whole(question: str) -> None:
    assert extract_passage(question) == question


def test_questions_are_answered_by_what_is_asked_for(extractor: ScriptedExtractor) -> None:
    question = "Where was Carla Diaz of Lima born?"
    clues = extractor(request(Prompt(user=question, json_schema=wants("clues"))))
    assert json.loads(clues) == {"clues": [question]}
    names = extractor(request(Prompt(user=question, json_schema=wants("entities"))))
    assert json.loads(names)["entities"][1:] == ["Carla Diaz of Lima"]
    answer = extractor(request(Prompt(user='<passage number="1">\nLima. Really.\n</passage>')))
    assert answer == "Lima [1]."


def test_a_request_without_messages_is_answered(extractor: ScriptedExtractor) -> None:
    assert "no passage" in extractor({})


def test_the_scripted_extractor_serves_the_protocol(extractor: ScriptedExtractor) -> None:
    style = ExtractionStyle()
    with ScriptedServer(extractor) as server:
        model = OpenAILanguageModel(LanguageModelSettings(model="m", base_url=server.base_url))
        outcomes = model.complete([style.build_prompt(passage(text)) for text in (LIMA, ALBA)])
    texts = [[fact.text for fact in style.parse(each.text).facts] for each in outcomes if isinstance(each, Reply)]
    assert texts == [["Lima is capital of Peru."], [fact.text for fact in FACTS]]


@pytest.mark.parametrize(
    ("corpus", "message"),
    [(None, "cannot read"), ("[1]\n", "line 1: '[1]'; expected an object with \"_id\""), ("{", "line 1")],
)
def test_files_that_cannot_be_read_are_one_line(
    files: tuple[Path, Path], corpus: str | None, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    files[0].unlink()
    if corpus is not None:
        files[0].write_text(corpus, encoding="utf-8")
    with pytest.raises(SystemExit) as end:
        main([*map(str, files), "--port", "0"])
    errors = capsys.readouterr().err
    assert (end.value.code, errors.count("\n")) == (2, 1)
    assert message in errors


def test_the_server_runs_from_a_shell(files: tuple[Path, Path]) -> None:
    command = [
        sys.executable,
        str(Path(__file__).parents[2] / "benchmarks" / "scripted_extractor.py"),
        *map(str, files),
        "--port",
        "0",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            url = process.stderr.readline().split()[0].partition("=")[2]
            body = json.dumps(request(ExtractionStyle().build_prompt(passage(LIMA)))).encode()
            other_request = urllib.request.Request(
                f"{url}/chat/completions", body, {"Content-Type": "application/json"}
            )
            with urllib.request.urlopen(other_request, timeout=5) as response:
                assert "Lima is capital of Peru." in response.read().decode()
        finally:
            process.terminate()
