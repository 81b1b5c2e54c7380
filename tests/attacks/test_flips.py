"""No bit that flips in the files of an index is silent; see :mod:`tests.attacks.flips`."""

from __future__ import annotations

import pytest

from tests.attacks.flips import Findings, flip_again_and_again


def judge(findings: Findings, flips: int) -> None:
    assert findings.violations == []
    assert sum(findings.outcomes.values()) == flips
    assert findings.outcomes["repaired"]
    assert findings.outcomes["indexed again"]


def test_a_flipped_bit_is_harmless_or_found() -> None:
    judge(flip_again_and_again(12), 12)


@pytest.mark.attacks
def test_two_hundred_flipped_bits_are_harmless_or_found() -> None:
    judge(flip_again_and_again(200, seed=1), 200)
