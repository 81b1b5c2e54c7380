from __future__ import annotations

import asyncio
import socket

import pytest

pytest.importorskip("fastapi")

from polyad.server.run import listen


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
