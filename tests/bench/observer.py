"""Sees pods being bound, from outside and at next to no cost: a program of its own that watches the API server.

    python -I -S observer.py HOST PORT CA_FILE        (the bearer token is in the variable TOKEN)

It writes a line when the watch is open, then `TIME NAMESPACE/NAME …` for every batch of pods that were bound: the
seconds of CLOCK_MONOTONIC, which all processes of a machine share, and which pods they were.

It runs on the same cores as what it observes. So the API server sends a pod only when it gets its node, and only its
metadata, a form that no scheduler asks for and that costs the same for each of them; nothing is decoded but the name;
and after each batch it sleeps for a moment, so that it is not woken for every pod. Standard library only: it is up in
50 ms.
"""

import os
import re
import select
import socket
import ssl
import sys
import time
from collections.abc import Iterator

PATH = "/api/v1/pods?watch=1&fieldSelector=spec.nodeName!%3D&timeoutSeconds=3600"
METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
REQUEST = "GET {path} HTTP/1.0\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nAccept: {accept}\r\n\r\n"
"""HTTP/1.0 knows no chunks: after the head of the answer come the lines of the watch and nothing else."""

OPEN = "watching"
"""The first line of output, and again when the API server ended the watch and it was opened again."""

PAUSE = 0.01
"""Seconds for which a batch gathers: the resolution of the times reported."""


class WatchError(Exception):
    """The API server refuses the watch, or reports an error: what was seen is not complete."""


class WatchClosed(Exception):
    """The API server ended the watch, as it does when it is so busy that it falls behind with it."""


POD = re.compile(rb'"metadata":\{"name":"([^"]*)",(?:"generateName":"[^"]*",)?"namespace":"([^"]*)"')


class BindReader:
    """Finds the pods that a watch on `spec.nodeName!=` reports as new: those are bound at that moment."""

    def __init__(self) -> None:
        self._rest = b""
        self._last = b""

    def resume(self) -> str:
        """Forget the line that was cut off; return the version from which a new watch goes on, "" for the start."""
        self._rest = b""
        found = re.search(rb'"resourceVersion":"(\d+)"', self._last)
        return found[1].decode() if found else ""

    def feed(self, chunk: bytes) -> list[str]:
        """Take bytes of the watch, which may end anywhere; return the pods bound in them. Raises WatchError."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        bound = []
        for line in lines:
            if line.startswith(b'{"type":"ADDED"'):
                found = POD.search(line)
                if not found:
                    raise WatchError(f"no name in {line[:300]!r}")
                bound.append(f"{found[2].decode()}/{found[1].decode()}")
                self._last = line
            elif line.startswith(b'{"type":"ERROR"'):
                raise WatchError(line.decode(errors="replace"))
        return bound


def main(host: str, port: str, ca_file: str) -> None:
    """Report until this process is ended."""
    reader = BindReader()
    while True:
        connection = open_watch(host, int(port), ca_file, reader.resume())
        print(OPEN, flush=True)
        try:
            follow(connection, reader)
        except WatchClosed:
            connection.close()


def follow(connection: ssl.SSLSocket, reader: BindReader) -> None:
    """Report what a watch says. Raises WatchClosed when it ends."""
    connection.setblocking(False)
    while True:
        select.select([connection], [], [])
        time.sleep(PAUSE)
        bound: list[str] = []
        try:
            for chunk in received(connection):
                bound += reader.feed(chunk)
        finally:
            if bound:
                print(f"{time.monotonic():.4f}", *bound, flush=True)


def open_watch(host: str, port: int, ca_file: str, version: str) -> ssl.SSLSocket:
    """Connect, ask for the watch, and read the head of the answer. Raises WatchError."""
    plain = socket.create_connection((host, port))
    connection = ssl.create_default_context(cafile=ca_file).wrap_socket(plain, server_hostname=host)
    path = f"{PATH}&resourceVersion={version}" if version else PATH
    request = REQUEST.format(path=path, host=host, token=os.environ["TOKEN"], accept=METADATA_ONLY)
    connection.sendall(request.encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = connection.recv(1)  # not more: what follows is the watch
        if not byte:
            raise WatchError(f"the API server closed the connection: {head!r}")
        head += byte
    if b" 200 " not in head.partition(b"\r\n")[0]:
        raise WatchError(head.decode(errors="replace"))
    return connection


def received(connection: ssl.SSLSocket) -> Iterator[bytes]:
    """Everything that has come until now: each event is a TLS record of its own. Raises WatchClosed."""
    while True:
        try:
            chunk = connection.recv(1 << 16)
        except ssl.SSLWantReadError:
            return
        if not chunk:
            raise WatchClosed
        yield chunk


if __name__ == "__main__":
    main(*sys.argv[1:])
