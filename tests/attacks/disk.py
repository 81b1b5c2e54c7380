"""A disk that loses power: the files that a trace of system calls wrote, and what a power cut could leave of them.

The model promises what POSIX and SQLite (sqlite.org/atomiccommit.html, "powersafe overwrite") promise, and no more:

- ``fsync`` and ``fdatasync`` of a file make its contents and its size durable, not its name.
- ``fsync`` of a folder makes the names in it durable. Until then each creation, renaming and deletion is kept or lost,
  in any order, except that changes of one name stay in order. A renaming is kept as a whole or not at all.
- Of writes that no ``fsync`` followed, any are kept, in any order. A write may be torn into sectors of 512 bytes. A
  sector is written as a whole: it has the contents that it had after one of its writes. Other bytes do not change.
- A file may have grown while the new bytes were lost. They are zeros then, or old contents of the disk.
- The shared memory of SQLite's log (``-shm``) is lost: SQLite ignores it when the first process opens the file.

Real file systems promise more: ext4, XFS and Btrfs keep changes of names in order. Pillai et al., All File Systems Are
Not Created Equal (OSDI 2014), list what programs wrongly rely on.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

SECTOR = 512
SHARES = (0.0, 0.1, 0.5, 0.9, 0.99, 1.0, 1.0)
"""Shares of the changes that a power cut keeps; one is drawn for each file, or one for all. So for folders."""

_TRACED = "openat,write,pwrite64,lseek,ftruncate,fsync,fdatasync,rename,unlink,unlinkat,rmdir,mkdir,chdir"
_UNSUPPORTED = (
    "creat,writev,pwritev,pwritev2,truncate,fallocate,sendfile,copy_file_range,renameat,renameat2,link,linkat"
)
_LINE = re.compile(r"\d+ +(\w+)\((.*)\) += (\d+)")
_RESUMED = re.compile(r"(\d+) +<\.\.\. \w+ resumed>(.*)")
_STRING = re.compile(r'["<]((?:\\x[0-9a-f]{2})*)[">]')

Kind = Literal["create", "create folder", "write", "truncate", "sync", "rename", "delete"]
_KINDS: Mapping[str, Kind] = {
    "fsync": "sync",
    "fdatasync": "sync",
    "mkdir": "create folder",
    "rename": "rename",
    "unlink": "delete",
    "unlinkat": "delete",
    "rmdir": "delete",
}


@dataclass(frozen=True, slots=True)
class Call:
    """A system call that changes a file or makes it durable. The path is relative to the traced folder.

    Attributes:
        target: New path of a renaming.
        offset: Offset of a write; the size of a truncation.
        data: Bytes of a write.
    """

    kind: Kind
    path: str
    target: str = ""
    offset: int = 0
    data: bytes = b""


def find_obstacle() -> str:
    """Return why system calls cannot be traced on this machine; an empty string if they can."""
    strace = shutil.which("strace")
    if strace is None:
        return "needs strace, which records system calls (apt install strace)"
    result = subprocess.run([strace, "-qq", "-e", "trace=none", "true"], capture_output=True, text=True)
    return f"strace may not trace processes here: {result.stderr.strip()}" if result.returncode else ""


def trace(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> list[Call]:
    """Run a command in an empty folder and return the system calls that changed files below the folder.

    Raises:
        ValueError: a call is not simulated, or the calls do not explain the files in the folder.
    """
    log = folder.with_name(f"{folder.name}.trace")
    options = ["-f", "-qq", "-y", "-xx", "-s", str(1 << 26), "-e", f"trace={_TRACED},{_UNSUPPORTED}", "-o", str(log)]
    subprocess.run(["strace", *options, *command], cwd=folder, env=environment, check=True)
    with log.open(encoding="ascii") as lines:
        calls = list(_parse(lines, folder.resolve()))
    log.unlink()
    disk = Disk()
    for call in calls:
        disk.apply(call)
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    if disk.read() != {path: contents for path, contents in files.items() if not _is_shared_memory(path)}:
        raise ValueError(f"the recorded calls do not explain the files in {str(folder)!r}")
    return calls


def _parse(lines: Iterable[str], root: Path) -> Iterator[Call]:
    parser = _Parser(root)
    unfinished: dict[str, str] = {}
    for text in lines:
        line = text.rstrip()
        if line.endswith("<unfinished ...>"):
            unfinished[line.split()[0]] = line.removesuffix("<unfinished ...>")
            continue
        if resumed := _RESUMED.match(line):
            line = unfinished.pop(resumed[1]) + resumed[2]
        if match := _LINE.match(line):  # otherwise an error, a signal or the end of a process
            yield from parser.parse(match[1], match[2], int(match[3]))


class _Parser:
    """Parses system calls below a folder, and remembers the position in each file and the working folder."""

    def __init__(self, root: Path) -> None:
        self._root = self._working_folder = root
        self._positions: dict[str, int] = {}

    def parse(self, name: str, arguments: str, result: int) -> list[Call]:
        """Return the changes by a call without error; the strings in its arguments are hexadecimal."""
        strings = [bytes.fromhex(string.replace("\\x", "")) for string in _STRING.findall(arguments)]
        paths = self._find_paths(name, strings)
        if name == "chdir":
            self._working_folder = paths[0]
        if name == "chdir" or not all(path.is_relative_to(self._root) for path in paths):
            return []
        path, target = [*(str(path.relative_to(self._root)) for path in paths), ""][:2]
        if name == "openat":
            self._positions[path] = 0
            calls = [Call("create", path)] if "O_CREAT" in arguments else []
            return [*calls, Call("truncate", path)] if "O_TRUNC" in arguments else calls
        if name == "lseek":
            self._positions[path] = result
            return []
        if name == "write":
            offset = self._positions[path]
            self._positions[path] += result
            return [Call("write", path, offset=offset, data=strings[1][:result])]
        if name in ("pwrite64", "ftruncate"):
            kind: Kind = "truncate" if name == "ftruncate" else "write"
            return [Call(kind, path, offset=int(arguments.rsplit(",", 1)[1]), data=b"".join(strings[1:])[:result])]
        if name not in _KINDS:
            raise ValueError(f"{name} of {path!r} is not simulated")
        return [Call(_KINDS[name], path, target)]

    def _find_paths(self, name: str, strings: Sequence[bytes]) -> list[Path]:
        paths = [
            Path(os.fsdecode(string)) for string in strings[: 2 if name in ("openat", "unlinkat", "rename") else 1]
        ]
        if name in ("openat", "unlinkat"):  # path of a folder, name in it
            paths = [Path(*paths)]
        return [self._working_folder / path for path in paths]


@dataclass
class _File:
    """A file: its durable contents, and later (offset, bytes of a write) or (size, None of a truncation)."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def read(self) -> bytes:
        contents = bytearray(self.durable)
        for offset, data in self.pending:
            _change(contents, offset, data, bytes)
        return bytes(contents)

    def sync(self) -> None:
        for offset, data in self.pending:
            _change(self.durable, offset, data, bytes)
        self.pending.clear()

    def cut(self, chance: random.Random, shares: Sequence[float], growth_share: float) -> bytes:
        """Return contents that a power cut could leave; ``growth_share`` is how often it keeps the size."""
        contents, share, is_torn = bytearray(self.durable), chance.choice(shares), chance.random() < 0.5
        fill: Callable[[int], bytes] = chance.randbytes if chance.random() < 0.5 else bytes
        count = len(self.pending) if len(shares) == 1 else chance.randint(0, len(self.pending))
        lost: set[int] = set()  # sectors that have the contents of an earlier write
        for offset, data in self.pending[:count]:
            is_kept = chance.random() < share
            if data is None:
                if is_kept:
                    _change(contents, offset, None, fill)
                continue
            for start, piece in _split_into_sectors(offset, data):
                sector = start // SECTOR
                if sector not in lost and (chance.random() < share if is_torn else is_kept):
                    _change(contents, start, piece, fill)
                else:
                    lost.add(sector)
        if chance.random() < growth_share:
            contents += fill(max(0, len(self.read()) - len(contents)))
        return bytes(contents)


