"""Processes that are killed while they change an index lose nothing; ``kills.py`` does the same more often."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.attacks.kills import kill_again_and_again

pytestmark = [pytest.mark.attacks, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")]


def test_killed_changes_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    findings = kill_again_and_again(tmp_path, kills=60)
    assert findings.violations == []
    assert len(findings.kills) >= 10, "every kind of change was killed"
    assert findings.searches > 60
