"""What a package index shows of polyad: one version, and links that work outside the repository."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import polyad

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_version_is_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert polyad.__version__ == PROJECT["project"]["version"]
    assert f"\nversion: {polyad.__version__}\n" in citation
    assert f"## [{polyad.__version__}] - " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_relative_links_of_the_readme_become_links_to_the_repository() -> None:
    (rule,) = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rewritten = re.sub(rule["pattern"], rule["replacement"], readme)
    links = re.findall(r"\]\(([^)]+)\)", rewritten)
    repository = PROJECT["project"]["urls"]["Repository"]
    assert len(links) > 8
    assert all(link.startswith(("https://", "http://", "#")) for link in links)
    files = [link.removeprefix(f"{repository}/blob/main/").split("#")[0] for link in links if repository in link]
    assert all((ROOT / file).exists() for file in files)
