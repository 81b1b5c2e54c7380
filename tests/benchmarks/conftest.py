"""Makes the modules of ``benchmarks/`` importable, as if a script there were run by hand."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
