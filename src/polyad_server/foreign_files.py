"""Files of other programs, which are replaced as a whole, and only if nobody else has changed them meanwhile."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from polyad.errors import ConfigurationError
from polyad.text.files import make_folder, open_atomically, read_file, resolve_path, sync_folder

_BOM = "\ufeff"
"""The mark at the start of a file, which some editors of Windows write."""


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """A text file of another program, as it was when it was read.

    Attributes:
        path: Where the file is, or is to be: an absolute path without symbolic links.
        text: Its text, without a byte order mark; empty if there is no file.
        content: Its bytes; None if there is no file.
    """

    path: Path
    text: str
    content: bytes | None

    @classmethod
    def read(cls, path: Path, root: Path | None = None) -> ForeignFile:
        """Read a file, which may be missing.

        Args:
            path: The file.
            root: The folder that the file must be in after symbolic links are followed; None for any folder.

        Raises:
            ConfigurationError: The file is no regular file with UTF-8 text, or a symbolic link leads out of ``root`` or
                to no file.
        """
        target = resolve_path(path)
        if any(each.is_symlink() and not each.exists() for each in (path, *path.parents)):
            raise ConfigurationError(f"{str(path)!r} is a link to a file that does not exist; delete the link")
        if root and not target.is_relative_to(resolve_path(root)):
            raise ConfigurationError(
                f"{str(path)!r} is a link to {str(target)!r}; expected a file inside {str(root)!r}"
            )
        try:
            content = read_file(target) if target.exists() else None
            text = (content or b"").decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            reason = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.strerror
            raise ConfigurationError(f"{str(path)!r} cannot be edited: {reason}; correct it, or use --print") from error
        return cls(target, text, content)

    def replace(self, text: str) -> None:
        """Replace the file, or create it, readable only by its owner; after a failure or crash it is as before.

        Raises:
            ConfigurationError: Another program has changed the file since it was read.
            OSError: The file cannot be written.
        """
        make_folder(self.path.parent)
        mode = 0o600 if self.content is None else self.path.stat().st_mode & 0o777
        mark = _BOM if (self.content or b"").startswith(_BOM.encode()) else ""
        with open_atomically(self.path) as file:
            Path(file.name).chmod(mode)
            file.write((mark + text).encode())
            file.flush()
            os.fsync(file.fileno())  # so that little time passes between the check and the replacement
            self._require_unchanged()

    def delete(self) -> None:
        """Delete the file.

        Raises:
            ConfigurationError: Another program has changed the file since it was read.
        """
        self._require_unchanged()
        self.path.unlink()
        sync_folder(self.path.parent)

    def _require_unchanged(self) -> None:
        if (read_file(self.path) if self.path.exists() else None) != self.content:
            raise ConfigurationError(
                f"another program changed {str(self.path)!r} meanwhile; close that program, and repeat the command"
            )
