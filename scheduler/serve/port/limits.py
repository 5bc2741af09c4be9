"""Limits of one client of the port: seconds, connections, bytes."""

from dataclasses import dataclass
from typing import Final

MAX_HEAD_LINE: Final = 16_384
"""Bytes of a header field or of the request line; the longest are tokens. An answer 400 for more."""

MAX_FIELDS: Final = 64
"""Header fields of a request."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The times do not begin again with each byte."""

    connections: int = 64
    """Connections in all. A kubelet needs two, a Prometheus one."""

    connections_per_address: int = 24
    """The API server is one address for all who look through its proxy: all streams may be open, and as many
    connections are left for those who open the page, who ask and who record."""

    accept_pause_seconds: float = 0.001
    """Between two connections: of a flood, so many a second cost an accept and a close."""

    handshakes_per_second: float = 20.0
    """Of one address in the long run: a handshake is half a millisecond of work for the event loop."""

    burst: int = 40
    """Handshakes of one address at once."""

    handshake_seconds: float = 10.0
    """For the first byte, and then for TLS."""

    head_seconds: float = 10.0
    """From TLS to the end of the first request's head. kube-scheduler gives 32, but has no bound on connections."""

    request_seconds: float = 30.0
    """From a whole head to the last byte of its answer. The API server has 20 of them, at most."""

    idle_seconds: float = 90.0
    """Until the next request is whole; kube-scheduler's, and more than a Prometheus usually waits."""

    streams: int = 12
    """Answers that go on, at once: they are busy all the time, and one address has other questions, too."""

    chunk_seconds: float = 15.0
    """For the reader of a stream to take each part."""

    rights_seconds: float = 60.0
    """After which it is asked again whether the reader of a stream may see it."""

    close_seconds: float = 2.0
    """For the peer to agree that TLS ends."""


DEFAULTS: Final = Limits()
