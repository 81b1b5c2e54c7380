"""Files and folders that are left out of an indexed folder: by .gitignore files, or because tools generate them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pathspec import GitIgnoreSpec

_GENERATED = frozenset({"node_modules", "__pycache__"})
"""Names of folders that package managers and interpreters fill. Hidden folders such as .git are skipped anyway."""

_MAX_BYTES = 1_000_000
"""Size up to which a .gitignore file is read."""


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The .gitignore files that apply in a folder: its own and those of the folders above it, from the indexed one on.

    Attributes:
        files: Each folder with a .gitignore file, and the patterns of the file; the innermost folder last.
    """

    files: tuple[tuple[Path, GitIgnoreSpec], ...] = ()

    def enter(self, folder: Path) -> Self:
        """Return the rules for the content of ``folder``, which adds its own .gitignore file if there is one."""
        file = folder / ".gitignore"
        with suppress(OSError, ValueError):  # unreadable, or a pattern that Git would not accept either
            if file.is_file() and file.stat().st_size <= _MAX_BYTES:
                lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
                return type(self)((*self.files, (folder, GitIgnoreSpec.from_lines(lines))))
        return self

    def ignores(self, path: Path, *, is_folder: bool) -> bool:
        """Return whether a file or folder is left out; the pattern of the innermost .gitignore file decides."""
        if is_folder and (path.name in _GENERATED or (path / "pyvenv.cfg").is_file()):
            return True
        for folder, patterns in reversed(self.files):
            name = path.relative_to(folder).as_posix() + ("/" if is_folder else "")
            if (result := patterns.check_file(name).include) is not None:
                return result
        return False
