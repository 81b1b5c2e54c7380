"""The command ``polyad agent install``: entries and skills of agent programs, in a temporary home."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped, unused-ignore]  # typed only when its stubs are installed
from typer.testing import CliRunner, Result

from polyad.cli import app
from polyad.errors import ConfigurationError
from polyad_server.agents import CLIENTS
from polyad_server.entries import put_json_entry, put_toml_entry, remove_json_entry, remove_toml_entry
from tests.server.serving import build_index

ENTRY = {"command": "polyad", "args": ["mcp", "--store", "kb"]}

_CODE = {"darwin": "Library/Application Support/Code", "win32": "AppData/Roaming/Code"}.get(
    sys.platform, ".config/Code"
)
PLACES = {
    # https://code.claude.com/docs/en/mcp and /skills
    "claude-code": [(".mcp.json", ".claude/skills"), (".claude.json", ".claude/skills")],
    # https://developers.openai.com/codex/mcp and /codex/skills
    "codex": [(".codex/config.toml", ".agents/skills")] * 2,
    # https://cursor.com/docs/context/mcp and /skills
    "cursor": [(".cursor/mcp.json", ".cursor/skills")] * 2,
    # https://code.visualstudio.com/docs/agents/reference/mcp-configuration and /agent-customization/agent-skills
    "vscode": [(".vscode/mcp.json", ".github/skills"), (f"{_CODE}/User/mcp.json", ".copilot/skills")],
    # https://geminicli.com/docs/tools/mcp-server and /cli/skills
    "gemini": [(".gemini/settings.json", ".gemini/skills")] * 2,
}
"""The files of MCP servers and the folders of skills in a project and in the home folder, as documented."""

JSON_TEXTS = [
    "{}",
    "{}\n",
    "{ }",
    "{\n}",
    '{"theme": "dark"}',
    '{ "theme": "dark" }\n',
    '{\n  "theme": "dark",\n  "list": [1, {"polyad": 2}]\n}\n',
    '{\r\n\t"a": {"SECTION": 1},\r\n\t"b": null\r\n}',
    '{"SECTION": {}}',
    '{\n  "SECTION": {\n  }\n}\n',
    '{"SECTION": {"other": {"command": "x", "args": ["\\"}{,:"]}}, "inputs": []}',
    '{\n    "SECTION": {\n        "other": {"url": "https://example.org"}\n    },\n    "inputs": []\n}\n',
    '{\n  // my servers, such as "SECTION": {\n  "SECTION": {\n    "a": {}, /* } */\n  },\n}\n',
    '{\n  "été": "東京 \\u00e9",\n  "x": 1e5\n}',
]
TOML_TEXTS = ["", 'model = "x"', 'model = "x"  # mine\n', '[SECTION.other]\ncommand = "x"\n\n[tui]\nb = [\n  1,\n]\n']


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / "project").mkdir(parents=True)
    monkeypatch.setattr(Path, "home", lambda: home)
    monkeypatch.chdir(home / "project")
    build_index(home / "project" / "kb")
    return home


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(app, ["agent", "install", *arguments])
    assert result.exit_code in (0, 2), result.output
    return result


def list_files(folder: Path) -> dict[str, bytes]:
    paths = sorted(folder.rglob("*"))
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else b"" for p in paths if "kb" not in p.parts}


def parse_entry(path: Path, section: str) -> Any:
    text = path.read_text(encoding="utf-8")
    return (tomllib.loads(text) if path.suffix == ".toml" else json.loads(text))[section]["polyad"]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("is_project", [False, True])
def test_an_entry_and_a_skill_have_the_documented_place_and_form(home: Path, client: str, is_project: bool) -> None:
    before = list_files(home)
    options = [client, "--store", "kb", *(["--project"] if is_project else [])]
    report = run(*options).stdout
    assert f"polyad agent install {client} {'--project ' if is_project else ''}--remove" in report
    spec, root = CLIENTS[client], home / "project" if is_project else home
    places = (spec.file, spec.skills) if is_project else (spec.user_file or spec.file, spec.user_skills or spec.skills)
    assert places == PLACES[client][not is_project]
    entry = parse_entry(root / places[0], spec.section)
    assert set(entry) == {"command", "args"} | ({"type"} if spec.names_type else set())
    assert entry.get("type", "stdio") == "stdio"
    assert entry["args"][-3:] == ["mcp", "--store", str(home / "project" / "kb")]
    assert shutil.which(entry["command"])
    check_skill(root / places[1] / "polyad" / "SKILL.md")
    written = list_files(home)
    assert "nothing to change" in run(*options).stdout
    assert list_files(home) == written
    run(client, "--remove", *options[3:])
    assert list_files(home) == before


def check_skill(path: Path) -> None:
    """Check a skill by the rules of https://agentskills.io/specification."""
    _, frontmatter, body = path.read_text(encoding="utf-8").split("---\n", 2)
    fields = yaml.safe_load(frontmatter)
    assert set(fields) <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", fields["name"])
    assert fields["name"] == path.parent.name
    assert len(fields["name"]) <= 64
    assert 0 < len(fields["description"]) <= 1024
    assert all(isinstance(value, str) for value in fields["metadata"].values())
    assert 0 < len(body.splitlines()) < 500
    assert "{" not in body


