"""Worker process that reads documents one after another, within limits that the operating system enforces.

The pool is :mod:`polyad.readers.pool.workers`. Requests and replies are lines of JSON, so that the pool never executes
data that a hostile document may produce::

    -> {"path", "format", "settings"}, with "name" for a file of records, with "image" for the picture of a page,
       with "part" to recognise and store some of its scanned pages
    <- {"ready"}                once, at the start
    <- {"page", "pages", "kind"}  progress in a document with pages
    <- {"text"}                 pieces of the text of a document, before its content
    <- {"records"}              documents of a file of records, before its end
    <- {"content", "is_spent"}, {"image", "is_spent"}, {"is_spent"} after records, or {"failure", "is_spent"};
       the process ends if it is spent
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
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NoReturn

from polyad.config import ReadSettings
from polyad.model import Document, Failure
from polyad.readers.format import Context, Format, OnPage, Source, load_function
from polyad.readers.pool.one_file import format_reason, open_source, read_content
from polyad.text.json_types import format_value, parse_value

_REPORT_SECONDS = 0.2
"""Seconds between two progress messages."""

_MEMORY_SHARES = 4
"""A process that has used a fourth of its memory limit is replaced, so that the next document has the whole limit."""

_PIECE_CHARACTERS = 1024 * 1024
"""Characters of a piece of a document's text; a reply of a whole text would be in memory several times."""

_BATCH_CHARACTERS, _BATCH_RECORDS = 64 * 1024, 256
"""Characters and records from which a batch of records is sent."""

_MODEL_MEMORY = 1024 * 1024 * 1024
"""Bytes of addresses for the OCR models, beyond the limit on memory. Some 700 MB of memory are in use then."""

MEMORY_UNIT = 1 if sys.platform == "darwin" else 1024
"""Bytes of the unit in which the operating system reports the memory of a process."""

_STATUS_FILE = Path("/proc/self/status")
_PEAK_LINE = re.compile(rb"^VmHWM:\s*(\d+) kB$", re.MULTILINE)
"""Line with the peak memory of this process, on Linux."""


