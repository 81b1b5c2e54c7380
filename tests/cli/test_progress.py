from __future__ import annotations

import threading

import pytest

from polyad.cli.progress import progress_bar


def test_without_a_terminal_lines_are_printed_while_a_step_takes_long(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar(quiet=False, interval=0.01) as progress:
        printed = ""
        for done in (2, 3):
            progress(done, 5, "files, reading a[/b].pdf")
            while printed.count("\n") < done - 1:
                printed += capsys.readouterr().err
    lines = [f"polyad: progress: {done} of 5 files, reading a[/b].pdf" for done in (2, 3)]
    assert list(dict.fromkeys(printed.splitlines())) == lines
    assert "polyad-progress" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize(("quiet", "interval"), [(True, 0.01), (False, 30.0)])
def test_short_or_quiet_work_prints_nothing(capsys: pytest.CaptureFixture[str], quiet: bool, interval: float) -> None:
    with progress_bar(quiet, interval) as progress:
        progress(2, 5, "files")
        threading.Event().wait(0.05)
    assert capsys.readouterr().err == ""


def test_an_unchanged_line_is_rarely_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar(quiet=False, interval=0.1) as progress:
        progress(0, 5, "files")
        threading.Event().wait(0.5)
    assert capsys.readouterr().err.count("\n") == 1