def _change(contents: bytearray, offset: int, data: bytes | None, fill: Callable[[int], bytes]) -> None:
    """Write data at an offset, or cut the contents there; ``fill`` makes the bytes of a gap."""
    contents += fill(max(0, offset - len(contents)))
    if data is None:
        del contents[offset:]
    else:
        contents[offset : offset + len(data)] = data


def _split_into_sectors(offset: int, data: bytes) -> Iterator[tuple[int, bytes]]:
    start = offset
    while start < offset + len(data):
        end = min(offset + len(data), (start // SECTOR + 1) * SECTOR)
        yield start, data[start - offset : end - offset]
        start = end


@dataclass
class _Folder:
    """A folder: its durable names, its names now, and the later changes of names, where None deletes one."""

    durable: dict[str, _File | _Folder] = field(default_factory=dict)
    names: dict[str, _File | _Folder] = field(default_factory=dict)
    pending: list[dict[str, _File | _Folder | None]] = field(default_factory=list)

    def change(self, change: dict[str, _File | _Folder | None]) -> None:
        self.pending.append(change)
        self.names = _apply(self.names, change)

    def sync(self) -> None:
        self.durable = dict(self.names)
        self.pending.clear()

    def cut(self, chance: random.Random, shares: Sequence[float]) -> dict[str, _File | _Folder]:
        """Return names that a power cut could leave."""
        names, share, lost = self.durable, chance.choice(shares), set[str]()
        for change in self.pending:
            if lost.isdisjoint(change) and chance.random() < share:
                names = _apply(names, change)
            else:
                lost |= change.keys()
        return names


def _apply(
    names: Mapping[str, _File | _Folder], change: Mapping[str, _File | _Folder | None]
) -> dict[str, _File | _Folder]:
    return {name: node for name, node in {**names, **change}.items() if node is not None}


class Disk:
    """A simulated disk that starts empty, with the contents of memory and what is durable of them."""

    def __init__(self) -> None:
        self._root = _Folder()

    def apply(self, call: Call) -> None:
        """Do what a system call does. A file that was deleted while it is open is ignored."""
        path = Path(call.path)
        parent = self._find(path.parent)
        if not isinstance(parent, _Folder):
            return
        node = self._find(path)
        if call.kind in ("create", "create folder"):
            if node is None:
                parent.change({path.name: _File() if call.kind == "create" else _Folder()})
        elif node is None:
            return
        elif call.kind == "sync":
            node.sync()
        elif call.kind == "delete":
            parent.change({path.name: None})
        elif call.kind == "rename":
            target = Path(call.target)
            if target.parent != path.parent:
                raise ValueError(f"renaming {call.path!r} to another folder is not simulated")
            parent.change({path.name: None, target.name: node})
        elif isinstance(node, _File):
            node.pending.append((call.offset, call.data if call.kind == "write" else None))

    def _find(self, path: Path) -> _File | _Folder | None:
        node: _File | _Folder | None = self._root
        for name in path.parts:
            node = node.names.get(name) if isinstance(node, _Folder) else None
        return node

    def read(self) -> dict[str, bytes]:
        """Return the contents of all files by path, as processes see them before a power cut."""
        return dict(_iterate_files(self._root, "", lambda folder: folder.names, _File.read))

    def cut(self, chance: random.Random, target: Path) -> None:
        """Write the files that a power cut at this moment could leave below the folder ``target``."""
        shares, name_shares = (chance.choice([SHARES, [chance.choice(SHARES)]]) for _ in range(2))
        growth_share = chance.choice([0.0, 0.5, 1.0])
        files = _iterate_files(
            self._root,
            "",
            lambda folder: folder.cut(chance, name_shares),
            lambda file: file.cut(chance, shares, growth_share),
        )
        for name, contents in files:
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(contents)


def _iterate_files(
    folder: _Folder,
    prefix: str,
    list_names: Callable[[_Folder], Mapping[str, _File | _Folder]],
    read: Callable[[_File], bytes],
) -> Iterator[tuple[str, bytes]]:
    for name, node in list_names(folder).items():
        if isinstance(node, _Folder):
            yield from _iterate_files(node, f"{prefix}{name}/", list_names, read)
        elif not _is_shared_memory(name):
            yield f"{prefix}{name}", read(node)


def _is_shared_memory(path: str) -> bool:
    return path.endswith("-shm")
