"""Runs a page of the documentation as a reader would: its files, commands and Python, from the top."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from polyad.cli import app
from tests.scripted_server import ScriptedServer

DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r"(?:^<!-- file: (?P<file>\S+) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Step:
    """One command, or block of Python, of a page: what it says it prints, what it does print, and how it ends."""

    command: str
    output: str
    printed: str
    code: int


def run(page: str, directory: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Step]:
    """Run a page in a directory; what it sends to any endpoint goes to ``server``."""
    with contextlib.ExitStack() as servers:
        yield from _run_blocks(page, directory, server, servers, monkeypatch)


def _run_blocks(
    page: str,
    directory: Path,
    server: ScriptedServer,
    servers: contextlib.ExitStack,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Step]:
    monkeypatch.chdir(directory)
    monkeypatch.syspath_prepend(str(directory))  # as Python does for a script in this directory
    names: dict[str, object] = {"__name__": "page"}
    for block in _BLOCK.finditer((DOCS / page).read_text(encoding="utf-8")):
        text, language = block["text"], block["language"]
        if block["file"]:
            path = directory / block["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif language == "console":
            for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
                command, _, output = part.partition("\n")
                if command.startswith("polyad serve "):
                    yield Step(command, output, servers.enter_context(_serve(command)), 0)
                else:
                    yield Step(command, output, *_command(command, server, monkeypatch))
        elif language == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(text, page, "exec", dont_inherit=True), names)
            yield Step(text, "", printed.getvalue(), 0)


@contextlib.contextmanager
def _serve(command: str) -> Iterator[str]:
    """Run a server in the background, and yield the line that it prints when it listens."""
    arguments = [sys.executable, "-m", *shlex.split(command.removesuffix(" &"))]
    environment = {**os.environ, "POLYAD_ENCODER_BACKEND": "numpy"}  # importing PyTorch takes seconds
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert "serving" in line
            address = line.split(" at ")[1].split()[0]
            while True:  # until its models are loaded
                with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/readyz", timeout=30):
                    break
                time.sleep(0.1)
            yield line
        finally:
            process.terminate()


def _command(command: str, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> tuple[str, int]:
    name, *arguments = shlex.split(command)
    if name == "export":
        for variable, _, value in (argument.partition("=") for argument in arguments):
            monkeypatch.setenv(variable, server.base_url if variable == "OPENAI_BASE_URL" else value)
        return "", 0
    if name == "rm":
        Path(*arguments).unlink()
        return "", 0
    if name == "mkdir":
        Path(*arguments).mkdir()
        return "", 0
    if name == "cp":
        shutil.copyfile(*arguments)
        return "", 0
    if name == "curl":
        finished = subprocess.run([name, *arguments], capture_output=True, text=True, check=False)
        return finished.stdout, finished.returncode
    assert name == "polyad", f"{command!r}: only polyad, export, curl, rm, mkdir and cp are run here"
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "100"})
    return result.stdout, result.exit_code
