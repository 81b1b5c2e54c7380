"""Facts with allowed entity types and relations: from the language model's reply to the report and the index."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from polyad.cli import app
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.engine.settings import Settings
from polyad.errors import ConfigurationError, SettingError
from polyad.indexing.facts.ontology import Ontology
from polyad.indexing.facts.settings import FactSettings
from polyad.indexing.facts.style import ExtractionStyle
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import Argument, Document, Passage
from polyad.replies.facts import ExtractedEntity, ExtractedFact, Extraction
from tests.scripted_server import ScriptedServer

TEXT = (
    "Ines Moreau directs Tarn Glass in Aldby. Jonas Stone owns Tarn Glass. Orla Works painted the Blue Door. "
    "It rained in Bree."
)
TYPES, RELATIONS = ("Person", "Company", "Town"), ("directs", "is owned by", "co-founded")

COMPACT = json.dumps(
    {
        "facts": [
            {
                "text": "Ines Moreau directs Tarn Glass in Aldby.",
                "relation": "DIRECTS",
                "score": 9,
                "entities": ["Ines Moreau", "Tarn Glass", "Aldby"],
            },
            {
                "text": "Jonas Stone owns Tarn Glass.",
                "relation": "Is_Owned-by",
                "score": 8,
                "entities": ["Tarn Glass", "Jonas Stone"],
            },
            {
                "text": "Orla Works painted the Blue Door.",
                "relation": "painted",
                "score": 7,
                "entities": ["Orla Works", "Blue Door"],
            },
            {"text": "It rained in Bree.", "score": 5, "entities": ["Bree"]},
        ],
        "entities": [
            "Ines Moreau | person | Director. | 90",
            "Tarn Glass | COMPANY | Owned by Jonas Stone. | 80",
            "Aldby | place | Where the company is. | 50",
            "Jonas Stone | Person | Owner. | 70",
            "Orla Works | company | Painters. | 60",
            "Blue Door | door | It is blue. | 40",
            "Bree | town | Rainy. | 40",
        ],
    }
)

PAPER = """("hyper-relation"<|>Ines Moreau directs Tarn Glass in Aldby.<|>9<|>DIRECTS)##
("entity"<|>Ines Moreau<|>person<|>Director.<|>90)##
("entity"<|>Tarn Glass<|>COMPANY<|>Owned by Jonas Stone.<|>80)##
("entity"<|>Aldby<|>place<|>Where the company is.<|>50)##
("hyper-relation"<|>Jonas Stone owns Tarn Glass.<|>Is_Owned-by<|>8)##
("entity"<|>Tarn Glass<|>company<|>Owned by Jonas Stone.<|>80)##
("entity"<|>Jonas Stone<|>Person<|>Owner.<|>70)##
("hyper-relation"<|>Orla Works painted the Blue Door.<|>7<|>painted)##
("entity"<|>Orla Works<|>company<|>Painters.<|>60)##
("entity"<|>Blue Door<|>door<|>It is blue.<|>40)##
("hyper-relation"<|>It rained in Bree.<|>5)##
("entity"<|>Bree<|>town<|>Rainy.<|>40)
<|COMPLETE|>"""

STYLES = pytest.mark.parametrize(("style", "reply"), [("compact", COMPACT), ("paper", PAPER)])

OpenEngine = Callable[..., Engine]


@pytest.fixture
def open_engine(tmp_path: Path) -> Iterator[OpenEngine]:
    engines: list[Engine] = []

    def open_(model: ScriptedLanguageModel, **values: Any) -> Engine:
        for engine in engines:
            engine.close()
        facts = FactSettings(**{"entity_types": TYPES, "relations": RELATIONS, **values})
        settings = Settings(facts=facts)
        engine = Engine.open(tmp_path / "kb", embedder=HashingEmbedder(16), language_model=model, settings=settings)
        engines.append(engine)
        return engine

    yield open_
    for engine in engines:
        engine.close()


def list_facts(engine: Engine) -> list[tuple[str, list[tuple[str, str]]]]:
    return [
        (edge.relation, [(argument.role, argument.value) for argument in edge.arguments])
        for edge in engine.catalogue.hyperedges()
    ]


@STYLES
def test_facts_outside_the_ontology_are_dropped_and_counted(open_engine: OpenEngine, style: str, reply: str) -> None:
    model = ScriptedLanguageModel([reply])
    with open_engine(model, style=style) as engine:
        report = engine.index_documents([Document("d", "", TEXT)], method="facts")
        assert list_facts(engine) == [
            ("directs", [("Person", "Ines Moreau"), ("Company", "Tarn Glass")]),
            ("is owned by", [("Company", "Tarn Glass"), ("Person", "Jonas Stone")]),
        ]
        assert engine.catalogue.relations() == {"directs": 1, "is owned by": 1}
    assert report.notes["dropped: facts of relations outside facts.relations"] == 2
    assert report.notes["dropped: entities of types outside facts.entity_types"] == 1
    assert not any(note.startswith("retained") for note in report.notes)
    [prompt] = model.prompts
    assert "Person, Company, Town" in prompt.system
    assert "directs, is owned by, co-founded" in prompt.system


@STYLES
def test_facts_outside_a_lenient_ontology_are_retained_and_counted(
    open_engine: OpenEngine, style: str, reply: str
) -> None:
    with open_engine(ScriptedLanguageModel([reply]), style=style, strict=False) as engine:
        report = engine.index_documents([Document("d", "", TEXT)], method="facts")
        assert list_facts(engine) == [
            ("directs", [("Person", "Ines Moreau"), ("Company", "Tarn Glass"), ("place", "Aldby")]),
            ("is owned by", [("Company", "Tarn Glass"), ("Person", "Jonas Stone")]),
            ("painted", [("Company", "Orla Works"), ("door", "Blue Door")]),
            ("", []),
        ]
    assert report.notes["retained: facts of relations outside facts.relations"] == 2
    assert report.notes["retained: entities of types outside facts.entity_types"] == 2
    assert not any(note.startswith("dropped") for note in report.notes)


@STYLES
def test_without_relations_facts_have_none(open_engine: OpenEngine, style: str, reply: str) -> None:
    with open_engine(ScriptedLanguageModel([reply]), style=style, relations=(), entity_types=()) as engine:
        engine.index_documents([Document("d", "", TEXT)], method="facts")
        assert list_facts(engine) == [("", [])] * 4
        assert engine.catalogue.relations() == {}


def test_a_dropped_entity_does_not_return_as_the_subject_of_its_document(open_engine: OpenEngine) -> None:
    with open_engine(ScriptedLanguageModel([COMPACT])) as engine:
        engine.index_documents([Document("d", "Aldby", TEXT)], method="facts")
        assert "aldby" not in {entity.key for entity in engine.catalogue.entities()}


def test_a_fact_whose_entities_are_all_dropped_is_dropped() -> None:
    fact = ExtractedFact("It rained.", 5.0, (ExtractedEntity("Bree", "weather"), ExtractedEntity("Isk")))
    bare = ExtractedFact("It snowed.", 5.0)
    restricted, dropped = Ontology(entity_types=("town",)).restrict(Extraction((fact, bare), {"fact given twice": 1}))
    assert restricted.facts == (bare,)
    assert restricted.notes == {
        "fact given twice": 1,
        "dropped: entities of types outside facts.entity_types": 2,
        "dropped: facts without entities of facts.entity_types": 1,
    }
    assert dropped == {"bree", "isk"}


def test_an_entity_without_a_type_has_the_type_that_another_fact_states() -> None:
    facts = (
        ExtractedFact("A.", 5.0, (ExtractedEntity("Bree"),)),
        ExtractedFact("B.", 5.0, (ExtractedEntity("Bree", "town"),)),
    )
    restricted, _ = Ontology(entity_types=("Town",)).restrict(Extraction(facts))
    assert [[entity.type for entity in fact.entities] for fact in restricted.facts] == [["Town"], ["Town"]]


def test_endpoints_that_follow_schemas_can_only_reply_with_allowed_relations() -> None:
    def get_fact_properties(style: ExtractionStyle) -> Any:
        schema: Any = style.schema
        return schema["properties"]["facts"]["items"]["properties"]

    strict = Ontology(relations=RELATIONS)
    assert get_fact_properties(ExtractionStyle(ontology=strict))["relation"]["enum"] == list(RELATIONS)
    loose = get_fact_properties(ExtractionStyle(dates=True, ontology=Ontology(relations=RELATIONS, strict=False)))
    assert loose["relation"] == {"type": "string"}
    assert "valid_from" in loose
    assert "relation" not in get_fact_properties(ExtractionStyle(ontology=Ontology(entity_types=TYPES)))


def test_examples_are_sent_and_their_facts_are_not_taken_from_other_passages(tmp_path: Path) -> None:
    file = tmp_path / "examples.md"
    file.write_text("Ines Moreau directs Tarn Glass. -> directs\n", encoding="utf-8")
    ontology = Ontology.from_settings(FactSettings(examples=str(file)))
    style = ExtractionStyle(ontology=ontology)
    assert (
        "Ines Moreau directs Tarn Glass. -> directs" in style.build_prompt(Passage("d#0", "d", "", TEXT, 0, 9)).system
    )
    reply = json.dumps({"facts": [{"text": "Ines Moreau directs Tarn Glass."}, {"text": "Bo left."}], "entities": []})

    def extract(text: str) -> list[str]:
        return [fact.text for fact in style.parse_about(reply, Passage("d#0", "d", "", text, 0, len(text))).facts]

    assert extract("Bo left.") == ["Bo left."]
    assert extract("She, Ines Moreau, directs the Tarn Glass works. Bo left.")[0] == "Ines Moreau directs Tarn Glass."


@pytest.mark.parametrize(("content", "message"), [(None, "No such file"), ("", "0 characters")])
def test_examples_that_cannot_be_read_are_an_error_that_names_the_setting(
    tmp_path: Path, content: str | None, message: str
) -> None:
    file = tmp_path / "examples.md"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=f"facts.examples.*examples.md.*{message}"):
        Ontology.from_settings(FactSettings(examples=str(file)))


@pytest.mark.parametrize("name", ["", " ", "person ", "a|b", "a,b", "two\nlines"])
def test_names_that_would_break_the_prompt_are_an_error(name: str) -> None:
    with pytest.raises(SettingError, match="entity_types"):
        FactSettings(entity_types=("person", name))


def test_an_ontology_that_changes_puts_documents_out_of_date(open_engine: OpenEngine, tmp_path: Path) -> None:
    model = ScriptedLanguageModel(lambda _: COMPACT)
    document = Document("d", "", TEXT)
    file = tmp_path / "examples.md"
    file.write_text("One example.", encoding="utf-8")
    changes: list[dict[str, object]] = [
        {"entity_types": (), "relations": ()},
        {},
        {"strict": False},
        {"relations": ("directs",)},
        {"entity_types": ("Person",)},
        {"examples": str(file)},
    ]
    for number, change in enumerate(changes):
        with open_engine(model, **change) as engine:
            report = engine.index_documents([document], method="facts")
            assert (report.counts.added, report.counts.updated) == (number == 0, number > 0)
            assert engine.index_documents([document], method="facts").counts.unchanged == 1
    file.write_text("Another example.", encoding="utf-8")
    with open_engine(model, **changes[-1]) as engine:
        assert engine.index_documents([document], method="facts").counts.updated == 1


@pytest.mark.parametrize(
    "style", [ExtractionStyle, partial(ExtractionStyle, dates=True), partial(ExtractionStyle, style="paper")]
)
def test_a_style_without_an_ontology_has_the_name_and_prompt_that_it_had(style: type[Any]) -> None:
    assert "ontology" not in style().name
    assert style(ontology=Ontology(strict=False)).name == style().name
    assert style(ontology=Ontology(entity_types=TYPES)).name != style().name


def answer_about_directors(company: str, director: str) -> str:
    fact = {"text": f"{director} directs {company}.", "relation": "directs", "entities": [company, director]}
    table = [f"{company} | company | Glass. | 80", f"{director} | person | Directs. | 80"]
    return json.dumps({"facts": [fact], "entities": table})


def test_extracted_facts_with_relations_are_compared_searched_and_retracted(open_engine: OpenEngine) -> None:
    pairs = [("Tarn Glass", "Ines Moreau"), ("Tarn Glass", "Jonas Stone"), ("Orla Works", "Ada King")]
    pairs.append(("ORLA WORKS", "Ada King"))
    documents = [Document(str(n), "", f"{who} directs {firm}.") for n, (firm, who) in enumerate(pairs)]
    replies = {document.text: answer_about_directors(*pair) for document, pair in zip(documents, pairs, strict=True)}
    model = ScriptedLanguageModel(lambda prompt: next(reply for text, reply in replies.items() if text in prompt.user))
    with open_engine(model) as engine:
        assert engine.index_documents(documents, method="facts").is_complete
        [conflict] = engine.catalogue.conflicts()
        assert conflict.describe() == "directs: 'Tarn Glass' has Person Ines Moreau and Jonas Stone"
        [binding] = engine.catalogue.roles({"Person": "Ines Moreau"}, ["Company"], relation="directs")
        assert (binding.roles, binding.relation) == ({"Company": ("Tarn Glass",)}, "directs")
        assert not engine.corrections.retract(entity="Jonas Stone", role="Company", reason="is none").withdrawn
        [_] = engine.corrections.retract(entity="Jonas Stone", role="Person", reason="left").withdrawn
        assert engine.catalogue.conflicts() == []
        arguments = {one for edge in engine.catalogue.hyperedges() for one in edge.arguments}
        assert Argument("Person", "Jonas Stone") not in arguments
        assert Argument("Person", "Ines Moreau") in arguments
        hyperedges = engine.search("Who directs Tarn Glass?").hyperedges
        assert {scored.hyperedge.relation for scored in hyperedges} == {"directs"}


def run(*arguments: str, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [*arguments, "--store", "kb", "--json"])
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def test_the_command_line_takes_an_ontology_and_reports_what_does_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("firm.md").write_text(TEXT, encoding="utf-8")
    with ScriptedServer(lambda _: COMPACT) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("POLYAD_MODEL", "scripted")
        monkeypatch.setenv("POLYAD_FACTS_ENTITY_TYPES", "Person, Company, Town")
        relations = f"facts.relations={json.dumps(RELATIONS)}"
        index = ["--set", relations, "index", "firm.md", "--method", "facts", "--embedder", "hashing:32"]
        notes = run(*index)["notes"]
        assert notes["dropped: facts of relations outside facts.relations"] == 2
        result = CliRunner().invoke(app, [*index, "--store", "other"])
        assert "  dropped: entities of types outside facts.entity_types: 1\n" in result.output
        missing = run("--set", "facts.examples=none.md", *index, code=2)["error"]["message"]
        assert "facts.examples is 'none.md': No such file" in missing
    facts = run("facts", "--relation", "directs")["facts"]
    assert [fact["roles"] for fact in facts] == [{"Company": ["Tarn Glass"], "Person": ["Ines Moreau"]}]
    [edge, *_] = run("search", "Who directs Tarn Glass?", "--explain")["hyperedges"]
    assert edge["relation"] in RELATIONS
    assert edge["arguments"][0]["value"] in ("Ines Moreau", "Tarn Glass")
    [fact, _] = run("facts", "Ines Moreau")["facts"]
    assert (fact["relation"], fact["roles"]["Person"]) == ("directs", ["Ines Moreau"])
    assert "    Person: Ines Moreau\n" in CliRunner().invoke(app, ["facts", "Ines Moreau", "--store", "kb"]).output


def test_relations_survive_export_import_and_check(open_engine: OpenEngine, tmp_path: Path) -> None:
    with open_engine(ScriptedLanguageModel([COMPACT])) as engine:
        engine.index_documents([Document("d", "", TEXT)], method="facts")
        assert engine.check().damage == ()
        engine.export(tmp_path / "kb.jsonl")
        edges = engine.catalogue.hyperedges()
    with Engine.open(tmp_path / "copy", embedder=HashingEmbedder(16)) as copy:
        copy.import_file(tmp_path / "kb.jsonl")
        assert copy.catalogue.hyperedges() == edges
        assert [edge.relation for edge in edges] == ["directs", "is owned by"]
