"""A connection that is reset at once costs nobody else a descriptor."""

import asyncio
import contextlib
import gc
import os
import socket
import ssl
import struct
from collections.abc import Callable
from pathlib import Path

import aiohappyeyeballs
import pytest
import uvloop

from scheduler.kube.http.sockets import loops_socket
from tests.fakes import settle

pytestmark = pytest.mark.programs


async def costs_a_file(null: int) -> bool:
    """Connect with TLS to somebody who resets, open a file that gets the number, forget the socket: is it gone, too?"""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = (socket.AF_INET, socket.SOCK_STREAM, 0, "", listening.getsockname())
        plain = await aiohappyeyeballs.start_connection([address], socket_factory=loops_socket)
        number = plain.fileno()
        theirs, _ = listening.accept()
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        theirs.close()
        with contextlib.suppress(ConnectionResetError):
            await asyncio.get_running_loop().create_connection(
                asyncio.Protocol, sock=plain, ssl=ssl.create_default_context(), server_hostname="server"
            )
    await settle()
    assert not is_open(number)
    os.dup2(null, number)
    del plain
    gc.collect()
    if not is_open(number):
        return True
    os.close(number)
    return False


@pytest.mark.parametrize("make_loop", [uvloop.new_event_loop, asyncio.new_event_loop])
def test_a_socket_that_is_forgotten_closes_nobody_elses_descriptor(
    make_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    with Path(os.devnull).open() as null, asyncio.Runner(loop_factory=make_loop) as runner:
        assert not runner.run(costs_a_file(null.fileno()))


def test_a_socket_that_is_closed_is_closed() -> None:
    made = loops_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 1)))
    number = made.fileno()
    made.close()

    assert not is_open(number)


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
