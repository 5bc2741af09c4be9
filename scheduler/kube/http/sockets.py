"""Sockets of connections to the API server."""

import socket

from aiohappyeyeballs import AddrInfoType


class LoopsSocket(socket.socket):
    """A socket that is closed by the event loop, or by a call of `close`, but never by being forgotten.

    uvloop closes the descriptor of a connection that is reset before its first byte was written, and leaves its number
    in the socket (`create_connection` attaches the socket to the transport a turn after that may have ended). When
    such a socket is collected, Python closes the number again. By then it may be that of another connection, whose
    transport notices nothing, and from then on each new connection gets the same number and fails.
    """

    __slots__ = ()

    def __del__(self) -> None:
        self.detach()


def loops_socket(address: AddrInfoType) -> LoopsSocket:
    """A socket for an address, as connectors ask for it."""
    family, kind, protocol, *_ = address
    return LoopsSocket(family, kind, protocol)
