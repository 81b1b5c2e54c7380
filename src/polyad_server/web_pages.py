"""Fetches one web page for indexing, from public addresses only.

A user names the address, so the server must not become a way into its own network: each host, also after a redirect, is
resolved once, all its addresses must be public, and the connection goes to the address that was checked. Thus a name
that resolves to another address a moment later (DNS rebinding) gains nothing. Proxies of the environment are not used.
"""

from __future__ import annotations

import codecs
import http.client
import ipaddress
import mimetypes
import socket
import ssl
import threading
from pathlib import PurePosixPath
from urllib.parse import urldefrag, urljoin, urlsplit

from polyad.errors import PolyadError
from polyad_server.uploads import UploadedFile

MAX_BYTES = 20_000_000
"""Maximum size of a page."""

MAX_SECONDS = 30.0
"""Maximum time for each request, the reply included."""

_MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MAX_URL = 2000
_EXTENSIONS = {"application/xhtml+xml": ".html", "text/html": ".html", "text/plain": ".txt", "text/markdown": ".md"}
_CHARSETS = ("ascii", "big5", "cp", "euc", "gb", "hz", "iso", "johab", "koi8", "mac", "shift", "tis", "utf-8", "utf-16")
"""Beginnings of the names of charsets; those of other codecs may take hours to decode, such as ``punycode``."""

_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class FetchError(PolyadError):
    """Raised if a web page cannot be fetched, or its address is not public."""

    hint = "add the page as a file instead"


def fetch_page(url: str) -> UploadedFile:
    """Return the page at an address as a file whose name is the address.

    Raises:
        FetchError: The address is not a public web address, or the page cannot be fetched within the limits.
    """
    target = urldefrag(url.strip()).url
    for _ in range(_MAX_REDIRECTS + 1):
        reply = _Request(target).send()
        if isinstance(reply, UploadedFile):
            return UploadedFile(urldefrag(url.strip()).url, reply.content, reply.extension, target)
        try:
            target = urldefrag(urljoin(target, reply)).url
        except ValueError as error:
            raise FetchError(f"the page redirects to {reply[:200]!r}, which is no web address") from error
    raise FetchError(f"the page redirects more than {_MAX_REDIRECTS} times")


class _Request:
    """One request to a public web server.

    Args:
        url: Address of the page.

    Raises:
        FetchError: The address is not a web address.
    """

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise FetchError(f"the address is {url[:200]!r}; expected one such as https://example.org/page") from error
        if parts.scheme not in ("http", "https") or not parts.hostname or len(url) > _MAX_URL or "@" in parts.netloc:
            raise FetchError(
                f"the address is {url[:200]!r}; expected http:// or https:// with a host and without a password"
            )
        self._url = url
        self._is_secure = parts.scheme == "https"
        self._host = parts.hostname
        self._port = port or (443 if self._is_secure else 80)
        self._path = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"

    def send(self) -> UploadedFile | str:
        """Return the page, or the address to which the server redirects."""
        connection = http.client.HTTPConnection(self._host, self._port, timeout=MAX_SECONDS)
        connection.sock = self._connect()
        # A server that sends a byte now and then would never exceed the timeout of the socket.
        is_late = threading.Event()
        timer = threading.Timer(MAX_SECONDS, _shut_down, [connection.sock, is_late])
        timer.daemon = True
        timer.start()
        try:
            connection.request("GET", self._path, headers={"Accept-Encoding": "identity", "User-Agent": "polyad"})
            result = self._read(connection.getresponse())
            if is_late.is_set():  # a reply without a stated length seems to end here
                raise TimeoutError("the time is over")
            return result
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = str(error) or type(error).__name__
            raise FetchError(f"{self._host} gave no whole reply within {MAX_SECONDS:g} s: {reason}") from error
        finally:
            timer.cancel()
            connection.close()

    def _connect(self) -> socket.socket:
        address = resolve_public_address(self._host, self._port)
        try:
            plain = socket.create_connection((address, self._port), MAX_SECONDS)
            if not self._is_secure:
                return plain
            return ssl.create_default_context().wrap_socket(plain, server_hostname=self._host)
        except OSError as error:
            raise FetchError(f"{self._host} cannot be reached: {error}") from error

    def _read(self, reply: http.client.HTTPResponse) -> UploadedFile | str:
        if reply.status in _REDIRECTS and (location := reply.headers["Location"]):
            return str(location)
        if reply.status != http.HTTPStatus.OK:
            raise FetchError(f"{self._host} answered {reply.status} {reply.reason}")
        if reply.headers.get("Content-Encoding", "identity") != "identity":
            raise FetchError(f"{self._host} sent a compressed reply, which was not requested")
        content = reply.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise FetchError(f"the page is above {MAX_BYTES / 1e6:g} MB")
        type = reply.headers.get_content_type()
        if type.startswith("text/") and (charset := reply.headers.get_content_charset()):
            content = _encode_in_utf_8(content, charset)
        suffix = PurePosixPath(urlsplit(self._url).path).suffix
        extension = _EXTENSIONS.get(type) or mimetypes.guess_extension(type) or suffix
        return UploadedFile(self._url, content, extension)


def _encode_in_utf_8(content: bytes, charset: str) -> bytes:
    """Return a text in UTF-8 with a byte order mark: the charset of the header takes precedence over the page's own."""
    try:
        name = codecs.lookup(charset).name
    except (LookupError, ValueError):
        return content
    if not name.startswith(_CHARSETS):
        return content
    return content.decode(name, "replace").encode("utf-8-sig")


def resolve_public_address(host: str, port: int) -> str:
    """Return an address of a host; all addresses of the host must be public.

    Raises:
        FetchError: The host is unknown, or has an address that is private, loopback, link-local or reserved.
    """
    try:
        answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise FetchError(f"the host {host!r} is unknown") from error
    addresses = [str(each[4][0]) for each in answers]
    if not addresses or not all(map(is_public_address, addresses)):
        raise FetchError(f"the host {host!r} is in a private network; expected a public web server")
    return addresses[0]


def is_public_address(text: str) -> bool:
    """Return whether an IP address belongs to the public internet.

    >>> [is_public_address(each) for each in ("8.8.8.8", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1")]
    [True, False, False, False, False]
    """
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address):
        inner = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
        if address in _NAT64:
            inner.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        if address.is_site_local or not all(each is None or is_public_address(str(each)) for each in inner):
            return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def _shut_down(connection: socket.socket, is_late: threading.Event) -> None:
    is_late.set()
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:  # closed meanwhile
        return
