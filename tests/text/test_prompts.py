"""Prompts, and the files that stand in for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from polyad.answering.prompt import Context, build_instructions
from polyad.cli import app
from polyad.config import AnswerSettings
from polyad.engine import Engine
from polyad.errors import ConfigurationError
from polyad.indexing.facts.style import ExtractionStyle
from polyad.indexing.mentions.language_model import LanguageModelMentionExtractor
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import Document, Passage
from polyad.protocols.components import Prompt
from polyad.text.prompts import DEFAULT_PROMPTS, PROMPT_NAMES, Prompts

PASSAGE = Passage("d#0000", "d", "Ada", "Ada met Bob.", 0, 12)


def directory_with(folder: Path, **texts: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", PROMPT_NAMES)
def test_every_prompt_comes_with_polyad_and_gives_way_to_a_file(name: str, tmp_path: Path) -> None:
    assert len(DEFAULT_PROMPTS.get_text(name)) > 20
    replaced = Prompts(directory_with(tmp_path, **{name: "My own {words} in {braces}."}))
    assert replaced.get_text(name, words="text") == "My own text in {braces}."
    assert (DEFAULT_PROMPTS.fingerprint(name), len(replaced.fingerprint(name))) == ("", 12)
    other = next(one for one in PROMPT_NAMES if one != name)
    assert (replaced.get_text(other), replaced.fingerprint(other)) == (DEFAULT_PROMPTS.get_text(other), "")


def test_prompts_show_the_form_of_a_reply_in_single_braces() -> None:
    for name in ("hypersu_clues", "question_names", "hypermemory_hyperedges"):
        assert '{"' in DEFAULT_PROMPTS.get_text(name)
        assert "{{" not in DEFAULT_PROMPTS.get_text(name)


def test_a_file_for_facts_that_has_the_first_part_alone_goes_with_polyads_second(tmp_path: Path) -> None:
    first, second = DEFAULT_PROMPTS.get_parts("facts_compact")
    one = Prompts(directory_with(tmp_path, facts_compact="List the facts in {language}."))
    assert one.get_parts("facts_compact") == ("List the facts in {language}.", second)
    two = Prompts(directory_with(tmp_path, facts_compact="List the facts.\n\n---\n\nMore, after {so_far}."))
    assert two.get_parts("facts_compact") == ("List the facts.", "More, after {so_far}.")
    style = ExtractionStyle("German", one)
    assert style.build_prompt(PASSAGE).system == "List the facts in German."
    assert style.name.startswith("compact language=German prompt=")
    assert ExtractionStyle("German").name == "compact language=German"
    assert first in ExtractionStyle().build_prompt(PASSAGE).system.replace("the language of the passage", "{language}")


def test_a_part_of_an_answers_instructions_may_be_replaced(tmp_path: Path) -> None:
    mine = Prompts(directory_with(tmp_path, answer_concise="Be brief, please."))
    context = Context("some text")
    usual = build_instructions(AnswerSettings(), context)
    assert build_instructions(AnswerSettings(), context, mine) == usual.replace(
        DEFAULT_PROMPTS.get_text("answer_concise"), "Be brief, please."
    )


def test_a_file_of_an_unknown_name_is_refused_by_naming_those_there_are(tmp_path: Path) -> None:
    directory_with(tmp_path, clue="Find clues.")
    with pytest.raises(
        ConfigurationError, match=r"clue\.md.*the name of no prompt; expected some of .*hypersu_clues\.md"
    ):
        Prompts(tmp_path)
    result = CliRunner().invoke(
        app, ["index", str(tmp_path), "--store", str(tmp_path / "kb")], env={"POLYAD_PROMPTS": str(tmp_path)}
    )
    assert (result.exit_code, result.stdout) == (2, "")
    assert "the name of no prompt" in result.stderr
    assert not (tmp_path / "kb").exists()


@pytest.mark.parametrize(("content", "message"), [(b"\xff\xfe\x00", "is not UTF-8"), (b"  \n", "has 0 characters")])
def test_a_file_that_holds_no_text_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "hypersu_clues.md").write_bytes(content)
    with pytest.raises(ConfigurationError, match=message):
        Prompts(tmp_path)


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"expected a directory of files such as hypersu_clues\.md"):
        Prompts(tmp_path / "none")


def test_an_engine_asks_with_the_prompts_that_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    mine = directory_with(tmp_path / "mine", hypersu_clues="At most {max_clues} clues, as JSON.", answer_text="Sing.")
    prompts: list[Prompt] = []

    def reply(prompt: Prompt) -> str:
        prompts.append(prompt)
        return '{"clues": ["a bell"]}' if "clues" in prompt.system else "It hangs in Aldby [1]."

    model = ScriptedLanguageModel(reply)
    with Engine.open(
        tmp_path / "kb", embedder="hashing:64", language_model=model, preset="hypersu", prompts=mine
    ) as engine:
        engine.index_documents([Document("bell", "Bell", "The Bell of Tarn hangs in Aldby.")])
        assert engine.ask("Where does the Bell of Tarn hang?").text == "It hangs in Aldby [1]."
    clues, answer = prompts
    assert clues.system == "At most 3 clues, as JSON."
    assert "Sing." in answer.system


@pytest.mark.parametrize("is_made", [False, True])
def test_the_names_of_a_passage_are_asked_for_with_the_prompt_that_was_given(tmp_path: Path, is_made: bool) -> None:
    (tmp_path / "mine").mkdir()
    mine = directory_with(tmp_path / "mine", mentions="List the bells.")
    model = ScriptedLanguageModel(lambda _: '{"entities": ["Bell of Tarn"]}')
    document = Document("bell", "Bell", "The Bell of Tarn hangs in Aldby.")

    def index(prompts: Path | None) -> int:
        mentions = LanguageModelMentionExtractor(model) if is_made else "llm"
        with Engine.open(
            tmp_path / "kb", embedder="hashing:64", language_model=model, mention_extractor=mentions, prompts=prompts
        ) as engine:
            return engine.index_documents([document]).counts.unchanged

    index(mine)
    assert [prompt.system for prompt in model.prompts] == ["List the bells."]
    assert index(mine) == 1
    assert index(None) == 0, "what was found with another prompt is found anew"
    assert model.prompts[-1].system == DEFAULT_PROMPTS.get_text("mentions")


def test_files_in_a_folder_of_a_plug_in_replace_its_prompts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "site" / "tarn_plugin" / "prompts").mkdir(parents=True)
    (tmp_path / "site" / "tarn_plugin" / "__init__.py").touch()
    for name in ("bells", "towers"):
        (tmp_path / "site" / "tarn_plugin" / "prompts" / f"{name}.md").write_text(f"Name the {name}.")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert DEFAULT_PROMPTS.for_package("tarn_plugin").get_text("bells") == "Name the bells."
    folder = directory_with(tmp_path / "user", hypersu_clues="Clues, please.")
    before = Prompts(folder)
    assert before.for_package("tarn_plugin").get_text("bells") == "Name the bells."
    directory_with(folder / "tarn_plugin", bells="Count the {what}.")
    after = Prompts(folder)
    replaced = after.for_package("tarn_plugin")
    assert replaced.get_text("bells", what="bells") == "Count the bells."
    assert replaced.get_text("towers") == "Name the towers."
    assert (bool(replaced.fingerprint("bells")), replaced.fingerprint("towers")) == (True, "")
    assert len({DEFAULT_PROMPTS.version, before.version, after.version}) == 3
    assert before.version == before.fingerprint("hypersu_clues")
    directory_with(folder / "tarn_plugin", clocks="No prompt.")
    with pytest.raises(ConfigurationError, match=r"clocks.*expected some of bells.md, towers.md"):
        after.for_package("tarn_plugin")
    directory_with(folder / "no_plugin", bells="Of nobody.")
    with pytest.raises(ConfigurationError, match="no_plugin"):
        Prompts(folder)
