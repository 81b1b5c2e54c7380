"""What the pages name is there: files, commands, flags, settings, entry points."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer.main
from typer.core import TyperCommand, TyperGroup

from polyad.cli import app
from polyad.text.prompts import PROMPT_NAMES

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "polyad"
PAGES = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs").glob("how-to/*.md")),
    *sorted((ROOT / "docs").glob("adr/*.md")),
    *sorted((ROOT / "docs").glob("reference/*.md")),
]
EXAMPLES = {"your_system.py", "your_retriever.py", "retriever.py"}  # that a contributor makes
PROSE = {"finds", "follows", "keeps", "needs"}  # that a line which begins with polyad goes on with
TOPS = ("src", "tests", "benchmarks", "docs")
GROUP = typer.main.get_command(app)
assert isinstance(GROUP, TyperGroup)
COMMANDS = dict(GROUP.commands) | {
    f"{group} {name}": command
    for group, commands in GROUP.commands.items()
    if isinstance(commands, TyperGroup)
    for name, command in commands.commands.items()
}


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def tree() -> list[tuple[str, list[str]]]:
    """Each folder that the tree of ARCHITECTURE.md has a line for, and the files it names there."""
    lines = text(ROOT / "ARCHITECTURE.md").split("```")[1].splitlines()
    entries: list[tuple[str, list[str]]] = []
    parent = ""
    for line in lines[2:]:
        indent = len(line) - len(line.lstrip())
        beginning = re.match(r"(?:\w+/ ?)+", line.lstrip())
        folders = beginning[0].replace("/", "").split() if beginning and indent < 10 else []
        if folders and indent == 2:
            parent = folders[0] if len(folders) == 1 else ""
            entries += [(folder, []) for folder in folders]
        elif folders:
            entries += [(f"{parent}/{folder}", []) for folder in folders]
        elif indent == 2:
            entries.append(("", []))
        entries[-1][1].extend(re.findall(r"[\w*]+\.py", line))
    return entries


def test_the_tree_names_what_is_there() -> None:
    assert len(tree()) > 15
    for folder, files in tree():
        assert (SOURCE / folder).is_dir(), folder
        for name in files:
            inside = [*(SOURCE / folder).glob(name), *(SOURCE / folder).glob(f"*/{name}")]
            assert inside, f"ARCHITECTURE.md has {name} in {folder or 'polyad'}/"


def test_the_tree_has_every_folder() -> None:
    named = {folder for folder, _ in tree()}
    there = {path.parent.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("__init__.py")} - {"."}
    assert {folder for folder in there if folder.count("/") == 0} <= named  # folders within are named on one line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_files_that_a_page_names_are_there(page: Path) -> None:
    inline = re.sub(r"```.*?```", "", text(page), flags=re.S)
    for name in re.findall(r"`([\w./*-]+\.(?:py|md|yml|txt))`", inline):
        path = Path(name)
        if path.name not in EXAMPLES and path.stem not in PROMPT_NAMES and path.parts[0] not in {"handbook", "notes"}:
            there = (page.parent / path).exists() or any(any((ROOT / top).rglob(name)) for top in TOPS)
            assert there or (ROOT / path).exists(), f"{page.name} names {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_commands_and_flags_that_a_page_names_are_there(page: Path) -> None:
    for _, command, rest in re.findall(
        r"(?:^|`|\$ )polyad ((?:--?[\w-]+ )*)((?:bench |key )?[a-z]+)\b([^`\n|]*)", text(page), re.M
    ):
        if rest.startswith(" is") or command in PROSE:
            continue
        assert command in COMMANDS, f"{page.name}: polyad {command}"
        flags = {option for parameter in COMMANDS[command].params for option in parameter.opts}
        for flag in re.findall(r"(?<=\s)--[a-z][\w-]*", rest):
            assert flag in flags, f"{page.name}: polyad {command} {flag}"


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_the_summary_of_a_command_begins_its_help(command: TyperCommand) -> None:
    assert isinstance(command.help, str)
    assert " ".join(command.help.split("\n\n")[0].split()).startswith(command.get_short_help_str(200))
