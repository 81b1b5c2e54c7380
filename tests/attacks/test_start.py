"""An interrupt while the command line starts is one line and exit code 130."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.attacks

_PROGRAM = "import sys; from polyad.__main__ import main; print('ready', flush=True); main()"


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no SIGINT to a single process")
@pytest.mark.parametrize("delay", [0.04, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0])
def test_an_interrupt_during_the_start_prints_no_traceback(tmp_path: Path, delay: float) -> None:
    command = [sys.executable, "-c", _PROGRAM, "search", "Where is the bell?", "--store", str(tmp_path / "none")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert "Traceback" not in errors
    assert "Aborted" not in errors
    # 2: the command had ended with its error; -SIGINT: the interpreter was ending and had no handler any more
    assert process.returncode in (130, 2, -signal.SIGINT)
    if process.returncode == 130:
        assert "interrupted" in errors
