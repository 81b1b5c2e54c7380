"""Small files that unpack to much, or make their reader work long: the process that indexes them stays small."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.attacks.growth_targets import _docx, _epub

pytestmark = [pytest.mark.attacks, pytest.mark.skipif(sys.platform != "linux", reason="keeps to no limit of memory")]

MOST_MEMORY = 500
"""Megabytes of the process that indexes."""

INDEX = """
import sys
from polyad.engine import Engine
with Engine.open("kb", embedder="hashing:16") as engine:
    report = engine.index([sys.argv[1]])
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))  # of this program alone
print(int(peak) // 1024, report.failures[0].reason if report.failures else "")
"""


def pack(archive: bytes) -> bytes:
    """Compress the parts of an archive as much as possible."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as parts, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as target:
        for name in parts.namelist():
            target.writestr(name, parts.read(name), compresslevel=9)
    return packed.getvalue()


def write_forms(levels: int, uses: int) -> bytes:
    """A PDF of one page whose forms contain each other, each several times."""
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</XObject<</F 5 0 R>>>>>>",
        write_stream(b"/F Do\n" * uses),
    ]
    for level in range(levels):
        form = b"/Type/XObject/Subtype/Form/BBox[0 0 600 800]/Resources"
        if level < levels - 1:
            objects.append(write_stream(b"/F Do\n" * uses, form + b"<</XObject<</F %d 0 R>>>>" % (level + 6)))
        else:
            font = b"<</Font<</T<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>"
            objects.append(write_stream(b"BT /T 12 Tf 10 10 Td (a b c) Tj ET\n" * 10, form + font))
    body = b"".join(b"%d 0 obj\n%s\nendobj\n" % item for item in enumerate(objects, 1))
    return b"%PDF-1.7\n" + body + b"trailer<</Root 1 0 R>>\n%%EOF"


def write_stream(content: bytes, entries: bytes = b"") -> bytes:
    return b"<<%s/Length %d>>\nstream\n%s\nendstream" % (entries, len(content), content)


FILES: dict[str, tuple[Callable[[], bytes], str]] = {
    "cells.docx": (lambda: pack(_docx("<w:tbl><w:tr>" + "<w:tc/>" * 4_000_000 + "</w:tr></w:tbl>")), "unpacks to"),
    "paragraphs.docx": (lambda: pack(_docx("<w:p/>" * 1_600_000)), "tags of XML"),
    "text.docx": (lambda: pack(_docx("<w:p><w:r><w:t>" + "a b. " * 12_000_000 + "</w:t></w:r></w:p>")), "unpacks to"),
    "letters.docx": (lambda: pack(_docx("<w:p><w:r><w:t>a</w:t></w:r></w:p>" * 100_000)), ""),
    "names.epub": (lambda: pack(_epub(["<a:" * 1_000_000])), "no text"),
    "tags.epub": (lambda: pack(_epub(["<a>" * 3_000_000])), "tags in one page"),
    "forms.pdf": (lambda: write_forms(4, 60), "max_memory"),
    "lists.jsonl": (lambda: b'{"text": "x", "a": [' + b"[]," * 20_000_000 + b"[]]}", "max_memory"),
    "values.csv": (lambda: b"text,b\n" + b"x," * 30_000_000, "max_memory"),
    "name.csv": (lambda: b"a," + b"x" * 1_000_000 + b"\n" + b"1,2\n" * 1_000, "a column name of 1,000,000 characters"),
    "columns.csv": (lambda: b"a," * 10_000 + b"\n" + (b"1," * 10_000 + b"\n") * 100, "10,001 columns"),
}
"""Each file, and what its failure says; empty if it can be read."""


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_costs_the_indexing_process_little_memory(name: str, tmp_path: Path) -> None:
    write, reason = FILES[name]
    (tmp_path / name).write_bytes(write())
    ended = subprocess.run(
        [sys.executable, "-c", INDEX, name], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True
    )
    memory, _, failure = ended.stdout.strip().partition(" ")
    assert int(memory) < MOST_MEMORY
    assert (reason in failure) if reason else not failure, failure
