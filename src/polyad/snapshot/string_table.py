"""Many short texts in two arrays, and where each is: ids and names take no object each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from polyad.hypergraph.incidence import expand_ranges
from polyad.model import IntArray

Hashes = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Strings:
    """Texts by row.

    Attributes:
        offsets: Row i is ``data[offsets[i]:offsets[i + 1]]`` in UTF-8; int64 ``[rows + 1]``.
        data: All texts, one after the other.
        tail: Texts of the rows after these, and behind them perhaps those of texts that grew from these.
        came: How many of them are its own.
    """

    offsets: IntArray
    data: Bytes
    tail: list[str] = field(default_factory=list)
    came: int = 0

    @classmethod
    def of(cls, texts: Iterable[str]) -> Strings:
        """Texts in the order given."""
        encoded = [_bytes(text) for text in texts]
        offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum([len(text) for text in encoded], out=offsets[1:])
        return cls(offsets, np.frombuffer(b"".join(encoded), dtype=np.uint8))

    def __len__(self) -> int:
        return len(self.offsets) - 1 + self.came

    def __getitem__(self, row: int) -> str:
        before = len(self.offsets) - 1
        if before <= row < before + self.came:
            return self.tail[row - before]
        found: bytes = self.data[self.offsets[row] : self.offsets[row + 1]].tobytes()
        return found.decode("utf-8", "surrogatepass")

    def take(self, rows: Sequence[int] | IntArray) -> list[str]:
        """The texts of some rows, in order."""
        return [self[row] for row in (rows.tolist() if isinstance(rows, np.ndarray) else rows)]

    def whole(self) -> Strings:
        """The same without a tail."""
        if not self.came:
            return self
        tail = Strings.of(self.tail[: self.came])
        offsets = np.concatenate([self.offsets, self.offsets[-1] + tail.offsets[1:]])
        return Strings(offsets, np.concatenate([self.data, tail.data]))

    def extended(self, texts: Sequence[str]) -> Strings:
        """The same with more rows at the end."""
        tail = self.tail if len(self.tail) == self.came else self.tail[: self.came]
        tail.extend(texts)
        return Strings(self.offsets, self.data, tail, self.came + len(texts))


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """Rows of texts, by their hashes.

    Attributes:
        hashes: Sorted; uint64 ``[entries]``.
        rows: ``[entries]``.
    """

    hashes: Hashes
    rows: IntArray

    @classmethod
    def of(cls, hashes: Sequence[int] | Hashes, rows: IntArray) -> Lookup:
        """Entries in any order; one hash may have several rows."""
        unsorted = np.asarray(hashes, dtype=np.uint64)
        order = np.lexsort((rows, unsorted))
        return cls(unsorted[order], rows[order].astype(np.int32))

    def __len__(self) -> int:
        return len(self.rows)

    def pairs(self, hashes: Sequence[int]) -> tuple[IntArray, IntArray]:
        """The place in ``hashes`` and the row of each entry with any of some hashes."""
        wanted = np.array(hashes, dtype=np.uint64)
        starts = self.hashes.searchsorted(wanted)
        # Of most there is none, so that their ends need not be looked for.
        places = (self.hashes.take(starts, mode="clip") == wanted).nonzero()[0] if len(self) else starts[:0]
        starts = starts[places]
        counts = self.hashes.searchsorted(wanted[places], side="right") - starts
        return places.repeat(counts), self.rows[expand_ranges(starts, counts)].astype(np.int64)

    def joined(self, other: Lookup) -> Lookup:
        """The entries of both."""
        return Lookup.of(np.concatenate([self.hashes, other.hashes]), np.concatenate([self.rows, other.rows]))


def hash_of(text: str) -> int:
    """64 bits that tell texts apart, the same in every process."""
    return int.from_bytes(blake2b(_bytes(text), digest_size=8).digest(), "little")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
