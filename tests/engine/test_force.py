"""Indexing again: what is gone, and by what method."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from polyad.cli import app
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.errors import ConfigurationError
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import Argument, Document, HyperedgeKind
from polyad.protocols.components import LanguageModel, Prompt
from polyad.protocols.lookups import get_version
from polyad.text.words import count_tokens
from tests.scripted_server import ScriptedServer


def reply(prompt: Prompt) -> str:
    return json.dumps({"facts": [{"text": "Ada met Bo.", "score": 8, "entities": ["Ada", "Bo"]}], "entities": []})


def open_engine(directory: Path, language_model: LanguageModel | None = None) -> Engine:
    return Engine.open(directory, embedder=HashingEmbedder(16), language_model=language_model)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with open_engine(tmp_path / "kb") as engine:
        yield engine


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "docs"
    (folder / "law").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "law/c.txt"):
        (folder / name).write_text(f"The text of {name} is here.", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return folder


def ids(engine: Engine) -> list[str]:
    return [id for id in ("docs/a.txt", "docs/b.txt", "docs/law/c.txt", "note") if id in engine.catalogue.sources()]


def texts(engine: Engine) -> list[str]:
    """Of all hyperedges."""
    return sorted(edge.text for edge in engine.catalogue.hyperedges())


def test_a_file_that_is_gone_is_named_and_stays_until_it_is_pruned(engine: Engine, folder: Path) -> None:
    engine.index("docs")
    (folder / "a.txt").unlink()
    report = engine.index("docs")
    assert (report.missing, report.is_pruned) == (("docs/a.txt",), False)
    assert len(ids(engine)) == 3
    report = engine.index("docs", prune=True)
    assert (report.missing, report.is_pruned, report.is_complete) == (("docs/a.txt",), True, True)
    assert ids(engine) == ["docs/b.txt", "docs/law/c.txt"]


@pytest.mark.parametrize("is_indexed_before", [False, True])
def test_pruning_after_a_folder_was_renamed_removes_its_old_documents_and_embeds_nothing(
    engine: Engine, folder: Path, is_indexed_before: bool
) -> None:
    engine.index("docs")
    folder.rename(folder.with_name("manual"))
    if is_indexed_before:
        report = engine.index("manual")
        assert (len(report.moved), report.is_pruned, report.duplicates) == (3, False, ())
    (folder.with_name("manual") / "new.txt").write_text("This is new.", encoding="utf-8")
    report = engine.index("manual", prune=True)
    assert ("docs/law/c.txt", "manual/law/c.txt") in report.moved
    assert len(report.moved) == 3
    assert report.embedded_texts <= 2, "of the new file"
    assert sorted(engine.catalogue.sources()) == sorted(f"manual/{name}.txt" for name in ("a", "b", "law/c", "new"))
    assert engine.index("manual", prune=True).moved == ()


def test_a_copy_of_a_file_that_still_exists_is_not_moved(engine: Engine, folder: Path) -> None:
    engine.index("docs")
    (folder / "copy").mkdir()
    (folder / "copy" / "a.txt").write_bytes((folder / "a.txt").read_bytes())
    report = engine.index("docs", prune=True)
    assert (report.moved, len(engine.catalogue.sources())) == ((), 4)


def test_only_what_came_from_the_paths_given_can_be_gone(engine: Engine, folder: Path) -> None:
    engine.index_documents([Document("note", "", "Not from a file.")])
    engine.index("docs")
    (folder / "a.txt").unlink()
    (folder / "law" / "c.txt").unlink()
    assert engine.index([folder.relative_to(folder.parent) / "law"]).missing == ("docs/law/c.txt",)
    assert engine.index("docs/b.txt").missing == ()
    assert engine.index(".").missing == ("docs/a.txt", "docs/law/c.txt")


def test_a_file_that_is_there_but_not_of_a_kind_that_the_method_reads_is_not_pruned(
    engine: Engine, folder: Path
) -> None:
    (folder / "given.csv").write_text("_id,giver,gift\ng,Isk,Otter\n", encoding="utf-8")
    engine.index("docs")
    (folder / "a.txt").unlink()
    report = engine.index("docs", method="tuples", prune=True)
    assert report.missing == ("docs/a.txt",)
    assert ids(engine) == ["docs/b.txt", "docs/law/c.txt"]


def test_pruning_nothing_writes_nothing(engine: Engine, folder: Path) -> None:
    engine.index("docs")
    version = get_version(engine._store)
    engine.index("docs", prune=True)
    assert get_version(engine._store) == version


def test_a_folder_that_is_suddenly_empty_is_not_pruned_beside_one_that_is_not(engine: Engine, folder: Path) -> None:
    engine.index(["docs", "docs/law"])
    (folder / "law" / "c.txt").unlink()
    report = engine.index(["docs/law", "docs/b.txt"], prune=True)
    assert (report.missing, report.protected) == (("docs/law/c.txt",), ("docs/law/c.txt",))
    assert ids(engine) == ["docs/a.txt", "docs/b.txt", "docs/law/c.txt"]
    report = engine.index(["docs", "docs/law"], prune=True)
    assert (report.missing, report.protected) == (("docs/law/c.txt",), ()), "the folder around it holds something"
    assert ids(engine) == ["docs/a.txt", "docs/b.txt"]


def test_a_record_that_is_gone_is_named_but_not_while_its_file_cannot_be_read_whole(
    engine: Engine, folder: Path
) -> None:
    lines = [json.dumps({"_id": name, "title": "", "text": f"About {name}."}) for name in ("x", "y", "z")]
    file = folder / "records.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    engine.index(file)
    file.write_text("\n".join([lines[0], "{broken", lines[2]]), encoding="utf-8")
    report = engine.index(file, prune=True)
    assert (report.missing, len(report.failures)) == ((), 1)
    file.write_text("\n".join([lines[0], lines[2]]), encoding="utf-8")
    assert engine.index(file).missing == ("y",)


def test_an_index_of_facts_stays_one(tmp_path: Path, folder: Path) -> None:
    with open_engine(tmp_path / "kb", ScriptedLanguageModel(reply)) as engine:
        assert engine.index("docs", method="facts").counts.added == 3
        assert engine.index("docs").counts.unchanged == 3
        assert engine.catalogue.statistics().kinds == {HyperedgeKind.FACT: 3}
        assert engine.index("docs", method="semantic-units").counts.updated == 3
    with open_engine(tmp_path / "kb", ScriptedLanguageModel(reply)) as engine:
        assert engine.index("docs").counts.unchanged == 3, "units, as the last time"


def test_an_index_of_facts_needs_a_model_for_what_is_new_alone(tmp_path: Path, folder: Path) -> None:
    with open_engine(tmp_path / "kb", ScriptedLanguageModel(reply)) as engine:
        engine.index("docs", method="facts")
    with open_engine(tmp_path / "kb") as engine:
        assert engine.index("docs").counts.unchanged == 3
        (folder / "d.txt").write_text("The text of d is here.", encoding="utf-8")
        with pytest.raises(ConfigurationError, match="the method 'facts' needs a language model; name one with"):
            engine.index("docs")
        assert engine.catalogue.statistics().documents == 3


FACTS_CSV = "giver,gift,year\nInes Moreau,Bell of Tarn,1702\nAldby,Walnut,1710\n"
FACTS_JSONL = '{"relation": "cast", "arguments": [{"role": "maker", "entity": "Ines Moreau"}]}\n'


@pytest.fixture
def mixed(tmp_path: Path, folder: Path) -> Path:
    """The directory of an index of units, of facts that a model was paid for, and of facts that were given."""
    (folder / "given.csv").write_text(FACTS_CSV, encoding="utf-8")
    (folder / "given.jsonl").write_text(FACTS_JSONL, encoding="utf-8")
    with open_engine(tmp_path / "kb", ScriptedLanguageModel(reply)) as engine:
        engine.index("docs/a.txt", method="semantic-units")
        engine.index(["docs/b.txt", "docs/law"], method="facts")
        engine.index(["docs/given.csv", "docs/given.jsonl"], method="tuples")
        assert engine.catalogue.statistics().kinds == KINDS
    return tmp_path / "kb"


KINDS = {HyperedgeKind.SEMANTIC_UNIT: 1, HyperedgeKind.FACT: 2, HyperedgeKind.TUPLE: 3}


def test_each_document_of_a_mixed_index_keeps_its_method_and_its_reader(mixed: Path) -> None:
    with open_engine(mixed) as engine:
        report = engine.index("docs")
        assert (report.counts.unchanged, report.counts.updated, report.failures) == (6, 0, ())
        assert report.other_methods == {"facts": 2, "tuples": 3}
        assert engine.catalogue.statistics().kinds == KINDS


def test_changed_documents_of_a_mixed_index_keep_their_method(mixed: Path, folder: Path) -> None:
    (folder / "b.txt").write_text("Another text of b.", encoding="utf-8")
    (folder / "given.csv").write_text(f"{FACTS_CSV}Isk,Otter,1711\n", encoding="utf-8")
    (folder / "new.txt").write_text("A text that is new.", encoding="utf-8")
    model = ScriptedLanguageModel(reply)
    with open_engine(mixed, model) as engine:
        report = engine.index("docs", max_tokens=10_000)
        assert report.failures == ()
        assert engine.catalogue.statistics().kinds == {**KINDS, HyperedgeKind.SEMANTIC_UNIT: 2, HyperedgeKind.TUPLE: 4}
    assert len(model.prompts) == 1
    assert "Another text of b." in model.prompts[0].user


def test_an_estimate_counts_what_each_documents_own_method_costs(mixed: Path, folder: Path) -> None:
    (folder / "b.txt").write_text("Another text of b.", encoding="utf-8")
    (folder / "law" / "c.txt").write_text("Another text of c.", encoding="utf-8")
    (folder / "given.csv").write_text(f"{FACTS_CSV}Isk,Otter,1711\n", encoding="utf-8")
    (folder / "new.txt").write_text("A text that is new.", encoding="utf-8")
    model = ScriptedLanguageModel(reply)
    with open_engine(mixed, model) as engine:
        assert engine.estimate("docs", method="").calls == 2
        assert engine.estimate("docs", method="facts").calls == 7, "named, it is that of all: four texts and three rows"
        assert engine.estimate("docs", method="tuples").calls == 0
        assert model.prompts == []
        with open_engine(mixed) as alone:
            assert alone.estimate("docs", method="").calls == 2, "to count takes no model"
        report = engine.index("docs")
    assert (report.usage.calls, len(model.prompts)) == (2, 2)


def test_a_dry_run_on_an_index_of_facts_is_of_facts_and_again_of_all(tmp_path: Path, folder: Path) -> None:
    with ScriptedServer(lambda _: fact("Ada met Bo.")) as server:
        environment = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none", "POLYAD_MODEL": "m"}

        def calls(*arguments: str) -> int:
            command = ["index", *arguments, "--store", str(tmp_path / "kb"), "--embedder", "hashing:16", "--json"]
            result = CliRunner().invoke(app, command, env=environment)
            assert result.exit_code == 0, result.output
            return int(json.loads(result.stdout)["estimate" if "--dry-run" in arguments else "usage"]["calls"])

        assert calls("docs", "--dry-run") == 0
        assert calls("docs", "--method", "facts") == 3
        assert calls("docs", "--dry-run") == 0
        (folder / "new.txt").write_text("A text that is new.", encoding="utf-8")
        assert calls("docs", "--dry-run") == 1
        assert calls("--force", "--dry-run") == 3, "all that is in the index, asked anew"
        assert calls("docs", "--force", "--dry-run") == 4
        assert calls("docs/new.txt", "docs/a.txt", "--force", "--dry-run") == 2
        assert len(server.requests) == 3
        assert calls("docs", "--force") == 4


def test_names_that_a_model_is_asked_for_are_estimated_too(tmp_path: Path, folder: Path) -> None:
    model = ScriptedLanguageModel(lambda _: '{"entities": ["Ada"]}')
    engine = Engine.open(tmp_path / "kb", embedder=HashingEmbedder(16), mention_extractor="llm", language_model=model)
    with engine:
        estimate = engine.estimate("docs", method="")
        assert (estimate.calls, model.prompts) == (3, [])
        assert estimate.completion_tokens > 0
        engine.index("docs")
        sent = sum(count_tokens(prompt.system) + count_tokens(prompt.user) for prompt in model.prompts)
        assert (len(model.prompts), estimate.prompt_tokens) == (3, sent)
        (folder / "d.txt").write_text("A text that is new.", encoding="utf-8")
        assert engine.estimate("docs", method="").calls == 1


def test_pruning_a_mixed_index_removes_what_is_gone_alone(mixed: Path, folder: Path) -> None:
    (folder / "b.txt").unlink()
    with open_engine(mixed) as engine:
        assert engine.index("docs", prune=True).missing == ("docs/b.txt",)
        assert engine.catalogue.statistics().documents == 5


def test_a_method_that_is_named_replaces_the_others(mixed: Path) -> None:
    with open_engine(mixed) as engine:
        report = engine.index(["docs/a.txt", "docs/b.txt"], method="semantic-units")
        assert (report.counts.updated, report.other_methods) == (1, {})


def test_facts_given_in_memory_are_tuples_and_stay_so(tmp_path: Path) -> None:
    document = Document("t", "", "Ines Moreau cast it.", arguments=(Argument("maker", "Ines Moreau"),))
    prose = Document("p", "", "The Bell of Tarn hangs in Corven Tower.")
    with open_engine(tmp_path / "kb") as engine:
        for counts in (
            engine.index_documents([document, prose]).counts,
            engine.index_documents([prose, document]).counts,
        ):
            assert counts.failures == ()
            assert engine.catalogue.statistics().kinds == {HyperedgeKind.TUPLE: 1, HyperedgeKind.SEMANTIC_UNIT: 1}
        assert counts.unchanged == 2


def fact(text: str) -> str:
    return json.dumps({"facts": [{"text": text, "score": 8, "entities": ["Ada", "Bo"]}], "entities": []})


def test_indexing_again_asks_anew_and_keeps_what_is_there_until_the_new_is(tmp_path: Path, folder: Path) -> None:
    replies = [fact("Ada met Bo.")]
    model = ScriptedLanguageModel(lambda _: replies[0])
    with open_engine(tmp_path / "kb", model) as engine:
        engine.index("docs", method="facts")
        replies[0] = fact("Ada wrote to Bo.")
        assert engine.index("docs").counts.unchanged == 3
        assert len(model.prompts) == 3
        assert engine.index("docs/a.txt", force=True).counts.updated == 1
        assert sorted(edge.text for edge in engine.catalogue.hyperedges()) == [
            "Ada met Bo.",
            "Ada met Bo.",
            "Ada wrote to Bo.",
        ]
        assert engine.index(["docs/b.txt"], force=True).counts.updated == 1
        assert engine.index([], force=True).counts.updated == 3
        assert {edge.text for edge in engine.catalogue.hyperedges()} == {"Ada wrote to Bo."}
        replies[0] = "I cannot help with that."
        report = engine.index("docs", force=True)
        assert len(report.failures) == 3
        assert {edge.text for edge in engine.catalogue.hyperedges()} == {"Ada wrote to Bo."}, (
            "kept until there are others"
        )
        replies[0] = fact("Ada left Bo.")
        assert engine.index("docs").counts.updated == 3, "the next run tries once more"
        assert {edge.text for edge in engine.catalogue.hyperedges()} == {"Ada left Bo."}


@pytest.mark.parametrize("batch", [1, 200_000])
def test_indexing_again_that_was_stopped_goes_on_and_then_begins_anew(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, batch: int
) -> None:
    monkeypatch.setattr("polyad.indexing.indexer.BATCH_CHARACTERS", batch)
    prompts: list[Prompt] = []
    says, stops_at = ["Ada met Bo."], [0]

    def reply(prompt: Prompt) -> str:
        prompts.append(prompt)
        if len(prompts) == stops_at[0]:
            raise KeyboardInterrupt
        return fact(says[0])

    def run(paths: list[str], stop: int = 0) -> int:
        """How many times the model was asked."""
        prompts.clear()
        stops_at[0] = stop
        with open_engine(tmp_path / "kb", ScriptedLanguageModel(reply)) as engine:
            if stop:
                with pytest.raises(KeyboardInterrupt):
                    engine.index(paths, force=True)
            else:
                assert engine.index(paths, force=True).is_complete
            return len(prompts)

    with open_engine(tmp_path / "kb", ScriptedLanguageModel(reply)) as engine:
        engine.index("docs", method="facts")
    says[0] = "Ada wrote to Bo."
    assert run(["docs"], stop=3) == 3
    with open_engine(tmp_path / "kb") as engine:
        new = ["Ada wrote to Bo."] * 2 if batch == 1 else []
        assert texts(engine) == ["Ada met Bo."] * (3 - len(new)) + new, "old facts stay until new ones are there"
    says[0] = "Ada left Bo."
    assert run(["docs/b.txt"]) == 1, "another run is none of this one's business"
    assert not caplog.messages
    assert run(["docs"]) == 1, "the others had been asked about anew"
    assert "this run continues it" in caplog.text
    with open_engine(tmp_path / "kb") as engine:
        assert texts(engine) == ["Ada left Bo."] * 2 + ["Ada wrote to Bo."]
    assert run(["docs"]) == 3
    with open_engine(tmp_path / "kb") as engine:
        assert texts(engine) == ["Ada left Bo."] * 3
    with closing(sqlite3.connect(tmp_path / "kb" / "index.sqlite")) as file:
        assert not file.execute("SELECT 1 FROM sqlite_master WHERE name = 'redone'").fetchall()


def test_force_rebuilds_documents_of_another_model(tmp_path: Path, folder: Path) -> None:
    def stopping(name: str, at: int) -> ScriptedLanguageModel:
        def reply(_: Prompt) -> str:
            if len(model.prompts) == at:
                raise KeyboardInterrupt
            return fact(f"{name} met Bo.")

        model = ScriptedLanguageModel(reply, name=name)
        return model

    with open_engine(tmp_path / "kb", stopping("old", 0)) as engine:
        engine.index("docs", method="facts")
    with open_engine(tmp_path / "kb", stopping("new", 2)) as engine, pytest.raises(KeyboardInterrupt):
        engine.index("docs", force=True)
    model = stopping("newer", 0)
    with open_engine(tmp_path / "kb", model) as engine:
        engine.index("docs", force=True)
        assert len(model.prompts) == 3
        assert texts(engine) == ["newer met Bo."] * 3


def test_one_document_of_a_file_is_built_again_by_its_id(engine: Engine, folder: Path) -> None:
    lines = [json.dumps({"_id": name, "title": "", "text": f"About {name}."}) for name in ("x", "y")]
    (folder / "records.jsonl").write_text("\n".join(lines), encoding="utf-8")
    engine.index("docs")
    report = engine.index(["x"], force=True)
    assert (report.counts.updated, report.counts.unchanged, report.missing) == (1, 0, ())
    with pytest.raises(ConfigurationError, match="nowhere"):
        engine.index(["nowhere"], force=True)
    engine.index_documents([Document("note", "", "Not from a file.")])
    with pytest.raises(ConfigurationError):
        engine.index(["note"], force=True)


def test_the_command_line_builds_again_all_or_what_is_named(engine: Engine, folder: Path, tmp_path: Path) -> None:
    engine.index("docs")
    for paths, updated in ([], 3), (["docs/law"], 1), (["docs/a.txt"], 1):
        command = ["index", *paths, "--force", "--json", "--store", str(tmp_path / "kb")]
        result = CliRunner().invoke(app, [*command, "--embedder", "hashing:16"])
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout)["updated"] == updated
    assert CliRunner().invoke(app, ["index", "--store", str(tmp_path / "kb")]).exit_code == 2
