"""Files of an indexed folder that .gitignore files name, or that tools generate."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyad.config import ReadSettings
from polyad.errors import ConfigurationError
from polyad.model import Document
from polyad.readers.folder.files import FileReader, require_reachable

FILES = {
    ".gitignore": "*.log\n!keep.txt\n/build/\nsecret.txt\n# a comment\n",
    "a.md": "Read this.",
    "secret.txt": "Do not read this.",
    "build/page.md": "Generated.",
    "docs/build/page.md": "A page about building.",
    "docs/.gitignore": "draft*.md\n!secret.txt\n",
    "docs/draft1.md": "A draft.",
    "docs/secret.txt": "The title of a novel.",
    "other/draft1.md": "A draft that is read.",
    "node_modules/tool/readme.md": "Of a package.",
    "src/__pycache__/notes.txt": "Generated.",
    "environment/pyvenv.cfg": "home = /usr/bin",
    "environment/lib/licence.txt": "Of a package.",
    ".git/description.txt": "Of Git.",
}
READ = ["a.md", "docs/build/page.md", "docs/secret.txt", "other/draft1.md"]
IGNORED = ["build", "docs/draft1.md", "environment", "node_modules", "secret.txt", "src/__pycache__"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(folder)
    return folder


def read(reader: FileReader, path: str) -> list[str]:
    return [item.id for item in reader.read([Path(path)]) if isinstance(item, Document)]


def test_what_gitignore_names_and_tools_generate_is_left_out_and_listed(folder: Path) -> None:
    reader = FileReader()
    assert read(reader, ".") == READ
    assert sorted(reader.ignored) == IGNORED
    assert reader.count([Path()]) == len(READ)
    assert sorted(reader.ignored) == IGNORED, "counting changes nothing"


def test_all_is_read_if_the_settings_say_so(folder: Path) -> None:
    reader = FileReader(ReadSettings(gitignore=False))
    names = read(reader, ".")
    assert {"secret.txt", "build/page.md", "node_modules/tool/readme.md", "src/__pycache__/notes.txt"} <= set(names)
    assert reader.ignored == []


def test_what_is_named_is_read_although_its_folder_is_left_out(folder: Path) -> None:
    assert read(FileReader(), "node_modules") == ["node_modules/tool/readme.md"]
    assert read(FileReader(), "secret.txt") == ["secret.txt"]


def test_a_gitignore_file_that_is_damaged_ignores_nothing(folder: Path) -> None:
    (folder / ".gitignore").write_bytes(b"\xff\xfe[\n***/\n")
    assert "secret.txt" in read(FileReader(), ".")


def test_a_web_address_is_refused_with_a_way_out() -> None:
    with pytest.raises(ConfigurationError, match=r"address; expected a file or folder.*curl"):
        require_reachable(Path("https://example.org/manual.html"))
