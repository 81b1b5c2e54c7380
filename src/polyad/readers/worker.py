"""A worker process that reads documents one after another, within limits that the operating system enforces.

It is the other side of :mod:`polyad.readers.workers`. Each line of its input asks for a file, and each line
that it writes is a reply, both JSON, so that nothing which a hostile document may bring it to write is ever run:

    -> {"path", "function", "settings"}
    <- {"ready"}                once, at the start
    <- {"page", "pages"}        how far it is with a document that has pages
    <- {"content", "is_spent"} or {"failure", "is_spent"}; if it is spent, the process ends
"""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NoReturn

from polyad.config import ReadSettings
from polyad.model import Location, Section
from polyad.readers.one_file import format_reason, read_content
from polyad.readers.plain_text import Content

_SECONDS_BETWEEN = 0.2
"""Between two messages of how far it is."""

_SPENT = 4
"""A process that has held a fourth of the memory it may have is not used again: the next document has all of it."""

_STATUS = Path("/proc/self/status")
_LARGEST = re.compile(rb"^VmHWM:\s*(\d+) kB$", re.MULTILINE)
"""The largest size of this process, where the system says it in a file."""


def main(max_memory: int) -> NoReturn:
    """Reply to requests until there are no more of them, which ends the process even while it reads."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever began it ends it
    _limit_memory(max_memory)
    replies = _replies()
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    _say(replies, {"ready": True})
    is_spent = False
    while not is_spent:
        reply = _reply_to(json.loads(requests.get()), replies)
        is_spent = bool(reply["is_spent"])
        _say(replies, reply)
    os._exit(0)


def _listen(requests: queue.SimpleQueue[bytes]) -> NoReturn:
    for line in sys.stdin.buffer:
        requests.put(line)
    os._exit(0)


def _replies() -> IO[bytes]:
    """Return the stream for replies; redirect the output of libraries to the null device."""
    replies = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return replies


def _say(replies: IO[bytes], message: Mapping[str, Any]) -> None:
    replies.write(json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")
    replies.flush()


def _reply_to(request: Mapping[str, Any], replies: IO[bytes]) -> dict[str, Any]:
    settings = ReadSettings(**request["settings"])
    _limit_seconds(settings.max_seconds)
    try:
        content = read_content(Path(request["path"]), request["function"], settings, _page_teller(replies))
        return {"content": written(content), "is_spent": _has_grown(settings.max_memory)}
    except Exception as error:  # whatever a format's library raises, it is a failure of this document
        if _is_of_memory(error):
            return {"failure": format_memory_failure(settings), "is_spent": True}
        return {"failure": format_reason(error), "is_spent": _has_grown(settings.max_memory)}
    finally:
        _limit_seconds(0)


def format_memory_failure(settings: ReadSettings) -> str:
    """Return the message for a document that exceeds the memory limit."""
    return f"takes more than {settings.max_memory:,} bytes of memory to read (max_memory)"


def written(content: Content) -> dict[str, Any]:
    """Convert the content of a document to JSON values."""
    sections = [[section.name, section.start, section.end, section.strength] for section in content.sections]
    places = [[place.start, place.end, place.page, place.heading, place.sheet, place.slide] for place in content.places]
    return content._asdict() | {"sections": sections, "places": places, "metadata": dict(content.metadata)}


def parse_content(values: Mapping[str, Any]) -> Content:
    """Convert the JSON values of :func:`written` back to content."""
    return Content(
        values["title"],
        values["text"],
        tuple(Section(*section) for section in values["sections"]),
        tuple(Location(*place) for place in values["places"]),
        {key: tuple(value) if isinstance(value, list) else value for key, value in values["metadata"].items()},
        values["url"],
    )


def _page_teller(replies: IO[bytes]) -> Callable[[int, int], None]:
    last = time.monotonic()

    def tell(page: int, pages: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS_BETWEEN:
            last = time.monotonic()
            _say(replies, {"page": page, "pages": pages})

    return tell


def _is_of_memory(error: BaseException | None) -> bool:
    """Return whether an error is a memory error, or was caused by one."""
    while error:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False


# Limits of the system. Windows has none of them.


def _limit_memory(most: int) -> None:
    try:
        import resource
    except ImportError:
        return
    with suppress(ValueError, OSError):  # macOS may refuse it
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # what a hostile document ends is no fault to be looked into


def _limit_seconds(most: float) -> None:
    """Limit the further processor time of this process in seconds; 0 for no limit."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, most)


def _has_grown(max_memory: int) -> bool:
    return _largest_size() * _SPENT > max_memory


def _largest_size() -> int:
    """Return the peak memory of this process in bytes; 0 if the system does not report it."""
    if _STATUS.exists():  # what getrusage says on Linux begins with the size of the process that started this one
        found = _LARGEST.search(_STATUS.read_bytes())
        return 1024 * int(found[1]) if found else 0
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
