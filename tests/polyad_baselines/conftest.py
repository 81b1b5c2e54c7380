from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.polyad_baselines.cases import BuildCase, build_case


@pytest.fixture
def make_case(tmp_path: Path) -> BuildCase:
    return partial(build_case, tmp_path)
