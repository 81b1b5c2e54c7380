"""Addresses of endpoints, and the secrets in addresses and API keys."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

from polyad.config import mask_url
from polyad.errors import ConfigurationError

_HIDDEN = "[secret]"

_PUBLIC = frozenset({"api-version", "version"})
"""Query parameters that are not secret."""

_DUMMIES = frozenset(
    {"none", "null", "empty", "dummy", "local", "test", "no-key", "ollama", "lm-studio", "llama.cpp", "vllm"}
)
"""Placeholders for API keys of servers that need none; masking these words would only garble messages."""

_MIN_SECRET_CHARACTERS = 4
"""Minimum length of a secret; shorter strings occur in any text."""

_PART_CHARACTERS = 8
"""Length of the parts of a secret, of at least twice this length, that are masked too."""


@dataclass(frozen=True, slots=True)
class Address:
    """The address of an endpoint, split into URL, query parameters, label for messages, and secrets.

    Attributes:
        url: Address without query, including user name and password.
        query: Query parameters sent with every request, such as ``api-version`` of Azure.
        label: Scheme, host and path, which may appear in messages.
        secrets: Password and secret query values.
    """

    url: str
    query: dict[str, str] = field(default_factory=dict, repr=False)
    label: str = ""
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def parse(cls, base_url: str) -> Self:
        """Return the address in ``base_url``, the base URL of an endpoint.

        Raises:
            ConfigurationError: The text is no address.
        """
        label = mask_url(base_url)
        try:
            parts = urlsplit(base_url)
            is_address = bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_address = False
        if not is_address:
            raise ConfigurationError(
                f"{label!r} is no address of an endpoint; expected an address such as http://localhost:8000/v1"
            )
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        secrets = [value for name, value in query.items() if name.lower() not in _PUBLIC]
        if parts.password:
            credentials = f"{unquote(parts.username or '')}:{unquote(parts.password)}"
            secrets += [unquote(parts.password), base64.b64encode(credentials.encode()).decode()]
        url = urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
        return cls(url, query, label.rstrip("/"), tuple(secrets))


class Secrets:
    """The secrets of an endpoint, such as the API key, and a method that masks these secrets in a text.

    Servers may repeat a rejected API key in their replies.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        secrets = {value for value in values if len(value) >= _MIN_SECRET_CHARACTERS and value.lower() not in _DUMMIES}
        secrets |= {quote(value, safe="") for value in secrets}
        self._values = sorted(secrets, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, self._values)))
        long = [value for value in secrets if len(value) >= 2 * _PART_CHARACTERS]
        self._parts = {value[at : at + _PART_CHARACTERS] for value in long for at in range(len(value))}

    def mask_whole(self, text: str) -> str:
        """Replace each whole secret in a text by ``[secret]``."""
        return self._pattern.sub(_HIDDEN, text) if self._values else text

    def mask(self, text: str) -> str:
        """Replace each secret in a text by ``[secret]``; also long parts of secrets, which servers abbreviate."""
        text = self.mask_whole(text)
        size = _PART_CHARACTERS
        starts = (
            [at for at in range(len(text) - size + 1) if text[at : at + size] in self._parts] if self._parts else []
        )
        for first, last in reversed(list(_join_neighbours(starts))):
            text = text[:first] + _HIDDEN + text[last + size :]
        return text

    def count_unfinished(self, text: str) -> int:
        """Return how many characters at the end of a text may be the beginning of a secret."""
        return max((_measure_overlap(secret, text) for secret in self._values), default=0)


def _join_neighbours(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last of each run of places that are less than a part of a secret apart."""
    ends = [at for at in range(1, len(places)) if places[at] - places[at - 1] > _PART_CHARACTERS]
    for first, end in zip([0, *ends], [*ends, len(places)], strict=True):
        if places:
            yield places[first], places[end - 1]


def _measure_overlap(secret: str, text: str) -> int:
    """Return the length of the longest proper prefix of ``secret`` with which ``text`` ends."""
    start = max(0, len(text) - len(secret) + 1)
    while (start := text.find(secret[0], start)) >= 0:
        if secret.startswith(text[start:]):
            return len(text) - start
        start += 1
    return 0
