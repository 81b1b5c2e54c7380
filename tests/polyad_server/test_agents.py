"""The command ``polyad agent install``: entries and skills of agent programs, in a temporary home."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
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
from tests.polyad_server.serving import build_index

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
    """Return the contents of files by path; folders are left, since they may have been there before."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and not {"kb", "kb2"} & {*path.parts}]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


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
    before = list_files(home)
    result = run("codex", "--store", "kb")
    assert (result.exit_code, list_files(home)) == (2, before)
    assert all(f'pip install "{name}[mcp]"' in result.stderr for name in ("polyad", "."))
    assert run("codex", "--store", "kb", "--print").exit_code == 0


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


def write_settings(home: Path, content: bytes) -> Path:
    path = home / ".claude.json"
    path.write_bytes(content)
    return path


BIG = json.dumps({"projects": {f"/home/x/{number}": {"history": ["x" * 300]} for number in range(1000)}}, indent=1)


@pytest.mark.skipif(sys.platform == "win32", reason="needs the limits of POSIX")
def test_settings_survive_a_full_disk(home: Path) -> None:
    path = write_settings(home, BIG.encode())
    code = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)); from polyad.__main__ import main; main()"
    )
    environment = {**os.environ, "HOME": str(home)}
    command = [sys.executable, "-c", code, "agent", "install", "claude-code", "--store", "kb"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (result.returncode, "Traceback" in result.stderr) in ((1, False), (2, False)), result.stderr
    assert path.read_text(encoding="utf-8") == BIG
    assert list(home.glob(".claude.json*")) == [path]


def test_one_copy_of_the_settings_is_kept_until_they_are_the_same_again(home: Path) -> None:
    path = write_settings(home, b'{"theme": "dark"}')
    run("claude-code", "--store", "kb")
    copy = home / ".claude.json.before-polyad"
    assert copy.read_bytes() == b'{"theme": "dark"}'
    shutil.copytree("kb", "kb2")
    run("claude-code", "--store", "kb2")
    assert copy.read_bytes() == b'{"theme": "dark"}'
    path.write_text(path.read_text(encoding="utf-8").replace("dark", "light"), encoding="utf-8")
    run("claude-code", "--remove")
    assert (path.read_text(encoding="utf-8"), copy.exists()) == ('{"theme": "light"}', True)


def test_settings_that_changed_meanwhile_are_left(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_settings(home, b'{"theme": "dark"}')
    monkeypatch.setattr(
        "polyad_server.foreign_files.os.fsync", lambda _: path.write_text('{"theme": "light"}', encoding="utf-8")
    )
    result = run("claude-code", "--store", "kb")
    assert (result.exit_code, "another program" in result.stderr) == (2, True)
    assert path.read_text(encoding="utf-8") == '{"theme": "light"}'


@pytest.mark.parametrize(
    "content",
    [
        '{"theme": "dark"}'.encode("utf-16"),
        '{"name": "José"}'.encode("latin-1"),
        b'{"a": ' * 100_000 + b"1" + b"}" * 100_000,
        b'{"mcpServers": {}, "mcpServers": {"other": {"command": "x"}}}',
        b'{"mcpServers": {"polyad": {"args": ["mcp", "--store"]}, "polyad": {"args": ["mcp", "--store"]}}}',
        b'{"mcpServers": {"polyad": {"command": "mine", "args": ["--verbose"]}}}',
        b"\0" * 100,
    ],
    ids=["utf-16", "latin-1", "nested", "two sections", "two entries", "entry of the user", "null characters"],
)
@pytest.mark.parametrize("options", [["--store", "kb"], ["--remove"]])
def test_settings_that_are_not_understood_are_left(home: Path, content: bytes, options: list[str]) -> None:
    path = write_settings(home, content)
    before = list_files(home)
    result = run("claude-code", *options)
    if options != ["--remove"] or b'"polyad"' in content:
        assert (result.exit_code, str(path) in result.stderr) == (2, True), result.output
    assert list_files(home) == before


def test_deeply_nested_tables_are_left(home: Path) -> None:
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_bytes(b"a = " + b"[" * 100_000 + b"]" * 100_000)
    assert run("codex", "--store", "kb").exit_code == 2


@pytest.mark.parametrize("content", [b"", b" \n\n", b"\xef\xbb\xbf", b'\xef\xbb\xbf{"theme": "dark"}'])
def test_blank_settings_and_a_byte_order_mark_are_understood(home: Path, content: bytes) -> None:
    path = write_settings(home, content)
    assert run("claude-code", "--store", "kb").exit_code == 0
    written = path.read_bytes()
    assert written.startswith(b"\xef\xbb\xbf") == content.startswith(b"\xef\xbb\xbf")
    assert json.loads(written.decode("utf-8-sig"))["mcpServers"]["polyad"]["args"][-2] == "--store"
    run("claude-code", "--remove")
    assert path.read_bytes() == (content if b"theme" in content else content[:3].strip() + b"{\n}\n")


@pytest.mark.skipif(sys.platform == "win32", reason="has no pipes with names")
@pytest.mark.parametrize("name", [".claude.json", ".claude/skills/polyad/SKILL.md"])
def test_a_pipe_in_place_of_a_file_is_an_error(home: Path, name: str) -> None:
    (home / name).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(home / name)
    assert run("claude-code", "--store", "kb").exit_code == 2


@pytest.mark.skipif(sys.platform == "win32", reason="links need a permission")
@pytest.mark.parametrize("name", [".mcp.json", ".claude", ".mcp.json.before-polyad"])
@pytest.mark.parametrize("exists", [False, True])
def test_links_that_leave_a_project_are_refused(home: Path, name: str, exists: bool) -> None:
    target = home / "outside"
    if exists and name == ".claude":
        target.mkdir()
    elif exists:
        target.write_text("{}", encoding="utf-8")
    Path(name).symlink_to(target)
    if name != ".mcp.json":
        Path(".mcp.json").write_text("{}", encoding="utf-8")
    before = list_files(home)
    assert run("claude-code", "--store", "kb", "--project").exit_code == 2
    assert list_files(home) == before


@pytest.mark.skipif(sys.platform == "win32", reason="links need a permission")
def test_a_link_to_nothing_creates_no_file(home: Path) -> None:
    (home / ".claude.json").symlink_to(home / ".bashrc")
    assert run("claude-code", "--store", "kb").exit_code == 2
    assert not (home / ".bashrc").exists()


def test_removal_deletes_only_what_was_written(home: Path) -> None:
    path = write_settings(home, b"{\n}\n")
    (home / ".claude" / "skills").mkdir(parents=True)
    run("claude-code", "--store", "kb")
    notes = home / ".claude" / "skills" / "polyad" / "notes.md"
    notes.write_text("mine", encoding="utf-8")
    run("claude-code", "--remove")
    assert (path.read_bytes(), notes.read_text(encoding="utf-8")) == (b"{\n}\n", "mine")
    notes.unlink()
    notes.parent.rmdir()
    run("claude-code", "--store", "kb")
    run("claude-code", "--remove")
    assert list((home / ".claude").rglob("*")) == [home / ".claude" / "skills"]


def test_further_keys_of_an_entry_stay(home: Path) -> None:
    for client in ("claude-code", "codex"):
        run(client, "--store", "kb")
    path, tables = home / ".claude.json", home / ".codex" / "config.toml"
    path.write_text(path.read_text(encoding="utf-8").replace('"args"', '"env": {"A": "b"}, "args"'), encoding="utf-8")
    with tables.open("a", encoding="utf-8") as file:
        file.write('startup_timeout_sec = 20\n\n[mcp_servers.polyad.env]\nA = "b"\n')
    shutil.copytree("kb", "kb2")
    for client in ("claude-code", "codex"):
        assert run(client, "--store", "kb2").exit_code == 0
    entries = [parse_entry(path, "mcpServers"), parse_entry(tables, "mcp_servers")]
    assert [each["env"] for each in entries] == [{"A": "b"}] * 2
    assert entries[1]["startup_timeout_sec"] == 20
    assert [each["args"][-1] for each in entries] == [str(Path("kb2").resolve())] * 2


@pytest.mark.skipif(sys.platform == "win32", reason="has no modes of files")
@pytest.mark.parametrize("client", CLIENTS)
def test_new_files_are_for_their_owner_alone(home: Path, client: str) -> None:
    run(client, "--store", "kb")
    files = [path for path in home.rglob("*") if path.is_file() and "kb" not in path.parts]
    assert [path.stat().st_mode & 0o777 for path in files] == [0o600] * 2


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ann:s3cret%40@db.example.org:5432/kb?sslmode=require&workspace=team",
        "postgresql://ann@db.example.org:5432/kb?sslmode=require&password=s3cret&workspace=team",
        "postgresql://ann@db.example.org:5432/kb?pass%77ord=s3cret&sslmode=require&sslpassword=s3cret&workspace=team",
    ],
)
def test_no_password_of_a_database_is_written_or_printed(
    home: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setattr("polyad.engine.Engine.exists", lambda _: True)
    printed = run("claude-code", "--store", address, "--print")
    result = run("claude-code", "--store", address)
    assert "PGPASSWORD" in result.stderr
    texts = [content.decode() for content in list_files(home).values()]
    assert all("s3cret" not in text for text in (*texts, printed.output, result.output))
    expected = "postgresql://ann@db.example.org:5432/kb?sslmode=require&workspace=team"
    assert parse_entry(home / ".claude.json", "mcpServers")["args"][-1] == expected
