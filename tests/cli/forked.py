"""Commands in a forked process: it may be killed, and it saves the second that a new interpreter takes to import."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess

from typer.testing import CliRunner

from polyad.cli import app
from polyad_bench.answers.records import AnswerRecord, Judgement
from polyad_bench.files import RecordFile


def run_forked(
    arguments: Sequence[str],
    prepare: Callable[[], object] = lambda: None,
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> CompletedProcess[str]:
    """Run a command in a forked process; the exit code of a process that is killed is the signal, negative.

    Args:
        arguments: The arguments of polyad.
        prepare: Changes the process before the command starts.
        folder: Working directory.
        environment: Environment variables beside those of this process.
    """
    end, output = os.pipe()
    if not (child := os.fork()):
        code = 1
        try:
            os.chdir(folder or ".")
            prepare()
            with os.fdopen(output, "w") as file:
                result = CliRunner().invoke(app, arguments, env=environment)
                json.dump([result.stdout, result.stderr], file)
            code = result.exit_code
        finally:
            os._exit(code)
    os.close(output)
    with os.fdopen(end) as file:
        printed = file.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return CompletedProcess(arguments, code, *(json.loads(printed) if code >= 0 else ("", "")))


def kill_after(owner: type, name: str, calls: int, is_counted: Callable[..., bool] = lambda *_: True) -> None:
    """Replace a method: at the end of so many calls that are counted, this process is killed."""
    original = getattr(owner, name)

    def call(*arguments: object) -> object:
        nonlocal calls
        result = original(*arguments)
        calls -= is_counted(*arguments)
        if not calls:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, call)


def kill_after_answers(count: int) -> None:
    """Kill this process once so many answers and judgements are stored."""
    kill_after(RecordFile, "append", count, lambda _, first, *__: isinstance(first, AnswerRecord | Judgement))
