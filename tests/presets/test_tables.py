"""The command for each table and figure of the papers runs on small data, with a scripted language model."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from polyad.cli import app
from polyad.language_models.scripted import Request
from polyad.retrieval.hyperretriever.triple_scorer import Recipe, TripleScorer
from polyad.text.files import make_file_name
from tests.docs.papers_page import read_tables
from tests.scripted_server import ScriptedServer

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from scripted_extractor import Fact, ScriptedExtractor

BELL = "The Bell of Tarn was cast by Ines Moreau. The Bell of Tarn hangs in Corven Tower in Aldby."
MOREAU = "Ines Moreau was born in Aldby. Tomas Ferrand is the brother of Ines Moreau."
FACTS = {
    BELL: [
        Fact("The Bell of Tarn was cast by Ines Moreau.", dict.fromkeys(["Bell of Tarn", "Ines Moreau"], True)),
        Fact("The Bell of Tarn is in Aldby.", dict.fromkeys(["Bell of Tarn", "Corven Tower", "Aldby"], True)),
    ],
    MOREAU: [
        Fact("Ines Moreau was born in Aldby.", dict.fromkeys(["Ines Moreau", "Aldby"], True)),
        Fact("Tomas Ferrand is her brother.", dict.fromkeys(["Tomas Ferrand", "Ines Moreau"], True)),
    ],
}
QUESTIONS = {"Who cast the Bell of Tarn?": ("bell", "Ines Moreau"), "Ines Moreau was born where?": ("moreau", "Aldby")}
MODELS = {"BAAI/bge-large-en-v1.5": "hashing:64", "intfloat/e5-large-v2": "hashing:32"}

COMMANDS = {
    f"{paper['title']}, {table['name']}": table["command"] for paper in read_tables() for table in paper["tables"]
}

SIMILAR = {
    "HyperGraphRAG, first version": ["Figure 4", "Figure 5", "Table 1"],
    "HyperGraphRAG, second version": ["Appendix D.2", "Figure 5", "Figure 6b", "Figure 7", "Table 2", "Table 3"],
    "HyperSU": [
        *("Table 2", "Table 3", "Table 4", "Table 6", "Table 13", "Table 14", "Table 19", "Table 20", "Table 21"),
        *("Table 22", "Table 23", "Figure 3", "Figure 4", "Figure 5a", "Figure 5b", "Figure 6a", "Figure 6b"),
    ],
    "HyperRAG": ["Table 2", "Table 3", "Section 4.4.3", "Figure 3"],
}
"""Tables and figures whose commands differ from another only in data sets, retrievers, values or measures: run among
the slow tests. The default run has each command, each kind of data set and each preset once."""

SLOW = {f"{paper}, {name}" for paper, names in SIMILAR.items() for name in names}

extract = ScriptedExtractor(FACTS)


def reply(body: Request) -> str:
    """Extract facts and names; answer in names or with a citation; fill the schema of any other request."""
    system = next((str(one["content"]) for one in body["messages"] if one["role"] == "system"), "")
    schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema") or {}
    properties = schema.get("properties") or {}
    if "scores" in properties:
        numbers = re.findall(r"^(\d+)\. ", str(body["messages"][-1]["content"]), re.MULTILINE)
        return json.dumps({"scores": [{"number": int(number), "score": 0.5} for number in numbers]})
    if "JSON array" in system:
        return '["Ines Moreau", "Aldby"]'
    if properties and not {"facts", "clues", "entities"} & {*properties}:
        return json.dumps({name: fill(name, kind, body) for name, kind in properties.items()})
    return extract(body)


def fill(name: str, kind: Mapping[str, Any], body: Request) -> object:
    if kind["type"] == "array":
        return [fill(name, kind["items"], body)]
    question = str(body["messages"][-1]["content"])
    facts = " ".join(question.split("</facts>")[0].split())
    texts = {"better": "first", "answer": "x", "question": f"Of which is it said: {facts}?"}
    return {"boolean": True, "integer": 1, "string": texts.get(name, "a statement")}[kind["type"]]


def write_beir(folder: Path) -> None:
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": "bell", "title": "", "text": BELL}, {"_id": "moreau", "title": "", "text": MOREAU}]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)))
    queries = [
        {"_id": gold, "text": text, "metadata": {"answers": [answer], "type": f"{gold}-1-hop"}}
        for text, (gold, answer) in QUESTIONS.items()
    ]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    lines = [f"{gold}\t{gold}\t1\n" for gold, _ in QUESTIONS.values()]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))


def write_graphrag_bench(folder: Path, name: str) -> None:
    folder.mkdir()
    questions = [
        {
            "id": gold,
            "source": name,
            "question": text,
            "answer": answer,
            "question_type": kind,
            "evidence": BELL.split(". ")[0] + ".",
        }
        for (text, (gold, answer)), kind in zip(
            QUESTIONS.items(), ["Fact Retrieval", "Creative Generation"], strict=True
        )
    ]
    (folder / f"{name}_questions.json").write_text(json.dumps(questions))
    (folder / f"{name}.json").write_text(json.dumps({"corpus_name": name, "context": f"{BELL} {MOREAU}"}))


def write_topic(folder: Path) -> None:
    folder.mkdir()
    kind = "('e', ('r', 'r', 'r'))"
    (folder / "test_queries.json").write_text(json.dumps({kind: list(QUESTIONS)}))
    for level in ("easy", "hard"):
        answers = {text: [answer] for text, (_, answer) in QUESTIONS.items()}
        (folder / f"test_answers_{level}.json").write_text(json.dumps({kind: answers}))
    (folder / "test_sentences.txt").write_text(f"{BELL}\n{MOREAU}\n")


def write_weights(folder: Path) -> None:
    """Write weights of a triple scorer for the embedder of the tests, and settings that name them."""
    weights = folder / "weights.safetensors"
    recipe = Recipe(embedder="hashing:64", dimension=64, rounds=3, directions="mixed", closeness=False)
    TripleScorer.create_untrained(recipe).save(weights)
    (folder / "polyad.toml").write_text(f'[hyperretriever]\nweights = "{weights}"\n', encoding="utf-8")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_figures: None) -> Iterator[ScriptedServer]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "gliner", None)  # its import takes seconds, and its model is not on this machine
    for name in ("medicine", "agriculture", "hotpotqa", "2wiki", "musique"):
        write_beir(tmp_path / name)
    for name in ("medical", "novel"):
        write_graphrag_bench(tmp_path / name, name)
    for name in ("art", "award"):
        write_topic(tmp_path / name)
    with ScriptedServer(reply) as served:
        yield served


def run(server: ScriptedServer, command: str) -> str:
    """Run a command with at most two data sets and two values of each parameter of a sweep; return its output."""
    command = command.replace("2wiki/ musique/", "musique/")  # copies of one data set
    if "bench sweep" in command:
        command = re.sub(r"( [\w.]+=[^ ,]+,[^ ,]+),[^ ]+", r"\1", command)
    for name, local in MODELS.items():
        command = command.replace(name, local)
    words = shlex.split(command)
    environment = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none", "POLYAD_MODEL": "scripted"}
    environment |= {"POLYAD_EMBEDDER": "hashing:64"} if "--store" not in words else {}
    while "=" in words[0]:
        environment |= dict([words.pop(0).split("=", 1)])
    assert words.pop(0) == "polyad"
    done = CliRunner().invoke(app, words, env=environment)
    assert done.exit_code == 0, (command, done.output, done.exception)
    return done.stdout


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in COMMANDS]
)
def test_the_command_of_a_table_or_figure_runs_and_plots_what_the_paper_does(
    name: str, server: ScriptedServer, tmp_path: Path
) -> None:
    command = COMMANDS[name]
    if "hyperretriever" in command:
        pytest.importorskip("torch")
        write_weights(tmp_path)
    if "--store kb" in command:
        run(server, "polyad index medicine/corpus.jsonl --store kb --preset hypergraphrag --embedder hashing:64")
    if "bench report runs/" in command and "bench sweep" not in command:
        run(server, COMMANDS["HyperSU, Table 6"])
    for part in command.split(" && "):
        words = shlex.split(part)
        if "compare" not in words or all(Path(folder).exists() for folder in words[3:5]):  # sweeps have two values here
            output = run(server, part)
    assert output.strip()
    plots = re.search(r"--plots (\S+)", command)
    drawn = [path.stem for path in tmp_path.rglob("report/*.svg")]
    for measure in plots[1].split(",") if plots else ():
        assert any(stem.endswith(f"-{make_file_name(measure)}") for stem in drawn), (measure, drawn)
    tables = "".join(path.read_text() for path in tmp_path.rglob("report/tables.md"))
    assert ("$ / 1k" in tables) == ("PRICE" in command)
    assert ("Welch" in tables) == ("seed=" in command)
    for option, key in (("model", "model"), ("judge_model", "model"), ("seed", "seed")):
        swept = re.search(rf" {option}=(\S+)", command)
        values = {str(request.body.get(key)) for request in server.requests}
        assert {*swept[1].split(",")[:2]} <= values if swept else True, "each is sent to the server"


def test_several_judges_read_the_same_answers(server: ScriptedServer, tmp_path: Path) -> None:
    command = COMMANDS["HyperSU, Table 22"].replace("preset=hypergraphrag,hypersu", "preset=hypersu")
    run(server, command.replace("novel/ medical/", "novel/"))
    runs = [path.parent for path in sorted(tmp_path.rglob("judgements.jsonl"))]
    answers = [(folder / "answers.jsonl").read_text() for folder in runs]
    assert len(runs) == 2
    assert answers[0] == answers[1], "times too: nothing was answered again"
    lines = [[json.loads(line) for line in (folder / "judgements.jsonl").read_text().splitlines()] for folder in runs]
    models = [{line["model"] for line in each if line["judge"] == "statement_f1"} for each in lines]
    assert models == [{"gemini-2.5-pro"}, {"gpt-4o-mini"}]


def test_similar_tables_exist() -> None:
    assert COMMANDS.keys() > SLOW


TABLES_AND_FIGURES = {
    "HyperGraphRAG, first version": (2, 5),
    "HyperGraphRAG, second version": (5, 12),
    "HyperSU": (23, 6),
    "HyperRAG": (5, 7),
}


@pytest.mark.parametrize("paper", read_tables(), ids=lambda paper: str(paper["title"]))
def test_each_table_and_figure_has_a_command_or_is_said_to_need_none(paper: Mapping[str, Any]) -> None:
    text = ". ".join([*(table["name"] for table in paper["tables"]), paper["others"]])
    for kind, count in zip(("Table", "Figure"), TABLES_AND_FIGURES[paper["title"]], strict=True):
        numbers: set[int] = set()
        for listed in re.findall(rf"{kind}s? (\d+(?:(?:, | and | to )\d+)*)", text):
            first, *others = map(int, re.findall(r"\d+", listed))
            numbers |= {*range(first, others[-1] + 1)} if " to " in listed else {first, *others}
        assert numbers == {*range(1, count + 1)}, kind