def main(max_memory: int) -> NoReturn:
    """Run a worker process: read the files that requests on stdin name, and write the replies to stdout.

    The end of stdin ends the process, even while a file is being read.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends this process
    _limit_memory(max_memory)
    replies = _open_reply_stream()
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive_requests, args=(requests,), daemon=True).start()
    _send(replies, {"ready": True})
    is_spent = False
    while not is_spent:
        reply = _reply_to(json.loads(requests.get()), replies)
        is_spent = bool(reply["is_spent"])
        _send(replies, reply)
    os._exit(0)


def _receive_requests(requests: queue.SimpleQueue[bytes]) -> NoReturn:
    """Put the requests on stdin into a queue; end the process when stdin ends."""
    for line in sys.stdin.buffer:
        requests.put(line)
    os._exit(0)


def _open_reply_stream() -> IO[bytes]:
    """Return a stream to the original stdout for replies, and redirect stdout to the null device, for libraries."""
    replies = os.fdopen(os.dup(1), "wb")
    null_device = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null_device, 1)
    os.close(null_device)
    return replies


def _send(replies: IO[bytes], message: Mapping[str, Any]) -> None:
    """Write a message to the reply stream as one line of JSON."""
    replies.write(json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")
    replies.flush()


def _reply_to(request: Mapping[str, Any], replies: IO[bytes]) -> dict[str, Any]:
    """Return the reply to a request: the content of the file that the request names, or the reason of a failure."""
    settings = ReadSettings(**request["settings"])
    format: Format = parse_value(request["format"], Format)
    source = open_source(Path(request["path"]), format, settings, request.get("name", ""))
    try:
        if format.has_records:
            _send_records(source, format, settings, replies)
            return {"is_spent": _is_memory_spent(settings.max_memory)}
        _limit_seconds(settings.max_seconds)
        if "image" in request:
            image = load_function(format.render)(source, Context(settings), request["image"])
            return {"image": image, "is_spent": _is_memory_spent(settings.max_memory)}
        report = _make_page_reporter(replies, settings.max_seconds)
        if "part" in request:
            load_function(format.recognize)(source, Context(settings, report), tuple(request["part"]))
            return {"is_spent": _is_memory_spent(settings.max_memory)}
        content = read_content(source.path, format, settings, report)
        for start in range(0, len(content.text), _PIECE_CHARACTERS):
            _send(replies, {"text": content.text[start : start + _PIECE_CHARACTERS]})
        return {
            "content": format_value(replace(content, text="")),
            "is_spent": _is_memory_spent(settings.max_memory),
        }
    except (Exception, SystemExit) as error:  # of any library
        if _is_memory_error(error):
            return {"failure": format_memory_failure(settings), "is_spent": True}
        return {"failure": format_reason(error), "is_spent": _is_memory_spent(settings.max_memory)}
    finally:
        _limit_seconds(0)


def _send_records(source: Source, format: Format, settings: ReadSettings, replies: IO[bytes]) -> None:
    """Read a file with many documents, and send them to the parent process in batches."""
    batch: list[dict[str, Any]] = []
    size = 0
    records: Iterator[Document | Failure] = load_function(format.read)(source, Context(settings))
    try:
        while True:
            _limit_seconds(settings.max_seconds)
            if (record := next(records, None)) is None:
                break
            batch.append(format_value(record))
            size += len(record.text) if isinstance(record, Document) else 0
            if size > _BATCH_CHARACTERS or len(batch) == _BATCH_RECORDS:
                _send(replies, {"records": batch})
                batch, size = [], 0
    finally:  # also before an error: the documents before a damaged record
        _send(replies, {"records": batch})


def format_memory_failure(settings: ReadSettings) -> str:
    """Return the message for a document that exceeds the memory limit."""
    return f"takes more than {settings.max_memory:,} bytes of memory to read (max_memory)"


def parse_record(values: Mapping[str, Any]) -> Document | Failure:
    """Return the document, or the failure to read a document, in a JSON object from a worker process."""
    record: Document | Failure = parse_value(values, Failure if "reason" in values else Document)
    return record


def _make_page_reporter(replies: IO[bytes], max_seconds: float) -> OnPage:
    """Return a callback that receives the current page and sends it to the parent process at intervals.

    Scanned pages take seconds each: the limit on processor time begins again after each of them.
    """
    last_report = time.monotonic()

    def report(page: int, pages: int, kind: str) -> None:
        nonlocal last_report
        if kind:
            _limit_seconds(max_seconds)
        if kind or time.monotonic() - last_report >= _REPORT_SECONDS:
            last_report = time.monotonic()
            _send(replies, {"page": page, "pages": pages, "kind": kind})

    return report


def _is_memory_error(error: BaseException | None) -> bool:
    """Return whether an error is a MemoryError, or was caused by a MemoryError."""
    while error:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False


# Limits that the operating system enforces, except Windows, which has none of these limits.


def _limit_memory(max_bytes: int) -> None:
    """Limit the address space of this process to ``max_bytes``, and disable core dumps.

    The hard limit leaves addresses for the OCR models, which raise the limit when they are loaded.
    """
    try:
        import resource
    except ImportError:
        return
    with suppress(ValueError, OSError):  # macOS may refuse this limit
        current = resource.getrlimit(resource.RLIMIT_AS)[1]
        hard_limit = (
            max_bytes + _MODEL_MEMORY if current == resource.RLIM_INFINITY else min(max_bytes + _MODEL_MEMORY, current)
        )
        resource.setrlimit(resource.RLIMIT_AS, (min(max_bytes, hard_limit), hard_limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash on a hostile document needs no core dump


def _limit_seconds(max_seconds: float) -> None:
    """Limit the processor time that this process may use from now on, in seconds; 0 for no limit."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, max_seconds)


def _is_memory_spent(max_memory: int) -> bool:
    """Return whether this process has used so much memory that the next document needs a new process."""
    peak = get_peak_memory()
    if _STATUS_FILE.exists():
        match = _PEAK_LINE.search(_STATUS_FILE.read_bytes())
        peak = 1024 * int(match[1]) if match else 0
    return peak * _MEMORY_SHARES > max_memory


def get_peak_memory() -> int:
    """Return the peak memory of this process in bytes, on Linux that of its parent too; 0 if unavailable."""
    try:
        import resource
    except ImportError:
        return 0
    return MEMORY_UNIT * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
