"""Where models that are not on this machine would come from."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit
from urllib.request import getproxies

_SECONDS = 5.0


def can_fetch() -> bool:
    """Whether the hub takes a connection; offline, its own library tries for over a minute before it gives up.

    Behind a proxy that cannot be told, and is taken for granted.
    """
    from huggingface_hub import constants

    if getproxies():
        return True
    address = urlsplit(constants.ENDPOINT)
    port = address.port or (80 if address.scheme == "http" else 443)
    try:
        socket.create_connection((address.hostname or "", port), timeout=_SECONDS).close()
    except OSError:
        return False
    return True
