"""The command ``polyad agent install``: the MCP entry and the skill of an agent program."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlsplit

import typer

from polyad.cli import options
from polyad.cli.streams import say, say_result, warn
from polyad.config import drop_password
from polyad.engine import Engine
from polyad.engine.loaders import parse_place
from polyad.errors import ConfigurationError, MissingExtraError
from polyad_server.entries import (
    EMPTY_JSON,
    Entry,
    find_entry,
    parse_json,
    parse_toml,
    put_json_entry,
    put_toml_entry,
    remove_json_entry,
    remove_toml_entry,
)
from polyad_server.foreign_files import ForeignFile

_COPY_SUFFIX = ".before-polyad"
"""Ends the name of the copy of a settings file as it was before its first change."""

_MARK = "generator: polyad"
"""Line of a skill that this command wrote, and may change."""

_PLAIN_NAME = re.compile(r"[\w-]+(?:[. ][\w-]+)*")
"""A name that is plain text in YAML."""


class _Format(NamedTuple):
    """Functions for the entries of settings files of one format."""

    parse: Callable[[str], Any]
    put: Callable[[str, str, str, Entry], str]
    remove: Callable[[str, str, str], str]


_JSON = _Format(parse_json, put_json_entry, remove_json_entry)
_TOML = _Format(parse_toml, put_toml_entry, remove_toml_entry)


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
    store_name = str(place.resolve()) if isinstance(place, Path) else drop_password(place)
    spec, root = CLIENTS[client], Path.cwd() if project else Path.home()
    settings_path = root / (spec.file if project else spec.user_file or spec.file)
    skill_path = root / (spec.skills if project else spec.user_skills or spec.skills) / name / "SKILL.md"
    command = [path] if (path := shutil.which("polyad")) else [sys.executable, "-m", "polyad"]
    entry: Entry = {"command": command[0], "args": [*command[1:], "mcp", "--store", store_name]}
    entry = {"type": "stdio", **entry} if spec.names_type else entry
    skill = _build_skill(name, store_name, shlex.join(command))
    if print_:
        text = _get_format(settings_path).put("", spec.section, name, entry)
        say_result(
            json, {"file": str(settings_path), "entry": entry, "skill": skill}, _show, settings_path, text, skill
        )
        return
    if not remove and find_spec("mcp") is None:  # the agent could not start the server
        raise MissingExtraError("mcp", "mcp")
    only_in = root if project else None
    settings, skill_file = ForeignFile.read(settings_path, only_in), ForeignFile.read(skill_path, only_in)
    copy = ForeignFile.read(settings.path.with_name(f"{settings.path.name}{_COPY_SUFFIX}"), only_in)
    if skill_file.text and _MARK not in skill_file.text:
        raise ConfigurationError(f"{str(skill_path)!r} is a skill of your own; choose another name with --name")
    edited = _edit_settings(settings, spec.section, name, None if remove else entry)
    if not remove and settings.content is not None and _find_entry(settings, spec.section, name) is None:
        copy.replace(settings.content.decode())
    changed = [
        *_replace(settings, edited, is_new=copy.content is None),
        *_replace(skill_file, "" if remove else skill),
    ]
    if remove and copy.content is not None and copy.text == edited:
        copy.delete()
    if remove and skill_file.path.parent.is_dir() and not any(skill_file.path.parent.iterdir()):
        skill_file.path.parent.rmdir()
    paths = [str(path) for path in changed]
    say_result(json, {"changed": paths}, _report, client, name, paths, project, remove)
    if not remove and store_name != str(place) and not isinstance(place, Path):
        warn(
            "note",
            f"the address {store_name} is written without its password; polyad takes it from ~/.pgpass, from a service "
            "file (service=NAME in the address) or from PGPASSWORD in the environment of the agent",
        )


def _build_skill(name: str, store: str, command: str) -> str:
    """Return a skill in the format of Agent Skills for an index; ``command`` starts polyad in a shell."""
    template = files("polyad_server").joinpath("skill.md").read_text(encoding="utf-8")
    return template.format(name=name, index=_get_index_name(store) or name, quoted=shlex.quote(store), command=command)


def _get_index_name(store: str) -> str:
    """Return the name of the index in a folder or database; empty if it needs quotes in the description of a skill."""
    last = PurePath(urlsplit(store).path if "://" in store else store).name
    return last if _PLAIN_NAME.fullmatch(last) else ""


def _get_format(path: Path) -> _Format:
    return _TOML if path.suffix == ".toml" else _JSON


def _edit_settings(file: ForeignFile, section: str, name: str, entry: Entry | None) -> str:
    """Return the text of a settings file with the entry, or without an entry of this command if it is None.

    Raises:
        ConfigurationError: The file cannot be edited, or has an entry of this name that the user wrote.
    """
    form, text = _get_format(file.path), file.text
    try:
        current = _find_entry(file, section, name)
        if current is not None and not {"mcp", "--store"} <= {*_list_arguments(current)}:
            raise ConfigurationError(f"the MCP server {name!r} is one of your own; choose another name with --name")
        if entry is not None:
            return form.put(text, section, name, entry)
        return text if current is None else form.remove(text, section, name)
    except ConfigurationError as error:
        raise ConfigurationError(f"{str(file.path)!r}: {error}") from error


def _find_entry(file: ForeignFile, section: str, name: str) -> Any:
    return find_entry(_get_format(file.path).parse(file.text), section, name) if file.text.strip() else None


def _list_arguments(entry: Any) -> Sequence[str]:
    """Return the arguments of the command of an MCP entry, of any form."""
    arguments = entry.get("args") if isinstance(entry, dict) else None
    return [str(each) for each in arguments] if isinstance(arguments, list) else []


def _replace(file: ForeignFile, text: str, *, is_new: bool = True) -> Iterator[Path]:
    """Replace a file; delete it if nothing is left and this command created it. Yield its path if it changed."""
    if text == file.text:
        return
    if is_new and text in ("", EMPTY_JSON):
        file.delete()
    else:
        file.replace(text)
    yield file.path


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
