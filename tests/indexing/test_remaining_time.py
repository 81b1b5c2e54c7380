"""The estimate of the remaining time, against simulated runs over the sizes of real manuals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from polyad.indexing.remaining_time import RemainingTime
from polyad.model import Document
from polyad.readers.formats import estimate_lengths

MANUALS = [
    (".html", 60967, 35893), (".html", 27888, 12520), (".html", 48891, 33109), (".html", 11315, 3830),
    (".html", 72783, 21081), (".html", 111870, 56954), (".txt", 22127, 22127), (".txt", 36723, 36621),
    (".html", 53440, 27446), (".html", 23973, 4416), (".html", 45245, 19254), (".txt", 5510, 5510),
    (".html", 64813, 27049), (".html", 67315, 35731), (".html", 180312, 44163), (".html", 295400, 61674),
    (".html", 146914, 26616), (".md", 16608, 16608), (".html", 68951, 49807), (".html", 38195, 28024),
]  # fmt: skip
"""Extension, bytes and characters of text of files of Debian's manuals."""

BOOKS = [(".txt", size, size) for size in (385_207, 970_816, 1_013_753, 487_624)]
"""Plain books, many times longer than the manuals."""

LOAD, PER_CHARACTER, BATCH = 6.0, 0.000_4, 200_000
"""Seconds to load models, seconds to embed a character on a slow machine, and characters of a batch."""

File = tuple[str, int, int]


def split_batches(files: Sequence[File]) -> Iterator[list[Document]]:
    batch: list[Document] = []
    for number, (suffix, _, characters) in enumerate(files):
        batch.append(Document(f"{number:03}{suffix}", "", "x" * characters, source=f"{number:03}{suffix}"))
        if sum(len(document.text) for document in batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def simulate(files: Sequence[File], changed: Callable[[int], bool]) -> list[tuple[float, float | None]]:
    """Return (time, estimate) of each report of a run, the last at the end."""
    clock = [0.0]
    lengths = estimate_lengths({f"{n:03}{file[0]}": file[1] for n, file in enumerate(files)})
    remaining = RemainingTime(lengths, lambda: clock[0])
    reports: list[tuple[float, float | None]] = []
    for number, batch in enumerate(split_batches(files)):
        ids = {document.id for document in batch if changed(int(document.id[:3]))}
        work = sum(len(document.text) for document in batch if document.id in ids)
        remaining.begin_batch(batch, ids)
        clock[0] += (0 if number else LOAD) + 0.2 * PER_CHARACTER * work + 0.2
        remaining.begin_embedding()
        for call in range(1, 6):
            clock[0] += PER_CHARACTER * work / 5
            reports.append((clock[0], remaining.estimate(call / 5)))
        remaining.end_batch()
        reports.append((clock[0], remaining.estimate(0.0)))
    return reports


@pytest.mark.parametrize(
    "files",
    [
        MANUALS * 4,
        [*MANUALS, *BOOKS],
        [*BOOKS, *MANUALS * 3],
        [*MANUALS, BOOKS[2], *MANUALS, BOOKS[0], *MANUALS],
        sorted(MANUALS * 5, key=lambda file: -file[1]),
        [(".pdf", size, int(size * share)) for size in (183_803, 894_395, 632_012) for share in (0.5, 0.15, 0.7)],
    ],
    ids=["manuals", "books last", "books first", "mixed", "large first", "pdf"],
)
def test_from_a_tenth_of_the_run_on_the_estimate_is_within_a_factor_of_one_and_a_half(files: list[File]) -> None:
    reports = simulate(files, lambda _: True)
    end = reports[-1][0]
    assert reports[-1][1] in (None, 0)
    ratios = [
        (estimate / (end - now), now / end)
        for now, estimate in reports
        if estimate is not None and 0.1 * end < now < 0.95 * end
    ]
    assert len(ratios) > len(reports) / 2
    assert all(1 / 1.5 <= ratio <= 1.5 for ratio, _ in ratios), ratios


def test_before_a_tenth_of_the_work_nothing_is_estimated() -> None:
    reports = simulate(MANUALS * 4, lambda _: True)
    end = reports[-1][0]
    assert all(estimate is None for now, estimate in reports if now < 0.1 * end)


def test_unchanged_documents_count_little() -> None:
    reports = simulate(MANUALS * 6, lambda number: number % 10 == 0)
    end = reports[-1][0]
    late = [estimate / (end - now) for now, estimate in reports if estimate and 0.3 * end < now < 0.9 * end]
    assert late
    assert all(0.4 < ratio < 2.5 for ratio in late), late
