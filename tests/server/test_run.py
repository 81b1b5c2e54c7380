from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from polyad.server.run import listen
from tests.server.serving import build_index

TERMINATE_DURING_STARTUP = """
import os, signal
from polyad.cli import main
from polyad.server.run import _Server

run = _Server.run

def terminate(*arguments):
    os.kill(os.getpid(), signal.SIGTERM)
    run(*arguments)

_Server.run = terminate
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGTERM")
def test_a_server_that_is_terminated_before_it_runs_ends(tmp_path: Path) -> None:
    store = build_index(tmp_path / "kb")
    command = [sys.executable, "-c", TERMINATE_DURING_STARTUP, "serve", "--port", "0", "--store", os.fspath(store)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize("is_shared", [False, True])
def test_replies_are_sent_without_waiting_for_an_acknowledgement(is_shared: bool) -> None:
    async def get_option() -> int:
        options = asyncio.get_running_loop().create_future()

        def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            options.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listener = listen("127.0.0.1", 0, is_shared=is_shared)
        async with await asyncio.start_server(accept, sock=listener):
            _, writer = await asyncio.open_connection(*listener.getsockname())
            option: int = await asyncio.wait_for(options, 10)
            writer.close()
            return option

    assert asyncio.run(get_option())
