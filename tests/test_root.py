"""The root of the project holds the files that belong there, and no note or scratch file."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAMES = frozenset(
    """
    AGENTS.md ARCHITECTURE.md CHANGELOG.md CITATION.cff CODE_OF_CONDUCT.md CONTRIBUTING.md LICENSE README.md SECURITY.md
    Dockerfile Makefile compose.yaml constraints.txt llms.txt pyproject.toml
    .dockerignore .gitignore .pre-commit-config.yaml
    benchmarks docs requirements src tests
    """.split()  # noqa: SIM905
)


def test_each_name_at_the_root_is_on_a_list() -> None:
    patterns = [pattern.strip("/") for pattern in (ROOT / ".gitignore").read_text(encoding="utf-8").split("\n")]
    entries = [path for path in ROOT.iterdir() if not (path.is_dir() and path.name.startswith("."))]
    names = {path.name for path in entries if not any(fnmatch(path.name, pattern) for pattern in patterns)}
    assert names - NAMES - {".git"} == set()  # a file in a further work tree of Git


def test_the_links_of_llms_txt_lead_to_files() -> None:
    text = (ROOT / "llms.txt").read_text(encoding="utf-8")
    assert text.startswith("# polyad\n\n> ")
    links = re.findall(r"^- \[[^\]]+\]\(([^)]+)\)", text, re.MULTILINE)
    assert len(links) == sum(line.startswith("- ") for line in text.splitlines())
    assert [link for link in links if not (ROOT / link).exists()] == []
