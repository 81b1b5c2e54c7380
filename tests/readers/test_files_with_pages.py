from pathlib import Path

import openpyxl
import pytest

from polyad.model import Document, Failure, Location
from polyad.readers.folder.files import FileReader


def test_a_file_is_read_by_its_extension_and_keeps_its_places_and_metadata(tmp_path: Path) -> None:
    workbook = openpyxl.Workbook()
    workbook.properties.creator = "Ines Moreau"
    workbook.worksheets[0].append(["Pumps."])
    workbook.save(tmp_path / "pumps.XLSX")
    (document,) = FileReader().read([tmp_path])
    assert isinstance(document, Document)
    assert document.text == "Author: Ines Moreau\n\nPumps."
    assert document.places == (Location(0, len(document.text), sheet="Sheet"),)
    assert document.metadata["author"] == "Ines Moreau"


@pytest.mark.parametrize("extension", ["xlsx", "pptx", "epub", "odt", "docx", "pdf"])
def test_a_damaged_file_of_any_kind_is_a_failure(tmp_path: Path, extension: str) -> None:
    (tmp_path / f"a.{extension}").write_bytes(b"PK\x03\x04 and nothing more")
    (failure,) = FileReader().read([tmp_path])
    assert isinstance(failure, Failure)
    assert failure.reason.endswith(
        ("damaged: File is not a zip file", "damaged: Failed to load document (PDFium: Data format error).")
    )
