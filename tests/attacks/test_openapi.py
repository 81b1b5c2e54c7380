"""No request makes the server fail; ``openapi.py`` sends more of them."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("schemathesis")


def test_no_generated_request_makes_the_server_fail(tmp_path: Path) -> None:
    from tests.attacks.openapi import attack  # imports schemathesis, which takes more than a second

    findings = attack(tmp_path, 120, 0)
    assert findings.server_errors == {}
    assert findings.requests >= 100  # Hypothesis ends early on operations with few distinct inputs
    assert {200, 202, 404, 422} <= set(findings.statuses), "requests reach what lies behind the validation"