@pytest.mark.parametrize("text", JSON_TEXTS)
@pytest.mark.parametrize("section", ["mcpServers", "servers"])
def test_an_entry_changes_no_other_byte_of_json(text: str, section: str) -> None:
    before = text.replace("SECTION", section)
    written = put_json_entry(before, section, "polyad", ENTRY)
    assert '"polyad": {"command": "polyad"' in written
    assert put_json_entry(written, section, "polyad", ENTRY) == written
    moved = put_json_entry(written, section, "polyad", {**ENTRY, "command": "other"})
    assert put_json_entry(moved, section, "polyad", ENTRY) == written
    if "//" not in before.replace("://", ""):
        expected = json.loads(before)
        expected.setdefault(section, {})["polyad"] = ENTRY
        assert json.loads(written) == expected
    assert remove_json_entry(written, section, "polyad") == before
    assert remove_json_entry(before, section, "polyad") == before


def test_an_entry_that_was_moved_is_removed() -> None:
    text = '{"mcpServers": {"a": {}, "polyad": {"command": "x"}, "b": {}}}'
    assert json.loads(remove_json_entry(text, "mcpServers", "polyad")) == {"mcpServers": {"a": {}, "b": {}}}
    text = '{"mcpServers": {"a": {},\n "polyad": {"command": "x"}}}'
    assert json.loads(remove_json_entry(text, "mcpServers", "polyad")) == {"mcpServers": {"a": {}}}


def test_tables_below_an_entry_are_removed_with_it() -> None:
    text = '[mcp_servers.polyad-2]\ncommand = "x"\n'
    written = put_toml_entry(text, "mcp_servers", "polyad", ENTRY)
    extended = f'{written}\n[mcp_servers.polyad.tools.search]\napproval_mode = "approve"\n'
    assert remove_toml_entry(extended, "mcp_servers", "polyad") == text


@pytest.mark.parametrize("client", CLIENTS)
def test_existing_settings_are_kept(home: Path, client: str) -> None:
    spec = CLIENTS[client]
    path = home / (spec.user_file or spec.file)
    path.parent.mkdir(parents=True, exist_ok=True)
    for text in (TOML_TEXTS if path.suffix == ".toml" else JSON_TEXTS)[1:]:
        path.write_bytes(text.replace("SECTION", spec.section).encode())
        before = list_files(home)
        run(client, "--store", "kb")
        assert list_files(home) != before
        run(client, "--store", "kb")
        run(client, "--remove")
        assert list_files(home) == before, text


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("cursor", "[]"),
        ("cursor", '{"mcpServers": []}'),
        ("cursor", '{"mcpServers": '),
        ("codex", "[mcp_servers"),
        ("codex", 'mcp_servers = {polyad = {command = "x"}}'),
    ],
)
def test_settings_that_cannot_be_edited_are_left(home: Path, client: str, text: str) -> None:
    path = home / CLIENTS[client].file
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    result = run(client, "--store", "kb")
    assert result.exit_code == 2
    assert str(path) in result.stderr
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.skipif(sys.platform == "win32", reason="links need a permission")
def test_links_to_settings_stay_links(home: Path) -> None:
    settings = home / "dotfiles" / "claude.json"
    settings.parent.mkdir()
    settings.write_text('{"theme": "dark"}', encoding="utf-8")
    settings.chmod(0o600)
    link = home / ".claude.json"
    link.symlink_to(settings)
    run("claude-code", "--store", "kb")
    assert (link.is_symlink(), settings.stat().st_mode & 0o777) == (True, 0o600)
    assert parse_entry(settings, "mcpServers")["args"][-1] == str(home / "project" / "kb")
    run("claude-code", "--remove")
    assert (link.is_symlink(), settings.read_text(encoding="utf-8")) == (True, '{"theme": "dark"}')


