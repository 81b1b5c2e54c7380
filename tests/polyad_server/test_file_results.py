from __future__ import annotations

from polyad.model import Document, Failure
from polyad_server.file_results import FileResult, FileResults


def test_documents_of_one_id_in_two_files_have_their_own_outcomes() -> None:
    results = FileResults([FileResult("a.jsonl"), FileResult("b.jsonl"), FileResult("c.md"), FileResult("d.md")])
    for number in (0, 1):
        results.begin(number)
        results.add(number, Document("bell", "", "Text"))
        results.end(number)
    assert [each["state"] for each in results.format()] == ["indexing", "indexing", "waiting", "waiting"]
    results.record(
        "bell", "failed", "it has the id of an earlier document"
    )  # of the second, before the first is stored
    assert [each["state"] for each in results.format()] == ["indexing", "failed", "waiting", "waiting"]
    results.record("bell", "added", "")
    results.begin(2)
    results.add(2, Failure("c.md", "c.md: damaged"))
    results.end(2)
    results.record("c.md", "failed", "reported by the indexer too")
    results.close("cancelled")
    assert [(each["state"], each["reason"], each["document_id"]) for each in results.format()] == [
        ("added", "", "bell"),
        ("failed", "it has the id of an earlier document", ""),
        ("failed", "damaged", ""),
        ("failed", "cancelled", ""),
    ]
