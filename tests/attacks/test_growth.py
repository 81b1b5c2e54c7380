"""The random search for inputs whose cost grows faster than their size, for half a minute."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.attacks

ROOT = Path(__file__).parents[2]

SOURCE = """
import re
from tests.attacks.growth import Target, search
spaces = re.compile(r"\\s+$")
print(search(Target("spaces", lambda text: spaces.sub("", text)), 60, 3))
print(search(Target("words", str.split), 3, 3))
"""


def test_quadratic_cost_is_detected_and_its_input_shrunk() -> None:
    process = subprocess.run(
        [sys.executable, "-c", SOURCE], cwd=ROOT, capture_output=True, text=True, timeout=240, check=True
    )
    slow, *_, fast = process.stdout.strip().splitlines()
    assert re.match(r"spaces: \w+ (before|fragment)=", slow)
    assert fast == "None"


def test_no_target_takes_the_square_of_the_size() -> None:
    command = [sys.executable, "-m", "tests.attacks.growth", "--minutes", "0.5", "--rounds", "1", "--seed", "0"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout
