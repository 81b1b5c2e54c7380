"""Processor time of indexing and searching by two checkouts in alternation: fails where one needs notably more.

Both index the documentation of this checkout, and search for its headings, with hashed words in place of a model: what
is compared is polyad's own work. Run it from a checkout, with the other one, in the same environment:

    python benchmarks/compare_speed.py ../main --limit 1.1
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAM = r"""
import json, re, sys, tempfile, time
from pathlib import Path
from polyad import Document, Engine

pages = {str(path): path.read_text(encoding="utf-8") for path in sorted(Path(sys.argv[1]).rglob("*.md"))}
documents = [Document(path, "", text) for path, text in pages.items()]
headings = re.findall("^## (.+)", "\n".join(pages.values()), re.MULTILINE)[:200]
with tempfile.TemporaryDirectory() as folder, Engine.open(Path(folder) / "kb", embedder="hashing:256") as engine:
    start = time.process_time()
    engine.index_documents(documents)
    end = time.process_time()
    for heading in headings:
        engine.search(heading)
    print(json.dumps({"indexing": end - start, "searching": time.process_time() - end}))
"""


def main() -> int:
    """Print the ratio of both steps, and return 1 if one of them exceeds the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path, help="the checkout to compare with")
    parser.add_argument("--runs", type=int, default=5, help="runs of each checkout; the fastest counts")
    parser.add_argument("--limit", type=float, default=1.1, help="largest ratio to the checkout compared with")
    options = parser.parse_args()
    checkouts = {"base": options.base.resolve(), "here": ROOT}
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in checkouts}
    for _ in range(options.runs):
        for name, checkout in checkouts.items():
            runs[name].append(_measure(checkout))
    code = 0
    for step in ("indexing", "searching"):
        base, here = (min(run[step] for run in runs[name]) for name in checkouts)
        print(f"{step}: {base:.2f} s -> {here:.2f} s of processor time, ratio {here / base:.2f}")
        code = max(code, int(here / base > options.limit))
    return code


def _measure(checkout: Path) -> dict[str, float]:
    """Return the processor seconds of each step in a process that imports this checkout."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM, str(ROOT / "docs")]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    measured: dict[str, float] = json.loads(result.stdout)
    return measured


if __name__ == "__main__":
    sys.exit(main())
