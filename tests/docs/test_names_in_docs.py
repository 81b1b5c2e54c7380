"""What the pages name is there: files, commands, flags, settings, entry points."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import typer.main
from typer.core import TyperGroup

from polyad.cli import app
from polyad.text.prompts import PROMPT_NAMES

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
PAGES = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs").glob("how-to/*.md")),
    *sorted((ROOT / "docs").glob("adr/*.md")),
    *sorted((ROOT / "docs").glob("architecture/*.md")),
    *sorted((ROOT / "docs").glob("papers/*.md")),
    *sorted((ROOT / "docs").glob("reference/*.md")),
]
EXAMPLES = {"your_system.py", "your_retriever.py", "retriever.py"}  # that a contributor makes
PROSE = {"finds", "follows", "keeps", "needs"}  # that a line which begins with polyad goes on with
TOPS = ("src", "tests", "benchmarks", "docs")
GROUP = typer.main.get_command(app)
assert isinstance(GROUP, TyperGroup)
assert GROUP.list_commands(typer.Context(GROUP))  # packages add their commands when all are listed
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
    package = parent = ""
    for line in lines[2:]:
        indent = len(line) - len(line.lstrip())
        beginning = re.match(r"(?:\w+/ ?)+", line.lstrip())
        folders = beginning[0].replace("/", "").split() if beginning and indent < 10 else []
        if indent == 0:
            (package,) = folders
            entries.append((package, []))
        elif folders and indent == 2:
            parent = folders[0] if len(folders) == 1 else ""
            entries += [(f"{package}/{folder}", []) for folder in folders]
        elif folders:
            entries += [(f"{package}/{parent}/{folder}", []) for folder in folders]
        elif indent == 2:
            entries.append((package, []))
        entries[-1][1].extend(re.findall(r"[\w*]+\.py", line))
    return entries


def test_the_tree_names_what_is_there() -> None:
    assert len(tree()) > 15
    for folder, files in tree():
        assert (SOURCE / folder).is_dir(), folder
        for name in files:
            inside = [*(SOURCE / folder).glob(name), *(SOURCE / folder).glob(f"*/{name}")]
            assert inside, f"ARCHITECTURE.md has {name} in {folder}/"


def test_the_tree_has_every_folder() -> None:
    named = {folder for folder, _ in tree()}
    there = {path.parent.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("__init__.py")} - {"."}
    assert {folder for folder in there if folder.count("/") < 2} <= named  # folders within are named on one line


def list_missing_files(page: Path) -> list[str]:
    """Return the names of files in the running text of a page that do not exist."""
    inline = re.sub(r"```.*?```", "", text(page), flags=re.S)
    paths = [Path(name) for name in re.findall(r"`([\w./*-]+\.(?:py|md|yml|txt))`", inline)]
    return [
        str(path)
        for path in paths
        if path.name not in EXAMPLES
        and path.stem not in PROMPT_NAMES
        and path.parts[0] not in {"handbook", "notes"}
        and not (page.parent / path).exists()
        and not (ROOT / path).exists()
        and not any(any((ROOT / top).rglob(str(path))) for top in TOPS)
    ]


def test_the_files_that_pages_name_are_there() -> None:
    assert {page.name: missing for page in PAGES if (missing := list_missing_files(page))} == {}


def list_missing_flags(page: Path) -> Iterator[str]:
    """Yield each command on a page that does not exist, and each flag that its command lacks."""
    for _, command, rest in re.findall(
        r"(?:^|`|\$ )polyad ((?:--?[\w-]+ )*)((?:bench |key |agent )?[a-z]+(?:-[a-z]+)*)\b([^`\n|]*)", text(page), re.M
    ):
        if rest.startswith(" is") or command in PROSE:
            continue
        if command not in COMMANDS:
            yield f"{page.name}: polyad {command}"
            continue
        flags = {option for parameter in COMMANDS[command].params for option in parameter.opts}
        for flag in re.findall(r"(?<=\s)--[a-z][\w-]*", rest):
            if flag not in flags:
                yield f"{page.name}: polyad {command} {flag}"


def test_the_commands_and_flags_that_pages_name_are_there() -> None:
    assert [missing for page in PAGES for missing in list_missing_flags(page)] == []


def test_the_summary_of_each_command_begins_its_help() -> None:
    summaries = {name: command.get_short_help_str(200) for name, command in COMMANDS.items()}
    helps = {name: " ".join(str(command.help).split("\n\n")[0].split()) for name, command in COMMANDS.items()}
    assert [name for name, summary in summaries.items() if not helps[name].startswith(summary)] == []
