"""Where settings come from: ``polyad config``, ``--config``, the user's own file, and how much is said."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter
from typer.testing import CliRunner, Result

from polyad.cli import app
from tests.docs.output_schema import COMMANDS

Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs a command in an empty folder, beside an empty one for the user's own settings."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    return lambda *arguments, **environment: CliRunner().invoke(app, [*map(str, arguments)], env=environment)


def settings_of(result: Result) -> dict[tuple[str, str], tuple[Any, str]]:
    assert result.exit_code == 0, result.output
    shape = json.loads(result.stdout)
    assert shape.pop("schema") == 1
    TypeAdapter(COMMANDS["config"]).validate_json(json.dumps(shape), strict=True)
    return {(row["section"], row["key"]): (row["value"], row["origin"]) for row in shape["settings"]}


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_each_setting_is_shown_with_where_it_came_from(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "own" / "polyad" / "polyad.toml", "k = 3\n[split]\nsection_tokens = 9\nlanguage = 'de'\n")
    write(Path("polyad.toml"), "[split]\nlanguage = 'fr'\n[language_model]\nmodel = 'm'\napi_key = 'secret'\n")
    result = run("config", "--json", POLYAD_HYPERSU_WIDTH="7")
    assert "secret" not in result.output
    settings = settings_of(result)
    assert settings["", "k"] == (3, str(tmp_path / "own" / "polyad" / "polyad.toml"))
    assert settings["split", "language"] == ("fr", "polyad.toml")
    assert settings["hypersu", "width"] == (7, "POLYAD_HYPERSU_WIDTH")
    assert settings["hypersu", "decay"] == (0.5, "default")
    assert settings["language_model", "api_key"] == ("(set)", "polyad.toml")
    assert "width = 7  # POLYAD_HYPERSU_WIDTH" in run("config", POLYAD_HYPERSU_WIDTH="7").output


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_addresses_are_shown_without_passwords(run: Run, flags: list[str]) -> None:
    output = run(
        "config",
        *flags,
        POLYAD_STORE="postgresql://ann:hunter2@db.example/kb?workspace=team&password=hunter2",
        OPENAI_BASE_URL="https://ann:hunter2@llm.example/v1?api-key=hunter2",
    ).output
    assert "hunter2" not in output
    assert "postgresql://ann@db.example/kb?workspace=team" in output
    assert "llm.example/v1" in output


def test_settings_of_the_server_can_be_set_on_the_command_line(run: Run) -> None:
    settings = settings_of(run("--set", "server.requests_per_minute=5", "config", "--json"))
    assert settings["server", "requests_per_minute"] == (5, "--set")


def test_a_file_that_is_named_stands_in_for_the_one_in_the_working_directory(run: Run, tmp_path: Path) -> None:
    write(Path("polyad.toml"), "k = 3\nmax_words = 50\n")
    named = write(tmp_path / "team.toml", "k = 4\n")
    settings = settings_of(run("--config", named, "config", "--json"))
    assert settings["", "k"] == (4, str(named))
    assert settings["", "max_words"] == (None, "default")
    assert settings_of(run("config", "--json"))["", "k"] == (3, "polyad.toml"), "of no matter for the next command"
    missing = run("--config", "none.toml", "config")
    assert (missing.exit_code, missing.stdout) == (2, "")
    assert "--config is 'none.toml', which does not exist" in missing.stderr


def test_a_key_of_the_users_own_file_goes_to_no_endpoint_that_a_found_file_names(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "own" / "polyad" / "polyad.toml", "[language_model]\napi_key = 'secret'\n")
    write(Path("polyad.toml"), "[language_model]\nmodel = 'm'\nbase_url = 'https://elsewhere.example/v1'\n")
    assert settings_of(run("config", "--json"))["language_model", "api_key"] == ("", "")
    from polyad.cli.settings import merge_settings

    configuration = merge_settings({}, {}, Path("polyad.toml"), user_file=tmp_path / "own" / "polyad" / "polyad.toml")
    assert configuration.language_model is not None
    assert (configuration.language_model.api_key, configuration.keyless) == (
        "no-key",
        ("https://elsewhere.example/v1",),
    )


@pytest.mark.parametrize(
    ("flags", "variable", "level"),
    [
        ([], "", logging.WARNING),
        ([], "info", logging.INFO),
        (["-v"], "", logging.INFO),
        (["-vv"], "error", logging.DEBUG),
    ],
)
def test_verbosity_flags_set_the_log_level(run: Run, flags: list[str], variable: str, level: int) -> None:
    result = run(*flags, "config", POLYAD_LOG=variable)
    assert (result.exit_code, result.stderr) == (0, "")
    assert logging.getLogger("polyad").level == level
    logging.getLogger("polyad").setLevel(logging.NOTSET)


def test_a_level_that_is_none_is_an_error(run: Run) -> None:
    result = run("config", POLYAD_LOG="loud")
    assert result.exit_code == 2
    assert "POLYAD_LOG is 'loud'; expected one of error, warning, info, debug" in result.stderr


def test_completion_can_be_installed(run: Run) -> None:
    assert "--install-completion" in run("--help").output
