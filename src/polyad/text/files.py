"""Files written whole or not at all: whoever is stopped meanwhile leaves the earlier one as it was."""

from __future__ import annotations

import importlib.resources
import os
from pathlib import Path


def write_whole(path: Path, contents: bytes | str) -> None:
    """Write a file beside ``path``, then put it in its place; text as UTF-8. A link is kept, and what it names written.

    Raises:
        OSError: it cannot be written.
    """
    target = path.resolve()
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as file:
            file.write(contents.encode() if isinstance(contents, str) else contents)
            file.flush()
            os.fsync(file.fileno())  # else a power cut could leave the new name with nothing behind it
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def packaged(package: str, name: str) -> str:
    """The text of the file ``name`` in ``package``, without white space at its ends."""
    return importlib.resources.files(package).joinpath(name).read_text(encoding="utf-8").strip()