@pytest.mark.skipif(sys.platform == "win32", reason="links need a permission")
def test_a_link_to_itself_is_an_error(home: Path) -> None:
    link = home / ".claude.json"
    link.symlink_to(link)
    result = run("claude-code", "--store", "kb")
    assert (result.exit_code, link.is_symlink()) == (2, True)


def test_a_skill_of_the_user_is_left(home: Path) -> None:
    path = home / ".cursor" / "skills" / "polyad" / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text("mine", encoding="utf-8")
    assert "--name" in run("cursor", "--store", "kb").stderr
    assert "--name" in run("cursor", "--remove").stderr
    assert path.read_text(encoding="utf-8") == "mine"
    run("cursor", "--store", "kb", "--name", "papers")
    assert (home / ".cursor" / "skills" / "papers" / "SKILL.md").exists()
    for name in ("My Papers", "..", "a/b", "-a"):
        assert run("cursor", "--store", "kb", "--name", name).exit_code == 2
    assert run("cursor", "--store", "none").exit_code == 2


def test_without_the_extra_it_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyad_server.agents.find_spec", lambda _: None)
    assert 'pip install "polyad[server]"' in run("codex", "--store", "kb").stderr


def test_print_writes_nothing(home: Path) -> None:
    before = list_files(home)
    for client, spec in CLIENTS.items():
        printed = run(client, "--store", "kb", "--print").stdout
        assert spec.section in printed
        assert "name: polyad" in printed
        shape = json.loads(run(client, "--store", "kb", "--print", "--json").stdout)
        assert set(shape) == {"schema", "file", "entry", "skill"}
    assert list_files(home) == before


def test_the_command_of_an_entry_starts_polyad(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    shape = json.loads(run("cursor", "--store", "kb", "--print", "--json").stdout)
    assert shape["entry"]["command"] == sys.executable
    assert shape["entry"]["args"][:3] == ["-m", "polyad", "mcp"]


@pytest.mark.parametrize(
    "text",
    [
        '[mcp_servers.polyad]\ncommand = "a"\nargs = [\n\n  "b",\n]\n',
        'note = """\n[mcp_servers.polyad]\ncommand = "a"\n"""\n',
    ],
)
def test_toml_that_is_not_understood_is_left(text: str) -> None:
    changes: list[Callable[[], str]] = [
        lambda: put_toml_entry(text, "mcp_servers", "polyad", {"command": "polyad"}),
        lambda: remove_toml_entry(text, "mcp_servers", "polyad"),
    ]
    for change in changes:
        try:
            changed = tomllib.loads(change())
        except ConfigurationError:
            continue
        assert changed.get("note") == tomllib.loads(text).get("note")


def test_json_of_a_comment_only_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="no JSON"):
        put_json_entry("// nothing yet\n", "mcpServers", "polyad", {"command": "polyad"})


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(("store", "described"), [("kb", "kb"), ("my: notes", "polyad")])
def test_the_skill_names_the_index_where_its_name_is_plain_text(store: str, described: str) -> None:
    if not Path(store).exists():
        build_index(Path(store))
    assert f"documents in the index {described} for" in run("codex", "--store", store, "--print").stdout
