from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from polyad.processes import ChildProcess, ForkedProcess, Supervisor, format_exit_code
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends signals")

SLEEP = "import time; time.sleep(60)"
IGNORE_SIGTERM = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); {SLEEP}"


class Program:
    """Starts a Python program, and has its processes."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.processes: list[subprocess.Popen[bytes]] = []

    def __call__(self) -> ChildProcess:
        self.processes.append(subprocess.Popen([sys.executable, "-c", self.code], stdout=subprocess.PIPE))
        return self.processes[-1]


def check_until(supervisor: Supervisor, is_true: Callable[[], bool]) -> None:
    for _ in range(300):
        supervisor.check()
        if is_true():
            return
        time.sleep(0.05)
    raise AssertionError("the condition did not become true")


def test_a_killed_process_is_reported_and_started_again_and_the_others_run_on() -> None:
    first, second = Program(SLEEP), Program(SLEEP)
    ends: list[tuple[str, int]] = []
    supervisor = Supervisor({"a": first, "b": second}, lambda name, process: ends.append((name, process.wait())))
    supervisor.check()
    first.processes[0].kill()
    check_until(supervisor, lambda: len(first.processes) == 2)
    assert ends == [("a", -signal.SIGKILL)]
    assert len(second.processes) == 1
    supervisor.end(10)
    assert [program.processes[-1].returncode for program in (first, second)] == [-signal.SIGTERM] * 2


def test_a_process_that_cannot_work_is_not_started_all_the_time() -> None:
    program = Program("raise SystemExit(3)")
    supervisor = Supervisor({"a": program}, lambda *_: None)
    deadline = time.monotonic() + 0.5
    while time.monotonic() < deadline:
        supervisor.check()
    supervisor.end(10)
    assert len(program.processes) == 1


def test_an_error_of_a_process_can_end_its_supervisor() -> None:
    def raise_error(name: str, process: ChildProcess) -> None:
        raise ValueError(f"{name}: {format_exit_code(process.wait())}")

    supervisor = Supervisor({"a": Program("raise SystemExit(3)")}, raise_error)
    with pytest.raises(ValueError, match="a: exit code 3"):
        check_until(supervisor, lambda: False)


def test_a_process_that_ignores_the_request_to_end_is_killed() -> None:
    program = Program(IGNORE_SIGTERM)
    supervisor = Supervisor({"a": program}, lambda *_: None)
    supervisor.check()
    [process] = program.processes
    assert process.stdout
    process.stdout.readline()
    supervisor.end(0.2)
    assert process.returncode == -signal.SIGKILL


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="lists processes by /proc")
def test_a_forked_process_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    code = (
        "import time; from pathlib import Path; from polyad.processes import ForkedProcess\n"
        f"Path({str(tmp_path / 'pid')!r}).write_text(str(ForkedProcess(lambda: time.sleep(60)).pid)); time.sleep(60)"
    )
    program = Program(code)
    program()
    file = tmp_path / "pid"
    wait_until(lambda: file.exists() and bool(file.read_text()))
    program.processes[0].kill()
    program.processes[0].wait()
    wait_until(lambda: not Path("/proc", file.read_text()).exists())


def test_a_forked_process_has_the_exit_code_of_its_function() -> None:
    assert ForkedProcess(lambda: os._exit(4)).wait(10) == 4
