"""Where an endpoint is, and what of its address and its key nobody else may see."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

from polyad.config import shown_address
from polyad.errors import ConfigurationError

_HIDDEN = "[secret]"

_PUBLIC = frozenset({"api-version", "version"})
"""What a query may hold that is no secret."""

_DUMMIES = frozenset(
    {"none", "null", "empty", "dummy", "local", "test", "no-key", "ollama", "lm-studio", "llama.cpp", "vllm"}
)
"""Keys that people give to servers that need none; hiding these words would only garble messages."""

_SHORTEST = 4
"""Characters of a secret; what is shorter stands in any text."""


@dataclass(frozen=True, slots=True)
class Address:
    """A base address, taken apart.

    Attributes:
        url: What paths are put behind; with a user's name and password, if it has them.
        query: Sent with every request, as ``api-version`` is at Azure.
        shown: Scheme, host and path: all of it that a message may say.
        secrets: The rest of it.
    """

    url: str
    query: dict[str, str] = field(default_factory=dict, repr=False)
    shown: str = ""
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, base_url: str) -> Self:
        """Take an address apart.

        Raises:
            ConfigurationError: it is none.
        """
        shown = shown_address(base_url)
        try:
            parts = urlsplit(base_url)
            is_address = bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_address = False
        if not is_address:
            raise ConfigurationError(
                f"{shown!r} is no address of an endpoint; expected one as http://localhost:8000/v1"
            )
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        secrets = [value for name, value in query.items() if name.lower() not in _PUBLIC]
        if parts.password:
            written = f"{unquote(parts.username or '')}:{unquote(parts.password)}"
            secrets += [unquote(parts.password), base64.b64encode(written.encode()).decode()]
        url = urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
        return cls(url, query, shown.rstrip("/"), tuple(secrets))


class Secrets:
    """What must not be printed, logged or stored, whoever says it: servers echo the key that they refuse."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        known = {value for value in values if len(value) >= _SHORTEST and value.lower() not in _DUMMIES}
        known |= {quote(value, safe="") for value in known}
        self._known = sorted(known, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, self._known)))

    def hidden(self, text: str) -> str:
        """``text`` with a mark in place of each secret."""
        return self._pattern.sub(_HIDDEN, text) if self._known else text

    def unfinished(self, text: str) -> int:
        """How many characters at the end of ``text`` may be the beginning of a secret."""
        return max((_begun(secret, text) for secret in self._known), default=0)


def _begun(secret: str, text: str) -> int:
    """The length of the longest beginning of ``secret``, short of all of it, that ``text`` ends with."""
    start = max(0, len(text) - len(secret) + 1)
    while (start := text.find(secret[0], start)) >= 0:
        if secret.startswith(text[start:]):
            return len(text) - start
        start += 1
    return 0
