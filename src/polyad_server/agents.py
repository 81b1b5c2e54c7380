"""The command ``polyad agent install``: the MCP entry and the skill of an agent program."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Annotated, Literal, NamedTuple
from urllib.parse import urlsplit

import typer

from polyad.cli import options
from polyad.cli.streams import say, say_result, warn
from polyad.engine import Engine
from polyad.engine.loaders import parse_place
from polyad.errors import ConfigurationError
from polyad.text.files import resolve_path
from polyad_server.entries import (
    EMPTY_JSON,
    Entry,
    put_json_entry,
    put_toml_entry,
    remove_json_entry,
    remove_toml_entry,
)

_MARK = "generator: polyad"
"""Line of a skill that this command wrote, and may change."""

_PLAIN_NAME = re.compile(r"[\w-]+(?:[. ][\w-]+)*")
"""A name that is plain text in YAML."""


class Client(NamedTuple):
    """An agent program, with the files of its MCP servers and its folders of skills.

    Attributes:
        section: Name of the object or table of MCP servers in a file of settings.
        file: Settings of MCP servers, relative to a project and to the home folder.
        skills: Folder of skills, relative likewise.
        user_file, user_skills: Those relative to the home folder, if they differ.
        names_type: Whether an entry states its type, ``stdio``.
    """

    section: str
    file: str
    skills: str
    user_file: str = ""
    user_skills: str = ""
    names_type: bool = False


_CODE = {"darwin": "Library/Application Support/Code", "win32": "AppData/Roaming/Code"}.get(
    sys.platform, ".config/Code"
)
CLIENTS = {
    "claude-code": Client("mcpServers", ".mcp.json", ".claude/skills", ".claude.json", names_type=True),
    "codex": Client("mcp_servers", ".codex/config.toml", ".agents/skills"),
    "cursor": Client("mcpServers", ".cursor/mcp.json", ".cursor/skills"),
    "vscode": Client(
        "servers", ".vscode/mcp.json", ".github/skills", f"{_CODE}/User/mcp.json", ".copilot/skills", True
    ),
    "gemini": Client("mcpServers", ".gemini/settings.json", ".gemini/skills"),
}
"""Agent programs by name, with the places that their documentation states."""

ClientName = Literal["claude-code", "codex", "cursor", "vscode", "gemini"]


def install(
    client: Annotated[ClientName, typer.Argument(metavar="CLIENT", help=f"One of {', '.join(CLIENTS)}.")],
    store: options.Store = None,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Name of the server and the skill.")] = "polyad",
    project: Annotated[
        bool, typer.Option("--project", help="Write to the working directory, for one project, not for the user.")
    ] = False,
    print_: Annotated[bool, typer.Option("--print", help="Print the entry and the skill, and write nothing.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the entry and the skill.")] = False,
    json: options.Json = False,
) -> None:
    """Connect an agent program with an index: write its MCP entry and a skill.

    The skill says when and how to search. Only the entry is changed in an existing file of settings. Agents start the
    MCP server `polyad mcp` themselves.

    Example: polyad agent install claude-code --store kb
    """
    if not re.fullmatch("[a-z0-9]{1,32}(-[a-z0-9]{1,31})?", name):
        raise ConfigurationError(
            f"the name is {name!r}; expected lower-case letters and digits, with one hyphen at most"
        )
    place = parse_place(options.load_settings(store=store).command.require_store()) if not remove else ""
    if not remove and not Engine.exists(place):
        raise ConfigurationError(f"there is no index in {str(place)!r}; create it with polyad index")
    store_name = str(place.resolve()) if isinstance(place, Path) else place
    spec, root = CLIENTS[client], Path.cwd() if project else Path.home()
    settings_file = root / (spec.file if project else spec.user_file or spec.file)
    skill_file = root / (spec.skills if project else spec.user_skills or spec.skills) / name / "SKILL.md"
    command = [path] if (path := shutil.which("polyad")) else [sys.executable, "-m", "polyad"]
    entry: Entry = {"command": command[0], "args": [*command[1:], "mcp", "--store", store_name]}
    entry = {"type": "stdio", **entry} if spec.names_type else entry
    skill = _build_skill(name, store_name, shlex.join(command))
    if print_:
        is_toml = settings_file.suffix == ".toml"
        text = (put_toml_entry if is_toml else put_json_entry)("", spec.section, name, entry)
        say_result(
            json, {"file": str(settings_file), "entry": entry, "skill": skill}, _show, settings_file, text, skill
        )
        return
    if skill_file.exists() and _MARK not in skill_file.read_text(encoding="utf-8"):
        raise ConfigurationError(f"{str(skill_file)!r} is a skill of your own; choose another name with --name")
    changed = [
        _edit(settings_file, lambda text: _edit_settings(settings_file, text, spec.section, name, entry, remove)),
        _edit(skill_file, lambda _: "" if remove else skill),
    ]
    paths = [str(path) for path in changed if path]
    say_result(json, {"changed": paths}, _report, client, name, paths, project, remove)
    if not remove and find_spec("mcp") is None:
        warn("warning", 'the MCP server needs an extra; run: pip install "polyad[server]"')


def _build_skill(name: str, store: str, command: str) -> str:
    """Return a skill in the format of Agent Skills for an index; ``command`` starts polyad in a shell."""
    template = files("polyad_server").joinpath("skill.md").read_text(encoding="utf-8")
    return template.format(name=name, index=_get_index_name(store) or name, quoted=shlex.quote(store), command=command)


def _get_index_name(store: str) -> str:
    """Return the name of the index in a folder or database; empty if it needs quotes in the description of a skill."""
    last = PurePath(urlsplit(store).path if "://" in store else store).name
    return last if _PLAIN_NAME.fullmatch(last) else ""


def _edit_settings(file: Path, text: str, section: str, name: str, entry: Entry, remove: bool) -> str:
    """Return the text of a settings file with the entry, or without; empty if nothing else is left in it."""
    try:
        if file.suffix == ".toml":
            return remove_toml_entry(text, section, name) if remove else put_toml_entry(text, section, name, entry)
        if not remove:
            return put_json_entry(text, section, name, entry)
        remaining = remove_json_entry(text, section, name) if text else ""
        return "" if remaining == EMPTY_JSON else remaining
    except ConfigurationError as error:
        raise ConfigurationError(f"{str(file)!r}: {error}") from error


def _edit(file: Path, edit: Callable[[str], str]) -> Path | None:
    """Edit a file; delete it, with folders that are empty then, if nothing is left. Return its path if it changed."""
    file = resolve_path(file)  # the target of a symbolic link, which may lie among other settings
    before = file.read_bytes().decode() if file.exists() else ""
    after = edit(before)
    if after == before:
        return None
    if after:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(after.encode())
        return file
    file.unlink()
    for folder in file.parents:
        if folder == Path.home() or any(os.scandir(folder)):
            break
        folder.rmdir()
    return file


def _report(client: str, name: str, paths: Sequence[str], project: bool, is_removed: bool) -> None:
    """Print what changed in the settings of a client, and how to take it back."""
    if not paths:
        say("nothing to change")
        return
    say(f"{'removed' if is_removed else 'wrote'} the MCP server and the skill {name!r} of {client}:")
    for path in paths:
        say(f"  {path}")
    if not is_removed:
        named = ["--name", name] if name != "polyad" else []
        command = ["polyad", "agent", "install", client, *named, *(["--project"] if project else []), "--remove"]
        say(f"Start {client} again to use it; to take it back: {shlex.join(command)}")


def _show(file: Path, entry: str, skill: str) -> None:
    say(f"{file}:\n\n{entry}\nSKILL.md:\n")
    say(skill)
