from __future__ import annotations

import threading

import pytest

from polyad.cli.progress import ProgressState, progress_bar


def test_a_line_has_counts_and_the_rate_since_the_kind_of_step_began() -> None:
    now = 0.0
    state = ProgressState(lambda: now)
    assert state.format_line() == ""
    state.update(0, None, "files, reading a.pdf")
    assert state.format_line() == "0 files, reading a.pdf"
    now = 30.0
    state.update(6000, 12_000, "files, 3 s left")
    assert state.format_line() == "6,000 of 12,000 files, 3 s left (200 files a second)"
    state.update(100, 200, "entities embedded")
    assert state.format_line() == "100 of 200 entities embedded"
    now = 90.0
    state.update(115, 200, "entities embedded")
    assert state.format_line() == "115 of 200 entities embedded (15 entities a minute)"


def test_without_a_terminal_lines_are_printed_while_a_step_takes_long(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar(quiet=False, interval=0.01) as progress:
        progress(2, 5, "files, reading a[/b].pdf")
        printed = ""
        while printed.count("\n") < 2:
            printed += capsys.readouterr().err
    assert set(printed.splitlines()) == {"polyad: progress: 2 of 5 files, reading a[/b].pdf"}
    assert "polyad-progress" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize(("quiet", "interval"), [(True, 0.01), (False, 30.0)])
def test_short_or_quiet_work_prints_nothing(capsys: pytest.CaptureFixture[str], quiet: bool, interval: float) -> None:
    with progress_bar(quiet, interval) as progress:
        progress(2, 5, "files")
        threading.Event().wait(0.05)
    assert capsys.readouterr().err == ""
