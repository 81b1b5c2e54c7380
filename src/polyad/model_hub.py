"""Loading of models that are cached on this machine or can be downloaded from the Hugging Face hub."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import urlsplit

from polyad.errors import ConfigurationError

ModelT = TypeVar("ModelT")

_TIMEOUT = 5.0
"""Seconds to wait for a connection to the hub."""


def load_model(load: Callable[[bool], ModelT], description: str, hint: str = "", *, is_local: bool = False) -> ModelT:
    """Return the model that ``load`` loads: from local files or, if there are none, from the Hugging Face hub.

    Args:
        load: Loads the model; the argument says whether only local files may be used.
        description: The model in words, for the error message.
        hint: Further advice for the error message.
        is_local: Whether the hub is never asked.

    Raises:
        ConfigurationError: the model is not on this machine and cannot be downloaded.
    """
    problem: Exception | None = None
    for only_local_files in (True,) if is_local else (True, False):  # a cached model must not wait for a network
        if not only_local_files and not _is_hub_reachable():
            break
        try:
            return load(only_local_files)
        except (OSError, ValueError) as error:
            problem = error
    reason = (str(problem).strip().splitlines() or [""])[0]
    raise ConfigurationError(
        f"{description} cannot be loaded ({reason}); expected a folder, or a name that is cached on this machine or "
        f"can be downloaded{hint}"
    ) from problem


def choose_device(device: str) -> str:
    """Return the name of the torch device for a setting; ``auto`` selects a GPU if available.

    Raises:
        ConfigurationError: torch has no such device on this machine.
    """
    import torch

    gpus = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    available = [*(["cuda", *gpus] if gpus else []), *(["mps"] if torch.backends.mps.is_available() else []), "cpu"]
    if device == "auto":
        return available[0]
    if device.partition(":")[0] == "cpu":
        return "cpu"  # cpu:1 and the like are the same processor
    if device not in available:
        names = ", ".join(available)
        raise ConfigurationError(f"device is {device!r}; expected auto, or a device of this machine: {names}")
    return device


def disable_tokenizer_threads() -> None:
    """Disable the threads of Hugging Face tokenizers, which can deadlock in forked processes."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def _is_hub_reachable() -> bool:
    """Return whether the Hugging Face hub accepts connections; always True behind a proxy.

    Offline, the library of the hub would try for over a minute before it fails.
    """
    from urllib.request import getproxies

    from huggingface_hub import constants

    if getproxies():
        return True
    address = urlsplit(constants.ENDPOINT)
    port = address.port or (80 if address.scheme == "http" else 443)
    try:
        socket.create_connection((address.hostname or "", port), timeout=_TIMEOUT).close()
    except OSError:
        return False
    return True
