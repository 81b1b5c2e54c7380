from __future__ import annotations

from polyad.indexing.run import RunProgress
from polyad.model import Document, Failure

ProgressCalls = list[tuple[int, int | None, str]]


def run(files: int | None, messages: ProgressCalls, clock: list[float], size: int = 0) -> RunProgress:
    sizes = {f"{name}.txt": size for name in "abcd"[:files]} if size else {}
    return RunProgress(
        lambda done, total, message: messages.append((done, total, message)), files, sizes, lambda: clock[0]
    )


def document(id: str) -> Document:
    return Document(id, "", "text", source=id)


def test_files_share_and_time_left_are_told() -> None:
    messages, clock = ProgressCalls(), [0.0]
    progress = run(4, messages, clock, size=4)
    progress.begin_batch([document("a.txt")], {"a.txt"})
    progress.begin_embedding()
    clock[0] = 60.0
    progress.end_batch(1234, 5678)
    progress.begin_batch([document("b.txt"), Failure("c.txt", "broken")], {"b.txt"})
    progress.begin_embedding()
    clock[0] = 80.0
    progress.report("b.txt p. 12/90, 30 of 60 texts embedded", 0.5)
    assert messages == [
        (1, 4, "files, 1,234 passages, 5,678 hyperedges, 3 min left"),
        (2, 4, "files, b.txt p. 12/90, 30 of 60 texts embedded, 1 min left"),
    ]


def test_nothing_is_said_of_the_time_left_without_sizes() -> None:
    messages, clock = ProgressCalls(), [0.0]
    progress = run(2, messages, clock)
    progress.begin_batch([document("a.txt")], {"a.txt"})
    clock[0] = 60.0
    progress.report("a.txt", 0.5)
    assert messages == [(0, 2, "files, a.txt")]


def test_a_file_of_many_documents_is_done_when_the_next_begins() -> None:
    messages, clock = ProgressCalls(), [0.0]
    progress = run(2, messages, clock)
    for batch in (["a.jsonl:1", "a.jsonl:2"], ["a.jsonl:3"], ["a.jsonl:4", "b.txt"]):
        progress.begin_batch([document(source) for source in batch], batch)
        progress.end_batch(1, 1)
    assert [done for done, _, _ in messages] == [0, 0, 2]


def test_documents_are_counted_where_nobody_counted_files() -> None:
    messages, clock = ProgressCalls(), [0.0]
    progress = run(None, messages, clock)
    progress.begin_batch([Document("a", "", "x"), Document("b", "", "y")], {"a", "b"})
    clock[0] = 60.0
    progress.end_batch(3, 4)
    assert messages == [(2, None, "documents, 3 passages, 4 hyperedges")]
